//! How the REST API says no. A handler of any surface answers with an [`ApiError`]; the shell, which knows the request's id and
//! operation, renders it in the shape of the surface. Here is that of conversations, and what all surfaces share.

use axum::response::{IntoResponse, Response};
use http::header::{CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use http::{HeaderValue, StatusCode};
use memtrove_core::{Code, Details, Error, ErrorKind, Violation};
use serde::Serialize;
use utoipa::ToSchema;
use uuid::Uuid;

/// The media type of every JSON body, as the contract spells it.
pub const JSON_UTF8: HeaderValue = HeaderValue::from_static("application/json; charset=utf-8");

/// How long a caller waits before asking an unavailable store or identity provider again.
pub(crate) const UNAVAILABLE_RETRY_SECONDS: u32 = 5;

/// What a caller without valid credentials is told.
pub(super) const SEND_CREDENTIALS: &str =
    "send valid credentials: Authorization: Bearer <token>, or X-API-Key: <key>";

/// A domain error on its way out over REST. Handlers return `Result<_, ApiError>` and use `?`.
#[derive(Debug, Clone)]
pub struct ApiError(pub Error);

/// What an answer says of the request it belongs to.
#[derive(Debug, Clone, Copy)]
pub struct RequestInfo<'a> {
    /// As in the `X-Request-Id` header.
    pub id: &'a str,
    /// What the memories contract calls what was being done.
    pub operation: &'static str,
}

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
    /// A response without a body, from which the shell takes the error to render it.
    fn into_response(self) -> Response {
        let mut response = status(self.0.kind()).into_response();
        response.extensions_mut().insert(self);
        response
    }
}

/// A code of the domain, the word that the conversations contract has for it, and its title. gRPC gives the same words as reasons.
const WORDS: &[(Code, &str, &str)] = &[
    (Code::Invalid, "validation_error", "Validation failed"),
    (Code::BadRequest, "bad_request", "Bad request"),
    (Code::JustificationRequired, "JUSTIFICATION_REQUIRED", "Justification is required for admin operations"),
    (Code::Unauthorized, "unauthorized", "Unauthorized"),
    (Code::Forbidden, "forbidden", "Forbidden"),
    (Code::TenantForbidden, "forbidden", "Forbidden"),
    (Code::QuotaExceeded, "quota_exceeded", "Quota exceeded"),
    (Code::NotFound, "not_found", "Not found"),
    (Code::RouteNotFound, "not_found", "Not found"),
    (Code::MethodNotAllowed, "method_not_allowed", "Method not allowed"),
    (Code::Conflict, "conflict", "Conflict"),
    (
        Code::TransferAlreadyPending,
        "TRANSFER_ALREADY_PENDING",
        "A pending ownership transfer already exists for this conversation",
    ),
    (Code::TooLarge, "payload_too_large", "Payload too large"),
    (Code::FileTooLarge, "file_too_large", "File too large"),
    (Code::AttachmentLinked, "attachment_linked", "Conflict"),
    (Code::UploadInProgress, "upload_in_progress", "Conflict"),
    (Code::DownloadFailed, "download_failed", "Download failed"),
    (Code::RecorderDisabled, "conflict", "Conflict"),
    (Code::PeerUnreachable, "bad_gateway", "Bad gateway"),
    (Code::UnsupportedMediaType, "unsupported_media_type", "Unsupported media type"),
    (Code::Timeout, "timeout", "Request timed out"),
    (Code::SearchTypeUnavailable, "search_type_unavailable", "Search type unavailable"),
    (Code::SearchDisabled, "search_store_disabled", "Search disabled"),
    (Code::SemanticUnavailable, "semantic_search_unavailable", "Semantic search unavailable"),
    (Code::PrometheusNotConfigured, "prometheus_not_configured", "Prometheus not configured"),
    (Code::PrometheusUnavailable, "prometheus_unavailable", "Prometheus unavailable"),
    (Code::Overloaded, "overloaded", "Overloaded"),
    (Code::StorageUnavailable, "storage_unavailable", "Storage unavailable"),
    (Code::IdentityProviderUnavailable, "identity_provider_unavailable", "Identity provider unavailable"),
    (Code::Internal, "internal_error", "Internal server error"),
];

/// Codes whose title says it all.
const WITHOUT_DETAILS: [Code; 6] = [
    Code::JustificationRequired,
    Code::Unauthorized,
    Code::MethodNotAllowed,
    Code::TransferAlreadyPending,
    Code::UnsupportedMediaType,
    Code::Internal,
];

/// The word of the conversations contract for a code, and its title; none for those of the other surfaces.
pub(crate) fn word_and_title(code: Code) -> Option<(&'static str, &'static str)> {
    WORDS.iter().find(|(of, ..)| *of == code).map(|(_, word, title)| (*word, *title))
}

