//! How the gRPC API says no: a status by the error's kind, and details that say the rest.

use crate::rest::error::{UNAVAILABLE_RETRY_SECONDS, foreign, log, word_and_title};
use axum::response::IntoResponse;
use http::{HeaderMap, StatusCode};
use memtrove_core::{self as core, Details, Error, ErrorKind};
use std::collections::HashMap;
use std::time::Duration;
use tonic::{Code, Status};
use tonic_types::{ErrorDetails, StatusExt};

/// Who gives the reasons in [`ErrorDetails`] their meaning.
const DOMAIN: &str = "memtrove";

/// A domain error on its way out over gRPC.
#[derive(Debug)]
pub struct GrpcError(pub Error);

impl From<GrpcError> for Status {
    fn from(GrpcError(error): GrpcError) -> Self {
        log(&error);
        let Some((reason, title)) = word_and_title(error.code) else {
            // Only the other surfaces refuse so, and they are not reached from here.
            return GrpcError(foreign(error.code)).into();
        };
        let mut details = ErrorDetails::with_error_info(reason, DOMAIN, about(&error));
        if let Details::Violations(violations) = &error.details {
            for violation in violations {
                details.add_bad_request_violation(&violation.field, &violation.message);
            }
        }
        if matches!(error.kind(), ErrorKind::RateLimited | ErrorKind::BadGateway | ErrorKind::Unavailable) {
            let seconds = error.retry_after_seconds().unwrap_or(UNAVAILABLE_RETRY_SECONDS);
            details.set_retry_info(Some(Duration::from_secs(seconds.into())));
        }
        let message = match error.code {
            core::Code::Unauthorized => {
                "send valid credentials: authorization: Bearer <token> names the user, whom most calls need; \
                 x-api-key: <key> the agent"
            }
            core::Code::Internal => title,
            _ => &error.message,
        };
        Status::with_error_details(status_code(error.code), message, details)
    }
}

/// The status of a code: that of its kind, but for three.
fn status_code(code: core::Code) -> Code {
    match code {
        core::Code::TransferAlreadyPending => return Code::AlreadyExists,
        core::Code::DownloadFailed | core::Code::RecorderDisabled => return Code::FailedPrecondition,
        _ => {}
    }
    match code.kind() {
        ErrorKind::Malformed | ErrorKind::Unprocessable | ErrorKind::UnsupportedMediaType => {
            Code::InvalidArgument
        }
        ErrorKind::Unauthenticated => Code::Unauthenticated,
        ErrorKind::Forbidden => Code::PermissionDenied,
        ErrorKind::Missing => Code::NotFound,
        ErrorKind::NoSuchMethod | ErrorKind::NotImplemented => Code::Unimplemented,
        ErrorKind::Conflict | ErrorKind::Stale => Code::Aborted,
        ErrorKind::TooLarge | ErrorKind::RateLimited => Code::ResourceExhausted,
        ErrorKind::BadGateway | ErrorKind::Unavailable => Code::Unavailable,
        ErrorKind::Timeout => Code::DeadlineExceeded,
        ErrorKind::Internal => Code::Internal,
    }
}

/// What a program needs to go on, as far as it has no place of its own among the details of gRPC.
fn about(error: &Error) -> HashMap<String, String> {
    let texts = |members: &[(&str, String)]| {
        members.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect()
    };
    match &error.details {
        Details::Resource(resource, id) => {
            texts(&[("resource", resource.as_str().to_owned()), ("id", id.to_string())])
        }
        Details::Transfer(existing) => texts(&[("existingTransferId", existing.to_string())]),
        Details::Bytes { max, .. } => texts(&[("maxBytes", max.to_string())]),
        Details::Available(types) => texts(&[("availableTypes", types.join(","))]),
        _ => HashMap::new(),
    }
}

/// The whole answer of a call that did not reach its handler, or did not come back from it.
pub fn response(error: Error) -> axum::response::Response {
    Status::from(GrpcError(error)).into_http::<axum::body::Body>().into_response()
}

/// The answer to a call that the contract does not have.
pub fn no_such_call() -> axum::response::Response {
    let details = ErrorDetails::with_error_info("not_found", DOMAIN, HashMap::new());
    let message = "there is no such call; reflection lists those there are";
    Status::with_error_details(Code::Unimplemented, message, details)
        .into_http::<axum::body::Body>()
        .into_response()
}

/// About what a call's status would be over REST, so that logs, metrics and alarms know one kind of failure. Of a stream that has
/// begun it is unknown.
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

#[cfg(test)]
mod tests;
