//! The mem0 API over the same memories: the routes of its hosted service, whose paths end in a slash, and those of the server
//! that it publishes.
//!
//! A protocol adapter and nothing else: bodies become those of the memories surface, and are checked by its rules. What only a
//! language model can do is refused, in words; nothing is left out without one.

pub(super) mod absent;
pub(super) mod batch;
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
use memtrove_core::memories::Memory;
use memtrove_core::memories::mem0;
use memtrove_core::{Clock, SystemClock, Timestamp};
use serde_json::{Value, json};

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
fn respond(body: &Value) -> Response {
    memories::respond(StatusCode::OK, body)
}

/// An answer that says that something was done.
fn said(message: impl Into<String>) -> Response {
    respond(&json!({"message": message.into()}))
}

/// One page of several, with the addresses of those beside it.
struct Paging<'a> {
    address: &'a str,
    page: usize,
    size: usize,
}

impl Paging<'_> {
    /// How many come before it.
    fn offset(&self) -> usize {
        (self.page - 1).saturating_mul(self.size)
    }

    /// The page with what is on it; `total` is how many there are altogether.
    fn with(&self, results: Vec<Value>, total: usize) -> Value {
        let Self { address, page, size } = self;
        let of = |page: usize| format!("{address}?page={page}&page_size={size}");
        let more = !results.is_empty() && self.offset().saturating_add(results.len()) < total;
        json!({
            "count": total,
            "next": more.then(|| of(page + 1)),
            "previous": (*page > 1).then(|| of(page - 1)),
            "results": results,
        })
    }
}

/// An entry as mem0 shows it.
fn shown(memory: &Memory) -> Value {
    mem0::shown(memory, None).into()
}

fn now() -> Timestamp {
    SystemClock.now()
}

#[cfg(test)]
mod tests;
