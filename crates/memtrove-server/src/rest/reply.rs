//! What handlers answer with.

use super::error::{ApiError, JSON_UTF8};
use axum::response::{IntoResponse, Response};
use http::StatusCode;
use http::header::CONTENT_TYPE;
use memtrove_core::Error;
use memtrove_service::Page;
use memtrove_wire as wire;
use serde::Serialize;

/// 200 with a JSON body.
pub(super) struct Ok200<T>(pub T);

/// 201 with a JSON body.
pub(super) struct Created<T>(pub T);

/// 200 with a body that already is JSON.
pub(super) struct RenderedJson(pub Vec<u8>);

impl IntoResponse for RenderedJson {
    fn into_response(self) -> Response {
        (StatusCode::OK, [(CONTENT_TYPE, JSON_UTF8)], self.0).into_response()
    }
}

impl<T: Serialize> IntoResponse for Ok200<T> {
    fn into_response(self) -> Response {
        json(StatusCode::OK, &self.0)
    }
}

impl<T: Serialize> IntoResponse for Created<T> {
    fn into_response(self) -> Response {
        json(StatusCode::CREATED, &self.0)
    }
}

fn json<T: Serialize>(status: StatusCode, body: &T) -> Response {
    match serde_json::to_vec(body) {
        Ok(bytes) => (status, [(CONTENT_TYPE, JSON_UTF8)], bytes).into_response(),
        Err(error) => {
            ApiError(Error::internal(format!("a response could not be written: {error}"))).into_response()
        }
    }
}

/// A page of domain objects as a page of wire objects.
pub(super) fn page<T, U>(page: Page<T>, convert: impl FnMut(T) -> U) -> wire::Page<U> {
    let Page { data, after } = page.map(convert);
    wire::Page { data, after_cursor: after }
}
