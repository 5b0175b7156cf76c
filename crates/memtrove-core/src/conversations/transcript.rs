//! How a conversation that was held elsewhere becomes a tree of ours.
//!
//! Elsewhere, messages form a tree: editing or asking again begins another branch. Here a branch is a conversation, and one
//! that leaves another is its fork. What is in the store already keeps its place, so a transcript that has grown is
//! continued, and one that was broken off is completed.

use crate::{ConversationId, EntryId, Timestamp};
use std::collections::HashMap;

/// A message of a transcript, as far as its place matters.
#[derive(Debug, Clone)]
pub struct Node {
    /// The entry it becomes.
    pub entry: EntryId,
    /// The message it answers: an earlier one of the list. None begins the conversation.
    pub parent: Option<usize>,
    /// Whether it is on the branch that was looked at last.
    pub current: bool,
    /// When it was said.
    pub at: Timestamp,
    /// The conversation that begins with it, if one has to.
    pub branch: ConversationId,
}

/// Where an entry of the tree is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stored {
    /// Its conversation.
    pub conversation: ConversationId,
    /// Its place in the tree.
    pub ord: i64,
}

/// What is to be done with a message that is not there yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TranscriptStep {
    /// Its place in the list.
    pub node: usize,
    /// The conversation it is appended to.
    pub conversation: ConversationId,
    /// Whether that conversation has to be made first.
    pub forks: bool,
}

/// The steps that complete a tree, in the order in which they were said: places in a tree never go back in time.
///
/// `root` is the tree's first conversation; `stored` has every message of its history that is in the store, however it came
/// there.
pub fn plan(root: ConversationId, nodes: &[Node], stored: &HashMap<EntryId, Stored>) -> Vec<TranscriptStep> {
    let mut tips: HashMap<ConversationId, i64> = HashMap::new();
    for place in stored.values() {
        let tip = tips.entry(place.conversation).or_insert(place.ord);
        *tip = place.ord.max(*tip);
    }
    let times = times(nodes);
    let mut order: Vec<usize> = (0..nodes.len()).collect();
    // A message never comes before the one it answers: that has a smaller number and is not younger.
    order.sort_by_key(|&node| (times[node], node));
    let heirs = heirs(nodes, &order, stored);

    let mut at: Vec<Option<ConversationId>> = vec![None; nodes.len()];
    let mut steps = Vec::new();
    for node in order {
        let Node { entry, parent, branch, .. } = &nodes[node];
        if let Some(place) = stored.get(entry) {
            at[node] = Some(place.conversation);
            continue;
        }
        let parent_at = parent.and_then(|parent| at[parent]).unwrap_or(root);
        // Somebody may have gone on here: then what was said elsewhere is another branch.
        let is_open = match parent.map(|parent| &nodes[parent].entry) {
            Some(entry) => stored.get(entry).is_none_or(|place| tips.get(&parent_at) == Some(&place.ord)),
            None => !tips.contains_key(&root),
        };
        let continues = is_open && heirs.get(parent) == Some(&node);
        let conversation = if continues { parent_at } else { *branch };
        at[node] = Some(conversation);
        steps.push(TranscriptStep { node, conversation, forks: !continues });
    }
    steps
}

/// When messages count as said: not before what they answer.
pub fn times(nodes: &[Node]) -> Vec<Timestamp> {
    let mut times: Vec<Timestamp> = Vec::with_capacity(nodes.len());
    for node in nodes {
        let answered = node.parent.and_then(|parent| times.get(parent).copied());
        times.push(answered.map_or(node.at, |answered| node.at.max(answered)));
    }
    times
}

/// Of each message, the one that goes on in the same conversation: one that does so already, else the one on the current
/// branch, else the first.
fn heirs(
    nodes: &[Node],
    order: &[usize],
    stored: &HashMap<EntryId, Stored>,
) -> HashMap<Option<usize>, usize> {
    let rank = |node: usize| match stored.contains_key(&nodes[node].entry) {
        true => 2,
        false => u8::from(nodes[node].current),
    };
    let mut heirs: HashMap<Option<usize>, usize> = HashMap::new();
    for &node in order {
        let heir = heirs.entry(nodes[node].parent).or_insert(node);
        if rank(node) > rank(*heir) {
            *heir = node;
        }
    }
    heirs
}

#[cfg(test)]
mod tests;
