//! `remember_fact`, `query_facts`.

use super::{Outcome, for_project, read, share};
use crate::mcp::McpServer;
use crate::mcp::failure::told;
use memloom_core::memories::{Fact, FactQuery, Memory};
use memloom_wire::tools::ToolFailure;
use serde_json::{Value, json};
use std::fmt::Write as _;

const MAX_CHARS: usize = 1024;
const DEFAULT_LIMIT: u32 = 20;
/// What kind of fact a model states; the kinds of other clients are found all the same.
const FACT_TYPE: &str = "fact";
/// So many other values of the same relation are told of.
const OTHERS: u32 = 5;

/// States a fact, and says what else is stated of the same.
pub(super) async fn remember(server: &McpServer, arguments: &Value) -> Outcome {
    let takes = r#"remember_fact takes {"subject": "Alice", "predicate": "works_at", "object": "Acme", "confidence": 1}; confidence (0 to 1) is optional."#;
    let arguments = read(arguments, &["subject", "predicate", "object", "confidence", "for_project"], takes)?;
    let (subject, predicate) =
        (arguments.text("subject", MAX_CHARS)?, arguments.text("predicate", MAX_CHARS)?);
    let object = arguments.text("object", MAX_CHARS)?;
    let layer = if for_project(server, &arguments)? { "project" } else { "user" };
    let body = json!({
        "layer": layer,
        "identifiers": server.bound.identifiers(),
        "factType": FACT_TYPE,
        "subject": subject,
        "predicate": predicate,
        "object": object,
        "confidence": share(&arguments, "confidence")?.unwrap_or(1.0),
    });
    let caller = server.memories_caller();
    let reply = server.services.memories.add_fact(&caller, &body, None).await.map_err(told)?;
    let id = reply.body.pointer("/fact/id").and_then(Value::as_str).unwrap_or_default();
    let mut said = format!("{} [{id}]", if reply.created { "remembered" } else { "already remembered" });
    let same = json!({"subject": subject, "predicate": predicate, "limit": OTHERS + 1});
    // The fact is stated already: that the others could not be looked for is no reason to have it stated again.
    let others = facts(server, same).await.unwrap_or_default();
    for memory in others.iter().filter(|memory| memory.id.to_string() != id) {
        // Writing to a `String` cannot fail.
        let _ = write!(said, "\nalso stated, forget it if it is no longer true: {}", line(memory));
    }
    Ok(said)
}

/// Lists facts.
pub(super) async fn query(server: &McpServer, arguments: &Value) -> Outcome {
    let takes = r#"query_facts takes {"subject": "Alice", "predicate": "works_at", "object": "Acme", "limit": 20}; all are optional."#;
    let arguments = read(arguments, &["subject", "predicate", "object", "limit"], takes)?;
    let limit = arguments.number(&["limit"], 1, 100)?.unwrap_or(DEFAULT_LIMIT);
    let mut body = json!({"limit": limit});
    for name in ["subject", "predicate", "object"] {
        if let Some(text) = arguments.optional_text(name, MAX_CHARS)? {
            body[name] = text.into();
        }
    }
    let found = facts(server, body).await?;
    if found.is_empty() {
        return Ok("no such facts; they are compared exactly, recall also finds what is similar".to_owned());
    }
    let more = if found.len() as u32 == limit { "\n(there may be more: raise limit)" } else { "" };
    Ok(found.iter().map(line).collect::<Vec<_>>().join("\n") + more)
}

async fn facts(server: &McpServer, mut body: Value) -> Result<Vec<Memory>, ToolFailure> {
    body["layers"] = server.bound.layers();
    body["identifiers"] = server.bound.identifiers();
    let (memories, caller) = (&server.services.memories, server.memories_caller());
    let query = FactQuery::read(&body, memories.rules(), &caller).map_err(told)?;
    Ok(memories.facts(&caller, query).await.map_err(told)?.memories)
}

fn line(memory: &Memory) -> String {
    let Some(Fact { subject, predicate, object, confidence, .. }) = &memory.fact else {
        return memory.content.clone();
    };
    let sure = if *confidence < 1.0 { format!(" ({confidence})") } else { String::new() };
    format!("{subject} · {predicate} · {object}{sure} [{}]", memory.id)
}
