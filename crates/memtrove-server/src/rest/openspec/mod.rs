//! `/openspec/v1/knowledge…`: the OpenSpec knowledge protocol over the same memories.
//!
//! A protocol adapter and nothing else: bodies become those of the memories surface, and are checked by its rules.

pub(super) mod batch;
pub(super) mod discovery;
pub(super) mod entries;
pub(crate) mod error;
pub(super) mod query;
pub(super) mod stream;
#[cfg(test)]
mod testing;

pub use error::OpenSpecErrorBody;

use crate::rest::error::ApiError;

use super::memories;
use axum::response::Response;
use http::{HeaderName, HeaderValue, StatusCode};
use memtrove_core::memories::Memory;
use memtrove_core::memories::openspec::{self, Show};
use memtrove_core::{Clock, Result, SystemClock};
use serde_json::{Value, json};

/// The name of this provider.
const NAME: &str = "Memtrove";
/// Its version.
const VERSION: &str = env!("CARGO_PKG_VERSION");

const X_PROVIDER_VERSION: HeaderName = HeaderName::from_static("x-provider-version");

/// An answer that says which version of the provider gave it.
fn provided(mut response: Response) -> Response {
    response.headers_mut().insert(X_PROVIDER_VERSION, HeaderValue::from_static(VERSION));
    response
}

/// An answer in JSON.
fn respond(status: StatusCode, body: &Value) -> Response {
    provided(memories::respond(status, body))
}

/// An answer that carries exactly one entry.
fn tagged(response: Response, memory: &Memory) -> Result<Response> {
    memories::tagged(response, &memory.etag())
}

/// An entry with its text.
fn entry(memory: &Memory) -> Value {
    openspec::entry(memory, Show { content: true, embedding: false }).into()
}

/// Who answers, in answers that say so.
fn provider() -> Value {
    json!({"name": NAME, "version": VERSION})
}

/// A name for what nothing is stored of: a query, a batch, a stream.
fn fresh_id() -> String {
    SystemClock.new_id().to_string()
}
