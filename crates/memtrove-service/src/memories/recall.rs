//! Finding entries of a scope: the index in memory, brought up to what the reader sees, and the scores it leads to.

mod database;

use super::provider::{Hits, Near, NearQuery, Span};
use memtrove_core::memories::decay::Fading;
use memtrove_core::memories::limits::DecayRules;
use memtrove_core::memories::merge::Match;
use memtrove_core::memories::search::Mode;
use memtrove_core::memories::{AccessPolicy, Author, Kind, MemoryId, Policy, State, Viewer};
use memtrove_core::recall::evidence::{self, Evidence};
use memtrove_core::recall::lexical;
use memtrove_core::{Result, Timestamp};
use memtrove_recall::embed::{Calibration, QueryVector, Space};
use memtrove_recall::index::{
    Bm25, Candidate, Partition, PartitionCache, Piece, Probe, ProbeResult, QueryTerm, SpaceNo,
    TermStatistics, rescore,
};
use memtrove_store::memories::scopes::{self, ScopeRow, Searched};
use memtrove_store::memories::{ScopeNo, index};
use memtrove_store::{StoreError, Tx};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, HashSet};
use std::mem::size_of;
use std::sync::Arc;

/// Up to so many entries, everything that could pass the threshold is looked at, and counted exactly.
const EXACT_ENTRIES: usize = 20_000;
/// So many are scored from their stored vectors at most.
const MOST_RESCORED: usize = 4_096;
/// Stored vectors that are read together.
const FETCHED_AT_ONCE: usize = 32;

/// What an index in memory knows of an entry besides its vector and words.
#[derive(Debug, Clone)]
pub struct Slot {
    seq: i64,
    id: MemoryId,
    at: Timestamp,
    created_at: Timestamp,
    updated_at: Timestamp,
    expires_at: Option<Timestamp>,
    anchor: Timestamp,
    relevance: f32,
    fading: f32,
    user: Name,
    client: Name,
    kind: Kind,
    state: State,
    policy: Policy,
    /// The space of its vector, if it has one that can be compared with something.
    space: Option<SpaceNo>,
}

impl Slot {
    /// What is known of an entry by itself.
    fn of(seq: i64, head: &index::IndexHead) -> Self {
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
}

/// A name among those of a scope; 0 is nobody's.
type Name = u32;

/// What an index in memory knows of a scope, besides the entries that everybody sees who has it.
#[derive(Default)]
pub struct ScopeState {
    /// The last change it has seen.
    seq: i64,
    names: HashMap<Arc<str>, Name>,
    /// Policies that name somebody.
    lists: HashMap<u64, AccessPolicy>,
    conflicts: HashMap<u64, Arc<str>>,
    spaces: Vec<Space>,
    hidden: Hidden,
}

/// The indexes in memory, by scope.
pub type ScopeCache = PartitionCache<ScopeNo, ScopeState, Slot>;

impl ScopeState {
    fn name(&mut self, name: Option<&String>) -> Name {
        let Some(name) = name else { return 0 };
        match self.names.get(name.as_str()) {
            Some(known) => *known,
            None => {
                let number = self.names.len() as Name + 1;
                self.names.insert(name.as_str().into(), number);
                number
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
    fn seen<'a>(&'a self, open: &'a Partition<Slot>, eyes: &Eyes<'_>) -> Vec<Seen<'a>> {
        let Hidden { own, listed, .. } = &self.hidden;
        let whole = |entries| Seen { entries, in_part: false };
        let mut seen = vec![whole(open)];
        if eyes.viewer.all {
            seen.extend(own.values().map(whole));
        } else {
            let owners = [eyes.user.map(Owner::User), eyes.client.map(Owner::Client)];
            seen.extend(owners.into_iter().flatten().filter_map(|owner| own.get(&owner)).map(whole));
        }
        seen.push(Seen { entries: listed, in_part: true });
        seen.retain(|seen| !seen.entries.is_empty());
        seen
    }

    /// How common some words are among what somebody may see.
    fn statistics(&self, open: &Partition<Slot>, eyes: &Eyes<'_>, terms: &[u64]) -> TermStatistics {
        let mut sum = TermStatistics::default();
        for Seen { entries, in_part } in self.seen(open, eyes) {
            sum.add(&match in_part {
                false => entries.statistics(terms),
                true => entries.statistics_of(terms, |key, slot| eyes.see(self, key, slot)),
            });
        }
        sum
    }
}

/// The entries of a scope that not everybody sees who has it, apart from those that everybody sees. What somebody finds must
/// not depend on what is hidden from them: neither which words are rare, nor how closely a search has to look.
#[derive(Default)]
struct Hidden {
    /// Those that only their author sees.
    own: HashMap<Owner, Partition<Slot>>,
    /// Those that some see: they are all looked at, by everybody.
    listed: Partition<Slot>,
    places: HashMap<u64, Place>,
}

/// Who sees an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// Everybody who has its scope.
    Open,
    /// Its author.
    Own(Owner),
    /// Those whom it names.
    Listed,
}

/// Whose an entry is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Owner {
    User(Name),
    /// Of an entry that no user made.
    Client(Name),
    Nobody,
}

