//! From everything that matches to what a search answers: overriding, removing duplicates, cutting, in one total order.
//!
//! A search may match thousands of entries and answer ten. So the walk is fed: matches in order, and contents only of those
//! it wants to see, until it has enough.

use super::duplicate::{self, Profile};
pub use super::search::Ranking;
use super::{Layer, MemoryId};
use crate::Timestamp;
use crate::recall::relevance::Relevance;
use std::cmp::Ordering;
use std::collections::HashMap;
use std::sync::Arc;

/// An entry that a search matches, without its content. The index makes it; the walk says whether it is overridden.
#[derive(Debug, Clone, PartialEq)]
pub struct Match {
    /// Which entry.
    pub id: MemoryId,
    /// What the index calls it.
    pub key: u64,
    /// Where it was found.
    pub layer: Layer,
    /// How well it answers, and why.
    pub evidence: Relevance,
    /// The raw cosine of its meaning and the query's.
    pub cosine: f64,
    /// Its relevance now, 0..1.
    pub relevance: f64,
    /// When it became true, as far as anybody said: [`Memory::told_at`](super::Memory::told_at).
    pub at: Timestamp,
    /// Whether somebody told when it happened.
    pub is_dated: bool,
    /// When it was last changed.
    pub updated_at: Timestamp,
    /// The caller's key for entries that contradict each other.
    pub conflict_key: Option<Arc<str>>,
    /// The entry that beats it.
    pub overridden_by: Option<MemoryId>,
}

/// Scores that differ in no more than a millionth are equal: vectors are sums of 32-bit numbers. What a score cannot tell apart is far
/// more, but in that the order by time would be as wrong as the other way round.
const TIES: f64 = 1_000_000.0;

/// A score, as far as it orders.
pub fn rank(score: f64) -> i64 {
    (score * TIES).round() as i64
}

impl Match {
    /// How well it answers, 0..1.
    pub fn score(&self) -> f64 {
        self.evidence.score
    }

    /// What makes one newer than another one that answers as well: when it happened, or else its last change.
    fn newness(&self) -> Timestamp {
        if self.is_dated { self.at } else { self.updated_at }
    }

    /// The raw cosine, clamped to 0..1.
    pub fn similarity(&self) -> f64 {
        self.cosine.clamp(0.0, 1.0)
    }

    /// The order of the walk: layer, score, relevance, the newest, latest change, id.
    pub fn by_precedence(&self, other: &Self) -> Ordering {
        self.layer.cmp(&other.layer).then_with(|| self.by_score(other))
    }

    /// The order of an answer that is ranked by score: score, layer, relevance, the newest, latest change, id.
    pub fn by_score(&self, other: &Self) -> Ordering {
        (rank(other.score()).cmp(&rank(self.score())))
            .then(self.layer.cmp(&other.layer))
            .then(other.relevance.total_cmp(&self.relevance))
            .then(other.newness().cmp(&self.newness()))
            .then(other.updated_at.cmp(&self.updated_at))
            .then(self.id.cmp(&other.id))
    }
}

/// What a search asks of the walk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// The most that survive.
    pub limit: usize,
    /// How they are ordered. By score, every match has to be walked first; in a search of one layer both orders are the same.
    pub ranking: Ranking,
    /// Whether duplicates are dropped.
    pub dedupe: bool,
    /// Whether what is overridden stays, marked.
    pub include_overridden: bool,
    /// Whether hits that contradict each other are brought [together](super::clusters).
    pub clusters: bool,
}

/// What the walk compares of an entry.
#[derive(Debug, Clone, PartialEq)]
pub struct Text {
    /// Its content.
    pub profile: Profile,
    /// Its meaning, if it has a vector of the space that is searched.
    pub vector: Option<Vec<f32>>,
}

/// The walk through the matches of one search.
#[derive(Debug)]
pub struct Walk {
    options: Options,
    /// Whom of the overridden who beats.
    overridden: HashMap<MemoryId, MemoryId>,
    survivors: Vec<Match>,
    kept: Vec<Text>,
}

impl Walk {
    /// Begins a walk. It is shown all matches of all layers: a winner beats its rivals even where it is itself dropped later.
    pub fn new<'a>(options: Options, matches: impl IntoIterator<Item = &'a Match>) -> Self {
        Self { options, overridden: overridden(matches), survivors: Vec::new(), kept: Vec::new() }
    }

    /// Whether the walk has to compare this match, and so needs its text.
    pub fn wants_text(&self, matched: &Match) -> bool {
        self.options.dedupe && !self.is_full() && !self.overridden.contains_key(&matched.id)
    }

    /// Whether nothing that follows can be part of the answer.
    pub fn is_full(&self) -> bool {
        self.options.ranking == Ranking::Precedence && self.survivors.len() >= self.options.limit
    }

    /// Takes the next match, in the order of [`Match::by_precedence`], with its text if that [was wanted](Self::wants_text).
    pub fn offer(&mut self, mut matched: Match, text: Option<Text>) {
        if self.is_full() {
            return;
        }
        // What is overridden neither hides others nor is hidden: asking for it only ever adds to an answer.
        if let Some(winner) = self.overridden.get(&matched.id) {
            if self.options.include_overridden {
                matched.overridden_by = Some(*winner);
                self.survivors.push(matched);
            }
            return;
        }
        if let Some(text) = text.filter(|_| self.options.dedupe) {
            if self.kept.iter().any(|kept| kept.says_the_same_as(&text)) {
                return;
            }
            self.kept.push(text);
        }
        self.survivors.push(matched);
    }

    /// The answer.
    pub fn finish(self) -> Vec<Match> {
        let Self { options, mut survivors, .. } = self;
        if options.ranking == Ranking::Score {
            survivors.sort_unstable_by(Match::by_score);
            survivors.truncate(options.limit);
        }
        survivors
    }
}

impl Text {
    fn says_the_same_as(&self, other: &Self) -> bool {
        let (a, b) = (self.vector.as_deref(), other.vector.as_deref());
        duplicate::duplicates(&self.profile, a, &other.profile, b, duplicate::SIMILARITY)
    }
}

/// The losers of every conflict, with the winner that beats them: the strongest layer, then the latest change, then the
/// larger id.
fn overridden<'a>(matches: impl IntoIterator<Item = &'a Match>) -> HashMap<MemoryId, MemoryId> {
    let mut rivals: HashMap<&str, Vec<&Match>> = HashMap::new();
    for matched in matches {
        if let Some(key) = matched.conflict_key.as_deref() {
            rivals.entry(key).or_default().push(matched);
        }
    }
    let mut overridden = HashMap::new();
    for rivals in rivals.into_values() {
        let strength = |rival: &&&Match| (std::cmp::Reverse(rival.layer), rival.updated_at, rival.id);
        let Some(winner) = rivals.iter().max_by_key(strength).map(|winner| winner.id) else { continue };
        overridden.extend(rivals.iter().filter(|rival| rival.id != winner).map(|rival| (rival.id, winner)));
    }
    overridden
}

#[cfg(test)]
mod tests;
