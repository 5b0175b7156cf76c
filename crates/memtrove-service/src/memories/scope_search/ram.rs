//! The index of a scope in memory: derived from the store, and caught up with it inside the unit of work that asks it.
//!
//! It may have seen later changes than that unit of work, whose snapshot is older. What it knows of such entries is not used:
//! they are read from the snapshot (see [`Candidates::changed_since`]).

use super::segment::{self, ScopeSnapshot};
use super::{Admission, Estimate, ScopeQuery, ScopeSearch, Words};
use memtrove_core::memories::search::Mode;
use memtrove_core::memories::{AccessPolicy, Author, Kind, MemoryId, Policy, State, Viewer, told_at};
use memtrove_core::recall::relevance::least_score_in_time;
use memtrove_core::{Result, Timestamp};
use memtrove_recall::embed::{Calibration, QueryVector, Space};
use memtrove_recall::index::{
    Candidate, Partition, PartitionCache, Piece, Probe, ProbeResult, SpaceNo, TermStatistics,
};
use memtrove_store::memories::scopes::ScopeRow;
use memtrove_store::memories::{ScopeNo, index, segments};
use memtrove_store::{StoreError, Tx};
use serde::{Deserialize, Serialize};
use std::collections::{HashMap, HashSet};
use std::mem::size_of;
use std::sync::Arc;

/// Up to this many entries, all that could pass the threshold are looked at, and counted exactly.
const EXACT_ENTRIES: usize = 20_000;
/// As long as they have no more pieces than this: to look at so many takes some milliseconds.
const EXACT_PIECES: usize = 4 * EXACT_ENTRIES;

/// What an index in memory knows of an entry besides its vector and words.
#[derive(Debug, Clone)]
pub struct Slot {
    /// The change that it was indexed by.
    pub(super) seq: i64,
    pub(super) id: MemoryId,
    pub(super) at: Timestamp,
    pub(super) created_at: Timestamp,
    pub(super) updated_at: Timestamp,
    pub(super) expires_at: Option<Timestamp>,
    pub(super) anchor: Timestamp,
    pub(super) relevance: f32,
    pub(super) fading: f32,
    pub(super) user: Name,
    pub(super) client: Name,
    pub(super) kind: Kind,
    pub(super) state: State,
    pub(super) policy: Policy,
    /// The space of its vector, if it has one that can be compared with something.
    pub(super) space: Option<SpaceNo>,
}

impl Slot {
    /// What is known of an entry by itself.
    pub(super) fn of(seq: i64, head: &index::IndexHead) -> Self {
        Self {
            seq,
            id: head.id,
            at: head.at,
            created_at: head.created_at,
            updated_at: head.updated_at,
            expires_at: head.expires_at,
            anchor: head.anchor,
            relevance: head.relevance as f32,
            fading: head.fading as f32,
            user: 0,
            client: 0,
            kind: head.kind,
            state: head.state,
            policy: head.policy.policy,
            space: None,
        }
    }

    pub(super) fn is_dated(&self) -> bool {
        self.at != self.created_at
    }

    pub(super) fn told_at(&self) -> Timestamp {
        told_at(self.at, self.created_at, self.anchor, self.updated_at)
    }
}

/// Counter: indexes of scopes that were loaded into memory, by where `from`.
const INDEX_LOADS: &str = "memory_index_loads_total";

/// Describes the metrics of this module.
pub fn announce_metrics() {
    metrics::describe_counter!(
        INDEX_LOADS,
        "Search indexes of scopes loaded into memory: from the file where they were kept, or made anew from the store."
    );
    for from in ["file", "store"] {
        metrics::counter!(INDEX_LOADS, "from" => from).increment(0);
    }
}

/// A name among those of a scope; 0 is no name.
type Name = u32;

/// What an index in memory knows of a scope, besides the entries that everybody sees who has it.
#[derive(Default)]
pub struct ScopeState {
    /// The last change it has seen.
    pub(super) seq: i64,
    pub(super) names: HashMap<Arc<str>, Name>,
    /// The number that a name was given last.
    pub(super) last_name: Name,
    /// Policies that name somebody.
    pub(super) lists: HashMap<u64, AccessPolicy>,
    pub(super) conflicts: HashMap<u64, Arc<str>>,
    pub(super) spaces: Vec<Space>,
    pub(super) hidden: Hidden,
}

/// The indexes in memory, by scope.
pub type ScopeCache = PartitionCache<ScopeNo, ScopeState, Slot>;

impl ScopeState {
    /// The last change it has seen.
    pub fn seq(&self) -> i64 {
        self.seq
    }

