//! Long work on request, and its progress.

use crate::{Lock, Row, StoreError, Tx, TxExt};
use memtrove_core::Timestamp;
use std::ops::ControlFlow;
use uuid::Uuid;

/// How a job is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// It waits for its turn.
    Queued,
    /// It is at work.
    Running,
    /// It is done.
    Succeeded,
    /// It is done, and not everything worked.
    Failed,
}

impl Status {
    /// The contract's word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Status::Queued => "queued",
            Status::Running => "running",
            Status::Succeeded => "succeeded",
            Status::Failed => "failed",
        }
    }

    fn parse(word: &str) -> Result<Self, StoreError> {
        [Status::Queued, Status::Running, Status::Succeeded, Status::Failed]
            .into_iter()
            .find(|status| status.as_str() == word)
            .ok_or_else(|| StoreError::Broken(format!("'{word}' is no status of a job")))
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Job {
    pub id: Uuid,
    /// The tenant it works on.
    pub tenant: String,
    /// The user it works on; none is all of the tenant.
    pub user: Option<String>,
    /// Who asked for it.
    pub started_by: String,
    /// What it does.
    pub kind: String,
    /// How it is doing.
    pub status: Status,
    /// How much is done.
    pub processed: i64,
    /// How much there is to do, as far as known.
    pub total: i64,
    /// What went wrong: a JSON array of texts.
    pub errors: String,
    /// When its worker last renewed its claim. The next renewal must name this time.
    pub claimed_at: Option<Timestamp>,
}

const COLUMNS: &str = "id, tenant, user_id, started_by, kind, status, processed, total, errors, claimed_at";

/// Notes a new job.
pub fn insert(tx: &mut dyn Tx, job: &Job, now: Timestamp) -> Result<(), StoreError> {
    tx.post(
        "INSERT INTO jobs (id, tenant, user_id, started_by, kind, status, created_at, processed, total, errors) \
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)",
        &[
            job.id.into(),
            job.tenant.as_str().into(),
            job.user.as_deref().into(),
            job.started_by.as_str().into(),
            job.kind.as_str().into(),
            job.status.as_str().into(),
            now.as_micros().into(),
            job.processed.into(),
            job.total.into(),
            job.errors.as_str().into(),
        ],
    )?;
    Ok(())
}

/// A job by its id.
pub fn get(tx: &mut dyn Tx, id: Uuid) -> Result<Option<Job>, StoreError> {
    tx.first(&format!("SELECT {COLUMNS} FROM jobs WHERE id = $1"), &[id.into()], job)
}

/// The job of this kind on the same things that has not ended.
pub fn unfinished(
    tx: &mut dyn Tx,
    kind: &str,
    tenant: &str,
    user: Option<&str>,
) -> Result<Option<Uuid>, StoreError> {
    tx.first(
        "SELECT id FROM jobs WHERE status IN ('queued', 'running') AND kind = $1 AND tenant = $2 \
         AND COALESCE(user_id, '') = $3",
        &[kind.into(), tenant.into(), user.unwrap_or_default().into()],
        |row| row.uuid(0),
    )
}

/// Claims the oldest job of a kind that has not ended and that has had no worker since `stale`.
pub fn claim(
    tx: &mut dyn Tx,
    kind: &str,
    now: Timestamp,
    stale: Timestamp,
) -> Result<Option<Job>, StoreError> {
    let sql = format!(
        "SELECT {COLUMNS} FROM jobs WHERE status IN ('queued', 'running') AND kind = $1 \
         AND (claimed_at IS NULL OR claimed_at < $2) ORDER BY created_at LIMIT 1"
    );
    let mut found = None;
    tx.query(&sql, &[kind.into(), stale.as_micros().into()], Lock::SkipLocked, &mut |row| {
        found = Some(job(row)?);
        Ok(ControlFlow::Break(()))
    })?;
    let Some(mut job) = found else { return Ok(None) };
    tx.post(
        "UPDATE jobs SET status = 'running', claimed_at = $2 WHERE id = $1",
        &[job.id.into(), now.as_micros().into()],
    )?;
    (job.status, job.claimed_at) = (Status::Running, Some(now));
    Ok(Some(job))
}

/// Notes how a job is doing and renews the claim on it. `false` if somebody else works on it by now, or it is gone.
pub fn update(tx: &mut dyn Tx, job: &Job, now: Timestamp) -> Result<bool, StoreError> {
    let updated = tx.execute(
        "UPDATE jobs SET status = $2, processed = $3, total = $4, errors = $5, claimed_at = $6 \
         WHERE id = $1 AND claimed_at = $7",
        &[
            job.id.into(),
            job.status.as_str().into(),
            job.processed.into(),
            job.total.into(),
            job.errors.as_str().into(),
            now.as_micros().into(),
            job.claimed_at.map(Timestamp::as_micros).into(),
        ],
    )?;
    Ok(updated == 1)
}

/// Forgets jobs older than `before` that have ended.
pub fn purge(tx: &mut dyn Tx, before: Timestamp) -> Result<u64, StoreError> {
    tx.execute(
        "DELETE FROM jobs WHERE created_at < $1 AND status NOT IN ('queued', 'running')",
        &[before.as_micros().into()],
    )
}

fn job(row: &dyn Row) -> Result<Job, StoreError> {
    Ok(Job {
        id: row.uuid(0)?,
        tenant: row.text(1)?.to_owned(),
        user: row.opt_text(2)?.map(str::to_owned),
        started_by: row.text(3)?.to_owned(),
        kind: row.text(4)?.to_owned(),
        status: Status::parse(row.text(5)?)?,
        processed: row.int(6)?,
        total: row.int(7)?,
        errors: row.text(8)?.to_owned(),
        claimed_at: row.opt_int(9)?.map(Timestamp::from_micros),
    })
}
