//! Entries as the protocol shows them.

use super::decode::NAMED;
use memtrove_core::memories::openspec::{KnowledgeSource, Type};
use memtrove_core::memories::{Identifier, Memory};
use memtrove_service::memories::{Hit, Metric};
use memtrove_wire::openspec as wire;
use serde_json::{Map, Value, json};

/// What an answer shows of entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Show {
    /// Whether `content` is there.
    pub content: bool,
    /// Whether `embedding` is there, where an entry has one.
    pub embedding: bool,
}

pub(super) fn entry(memory: &Memory, show: Show) -> wire::KnowledgeEntry {
    let embedding = memory.embedding.as_ref().filter(|_| show.embedding);
    wire::KnowledgeEntry {
        id: memory.id.0,
        content: show.content.then(|| memory.content.clone()),
        embedding: embedding.map(|embedding| embedding.vector.clone()),
        metadata: metadata(memory, true),
        source: source(memory),
        access_policy: memory.policy.policy.as_str().to_owned(),
        created_at: memory.created_at.to_string(),
        updated_at: memory.updated_at.to_string(),
        version: memory.version,
        layer: layer(memory),
    }
}

/// An entry with its text.
pub(super) fn text_entry(memory: &Memory) -> wire::KnowledgeEntry {
    entry(memory, Show { content: true, embedding: false })
}

/// A result; `metric` measures its distance, where it has one.
pub(super) fn result(hit: &Hit, show: Show, metric: Option<Metric>) -> wire::KnowledgeResult {
    let metric = metric.filter(|_| hit.memory.embedding.is_some());
    wire::KnowledgeResult {
        entry: entry(&hit.memory, show),
        score: hit.matched.score(),
        distance: metric.map(|metric| metric.distance(hit.matched.cosine)),
    }
}

pub(super) fn layer(memory: &Memory) -> wire::KnowledgeLayer {
    let scope = &memory.scope;
    let id = |identifier| scope.get(identifier).map(str::to_owned);
    wire::KnowledgeLayer {
        layer_type: Some(Type::of(memory).as_str().to_owned()),
        scope: Some(scope.layer().as_str().to_owned()),
        identifiers: wire::KnowledgeIdentifiers {
            agent_id: id(Identifier::Agent),
            user_id: id(Identifier::User),
            session_id: id(Identifier::Session),
            project_id: id(Identifier::Project),
            team_id: id(Identifier::Team),
            org_id: id(Identifier::Org),
            company_id: id(Identifier::Company),
        },
    }
}

/// What is known about an entry, with the caller's own members or without.
pub(super) fn metadata(memory: &Memory, with_custom: bool) -> wire::KnowledgeMetadata {
    let stored = &memory.metadata;
    let text = |name: &str| stored.get(name).and_then(Value::as_str).map(str::to_owned);
    let number = |name: &str| stored.get(name).and_then(Value::as_number).cloned();
    let tags = stored.get("tags").and_then(Value::as_array);
    wire::KnowledgeMetadata {
        title: text("title"),
        description: text("description"),
        tags: tags.map(|tags| tags.iter().filter_map(Value::as_str).map(str::to_owned).collect()),
        language: text("language"),
        author: text("author"),
        confidence: number("confidence"),
        importance: number("importance"),
        custom: with_custom.then(|| custom(memory)).filter(|custom| !custom.is_empty()),
    }
}

/// The members that have no place of their own, and the fact that an entry states.
fn custom(memory: &Memory) -> Map<String, Value> {
    let own = |key: &str| key != "source" && !NAMED.contains(&key);
    let mut custom: Map<String, Value> = (memory.metadata.iter())
        .filter(|(key, _)| own(key))
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect();
    if let Some(fact) = &memory.fact {
        let fact = json!({
            "fact_type": fact.fact_type,
            "subject": fact.subject,
            "predicate": fact.predicate,
            "object": fact.object,
            "confidence": fact.confidence,
        });
        custom.insert("fact".to_owned(), fact);
    }
    custom
}

pub(super) fn source(memory: &Memory) -> wire::KnowledgeSource {
    let KnowledgeSource { source_type, identifier, further } = KnowledgeSource::of(memory);
    wire::KnowledgeSource { source_type: source_type.to_owned(), identifier, further }
}

#[cfg(test)]
mod tests;