    /// How many entries there are, with those that everybody sees.
    pub fn entries(&self, open: &Partition<Slot>) -> usize {
        open.len() + self.hidden.places.len()
    }

    fn name(&mut self, name: Option<&String>) -> Name {
        let Some(name) = name else { return 0 };
        match self.names.get(name.as_str()) {
            Some(known) => *known,
            None => {
                self.last_name += 1;
                self.names.insert(name.as_str().into(), self.last_name);
                self.last_name
            }
        }
    }

    fn known(&self, name: Option<&String>) -> Option<Name> {
        self.names.get(name?.as_str()).copied()
    }

    fn space(&mut self, space: Space) -> SpaceNo {
        let at = self.spaces.iter().position(|known| *known == space).unwrap_or_else(|| {
            self.spaces.push(space);
            self.spaces.len() - 1
        });
        SpaceNo(at as u16)
    }

    /// Takes an entry out, wherever it is.
    fn forget(&mut self, open: &mut Partition<Slot>, key: u64) {
        self.lists.remove(&key);
        self.conflicts.remove(&key);
        if !self.hidden.remove(key) {
            open.remove(key);
        }
    }

    /// Where the entries are that somebody may see.
    fn visible<'a>(&'a self, open: &'a Partition<Slot>, viewer: &ScopeViewer<'_>) -> Vec<VisiblePart<'a>> {
        let Hidden { own, listed, .. } = &self.hidden;
        let whole = |entries| VisiblePart { entries, in_part: false };
        let mut parts = vec![whole(open)];
        if viewer.viewer.all {
            parts.extend(own.values().map(whole));
        } else {
            let owners = [viewer.user.map(Owner::User), viewer.client.map(Owner::Client)];
            parts.extend(owners.into_iter().flatten().filter_map(|owner| own.get(&owner)).map(whole));
        }
        parts.push(VisiblePart { entries: listed, in_part: true });
        parts.retain(|part| !part.entries.is_empty());
        parts
    }

    /// How common some words are among what somebody may see.
    fn statistics(&self, open: &Partition<Slot>, viewer: &ScopeViewer<'_>, terms: &[u64]) -> TermStatistics {
        let mut sum = TermStatistics::default();
        for VisiblePart { entries, in_part } in self.visible(open, viewer) {
            sum.add(&match in_part {
                false => entries.document_statistics(terms),
                true => entries.document_statistics_of(terms, |key, slot| viewer.see(self, key, slot)),
            });
        }
        sum
    }
}

/// The entries of a scope that not everybody sees who has it, apart from those that everybody sees. What somebody finds must
/// not depend on what is hidden from them: neither which words are rare, nor how closely a search has to look.
#[derive(Default)]
pub(super) struct Hidden {
    /// Those that only their author sees.
    pub(super) own: HashMap<Owner, Partition<Slot>>,
    /// Those that some see: they are all looked at, by everybody.
    pub(super) listed: Partition<Slot>,
    pub(super) places: HashMap<u64, Visibility>,
}

/// Who sees an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Visibility {
    /// Everybody who has its scope.
    Open,
    /// Its author.
    Own(Owner),
    /// Those whom it names.
    Listed,
}

/// Whose an entry is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(super) enum Owner {
    User(Name),
    /// Of an entry that no user made.
    Client(Name),
    Nobody,
}

/// Entries among which somebody looks.
struct VisiblePart<'a> {
    entries: &'a Partition<Slot>,
    /// Whether some of them may not be seen.
    in_part: bool,
}

impl Visibility {
    fn of(policy: &AccessPolicy, user: Name, client: Name) -> Self {
        let owner = match (user, client) {
            (0, 0) => Owner::Nobody,
            (0, client) => Owner::Client(client),
            (user, _) => Owner::User(user),
        };
        match policy.policy {
            Policy::Organization | Policy::Public => Self::Open,
            Policy::Shared if policy.allowed_teams.is_empty() => Self::Open,
            Policy::Private => Self::Own(owner),
            Policy::Restricted if policy.approved_users.is_empty() => Self::Own(owner),
            Policy::Shared | Policy::Restricted => Self::Listed,
        }
    }
}

