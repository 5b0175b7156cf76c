//! The best of very many, while they come by.

use std::cmp::Ordering;

/// The documents with the best scores so far, at most `limit` of them; among equals those with the lowest keys, so that
/// the order in which they come does not matter. A document counts with the best of its scores.
pub(super) struct Shortlist {
    limit: usize,
    /// Whether a document may come more than once.
    repeats: bool,
    entries: Vec<(f32, u32)>,
    /// What is worse has no place any more.
    bar: f32,
}

impl Shortlist {
    pub(super) fn new(limit: usize, repeats: bool) -> Self {
        Self { limit, repeats, entries: Vec::new(), bar: f32::NEG_INFINITY }
    }

    /// What a score has to reach to be looked at.
    pub(super) fn bar(&self) -> f32 {
        if self.limit == 0 { f32::INFINITY } else { self.bar }
    }

    /// Adds a document if its score reaches the bar.
    pub(super) fn offer(&mut self, score: f32, document: u32, key: impl Fn(u32) -> u64) {
        if score < self.bar() {
            return;
        }
        self.entries.push((score, document));
        if self.entries.len() >= 2 * self.limit.max(32) {
            self.cut(key);
        }
    }

    /// The best, in no order, and whether everybody found a place.
    pub(super) fn finish(mut self, key: impl Fn(u32) -> u64) -> (impl Iterator<Item = u32>, bool) {
        self.cut(key);
        let complete = self.bar() == f32::NEG_INFINITY;
        (self.entries.into_iter().map(|(_, document)| document), complete)
    }

    fn cut(&mut self, key: impl Fn(u32) -> u64) {
        if self.repeats {
            self.entries.sort_unstable_by(|a, b| a.1.cmp(&b.1).then(b.0.total_cmp(&a.0)));
            self.entries.dedup_by_key(|entry| entry.1);
        }
        if self.entries.len() > self.limit && self.limit > 0 {
            let better = |a: &(f32, u32), b: &(f32, u32)| -> Ordering {
                b.0.total_cmp(&a.0).then_with(|| key(a.1).cmp(&key(b.1)))
            };
            let (_, last, _) = self.entries.select_nth_unstable_by(self.limit - 1, better);
            self.bar = last.0;
            self.entries.truncate(self.limit);
        }
    }
}
