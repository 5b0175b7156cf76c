//! Fading: a pass that looks at entries from a time and gives them the state their relevance asks for.

use super::Memories;
use super::access::Writable;
use super::journal::{Actor, Milestone};
use super::listing::Onlooker;
use super::memory_store::Half;
use super::writing::{Write, WriteOutcome};
use crate::quota::CallKind;
use memtrove_core::identity::Tenant;
use memtrove_core::memories::{
    DecayRequest, DecayRules, Layer, Memory, MemoryCaller, MemoryId, ScopeKey, State, Viewer,
};
use memtrove_core::{Error, Result, Timestamp};
use memtrove_store::Store;
use memtrove_store::memories::{MemoryNo, ScopeNo, entries, scopes};
use serde_json::json;
use std::sync::Arc;

/// Entries that a step reads.
const STEP: i64 = 500;
/// Entries that an answer names.
const NAMED: usize = 1_000;

/// What a pass does.
struct Pass {
    at: Timestamp,
    dry_run: bool,
    rules: DecayRules,
    layers: Vec<Layer>,
    actor: Actor,
    /// Who is told of it: what it may not see is left for a pass over everything.
    viewer: Option<Viewer>,
    onlooker: Onlooker,
}

impl Pass {
    /// What it did before it began.
    fn report(&self) -> DecayReport {
        let (at, dry_run) = (self.at, self.dry_run);
        DecayReport { at, dry_run, processed: 0, decayed: 0, archived: 0, skipped: 0, entries: Vec::new() }
    }
}

/// What a pass did, or would do.
#[derive(Debug, Clone)]
pub struct DecayReport {
    /// The time it looked from.
    pub at: Timestamp,
    /// Whether it only says so.
    pub dry_run: bool,
    /// How many entries it looked at.
    pub processed: u64,
    /// How many became decayed.
    pub decayed: u64,
    /// How many became archived.
    pub archived: u64,
    /// How many do not fade.
    pub skipped: u64,
    /// Some of those it looked at, by id.
    pub entries: Vec<FadedMemory>,
}

/// One entry of a pass.
#[derive(Debug, Clone, Copy)]
pub struct FadedMemory {
    /// Its id.
    pub id: MemoryId,
    /// Whose it is.
    pub layer: Layer,
    /// How relevant it is at that time.
    pub relevance: f64,
    /// Its state before.
    pub previous: State,
    /// Its state after.
    pub state: State,
}

impl Memories {
    /// Runs a pass over some scopes, or over the tenant.
    pub async fn decay(&self, caller: &MemoryCaller, request: DecayRequest) -> Result<DecayReport> {
        let request = request.check(self.rules(), caller)?;
        let named = request.scopes.iter().flatten().find_map(|scope| scope.user());
        let user = |caller: &MemoryCaller| caller.speaks_for(named);
        let caller = &*self.charge(caller, CallKind::Write, user).await?;
        let mut pass = Pass {
            at: request.as_of.unwrap_or_else(|| self.now()),
            dry_run: request.dry_run,
            rules: request.rules,
            layers: request.layers,
            actor: self.actor(caller, &Default::default()),
            viewer: None,
            onlooker: Onlooker::of(caller),
        };
        let mut report = pass.report();
        match request.scopes {
            Some(scopes) => {
                for scope in scopes {
                    pass.viewer = Some(caller.viewer(&scope.identifiers()));
                    self.fade_scope(&pass, scope, &mut report).await?;
                }
            }
            None => self.fade_tenant(&pass, Some(caller.tenant()), &mut report).await?,
        }
        report.entries.sort_by_key(|entry| entry.id);
        report.entries.truncate(NAMED);
        Ok(report)
    }

    /// The daily pass over everything, where fading is on.
    pub(crate) async fn fade(&self) -> Result<()> {
        let rules = self.rules().decay.clone();
        if !rules.enabled {
            return Ok(());
        }
        let pass = Pass {
            at: self.now(),
            dry_run: false,
            rules,
            layers: Layer::ALL.to_vec(),
            actor: Actor::system("decay"),
            viewer: None,
            onlooker: Onlooker::Member,
        };
        let mut report = pass.report();
        self.fade_tenant(&pass, None, &mut report).await?;
        if report.decayed + report.archived > 0 {
            tracing::info!(decayed = report.decayed, archived = report.archived, "memories have faded");
        }
        Ok(())
    }