impl Hidden {
    /// Where an entry goes; it is nowhere else afterwards.
    fn place<'a>(
        &'a mut self,
        open: &'a mut Partition<Slot>,
        key: u64,
        place: Visibility,
    ) -> &'a mut Partition<Slot> {
        let before = self.places.get(&key).copied().unwrap_or(Visibility::Open);
        if before != place && !self.remove(key) {
            open.remove(key);
        }
        if place != Visibility::Open {
            self.places.insert(key, place);
        }
        match place {
            Visibility::Open => open,
            Visibility::Own(owner) => self.own.entry(owner).or_default(),
            Visibility::Listed => &mut self.listed,
        }
    }

    /// Takes an entry out; says whether it was there.
    fn remove(&mut self, key: u64) -> bool {
        match self.places.remove(&key) {
            None | Some(Visibility::Open) => return false,
            Some(Visibility::Listed) => drop(self.listed.remove(key)),
            Some(Visibility::Own(owner)) => {
                if let Some(entries) = self.own.get_mut(&owner) {
                    entries.remove(key);
                    if entries.is_empty() {
                        self.own.remove(&owner);
                    }
                }
            }
        }
        true
    }

    fn bytes(&self) -> usize {
        let places = self.places.capacity() * size_of::<(u64, Visibility)>();
        places + self.listed.bytes() + self.own.values().map(Partition::bytes).sum::<usize>()
    }
}

/// Brings an index up to what the reader sees, and looks into it.
fn with_scope<R>(
    tx: &mut dyn Tx,
    cache: &ScopeCache,
    row: ScopeRow,
    read: impl FnOnce(&ScopeState, &Partition<Slot>) -> R,
) -> Result<R> {
    let catch_up = |state: &mut ScopeState, partition: &mut Partition<Slot>| -> Result<(), StoreError> {
        if state.seq == 0
            && let Some(kept) = read_segment(tx, row)?
        {
            (*state, *partition) = kept;
            metrics::counter!(INDEX_LOADS, "from" => "file").increment(1);
        } else if state.seq == 0 {
            metrics::counter!(INDEX_LOADS, "from" => "store").increment(1);
        }
        if state.seq < row.gone_seq {
            // Some of what went is not noted any more.
            (*state, *partition) = (ScopeState::default(), Partition::new());
        }
        for no in index::gone(tx, row.no, state.seq)? {
            state.forget(partition, no.0 as u64);
        }
        index::changed(tx, row.no, state.seq, &mut |indexed| index_entry(state, partition, indexed))?;
        state.seq = row.seq;
        partition.set_bytes_beside(state.hidden.bytes());
        Ok(())
    };
    Ok(cache.with(&row.no, |state| state.seq < row.seq, catch_up, read)?)
}

/// The index of a scope as it was kept in a file, if it was. One that is of no use is removed.
fn read_segment(tx: &mut dyn Tx, row: ScopeRow) -> Result<Option<(ScopeState, Partition<Slot>)>, StoreError> {
    if tx.segments().is_none() {
        return Ok(None);
    }
    let Some(token) = segments::token(tx, row.no)? else { return Ok(None) };
    let Some(file) = tx.segments().and_then(|folder| folder.open(row.no, &token)) else { return Ok(None) };
    let file = file.unlock(tx, row.no)?;
    let read = file.as_ref().and_then(segment::read).filter(|(state, _)| state.seq <= row.seq);
    if let Some(folder) = tx.segments() {
        match (&read, &file) {
            (Some((state, _)), Some(file)) => folder.found(row.no, state.seq, file.bytes()),
            _ => {
                tracing::warn!(scope = row.no.0, "the kept index of a scope cannot be used; it is made anew");
                folder.remove(row.no);
            }
        }
    }
    Ok(read)
}

/// The index of a scope as it is now, to be kept in a file.
pub(super) fn snapshot(tx: &mut dyn Tx, cache: &ScopeCache, row: ScopeRow) -> Result<ScopeSnapshot> {
    with_scope(tx, cache, row, ScopeSnapshot::take)
}

/// How common some words are among what a viewer may see of a scope.
pub(super) fn statistics(
    tx: &mut dyn Tx,
    cache: &ScopeCache,
    row: ScopeRow,
    viewer: &Viewer,
    terms: &[u64],
) -> Result<TermStatistics> {
    with_scope(tx, cache, row, |state, partition| {
        state.statistics(partition, &ScopeViewer::of(viewer, state), terms)
    })
}

/// How many entries of a scope are admitted.
pub(super) fn count(
    tx: &mut dyn Tx,
    cache: &ScopeCache,
    row: ScopeRow,
    admission: &Admission<'_>,
) -> Result<usize> {
    with_scope(tx, cache, row, |state, partition| {
        let viewer = ScopeViewer::of(admission.viewer, state);
        let parts = state.visible(partition, &viewer);
        let entries = parts.iter().flat_map(|part| part.entries.iter());
        entries.filter(|(key, slot)| viewer.admitted(admission, state, *key, slot)).count()
    })
}

