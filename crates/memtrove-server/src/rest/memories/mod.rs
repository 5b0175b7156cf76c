//! `/v1/memories…`, `/v1/facts…`, `/v1/sessions:end`: memories in layers.

pub(super) mod bulk;
pub(super) mod decode;
pub(super) mod encode;
pub(super) mod entries;
pub(crate) mod error;
pub(super) mod extract;
pub(super) mod facts;
pub(super) mod introspection;
pub(super) mod lifecycle;
mod params;
pub(super) mod search;
pub(super) mod sessions;

pub use error::MemoriesErrorBody;
pub(super) use error::Problem;

use crate::rest::error::ApiError;

use crate::rest::IDEMPOTENCY_REPLAYED;
use crate::rest::error::JSON_UTF8;
use axum::response::{IntoResponse, Response};
use http::header::{CACHE_CONTROL, CONTENT_TYPE, ETAG, LOCATION};
use http::{HeaderValue, StatusCode};
use memtrove_core::{Error, Result};
use memtrove_service::memories::{Answered, Reply};
use serde::Serialize;

/// An answer that nobody may keep: what is remembered may be forgotten at any time.
pub(super) fn no_store(mut response: Response) -> Response {
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

/// An answer in JSON.
pub(super) fn respond(status: StatusCode, body: &impl Serialize) -> Response {
    // Writing a value or a report cannot fail: their keys are strings.
    let bytes = serde_json::to_vec(body).unwrap_or_default();
    no_store((status, [(CONTENT_TYPE, JSON_UTF8)], bytes).into_response())
}

/// An answer that carries exactly one entry.
pub(super) fn tagged(mut response: Response, etag: &str) -> Result<Response> {
    response.headers_mut().insert(ETAG, header(etag)?);
    Ok(response)
}

/// The answer to a request that may be repeated under its key. What came about is found in `collection`.
fn answer<A>(answered: Answered<A>, render: fn(&A) -> Result<Reply>, collection: &str) -> Result<Response> {
    let (reply, replayed) = match answered {
        Answered::Now(answer) => (render(&answer)?, false),
        Answered::Before(reply) => (reply, true),
    };
    let status = if reply.created { StatusCode::CREATED } else { StatusCode::OK };
    let mut response = respond(status, &reply.body);
    if let Some(etag) = &reply.etag {
        response = tagged(response, etag)?;
    }
    if let Some(id) = reply.id.filter(|_| reply.created) {
        response.headers_mut().insert(LOCATION, header(&format!("{collection}/{id}"))?);
    }
    if replayed {
        response.headers_mut().insert(IDEMPOTENCY_REPLAYED, HeaderValue::from_static("true"));
    }
    Ok(response)
}

fn header(text: &str) -> Result<HeaderValue> {
    HeaderValue::from_str(text).map_err(|error| Error::internal(error.to_string()))
}
