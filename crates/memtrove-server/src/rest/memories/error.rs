//! How the memories surface says no: one match from the domain's error to what is said, and the envelope it is said in.

use super::no_store;
use crate::rest::error::JSON_UTF8;
use crate::rest::operation;
use crate::shell::request_id;
use axum::response::{IntoResponse, Response};
use http::header::{CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use http::{HeaderValue, StatusCode};
use memtrove_core::files::Class;
use memtrove_core::memories::{Code, Refusal};
use memtrove_core::{Error, Resource};
use serde::Serialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

/// How long a caller waits before asking again for what is not available now.
const UNAVAILABLE_RETRY_SECONDS: u32 = 5;

/// The provider that every kind has unless another is configured.
const EMBEDDED: &str = "embedded";

/// A domain error on its way out of the memories surface. Its handlers return `Result<_, MemoriesError>` and use `?`.
#[derive(Debug)]
pub struct MemoriesError(pub Error);

impl From<Error> for MemoriesError {
    fn from(error: Error) -> Self {
        Self(error)
    }
}

/// The envelope of every error of the memories surface.
#[derive(Debug, Serialize, ToSchema)]
pub struct MemoriesErrorBody {
    /// What went wrong.
    pub error: MemoriesErrorDetail,
}

/// What went wrong.
#[derive(Debug, Serialize, ToSchema)]
pub struct MemoriesErrorDetail {
    /// For programs: a constant of the error catalogue.
    #[schema(example = "MISSING_IDENTIFIER")]
    pub code: String,
    /// For people.
    pub message: String,
    /// What was being done.
    #[schema(example = "memory.add")]
    pub operation: String,
    /// Whether the identical request may succeed later.
    pub retryable: bool,
    /// What a program needs to go on; which members are there follows from `code`.
    #[schema(value_type = Object)]
    pub details: Map<String, Value>,
    /// The request's id, as in the `X-Request-Id` header.
    pub request_id: String,
}

impl IntoResponse for MemoriesError {
    fn into_response(self) -> Response {
        let problem = Problem::from(self.0);
        let error = MemoriesErrorDetail {
            code: problem.code.to_owned(),
            message: problem.message.clone(),
            operation: operation::current().to_owned(),
            retryable: problem.retryable,
            details: problem.details.clone(),
            request_id: request_id::current().unwrap_or_else(|| operation::UNKNOWN.to_owned()),
        };
        problem.answer(&MemoriesErrorBody { error })
    }
}

/// Errors by operation and code.
const ERRORS: &str = "memory_operations_errors";

/// What is said about an error, in whichever envelope.
#[derive(Debug)]
pub(in crate::rest) struct Problem {
    pub status: StatusCode,
    pub code: &'static str,
    pub retryable: bool,
    pub message: String,
    pub details: Map<String, Value>,
    retry_after_seconds: Option<u32>,
}

impl From<Error> for Problem {
    fn from(error: Error) -> Self {
        let text = error.to_string();
        match error {
            Error::MemoryRefused(refusal) => Self::refused(*refusal),
            Error::Refused(refusal) => {
                let code = match refusal.code.class() {
                    Class::Malformed | Class::Unprocessable => Code::InvalidRequest,
                    Class::Missing => Code::MemoryNotFound,
                    Class::Conflict => Code::InvalidState,
                    Class::Stale => Code::EtagMismatch,
                    Class::Unavailable => Code::NotImplemented,
                };
                Self { details: refusal.details, ..Self::new(code, refusal.message) }
            }
            Error::Invalid(violations) => {
                let field = violations.into_iter().next().map(|violation| violation.field);
                Self::new(Code::InvalidRequest, text).with("field", field.unwrap_or_default())
            }
            Error::BadRequest(_) | Error::JustificationRequired => Self::new(Code::InvalidRequest, text),
            Error::Unauthorized => {
                let message = "send valid credentials: Authorization: Bearer <token>, or X-API-Key: <key>";
                Self::new(Code::Unauthorized, message)
            }
            Error::Forbidden(_) | Error::TenantForbidden(_) => Self::new(Code::Forbidden, text),
            // The catalogue has no words for these two; the sister contract of the same envelope has.
            Error::NotFound { resource: Resource::Route, .. } => {
                Self { code: "ROUTE_NOT_FOUND", ..Self::new(Code::MemoryNotFound, text) }
            }
            Error::MethodNotAllowed => Self {
                status: StatusCode::METHOD_NOT_ALLOWED,
                code: "METHOD_NOT_ALLOWED",
                ..Self::new(Code::InvalidRequest, text)
            },
            Error::NotFound { .. } => Self::new(Code::MemoryNotFound, text),
            Error::Conflict(_)
            | Error::TransferAlreadyPending { .. }
            | Error::AttachmentLinked
            | Error::UploadInProgress
            | Error::DownloadFailed
            | Error::RecorderDisabled => Self::new(Code::InvalidState, text),
            Error::TooLarge { max_bytes, .. } | Error::FileTooLarge { max_bytes, .. } => {
                Self::new(Code::RequestTooLarge, text).with("maxBytes", max_bytes)
            }
            Error::UnsupportedMediaType => Self::new(Code::UnsupportedMediaType, text),
            Error::Timeout => Self::new(Code::Timeout, text),
            Error::QuotaExceeded(quota) => {
                let refusal = Refusal::new(Code::RateLimited, text);
                Self::refused(refusal.with("retryAfterSeconds", quota.retry_after_seconds))
            }
            Error::SearchTypeUnavailable { .. } | Error::SearchDisabled | Error::PrometheusNotConfigured => {
                Self::new(Code::NotImplemented, text)
            }
            Error::SemanticUnavailable(_) => Self::unavailable(EMBEDDED, text),
            Error::Overloaded { retry_after_seconds } => {
                Self { retry_after_seconds: Some(retry_after_seconds), ..Self::unavailable(EMBEDDED, text) }
            }
            Error::StorageUnavailable(reason) => {
                tracing::warn!(%reason, "storage is unavailable");
                Self::unavailable(EMBEDDED, text)
            }
            Error::IdentityProviderUnavailable => Self::unavailable("identity", text),
            Error::PrometheusUnavailable => Self::unavailable("prometheus", text),
            Error::PeerUnreachable(_) => Self::unavailable("node", text),
            Error::Internal(defect) => {
                tracing::error!(%defect, "internal error");
                Self::new(Code::InternalError, "the server failed; the log has this request's id")
            }
        }
    }
}

impl Problem {
    fn new(code: Code, message: impl Into<String>) -> Self {
        let status = StatusCode::from_u16(code.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        Self {
            status,
            code: code.as_str(),
            retryable: code.retryable(),
            message: message.into(),
            details: Map::new(),
            retry_after_seconds: (status == StatusCode::SERVICE_UNAVAILABLE)
                .then_some(UNAVAILABLE_RETRY_SECONDS),
        }
    }

    fn refused(Refusal { code, message, details }: Refusal) -> Self {
        let told = details.get("retryAfterSeconds").and_then(Value::as_u64);
        let problem = Self::new(code, message);
        let retry_after_seconds =
            told.and_then(|seconds| u32::try_from(seconds).ok()).or(problem.retry_after_seconds);
        Self { details, retry_after_seconds, ..problem }
    }

    fn unavailable(provider: &str, message: String) -> Self {
        Self::new(Code::ProviderUnavailable, message).with("provider", provider)
    }

    fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.details.insert(name.to_owned(), value.into());
        self
    }

    /// The response, with the envelope it is said in.
    pub fn answer(&self, body: &impl Serialize) -> Response {
        metrics::counter!(ERRORS, "operation" => operation::current(), "code" => self.code).increment(1);
        // Serialising an envelope cannot fail: its keys are strings and nothing in it is fallible.
        let bytes = serde_json::to_vec(body).unwrap_or_default();
        let mut response = no_store((self.status, [(CONTENT_TYPE, JSON_UTF8)], bytes).into_response());
        if let Some(seconds) = self.retry_after_seconds {
            response.headers_mut().insert(RETRY_AFTER, seconds.into());
        }
        if self.status == StatusCode::UNAUTHORIZED {
            response.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response
    }
}

#[cfg(test)]
mod tests;
