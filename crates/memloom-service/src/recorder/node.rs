//! This node among those that record: what it holds, and what it tells the others of it.
//!
//! Who holds which recording is told in the order in which it happens here, several at a time, by one who works while there is
//! something to tell. A recording begins when that is told: of two that begin at once, the one that was told later is the one
//! that goes on, here and for everybody else.

use super::disk::Disk;
use super::recording::Recording;
use super::registry::{Registry, Stopping, Tape};
use super::spool::{Closed, Spool};
use super::{Address, Ended, RecorderSettings, metrics};
use memloom_core::{Clock, Error, GroupId, Result};
use memloom_store::locators::{Key, Locators, Notice, trees};
use memloom_store::{Store, StoreError};
use std::collections::HashSet;
use std::convert::Infallible;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::sync::{Notify, oneshot};
use tokio::time::MissedTickBehavior;

/// A recording is confirmed so often in the time for which others believe in it.
const CONFIRMATIONS: u32 = 2;
/// They are not more often confirmed than this, however short that time is.
const SHORTEST_PAUSE: Duration = Duration::from_millis(10);
/// So many confirmations pass between two looks for what dead nodes have left.
const BETWEEN_PURGES: u32 = 12;
/// So much is told at once.
const TOLD_AT_ONCE: usize = 256;
/// How much memory finished recordings may take together. The oldest go before their time if that is not enough.
const FINISHED_MEMORY: usize = 256 << 20;
/// A node that calls come in at under more addresses than these has one advertised.
const MOST_ADDRESSES: usize = 64;

pub(super) struct Node {
    pub settings: RecorderSettings,
    pub clock: Arc<dyn Clock>,
    pub registry: Registry,
    /// Nothing where there is one node.
    pub locators: Option<Locators>,
    store: Store,
    disk: Arc<Disk>,
    runtime: Handle,
    /// The addresses that recordings were told to be at.
    addresses: Mutex<Vec<Address>>,
    orders: Mutex<Orders>,
    /// Told when nothing is left to be told.
    idle: Notify,
}

/// What waits to be told, in its order.
#[derive(Default)]
struct Orders {
    waiting: Vec<Order>,
    is_worked_on: bool,
}

enum Order {
    Begin(Arc<Tape>, oneshot::Sender<Result<Recording>>),
    End(Arc<Tape>, oneshot::Sender<()>),
}

impl Node {
    pub(super) fn new(
        store: Store,
        clock: Arc<dyn Clock>,
        settings: RecorderSettings,
        locators: Option<Locators>,
        runtime: Handle,
    ) -> Self {
        let disk = Arc::new(Disk::new(settings.temp_dir.clone(), settings.disk, runtime.clone()));
        Self {
            settings,
            clock,
            registry: Registry::new(FINISHED_MEMORY),
            locators,
            store,
            disk,
            runtime,
            addresses: Mutex::default(),
            orders: Mutex::default(),
            idle: Notify::new(),
        }
    }

    /// Begins a recording that is found at an address.
    pub(super) async fn begin(
        self: &Arc<Self>,
        key: Key,
        group: GroupId,
        address: Address,
    ) -> Result<Recording> {
        self.note_address(&address);
        let spool = Spool::new(Arc::clone(&self.disk), self.settings.max_bytes);
        let tape = Arc::new(Tape::new(self.clock.new_id(), key, group, address, spool));
        if self.locators.is_none() {
            return self.install(tape);
        }
        let (reply, begun) = oneshot::channel();
        self.tell(Order::Begin(tape, reply));
        let gone = |_| Err(Error::Internal("whoever tells of recordings is gone".into()));
        begun.await.unwrap_or_else(gone)
    }

