//! From matches to hits: a walk in the order of precedence that loads what it needs, and no more.

use super::scope_search::{Matches, ScopeQuery};
use memtrove_core::Result;
use memtrove_core::memories::clusters::{self, ClusterHit, Placed};
use memtrove_core::memories::duplicate::Profile;
use memtrove_core::memories::merge::{Match, Options, Text, Walk};
use memtrove_core::memories::{Memory, MemoryId, Ranking};
use memtrove_core::recall::passages::PassageQuery;
use memtrove_core::text::Analyzer;
use memtrove_recall::embed::Space;
use std::collections::HashMap;
use std::ops::Range;

/// A result of a search: a match with its entry.
#[derive(Debug, Clone)]
pub struct Hit {
    /// Why it is here.
    pub matched: Match,
    /// The entry.
    pub memory: Memory,
    /// The part of its content that matters, in bytes, if it is long.
    pub passage: Option<Range<usize>>,
}

impl Hit {
    /// What of its content is to be read: the passage that matters of a long one, or all of it.
    pub fn text(&self) -> &str {
        self.passage
            .clone()
            .and_then(|passage| self.memory.content.get(passage))
            .unwrap_or(&self.memory.content)
    }
}

/// The hits of a search, in their order.
#[derive(Debug, Clone, Default)]
pub struct RankedHits {
    /// The hits.
    pub hits: Vec<Hit>,
    /// How many entries match, before duplicates, overriding and the limit.
    pub total: usize,
    /// Whether that may be wrong.
    pub inexact: bool,
    /// Whether more matches would not make more hits: every match was walked, and the index named them all.
    pub is_all: bool,
    /// What passages of them are looked for by.
    pub passages: Option<PassageQuery>,
}

/// How matches are ranked.
pub(super) struct Order<'a> {
    options: Options,
    /// How many of the best are walked, where the score ranks.
    want: usize,
    /// The space in which vectors are compared.
    space: Option<&'a Space>,
    analyzer: &'a Analyzer,
}

impl<'a> Order<'a> {
    pub fn new(query: &'a ScopeQuery, options: Options, analyzer: &'a Analyzer) -> Self {
        let space = query.vectors.first().map(|vector| &vector.space);
        Self { options, want: query.want, space, analyzer }
    }
}

/// Ranks matches. Some entries are there already; `load` gets others.
pub(super) fn rank(
    found: &Matches,
    mut loaded: HashMap<MemoryId, Memory>,
    order: &Order<'_>,
    load: &mut dyn FnMut(&[&Match]) -> Result<Vec<Memory>>,
) -> Result<RankedHits> {
    let options = order.options;
    let mut walk = Walk::new(options, &found.matches);
    let walked = to_be_walked(&found.matches, order);
    for batch in walked.chunks(options.limit.max(8) + 8) {
        if walk.is_full() {
            break;
        }
        let missing: Vec<&Match> =
            batch.iter().copied().filter(|matched| !loaded.contains_key(&matched.id)).collect();
        if !missing.is_empty() {
            loaded.extend(load(&missing)?.into_iter().map(|memory| (memory.id, memory)));
        }
        for &matched in batch {
            let Some(memory) = loaded.get(&matched.id) else { continue };
            let text = walk.wants_text(matched).then(|| Text {
                profile: Profile::of(&memory.content),
                vector: order.space.and_then(|space| comparable(memory, space)).map(<[f32]>::to_vec),
            });
            walk.offer(matched.clone(), text);
        }
    }
    let is_all = walked.len() == found.matches.len() && !found.truncated;
    let hits = walk.finish().into_iter().filter_map(|matched| {
        let memory = loaded.remove(&matched.id)?;
        Some(Hit { matched, memory, passage: None })
    });
    let hits: Vec<Hit> = hits.collect();
    let hits = if options.clusters { clustered(hits, order) } else { hits };
    Ok(RankedHits {
        hits,
        total: found.total,
        inexact: found.inexact,
        is_all,
        passages: found.passages.clone(),
    })
}

/// The same hits, those together that contradict each other.
fn clustered(hits: Vec<Hit>, order: &Order<'_>) -> Vec<Hit> {
    let compared: Vec<ClusterHit<'_>> = hits
        .iter()
        .map(|hit| {
            let vector = order.space.and_then(|space| comparable(&hit.memory, space));
            ClusterHit::of(order.analyzer, &hit.memory, vector, hit.matched.overridden_by.is_some())
        })
        .collect();
    let placed = clusters::arrange(&compared, order.options.ranking);
    let mut hits: Vec<Option<Hit>> = hits.into_iter().map(Some).collect();
    let place = |placed: Placed| {
        let mut hit = hits[placed.hit].take()?;
        hit.matched.overridden_by = hit.matched.overridden_by.or(placed.overridden_by);
        Some(hit)
    };
    placed.into_iter().filter_map(place).collect()
}

/// The matches that are walked, in the order of the walk. Ranked by score, what is far down cannot come up: the best are
/// enough.
fn to_be_walked<'a>(matches: &'a [Match], order: &Order<'_>) -> Vec<&'a Match> {
    let mut walked: Vec<&Match> = matches.iter().collect();
    if order.options.ranking == Ranking::Score {
        walked.sort_unstable_by(|a, b| a.by_score(b));
        walked.truncate(order.want);
    }
    walked.sort_unstable_by(|a, b| a.by_precedence(b));
    walked
}

/// The vector of an entry, if it is of this space: vectors of different spaces are never compared.
pub(super) fn comparable<'a>(memory: &'a Memory, space: &Space) -> Option<&'a [f32]> {
    let embedding = memory.embedding.as_ref()?;
    (Space::of(&embedding.model)? == *space).then_some(embedding.vector.as_slice())
}
