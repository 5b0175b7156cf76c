//! What a new entry must be to be stored.

use super::limits::MAX_TTL_SECONDS;
use super::members::{Members, kind};
use super::{
    AccessPolicy, Author, Code, Fact, Identifiers, Kind, Layer, Lineage, Memory, MemoryCaller, MemoryId,
    Rules, ScopeKey, State, metadata,
};
use crate::{Error, Result, Timestamp};
use serde_json::{Map, Value};

/// An entry that may be stored.
#[derive(Debug, Clone, PartialEq)]
pub struct NewMemory {
    /// Whose it is.
    pub scope: ScopeKey,
    /// All identifiers of the request, also those the scope does not need.
    pub identifiers: Identifiers,
    /// How it is kept.
    pub kind: Kind,
    /// Byte for byte as it was given, or what a fact says.
    pub content: String,
    /// Checked and within its limit.
    pub metadata: Map<String, Value>,
    /// How long it lives.
    pub ttl_seconds: Option<i64>,
    /// Episodic only: when it happened, if the request says.
    pub occurred_at: Option<Timestamp>,
    /// Who of those who have the scope may see it.
    pub policy: AccessPolicy,
    /// Procedural only.
    pub fact: Option<Fact>,
    /// Who makes it.
    pub author: Author,
}

impl NewMemory {
    /// Reads the body of an add, in the contract's order: types and ranges, layer, kind, identifiers, rights, lengths.
    pub fn read(body: &Value, rules: &Rules, caller: &MemoryCaller) -> Result<Self> {
        let members = Members::body(body)?;
        if members.get("embedding").is_some() {
            return Err(members.refuse("embedding", "is made by the server and cannot be given"));
        }
        let content = members.spoken("content")?;
        let identifiers = Identifiers::read(members.get("identifiers"))?;
        let change = metadata::read(members)?;
        let ttl = members.integer("ttlSeconds", 1..=MAX_TTL_SECONDS)?;
        let occurred_at = members.instant("occurredAt")?;
        let policy = AccessPolicy::read(members)?;
        let fact = members.object("fact", "fact.")?.map(Fact::read).transpose()?;
        let content = content.map(str::to_owned).or_else(|| fact.as_ref().map(Fact::render));
        let content = members.required("content", Ok(content))?;

        let layer = rules.layer(members.get("layer"))?;
        let kind = kind(members.get("kind"), layer)?;
        if occurred_at.is_some() && kind != Kind::Episodic {
            return Err(members.refuse("occurredAt", "belongs to entries of kind episodic only"));
        }
        match (&fact, kind == Kind::Procedural) {
            (None, true) => return Err(members.refuse("fact", "is required of entries of kind procedural")),
            (Some(_), false) => {
                return Err(members.refuse("fact", "belongs to entries of kind procedural only"));
            }
            _ => {}
        }

        let draft =
            MemoryDraft { identifiers, kind, ttl, occurred_at, policy, fact, content, metadata: change };
        draft.settle(layer, rules, caller)
    }

    /// The entry, made now; without its embedding.
    pub fn into_memory(self, id: MemoryId, now: Timestamp) -> Memory {
        let episodic = self.kind == Kind::Episodic;
        Memory {
            id,
            scope: self.scope,
            kind: self.kind,
            origin_kind: None,
            content: self.content,
            metadata: self.metadata,
            state: if self.kind == Kind::Archival { State::Archived } else { State::Active },
            policy: self.policy,
            created_by: self.author,
            created_at: now,
            updated_at: now,
            occurred_at: self.occurred_at.or(episodic.then_some(now)),
            expires_at: self.ttl_seconds.map(|ttl| expiry(now, ttl)),
            ttl_seconds: self.ttl_seconds,
            version: 1,
            anchor: now,
            fact: self.fact,
            lineage: Lineage::default(),
            access_count: 0,
            last_accessed_at: None,
            embedding: None,
        }
    }
}

/// A body of the right types, before its scope is known.
pub(super) struct MemoryDraft {
    pub identifiers: Identifiers,
    pub kind: Kind,
    pub ttl: Option<i64>,
    pub occurred_at: Option<Timestamp>,
    pub policy: Option<AccessPolicy>,
    pub fact: Option<Fact>,
    pub content: String,
    pub metadata: Map<String, Value>,
}

impl MemoryDraft {
    /// The second half of the checks: identifiers, rights, lengths.
    pub(super) fn settle(self, layer: Layer, rules: &Rules, caller: &MemoryCaller) -> Result<NewMemory> {
        let scope = caller.writable_scope(&self.identifiers, layer)?;
        check_content(&self.content, rules)?;
        let metadata = metadata::merge(&Map::new(), &self.metadata);
        metadata::check_size(&metadata, rules.limits.metadata_bytes)?;
        Ok(NewMemory {
            scope,
            author: caller.author(&self.identifiers),
            identifiers: self.identifiers,
            kind: self.kind,
            content: self.content,
            metadata,
            ttl_seconds: self.ttl.or(rules.default_ttl(self.kind)),
            occurred_at: self.occurred_at,
            policy: self.policy.unwrap_or(AccessPolicy::default_in(layer)),
            fact: self.fact,
        })
    }
}

/// Refuses content that is too long.
pub(super) fn check_content(content: &str, rules: &Rules) -> Result<()> {
    check_length(Code::ContentTooLong, content, rules.limits.content_length)
}

/// Refuses a text of too many characters.
pub(super) fn check_length(code: Code, text: &str, max: usize) -> Result<()> {
    // No text has more characters than bytes, and most are short enough.
    let actual = if text.len() <= max { 0 } else { text.chars().count() };
    if actual > max { Err(Error::too_long(code, max, actual)) } else { Ok(()) }
}

/// When something expires that lives so many seconds from an instant.
pub(super) fn expiry(from: Timestamp, ttl_seconds: i64) -> Timestamp {
    from.saturating_add_micros(ttl_seconds.saturating_mul(1_000_000))
}

#[cfg(test)]
mod tests;
