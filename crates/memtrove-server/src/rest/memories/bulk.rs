//! Many memories at once: add, delete, clear.

use super::extract::{Called, JsonBody};
use super::params::IdempotencyKey;
use super::{ApiError, MemoriesErrorBody, answer, respond};
use crate::rest::App;
use crate::rest::extract::header;
use axum::extract::State;
use axum::response::Response;
use http::{HeaderMap, StatusCode};
use memtrove_wire::memories as wire;
use serde_json::{Value, json};

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
    let key = header(&headers, "Idempotency-Key")?;
    Ok(answer(app.0.services.memories.bulk_add(&caller, body.value()?, key).await?, "/v1/memories")?)
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
    let deleted = app.0.services.memories.bulk_delete(&caller, &body.value()?).await?;
    let failed: Vec<&String> = deleted.failed.iter().map(|(id, _)| id).collect();
    let errors: Vec<Value> =
        deleted.failed.iter().map(|(id, code)| json!({"id": id, "code": code})).collect();
    Ok(respond(StatusCode::OK, &json!({"deleted": deleted.deleted, "failed": failed, "errors": errors})))
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
    let cleared = app.0.services.memories.clear(&caller, &body.value()?).await?;
    Ok(respond(StatusCode::OK, &json!({"cleared": cleared})))
}
