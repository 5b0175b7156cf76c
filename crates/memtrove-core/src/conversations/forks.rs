//! What a fork sees.
//!
//! Entries of a tree are numbered by one increasing `ord`. A conversation sees all of its own entries and, of each
//! ancestor, those up to the point where the path left it. Because a fork is made after the entry it is made at, the
//! parts never interleave: a view is a list of segments, and a page is one range scan per segment it touches.

use crate::ConversationId;

/// The entries of one conversation up to and including `max_ord`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Segment {
    /// The conversation that stores them.
    pub conversation: ConversationId,
    /// The last one that is visible.
    pub max_ord: i64,
}

/// Everything visible on a conversation, nearest part first: its own entries, its parent's, its grandparent's, …
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct View {
    segments: Vec<Segment>,
}

impl View {
    /// The view of a conversation with these ancestors, nearest first.
    pub fn new(conversation: ConversationId, ancestors: Vec<Segment>) -> Self {
        let mut segments = ancestors;
        segments.insert(0, Segment { conversation, max_ord: i64::MAX });
        Self { segments }
    }

    /// The parts, newest first.
    pub fn segments(&self) -> &[Segment] {
        &self.segments
    }

    /// Whether an entry with this place is visible.
    pub fn contains(&self, conversation: ConversationId, ord: i64) -> bool {
        self.segments.iter().any(|s| s.conversation == conversation && ord <= s.max_ord)
    }

    /// The view up to and including `ord`.
    pub fn up_to(&self, ord: i64) -> Self {
        let segments = self.segments.iter().map(|s| Segment { max_ord: s.max_ord.min(ord), ..*s }).collect();
        Self { segments }
    }

    /// The ancestors of a fork made at the entry `excluded`, which is the first one the fork does not see. `None` makes a
    /// blank-slate fork, which inherits nothing.
    pub fn fork_at(&self, excluded: Option<i64>) -> Vec<Segment> {
        let Some(excluded) = excluded else { return Vec::new() };
        let last = excluded - 1;
        let mut ancestors = Vec::with_capacity(self.segments.len());
        for (i, segment) in self.segments.iter().enumerate() {
            // Everything in a segment is younger than where the next one ends, so a cut at or before that leaves
            // nothing of it.
            let emptied = self.segments.get(i + 1).is_some_and(|older| last <= older.max_ord);
            if !emptied {
                ancestors.push(Segment { max_ord: segment.max_ord.min(last), ..*segment });
            }
        }
        ancestors
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use uuid::Uuid;

    fn id(n: usize) -> ConversationId {
        ConversationId(Uuid::from_u128(n as u128 + 1))
    }

    /// The definition, word for word: a list of entries per conversation, copied at every fork.
    #[derive(Default)]
    struct Naive {
        views: Vec<Vec<(usize, i64)>>,
    }

    #[derive(Debug, Clone)]
    enum Step {
        Append { conversation: usize },
        Fork { parent: usize, at: usize },
        Blank { parent: usize },
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let step = prop_oneof![
            4 => any::<usize>().prop_map(|conversation| Step::Append { conversation }),
            2 => (any::<usize>(), any::<usize>()).prop_map(|(parent, at)| Step::Fork { parent, at }),
            1 => any::<usize>().prop_map(|parent| Step::Blank { parent }),
        ];
        prop::collection::vec(step, 0..120)
    }

    proptest! {
        #[test]
        fn a_view_is_the_parents_prefix_and_its_own_entries(steps in steps()) {
            let mut naive = Naive { views: vec![vec![]] };
            let mut views = vec![View::new(id(0), vec![])];
            let mut stored: Vec<(usize, i64)> = Vec::new();
            for step in steps {
                let count = views.len();
                match step {
                    Step::Append { conversation } => {
                        let entry = (conversation % count, stored.len() as i64);
                        stored.push(entry);
                        naive.views[entry.0].push(entry);
                    }
                    Step::Fork { parent, at } => {
                        let parent = parent % count;
                        if naive.views[parent].is_empty() { continue }
                        let at = at % naive.views[parent].len();
                        let excluded = naive.views[parent][at].1;
                        let prefix = naive.views[parent][..at].to_vec();
                        naive.views.push(prefix);
                        views.push(View::new(id(count), views[parent].fork_at(Some(excluded))));
                    }
                    Step::Blank { parent } => {
                        naive.views.push(vec![]);
                        views.push(View::new(id(count), views[parent % count].fork_at(None)));
                    }
                }
            }
            for (n, view) in views.iter().enumerate() {
                let seen: Vec<(usize, i64)> =
                    stored.iter().copied().filter(|(c, ord)| view.contains(id(*c), *ord)).collect();
                prop_assert_eq!(&seen, &naive.views[n], "conversation {}", n);
                // Oldest segment first, each in order: the whole view is in order.
                let walked: Vec<(usize, i64)> = view.segments().iter().rev().flat_map(|s| {
                    stored.iter().copied().filter(|(c, ord)| id(*c) == s.conversation && *ord <= s.max_ord)
                }).collect();
                prop_assert_eq!(&walked, &naive.views[n]);
            }
        }
    }

    #[test]
    fn a_fork_at_an_inherited_entry_drops_the_parents_own_part() {
        let parent = View::new(id(1), vec![Segment { conversation: id(0), max_ord: 5 }]);
        assert_eq!(parent.fork_at(Some(3)), [Segment { conversation: id(0), max_ord: 2 }]);
        assert_eq!(
            parent.fork_at(Some(9)),
            [Segment { conversation: id(1), max_ord: 8 }, Segment { conversation: id(0), max_ord: 5 }]
        );
        assert_eq!(parent.fork_at(None), []);
    }
}
