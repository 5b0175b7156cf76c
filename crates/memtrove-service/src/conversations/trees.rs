//! Indexes of conversations in memory: made from the store when they are needed, and never behind it.
//!
//! All live trees of an owner are in one index, so that a search of thousands of conversations looks through one list of vectors
//! and words. What others share with somebody, and what is deleted, is searched tree by tree.

use super::embeddings::at_once;
use super::search::Budget;
use crate::Context;
use memtrove_core::identity::Tenant;
use memtrove_core::{ConversationId, EntryId, GroupId, UserId};
use memtrove_recall::embed::Space;
use memtrove_recall::index::{Partition, PartitionCache, Piece, SpaceNo};
use memtrove_store::conversations::embeddings::{self, EmbeddedText, Tree};
use memtrove_store::conversations::search::Scope;
use memtrove_store::{StoreError, Tx};
use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher, RandomState};
use std::ops::ControlFlow;
use std::sync::{Mutex, PoisonError};

/// Rows that are read of a tree at once.
const ROWS: usize = 1024;
/// Texts that are taken in while a search waits, at once: each takes as long as a dozen rows.
const TAIL_TEXTS: usize = 128;
/// So many rows are taken in between two looks at the clock.
const ROWS_UNASKED: usize = 32;
/// So many trees are asked for their tails one by one. Where more are behind, it is looked up which have one, unless these are
/// more texts than that.
const TREES_ASKED: usize = 16;
const TEXTS_LISTED: usize = 1024;
/// What thirty thousand turns take.
const LARGE_BYTES: usize = 16 << 20;
/// Bits of a turn's key for its place in its tree; those above are the tree's number in the index.
const PLACE_BITS: u32 = 40;

/// The trees that somebody searched lately, within a budget of memory.
pub(crate) struct Trees {
    cache: PartitionCache<PartitionKey, Known, Turn>,
    models: Numbers,
    spaces: Numbers,
    hasher: RandomState,
}

/// What an index is of.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum PartitionKey {
    /// All live trees of a user.
    Owner(Tenant, UserId),
    /// One tree.
    Tree(GroupId),
}

/// Trees that are searched together, as a unit of work found them.
#[derive(Debug, Clone)]
pub(super) struct TreeSet {
    key: PartitionKey,
    trees: Vec<Tree>,
    /// Tells this state of these trees from all others.
    digest: u64,
}

/// What is known of the trees of an index.
#[derive(Default)]
pub(super) struct Known {
    trees: HashMap<GroupId, KnownTree>,
    /// Numbers of trees that went.
    free: Vec<u32>,
    /// The state in which all trees were when they were taken in last; none while some are behind.
    digest: Option<u64>,
    branches: Vec<Branch>,
    free_branches: Vec<u32>,
    numbers: HashMap<ConversationId, u32>,
    speakers: Speakers,
}

/// How far a tree was taken in.
struct KnownTree {
    number: u32,
    next_ord: i64,
    changes: i64,
    /// The last text of its tail.
    tail: i64,
    /// Whether it was taken in as far as that.
    is_whole: bool,
    branches: Vec<u32>,
}

/// A conversation of a tree, as far as it has something to be found.
struct Branch {
    id: ConversationId,
    group: GroupId,
    /// The keys of its turns, in their order.
    keys: Vec<u64>,
}

/// Where a turn stands: in which branch, as which of its turns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct TurnPlace {
    pub branch: u32,
    pub position: u32,
}

/// Who says something, each with how often.
#[derive(Default)]
struct Speakers {
    numbers: HashMap<Box<str>, u32>,
    names: Vec<(Box<str>, u32)>,
    free: Vec<u32>,
}

/// An entry with something to be found, beside its vectors and words.
#[derive(Clone)]
pub(super) struct Turn {
    pub entry: EntryId,
    /// The version of its text.
    text_no: i64,
    /// The number of its conversation.
    pub branch: u32,
    speaker: Option<u32>,
    /// It ends with a question.
    pub asks: bool,
    /// How many terms its pieces have together.
    pub length: u32,
    model: Option<u16>,
    /// The space of its vectors, if it has some.
    pub space: Option<SpaceNo>,
}

