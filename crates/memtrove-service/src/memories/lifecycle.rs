//! The life of one entry: archive, restore, promote.

use super::Memories;
use super::access::Writable;
use super::entries::settle_state;
use super::forget::Source;
use super::memory_store::ScanQuery;
use super::ranking::comparable;
use super::scope_search::Span;
use super::writing::{Write, WriteOutcome, possible, terms_of};
use crate::lease;
use crate::quota::CallKind;
use memtrove_core::memories::duplicate::{self, Profile};
use memtrove_core::memories::promote;
use memtrove_core::memories::{
    Assertion, Author, Code, Conditions, Kind, Memory, MemoryCaller, MemoryId, Precondition, Promote,
    ScopeKey, State, Viewer,
};
use memtrove_core::{Error, Result};
use memtrove_recall::embed::Space;
use memtrove_store::Tx;
use memtrove_store::memories::entries;
use memtrove_store::memories::writing::Writing;
use serde_json::json;
use std::collections::HashSet;
use std::sync::Arc;

use super::journal::{Entry, Milestone, Told};

/// An entry that was copied to another scope.
#[derive(Debug, Clone)]
pub struct Promoted {
    /// The copy, or the entry that says the same there.
    pub memory: Memory,
    /// Whether there was one already.
    pub deduplicated: bool,
}

impl Memories {
    /// Puts an entry away.
    pub async fn archive(
        &self,
        caller: &MemoryCaller,
        id: MemoryId,
        precondition: &Precondition,
    ) -> Result<Memory> {
        self.move_kind(caller, id, "archived", |memory| {
            refuse_mirror(memory)?;
            precondition.check(memory)?;
            if memory.state == State::Archived {
                return Err(invalid_state("the memory is archived already", memory));
            }
            let mut archived = memory.clone();
            archived.archive(self.now());
            Ok(archived)
        })
        .await
    }

    /// Brings an entry back.
    pub async fn restore(
        &self,
        caller: &MemoryCaller,
        id: MemoryId,
        precondition: &Precondition,
    ) -> Result<Memory> {
        self.move_kind(caller, id, "restored", |memory| {
            refuse_mirror(memory)?;
            precondition.check(memory)?;
            if memory.state != State::Archived {
                return Err(invalid_state("the memory is not archived", memory));
            }
            let mut restored = memory.clone();
            restored.restore(self.now());
            settle_state(&mut restored);
            Ok(restored)
        })
        .await
    }

    /// Gives an entry another kind. Where the other half keeps that, it is written there before it is removed here.
    async fn move_kind(
        &self,
        caller: &MemoryCaller,
        id: MemoryId,
        milestone: &'static str,
        change: impl Fn(&Memory) -> Result<Memory>,
    ) -> Result<Memory> {
        let caller = &*self.charge(caller, CallKind::Write, |caller| caller.speaks_for(None)).await?;
        let _turn = self.turn(id).await;
        loop {
            let current = self.reach_to_write(caller, id, &Assertion::default()).await?;
            let next = Arc::new(change(&current)?);
            self.refuse_restated(&next).await?;
            let actor = self.actor(caller, &Default::default());
            let mut journal = self.journal(actor, next.updated_at, 1, milestone);
            journal.milestones.push((0, Milestone { name: milestone, details: json!({}) }));
            let moved = match (Self::is_volatile(current.kind), Self::is_volatile(next.kind)) {
                (true, false) => self.make_lasting(&current, &next, journal).await?,
                (false, true) => self.make_working(&current, &next, journal).await?,
                _ => {
                    let write = Write::Replace { memory: next.clone(), current };
                    self.write(vec![write], journal).await? == WriteOutcome::Done
                }
            };
            if moved {
                return Ok(Memory::clone(&next));
            }
        }
    }

    /// Moves an entry out of working memory; says whether it was still as it was.
    async fn make_lasting(&self, current: &Writable, next: &Arc<Memory>, mut journal: Entry) -> Result<bool> {
        let sources = self.sources(std::slice::from_ref(current), false).await?;
        let Some(source) = sources.into_iter().next().flatten() else { return Ok(false) };
        journal.sources.push(source);
        if self.write(vec![Write::Insert(next.clone())], journal).await? != WriteOutcome::Done {
            return Ok(false);
        }
        self.remove_working(Memory::clone(current)).await;
        Ok(true)
    }