fn index_entry(state: &mut ScopeState, open: &mut Partition<Slot>, indexed: index::Indexed) {
    let index::Indexed { no, seq, head, embedding, terms } = indexed;
    let key = no.0 as u64;
    state.lists.remove(&key);
    state.conflicts.remove(&key);
    let space = embedding.as_ref().and_then(|embedding| Space::of(&embedding.model));
    let space = space.map(|space| state.space(space));
    let user = state.name(head.author.user.as_ref());
    let client = state.name(head.author.client.as_ref());
    let slot = Slot { user, client, space, ..Slot::of(seq, &head) };
    let place = Visibility::of(&head.policy, user, client);
    if !head.policy.approved_users.is_empty() || !head.policy.allowed_teams.is_empty() {
        state.lists.insert(key, head.policy);
    }
    if let Some(conflict) = head.conflict_key {
        state.conflicts.insert(key, conflict.into());
    }
    let embedding = embedding.as_ref().filter(|_| space.is_some());
    let whole = embedding.map(|embedding| embedding.vector.as_slice());
    let parts = if terms.pieces.is_empty() { std::slice::from_ref(&terms.whole) } else { &terms.pieces };
    let vectors = embedding.map_or(&[][..], |embedding| &embedding.pieces);
    let vector = |number: usize| match vectors.len() == parts.len() {
        true => vectors.get(number).map(Vec::as_slice),
        // Of what is one piece, or where pieces have none yet.
        false => whole.filter(|_| number == 0),
    };
    let pieces: Vec<Piece<'_>> = parts
        .iter()
        .enumerate()
        .map(|(number, terms)| Piece { vector: vector(number), terms: &terms.counts, length: terms.length })
        .collect();
    state.hidden.place(open, key, place).put(key, slot, space, &pieces);
}

/// Whom of a scope's authors a viewer is.
pub(super) struct ScopeViewer<'a> {
    viewer: &'a Viewer,
    user: Option<Name>,
    client: Option<Name>,
}

impl<'a> ScopeViewer<'a> {
    fn of(viewer: &'a Viewer, state: &ScopeState) -> Self {
        let (user, client) = (state.known(viewer.user.as_ref()), state.known(viewer.client.as_ref()));
        Self { viewer, user, client }
    }

    /// The same as [`Viewer::sees`], on numbers.
    fn see(&self, state: &ScopeState, key: u64, slot: &Slot) -> bool {
        if self.viewer.all {
            return true;
        }
        match slot.policy {
            Policy::Organization | Policy::Public => true,
            Policy::Private => self.made(slot),
            Policy::Restricted | Policy::Shared => {
                let unnamed = AccessPolicy::new(slot.policy);
                let policy = state.lists.get(&key).unwrap_or(&unnamed);
                // The author is left empty here: whether the viewer is the author is decided on numbers.
                let made = slot.policy == Policy::Restricted && self.made(slot);
                made || self.viewer.sees(policy, &Author::default())
            }
        }
    }

    /// Whether an entry may be found by this viewer.
    fn admitted(&self, admission: &Admission<'_>, state: &ScopeState, key: u64, slot: &Slot) -> bool {
        slot.expires_at.is_none_or(|expires| expires > admission.now)
            && admission.conditions.admits_head(slot.kind, slot.state, slot.at)
            && admission.until.is_none_or(|until| slot.created_at <= until)
            && self.see(state, key, slot)
            && admission.only.is_none_or(|only| only.contains(&key))
    }

    fn made(&self, slot: &Slot) -> bool {
        match slot.user {
            0 => slot.client != 0 && self.client == Some(slot.client),
            user => self.user == Some(user),
        }
    }
}

/// What an index has to say of a query.
#[derive(Default)]
pub(super) struct Candidates {
    pub estimates: Vec<Estimate>,
    /// Entries that the index knows as they became after the reader's snapshot.
    pub changed_since: Vec<i64>,
    /// How many match, if that is known without looking at them.
    pub total: Option<usize>,
    /// Whether nothing was left out.
    pub exact: bool,
}

