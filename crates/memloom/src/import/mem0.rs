//! Memories of mem0: what its platform exports, what `get_all` answers, and the points of a vector store.

use super::record::{LeftOut, Record, Remembered, Stated, text, time};
use serde_json::{Map, Value, json};

/// The members of a file that have memories, or relations between things.
pub fn is_wanted(member: Option<&str>) -> bool {
    matches!(member, None | Some("results" | "memories" | "relations" | "points" | "data"))
}

/// Reads a memory.
pub fn read(item: &Value, left_out: &mut LeftOut) -> Result<Vec<Record>, String> {
    if let Some(record) = relation(item) {
        return Ok(vec![record]);
    }
    // A point of a vector store has it all in its payload.
    let held = item.get("payload").filter(|payload| payload.is_object()).unwrap_or(item);
    let said =
        ["memory", "data", "text"].iter().find_map(|name| text(held, name)).ok_or("it has no memory")?;
    let id = match item.get("id").or_else(|| item.get("memory_id")) {
        Some(Value::String(id)) if !id.trim().is_empty() => id.clone(),
        Some(Value::Number(id)) => id.to_string(),
        _ => said.to_owned(),
    };
    let own =
        |name: &str| text(held, name).or_else(|| held.pointer("/metadata").and_then(|of| text(of, name)));
    let reference = json!({"type": "import", "reference": format!("mem0:{id}")});
    let mut metadata = Map::from_iter([("source".to_owned(), reference)]);
    let tags: Vec<&str> = held
        .get("categories")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    if !tags.is_empty() {
        metadata.insert("tags".to_owned(), tags.into_iter().take(64).collect());
    }
    let mut kept = Map::new();
    for (name, value) in held.get("metadata").and_then(Value::as_object).into_iter().flatten() {
        match name.starts_with('_') || RESERVED.contains(&name.as_str()) {
            // These mean something here, and need not mean the same there.
            true => drop(kept.insert(name.clone(), value.clone())),
            false => drop(metadata.insert(name.clone(), value.clone())),
        }
    }
    for name in ["app_id", "actor_id", "role", "hash", "expiration_date"] {
        if let Some(value) = held.get(name).filter(|value| !value.is_null()) {
            kept.insert(name.to_owned(), value.clone());
        }
    }
    if !kept.is_empty() {
        metadata.insert("mem0".to_owned(), kept.into());
    }
    if held.get("expiration_date").is_some_and(|date| !date.is_null()) {
        left_out
            .note("dates on which memories expire: they are kept under metadata.mem0, and nothing expires");
    }
    Ok(vec![Record::Memory(Remembered {
        source_id: id.clone(),
        user: own("user_id").map(str::to_owned),
        agent: own("agent_id").map(str::to_owned),
        session: own("run_id").map(str::to_owned),
        content: Some(said.to_owned()),
        fact: None,
        metadata,
        created_at: time(held, "created_at"),
        updated_at: time(held, "updated_at"),
    })])
}

/// Names of metadata that have rules here.
const RESERVED: [&str; 15] = [
    "relevance",
    "confidence",
    "importance",
    "decayFactor",
    "title",
    "description",
    "language",
    "author",
    "sensitive",
    "private",
    "conflictKey",
    "tags",
    "source",
    "knowledgePointer",
    "mem0",
];

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
