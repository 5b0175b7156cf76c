//! An entry, as every part of the product knows it.

use super::{AccessPolicy, Author, Kind, ScopeKey};
use crate::files::canonical;
use crate::{Timestamp, parse_uuid};
use serde_json::{Map, Value};
use std::fmt;
use std::sync::Arc;
use uuid::Uuid;

/// The id of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MemoryId(pub Uuid);

/// The byte of an id that tells where to look first, in its random tail, and what it is in ids of working memories.
const HINT_BYTE: usize = 12;
const WORKING_HINT: u8 = 0x57;

impl MemoryId {
    /// The id of a new entry. A working memory's says so, so that it is looked for in one place.
    pub fn new(id: Uuid, kind: Kind) -> Self {
        let mut bytes = id.into_bytes();
        if kind == Kind::Working {
            bytes[HINT_BYTE] = WORKING_HINT;
        }
        Self(Uuid::from_bytes(bytes))
    }

    /// The id that a text names. What is no id names nothing, as an id does that no entry has.
    pub fn named(text: &str) -> Self {
        Self(parse_uuid(text).unwrap_or(Uuid::nil()))
    }

    /// Whether it comes from a text that is no id.
    pub fn names_nothing(self) -> bool {
        self.0.is_nil()
    }

    /// Whether an entry was probably made as a working memory. A hint, not a fact: an entry keeps its id when it moves to
    /// another kind, and one id in 256 looks so by chance.
    pub fn looks_working(self) -> bool {
        self.0.as_bytes()[HINT_BYTE] == WORKING_HINT
    }
}

impl fmt::Display for MemoryId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Where an entry is in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum State {
    /// Stored without an embedding: found by id and in lists, invisible to semantic search.
    Created,
    /// Normal.
    Active,
    /// Faded, but still found.
    Decayed,
    /// Of kind archival; hidden unless asked for.
    Archived,
}

impl State {
    /// Every state.
    pub const ALL: [Self; 4] = [Self::Created, Self::Active, Self::Decayed, Self::Archived];

    /// The contract's word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Created => "created",
            Self::Active => "active",
            Self::Decayed => "decayed",
            Self::Archived => "archived",
        }
    }

    /// The state a word stands for, in any letter case.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.as_str().eq_ignore_ascii_case(word))
    }

    /// The number it is stored as.
    pub fn code(self) -> i64 {
        self as i64
    }

    /// The state that is stored as a number.
    pub fn from_code(code: i64) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.code() == code)
    }
}

/// What a text means, as a model sees it.
#[derive(Debug, Clone, PartialEq)]
pub struct Embedding {
    /// The model that made it.
    pub model: Arc<str>,
    /// Unit length, or all zero for a text without known words.
    pub vector: Vec<f32>,
    /// The same of each [piece](crate::recall::passages::cut) of a long text; none of a short one, or where none were made.
    pub pieces: Vec<Vec<f32>>,
}

impl Embedding {
    /// Of a text as a whole.
    pub fn of_whole(model: Arc<str>, vector: Vec<f32>) -> Self {
        Self { model, vector, pieces: Vec::new() }
    }
}

/// What a procedural entry states.
#[derive(Debug, Clone, PartialEq)]
pub struct Fact {
    /// `factType`
    pub fact_type: String,
    /// `subject`
    pub subject: String,
    /// `predicate`
    pub predicate: String,
    /// `object`
    pub object: String,
    /// 0..1
    pub confidence: f64,
}

/// Where an entry came from and what became of it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Lineage {
    /// The entry this one is a copy of.
    pub promoted_from: Option<MemoryId>,
    /// The copy of this one.
    pub promoted_to: Option<MemoryId>,
    /// The entries this one absorbed.
    pub consolidated_from: Vec<MemoryId>,
    /// The entry that absorbed this one.
    pub superseded_by: Option<MemoryId>,
    /// The event that this entry mirrors.
    pub mirror_of: Option<String>,
    /// The version at which the end of its session passed it over. Nobody is shown it.
    pub passed_over: Option<i64>,
}

