//! How the gRPC API says no: one match from the domain's error to a status and its details.

use axum::response::IntoResponse;
use http::{HeaderMap, StatusCode};
use memtrove_core::{Error, Violation};
use std::collections::HashMap;
use std::time::Duration;
use tonic::{Code, Status};
use tonic_types::{ErrorDetails, StatusExt};

/// Who gives the reasons in [`ErrorDetails`] their meaning.
const DOMAIN: &str = "memtrove";
/// How long a caller waits before asking an unavailable store or identity provider again.
const UNAVAILABLE_RETRY: Duration = Duration::from_secs(5);

/// A domain error on its way out over gRPC.
#[derive(Debug)]
pub struct GrpcError(pub Error);

impl From<GrpcError> for Status {
    fn from(GrpcError(error): GrpcError) -> Self {
        let text = error.to_string();
        match error {
            Error::Invalid(violations) => {
                let mut details = reason("validation_error");
                for Violation { field, message } in violations {
                    details.add_bad_request_violation(field, message);
                }
                Status::with_error_details(Code::InvalidArgument, text, details)
            }
            Error::BadRequest(_) => said(Code::InvalidArgument, "bad_request", text),
            Error::JustificationRequired => said(Code::InvalidArgument, "JUSTIFICATION_REQUIRED", text),
            Error::Unauthorized => {
                let message = "send valid credentials: authorization: Bearer <token> names the user, whom most calls need; \
                               x-api-key: <key> the agent";
                said(Code::Unauthenticated, "unauthorized", message)
            }
            Error::Forbidden(_) | Error::TenantForbidden(_) => {
                said(Code::PermissionDenied, "forbidden", text)
            }
            Error::NotFound { resource, id } => {
                let about = [("resource", resource.as_str().to_owned()), ("id", id)];
                with(Code::NotFound, "not_found", text, about)
            }
            Error::MethodNotAllowed => said(Code::Unimplemented, "method_not_allowed", text),
            Error::Conflict(_) => said(Code::Aborted, "conflict", text),
            Error::AttachmentLinked => said(Code::Aborted, "attachment_linked", text),
            Error::UploadInProgress => said(Code::Aborted, "upload_in_progress", text),
            Error::DownloadFailed => said(Code::FailedPrecondition, "download_failed", text),
            Error::RecorderDisabled => said(Code::FailedPrecondition, "conflict", text),
            Error::TransferAlreadyPending { existing } => {
                let about = [("existingTransferId", existing.to_string())];
                with(Code::AlreadyExists, "TRANSFER_ALREADY_PENDING", text, about)
            }
            Error::TooLarge { max_bytes, .. } => {
                let about = [("maxBytes", max_bytes.to_string())];
                with(Code::ResourceExhausted, "payload_too_large", text, about)
            }
            Error::FileTooLarge { max_bytes, .. } => {
                let about = [("maxBytes", max_bytes.to_string())];
                with(Code::ResourceExhausted, "file_too_large", text, about)
            }
            Error::UnsupportedMediaType => said(Code::InvalidArgument, "unsupported_media_type", text),
            Error::Timeout => said(Code::DeadlineExceeded, "timeout", text),
            Error::QuotaExceeded(quota) => {
                let wait = Duration::from_secs(quota.retry_after_seconds.into());
                later(Code::ResourceExhausted, "quota_exceeded", text, wait)
            }
            Error::SearchTypeUnavailable { available, .. } => {
                let about = [("availableTypes", available.join(","))];
                with(Code::Unimplemented, "search_type_unavailable", text, about)
            }
            Error::SearchDisabled => said(Code::Unimplemented, "search_store_disabled", text),
            Error::PrometheusNotConfigured => said(Code::Unimplemented, "prometheus_not_configured", text),
            Error::PrometheusUnavailable => {
                later(Code::Unavailable, "prometheus_unavailable", text, UNAVAILABLE_RETRY)
            }
            Error::SemanticUnavailable(reason) => {
                tracing::warn!(%reason, "a query could not be embedded");
                later(Code::Unavailable, "semantic_search_unavailable", text, UNAVAILABLE_RETRY)
            }
            Error::Overloaded { retry_after_seconds } => {
                let wait = Duration::from_secs(retry_after_seconds.into());
                later(Code::Unavailable, "overloaded", text, wait)
            }
            Error::StorageUnavailable(reason) => {
                tracing::warn!(%reason, "storage is unavailable");
                later(Code::Unavailable, "storage_unavailable", text, UNAVAILABLE_RETRY)
            }
            Error::IdentityProviderUnavailable => {
                later(Code::Unavailable, "identity_provider_unavailable", text, UNAVAILABLE_RETRY)
            }
            Error::PeerUnreachable(reason) => {
                tracing::warn!(%reason, "another node does not answer");
                later(Code::Unavailable, "bad_gateway", text, UNAVAILABLE_RETRY)
            }
            // Only the other surfaces refuse so, and they are not reached from here.
            Error::Refused(refusal) => {
                internal(&format!("a refusal of the files surface: {}", refusal.code.as_str()))
            }
            Error::MemoryRefused(refusal) => {
                internal(&format!("a refusal of the memories surface: {}", refusal.code.as_str()))
            }
            Error::Internal(defect) => internal(&defect),
        }
    }
}