/// Entries among which somebody looks.
struct Seen<'a> {
    entries: &'a Partition<Slot>,
    /// Whether some of them may not be seen.
    in_part: bool,
}

impl Place {
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
        place: Place,
    ) -> &'a mut Partition<Slot> {
        let before = self.places.get(&key).copied().unwrap_or(Place::Open);
        if before != place && !self.remove(key) {
            open.remove(key);
        }
        if place != Place::Open {
            self.places.insert(key, place);
        }
        match place {
            Place::Open => open,
            Place::Own(owner) => self.own.entry(owner).or_default(),
            Place::Listed => &mut self.listed,
        }
    }

    /// Takes an entry out; says whether it was there.
    fn remove(&mut self, key: u64) -> bool {
        match self.places.remove(&key) {
            None | Some(Place::Open) => return false,
            Some(Place::Listed) => drop(self.listed.remove(key)),
            Some(Place::Own(owner)) => {
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
        let places = self.places.capacity() * size_of::<(u64, Place)>();
        places + self.listed.bytes() + self.own.values().map(Partition::bytes).sum::<usize>()
    }
}

/// Brings an index up to what the reader sees, and looks into it.
pub fn with_scope<R>(
    tx: &mut dyn Tx,
    cache: &ScopeCache,
    row: ScopeRow,
    read: impl FnOnce(&ScopeState, &Partition<Slot>) -> R,
) -> Result<R> {
    let catch_up = |state: &mut ScopeState, partition: &mut Partition<Slot>| -> Result<(), StoreError> {
        if state.seq < row.gone_seq {
            // Some of what went is not noted any more.
            (*state, *partition) = (ScopeState::default(), Partition::new());
        }
        for no in index::gone(tx, row.no, state.seq)? {
            state.forget(partition, no.0 as u64);
        }
        index::changed(tx, row.no, state.seq, &mut |indexed| take_in(state, partition, indexed))?;
        state.seq = row.seq;
        partition.set_bytes_beside(state.hidden.bytes());
        Ok(())
    };
    Ok(cache.with(&row.no, |state| state.seq < row.seq, catch_up, read)?)
}

fn take_in(state: &mut ScopeState, open: &mut Partition<Slot>, indexed: index::Indexed) {
    let index::Indexed { no, seq, head, embedding, terms } = indexed;
    let key = no.0 as u64;
    state.lists.remove(&key);
    state.conflicts.remove(&key);
    let space = embedding.as_ref().and_then(|embedding| Space::of(&embedding.model));
    let space = space.map(|space| state.space(space));
    let user = state.name(head.author.user.as_ref());
    let client = state.name(head.author.client.as_ref());
    let slot = Slot { user, client, space, ..Slot::of(seq, &head) };
    let place = Place::of(&head.policy, user, client);
    if !head.policy.approved_users.is_empty() || !head.policy.allowed_teams.is_empty() {
        state.lists.insert(key, head.policy);
    }
    if let Some(conflict) = head.conflict_key {
        state.conflicts.insert(key, conflict.into());
    }
    let vector = embedding.as_ref().filter(|_| space.is_some()).map(|embedding| embedding.vector.as_slice());
    let piece = Piece { vector, terms: &terms.counts, length: terms.length };
    state.hidden.place(open, key, place).put(key, slot, space, &[piece]);
}

/// Whom of a scope's authors a viewer is.
struct Eyes<'a> {
    viewer: &'a Viewer,
    user: Option<Name>,
    client: Option<Name>,
}