impl ScopeSearch<'_> {
    /// The candidates of the index in memory.
    pub(super) fn candidates(
        &self,
        tx: &mut dyn Tx,
        cache: &ScopeCache,
        words: &Words,
        admission: &Admission<'_>,
    ) -> Result<Candidates> {
        with_scope(tx, cache, self.row, |state, partition| {
            let viewer = ScopeViewer::of(admission.viewer, state);
            let mut all = Candidates { exact: true, ..Candidates::default() };
            for part in state.visible(partition, &viewer) {
                let admits = |key, slot: &Slot| viewer.admitted(admission, state, key, slot);
                self.look_among(state, &part, words, admits, &mut all);
            }
            all
        })
    }

    /// Adds the candidates among some of the entries.
    fn look_among(
        &self,
        state: &ScopeState,
        part: &VisiblePart<'_>,
        words: &Words,
        admits: impl Fn(u64, &Slot) -> bool,
        all: &mut Candidates,
    ) {
        let (partition, query) = (part.entries, self.query);
        let spaces: Vec<Option<usize>> = state
            .spaces
            .iter()
            .map(|space| query.vectors.iter().position(|vector| vector.space == *space))
            .collect();
        let keyword_only = query.vectors.is_empty();
        let vectors: Vec<(SpaceNo, &[f32])> = spaces
            .iter()
            .enumerate()
            .filter_map(|(number, at)| {
                Some((SpaceNo(number as u16), query.vectors[(*at)?].vector.as_slice()))
            })
            .collect();
        let small = part.in_part || (partition.len() <= EXACT_ENTRIES && partition.pieces() <= EXACT_PIECES);
        let everything = query.matches_everything();
        let probe = Probe {
            vectors: &vectors,
            terms: if query.uses_words() { &words.terms } else { &[] },
            bm25: words.bm25,
            // Words and meaning name their best apart, and the best of both together may be none of these.
            want: if small || query.mode == Mode::Semantic { query.want } else { 4 * query.want },
            floor: if query.words_required {
                None
            } else if everything {
                small.then_some(-1.0)
            } else {
                Some(least_cosine(query, words) - 1e-6)
            },
            lexical_floor: small.then_some(0.0),
            exact: small,
        };
        // An entry without a vector to compare with has no meaning that a search by meaning could find.
        let compared = |slot: &Slot| slot.space.and_then(|space| *spaces.get(usize::from(space.0))?);
        let findable = |key, slot: &Slot| (keyword_only || compared(slot).is_some()) && admits(key, slot);
        let ProbeResult { mut candidates, allowed, exact } = partition.search(&probe, findable);
        if let Some(window) = query.time.filter(|_| !small || query.time_alone) {
            // The best of that time may not be among the best of all times; where nothing else is asked for, all of it matches.
            let in_time = |key, slot: &Slot| window.contains(slot.told_at()) && findable(key, slot);
            let known: HashSet<u64> = candidates.iter().map(|candidate| candidate.key).collect();
            let more = match query.time_alone {
                true if vectors.is_empty() => all_without_evidence(partition, in_time),
                true => {
                    partition.search(&Probe { floor: Some(-1.0), exact: true, ..probe }, in_time).candidates
                }
                false => partition.search(&probe, in_time).candidates,
            };
            candidates.extend(more.into_iter().filter(|candidate| !known.contains(&candidate.key)));
        }
        all.exact &= exact || everything;
        if everything {
            let count = || partition.iter().filter(|(key, slot)| findable(*key, slot)).count();
            all.total = Some(all.total.unwrap_or_default() + allowed.unwrap_or_else(count));
        }
        for candidate in candidates {
            if query.words_required && candidate.lexical <= 0.0 {
                continue;
            }
            let Some(slot) = partition.meta(candidate.key) else { continue };
            if slot.seq > self.row.seq {
                all.changed_since.push(candidate.key as i64);
                continue;
            }
            let conflict_key = state.conflicts.get(&candidate.key).cloned();
            all.estimates.push(self.estimate(words, &candidate, slot, compared(slot), conflict_key));
        }
    }
}

/// Entries that nothing is known of but that they are admitted.
fn all_without_evidence(partition: &Partition<Slot>, admits: impl Fn(u64, &Slot) -> bool) -> Vec<Candidate> {
    let admitted = partition.iter().filter(|(key, slot)| admits(*key, slot));
    admitted.map(|(key, _)| Candidate { key, ..Candidate::default() }).collect()
}

/// The least cosine that the threshold can be reached with, by meaning alone.
fn least_cosine(query: &ScopeQuery, words: &Words) -> f32 {
    let threshold = if query.time.is_some() { least_score_in_time(query.threshold) } else { query.threshold };
    let least = |calibration: &Calibration| {
        let (mut low, mut high) = (0.0, 1.0);
        for _ in 0..40 {
            let middle = f64::midpoint(low, high);
            if calibration.score(middle) >= threshold { high = middle } else { low = middle }
        }
        low
    };
    let of_vector = |(number, vector): (usize, &QueryVector)| {
        let on_curve = query.mode == Mode::Hybrid && vector.calibration.is_measured();
        if on_curve { words.asked(Some(number)).least_cosine(threshold) } else { least(&vector.calibration) }
    };
    query.vectors.iter().enumerate().map(of_vector).fold(2.0, f64::min) as f32
}
