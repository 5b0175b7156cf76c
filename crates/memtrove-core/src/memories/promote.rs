//! Promotion of what matters: from a session to its user, or, when asked for, to shared layers.

mod redaction;

pub use redaction::redact;

use super::{
    AccessPolicy, Author, Kind, Layer, Lineage, Memory, MemoryId, Rules, ScopeKey, State, Viewer, mem0,
};
use crate::Timestamp;
use serde_json::{Map, Value};

/// How often an entry has to be found to count as much as it can.
const OFTEN: i64 = 10;

/// Why an entry is never promoted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PromotionBlock {
    /// Its metadata say that it is sensitive or private.
    Sensitive,
}

impl PromotionBlock {
    /// The contract's word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Sensitive => "sensitive",
        }
    }
}

/// What the end of its session makes of an entry.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum PromotionDecision {
    /// It is copied to the user layer.
    Promote {
        /// How much it matters.
        score: f64,
    },
    /// It may not be copied.
    Blocked(PromotionBlock),
    /// It stays: it matters too little, was copied before, is put away, or lives for one operation only.
    Stay,
}

/// How much an entry matters, 0..1: what its metadata say, else how often it was found and how fresh it is.
pub fn score(memory: &Memory, relevance: f64) -> f64 {
    let found = memory.access_count.clamp(0, OFTEN) as f64 / OFTEN as f64;
    memory.number("importance").unwrap_or(0.7 * found + 0.3 * relevance)
}

/// Why an entry may not be promoted, if it may not.
pub fn block(memory: &Memory) -> Option<PromotionBlock> {
    let says = |key| memory.metadata.get(key).and_then(Value::as_bool) == Some(true);
    (says("sensitive") || says("private")).then_some(PromotionBlock::Sensitive)
}

/// Decides about one entry at the end of its session.
pub fn decide(memory: &Memory, relevance: f64, threshold: f64) -> PromotionDecision {
    let is_done = memory.lineage.promoted_to.is_some();
    if is_done || memory.kind == Kind::Working || memory.state == State::Archived {
        return PromotionDecision::Stay;
    }
    if let Some(block) = block(memory) {
        return PromotionDecision::Blocked(block);
    }
    let score = score(memory, relevance);
    if score >= threshold { PromotionDecision::Promote { score } } else { PromotionDecision::Stay }
}

/// Whether an entry that expires in a session that nobody ended is copied to the user layer: what the end of the session would
/// copy, of what the user may see. What its end left behind stays behind, unless it was changed since. What was given a
/// lifetime of its own, or a last day by mem0, has lived as long as was asked.
pub fn outlives_session(memory: &Memory, relevance: f64, rules: &Rules) -> bool {
    let user = memory.scope.user().map(str::to_owned);
    let viewer = Viewer { user, ..Viewer::default() };
    rules.session.promote_important
        && memory.scope.layer() == Layer::Session
        && memory.ttl_seconds == Some(rules.session_ttl_seconds)
        && !mem0::has_last_day(memory)
        && memory.lineage.passed_over != Some(memory.version)
        && viewer.sees(&memory.policy, &memory.created_by)
        && matches!(
            decide(memory, relevance, rules.session.promotion_threshold),
            PromotionDecision::Promote { .. }
        )
}

/// The copy of an entry in another scope, with the kind, the policy and the lifetime of entries there. What identifies
/// people does not go along into a shared layer. Where that changes the text, the copy has no embedding yet.
pub fn copy(source: &Memory, target: &ScopeKey, id: MemoryId, author: Author, now: Timestamp) -> Memory {
    let shared = !target.layer().is_personal();
    let content = if shared { redact(&source.content).into_owned() } else { source.content.clone() };
    let embedding = source.embedding.clone().filter(|_| content == source.content);
    Memory {
        id,
        scope: target.clone(),
        kind: Kind::default_in(target.layer()),
        origin_kind: None,
        content,
        metadata: if shared { redacted(&source.metadata) } else { source.metadata.clone() },
        state: if embedding.is_some() { State::Active } else { State::Created },
        policy: AccessPolicy::default_in(target.layer()),
        created_by: author,
        created_at: now,
        updated_at: now,
        occurred_at: source.occurred_at,
        expires_at: None,
        ttl_seconds: None,
        version: 1,
        anchor: now,
        fact: None,
        lineage: Lineage { promoted_from: Some(source.id), ..Lineage::default() },
        access_count: 0,
        last_accessed_at: None,
        embedding,
    }
}

/// Metadata without what identifies people. What names a source is left as it is, or it would name none.
fn redacted(metadata: &Map<String, Value>) -> Map<String, Value> {
    let member = |(key, value): (&String, &Value)| {
        let value = match key.as_str() {
            "source" | "knowledgePointer" => value.clone(),
            _ => redacted_value(value),
        };
        (key.clone(), value)
    };
    metadata.iter().map(member).collect()
}

fn redacted_value(value: &Value) -> Value {
    match value {
        Value::String(text) => Value::String(redact(text).into_owned()),
        Value::Array(items) => items.iter().map(redacted_value).collect(),
        Value::Object(members) => {
            members.iter().map(|(key, value)| (key.clone(), redacted_value(value))).collect()
        }
        scalar => scalar.clone(),
    }
}

#[cfg(test)]
mod tests;
