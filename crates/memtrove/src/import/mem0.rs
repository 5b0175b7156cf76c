//! Memories of mem0: what its platform exports, what `get_all` answers, and the points of a vector store.

use super::record::{LeftOut, Record, Remembered, Stated, list, text, time};
use memtrove_core::Timestamp;
use memtrove_core::memories::mem0::{Entities, Entity, Lifetime, Mem0Memory};
use serde_json::{Map, Value, json};

/// The members of a file that have memories, or relations between things.
pub fn is_wanted(member: &str) -> bool {
    matches!(member, "results" | "memories" | "relations" | "points" | "data" | "result" | "result.points")
}

/// The members of a payload that are not the caller's metadata, which stand right beside them.
const OF_PAYLOADS: [&str; 14] = [
    "id",
    "data",
    "memory",
    "hash",
    "text_lemmatized",
    "created_at",
    "updated_at",
    "user_id",
    "agent_id",
    "app_id",
    "run_id",
    "role",
    "actor_id",
    "expiration_date",
];

/// Reads a memory.
pub fn read(item: &Value, now: Timestamp, left_out: &mut LeftOut) -> Result<Vec<Record>, String> {
    if let Some(record) = relation(item) {
        return Ok(vec![record]);
    }
    // A point of a vector store has it all in its payload.
    let payload = item.get("payload").and_then(Value::as_object);
    let held = item.get("payload").filter(|payload| payload.is_object()).unwrap_or(item);
    let (name, said) = ["memory", "data", "text"]
        .iter()
        .find_map(|name| Some((*name, text(held, name)?)))
        .ok_or("it has no memory")?;
    let id = ["id", "memory_id"].iter().find_map(|name| item.get(name)).or_else(|| held.get("id"));
    let id = match id {
        Some(Value::String(id)) if !id.trim().is_empty() => id.clone(),
        Some(Value::Number(id)) => id.to_string(),
        _ => said.to_owned(),
    };
    let mut metadata = payload.map(|payload| beside(payload, name)).unwrap_or_default();
    metadata.extend(held.get("metadata").and_then(Value::as_object).cloned().unwrap_or_default());
    let mut entities = Entities::default();
    for entity in Entity::ALL {
        let name = entity.member();
        let named = text(held, name).or_else(|| held.pointer("/metadata").and_then(|of| text(of, name)));
        entities.set(entity, named.unwrap_or_default()).map_err(|error| error.to_string())?;
    }
    let categories = list(held, "categories");
    let kept = Mem0Memory {
        id: id.clone(),
        entities,
        text: said.to_owned(),
        metadata,
        categories: categories.filter_map(Value::as_str).map(str::to_owned).collect(),
        said_by: ["role", "actor_id"].map(|name| text(held, name).map(str::to_owned)),
        expiration_date: text(held, "expiration_date").map(str::to_owned),
    };
    match kept.lifetime(now) {
        Lifetime::Over => {
            left_out.note("memories whose last day is over");
            return Ok(Vec::new());
        }
        Lifetime::TooLong => left_out.note("last days that are more than a year away: the memories stay"),
        Lifetime::Lasting | Lifetime::Seconds(_) => {}
    }
    Ok(vec![Record::Memory(Remembered {
        source_id: id,
        user: kept.entities.get(Entity::User).map(str::to_owned),
        content: Some(kept.text.clone()),
        created_at: time(held, "created_at"),
        updated_at: time(held, "updated_at"),
        kept: Some(Box::new(kept)),
        ..Remembered::default()
    })])
}

/// The caller's metadata in a payload, where `said` is the member that holds the memory.
fn beside(payload: &Map<String, Value>, said: &str) -> Map<String, Value> {
    let is_metadata = |name: &str, value: &Value| match name {
        "metadata" => !value.is_object() && !value.is_null(),
        "categories" => !value.is_array() && !value.is_null(),
        _ => name != said && !OF_PAYLOADS.contains(&name),
    };
    let own = payload.iter().filter(|(name, value)| is_metadata(name, value));
    own.map(|(name, value)| (name.clone(), value.clone())).collect()
}

/// What a graph says: somebody, what of it, and whom.
fn relation(item: &Value) -> Option<Record> {
    let target = text(item, "target").or_else(|| text(item, "destination"));
    let (subject, predicate, object) = (text(item, "source")?, text(item, "relationship")?, target?);
    let stated = Stated {
        fact_type: "relation",
        subject: subject.to_owned(),
        predicate: predicate.to_owned(),
        object: object.to_owned(),
    };
    let metadata = Map::from_iter([("source".to_owned(), json!({"type": "import", "reference": "mem0"}))]);
    Some(Record::Memory(Remembered {
        source_id: json!(["relation", subject, predicate, object]).to_string(),
        user: text(item, "user_id").map(str::to_owned),
        fact: Some(stated),
        metadata,
        ..Remembered::default()
    }))
}

#[cfg(test)]
mod tests;
