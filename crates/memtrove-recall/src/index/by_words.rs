//! Finding documents by their words.

use super::chunk::{CHUNK, Chunk};
use super::partition::Partition;
use super::postings::{Cursor, Postings};
use super::probe::{Bm25, Probe};
use super::search::{ASKED_TOGETHER, Effort};
use super::shortlist::Shortlist;
use memtrove_simd::search::BLOCK_ROWS;

/// The words of a query that occur in a partition, those first that are worth most.
pub(super) struct WordQuery {
    terms: Vec<WeightedTerm>,
    /// The same by number, with their places in `terms`.
    by_number: Vec<(u32, usize)>,
    norms: Norms,
}

/// What the words of a document score.
#[derive(Clone, Copy, Default)]
pub(super) struct WordScore {
    /// The BM25 score of its best piece.
    pub(super) best: f32,
    /// The sum of what each term scores where it scores most.
    pub(super) together: f32,
    /// See [`Candidate::terms`](super::probe::Candidate::terms).
    pub(super) terms: u64,
}

/// What the length of a piece makes of a frequency.
#[derive(Clone, Copy)]
pub(super) struct Norms {
    base: f32,
    per_word: f32,
}

#[derive(Clone, Copy)]
struct WeightedTerm {
    number: u32,
    weight: f32,
    /// In how many pieces it occurs.
    frequency: usize,
    /// Which of the probe's terms it is: bit `n` for the `n`th.
    bits: u64,
}

