//! This node among those that record: what it holds, and what it publishes of that.
//!
//! One task publishes who holds which recording, in the order in which that changes here, several at a time. A recording
//! begins when it is published: of two that begin at once, the one published later goes on, on this node and for all others.

use super::disk::Disk;
use super::readers::Readers;
use super::recording::Recording;
use super::registry::{Registry, Stopping, Tape};
use super::spool::{Closed, Spool};
use super::{Address, EndReason, RecorderSettings, metrics};
use crate::conversations::access::{Access, AsWriter};
use memtrove_core::{Clock, Error, GroupId, Result};
use memtrove_store::locators::{Locator, Locators, Notice, trees};
use memtrove_store::{AllTenants, Store, StoreError};
use std::collections::HashSet;
use std::convert::Infallible;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::sync::{Notify, oneshot};
use tokio::time::MissedTickBehavior;
use uuid::Uuid;

/// A recording is confirmed so often in the time for which others believe in it.
const CONFIRMATIONS: u32 = 2;
/// They are not more often confirmed than this, however short that time is.
const SHORTEST_PAUSE: Duration = Duration::from_millis(10);
/// This many confirmations pass between two looks for what dead nodes have left.
const BETWEEN_PURGES: u32 = 12;
/// How long a recording that begins waits until that is told.
const BEGINNING: Duration = Duration::from_secs(10);
/// This many are told at once.
const TOLD_AT_ONCE: usize = 256;
/// How much memory finished recordings may take together. The oldest go before their time if that is not enough.
const FINISHED_MEMORY: usize = 256 << 20;
/// A node that calls come in at under more addresses than these has one advertised.
const MOST_ADDRESSES: usize = 64;

pub(super) struct Node {
    /// New with every start.
    pub id: Uuid,
    pub settings: RecorderSettings,
    pub clock: Arc<dyn Clock>,
    pub registry: Arc<Registry>,
    pub readers: Readers,
    /// Nothing where there is one node.
    pub locators: Option<Locators>,
    store: Store,
    disk: Arc<Disk>,
    runtime: Handle,
    /// The addresses that recordings were told to be at.
    addresses: Mutex<Vec<Address>>,
    /// Whether it was said that another node is at an address of this one.
    warned: AtomicBool,
    orders: Mutex<Orders>,
    /// Told when nothing is left to be told.
    idle: Notify,
}

/// What waits to be told, in its order.
#[derive(Default)]
struct Orders {
    waiting: Vec<NodeOrder>,
    is_worked_on: bool,
}

enum NodeOrder {
    Begin(Arc<Tape>, oneshot::Sender<Result<Recording>>),
    End(Arc<Tape>, oneshot::Sender<()>),
}

/// The task that works off orders. If it dies over one, another one takes its place.
struct Worker(Arc<Node>);

impl Node {
    pub(super) fn new(
        id: Uuid,
        store: Store,
        clock: Arc<dyn Clock>,
        settings: RecorderSettings,
        locators: Option<Locators>,
        runtime: Handle,
    ) -> Self {
        let disk = Arc::new(Disk::new(settings.temp_dir.clone(), settings.disk, runtime.clone()));
        let registry = Arc::new(Registry::new(FINISHED_MEMORY));
        let of_disk = Arc::downgrade(&registry);
        disk.let_make_room(move || of_disk.upgrade().is_some_and(|registry| registry.make_room()));
        Self {
            id,
            settings,
            clock,
            registry,
            readers: Readers::default(),
            locators,
            store,
            disk,
            runtime,
            addresses: Mutex::default(),
            warned: AtomicBool::new(false),
            orders: Mutex::default(),
            idle: Notify::new(),
        }
    }

    /// Begins a recording that is found at an address.
    pub(super) async fn begin(
        self: &Arc<Self>,
        access: &Access<AsWriter>,
        address: Address,
    ) -> Result<Recording> {
        self.note_address(&address);
        let spool = Spool::new(Arc::clone(&self.disk), self.settings.max_bytes);
        let locator = Locator { address, recording: self.clock.new_id(), node: self.id };
        let tape = Arc::new(Tape::new(locator, super::key(access), access.group(), spool));
        if self.locators.is_none() {
            return self.install(tape);
        }
        let (reply, begun) = oneshot::channel();
        self.tell(NodeOrder::Begin(tape, reply));
        // One that begins after that ends at once: its caller is gone.
        match tokio::time::timeout(BEGINNING, begun).await {
            Ok(Ok(begun)) => begun,
            Ok(Err(_)) => Err(Error::internal("the task that announces recordings died")),
            Err(_) => Err(Error::storage_unavailable(format!(
                "a recording could not be announced within {} s",
                BEGINNING.as_secs()
            ))),
        }
    }

    /// Takes a recording that everybody was told of.
    fn install(self: &Arc<Self>, tape: Arc<Tape>) -> Result<Recording> {
        let before = match self.registry.begin(&tape) {
            Ok(before) => before,
            Err(Stopping) => {
                self.end(&tape, Closed::Ended(EndReason::Stopped));
                return Err(stopping());
            }
        };
        if let Some(before) = before {
            self.end(&before, Closed::Ended(EndReason::Superseded));
        }
        Ok(Recording::new(Arc::clone(self), tape))
    }

