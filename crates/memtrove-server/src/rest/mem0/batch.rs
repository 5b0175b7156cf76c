//! Many memories at once. All of them must be there, and all changes possible, before the first is touched.

use super::extract::{Called, JsonBody};
use super::{ApiError, Mem0ErrorBody, now, said};
use crate::rest::App;
use axum::extract::State;
use axum::response::Response;
use memtrove_core::memories::mem0::Update;
use memtrove_core::memories::members::Members;
use memtrove_core::memories::{Assertion, Code, MemoryId, Precondition};
use memtrove_core::{Error, Result, parse_uuid};
use memtrove_wire::mem0 as wire;
use serde_json::Value;
use std::collections::BTreeSet;

/// As many as mem0 takes.
const MOST: usize = 1000;

/// Changes memories.
#[utoipa::path(put, path = "/v1/batch/", tag = "mem0", operation_id = "mem0_batch_update",
    request_body = wire::Mem0BatchUpdateRequest,
    responses((status = 200, description = "They are changed", body = wire::Mem0Done),
        (status = 422, description = "Too many, too long, or too much metadata", body = Mem0ErrorBody)))]
pub(in crate::rest) async fn batch_update(
    Called(caller): Called,
    State(app): State<App>,
    body: JsonBody,
) -> Result<Response, ApiError> {
    let (memories, body, at) = (&app.0.services.memories, body.value()?, now());
    let (mut updates, mut named) = (Vec::new(), BTreeSet::new());
    for item in items(&body)? {
        let id = id(item)?.to_string();
        // Each change is checked against what is there, so a second one of the same memory could fail after the first.
        if !named.insert(id.clone()) {
            let problem = "names a memory twice; say in one place what is to change of it";
            return Err(item.refuse("memory_id", problem).into());
        }
        updates.push((id, Update::read(item, at)?));
    }
    for (id, update) in &updates {
        memories.check_revision(&caller, MemoryId::named(id), |memory| update.body(memory)).await?;
    }
    for (id, update) in &updates {
        memories.revise(&caller, MemoryId::named(id), |memory| update.body(memory)).await?;
    }
    Ok(said(format!("Successfully updated {} memories", updates.len())))
}

/// Deletes memories.
#[utoipa::path(delete, path = "/v1/batch/", tag = "mem0", operation_id = "mem0_batch_delete",
    request_body = wire::Mem0BatchDeleteRequest,
    responses((status = 200, description = "They are gone", body = wire::Mem0Done),
        (status = 422, description = "Too many", body = Mem0ErrorBody)))]
pub(in crate::rest) async fn batch_delete(
    Called(caller): Called,
    State(app): State<App>,
    body: JsonBody,
) -> Result<Response, ApiError> {
    let (memories, body) = (&app.0.services.memories, body.value()?);
    let mut ids = BTreeSet::new();
    for item in items(&body)? {
        ids.insert(id(item)?.to_string());
    }
    let any = (Assertion::default(), Precondition::default());
    for id in &ids {
        memories.check_deletion(&caller, MemoryId::named(id)).await?;
    }
    for id in &ids {
        // Whoever deleted one meanwhile did what was asked for.
        memories.delete(&caller, MemoryId::named(id), &any.0, &any.1).await?;
    }
    Ok(said(format!("Successfully deleted {} memories", ids.len())))
}

fn items(body: &Value) -> Result<Vec<Members<'_>>> {
    let members = Members::body(body)?;
    let items = members.required("memories", members.items("memories"))?;
    if items.len() > MOST {
        return Err(Error::too_long(Code::BatchTooLarge, MOST, items.len()));
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

/// The id of an item: by what it is, not by how it is spelled.
fn id(item: Members<'_>) -> Result<MemoryId> {
    let id = item.required("memory_id", item.text("memory_id"))?;
    parse_uuid(id).map(MemoryId).ok_or_else(Error::no_such_memory)
}
