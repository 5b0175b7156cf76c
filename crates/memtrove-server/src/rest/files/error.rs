//! How the files surface says no: one match from the domain's error to status, headers and envelope.

use crate::rest::error::JSON_UTF8;
use crate::shell::request_id;
use axum::response::{IntoResponse, Response};
use http::header::{CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use http::{HeaderValue, StatusCode};
use memtrove_core::files::Class;
use memtrove_core::{Error, Resource};
use serde::Serialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

/// How long a caller waits before asking an unavailable store or identity provider again.
const UNAVAILABLE_RETRY_SECONDS: u32 = 5;

/// A domain error on its way out of the files surface. Its handlers return `Result<_, FilesError>` and use `?`.
#[derive(Debug)]
pub struct FilesError(pub Error);

impl From<Error> for FilesError {
    fn from(error: Error) -> Self {
        Self(error)
    }
}

/// The envelope of every error of the files surface.
#[derive(Debug, Serialize, ToSchema)]
pub struct FilesErrorBody {
    /// What went wrong.
    pub error: FilesErrorDetail,
}

/// What went wrong.
#[derive(Debug, Serialize, ToSchema)]
pub struct FilesErrorDetail {
    /// For programs: a constant of the error catalogue.
    #[schema(example = "ETAG_MISMATCH")]
    pub code: String,
    /// For people.
    pub message: String,
    /// The request's id, as in the `X-Request-Id` header.
    pub request_id: String,
    /// What a program needs to go on; which members are there follows from `code`.
    #[schema(value_type = Object)]
    pub details: Map<String, Value>,
}

impl IntoResponse for FilesError {
    fn into_response(self) -> Response {
        let message = self.0.to_string();
        let plain = |status, code: &str| answer(status, code, message.clone(), Map::new());
        match self.0 {
            Error::Refused(refusal) => {
                answer(status(refusal.code.class()), refusal.code.as_str(), refusal.message, refusal.details)
            }
            // A context may be assembled from memories, too.
            Error::MemoryRefused(refusal) => {
                let status = StatusCode::from_u16(refusal.code.status());
                let status = status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
                let response = answer(status, refusal.code.as_str(), refusal.message, refusal.details);
                match refusal.code.retryable() {
                    true => with(response, RETRY_AFTER, UNAVAILABLE_RETRY_SECONDS.into()),
                    false => response,
                }
            }
            Error::Invalid(violations) => {
                let field = violations.into_iter().next().map(|violation| violation.field);
                let details = details([("field", field.unwrap_or_default().into())]);
                answer(StatusCode::BAD_REQUEST, "INVALID_REQUEST", message, details)
            }
            Error::BadRequest(_) | Error::JustificationRequired => {
                plain(StatusCode::BAD_REQUEST, "INVALID_REQUEST")
            }
            Error::Unauthorized => {
                let message = "send valid credentials: Authorization: Bearer <token>, or X-API-Key: <key>";
                let response =
                    answer(StatusCode::UNAUTHORIZED, "UNAUTHENTICATED", message.to_owned(), Map::new());
                with(response, WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"))
            }
            Error::Forbidden(_) => plain(StatusCode::FORBIDDEN, "FORBIDDEN"),
            Error::TenantForbidden(_) => plain(StatusCode::FORBIDDEN, "TENANT_FORBIDDEN"),
            Error::QuotaExceeded(quota) => {
                let details = details([
                    ("scope", quota.scope.into()),
                    ("resource", quota.resource.into()),
                    ("limit", quota.limit.to_string().into()),
                    ("window_seconds", quota.window_seconds.to_string().into()),
                ]);
                let response = answer(StatusCode::TOO_MANY_REQUESTS, "QUOTA_EXCEEDED", message, details);
                with(response, RETRY_AFTER, quota.retry_after_seconds.into())
            }
            Error::NotFound { resource: Resource::Route, .. } => {
                plain(StatusCode::NOT_FOUND, "ROUTE_NOT_FOUND")
            }
            Error::NotFound { .. } => plain(StatusCode::NOT_FOUND, "DOCUMENT_NOT_FOUND"),
            Error::MethodNotAllowed => plain(StatusCode::METHOD_NOT_ALLOWED, "METHOD_NOT_ALLOWED"),
            Error::Conflict(_)
            | Error::TransferAlreadyPending { .. }
            | Error::AttachmentLinked
            | Error::UploadInProgress
            | Error::DownloadFailed
            | Error::RecorderDisabled => plain(StatusCode::CONFLICT, "CONFLICT"),
            Error::TooLarge { max_bytes, .. } | Error::FileTooLarge { max_bytes, .. } => {
                let details = details([("limit", max_bytes.to_string().into())]);
                answer(StatusCode::PAYLOAD_TOO_LARGE, "PAYLOAD_TOO_LARGE", message, details)
            }
            Error::UnsupportedMediaType => {
                plain(StatusCode::UNSUPPORTED_MEDIA_TYPE, "UNSUPPORTED_MEDIA_TYPE")
            }
            Error::Timeout => plain(StatusCode::GATEWAY_TIMEOUT, "TIMEOUT"),
            Error::SearchTypeUnavailable { .. } | Error::SearchDisabled | Error::PrometheusNotConfigured => {
                plain(StatusCode::NOT_IMPLEMENTED, "NOT_IMPLEMENTED")
            }
            Error::SemanticUnavailable(_) => plain(StatusCode::SERVICE_UNAVAILABLE, "DEPENDENCY_UNAVAILABLE"),
            Error::Overloaded { retry_after_seconds } => {
                let response = plain(StatusCode::SERVICE_UNAVAILABLE, "DEPENDENCY_UNAVAILABLE");
                with(response, RETRY_AFTER, retry_after_seconds.into())
            }
            Error::StorageUnavailable(reason) => {
                tracing::warn!(%reason, "storage is unavailable");
                let response = plain(StatusCode::SERVICE_UNAVAILABLE, "DEPENDENCY_UNAVAILABLE");
                with(response, RETRY_AFTER, UNAVAILABLE_RETRY_SECONDS.into())
            }
            Error::IdentityProviderUnavailable | Error::PrometheusUnavailable | Error::PeerUnreachable(_) => {
                let response = plain(StatusCode::SERVICE_UNAVAILABLE, "DEPENDENCY_UNAVAILABLE");
                with(response, RETRY_AFTER, UNAVAILABLE_RETRY_SECONDS.into())
            }
            Error::Internal(defect) => {
                tracing::error!(%defect, "internal error");
                let message = "the server failed; the log has this request's id".to_owned();
                answer(StatusCode::INTERNAL_SERVER_ERROR, "UNHANDLED_ERROR", message, Map::new())
            }
        }
    }
}

fn status(class: Class) -> StatusCode {
    match class {
        Class::Malformed => StatusCode::BAD_REQUEST,
        Class::Missing => StatusCode::NOT_FOUND,
        Class::Conflict => StatusCode::CONFLICT,
        Class::Stale => StatusCode::PRECONDITION_FAILED,
        Class::Unprocessable => StatusCode::UNPROCESSABLE_ENTITY,
        Class::Unavailable => StatusCode::NOT_IMPLEMENTED,
    }
}

fn details<const N: usize>(members: [(&str, Value); N]) -> Map<String, Value> {
    members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

fn answer(status: StatusCode, code: &str, message: String, details: Map<String, Value>) -> Response {
    let request_id = request_id::current().unwrap_or_else(|| "unknown".to_owned());
    let error = FilesErrorDetail { code: code.to_owned(), message, request_id, details };
    // Serialising this cannot fail: its keys are strings and nothing in it is fallible.
    let bytes = serde_json::to_vec(&FilesErrorBody { error }).unwrap_or_default();
    (status, [(CONTENT_TYPE, JSON_UTF8)], bytes).into_response()
}

fn with(mut response: Response, name: http::HeaderName, value: HeaderValue) -> Response {
    response.headers_mut().insert(name, value);
    response
}