    /// Ends a recording, unless it has ended: nothing is added to it, its replays come to their end, others are told. For the one
    /// who ended it, the answer comes when they were.
    pub(super) fn end(self: &Arc<Self>, tape: &Arc<Tape>, how: Closed) -> Option<oneshot::Receiver<()>> {
        self.end_and_keep(tape, how, true)
    }

    fn end_and_keep(
        self: &Arc<Self>,
        tape: &Arc<Tape>,
        how: Closed,
        keep: bool,
    ) -> Option<oneshot::Receiver<()>> {
        // Before it is closed, which wakes its recorder: that one would end it too, and the canceller would not hear when
        // others were told.
        if !tape.settle() {
            return None;
        }
        tape.spool.close(how);
        // One that another took the place of is not replayed any more, wherever that other one is.
        let keep = keep && tape.spool.closed() != Some(Closed::Ended(EndReason::Superseded));
        let retention = i64::try_from(self.settings.finished_retention.as_micros()).unwrap_or(i64::MAX);
        let until = self.clock.now().saturating_add_micros(retention);
        self.registry.end(tape, keep.then_some(until));
        self.locators.is_some().then(|| self.tell_end(tape))
    }

    fn tell_end(self: &Arc<Self>, tape: &Arc<Tape>) -> oneshot::Receiver<()> {
        let (reply, told) = oneshot::channel();
        self.tell(NodeOrder::End(Arc::clone(tape), reply));
        told
    }

    /// Ends the recordings of a tree that is gone.
    pub(super) fn end_tree(self: &Arc<Self>, group: GroupId) {
        for tape in self.registry.of_tree(group) {
            self.end_and_keep(&tape, Closed::Ended(EndReason::Cancelled), false);
        }
    }

    /// Ends all recordings, and takes no more.
    pub(super) fn close(self: &Arc<Self>) {
        for tape in self.registry.close() {
            self.end(&tape, Closed::Ended(EndReason::Stopped));
        }
    }

    /// Resolves when everything was told that there was to tell.
    pub(super) async fn all_told(&self) {
        loop {
            let idle = self.idle.notified();
            if !self.orders().is_worked_on {
                return;
            }
            idle.await;
        }
    }

    /// Whether an address is this node's.
    pub(super) fn is_here(&self, address: &Address) -> bool {
        self.settings.advertised_address.as_ref() == Some(address)
            || self.addresses.lock().unwrap_or_else(PoisonError::into_inner).contains(address)
    }

    /// Says, once, that another node is told to be at an address of this one.
    pub(super) fn warn_of_another_at(&self, address: &Address) {
        if !self.warned.swap(true, Ordering::Relaxed) {
            tracing::warn!(
                %address,
                "another node records at an address that is this node's too, so neither reaches the other: set \
                 recorder.advertised_address on every node"
            );
        }
    }

    fn note_address(&self, address: &Address) {
        let mut addresses = self.addresses.lock().unwrap_or_else(PoisonError::into_inner);
        if addresses.len() < MOST_ADDRESSES && !addresses.contains(address) {
            addresses.push(address.clone());
        }
    }

    fn tell(self: &Arc<Self>, order: NodeOrder) {
        let mut orders = self.orders();
        orders.waiting.push(order);
        if !std::mem::replace(&mut orders.is_worked_on, true) {
            self.runtime.spawn(Arc::clone(self).work_off_orders());
        }
    }

    async fn work_off_orders(self: Arc<Self>) {
        let _worker = Worker(Arc::clone(&self));
        while let Some(mut batch) = self.next_orders() {
            if self.registry.is_closed() {
                // What this node does not record must not end what another one does.
                batch = batch.into_iter().filter_map(NodeOrder::unless_it_begins).collect();
            }
            if batch.is_empty() {
                continue;
            }
            let told = match &self.locators {
                Some(locators) => {
                    locators
                        .tell(batch.iter().map(NodeOrder::notice).collect(), self.settings.locator_ttl)
                        .await
                }
                None => Ok(()),
            };
            if let Err(error) = &told {
                metrics::locators_failed();
                tracing::warn!(%error, "the recordings of this node could not be announced");
            }
            let told = told.map_err(unavailable);
            for order in batch {
                // The caller may have gone away; a recording that is not taken ends as it is dropped.
                match order {
                    NodeOrder::Begin(tape, reply) => drop(reply.send(match &told {
                        Ok(()) => self.install(tape),
                        Err(error) => {
                            // They may know nevertheless: it can be the answer that was lost.
                            self.tell_end(&tape);
                            Err(error.clone())
                        }
                    })),
                    NodeOrder::End(_, reply) => drop(reply.send(())),
                }
            }
        }
    }

    fn next_orders(&self) -> Option<Vec<NodeOrder>> {
        let mut orders = self.orders();
        if orders.waiting.is_empty() {
            orders.is_worked_on = false;
            self.idle.notify_waiters();
            return None;
        }
        let most = orders.waiting.len().min(TOLD_AT_ONCE);
        Some(orders.waiting.drain(..most).collect())
    }