impl<'a> Eyes<'a> {
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
                // Nobody's name stands in for the author's: being it is decided on numbers.
                let made = slot.policy == Policy::Restricted && self.made(slot);
                made || self.viewer.sees(policy, &Author::default())
            }
        }
    }

    fn made(&self, slot: &Slot) -> bool {
        match slot.user {
            0 => slot.client != 0 && self.client == Some(slot.client),
            user => self.user == Some(user),
        }
    }
}

/// Which entries of a scope may be found.
pub struct Admission<'a> {
    /// For whom.
    pub viewer: &'a Viewer,
    /// Which of them.
    pub conditions: &'a memtrove_core::memories::Conditions,
    /// Made no later.
    pub until: Option<Timestamp>,
    /// Now.
    pub now: Timestamp,
    /// Only these, where a filter had to be asked of the entries themselves.
    pub only: Option<&'a HashSet<u64>>,
}

impl Admission<'_> {
    fn admits(&self, state: &ScopeState, eyes: &Eyes<'_>, key: u64, slot: &Slot) -> bool {
        slot.expires_at.is_none_or(|expires| expires > self.now)
            && self.conditions.admits_head(slot.kind, slot.state, slot.at)
            && self.until.is_none_or(|until| slot.created_at <= until)
            && eyes.see(state, key, slot)
            && self.only.is_none_or(|only| only.contains(&key))
    }
}

/// How many entries of a scope are admitted.
pub fn count(tx: &mut dyn Tx, cache: &ScopeCache, row: ScopeRow, admission: &Admission<'_>) -> Result<usize> {
    if by_database(tx, cache, &row) {
        return database::count(tx, row, admission);
    }
    with_scope(tx, cache, row, |state, partition| {
        let eyes = Eyes::of(admission.viewer, state);
        let seen = state.seen(partition, &eyes);
        let seen = seen.iter().flat_map(|seen| seen.entries.iter());
        seen.filter(|(key, slot)| admission.admits(state, &eyes, *key, slot)).count()
    })
}

/// Whether the database searches a scope. Then nothing of it is kept here.
fn by_database(tx: &mut dyn Tx, cache: &ScopeCache, row: &ScopeRow) -> bool {
    let by_database = row.searched == Searched::ByDatabase && tx.vectors().is_some();
    if by_database {
        cache.drop_key(&row.no);
    }
    by_database
}

/// Which entries of a scope pass what only they themselves can say; `None` is all.
type Passing<'a> = dyn FnMut(&mut dyn Tx, ScopeNo) -> Result<Option<HashSet<u64>>> + 'a;

/// The entries of several scopes that answer a query.
pub fn search(
    tx: &mut dyn Tx,
    cache: &ScopeCache,
    spans: &[Span],
    query: &NearQuery,
    decay: &DecayRules,
    only: &mut Passing<'_>,
) -> Result<Hits> {
    let mut rows = Vec::with_capacity(spans.len());
    let hashes = &query.terms;
    let mut statistics = TermStatistics::default();
    for (number, span) in spans.iter().enumerate() {
        let Some(row) = scopes::find(tx, &span.scope)? else { continue };
        let by_database = by_database(tx, cache, &row);
        let here = match (hashes.is_empty(), by_database) {
            (true, _) => TermStatistics::default(),
            (false, true) => database::statistics(tx, row, &query.viewer, hashes)?,
            (false, false) => with_scope(tx, cache, row, |state, partition| {
                state.statistics(partition, &Eyes::of(&query.viewer, state), hashes)
            })?,
        };
        statistics.add(&here);
        rows.push((number, span, row, by_database.then_some(here)));
    }
    let words = Words::of(query, &statistics);
    let mut hits = Hits { exact: true, ..Hits::default() };
    for (number, span, row, in_database) in rows {
        let scope = Scope { number, span, row, decay };
        if let Some(here) = in_database {
            scope.search_database(tx, query, &words, &here, only, &mut hits)?;
            continue;
        }
        let only = only(tx, row.no)?;
        let admission = Admission {
            viewer: &query.viewer,
            conditions: &query.conditions,
            until: span.until,
            now: query.now,
            only: only.as_ref(),
        };
        scope.search(tx, cache, query, &words, &admission, &mut hits)?;
    }
    Ok(hits)
}