/// A memory.
#[derive(Debug, Clone, PartialEq)]
pub struct Memory {
    /// Made by the server before anything is stored.
    pub id: MemoryId,
    /// Whose it is.
    pub scope: ScopeKey,
    /// How it is kept.
    pub kind: Kind,
    /// Its kind before it was archived.
    pub origin_kind: Option<Kind>,
    /// Byte for byte as it was given.
    pub content: String,
    /// The known members of §4 and the caller's own, as they were given.
    pub metadata: Map<String, Value>,
    /// Where it is in its life.
    pub state: State,
    /// Who of those who have the scope may see it.
    pub policy: AccessPolicy,
    /// Who made it.
    pub created_by: Author,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it was last changed.
    pub updated_at: Timestamp,
    /// When it happened, if somebody said so; an episodic entry happened when it was made unless somebody did.
    pub occurred_at: Option<Timestamp>,
    /// From then on it does not exist.
    pub expires_at: Option<Timestamp>,
    /// How long it lives after each change.
    pub ttl_seconds: Option<i64>,
    /// 1, and one more with each change.
    pub version: i64,
    /// Since when it fades.
    pub anchor: Timestamp,
    /// Procedural only.
    pub fact: Option<Fact>,
    /// See [`Lineage`].
    pub lineage: Lineage,
    /// How often it was found, as far as that is counted.
    pub access_count: i64,
    /// When it was last found.
    pub last_accessed_at: Option<Timestamp>,
    /// What it means; none while it is [`State::Created`].
    pub embedding: Option<Embedding>,
}

impl Memory {
    /// `sha256:` and the digest of the content.
    pub fn content_hash(&self) -> String {
        format!("sha256:{}", canonical::sha256_hex(self.content.as_bytes()))
    }

    /// When it happened or was made: what lists are sorted by and time ranges look at.
    pub fn at(&self) -> Timestamp {
        self.occurred_at.unwrap_or(self.created_at)
    }

    /// When it happened, as somebody said. An episodic entry that came without a time got that of its making, which two never
    /// share.
    pub fn stated_time(&self) -> Option<Timestamp> {
        self.occurred_at.filter(|at| *at != self.created_at)
    }

    /// When it became true, as far as anybody said: what questions about time look at, and what makes one entry newer.
    pub fn told_at(&self) -> Timestamp {
        told_at(self.at(), self.created_at, self.anchor, self.updated_at)
    }

    /// Whether it still exists.
    pub fn is_live(&self, now: Timestamp) -> bool {
        self.expires_at.is_none_or(|expires| expires > now)
    }

    /// The tag of this version.
    pub fn etag(&self) -> String {
        format!("\"v{}\"", self.version)
    }

    /// Whether it points at a document.
    pub fn is_pointer(&self) -> bool {
        self.metadata.contains_key("knowledgePointer")
    }

    /// The caller's key for entries that contradict each other.
    pub fn conflict_key(&self) -> Option<&str> {
        self.metadata.get("conflictKey").and_then(Value::as_str)
    }

    /// A number among its metadata.
    pub fn number(&self, key: &str) -> Option<f64> {
        self.metadata.get(key).and_then(Value::as_f64)
    }
}

/// When an entry happened, or else when it began to say what it says. `at` is [`Memory::at`]: one that equals the time of its
/// making is no time that anybody told. What it says is as old as its anchor, but what was brought in begins to fade later.
pub fn told_at(at: Timestamp, created_at: Timestamp, anchor: Timestamp, updated_at: Timestamp) -> Timestamp {
    if at == created_at { anchor.min(updated_at) } else { at }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_is_as_old_as_what_it_says_unless_somebody_told_when_it_happened() {
        let (early, made, changed, later) = (1, 10, 20, 30);
        let at = Timestamp::from_micros;
        let told = |at_: i64, anchor: i64, updated: i64| told_at(at(at_), at(made), at(anchor), at(updated));
        assert_eq!(told(made, made, made), at(made));
        assert_eq!(told(early, changed, later), at(early), "it happened before it was told");
        assert_eq!(told(made, changed, changed), at(changed), "it was corrected");
        assert_eq!(told(made, made, later), at(made), "only its metadata changed");
        assert_eq!(told(made, later, changed), at(changed), "it was brought in with its times");
    }

    #[test]
    fn the_id_of_a_working_memory_says_so_and_stays_unique() {
        for kind in Kind::ALL {
            let ids = [0x19a_0000_7000_8000_u128 << 64 | 1, 0x19a_0000_7000_8000_u128 << 64 | 2];
            let [one, two] = ids.map(|id| MemoryId::new(Uuid::from_u128(id), kind));
            assert_ne!(one, two);
            assert_eq!(one.looks_working(), kind == Kind::Working, "{kind:?}");
        }
    }
}
