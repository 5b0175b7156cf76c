//! What a new entry must be to be stored.

use super::limits::MAX_TTL_SECONDS;
use super::members::NUL;
use super::{
    AccessPolicy, Author, Code, Fact, GivenMetadata, Identifiers, Kind, Layer, Lineage, Memory, MemoryCaller,
    MemoryId, Rules, ScopeKey, State, metadata,
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
    /// When it happened, if the request says.
    pub occurred_at: Option<Timestamp>,
    /// Who of those who have the scope may see it.
    pub policy: AccessPolicy,
    /// Procedural only.
    pub fact: Option<Fact>,
    /// Who makes it.
    pub author: Author,
}

impl NewMemory {
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

/// An entry to be added, as somebody asks for it.
#[derive(Debug, Clone, PartialEq)]
pub struct AddMemory {
    /// Where it goes.
    pub layer: Layer,
    /// How it is kept; the layer's own kind unless said.
    pub kind: Option<Kind>,
    /// What the scope is named by, and maybe more.
    pub identifiers: Identifiers,
    /// What it says.
    pub content: String,
    /// What is known about it.
    pub metadata: GivenMetadata,
    /// How long it lives, if not as long as its kind does.
    pub ttl_seconds: Option<i64>,
    /// When it happened, if anybody knows.
    pub occurred_at: Option<Timestamp>,
    /// Who of those who have the scope may see it; the layer's default unless said.
    pub policy: Option<AccessPolicy>,
    /// Procedural only: what it states.
    pub fact: Option<Fact>,
}

impl AddMemory {
    /// A text in a scope, with the defaults of its layer.
    pub fn new(layer: Layer, identifiers: Identifiers, content: String) -> Self {
        Self {
            layer,
            kind: None,
            identifiers,
            content,
            metadata: GivenMetadata::default(),
            ttl_seconds: None,
            occurred_at: None,
            policy: None,
            fact: None,
        }
    }

    /// The entry that may be stored, in the contract's order: types and ranges, layer, kind, identifiers, rights, lengths.
    pub fn check(self, rules: &Rules, caller: &MemoryCaller) -> Result<NewMemory> {
        check_text("content", &self.content)?;
        check_ttl(self.ttl_seconds)?;
        self.fact.as_ref().map_or(Ok(()), |fact| fact.check("fact."))?;

        rules.check_layer(self.layer)?;
        let kind = self.kind.unwrap_or(Kind::default_in(self.layer));
        kind.check_layer(self.layer)?;
        match (&self.fact, kind == Kind::Procedural) {
            (None, true) => return Err(Error::field("fact", "is required of entries of kind procedural")),
            (Some(_), false) => {
                return Err(Error::field("fact", "belongs to entries of kind procedural only"));
            }
            _ => {}
        }

        let scope = caller.writable_scope(&self.identifiers, self.layer)?;
        check_content(&self.content, rules)?;
        let metadata = self.metadata.merged_into(&Map::new());
        metadata::check_size(&metadata, rules.limits.metadata_bytes)?;
        Ok(NewMemory {
            scope,
            author: caller.author(&self.identifiers),
            identifiers: self.identifiers,
            kind,
            content: self.content,
            metadata,
            ttl_seconds: self.ttl_seconds.or(rules.default_ttl(kind)),
            occurred_at: self.occurred_at,
            policy: self.policy.unwrap_or(AccessPolicy::default_in(self.layer)),
            fact: self.fact,
        })
    }
}

/// Refuses a text that says nothing, or holds what some stores cannot.
pub(super) fn check_text(field: &str, text: &str) -> Result<()> {
    if text.contains('\0') {
        return Err(Error::field(field, NUL));
    }
    if text.trim().is_empty() { Err(Error::field(field, "must not be blank")) } else { Ok(()) }
}

/// Refuses a time to live that is none, or too long.
pub(super) fn check_ttl(seconds: Option<i64>) -> Result<()> {
    match seconds {
        Some(seconds) if !(1..=MAX_TTL_SECONDS).contains(&seconds) => {
            Err(Error::field("ttlSeconds", format!("must be from 1 to {MAX_TTL_SECONDS}")))
        }
        _ => Ok(()),
    }
}

/// How many of something are wanted: 1 to `max`.
pub(super) fn check_limit(limit: Option<usize>, default: usize, max: usize) -> Result<usize> {
    match limit {
        Some(limit) if !(1..=max).contains(&limit) => {
            Err(Error::field("limit", format!("must be from 1 to {max}")))
        }
        limit => Ok(limit.unwrap_or(default)),
    }
}

/// A part of the whole.
pub(super) fn check_share(field: &str, share: Option<f64>) -> Result<Option<f64>> {
    match share {
        Some(share) if !(0.0..=1.0).contains(&share) => Err(Error::field(field, "must be from 0 to 1")),
        share => Ok(share),
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
