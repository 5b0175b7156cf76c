//! The background queue's table: work that must happen, some time, at least once.

use crate::{Lock, StoreError, Tx, TxExt};
use memtrove_core::Timestamp;
use std::ops::ControlFlow;
use uuid::Uuid;

/// A piece of work that waits for its time.
#[derive(Debug, Clone, PartialEq)]
pub struct Task {
    pub id: Uuid,
    /// What kind of work.
    pub kind: String,
    /// What it works on: a JSON object.
    pub body: String,
    /// How often it failed.
    pub retry_count: i64,
    /// When its present holder claimed it. A claim that was taken over is another one.
    pub claimed_at: Timestamp,
}

/// Queues work. A task with a name that is already queued is the same task: nothing happens then.
pub fn enqueue(
    tx: &mut dyn Tx,
    id: Uuid,
    name: Option<&str>,
    kind: &str,
    body: &str,
    now: Timestamp,
) -> Result<(), StoreError> {
    tx.post(
        "INSERT INTO tasks (id, name, type, body, created_at, retry_at, retry_count) VALUES ($1, $2, $3, $4, $5, $5, 0) \
         ON CONFLICT (name) DO NOTHING",
        &[id.into(), name.into(), kind.into(), body.into(), now.as_micros().into()],
    )?;
    Ok(())
}

/// Claims up to `limit` due tasks that were not claimed since `stale`.
pub fn claim(tx: &mut dyn Tx, now: Timestamp, stale: Timestamp, limit: i64) -> Result<Vec<Task>, StoreError> {
    let mut tasks = Vec::new();
    tx.query(
        "SELECT id, type, body, retry_count FROM tasks WHERE retry_at <= $1 AND (claimed_at IS NULL OR claimed_at < $2) \
         ORDER BY retry_at LIMIT $3",
        &[now.as_micros().into(), stale.as_micros().into(), limit.into()],
        Lock::SkipLocked,
        &mut |row| {
            tasks.push(Task {
                id: row.uuid(0)?,
                kind: row.text(1)?.to_owned(),
                body: row.text(2)?.to_owned(),
                retry_count: row.int(3)?,
                claimed_at: now,
            });
            Ok(ControlFlow::Continue(()))
        },
    )?;
    for task in &tasks {
        tx.post("UPDATE tasks SET claimed_at = $2 WHERE id = $1", &[task.id.into(), now.as_micros().into()])?;
    }
    Ok(tasks)
}

/// Takes a finished task off the queue. If the claim was taken over, that is left to its present holder.
pub fn complete(tx: &mut dyn Tx, task: &Task) -> Result<(), StoreError> {
    tx.post(
        "DELETE FROM tasks WHERE id = $1 AND claimed_at = $2",
        &[task.id.into(), task.claimed_at.as_micros().into()],
    )?;
    Ok(())
}

/// Puts a failed task back, to be tried again at `retry_at`, unless the claim was taken over.
pub fn fail(tx: &mut dyn Tx, task: &Task, error: &str, retry_at: Timestamp) -> Result<(), StoreError> {
    tx.post(
        "UPDATE tasks SET claimed_at = NULL, last_error = $3, retry_count = retry_count + 1, retry_at = $4 \
         WHERE id = $1 AND claimed_at = $2",
        &[task.id.into(), task.claimed_at.as_micros().into(), error.into(), retry_at.as_micros().into()],
    )?;
    Ok(())
}

/// How many tasks there are, and when the oldest was queued.
pub fn backlog(tx: &mut dyn Tx) -> Result<(i64, Option<Timestamp>), StoreError> {
    tx.first("SELECT COUNT(*), MIN(created_at) FROM tasks", &[], |row| {
        Ok((row.int(0)?, row.opt_int(1)?.map(Timestamp::from_micros)))
    })
    .map(Option::unwrap_or_default)
}
