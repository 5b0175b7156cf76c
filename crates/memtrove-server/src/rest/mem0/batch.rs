//! Many memories at once. All of them must be there, and all changes possible, before the first is touched.

use super::extract::{JsonBody, Mem0Caller};
use super::{ApiError, Mem0ErrorBody, decode, now, said};
use crate::rest::App;
use axum::extract::State;
use axum::response::Response;
use memtrove_core::Result;
use memtrove_wire::mem0 as wire;

/// Changes memories.
#[utoipa::path(put, path = "/v1/batch/", tag = "mem0", operation_id = "mem0_batch_update",
    request_body = wire::Mem0BatchUpdateRequest,
    responses((status = 200, description = "They are changed", body = wire::Mem0Done),
        (status = 422, description = "Too many, too long, or too much metadata", body = Mem0ErrorBody)))]
pub(in crate::rest) async fn batch_update(
    Mem0Caller(caller): Mem0Caller,
    State(app): State<App>,
    body: JsonBody,
) -> Result<Response, ApiError> {
    let updates = decode::updates(&body.value()?, now())?;
    app.0.services.memories.revise_all(&caller, &updates).await?;
    Ok(said(format!("Successfully updated {} memories", updates.len())))
}

/// Deletes memories.
#[utoipa::path(delete, path = "/v1/batch/", tag = "mem0", operation_id = "mem0_batch_delete",
    request_body = wire::Mem0BatchDeleteRequest,
    responses((status = 200, description = "They are gone", body = wire::Mem0Done),
        (status = 422, description = "Too many", body = Mem0ErrorBody)))]
pub(in crate::rest) async fn batch_delete(
    Mem0Caller(caller): Mem0Caller,
    State(app): State<App>,
    body: JsonBody,
) -> Result<Response, ApiError> {
    let ids = decode::deletions(&body.value()?)?;
    app.0.services.memories.delete_all(&caller, &ids).await?;
    Ok(said(format!("Successfully deleted {} memories", ids.len())))
}
