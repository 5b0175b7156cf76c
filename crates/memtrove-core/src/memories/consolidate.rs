//! Merging what was remembered twice in one scope. The same entries always make the same groups, and what comes out makes
//! none.

use super::duplicate::{self, Profile};
use super::limits::ConsolidationRules;
use super::{Author, Kind, Layer, Memory, MemoryId, Policy, State};
use crate::Timestamp;
use serde_json::{Map, Value};
use std::cmp::Ordering;

/// An entry that may be merged.
#[derive(Debug, Clone, Copy)]
pub struct MergeCandidate<'a> {
    /// The entry.
    pub memory: &'a Memory,
    /// Its meaning, if it has a vector of the space that is compared.
    pub vector: Option<&'a [f32]>,
}

/// Entries that say the same.
#[derive(Debug, Clone, PartialEq)]
pub struct MergeGroup<'a> {
    /// The entry that stays.
    pub leader: &'a Memory,
    /// The entries that it absorbs: at least one, in the order of leaders.
    pub absorbed: Vec<&'a Memory>,
}

impl ConsolidationRules {
    /// Whether an add that leaves this many entries in a scope starts a consolidation.
    pub fn is_due(&self, layer: Layer, entries: usize) -> bool {
        self.enabled && self.target_layers.contains(&layer) && entries > self.max_memories_before_trigger
    }
}

/// Whether an entry may be merged with others at all.
pub fn takes_part(memory: &Memory) -> bool {
    matches!(memory.state, State::Active | State::Decayed)
        && matches!(memory.kind, Kind::Semantic | Kind::UserPersonal | Kind::Episodic | Kind::Session)
        && !memory.is_pointer()
        && memory.lineage.mirror_of.is_none()
}

/// Finds the groups among the entries of one scope: of one kind and one time each, and seen by the same people. Each entry is
/// compared with leaders only: what is like something like the leader stays apart.
pub fn groups<'a>(candidates: &[MergeCandidate<'a>], threshold: f64) -> Vec<MergeGroup<'a>> {
    let mut mergeable: Vec<Vec<MergeCandidate<'a>>> = Vec::new();
    for candidate in candidates.iter().filter(|candidate| takes_part(candidate.memory)) {
        match mergeable.iter_mut().find(|others| may_merge(others[0].memory, candidate.memory)) {
            Some(others) => others.push(*candidate),
            None => mergeable.push(vec![*candidate]),
        }
    }
    mergeable.into_iter().flat_map(|candidates| groups_among(candidates, threshold)).collect()
}

/// The leader after it absorbed the others: its own metadata win, all tags stay, and the highest confidence and importance.
pub fn survivor(group: &MergeGroup<'_>, now: Timestamp) -> Memory {
    let mut survivor = group.leader.clone();
    survivor.metadata = metadata(group);
    survivor.lineage.consolidated_from.extend(group.absorbed.iter().map(|memory| memory.id));
    survivor.touch(now);
    survivor
}

/// An entry after another one absorbed it: archived, so it can be restored.
pub fn absorbed(memory: &Memory, by: MemoryId, now: Timestamp) -> Memory {
    let mut memory = memory.clone();
    memory.lineage.superseded_by = Some(by);
    memory.archive(now);
    memory
}

/// Whether entries are of one kind and one time, and seen by the same people: merging must neither show anybody more, nor take
/// anything from anybody. What happened twice is no duplicate.
fn may_merge(a: &Memory, b: &Memory) -> bool {
    let maker = |memory: &Memory| match &memory.created_by {
        Author { user: Some(user), .. } => (Some(user.clone()), None),
        Author { user: None, client } => (None, client.clone()),
    };
    let is_open = matches!(a.policy.policy, Policy::Organization | Policy::Public);
    let is_alike = a.kind == b.kind && a.stated_time() == b.stated_time() && a.policy == b.policy;
    is_alike && (is_open || maker(a) == maker(b))
}

fn groups_among<'a>(mut candidates: Vec<MergeCandidate<'a>>, threshold: f64) -> Vec<MergeGroup<'a>> {
    candidates.sort_unstable_by(|a, b| leaders_first(a.memory, b.memory));
    let profiles: Vec<Profile> =
        candidates.iter().map(|candidate| Profile::of(&candidate.memory.content)).collect();
    let same = |a: usize, b: usize| {
        let (a_vector, b_vector) = (candidates[a].vector, candidates[b].vector);
        duplicate::duplicates(&profiles[a], a_vector, &profiles[b], b_vector, threshold)
    };
    let mut open: Vec<usize> = (0..candidates.len()).collect();
    let mut groups = Vec::new();
    while !open.is_empty() {
        let leader = open.remove(0);
        let absorbed: Vec<&Memory> =
            open.extract_if(.., |row| same(leader, *row)).map(|row| candidates[row].memory).collect();
        if !absorbed.is_empty() {
            groups.push(MergeGroup { leader: candidates[leader].memory, absorbed });
        }
    }
    groups
}

fn leaders_first(a: &Memory, b: &Memory) -> Ordering {
    let importance = |memory: &Memory| memory.number("importance").unwrap_or(0.0);
    importance(b).total_cmp(&importance(a)).then(b.updated_at.cmp(&a.updated_at)).then(b.id.cmp(&a.id))
}

fn metadata(group: &MergeGroup<'_>) -> Map<String, Value> {
    let mut oldest_first: Vec<&Memory> = group.absorbed.iter().copied().chain([group.leader]).collect();
    oldest_first.sort_unstable_by_key(|memory| (memory.created_at, memory.id));
    let members = |memory: &'_ &Memory| memory.metadata.clone();
    let mut merged: Map<String, Value> =
        oldest_first.iter().filter(|memory| memory.id != group.leader.id).flat_map(members).collect();
    merged.extend(group.leader.metadata.clone());

    let mut tags: Vec<&Value> = Vec::new();
    for tag in oldest_first.iter().filter_map(|memory| memory.metadata.get("tags")?.as_array()).flatten() {
        if !tags.contains(&tag) {
            tags.push(tag);
        }
    }
    if !tags.is_empty() {
        merged.insert("tags".to_owned(), tags.into_iter().cloned().collect());
    }
    for key in ["confidence", "importance"] {
        let most = oldest_first
            .iter()
            .filter(|memory| memory.number(key).is_some())
            .max_by(|a, b| a.number(key).unwrap_or(0.0).total_cmp(&b.number(key).unwrap_or(0.0)));
        if let Some(value) = most.and_then(|memory| memory.metadata.get(key)) {
            merged.insert(key.to_owned(), value.clone());
        }
    }
    merged
}

#[cfg(test)]
mod tests;
