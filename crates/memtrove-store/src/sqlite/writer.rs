//! The one thread that writes: many units of work, one commit.

use super::checkpoint::LogKeeper;
use super::tx::{SqliteTx, WorkOutcome};
use super::{Order, Reply, ThreadLoad};
use crate::{QueuedWork, StoreError};
use crossbeam_channel::Receiver;
use rusqlite::Connection;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// How long a batch goes on taking in work. The first in the batch waits for the last one.
const BATCH_TIME: Duration = Duration::from_millis(10);

/// A unit of work that ran in the current transaction, with the engine's part of its answer.
struct FinishedWork {
    job: QueuedWork,
    outcome: Result<(), StoreError>,
}

pub(super) struct WriterThread<'c> {
    connection: &'c Connection,
    tx: SqliteTx<'c>,
    log: LogKeeper,
    max_batch: usize,
}

impl<'c> WriterThread<'c> {
    pub(super) fn new(
        connection: &'c Connection,
        tx: SqliteTx<'c>,
        log: LogKeeper,
        max_batch: usize,
    ) -> Self {
        Self { connection, tx, log, max_batch: max_batch.max(1) }
    }

    /// Works until every sender is gone and the queue is empty.
    pub(super) fn run(mut self, queue: &Receiver<Order>, load: &ThreadLoad) {
        let mut answers = Vec::new();
        while let Ok(order) = queue.recv() {
            load.active.fetch_add(1, Ordering::Relaxed);
            let emptying = match order {
                Order::Run(job) => self.batch(job, queue, &mut answers, load),
                Order::EmptyLog(reply) => Some(reply),
            };
            if let Some(reply) = emptying {
                let emptied = self.log.empty(self.connection).map_err(|error| self.tx.explain(&error));
                // The caller may have gone away.
                let _ = reply.send(emptied);
            }
            self.log.tend(self.connection);
            load.active.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// Runs what is queued in one transaction and answers after its commit. It ends before the log is to be emptied, and
    /// hands over who wants that.
    fn batch(
        &mut self,
        first: QueuedWork,
        queue: &Receiver<Order>,
        answers: &mut Vec<FinishedWork>,
        load: &ThreadLoad,
    ) -> Option<Reply> {
        let started = Instant::now();
        let max_batch = self.max_batch;
        let mut emptying = None;
        let more = |ran: usize| {
            if ran >= max_batch || started.elapsed() >= BATCH_TIME {
                return None;
            }
            match queue.try_recv().ok()? {
                Order::Run(job) => Some(job),
                Order::EmptyLog(reply) => {
                    emptying = Some(reply);
                    None
                }
            }
        };
        match self.transaction(first, more, answers, load) {
            Ok(()) => {
                for FinishedWork { job, outcome } in answers.drain(..) {
                    job.finish(outcome);
                }
            }
            Err(error) => self.one_by_one(error, answers, load),
        }
        emptying
    }

    /// Nothing of the batch was written, perhaps because of one of its members: each gets a transaction of its own. What
    /// they answered so far does not count either, since they may have seen what others wrote and lost.
    fn one_by_one(&mut self, error: StoreError, answers: &mut Vec<FinishedWork>, load: &ThreadLoad) {
        tracing::warn!(%error, units = answers.len(), "a batch was not committed");
        let disk_full = self.tx.take_disk_full();
        if disk_full {
            self.log.make_room(self.connection);
        }
        if answers.len() == 1 && !disk_full {
            for FinishedWork { job, .. } in answers.drain(..) {
                job.finish(Err(error.clone()));
            }
            return;
        }
        let mut alone = Vec::with_capacity(1);
        for FinishedWork { job, .. } in answers.drain(..) {
            let committed = self.transaction(job, |_| None, &mut alone, load);
            for FinishedWork { job, outcome } in alone.drain(..) {
                job.finish(committed.clone().and(outcome));
            }
        }
        self.tx.take_disk_full();
    }

    /// Runs `first`, and `more` as long as there is some, in one transaction. On failure nothing is written.
    fn transaction(
        &mut self,
        first: QueuedWork,
        more: impl FnMut(usize) -> Option<QueuedWork>,
        answers: &mut Vec<FinishedWork>,
        load: &ThreadLoad,
    ) -> Result<(), StoreError> {
        answers.push(FinishedWork { job: first, outcome: Ok(()) });
        let committed = self.attempt(more, answers);
        self.tx.forget_texts(0);
        match committed {
            Ok(()) => {
                load.commits.fetch_add(1, Ordering::Relaxed);
            }
            Err(_) if self.tx.is_open() => {
                if let Err(error) = self.tx.control("ROLLBACK") {
                    tracing::error!(%error, "cannot roll back");
                }
            }
            Err(_) => {}
        }
        committed
    }

    fn attempt(
        &mut self,
        mut more: impl FnMut(usize) -> Option<QueuedWork>,
        answers: &mut Vec<FinishedWork>,
    ) -> Result<(), StoreError> {
        self.tx.control("BEGIN IMMEDIATE")?;
        while let Some(answer) = answers.last_mut() {
            answer.outcome = self.unit(&mut answer.job)?;
            match more(answers.len()) {
                Some(job) => answers.push(FinishedWork { job, outcome: Ok(()) }),
                None => break,
            }
        }
        // After the savepoints: inside one, every document would become a segment of its own.
        self.tx.apply_texts()?;
        self.tx.control("COMMIT")
    }

    /// Runs one unit of work in a savepoint. The outer error means that the whole transaction is lost.
    fn unit(&mut self, job: &mut QueuedWork) -> Result<Result<(), StoreError>, StoreError> {
        self.tx.control("SAVEPOINT unit")?;
        let texts = self.tx.pending_texts();
        match self.tx.run(job.as_mut()) {
            WorkOutcome::Keep => {
                self.tx.control("RELEASE unit")?;
                Ok(Ok(()))
            }
            WorkOutcome::Undo(outcome) if self.tx.is_open() => {
                self.tx.forget_texts(texts);
                self.tx.control("ROLLBACK TO unit")?;
                self.tx.control("RELEASE unit")?;
                Ok(outcome)
            }
            WorkOutcome::Undo(outcome) => Err(outcome
                .err()
                .unwrap_or_else(|| StoreError::Broken("a unit of work ended the transaction".into()))),
        }
    }
}
