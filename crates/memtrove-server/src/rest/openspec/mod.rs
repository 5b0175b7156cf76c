//! `/openspec/v1/knowledge…`: the OpenSpec knowledge protocol over the same memories.
//!
//! A protocol adapter and nothing else: bodies become requests of the memories' service, and are checked by its rules.

pub(super) mod batch;
mod decode;
pub(super) mod discovery;
mod encode;
pub(super) mod entries;
pub(crate) mod error;
pub(super) mod query;
pub(super) mod stream;

pub use error::OpenSpecErrorBody;

use crate::rest::error::ApiError;

use super::memories;
use axum::response::Response;
use http::{HeaderName, HeaderValue, StatusCode};
use memtrove_core::memories::Memory;
use memtrove_core::{Clock, Result, SystemClock};
use memtrove_wire::openspec as wire;
use serde::Serialize;

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
fn respond(status: StatusCode, body: &impl Serialize) -> Response {
    provided(memories::respond(status, body))
}

/// An answer that carries exactly one entry.
fn tagged(response: Response, memory: &Memory) -> Result<Response> {
    memories::tagged(response, &memory.etag())
}

/// Who answers, in answers that say so.
fn provider() -> wire::KnowledgeProviderName {
    wire::KnowledgeProviderName { name: NAME.to_owned(), version: VERSION.to_owned() }
}

/// A name for what nothing is stored of: a query, a batch, a stream.
fn fresh_id() -> String {
    SystemClock.new_id().to_string()
}
