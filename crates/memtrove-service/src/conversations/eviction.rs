//! Removing trees for good, some time after they were deleted.

use super::{Conversations, publish};
use crate::attachments::delete_with_tree;
use crate::audit::{self, Call};
use crate::memories::forget::{Ended, end_sessions};
use crate::tasks;
use memtrove_core::identity::{Principal, Tenant};
use memtrove_core::{Error, Result, Timestamp, period};
use memtrove_store::AllTenants;
use memtrove_store::changes::ChangeKind;
use memtrove_store::conversations::groups;
use tokio::sync::mpsc;

/// The entries after which a batch ends, however few trees had them: other writes wait meanwhile.
const BATCH_ENTRIES: u64 = 5_000;

/// A request to evict.
#[derive(Debug, Clone, Default)]
pub struct EvictRequest {
    /// Trees deleted longer ago than this (ISO 8601) are removed.
    pub retention_period: Option<String>,
    /// What to remove: `conversations`.
    pub resource_types: Option<Vec<String>>,
    /// Why.
    pub justification: Option<String>,
}

/// An eviction that was admitted and may run.
#[derive(Debug, Clone)]
pub struct Eviction {
    tenant: Tenant,
    cutoff: Timestamp,
}

impl Conversations {
    /// Admits and checks an eviction.
    pub fn admit_eviction(
        &self,
        principal: &Principal,
        request: EvictRequest,
        header: Option<&str>,
    ) -> Result<Eviction> {
        let justification = request.justification.as_deref().or(header);
        let period = request.retention_period.as_deref().unwrap_or_default();
        let detail = [("target", format!("conversations deleted longer than {period} ago"))];
        let required = self.cx.settings.require_justification;
        let grant = audit::admit(principal, &Call::write("evict", &detail), justification, required)?;
        let checked = check(&request).map(|retention| self.eviction(grant.tenant().clone(), retention));
        if checked.is_err() {
            audit::outcome("evict", &checked);
        }
        checked
    }

    /// An eviction by the operator of this machine, who needs no role.
    pub fn eviction(&self, tenant: Tenant, retention_micros: i64) -> Eviction {
        Eviction { tenant, cutoff: self.cx.clock.now().saturating_add_micros(-retention_micros) }
    }

    /// Every tenant there is, for operators.
    pub async fn tenants(&self) -> Result<Vec<Tenant>> {
        self.cx.store.read(AllTenants, "list_tenants", |tx| Ok(groups::tenants(tx)?)).await
    }

    /// Runs an eviction batch by batch, telling its progress in percent: 0 first, 100 last and only when all is done.
    /// It stops after the current batch when its caller has gone. Answers how many trees it removed.
    pub async fn evict(&self, eviction: &Eviction, progress: mpsc::Sender<u8>) -> Result<usize> {
        let result = self.evict_batches(eviction, &progress).await;
        match &result {
            Ok(evicted) if progress.is_closed() => audit::interrupted("evict", *evicted),
            result => audit::outcome("evict", result),
        }
        result
    }

    async fn evict_batches(&self, eviction: &Eviction, progress: &mpsc::Sender<u8>) -> Result<usize> {
        let Eviction { tenant, cutoff } = eviction.clone();
        let counted = tenant.clone();
        let estimate: i64 = self
            .cx
            .store
            .read(&tenant, "count_evictable", move |tx| {
                Ok::<_, Error>(groups::count_evictable(tx, &counted, cutoff)?)
            })
            .await?;
        let mut listening = progress.send(0).await.is_ok();
        let mut evicted = 0;
        while listening {
            let removed = self.evict_batch(&tenant, cutoff).await?;
            if removed == 0 {
                break;
            }
            evicted += removed;
            let percent = (evicted as i64 * 100 / estimate.max(1)).min(99) as u8;
            listening = progress.send(percent).await.is_ok();
            tokio::time::sleep(self.cx.settings.eviction_batch_delay).await;
        }
        self.cx.deletions.wake();
        // A listener that is gone does not hear the end either.
        let _ = progress.send(100).await;
        Ok(evicted)
    }

    /// One transaction: choose, note what must be cleaned up elsewhere, remove.
    async fn evict_batch(&self, of: &Tenant, cutoff: Timestamp) -> Result<usize> {
        let (cx, limit) = (self.cx.clone(), self.cx.settings.eviction_batch_size as i64);
        let (now, tenant) = (cx.clock.now(), of.clone());
        let (removed, ended) = self
            .cx
            .store
            .write(of, "evict_conversations", move |tx| {
                let (mut removed, mut entries, mut ended) = (0, 0, Ended::default());
                for group in groups::lock_evictable(tx, &tenant, cutoff, limit)? {
                    end_sessions(tx, &tenant, group, &mut ended)?;
                    tasks::enqueue_vector_delete(tx, &cx, group)?;
                    if let Some(root) = groups::root(tx, group)? {
                        publish(tx, &tenant, ChangeKind::ConversationEvicted, None, root, now)?;
                    }
                    delete_with_tree(tx, group, now)?;
                    entries += groups::evict(tx, &tenant, group)?;
                    removed += 1;
                    if entries >= BATCH_ENTRIES {
                        break;
                    }
                }
                Ok::<_, Error>((removed, ended))
            })
            .await?;
        if removed > 0 {
            self.memories.sessions_ended(of, ended).await?;
            self.cx.tasks.notify_one();
        }
        Ok(removed)
    }
}

/// The retention period in microseconds, if everything about the request is right.
fn check(request: &EvictRequest) -> Result<i64> {
    let period = request
        .retention_period
        .as_deref()
        .ok_or_else(|| Error::invalid("retentionPeriod", "is required"))?;
    let retention = period::parse(period).ok_or_else(|| {
        Error::bad_request("retentionPeriod must be a positive ISO 8601 duration such as P90D or PT24H")
    })?;
    let types = request.resource_types.as_deref().filter(|types| !types.is_empty());
    let types =
        types.ok_or_else(|| Error::invalid("resourceTypes", "must name at least one type: conversations"))?;
    match types.iter().find(|name| !name.eq_ignore_ascii_case("conversations")) {
        Some(unknown) => {
            Err(Error::bad_request(format!("unknown resource type '{unknown}'; known: conversations")))
        }
        None => Ok(retention),
    }
}
