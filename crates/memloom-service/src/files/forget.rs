//! Forgetting a user: one operation for the whole product.
//!
//! The first unit of work takes everything of the user out of reach; concurrent writers either finished before it, and what
//! they wrote goes too, or find nothing there and begin anew. Then the rows go, in steps that let others write in between.
//! A process that dies on the way finishes at its next start.

use super::Files;
use crate::{Context, files_metrics, tasks};
use memloom_core::files::{Scope, ScopedCaller};
use memloom_core::identity::Tenant;
use memloom_core::{Error, GroupId, Result, Timestamp};
use memloom_store::changes::{self, Change, ChangeKind};
use memloom_store::files::forget::{self, Detached, Removed, Waiting};
use memloom_store::files::scopes::ScopeId;
use std::sync::Arc;

/// Rows of each kind that one step removes.
const STEP_ROWS: i64 = 500;
/// Trees that one step takes a name off.
const STEP_TREES: i64 = 20;
/// Changes of the feed that one step looks at.
const STEP_CHANGES: i64 = 10_000;

/// What was removed of a user, by kind.
pub type Forgotten = Removed;

impl Files {
    /// Forgets everything of a user.
    pub async fn forget(&self, caller: &ScopedCaller) -> Result<Forgotten> {
        let under_way = self.cx.forgetting.read().await;
        let removed = self.forget_scope(&caller.scope).await?;
        drop(under_way);
        files_metrics::deleted("document", "forget", removed.documents);
        files_metrics::deleted("event", "forget", removed.events);
        files_metrics::deleted("audit", "forget", removed.audit);
        files_metrics::deleted("conversation", "forget", removed.conversations);
        // The log of the operator: that it happened and how much went, not whose it was.
        tracing::info!(
            target: "files.operator",
            by = if caller.acts_for_itself() { "the user" } else { caller.principal.as_str() },
            documents = removed.documents,
            events = removed.events,
            audit = removed.audit,
            conversations = removed.conversations,
            anonymized = removed.anonymized,
            "a user was forgotten"
        );
        Ok(removed)
    }

    async fn forget_scope(&self, scope: &Scope) -> Result<Forgotten> {
        let cx = &self.cx;
        let (detaching, clock) = (scope.clone(), cx.clock.clone());
        let (detached, now) = cx
            .store
            .write("forget_user", move |tx| {
                // The time at which this runs: nothing that was written before bears a later one.
                let now = clock.now();
                let detached = forget::detach(tx, &detaching, now)?;
                // Whoever keeps copies has to know. Of nobody there are none.
                if !detached.is_empty() {
                    let change = Change {
                        kind: ChangeKind::UserForgotten,
                        user: None,
                        resource: detaching.user().as_str(),
                        version: None,
                    };
                    changes::record(tx, detaching.tenant(), now, &change)?;
                }
                Ok::<_, Error>((detached, now))
            })
            .await?;
        let anonymized = take_name_off(cx, scope, now).await?;
        let conversations = detached.groups.len() as u64;
        let mut removed = Removed { conversations, anonymized, ..Removed::default() };
        let Detached { scope: id, groups, .. } = detached;
        if id.is_none() && groups.is_empty() {
            return Ok(removed);
        }
        if let Some(id) = id {
            let cleared = clear_scope(cx, id).await?;
            (removed.documents, removed.events) = (cleared.documents, cleared.events);
            (removed.audit, removed.indexed) = (cleared.audit, cleared.indexed);
        }
        for group in &groups {
            clear_group(cx, scope.tenant().clone(), *group).await?;
        }
        scrub(cx, !groups.is_empty()).await;
        Ok(removed)
    }
}

/// Clears away what forgetting left behind when a process ended on the way.
pub(crate) async fn finish(cx: &Arc<Context>) -> Result<()> {
    let Ok(_alone) = cx.forgetting.try_write() else { return Ok(()) };
    let Waiting { users, scopes, groups } =
        cx.store.read("forgotten", |tx| Ok::<_, Error>(forget::waiting(tx)?)).await?;
    if users.is_empty() && scopes.is_empty() && groups.is_empty() {
        return Ok(());
    }
    for (scope, at) in users {
        take_name_off(cx, &scope, at).await?;
    }
    for scope in scopes {
        clear_scope(cx, scope).await?;
    }
    let texts = !groups.is_empty();
    for (group, tenant) in groups {
        clear_group(cx, tenant, group).await?;
    }
    scrub(cx, texts).await;
    Ok(())
}

/// Takes a user's name off what others keep: entries it wrote in their trees, and the change feed. Answers how many entries.
async fn take_name_off(cx: &Context, scope: &Scope, at: Timestamp) -> Result<u64> {
    let (mut anonymized, mut more) = (0, true);
    while more {
        let leaving = scope.clone();
        let (entries, left) = cx
            .store
            .write("forget_names", move |tx| Ok::<_, Error>(forget::anonymize(tx, &leaving, at, STEP_TREES)?))
            .await?;
        (anonymized, more) = (anonymized + entries, left);
    }
    let mut from = Some(0);
    while let Some(sequence) = from {
        let told = scope.clone();
        from = cx
            .store
            .write("forget_changes", move |tx| {
                Ok::<_, Error>(changes::forget_user(
                    tx,
                    told.tenant(),
                    told.user(),
                    at,
                    sequence,
                    STEP_CHANGES,
                )?)
            })
            .await?;
    }
    let nameless = scope.clone();
    cx.store.write("forget_done", move |tx| Ok::<_, Error>(forget::nameless(tx, &nameless)?)).await?;
    Ok(anonymized)
}

/// Removes from the disk what was removed from the store. The user is forgotten whether or not that works at once: a read
/// that takes very long may keep the log.
async fn scrub(cx: &Context, texts: bool) {
    if let Err(error) = cx.store.scrub(texts).await {
        tracing::warn!(%error, "what was forgotten stays in the write-ahead log until that is started over");
    }
}

async fn clear_scope(cx: &Context, scope: ScopeId) -> Result<Removed> {
    let mut sum = Removed::default();
    loop {
        let step = cx
            .store
            .write("forget_rows", move |tx| Ok::<_, Error>(forget::clear_scope(tx, scope, STEP_ROWS)?))
            .await?;
        let Some(step) = step else { return Ok(sum) };
        sum.documents += step.documents;
        sum.events += step.events;
        sum.audit += step.audit;
        sum.indexed += step.indexed;
    }
}

async fn clear_group(cx: &Arc<Context>, tenant: Tenant, group: GroupId) -> Result<()> {
    let inner = cx.clone();
    cx.store
        .write("forget_tree", move |tx| {
            tasks::enqueue_vector_delete(tx, &inner, group)?;
            Ok::<_, Error>(forget::clear_group(tx, &tenant, group)?)
        })
        .await?;
    cx.tasks.notify_one();
    Ok(())
}
