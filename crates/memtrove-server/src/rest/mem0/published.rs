//! The routes of the server that mem0 publishes: the same operations under shorter paths, a little different.

use super::entries;
use super::extract::{Id, JsonBody, Mem0Caller, Parameters};
use super::history;
use super::params::{EntityParameters, PageParameters};
use super::search::{self, page};
use super::{ApiError, Mem0ErrorBody, decode, now, respond, said};
use crate::rest::App;
use axum::extract::State;
use axum::response::Response;
use memtrove_core::memories::MemoryId;
use memtrove_wire::mem0 as wire;

/// Remembers messages as they are.
#[utoipa::path(post, path = "/memories", tag = "mem0", operation_id = "mem0_create_memories",
    request_body = wire::Mem0AddRequest,
    responses((status = 200, description = "What was remembered", body = wire::Mem0Added),
        (status = 422, description = "Too long, too many, or too much metadata", body = Mem0ErrorBody)))]
pub(in crate::rest) async fn create_memories(
    caller: Mem0Caller,
    app: State<App>,
    body: JsonBody,
) -> Result<Response, ApiError> {
    entries::add(caller, app, body).await
}

/// Lists memories, newest first.
#[utoipa::path(get, path = "/memories", tag = "mem0", operation_id = "mem0_get_memories",
    params(EntityParameters, PageParameters),
    responses((status = 200, description = "The newest of them", body = wire::Mem0Listed)))]
pub(in crate::rest) async fn get_memories(
    Mem0Caller(caller): Mem0Caller,
    Parameters(params): Parameters,
    State(app): State<App>,
) -> Result<Response, ApiError> {
    let body = decode::parameters(&params, &["page", "page_size"])?;
    let page = page(&app.0.services.memories, &caller, body, "/memories").await?;
    Ok(respond(&wire::Mem0Listed { results: page.results, count: page.count }))
}

/// Deletes all memories with these ids.
#[utoipa::path(delete, path = "/memories", tag = "mem0", operation_id = "mem0_delete_memories",
    params(EntityParameters),
    responses((status = 200, description = "They are gone", body = wire::Mem0Done)))]
pub(in crate::rest) async fn delete_memories(
    Mem0Caller(caller): Mem0Caller,
    Parameters(params): Parameters,
    State(app): State<App>,
) -> Result<Response, ApiError> {
    app.0.services.memories.delete_about(&caller, decode::ids(&params)?).await?;
    Ok(said("All relevant memories deleted"))
}

/// Reads a memory.
#[utoipa::path(get, path = "/memories/{id}", tag = "mem0", operation_id = "mem0_get_memory",
    params(("id" = String, Path, description = "The memory")),
    responses((status = 200, description = "The memory", body = wire::Mem0Memory)))]
pub(in crate::rest) async fn get_memory(
    caller: Mem0Caller,
    id: Id,
    app: State<App>,
) -> Result<Response, ApiError> {
    entries::get(caller, id, app).await
}

/// Changes a memory.
#[utoipa::path(put, path = "/memories/{id}", tag = "mem0", operation_id = "mem0_update_memory",
    params(("id" = String, Path, description = "The memory")),
    request_body = wire::Mem0UpdateRequest,
    responses((status = 200, description = "It is changed", body = wire::Mem0Done),
        (status = 422, description = "Too long, or too much metadata", body = Mem0ErrorBody)))]
pub(in crate::rest) async fn update_memory(
    Mem0Caller(caller): Mem0Caller,
    Id(id): Id,
    State(app): State<App>,
    body: JsonBody,
) -> Result<Response, ApiError> {
    let update = decode::update(&body.value()?, now())?;
    app.0.services.memories.revise(&caller, MemoryId::named(&id), &update).await?;
    Ok(said("Memory updated successfully!"))
}

/// Deletes a memory.
#[utoipa::path(delete, path = "/memories/{id}", tag = "mem0", operation_id = "mem0_delete_memory",
    params(("id" = String, Path, description = "The memory")),
    responses((status = 200, description = "It is gone", body = wire::Mem0Done)))]
pub(in crate::rest) async fn delete_memory(
    Mem0Caller(caller): Mem0Caller,
    Id(id): Id,
    State(app): State<App>,
) -> Result<Response, ApiError> {
    app.0.services.memories.delete_linked(&caller, MemoryId::named(&id), false).await?;
    Ok(said("Memory deleted successfully"))
}

/// Lists the texts of a memory, from the first on.
#[utoipa::path(get, path = "/memories/{id}/history", tag = "mem0", operation_id = "mem0_memory_history",
    params(("id" = String, Path, description = "The memory")),
    responses((status = 200, description = "What happened to it, oldest first", body = Vec<wire::Mem0Event>)))]
pub(in crate::rest) async fn memory_history(
    caller: Mem0Caller,
    id: Id,
    app: State<App>,
) -> Result<Response, ApiError> {
    history::history(caller, id, app).await
}

/// Searches memories, by meaning and words.
#[utoipa::path(post, path = "/search", tag = "mem0", operation_id = "mem0_search_memories",
    request_body = wire::Mem0SearchRequest,
    responses((status = 200, description = "The memories found, strongest first", body = wire::Mem0Found),
        (status = 422, description = "The query is too long", body = Mem0ErrorBody)))]
pub(in crate::rest) async fn search_memories(
    caller: Mem0Caller,
    app: State<App>,
    body: JsonBody,
) -> Result<Response, ApiError> {
    search::search(caller, app, body).await
}

/// Deletes the memories of all users, agents, apps and runs; those of teams, organizations and the company stay.
#[utoipa::path(post, path = "/reset", tag = "mem0", operation_id = "mem0_reset",
    responses((status = 200, description = "They are gone", body = wire::Mem0Done)))]
pub(in crate::rest) async fn reset(
    Mem0Caller(caller): Mem0Caller,
    State(app): State<App>,
) -> Result<Response, ApiError> {
    app.0.services.memories.delete_everything(&caller).await?;
    Ok(said("All memories reset"))
}