    /// Moves an entry into working memory; says whether it was still as it was. What is told of it is told where it lasted, in the
    /// unit of work that removes it there.
    async fn make_working(&self, current: &Writable, next: &Arc<Memory>, journal: Entry) -> Result<bool> {
        let (terms, memory) = (terms_of(&self.cx, next), next.clone());
        let arrive = move |tx: &mut dyn Tx| {
            // What lasts is the truth: a copy that a move left here when it was cut off goes first.
            if let Some(left) = entries::get(tx, memory.scope.tenant(), memory.id)? {
                let mut writing = Writing::default();
                writing.remove(tx, &left.memory, None)?;
                writing.finish(tx)?;
            }
            let free = possible(tx, &Write::Insert(memory.clone()))?;
            if free {
                let mut writing = Writing::default();
                writing.insert(tx, &memory, &terms)?;
                writing.finish(tx)?;
            }
            Ok::<_, Error>(free)
        };
        if !self.parts.store.volatile.store().write(current.scope.tenant(), "move_memory", arrive).await? {
            return Ok(false);
        }
        let (gone, write) =
            (current.clone(), Write::Replace { memory: next.clone(), current: current.clone() });
        let leave = move |tx: &mut dyn Tx| {
            let writes = std::slice::from_ref(&write);
            journal.take_turn(tx, writes)?;
            let mut writing = Writing::default();
            if !writing.remove(tx, &gone, None)? {
                return Ok(None);
            }
            writing.finish(tx)?;
            journal.tell(tx, writes).map(Some)
        };
        let publish = self.publish();
        let publish = move |told: &Option<Told>| {
            if let Some(told) = told {
                publish(told);
            }
        };
        let left = self.cx.store.write_then(current.scope.tenant(), "move_memory", leave, publish).await;
        // Where nobody knows whether it left, it stays: an entry in both halves is one, an entry in none is lost.
        if !matches!(left, Ok(Some(_)) | Err(Error { code: Code::Timeout, .. })) {
            self.remove_working(Memory::clone(next)).await;
        }
        Ok(left?.is_some())
    }

    /// Removes an entry of working memory that lasts elsewhere now, or was never to be there. Nobody is told.
    async fn remove_working(&self, memory: Memory) {
        let tenant = memory.scope.tenant().clone();
        let removed = self.parts.store.volatile.store().write(tenant, "move_memory", move |tx| {
            let mut writing = Writing::default();
            writing.remove(tx, &memory, None)?;
            writing.finish(tx)?;
            Ok::<_, Error>(())
        });
        if let Err(error) = removed.await {
            tracing::warn!(%error, "a memory that moved could not be removed where it was");
        }
    }

    /// Copies an entry to another layer.
    pub async fn promote(&self, caller: &MemoryCaller, id: MemoryId, request: &Promote) -> Result<Promoted> {
        self.rules().check_layer(request.target_layer)?;
        let caller = &*self.charge_once(caller, &request.identifiers, CallKind::Write).await?;
        loop {
            let source = self.reach(caller, id, &Assertion::default()).await?;
            let target = request.target(&source, caller)?;
            if source.state == State::Archived {
                return Err(invalid_state("the memory is archived; restore it first", &source));
            }
            request.precondition.check(&source)?;
            if let Some(block) = promote::block(&source) {
                let message = "the memory is marked sensitive or private and is never promoted";
                return Err(Error::new(Code::Forbidden, message).with("reason", block.as_str()));
            }
            let actor = self.actor(caller, &request.identifiers);
            let copied = self.copy_all(std::slice::from_ref(&source), &target, &actor, false).await?;
            if let Some(promoted) = copied.into_iter().flatten().next() {
                return Ok(promoted);
            }
        }
    }

    /// Copies entries to a scope unless something there says the same, and links the two. `None` for one that is not what it was
    /// any more, or was copied before and is to be copied `once`: nothing is copied of it.
    pub(super) async fn copy_all(
        &self,
        sources: &[Memory],
        target: &ScopeKey,
        actor: &super::Actor,
        once: bool,
    ) -> Result<Vec<Option<Promoted>>> {
        let mut copies = Vec::with_capacity(sources.len());
        for source in sources {
            copies.push(ComparedMemory::of(self.copy_of(source, target, actor).await?));
        }
        // One after the other: two that look for a duplicate at the same time would both find none.
        let _turn = self.parts.promoting.take(target.hash()).await;
        let name = lease::of_scope("promote", target);
        lease::in_turn(&self.cx, &name, self.copy_alone(sources, &copies, target, actor, once)).await
    }