    fn orders(&self) -> MutexGuard<'_, Orders> {
        self.orders.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Confirms from time to time that the recordings of this node go on, ends those that should not, and lets finished ones go,
    /// for as long as it is polled.
    pub(super) async fn run(self: &Arc<Self>) -> Infallible {
        let pause = (self.settings.locator_ttl / CONFIRMATIONS).max(SHORTEST_PAUSE);
        if self.locators.is_some() && self.settings.advertised_address.is_none() {
            tracing::warn!(
                "recorder.advertised_address is not set: other nodes look for recordings of this one at the address that the \
                 agent's call came in at, which a proxy or a container may have in common with theirs"
            );
        }
        let mut ticks = tokio::time::interval(pause);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut tick = 0u32;
        loop {
            ticks.tick().await;
            self.registry.sweep(self.clock.now());
            self.readers.sweep(self.clock.now());
            let live = self.registry.all_live();
            self.confirm(&live).await;
            self.end_of_trees_that_are_gone(&live).await;
            self.cut_off_who_may_not_read().await;
            if tick.is_multiple_of(BETWEEN_PURGES)
                && let Some(locators) = &self.locators
                && let Err(error) = locators.purge().await
            {
                tracing::debug!(%error, "what dead nodes have told of recordings could not be removed");
            }
            tick = tick.wrapping_add(1);
        }
    }

    /// Confirms recordings to the others. One that another node took over, or somebody took away, ends.
    async fn confirm(self: &Arc<Self>, live: &[Arc<Tape>]) {
        let Some(locators) = &self.locators else { return };
        let held = live.iter().map(|tape| (tape.key.clone(), tape.locator())).collect();
        let lost = match locators.confirm(held, self.settings.locator_ttl).await {
            Ok(lost) => lost,
            Err(error) => {
                metrics::locators_failed();
                return tracing::warn!(%error, "recordings could not be confirmed to other nodes; they go on");
            }
        };
        for tape in live {
            if lost.contains(&tape.id) {
                self.end(tape, Closed::Ended(EndReason::Superseded));
            } else if !tape.is_live() {
                // It ended meanwhile, and may have been told again after that.
                self.tell_end(tape);
            }
        }
    }

    /// Ends recordings whose tree was deleted on another node, or with its owner.
    async fn end_of_trees_that_are_gone(self: &Arc<Self>, live: &[Arc<Tape>]) {
        let groups: HashSet<GroupId> = live.iter().map(|tape| tape.group).collect();
        if groups.is_empty() {
            return;
        }
        let asked: Vec<GroupId> = groups.iter().copied().collect();
        match self.store.read(AllTenants, "recorded_trees", move |tx| trees::existing(tx, &asked)).await {
            Ok(existing) => groups.difference(&existing).for_each(|group| self.end_tree(*group)),
            Err(error) => tracing::debug!(%error, "the trees of recordings could not be looked at"),
        }
    }

    /// Cuts off those from their replays who are no members any more.
    async fn cut_off_who_may_not_read(&self) {
        // Taken first: a reader that comes after the store was asked was let in by it.
        let seats = self.readers.all();
        let trees: Vec<GroupId> =
            seats.iter().map(|seat| seat.group).collect::<HashSet<_>>().into_iter().collect();
        if trees.is_empty() {
            return;
        }
        let allowed =
            match self.store.read(AllTenants, "replayed_trees", move |tx| trees::readers(tx, &trees)).await {
                Ok(allowed) => allowed,
                Err(error) => {
                    return tracing::debug!(%error, "the members of recordings could not be looked at");
                }
            };
        for seat in seats.iter().filter(|seat| !allowed.contains(&(seat.group, seat.user.clone()))) {
            seat.cut_off(Error::forbidden("you are not a member of this conversation"));
        }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            return;
        }
        let mut orders = self.0.orders();
        orders.is_worked_on = !orders.waiting.is_empty();
        if orders.is_worked_on {
            self.0.runtime.spawn(Arc::clone(&self.0).work_off_orders());
        } else {
            self.0.idle.notify_waiters();
        }
    }
}

impl NodeOrder {
    /// Refuses what would begin.
    fn unless_it_begins(self) -> Option<Self> {
        match self {
            NodeOrder::Begin(_, reply) => {
                // The caller may have gone away.
                drop(reply.send(Err(stopping())));
                None
            }
            NodeOrder::End(..) => Some(self),
        }
    }

    fn notice(&self) -> Notice {
        match self {
            NodeOrder::Begin(tape, _) => Notice::Begun(tape.key.clone(), tape.locator()),
            NodeOrder::End(tape, _) => Notice::Ended(tape.key.clone(), tape.locator()),
        }
    }
}

fn stopping() -> Error {
    Error::storage_unavailable("this node stops and records nothing more")
}

/// Whatever the reason, a caller can do no more about it than try again.
pub(super) fn unavailable(error: StoreError) -> Error {
    match error {
        StoreError::Overloaded => error.into(),
        other => Error::storage_unavailable(other.to_string()),
    }
}

#[cfg(test)]
mod tests;
