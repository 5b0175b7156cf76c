//! The mem0 API over the same memories: the routes of its hosted service, whose paths end in a slash, and those of the server
//! that it publishes.
//!
//! A protocol adapter and nothing else: bodies become requests of the memories' service, and are checked by its rules. What only a
//! language model can do is refused, in words; nothing is left out without one.

pub(super) mod absent;
pub(super) mod batch;
mod decode;
mod encode;
pub(super) mod entities;
pub(super) mod entries;
pub(crate) mod error;
mod extract;
pub(super) mod history;
mod params;
pub(super) mod published;
pub(super) mod search;
pub(super) mod system;

pub use error::Mem0ErrorBody;

use crate::rest::error::ApiError;

use super::memories;
use axum::response::Response;
use http::StatusCode;
use memtrove_core::{Clock, SystemClock, Timestamp};
use memtrove_wire::mem0 as wire;
use serde::Serialize;

/// The paths of the hosted service, besides those below `/v1/memories/`.
const HOSTED: [&str; 11] = [
    "/v1/ping",
    "/v1/batch",
    "/v1/entities",
    "/v1/exports",
    "/v1/summary",
    "/v1/feedback",
    "/v2/entities",
    "/v2/memories",
    "/v2/profiles",
    "/v3/memories",
    "/api/v1",
];
/// The paths of the server that mem0 publishes.
const PUBLISHED: [&str; 4] = ["/memories", "/search", "/reset", "/configure"];

/// Whether a path belongs to mem0. Only a slash at its end tells `/v1/memories/` and what is in it from our own.
pub(super) fn is_path(path: &str) -> bool {
    if let Some(rest) = path.strip_prefix("/v1/memories/") {
        let named = if rest.is_empty() { Some("") } else { rest.strip_suffix('/') };
        return named.is_some_and(|named| named.split_once('/').is_none_or(|(_, below)| below == "history"));
    }
    let within =
        |root: &&str| path.strip_prefix(*root).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    PUBLISHED.iter().any(within) || (path.ends_with('/') && HOSTED.iter().any(within))
}

/// An answer in JSON.
fn respond(body: &impl Serialize) -> Response {
    memories::respond(StatusCode::OK, body)
}

/// An answer that says that something was done.
fn said(message: impl Into<String>) -> Response {
    respond(&wire::Mem0Done { message: message.into() })
}

fn now() -> Timestamp {
    SystemClock.now()
}

#[cfg(test)]
mod tests;
