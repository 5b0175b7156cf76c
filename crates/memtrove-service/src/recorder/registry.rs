//! The recordings of this node.

use super::metrics;
use super::spool::Spool;
use memtrove_core::{GroupId, Timestamp};
use memtrove_store::locators::{Locator, RecordingKey};
use std::collections::hash_map::Entry;
use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use uuid::Uuid;

/// What a recording takes beside its text, about.
const OVERHEAD: usize = 1024;

/// One recording.
pub(super) struct Tape {
    pub id: Uuid,
    pub key: RecordingKey,
    /// The tree of its conversation.
    pub group: GroupId,
    pub spool: Arc<Spool>,
    /// What others are told of it.
    locator: Locator,
    /// Whether what follows from its end was done.
    settled: AtomicBool,
}

impl Tape {
    pub(super) fn new(locator: Locator, key: RecordingKey, group: GroupId, spool: Spool) -> Self {
        let (spool, settled) = (Arc::new(spool), AtomicBool::new(false));
        Self { id: locator.recording, key, group, spool, locator, settled }
    }

    /// Whether it still records.
    pub(super) fn is_live(&self) -> bool {
        self.spool.closed().is_none()
    }

    /// `true` for the first who asks.
    pub(super) fn settle(&self) -> bool {
        !self.settled.swap(true, Ordering::AcqRel)
    }

    /// What the locator says of it.
    pub(super) fn locator(&self) -> Locator {
        self.locator.clone()
    }
}

/// Every recording of this node that can be replayed, by its conversation.
pub(super) struct Registry {
    /// How much memory finished ones may take.
    finished_memory: usize,
    held: Mutex<HeldRecordings>,
}

#[derive(Default)]
struct HeldRecordings {
    live: HashMap<RecordingKey, Arc<Tape>>,
    finished: HashMap<RecordingKey, Finished>,
    /// The finished ones in the order in which they go. One that went before its time may still be named.
    order: VecDeque<(Timestamp, RecordingKey, Uuid)>,
    /// What the finished ones take, those that are only named included.
    memory: usize,
    is_closed: bool,
}

struct Finished {
    tape: Arc<Tape>,
    until: Timestamp,
    /// What its text takes.
    memory: usize,
}

impl Registry {
    pub(super) fn new(finished_memory: usize) -> Self {
        Self { finished_memory, held: Mutex::default() }
    }

    /// Takes a recording that begins, in place of what there was of its conversation; answers the one that has to stop for it.
    /// Gives it back if this node stops.
    pub(super) fn begin(&self, tape: &Arc<Tape>) -> Result<Option<Arc<Tape>>, Stopping> {
        let mut held = self.held();
        if held.is_closed {
            return Err(Stopping);
        }
        held.forget(&tape.key, None);
        let before = held.live.insert(tape.key.clone(), Arc::clone(tape));
        metrics::live(held.live.len());
        Ok(before)
    }

    /// Notes that a recording came to its end. It can be replayed until the given instant, if it is the last one of its
    /// conversation.
    pub(super) fn end(&self, tape: &Arc<Tape>, until: Option<Timestamp>) {
        let mut held = self.held();
        match held.live.entry(tape.key.clone()) {
            Entry::Occupied(live) if live.get().id == tape.id => drop(live.remove()),
            // Another one has its place.
            _ => return,
        }
        metrics::live(held.live.len());
        let Some(until) = until else { return };
        let memory = tape.spool.memory();
        let finished = Finished { tape: Arc::clone(tape), until, memory };
        held.memory += memory + OVERHEAD;
        held.order.push_back((until, tape.key.clone(), tape.id));
        held.finished.insert(tape.key.clone(), finished);
        while held.memory > self.finished_memory && held.forget_oldest() {}
    }

    /// What there is of a conversation now.
    pub(super) fn get(&self, key: &RecordingKey, now: Timestamp) -> Option<Arc<Tape>> {
        let held = self.held();
        let finished =
            || held.finished.get(key).filter(|finished| now < finished.until).map(|finished| &finished.tape);
        held.live.get(key).or_else(finished).cloned()
    }

    /// The recording of a conversation that goes on.
    pub(super) fn live(&self, key: &RecordingKey) -> Option<Arc<Tape>> {
        self.held().live.get(key).cloned()
    }

    /// All that go on.
    pub(super) fn all_live(&self) -> Vec<Arc<Tape>> {
        self.held().live.values().cloned().collect()
    }

    /// Lets finished recordings go whose time is over.
    pub(super) fn sweep(&self, now: Timestamp) {
        let mut held = self.held();
        while held.order.front().is_some_and(|(until, ..)| *until <= now) && held.forget_oldest() {}
    }

    /// Lets the finished recording of a conversation go that is another one than this.
    pub(super) fn forget_others(&self, key: &RecordingKey, recording: Uuid) {
        let mut held = self.held();
        if held.finished.get(key).is_some_and(|finished| finished.tape.id != recording) {
            held.forget(key, None);
        }
    }

    /// Lets the oldest finished recording go that takes room on the disk and has no reader; `false` if there is none.
    pub(super) fn make_room(&self) -> bool {
        let mut held = self.held();
        let is_spare =
            |finished: &Finished| Arc::strong_count(&finished.tape) == 1 && finished.tape.spool.is_on_disk();
        let named = held.order.iter().filter_map(|(_, key, id)| {
            held.finished.get(key).filter(|finished| finished.tape.id == *id && is_spare(finished))
        });
        let Some(oldest) = named.map(|finished| finished.tape.key.clone()).next() else { return false };
        held.forget(&oldest, None);
        true
    }

    /// Lets the finished recordings of a tree go; answers those that go on.
    pub(super) fn of_tree(&self, group: GroupId) -> Vec<Arc<Tape>> {
        let mut held = self.held();
        let of_it = |tape: &Arc<Tape>| tape.group == group;
        let finished = held.finished.values().map(|finished| &finished.tape).filter(|tape| of_it(tape));
        for key in finished.map(|tape| tape.key.clone()).collect::<Vec<_>>() {
            held.forget(&key, None);
        }
        held.live.values().filter(|tape| of_it(tape)).cloned().collect()
    }

    /// From now on nothing begins here; answers what goes on.
    pub(super) fn close(&self) -> Vec<Arc<Tape>> {
        self.held().is_closed = true;
        self.all_live()
    }

    /// Whether nothing begins here any more.
    pub(super) fn is_closed(&self) -> bool {
        self.held().is_closed
    }

    fn held(&self) -> MutexGuard<'_, HeldRecordings> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// This node takes no recordings any more.
#[derive(Debug)]
pub(super) struct Stopping;

impl HeldRecordings {
    /// Lets the finished recording of a conversation go, or only this one.
    fn forget(&mut self, key: &RecordingKey, only: Option<Uuid>) {
        let Entry::Occupied(finished) = self.finished.entry(key.clone()) else { return };
        if only.is_none_or(|id| finished.get().tape.id == id) {
            self.memory -= finished.remove().memory;
        }
    }

    fn forget_oldest(&mut self) -> bool {
        let Some((_, key, id)) = self.order.pop_front() else { return false };
        self.memory -= OVERHEAD;
        self.forget(&key, Some(id));
        true
    }
}

#[cfg(test)]
mod tests;
