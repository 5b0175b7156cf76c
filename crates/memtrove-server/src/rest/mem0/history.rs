//! What a memory said, and when.

use super::extract::{Called, Id};
use super::{ApiError, respond};
use crate::rest::App;
use axum::extract::State;
use axum::response::Response;
use memtrove_core::Result;
use memtrove_core::memories::mem0::{Entities, Entity, SaidBy, said_by};
use memtrove_core::memories::{MemoryCaller, MemoryId};
use memtrove_service::memories::Memories;
use memtrove_wire::mem0 as wire;
use serde_json::{Value, json};

/// Lists the texts of a memory, from the first on. What was deleted has none.
#[utoipa::path(get, path = "/v1/memories/{id}/history/", tag = "mem0", operation_id = "mem0_history",
    params(("id" = String, Path, description = "The memory")),
    responses((status = 200, description = "What happened to it, oldest first", body = Vec<wire::Event>)))]
pub(in crate::rest) async fn history(
    Called(caller): Called,
    Id(id): Id,
    State(app): State<App>,
) -> Result<Response, ApiError> {
    Ok(respond(&events(&app.0.services.memories, &caller, &id).await?))
}

/// What happened to a memory.
async fn events(memories: &Memories, caller: &MemoryCaller, id: &str) -> Result<Value> {
    let (memory, sayings) = memories.history(caller, MemoryId::named(id)).await?;
    let SaidBy { role, actor_id } = said_by(&memory);
    let user = Entities::of(&memory).get(Entity::User).map(str::to_owned);
    let events = sayings.iter().map(|saying| {
        json!({
            "id": format!("{}:{}", memory.id, saying.version),
            "memory_id": memory.id.to_string(),
            "event": if saying.version == 1 { "ADD" } else { "UPDATE" },
            "old_memory": saying.before,
            "new_memory": saying.text,
            "user_id": user,
            "created_at": memory.created_at,
            "updated_at": saying.at,
            "is_deleted": false,
            "actor_id": actor_id,
            "role": role,
        })
    });
    Ok(events.collect())
}
