//! What becomes of memories: archive, restore, promote, decay, consolidate.

use super::extract::{Called, Id, JsonBody};
use super::params::IfMatch;
use super::{ApiError, MemoriesErrorBody, respond, tagged};
use crate::rest::App;
use crate::rest::extract::header;
use axum::extract::State;
use axum::response::Response;
use http::{HeaderMap, StatusCode};
use memtrove_core::memories::{Memory, MemoryCaller};
use memtrove_wire::memories as wire;
use serde_json::{Value, json};

/// Puts a memory away: it is hidden unless asked for.
#[utoipa::path(post, path = "/v1/memories/{id}/archive", tag = "memories",
    params(("id" = String, Path, description = "The memory"), IfMatch),
    responses((status = 200, description = "The memory", body = wire::OneMemory, headers(("ETag" = String, description = "Its version"))),
        (status = 412, description = "The memory is at another version", body = MemoriesErrorBody)))]
pub(in crate::rest) async fn archive_memory(
    Called(caller): Called,
    Id(id): Id,
    headers: HeaderMap,
    State(app): State<App>,
) -> Result<Response, ApiError> {
    let if_match = header(&headers, "If-Match")?;
    let memory = app.0.services.memories.archive(&caller, &id, if_match.as_deref()).await?;
    one(&app, &caller, &memory)
}

/// Takes a memory out of the archive, as fresh as when it was new.
#[utoipa::path(post, path = "/v1/memories/{id}/restore", tag = "memories",
    params(("id" = String, Path, description = "The memory"), IfMatch),
    responses((status = 200, description = "The memory", body = wire::OneMemory, headers(("ETag" = String, description = "Its version"))),
        (status = 412, description = "The memory is at another version", body = MemoriesErrorBody)))]
pub(in crate::rest) async fn restore_memory(
    Called(caller): Called,
    Id(id): Id,
    headers: HeaderMap,
    State(app): State<App>,
) -> Result<Response, ApiError> {
    let if_match = header(&headers, "If-Match")?;
    let memory = app.0.services.memories.restore(&caller, &id, if_match.as_deref()).await?;
    one(&app, &caller, &memory)
}

fn one(app: &App, caller: &MemoryCaller, memory: &Memory) -> Result<Response, ApiError> {
    let body = json!({"memory": app.0.services.memories.show(caller, memory, false)});
    Ok(tagged(respond(StatusCode::OK, &body), &memory.etag())?)
}

/// Copies a memory into another scope, unless that says the same already.
#[utoipa::path(post, path = "/v1/memories/{id}/promote", tag = "memories",
    params(("id" = String, Path, description = "The memory"), IfMatch),
    request_body = wire::PromoteRequest,
    responses((status = 201, description = "The copy", body = wire::PromotedMemory, headers(("ETag" = String, description = "Its version"))),
        (status = 200, description = "What says the same there already", body = wire::PromotedMemory,
            headers(("ETag" = String, description = "Its version"))),
        (status = 412, description = "The memory is at another version", body = MemoriesErrorBody)))]
pub(in crate::rest) async fn promote_memory(
    Called(caller): Called,
    Id(id): Id,
    headers: HeaderMap,
    State(app): State<App>,
    body: JsonBody,
) -> Result<Response, ApiError> {
    let memories = &app.0.services.memories;
    let (body, if_match) = (body.value()?, header(&headers, "If-Match")?);
    let promoted = memories.promote(&caller, &id, if_match.as_deref(), &body).await?;
    let status = if promoted.deduplicated { StatusCode::OK } else { StatusCode::CREATED };
    let memory = memories.show(&caller, &promoted.memory, false);
    let body = json!({"memory": memory, "deduplicated": promoted.deduplicated});
    Ok(tagged(respond(status, &body), &promoted.memory.etag())?)
}

/// Has memories fade that nobody renewed, in some scopes or, for admins, everywhere.
#[utoipa::path(post, path = "/v1/memories:decay", tag = "memories",
    request_body = Option<wire::DecayRequest>,
    responses((status = 200, description = "What faded", body = wire::DecayedMemories)))]
pub(in crate::rest) async fn decay_memories(
    Called(caller): Called,
    State(app): State<App>,
    body: JsonBody,
) -> Result<Response, ApiError> {
    let body = Value::Object(body.optional_object()?);
    Ok(respond(StatusCode::OK, &app.0.services.memories.decay(&caller, &body).await?))
}

/// Merges memories of one scope that say the same.
#[utoipa::path(post, path = "/v1/memories:consolidate", tag = "memories",
    request_body = wire::ConsolidateRequest,
    responses((status = 200, description = "What was merged", body = wire::Consolidated)))]
pub(in crate::rest) async fn consolidate_memories(
    Called(caller): Called,
    State(app): State<App>,
    body: JsonBody,
) -> Result<Response, ApiError> {
    Ok(respond(StatusCode::OK, &app.0.services.memories.consolidate(&caller, &body.value()?).await?))
}
