//! Many memories at once: add, delete, clear.

use super::decode::{self, answer_key};
use super::extract::{Called, JsonBody};
use super::params::IdempotencyKey;
use super::{ApiError, MemoriesErrorBody, answer, encode, respond};
use crate::rest::App;
use axum::extract::State;
use axum::response::Response;
use http::{HeaderMap, StatusCode};
use memtrove_wire::memories as wire;

/// Remembers many things at once, each by itself or all or none.
#[utoipa::path(post, path = "/v1/memories:bulkAdd", tag = "memories", params(IdempotencyKey),
    request_body = wire::BulkAddRequest,
    responses((status = 200, description = "What became of each", body = wire::BulkAdded),
        (status = 422, description = "Too many; or, all or none, one is too long", body = MemoriesErrorBody)))]
pub(in crate::rest) async fn bulk_add(
    Called(caller): Called,
    headers: HeaderMap,
    State(app): State<App>,
    body: JsonBody,
) -> Result<Response, ApiError> {
    let (memories, body) = (&app.0.services.memories, body.value()?);
    let key = answer_key(&headers, "memories:bulkAdd", &body, encode::bulk_added)?;
    let add = decode::bulk_add(&body, memories.rules())?;
    let added = memories.bulk_add(&caller, add, key).await?;
    Ok(answer(added, encode::bulk_added, "/v1/memories")?)
}

/// Deletes many memories at once.
#[utoipa::path(post, path = "/v1/memories:bulkDelete", tag = "memories",
    request_body = wire::BulkDeleteRequest,
    responses((status = 200, description = "What became of the ids", body = wire::BulkDeleted),
        (status = 422, description = "Too many", body = MemoriesErrorBody)))]
pub(in crate::rest) async fn bulk_delete(
    Called(caller): Called,
    State(app): State<App>,
    body: JsonBody,
) -> Result<Response, ApiError> {
    let deleted = app.0.services.memories.bulk_delete(&caller, decode::bulk_delete(&body.value()?)?).await?;
    let failure =
        |(id, code): &(String, &str)| wire::BulkDeleteFailure { id: id.clone(), code: (*code).into() };
    let body = wire::BulkDeleted {
        deleted: deleted.deleted as u64,
        errors: deleted.failed.iter().map(failure).collect(),
        failed: deleted.failed.into_iter().map(|(id, _)| id).collect(),
    };
    Ok(respond(StatusCode::OK, &body))
}

/// Removes all memories of some kinds from one scope.
#[utoipa::path(post, path = "/v1/memories:clear", tag = "memories",
    request_body = wire::ClearMemoriesRequest,
    responses((status = 200, description = "How many went", body = wire::ClearedMemories)))]
pub(in crate::rest) async fn clear_memories(
    Called(caller): Called,
    State(app): State<App>,
    body: JsonBody,
) -> Result<Response, ApiError> {
    let memories = &app.0.services.memories;
    let cleared = memories.clear(&caller, decode::clear(&body.value()?, memories.rules())?).await?;
    Ok(respond(StatusCode::OK, &wire::ClearedMemories { cleared: cleared as u64 }))
}
