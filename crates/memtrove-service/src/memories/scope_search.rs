//! Finding entries in scopes: an index names candidates, which are scored here, alike for every index.
//!
//! There are two indexes, and each scope has one of them: in [memory](ram), or for large scopes in the [database].
//! Both are derived from the store and asked inside the unit of work that loads what they name.

mod database;
mod ram;
mod segment;

pub use ram::{ScopeCache, announce_metrics};
pub use segment::ScopeSnapshot;

use super::search::Metric;
use memtrove_core::memories::decay::Fading;
use memtrove_core::memories::limits::DecayRules;
use memtrove_core::memories::merge::{Match, rank};
use memtrove_core::memories::search::Mode;
use memtrove_core::memories::{Conditions, Embedding, Memory, ScopeKey, Viewer};
use memtrove_core::recall::lexical;
use memtrove_core::recall::passages::PassageQuery;
use memtrove_core::recall::relevance::{Asked, Relevance, of_pieces};
use memtrove_core::recall::spelling::WrittenWord;
use memtrove_core::recall::terms::{EntryQuery, EntryTerms, WordForm};
use memtrove_core::recall::time_words::TimeWindow;
use memtrove_core::text::Analyzer;
use memtrove_core::{Result, Timestamp};
use memtrove_recall::embed::static_model::StaticModel;
use memtrove_recall::embed::{QueryVector, Space};
use memtrove_recall::index::{Bm25, Candidate, QueryTerm, TermStatistics, rescore};
use memtrove_store::Tx;
use memtrove_store::memories::scopes::{self, ScopeRow, Searched};
use memtrove_store::memories::{ScopeNo, entries, index};
use ram::{Candidates, Slot};
use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, HashSet};
use std::ops::ControlFlow;
use std::sync::Arc;

/// Stored vectors that are read together at least: each time is a round trip where the store is far away.
const FETCHED_AT_ONCE: usize = 32;
/// No more are looked at where that many are as good as each other.
const MOST_RESCORED: usize = 4_096;
/// Of those that are not among the best so many are looked at, to count which pass the threshold.
const MOST_UNSURE: usize = 256;
/// Entries that a filter reads at a time.
const BATCH: i64 = 200;

/// A scope to be read, perhaps only up to an instant: a fork sees what its ancestors remembered before it.
#[derive(Debug, Clone)]
pub struct Span {
    /// The scope.
    pub scope: ScopeKey,
    /// Entries made later are not seen.
    pub until: Option<Timestamp>,
}

/// What is looked for in scopes.
#[derive(Debug, Clone)]
pub struct ScopeQuery {
    /// By meaning: the query in every space it could be embedded for.
    pub vectors: Vec<QueryVector>,
    /// By words.
    pub terms: EntryQuery,
    /// Words that are a little evidence where an entry has them, and say nothing where none has. They are all the evidence
    /// there is where no entry has any other word.
    pub faint_terms: Vec<u64>,
    /// Which of the two counts.
    pub mode: Mode,
    /// Whether entries must share a word with the query.
    pub words_required: bool,
    /// The least score.
    pub threshold: f64,
    /// The greatest distance of meanings, and how it is measured.
    pub farthest: Option<(Metric, f64)>,
    /// The time that is asked about: what lies in it is preferred.
    pub time: Option<TimeWindow>,
    /// Whether nothing else is asked for: then what lies in it matches by that.
    pub time_alone: bool,
    /// How many of the best are needed, in each scope.
    pub want: usize,
    /// For whom.
    pub viewer: Viewer,
    /// Among which entries.
    pub conditions: Conditions,
    /// Now: what has expired does not exist.
    pub now: Timestamp,
}

impl ScopeQuery {
    /// Whether every entry that has a vector matches.
    fn matches_everything(&self) -> bool {
        self.threshold <= 0.0 && !self.words_required && !self.vectors.is_empty()
    }

    /// Which of its vectors lies in the space of a model.
    fn vector_in_space_of(&self, model: &str) -> Option<usize> {
        let space = Space::of(model)?;
        self.vectors.iter().position(|vector| vector.space == space)
    }

