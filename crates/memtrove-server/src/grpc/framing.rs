//! Below the messages: requests that are no calls, and calls whose message could not be read.

use super::error;
use crate::rest::App;
use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use http::header::{ALLOW, CONTENT_TYPE};
use http::{HeaderMap, HeaderName, Method, StatusCode};
use memtrove_core::Error;
use tonic::Code;

const GRPC_STATUS: HeaderName = HeaderName::from_static("grpc-status");
const GRPC_DETAILS: HeaderName = HeaderName::from_static("grpc-status-details-bin");

/// Whether a request is a call, by what it says of its body. `application/grpc-web` is another protocol.
pub(crate) fn is_asked_for(headers: &HeaderMap) -> bool {
    let kind = headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let rest = kind.strip_prefix("application/grpc");
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['+', ';']))
}

/// What calls are held to before their messages are read.
#[derive(Clone)]
pub(super) struct Gate {
    pub(super) app: App,
    /// The most bytes a message may have.
    pub(super) max_bytes: u64,
}

/// Lets calls through whose callers are known: a message is read into memory before a handler sees it, which is nothing to do
/// for strangers. Says in our words what was wrong with a message that handlers never saw.
pub(super) async fn check(State(gate): State<Gate>, mut request: Request, next: Next) -> Response {
    if request.method() != Method::POST {
        return (StatusCode::METHOD_NOT_ALLOWED, [(ALLOW, "POST")]).into_response();
    }
    if !is_asked_for(request.headers()) {
        return StatusCode::UNSUPPORTED_MEDIA_TYPE.into_response();
    }
    if !is_for_anybody(request.uri().path()) {
        match gate.app.authenticator().authenticate(request.headers()).await {
            Ok(principal) => drop(request.extensions_mut().insert(principal)),
            Err(error) => return error::response(error),
        }
    }
    let response = next.run(request).await;
    let headers = response.headers();
    // What our handlers refuse has details.
    if headers.contains_key(GRPC_DETAILS) {
        return response;
    }
    match headers.get(GRPC_STATUS).map(|status| Code::from_bytes(status.as_bytes())) {
        Some(Code::OutOfRange) => error::response(Error::too_large(gate.max_bytes, None)),
        Some(Code::Internal) => error::response(Error::bad_request("the message could not be read")),
        _ => response,
    }
}

/// Calls that anybody may make: whether the server is there, and what it offers.
fn is_for_anybody(path: &str) -> bool {
    path.starts_with("/grpc.") || path == "/memory.v1.SystemService/GetHealth"
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    #[test]
    fn a_call_is_known_by_its_content_type() {
        let of = |kind: &'static str| {
            is_asked_for(&HeaderMap::from_iter([(CONTENT_TYPE, HeaderValue::from_static(kind))]))
        };
        for call in ["application/grpc", "application/grpc+proto", "application/grpc;charset=utf-8"] {
            assert!(of(call), "{call}");
        }
        for other in [
            "",
            "application/json",
            "application/grpc-web",
            "application/grpc-web+proto",
            "application/grpcx",
        ] {
            assert!(!of(other), "{other}");
        }
        assert!(!is_asked_for(&HeaderMap::new()));
    }
}
