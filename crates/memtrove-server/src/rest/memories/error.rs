//! How the memories surface says no: what is said about an error, and the envelope it is said in.

use super::no_store;
use crate::rest::error::{self, RequestInfo, SEND_CREDENTIALS, UNAVAILABLE_RETRY_SECONDS, json, with_hints};
use axum::response::Response;
use http::StatusCode;
use memtrove_core::memories::contract_word;
use memtrove_core::{Code, Details, Error, ErrorKind};
use serde::Serialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

/// The provider that every kind has unless another is configured.
const EMBEDDED: &str = "embedded";

/// Errors by operation and code.
const ERRORS: &str = "memory_operations_errors";

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

/// An error as the memories contract renders it.
pub(in crate::rest) fn render(error: Error, request: RequestInfo<'_>) -> Response {
    let problem = Problem::from(error);
    let error = MemoriesErrorDetail {
        code: problem.code.to_owned(),
        message: problem.message.clone(),
        operation: request.operation.to_owned(),
        retryable: problem.retryable,
        details: problem.details.clone(),
        request_id: request.id.to_owned(),
    };
    problem.answer(&MemoriesErrorBody { error }, request)
}

/// Counts an error of an operation of memories.
pub(crate) fn count(code: Code, operation: &'static str) {
    metrics::counter!(ERRORS, "operation" => operation, "code" => contract_word(code)).increment(1);
}

/// What is said about an error, in whichever envelope.
#[derive(Debug)]
pub(in crate::rest) struct Problem {
    of: Code,
    pub status: StatusCode,
    pub code: &'static str,
    pub retryable: bool,
    pub message: String,
    pub details: Map<String, Value>,
    retry_after_seconds: Option<u32>,
}

impl From<Error> for Problem {
    fn from(error: Error) -> Self {
        let (code, kind) = (error.code, error.kind());
        let waits = (kind == ErrorKind::Unavailable).then_some(UNAVAILABLE_RETRY_SECONDS);
        let retry_after_seconds = error.retry_after_seconds().or(waits);
        let message = match code {
            Code::Unauthorized => SEND_CREDENTIALS.into(),
            Code::Internal => "the server failed; the log has this request's id".into(),
            _ => error.message,
        };
        Self {
            of: code,
            status: error::status(kind),
            code: contract_word(code),
            retryable: code.retryable(),
            message: message.into_owned(),
            details: members(code, error.details),
            retry_after_seconds,
        }
    }
}

impl Problem {
    /// The response, with the envelope it is said in.
    pub fn answer(&self, body: &impl Serialize, request: RequestInfo<'_>) -> Response {
        count(self.of, request.operation);
        no_store(with_hints(json(self.status, body), self.retry_after_seconds))
    }
}

fn members(code: Code, details: Details) -> Map<String, Value> {
    let one = |name: &str, value: Value| Map::from_iter([(name.to_owned(), value)]);
    match details {
        Details::Members(members) => *members,
        Details::Violations(violations) => {
            let field = violations.into_iter().next().map(|violation| violation.field);
            one("field", field.unwrap_or_default().into())
        }
        Details::Bytes { max, .. } => one("maxBytes", max.into()),
        Details::Quota(quota) => one("retryAfterSeconds", quota.retry_after_seconds.into()),
        _ => match code {
            Code::Overloaded | Code::StorageUnavailable | Code::SemanticUnavailable => {
                one("provider", EMBEDDED.into())
            }
            Code::IdentityProviderUnavailable => one("provider", "identity".into()),
            Code::PrometheusUnavailable => one("provider", "prometheus".into()),
            Code::PeerUnreachable => one("provider", "node".into()),
            _ => Map::new(),
        },
    }
}

#[cfg(test)]
mod tests;
