//! Many memories at once. All of them must be there, and all changes possible, before the first is touched.

use super::entries::delete_one;
use super::extract::{Called, JsonBody};
use super::{Mem0Error, Mem0ErrorBody, now, said};
use crate::rest::App;
use axum::extract::State;
use axum::response::Response;
use memloom_core::Result;
use memloom_core::memories::mem0::Update;
use memloom_core::memories::members::Members;
use memloom_core::memories::{Code, Refusal};
use memloom_wire::mem0 as wire;
use serde_json::Value;

/// As many as mem0 takes.
const MOST: usize = 1000;

/// Changes memories.
#[utoipa::path(put, path = "/v1/batch/", tag = "mem0", operation_id = "mem0_batch_update",
    request_body = wire::BatchUpdateRequest,
    responses((status = 200, description = "They are changed", body = wire::Done),
        (status = 422, description = "Too many, too long, or too much metadata", body = Mem0ErrorBody)))]
pub(in crate::rest) async fn batch_update(
    Called(caller): Called,
    State(app): State<App>,
    body: JsonBody,
) -> Result<Response, Mem0Error> {
    let (memories, body, at) = (&app.0.services.memories, body.value()?, now());
    let mut updates = Vec::new();
    for item in items(&body)? {
        updates.push((id(item)?, Update::read(item, at)?));
    }
    for (id, update) in &updates {
        memories.check_revision(&caller, id, |memory| update.body(memory)).await?;
    }
    for (id, update) in &updates {
        memories.revise(&caller, id, |memory| update.body(memory)).await?;
    }
    Ok(said(format!("Successfully updated {} memories", updates.len())))
}

/// Deletes memories.
#[utoipa::path(delete, path = "/v1/batch/", tag = "mem0", operation_id = "mem0_batch_delete",
    request_body = wire::BatchDeleteRequest,
    responses((status = 200, description = "They are gone", body = wire::Done),
        (status = 422, description = "Too many", body = Mem0ErrorBody)))]
pub(in crate::rest) async fn batch_delete(
    Called(caller): Called,
    State(app): State<App>,
    body: JsonBody,
) -> Result<Response, Mem0Error> {
    let (memories, body) = (&app.0.services.memories, body.value()?);
    let mut ids = items(&body)?.into_iter().map(id).collect::<Result<Vec<_>>>()?;
    ids.sort_unstable();
    ids.dedup();
    for id in &ids {
        memories.get(&caller, id, &[]).await?;
    }
    for id in &ids {
        delete_one(memories, &caller, id, false).await?;
    }
    Ok(said(format!("Successfully deleted {} memories", ids.len())))
}

fn items(body: &Value) -> Result<Vec<Members<'_>>> {
    let members = Members::body(body)?;
    let items = members.required("memories", members.items("memories"))?;
    if items.len() > MOST {
        return Err(Refusal::too_long(Code::BatchTooLarge, MOST, items.len()).into());
    }
    let mut read = Vec::with_capacity(items.len());
    for item in items {
        let Value::Object(item) = item else {
            return Err(members.refuse("memories", "must hold objects with 'memory_id'"));
        };
        read.push(Members::within(item, "memories[]."));
    }
    Ok(read)
}

fn id(item: Members<'_>) -> Result<&str> {
    item.required("memory_id", item.text("memory_id"))
}
