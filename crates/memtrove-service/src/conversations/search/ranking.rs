//! Ranking what the trees of a scope hold in memory.

use super::fulltext;
use super::page::{Explanation, HitPageRequest, Ranked, best_of_each, by_rank};
use super::question::Question;
use super::view::View;
use crate::Context;
use crate::conversations::trees::{Known, Turn};
use memtrove_core::Result;
use memtrove_core::recall::fusion::{self, REACH};
use memtrove_core::recall::lexical;
use memtrove_recall::index::{Bm25, Candidate, Partition, Probe, QueryTerm, SpaceNo, TermStatistics};
use memtrove_store::Tx;
use memtrove_store::conversations::embeddings::Tree;
use std::collections::{HashMap, HashSet};
use uuid::Uuid;

/// How many of the best of a tree are looked at, by words and by meaning each.
const BEST_OF_TREE: usize = 500;
/// The most hits that are kept while trees are looked at one after the other; beyond, only the better ones.
const MOST_HITS: usize = 200_000;

/// By how similar their meaning is.
pub(super) fn by_similarity(
    tx: &mut dyn Tx,
    cx: &Context,
    question: &Question,
    wanted: &HitPageRequest,
) -> Result<Vec<Ranked>> {
    let view = View::of(tx, question)?;
    let vectors = borrowed(&question.vectors);
    let probe = Probe {
        vectors: &vectors,
        terms: &[],
        bm25: Bm25::new(1.0),
        want: BEST_OF_TREE.max(wanted.depth()),
        floor: None,
        lexical_floor: None,
        exact: false,
    };
    let mut hits = Vec::new();
    view.each(tx, cx, |_, tree, known, partition| {
        let found = partition.search(&probe, |_, turn| can_compare(&vectors, turn));
        for candidate in found.candidates {
            let similarity = cosine(&candidate);
            let Some(turn) = partition.meta(candidate.key) else { continue };
            if question.floor.is_none_or(|floor| similarity >= floor) {
                hits.push(Ranked { score: similarity, ..unranked(tree, known, turn) });
            }
        }
        if hits.len() > MOST_HITS {
            if wanted.grouped {
                hits = best_of_each(std::mem::take(&mut hits));
            }
            hits.sort_unstable_by(by_rank);
            hits.truncate(MOST_HITS / 2);
        }
    })?;
    Ok(hits)
}

/// By all that speaks for them: words, meaning, who said it, and what was said around it.
pub(super) fn fused(
    tx: &mut dyn Tx,
    cx: &Context,
    question: &Question,
    wanted: &HitPageRequest,
) -> Result<Vec<Ranked>> {
    let view = View::of(tx, question)?;
    let mut statistics = TermStatistics::default();
    view.each(tx, cx, |_, _, _, partition| statistics.add(&partition.statistics(&question.terms)))?;
    let worth = worth(&statistics, question.terms.len());
    let terms: Vec<QueryTerm> = question
        .terms
        .iter()
        .zip(&worth)
        .map(|(hash, worth)| QueryTerm { hash: *hash, weight: *worth as f32 })
        .collect();
    let vectors = borrowed(&question.vectors);
    let search = Search {
        subject: question.subject(),
        probe: Probe {
            vectors: &vectors,
            terms: &terms,
            bm25: Bm25::new(statistics.average_length()),
            want: BEST_OF_TREE.max(wanted.depth()),
            floor: None,
            lexical_floor: None,
            exact: false,
        },
        beginnings: beginnings(tx, cx, question, &statistics)?,
    };
    let mut turns = Vec::new();
    view.each(tx, cx, |number, tree, known, partition| {
        search.gather(number, tree, known, partition, &mut turns);
        if turns.len() > MOST_HITS {
            keep_best(&mut turns, MOST_HITS / 8);
        }
    })?;
    let evidence: Vec<fusion::Candidate> = turns.iter().map(|turn| turn.evidence).collect();
    let scores = fusion::rank(&worth, &evidence, &question.weights);
    // What has no word in common and is not similar either only lent to its neighbours.
    let floor = question.floor.unwrap_or_default();
    let is_hit = |turn: &TurnCandidate| {
        let similarity = turn.evidence.similarity;
        turn.hit.has_words || floor <= 0.0 || similarity.is_some_and(|similarity| similarity >= floor)
    };
    let hits = turns.into_iter().zip(scores).filter(|(turn, _)| is_hit(turn));
    Ok(hits
        .map(|(turn, score)| Ranked {
            score: score.score,
            explanation: Explanation::Fused(score),
            ..turn.hit
        })
        .collect())
}

