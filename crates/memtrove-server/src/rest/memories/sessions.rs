//! The end of a session.

use super::extract::{Called, JsonBody};
use super::{ApiError, decode, encode, respond};
use crate::rest::App;
use axum::extract::State;
use axum::response::Response;
use http::StatusCode;
use memtrove_wire::memories as wire;

/// Ends a session: what matters outlives it with its user.
#[utoipa::path(post, path = "/v1/sessions:end", tag = "memories",
    request_body = wire::EndSessionRequest,
    responses((status = 200, description = "What became of its memories", body = wire::EndedSession)))]
pub(in crate::rest) async fn end_session(
    Called(caller): Called,
    State(app): State<App>,
    body: JsonBody,
) -> Result<Response, ApiError> {
    let ended = app.0.services.memories.end_session(&caller, decode::end_session(&body.value()?)?).await?;
    Ok(respond(StatusCode::OK, &encode::ended_session(ended)))
}
