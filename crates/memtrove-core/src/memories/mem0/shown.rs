//! Entries as mem0 shows them.

use super::instant::date;
use super::{Entities, Entity, OWN, metadata};
use crate::memories::Memory;
use serde_json::{Map, Value, json};

/// An entry as mem0 shows it; `score` where it was searched for.
pub fn shown(memory: &Memory, score: Option<f64>) -> Map<String, Value> {
    let entities = Entities::of(memory);
    let SaidBy { role, actor_id } = said_by(memory);
    let mut shown = Map::new();
    let mut put = |name: &str, value: Value| shown.insert(name.to_owned(), value);
    put("id", json!(memory.id.to_string()));
    put("memory", json!(memory.content));
    put("hash", json!(memory.content_hash()));
    for entity in Entity::ALL {
        put(entity.member(), json!(entities.get(entity)));
    }
    put("actor_id", json!(actor_id));
    put("role", json!(role));
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

/// Who said what an entry says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SaidBy<'a> {
    /// The role.
    pub role: Option<&'a str>,
    /// The name.
    pub actor_id: Option<&'a str>,
}

/// Who said what an entry says, as far as its add told.
pub fn said_by(memory: &Memory) -> SaidBy<'_> {
    SaidBy { role: text_of_own(memory, "role"), actor_id: text_of_own(memory, "actor_id") }
}

fn text_of_own<'a>(memory: &'a Memory, name: &str) -> Option<&'a str> {
    memory.metadata.get(OWN)?.get(name)?.as_str()
}

/// The last day of an entry: the one that was asked for, or the one on which it expires.
fn expiration_date(memory: &Memory) -> Value {
    let asked = text_of_own(memory, "expiration_date").filter(|text| date(text).is_some());
    match (asked, memory.expires_at) {
        (_, None) => Value::Null,
        (Some(date), Some(_)) => json!(date),
        (None, Some(at)) => json!(at.to_string().get(..10)),
    }
}
