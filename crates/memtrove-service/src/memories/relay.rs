//! The stream of a tenant on a store that other nodes write to: read from the store in the order of the numbers, once for all
//! who listen on this node.

use super::event_json;
use super::stream::{Event, KEPT_EVENTS, Live};
use memtrove_core::identity::Tenant;
use memtrove_core::{Error, Result};
use memtrove_store::{Store, Tx, changes, stream};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::broadcast::{self, Receiver};

/// How long it waits for more after a commit, so that many commits are one look.
const DEBOUNCE: Duration = Duration::from_millis(10);
/// Events that it reads at once.
const BATCH: usize = 200;

/// One tenant's stream.
pub(super) struct Relay {
    store: Store,
    tenant: Tenant,
    state: Mutex<State>,
    /// Held by the task that reads: two would tell the same.
    turn: tokio::sync::Mutex<()>,
    /// A task will read soon.
    due: AtomicBool,
}

struct State {
    /// Everything up to this number was told.
    told: i64,
    /// None once nothing more is told.
    future: Option<broadcast::Sender<Live>>,
    /// What was written on this node: those who listen here are told all of it, also if the entry is gone before its number is
    /// there, and in the order in which it was written.
    own: VecDeque<OwnEvent>,
    /// How many there were of them so far.
    written: u64,
}

/// An event of this node that was not told yet.
struct OwnEvent {
    order: u64,
    /// What it waits for its number by; nothing of working memory, whose events wait for those before them only.
    waiting: Option<i64>,
    event: Arc<Event>,
}

impl State {
    fn push(&mut self, waiting: Option<i64>, event: Arc<Event>) {
        self.own.push_back(OwnEvent { order: self.written, waiting, event });
        self.written += 1;
        if self.own.len() > KEPT_EVENTS {
            self.own.pop_front();
        }
    }

    fn send(&self, number: Option<i64>, event: Arc<Event>) {
        if let Some(future) = &self.future {
            // Mostly somebody listens, but they may all have gone.
            let _ = future.send((number, event));
        }
    }

    /// Tells what waits for no number, up to the first event that does.
    fn send_unnumbered(&mut self) {
        while self.own.front().is_some_and(|own| own.waiting.is_none()) {
            if let Some(own) = self.own.pop_front() {
                self.send(None, own.event);
            }
        }
    }

    /// All events before this one were told that have a number.
    fn settle(&mut self, written: u64) {
        self.own.retain(|own| own.waiting.is_none() || own.order >= written);
        self.send_unnumbered();
    }
}

/// What was read.
struct Look {
    events: Vec<stream::StoredEvent>,
    /// Everything up to this number is among them.
    until: i64,
}

impl Relay {
    /// A relay that tells of everything after a number.
    pub fn new(store: Store, tenant: Tenant, told: i64) -> Self {
        let (future, _) = broadcast::channel(KEPT_EVENTS);
        let state = Mutex::new(State { told, future: Some(future), own: VecDeque::new(), written: 0 });
        Self { store, tenant, state, turn: tokio::sync::Mutex::default(), due: AtomicBool::new(false) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins to listen; nothing once the relay is closed.
    pub fn listen(&self) -> Option<Receiver<Live>> {
        self.state().future.as_ref().map(broadcast::Sender::subscribe)
    }

    pub fn has_listeners(&self) -> bool {
        self.state().future.as_ref().is_some_and(|future| future.receiver_count() > 0)
    }

    /// Ends the streams of all who listen.
    pub fn close(&self) {
        self.state().future = None;
    }

    /// Keeps an event of this node until its number is read.
    pub fn expect(&self, waiting: i64, event: Arc<Event>) {
        self.state().push(Some(waiting), event);
    }

    /// Tells of an event that will have no number, after what this node wrote before.
    pub fn tell_unnumbered(&self, event: Arc<Event>) {
        let mut state = self.state();
        state.push(None, event);
        state.send_unnumbered();
    }

    /// Has what was committed since told soon.
    pub fn wake(self: &Arc<Self>) {
        if self.due.swap(true, Ordering::AcqRel) {
            return;
        }
        let relay = self.clone();
        tokio::spawn(async move {
            tokio::time::sleep(DEBOUNCE).await;
            let _turn = relay.turn.lock().await;
            // What is committed from here on wakes it again.
            relay.due.store(false, Ordering::Release);
            if let Err(error) = relay.catch_up().await {
                tracing::warn!(%error, "what happened to memories could not be read; trying again soon");
            }
        });
    }

    async fn catch_up(&self) -> Result<()> {
        let written = self.state().written;
        self.store.settle().await?;
        loop {
            let (tenant, after) = (self.tenant.clone(), self.state().told);
            let look = move |tx: &mut dyn Tx| look(tx, &tenant, after);
            let Some(Look { events, until }) = self.store.read(&self.tenant, "relay_stream", look).await?
            else {
                // Some of it is gone. Readers come back with the last number they saw, and are told so.
                self.close();
                return Ok(());
            };
            let more = events.len() == BATCH;
            self.tell(events, until);
            if !more {
                self.state().settle(written);
                return Ok(());
            }
        }
    }

    fn tell(&self, events: Vec<stream::StoredEvent>, until: i64) {
        let mut state = self.state();
        for stored in events {
            let is_it = |own: &OwnEvent| own.waiting.is_some() && own.waiting == stored.waited;
            let own = state.own.iter().position(is_it);
            let event = match own.and_then(|place| state.own.remove(place)) {
                Some(own) => Some(own.event),
                None => stored.body.as_deref().and_then(|body| read(&self.tenant, body)),
            };
            if let Some(event) = event {
                state.send(Some(stored.sequence), event);
            }
            state.send_unnumbered();
        }
        state.told = state.told.max(until);
    }
}

/// An event as it was written down. One that this version cannot read is of a newer one, and is not told here.
pub(super) fn read(tenant: &Tenant, body: &[u8]) -> Option<Arc<Event>> {
    let event = event_json::read(tenant, body);
    if event.is_none() {
        tracing::warn!("an event of the stream cannot be read; another version may have written it");
    }
    event.map(Arc::new)
}

/// Reads on after a number; `None` if some of what comes next is not kept any more.
fn look(tx: &mut dyn Tx, tenant: &Tenant, after: i64) -> Result<Option<Look>, Error> {
    if stream::kept_after(tx, tenant)?.is_none_or(|kept| kept > after) {
        return Ok(None);
    }
    let newest = changes::newest(tx, tenant)?;
    let events = stream::page(tx, tenant, after, BATCH as i64)?;
    let until = match events.last() {
        Some(last) if events.len() == BATCH => last.sequence,
        _ => newest,
    };
    Ok(Some(Look { events, until }))
}
