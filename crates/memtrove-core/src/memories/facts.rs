//! Facts: procedural memories with a subject, a predicate and an object.

use super::add::{check_content, check_text};
use super::change::{Applied, check_changeable};
use super::limits::MAX_FACT_FIELD_CHARS;
use super::{
    AccessPolicy, AddMemory, Code, Fact, GivenMetadata, Identifiers, Kind, Layer, Memory, MemoryCaller,
    NewMemory, Precondition, Rules, metadata,
};
use crate::{Error, Result, Timestamp};
use sha2::{Digest, Sha256};

/// What a fact is unique by in its scope: the digest of everything it states but its confidence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FactKey(pub [u8; 32]);

impl Fact {
    /// Refuses parts that are blank or endless; `within` is where they stand in the request.
    pub fn check(&self, within: &str) -> Result<()> {
        let Self { fact_type, subject, predicate, object, confidence } = self;
        let parts =
            [("factType", fact_type), ("subject", subject), ("predicate", predicate), ("object", object)];
        for (name, part) in parts {
            check_text(&format!("{within}{name}"), part)?;
            if part.chars().count() > MAX_FACT_FIELD_CHARS {
                let problem = format!("must have 1 to {MAX_FACT_FIELD_CHARS} characters");
                return Err(Error::field(format!("{within}{name}"), problem));
            }
        }
        if (0.0..=1.0).contains(confidence) {
            return Ok(());
        }
        Err(Error::field(format!("{within}confidence"), "must be from 0 to 1"))
    }

    /// What it says, as a sentence.
    pub fn render(&self) -> String {
        format!("{} {} {}", self.subject, self.predicate.replace('_', " "), self.object)
    }

    /// See [`FactKey`].
    pub fn key(&self) -> FactKey {
        let mut hasher = Sha256::new();
        for field in [&self.fact_type, &self.subject, &self.predicate, &self.object] {
            hasher.update((field.len() as u64).to_be_bytes());
            hasher.update(field);
        }
        FactKey(hasher.finalize().into())
    }
}

/// A fact to be stated, as somebody asks for it.
#[derive(Debug, Clone, PartialEq)]
pub struct AddFact {
    /// Where it goes.
    pub layer: Layer,
    /// What the scope is named by, and maybe more.
    pub identifiers: Identifiers,
    /// What it states.
    pub fact: Fact,
    /// What it says; what it states unless said.
    pub content: Option<String>,
    /// What is known about it.
    pub metadata: GivenMetadata,
    /// How long it lives.
    pub ttl_seconds: Option<i64>,
    /// Who of those who have the scope may see it; the layer's default unless said.
    pub policy: Option<AccessPolicy>,
}

impl AddFact {
    /// A fact in a scope, with the defaults of its layer.
    pub fn new(layer: Layer, identifiers: Identifiers, fact: Fact) -> Self {
        let metadata = GivenMetadata::default();
        Self { layer, identifiers, fact, content: None, metadata, ttl_seconds: None, policy: None }
    }

    /// The fact that may be stored, in the order of [`AddMemory::check`].
    pub fn check(self, rules: &Rules, caller: &MemoryCaller) -> Result<NewFact> {
        let Self { layer, identifiers, fact, content, metadata, ttl_seconds: ttl, policy } = self;
        fact.check("")?;
        let add = AddMemory {
            kind: Some(Kind::Procedural),
            metadata: metadata.clone(),
            ttl_seconds: ttl,
            policy: policy.clone(),
            fact: Some(fact.clone()),
            ..AddMemory::new(layer, identifiers, content.unwrap_or_else(|| fact.render()))
        };
        Ok(NewFact { memory: add.check(rules, caller)?, fact, metadata, ttl, policy })
    }
}

/// A fact that may be stored, or replace the one that states the same.
#[derive(Debug, Clone, PartialEq)]
pub struct NewFact {
    /// What is stored if there is none yet.
    pub memory: NewMemory,
    /// What it states.
    pub fact: Fact,
    /// The metadata as given, to be merged into what there is.
    metadata: GivenMetadata,
    /// Given, not assumed.
    ttl: Option<i64>,
    /// Given, not assumed.
    policy: Option<AccessPolicy>,
}

impl NewFact {
    /// A procedural entry that was read as one; `None` for any other.
    pub fn of_memory(memory: NewMemory) -> Option<Self> {
        let fact = memory.fact.clone()?;
        let (ttl, policy) = (memory.ttl_seconds, Some(memory.policy.clone()));
        let metadata = GivenMetadata(memory.metadata.clone());
        Some(Self { memory, fact, metadata, ttl, policy })
    }

    /// The next version of the entry that states the same already: confidence and content replaced, metadata merged.
    pub fn apply(&self, memory: &Memory, now: Timestamp, rules: &Rules) -> Result<Applied> {
        let mut next = memory.clone();
        next.fact = Some(self.fact.clone());
        next.metadata = self.metadata.merged_into(&memory.metadata);
        metadata::check_size(&next.metadata, rules.limits.metadata_bytes)?;
        if let Some(policy) = &self.policy {
            next.policy.clone_from(policy);
        }
        next.ttl_seconds = self.ttl.or(memory.ttl_seconds);
        Ok(next.advanced(Some(&self.memory.content), now))
    }
}

/// A change to a fact.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct FactChange {
    /// The new type.
    pub fact_type: Option<String>,
    /// The new subject.
    pub subject: Option<String>,
    /// The new predicate.
    pub predicate: Option<String>,
    /// The new object.
    pub object: Option<String>,
    /// The new confidence.
    pub confidence: Option<f64>,
    /// Keys to replace, or with `null` to remove.
    pub metadata: Option<GivenMetadata>,
    /// The new text.
    pub content: Option<String>,
    /// The version it is for.
    pub precondition: Precondition,
}

impl FactChange {
    /// Refuses what can be done to no fact.
    pub fn check(&self, rules: &Rules) -> Result<()> {
        let nothing = Self { precondition: self.precondition.clone(), ..Self::default() };
        if *self == nothing {
            let message = "a change needs at least one of factType, subject, predicate, object, confidence, \
                           metadata, content";
            return Err(Error::new(Code::InvalidRequest, message));
        }
        let Some(content) = &self.content else { return Ok(()) };
        check_text("content", content)?;
        check_content(content, rules)
    }

    /// The next version of a fact. Content that only said what the fact stated follows it; content of the caller's own
    /// stays.
    pub fn apply(&self, memory: &Memory, now: Timestamp, rules: &Rules) -> Result<Applied> {
        let Some(old) = &memory.fact else { return Err(Error::no_such_memory()) };
        check_changeable(memory, &self.precondition)?;
        let changed = |new: &Option<String>, old: &String| new.as_ref().unwrap_or(old).clone();
        let fact = Fact {
            fact_type: changed(&self.fact_type, &old.fact_type),
            subject: changed(&self.subject, &old.subject),
            predicate: changed(&self.predicate, &old.predicate),
            object: changed(&self.object, &old.object),
            confidence: self.confidence.unwrap_or(old.confidence),
        };
        fact.check("")?;
        let content = match &self.content {
            Some(content) => Some(content.clone()),
            None if memory.content == old.render() => Some(fact.render()),
            None => None,
        };
        let mut next = memory.clone();
        next.fact = Some(fact);
        if let Some(change) = &self.metadata {
            next.metadata = change.merged_into(&memory.metadata);
            metadata::check_size(&next.metadata, rules.limits.metadata_bytes)?;
        }
        Ok(next.advanced(content.as_deref(), now))
    }
}

#[cfg(test)]
mod tests;