    /// All terms, the faint ones last.
    fn all_terms(&self) -> Vec<u64> {
        let mut terms = self.terms.all();
        let faint: Vec<u64> = self.faint_terms.iter().filter(|term| !terms.contains(term)).copied().collect();
        terms.extend(faint);
        terms
    }

    fn uses_words(&self) -> bool {
        self.mode == Mode::Hybrid || self.words_required
    }

    fn admission(&self, until: Option<Timestamp>) -> Admission<'_> {
        Admission { viewer: &self.viewer, conditions: &self.conditions, until, now: self.now, only: None }
    }
}

/// The entries of some scopes that match.
#[derive(Debug, Clone, Default)]
pub struct Matches {
    /// The best of each scope, and every one that has a conflict key.
    pub matches: Vec<Match>,
    /// How many match altogether.
    pub total: usize,
    /// Whether that may be wrong.
    pub inexact: bool,
    /// Whether there are more than are named here.
    pub truncated: bool,
    /// What passages of them are looked for by; none where nothing was searched.
    pub passages: Option<PassageQuery>,
    /// The scopes that were searched, each with the instant up to which.
    scopes: HashMap<ScopeNo, Option<Timestamp>>,
}

impl Matches {
    /// Adds what matches elsewhere.
    pub fn extend(&mut self, other: &Self) {
        self.matches.extend_from_slice(&other.matches);
        self.total += other.total;
        self.inexact |= other.inexact;
        self.truncated |= other.truncated;
    }

    /// Drops what means something too far away. What the index could not know is taken off what it counted.
    fn drop_farther(&mut self, metric: Metric, farthest: f64) {
        let found = self.matches.len();
        self.matches.retain(|matched| metric.distance(matched.cosine) <= farthest);
        self.total = self.total.saturating_sub(found - self.matches.len());
    }

    /// Loads entries that were found in the same unit of work. Whether they may be found is asked again, of the entries.
    pub fn load(&self, tx: &mut dyn Tx, matches: &[&Match], query: &ScopeQuery) -> Result<Vec<Memory>> {
        let numbers: Vec<i64> = matches.iter().map(|matched| matched.key as i64).collect();
        let mut stored = entries::with_numbers(tx, &numbers)?;
        stored.retain(|one| {
            let until = self.scopes.get(&one.scope_no);
            until.is_some_and(|until| query.admission(*until).admits_memory(&one.memory))
        });
        entries::add_embeddings(tx, &mut stored)?;
        Ok(stored.into_iter().map(|one| one.memory).collect())
    }
}

/// Which entries of a scope may be found.
pub struct Admission<'a> {
    /// For whom.
    pub viewer: &'a Viewer,
    /// Which of them.
    pub conditions: &'a Conditions,
    /// Made no later.
    pub until: Option<Timestamp>,
    /// Now.
    pub now: Timestamp,
    /// Only these, where a filter had to be asked of the entries themselves.
    pub only: Option<&'a HashSet<u64>>,
}

impl Admission<'_> {
    /// Whether an entry may be found.
    pub fn admits_memory(&self, memory: &Memory) -> bool {
        memory.is_live(self.now)
            && self.until.is_none_or(|until| memory.created_at <= until)
            && self.viewer.sees(&memory.policy, &memory.created_by)
            && self.conditions.admits(memory)
    }

    /// The same of what the store's index says of an entry, but for the conditions' filter.
    fn admits_indexed(&self, indexed: &index::Indexed) -> bool {
        let head = &indexed.head;
        head.expires_at.is_none_or(|expires| expires > self.now)
            && self.conditions.admits_head(head.kind, head.state, head.at)
            && self.until.is_none_or(|until| head.created_at <= until)
            && self.viewer.sees(&head.policy, &head.author)
    }
}

/// How many entries of a scope are admitted.
pub fn count(tx: &mut dyn Tx, cache: &ScopeCache, row: ScopeRow, admission: &Admission<'_>) -> Result<usize> {
    match is_in_database(tx, cache, &row) {
        true => database::count(tx, row, admission),
        false => ram::count(tx, cache, row, admission),
    }
}

/// The index of a scope in memory, brought up to date; `None` where the database searches it.
pub fn snapshot(tx: &mut dyn Tx, cache: &ScopeCache, row: ScopeRow) -> Result<Option<ScopeSnapshot>> {
    match is_in_database(tx, cache, &row) {
        true => Ok(None),
        false => ram::snapshot(tx, cache, row).map(Some),
    }
}

