//! Finding documents by the direction of their vectors.

use super::chunk::{CHUNK, Chunk, Shape};
use super::partition::Partition;
use super::probe::Probe;
use super::quantise::{Quantised, unit};
use super::search::{ASKED_TOGETHER, Effort};
use super::shortlist::Shortlist;
use super::sketch;
use super::sums::Sums;
use memtrove_simd::search::{Kernels, dot_i8};

/// A query in one space.
pub(super) struct VectorQuery {
    shape: Shape,
    quantised: Quantised,
    unit: Vec<f32>,
}

/// What is known of a cosine.
#[derive(Clone, Copy)]
pub(super) struct Estimate {
    pub(super) similarity: f32,
    pub(super) error: f32,
}

impl Estimate {
    /// The larger of two cosines: it may be anywhere that either may be.
    pub(super) fn or(self, other: Self) -> Self {
        Self { similarity: self.similarity.max(other.similarity), error: self.error.max(other.error) }
    }

    fn may_reach(self, floor: Option<f32>) -> bool {
        floor.is_some_and(|floor| self.similarity + self.error >= floor)
    }
}

impl VectorQuery {
    /// The queries of a probe, without those that point nowhere.
    pub(super) fn of(probe: &Probe<'_>) -> Vec<Self> {
        let queries = probe.vectors.iter().map(|&(space, vector)| {
            let unit = unit(vector);
            let shape = Shape { space: Some(space), dimensions: unit.len() };
            Self { shape, quantised: Quantised::new(&unit), unit }
        });
        queries.filter(|query| query.quantised.grid.has_direction()).collect()
    }

    /// Nominates the most similar documents and those that may reach the floor. Returns whether no document that may
    /// was overlooked.
    pub(super) fn nominate<M>(
        &self,
        partition: &Partition<M>,
        probe: &Probe<'_>,
        effort: Effort,
        allow: &impl Fn(u32) -> bool,
        nominees: &mut Vec<u32>,
    ) -> bool {
        let key = |number| partition.documents.key(number);
        let mut best = Shortlist::new(probe.want, partition.has_long_documents());
        let mut complete = true;
        let mut take = |owner, estimate: Estimate| {
            let above = estimate.may_reach(probe.floor);
            if (above || estimate.similarity >= best.bar()) && allow(owner) {
                nominees.extend(above.then_some(owner));
                best.offer(estimate.similarity, owner, key);
            }
        };
        match effort {
            Effort::Complete => self.scan(partition, take),
            Effort::Bounded { promising, .. } => {
                let (promising, are_all) = self.promising(partition, promising, probe.want, allow);
                complete = are_all;
                for owner in promising {
                    self.estimates(partition, owner).for_each(|estimate| take(owner, estimate));
                }
            }
        }
        nominees.extend(best.finish(key).0);
        complete || probe.floor.is_none()
    }

    /// The similarity of a document's best piece, if it has any vector of this shape.
    pub(super) fn similarity<M>(&self, partition: &Partition<M>, number: u32) -> Option<Estimate> {
        self.estimates(partition, number).reduce(Estimate::or)
    }

    /// Estimates the pieces of a document that have a vector of this shape.
    fn estimates<M>(&self, partition: &Partition<M>, number: u32) -> impl Iterator<Item = Estimate> {
        let pieces =
            partition.pieces_of(number).map(|piece| (&partition.chunks[piece.chunk()], piece.slot()));
        pieces.filter(|(chunk, _)| chunk.shape == self.shape).map(|(chunk, slot)| {
            let row = &chunk.codes[slot * self.shape.dimensions..][..self.shape.dimensions];
            self.estimate(chunk, slot, dot_i8(&self.quantised.codes, row))
        })
    }

    /// Estimates every piece.
    fn scan<M>(&self, partition: &Partition<M>, mut each: impl FnMut(u32, Estimate)) {
        let mut dots = [0; CHUNK];
        for chunk in partition.chunks.iter().filter(|chunk| chunk.shape == self.shape) {
            let dots = &mut dots[..chunk.len()];
            Kernels::best().dots_i8(&self.quantised.codes, &chunk.codes, dots);
            for (slot, &dot) in dots.iter().enumerate() {
                if let Some(owner) = chunk.owner(slot) {
                    each(owner, self.estimate(chunk, slot, dot));
                }
            }
        }
    }

    /// The allowed documents with the most promising sketches, and whether these are all that are allowed.
    ///
    /// To ask about a document is to read memory that is in no cache, so only the best are asked about. Where few of
    /// them are allowed, the next best are, and in the end everybody.
    fn promising<M>(
        &self,
        partition: &Partition<M>,
        limit: usize,
        want: usize,
        allow: &impl Fn(u32) -> bool,
    ) -> (Vec<u32>, bool) {
        let limit = limit.max(2 * want);
        let sums = self.sums(partition);
        for (depth, enough) in [(limit, limit / 2), (32 * limit, 2 * want)] {
            let bar = sums.reached_by(depth);
            if bar == 0 {
                break;
            }
            let (promising, _) = self.allowed(partition, &sums, bar, limit, allow);
            if promising.len() >= enough.max(1) {
                return (promising, false);
            }
        }
        self.allowed(partition, &sums, 0, limit, allow)
    }

    /// The best of the allowed documents that have a sum from `bar` on, and whether these are all of them.
    fn allowed<M>(
        &self,
        partition: &Partition<M>,
        sums: &Sums,
        bar: i16,
        limit: usize,
        allow: &impl Fn(u32) -> bool,
    ) -> (Vec<u32>, bool) {
        let key = |number| partition.documents.key(number);
        let mut best = Shortlist::new(limit, partition.has_long_documents());
        let mut asked = Vec::new();
        let mut ask = |asked: &mut Vec<(f32, u32)>| {
            for (sum, owner) in asked.drain(..) {
                if sum >= best.bar() && allow(owner) {
                    best.offer(sum, owner, key);
                }
            }
        };
        sums.for_each_from(bar, |chunk, slot, sum| {
            asked.extend(partition.chunks[chunk].owner(slot).map(|owner| (f32::from(sum), owner)));
            if asked.len() == ASKED_TOGETHER {
                ask(&mut asked);
            }
        });
        ask(&mut asked);
        let (best, are_all) = best.finish(key);
        (best.collect(), are_all)
    }

    /// What the query makes of every sketch.
    fn sums<M>(&self, partition: &Partition<M>) -> Sums {
        let tables = sketch::tables(&self.unit);
        let mut sums = Sums::default();
        for (number, chunk) in
            partition.chunks.iter().enumerate().filter(|(_, chunk)| chunk.shape == self.shape)
        {
            let rows = sums.add(number, chunk.len());
            Kernels::best().table_sums(&tables, &chunk.sketches, rows);
            // Free slots must not count, or documents that went would have a say in what is found.
            chunk.unowned(rows.len()).for_each(|slot| rows[slot] = Sums::UNUSED);
        }
        sums
    }

    fn estimate(&self, chunk: &Chunk, slot: usize, dot: i32) -> Estimate {
        let (query, stored) = (self.quantised.grid, chunk.grids[slot]);
        Estimate { similarity: query.cosine(stored, dot), error: query.error_with(stored) }
    }
}