impl Trees {
    /// No trees yet, and later `budget` bytes of them at most.
    pub fn new(budget: usize) -> Self {
        Self {
            cache: PartitionCache::new(budget),
            models: Numbers::default(),
            spaces: Numbers::default(),
            hasher: RandomState::new(),
        }
    }

    /// Trees as they are searched together.
    pub(super) fn sets(&self, tenant: &Tenant, trees: embeddings::Trees) -> Vec<TreeSet> {
        let owned = trees.owned.into_iter().filter(|(_, trees)| !trees.is_empty());
        let owned = owned.map(|(owner, trees)| (PartitionKey::Owner(tenant.clone(), owner), trees));
        let others = trees.others.into_iter().map(|tree| (PartitionKey::Tree(tree.group), vec![tree]));
        let set = |(key, trees): (PartitionKey, Vec<Tree>)| {
            // A sum: the order in which they are listed tells nothing.
            let digest = trees.iter().fold(0u64, |sum, tree| sum.wrapping_add(self.hasher.hash_one(tree)));
            TreeSet { key, trees, digest }
        };
        owned.chain(others).map(set).collect()
    }

    /// Reads the index of some trees, after it was brought up to what this unit of work sees, as far as the budget goes; also
    /// answers whether it is all there. `has_tail`: some tree has texts that were not taken in yet.
    pub(super) fn with<R>(
        &self,
        tx: &mut dyn Tx,
        cx: &Context,
        set: &TreeSet,
        has_tail: bool,
        budget: &Budget,
        read: impl FnOnce(&Known, &Partition<Turn>) -> R,
    ) -> Result<(R, bool), StoreError> {
        let mut is_complete = true;
        // Somebody else may have brought it further than this unit of work sees. That does no harm: what is found is looked
        // up in the store again.
        let catch_up = |known: &mut Known, partition: &mut Partition<Turn>| {
            is_complete = self.catch_up(tx, cx, set, has_tail, budget, known, partition)?;
            Ok(())
        };
        let read = self.cache.with(&set.key, |known| known.is_behind(set), catch_up, read)?;
        Ok((read, is_complete))
    }

    /// Whether a search of this scope takes a core for milliseconds, as far as can be said before.
    pub(super) fn is_large(&self, tenant: &Tenant, scope: &Scope) -> bool {
        match scope {
            Scope::Member(owner) | Scope::Owner(owner) | Scope::Tenant { owner: Some(owner), .. } => {
                self.cache.bytes_of(&PartitionKey::Owner(tenant.clone(), owner.clone())) > LARGE_BYTES
            }
            Scope::Tenant { owner: None, .. } => self.cache.bytes() > LARGE_BYTES,
        }
    }

    /// Drops what is in memory of a tree. May wait for those who search it.
    pub fn forget(&self, group: GroupId) {
        self.cache.drop_key(&PartitionKey::Tree(group));
        self.cache.change_where(
            |known| known.trees.contains_key(&group),
            |known, partition| known.remove(partition, group),
        );
    }

    /// Drops what is in memory of all trees.
    pub fn clear(&self) {
        self.cache.clear();
    }

    /// The number of a space, for as long as the process lives.
    pub(super) fn space_no(&self, space: &Space) -> SpaceNo {
        SpaceNo(self.spaces.of(&space.name))
    }