impl WordQuery {
    pub(super) fn new<M>(partition: &Partition<M>, probe: &Probe<'_>) -> Self {
        let bit = |n: usize| u32::try_from(n).ok().and_then(|n| 1u64.checked_shl(n)).unwrap_or_default();
        let mut asked: Vec<(u64, f32, u64)> =
            probe.terms.iter().enumerate().map(|(n, term)| (term.hash, term.weight, bit(n))).collect();
        asked.retain(|&(_, weight, _)| weight > 0.0 && weight.is_finite());
        asked.sort_unstable_by(|a, b| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)));
        asked.dedup_by(|next, kept| {
            let same = next.0 == kept.0;
            if same {
                kept.1 += next.1;
                kept.2 |= next.2;
            }
            same
        });
        let known = asked.into_iter().filter_map(|(hash, weight, bits)| {
            let number = partition.words.number(hash)?;
            let frequency = partition.words.postings(number).len();
            Some(WeightedTerm { number, weight: weight * (probe.bm25.k1 + 1.0), frequency, bits })
        });
        let mut terms: Vec<WeightedTerm> = known.collect();
        // Not by how common they are here: sums of numbers depend on their order, and must not on documents that the caller
        // does not count. Stable: terms that are worth the same stay in the order of their hashes.
        terms.sort_by(|a, b| b.weight.total_cmp(&a.weight));
        let mut by_number: Vec<(u32, usize)> = terms.iter().map(|term| term.number).zip(0..).collect();
        by_number.sort_unstable();
        Self { terms, by_number, norms: Norms::new(probe.bm25) }
    }

    /// Nominates the documents with the best words and those above the floor. Returns whether no document above it was
    /// overlooked.
    pub(super) fn nominate<M>(
        &self,
        partition: &Partition<M>,
        probe: &Probe<'_>,
        effort: Effort,
        allow: &impl Fn(u32) -> bool,
        nominees: &mut Vec<u32>,
    ) -> bool {
        let key = |number| partition.documents.key(number);
        let nominating = match effort {
            Effort::Complete => self.terms.clone(),
            Effort::Bounded { postings, .. } => self.rarest(postings),
        };
        let mut best = Shortlist::new(probe.want, partition.has_long_documents());
        let mut asked = Vec::new();
        let mut ask = |asked: &mut Vec<(f32, u32)>| {
            for (score, owner) in asked.drain(..) {
                let above = probe.lexical_floor.is_some_and(|floor| score > floor);
                if (above || score >= best.bar()) && allow(owner) {
                    nominees.extend(above.then_some(owner));
                    best.offer(score, owner, key);
                }
            }
            probe.lexical_floor.map_or(best.bar(), |floor| floor.min(best.bar()))
        };
        let mut bar = f32::NEG_INFINITY;
        self.scan(partition, &nominating, |owner, score| {
            asked.push((score, owner));
            if asked.len() == ASKED_TOGETHER {
                bar = ask(&mut asked);
            }
            bar
        });
        ask(&mut asked);
        nominees.extend(best.finish(key).0);
        nominating.len() == self.terms.len() || probe.lexical_floor.is_none()
    }

    /// What the words of a document score.
    pub(super) fn score<M>(&self, partition: &Partition<M>, number: u32) -> WordScore {
        if self.terms.is_empty() {
            return WordScore::default();
        }
        let (mut best, mut terms) = (0.0f32, 0);
        let mut frequencies = vec![0; self.terms.len()];
        let mut most = vec![0.0f32; self.terms.len()];
        for piece in partition.pieces_of(number) {
            let chunk = &partition.chunks[piece.chunk()];
            for (term, frequency) in chunk.terms.get(piece.slot()) {
                if let Ok(at) = self.by_number.binary_search_by_key(&term, |&(number, _)| number) {
                    frequencies[self.by_number[at].1] = frequency;
                }
            }
            let length = chunk.lengths[piece.slot()];
            // In the order in which `scan` adds them, so that both come to the very same sum.
            let mut score = 0.0;
            for ((term, frequency), most) in self.terms.iter().zip(&mut frequencies).zip(&mut most) {
                if *frequency > 0 {
                    let part = term.weight * self.norms.part(std::mem::take(frequency), length);
                    *most = most.max(part);
                    score += part;
                    terms |= term.bits;
                }
            }
            best = best.max(score);
        }
        WordScore { best, together: most.into_iter().fold(0.0, |sum, part| sum + part), terms }
    }

    /// The rarest terms, up to that many postings together, but at least one. They keep their order: sums of numbers depend on it,
    /// and a search that leaves nothing out must come to the same sums as a complete one.
    fn rarest(&self, postings: usize) -> Vec<WeightedTerm> {
        let mut places: Vec<usize> = (0..self.terms.len()).collect();
        places.sort_by_key(|&place| self.terms[place].frequency);
        let mut sum = 0;
        let within = places.iter().take_while(|&&place| {
            sum += self.terms[place].frequency;
            sum <= postings
        });
        let count = within.count().max(1);
        places.truncate(count);
        places.sort_unstable();
        places.into_iter().map(|place| self.terms[place]).collect()
    }

    /// Scores every piece that has one of the terms. `each` returns what a score has to reach to be of interest.
    fn scan<M>(
        &self,
        partition: &Partition<M>,
        terms: &[WeightedTerm],
        mut each: impl FnMut(u32, f32) -> f32,
    ) {
        let postings = terms.iter().map(|term| partition.words.postings(term.number));
        let mut cursors: Vec<(&WeightedTerm, Cursor<'_>)> =
            terms.iter().zip(postings.map(Postings::cursor)).collect();
        let mut scores = [0.0; CHUNK];
        let mut bar = f32::MIN_POSITIVE;
        while let Some(first) = cursors.iter().filter_map(|(_, cursor)| cursor.piece()).min() {
            let number = first as usize / CHUNK;
            let chunk = &partition.chunks[number];
            let mut touched = self.add_up(chunk, ((number + 1) * CHUNK) as u32, &mut cursors, &mut scores);
            while touched != 0 {
                let block = touched.trailing_zeros() as usize * BLOCK_ROWS;
                touched &= touched - 1;
                let rows = &mut scores[block..][..BLOCK_ROWS];
                // Counting takes no branch per row, and mostly there is none.
                if rows.iter().filter(|&&score| score >= bar).count() > 0 {
                    for (slot, &score) in (block..).zip(rows.iter()) {
                        if score >= bar
                            && let Some(owner) = chunk.owner(slot)
                        {
                            bar = each(owner, score).max(f32::MIN_POSITIVE);
                        }
                    }
                }
                rows.fill(0.0);
            }
        }
    }

    /// Adds up the scores of the pieces of one chunk, which ends before piece `end`. Returns a bit for every block of
    /// slots that got any.
    fn add_up(
        &self,
        chunk: &Chunk,
        end: u32,
        cursors: &mut [(&WeightedTerm, Cursor<'_>)],
        scores: &mut [f32; CHUNK],
    ) -> u64 {
        const { assert!(CHUNK / BLOCK_ROWS == u64::BITS as usize, "a bit for every block of a chunk") };
        let mut touched = 0;
        for (term, cursor) in cursors {
            loop {
                let run = cursor.before(end);
                if run.is_empty() {
                    break;
                }
                for posting in run {
                    let slot = posting.piece() as usize % CHUNK;
                    scores[slot] += term.weight * self.norms.part(posting.frequency(), chunk.lengths[slot]);
                    touched |= 1 << (slot / BLOCK_ROWS);
                }
            }
        }
        touched
    }
}

impl Norms {
    pub(super) fn new(bm25: Bm25) -> Self {
        Self { base: bm25.k1 * (1.0 - bm25.b), per_word: bm25.k1 * bm25.b / bm25.average_length.max(1.0) }
    }

    /// How much of a term's weight counts, if it occurs at all.
    pub(super) fn part(self, frequency: u32, length: u16) -> f32 {
        let frequency = frequency as f32;
        frequency / (frequency + self.base + self.per_word * f32::from(length))
    }
}