/// What each term of a query is worth.
fn worth(statistics: &TermStatistics, terms: usize) -> Vec<f64> {
    let found = |term: usize| statistics.frequencies.get(term).copied().unwrap_or_default();
    (0..terms).map(|term| lexical::idf(statistics.pieces as usize, found(term) as usize)).collect()
}

/// What full text finds where no entry has a word of the query as it stands there, but perhaps one that begins like it.
fn beginnings(
    tx: &mut dyn Tx,
    cx: &Context,
    question: &Question,
    statistics: &TermStatistics,
) -> Result<HashSet<Uuid>> {
    if statistics.frequencies.iter().any(|frequency| *frequency > 0) {
        return Ok(HashSet::new());
    }
    Ok(fulltext::rank(tx, cx, question)?.into_iter().map(|hit| hit.id).collect())
}

/// A turn that may be found, or that stands near one, and what speaks for it.
struct TurnCandidate {
    hit: Ranked,
    bm25: f32,
    evidence: fusion::Candidate,
}

/// What is looked for in every tree.
struct Search<'a> {
    /// Whom the query is about.
    subject: Option<&'a str>,
    probe: Probe<'a>,
    /// Entries that have all words of the query, if only as beginnings of theirs.
    beginnings: HashSet<Uuid>,
}

impl Search<'_> {
    /// The best turns of a tree, and those around them.
    fn gather(
        &self,
        number: u64,
        tree: &Tree,
        known: &Known,
        partition: &Partition<Turn>,
        turns: &mut Vec<TurnCandidate>,
    ) {
        let found = self.find(known, partition);
        let terms = self.terms(partition, &found);
        for candidate in found.values() {
            let Some(turn) = partition.meta(candidate.key) else { continue };
            let begins = self.beginnings.contains(&turn.entry.0);
            let terms =
                if begins { u64::MAX } else { terms.get(&candidate.key).copied().unwrap_or_default() };
            let can_compare = can_compare(self.probe.vectors, turn);
            let evidence = fusion::Candidate {
                terms,
                similarity: can_compare.then(|| cosine(candidate)),
                by_another: self.is_by_another(known.speaker_of(turn)),
                asks: turn.asks,
                session: number << 32 | u64::from(known.branch_of(turn)),
                position: known.position(turn, candidate.key) as u32,
            };
            let hit = Ranked { has_words: terms != 0, ..unranked(tree, known, turn) };
            turns.push(TurnCandidate { hit, bm25: candidate.lexical, evidence });
        }
    }

    /// What is to be looked at in a tree, by place: what has something in common with the query, and what was said around
    /// it, which may answer the question without a word of it.
    fn find(&self, known: &Known, partition: &Partition<Turn>) -> HashMap<u64, Candidate> {
        let nothing = |key| Candidate { key, ..Candidate::default() };
        let by_key = |candidate: Candidate| (candidate.key, candidate);
        let mut found: HashMap<u64, Candidate> =
            partition.search(&self.probe, |_, _| true).candidates.into_iter().map(by_key).collect();
        if !self.beginnings.is_empty() {
            for (key, _) in partition.iter().filter(|(_, turn)| self.beginnings.contains(&turn.entry.0)) {
                found.entry(key).or_insert(nothing(key));
            }
        }
        let around: HashSet<u64> = found
            .keys()
            .filter_map(|key| Some(known.around(partition.meta(*key)?, *key, REACH as usize)))
            .flatten()
            .filter(|key| !found.contains_key(key))
            .copied()
            .collect();
        if !around.is_empty() {
            let probe = Probe { want: around.len(), ..self.probe };
            let candidates = partition.search(&probe, |key, _| around.contains(&key)).candidates;
            found.extend(candidates.into_iter().map(by_key));
            for key in around {
                found.entry(key).or_insert(nothing(key));
            }
        }
        found
    }

    /// Which of the query's terms each of these has: bit `n` for the `n`th.
    fn terms(&self, partition: &Partition<Turn>, found: &HashMap<u64, Candidate>) -> HashMap<u64, u64> {
        let mut terms: HashMap<u64, u64> = HashMap::new();
        for (number, term) in self.probe.terms.iter().enumerate() {
            let probe =
                Probe { vectors: &[], terms: std::slice::from_ref(term), want: found.len(), ..self.probe };
            for candidate in partition.search(&probe, |key, _| found.contains_key(&key)).candidates {
                if candidate.lexical > 0.0 {
                    *terms.entry(candidate.key).or_default() |= 1 << number;
                }
            }
        }
        terms
    }

    fn is_by_another(&self, speaker: Option<&str>) -> bool {
        self.subject.zip(speaker).is_some_and(|(subject, speaker)| !speaker.eq_ignore_ascii_case(subject))
    }
}

