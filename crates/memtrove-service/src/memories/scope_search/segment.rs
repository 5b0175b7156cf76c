//! The index of a scope as the parts of a file, and back: what the scope's index knows besides entries, and its partitions.

use super::ram::{Hidden, Owner, ScopeState, Slot, Visibility};
use memtrove_core::Timestamp;
use memtrove_core::memories::{AccessPolicy, Kind, MemoryId, Policy, State};
use memtrove_recall::embed::Space;
use memtrove_recall::index::{Partition, SegmentPart, Snapshot, SpaceNo};
use memtrove_store::StoreError;
use memtrove_store::memories::segments::{PartReader, SegmentParts};
use serde::{Deserialize, Serialize};
use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use uuid::Uuid;

/// What the last part says; to be raised whenever it, or a [`Slot`] as it is written, changes.
const FORMAT: u32 = 1;
/// Threads that read a file at most.
const READERS: usize = 4;

/// The index of a scope as it was at one change.
pub struct ScopeSnapshot {
    /// The change.
    pub seq: i64,
    state: StoredState,
    partitions: Vec<Snapshot<Slot>>,
}

/// The last part of a file: what there is besides partitions, and how many parts each of these has.
#[derive(Serialize, Deserialize)]
struct StoredState {
    format: u32,
    seq: i64,
    spaces: Vec<(String, usize)>,
    /// By number; those that no entry bears are empty.
    names: Vec<String>,
    lists: Vec<(u64, StoredPolicy)>,
    conflicts: Vec<(u64, String)>,
    /// What is seen by its author alone and by some, by owner; what is in none of these, everybody sees.
    own: Vec<(Owner, Vec<u64>)>,
    listed: Vec<u64>,
    /// How many parts there are: of what everybody sees, of what some see, and of each owner.
    parts: Vec<usize>,
}

#[derive(Serialize, Deserialize)]
struct StoredPolicy {
    policy: u8,
    users: Vec<String>,
    teams: Vec<String>,
}

impl ScopeSnapshot {
    /// The index as it is now. Those who search it or bring it up to date wait meanwhile, so nothing is written yet.
    pub(super) fn take(state: &ScopeState, open: &Partition<Slot>) -> Self {
        let Hidden { own, listed, places } = &state.hidden;
        let (mut of_owners, mut of_some) = (HashMap::<Owner, Vec<u64>>::new(), Vec::new());
        for (key, place) in places {
            match place {
                Visibility::Own(owner) => of_owners.entry(*owner).or_default().push(*key),
                Visibility::Listed => of_some.push(*key),
                Visibility::Open => {}
            }
        }
        let of_owners: Vec<(Owner, Vec<u64>)> = of_owners.into_iter().collect();
        let others = of_owners.iter().filter_map(|(owner, _)| own.get(owner));
        let partitions = [open, listed].into_iter().chain(others).map(Partition::snapshot).collect();
        let mut names = vec![String::new(); state.last_name as usize];
        for (name, number) in &state.names {
            names[*number as usize - 1] = name.to_string();
        }
        let lists = state.lists.iter().map(|(key, policy)| (*key, StoredPolicy::of(policy)));
        let state = StoredState {
            format: FORMAT,
            seq: state.seq,
            spaces: state.spaces.iter().map(|space| (space.name.to_string(), space.dimensions)).collect(),
            names,
            lists: lists.collect(),
            conflicts: state.conflicts.iter().map(|(key, conflict)| (*key, conflict.to_string())).collect(),
            own: of_owners,
            listed: of_some,
            parts: Vec::new(),
        };
        Self { seq: state.seq, state, partitions }
    }

    /// Gives the parts of the file to `each`.
    pub fn write(mut self, each: &mut dyn FnMut(&[u8]) -> Result<(), StoreError>) -> Result<(), StoreError> {
        // Of names that no entry bears any more there must be nothing in a file.
        let borne = RefCell::new(vec![false; self.state.names.len() + 1]);
        let write = |slot: &Slot, bytes: &mut Vec<u8>| {
            for name in [slot.user, slot.client] {
                borne.borrow_mut()[name as usize] = true;
            }
            write_slot(slot, bytes);
        };
        for partition in &self.partitions {
            let mut parts = 0;
            partition.write(write, |part| {
                parts += 1;
                each(part)
            })?;
            self.state.parts.push(parts);
        }
        let borne = borne.into_inner();
        for (name, _) in self.state.names.iter_mut().zip(&borne[1..]).filter(|(_, borne)| !**borne) {
            name.clear();
        }
        let state = serde_json::to_vec(&self.state)
            .map_err(|error| StoreError::Broken(format!("an index cannot be written: {error}")))?;
        each(&state)
    }
}

/// The index that a file holds; `None` if it is damaged, or of another version.
pub(super) fn read(file: &SegmentParts) -> Option<(ScopeState, Partition<Slot>)> {
    let last = file.len().checked_sub(1)?;
    let mut buffer = Vec::new();
    let stored: StoredState =
        serde_json::from_slice(file.reader()?.read(last, &mut buffer)?).ok().filter(|_| last > 0)?;
    drop(buffer);
    if stored.format != FORMAT || stored.parts.iter().sum::<usize>() != last {
        return None;
    }
    let mut parts = read_parts(file, last)?.into_iter();
    let mut partitions = stored.parts.iter().map(|count| Partition::assemble(parts.by_ref().take(*count)));
    let (open, listed) = (partitions.next()??, partitions.next()??);
    let mut hidden = Hidden { listed, ..Hidden::default() };
    hidden.places.extend(stored.listed.iter().map(|key| (*key, Visibility::Listed)));
    for (owner, keys) in &stored.own {
        hidden.own.insert(*owner, partitions.next()??);
        hidden.places.extend(keys.iter().map(|key| (*key, Visibility::Own(*owner))));
    }
    let lists = stored.lists.into_iter().map(|(key, policy)| Some((key, policy.policy()?)));
    let last_name = stored.names.len() as u32;
    let names = stored.names.into_iter().zip(1..).filter(|(name, _)| !name.is_empty());
    let spaces = stored.spaces.into_iter();
    let spaces = spaces.map(|(name, dimensions)| Space { name: name.into(), dimensions });
    let state = ScopeState {
        seq: stored.seq,
        names: names.map(|(name, number)| (name.into(), number)).collect(),
        last_name,
        lists: lists.collect::<Option<_>>()?,
        conflicts: stored.conflicts.into_iter().map(|(key, conflict)| (key, conflict.into())).collect(),
        spaces: spaces.collect(),
        hidden,
    };
    partitions.next().is_none().then_some((state, open))
}