/// Whether the database searches a scope. Then nothing of it is kept here.
fn is_in_database(tx: &mut dyn Tx, cache: &ScopeCache, row: &ScopeRow) -> bool {
    let in_database = row.searched == Searched::ByDatabase && tx.vectors().is_some();
    if in_database {
        cache.drop_key(&row.no);
    }
    in_database
}

/// The entries of several scopes that answer a query.
pub fn search(
    tx: &mut dyn Tx,
    cache: &ScopeCache,
    spans: &[Span],
    query: &ScopeQuery,
    decay: &DecayRules,
    analyzer: &Analyzer,
) -> Result<Matches> {
    let mut searched = Vec::with_capacity(spans.len());
    for span in spans {
        let Some(row) = scopes::find(tx, &span.scope)? else { continue };
        searched.push(SearchedSpan { span, row, in_database: is_in_database(tx, cache, &row) });
    }
    let mut query = Cow::Borrowed(query);
    let mut statistics = Statistics::of(tx, cache, &searched, &query.viewer, &query.all_terms())?;
    let meant = meant(tx, cache, &searched, &query, &statistics.together, analyzer)?;
    if !meant.is_empty() {
        query.to_mut().terms.forms.extend(meant);
        statistics = Statistics::of(tx, cache, &searched, &query.viewer, &query.all_terms())?;
    }
    let query = &*query;
    let words = Words::of(query, &statistics.together);
    let mut matches = Matches { passages: Some(words.passages(query)), ..Matches::default() };
    for (SearchedSpan { span, row, in_database }, here) in searched.into_iter().zip(&statistics.each) {
        matches.scopes.insert(row.no, span.until);
        let scope = ScopeSearch { span, row, query, decay };
        match in_database {
            true => scope.search_database(tx, &words, here, &mut matches)?,
            false => scope.search_ram(tx, cache, &words, &mut matches)?,
        }
    }
    if let Some((metric, farthest)) = query.farthest {
        matches.drop_farther(metric, farthest);
    }
    Ok(matches)
}

/// A scope that exists, to be searched.
struct SearchedSpan<'a> {
    span: &'a Span,
    row: ScopeRow,
    in_database: bool,
}

/// How common some words are.
struct Statistics {
    /// In each of some scopes.
    each: Vec<TermStatistics>,
    /// In all of them.
    together: TermStatistics,
}

