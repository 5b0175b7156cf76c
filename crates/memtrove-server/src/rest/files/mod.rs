//! `/v1/tenants/{tenant_id}/users/{user_id}/…`: files, events, context, audit, retention, forget.

pub(super) mod audit;
mod decode;
pub(super) mod documents;
pub(crate) mod error;
pub(super) mod events;
pub(super) mod extract;
pub(super) mod jobs;
pub(super) mod lifecycle;
pub(super) mod removal;

pub use error::FilesErrorBody;

use crate::rest::error::ApiError;

use crate::rest::error::JSON_UTF8;
use axum::response::{IntoResponse, Response};
use http::StatusCode;
use http::header::CONTENT_TYPE;
use memtrove_core::Error;
use serde::Serialize;

/// A response with a JSON body.
fn json<T: Serialize>(status: StatusCode, body: &T) -> Response {
    match serde_json::to_vec(body) {
        Ok(bytes) => written(status, bytes),
        Err(error) => {
            ApiError(Error::internal(format!("a response could not be written: {error}"))).into_response()
        }
    }
}

/// A response whose body already is JSON.
fn written(status: StatusCode, body: Vec<u8>) -> Response {
    (status, [(CONTENT_TYPE, JSON_UTF8)], body).into_response()
}

/// Appends a JSON string.
fn push_text(json: &mut Vec<u8>, text: &str) {
    // Writing a text into memory cannot fail.
    let _ = serde_json::to_writer(json, text);
}