    async fn fade_tenant(
        &self,
        pass: &Pass,
        tenant: Option<&Tenant>,
        report: &mut DecayReport,
    ) -> Result<()> {
        let mut after = ScopeNo(0);
        loop {
            let tenant = tenant.cloned();
            let page = self
                .cx
                .store
                .read(tenant.clone(), "list_scopes", move |tx| {
                    Ok::<_, Error>(scopes::after(tx, tenant.as_ref(), after, STEP)?)
                })
                .await?;
            let Some((last, _)) = page.last() else { return Ok(()) };
            after = last.no;
            for (_, scope) in page {
                self.fade_scope(pass, scope, report).await?;
            }
        }
    }

    async fn fade_scope(&self, pass: &Pass, scope: ScopeKey, report: &mut DecayReport) -> Result<()> {
        if !pass.layers.contains(&scope.layer()) {
            return Ok(());
        }
        if self.own_span(pass.onlooker, &scope).await?.is_empty() {
            return Ok(());
        }
        // Working entries never fade, but they are entries that were looked at.
        for store in self.parts.store.all().map(Half::store) {
            self.fade_stored(pass, store, &scope, report).await?;
        }
        Ok(())
    }

    async fn fade_stored(
        &self,
        pass: &Pass,
        store: &Store,
        scope: &ScopeKey,
        report: &mut DecayReport,
    ) -> Result<()> {
        let (mut after, now) = (MemoryNo(0), self.now());
        loop {
            let key = scope.clone();
            let page = store.read(scope.tenant(), "list_entries_to_fade", move |tx| {
                let Some(row) = scopes::find(tx, &key)? else { return Ok(Vec::new()) };
                let page = entries::after(tx, row.no, after, STEP)?;
                page.into_iter()
                    .map(|stored| entries::with_embedding(tx, stored))
                    .collect::<Result<Vec<_>, _>>()
            });
            let page = page.await.map_err(Error::from)?;
            let Some(last) = page.last() else { return Ok(()) };
            after = last.no;
            for memory in page.into_iter().map(|stored| stored.memory).filter(|memory| memory.is_live(now)) {
                self.fade_one(pass, memory, report).await?;
            }
        }
    }

    async fn fade_one(&self, pass: &Pass, memory: Memory, report: &mut DecayReport) -> Result<()> {
        if pass.viewer.as_ref().is_some_and(|viewer| !viewer.sees(&memory.policy, &memory.created_by)) {
            return Ok(());
        }
        let Some(judgement) = pass.rules.judge(&memory, memory.embedding.is_some(), pass.at) else {
            report.skipped += 1;
            return Ok(());
        };
        report.processed += 1;
        let (previous, state) = (memory.state, judgement.state);
        if report.entries.len() < NAMED * 8 {
            let (id, layer, relevance) = (memory.id, memory.scope.layer(), judgement.relevance);
            report.entries.push(FadedMemory { id, layer, relevance, previous, state });
        }
        if previous == state {
            return Ok(());
        }
        match state {
            State::Decayed => report.decayed += 1,
            State::Archived => report.archived += 1,
            State::Created | State::Active => {}
        }
        if pass.dry_run {
            return Ok(());
        }
        let mut faded = memory.clone();
        match state {
            State::Archived => faded.archive(self.now()),
            state => {
                faded.state = state;
                faded.touch(self.now());
            }
        }
        let mut journal = self.journal(pass.actor.clone(), faded.updated_at, 1, "decay");
        let name = match state {
            State::Archived => "archived",
            State::Decayed => "decayed",
            State::Created | State::Active => "restored",
        };
        journal.milestones.push((0, Milestone { name, details: json!({"relevance": judgement.relevance}) }));
        let write = Write::Replace { memory: Arc::new(faded), current: Writable::by_task(memory) };
        // One that changed meanwhile is looked at by the next pass.
        if self.write(vec![write], journal).await? == WriteOutcome::Done && state == State::Archived {
            metrics::counter!("memory_decay_archived_total").increment(1);
        }
        Ok(())
    }
}
