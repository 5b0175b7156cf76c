//! Indexes of conversation trees in memory: made from the store when they are needed, and never behind it.

use super::embeddings::at_once;
use crate::Context;
use memtrove_core::{ConversationId, EntryId, GroupId};
use memtrove_recall::embed::Space;
use memtrove_recall::index::{Partition, PartitionCache, Piece, SpaceNo};
use memtrove_store::conversations::embeddings::{self, EmbeddedText, Tree};
use memtrove_store::{StoreError, Tx};
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

/// The trees that somebody searched lately, within a budget of memory.
pub(crate) struct Trees {
    cache: PartitionCache<GroupId, Known, Turn>,
    models: Numbers,
    spaces: Numbers,
}

/// What is known of a tree as a whole.
#[derive(Default)]
pub(super) struct Known {
    next_ord: i64,
    changes: i64,
    branches: Vec<Branch>,
    numbers: HashMap<ConversationId, u32>,
    speakers: Vec<Box<str>>,
}

/// A conversation of a tree, as far as it has something to be found.
struct Branch {
    id: ConversationId,
    /// The places of its turns, in their order.
    ords: Vec<u64>,
}

/// An entry with something to be found, beside its vectors and words.
#[derive(Clone)]
pub(super) struct Turn {
    pub entry: EntryId,
    /// The version of its text.
    text_no: i64,
    branch: u32,
    speaker: Option<u32>,
    /// It ends with a question.
    pub asks: bool,
    model: Option<u16>,
    /// The space of its vectors, if it has some.
    pub space: Option<SpaceNo>,
}

impl Trees {
    /// No trees yet, and later `budget` bytes of them at most.
    pub fn new(budget: usize) -> Self {
        Self { cache: PartitionCache::new(budget), models: Numbers::default(), spaces: Numbers::default() }
    }

    /// Reads a tree's index, after it was brought up to what this unit of work sees. `has_tail`: some tree has
    /// texts that were not taken in yet.
    pub(super) fn with<R>(
        &self,
        tx: &mut dyn Tx,
        cx: &Context,
        tree: &Tree,
        has_tail: bool,
        read: impl FnOnce(&Known, &Partition<Turn>) -> R,
    ) -> Result<R, StoreError> {
        // Somebody else may have brought it further than this unit of work sees. That does no harm: what is found is looked
        // up in the store again.
        let is_behind = |known: &Known| known.next_ord < tree.next_ord || known.changes < tree.changes;
        let catch_up = |known: &mut Known, partition: &mut Partition<Turn>| {
            if !self.take_in_changes(tx, tree, known, partition)? {
                (*known, *partition) = (Known::default(), Partition::new());
                self.take_in_changes(tx, tree, known, partition)?;
            }
            if has_tail {
                self.take_in_tail(tx, cx, tree, known, partition)?;
            }
            (known.next_ord, known.changes) = (tree.next_ord, tree.changes);
            partition.set_bytes_beside(known.bytes());
            Ok(())
        };
        self.cache.with(&tree.group, is_behind, catch_up, read)
    }

    /// Drops what is in memory of a tree.
    pub fn forget(&self, group: GroupId) {
        self.cache.drop_key(&group);
    }

    /// Drops what is in memory of all trees.
    pub fn clear(&self) {
        self.cache.clear();
    }

    /// The number of a space, for as long as the process lives.
    pub(super) fn space_no(&self, space: &Space) -> SpaceNo {
        SpaceNo(self.spaces.of(&space.name))
    }

    /// What was written down since. `false`: a name is not to be known any more, and the index is to be made anew.
    fn take_in_changes(
        &self,
        tx: &mut dyn Tx,
        tree: &Tree,
        known: &mut Known,
        partition: &mut Partition<Turn>,
    ) -> Result<bool, StoreError> {
        let mut is_name_known = true;
        embeddings::changed(tx, tree.group, known.changes, &mut |embedded| {
            let lost_its_name = |turn: &Turn| {
                turn.text_no == embedded.text_no && turn.speaker.is_some() && embedded.speaker.is_none()
            };
            is_name_known &= !partition.meta(embedded.ord as u64).is_some_and(lost_its_name);
            self.take_in(known, partition, embedded);
        })?;
        Ok(is_name_known)
    }

    /// Takes in what was not written down yet.
    fn take_in_tail(
        &self,
        tx: &mut dyn Tx,
        cx: &Context,
        tree: &Tree,
        known: &mut Known,
        partition: &mut Partition<Turn>,
    ) -> Result<(), StoreError> {
        for text in embeddings::tail(tx, tree.group)? {
            let is_known = |turn: &Turn| turn.text_no == text.no;
            if !partition.meta(text.ord as u64).is_some_and(is_known) {
                let mut embedded = at_once(cx, &text);
                embedded.speaker = embedded.speaker.or(text.author);
                self.take_in(known, partition, embedded);
            }
        }
        Ok(())
    }