/// An error as the conversations contract renders it.
pub(super) fn render(error: Error) -> Response {
    let Some((code, title)) = word_and_title(error.code) else {
        // Only the other surfaces refuse so, and they answer for themselves.
        return render(foreign(error.code));
    };
    let (status, retry) = (status(error.kind()), retry_after(&error));
    if let Details::Available(types) = error.details {
        let body = SearchTypeUnavailableBody {
            error: code.to_owned(),
            message: error.message.into_owned(),
            available_types: types.into_iter().map(str::to_owned).collect(),
        };
        return json(status, &body);
    }
    let existing_transfer_id = match error.details {
        Details::Transfer(existing) => Some(existing),
        _ => None,
    };
    let details = (!WITHOUT_DETAILS.contains(&error.code)).then(|| match error.details {
        Details::Violations(violations) => ErrorDetails::Violations {
            violations: violations
                .into_iter()
                .map(|Violation { field, message }| FieldViolation { field, message })
                .collect(),
        },
        Details::Resource(resource, id) => {
            ErrorDetails::Missing { resource: resource.as_str().to_owned(), id: id.into() }
        }
        Details::Bytes { max, actual } => ErrorDetails::TooLarge { max_bytes: max, actual_bytes: actual },
        Details::RetryAfter(seconds) => ErrorDetails::Retry { retry_after_seconds: seconds },
        Details::Quota(quota) => ErrorDetails::Retry { retry_after_seconds: quota.retry_after_seconds },
        _ => ErrorDetails::Message { message: error.message.into_owned() },
    });
    let body = ErrorBody { error: title.to_owned(), code: code.to_owned(), details, existing_transfer_id };
    with_hints(json(status, &body), retry)
}

/// The defect that a surface answered with a code it has no word for.
pub(crate) fn foreign(code: Code) -> Error {
    let error = Error::internal(format!("a code of another surface: {}", code.as_str()));
    log(&error);
    error
}

/// The HTTP status of a kind, on every surface.
pub(crate) fn status(kind: ErrorKind) -> StatusCode {
    match kind {
        ErrorKind::Malformed => StatusCode::BAD_REQUEST,
        ErrorKind::Unprocessable => StatusCode::UNPROCESSABLE_ENTITY,
        ErrorKind::Unauthenticated => StatusCode::UNAUTHORIZED,
        ErrorKind::Forbidden => StatusCode::FORBIDDEN,
        ErrorKind::Missing => StatusCode::NOT_FOUND,
        ErrorKind::NoSuchMethod => StatusCode::METHOD_NOT_ALLOWED,
        ErrorKind::Conflict => StatusCode::CONFLICT,
        ErrorKind::Stale => StatusCode::PRECONDITION_FAILED,
        ErrorKind::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
        ErrorKind::UnsupportedMediaType => StatusCode::UNSUPPORTED_MEDIA_TYPE,
        ErrorKind::RateLimited => StatusCode::TOO_MANY_REQUESTS,
        ErrorKind::NotImplemented => StatusCode::NOT_IMPLEMENTED,
        ErrorKind::BadGateway => StatusCode::BAD_GATEWAY,
        ErrorKind::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
        ErrorKind::Timeout => StatusCode::GATEWAY_TIMEOUT,
        ErrorKind::Internal => StatusCode::INTERNAL_SERVER_ERROR,
    }
}

/// Writes down what an operator has to look at.
pub(crate) fn log(error: &Error) {
    let Some(cause) = error.cause.as_deref() else { return };
    match error.code {
        Code::Internal => tracing::error!(defect = cause, "internal error"),
        Code::StorageUnavailable => tracing::warn!(reason = cause, "storage is unavailable"),
        Code::SemanticUnavailable => tracing::warn!(reason = cause, "a query could not be embedded"),
        Code::PeerUnreachable => tracing::warn!(reason = cause, "another node does not answer"),
        code => tracing::warn!(reason = cause, code = code.as_str(), "refused"),
    }
}

/// When a caller of conversations is told to come back. What timed out may have happened, and clients repeat by themselves what
/// asks for it; Prometheus is not ours.
fn retry_after(error: &Error) -> Option<u32> {
    let waits = [Code::SemanticUnavailable, Code::StorageUnavailable, Code::IdentityProviderUnavailable];
    let told = error.retry_after_seconds();
    told.or_else(|| waits.contains(&error.code).then_some(UNAVAILABLE_RETRY_SECONDS))
}

pub(super) fn json(status: StatusCode, body: &impl Serialize) -> Response {
    // Serialising these types cannot fail: their keys are strings and nothing in them is fallible.
    let bytes = serde_json::to_vec(body).unwrap_or_default();
    (status, [(CONTENT_TYPE, JSON_UTF8)], bytes).into_response()
}

/// Adds the headers that tell a caller how to go on.
pub(crate) fn with_hints(mut response: Response, retry_after_seconds: Option<u32>) -> Response {
    if let Some(seconds) = retry_after_seconds {
        response.headers_mut().insert(RETRY_AFTER, seconds.into());
    }
    if response.status() == StatusCode::UNAUTHORIZED {
        response.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    }
    response
}

#[cfg(test)]
mod tests;
