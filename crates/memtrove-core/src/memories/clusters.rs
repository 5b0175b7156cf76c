//! Hits that contradict each other, brought together: the newest first, the others directly after it, each with what overrides it.
//!
//! A cluster is its best hit and those after it that contradict that one; what contradicts only another member stays apart. Nothing
//! is added and nothing lost: it is the same hits in another order. Where layers decide the order, hits stay among those of their layer.

use super::contradiction::{self, Wording};
use super::{Fact, Layer, Memory, MemoryId, Ranking};
use crate::Timestamp;
use crate::text::Analyzer;

/// What was told within so many microseconds was told together: it is a list, and no change.
const TOGETHER: i64 = 1_000_000;

/// A hit, as far as clusters look at it.
#[derive(Debug, Clone)]
pub struct ClusterHit<'a> {
    id: MemoryId,
    layer: Layer,
    at: Timestamp,
    /// What can be compared; nothing of a hit that takes no part.
    says: Option<Says<'a>>,
}

#[derive(Debug, Clone)]
struct Says<'a> {
    wording: Wording,
    vector: Option<&'a [f32]>,
    fact: Option<&'a Fact>,
    /// Of a fact: whether its subject may have several objects.
    is_of_several: bool,
}

/// Where a hit goes, and what overrides it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Placed {
    /// Which of the hits.
    pub hit: usize,
    /// The hit of its cluster that overrides it.
    pub overridden_by: Option<MemoryId>,
}

impl<'a> ClusterHit<'a> {
    /// A hit of a search. Events and pointers take no part, and neither does what is overridden already. `vector` is of the space
    /// that is searched.
    pub fn of(
        analyzer: &Analyzer,
        memory: &'a Memory,
        vector: Option<&'a [f32]>,
        is_overridden: bool,
    ) -> Self {
        let takes_part = !is_overridden && !memory.is_pointer() && memory.lineage.mirror_of.is_none();
        let fact = memory.fact.as_ref();
        let says = takes_part.then(|| Says {
            wording: Wording::of(analyzer, &memory.content),
            vector,
            fact,
            is_of_several: fact.is_some_and(|fact| Wording::of(analyzer, &fact.predicate).is_of_several()),
        });
        Self { id: memory.id, layer: memory.scope.layer(), at: memory.told_at(), says }
    }

    /// Whether one of the two overrides the other.
    fn contradicts(&self, other: &Self) -> bool {
        let (Some(one), Some(two)) = (&self.says, &other.says) else { return false };
        let is_same_layer = self.layer == other.layer;
        if is_same_layer && self.at.as_micros().abs_diff(other.at.as_micros()) < TOGETHER.unsigned_abs() {
            return false;
        }
        match (one.fact, two.fact) {
            (Some(fact), Some(other)) => {
                let is_same_question = fact.subject == other.subject && fact.predicate == other.predicate;
                is_same_question && fact.object != other.object && !one.is_of_several
            }
            _ => {
                let (newer, older) = if self.at > other.at { (one, two) } else { (two, one) };
                let vectors = newer.vector.zip(older.vector);
                contradiction::contradicts(&newer.wording, &older.wording, vectors)
                    // What changed for some changed for them: the more specific layer goes on to hold.
                    || (is_same_layer
                        && (contradiction::replaces(&newer.wording, &older.wording, vectors)
                            || contradiction::restates(&newer.wording, &older.wording, vectors)))
            }
        }
    }

    /// The order inside a cluster: the more specific layer, then the newest.
    fn strength(&self) -> (Layer, std::cmp::Reverse<Timestamp>) {
        (self.layer, std::cmp::Reverse(self.at))
    }
}

/// The order of some hits with those together that contradict each other. They come in the order of the search.
pub fn arrange(hits: &[ClusterHit<'_>], ranking: Ranking) -> Vec<Placed> {
    let mut cluster_of: Vec<Option<usize>> = vec![None; hits.len()];
    let mut clusters: Vec<Vec<usize>> = Vec::new();
    for best in 0..hits.len() {
        if cluster_of[best].is_some() {
            continue;
        }
        let is_member = |at: &usize| cluster_of[*at].is_none() && hits[best].contradicts(&hits[*at]);
        let mut members: Vec<usize> =
            std::iter::once(best).chain((best + 1..hits.len()).filter(is_member)).collect();
        members.sort_by_key(|at| (hits[*at].strength(), *at));
        members.iter().for_each(|at| cluster_of[*at] = Some(clusters.len()));
        clusters.push(members);
    }
    let mut placed = Vec::with_capacity(hits.len());
    let mut done = vec![false; hits.len()];
    for at in 0..hits.len() {
        if done[at] {
            continue;
        }
        let members = cluster_of[at].map_or(&[][..], |cluster| &clusters[cluster]);
        // A layer keeps its place where layers decide.
        let together = members
            .iter()
            .filter(|member| ranking == Ranking::Score || hits[**member].layer == hits[at].layer);
        for member in together {
            done[*member] = true;
            let winner = members.first().filter(|winner| *winner != member);
            placed.push(Placed { hit: *member, overridden_by: winner.map(|winner| hits[*winner].id) });
        }
    }
    placed
}

#[cfg(test)]
mod tests;
