//! Making anew what follows from the stored events, block by block, while everything goes on: the event index, and the
//! memories that mirror them where they are missing.
//!
//! An event knows its block, so a block is rebuilt in one unit of work from the events that belong to it: searches see it as
//! it was or as it is, and what is written meanwhile goes where it always goes.

use super::{Admitted, Files, Writer};
use crate::Context;
use crate::audit::{self as log, Call};
use crate::jobs::{self, Request, persistently};
use memtrove_core::files::{Code, FileRole, Scope, ScopedCaller};
use memtrove_core::identity::{Principal, Role, Tenant};
use memtrove_core::{Error, Result, UserId};
use memtrove_store::AllTenants;
use memtrove_store::Tx;
use memtrove_store::files::jobs::{self as stored, Job};
use memtrove_store::files::scopes::ScopeId;
use memtrove_store::files::{STEP_BYTES, events, scopes};
use std::collections::VecDeque;
use uuid::Uuid;

/// Blocks that one unit of work rebuilds at most: other writes wait meanwhile.
const BLOCKS_AT_ONCE: i64 = 32;
const SCOPES_AT_ONCE: i64 = 100;
/// A job reports at most this many errors.
const MAX_ERRORS: usize = 20;

/// What a job of this kind is called.
const KIND: &str = "events_reindex";

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
            .read(tenant.clone().map(Tenant::listed), "list_scopes", move |tx| match (&tenant, &user) {
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
    pub async fn reindex_scope(&self, admitted: &Admitted<Writer>) -> Result<Uuid> {
        let caller = admitted.caller();
        let (tenant, user) = (caller.scope.tenant(), caller.scope.user().as_str());
        self.start_job(&caller.principal, tenant, Some(user)).await
    }

    /// Has the events of a tenant indexed anew; answers the job's id.
    pub async fn reindex_tenant(&self, principal: &Principal, justification: Option<&str>) -> Result<Uuid> {
        let detail = [("target", "events".to_owned())];
        let call = Call::write("reindex", &detail);
        let (cx, by) = (&self.cx, &principal.name());
        let work = |_| self.start_job(by, principal.tenant(), None);
        log::audited(cx, principal, call, justification, work).await
    }

    async fn start_job(&self, started_by: &str, tenant: &Tenant, user: Option<&str>) -> Result<Uuid> {
        let (of_tenant, of_user) = (tenant.as_str().to_owned(), user.map(str::to_owned));
        let request = Request { kind: KIND, tenant, user, started_by };
        let count = move |tx: &mut dyn Tx| scopes::count_events(tx, Some(&of_tenant), of_user.as_deref());
        let id = jobs::start(&self.cx, request, count).await?;
        self.cx.jobs.notify_one();
        Ok(id)
    }

    /// A job, for a caller who may ask for one like it.
    pub async fn job(&self, principal: &Principal, id: &str) -> Result<Job> {
        let not_found = || Error::new(Code::JobNotFound, "there is no such job");
        let id = memtrove_core::parse_uuid(id).ok_or_else(not_found)?;
        let job =
            self.cx.store.read(AllTenants, "get_job", move |tx| Ok::<_, Error>(stored::get(tx, id)?)).await?;
        job.filter(|job| may_watch(principal, job)).ok_or_else(not_found)
    }

    /// Indexes every event anew, or those of one tenant, telling how many are done out of how many.
    pub async fn reindex_now(
        &self,
        tenant: Option<&Tenant>,
        mut progress: impl FnMut(i64, i64),
    ) -> Result<i64> {
        let extent = Extent { tenant: tenant.map(|tenant| tenant.as_str().to_owned()), user: None };
        let counted = extent.tenant.clone();
        let total = self
            .cx
            .store
            .read(tenant.cloned(), "count_events", move |tx| {
                Ok::<_, Error>(scopes::count_events(tx, counted.as_deref(), None)?)
            })
            .await?;
        let (mut walk, mut done, mut failed) = (ReindexWalk::new(extent), 0, None);
        while let Some(step) = walk.step(self).await {
            match step {
                Ok(events) => done += events,
                Err(error) => failed = failed.or(Some(error)),
            }
            progress(done, total);
        }
        failed.map_or(Ok(done), Err)
    }
}

/// Who started a job may watch it, and who could have: the admins of its tenant, and for one user's events a caller who acts on
/// that user. A trusted client chooses its tenant, so it need not name it again.
fn may_watch(principal: &Principal, job: &Job) -> bool {
    let started = job.started_by == principal.name();
    if job.tenant != principal.tenant().as_str() {
        return started && principal.trusted;
    }
    let acts = |user: &String| {
        let caller = ScopedCaller::enter(principal, user.clone(), None, String::new());
        caller.is_ok_and(|caller| caller.require(FileRole::Writer).is_ok())
    };
    started || principal.roles.has(Role::Admin) || job.user.as_ref().is_some_and(acts)
}

/// Works on the next job; says whether there was one.
pub(crate) async fn work(files: &Files) -> Result<bool> {
    let cx = &*files.cx;
    let Some(mut job) = jobs::claim(cx, KIND).await? else { return Ok(false) };
    let mut errors = Vec::new();
    let mut walk = ReindexWalk::new(Extent { tenant: Some(job.tenant.clone()), user: job.user.clone() });
    job.processed = 0;
    while let Some(step) = walk.step(files).await {
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
        if !jobs::note(cx, &mut job).await? {
            return Ok(true);
        }
    }
    jobs::end(cx, job, &errors).await?;
    Ok(true)
}

/// A walk through the blocks of every scope in an extent.
struct ReindexWalk {
    extent: Extent,
    /// Scopes that are still to be worked on, the current one first.
    scopes: VecDeque<(ScopeId, Scope)>,
    /// The last scope that was listed.
    after: ScopeId,
    /// The next block of the current scope.
    block: i64,
    /// It is not known how to go on.
    lost: bool,
}

impl ReindexWalk {
    fn new(extent: Extent) -> Self {
        Self { extent, scopes: VecDeque::new(), after: ScopeId(0), block: 0, lost: false }
    }

    /// Rebuilds the next blocks; says how many events they have, or what stopped it, in which case the next step goes on
    /// behind them if it can. `None` at the end.
    async fn step(&mut self, files: &Files) -> Option<Result<i64>> {
        if self.lost {
            return None;
        }
        match self.next(&files.cx).await {
            Ok(next) => {
                let blocks = next?;
                let rebuilt = persistently(|| blocks.rebuild(files)).await;
                let last = rebuilt.as_ref().ok().map(|(last, _)| last).or(blocks.numbers.last());
                self.block = last.map_or(self.block, |last| last + 1);
                Some(rebuilt.map(|(_, events)| events))
            }
            Err(error) => {
                self.lost = true;
                Some(Err(error))
            }
        }
    }

    /// The next blocks to be rebuilt.
    async fn next(&mut self, cx: &Context) -> Result<Option<Blocks>> {
        loop {
            let Some((scope_id, scope)) = self.scopes.front() else {
                self.scopes = persistently(|| self.extent.page(cx, self.after)).await?.into();
                match self.scopes.back() {
                    Some((last, _)) => self.after = *last,
                    None => return Ok(None),
                }
                continue;
            };
            let (scope_id, from) = (*scope_id, self.block);
            let numbers = persistently(|| {
                cx.store.read(scope.tenant(), "list_blocks", move |tx| {
                    Ok::<_, Error>(events::blocks_from(tx, scope_id, from, BLOCKS_AT_ONCE)?)
                })
            });
            let numbers = numbers.await?;
            if !numbers.is_empty() {
                return Ok(Some(Blocks { scope_id, scope: scope.clone(), numbers }));
            }
            self.scopes.pop_front();
            self.block = 0;
        }
    }
}

/// Blocks of one scope.
struct Blocks {
    scope_id: ScopeId,
    scope: Scope,
    numbers: Vec<i64>,
}

impl Blocks {
    /// Rebuilds as many of these as one unit of work should, and makes the memories that their events are to be mirrored by;
    /// answers the last of them and how many events they have.
    async fn rebuild(&self, files: &Files) -> Result<(i64, i64)> {
        let (id, scope, numbers) = (self.scope_id, self.scope.clone(), self.numbers.clone());
        let work = files.cx.store.write(self.scope.tenant(), "rebuild_blocks", move |tx| {
            let last = numbers.last().copied().unwrap_or_default();
            // The user may have been forgotten since; then there is nothing left to rebuild.
            if scopes::lock_known(tx, id)?.is_none() {
                return Ok((last, 0));
            }
            let (mut indexed, mut bytes) = (0, 0);
            for block in &numbers {
                let rebuilt = events::rebuild_block(tx, scope.tenant(), id, *block)?;
                (indexed, bytes) = (indexed + rebuilt.events as i64, bytes + rebuilt.bytes);
                if bytes >= STEP_BYTES {
                    return Ok((*block, indexed));
                }
            }
            Ok::<_, Error>((last, indexed))
        });
        let (last, indexed) = work.await?;
        let rebuilt = self.numbers.iter().copied().filter(|block| *block <= last).collect();
        files.memories.mirror_missing(id, &self.scope, rebuilt).await?;
        Ok((last, indexed))
    }
}
