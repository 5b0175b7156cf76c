//! What happens to entries in the background: expiry, limits of working memory, counting.

use super::Memories;
use super::access::Writable;
use super::journal::{Actor, Milestone};
use super::memory_store::Half;
use super::sessions::PromotionBudget;
use super::stream::KEPT_MICROS;
use super::writing::{Write, WriteOutcome};
use crate::idempotency::oldest_answer;
use memtrove_core::memories::{Layer, Memory, ScopeKey};
use memtrove_core::{Error, Result};
use memtrove_store::idempotency::{self, AnswerTable};
use memtrove_store::memories::entries::ExpiredSince;
use memtrove_store::memories::{entries, index, purge, scopes};
use memtrove_store::{AllTenants, Tx, stream};
use serde_json::json;
use std::convert::Infallible;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

/// Entries that a step works on.
const STEP: i64 = 200;
/// Memories of sessions that nobody ended that one sweep copies to their users at most.
const MOST_PROMOTIONS: usize = 1_000;
/// Notes of what went that are kept.
const KEPT_GONE: i64 = 10_000;

impl Memories {
    /// Sweeps, counts and fades for as long as it is polled.
    pub(crate) async fn run_upkeep(&self) -> Infallible {
        let mut since_fading = self.cx.settings.memories.decay_interval;
        loop {
            let pause = self.cx.settings.memories.sweep_interval;
            tokio::time::sleep(pause).await;
            since_fading += pause;
            if since_fading >= self.cx.settings.memories.decay_interval {
                since_fading = Duration::ZERO;
                if let Err(error) = self.fade().await {
                    tracing::warn!(%error, "memories could not be looked at for fading; trying again later");
                }
            }
            self.upkeep().await;
        }
    }

    /// Writes down what this node has counted, for as long as it is polled.
    pub(crate) async fn run_writing_down(&self) -> Infallible {
        loop {
            tokio::time::sleep(self.cx.settings.memories.sweep_interval).await;
            self.write_down().await;
        }
    }

    /// Writes down what this node has counted.
    pub(crate) async fn write_down(&self) {
        if let Err(error) = self.write_uses().await {
            tracing::warn!(%error, "uses of memories could not be counted; trying again later");
        }
    }

    /// One round of everything but fading.
    pub(crate) async fn upkeep(&self) {
        let chores = [
            ("applying retention to memories", self.retain().await),
            ("making memories found by their words", self.register_words().await),
            ("looking at what points at files", self.check_pointers().await),
            ("clearing away scopes of memories", self.clear_away().await.map(|_| ())),
            ("purging idempotency keys of memories", self.purge_keys().await),
            ("forgetting what went from indexes", self.trim_gone().await),
            ("trimming the stream of memories", self.trim_stream().await),
            // The last one: it promotes, which may take long.
            ("sweeping expired memories", self.sweep().await),
        ];
        for (chore, result) in chores {
            if let Err(error) = result {
                tracing::warn!(chore, %error, "a chore failed; trying again later");
            }
        }
    }

    /// Removes what has expired. It is already hidden; this gives the space back, after what matters in sessions that nobody ended
    /// was copied to their users. What could not be copied yet stays for the next time.
    async fn sweep(&self) -> Result<()> {
        // Whether something matters depends on how often it was found.
        self.write_down().await;
        let mut budget = PromotionBudget::new(MOST_PROMOTIONS);
        for store in self.parts.store.all().map(Half::store) {
            let (now, mut after) = (self.now(), Some(ExpiredSince::EVER));
            while let Some(from) = after {
                let list = move |tx: &mut dyn Tx| Ok::<_, Error>(entries::expired(tx, now, from, STEP)?);
                let (expired, next) = store.read(AllTenants, "list_expired", list).await?;
                after = next;
                let expired = expired.into_iter().map(|stored| stored.memory).collect();
                let done = self.promote_expired(expired, &mut budget).await;
                self.expire(done).await?;
            }
        }
        Ok(())
    }

    /// Removes entries whose time has come.
    pub(super) async fn expire(&self, expired: Vec<Memory>) -> Result<()> {
        for memory in expired {
            let mut journal = self.journal(Actor::system("expiry"), self.now(), 1, "expire");
            journal.milestones.push((0, Milestone { name: "expired", details: json!({}) }));
            if self.write(vec![Write::Remove(Writable::by_task(memory))], journal).await?
                == WriteOutcome::Done
            {
                metrics::counter!("memory_expired_total").increment(1);
            }
        }
        Ok(())
    }

