//! How the files surface says no.

use crate::rest::error::{
    RequestInfo, SEND_CREDENTIALS, UNAVAILABLE_RETRY_SECONDS, json, status, with_hints,
};
use axum::response::Response;
use memtrove_core::{Code, Details, Error, ErrorKind};
use serde::Serialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

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

/// An error as the files contract renders it. A context may be assembled from memories, so their codes are answered too.
pub(in crate::rest) fn render(error: Error, request: RequestInfo<'_>) -> Response {
    let waits = error.code.retryable() && error.kind() != ErrorKind::Timeout;
    let retry = error.retry_after_seconds().or(waits.then_some(UNAVAILABLE_RETRY_SECONDS));
    let code = match error.code {
        Code::NotFound => Code::DocumentNotFound,
        code => code,
    };
    let message = match code {
        Code::Unauthorized => SEND_CREDENTIALS.into(),
        Code::Internal => "the server failed; the log has this request's id".into(),
        _ => error.message,
    };
    let error = FilesErrorDetail {
        code: code.as_str().to_owned(),
        message: message.into_owned(),
        request_id: request.id.to_owned(),
        details: members(error.details),
    };
    with_hints(json(status(code.kind()), &FilesErrorBody { error }), retry)
}

/// Details as members, which are texts.
fn members(details: Details) -> Map<String, Value> {
    let texts = |members: &[(&str, String)]| {
        members.iter().map(|(name, value)| ((*name).to_owned(), Value::from(value.as_str()))).collect()
    };
    match details {
        Details::Members(members) => *members,
        Details::Violations(violations) => {
            let field = violations.into_iter().next().map(|violation| violation.field);
            texts(&[("field", field.unwrap_or_default())])
        }
        Details::Quota(quota) => texts(&[
            ("scope", quota.scope.to_owned()),
            ("resource", quota.resource.to_owned()),
            ("limit", quota.limit.to_string()),
            ("window_seconds", quota.window_seconds.to_string()),
        ]),
        Details::Bytes { max, .. } => texts(&[("limit", max.to_string())]),
        Details::None
        | Details::Resource(..)
        | Details::RetryAfter(_)
        | Details::Transfer(_)
        | Details::Available(_) => Map::new(),
    }
}
