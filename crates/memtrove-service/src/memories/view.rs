//! Entries as a caller sees them at this moment.

use super::{Hit, Memories};
use memtrove_core::Timestamp;
use memtrove_core::memories::decay::Fading;
use memtrove_core::memories::merge::Match;
use memtrove_core::memories::{Author, Memory, MemoryCaller};

/// An entry as somebody sees it.
#[derive(Debug, Clone)]
pub struct ShownMemory {
    /// The entry, without its author.
    pub memory: Memory,
    /// How relevant it is now.
    pub relevance: f64,
    /// Who made it, for those who may know.
    pub created_by: Option<Author>,
}

/// A result of a search as somebody sees it.
#[derive(Debug, Clone)]
pub struct ShownHit {
    /// The entry.
    pub shown: ShownMemory,
    /// How it matches.
    pub matched: Match,
    /// The part of its content that matters, if it is long.
    pub passage: Option<String>,
}

impl Memories {
    /// The relevance of an entry at this moment.
    pub fn relevance(&self, memory: &Memory) -> f64 {
        self.relevance_at(memory, self.now())
    }

    /// The relevance of an entry at an instant.
    pub(super) fn relevance_at(&self, memory: &Memory, at: Timestamp) -> f64 {
        self.rules().decay.shown(memory.scope.layer(), &Fading::of(memory), at)
    }

    /// An entry as a caller sees it.
    pub fn show(&self, caller: &MemoryCaller, mut memory: Memory) -> ShownMemory {
        let sees_author = caller.sees_author(&memory);
        let author = std::mem::take(&mut memory.created_by);
        ShownMemory { relevance: self.relevance(&memory), created_by: sees_author.then_some(author), memory }
    }

    /// A result of a search as a caller sees it.
    pub fn show_hit(&self, caller: &MemoryCaller, hit: Hit) -> ShownHit {
        let passage = hit.passage.is_some().then(|| hit.text().to_owned());
        ShownHit { shown: self.show(caller, hit.memory), matched: hit.matched, passage }
    }
}
