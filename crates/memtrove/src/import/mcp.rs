//! The memory of the MCP reference server: entities with observations, and relations between them. Observations become
//! memories; what an entity is, and how two are related, become facts.

use super::record::{LeftOut, Record, Remembered, Stated, text};
use serde_json::{Map, Value, json};

/// Reads an entity or a relation, from a line that says which it is or from the list of one or the other.
pub fn read(item: &Value, left_out: &mut LeftOut) -> Result<Vec<Record>, String> {
    match text(item, "type") {
        Some("relation") => relation(item),
        Some("entity") => entity(item, left_out),
        _ if item.get("relationType").is_some() => relation(item),
        _ if item.get("name").is_some() => entity(item, left_out),
        _ => Err("it is neither an entity nor a relation".to_owned()),
    }
}

fn entity(item: &Value, left_out: &mut LeftOut) -> Result<Vec<Record>, String> {
    let name = text(item, "name").ok_or("the entity has no name")?;
    let kind = text(item, "entityType");
    let mut records: Vec<Record> = Vec::new();
    if let Some(kind) = kind {
        records.push(fact("entity", name, "is a", kind));
    }
    let observations = match item.get("observations") {
        Some(Value::Array(observations)) => observations.as_slice(),
        Some(Value::Null) | None => &[],
        Some(one) => std::slice::from_ref(one),
    };
    for observation in observations {
        let Some(said) = words(observation) else {
            left_out.note("observations without words");
            continue;
        };
        let mut metadata = source();
        metadata.insert("entity".to_owned(), name.into());
        if let Some(kind) = kind {
            metadata.insert("entityType".to_owned(), kind.into());
        }
        records.push(Record::Memory(Remembered {
            source_id: json!(["observation", name, said]).to_string(),
            // By itself an observation does not say of whom it is.
            content: Some(format!("{name}: {said}")),
            metadata,
            ..Remembered::default()
        }));
    }
    if records.is_empty() && observations.is_empty() {
        left_out.note("entities of which nothing is said");
    }
    Ok(records)
}

/// What an observation says, as a text or as the text of an object.
fn words(observation: &Value) -> Option<&str> {
    let said = observation.as_str().filter(|said| !said.trim().is_empty());
    said.or_else(|| ["content", "text"].iter().find_map(|name| text(observation, name)))
}

fn relation(item: &Value) -> Result<Vec<Record>, String> {
    let member = |name: &str| text(item, name).ok_or_else(|| format!("the relation has no '{name}'"));
    Ok(vec![fact("relation", member("from")?, member("relationType")?, member("to")?)])
}

fn fact(fact_type: &'static str, subject: &str, predicate: &str, object: &str) -> Record {
    let (subject, predicate, object) = (subject.to_owned(), predicate.to_owned(), object.to_owned());
    Record::Memory(Remembered {
        source_id: json!([fact_type, subject, predicate, object]).to_string(),
        fact: Some(Stated { fact_type, subject, predicate, object }),
        metadata: source(),
        ..Remembered::default()
    })
}

fn source() -> Map<String, Value> {
    Map::from_iter([("source".to_owned(), json!({"type": "import", "reference": "mcp-memory"}))])
}

#[cfg(test)]
mod tests;
