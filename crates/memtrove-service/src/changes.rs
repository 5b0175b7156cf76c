//! The change feed: what happened in a tenant, by the page or as it happens.

use crate::{Context, page};
use memtrove_core::changes::RecordedChange;
use memtrove_core::identity::{Principal, Role, Tenant};
use memtrove_core::{Error, Result};
use memtrove_store::AllTenants;
use memtrove_store::Tx;
use memtrove_store::changes::{self, Bounds};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::time::sleep;

/// Changes that became too old for the feed.
const CHANGES_TRIMMED: &str = "memtrove_changes_trimmed_total";

/// How many may follow the feed at once.
const MAX_FOLLOWERS: usize = 256;
/// When one that finds no place may ask again.
const RETRY_SECONDS: u32 = 5;
/// How many changes a follower takes at once; its memory is bounded by this.
const FOLLOWER_BATCH: usize = 100;
/// How long a follower waits for more after a commit, so that many commits are one look.
const DEBOUNCE: Duration = Duration::from_millis(20);
/// How often a follower looks when it hears of no commit: another process may have written.
const POLL: Duration = Duration::from_secs(1);
/// How many changes one unit of work removes.
const TRIM_BATCH: i64 = 1000;

/// Describes the feed's numbers to the recorder.
pub fn announce_metrics() {
    metrics::describe_counter!(CHANGES_TRIMMED, "Changes that became too old for the feed.");
    metrics::counter!(CHANGES_TRIMMED).increment(0);
}

/// The use cases of the change feed.
#[derive(Clone)]
pub struct Changes {
    cx: Arc<Context>,
    places: Arc<Semaphore>,
    closed: Arc<watch::Sender<bool>>,
}

/// A part of the feed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangesPage {
    /// The changes, oldest first.
    pub changes: Vec<RecordedChange>,
    /// The last of them, if newer ones exist.
    pub next_after: Option<i64>,
    /// The oldest number that is kept.
    pub oldest: i64,
    /// What came right after the number asked for is not there any more (or, after a backup was restored, that number never
    /// was): this page begins at the oldest that is kept, and the caller must look at everything anew.
    pub gap: bool,
}

impl Changes {
    pub(crate) fn new(cx: Arc<Context>) -> Self {
        Self { cx, places: Arc::new(Semaphore::new(MAX_FOLLOWERS)), closed: Arc::default() }
    }

    /// The changes after a number; without one, from the oldest that is kept.
    pub async fn page(
        &self,
        principal: &Principal,
        after: Option<i64>,
        limit: Option<i64>,
    ) -> Result<ChangesPage> {
        admit(principal)?;
        let limit = page::limit(limit, 100, 1000)?;
        let tenant = principal.tenant().clone();
        self.cx.store.settle().await?;
        self.cx.store.read(tenant.clone(), "list_changes", move |tx| read(tx, &tenant, after, limit)).await
    }

    /// Follows the feed from a number on; without one, from now on: whatever is acknowledged after this will be told.
    pub async fn follow(&self, principal: &Principal, after: Option<i64>) -> Result<Follower> {
        admit(principal)?;
        let place =
            Arc::clone(&self.places).try_acquire_owned().map_err(|_| Error::overloaded(RETRY_SECONDS))?;
        let tenant = principal.tenant().clone();
        let after = match after {
            Some(after) => after,
            None => {
                self.cx.store.settle().await?;
                let of = tenant.clone();
                let newest = move |tx: &mut dyn Tx| Ok::<_, Error>(changes::bounds(tx, &of)?.newest);
                self.cx.store.read(&tenant, "follow_changes", newest).await?
            }
        };
        Ok(Follower {
            cx: Arc::clone(&self.cx),
            tenant,
            after,
            caught_up: false,
            commits: self.cx.store.commits(),
            closed: self.closed.subscribe(),
            _place: place,
        })
    }

