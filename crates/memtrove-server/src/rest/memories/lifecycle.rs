//! What becomes of memories: archive, restore, promote, decay, consolidate.

use super::decode::{self, if_match};
use super::extract::{Called, Id, JsonBody};
use super::params::IfMatch;
use super::{ApiError, MemoriesErrorBody, encode, respond, tagged};
use crate::rest::App;
use axum::extract::State;
use axum::response::Response;
use http::{HeaderMap, StatusCode};
use memtrove_core::memories::{Memory, MemoryCaller, MemoryId};
use memtrove_service::memories::Promoted;
use memtrove_wire::memories as wire;
use serde_json::Value;

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
    let precondition = if_match(&headers)?;
    let memory = app.0.services.memories.archive(&caller, MemoryId::named(&id), &precondition).await?;
    one(&app, &caller, memory)
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
    let precondition = if_match(&headers)?;
    let memory = app.0.services.memories.restore(&caller, MemoryId::named(&id), &precondition).await?;
    one(&app, &caller, memory)
}

fn one(app: &App, caller: &MemoryCaller, memory: Memory) -> Result<Response, ApiError> {
    let etag = memory.etag();
    let memory = encode::memory(app.0.services.memories.show(caller, memory), false);
    Ok(tagged(respond(StatusCode::OK, &wire::OneMemory { memory }), &etag)?)
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
    let (body, precondition) = (body.value()?, if_match(&headers)?);
    let request = decode::promote(&body, precondition, memories.rules())?;
    let Promoted { memory, deduplicated } = memories.promote(&caller, MemoryId::named(&id), &request).await?;
    let (status, etag) = (if deduplicated { StatusCode::OK } else { StatusCode::CREATED }, memory.etag());
    let memory = encode::memory(memories.show(&caller, memory), false);
    Ok(tagged(respond(status, &wire::PromotedMemory { memory, deduplicated }), &etag)?)
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
    let (memories, body) = (&app.0.services.memories, Value::Object(body.optional_object()?));
    let report = memories.decay(&caller, decode::decay(&body, memories.rules())?).await?;
    Ok(respond(StatusCode::OK, &encode::decayed(report)))
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
    let memories = &app.0.services.memories;
    let request = decode::consolidate(&body.value()?, memories.rules())?;
    Ok(respond(StatusCode::OK, &encode::consolidated(memories.consolidate(&caller, request).await?)))
}
