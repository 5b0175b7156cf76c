//! What a change asks of an entry, and the entry it makes of it.

use super::add::{check_content, check_text, check_ttl, expiry};
use super::limits::MAX_TTL_SECONDS;
use super::members::Members;
use super::{AccessPolicy, Code, GivenMetadata, Kind, Memory, Precondition, Rules, State, metadata};
use crate::{Error, Result, Timestamp};
use serde_json::Value;

/// What never changes, or changes in other ways.
const FIXED: [&str; 6] = ["layer", "kind", "identifiers", "id", "createdAt", "embedding"];

/// A change to an entry.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Change {
    /// The new text.
    pub content: Option<String>,
    /// Keys to replace, or with `null` to remove.
    pub metadata: Option<GivenMetadata>,
    /// The new time to live; `Some(None)` removes it.
    pub ttl: Option<Option<i64>>,
    /// The new policy.
    pub policy: Option<AccessPolicy>,
    /// The version it is for.
    pub precondition: Precondition,
}

/// An entry after a change.
#[derive(Debug, Clone, PartialEq)]
pub struct Applied {
    /// The next version; without an embedding where the content changed.
    pub memory: Memory,
    /// Whether the content is another, so that it is to be embedded again.
    pub content_changed: bool,
}

impl Change {
    /// Reads the body of a `PATCH` with its `If-Match`.
    pub fn read(body: &Value, if_match: Option<&str>, rules: &Rules) -> Result<Self> {
        let members = Members::body(body)?;
        refuse_fixed(members)?;
        let content = members.spoken("content")?;
        let metadata = members.get("metadata").map(|_| GivenMetadata::read(members)).transpose()?;
        let ttl = match members.raw("ttlSeconds") {
            None => None,
            Some(_) => Some(members.integer("ttlSeconds", 1..=MAX_TTL_SECONDS)?),
        };
        let policy = AccessPolicy::read(members)?;
        let precondition = precondition(members, if_match)?;
        let change = Self { content: content.map(str::to_owned), metadata, ttl, policy, precondition };
        change.check(rules)?;
        Ok(change)
    }

    /// Refuses what can be done to no entry.
    pub fn check(&self, rules: &Rules) -> Result<()> {
        let Self { content, metadata, ttl, policy, .. } = self;
        if content.is_none() && metadata.is_none() && ttl.is_none() && policy.is_none() {
            let message = "a change needs at least one of content, metadata, ttlSeconds, accessPolicy";
            return Err(Error::new(Code::InvalidRequest, message));
        }
        check_ttl(ttl.flatten())?;
        let Some(content) = content else { return Ok(()) };
        check_text("content", content)?;
        check_content(content, rules)
    }

    /// The next version of an entry.
    pub fn apply(&self, memory: &Memory, now: Timestamp, rules: &Rules) -> Result<Applied> {
        if self.content.is_some() && memory.fact.is_some() {
            return Err(Error::field("content", "of a fact is changed by PATCH /v1/facts/{id}"));
        }
        if self.ttl == Some(None) && memory.kind == Kind::Working {
            return Err(Error::field("ttlSeconds", "cannot be removed from a working memory"));
        }
        check_changeable(memory, &self.precondition)?;
        let mut next = memory.clone();
        if let Some(change) = &self.metadata {
            next.metadata = change.merged_into(&memory.metadata);
            metadata::check_size(&next.metadata, rules.limits.metadata_bytes)?;
        }
        if let Some(policy) = &self.policy {
            next.policy.clone_from(policy);
        }
        if let Some(ttl) = self.ttl {
            next.ttl_seconds = ttl;
            next.expires_at = None;
        }
        Ok(next.advanced(self.content.as_deref(), now))
    }
}

impl Memory {
    /// The version after this one, with this content if it is another: the anchor of its fading is now, and its expiry
    /// as far away as ever.
    pub(super) fn advanced(mut self, content: Option<&str>, now: Timestamp) -> Applied {
        self.touch(now);
        if let Some(ttl) = self.ttl_seconds {
            self.expires_at = Some(expiry(self.updated_at, ttl));
        }
        let content = content.filter(|content| *content != self.content);
        let content_changed = content.is_some();
        if let Some(content) = content {
            self.content = content.to_owned();
            self.embedding = None;
            self.anchor = self.updated_at;
            if self.state != State::Archived {
                self.state = State::Active;
            }
        }
        Applied { memory: self, content_changed }
    }
}

/// Refuses to change what mirrors an event, or is at another version than expected.
pub(super) fn check_changeable(memory: &Memory, precondition: &Precondition) -> Result<()> {
    if memory.lineage.mirror_of.is_some() {
        let message = "this memory mirrors an event and cannot be changed here";
        return Err(Error::new(Code::InvalidState, message).with("reason", "mirrored"));
    }
    precondition.check(memory)
}

/// Refuses members that no change may name.
pub(super) fn refuse_fixed(members: Members<'_>) -> Result<()> {
    match FIXED.into_iter().find(|name| members.get(name).is_some()) {
        Some(name) => Err(members.refuse(name, "cannot be changed; to move a memory, promote it")),
        None => Ok(()),
    }
}

/// What `If-Match` and the member `version` expect.
pub(super) fn precondition(members: Members<'_>, if_match: Option<&str>) -> Result<Precondition> {
    let version = members.integer("version", 1..=i64::MAX)?;
    Precondition::if_match(if_match).and_version(version)
}

#[cfg(test)]
mod tests;