/// The words of a query, weighed by how rare they are among what whoever asks may see.
struct Words {
    terms: Vec<QueryTerm>,
    idfs: Vec<f64>,
    bm25: Bm25,
}

impl Words {
    fn of(query: &NearQuery, statistics: &TermStatistics) -> Self {
        let frequency =
            |number: usize| statistics.frequencies.get(number).copied().unwrap_or_default() as usize;
        let worth = |number: usize| lexical::idf(statistics.pieces as usize, frequency(number));
        let idfs: Vec<f64> = (0..query.terms.len()).map(worth).collect();
        let terms = query.terms.iter().zip(&idfs);
        Self {
            terms: terms.map(|(hash, idf)| QueryTerm { hash: *hash, weight: *idf as f32 }).collect(),
            idfs,
            // Neither repeating a word nor being short is evidence: what counts is which of the words are there.
            bm25: Bm25 { k1: 0.0, b: 0.0, average_length: 1.0 },
        }
    }

    fn coverage(&self, lexical: f32) -> f64 {
        evidence::coverage(f64::from(lexical), self.idfs.iter().copied())
    }
}

/// A scope that is searched.
struct Scope<'a> {
    number: usize,
    span: &'a Span,
    row: ScopeRow,
    decay: &'a DecayRules,
}

/// A candidate with what the index knows of it.
struct Scored {
    candidate: Candidate,
    slot: Slot,
    conflict: Option<Arc<str>>,
    space: Option<usize>,
    cosine: f64,
    evidence: Evidence,
    certain: bool,
}

