//! Fading: a pass that looks at entries from a time and gives them the state their relevance asks for.

use super::Memories;
use super::journal::{Actor, Milestone};
use super::listing::Onlooker;
use super::memory_store::Half;
use super::writing::{Write, WriteOutcome};
use memtrove_core::identity::Tenant;
use memtrove_core::memories::{
    DecayRequest, DecayRules, Layer, Memory, MemoryCaller, ScopeKey, State, Viewer,
};
use memtrove_core::{Error, Result, Timestamp};
use memtrove_store::Store;
use memtrove_store::memories::{MemoryNo, ScopeNo, entries, scopes};
use serde_json::{Value, json};
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

/// What a pass found.
#[derive(Default)]
struct Report {
    processed: u64,
    decayed: u64,
    archived: u64,
    skipped: u64,
    entries: Vec<(memtrove_core::memories::MemoryId, Value)>,
}

impl Memories {
    /// Runs a pass over some scopes, or over the tenant.
    pub async fn decay(&self, caller: &MemoryCaller, body: &Value) -> Result<Value> {
        let request = DecayRequest::read(body, self.rules(), caller)?;
        let mut pass = Pass {
            at: request.as_of.unwrap_or_else(|| self.now()),
            dry_run: request.dry_run,
            rules: request.rules,
            layers: request.layers,
            actor: self.actor(caller, &Default::default()),
            viewer: None,
            onlooker: Onlooker::of(caller),
        };
        let mut report = Report::default();
        match request.scopes {
            Some(scopes) => {
                for scope in scopes {
                    pass.viewer = Some(caller.viewer(&scope.identifiers()));
                    self.fade_scope(&pass, scope, &mut report).await?;
                }
            }
            None => self.fade_tenant(&pass, Some(caller.tenant()), &mut report).await?,
        }
        report.entries.sort_by_key(|(id, _)| *id);
        report.entries.truncate(NAMED);
        Ok(json!({
            "asOf": pass.at.to_string(),
            "dryRun": pass.dry_run,
            "processed": report.processed,
            "decayed": report.decayed,
            "archived": report.archived,
            "skipped": report.skipped,
            "entries": report.entries.into_iter().map(|(_, entry)| entry).collect::<Vec<_>>(),
        }))
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
        let mut report = Report::default();
        self.fade_tenant(&pass, None, &mut report).await?;
        if report.decayed + report.archived > 0 {
            tracing::info!(decayed = report.decayed, archived = report.archived, "memories have faded");
        }
        Ok(())
    }

    async fn fade_tenant(&self, pass: &Pass, tenant: Option<&Tenant>, report: &mut Report) -> Result<()> {
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

    async fn fade_scope(&self, pass: &Pass, scope: ScopeKey, report: &mut Report) -> Result<()> {
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
        report: &mut Report,
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

    async fn fade_one(&self, pass: &Pass, memory: Memory, report: &mut Report) -> Result<()> {
        if pass.viewer.as_ref().is_some_and(|viewer| !viewer.sees(&memory.policy, &memory.created_by)) {
            return Ok(());
        }
        let Some(judgement) = pass.rules.judge(&memory, memory.embedding.is_some(), pass.at) else {
            report.skipped += 1;
            return Ok(());
        };
        report.processed += 1;
        let (previous, state) = (memory.state, judgement.state);
        let entry = json!({
            "id": memory.id.to_string(),
            "layer": memory.scope.layer().as_str(),
            "relevance": judgement.relevance,
            "previousState": previous.as_str(),
            "state": state.as_str(),
        });
        if report.entries.len() < NAMED * 8 {
            report.entries.push((memory.id, entry));
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
        let write = Write::Replace { memory: Arc::new(faded), expected: memory.version };
        // One that changed meanwhile is looked at by the next pass.
        if self.write(vec![write], journal).await? == WriteOutcome::Done && state == State::Archived {
            metrics::counter!("memory_decay_archived_total").increment(1);
        }
        Ok(())
    }
}