impl Statistics {
    /// How common terms are among what a viewer may see.
    fn of(
        tx: &mut dyn Tx,
        cache: &ScopeCache,
        searched: &[SearchedSpan<'_>],
        viewer: &Viewer,
        terms: &[u64],
    ) -> Result<Self> {
        let mut all = Self { each: Vec::with_capacity(searched.len()), together: TermStatistics::default() };
        for SearchedSpan { row, in_database, .. } in searched {
            let here = match (terms.is_empty(), in_database) {
                (true, _) => TermStatistics::default(),
                (false, true) => database::statistics(tx, *row, viewer, terms)?,
                (false, false) => ram::statistics(tx, cache, *row, viewer, terms)?,
            };
            all.together.add(&here);
            all.each.push(here);
        }
        Ok(all)
    }
}

/// No more words of a query are read as others.
const MOST_MISTYPED: usize = 4;

/// What is meant by words that no entry has and no vocabulary: the commonest of the words that a letter makes of each.
fn meant(
    tx: &mut dyn Tx,
    cache: &ScopeCache,
    searched: &[SearchedSpan<'_>],
    query: &ScopeQuery,
    statistics: &TermStatistics,
    analyzer: &Analyzer,
) -> Result<Vec<WordForm>> {
    if !query.uses_words() || statistics.pieces == 0 {
        return Ok(Vec::new());
    }
    let frequencies = query.terms.frequencies(&statistics.frequencies);
    let is_strange = |one: &WrittenWord| !StaticModel::knows(&one.word) && !StaticModel::knows(&one.stem);
    let mistyped = query.terms.mistyped(&frequencies).filter(|(_, one)| is_strange(one)).take(MOST_MISTYPED);
    let mut known: HashSet<u64> = query.all_terms().into_iter().collect();
    let mut meant = Vec::new();
    for (word, one) in mistyped {
        let terms = one.meant(analyzer);
        let counted = Statistics::of(tx, cache, searched, &query.viewer, &terms)?.together.frequencies;
        let commonest = terms.into_iter().zip(counted).filter(|(_, frequency)| *frequency > 0);
        let commonest = commonest.max_by_key(|(term, frequency)| (*frequency, Reverse(*term)));
        let fresh = commonest.filter(|(term, _)| known.insert(*term));
        meant.extend(fresh.map(|(term, _)| WordForm { word, term }));
    }
    Ok(meant)
}

/// The entries of a scope that pass a query's filter; `None` is all.
fn passing_filter(tx: &mut dyn Tx, scope: ScopeNo, query: &ScopeQuery) -> Result<Option<HashSet<u64>>> {
    if query.conditions.filter.is_empty() {
        return Ok(None);
    }
    let mut passing = HashSet::new();
    entries::newest(tx, scope, None, BATCH, |stored| {
        if query.conditions.filter.matches(&stored.memory) {
            passing.insert(stored.no.0 as u64);
        }
        ControlFlow::Continue(())
    })?;
    Ok(Some(passing))
}

/// The words of a query, weighed by how rare they are among what the viewer may see.
struct Words {
    terms: Vec<QueryTerm>,
    /// What the terms are worth that some entry has, and the others.
    known: f64,
    unknown: f64,
    /// Which share of the query the model understands, for each of its vectors.
    understood: Vec<f64>,
    bm25: Bm25,
}

/// How much it says that a word is repeated, and a text short, where the model understands nothing of the query. Where it
/// understands all, neither is evidence: what counts is which of the words are there.
const REPEATED: f64 = 0.9;
const SHORT: f32 = 0.4;
/// What all faint words together are worth at most, of what the others are. No share of the query is missing where they are not.
/// Where no entry has any of the others, they are worth the share of the query that they are.
const FAINT: f64 = 0.2;
/// How many terms an entry has about. A constant, so that the same entry scores the same in every scope.
const USUAL_TERMS: f32 = 20.0;

impl Words {
    fn of(query: &ScopeQuery, statistics: &TermStatistics) -> Self {
        let asked = &query.terms;
        let worth = |frequency: u64| lexical::idf(statistics.pieces as usize, frequency as usize);
        let (mut known, mut unknown) = (0.0, 0.0);
        let mut weigh = |(number, frequency): (usize, u64)| {
            let (is_known, worth) = (frequency > 0, worth(frequency));
            let weight = if is_known || number < asked.words.len() { worth } else { 0.0 };
            *(if is_known { &mut known } else { &mut unknown }) += weight;
            weight
        };
        let frequencies = asked.frequencies(&statistics.frequencies);
        let mut weights: Vec<f64> = frequencies.into_iter().enumerate().map(&mut weigh).collect();
        // A word says the same in each of its forms.
        weights.extend(asked.forms.iter().map(|form| weights[form.word]).collect::<Vec<f64>>());
        let mut all = query.all_terms();
        let faint = all.split_off(weights.len());
        let faint_frequencies = statistics.frequencies.iter().skip(weights.len());
        let weighed = all.into_iter().zip(weights);
        let mut terms: Vec<QueryTerm> =
            weighed.map(|(hash, weight)| QueryTerm { hash, weight: weight as f32 }).collect();
        let faint: Vec<(u64, f64)> = faint
            .into_iter()
            .zip(faint_frequencies)
            .map(|(hash, frequency)| (hash, if *frequency > 0 { worth(*frequency) } else { 0.0 }))
            .collect();
        let together: f64 = faint.iter().map(|(_, worth)| worth).sum();
        let part = match (known > 0.0, together > 0.0) {
            (_, false) => 0.0,
            (true, true) => (FAINT * known / together).min(1.0),
            (false, true) => together / (together + unknown),
        };
        if known <= 0.0 {
            known = together;
        }
        terms
            .extend(faint.into_iter().map(|(hash, worth)| QueryTerm { hash, weight: (part * worth) as f32 }));
        let understood: Vec<f64> = query.vectors.iter().map(|vector| vector.understood).collect();
        let foreign = understood.first().map_or(0.0, |understood| 1.0 - understood);
        let bm25 = Bm25 { k1: (REPEATED * foreign) as f32, b: SHORT, average_length: USUAL_TERMS };
        Self { terms, known, unknown, understood, bm25 }
    }

    /// What passages are looked for by: the words, and the meaning in the space that every text has a vector of at once.
    fn passages(&self, query: &ScopeQuery) -> PassageQuery {
        let shared = query.vectors.iter().position(|vector| vector.space.is_shared());
        let terms = self.terms.iter().map(|term| (term.hash, f64::from(term.weight)));
        PassageQuery::new(terms.collect(), self.asked(shared))
    }

    /// What these words are worth in the best piece of an entry, and in all of it, each where it is worth most.
    fn worth_of(&self, terms: &[QueryTerm], entry: &EntryTerms) -> (f32, f32) {
        let pieces = if entry.pieces.is_empty() { std::slice::from_ref(&entry.whole) } else { &entry.pieces };
        let mut most = vec![0.0f32; terms.len()];
        let mut best = 0.0f32;
        for piece in pieces {
            let mut sum = 0.0;
            for (term, most) in terms.iter().zip(&mut most) {
                if let Ok(at) = piece.counts.binary_search_by_key(&term.hash, |(hash, _)| *hash) {
                    let worth = self.bm25.worth(term.weight, piece.counts[at].1, piece.length);
                    *most = most.max(worth);
                    sum += worth;
                }
            }
            best = best.max(sum);
        }
        (best, most.into_iter().fold(0.0, |sum, worth| sum + worth))
    }

    /// What the query asks for, of an entry that one of its vectors can be compared with.
    fn asked(&self, vector: Option<usize>) -> Asked {
        let understood = vector.and_then(|number| self.understood.get(number)).copied().unwrap_or_default();
        Asked { known: self.known, unknown: self.unknown, understood }
    }
}

/// A scope that is searched.
struct ScopeSearch<'a> {
    span: &'a Span,
    row: ScopeRow,
    query: &'a ScopeQuery,
    decay: &'a DecayRules,
}

/// A match whose score may still be an estimate, and what it takes to make it exact.
struct Estimate {
    matched: Match,
    /// The change that the entry is indexed under.
    seq: i64,
    /// What the words are worth that it has of the query.
    lexical: f32,
    /// How near the query its meaning is, or that of its nearest piece: what it is ranked by.
    nearest: f64,
    /// Which of the query's vectors it was compared with.
    vector: Option<usize>,
    /// The true cosine is at most this far away; nothing of an exact one.
    error: f64,
}

impl ScopeSearch<'_> {
    fn search_ram(
        &self,
        tx: &mut dyn Tx,
        cache: &ScopeCache,
        words: &Words,
        matches: &mut Matches,
    ) -> Result<()> {
        let only = passing_filter(tx, self.row.no, self.query)?;
        let admission = Admission { only: only.as_ref(), ..self.query.admission(self.span.until) };
        let Candidates { mut estimates, changed_since, total, exact } =
            self.candidates(tx, cache, words, &admission)?;
        let uncertain = self.rescore(tx, words, &mut estimates)?;
        if !changed_since.is_empty() {
            estimates.extend(self.as_of_snapshot(tx, &changed_since, words, &admission)?);
        }
        self.keep(estimates, total, exact && !uncertain, matches);
        Ok(())
    }

