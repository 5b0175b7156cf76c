//! Knowledge pointers: memories that point at a document, and what its changes do to them.

use super::Layer;
use crate::Timestamp;
use crate::files::canonical::{canonical_sha256, sha256_hex};
use crate::files::{FilePath, envelope};
use serde_json::{Map, Value, json};

/// Where a pointer stands among metadata.
pub const KEY: &str = "knowledgePointer";

/// What a `sourceId` begins with that names a document of the files surface.
const FILE: &str = "file:";

/// What kind of document a pointer points at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SourceType {
    /// An architecture decision record.
    Adr,
    /// A policy.
    Policy,
    /// A pattern.
    Pattern,
    /// A specification.
    Spec,
}

impl SourceType {
    /// Every type.
    pub const ALL: [Self; 4] = [Self::Adr, Self::Policy, Self::Pattern, Self::Spec];

    /// The contract's word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Adr => "adr",
            Self::Policy => "policy",
            Self::Pattern => "pattern",
            Self::Spec => "spec",
        }
    }

    /// The type a word stands for, in any letter case.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|source| source.as_str().eq_ignore_ascii_case(word))
    }
}

/// A pointer at a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pointer {
    /// What it points at.
    pub source_type: SourceType,
    /// Which one.
    pub source_id: String,
    /// The version of it that the memory tells of.
    pub content_hash: String,
    /// When that was read.
    pub synced_at: Timestamp,
    /// Where the document belongs.
    pub source_layer: Option<Layer>,
    /// Whether the document is gone.
    pub is_orphaned: bool,
    /// Whether the document says something else by now.
    pub is_stale: bool,
}

impl Pointer {
    /// The pointer among metadata, if there is one.
    pub fn among(metadata: &Map<String, Value>) -> Option<Self> {
        let members = metadata.get(KEY)?.as_object()?;
        let text = |name: &str| members.get(name).and_then(Value::as_str);
        let flag = |name: &str| members.get(name).and_then(Value::as_bool).unwrap_or(false);
        Some(Self {
            source_type: text("sourceType").and_then(SourceType::parse)?,
            source_id: text("sourceId")?.to_owned(),
            content_hash: text("contentHash")?.to_owned(),
            synced_at: text("syncedAt").and_then(Timestamp::parse)?,
            source_layer: text("sourceLayer").and_then(Layer::parse),
            is_orphaned: flag("isOrphaned"),
            is_stale: flag("isStale"),
        })
    }

    /// The path of the document, if it is one of the files surface.
    pub fn file(&self) -> Option<FilePath> {
        self.source_id.strip_prefix(FILE).and_then(|path| FilePath::parse(path).ok())
    }

    /// Whether it tells of the version that goes by these hashes.
    fn tells_of(&self, hashes: &[String]) -> bool {
        let own = self.content_hash.strip_prefix("sha256:").unwrap_or(&self.content_hash);
        hashes.iter().any(|hash| hash.eq_ignore_ascii_case(own))
    }
}

/// What the `sourceId` of a pointer at a document of the files surface is.
pub fn source_id(path: &str) -> String {
    format!("{FILE}{path}")
}

/// The hashes that a version of a document goes by: of the whole envelope, as the audit trail has it; of its `content`; and of
/// the text in it, which a reader of the text can compute. All of them lower-case hex, of canonical JSON or of the
/// text itself.
pub fn hashes(document: &str) -> Vec<String> {
    let Ok(envelope) = envelope::stored(document) else { return Vec::new() };
    let content = envelope.get("content");
    let text = content.and_then(|content| content.get("text")).and_then(Value::as_str);
    let mut hashes: Vec<String> = content.map(canonical_sha256).into_iter().collect();
    hashes.extend(text.map(|text| sha256_hex(text.as_bytes())));
    hashes.push(canonical_sha256(&Value::Object(envelope)));
    hashes
}

/// The change that a document brings to the metadata of a memory that points at it, given the hashes it goes by now, or none
/// when it is gone. `None` if it brings none.
pub fn mark(metadata: &Map<String, Value>, document: Option<&[String]>) -> Option<Map<String, Value>> {
    let pointer = Pointer::among(metadata)?;
    // A document that is gone says nothing about what it said last.
    let is_stale = document.map_or(pointer.is_stale, |hashes| !pointer.tells_of(hashes));
    let is_orphaned = document.is_none();
    if (is_stale, is_orphaned) == (pointer.is_stale, pointer.is_orphaned) {
        return None;
    }
    let mut members = metadata.get(KEY)?.as_object()?.clone();
    for (name, was, is) in
        [("isStale", pointer.is_stale, is_stale), ("isOrphaned", pointer.is_orphaned, is_orphaned)]
    {
        if was != is {
            members.insert(name.to_owned(), json!(is));
        }
    }
    Some(Map::from_iter([(KEY.to_owned(), Value::Object(members))]))
}

#[cfg(test)]
mod tests;
