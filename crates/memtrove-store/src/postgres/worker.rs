//! A thread of the pool: runs units of work on its connection, again where that helps.

use super::connection::DatabaseSession;
use super::failure::{DatabaseFailure, Remedy};
use super::follower::CommitNotifier;
use super::keys::{BusyKeys, WaitingWork};
use super::tx::{Committed, PostgresTx};
use super::{PoolLoad, PostgresConfig, presence};
use crate::damage::Damage;
use crate::{QueuedWork, StoreError};
use crossbeam_channel::{Receiver, RecvError, Sender, select, unbounded};
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// For how long a unit of work is run again because another one came first. Each time at least one of those was successful.
const CONFLICTS: Duration = Duration::from_secs(10);
/// The longest pause before it is.
const LONGEST_PAUSE: Duration = Duration::from_millis(50);
/// How often a violated constraint may be somebody else's doing.
const CONSTRAINT_TRIES: u32 = 3;
/// How often a connection is made anew because it led to a standby.
const STANDBY_TRIES: u32 = 2;
/// For how long a lost connection is made anew before the unit of work is given up.
const RECONNECTING: Duration = Duration::from_secs(2);
/// The first pause between two attempts; it doubles.
const FIRST_PAUSE: Duration = Duration::from_millis(20);
/// The pause after a failure to connect. Work that comes meanwhile is refused at once.
const REST: Duration = Duration::from_millis(500);

/// Whether the database is away, as far as any thread knows: it is said once, and once when it is over.
#[derive(Debug, Default)]
pub(super) struct Outage(AtomicBool);

impl Outage {
    /// Whether it is away.
    pub(super) fn is_on(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    pub(super) fn began(&self, error: &StoreError) {
        if !self.0.swap(true, Ordering::Relaxed) {
            tracing::warn!(%error, "cannot connect to the database; trying again as long as there is something to do");
        }
    }

    pub(super) fn ended(&self) {
        if self.0.swap(false, Ordering::Relaxed) {
            tracing::info!("the database is back");
        }
    }
}

/// What a thread does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WorkerRole {
    Reader,
    Writer,
}

/// The threads of one role, and what they share.
pub(super) struct WorkerPool {
    role: WorkerRole,
    config: PostgresConfig,
    schema: Option<&'static str>,
    notifier: Option<CommitNotifier>,
    outage: Arc<Outage>,
    damage: Arc<Damage>,
    keys: Arc<BusyKeys>,
    /// How many have a connection.
    connected: AtomicUsize,
    /// Work that one without a connection hands over to those with one.
    orphans: (Sender<QueuedWork>, Receiver<QueuedWork>),
}

impl WorkerPool {
    pub(super) fn new(
        role: WorkerRole,
        config: PostgresConfig,
        schema: Option<&'static str>,
        notifier: Option<CommitNotifier>,
        (outage, damage): (Arc<Outage>, Arc<Damage>),
        keys: Arc<BusyKeys>,
    ) -> Self {
        Self {
            role,
            config,
            schema,
            notifier,
            outage,
            damage,
            keys,
            connected: AtomicUsize::default(),
            orphans: unbounded(),
        }
    }
}

pub(super) struct Worker {
    pool: Arc<WorkerPool>,
    session: Option<DatabaseSession>,
    /// When connecting was given up last, and why.
    refused: Option<(Instant, StoreError)>,
}

/// What became of one run.
enum RunOutcome {
    Done(Result<(), StoreError>),
    Again(DatabaseFailure),
}

impl Worker {
    pub(super) fn new(pool: Arc<WorkerPool>, session: Option<DatabaseSession>) -> Self {
        pool.connected.fetch_add(usize::from(session.is_some()), Ordering::Relaxed);
        Self { pool, session, refused: None }
    }