    /// Brings an index up to what a unit of work sees. `false`: the budget was spent before.
    #[allow(clippy::too_many_arguments, reason = "the two halves of an index, and what it is brought up to")]
    fn catch_up(
        &self,
        tx: &mut dyn Tx,
        cx: &Context,
        set: &TreeSet,
        has_tail: bool,
        budget: &Budget,
        known: &mut Known,
        partition: &mut Partition<Turn>,
    ) -> Result<bool, StoreError> {
        known.digest = None;
        known.keep_only(set, partition);
        let (mut is_complete, mut is_ahead) = (true, false);
        let (mut behind, mut waiting) = (0, None);
        for tree in &set.trees {
            let state = known.trees.get(&tree.group);
            if state.is_some_and(|state| !state.is_behind(tree)) {
                is_ahead |= state.is_some_and(|state| state.is_ahead(tree));
                continue;
            }
            behind += 1;
            if has_tail && behind == TREES_ASKED {
                waiting = embeddings::trees_waiting(tx, TEXTS_LISTED)?;
            }
            let has_tail = has_tail && waiting.as_ref().is_none_or(|waiting| waiting.contains(&tree.group));
            known.tree(tree.group).is_whole = false;
            is_complete = !budget.is_spent()
                && self.take_in_changes(tx, tree, budget, known, partition)?
                && (!has_tail || self.take_in_tail(tx, cx, tree, budget, known, partition)?);
            if !is_complete {
                break;
            }
            let state = known.tree(tree.group);
            (state.next_ord, state.changes) = (tree.next_ord, tree.changes.max(state.changes));
            state.is_whole = true;
        }
        known.digest = (is_complete && !is_ahead).then_some(set.digest);
        partition.set_bytes_beside(known.bytes());
        Ok(is_complete)
    }

