//! `remember_fact`, `query_facts`.

use super::{Outcome, cut, fitting, for_project, indented, internal, read, share};
use crate::mcp::McpServer;
use crate::mcp::failure::to_failure;
use memtrove_core::memories::{AddFact, Fact, FactPattern, Layer, Memory, MemoryCaller, QueryFacts};
use memtrove_core::parse_uuid;
use memtrove_service::memories::{AddedFact, Listed};
use memtrove_service::quota::CallKind;
use memtrove_wire::tools::ToolFailure;
use serde_json::Value;
use std::fmt::Write as _;

const MAX_CHARS: usize = 1024;
const DEFAULT_LIMIT: u32 = 20;
const MAX_LIMIT: u32 = 100;
/// So much is shown of each part of one of several facts.
const PART_CHARS: usize = 150;
/// What stands between the parts of a fact.
const BETWEEN: &str = " · ";
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
    let confidence = share(&arguments, "confidence")?;
    let layer = if for_project(server, &arguments)? { Layer::Project } else { Layer::User };

    let caller = server.memories_caller();
    let caller = &*server.charge_once(&caller, CallKind::Write).await?;
    let same = FactPattern {
        fact_type: Some(FACT_TYPE.to_owned()),
        object: Some(object.clone()),
        ..relation(&subject, &predicate)
    };
    let stated = facts(server, caller, vec![layer], same, None).await?.memories.into_iter().next();
    // Stating a fact replaces its confidence, so one that is stated already is left alone unless that is to change, or its time
    // would run out.
    let is_new = |fact: &Fact| confidence.is_some_and(|confidence| confidence != fact.confidence);
    let (what, id) = match stated {
        Some(Memory { id, fact: Some(fact), ttl_seconds: None, .. }) if !is_new(&fact) => {
            ("already remembered", id)
        }
        stated => {
            let fact = Fact {
                fact_type: FACT_TYPE.to_owned(),
                subject: subject.clone(),
                predicate: predicate.clone(),
                object,
                confidence: confidence.unwrap_or(1.0),
            };
            let add = AddFact::new(layer, server.bound.identifiers().map_err(to_failure)?, fact);
            let added = server.services.memories.add_fact(caller, add, None).await.map_err(to_failure)?;
            let Some(AddedFact { memory, created }) = added.now() else {
                return Err(internal("a fact without a key was answered before"));
            };
            let what = match stated {
                _ if created => "remembered",
                Some(_) => "updated",
                None => "already remembered",
            };
            (what, memory.id)
        }
    };

    let mut said = format!("{what} [{id}]");
    let related = relation(&subject, &predicate);
    // The fact is stated already: that the others could not be looked for is no reason to have it stated again.
    let others = facts(server, caller, server.bound.layers(), related, Some(OTHERS + 1))
        .await
        .map(|found| found.memories);
    for memory in others.unwrap_or_default().iter().filter(|memory| memory.id != id) {
        let other = line(memory, PART_CHARS);
        // Writing to a `String` cannot fail.
        let _ = write!(said, "\nalso stated, forget it if it is no longer true: {other}");
    }
    Ok(said)
}

/// Lists facts.
pub(super) async fn query(server: &McpServer, arguments: &Value) -> Outcome {
    let takes = r#"query_facts takes {"subject": "Alice", "predicate": "works_at", "object": "Acme", "limit": 20}; all are optional."#;
    let arguments = read(arguments, &["subject", "predicate", "object", "limit"], takes)?;
    let limit = arguments.number(&["limit"], 1, MAX_LIMIT)?.unwrap_or(DEFAULT_LIMIT);
    let pattern = FactPattern {
        subject: arguments.optional_text("subject", MAX_CHARS)?,
        predicate: arguments.optional_text("predicate", MAX_CHARS)?,
        object: arguments.optional_text("object", MAX_CHARS)?,
        ..FactPattern::default()
    };
    let caller = server.memories_caller();
    let found = facts(server, &caller, server.bound.layers(), pattern, Some(limit)).await?;
    if found.memories.is_empty() {
        return Ok("no such facts; they are compared exactly, recall also finds what is similar".to_owned());
    }
    let chars = if found.memories.len() == 1 { usize::MAX } else { PART_CHARS };
    let mut lines: Vec<String> = found.memories.iter().map(|memory| line(memory, chars)).collect();
    let left_out = fitting(&mut lines);
    let missing = found.total - lines.len();
    if missing > 0 {
        let advice = if left_out == 0 && limit < MAX_LIMIT {
            "raise limit, or narrow by subject or predicate"
        } else {
            "narrow by subject or predicate"
        };
        lines.push(format!("({missing} more, not shown: {advice})"));
    }
    Ok(lines.join("\n"))
}

/// The facts that are shown like this, with or without what stands behind them.
pub(super) async fn shown_as(
    server: &McpServer,
    caller: &MemoryCaller,
    text: &str,
) -> Result<Vec<Memory>, ToolFailure> {
    let text = without(text, '[', ']', |id| parse_uuid(id).is_some());
    let surely = without(text, '(', ')', |number| number.parse::<f64>().is_ok());
    let mut forms = vec![text, surely];
    forms.dedup();
    for form in forms {
        let parts: Vec<&str> = form.splitn(3, BETWEEN).collect();
        let [subject, predicate, object] = parts[..] else { continue };
        if parts.iter().any(|part| part.trim().is_empty() || part.chars().count() > MAX_CHARS) {
            continue;
        }
        let pattern = FactPattern { object: Some(object.to_owned()), ..relation(subject, predicate) };
        let found = facts(server, caller, server.bound.layers(), pattern, Some(MAX_LIMIT)).await?.memories;
        if !found.is_empty() {
            return Ok(found);
        }
    }
    Ok(Vec::new())
}

/// A text without the brackets at its end, if what is in them is of this kind.
fn without(text: &str, opens: char, closes: char, is_such: impl Fn(&str) -> bool) -> &str {
    let text = text.trim();
    match text.strip_suffix(closes).and_then(|rest| rest.rsplit_once(opens)) {
        Some((before, inner)) if is_such(inner) => before.trim_end(),
        _ => text,
    }
}

/// Everything that is stated of a relation.
fn relation(subject: &str, predicate: &str) -> FactPattern {
    FactPattern {
        subject: Some(subject.to_owned()),
        predicate: Some(predicate.to_owned()),
        ..FactPattern::default()
    }
}

async fn facts(
    server: &McpServer,
    caller: &MemoryCaller,
    layers: Vec<Layer>,
    pattern: FactPattern,
    limit: Option<u32>,
) -> Result<Listed, ToolFailure> {
    let query = QueryFacts {
        layers: Some(layers),
        identifiers: server.bound.identifiers().map_err(to_failure)?,
        pattern,
        limit: limit.map(|limit| limit as usize),
        ..QueryFacts::default()
    };
    server.services.memories.facts(caller, query).await.map_err(to_failure)
}

fn line(memory: &Memory, chars: usize) -> String {
    let Some(Fact { subject, predicate, object, confidence, .. }) = &memory.fact else {
        return cut(&indented(&memory.content), chars);
    };
    let parts = [subject, predicate, object].map(|part| cut(&indented(part), chars));
    let sure = if *confidence < 1.0 { format!(" ({confidence})") } else { String::new() };
    format!("{}{sure} [{}]", parts.join(BETWEEN), memory.id)
}
