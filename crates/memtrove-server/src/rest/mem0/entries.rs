//! One memory at a time: add, get, update, delete.

use super::extract::{Called, Id, JsonBody, Parameters};
use super::{ApiError, Mem0ErrorBody, encode, now, respond, said};
use crate::rest::App;
use axum::extract::State;
use axum::response::Response;
use memtrove_core::memories::mem0::{Add, Update};
use memtrove_core::memories::members::Members;
use memtrove_core::memories::params::Params;
use memtrove_core::memories::{
    AddMemory, Assertion, BulkAdd, Code, Memory, MemoryCaller, MemoryId, Precondition,
};
use memtrove_core::{Error, Result};
use memtrove_service::memories::Memories;
use memtrove_wire::mem0 as wire;
use serde_json::{Map, Value, json};

/// Remembers messages as they are. To have a language model extract facts from them, which is mem0's default, is refused.
#[utoipa::path(post, path = "/v3/memories/add/", tag = "mem0", operation_id = "mem0_add",
    request_body = wire::Mem0AddRequest,
    responses((status = 200, description = "What was remembered", body = wire::Mem0Added),
        (status = 422, description = "Too long, too many, or too much metadata", body = Mem0ErrorBody)))]
pub(in crate::rest) async fn add(
    Called(caller): Called,
    State(app): State<App>,
    body: JsonBody,
) -> Result<Response, ApiError> {
    Ok(respond(&add_all(&app.0.services.memories, &caller, &body.value()?).await?))
}

/// Reads a memory.
#[utoipa::path(get, path = "/v1/memories/{id}/", tag = "mem0", operation_id = "mem0_get",
    params(("id" = String, Path, description = "The memory")),
    responses((status = 200, description = "The memory", body = wire::Mem0Memory)))]
pub(in crate::rest) async fn get(
    Called(caller): Called,
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
    Called(caller): Called,
    Id(id): Id,
    State(app): State<App>,
    body: JsonBody,
) -> Result<Response, ApiError> {
    let body = body.value()?;
    Ok(respond(&encode::memory(&update_one(&app.0.services.memories, &caller, &id, &body).await?)))
}

/// Deletes a memory, and with it everything it ever said.
#[utoipa::path(delete, path = "/v1/memories/{id}/", tag = "mem0", operation_id = "mem0_delete",
    params(("id" = String, Path, description = "The memory"),
        ("delete_linked" = Option<bool>, Query, description = "With those that it absorbed, and those that these absorbed")),
    responses((status = 200, description = "It is gone", body = wire::Mem0Done)))]
pub(in crate::rest) async fn delete(
    Called(caller): Called,
    Id(id): Id,
    Parameters(params): Parameters,
    State(app): State<App>,
) -> Result<Response, ApiError> {
    let linked = Params::new(&params)?.one("delete_linked")?;
    let linked = match linked.map(str::to_ascii_lowercase).as_deref() {
        None | Some("false") => false,
        Some("true") => true,
        Some(_) => return Err(Error::field("delete_linked", "must be true or false").into()),
    };
    delete_one(&app.0.services.memories, &caller, &id, linked).await?;
    Ok(said("Memory deleted successfully!"))
}

/// Stores the messages of a body, all or none.
async fn add_all(memories: &Memories, caller: &MemoryCaller, body: &Value) -> Result<Value> {
    let add = Add::read(body, caller, now())?;
    let items = add.bodies.iter().map(|body| AddMemory::read(body, memories.rules())).collect();
    let added = memories.bulk_add(caller, BulkAdd { items, atomic: true }, None).await?;
    let added = added.now().map(|added| added.results).unwrap_or_default();
    let results: Vec<Value> = added
        .into_iter()
        .flatten()
        .map(|shown| {
            let memory = shown.memory;
            let own = memory.metadata.get("mem0").cloned().unwrap_or_default();
            json!({
                "id": memory.id.to_string(),
                "memory": memory.content,
                "event": "ADD",
                "role": own["role"],
                "actor_id": own["actor_id"],
            })
        })
        .collect();
    let mut answer = Map::from_iter([("results".to_owned(), json!(results))]);
    answer.extend(add.left_out().map(|message| ("message".to_owned(), json!(message))));
    Ok(answer.into())
}

/// Changes a memory as a body says.
pub(super) async fn update_one(
    memories: &Memories,
    caller: &MemoryCaller,
    id: &str,
    body: &Value,
) -> Result<Memory> {
    let update = Update::read(Members::body(body)?, now())?;
    memories.revise(caller, MemoryId::named(id), |memory| update.body(memory)).await
}

/// Deletes a memory that must be there, maybe with what it absorbed.
pub(super) async fn delete_one(
    memories: &Memories,
    caller: &MemoryCaller,
    id: &str,
    linked: bool,
) -> Result<()> {
    let (id, any, at_any) = (MemoryId::named(id), Assertion::default(), Precondition::default());
    let memory = memories.get(caller, id, &any).await?;
    let mut absorbed = if linked { memory.lineage.consolidated_from.clone() } else { Vec::new() };
    if !memories.delete(caller, id, &any, &at_any).await? {
        return Err(Error::no_such_memory());
    }
    while let Some(next) = absorbed.pop() {
        // One that was restored since is on its own again; one that is gone leads nowhere.
        let older = match memories.get(caller, next, &any).await {
            Ok(older) => older,
            Err(Error { code: Code::MemoryNotFound, .. }) => continue,
            Err(error) => return Err(error),
        };
        if older.lineage.superseded_by.is_some() {
            absorbed.extend(&older.lineage.consolidated_from);
            memories.delete(caller, next, &any, &at_any).await?;
        }
    }
    Ok(())
}
