//! One memory at a time: add, get, update, delete.

use super::decode::NewMemories;
use super::extract::{Id, JsonBody, Mem0Caller, Parameters};
use super::{ApiError, Mem0ErrorBody, decode, encode, now, respond, said};
use crate::rest::App;
use axum::extract::State;
use axum::response::Response;
use memtrove_core::Result;
use memtrove_core::memories::{Assertion, BulkAdd, MemoryId};
use memtrove_wire::mem0 as wire;

/// Remembers messages as they are. To have a language model extract facts from them, which is mem0's default, is refused.
#[utoipa::path(post, path = "/v3/memories/add/", tag = "mem0", operation_id = "mem0_add",
    request_body = wire::Mem0AddRequest,
    responses((status = 200, description = "What was remembered", body = wire::Mem0Added),
        (status = 422, description = "Too long, too many, or too much metadata", body = Mem0ErrorBody)))]
pub(in crate::rest) async fn add(
    Mem0Caller(caller): Mem0Caller,
    State(app): State<App>,
    body: JsonBody,
) -> Result<Response, ApiError> {
    let memories = &app.0.services.memories;
    let most = memories.rules().limits.bulk_add;
    let NewMemories { about, adds, count, left_out } = decode::add(&body.value()?, most, now())?;
    let added = memories.add_about(&caller, &about, BulkAdd { items: adds, count, atomic: true }).await?;
    let added = added.now().map(|added| added.results).unwrap_or_default();
    let results = added.into_iter().flatten().map(|shown| encode::added(&shown.memory));
    Ok(respond(&wire::Mem0Added { results: results.collect(), message: left_out }))
}

/// Reads a memory.
#[utoipa::path(get, path = "/v1/memories/{id}/", tag = "mem0", operation_id = "mem0_get",
    params(("id" = String, Path, description = "The memory")),
    responses((status = 200, description = "The memory", body = wire::Mem0Memory)))]
pub(in crate::rest) async fn get(
    Mem0Caller(caller): Mem0Caller,
    Id(id): Id,
    State(app): State<App>,
) -> Result<Response, ApiError> {
    let memory = app.0.services.memories.get(&caller, MemoryId::named(&id), &Assertion::default()).await?;
    Ok(respond(&encode::memory(&memory)))
}

/// Changes a memory. Metadata are merged, member by member.
#[utoipa::path(put, path = "/v1/memories/{id}/", tag = "mem0", operation_id = "mem0_update",
    params(("id" = String, Path, description = "The memory")),
    request_body = wire::Mem0UpdateRequest,
    responses((status = 200, description = "The memory", body = wire::Mem0Memory),
        (status = 422, description = "Too long, or too much metadata", body = Mem0ErrorBody)))]
pub(in crate::rest) async fn update(
    Mem0Caller(caller): Mem0Caller,
    Id(id): Id,
    State(app): State<App>,
    body: JsonBody,
) -> Result<Response, ApiError> {
    let update = decode::update(&body.value()?, now())?;
    let memory = app.0.services.memories.revise(&caller, MemoryId::named(&id), &update).await?;
    Ok(respond(&encode::memory(&memory)))
}

/// Deletes a memory, and with it everything it ever said.
#[utoipa::path(delete, path = "/v1/memories/{id}/", tag = "mem0", operation_id = "mem0_delete",
    params(("id" = String, Path, description = "The memory"),
        ("delete_linked" = Option<bool>, Query, description = "With those that it absorbed, and those that these absorbed")),
    responses((status = 200, description = "It is gone", body = wire::Mem0Done)))]
pub(in crate::rest) async fn delete(
    Mem0Caller(caller): Mem0Caller,
    Id(id): Id,
    Parameters(params): Parameters,
    State(app): State<App>,
) -> Result<Response, ApiError> {
    let linked = decode::with_linked(&params)?;
    app.0.services.memories.delete_linked(&caller, MemoryId::named(&id), linked).await?;
    Ok(said("Memory deleted successfully!"))
}