/// The whole answer of a call that did not reach its handler, or did not come back from it.
pub fn response(error: Error) -> axum::response::Response {
    Status::from(GrpcError(error)).into_http::<axum::body::Body>().into_response()
}

/// The answer to a call that the contract does not have.
pub fn no_such_call() -> axum::response::Response {
    said(Code::Unimplemented, "not_found", "there is no such call; reflection lists those there are")
        .into_http::<axum::body::Body>()
        .into_response()
}

/// About what a call's status would be over REST, so that logs, metrics and alarms know one kind of failure. Of a stream that has
/// begun nobody knows it yet.
pub(crate) fn over_rest(headers: &HeaderMap) -> StatusCode {
    let code = headers.get("grpc-status").map_or(Code::Ok, |status| Code::from_bytes(status.as_bytes()));
    match code {
        Code::Ok => StatusCode::OK,
        Code::InvalidArgument | Code::OutOfRange => StatusCode::BAD_REQUEST,
        Code::Unauthenticated => StatusCode::UNAUTHORIZED,
        Code::PermissionDenied => StatusCode::FORBIDDEN,
        Code::NotFound => StatusCode::NOT_FOUND,
        Code::AlreadyExists | Code::Aborted | Code::FailedPrecondition => StatusCode::CONFLICT,
        Code::ResourceExhausted => StatusCode::TOO_MANY_REQUESTS,
        Code::Cancelled => StatusCode::from_u16(499).unwrap_or(StatusCode::BAD_REQUEST),
        Code::Unimplemented => StatusCode::NOT_IMPLEMENTED,
        Code::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
        Code::DeadlineExceeded => StatusCode::GATEWAY_TIMEOUT,
        Code::Internal | Code::Unknown | Code::DataLoss => StatusCode::INTERNAL_SERVER_ERROR,
    }
}

fn internal(defect: &str) -> Status {
    tracing::error!(%defect, "internal error");
    said(Code::Internal, "internal_error", "Internal server error")
}

fn reason(code: &str) -> ErrorDetails {
    ErrorDetails::with_error_info(code, DOMAIN, HashMap::new())
}

fn said(code: Code, why: &str, message: impl Into<String>) -> Status {
    Status::with_error_details(code, message, reason(why))
}

fn with<const N: usize>(code: Code, why: &str, message: String, about: [(&str, String); N]) -> Status {
    let about: HashMap<String, String> =
        about.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    Status::with_error_details(code, message, ErrorDetails::with_error_info(why, DOMAIN, about))
}

fn later(code: Code, why: &str, message: String, wait: Duration) -> Status {
    let mut details = reason(why);
    details.set_retry_info(Some(wait));
    Status::with_error_details(code, message, details)
}

#[cfg(test)]
mod tests;
