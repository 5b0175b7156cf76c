//! The threads that read, each on a connection and snapshots of its own.

use super::ThreadLoad;
use super::tx::{SqliteTx, WorkOutcome};
use crate::{QueuedWork, StoreError};
use crossbeam_channel::Receiver;
use std::sync::atomic::Ordering;

/// Works until every sender is gone and the queue is empty.
pub(super) fn run(mut tx: SqliteTx<'_>, queue: &Receiver<QueuedWork>, load: &ThreadLoad) {
    while let Ok(mut job) = queue.recv() {
        load.active.fetch_add(1, Ordering::Relaxed);
        let outcome = unit(&mut tx, &mut job);
        load.active.fetch_sub(1, Ordering::Relaxed);
        job.finish(outcome);
    }
}

/// Runs one unit of work on one snapshot, which begins with its first query.
fn unit(tx: &mut SqliteTx<'_>, job: &mut QueuedWork) -> Result<(), StoreError> {
    tx.control("BEGIN DEFERRED")?;
    let ran = tx.run(job.as_mut());
    // The snapshot must go whatever happened: it keeps the log from being started over.
    if tx.is_open()
        && let Err(error) = tx.control("COMMIT")
    {
        tracing::warn!(%error, "cannot end a read");
        tx.control("ROLLBACK")?;
    }
    match ran {
        WorkOutcome::Keep => Ok(()),
        WorkOutcome::Undo(outcome) => outcome,
    }
}