/// Keeps the best by words and the best by meaning, `count` of each at most, and what stands next to them.
fn keep_best(turns: &mut Vec<TurnCandidate>, count: usize) {
    fn similarity(turn: &TurnCandidate) -> f64 {
        turn.evidence.similarity.unwrap_or_default()
    }
    let least = |of: fn(&TurnCandidate) -> f64| {
        let mut values: Vec<f64> = turns.iter().map(of).collect();
        let at = count.min(values.len().saturating_sub(1));
        *values.select_nth_unstable_by(at, |a, b| b.total_cmp(a)).1
    };
    let (bm25, similar) = (least(|turn| f64::from(turn.bm25)), least(similarity));
    turns.sort_unstable_by_key(|turn| (turn.evidence.session, turn.evidence.position));
    let is_best = |turn: &TurnCandidate| f64::from(turn.bm25) > bm25 || similarity(turn) > similar;
    let is_near = |one: &TurnCandidate, other: &TurnCandidate| {
        one.evidence.session == other.evidence.session
            && one.evidence.position.abs_diff(other.evidence.position) <= REACH
    };
    let reach = REACH as usize;
    let mut kept = (0..turns.len())
        .map(|at| {
            let around = &turns[at.saturating_sub(reach)..turns.len().min(at + reach + 1)];
            around.iter().any(|other| is_best(other) && is_near(&turns[at], other))
        })
        .collect::<Vec<bool>>()
        .into_iter();
    turns.retain(|_| kept.next().unwrap_or_default());
}

fn borrowed(vectors: &[(SpaceNo, Vec<f32>)]) -> Vec<(SpaceNo, &[f32])> {
    vectors.iter().map(|(space, vector)| (*space, vector.as_slice())).collect()
}

/// Whether a turn has a vector in a space that the query has one in.
fn can_compare(vectors: &[(SpaceNo, &[f32])], turn: &Turn) -> bool {
    turn.space.is_some_and(|space| vectors.iter().any(|(of_query, _)| *of_query == space))
}

/// An estimate, to about three digits.
fn cosine(candidate: &Candidate) -> f64 {
    f64::from(candidate.similarity).clamp(-1.0, 1.0)
}

fn unranked(tree: &Tree, known: &Known, turn: &Turn) -> Ranked {
    Ranked {
        id: turn.entry.0,
        group: tree.group.0,
        conversation: known.conversation(turn).0,
        score: 0.0,
        has_words: false,
        explanation: Explanation::Semantic,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(position: u32, bm25: f32, similarity: f64) -> TurnCandidate {
        let evidence = fusion::Candidate {
            terms: 0,
            similarity: Some(similarity),
            by_another: false,
            asks: false,
            session: u64::from(position / 100),
            position: position % 100,
        };
        let hit = Ranked {
            id: Uuid::from_u128(u128::from(position)),
            group: Uuid::nil(),
            conversation: Uuid::nil(),
            score: 0.0,
            has_words: false,
            explanation: Explanation::Semantic,
        };
        TurnCandidate { hit, bm25, evidence }
    }

    #[test]
    fn the_best_are_kept_and_what_stands_next_to_them() {
        let mut turns: Vec<TurnCandidate> = (0..200)
            .map(|position| match position {
                99 => found(position, 5.0, 0.0),
                150 => found(position, 0.0, 0.9),
                _ => found(position, 0.0, 0.1),
            })
            .collect();

        keep_best(&mut turns, 1);

        let kept: Vec<u128> = turns.iter().map(|turn| turn.hit.id.as_u128()).collect();
        assert_eq!(kept, [96, 97, 98, 99, 147, 148, 149, 150, 151, 152, 153], "another session is not near");
    }
}
