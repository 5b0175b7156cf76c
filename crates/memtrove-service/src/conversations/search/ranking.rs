//! Ranking what the trees of a scope hold in memory.

use super::fulltext;
use super::page::{Explanation, HitPageRequest, Ranked, best_of_each, by_rank};
use super::question::Question;
use super::view::{SearchedScope, View};
use crate::Context;
use crate::conversations::trees::{Known, Turn, TurnPlace};
use memtrove_core::Result;
use memtrove_core::recall::actors::is_agent;
use memtrove_core::recall::fusion::{self, REACH, Score, Weights};
use memtrove_core::recall::lexical;
use memtrove_core::recall::terms::worthiest;
use memtrove_recall::index::{Bm25, Candidate, Partition, Probe, QueryTerm, SpaceNo, TermStatistics};
use memtrove_store::Tx;
use std::collections::HashSet;
use uuid::Uuid;

/// How many of the best of an index are looked at, by words and by meaning each. What is around them is looked at too.
const BEST: usize = 200;
/// So many at most where a page wants more conversations than the best are of.
const MOST_BEST: usize = 16 * BEST;
/// So many at most where a page lies far down a list, which ends there.
const DEEPEST: usize = 20_000;
/// The most hits that are kept while indexes are looked at one after the other; beyond, only the better ones.
const MOST_HITS: usize = 200_000;

/// What was found.
#[derive(Default)]
pub(super) struct Ranking {
    /// In no order.
    pub hits: Vec<Ranked>,
    /// The terms of the query that counted, and what each was worth; none where all that stand there count alike.
    pub weighed: Vec<(u64, f64)>,
    /// The budget was spent before everything was looked at.
    pub is_cut: bool,
    /// What is to be read still, so that the next search finds it in memory.
    pub unread: Option<SearchedScope>,
}

impl Ranking {
    fn of(view: View, hits: Vec<Ranked>, is_complete: bool) -> Self {
        Self {
            hits,
            weighed: Vec::new(),
            is_cut: !is_complete,
            unread: (!is_complete).then(|| view.searched()),
        }
    }
}

