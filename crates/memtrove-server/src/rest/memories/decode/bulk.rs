//! Many entries in one request.

use super::{Members, add};
use memtrove_core::memories::{BulkAdd, BulkDelete, Code, Rules};
use memtrove_core::{Error, Result};
use serde_json::Value;

pub(in crate::rest::memories) fn bulk_add(body: &Value, rules: &Rules) -> Result<BulkAdd> {
    let Some(members) = body.as_object() else {
        return Err(Error::new(Code::InvalidRequest, "the body must be a JSON object"));
    };
    let atomic = Members::within(members, "").flag("atomic")?;
    let items = members.get("memories").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    // A small body can hold millions: what is refused for their number is not read.
    let read = items.iter().take(rules.limits.bulk_add).map(|item| add(item, rules)).collect();
    Ok(BulkAdd { items: read, count: items.len(), atomic })
}

pub(in crate::rest::memories) fn bulk_delete(body: &Value) -> Result<BulkDelete> {
    let ids = Members::body(body)?.texts("ids")?.unwrap_or_default();
    Ok(BulkDelete { ids: ids.into_iter().map(str::to_owned).collect() })
}

#[cfg(test)]
mod tests;
