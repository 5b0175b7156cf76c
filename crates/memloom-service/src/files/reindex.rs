//! Making the event index anew from the stored events, block by block, while everything goes on.
//!
//! An event knows its block, so a block is rebuilt in one unit of work from the events that belong to it: searches see it as
//! it was or as it is, and what is written meanwhile goes where it always goes.

use super::Files;
use crate::Context;
use crate::audit::{self as log, Call};
use memloom_core::files::{Code, Scope, ScopedCaller};
use memloom_core::identity::{Principal, Role, Tenant};
use memloom_core::{Error, Result, UserId};
use memloom_store::files::jobs::{self, Job, Status};
use memloom_store::files::scopes::ScopeId;
use memloom_store::files::{events, scopes};
use memloom_store::tasks::Task;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::sync::Arc;
use uuid::Uuid;

/// Blocks that one unit of work rebuilds: nobody else can write meanwhile.
const BLOCKS_AT_ONCE: i64 = 32;
const SCOPES_AT_ONCE: i64 = 100;
/// A job tells of so many errors at most.
const MAX_ERRORS: usize = 20;
/// Jobs can be asked about for so long.
const JOB_MICROS: i64 = 7 * 24 * 3600 * 1_000_000;

/// What a job of this kind is called.
pub(crate) const KIND: &str = "events_reindex";

/// What the task of a job says.
#[derive(Serialize, Deserialize)]
struct Body {
    job: Uuid,
    tenant: Option<String>,
    user: Option<String>,
}

/// Which events are indexed anew: a user's, a tenant's, or all.
#[derive(Debug, Clone, Default)]
struct Extent {
    tenant: Option<String>,
    user: Option<String>,
}

impl Extent {
    /// The next scopes to be worked on.
    async fn page(&self, cx: &Context, after: ScopeId) -> Result<Vec<(ScopeId, Scope)>> {
        let Extent { tenant, user } = self.clone();
        cx.store
            .read("list_scopes", move |tx| match (&tenant, &user) {
                (Some(tenant), Some(user)) => {
                    let scope = Scope::listed(Tenant::listed(tenant.clone()), UserId(user.clone()));
                    let found = scopes::find(tx, &scope)?.filter(|id| *id > after);
                    Ok::<_, Error>(found.map(|id| (id, scope)).into_iter().collect())
                }
                _ => Ok(scopes::after(tx, tenant.as_deref(), after, SCOPES_AT_ONCE)?),
            })
            .await
    }
}

impl Files {
    /// Has the events of one user indexed anew; answers the job's id.
    pub async fn reindex_scope(&self, caller: &ScopedCaller) -> Result<Uuid> {
        let (tenant, user) = (caller.scope.tenant().as_str(), caller.scope.user().as_str());
        let extent = Extent { tenant: Some(tenant.to_owned()), user: Some(user.to_owned()) };
        self.start_job(&caller.principal, extent).await
    }

    /// Has the events of a tenant indexed anew; answers the job's id.
    pub async fn reindex_tenant(&self, principal: &Principal, justification: Option<&str>) -> Result<Uuid> {
        let detail = [("target", "events".to_owned())];
        let call = Call::write("reindex", &detail);
        log::admit(principal, &call, justification, self.cx.settings.require_justification)?;
        let extent = Extent { tenant: Some(principal.tenant().as_str().to_owned()), user: None };
        let result = self.start_job(&principal.name(), extent).await;
        log::outcome("reindex", &result);
        result
    }

    async fn start_job(&self, started_by: &str, extent: Extent) -> Result<Uuid> {
        let (cx, id, now) = (self.cx.clone(), self.cx.clock.new_id(), self.cx.clock.now());
        let job = Job {
            id,
            tenant: extent.tenant.clone(),
            started_by: started_by.to_owned(),
            kind: KIND.to_owned(),
            status: Status::Queued,
            processed: 0,
            total: 0,
            errors: "[]".to_owned(),
        };
        let body = Body { job: id, tenant: extent.tenant.clone(), user: extent.user.clone() };
        let body = serde_json::to_string(&body).map_err(|error| Error::Internal(error.to_string()))?;
        self.cx
            .store
            .write("start_job", move |tx| {
                let total = jobs::count_events(tx, extent.tenant.as_deref(), extent.user.as_deref())?;
                jobs::insert(tx, &Job { total, ..job.clone() }, now)?;
                memloom_store::tasks::enqueue(tx, cx.clock.new_id(), None, KIND, &body, now)?;
                Ok::<_, Error>(())
            })
            .await?;
        self.cx.tasks.notify_one();
        Ok(id)
    }

    /// A job, for whoever started it and for the admins of its tenant.
    pub async fn job(&self, principal: &Principal, id: &str) -> Result<Job> {
        let not_found = || Error::refused(Code::JobNotFound, "there is no such job");
        let id = memloom_core::parse_uuid(id).ok_or_else(not_found)?;
        let job = self.cx.store.read("get_job", move |tx| Ok::<_, Error>(jobs::get(tx, id)?)).await?;
        job.filter(|job| {
            let of_tenant = job.tenant.as_deref() == Some(principal.tenant().as_str());
            (of_tenant && principal.roles.has(Role::Admin)) || job.started_by == principal.name()
        })
        .ok_or_else(not_found)
    }