    /// Entries as they are in this unit of work, which the index knows as they became later.
    fn as_of_snapshot(
        &self,
        tx: &mut dyn Tx,
        numbers: &[i64],
        words: &Words,
        admission: &Admission<'_>,
    ) -> Result<Vec<Estimate>> {
        let changes: Vec<i64> = entries::with_numbers(tx, numbers)?.iter().map(|stored| stored.seq).collect();
        let found = index::at(tx, self.row.no, &changes)?.into_iter().filter(|indexed| {
            let passes = admission.only.is_none_or(|only| only.contains(&(indexed.no.0 as u64)));
            passes && admission.admits_indexed(indexed)
        });
        Ok(found.filter_map(|indexed| self.exact(words, &words.terms, indexed)).collect())
    }

    /// Adds the best of what passes the threshold to what was found in other scopes.
    fn keep(&self, mut estimates: Vec<Estimate>, total: Option<usize>, exact: bool, all: &mut Matches) {
        let query = self.query;
        estimates.retain(|one| one.matched.score() >= query.threshold);
        all.total += total.unwrap_or(estimates.len());
        all.inexact |= !exact;
        all.truncated |= estimates.len() > query.want;
        if estimates.len() > query.want {
            estimates.select_nth_unstable_by(query.want, |a, b| a.matched.by_score(&b.matched));
        }
        let matches = estimates.into_iter().map(|one| one.matched).enumerate();
        let kept = matches.filter(|(rank, one)| *rank < query.want || one.conflict_key.is_some());
        all.matches.extend(kept.map(|(_, one)| one));
    }