    /// Works until every sender is gone and the queue is empty.
    pub(super) fn work(&mut self, queue: &Receiver<QueuedWork>, load: &PoolLoad) {
        let orphans = self.pool.orphans.1.clone();
        loop {
            let job = select! {
                recv(orphans) -> job => job,
                recv(queue) -> job => job.or_else(|_| orphans.try_recv().map_err(|_| RecvError)),
            };
            let Ok(job) = job else { break };
            load.active.fetch_add(1, Ordering::Relaxed);
            let connected = self.connect().is_ok();
            if !connected && self.pool.connected.load(Ordering::Relaxed) > 0 {
                // The database has no room for another connection; those that there are do the work.
                let _ = self.pool.orphans.0.send(job);
                load.active.fetch_sub(1, Ordering::Relaxed);
                std::thread::sleep(REST);
                continue;
            }
            self.run(job);
            load.active.fetch_sub(1, Ordering::Relaxed);
        }
        self.disconnect();
    }

    fn disconnect(&mut self) {
        if self.session.take().is_some() {
            self.pool.connected.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// Runs a unit of work to its end and answers it, and then those that waited for a key it held.
    pub(super) fn run(&mut self, job: QueuedWork) {
        let mut next = VecDeque::from([(job, None)]);
        while let Some((job, promised)) = next.pop_front() {
            for key in self.run_one(job, promised) {
                next.extend(self.pool.keys.give_back(key).map(|job| (job, Some(key))));
            }
        }
    }

    /// Runs one; answers the keys that are to be given back.
    fn run_one(&mut self, mut job: QueuedWork, mut promised: Option<i64>) -> Vec<i64> {
        let (mut tries, mut rare, mut pause, started) = (0, 0, FIRST_PAUSE, Instant::now());
        let mut lost = None;
        let mut own = Vec::new();
        let outcome = loop {
            tries += 1;
            own.extend(promised.take());
            let (ran, wanted) = self.attempt(&mut job, &mut own);
            let failure = match ran {
                RunOutcome::Done(outcome) => break outcome,
                RunOutcome::Again(failure) => failure,
            };
            match failure.remedy {
                Remedy::RunAgain if started.elapsed() < CONFLICTS => {
                    metrics::counter!("memory_store_retries_total", "reason" => "conflict").increment(1);
                    std::thread::sleep(jitter((Duration::from_micros(500) * tries).min(LONGEST_PAUSE)));
                }
                Remedy::RunAgainRarely if rare < CONSTRAINT_TRIES => {
                    rare += 1;
                    metrics::counter!("memory_store_retries_total", "reason" => "constraint").increment(1);
                }
                // Another connection may lead to the primary; if it does not, waiting does not help.
                Remedy::Reconnect if failure.is_read_only => {
                    rare += 1;
                    if rare > STANDBY_TRIES {
                        break Err(failure.error);
                    }
                }
                Remedy::Reconnect if lost.get_or_insert_with(Instant::now).elapsed() < RECONNECTING => {
                    metrics::counter!("memory_store_retries_total", "reason" => "connection").increment(1);
                    std::thread::sleep(jitter(pause));
                    pause *= 2;
                }
                Remedy::Reconnect => {
                    if self.session.is_none() {
                        self.refused = Some((Instant::now(), failure.error.clone()));
                    }
                    break Err(failure.error);
                }
                Remedy::WaitForKey => {
                    // Its holder may want one of ours.
                    match self.pool.keys.wait(wanted.unwrap_or_default(), job, self.pool.config.queue) {
                        WaitingWork::Aside => return own,
                        WaitingWork::NoNeed(again) => job = again,
                        WaitingWork::NoRoom(refused) => {
                            job = refused;
                            break Err(StoreError::Overloaded);
                        }
                    }
                }
                _ => break Err(failure.error),
            }
        };
        if outcome.as_ref().is_err_and(|error| matches!(error, StoreError::Overloaded)) {
            // Somebody elsewhere does not give the key back. Those who waited behind this one have waited for long enough.
            let behind = own.iter().flat_map(|key| self.pool.keys.take_waiting(*key));
            behind.for_each(|job| job.finish(Err(StoreError::Overloaded)));
        }
        job.finish(outcome);
        own
    }

    /// Runs it once, with the keys of this process that it has; those that it took are among them afterwards. Also answers the
    /// one it could not have.
    fn attempt(&mut self, job: &mut QueuedWork, own: &mut Vec<i64>) -> (RunOutcome, Option<i64>) {
        let mut wanted = None;
        let ran = self.attempt_with(job, own, &mut wanted);
        (ran, wanted)
    }

    fn attempt_with(
        &mut self,
        job: &mut QueuedWork,
        own: &mut Vec<i64>,
        wanted: &mut Option<i64>,
    ) -> RunOutcome {
        if let Err(failure) = self.connect() {
            return if failure.remedy == Remedy::None {
                RunOutcome::Done(Err(failure.error))
            } else {
                RunOutcome::Again(failure)
            };
        }
        let Some(session) = &mut self.session else {
            return RunOutcome::Done(Err(StoreError::Broken("a connection is not there".into())));
        };
        let keys = Arc::clone(&self.pool.keys);
        let (tenants, writable) = (job.tenants().clone(), self.pool.role == WorkerRole::Writer);
        let mut tx = PostgresTx::new(session, &self.pool.config.vault, &tenants, writable)
            .with_keys(&keys, std::mem::take(own));
        let ran = catch_unwind(AssertUnwindSafe(|| job.run(&mut tx)));
        (*own, *wanted) = tx.take_keys();
        let Ok(kept) = ran else {
            tracing::error!("a unit of work panicked; it was undone");
            tx.roll_back();
            return RunOutcome::Done(Err(StoreError::Broken("the unit of work panicked".into())));
        };
        if let Some(failure) = tx.failure() {
            tx.roll_back();
            return self.failed(failure);
        }
        if !kept {
            tx.roll_back();
            return RunOutcome::Done(Ok(()));
        }
        match tx.commit() {
            Committed::Yes { has_changes } => {
                if let Some(notifier) = self.pool.notifier.as_ref().filter(|_| has_changes) {
                    notifier.notify();
                }
                RunOutcome::Done(Ok(()))
            }
            Committed::No(failure) => {
                // It may hold keys still: what gives them back came after what failed.
                self.disconnect();
                self.failed(failure)
            }
            Committed::Unknown => {
                self.disconnect();
                tracing::warn!(
                    "a connection to the database was lost during a commit; whether it happened is unknown"
                );
                RunOutcome::Done(Err(StoreError::Unknown(
                    "the connection to the database was lost during the commit: look whether it was written, or repeat it \
                     with the same Idempotency-Key"
                        .into(),
                )))
            }
        }
    }

    fn failed(&mut self, failure: DatabaseFailure) -> RunOutcome {
        if let StoreError::Damaged(what) = &failure.error {
            self.pool.damage.found(what);
        }
        match failure.remedy {
            Remedy::None => RunOutcome::Done(Err(failure.error)),
            Remedy::Reconnect => {
                self.disconnect();
                RunOutcome::Again(failure)
            }
            Remedy::RunAgain | Remedy::RunAgainRarely | Remedy::WaitForKey => RunOutcome::Again(failure),
        }
    }

    fn connect(&mut self) -> Result<(), DatabaseFailure> {
        if self.session.as_mut().is_some_and(DatabaseSession::is_open) {
            return Ok(());
        }
        self.disconnect();
        if let Some((at, error)) = &self.refused
            && at.elapsed() < REST
            && self.pool.outage.is_on()
        {
            return Err(DatabaseFailure::new(error.clone(), Remedy::None));
        }
        let connected =
            DatabaseSession::connect(&self.pool.config, self.pool.schema).and_then(|mut session| {
                // What it seals must be what everybody seals with.
                if self.pool.schema.is_none() && !self.pool.config.vault.is_rotating() {
                    presence::join(&mut session)?;
                }
                Ok(session)
            });
        match connected {
            Ok(session) => {
                metrics::counter!("memory_store_connections_total").increment(1);
                self.pool.outage.ended();
                self.session = Some(session);
                self.pool.connected.fetch_add(1, Ordering::Relaxed);
                Ok(())
            }
            Err(error) => {
                self.pool.outage.began(&error);
                Err(DatabaseFailure::new(error, Remedy::Reconnect))
            }
        }
    }
}

/// Somewhat more or less, so that those who met do not meet again.
fn jitter(pause: Duration) -> Duration {
    pause / 2 + pause.mul_f64(rand::random::<f64>())
}
