//! What a change asks of an entry, and the entry it makes of it.

use super::add::{check_content, check_text, check_ttl, expiry};
use super::{AccessPolicy, Code, GivenMetadata, Kind, Memory, Precondition, Rules, State, metadata};
use crate::{Error, Result, Timestamp};

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

#[cfg(test)]
mod tests;
