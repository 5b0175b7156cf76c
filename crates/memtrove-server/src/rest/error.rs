//! How the REST API says no: one match from the domain's error to status, headers and envelope.

use axum::response::{IntoResponse, Response};
use http::header::{CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use http::{HeaderValue, StatusCode};
use memtrove_core::{Error, Violation};
use serde::Serialize;
use utoipa::ToSchema;
use uuid::Uuid;

/// The media type of every JSON body, as the contract spells it.
pub const JSON_UTF8: HeaderValue = HeaderValue::from_static("application/json; charset=utf-8");

/// How long a caller waits before asking an unavailable store or identity provider again.
const UNAVAILABLE_RETRY_SECONDS: u32 = 5;

/// A domain error on its way out over REST. Handlers return `Result<_, ApiError>` and use `?`.
#[derive(Debug)]
pub struct ApiError(pub Error);

impl From<Error> for ApiError {
    fn from(error: Error) -> Self {
        Self(error)
    }
}

/// The envelope of every error except [`SearchTypeUnavailableBody`].
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ErrorBody {
    /// What went wrong, for people.
    #[schema(example = "Not found")]
    pub error: String,
    /// What went wrong, for programs.
    #[schema(example = "not_found")]
    pub code: String,
    /// More about it; which members are there follows from `code`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub details: Option<ErrorDetails>,
    /// With `TRANSFER_ALREADY_PENDING`: the transfer that is pending.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub existing_transfer_id: Option<Uuid>,
}

/// What an [`ErrorBody`] can say in `details`.
#[derive(Debug, Serialize, ToSchema)]
#[serde(untagged, rename_all_fields = "camelCase")]
pub enum ErrorDetails {
    /// With `validation_error`: every field that breaks a constraint.
    Violations {
        /// The fields, in the order they were checked.
        violations: Vec<FieldViolation>,
    },
    /// With `not_found`: what was looked for.
    Missing {
        /// The kind of thing, e.g. `conversation`.
        resource: String,
        /// Its id as the caller wrote it.
        id: String,
    },
    /// With `payload_too_large`: the limit.
    TooLarge {
        /// The most bytes a body may have.
        max_bytes: u64,
        /// How many it had, where known.
        #[serde(skip_serializing_if = "Option::is_none")]
        actual_bytes: Option<u64>,
    },
    /// With `overloaded`: when to come back.
    Retry {
        /// Seconds, the same as the `Retry-After` header.
        retry_after_seconds: u32,
    },
    /// With everything else: a sentence.
    Message {
        /// What is wrong and, where it helps, what would be right.
        message: String,
    },
}

/// A field of the request that breaks a constraint.
#[derive(Debug, Serialize, ToSchema)]
pub struct FieldViolation {
    /// The field as the caller wrote it.
    pub field: String,
    /// What is wrong with it.
    pub message: String,
}

/// The answer to a search of a type this server does not offer.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct SearchTypeUnavailableBody {
    /// Always `search_type_unavailable`.
    pub error: String,
    /// The sentence for people.
    pub message: String,
    /// What could be asked for instead.
    pub available_types: Vec<String>,
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let text = self.0.to_string();
        match self.0 {
            Error::Invalid(violations) => {
                let violations = violations
                    .into_iter()
                    .map(|Violation { field, message }| FieldViolation { field, message })
                    .collect();
                let details = ErrorDetails::Violations { violations };
                envelope(StatusCode::BAD_REQUEST, "validation_error", "Validation failed", Some(details))
            }
            Error::BadRequest(message) => {
                envelope(StatusCode::BAD_REQUEST, "bad_request", "Bad request", said(message))
            }
            Error::JustificationRequired => {
                let title = "Justification is required for admin operations";
                envelope(StatusCode::BAD_REQUEST, "JUSTIFICATION_REQUIRED", title, None)
            }
            Error::Unauthorized => {
                let response = envelope(StatusCode::UNAUTHORIZED, "unauthorized", "Unauthorized", None);
                with(response, WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"))
            }
            Error::Forbidden(message) => {
                envelope(StatusCode::FORBIDDEN, "forbidden", "Forbidden", said(message))
            }
            Error::TenantForbidden(message) => {
                envelope(StatusCode::FORBIDDEN, "forbidden", "Forbidden", said(message))
            }
            // Only the other surfaces refuse so, and they answer for themselves.
            Error::Refused(refusal) => {
                let code = refusal.code.as_str();
                ApiError(Error::Internal(format!("a refusal of the files surface: {code}"))).into_response()
            }
            Error::MemoryRefused(refusal) => {
                let code = refusal.code.as_str();
                ApiError(Error::Internal(format!("a refusal of the memories surface: {code}")))
                    .into_response()
            }
            Error::QuotaExceeded(quota) => {
                let details = ErrorDetails::Retry { retry_after_seconds: quota.retry_after_seconds };
                let (code, title) = ("quota_exceeded", "Quota exceeded");
                let response = envelope(StatusCode::TOO_MANY_REQUESTS, code, title, Some(details));
                with(response, RETRY_AFTER, quota.retry_after_seconds.into())
            }
            Error::NotFound { resource, id } => {
                let details = ErrorDetails::Missing { resource: resource.as_str().to_owned(), id };
                envelope(StatusCode::NOT_FOUND, "not_found", "Not found", Some(details))
            }
            Error::MethodNotAllowed => {
                envelope(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", "Method not allowed", None)
            }
            Error::Conflict(message) => envelope(StatusCode::CONFLICT, "conflict", "Conflict", said(message)),
            Error::TransferAlreadyPending { existing } => {
                let body = ErrorBody {
                    error: text,
                    code: "TRANSFER_ALREADY_PENDING".to_owned(),
                    details: None,
                    existing_transfer_id: Some(existing),
                };
                json(StatusCode::CONFLICT, &body)
            }
            Error::TooLarge { max_bytes, actual_bytes } => {
                let details = ErrorDetails::TooLarge { max_bytes, actual_bytes };
                let title = "Payload too large";
                envelope(StatusCode::PAYLOAD_TOO_LARGE, "payload_too_large", title, Some(details))
            }
            Error::FileTooLarge { max_bytes, actual_bytes } => {
                let details = ErrorDetails::TooLarge { max_bytes, actual_bytes: Some(actual_bytes) };
                envelope(StatusCode::PAYLOAD_TOO_LARGE, "file_too_large", "File too large", Some(details))
            }
            Error::AttachmentLinked => {
                envelope(StatusCode::CONFLICT, "attachment_linked", "Conflict", said(text))
            }
            Error::UploadInProgress => {
                envelope(StatusCode::CONFLICT, "upload_in_progress", "Conflict", said(text))
            }
            Error::DownloadFailed => {
                let title = "Download failed";
                envelope(StatusCode::UNPROCESSABLE_ENTITY, "download_failed", title, said(text))
            }
            Error::RecorderDisabled => envelope(StatusCode::CONFLICT, "conflict", "Conflict", said(text)),
            Error::PeerUnreachable(reason) => {
                tracing::warn!(%reason, "another node does not answer");
                envelope(StatusCode::BAD_GATEWAY, "bad_gateway", "Bad gateway", said(text))
            }
            Error::UnsupportedMediaType => {
                let (code, title) = ("unsupported_media_type", "Unsupported media type");
                envelope(StatusCode::UNSUPPORTED_MEDIA_TYPE, code, title, None)
            }
            Error::Timeout => {
                let title = "Request timed out";
                // No Retry-After: what timed out may have happened, and clients repeat by themselves what asks for it.
                envelope(StatusCode::GATEWAY_TIMEOUT, "timeout", title, said(text))
            }
            Error::SearchTypeUnavailable { requested: _, available } => {
                let body = SearchTypeUnavailableBody {
                    error: "search_type_unavailable".to_owned(),
                    message: text,
                    available_types: available.into_iter().map(str::to_owned).collect(),
                };
                json(StatusCode::NOT_IMPLEMENTED, &body)
            }
            Error::SearchDisabled => {
                envelope(StatusCode::NOT_IMPLEMENTED, "search_store_disabled", "Search disabled", said(text))
            }
            Error::SemanticUnavailable(reason) => {
                tracing::warn!(%reason, "a query could not be embedded");
                let (code, title) = ("semantic_search_unavailable", "Semantic search unavailable");
                let response = envelope(StatusCode::SERVICE_UNAVAILABLE, code, title, said(text));
                with(response, RETRY_AFTER, UNAVAILABLE_RETRY_SECONDS.into())
            }
            Error::PrometheusNotConfigured => {
                let (code, title) = ("prometheus_not_configured", "Prometheus not configured");
                envelope(StatusCode::NOT_IMPLEMENTED, code, title, said(text))
            }
            Error::PrometheusUnavailable => {
                let (code, title) = ("prometheus_unavailable", "Prometheus unavailable");
                envelope(StatusCode::SERVICE_UNAVAILABLE, code, title, said(text))
            }
            Error::Overloaded { retry_after_seconds } => {
                let details = ErrorDetails::Retry { retry_after_seconds };
                let response =
                    envelope(StatusCode::SERVICE_UNAVAILABLE, "overloaded", "Overloaded", Some(details));
                with(response, RETRY_AFTER, retry_after_seconds.into())
            }
            Error::StorageUnavailable(reason) => {
                tracing::warn!(%reason, "storage is unavailable");
                let (code, title) = ("storage_unavailable", "Storage unavailable");
                let response = envelope(StatusCode::SERVICE_UNAVAILABLE, code, title, said(text));
                with(response, RETRY_AFTER, UNAVAILABLE_RETRY_SECONDS.into())
            }
            Error::IdentityProviderUnavailable => {
                let (code, title) = ("identity_provider_unavailable", "Identity provider unavailable");
                let response = envelope(StatusCode::SERVICE_UNAVAILABLE, code, title, said(text));
                with(response, RETRY_AFTER, UNAVAILABLE_RETRY_SECONDS.into())
            }
            Error::Internal(defect) => {
                tracing::error!(%defect, "internal error");
                let title = "Internal server error";
                envelope(StatusCode::INTERNAL_SERVER_ERROR, "internal_error", title, None)
            }
        }
    }
}

fn said(message: String) -> Option<ErrorDetails> {
    Some(ErrorDetails::Message { message })
}

fn envelope(status: StatusCode, code: &str, error: &str, details: Option<ErrorDetails>) -> Response {
    let body =
        ErrorBody { error: error.to_owned(), code: code.to_owned(), details, existing_transfer_id: None };
    json(status, &body)
}

fn json(status: StatusCode, body: &impl Serialize) -> Response {
    // Serialising these types cannot fail: their keys are strings and nothing in them is fallible.
    let bytes = serde_json::to_vec(body).unwrap_or_default();
    (status, [(CONTENT_TYPE, JSON_UTF8)], bytes).into_response()
}

fn with(mut response: Response, name: http::HeaderName, value: HeaderValue) -> Response {
    response.headers_mut().insert(name, value);
    response
}

#[cfg(test)]
mod tests;
