//! Entries as mem0 shows them.

use super::{Entities, Entity, OWN, metadata};
use crate::memories::Memory;
use serde_json::{Map, Value, json};

/// An entry as mem0 shows it; `score` where it was searched for.
pub fn shown(memory: &Memory, score: Option<f64>) -> Map<String, Value> {
    let entities = Entities::of(memory);
    let own = memory.metadata.get(OWN);
    let of_own = |name: &str| own.and_then(|own| own.get(name)).cloned().unwrap_or(Value::Null);
    let mut shown = Map::new();
    let mut put = |name: &str, value: Value| shown.insert(name.to_owned(), value);
    put("id", json!(memory.id.to_string()));
    put("memory", json!(memory.content));
    put("hash", json!(memory.content_hash()));
    for entity in Entity::ALL {
        put(entity.member(), json!(entities.get(entity)));
    }
    put("actor_id", of_own("actor_id"));
    put("role", of_own("role"));
    put("metadata", metadata::all(memory).into());
    put("categories", memory.metadata.get("tags").cloned().unwrap_or_else(|| json!([])));
    put("created_at", json!(memory.at()));
    put("updated_at", json!(memory.updated_at));
    put("expiration_date", expiration_date(memory));
    if let Some(score) = score {
        put("score", json!(score));
    }
    shown
}

/// The last day of an entry: the one that was asked for, or the one on which it expires.
fn expiration_date(memory: &Memory) -> Value {
    let asked = memory.metadata.get(OWN).and_then(|own| own.get("expiration_date"));
    match (asked, memory.expires_at) {
        (_, None) => Value::Null,
        (Some(date), Some(_)) => date.clone(),
        (None, Some(at)) => json!(at.to_string().get(..10)),
    }
}