    /// Replaces estimates by what stored vectors say, wherever that decides who is among the best or passes the threshold.
    /// Says whether some such were left as they are, because there were too many.
    fn rescore(&self, tx: &mut dyn Tx, words: &Words, estimates: &mut [Estimate]) -> Result<bool> {
        let query = self.query;
        let bounds: Vec<(f64, f64)> = estimates
            .iter()
            .map(|one| {
                let score = |cosine: f64| self.evidence(words, one, cosine).score;
                (score(one.nearest - one.error), score(one.nearest + one.error))
            })
            .collect();
        let mut order: Vec<usize> =
            (0..estimates.len()).filter(|at| bounds[*at].1 >= query.threshold).collect();
        // Those that may be best come first, so that most of the others need not be looked at.
        let better = |a: &usize, b: &usize| bounds[*b].1.total_cmp(&bounds[*a].1);
        let mut best: BinaryHeap<Reverse<i64>> = BinaryHeap::with_capacity(query.want + 1);
        let mut done = 0;
        while done < order.len() {
            let rest = &mut order[done..];
            // More each time, so that a long walk among equals takes few steps.
            let count = query.want.clamp(FETCHED_AT_ONCE, MOST_UNSURE).max(done).min(rest.len());
            if count < rest.len() {
                rest.select_nth_unstable_by(count, better);
            }
            let together = &rest[..count];
            // The rest are beaten: whatever their vectors say, so many others are better.
            let highest = together.iter().map(|at| bounds[*at].1).fold(0.0, f64::max);
            if best.len() == query.want && best.peek().is_none_or(|Reverse(last)| rank(highest) < *last) {
                break;
            }
            if done >= MOST_RESCORED {
                return Ok(true);
            }
            self.make_exact(tx, words, estimates, together)?;
            for at in together {
                best.push(Reverse(rank(estimates[*at].matched.score())));
                if best.len() > query.want {
                    best.pop();
                }
            }
            done += count;
        }
        // Beaten or not, it counts as a match if it passes the threshold.
        let is_unsure = |at: &usize| bounds[*at].0 < query.threshold && estimates[*at].is_estimated();
        let unsure: Vec<usize> = order[done..].iter().copied().filter(is_unsure).collect();
        let looked_at = &unsure[..unsure.len().min(MOST_UNSURE)];
        self.make_exact(tx, words, estimates, looked_at)?;
        Ok(looked_at.len() < unsure.len())
    }

    /// Replaces some estimates by what stored vectors say.
    fn make_exact(
        &self,
        tx: &mut dyn Tx,
        words: &Words,
        estimates: &mut [Estimate],
        places: &[usize],
    ) -> Result<()> {
        let estimated: Vec<usize> =
            places.iter().copied().filter(|at| estimates[*at].is_estimated()).collect();
        if estimated.is_empty() {
            return Ok(());
        }
        let stored: Vec<i64> = estimated.iter().map(|at| self.row.no.place(estimates[*at].seq)).collect();
        let fetched = index::embeddings(tx, &stored)?;
        for (at, place) in estimated.into_iter().zip(stored) {
            let one = &mut estimates[at];
            let Some(vector) = one.vector.and_then(|number| self.query.vectors.get(number)) else { continue };
            let Some(stored) = fetched.get(&place) else { continue };
            one.matched.cosine = f64::from(rescore(&vector.vector, &stored.vector));
            one.nearest = f64::from(nearest(&vector.vector, stored));
            one.matched.evidence = self.evidence(words, one, one.nearest);
            one.error = 0.0;
        }
        Ok(())
    }

