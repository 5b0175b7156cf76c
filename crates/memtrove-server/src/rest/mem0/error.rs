//! How the mem0 API says no: what the memories surface says, where mem0's clients look for it.

use crate::rest::memories::Problem;
use crate::rest::operation;
use crate::shell::request_id;
use axum::response::{IntoResponse, Response};
use memtrove_core::Error;
use serde::Serialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

/// A domain error on its way out of the mem0 API. Its handlers return `Result<_, Mem0Error>` and use `?`.
#[derive(Debug)]
pub struct Mem0Error(pub Error);

impl From<Error> for Mem0Error {
    fn from(error: Error) -> Self {
        Self(error)
    }
}

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

impl IntoResponse for Mem0Error {
    fn into_response(self) -> Response {
        let problem = Problem::from(self.0);
        problem.answer(&Mem0ErrorBody {
            detail: problem.message.clone(),
            code: problem.code.to_owned(),
            details: problem.details.clone(),
            request_id: request_id::current().unwrap_or_else(|| operation::UNKNOWN.to_owned()),
        })
    }
}
