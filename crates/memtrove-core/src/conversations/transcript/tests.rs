//! Transcripts become trees: checked against the definition, for any tree and any order of bringing it in.

use super::*;
use crate::conversations::forks::View;
use proptest::prelude::*;
use uuid::Uuid;

fn conversation(n: usize) -> ConversationId {
    ConversationId(Uuid::from_u128(n as u128 + 1))
}

fn node(n: usize, parent: Option<usize>, current: bool, at: i64) -> Node {
    Node {
        entry: EntryId(Uuid::from_u128(n as u128 + 1)),
        parent,
        current,
        at: Timestamp::from_micros(at),
        branch: conversation(n + 1),
    }
}

const ROOT: usize = 0;

/// What a store would have after the steps, as far as places and views go.
#[derive(Default)]
struct Tree {
    stored: HashMap<EntryId, Stored>,
    views: HashMap<ConversationId, View>,
    next: i64,
}

impl Tree {
    fn bring_in(&mut self, nodes: &[Node]) -> usize {
        let root = conversation(ROOT);
        self.views.entry(root).or_insert_with(|| View::new(root, vec![]));
        let steps = plan(root, nodes, &self.stored);
        for step in &steps {
            let node = &nodes[step.node];
            if step.forks {
                let parent = node.parent.map(|parent| self.stored[&nodes[parent].entry]);
                let left = parent.map_or(root, |parent| parent.conversation);
                let ancestors = self.views[&left].fork_at(parent.map(|parent| parent.ord + 1));
                let made = View::new(step.conversation, ancestors);
                assert!(self.views.insert(step.conversation, made).is_none(), "a fork is made once");
            }
            self.append(node.entry, step.conversation);
        }
        steps.len()
    }

    fn append(&mut self, entry: EntryId, conversation: ConversationId) {
        self.next += 1;
        self.stored.insert(entry, Stored { conversation, ord: self.next });
    }

    /// The entries that are seen where an entry is stored, up to it.
    fn path(&self, entry: EntryId) -> Vec<EntryId> {
        let last = self.stored[&entry];
        let view = self.views[&last.conversation].up_to(last.ord);
        let mut seen: Vec<(i64, EntryId)> = self
            .stored
            .iter()
            .filter(|(_, place)| view.contains(place.conversation, place.ord))
            .map(|(entry, place)| (place.ord, *entry))
            .collect();
        seen.sort();
        seen.into_iter().map(|(_, entry)| entry).collect()
    }
}

/// The messages that lead to one, by the definition.
fn answered(nodes: &[Node], last: usize) -> Vec<EntryId> {
    let mut path = vec![nodes[last].entry];
    let mut next = nodes[last].parent;
    while let Some(node) = next {
        path.insert(0, nodes[node].entry);
        next = nodes[node].parent;
    }
    path
}

fn trees() -> impl Strategy<Value = Vec<Node>> {
    prop::collection::vec((any::<prop::sample::Index>(), any::<bool>(), 0..50i64, 0..8u8), 1..40).prop_map(
        |made| {
            let mut nodes = Vec::new();
            for (n, (parent, current, at, top)) in made.into_iter().enumerate() {
                let parent = (n > 0 && top > 0).then(|| parent.index(n));
                nodes.push(node(n, parent, current, at));
            }
            nodes
        },
    )
}

proptest! {
    #[test]
    fn every_message_is_seen_after_exactly_what_it_answers(nodes in trees()) {
        let mut tree = Tree::default();
        prop_assert_eq!(tree.bring_in(&nodes), nodes.len());
        for last in 0..nodes.len() {
            prop_assert_eq!(tree.path(nodes[last].entry), answered(&nodes, last));
        }
    }

    #[test]
    fn bringing_in_again_does_nothing_and_what_has_grown_is_completed(nodes in trees(), first in 1..40usize) {
        let mut tree = Tree::default();
        let first = first.min(nodes.len());
        tree.bring_in(&nodes[..first]);
        prop_assert_eq!(tree.bring_in(&nodes[..first]), 0);
        prop_assert_eq!(tree.bring_in(&nodes), nodes.len() - first);
        prop_assert_eq!(tree.bring_in(&nodes), 0);
        for last in 0..nodes.len() {
            prop_assert_eq!(tree.path(nodes[last].entry), answered(&nodes, last));
        }
    }

    #[test]
    fn steps_never_go_back_in_time(nodes in trees()) {
        let times = times(&nodes);
        let steps = plan(conversation(ROOT), &nodes, &HashMap::new());
        prop_assert!(steps.is_sorted_by_key(|step| times[step.node]));
    }
}

#[test]
fn the_root_has_the_branch_that_was_looked_at_last() {
    // An answer that was asked for again: the first one is older, the second one is current.
    let nodes = [node(0, None, true, 1), node(1, Some(0), false, 2), node(2, Some(0), true, 3)];
    let steps = plan(conversation(ROOT), &nodes, &HashMap::new());
    let forks: Vec<bool> = steps.iter().map(|step| step.forks).collect();
    assert_eq!(forks, [false, true, false]);
    assert_eq!(steps[2].conversation, conversation(ROOT));
}

#[test]
fn what_goes_on_elsewhere_is_a_fork_where_somebody_went_on_here() {
    let nodes = [node(0, None, true, 1), node(1, Some(0), true, 2)];
    let mut tree = Tree::default();
    tree.bring_in(&nodes[..1]);
    tree.append(EntryId(Uuid::from_u128(999)), conversation(ROOT));
    tree.bring_in(&nodes);
    assert_eq!(tree.path(nodes[1].entry), answered(&nodes, 1));
}