/// By how similar their meaning is.
pub(super) fn by_similarity(
    tx: &mut dyn Tx,
    cx: &Context,
    question: &Question,
    wanted: &HitPageRequest,
) -> Result<Ranking> {
    let view = question.view(tx, cx)?;
    let vectors = borrowed(&question.vectors);
    let (hits, is_complete) = deep_enough(wanted, |want| {
        let probe = Probe {
            vectors: &vectors,
            terms: &[],
            bm25: Bm25::new(1.0),
            want,
            floor: None,
            lexical_floor: None,
            exact: false,
        };
        let (mut hits, mut is_all) = (Vec::new(), true);
        let is_complete = view.each(tx, cx, |_, known, partition| {
            let found = partition.search(&probe, |_, turn| can_compare(&vectors, turn));
            is_all &= found.candidates.len() < want;
            for candidate in found.candidates {
                let similarity = cosine(&candidate);
                let Some(turn) = partition.meta(candidate.key) else { continue };
                if question.floor.is_none_or(|floor| similarity >= floor) {
                    hits.push(Ranked { score: similarity, ..unranked(known, turn) });
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
        Ok(BestTurns { hits, is_all, is_complete })
    })?;
    Ok(Ranking::of(view, hits, is_complete))
}

/// By all that speaks for them: words, meaning, who said it, and what was said around it.
pub(super) fn fused(
    tx: &mut dyn Tx,
    cx: &Context,
    question: &Question,
    wanted: &HitPageRequest,
) -> Result<Ranking> {
    let view = question.view(tx, cx)?;
    let mut statistics = TermStatistics::default();
    let has_counted_all =
        view.each(tx, cx, |_, _, partition| statistics.add(&partition.statistics(&question.terms)))?;
    let weighed = weighed(&statistics, &question.terms);
    let worth: Vec<f64> = weighed.iter().map(|(_, worth)| *worth).collect();
    let terms: Vec<QueryTerm> =
        weighed.iter().map(|(hash, worth)| QueryTerm { hash: *hash, weight: *worth as f32 }).collect();
    let vectors = borrowed(&question.vectors);
    let (beginnings, has_all_beginnings) = beginnings(tx, cx, question, &statistics)?;
    let (hits, is_complete) = deep_enough(wanted, |want| {
        let search = Search {
            subject: question.subject(),
            understood: &question.understood,
            probe: Probe {
                vectors: &vectors,
                terms: &terms,
                bm25: Bm25::new(statistics.average_length()),
                want,
                floor: None,
                lexical_floor: None,
                exact: false,
            },
            beginnings: &beginnings,
        };
        let (mut turns, mut is_all) = (Vec::new(), true);
        let is_complete = view.each(tx, cx, |number, known, partition| {
            is_all &= search.gather(number, known, partition, &mut turns) < want;
            if turns.len() > MOST_HITS {
                keep_best(&mut turns, MOST_HITS / 16);
            }
        })?;
        let floor = question.floor.unwrap_or_default();
        Ok(BestTurns { hits: scored(turns, &worth, &question.weights, floor), is_all, is_complete })
    })?;
    let is_complete = is_complete && has_counted_all && has_all_beginnings && question.has_all_names;
    Ok(Ranking { weighed, ..Ranking::of(view, hits, is_complete) })
}

/// What was found among so many of the best.
struct BestTurns {
    hits: Vec<Ranked>,
    /// Whether there is nothing beyond the best.
    is_all: bool,
    is_complete: bool,
}

/// Looks among more of the best until there are enough conversations for a page of them, or no more are found.
fn deep_enough(
    wanted: &HitPageRequest,
    mut look: impl FnMut(usize) -> Result<BestTurns>,
) -> Result<(Vec<Ranked>, bool)> {
    let depth = wanted.depth();
    let mut want = BEST.max(depth.min(DEEPEST));
    let mut before = 0;
    loop {
        let BestTurns { mut hits, is_all, is_complete } = look(want)?;
        if wanted.grouped {
            hits = best_of_each(hits);
        }
        if !wanted.grouped || is_all || hits.len() >= depth || hits.len() == before || want >= MOST_BEST {
            return Ok((hits, is_complete));
        }
        before = hits.len();
        want *= 4;
    }
}

/// The scores of turns, but for those that only lent to their neighbours.
fn scored(turns: Vec<TurnCandidate>, worth: &[f64], weights: &Weights, floor: f64) -> Vec<Ranked> {
    let evidence: Vec<fusion::Candidate> = turns.iter().map(|turn| turn.evidence).collect();
    let scores = fusion::rank(worth, &evidence, weights);
    // What has no word in common and is not similar either is a hit only if what stands around it says enough.
    let is_hit = |(turn, score): &(TurnCandidate, Score)| {
        let is_similar = turn.evidence.similarity.is_some_and(|similarity| similarity >= floor);
        !turn.only_lends && (turn.hit.has_words || is_similar || score.is_enough(floor, weights))
    };
    let hits = turns.into_iter().zip(scores).filter(is_hit);
    hits.map(|(turn, score)| Ranked {
        score: score.score,
        explanation: Explanation::Fused(score),
        ..turn.hit
    })
    .collect()
}

/// The terms of a query that count, and what each is worth.
fn weighed(statistics: &TermStatistics, terms: &[u64]) -> Vec<(u64, f64)> {
    let found: Vec<u64> =
        (0..terms.len()).map(|term| statistics.frequencies.get(term).copied().unwrap_or_default()).collect();
    let worth: Vec<f64> =
        found.iter().map(|found| lexical::idf(statistics.pieces as usize, *found as usize)).collect();
    worthiest(&worth, &found).into_iter().map(|place| (terms[place], worth[place])).collect()
}

/// What full text finds where no entry has a word of the query as it stands there, but perhaps one that begins like it; and
/// whether that is all of it.
fn beginnings(
    tx: &mut dyn Tx,
    cx: &Context,
    question: &Question,
    statistics: &TermStatistics,
) -> Result<(HashSet<Uuid>, bool)> {
    if statistics.frequencies.iter().any(|frequency| *frequency > 0) {
        return Ok((HashSet::new(), true));
    }
    let (hits, is_all) = fulltext::rank(tx, cx, question)?;
    Ok((hits.into_iter().map(|hit| hit.id).collect(), is_all))
}

/// A turn that may be found, or that stands near one, and what speaks for it.
struct TurnCandidate {
    hit: Ranked,
    bm25: f32,
    evidence: fusion::Candidate,
    /// Too far from the best to be a hit, but next to one that may be.
    only_lends: bool,
}

/// What is looked for in every index.
struct Search<'a> {
    /// Whom the query is about.
    subject: Option<&'a str>,
    /// Which share of the query the model of each space knows.
    understood: &'a [(SpaceNo, f64)],
    probe: Probe<'a>,
    /// Entries that have all words of the query, if only as beginnings of theirs.
    beginnings: &'a HashSet<Uuid>,
}

impl Search<'_> {
    /// The best turns of an index, and those around them. Answers how many are among the best.
    fn gather(
        &self,
        number: u64,
        known: &Known,
        partition: &Partition<Turn>,
        turns: &mut Vec<TurnCandidate>,
    ) -> usize {
        let mut best = partition.nominate(&self.probe, |_, _| true);
        let count = best.len();
        if !self.beginnings.is_empty() {
            let begin = partition.iter().filter(|(_, turn)| self.beginnings.contains(&turn.entry.0));
            best.extend(begin.map(|(key, _)| key));
        }
        let places = around(known, partition, &best);
        let keys = places.iter().map(|(place, _)| known.key_at(*place));
        let candidates = partition.measure(&self.probe, keys);
        for ((place, only_lends), candidate) in places.into_iter().zip(candidates) {
            let Some(turn) = partition.meta(candidate.key) else { continue };
            let begins = self.beginnings.contains(&turn.entry.0);
            let terms = if begins { u64::MAX } else { candidate.terms };
            let can_compare = can_compare(self.probe.vectors, turn);
            let evidence = fusion::Candidate {
                terms,
                similarity: can_compare.then(|| cosine(&candidate)),
                understood: turn.space.map_or(0.0, |space| self.understood_in(space)),
                length: turn.length,
                by_agent: known.speaker_of(turn).is_some_and(is_agent),
                by_another: self.is_by_another(known.speaker_of(turn)),
                asks: turn.asks,
                session: number << 32 | u64::from(place.branch),
                position: place.position,
            };
            let hit = Ranked { has_words: terms != 0, ..unranked(known, turn) };
            turns.push(TurnCandidate { hit, bm25: candidate.lexical, evidence, only_lends });
        }
        count
    }

    fn understood_in(&self, space: SpaceNo) -> f64 {
        self.understood.iter().find(|(of, _)| *of == space).map_or(0.0, |(_, understood)| *understood)
    }

    fn is_by_another(&self, speaker: Option<&str>) -> bool {
        self.subject.zip(speaker).is_some_and(|(subject, speaker)| {
            let is_subject =
                if subject.is_empty() { is_agent(speaker) } else { speaker.eq_ignore_ascii_case(subject) };
            !is_subject
        })
    }
}

/// The places within reach of the best, and those within reach of these, which only lend: a score depends on all that is around,
/// whatever else was found.
fn around(known: &Known, partition: &Partition<Turn>, best: &[u64]) -> Vec<(TurnPlace, bool)> {
    let mut places = Vec::with_capacity(best.len() * (4 * REACH as usize + 1));
    for key in best {
        let Some(turn) = partition.meta(*key) else { continue };
        let (branch, at) = (turn.branch, known.position(turn, *key) as u32);
        let end = known.turns_of(branch).min(at + 2 * REACH + 1);
        places.extend(
            (at.saturating_sub(2 * REACH)..end)
                .map(|position| (TurnPlace { branch, position }, at.abs_diff(position) > REACH)),
        );
    }
    // What is near one of them is a hit, however far it is from another.
    places.sort_unstable();
    places.dedup_by_key(|(place, _)| *place);
    places
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

fn unranked(known: &Known, turn: &Turn) -> Ranked {
    Ranked {
        id: turn.entry.0,
        group: known.group(turn).0,
        conversation: known.conversation(turn).0,
        score: 0.0,
        has_words: false,
        explanation: Explanation::Semantic,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;
    use crate::conversations::trees::Trees;
    use memtrove_core::{ConversationId, EntryId, GroupId};
    use memtrove_recall::embed::{STATIC_MODEL, Space};
    use memtrove_store::conversations::embeddings::EmbeddedText;
    use memtrove_store::conversations::pieces::Piece;
    use proptest::prelude::*;

    fn found(position: u32, bm25: f32, similarity: f64) -> TurnCandidate {
        let evidence = fusion::Candidate {
            terms: 0,
            similarity: Some(similarity),
            understood: 1.0,
            length: 10,
            by_agent: false,
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
        TurnCandidate { hit, bm25, evidence, only_lends: false }
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

    const WORDS: u64 = 400;

    /// Numbers that look random.
    fn mixed(seed: u64) -> u64 {
        let x = (seed ^ seed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ x >> 31
    }

    /// A direction near that of its topic.
    fn direction(seed: u64, topic: u64) -> Vec<i8> {
        let part = |of: u64, n: u64| (mixed((of << 20) | n) % 127) as i64 - 63;
        (0..32).map(|n| (part(topic, n) + part(seed, n) / 2).clamp(-127, 127) as i8).collect()
    }

    /// Dialogues of some trees: what is said is about a topic, in words of which some are common and most are rare.
    fn dialogues(trees: &Trees, seed: u64, turns: u64) -> (Known, Partition<Turn>) {
        let (mut known, mut partition) = (Known::default(), Partition::new());
        for number in 0..turns {
            let at = (seed << 40) | number;
            let (dialogue, topic) = (number / 40, mixed((seed << 40) | (number / 8)) % 50);
            let word = |n| mixed((at << 4) | n) % WORDS * (mixed((at << 4) | n | 8) % WORDS) / WORDS;
            let embedded = EmbeddedText {
                text_no: number as i64 + 1,
                entry: EntryId(Uuid::from_u128(u128::from(number) + 1)),
                conversation: ConversationId(Uuid::from_u128(u128::from(dialogue))),
                ord: number as i64,
                speaker: Some(format!("{}", number % 2)),
                asks: mixed(at).is_multiple_of(4),
                model: Some(STATIC_MODEL.into()),
                pieces: vec![Piece {
                    vector: direction(at, topic),
                    terms: (0..5).map(|n| (word(n), 1)).collect(),
                    length: 5,
                }],
            };
            let group = GroupId(Uuid::from_u128(u128::from(dialogue / 2)));
            trees.take_in(&mut known, &mut partition, group, embedded);
        }
        (known, partition)
    }

    /// The best hits, looked for among so many of the best by words and by meaning.
    fn best(known: &Known, partition: &Partition<Turn>, probe: Probe<'_>, worth: &[f64]) -> Vec<(Uuid, f64)> {
        let understood: Vec<(SpaceNo, f64)> = probe.vectors.iter().map(|(space, _)| (*space, 1.0)).collect();
        let search =
            Search { subject: Some("0"), understood: &understood, probe, beginnings: &HashSet::new() };
        let mut turns = Vec::new();
        search.gather(0, known, partition, &mut turns);
        let mut hits = scored(turns, worth, &Weights::default(), 0.35);
        hits.sort_unstable_by(by_rank);
        hits.iter().take(10).map(|hit| (hit.id, hit.score)).collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 16, ..ProptestConfig::default() })]
        #[test]
        fn the_first_page_is_that_of_an_exhaustive_ranking(seed in 0..1u64 << 20, topic in 0..50u64) {
            let trees = Trees::new(1 << 30);
            let (known, partition) = dialogues(&trees, seed, 4_000);
            let space = trees.space_no(&Space::of(STATIC_MODEL).unwrap());
            let vector: Vec<f32> = direction(seed, topic).into_iter().map(f32::from).collect();
            let asked: Vec<u64> = (0..6).map(|n| mixed((seed << 4) | n) % (WORDS / 2)).collect();
            let weighed = weighed(&partition.statistics(&asked), &asked);
            let worth: Vec<f64> = weighed.iter().map(|(_, worth)| *worth).collect();
            let terms: Vec<QueryTerm> =
                weighed.iter().map(|(hash, worth)| QueryTerm { hash: *hash, weight: *worth as f32 }).collect();
            let vectors = [(space, &vector[..])];
            let probe = Probe {
                vectors: &vectors,
                terms: &terms,
                bm25: Bm25::new(5.0),
                want: BEST,
                floor: None,
                lexical_floor: None,
                exact: false,
            };
            let everything = best(&known, &partition, Probe { want: usize::MAX / 4, ..probe }, &worth);
            prop_assert_eq!(everything.len(), 10);
            prop_assert_eq!(best(&known, &partition, probe, &worth), everything);
        }
    }
}