    async fn copy_alone(
        &self,
        sources: &[Memory],
        copies: &[ComparedMemory],
        target: &ScopeKey,
        actor: &super::Actor,
        once: bool,
    ) -> Result<Vec<Option<Promoted>>> {
        // One that the actor may not see must not be named.
        let Author { user, client } = actor.author.clone();
        let viewer = Viewer { user, client, ..Viewer::default() };
        let there = self.saying_the_same(target, copies, &viewer).await?;
        let read = self.sources(sources, once).await?;
        let mut promoted: Vec<Option<Promoted>> = vec![None; sources.len()];
        let mut new: Vec<NewCopy<'_>> = Vec::new();
        let mut seen: Vec<&ComparedMemory> = Vec::new();
        for (number, (((source, copy), there), read)) in
            sources.iter().zip(copies).zip(there).zip(read).enumerate()
        {
            tokio::task::yield_now().await;
            let Some(read) = read else { continue };
            let same = || seen.iter().find(|made| made.says_the_same(copy)).map(|made| made.memory.clone());
            if let Some(same) = there.or_else(same) {
                promoted[number] = Some(Promoted { memory: Memory::clone(&same), deduplicated: true });
                continue;
            }
            if viewer.sees(&copy.memory.policy, &copy.memory.created_by) {
                seen.push(copy);
            }
            new.push(NewCopy { number, source, read, memory: copy.memory.clone() });
        }
        let mut missing = HashSet::new();
        for step in new.chunks(COPIED_AT_ONCE) {
            let mut made_here = Vec::with_capacity(step.len());
            for (copy, made) in step.iter().zip(self.insert_copies(step, actor).await?) {
                match made {
                    true => {
                        let memory = Memory::clone(&copy.memory);
                        promoted[copy.number] = Some(Promoted { memory, deduplicated: false });
                        made_here.push((copy.source, copy.memory.id));
                    }
                    false => drop(missing.insert(copy.memory.id)),
                }
            }
            // Right away: if a later step fails, these are not copied once more.
            self.link(&made_here).await?;
        }
        // What says the same as a copy that could not be made waits, as that does.
        for one in &mut promoted {
            one.take_if(|promoted| missing.contains(&promoted.memory.id));
        }
        let told = sources.iter().zip(&promoted);
        let told =
            told.filter_map(|(source, one)| Some((source, one.as_ref().filter(|one| one.deduplicated)?)));
        let links: Vec<_> = told.map(|(source, one)| (source, one.memory.id)).collect();
        for step in links.chunks(COPIED_AT_ONCE) {
            self.link(step).await?;
        }
        Ok(promoted)
    }

    /// What an entry becomes in another scope.
    async fn copy_of(&self, source: &Memory, target: &ScopeKey, actor: &super::Actor) -> Result<Arc<Memory>> {
        let id = self.new_id(Kind::default_in(target.layer()));
        let mut copy = promote::copy(source, target, id, actor.author.clone(), self.now());
        if copy.embedding.is_none() && source.embedding.is_some() {
            copy.embedding = self.embed(target.tenant().as_str(), &copy.content).await?;
        }
        settle_state(&mut copy);
        Ok(Arc::new(copy))
    }

