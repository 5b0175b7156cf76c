//! One ranker for dialogue: a turn is judged by what is said in it and around it.
//!
//! An answer seldom repeats its question: "How long have you had the turtles?" – "Three years now." So a turn is found by
//! the words and the meaning of its neighbours too, the less the farther they are. That, and not a way of mixing two lists,
//! is most of what this ranker is better by. The rest is who speaks, and that a question is not an answer.
//!
//! A score depends on the query, the turn and its neighbours alone, never on what else was found. So it means the same on
//! every page and in every search.

use serde::Serialize;

/// How far apart turns count as neighbours.
pub const REACH: u32 = 3;
/// How many terms of a query can be told apart.
pub const MAX_TERMS: usize = 64;

/// How near the turns around count, the nearest first: what was said before is what a turn is about.
const NEAR: [(i32, f64); 5] = [(-1, 0.8), (-2, 0.6), (1, 0.6), (-3, 0.4), (2, 0.4)];

/// A turn that a search may return, or that stands near one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Candidate {
    /// Which of the query's terms its best piece holds: bit `n` for the `n`th.
    pub terms: u64,
    /// Cosine of the query and the best of its pieces; `None` when one of them has no vector.
    pub similarity: Option<f64>,
    /// The query is about somebody, and somebody else said this.
    pub by_another: bool,
    /// It ends with a question.
    pub asks: bool,
    /// Which session it belongs to; equal numbers mean the same one.
    pub session: u64,
    /// Its place among the turns of its session, counted without gaps.
    pub position: u32,
}

/// What each kind of evidence counts. Tuned on half of LoCoMo, and flat around what they are: none is worth turning finely.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Weights {
    /// The share of the words; the rest is meaning.
    pub lexical: f64,
    /// How much the meaning of neighbours counts, of what their nearness is.
    pub context: f64,
    /// What a turn keeps that somebody else said than whom the query is about; 1 if it does not matter who speaks.
    pub by_another: f64,
    /// What a turn keeps that ends with a question.
    pub asks: f64,
}

impl Default for Weights {
    fn default() -> Self {
        Self { lexical: 0.5, context: 0.4, by_another: 0.7, asks: 0.85 }
    }
}

/// A score and how it came about.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Score {
    /// From 0 to 1.
    pub score: f64,
    /// Which share of what the query's words are worth is said here.
    pub words: f64,
    /// Which share more is said nearby, less for being farther.
    pub words_nearby: f64,
    /// How similar it is to the query.
    pub similarity: Option<f64>,
    /// How similar it is together with its neighbours.
    pub similarity_nearby: Option<f64>,
    /// What it keeps for who said it.
    pub by_another: f64,
    /// What it keeps for being a question.
    pub asks: f64,
}

/// Scores the candidates of one search, in their order. `worth` is what each term of the query is worth, by
/// [`idf`](super::lexical::idf).
///
/// Candidates are the best by words and the best by meaning, a hundred of each, and everything within [`REACH`] of one of
/// them: a neighbour may be what was asked for, and lends to those found. Or simply all there is.
pub fn rank(worth: &[f64], candidates: &[Candidate], weights: &Weights) -> Vec<Score> {
    let worth = Worth::of(worth);
    let mut order: Vec<usize> = (0..candidates.len()).collect();
    order.sort_unstable_by_key(|&number| (candidates[number].session, candidates[number].position));
    let sorted: Vec<Candidate> = order.iter().map(|&number| candidates[number]).collect();
    let mut scores = vec![Score::default(); candidates.len()];
    for (at, number) in order.into_iter().enumerate() {
        scores[number] = score(&sorted, at, &worth, weights);
    }
    scores
}

/// The score of one of the turns, which are in their order.
fn score(turns: &[Candidate], at: usize, worth: &Worth<'_>, weights: &Weights) -> Score {
    let turn = &turns[at];
    let words = worth.share(turn.terms);
    let similarity = turn.similarity.map(cosine);
    let (words_nearby, similarity_nearby) = nearby(turns, at, worth, weights.context);
    let by_another = if turn.by_another { weights.by_another } else { 1.0 };
    let asks = if turn.asks { weights.asks } else { 1.0 };
    // Without a vector the words decide alone.
    let evidence = match similarity_nearby {
        Some(meaning) => weights.lexical * (words + words_nearby) + (1.0 - weights.lexical) * meaning,
        None => words + words_nearby,
    };
    let score = evidence * by_another * asks;
    Score { score, words, words_nearby, similarity, similarity_nearby, by_another, asks }
}

/// What the neighbours say of the query's words that the turn itself does not, each word where it is said nearest; and the
/// mean similarity of the turn and its neighbours.
fn nearby(turns: &[Candidate], at: usize, worth: &Worth<'_>, context: f64) -> (f64, Option<f64>) {
    let turn = &turns[at];
    let (mut said, mut words) = (turn.terms, 0.0);
    let (mut sum, mut parts) = (turn.similarity.map_or(0.0, cosine), 1.0);
    for (nearness, neighbour) in neighbours(turns, at) {
        words += nearness * worth.share(neighbour.terms & !said);
        said |= neighbour.terms;
        if let Some(similarity) = neighbour.similarity {
            sum += context * nearness * cosine(similarity);
            parts += context * nearness;
        }
    }
    (words, turn.similarity.map(|_| sum / parts))
}

/// The turns around one, and how near they are; the nearest first. Some may be missing.
fn neighbours(turns: &[Candidate], at: usize) -> impl Iterator<Item = (f64, &Candidate)> {
    let (turn, reach) = (&turns[at], REACH as usize);
    let around = &turns[at.saturating_sub(reach)..turns.len().min(at + reach + 1)];
    NEAR.into_iter().filter_map(move |(distance, nearness)| {
        let position = turn.position.checked_add_signed(distance)?;
        let stands_there = |other: &&Candidate| other.session == turn.session && other.position == position;
        around.iter().find(stands_there).map(|neighbour| (nearness, neighbour))
    })
}

/// What is less similar than not at all, or no number, is not similar.
fn cosine(similarity: f64) -> f64 {
    if similarity.is_nan() { 0.0 } else { similarity.clamp(0.0, 1.0) }
}

/// What the terms of a query are worth.
struct Worth<'a> {
    terms: &'a [f64],
    whole: f64,
}

impl<'a> Worth<'a> {
    fn of(terms: &'a [f64]) -> Self {
        let terms = &terms[..terms.len().min(MAX_TERMS)];
        Self { terms, whole: terms.iter().sum() }
    }

    /// The share that some terms have in what all of them are worth.
    fn share(&self, terms: u64) -> f64 {
        let held = self.terms.iter().enumerate().filter(|(number, _)| terms >> number & 1 == 1);
        let sum: f64 = held.map(|(_, worth)| worth).sum();
        if self.whole > 0.0 { sum / self.whole } else { 0.0 }
    }
}

#[cfg(test)]
mod tests;
