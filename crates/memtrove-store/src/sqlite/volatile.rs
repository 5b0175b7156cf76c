//! The same engine without a disk: one connection to a database in memory, for what must not outlive the process.

use super::failure::DatabaseFile;
use super::tx::{SqliteTx, WorkOutcome};
use super::{ThreadLoad, connection, join, migrations, spawn};
use crate::vault::{self, Vault};
use crate::{Engine, Health, QueuedWork, StoreError};
use crossbeam_channel::{Receiver, Sender, TrySendError, bounded};
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::thread::JoinHandle;
use tokio::sync::oneshot;

/// Units of work that may wait; more are answered `Overloaded`.
const QUEUE: usize = 4096;

/// A database in memory.
pub struct VolatileEngine {
    load: Arc<ThreadLoad>,
    /// `None` once the engine is closed.
    queue: RwLock<Option<Sender<QueuedWork>>>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl VolatileEngine {
    /// Opens an empty database.
    pub fn open() -> Result<Self, StoreError> {
        let place = DatabaseFile::new(PathBuf::from("in memory"));
        let connection = connection::open_in_memory(&place)?;
        migrations::migrate(&connection, &place)?;
        let vault = Arc::new(Vault::plain());
        SqliteTx::new(&connection, place.clone(), Arc::clone(&vault), true).alone(vault::admit)?;
        let (queue, jobs) = bounded(QUEUE);
        let load = Arc::new(ThreadLoad::default());
        let counted = Arc::clone(&load);
        let thread = spawn("memtrove-volatile", move || {
            run(SqliteTx::new(&connection, place, vault, true), &jobs, &counted);
        })?;
        Ok(Self { load, queue: RwLock::new(Some(queue)), thread: Mutex::new(Some(thread)) })
    }

    fn queue(&self, job: QueuedWork) {
        let queue = self.queue.read().unwrap_or_else(PoisonError::into_inner);
        let refused = match queue.as_ref().map(|queue| queue.try_send(job)) {
            None | Some(Ok(())) => return,
            Some(Err(refused)) => refused,
        };
        match refused {
            TrySendError::Full(job) => job.finish(Err(StoreError::Overloaded)),
            TrySendError::Disconnected(job) => {
                job.finish(Err(StoreError::Unavailable("the store is closed".into())));
            }
        }
    }
}

/// Works until every sender is gone and the queue is empty: a transaction per unit of work, which costs nothing here.
fn run(mut tx: SqliteTx<'_>, jobs: &Receiver<QueuedWork>, load: &ThreadLoad) {
    while let Ok(mut job) = jobs.recv() {
        load.active.fetch_add(1, Ordering::Relaxed);
        let outcome = unit(&mut tx, &mut job);
        load.active.fetch_sub(1, Ordering::Relaxed);
        job.finish(outcome);
    }
}

fn unit(tx: &mut SqliteTx<'_>, job: &mut QueuedWork) -> Result<(), StoreError> {
    tx.control("BEGIN IMMEDIATE")?;
    let outcome = match tx.run(job.as_mut()) {
        WorkOutcome::Keep => tx.apply_texts().and_then(|()| tx.control("COMMIT")),
        WorkOutcome::Undo(outcome) => outcome,
    };
    tx.forget_texts(0);
    if tx.is_open() {
        tx.control("ROLLBACK")?;
    }
    outcome
}

impl Engine for VolatileEngine {
    fn read(&self, job: QueuedWork) {
        self.queue(job);
    }

    fn write(&self, job: QueuedWork) {
        self.queue(job);
    }

    fn health(&self) -> Health {
        let queue = self.queue.read().unwrap_or_else(PoisonError::into_inner);
        Health {
            active: self.load.active.load(Ordering::Relaxed),
            total: 1,
            readers: 0,
            queued: queue.as_ref().map_or(0, Sender::len),
            is_away: false,
            is_damaged: false,
        }
    }

    fn empty_log(&self) -> oneshot::Receiver<Result<bool, StoreError>> {
        let (reply, answer) = oneshot::channel();
        // There is no log. The caller may have gone away.
        let _ = reply.send(Ok(true));
        answer
    }

    fn describe(&self) -> String {
        "sqlite in memory".to_owned()
    }

    fn close(&self) {
        drop(self.queue.write().unwrap_or_else(PoisonError::into_inner).take());
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        thread.into_iter().for_each(join);
    }
}

impl Drop for VolatileEngine {
    fn drop(&mut self) {
        self.close();
    }
}