/// The first parts of a file, in their order.
fn read_parts(file: &SegmentParts, count: usize) -> Option<Vec<SegmentPart<Slot>>> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(READERS).min(count);
    let next = AtomicUsize::new(0);
    let read = Mutex::new(Some(Vec::with_capacity(count)));
    let work = || {
        let mut buffer = Vec::new();
        let mut reader = file.reader();
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= count {
                return;
            }
            let part = read_part(reader.as_mut(), number, &mut buffer);
            let mut read = read.lock().unwrap_or_else(PoisonError::into_inner);
            let Some(parts) = read.as_mut() else { return };
            match part {
                Some(part) => parts.push((number, part)),
                None => *read = None,
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..threads {
            // Where no thread can be had, this one reads alone.
            let _ = std::thread::Builder::new().spawn_scoped(scope, work);
        }
        work();
    });
    let mut parts = read.into_inner().unwrap_or_else(PoisonError::into_inner)?;
    parts.sort_unstable_by_key(|(number, _)| *number);
    (parts.len() == count).then(|| parts.into_iter().map(|(_, part)| part).collect())
}

fn read_part(
    reader: Option<&mut PartReader<'_>>,
    number: usize,
    buffer: &mut Vec<u8>,
) -> Option<SegmentPart<Slot>> {
    SegmentPart::read(reader?.read(number, buffer)?, read_slot)
}

impl StoredPolicy {
    fn of(policy: &AccessPolicy) -> Self {
        let AccessPolicy { policy, approved_users, allowed_teams } = policy;
        Self { policy: code(*policy), users: approved_users.clone(), teams: allowed_teams.clone() }
    }

    fn policy(self) -> Option<AccessPolicy> {
        let policy = *Policy::ALL.get(usize::from(self.policy))?;
        Some(AccessPolicy { policy, approved_users: self.users, allowed_teams: self.teams })
    }
}

fn code(policy: Policy) -> u8 {
    Policy::ALL
        .into_iter()
        .zip(0..)
        .find_map(|(one, code)| (one == policy).then_some(code))
        .unwrap_or(u8::MAX)
}

const SLOT: usize = 88;

fn write_slot(slot: &Slot, bytes: &mut Vec<u8>) {
    let Slot { seq, id, at, created_at, updated_at, expires_at, anchor, .. } = slot;
    let Slot { relevance, fading, user, client, kind, state, policy, space, .. } = slot;
    bytes.extend_from_slice(id.0.as_bytes());
    let expires = expires_at.map_or(i64::MIN, Timestamp::as_micros);
    let instants = [*at, *created_at, *updated_at, *anchor].map(Timestamp::as_micros);
    for number in [*seq, expires].into_iter().chain(instants) {
        bytes.extend_from_slice(&number.to_le_bytes());
    }
    for number in [relevance.to_bits(), fading.to_bits(), *user, *client] {
        bytes.extend_from_slice(&number.to_le_bytes());
    }
    let space = space.map_or(0, |space| u32::from(space.0) + 1);
    bytes.extend_from_slice(&space.to_le_bytes());
    bytes.extend_from_slice(&[kind.code() as u8, state.code() as u8, code(*policy), 0]);
}

fn read_slot(bytes: &mut &[u8]) -> Option<Slot> {
    let (slot, rest) = bytes.split_first_chunk::<SLOT>()?;
    *bytes = rest;
    let (id, rest) = slot.split_first_chunk::<16>()?;
    let (numbers, rest) = rest.split_at_checked(48)?;
    let (numbers, _) = numbers.as_chunks::<8>();
    let number = |at: usize| numbers.get(at).map(|bytes| i64::from_le_bytes(*bytes));
    let instant = |at: usize| number(at).map(Timestamp::from_micros);
    let (words, _) = rest.as_chunks::<4>();
    let word = |at: usize| words.get(at).map(|bytes| u32::from_le_bytes(*bytes));
    let [kind, state, policy, _] = *words.get(5)?;
    Some(Slot {
        seq: number(0)?,
        id: MemoryId(Uuid::from_bytes(*id)),
        at: instant(2)?,
        created_at: instant(3)?,
        updated_at: instant(4)?,
        expires_at: number(1).filter(|micros| *micros != i64::MIN).map(Timestamp::from_micros),
        anchor: instant(5)?,
        relevance: f32::from_bits(word(0)?),
        fading: f32::from_bits(word(1)?),
        user: word(2)?,
        client: word(3)?,
        kind: Kind::from_code(i64::from(kind))?,
        state: State::from_code(i64::from(state))?,
        policy: *Policy::ALL.get(usize::from(policy))?,
        space: word(4)?.checked_sub(1).map(|space| SpaceNo(space as u16)),
    })
}