    /// Ends every follower and takes no more. A server that is to stop calls this: they would never end by themselves.
    pub fn close(&self) {
        self.places.close();
        self.closed.send_replace(true);
    }
}

/// Somebody who is told of changes as they happen. Holds one batch at most, and reads the next one when asked for it.
pub struct Follower {
    cx: Arc<Context>,
    tenant: Tenant,
    after: i64,
    caught_up: bool,
    commits: watch::Receiver<u64>,
    closed: watch::Receiver<bool>,
    _place: OwnedSemaphorePermit,
}

impl Follower {
    /// The number after which it goes on.
    pub fn after(&self) -> i64 {
        self.after
    }

    /// What happened next, as soon as something has; nothing once the feed is closed. A page with a gap may be without
    /// changes.
    pub async fn next(&mut self) -> Result<Option<ChangesPage>> {
        while !*self.closed.borrow() {
            if self.caught_up {
                self.wait().await;
            }
            // What is committed from here on wakes the next wait, whether or not the look below sees it.
            self.commits.mark_unchanged();
            self.cx.store.settle().await?;
            let (tenant, after) = (self.tenant.clone(), self.after);
            let look = move |tx: &mut dyn Tx| read(tx, &tenant, Some(after), FOLLOWER_BATCH);
            let page = self.cx.store.read(&self.tenant, "follow_changes", look).await?;
            self.caught_up = page.next_after.is_none();
            if page.gap || !page.changes.is_empty() {
                self.after = page.changes.last().map_or(page.oldest - 1, |newest| newest.sequence);
                return Ok(Some(page));
            }
        }
        Ok(None)
    }

    async fn wait(&mut self) {
        tokio::select! {
            _ = self.commits.changed() => sleep(DEBOUNCE).await,
            _ = self.closed.changed() => {}
            () = sleep(POLL) => {}
        }
    }
}

/// The feed tells about everybody in a tenant, so it is for those who may know all of it. A trusted client that speaks for a
/// user may know what that user may.
fn admit(principal: &Principal) -> Result<()> {
    let for_itself = principal.user.is_none() && principal.asserted_user.is_none();
    if (principal.trusted && for_itself) || principal.roles.has(Role::Auditor) {
        return Ok(());
    }
    Err(Error::forbidden("only admins, auditors and trusted clients may read the change feed"))
}

fn read(tx: &mut dyn Tx, tenant: &Tenant, after: Option<i64>, limit: usize) -> Result<ChangesPage> {
    let Bounds { oldest, newest } = changes::bounds(tx, tenant)?;
    let kept = oldest - 1..=newest;
    let gap = after.is_some_and(|after| !kept.contains(&after));
    let from = after.filter(|_| !gap).unwrap_or(oldest - 1);
    let changes = changes::page(tx, tenant, from, limit as i64)?;
    let next_after = changes.last().map(|last| last.sequence).filter(|last| *last < newest);
    Ok(ChangesPage { changes, next_after, oldest, gap })
}

/// Removes what is older than the feed's retention, in small steps, so that no writer waits for long.
pub(crate) async fn trim(cx: &Arc<Context>) -> Result<()> {
    let retention = i64::try_from(cx.settings.changes_retention.as_micros()).unwrap_or(i64::MAX);
    let before = cx.clock.now().saturating_add_micros(-retention);
    let tenants: Vec<Tenant> = cx
        .store
        .read(AllTenants, "trimmable_changes", move |tx| Ok::<_, Error>(changes::trimmable(tx, before)?))
        .await?;
    for tenant in tenants {
        loop {
            let of = tenant.clone();
            let oldest = move |tx: &mut dyn Tx| Ok::<_, Error>(changes::trim(tx, &of, before, TRIM_BATCH)?);
            let trimmed = cx.store.write(&tenant, "trim_changes", oldest).await?;
            metrics::counter!(CHANGES_TRIMMED).increment(trimmed);
            if trimmed < TRIM_BATCH as u64 {
                break;
            }
        }
    }
    Ok(())
}
