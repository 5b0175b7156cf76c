//! The end of a session, and clearing.

use super::Memories;
use super::access::Writable;
use super::journal::Actor;
use super::lifecycle::Promoted;
use super::listing::Onlooker;
use super::memory_store::ScanQuery;
use super::writing::{Write, WriteOutcome};
use crate::quota::CallKind;
use memtrove_core::identity::Tenant;
use memtrove_core::memories::promote::{self, PromotionBlock, PromotionDecision};
use memtrove_core::memories::{
    Author, ClearMemories, Conditions, EndSession, Kind, Layer, Memory, MemoryCaller, MemoryId, Position,
    ScopeKey, SessionEnd, Viewer,
};
use memtrove_core::{Result, Timestamp};
use memtrove_store::memories::{entries, writing};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

/// Entries that are read and removed at a time.
const STEP: usize = 500;

/// What became of a session's entries.
#[derive(Debug, Clone)]
pub struct EndedSession {
    /// The session.
    pub scope: ScopeKey,
    /// When it ended.
    pub ended_at: Timestamp,
    /// How many could be promoted.
    pub evaluated: usize,
    /// Those that were.
    pub promoted: Vec<SessionPromotion>,
    /// Those that must not be, and why.
    pub blocked: Vec<(MemoryId, PromotionBlock)>,
    /// How many went.
    pub deleted: usize,
    /// How many stay.
    pub retained: usize,
}

/// How long after its expiry an entry that cannot be promoted is kept for another try.
const LONGEST_WAIT_MICROS: i64 = 24 * 3600 * 1_000_000;

/// A user of a tenant.
type UserName = (Tenant, String);

/// What one sweep may still promote.
pub(super) struct PromotionBudget {
    left: usize,
    /// Users to whom nothing could be copied: they are not tried again before the next sweep.
    failed: BTreeSet<UserName>,
}

impl PromotionBudget {
    /// Up to this many entries.
    pub(super) fn new(most: usize) -> Self {
        Self { left: most, failed: BTreeSet::new() }
    }
}

/// An entry that outlives its session.
#[derive(Debug, Clone, Copy)]
pub struct SessionPromotion {
    /// The entry.
    pub from: MemoryId,
    /// Its copy.
    pub to: MemoryId,
    /// How much it matters.
    pub score: f64,
    /// Whether the copy was there already.
    pub deduplicated: bool,
}

impl Memories {
    /// Ends a session: what matters is copied to its user, the rest goes or stays as asked.
    pub async fn end_session(&self, caller: &MemoryCaller, request: EndSession) -> Result<EndedSession> {
        let SessionEnd { scope, identifiers, rules, as_of } = request.check(self.rules(), caller)?;
        let caller = &*self.charge_once(caller, &identifiers, CallKind::Write).await?;
        // Whether something matters depends on how often it was found.
        self.write_uses().await?;
        let ended_at = as_of.unwrap_or_else(|| self.now());
        let everything = Conditions { include_archived: true, ..Conditions::default() };
        let all = self.everything(caller, &scope, everything).await?;
        let (working, kept): (Vec<_>, Vec<_>) =
            all.into_iter().partition(|memory| memory.kind == Kind::Working);
        let (mut promoted, mut blocked) = (Vec::new(), Vec::new());
        let (mut important, mut scores) = (Vec::<Memory>::new(), Vec::new());
        if rules.promote_important {
            for memory in &kept {
                match promote::decide(memory, self.relevance(memory), rules.promotion_threshold) {
                    PromotionDecision::Promote { score } => {
                        important.push(memory.clone());
                        scores.push(score);
                    }
                    PromotionDecision::Blocked(reason) => blocked.push((memory.id, reason)),
                    PromotionDecision::Stay => {}
                }
            }
            if let Some(target) = user_of(&scope) {
                let actor = self.actor(caller, &identifiers);
                // One that changed meanwhile stays as it is, for the next time.
                let copies = self.copy_all(&important, &target, &actor, true).await?;
                promoted.extend(important.iter().zip(scores).zip(copies).filter_map(
                    |((memory, score), copy)| {
                        let Promoted { memory: copy, deduplicated } = copy?;
                        Some(SessionPromotion { from: memory.id, to: copy.id, score, deduplicated })
                    },
                ));
            }
        }
        let evaluated = kept.len();
        let mut deleted = self.remove(caller, working, "session end").await?;
        let mut retained = kept.len();
        // Not those that were chosen, also if something came between: these wait. A later version has not been passed over.
        let chosen: HashSet<MemoryId> = important.iter().map(|memory| memory.id).collect();
        let passed_over =
            |memory: &&Memory| memory.lineage.promoted_to.is_none() && !chosen.contains(&memory.id);
        let passed_over: Vec<&Memory> = kept.iter().filter(passed_over).collect();
        self.amend_all(&passed_over, |memory, version| memory.lineage.passed_over = Some(version)).await?;
        if rules.auto_delete && rules.retention_seconds == 0 {
            let gone = self.remove(caller, kept, "session end").await?;
            (deleted, retained) = (deleted + gone, retained - gone);
        } else if rules.auto_delete {
            let until = ended_at.saturating_add_micros(rules.retention_seconds.saturating_mul(1_000_000));
            // Neither a version nor a renewal.
            let tighten = move |memory: &mut Memory, _| {
                memory.expires_at = Some(memory.expires_at.map_or(until, |at| at.min(until)));
            };
            self.amend_all(&kept.iter().collect::<Vec<_>>(), tighten).await?;
        }
        Ok(EndedSession { scope, ended_at, evaluated, promoted, blocked, deleted, retained })
    }

