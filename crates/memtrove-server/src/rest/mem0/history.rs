//! What a memory said, and when.

use super::extract::{Id, Mem0Caller};
use super::{ApiError, encode, respond};
use crate::rest::App;
use axum::extract::State;
use axum::response::Response;
use memtrove_core::Result;
use memtrove_core::memories::MemoryId;
use memtrove_wire::mem0 as wire;

/// Lists the texts of a memory, from the first on. What was deleted has none.
#[utoipa::path(get, path = "/v1/memories/{id}/history/", tag = "mem0", operation_id = "mem0_history",
    params(("id" = String, Path, description = "The memory")),
    responses((status = 200, description = "What happened to it, oldest first", body = Vec<wire::Mem0Event>)))]
pub(in crate::rest) async fn history(
    Mem0Caller(caller): Mem0Caller,
    Id(id): Id,
    State(app): State<App>,
) -> Result<Response, ApiError> {
    let (memory, sayings) = app.0.services.memories.history(&caller, MemoryId::named(&id)).await?;
    Ok(respond(&encode::events(&memory, sayings)))
}