    /// Stores copies, together if nothing came between; says which of them are stored.
    async fn insert_copies(&self, copies: &[NewCopy<'_>], actor: &super::Actor) -> Result<Vec<bool>> {
        let mut made = vec![self.try_copies(copies, actor).await?; copies.len()];
        if made.contains(&false) {
            for (copy, made) in copies.iter().zip(&mut made) {
                *made = self.insert_copy(copy, actor).await?;
            }
        }
        let stored = copies.iter().zip(&made).filter(|(_, made)| **made);
        let stored: Vec<Arc<Memory>> = stored.map(|(copy, _)| copy.memory.clone()).collect();
        metrics::counter!("memory_promotions_total").increment(stored.len() as u64);
        self.added(&stored).await;
        Ok(made)
    }

    /// Stores a copy, unless its source is not what it was any more.
    async fn insert_copy(&self, copy: &NewCopy<'_>, actor: &super::Actor) -> Result<bool> {
        loop {
            let sources = self.sources(std::slice::from_ref(copy.source), false).await?;
            let Some(read) = sources.into_iter().next().flatten() else { return Ok(false) };
            let again = NewCopy { read, ..copy.clone() };
            if self.try_copies(&[again], actor).await? {
                return Ok(true);
            }
        }
    }

    async fn try_copies(&self, copies: &[NewCopy<'_>], actor: &super::Actor) -> Result<bool> {
        let Some(first) = copies.first() else { return Ok(true) };
        let mut journal = self.journal(actor.clone(), first.memory.created_at, copies.len(), "promote");
        for (number, copy) in copies.iter().enumerate() {
            let layer = copy.memory.scope.layer().as_str();
            let details = json!({"from": copy.source.id.to_string(), "layer": layer});
            journal.milestones.push((number, Milestone { name: "promoted", details }));
            journal.sources.push(copy.read.clone());
        }
        let writes = copies.iter().map(|copy| Write::Insert(copy.memory.clone())).collect();
        Ok(self.write(writes, journal).await? == WriteOutcome::Done)
    }

    /// For each of these the entry of a scope that says the same. The scope is read once, page by page.
    async fn saying_the_same(
        &self,
        scope: &ScopeKey,
        copies: &[ComparedMemory],
        viewer: &Viewer,
    ) -> Result<Vec<Option<Arc<Memory>>>> {
        let mut there = vec![None; copies.len()];
        let mut after = None;
        loop {
            let query = ScanQuery {
                viewer: viewer.clone(),
                conditions: Conditions::default(),
                after,
                limit: SCANNED_AT_ONCE,
                with_embeddings: true,
                now: self.now(),
            };
            let span = Span { scope: scope.clone(), until: None };
            let page = self.parts.store.scan(vec![span], query).await?;
            after = page.memories.last().map(memtrove_core::memories::Position::of);
            let is_last = page.memories.len() < SCANNED_AT_ONCE;
            for memory in page.memories.into_iter().filter(|memory| memory.kind != Kind::Working) {
                let other = ComparedMemory::of(Arc::new(memory));
                for (copy, there) in copies.iter().zip(&mut there) {
                    if there.is_none() && copy.says_the_same(&other) {
                        *there = Some(other.memory.clone());
                    }
                }
                // With many copies this takes long.
                tokio::task::yield_now().await;
            }
            if is_last || there.iter().all(Option::is_some) {
                return Ok(there);
            }
        }
    }

    /// Notes on entries which ones they were copied to: neither a version nor a renewal.
    async fn link(&self, links: &[(&Memory, MemoryId)]) -> Result<()> {
        let Some((first, _)) = links.first() else { return Ok(()) };
        let tenant = first.scope.tenant().clone();
        let (working, lasting): (Vec<_>, Vec<_>) =
            links.iter().copied().partition(|(source, _)| Self::is_volatile(source.kind));
        for (half, links) in self.parts.store.all().into_iter().zip([lasting, working]) {
            if links.is_empty() {
                continue;
            }
            let links: Vec<_> = links.into_iter().map(|(source, copy)| (source.id, copy)).collect();
            let of = tenant.clone();
            let linked = half.store().write(tenant.clone(), "link_memories", move |tx| {
                for (id, copy) in &links {
                    let Some(mut stored) = entries::get(tx, &of, *id)? else { continue };
                    stored.memory.lineage.promoted_to = Some(*copy);
                    memtrove_store::memories::writing::amend(tx, &stored)?;
                }
                Ok(())
            });
            linked.await.map_err(|error: memtrove_store::StoreError| Error::from(error))?;
        }
        Ok(())
    }
}

/// Entries of a scope that are compared before the next are read.
const SCANNED_AT_ONCE: usize = 500;
/// Copies that are stored, and sources that are linked to theirs, in one unit of work.
const COPIED_AT_ONCE: usize = 200;

/// A copy that is to be stored.
#[derive(Clone)]
struct NewCopy<'a> {
    /// Which of the sources it is made from.
    number: usize,
    source: &'a Memory,
    /// The source as it must still be.
    read: Source,
    memory: Arc<Memory>,
}

/// An entry with what the test for duplicates looks at.
struct ComparedMemory {
    memory: Arc<Memory>,
    profile: Profile,
    space: Option<Space>,
}

impl ComparedMemory {
    fn of(memory: Arc<Memory>) -> Self {
        let profile = Profile::of(&memory.content);
        let space = memory.embedding.as_ref().and_then(|embedding| Space::of(&embedding.model));
        Self { memory, profile, space }
    }

    fn vector_in(&self, space: &Option<Space>) -> Option<&[f32]> {
        comparable(&self.memory, space.as_ref()?)
    }

    /// What happened at another time says something else with the same words.
    fn says_the_same(&self, other: &Self) -> bool {
        if self.memory.stated_time() != other.memory.stated_time() {
            return false;
        }
        let (own, theirs) = (self.vector_in(&self.space), other.vector_in(&self.space));
        duplicate::duplicates(&self.profile, own, &other.profile, theirs, duplicate::SIMILARITY)
    }
}

pub(super) fn invalid_state(message: &'static str, memory: &Memory) -> Error {
    Error::new(Code::InvalidState, message).with("state", memory.state.as_str())
}

/// Refuses to change what mirrors an event.
fn refuse_mirror(memory: &Memory) -> Result<()> {
    if memory.lineage.mirror_of.is_none() {
        return Ok(());
    }
    let message = "this memory mirrors an event and cannot be changed here";
    Err(Error::new(Code::InvalidState, message).with("reason", "mirrored"))
}
