//! Long work that somebody asked for, and how far it is.

use crate::{Row, StoreError, Tx, TxExt};
use memloom_core::Timestamp;
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

/// A job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Job {
    /// Its id.
    pub id: Uuid,
    /// The tenant it works on; none is all of them.
    pub tenant: Option<String>,
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
}

/// Notes a new job.
pub fn insert(tx: &mut dyn Tx, job: &Job, now: Timestamp) -> Result<(), StoreError> {
    tx.execute(
        "INSERT INTO jobs (id, tenant, started_by, kind, status, created_at, processed, total, errors) \
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)",
        &[
            job.id.into(),
            job.tenant.as_deref().into(),
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
    tx.first(
        "SELECT id, tenant, started_by, kind, status, processed, total, errors FROM jobs WHERE id = $1",
        &[id.into()],
        |row: &dyn Row| {
            Ok(Job {
                id: row.uuid(0)?,
                tenant: row.opt_text(1)?.map(str::to_owned),
                started_by: row.text(2)?.to_owned(),
                kind: row.text(3)?.to_owned(),
                status: Status::parse(row.text(4)?)?,
                processed: row.int(5)?,
                total: row.int(6)?,
                errors: row.text(7)?.to_owned(),
            })
        },
    )
}

/// Notes how a job is doing.
pub fn update(tx: &mut dyn Tx, job: &Job) -> Result<(), StoreError> {
    tx.execute(
        "UPDATE jobs SET status = $2, processed = $3, total = $4, errors = $5 WHERE id = $1",
        &[
            job.id.into(),
            job.status.as_str().into(),
            job.processed.into(),
            job.total.into(),
            job.errors.as_str().into(),
        ],
    )?;
    Ok(())
}

/// When the oldest of the jobs that have not ended was asked for.
pub fn oldest_unfinished(tx: &mut dyn Tx) -> Result<Option<Timestamp>, StoreError> {
    let oldest =
        tx.first("SELECT MIN(created_at) FROM jobs WHERE status IN ('queued', 'running')", &[], |row| {
            row.opt_int(0)
        })?;
    Ok(oldest.flatten().map(Timestamp::from_micros))
}

/// Forgets jobs older than `before`.
pub fn purge(tx: &mut dyn Tx, before: Timestamp) -> Result<u64, StoreError> {
    tx.execute("DELETE FROM jobs WHERE created_at < $1", &[before.as_micros().into()])
}

/// How many events there are: in one scope, in a tenant, or in all.
pub fn count_events(tx: &mut dyn Tx, tenant: Option<&str>, user: Option<&str>) -> Result<i64, StoreError> {
    let count = |row: &dyn Row| row.opt_int(0).map(Option::unwrap_or_default);
    let found = match (tenant, user) {
        (Some(tenant), Some(user)) => tx.first(
            "SELECT SUM(event_count) FROM scopes WHERE tenant = $1 AND user_id = $2",
            &[tenant.into(), user.into()],
            count,
        ),
        (Some(tenant), None) => {
            tx.first("SELECT SUM(event_count) FROM scopes WHERE tenant = $1", &[tenant.into()], count)
        }
        (None, _) => tx.first("SELECT SUM(event_count) FROM scopes", &[], count),
    };
    found.map(Option::unwrap_or_default)
}