    /// Takes a recording that everybody was told of.
    fn install(self: &Arc<Self>, tape: Arc<Tape>) -> Result<Recording> {
        let before = match self.registry.begin(&tape) {
            Ok(before) => before,
            Err(Stopping) => {
                self.end(&tape, Closed::Ended(Ended::Stopped));
                return Err(Error::StorageUnavailable("this node stops and records nothing more".into()));
            }
        };
        if let Some(before) = before {
            self.end(&before, Closed::Ended(Ended::Superseded));
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
        tape.spool.close(how);
        if !tape.settle() {
            return None;
        }
        // One that another took the place of is not replayed any more, wherever that other one is.
        let keep = keep && tape.spool.closed() != Some(Closed::Ended(Ended::Superseded));
        let retention = i64::try_from(self.settings.finished_retention.as_micros()).unwrap_or(i64::MAX);
        let until = self.clock.now().saturating_add_micros(retention);
        self.registry.end(tape, keep.then_some(until));
        self.locators.is_some().then(|| self.tell_end(tape))
    }

    fn tell_end(self: &Arc<Self>, tape: &Arc<Tape>) -> oneshot::Receiver<()> {
        let (reply, told) = oneshot::channel();
        self.tell(Order::End(Arc::clone(tape), reply));
        told
    }

    /// Ends the recordings of a tree that is gone.
    pub(super) fn end_tree(self: &Arc<Self>, group: GroupId) {
        for tape in self.registry.of_tree(group) {
            self.end_and_keep(&tape, Closed::Ended(Ended::Cancelled), false);
        }
    }

    /// Ends all recordings, and takes no more.
    pub(super) fn close(self: &Arc<Self>) {
        for tape in self.registry.close() {
            self.end(&tape, Closed::Ended(Ended::Stopped));
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

    fn note_address(&self, address: &Address) {
        let mut addresses = self.addresses.lock().unwrap_or_else(PoisonError::into_inner);
        if addresses.len() < MOST_ADDRESSES && !addresses.contains(address) {
            addresses.push(address.clone());
        }
    }

    fn tell(self: &Arc<Self>, order: Order) {
        let mut orders = self.orders();
        orders.waiting.push(order);
        if !std::mem::replace(&mut orders.is_worked_on, true) {
            self.runtime.spawn(Arc::clone(self).work_off_orders());
        }
    }

    async fn work_off_orders(self: Arc<Self>) {
        while let Some(batch) = self.next_orders() {
            let told = match &self.locators {
                Some(locators) => {
                    locators.tell(batch.iter().map(Order::notice).collect(), self.settings.locator_ttl).await
                }
                None => Ok(()),
            };
            if let Err(error) = &told {
                metrics::locators_failed();
                tracing::warn!(%error, "nobody could be told which recordings are here");
            }
            let told = told.map_err(unavailable);
            for order in batch {
                // Whoever waited may have gone away; a recording that nobody takes ends as it is dropped.
                match order {
                    Order::Begin(tape, reply) => {
                        drop(reply.send(told.clone().and_then(|()| self.install(tape))))
                    }
                    Order::End(_, reply) => drop(reply.send(())),
                }
            }
        }
    }

    fn next_orders(&self) -> Option<Vec<Order>> {
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
        let mut ticks = tokio::time::interval(pause);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut tick = 0u32;
        loop {
            ticks.tick().await;
            self.registry.sweep(self.clock.now());
            let live = self.registry.all_live();
            self.confirm(&live).await;
            self.end_of_trees_that_are_gone(&live).await;
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
                self.end(tape, Closed::Ended(Ended::Superseded));
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
        match self.store.read("recorded_trees", move |tx| trees::existing(tx, &asked)).await {
            Ok(existing) => groups.difference(&existing).for_each(|group| self.end_tree(*group)),
            Err(error) => tracing::debug!(%error, "the trees of recordings could not be looked at"),
        }
    }
}

impl Order {
    fn notice(&self) -> Notice {
        match self {
            Order::Begin(tape, _) => Notice::Begun(tape.key.clone(), tape.locator()),
            Order::End(tape, _) => Notice::Ended(tape.key.clone(), tape.locator()),
        }
    }
}

/// Whatever the reason, whoever calls can do no more about it than try again.
pub(super) fn unavailable(error: StoreError) -> Error {
    match error {
        StoreError::Overloaded => error.into(),
        other => Error::StorageUnavailable(other.to_string()),
    }
}
