//! The stream of what happens to entries: a bounded past per tenant, and everything from now on.
//!
//! Events are published on the store's thread right after their commit, so they come in the order of the change feed and none
//! is lost because a caller went away. A reader cannot hold up a writer: one that falls behind is cut off.
//!
//! Where other nodes write to the same store, an event has no number yet when it is committed, and those of others are not
//! seen here at all: then events are read back from the store, by a [relay](super::relay).

use super::journal::Milestone;
use super::relay::Relay;
use memtrove_core::identity::Tenant;
use memtrove_core::memories::{Memory, MemoryId, Viewer};
use memtrove_core::{Clock, Timestamp};
use memtrove_store::{Recorded, Store};
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::broadcast;

/// Events that are kept, and can be missed, per tenant.
pub(super) const KEPT_EVENTS: usize = 1_000;
/// The content that they have together at most.
pub(super) const KEPT_BYTES: usize = 8 << 20;
/// How long they are kept, in microseconds.
pub(super) const KEPT_MICROS: i64 = 5 * 60 * 1_000_000;

/// What happened to an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Update {
    /// It is new.
    Created,
    /// It has another version.
    Updated,
    /// It is gone.
    Deleted,
}

impl Update {
    /// The contract's word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Created => "created",
            Self::Updated => "updated",
            Self::Deleted => "deleted",
        }
    }

    /// The update that a word stands for.
    pub fn parse(word: &str) -> Option<Self> {
        [Self::Created, Self::Updated, Self::Deleted].into_iter().find(|update| update.as_str() == word)
    }
}

/// Something that happened.
#[derive(Debug)]
pub struct Event {
    /// What.
    pub update: Update,
    /// To which entry; as it was before, if it is gone.
    pub memory: Arc<Memory>,
    /// When.
    pub at: Timestamp,
    /// What the entry's life came to.
    pub milestone: Option<Milestone>,
}

impl Event {
    /// Whether a viewer of the entry's scope may see it.
    pub fn is_visible(&self, viewer: &Viewer) -> bool {
        viewer.sees(&self.memory.policy, &self.memory.created_by)
    }
}

/// An event with its number.
pub type Numbered = (i64, Arc<Event>);

/// An event as it happens. One of working memory has no number: it is told to those who listen, and not kept for others.
pub type Live = (Option<i64>, Arc<Event>);

/// Everything that happens, by tenant.
pub struct Bus {
    clock: Arc<dyn Clock>,
    /// `None` once the server stops.
    tenants: Mutex<Option<HashMap<Tenant, Channel>>>,
    /// Those that somebody listens to here, of a store that others write to; `None` once the server stops.
    relays: Mutex<Option<HashMap<Tenant, Arc<Relay>>>>,
}

struct Channel {
    /// Everything after this number is kept.
    complete_after: i64,
    newest: i64,
    past: VecDeque<Numbered>,
    /// How many of those each entry has: looking for them all would make writers wait.
    told: HashMap<MemoryId, usize>,
    /// How much content they have.
    bytes: usize,
    future: broadcast::Sender<Live>,
}

/// What somebody is told who begins to listen.
pub struct Listener {
    /// What happened since the number it named; `None` if not all of that is kept.
    pub past: Option<Vec<Numbered>>,
    /// The newest number at this moment.
    pub newest: i64,
    /// What happens from now on.
    pub future: broadcast::Receiver<Live>,
}