    /// A candidate of an index, with what that knows of the entry.
    fn estimate(
        &self,
        words: &Words,
        candidate: &Candidate,
        slot: &Slot,
        vector: Option<usize>,
        conflict_key: Option<Arc<str>>,
    ) -> Estimate {
        let fading = Fading {
            initial: f64::from(slot.relevance),
            factor: f64::from(slot.fading),
            anchor: slot.anchor,
        };
        let (layer, cosine) = (self.span.scope.layer(), f64::from(candidate.similarity));
        let lexical = of_pieces(candidate.lexical, candidate.together);
        let mut estimate = Estimate {
            matched: Match {
                id: slot.id,
                key: candidate.key,
                layer,
                evidence: Relevance::default(),
                cosine,
                relevance: self.decay.shown(layer, &fading, self.query.now),
                at: slot.told_at(),
                is_dated: slot.is_dated(),
                updated_at: slot.updated_at,
                conflict_key,
                overridden_by: None,
            },
            seq: slot.seq,
            lexical,
            nearest: cosine,
            vector,
            error: if vector.is_some() { f64::from(candidate.error) } else { 0.0 },
        };
        estimate.matched.evidence = self.evidence(words, &estimate, cosine);
        estimate
    }

    /// An entry with its exact score, by what is stored; none if it could not be found.
    fn exact(&self, words: &Words, terms: &[QueryTerm], indexed: index::Indexed) -> Option<Estimate> {
        let query = self.query;
        let index::Indexed { no, seq, head, embedding, terms: own } = indexed;
        let vector = embedding.as_ref().and_then(|made| query.vector_in_space_of(&made.model));
        // An entry without a vector to compare with has no meaning that a search by meaning could find.
        if vector.is_none() && !query.vectors.is_empty() {
            return None;
        }
        let (lexical, together) = words.worth_of(terms, &own);
        if query.words_required && lexical <= 0.0 {
            return None;
        }
        let (mut similarity, mut cosine) = (0.0, 0.0);
        if let (Some(vector), Some(made)) = (vector, &embedding) {
            let asked = &query.vectors[vector].vector;
            (similarity, cosine) = (nearest(asked, made), rescore(asked, &made.vector));
        }
        let key = no.0 as u64;
        let candidate = Candidate { key, similarity, lexical, together, ..Candidate::default() };
        let slot = Slot::of(seq, &head);
        let mut exact = self.estimate(words, &candidate, &slot, vector, head.conflict_key.map(Into::into));
        exact.matched.cosine = f64::from(cosine);
        Some(exact)
    }

    /// What speaks for an entry if its cosine is this.
    fn evidence(&self, words: &Words, entry: &Estimate, cosine: f64) -> Relevance {
        let query = self.query;
        let compared = entry.vector.filter(|_| query.mode == Mode::Semantic || !query.words_required);
        let vector = compared.and_then(|number| query.vectors.get(number));
        let similarity = vector.map_or(0.0, |vector| vector.calibration.score(cosine));
        let (asked, found) = (words.asked(compared), f64::from(entry.lexical));
        let relevance = match query.mode {
            Mode::Hybrid if vector.is_none_or(|vector| vector.calibration.is_measured()) => {
                asked.relevance(found, cosine, similarity)
            }
            Mode::Hybrid => asked.relevance_unmeasured(found, similarity),
            Mode::Semantic => Relevance::of_meaning(similarity),
        };
        match query.time {
            Some(window) if query.time_alone => relevance.in_time_alone(window.fit(entry.matched.at)),
            Some(window) => relevance.in_time(window.fit(entry.matched.at)),
            None => relevance,
        }
    }
}

impl Estimate {
    fn is_estimated(&self) -> bool {
        self.error > 0.0
    }
}

/// How near an entry's meaning is to a vector: that of its nearest piece, if it has several.
fn nearest(query: &[f32], stored: &Embedding) -> f32 {
    let pieces = stored.pieces.iter().map(|piece| rescore(query, piece));
    pieces.reduce(f32::max).unwrap_or_else(|| rescore(query, &stored.vector))
}
