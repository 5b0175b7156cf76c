//! How the mem0 API says no: what the memories surface says, where mem0's clients look for it.

use crate::rest::error::RequestInfo;
use crate::rest::memories::Problem;
use axum::response::Response;
use memtrove_core::Error;
use serde::Serialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

/// The body of every error of the mem0 API.
#[derive(Debug, Serialize, ToSchema)]
pub struct Mem0ErrorBody {
    /// What went wrong, for people; mem0's clients show it.
    #[schema(example = "there is no such memory")]
    pub detail: String,
    /// For programs: a constant of the error catalogue.
    #[schema(example = "MEMORY_NOT_FOUND")]
    pub code: String,
    /// What a program needs to go on; which members are there follows from `code`.
    #[schema(value_type = Object)]
    pub details: Map<String, Value>,
    /// The request's id, as in the `X-Request-Id` header.
    pub request_id: String,
}

/// An error as mem0's clients read it.
pub(in crate::rest) fn render(error: Error, request: RequestInfo<'_>) -> Response {
    let problem = Problem::from(error);
    let body = Mem0ErrorBody {
        detail: problem.message.clone(),
        code: problem.code.to_owned(),
        details: problem.details.clone(),
        request_id: request.id.to_owned(),
    };
    problem.answer(&body, request)
}
