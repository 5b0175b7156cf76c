//! What is put into a partition, what it is asked, and what it answers.

use super::by_words::Norms;
use super::postings::MAX_FREQUENCY;
use super::quantise::unit;
use memtrove_simd::search::dot_f32;

/// Which vector space a document's vectors are in. The caller numbers its spaces; vectors of different spaces are never
/// compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SpaceNo(pub u16);

/// A part of a document short enough to be about one thing. A document scores what its best piece scores.
#[derive(Clone, Copy, Debug)]
pub struct Piece<'a> {
    /// Where the piece lies in the document's space, of any length (only the direction counts); `None` while it is not
    /// embedded.
    pub vector: Option<&'a [f32]>,
    /// The hash of each distinct term with how often it occurs.
    pub terms: &'a [(u64, u32)],
    /// How many words the piece has.
    pub length: u32,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct QueryTerm {
    /// The hash that the term has in [`Piece::terms`].
    pub hash: u64,
    /// What a match is worth: usually its [`TermStatistics::idf`]. Terms that weigh nothing are ignored.
    pub weight: f32,
}

/// The parameters of BM25.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bm25 {
    /// How soon more of the same word stops counting.
    pub k1: f32,
    /// How much the length of a piece counts.
    pub b: f32,
    /// How many words a piece has on average.
    pub average_length: f32,
}

impl Bm25 {
    /// The parameters that served best on short dialogue, with this average length.
    pub fn new(average_length: f32) -> Self {
        Self { k1: 0.9, b: 0.4, average_length }
    }

    /// What a term of this weight is worth in a piece that has it so often and so many terms. The same as the index finds.
    pub fn worth(self, weight: f32, frequency: u32, length: u32) -> f32 {
        let length = length.min(u32::from(u16::MAX)) as u16;
        weight * (self.k1 + 1.0) * Norms::new(self).part(frequency.min(MAX_FREQUENCY), length)
    }
}

/// A question to a partition.
#[derive(Clone, Copy, Debug)]
pub struct Probe<'a> {
    /// The query's vector in each space it could be embedded for.
    pub vectors: &'a [(SpaceNo, &'a [f32])],
    /// The query's words; none, and nothing is found by words.
    pub terms: &'a [QueryTerm],
    /// How words are weighed.
    pub bm25: Bm25,
    /// How many of the best are wanted, by similarity and by words each.
    pub want: usize,
    /// The similarity from which on every document is wanted, however many there are.
    pub floor: Option<f32>,
    /// The lexical score above which every document is wanted, however many there are.
    pub lexical_floor: Option<f32>,
    /// Looks at everything, however large the partition.
    pub exact: bool,
}

/// A document that may be among the best.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Candidate {
    /// The key it was put under.
    pub key: u64,
    /// The estimated cosine of its best piece; 0 for a document without a vector in any of the probe's spaces.
    pub similarity: f32,
    /// The true cosine is at most this far from the estimate.
    pub error: f32,
    /// The BM25 score of its best piece; 0 when no word matches.
    pub lexical: f32,
    /// What its words score together, each where it scores most; the same as `lexical` for a single piece.
    pub together: f32,
    /// Which of the probe's first 64 terms it has in any of its pieces: bit `n` for the `n`th.
    pub terms: u64,
}

/// What a partition answers.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ProbeResult {
    /// The best by similarity, the best by words, and those above the floors; most similar first, then by key.
    pub candidates: Vec<Candidate>,
    /// How many documents were allowed; `None` when not all of them had to be asked about.
    pub allowed: Option<usize>,
    /// Whether every allowed document at or above the floors is certainly among the candidates.
    pub exact: bool,
}

/// How common some terms are. Numbers of several partitions are added up, so that a word weighs the same in all of them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TermStatistics {
    /// How many pieces there are, or documents where these are counted.
    pub pieces: u64,
    /// How many words they have together.
    pub length: u64,
    /// In how many of them each of the terms occurs, in the order they were asked for.
    pub frequencies: Vec<u64>,
}

impl TermStatistics {
    /// Adds what another partition says about the same terms.
    pub fn add(&mut self, other: &Self) {
        self.pieces += other.pieces;
        self.length += other.length;
        self.frequencies.resize(self.frequencies.len().max(other.frequencies.len()), 0);
        for (sum, more) in self.frequencies.iter_mut().zip(&other.frequencies) {
            *sum += more;
        }
    }

    /// How many words a piece has on average; never 0.
    pub fn average_length(&self) -> f32 {
        if self.length == 0 { 1.0 } else { (self.length as f64 / self.pieces.max(1) as f64) as f32 }
    }

    /// How much the `n`th term tells (Lucene's form: always positive, nearly 0 for what is everywhere).
    pub fn idf(&self, n: usize) -> f32 {
        let with = self.frequencies.get(n).copied().unwrap_or(0) as f64;
        let all = (self.pieces as f64).max(with);
        (1.0 + (all - with + 0.5) / (with + 0.5)).ln() as f32
    }
}

/// The cosine of two vectors in full precision; 0 when one of them has no direction or they differ in length.
pub fn rescore(query: &[f32], stored: &[f32]) -> f32 {
    if query.len() != stored.len() {
        return 0.0;
    }
    let (a, b) = (dot_f32(query, query), dot_f32(stored, stored));
    // The squares of very long and very short vectors are out of range.
    let usual = a.is_normal() && b.is_normal();
    let cosine = if usual {
        dot_f32(query, stored) / (a.sqrt() * b.sqrt())
    } else {
        dot_f32(&unit(query), &unit(stored))
    };
    cosine.clamp(-1.0, 1.0)
}
