//! How the MCP server says no. What a tool cannot do is a result that the model reads: a code, a sentence, a hint. What never
//! reaches a tool is an HTTP status with a JSON-RPC error in it.

use axum::response::{IntoResponse, Response};
use http::header::{CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use http::{HeaderValue, StatusCode};
use memtrove_core::files::Class;
use memtrove_core::{Error, Resource};
use memtrove_wire::tools::ToolFailure;
use serde_json::{Map, Value, json};

/// How long a caller waits before asking again for what is not available now.
const UNAVAILABLE_RETRY_SECONDS: u32 = 5;
/// JSON-RPC: the request is not one.
pub(super) const INVALID_REQUEST: i32 = -32600;
/// JSON-RPC: the body is no JSON.
pub(super) const PARSE_ERROR: i32 = -32700;

/// What is said about an error, to whomever.
struct Problem {
    status: StatusCode,
    code: &'static str,
    message: String,
    details: Map<String, Value>,
    retry_after_seconds: Option<u32>,
}

impl Problem {
    fn new(status: StatusCode, code: &'static str, message: impl Into<String>) -> Self {
        Self { status, code, message: message.into(), details: Map::new(), retry_after_seconds: None }
    }

    fn unavailable(message: String, seconds: u32) -> Self {
        let problem = Self::new(StatusCode::SERVICE_UNAVAILABLE, "DEPENDENCY_UNAVAILABLE", message);
        Self { retry_after_seconds: Some(seconds), ..problem }
    }
}

impl From<Error> for Problem {
    fn from(error: Error) -> Self {
        let text = error.to_string();
        match error {
            Error::Refused(refusal) => {
                let status = match refusal.code.class() {
                    Class::Malformed => StatusCode::BAD_REQUEST,
                    Class::Missing => StatusCode::NOT_FOUND,
                    Class::Conflict => StatusCode::CONFLICT,
                    Class::Stale => StatusCode::PRECONDITION_FAILED,
                    Class::Unprocessable => StatusCode::UNPROCESSABLE_ENTITY,
                    Class::Unavailable => StatusCode::NOT_IMPLEMENTED,
                };
                Self { details: refusal.details, ..Self::new(status, refusal.code.as_str(), refusal.message) }
            }
            Error::MemoryRefused(refusal) => {
                let status = StatusCode::from_u16(refusal.code.status());
                let status = status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
                Self { details: refusal.details, ..Self::new(status, refusal.code.as_str(), refusal.message) }
            }
            Error::Invalid(_) | Error::BadRequest(_) | Error::JustificationRequired => {
                Self::new(StatusCode::BAD_REQUEST, "INVALID_REQUEST", text)
            }
            Error::Unauthorized => Self::new(
                StatusCode::UNAUTHORIZED,
                "UNAUTHENTICATED",
                "send valid credentials of a user: Authorization: Bearer <token>, or X-API-Key: <key> of a trusted \
                 client together with X-User-ID: <user>",
            ),
            Error::Forbidden(_) => Self::new(StatusCode::FORBIDDEN, "FORBIDDEN", text),
            Error::TenantForbidden(_) => Self::new(StatusCode::FORBIDDEN, "TENANT_FORBIDDEN", text),
            Error::QuotaExceeded(quota) => {
                let seconds = Some(quota.retry_after_seconds);
                let problem = Self::new(StatusCode::TOO_MANY_REQUESTS, "QUOTA_EXCEEDED", text);
                let details = Map::from_iter([
                    ("scope".to_owned(), quota.scope.into()),
                    ("resource".to_owned(), quota.resource.into()),
                    ("limit".to_owned(), quota.limit.into()),
                    ("window_seconds".to_owned(), quota.window_seconds.into()),
                ]);
                Self { retry_after_seconds: seconds, details, ..problem }
            }
            Error::NotFound { resource: Resource::Route, .. } => {
                Self::new(StatusCode::NOT_FOUND, "ROUTE_NOT_FOUND", text)
            }
            Error::NotFound { .. } => Self::new(StatusCode::NOT_FOUND, "NOT_FOUND", text),
            Error::MethodNotAllowed => Self::new(
                StatusCode::METHOD_NOT_ALLOWED,
                "METHOD_NOT_ALLOWED",
                "POST a JSON-RPC request: there are no sessions here, and no stream to follow",
            ),
            Error::Conflict(_)
            | Error::TransferAlreadyPending { .. }
            | Error::AttachmentLinked
            | Error::UploadInProgress
            | Error::DownloadFailed
            | Error::RecorderDisabled => Self::new(StatusCode::CONFLICT, "CONFLICT", text),
            Error::TooLarge { .. } | Error::FileTooLarge { .. } => {
                Self::new(StatusCode::PAYLOAD_TOO_LARGE, "PAYLOAD_TOO_LARGE", text)
            }
            Error::UnsupportedMediaType => {
                Self::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "UNSUPPORTED_MEDIA_TYPE", text)
            }
            Error::Timeout => Self::new(StatusCode::GATEWAY_TIMEOUT, "TIMEOUT", text),
            Error::SearchTypeUnavailable { .. } | Error::SearchDisabled | Error::PrometheusNotConfigured => {
                Self::new(StatusCode::NOT_IMPLEMENTED, "NOT_IMPLEMENTED", text)
            }
            Error::Overloaded { retry_after_seconds } => Self::unavailable(text, retry_after_seconds),
            Error::StorageUnavailable(reason) => {
                tracing::warn!(%reason, "storage is unavailable");
                Self::unavailable(text, UNAVAILABLE_RETRY_SECONDS)
            }
            Error::SemanticUnavailable(_)
            | Error::IdentityProviderUnavailable
            | Error::PrometheusUnavailable
            | Error::PeerUnreachable(_) => Self::unavailable(text, UNAVAILABLE_RETRY_SECONDS),
            Error::Internal(defect) => {
                tracing::error!(%defect, "internal error");
                let message = "the server failed; its log says why";
                Self::new(StatusCode::INTERNAL_SERVER_ERROR, "UNHANDLED_ERROR", message)
            }
        }
    }
}

/// An error of the domain, for the model that caused it.
pub(super) fn told(error: Error) -> ToolFailure {
    let Problem { code, message, details, .. } = Problem::from(error);
    let failure = ToolFailure::answered(code, &message, &details);
    match code {
        "MEMORY_NOT_FOUND" => ToolFailure { hint: NO_MEMORY.to_owned(), ..failure },
        "TIMEOUT" => ToolFailure { hint: LOOK_FIRST.to_owned(), ..failure },
        _ => failure,
    }
}

/// What to do where nothing is to be forgotten.
pub(super) const NO_MEMORY: &str = "Look for it with recall or query_facts: each result carries its id. If it is not there, there is nothing to forget.";
const LOOK_FIRST: &str = "It may have been carried out: look first, then repeat it if it was not.";

/// An error before or beside the protocol, as HTTP says it.
pub fn response(error: Error) -> Response {
    let problem = Problem::from(error);
    let data = json!({"code": problem.code});
    let mut response = json_rpc(problem.status, INVALID_REQUEST, &problem.message, Some(data));
    let headers = response.headers_mut();
    if let Some(seconds) = problem.retry_after_seconds {
        headers.insert(RETRY_AFTER, seconds.into());
    }
    if problem.status == StatusCode::UNAUTHORIZED {
        headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    }
    response
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
