//! How the MCP server says no. What a tool cannot do is a result that the model reads: a code, a sentence, a hint. What never
//! reaches a tool is an HTTP status with a JSON-RPC error in it.

use crate::rest::error::{UNAVAILABLE_RETRY_SECONDS, log, status, with_hints};
use axum::response::{IntoResponse, Response};
use http::header::CONTENT_TYPE;
use http::{HeaderValue, StatusCode};
use memtrove_core::{Code, Details, Error, ErrorKind};
use memtrove_wire::tools::ToolFailure;
use serde_json::{Map, Value, json};

/// JSON-RPC: the request is not one.
pub(super) const INVALID_REQUEST: i32 = -32600;
/// JSON-RPC: the body is no JSON.
pub(super) const PARSE_ERROR: i32 = -32700;

/// What a caller is told instead of the error's own sentence.
fn message(error: &Error) -> &str {
    match error.code {
        Code::Unauthorized => {
            "send valid credentials of a user: Authorization: Bearer <token>, or X-API-Key: <key> of a trusted \
             client together with X-User-ID: <user>"
        }
        Code::MethodNotAllowed => {
            "POST a JSON-RPC request: there are no sessions here, and no stream to follow"
        }
        Code::Internal => "the server failed; its log says why",
        _ => &error.message,
    }
}

fn details(error: &Error) -> Map<String, Value> {
    match &error.details {
        Details::Quota(quota) => Map::from_iter([
            ("scope".to_owned(), quota.scope.into()),
            ("resource".to_owned(), quota.resource.into()),
            ("limit".to_owned(), quota.limit.into()),
            ("window_seconds".to_owned(), quota.window_seconds.into()),
        ]),
        details => details.clone().into_members(),
    }
}

/// An error of the domain, for the model that caused it.
pub(super) fn to_failure(error: Error) -> ToolFailure {
    log(&error);
    let failure = ToolFailure::answered(error.code.as_str(), message(&error), &details(&error));
    match error.code {
        Code::MemoryNotFound => ToolFailure { hint: NO_MEMORY.to_owned(), ..failure },
        Code::Timeout => ToolFailure { hint: LOOK_FIRST.to_owned(), ..failure },
        _ => failure,
    }
}

/// What to do where nothing is to be forgotten.
pub(super) const NO_MEMORY: &str = "Look for it with recall or query_facts: each result carries its id. If it is not there, there is nothing to forget.";
const LOOK_FIRST: &str = "It may have been carried out: look first, then repeat it if it was not.";

/// An error before or beside the protocol, as HTTP says it.
pub fn response(error: Error) -> Response {
    let waits = (error.kind() == ErrorKind::Unavailable).then_some(UNAVAILABLE_RETRY_SECONDS);
    let retry = error.retry_after_seconds().or(waits);
    let data = json!({"code": error.code.as_str()});
    with_hints(json_rpc(status(error.kind()), INVALID_REQUEST, message(&error), Some(data)), retry)
}

/// A JSON-RPC error that answers no request in particular.
pub(super) fn json_rpc(status: StatusCode, code: i32, message: &str, data: Option<Value>) -> Response {
    let mut error = json!({"code": code, "message": message});
    if let Some(data) = data {
        error["data"] = data;
    }
    let body = json!({"jsonrpc": "2.0", "id": null, "error": error}).to_string();
    (status, [(CONTENT_TYPE, HeaderValue::from_static("application/json"))], body).into_response()
}