    /// Takes in what was written down since. `false`: not all of it.
    fn take_in_changes(
        &self,
        tx: &mut dyn Tx,
        tree: &Tree,
        budget: &Budget,
        known: &mut Known,
        partition: &mut Partition<Turn>,
    ) -> Result<bool, StoreError> {
        loop {
            let (mut rows, mut last) = (0, known.tree(tree.group).changes);
            let mut is_over = false;
            embeddings::changed(tx, tree.group, last, ROWS, &mut |change, embedded| {
                (rows, last) = (rows + 1, change);
                self.take_in(known, partition, tree.group, embedded);
                is_over = rows % ROWS_UNASKED == 0 && budget.is_spent();
                if is_over { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            })?;
            known.tree(tree.group).changes = last;
            if is_over || rows < ROWS {
                return Ok(!is_over);
            }
        }
    }

    /// Takes in what was not written down yet. `false`: not all of it.
    fn take_in_tail(
        &self,
        tx: &mut dyn Tx,
        cx: &Context,
        tree: &Tree,
        budget: &Budget,
        known: &mut Known,
        partition: &mut Partition<Turn>,
    ) -> Result<bool, StoreError> {
        loop {
            let after = known.tree(tree.group).tail;
            let texts = embeddings::tail(tx, tree.group, after, TAIL_TEXTS)?;
            for text in &texts {
                let is_known = |turn: &Turn| turn.text_no == text.no;
                let key = known.key(tree.group, text.ord);
                if !partition.meta(key).is_some_and(is_known) {
                    let mut embedded = at_once(cx, text);
                    embedded.speaker = embedded.speaker.or_else(|| text.author.clone());
                    self.take_in(known, partition, tree.group, embedded);
                }
                known.tree(tree.group).tail = text.no;
                if budget.is_spent() {
                    return Ok(false);
                }
            }
            if texts.len() < TAIL_TEXTS {
                return Ok(true);
            }
        }
    }

    pub(super) fn take_in(
        &self,
        known: &mut Known,
        partition: &mut Partition<Turn>,
        group: GroupId,
        embedded: EmbeddedText,
    ) {
        let key = known.key(group, embedded.ord);
        let model = embedded.model.as_deref().map(|model| self.models.of(model));
        let before = partition.meta(key);
        // What was taken in from the tail comes again when it is written down.
        let is_known = |turn: &Turn| {
            let speaker = turn.speaker.map(|number| known.speakers.name(number));
            (turn.text_no, turn.model, speaker) == (embedded.text_no, model, embedded.speaker.as_deref())
        };
        if before.is_some_and(is_known) {
            return;
        }
        let spoke = before.and_then(|turn| turn.speaker);
        let speaker = embedded.speaker.map(|name| known.speakers.add(name));
        // After the new one, so that a name that stays keeps its number.
        spoke.into_iter().for_each(|number| known.speakers.take_off(number));
        let space = embedded.model.as_deref().and_then(Space::of).map(|space| self.space_no(&space));
        let turn = Turn {
            entry: embedded.entry,
            text_no: embedded.text_no,
            branch: known.branch(embedded.conversation, group, key),
            speaker,
            asks: embedded.asks,
            length: embedded.pieces.iter().map(|piece| piece.length).sum(),
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

impl KnownTree {
    fn is_behind(&self, tree: &Tree) -> bool {
        !self.is_whole || self.next_ord < tree.next_ord || self.changes < tree.changes
    }

    fn is_ahead(&self, tree: &Tree) -> bool {
        self.next_ord > tree.next_ord || self.changes > tree.changes
    }
}

impl Known {
    /// The conversation that stores a turn.
    pub fn conversation(&self, turn: &Turn) -> ConversationId {
        self.branches[turn.branch as usize].id
    }

    /// The tree a turn is in.
    pub fn group(&self, turn: &Turn) -> GroupId {
        self.branches[turn.branch as usize].group
    }

    /// Where among the turns of its conversation the one with this key stands.
    pub fn position(&self, turn: &Turn, key: u64) -> usize {
        self.branches[turn.branch as usize].keys.partition_point(|other| *other < key)
    }

    /// How many turns a branch has.
    pub fn turns_of(&self, branch: u32) -> u32 {
        self.branches[branch as usize].keys.len() as u32
    }

    /// The key of the turn that stands there.
    pub fn key_at(&self, place: TurnPlace) -> u64 {
        self.branches[place.branch as usize].keys[place.position as usize]
    }

    /// Who said it, as [`is_agent`] knows agents; none where a name was forgotten.
    ///
    /// [`is_agent`]: memtrove_core::recall::actors::is_agent
    pub fn speaker_of(&self, turn: &Turn) -> Option<&str> {
        turn.speaker.map(|number| self.speakers.name(number))
    }

    /// Everybody who said something.
    pub fn speakers(&self) -> impl Iterator<Item = &str> {
        self.speakers.names.iter().filter(|(_, turns)| *turns > 0).map(|(name, _)| &**name)
    }

    /// Whether there is something to be taken in, or to be taken out.
    fn is_behind(&self, set: &TreeSet) -> bool {
        let is_known = |tree: &Tree| self.trees.get(&tree.group).is_some_and(|known| !known.is_behind(tree));
        self.digest != Some(set.digest)
            && (self.trees.len() != set.trees.len() || !set.trees.iter().all(is_known))
    }

    /// Takes out trees that are not among these.
    fn keep_only(&mut self, set: &TreeSet, partition: &mut Partition<Turn>) {
        let listed: HashSet<GroupId> = set.trees.iter().map(|tree| tree.group).collect();
        let gone: Vec<GroupId> = self.trees.keys().filter(|group| !listed.contains(group)).copied().collect();
        let turns: usize = gone.iter().map(|group| self.turns_in(*group)).sum();
        // To take most of it out takes longer than to read the rest once more, which is not done at once.
        if turns > partition.len() / 2 {
            (*self, *partition) = (Self::default(), Partition::new());
            return;
        }
        gone.into_iter().for_each(|group| self.remove(partition, group));
    }

    fn turns_in(&self, group: GroupId) -> usize {
        let branches = self.trees.get(&group).map(|tree| tree.branches.as_slice()).unwrap_or_default();
        branches.iter().map(|branch| self.branches[*branch as usize].keys.len()).sum()
    }

    /// Takes out a tree.
    fn remove(&mut self, partition: &mut Partition<Turn>, group: GroupId) {
        let Some(tree) = self.trees.remove(&group) else { return };
        self.digest = None;
        for number in tree.branches {
            let branch = &mut self.branches[number as usize];
            self.numbers.remove(&branch.id);
            for key in std::mem::take(&mut branch.keys) {
                let speaker = partition.remove(key).and_then(|turn| turn.speaker);
                speaker.into_iter().for_each(|number| self.speakers.take_off(number));
            }
            self.free_branches.push(number);
        }
        self.free.push(tree.number);
    }

    /// What is known of a tree, of which nothing may be known yet.
    fn tree(&mut self, group: GroupId) -> &mut KnownTree {
        let Self { trees, free, .. } = self;
        let next = trees.len() as u32 + free.len() as u32;
        trees.entry(group).or_insert_with(|| KnownTree {
            number: free.pop().unwrap_or(next),
            next_ord: 0,
            changes: 0,
            tail: 0,
            is_whole: false,
            branches: Vec::new(),
        })
    }

    /// The key of a turn.
    fn key(&mut self, group: GroupId, ord: i64) -> u64 {
        u64::from(self.tree(group).number) << PLACE_BITS | ord as u64
    }

    /// How much memory this takes, about.
    fn bytes(&self) -> usize {
        let branch = |branch: &Branch| size_of::<Branch>() + 32 + branch.keys.capacity() * size_of::<u64>();
        let names = self.speakers.names.iter().map(|(name, _)| 2 * (size_of::<Box<str>>() + name.len()));
        self.branches.iter().map(branch).sum::<usize>()
            + names.sum::<usize>()
            + self.trees.capacity() * size_of::<(GroupId, KnownTree)>()
    }

    /// The number of a conversation that has a turn with this key.
    fn branch(&mut self, id: ConversationId, group: GroupId, key: u64) -> u32 {
        let known = self.numbers.get(&id).copied();
        let number = known.unwrap_or_else(|| {
            let branch = Branch { id, group, keys: Vec::new() };
            let number = self.free_branches.pop().unwrap_or(self.branches.len() as u32);
            match self.branches.get_mut(number as usize) {
                Some(free) => *free = branch,
                None => self.branches.push(branch),
            }
            self.numbers.insert(id, number);
            self.tree(group).branches.push(number);
            number
        });
        let keys = &mut self.branches[number as usize].keys;
        let at = keys.partition_point(|other| *other < key);
        if keys.get(at) != Some(&key) {
            keys.insert(at, key);
        }
        number
    }
}

impl Speakers {
    fn name(&self, number: u32) -> &str {
        &self.names[number as usize].0
    }

    /// Notes that somebody said something more. Answers the name's number.
    fn add(&mut self, name: String) -> u32 {
        let number = self.numbers.get(&*name).copied().unwrap_or_else(|| {
            let name: Box<str> = name.into();
            let number = self.free.pop().unwrap_or(self.names.len() as u32);
            match self.names.get_mut(number as usize) {
                Some(free) => *free = (name.clone(), 0),
                None => self.names.push((name.clone(), 0)),
            }
            self.numbers.insert(name, number);
            number
        });
        self.names[number as usize].1 += 1;
        number
    }

    /// Notes that somebody said something less. A name that nothing is said by is not kept: its owner may have asked for that.
    fn take_off(&mut self, number: u32) {
        let (name, turns) = &mut self.names[number as usize];
        *turns -= 1;
        if *turns == 0 {
            self.numbers.remove(name);
            *name = Box::default();
            self.free.push(number);
        }
    }
}

/// Short numbers for names: there is a handful of models.
#[derive(Default)]
struct Numbers(Mutex<Vec<Box<str>>>);

impl Numbers {
    fn of(&self, name: &str) -> u16 {
        let mut names = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let known = names.iter().position(|known| **known == *name);
        known.unwrap_or_else(|| {
            names.push(name.into());
            names.len() - 1
        }) as u16
    }
}