    fn take_in(&self, known: &mut Known, partition: &mut Partition<Turn>, embedded: EmbeddedText) {
        let key = embedded.ord as u64;
        let model = embedded.model.as_deref().map(|model| self.models.of(model));
        let speaker = embedded.speaker.map(|name| known.speaker(name));
        // What was taken in from the tail comes again when it is written down.
        let is_known =
            |turn: &Turn| (turn.text_no, turn.model, turn.speaker) == (embedded.text_no, model, speaker);
        if partition.meta(key).is_some_and(is_known) {
            return;
        }
        let space = embedded.model.as_deref().and_then(Space::of).map(|space| self.space_no(&space));
        let turn = Turn {
            entry: embedded.entry,
            text_no: embedded.text_no,
            branch: known.branch(embedded.conversation, key),
            speaker,
            asks: embedded.asks,
            model,
            space,
        };
        let vectors: Vec<Vec<f32>> = embedded
            .pieces
            .iter()
            .map(|piece| piece.vector.iter().map(|value| f32::from(*value)).collect())
            .collect();
        let pieces: Vec<Piece<'_>> = embedded
            .pieces
            .iter()
            .zip(&vectors)
            .map(|(piece, vector)| Piece {
                vector: (!vector.is_empty()).then_some(vector),
                terms: &piece.terms,
                length: piece.length,
            })
            .collect();
        partition.put(key, turn, space, &pieces);
    }
}

impl Known {
    /// The conversation that stores a turn.
    pub fn conversation(&self, turn: &Turn) -> ConversationId {
        self.branches[turn.branch as usize].id
    }

    /// The number of that conversation in its tree.
    pub fn branch_of(&self, turn: &Turn) -> u32 {
        turn.branch
    }

    /// Where among the turns of its conversation the one at this place stands.
    pub fn position(&self, turn: &Turn, ord: u64) -> usize {
        self.branches[turn.branch as usize].ords.partition_point(|other| *other < ord)
    }

    /// The places of the turns next to this one, `reach` before and after it.
    pub fn around(&self, turn: &Turn, ord: u64, reach: usize) -> &[u64] {
        let ords = &self.branches[turn.branch as usize].ords;
        let at = self.position(turn, ord);
        &ords[at.saturating_sub(reach)..ords.len().min(at + reach + 1)]
    }

    /// Who said it; none where it was the agent.
    pub fn speaker_of(&self, turn: &Turn) -> Option<&str> {
        turn.speaker.map(|number| &*self.speakers[number as usize])
    }

    /// Everybody who said something.
    pub fn speakers(&self) -> impl Iterator<Item = &str> {
        self.speakers.iter().map(|name| &**name)
    }

    /// How much memory this takes, about.
    fn bytes(&self) -> usize {
        let branch = |branch: &Branch| size_of::<Branch>() + 32 + branch.ords.capacity() * size_of::<u64>();
        let speakers = self.speakers().map(|name| size_of::<Box<str>>() + name.len());
        self.branches.iter().map(branch).sum::<usize>() + speakers.sum::<usize>()
    }

    fn speaker(&mut self, name: String) -> u32 {
        number_of(&mut self.speakers, &name) as u32
    }

    /// The number of a conversation that has a turn at this place.
    fn branch(&mut self, id: ConversationId, ord: u64) -> u32 {
        let next = self.branches.len() as u32;
        let number = *self.numbers.entry(id).or_insert(next);
        if number == next {
            self.branches.push(Branch { id, ords: Vec::new() });
        }
        let ords = &mut self.branches[number as usize].ords;
        let at = ords.partition_point(|other| *other < ord);
        if ords.get(at) != Some(&ord) {
            ords.insert(at, ord);
        }
        number
    }
}

/// Where a name stands in a short list, to which it is added if it is not there.
fn number_of(names: &mut Vec<Box<str>>, name: &str) -> usize {
    names.iter().position(|known| **known == *name).unwrap_or_else(|| {
        names.push(name.into());
        names.len() - 1
    })
}

/// Short numbers for names: there is a handful of models.
#[derive(Default)]
struct Numbers(Mutex<Vec<Box<str>>>);

impl Numbers {
    fn of(&self, name: &str) -> u16 {
        let mut names = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        number_of(&mut names, name) as u16
    }
}