impl Scope<'_> {
    fn search(
        &self,
        tx: &mut dyn Tx,
        cache: &ScopeCache,
        query: &NearQuery,
        words: &Words,
        admission: &Admission<'_>,
        hits: &mut Hits,
    ) -> Result<()> {
        let (mut scored, total, exact) = with_scope(tx, cache, self.row, |state, partition| {
            look(state, partition, query, words, admission)
        })?;
        let uncertain = self.rescore(tx, query, words, &mut scored)?;
        self.keep(scored, query, total, exact && !uncertain, hits);
        Ok(())
    }

    /// Adds what passes the threshold, best first, to what was found in other scopes.
    fn keep(
        &self,
        mut scored: Vec<Scored>,
        query: &NearQuery,
        total: Option<usize>,
        exact: bool,
        hits: &mut Hits,
    ) {
        scored.retain(|one| one.evidence.score >= query.threshold);
        self.sort(&mut scored, query.now);
        hits.total += total.unwrap_or(scored.len());
        hits.exact &= exact;
        hits.truncated |= scored.len() > query.want;
        let kept = |(rank, one): &(usize, Scored)| *rank < query.want || one.conflict.is_some();
        hits.near
            .extend(scored.into_iter().enumerate().filter(kept).map(|(_, one)| self.near(one, query.now)));
    }

    /// Replaces estimates by what stored vectors say, wherever that decides who is among the best or passes the threshold.
    /// Says whether some such were left as they are, because there were too many.
    fn rescore(
        &self,
        tx: &mut dyn Tx,
        query: &NearQuery,
        words: &Words,
        scored: &mut [Scored],
    ) -> Result<bool> {
        let bounds = |one: &Scored| {
            let error = if one.certain { 0.0 } else { f64::from(one.candidate.error) };
            let score = |cosine: f64| score(query, words, one, cosine).score;
            (score(one.cosine - error), score(one.cosine + error))
        };
        // Those that may be best come first, so that most of the others need not be looked at.
        let mut order: Vec<(f64, usize)> =
            scored.iter().enumerate().map(|(at, one)| (bounds(one).1, at)).collect();
        order.sort_unstable_by(|(a, _), (b, _)| b.total_cmp(a));
        let mut best: BinaryHeap<Reverse<Ordered>> = BinaryHeap::with_capacity(query.want + 1);
        let mut left = MOST_RESCORED;
        let (mut fetched, mut fetched_to) = (HashMap::new(), 0);
        for (number, (high, at)) in order.iter().copied().enumerate() {
            if high < query.threshold {
                break;
            }
            if number >= fetched_to && !scored[at].certain {
                // Several at once: each time is a round trip where the store is far away.
                fetched_to = number + FETCHED_AT_ONCE;
                let next =
                    order[number..].iter().take(FETCHED_AT_ONCE).filter(|(high, _)| *high >= query.threshold);
                let next = next.map(|(_, at)| &scored[*at]).filter(|one| !one.certain);
                let places: Vec<i64> = next.map(|one| self.row.no.place(one.slot.seq)).collect();
                fetched = index::embeddings(tx, &places)?;
            }
            let one = &mut scored[at];
            if !one.certain {
                let full = best.len() == query.want;
                let beaten = full && best.peek().is_some_and(|Reverse(last)| high < last.0);
                if beaten && bounds(one).0 >= query.threshold {
                    continue;
                }
                if left == 0 {
                    return Ok(true);
                }
                left -= 1;
                let Some(vector) = one.space.and_then(|space| query.vectors.get(space)) else { continue };
                // Gone or changed since the index saw it: the answer is checked against the entry itself.
                let Some(stored) = fetched.get(&self.row.no.place(one.slot.seq)) else { continue };
                one.cosine = f64::from(rescore(&vector.vector, &stored.vector));
                one.evidence = score(query, words, one, one.cosine);
                one.certain = true;
            }
            best.push(Reverse(Ordered(one.evidence.score)));
            if best.len() > query.want {
                best.pop();
            }
        }
        Ok(false)
    }

    /// The order of matches within a layer.
    fn sort(&self, scored: &mut [Scored], now: Timestamp) {
        scored.sort_by_cached_key(|one| {
            let descending = |number: f64| Reverse(Ordered(number));
            let relevance = self.relevance(&one.slot, now);
            let updated = Reverse(one.slot.updated_at);
            (descending(one.evidence.score), descending(relevance), updated, one.slot.id)
        });
    }

    fn relevance(&self, slot: &Slot, now: Timestamp) -> f64 {
        let fading = Fading {
            initial: f64::from(slot.relevance),
            factor: f64::from(slot.fading),
            anchor: slot.anchor,
        };
        self.decay.shown(self.span.scope.layer(), &fading, now)
    }

    fn near(&self, one: Scored, now: Timestamp) -> Near {
        let slot = &one.slot;
        let layer = self.span.scope.layer();
        Near {
            matched: Match {
                id: slot.id,
                layer,
                score: one.evidence.score,
                relevance: self.relevance(slot, now),
                updated_at: slot.updated_at,
            },
            span: self.number,
            similarity: one.cosine.clamp(0.0, 1.0),
            cosine: one.cosine,
            evidence: one.evidence,
            conflict_key: one.conflict,
        }
    }
}

/// A number that sorts.
#[derive(PartialEq)]
struct Ordered(f64);

impl Eq for Ordered {}

impl PartialOrd for Ordered {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Ordered {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.total_cmp(&other.0)
    }
}

/// What the index has to say: the candidates, how many match if that is known without looking at them, and whether nothing
/// was left out.
fn look(
    state: &ScopeState,
    partition: &Partition<Slot>,
    query: &NearQuery,
    words: &Words,
    admission: &Admission<'_>,
) -> (Vec<Scored>, Option<usize>, bool) {
    let eyes = Eyes::of(admission.viewer, state);
    let (mut scored, mut total, mut exact) = (Vec::new(), None, true);
    for seen in state.seen(partition, &eyes) {
        let (more, counted, is_exact) = look_among(state, &seen, query, words, admission, &eyes);
        scored.extend(more);
        total = counted.map(|counted| counted + total.unwrap_or_default());
        exact &= is_exact;
    }
    (scored, total, exact)
}

