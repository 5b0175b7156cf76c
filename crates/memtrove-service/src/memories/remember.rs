//! Remembering and forgetting by words: the same words again are the same memory, not a second one.

use super::Memories;
use super::provider::ScanQuery;
use crate::lease;
use memtrove_core::Result;
use memtrove_core::memories::cursor::Position;
use memtrove_core::memories::duplicate::Profile;
use memtrove_core::memories::{Conditions, Memory, MemoryCaller, MemoryId, Mode, NewMemory, Ranking, Search};
use serde_json::Value;

/// Entries with the same words are looked for among so many that come nearest.
const CANDIDATES: usize = 50;
/// A text that has words scores more than this where it is looked for by itself.
const LEAST_SCORE: f64 = 0.5;
/// Entries that are looked at together where no search helps.
const PAGE: usize = 500;

/// What became of something to remember.
#[derive(Debug, Clone)]
pub struct Remembered {
    /// The entry that says it now.
    pub memory: Memory,
    /// Whether nothing said it before.
    pub created: bool,
}

impl Memories {
    /// Stores an entry unless one in the same scope says the same words already.
    pub async fn remember(&self, caller: &MemoryCaller, body: &Value) -> Result<Remembered> {
        let new = NewMemory::read(body, self.rules(), caller)?;
        // One after the other: two that look for the same words at the same time would both find none.
        let turns = &self.parts.remembering;
        let _alone = turns[usize::from(new.scope.hash().0[0]) % turns.len()].lock().await;
        let name = lease::of_scope("remember", &new.scope);
        lease::in_turn(&self.cx, &name, self.remember_alone(caller, new)).await
    }

    async fn remember_alone(&self, caller: &MemoryCaller, new: NewMemory) -> Result<Remembered> {
        let search = Search {
            query: new.content.clone(),
            scopes: vec![new.scope.clone()],
            viewer: caller.viewer(&new.identifiers),
            identifiers: new.identifiers.clone(),
            limit: CANDIDATES,
            threshold: LEAST_SCORE,
            conditions: Conditions { kinds: Some(vec![new.kind]), ..Conditions::default() },
            include_embedding: false,
            include_overridden: true,
            dedupe: false,
            ranking: Ranking::Score,
            mode: Mode::Hybrid,
            explain: false,
        };
        if let Some(memory) = self.saying(caller, search).await?.into_iter().next() {
            return Ok(Remembered { memory, created: false });
        }
        Ok(Remembered { memory: self.create(caller, new, true).await?, created: true })
    }

    /// Deletes the entries of some layers that say these very words, whatever their case, their spacing and the punctuation
    /// at their end; says which ones it were. The body is that of a search.
    pub async fn forget_words(&self, caller: &MemoryCaller, body: &Value) -> Result<Vec<MemoryId>> {
        let search = Search {
            limit: CANDIDATES,
            threshold: LEAST_SCORE,
            include_overridden: true,
            dedupe: false,
            ranking: Ranking::Score,
            ..Search::read(body, self.rules(), caller)?
        };
        let mut forgotten = Vec::new();
        for memory in self.saying(caller, search).await? {
            if self.delete(caller, &memory.id.to_string(), &[], None).await? {
                forgotten.push(memory.id);
            }
        }
        Ok(forgotten)
    }

    /// What says the very words of a search's query.
    async fn saying(&self, caller: &MemoryCaller, search: Search) -> Result<Vec<Memory>> {
        let words = Profile::of(&search.query);
        let says = |memory: &Memory| Profile::of(&memory.content).normalised() == words.normalised();
        if search.query.contains(char::is_alphanumeric) {
            let found = self.search(caller, search).await?.hits.into_iter().map(|hit| hit.memory);
            return Ok(found.filter(says).collect());
        }
        // No search finds what has no words, such as an emoji. It is rare, so each entry is looked at.
        let spans = self.spans(caller, search.scopes).await?;
        let mut query = ScanQuery {
            viewer: search.viewer,
            conditions: search.conditions,
            after: None,
            limit: PAGE,
            with_embeddings: false,
            now: self.now(),
        };
        let mut found = Vec::new();
        loop {
            let page = self.scan(spans.clone(), query.clone()).await?.memories;
            query.after = page.last().map(Position::of);
            let is_last = page.len() < PAGE;
            found.extend(page.into_iter().filter(says));
            if is_last {
                return Ok(found);
            }
        }
    }
}