impl Bus {
    /// A bus that nothing has happened on.
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        let (tenants, relays) = (Mutex::new(Some(HashMap::new())), Mutex::new(Some(HashMap::new())));
        Self { clock, tenants, relays }
    }

    /// Tells of an event that is committed.
    pub fn publish(&self, recorded: Recorded, event: Arc<Event>) {
        match recorded {
            Recorded::Numbered(sequence) => self.tell(sequence, event),
            Recorded::Waiting(waiting) => {
                let relays = self.relays.lock().unwrap_or_else(PoisonError::into_inner);
                let relay = relays.as_ref().and_then(|relays| relays.get(event.memory.scope.tenant()));
                if let Some(relay) = relay {
                    relay.expect(waiting, event);
                }
            }
        }
    }

    fn tell(&self, sequence: i64, event: Arc<Event>) {
        let tenant = event.memory.scope.tenant().clone();
        let oldest = self.clock.now().saturating_add_micros(-KEPT_MICROS);
        let mut tenants = self.tenants.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(tenants) = tenants.as_mut() else { return };
        let channel = tenants.entry(tenant).or_insert_with(|| Channel::after(sequence - 1));
        channel.newest = channel.newest.max(sequence);
        if event.update == Update::Deleted {
            // What it said goes with it.
            channel.forget(event.memory.id);
        }
        channel.push(sequence, event.clone());
        channel.trim(oldest);
        // Mostly there are no readers.
        let _ = channel.future.send((Some(sequence), event));
    }

    /// Tells of an event of working memory, which has no number in the feed, to those who listen on this node.
    pub fn publish_unnumbered(&self, event: Arc<Event>) {
        let tenant = event.memory.scope.tenant();
        if let Some(tenants) = self.tenants.lock().unwrap_or_else(PoisonError::into_inner).as_mut()
            && let Some(channel) = tenants.get_mut(tenant)
        {
            if event.update == Update::Deleted {
                // What it said while it lasted goes with it.
                channel.forget(event.memory.id);
            }
            let _ = channel.future.send((None, event.clone()));
        }
        let relays = self.relays.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(relay) = relays.as_ref().and_then(|relays| relays.get(tenant)) {
            relay.tell_unnumbered(event.clone());
        }
    }

    /// Begins to listen. `now` is the newest number of the tenant's feed, in case nothing was published yet; `since` is the
    /// last number that the listener has seen.
    pub fn listen(&self, tenant: &Tenant, now: i64, since: Option<i64>) -> Listener {
        let mut tenants = self.tenants.lock().unwrap_or_else(PoisonError::into_inner);
        // A channel of its own ends at once.
        let mut closed = HashMap::new();
        let tenants = tenants.as_mut().unwrap_or(&mut closed);
        let channel = tenants.entry(tenant.clone()).or_insert_with(|| Channel::after(now));
        let past = match since {
            None => Some(Vec::new()),
            Some(since) if since >= channel.complete_after => {
                Some(channel.past.iter().filter(|(sequence, _)| *sequence > since).cloned().collect())
            }
            Some(_) => None,
        };
        Listener { past, newest: channel.newest, future: channel.future.subscribe() }
    }

    /// Begins to listen to what all nodes of a store tell: everything after a number that the relay answers, which is `newest`
    /// if there is no reader here yet. Nothing once the server stops.
    pub(super) fn relay(
        &self,
        store: &Store,
        tenant: &Tenant,
        newest: i64,
    ) -> Option<(Arc<Relay>, broadcast::Receiver<Live>)> {
        let mut relays = self.relays.lock().unwrap_or_else(PoisonError::into_inner);
        let relays = relays.as_mut()?;
        relays.retain(|_, relay| relay.has_listeners());
        let relay = relays
            .entry(tenant.clone())
            .or_insert_with(|| Arc::new(Relay::new(store.clone(), tenant.clone(), newest)));
        relay.listen().map(|future| (relay.clone(), future))
    }

    /// Ends all streams: the server stops.
    pub fn close(&self) {
        drop(self.tenants.lock().unwrap_or_else(PoisonError::into_inner).take());
        let relays = self.relays.lock().unwrap_or_else(PoisonError::into_inner).take();
        relays.into_iter().flat_map(HashMap::into_values).for_each(|relay| relay.close());
    }

    /// Drops what is kept of entries that are to be forgotten.
    pub fn forget(&self, tenant: &Tenant, is_theirs: impl Fn(&Memory) -> bool) {
        let mut tenants = self.tenants.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(channel) = tenants.as_mut().and_then(|tenants| tenants.get_mut(tenant)) {
            let theirs: Vec<MemoryId> =
                channel.past.iter().filter(|(_, e)| is_theirs(&e.memory)).map(|(_, e)| e.memory.id).collect();
            theirs.into_iter().for_each(|id| channel.forget(id));
        }
    }
}

impl Channel {
    fn after(sequence: i64) -> Self {
        let (future, _) = broadcast::channel(KEPT_EVENTS);
        Self {
            complete_after: sequence,
            newest: sequence,
            past: VecDeque::new(),
            told: HashMap::new(),
            bytes: 0,
            future,
        }
    }

    fn push(&mut self, sequence: i64, event: Arc<Event>) {
        self.bytes += event.memory.content.len();
        *self.told.entry(event.memory.id).or_default() += 1;
        self.past.push_back((sequence, event));
    }

    /// Drops what is too old or too much.
    fn trim(&mut self, oldest: Timestamp) {
        while self.past.len() > KEPT_EVENTS
            || self.bytes > KEPT_BYTES
            || self.past.front().is_some_and(|(_, event)| event.at < oldest)
        {
            let Some((dropped, event)) = self.past.pop_front() else { break };
            self.bytes -= event.memory.content.len();
            if let Some(told) = self.told.get_mut(&event.memory.id) {
                *told -= 1;
                if *told == 0 {
                    self.told.remove(&event.memory.id);
                }
            }
            self.complete_after = dropped;
        }
    }

    /// Drops what was told of an entry.
    fn forget(&mut self, id: MemoryId) {
        if self.told.remove(&id).is_some() {
            self.past.retain(|(_, event)| event.memory.id != id);
            self.bytes = self.past.iter().map(|(_, event)| event.memory.content.len()).sum();
        }
    }
}
