//! What this surface can do, and whether it can do it now.

use super::extract::Called;
use super::{ApiError, encode, respond};
use crate::rest::App;
use axum::extract::State;
use axum::response::Response;
use http::StatusCode;
use memtrove_service::memories::memory_store::Status;
use memtrove_wire::memories as wire;

/// Says what memories there can be here, and how much of everything.
#[utoipa::path(get, path = "/v1/memories:capabilities", tag = "memories",
    responses((status = 200, description = "What this server can do", body = wire::MemoryCapabilities)))]
pub(in crate::rest) async fn memory_capabilities(
    Called(_): Called,
    State(app): State<App>,
) -> Result<Response, ApiError> {
    let memories = &app.0.services.memories;
    Ok(respond(StatusCode::OK, &encode::capabilities(memories.capabilities(), memories.rules())?))
}

/// Says whether memories can be stored and found.
#[utoipa::path(get, path = "/v1/memories:health", tag = "memories",
    responses((status = 200, description = "They can", body = wire::MemoryHealth),
        (status = 503, description = "They cannot", body = wire::MemoryHealth)))]
pub(in crate::rest) async fn memory_health(
    Called(_): Called,
    State(app): State<App>,
) -> Result<Response, ApiError> {
    let health = app.0.services.memories.health().await;
    let works = health.status != Status::Unhealthy;
    let status = if works { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    Ok(respond(status, &encode::health(health)))
}
