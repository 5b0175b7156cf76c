//! How the OpenSpec provider says no: what the memories surface says, in the protocol's envelope and with its numbers.

use super::provided;
use crate::rest::error::RequestInfo;
use crate::rest::memories::Problem;
use axum::response::Response;
use memtrove_core::{Clock, Error, SystemClock};
use serde::Serialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

/// The envelope of every error of the OpenSpec provider.
#[derive(Debug, Serialize, ToSchema)]
pub struct OpenSpecErrorBody {
    /// What went wrong.
    pub error: OpenSpecErrorDetail,
    /// The request's id, as in the `X-Request-Id` header.
    pub request_id: String,
    /// When.
    #[schema(format = DateTime)]
    pub timestamp: String,
}

/// What went wrong.
#[derive(Debug, Serialize, ToSchema)]
pub struct OpenSpecErrorDetail {
    /// For programs of the protocol: the HTTP status, or 1001 embedding failed, 1002 storage failed, 1003 query failed,
    /// 1004 batch failed.
    #[schema(example = 404)]
    pub code: u16,
    /// For programs: a constant of the error catalogue.
    #[schema(example = "MEMORY_NOT_FOUND")]
    pub name: String,
    /// For people.
    pub message: String,
    /// Whether the identical request may succeed later.
    pub retryable: bool,
    /// What was being done.
    #[schema(example = "openspec.query")]
    pub operation: String,
    /// What a program needs to go on; which members are there follows from `name`.
    #[schema(value_type = Object)]
    pub details: Map<String, Value>,
}

/// An error as the protocol renders it.
pub(in crate::rest) fn render(error: Error, request: RequestInfo<'_>) -> Response {
    let problem = Problem::from(error);
    let error = OpenSpecErrorDetail {
        code: number(&problem, request.operation),
        name: problem.code.to_owned(),
        message: problem.message.clone(),
        retryable: problem.retryable,
        operation: request.operation.to_owned(),
        details: problem.details.clone(),
    };
    let timestamp = SystemClock.now().to_string();
    let body = OpenSpecErrorBody { error, request_id: request.id.to_owned(), timestamp };
    provided(problem.answer(&body, request))
}

/// The protocol's number for a problem: its own where it has one, else the HTTP status.
pub(super) fn number(problem: &Problem, operation: &str) -> u16 {
    match (problem.code, operation) {
        ("EMBEDDING_FAILED", _) => 1001,
        ("PROVIDER_ERROR", "openspec.query") => 1003,
        ("PROVIDER_ERROR", "openspec.batch") => 1004,
        ("PROVIDER_ERROR", _) => 1002,
        _ => problem.status.as_u16(),
    }
}

#[cfg(test)]
mod tests;