    /// Indexes every event anew, or those of one tenant, telling how many are done out of how many.
    pub async fn reindex_now(
        &self,
        tenant: Option<&Tenant>,
        mut progress: impl FnMut(i64, i64),
    ) -> Result<i64> {
        let extent = Extent { tenant: tenant.map(|tenant| tenant.as_str().to_owned()), user: None };
        let counted = extent.clone();
        let total = self
            .cx
            .store
            .read("count_events", move |tx| {
                Ok::<_, Error>(jobs::count_events(tx, counted.tenant.as_deref(), None)?)
            })
            .await?;
        let (mut walk, mut done, mut failed) = (Walk::new(extent), 0, None);
        while let Some(step) = walk.step(&self.cx).await? {
            match step {
                Ok(events) => done += events,
                Err(error) => failed = failed.or(Some(error)),
            }
            progress(done, total);
        }
        failed.map_or(Ok(done), Err)
    }
}

/// Works on the job of a task.
pub(crate) async fn work(cx: &Arc<Context>, task: &Task) -> Result<()> {
    let body: Body = serde_json::from_str(&task.body)
        .map_err(|error| Error::Internal(format!("the task's body cannot be read: {error}")))?;
    let id = body.job;
    let Some(mut job) = cx.store.read("get_job", move |tx| Ok::<_, Error>(jobs::get(tx, id)?)).await? else {
        return Ok(());
    };
    (job.status, job.processed) = (Status::Running, 0);
    note(cx, &job).await?;
    let mut errors = Vec::new();
    let mut walk = Walk::new(Extent { tenant: body.tenant, user: body.user });
    while let Some(step) = walk.step(cx).await? {
        match step {
            Ok(events) => {
                job.processed += events;
                // Events that were written meanwhile are done too.
                job.total = job.total.max(job.processed);
            }
            Err(error) => {
                tracing::error!(%error, "a part of the event index could not be rebuilt");
                if errors.len() < MAX_ERRORS {
                    errors.push("a part of the index could not be rebuilt; the log says why");
                }
            }
        }
        note(cx, &job).await?;
    }
    job.status = if errors.is_empty() { Status::Succeeded } else { Status::Failed };
    job.errors = serde_json::to_string(&errors).map_err(|error| Error::Internal(error.to_string()))?;
    note(cx, &job).await
}

/// Forgets jobs that nobody will ask about any more.
pub(crate) async fn purge_jobs(cx: &Context) -> Result<()> {
    let before = cx.clock.now().saturating_add_micros(-JOB_MICROS);
    cx.store.write("purge_jobs", move |tx| Ok::<_, Error>(jobs::purge(tx, before)?)).await?;
    Ok(())
}

async fn note(cx: &Context, job: &Job) -> Result<()> {
    let job = job.clone();
    cx.store.write("note_job", move |tx| Ok::<_, Error>(jobs::update(tx, &job)?)).await
}

/// A walk through the blocks of every scope in an extent.
struct Walk {
    extent: Extent,
    /// Scopes that are still to be worked on, the current one first.
    scopes: VecDeque<(ScopeId, Scope)>,
    /// The last scope that was listed.
    after: ScopeId,
    /// The next block of the current scope.
    block: i64,
}

impl Walk {
    fn new(extent: Extent) -> Self {
        Self { extent, scopes: VecDeque::new(), after: ScopeId(0), block: 0 }
    }

    /// Rebuilds the next blocks; says how many events they have, or what stopped it, in which case the next step goes on
    /// behind them. `None` at the end.
    async fn step(&mut self, cx: &Context) -> Result<Option<Result<i64>>> {
        loop {
            let Some((id, scope)) = self.scopes.front().cloned() else {
                self.scopes = self.extent.page(cx, self.after).await?.into();
                match self.scopes.back() {
                    Some((last, _)) => self.after = *last,
                    None => return Ok(None),
                }
                continue;
            };
            let from = self.block;
            let blocks = cx
                .store
                .read("list_blocks", move |tx| {
                    Ok::<_, Error>(events::blocks_from(tx, id, from, BLOCKS_AT_ONCE)?)
                })
                .await?;
            let Some(last) = blocks.last() else {
                self.scopes.pop_front();
                self.block = 0;
                continue;
            };
            self.block = last + 1;
            return Ok(Some(rebuild(cx, id, scope, blocks).await));
        }
    }
}

async fn rebuild(cx: &Context, id: ScopeId, scope: Scope, blocks: Vec<i64>) -> Result<i64> {
    cx.store
        .write("rebuild_blocks", move |tx| {
            // The user may have been forgotten since; then this is not its scope any more.
            if scopes::find(tx, &scope)? != Some(id) {
                return Ok(0);
            }
            let mut indexed = 0;
            for block in &blocks {
                indexed += events::rebuild_block(tx, scope.tenant(), id, *block)? as i64;
            }
            Ok(indexed)
        })
        .await
}