    /// Removes the entries of some kinds from one scope.
    pub async fn clear(&self, caller: &MemoryCaller, request: ClearMemories) -> Result<usize> {
        let request = request.check(self.rules(), caller)?;
        let caller = &*self.charge(caller, CallKind::Write, |_| request.viewer.user.clone()).await?;
        let conditions = Conditions { kinds: Some(request.kinds), ..Conditions::default() };
        let mut all = self.everything(caller, &request.scope, conditions).await?;
        all.retain(|memory| {
            request.viewer.sees(&memory.policy, &memory.created_by) && memory.lineage.mirror_of.is_none()
        });
        self.remove(caller, all, "clear").await
    }

    /// Every live entry of exactly one scope, hidden ones too.
    async fn everything(
        &self,
        caller: &MemoryCaller,
        scope: &ScopeKey,
        conditions: Conditions,
    ) -> Result<Vec<Memory>> {
        let spans = self.own_span(Onlooker::of(caller), scope).await?;
        let mut all: Vec<Memory> = Vec::new();
        loop {
            let query = ScanQuery {
                viewer: Viewer { all: true, ..Viewer::default() },
                conditions: conditions.clone(),
                after: all.last().map(Position::of),
                limit: STEP,
                with_embeddings: true,
                now: self.now(),
            };
            let page = self.parts.store.scan(spans.clone(), query).await?;
            let last = page.memories.len() < STEP;
            all.extend(page.memories);
            if last {
                return Ok(all);
            }
        }
    }

    /// Removes entries; says how many were still there.
    pub(super) async fn remove(
        &self,
        caller: &MemoryCaller,
        memories: Vec<Memory>,
        reason: &'static str,
    ) -> Result<usize> {
        let mut removed = 0;
        let memories = memories.into_iter().map(|memory| Writable::by(caller, memory));
        let (working, lasting): (Vec<_>, Vec<_>) =
            memories.collect::<Result<Vec<_>>>()?.into_iter().partition(|one| Self::is_volatile(one.kind));
        for step in working.chunks(STEP).chain(lasting.chunks(STEP)) {
            let actor = self.actor(caller, &Default::default());
            let writes: Vec<Write> = step.iter().cloned().map(Write::Remove).collect();
            let journal = self.journal(actor.clone(), self.now(), writes.len(), reason);
            if self.write(writes, journal).await? == WriteOutcome::Done {
                removed += step.len();
                continue;
            }
            // Somebody changed or removed one of them: each by itself.
            for memory in step {
                let journal = self.journal(actor.clone(), self.now(), 1, reason);
                let done = self.write(vec![Write::Remove(memory.clone())], journal).await?;
                removed += usize::from(done == WriteOutcome::Done);
            }
        }
        Ok(removed)
    }

    /// Notes something at entries that is no version of theirs; it is told the version that was read.
    async fn amend_all(
        &self,
        memories: &[&Memory],
        amend: impl Fn(&mut Memory, i64) + Clone + Send + Sync + 'static,
    ) -> Result<()> {
        for step in memories.chunks(STEP) {
            let Some(tenant) = step.first().map(|memory| memory.scope.tenant().clone()) else { continue };
            let read: Vec<_> = step.iter().map(|memory| (memory.id, memory.version)).collect();
            let amend = amend.clone();
            self.cx
                .store
                .write(tenant.clone(), "amend_memories", move |tx| {
                    for (id, version) in &read {
                        let Some(mut stored) = entries::get(tx, &tenant, *id)? else { continue };
                        amend(&mut stored.memory, *version);
                        writing::amend(tx, &stored)?;
                    }
                    Ok::<_, memtrove_core::Error>(())
                })
                .await?;
        }
        Ok(())
    }

