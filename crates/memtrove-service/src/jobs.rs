//! Long work on request: queued once, done by one worker, watched by those it concerns.

use crate::Context;
use memtrove_core::identity::Tenant;
use memtrove_core::{Code, Error, Result};
use memtrove_store::files::jobs::{self, Job, Status};
use memtrove_store::{AllTenants, StoreError, Tx};
use std::time::Duration;
use uuid::Uuid;

/// Jobs can be asked about for so long.
const JOB_MICROS: i64 = 7 * 24 * 3600 * 1_000_000;

/// A store that is busy is asked so often, with pauses in between that double.
const TRIES: usize = 5;
const FIRST_PAUSE: Duration = Duration::from_millis(200);

/// What somebody asks for.
pub(crate) struct Request<'a> {
    pub kind: &'static str,
    pub tenant: &'a Tenant,
    pub user: Option<&'a str>,
    pub started_by: &'a str,
}

/// Queues a job, unless the same is queued or at work already. `count` says how much there is to do.
pub(crate) async fn start(
    cx: &Context,
    request: Request<'_>,
    count: impl Fn(&mut dyn Tx) -> Result<i64, StoreError> + Send + 'static,
) -> Result<Uuid> {
    let now = cx.clock.now();
    let job = Job {
        id: cx.clock.new_id(),
        tenant: request.tenant.as_str().to_owned(),
        user: request.user.map(str::to_owned),
        started_by: request.started_by.to_owned(),
        kind: request.kind.to_owned(),
        status: Status::Queued,
        processed: 0,
        total: 0,
        errors: "[]".to_owned(),
        claimed_at: None,
    };
    // Two who ask for the same at once get the same job.
    let key = format!("job {} {:?} {:?}", job.kind, job.tenant, job.user);
    let start = cx.store.write(request.tenant, "start_job", move |tx| {
        tx.lock(key.as_bytes())?;
        if let Some(id) = jobs::unfinished(tx, &job.kind, &job.tenant, job.user.as_deref())? {
            return Ok(id);
        }
        let total = count(tx)?;
        jobs::insert(tx, &Job { total, ..job.clone() }, now)?;
        Ok::<_, Error>(job.id)
    });
    start.await
}

/// Takes the next job of a kind.
pub(crate) async fn claim(cx: &Context, kind: &'static str) -> Result<Option<Job>> {
    let now = cx.clock.now();
    let stale = now.saturating_add_micros(-(cx.settings.task_stale_claim.as_micros() as i64));
    cx.store
        .write(AllTenants, "claim_job", move |tx| Ok::<_, Error>(jobs::claim(tx, kind, now, stale)?))
        .await
}

/// Writes down how a job is doing; `false` if it is not this worker's any more.
pub(crate) async fn note(cx: &Context, job: &mut Job) -> Result<bool> {
    let now = cx.clock.now();
    let noted = persistently(|| {
        let job = job.clone();
        cx.store.write(AllTenants, "note_job", move |tx| Ok::<_, Error>(jobs::update(tx, &job, now)?))
    });
    let kept = noted.await?;
    job.claimed_at = Some(now);
    Ok(kept)
}

/// Writes down how a job ended.
pub(crate) async fn end(cx: &Context, mut job: Job, errors: &[&str]) -> Result<()> {
    job.status = if errors.is_empty() { Status::Succeeded } else { Status::Failed };
    job.errors = serde_json::to_string(errors).map_err(|error| Error::internal(error.to_string()))?;
    note(cx, &mut job).await?;
    Ok(())
}

/// Forgets jobs that ended long ago.
pub(crate) async fn purge(cx: &Context) -> Result<()> {
    let before = cx.clock.now().saturating_add_micros(-JOB_MICROS);
    cx.store.write(AllTenants, "purge_jobs", move |tx| Ok::<_, Error>(jobs::purge(tx, before)?)).await?;
    Ok(())
}

/// Does something that may fail because the store is busy, some times.
pub(crate) async fn persistently<T, F: Future<Output = Result<T>>>(work: impl Fn() -> F) -> Result<T> {
    let mut pause = FIRST_PAUSE;
    for _ in 1..TRIES {
        match work().await {
            Err(Error { code: Code::Overloaded, .. } | Error { code: Code::StorageUnavailable, .. }) => {
                tokio::time::sleep(pause).await;
                pause *= 2;
            }
            result => return result,
        }
    }
    work().await
}
