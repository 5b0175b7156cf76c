//! One ranker for dialogue: a turn is judged by what is said in it and around it.
//!
//! An answer seldom repeats its question: "How long have you had the turtles?" – "Three years now." So a turn is found by
//! the words and the meaning of its neighbours too, the less the farther they are. That, and not a way of mixing two lists,
//! is most of what this ranker is better by. The rest is who speaks, and that a question is not an answer. A long turn needs
//! less of its neighbours, and its own evidence is spread over many words: so nearness fades with the length of both.
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

/// A turn of more terms takes less from its neighbours, and of an agent it counts less. These are about 50 words.
const SHORT_TERMS: f64 = 30.0;
/// A turn of more terms lends less to its neighbours. A question may be long that a short answer has its words from.
const LENT_TERMS: f64 = 60.0;
/// What a turn of an agent keeps, the longer it is. An agent says much that nobody asked for, a user what is so.
const LONG_BY_AGENT: f64 = 0.9;

/// A turn that a search may return, or that stands near one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Candidate {
    /// Which of the query's terms its best piece holds: bit `n` for the `n`th.
    pub terms: u64,
    /// Cosine of the query and the best of its pieces; `None` when one of them has no vector.
    pub similarity: Option<f64>,
    /// Which share of the query the model knows whose vectors were compared, from 0 to 1.
    pub understood: f64,
    /// How many terms it has: its words but those of grammar.
    pub length: u32,
    /// An agent said this.
    pub by_agent: bool,
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
    /// The share of the words; the rest is meaning, where the model knows the query.
    pub lexical: f64,
    /// How much the meaning of neighbours counts, of what their nearness is.
    pub context: f64,
    /// What a turn keeps that somebody else said than whom the query is about; 1 if it does not matter who speaks.
    pub by_another: f64,
    /// What a turn keeps that ends with a question. One that is put to an agent keeps all: it says what its author is about.
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
    /// Which share more is said nearby, less for being farther, and less the longer both turns are.
    pub words_nearby: f64,
    /// How similar it is to the query.
    pub similarity: Option<f64>,
    /// How similar it is together with its neighbours.
    pub similarity_nearby: Option<f64>,
    /// What its meaning counts, as far as the model knows the query; its words count the rest.
    pub meaning: f64,
    /// What it keeps for who said it.
    pub by_another: f64,
    /// What it keeps for being a long turn of an agent.
    pub by_agent: f64,
    /// What it keeps for being a question.
    pub asks: f64,
    /// Whether it may be an answer without a word of the query: somebody asked right before with one, or a user says it to an
    /// agent.
    pub may_answer: bool,
}

impl Score {
    /// Whether it is a result although it shares no word and is less similar than `floor`: it may answer, and all that speaks
    /// for it, what was said around it too, is worth as much as such a similarity alone.
    pub fn is_enough(&self, floor: f64, weights: &Weights) -> bool {
        let meaning = self.similarity_nearby.unwrap_or_default();
        let evidence = (1.0 - self.meaning) * (self.words + self.words_nearby) + self.meaning * meaning;
        floor <= 0.0 || (self.may_answer && evidence >= (1.0 - weights.lexical) * floor)
    }
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
    // Without a vector, or with one that says nothing, the words decide alone.
    let meaning = match similarity_nearby {
        Some(_) => (1.0 - weights.lexical) * cosine(turn.understood),
        None => 0.0,
    };
    let by_another = if turn.by_another { weights.by_another } else { 1.0 };
    let by_agent =
        if turn.by_agent { LONG_BY_AGENT + (1.0 - LONG_BY_AGENT) * turn.brevity(SHORT_TERMS) } else { 1.0 };
    let is_to_agent = is_said_to_agent(turns, at);
    let asks = if turn.asks && !is_to_agent { weights.asks } else { 1.0 };
    let may_answer = is_to_agent || follows_question(turns, at);
    let evidence = (1.0 - meaning) * (words + words_nearby) + meaning * similarity_nearby.unwrap_or_default();
    let score = evidence * by_another * by_agent * asks;
    Score {
        score,
        words,
        words_nearby,
        similarity,
        similarity_nearby,
        meaning,
        by_another,
        by_agent,
        asks,
        may_answer,
    }
}

/// Whether a user says this to an agent: one speaks nearby.
fn is_said_to_agent(turns: &[Candidate], at: usize) -> bool {
    !turns[at].by_agent && neighbours(turns, at).any(|(_, neighbour)| neighbour.by_agent)
}

/// Whether somebody asked right before, or before the last turn, with a word of the query.
fn follows_question(turns: &[Candidate], at: usize) -> bool {
    let is_asked = |other: &Candidate| other.asks && other.terms != 0;
    neighbours(turns, at).any(|(_, other)| {
        other.position < turns[at].position && turns[at].position - other.position <= 2 && is_asked(other)
    })
}

/// What the neighbours say of the query's words that the turn itself does not, each word where it is lent most; and the
/// mean similarity of the turn and its neighbours.
fn nearby(turns: &[Candidate], at: usize, worth: &Worth<'_>, context: f64) -> (f64, Option<f64>) {
    let turn = &turns[at];
    let (mut said, mut words) = (turn.terms, 0.0);
    let (mut sum, mut parts) = (turn.similarity.map_or(0.0, cosine), 1.0);
    let mut near: Vec<(f64, &Candidate)> = neighbours(turns, at)
        .map(|(near, other)| (near * turn.brevity(SHORT_TERMS) * other.brevity(LENT_TERMS), other))
        .collect();
    near.sort_by(|one, other| other.0.total_cmp(&one.0));
    for (nearness, neighbour) in near {
        words += nearness * worth.share(neighbour.terms & !said);
        said |= neighbour.terms;
        if let Some(similarity) = neighbour.similarity {
            sum += context * nearness * cosine(similarity);
            parts += context * nearness;
        }
    }
    (words, turn.similarity.map(|_| sum / parts))
}

impl Candidate {
    /// 1 for a turn of so many terms or fewer, less the longer it is.
    fn brevity(&self, short: f64) -> f64 {
        (short / f64::from(self.length.max(1))).min(1.0)
    }
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
