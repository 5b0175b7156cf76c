//! Merging entries of one scope that say the same.

use super::Memories;
use super::access::Writable;
use super::journal::{Actor, Milestone};
use super::listing::Onlooker;
use super::memory_store::ScanQuery;
use super::ranking::comparable;
use super::writing::{Write, WriteOutcome};
use crate::lease;
use crate::quota::CallKind;
use memtrove_core::Result;
use memtrove_core::memories::consolidate::{self, MergeCandidate};
use memtrove_core::memories::{
    Conditions, ConsolidateRequest, Kind, Memory, MemoryCaller, MemoryId, Position, ScopeHash, ScopeKey,
    Viewer,
};
use memtrove_recall::embed::Space;
use serde_json::json;
use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

/// Entries that a page of a scope has.
const PAGE: usize = 500;
/// Scopes with more entries are merged in part: the work grows with the square.
const MOST: usize = 20_000;

/// The scopes that are being merged here: at most one at a time each. That, and the lease that keeps other nodes from the same
/// scope, saves work and no more: of two that merge the same entries one finds them at other versions, and leaves them.
#[derive(Default)]
pub(super) struct UnderWay(Mutex<HashSet<ScopeHash>>);

impl UnderWay {
    /// Whether it was not under way yet.
    fn begin(&self, scope: ScopeHash) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(scope)
    }

    fn end(&self, scope: ScopeHash) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&scope);
    }
}

/// What a consolidation did, or would do.
#[derive(Debug, Clone)]
pub struct ConsolidationReport {
    /// The entries that stay, each with those it absorbed.
    pub groups: Vec<(MemoryId, Vec<MemoryId>)>,
    /// How many were looked at.
    pub examined: usize,
}

impl Memories {
    /// Merges entries of a scope.
    pub async fn consolidate(
        &self,
        caller: &MemoryCaller,
        request: ConsolidateRequest,
    ) -> Result<ConsolidationReport> {
        let request = request.check(self.rules(), caller)?;
        let user = |caller: &MemoryCaller| caller.speaks_for(request.scope.user());
        let caller = &*self.charge(caller, CallKind::Write, user).await?;
        let actor = self.actor(caller, &Default::default());
        let viewer = (caller.viewer(&request.scope.identifiers()), Onlooker::of(caller));
        let threshold = request.similarity_threshold;
        self.merge(&request.scope, threshold, request.dry_run, actor, viewer).await
    }

    /// Merges a scope that an add made too large, in the background and once at a time.
    pub(super) fn consolidate_later(&self, scope: ScopeKey) {
        if !self.parts.consolidating.begin(scope.hash()) {
            return;
        }
        let memories = self.clone();
        tokio::spawn(async move {
            let threshold = memories.rules().consolidation.similarity_threshold;
            let actor = Actor::system("consolidation");
            let everybody = (Viewer { all: true, ..Viewer::default() }, Onlooker::Member);
            let merge = memories.merge(&scope, threshold, false, actor, everybody);
            let name = lease::of_scope("merge", &scope);
            let merged = lease::alone(&memories.cx, &name, merge).await.and_then(Option::transpose);
            if let Err(error) = merged {
                tracing::warn!(%error, "memories could not be merged; the next add tries again");
            }
            memories.parts.consolidating.end(scope.hash());
        });
    }

    /// Merges what the caller sees: a caller puts away only what it knows of.
    async fn merge(
        &self,
        scope: &ScopeKey,
        threshold: f64,
        dry_run: bool,
        actor: Actor,
        (viewer, onlooker): (Viewer, Onlooker),
    ) -> Result<ConsolidationReport> {
        let memories = self.candidates(scope, viewer, onlooker).await?;
        let space = self.cx.embeddings.space().cloned();
        let candidates: Vec<MergeCandidate<'_>> =
            memories.iter().map(|memory| candidate(memory, space.as_ref())).collect();
        let examined = candidates.iter().filter(|one| consolidate::takes_part(one.memory)).count();
        let groups = consolidate::groups(&candidates, threshold);
        let mut done = Vec::with_capacity(groups.len());
        for group in &groups {
            if !dry_run {
                let now = self.now();
                let survivor = consolidate::survivor(group, now);
                let replace = |current: &Memory, memory| {
                    let current = Writable::by_task(current.clone());
                    Write::Replace { memory: Arc::new(memory), current }
                };
                let mut writes = vec![replace(group.leader, survivor)];
                for memory in &group.absorbed {
                    let absorbed = consolidate::absorbed(memory, group.leader.id, now);
                    writes.push(replace(memory, absorbed));
                }
                let mut journal = self.journal(actor.clone(), now, writes.len(), "consolidate");
                let ids: Vec<String> = group.absorbed.iter().map(|memory| memory.id.to_string()).collect();
                let details = json!({"absorbed": ids});
                journal.milestones.push((0, Milestone { name: "consolidated", details }));
                for number in 1..writes.len() {
                    let details = json!({"supersededBy": group.leader.id.to_string()});
                    journal.milestones.push((number, Milestone { name: "archived", details }));
                }
                // A group that changed meanwhile is left for the next time.
                if self.write(writes, journal).await? != WriteOutcome::Done {
                    continue;
                }
                metrics::counter!("memory_consolidations_total").increment(1);
            }
            done.push((group.leader.id, group.absorbed.iter().map(|memory| memory.id).collect()));
        }
        Ok(ConsolidationReport { groups: done, examined })
    }

    async fn candidates(&self, scope: &ScopeKey, viewer: Viewer, onlooker: Onlooker) -> Result<Vec<Memory>> {
        let spans = self.own_span(onlooker, scope).await?;
        let mut all: Vec<Memory> = Vec::new();
        loop {
            let query = ScanQuery {
                viewer: viewer.clone(),
                conditions: Conditions::default(),
                after: all.last().map(Position::of),
                limit: PAGE,
                with_embeddings: true,
                now: self.now(),
            };
            let page = self.parts.store.scan(spans.clone(), query).await?;
            let last = page.memories.len() < PAGE;
            all.extend(page.memories);
            if last || all.len() >= MOST {
                all.retain(|memory| memory.kind != Kind::Working);
                return Ok(all);
            }
        }
    }
}

fn candidate<'a>(memory: &'a Memory, space: Option<&Space>) -> MergeCandidate<'a> {
    MergeCandidate { memory, vector: space.and_then(|space| comparable(memory, space)) }
}
