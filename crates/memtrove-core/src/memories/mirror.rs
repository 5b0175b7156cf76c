//! Events as memories: one record, two views.

use super::limits::{MAX_METADATA_DEPTH, MAX_TAG_CHARS, MAX_TAGS};
use super::{AccessPolicy, Author, Kind, Layer, Lineage, Memory, MemoryId, ScopeKey, State, metadata};
use crate::files::{Scope, body};
use crate::{Timestamp, derived_uuid};
use serde_json::{Map, Value, json};
use std::collections::HashSet;

/// The id of the memory that mirrors an event: always the same, so that an event that is written again is found again.
pub fn id(scope: &Scope, event_id: &str) -> MemoryId {
    MemoryId(derived_uuid(&[scope.tenant().as_str(), scope.user().as_str(), event_id]))
}

/// The memory that mirrors an event, as if it were new and without its embedding; `max_bytes` is how much metadata it may
/// have. `None` for an event that cannot be read.
pub fn memory(scope: &Scope, event: &str, max_bytes: usize, now: Timestamp) -> Option<Memory> {
    let event = body::object(event.as_bytes()).ok()?;
    let text = |name: &str| event.get(name).and_then(Value::as_str);
    let (event_id, digest) = (text("event_id")?, text("digest")?);
    let user = scope.user().as_str().to_owned();
    Some(Memory {
        id: id(scope, event_id),
        scope: ScopeKey::listed(scope.tenant().clone(), Layer::User, vec![user.clone()])?,
        kind: Kind::Episodic,
        origin_kind: None,
        content: digest.to_owned(),
        metadata: metadata_of(&event, event_id, max_bytes),
        state: State::Created,
        policy: AccessPolicy::default_in(Layer::User),
        created_by: Author { user: Some(user), client: None },
        created_at: now,
        updated_at: now,
        occurred_at: Some(Timestamp::parse(text("timestamp")?)?),
        expires_at: None,
        ttl_seconds: None,
        version: 1,
        anchor: now,
        fact: None,
        lineage: Lineage { mirror_of: Some(event_id.to_owned()), ..Lineage::default() },
        access_count: 0,
        last_accessed_at: None,
        embedding: None,
    })
}

/// The next version of a mirror: what the event says now, and what became of the mirror itself.
pub fn renewed(new: Memory, old: &Memory) -> Memory {
    let now = new.updated_at;
    let mut renewed = Memory {
        created_at: old.created_at,
        updated_at: old.updated_at,
        version: old.version,
        lineage: Lineage { mirror_of: new.lineage.mirror_of.clone(), ..old.lineage.clone() },
        ..new
    };
    renewed.touch(now);
    renewed
}

/// What of an event becomes metadata. Events may hold more than metadata may: what does not fit is in the event alone.
fn metadata_of(event: &Map<String, Value>, event_id: &str, max_bytes: usize) -> Map<String, Value> {
    let is_chat = event.get("source_type").and_then(Value::as_str) == Some("chat");
    let source_type = if is_chat { "conversation" } else { "import" };
    let member = |name: &str| event.get(name).filter(|value| !value.is_null()).cloned();
    let members = [
        ("source", Some(json!({"type": source_type, "reference": event_id}))),
        ("tags", Some(tags(event)).filter(|tags| !tags.is_empty()).map(Value::from)),
        ("serviceId", member("service_id")),
        ("sourceType", member("source_type")),
        ("projectIds", member("project_ids").filter(|ids| ids.as_array().is_none_or(|ids| !ids.is_empty()))),
        ("evidence", member("evidence")),
    ];
    let mut fitting = Map::new();
    for (name, value) in members.into_iter().filter_map(|(name, value)| Some((name, value?))) {
        fitting.insert(name.to_owned(), value);
        if metadata::depth(&fitting) > MAX_METADATA_DEPTH
            || metadata::check_size(&fitting, max_bytes).is_err()
        {
            fitting.shift_remove(name);
        }
    }
    fitting
}

/// The keywords of an event that may be tags, each once.
fn tags(event: &Map<String, Value>) -> Vec<&str> {
    let keywords = event.get("keywords").and_then(Value::as_array).into_iter().flatten();
    let mut seen = HashSet::new();
    keywords
        .filter_map(Value::as_str)
        .filter(|keyword| (1..=MAX_TAG_CHARS).contains(&keyword.chars().count()) && seen.insert(*keyword))
        .take(MAX_TAGS)
        .collect()
}

#[cfg(test)]
mod tests;