    /// Removes what is older than its kind is kept; what has expired is for the sweep.
    async fn retain(&self) -> Result<()> {
        let retention = &self.cx.settings.memories.retention;
        if retention.is_empty() {
            return Ok(());
        }
        let now = self.now();
        let cutoffs: Vec<_> = retention
            .iter()
            .map(|(kind, keep)| (*kind, now.saturating_add_micros(-(keep.as_micros() as i64))))
            .collect();
        let mut after = memtrove_store::memories::ScopeNo(0);
        loop {
            let cutoffs = cutoffs.clone();
            let step = self.cx.store.read(AllTenants, "list_outdated_memories", move |tx| {
                let page = scopes::after(tx, None, after, STEP)?;
                let mut outdated = Vec::new();
                for (row, _) in &page {
                    entries::newest(tx, row.no, None, STEP, |stored| {
                        let memory = &stored.memory;
                        let old = cutoffs
                            .iter()
                            .any(|(kind, cutoff)| memory.kind == *kind && memory.at() < *cutoff);
                        if old && memory.is_live(now) && memory.lineage.mirror_of.is_none() {
                            outdated.push(stored.memory);
                        }
                        ControlFlow::Continue(())
                    })?;
                }
                Ok::<_, Error>((page.last().map(|(row, _)| row.no), outdated))
            });
            let (last, outdated) = step.await?;
            self.expire(outdated).await?;
            let Some(last) = last else { return Ok(()) };
            after = last;
        }
    }

    /// Clears away what is out of reach; says how many entries went.
    pub(crate) async fn clear_away(&self) -> Result<u64> {
        let mut cleared = 0;
        for store in self.parts.store.all().map(Half::store) {
            while let Some(step) =
                store.write(AllTenants, "clear_memories", |tx| Ok::<_, Error>(purge::step(tx, STEP)?)).await?
            {
                cleared += step;
            }
        }
        Ok(cleared)
    }

    async fn purge_keys(&self) -> Result<()> {
        let before = oldest_answer(&self.cx);
        for store in self.parts.store.all().map(Half::store) {
            let purge = || {
                store.write(AllTenants, "purge_memory_keys", move |tx| {
                    Ok::<_, Error>(idempotency::purge(tx, AnswerTable::Memories, before, STEP)?)
                })
            };
            while purge().await? > 0 {}
        }
        Ok(())
    }

    async fn trim_gone(&self) -> Result<()> {
        for store in self.parts.store.all().map(Half::store) {
            let trim = || {
                store.write(AllTenants, "trim_gone", |tx| {
                    Ok::<_, Error>(index::trim_gone(tx, KEPT_GONE, STEP)?)
                })
            };
            while trim().await? > 0 {}
        }
        Ok(())
    }

    /// Removes what followers of the stream are not told any more.
    async fn trim_stream(&self) -> Result<()> {
        if !self.cx.store.is_shared() {
            return Ok(());
        }
        let before = self.now().saturating_add_micros(-KEPT_MICROS);
        let trim = || {
            self.cx
                .store
                .write(AllTenants, "trim_stream", move |tx| Ok::<_, Error>(stream::trim(tx, before, STEP)?))
        };
        while trim().await? > 0 {}
        Ok(())
    }

    /// What an add may set off: a better vector, a consolidation.
    pub(super) async fn added(&self, added: &[Arc<Memory>]) {
        if self.cx.embeddings.model_id() != self.cx.embeddings.preferred_model_id() {
            self.parts.upgrades.notify_one();
        }
        let rules = &self.rules().consolidation;
        let mut scopes: Vec<&ScopeKey> = Vec::new();
        for memory in added {
            let watched = rules.enabled && rules.target_layers.contains(&memory.scope.layer());
            if watched && !Self::is_volatile(memory.kind) && !scopes.contains(&&memory.scope) {
                scopes.push(&memory.scope);
            }
        }
        for scope in scopes {
            if let Err(error) = self.check_size(scope).await {
                tracing::warn!(%error, "the size of a scope could not be looked at; the next add does");
            }
        }
    }

    async fn check_size(&self, scope: &ScopeKey) -> Result<()> {
        let of = scope.clone();
        let count =
            move |tx: &mut dyn Tx| Ok::<_, Error>(scopes::find(tx, &of)?.map_or(0, |row| row.entries));
        let entries = self.cx.store.read(scope.tenant(), "count_memories", count).await?;
        if self.rules().consolidation.is_due(scope.layer(), entries as usize) {
            self.consolidate_later(scope.clone());
        }
        Ok(())
    }

    /// Sets the metrics that nothing keeps up to date.
    pub(crate) async fn sample_metrics(&self) {
        match self.cx.store.read(AllTenants, "count_memories", scopes::entries_by_layer).await {
            Ok(counted) => {
                for layer in Layer::ALL {
                    let entries =
                        counted.iter().find(|(of, _)| *of == layer).map_or(0, |(_, entries)| *entries);
                    metrics::gauge!("memory_storage_size", "layer" => layer.as_str()).set(entries as f64);
                }
            }
            Err(error) => tracing::warn!(%error, "memories could not be counted"),
        }
    }
}