    /// Copies what matters of entries that have expired to the users of their sessions, as the end of these would; gives back
    /// those that may go. The others wait: no more are copied than the budget has left, and a copy may fail.
    pub(super) async fn promote_expired(
        &self,
        expired: Vec<Memory>,
        budget: &mut PromotionBudget,
    ) -> Vec<Memory> {
        let rules = self.rules();
        if !rules.session.promote_important || rules.check_layer(Layer::User).is_err() {
            return expired;
        }
        let (mut done, mut users) = (Vec::new(), BTreeMap::<UserName, Vec<Memory>>::new());
        for memory in expired {
            let relevance = self.relevance_at(&memory, memory.expires_at.unwrap_or_else(|| self.now()));
            let outlives = promote::outlives_session(&memory, relevance, rules);
            match memory.scope.user().filter(|_| outlives).map(str::to_owned) {
                Some(user) => users.entry((memory.scope.tenant().clone(), user)).or_default().push(memory),
                None => done.push(memory),
            }
        }
        for (user, mut important) in users {
            if budget.failed.contains(&user) {
                continue;
            }
            important.truncate(budget.left);
            match self.carry_over(&important).await {
                Ok(waiting) => {
                    important.retain(|memory| !waiting.contains(&memory.id));
                    budget.left -= important.len();
                    done.extend(important);
                }
                Err(error) => {
                    tracing::warn!(%error, "what matters in a session could not be promoted; trying again later");
                    done.extend(self.promote_or_give_up(important, budget).await);
                    budget.failed.insert(user);
                }
            }
        }
        done
    }

    /// Tries those that have waited for long, each by itself: one that cannot be copied must not hold up the others for ever. Gives
    /// back those that may go, copied or not.
    async fn promote_or_give_up(&self, important: Vec<Memory>, budget: &mut PromotionBudget) -> Vec<Memory> {
        let since = self.now().saturating_add_micros(-LONGEST_WAIT_MICROS);
        let mut done = Vec::new();
        for memory in important {
            if memory.expires_at.is_none_or(|expired| expired > since) {
                continue;
            }
            match self.carry_over(std::slice::from_ref(&memory)).await {
                Ok(waiting) if waiting.is_empty() => budget.left -= 1,
                Ok(_) => continue,
                Err(error) => {
                    tracing::warn!(id = %memory.id, %error, "what matters in a session was not promoted and goes");
                }
            }
            done.push(memory);
        }
        done
    }

    /// Copies entries of one user's sessions, which nobody ended, to the user; says which have to wait, because something came
    /// between. Those of a conversation that was deleted are not copied: the user asked for them to go.
    async fn carry_over(&self, important: &[Memory]) -> Result<HashSet<MemoryId>> {
        let Some(target) = important.first().and_then(|memory| user_of(&memory.scope)) else {
            return Ok(HashSet::new());
        };
        let mut there = HashMap::new();
        for memory in important {
            if !there.contains_key(&memory.scope) {
                let spans = self.own_span(Onlooker::Member, &memory.scope).await?;
                there.insert(memory.scope.clone(), !spans.is_empty());
            }
        }
        let of_sessions = important.iter().filter(|memory| there.get(&memory.scope) == Some(&true));
        let sources = self.with_embeddings(of_sessions).await?;
        let author = Author { user: target.user().map(str::to_owned), client: None };
        let actor = Actor { author, ..Actor::system("session expiry") };
        let copied = self.copy_all(&sources, &target, &actor, true).await?;
        let waiting = sources.iter().zip(copied).filter(|(_, copy)| copy.is_none());
        Ok(waiting.map(|(source, _)| source.id).collect())
    }

    /// Entries of the primary store with their embeddings, so that copies need not be embedded again.
    async fn with_embeddings(&self, memories: impl Iterator<Item = &Memory>) -> Result<Vec<Memory>> {
        let mut whole = Vec::new();
        for memory in memories {
            whole.extend(self.parts.store.get(memory.scope.tenant(), memory.id).await?);
        }
        Ok(whole)
    }
}

/// The scope of the user of a session.
fn user_of(session: &ScopeKey) -> Option<ScopeKey> {
    let user = vec![session.user()?.to_owned()];
    ScopeKey::listed(session.tenant().clone(), Layer::User, user)
}