/// As [`look`], among some of the entries.
fn look_among(
    state: &ScopeState,
    seen: &Seen<'_>,
    query: &NearQuery,
    words: &Words,
    admission: &Admission<'_>,
    eyes: &Eyes<'_>,
) -> (Vec<Scored>, Option<usize>, bool) {
    let partition = seen.entries;
    let spaces: Vec<Option<usize>> = state
        .spaces
        .iter()
        .map(|space| query.vectors.iter().position(|vector| vector.space == *space))
        .collect();
    let keyword_only = query.vectors.is_empty();
    let vectors: Vec<(SpaceNo, &[f32])> = spaces
        .iter()
        .enumerate()
        .filter_map(|(number, at)| Some((SpaceNo(number as u16), query.vectors[(*at)?].vector.as_slice())))
        .collect();
    let small = seen.in_part || partition.len() <= EXACT_ENTRIES;
    let everything = query.threshold <= 0.0 && !query.words_required && !keyword_only;
    let use_words = query.mode == Mode::Hybrid || query.words_required;
    let floor = (!everything).then(|| floor(&query.vectors, query.threshold) - 1e-6);
    let probe = Probe {
        vectors: &vectors,
        terms: if use_words { &words.terms } else { &[] },
        bm25: words.bm25,
        want: query.want,
        floor: if query.words_required {
            None
        } else if everything {
            small.then_some(-1.0)
        } else {
            floor
        },
        lexical_floor: small.then_some(0.0),
        exact: small,
    };
    // An entry without a vector to compare with has no meaning that a search by meaning could find.
    let compared = |slot: &Slot| slot.space.and_then(|space| *spaces.get(usize::from(space.0))?);
    let searchable = |slot: &Slot| keyword_only || compared(slot).is_some();
    let ProbeResult { candidates, allowed, exact } =
        partition.search(&probe, |key, slot| searchable(slot) && admission.admits(state, eyes, key, slot));
    let total = everything.then(|| {
        allowed.unwrap_or_else(|| {
            let admitted =
                |(key, slot): &(u64, &Slot)| searchable(slot) && admission.admits(state, eyes, *key, slot);
            partition.iter().filter(admitted).count()
        })
    });
    let scored = candidates.into_iter().filter(|candidate| !query.words_required || candidate.lexical > 0.0);
    let scored = scored.filter_map(|candidate| {
        let slot = partition.meta(candidate.key)?.clone();
        let space = compared(&slot);
        let cosine = f64::from(candidate.similarity);
        let mut one = Scored {
            conflict: state.conflicts.get(&candidate.key).cloned(),
            certain: space.is_none(),
            candidate,
            slot,
            space,
            cosine,
            evidence: evidence::score(0.0, 0.0),
        };
        one.evidence = score(query, words, &one, cosine);
        Some(one)
    });
    (scored.collect(), total, exact || everything)
}

/// The score of a candidate whose cosine is this.
fn score(query: &NearQuery, words: &Words, one: &Scored, cosine: f64) -> Evidence {
    let calibrated = match one.space.and_then(|space| query.vectors.get(space)) {
        Some(vector) if query.mode == Mode::Semantic || !query.words_required => {
            vector.calibration.score(cosine)
        }
        _ => 0.0,
    };
    let coverage = match query.mode {
        Mode::Hybrid => words.coverage(one.candidate.lexical),
        Mode::Semantic => 0.0,
    };
    evidence::score(calibrated, coverage)
}

/// The least cosine that a score can be reached with, by meaning alone.
fn floor(vectors: &[QueryVector], threshold: f64) -> f32 {
    let least = |calibration: &Calibration| {
        let (mut low, mut high) = (0.0, 1.0);
        for _ in 0..40 {
            let middle = f64::midpoint(low, high);
            if calibration.score(middle) >= threshold { high = middle } else { low = middle }
        }
        low
    };
    vectors.iter().map(|vector| least(&vector.calibration)).fold(1.0, f64::min) as f32
}
