//! One entry at a time: add, get, update, replace, delete.

use super::access::Writable;
use super::replay::{AnswerKey, Answered, KeyedRequest};
use super::view::ShownMemory;
use super::writing::{Write, WriteOutcome};
use super::{Memories, count};
use crate::quota::CallKind;
use memtrove_core::memories::{
    AccessPolicy, AddMemory, Applied, Assertion, Change, Embedding, GivenMetadata, Memory, MemoryCaller,
    MemoryId, NewMemory, Precondition, State,
};
use memtrove_core::{Error, Result};
use memtrove_store::memories::{entries, versions};
use serde_json::Map;
use std::sync::Arc;

/// An entry that was added.
#[derive(Debug, Clone)]
pub struct AddedMemory {
    /// The entry; with an embedding if one could be made.
    pub memory: ShownMemory,
    /// Whether nothing stated it before.
    pub created: bool,
}

/// An entry after a change.
#[derive(Debug, Clone)]
pub struct Updated {
    /// The new version.
    pub memory: Memory,
    /// Whether it was embedded again.
    pub embedding_regenerated: bool,
}

/// What a whole entry is replaced by.
#[derive(Debug, Clone)]
pub struct Replacement {
    /// The new text.
    pub content: String,
    /// The new metadata; what is not there goes.
    pub metadata: GivenMetadata,
    /// The new policy; the layer's default without one.
    pub policy: Option<AccessPolicy>,
}

impl Memories {
    /// Stores a new entry.
    pub async fn add(
        &self,
        caller: &MemoryCaller,
        add: AddMemory,
        key: Option<AnswerKey<AddedMemory>>,
    ) -> Result<Answered<AddedMemory>> {
        let new = add.check(self.rules(), caller)?;
        let caller = &*self.charge_once(caller, &new.identifiers, CallKind::Write).await?;
        count("memory.add", new.scope.layer());
        let replay = KeyedRequest::new(caller, key, new.author.user.as_deref())?;
        if let Some(first) = replay.find(self, caller).await? {
            return Ok(first);
        }
        let (memory, actor) = self.draft(caller, new.clone(), true).await?;
        let answer = AddedMemory { memory: self.show(caller, memory.clone()), created: true };
        let mut journal = self.journal(actor, memory.created_at, 1, "add");
        journal.remember = replay.remember(self, &answer, [&memory])?;
        let memory = Arc::new(memory);
        match self.write(vec![Write::Insert(memory.clone())], journal).await? {
            WriteOutcome::Done => {
                self.added(&[memory]).await;
                Ok(Answered::Now(answer))
            }
            WriteOutcome::Replayed(first) => Answered::stored(&first),
            // The id is new. A fact can be stated already.
            WriteOutcome::Conflict(_) => self.upsert_fact(caller, new, &replay).await,
        }
    }

    /// Stores a new entry, with or without an embedding.
    pub async fn create(&self, caller: &MemoryCaller, add: AddMemory, embed: bool) -> Result<Memory> {
        let new = add.check(self.rules(), caller)?;
        let caller = &*self.charge_once(caller, &new.identifiers, CallKind::Write).await?;
        let (memory, actor) = self.draft(caller, new, embed).await?;
        let journal = self.journal(actor, memory.created_at, 1, "add");
        let memory = Arc::new(memory);
        match self.write(vec![Write::Insert(memory.clone())], journal).await? {
            WriteOutcome::Done => {
                self.added(std::slice::from_ref(&memory)).await;
                Ok(Memory::clone(&memory))
            }
            WriteOutcome::Conflict(_) | WriteOutcome::Replayed(_) => Err(Error::new(
                memtrove_core::memories::Code::InvalidState,
                "this fact is stated already; change it instead",
            )),
        }
    }

    /// The entry that a request makes, embedded if that is asked for.
    pub(super) async fn draft(
        &self,
        caller: &MemoryCaller,
        new: NewMemory,
        embed: bool,
    ) -> Result<(Memory, super::Actor)> {
        let actor = self.actor(caller, &new.identifiers);
        let id = self.new_id(new.kind);
        let mut memory = new.into_memory(id, self.now());
        if embed {
            memory.embedding = self.embed(caller.tenant().as_str(), &memory.content).await?;
        }
        settle_state(&mut memory);
        Ok((memory, actor))
    }

    /// An entry by its id.
    pub async fn get(&self, caller: &MemoryCaller, id: MemoryId, assertion: &Assertion) -> Result<Memory> {
        let caller = &*self.charge_once(caller, &assertion.identifiers, CallKind::Read).await?;
        let memory = self.reach(caller, id, assertion).await?;
        count("memory.get", memory.scope.layer());
        self.parts.uses.note([memory.id], self.now());
        Ok(memory)
    }

    /// Who made which version of an entry, oldest first.
    pub async fn versions(
        &self,
        caller: &MemoryCaller,
        id: MemoryId,
    ) -> Result<(Memory, Vec<versions::Version>)> {
        let caller = &*self.charge(caller, CallKind::Read, |caller| caller.speaks_for(None)).await?;
        let memory = self.reach(caller, id, &Assertion::default()).await?;
        let first = versions::Version { version: 1, at: memory.created_at, by: memory.created_by.clone() };
        let store = self.parts.store.of(memory.kind).store();
        let (tenant, id) = (caller.tenant().clone(), memory.id);
        let later = store
            .read(caller.tenant(), "list_versions", move |tx| match entries::get(tx, &tenant, id)? {
                Some(stored) => Ok::<_, memtrove_core::Error>(versions::list(tx, stored.no)?),
                None => Ok(Vec::new()),
            })
            .await?;
        let kept = versions::KEPT as usize;
        let mut all: Vec<_> = std::iter::once(first).chain(later).collect();
        if all.len() > kept {
            all.drain(..all.len() - kept);
        }
        Ok((memory, all))
    }

    /// Changes an entry.
    pub async fn update(
        &self,
        caller: &MemoryCaller,
        id: MemoryId,
        assertion: &Assertion,
        change: Change,
    ) -> Result<Updated> {
        change.check(self.rules())?;
        let caller = &*self.charge_once(caller, &assertion.identifiers, CallKind::Write).await?;
        self.change(caller, id, assertion, "update", |memory| change.apply(memory, self.now(), self.rules()))
            .await
    }

    /// Replaces an entry as a whole.
    pub async fn replace(
        &self,
        caller: &MemoryCaller,
        id: MemoryId,
        precondition: Precondition,
        with: Replacement,
    ) -> Result<Memory> {
        let Replacement { content, metadata, policy } = with;
        let with =
            Change { content: Some(content), metadata: Some(metadata), policy, precondition, ttl: None };
        with.check(self.rules())?;
        let caller = &*self.charge(caller, CallKind::Write, |caller| caller.speaks_for(None)).await?;
        let replaced = self
            .change(caller, id, &Assertion::default(), "replace", |memory| {
                let mut change = with.clone();
                change.content.take_if(|_| memory.fact.is_some());
                change.policy.get_or_insert_with(|| AccessPolicy::default_in(memory.scope.layer()));
                let mut emptied = memory.clone();
                emptied.metadata = Map::new();
                change.apply(&emptied, self.now(), self.rules())
            })
            .await?;
        Ok(replaced.memory)
    }

    /// Changes an entry as `change` says: computed from what was read and committed if nobody was faster, otherwise computed
    /// anew. Changes of one entry wait for each other's turn, but for no embedding: that is made between two turns. A change
    /// never fails because there are others; it waits for as long as its request may take.
    pub(super) async fn change(
        &self,
        caller: &MemoryCaller,
        id: MemoryId,
        assertion: &Assertion,
        reason: &'static str,
        change: impl Fn(&Memory) -> Result<Applied>,
    ) -> Result<Updated> {
        let mut embedded: Option<(String, Option<Embedding>)> = None;
        loop {
            let mut turn = self.turn(id).await;
            let current = self.reach_to_write(caller, id, assertion).await?;
            let Applied { mut memory, content_changed } = change(&current)?;
            self.refuse_restated(&memory).await?;
            if content_changed {
                match &embedded {
                    Some((content, made)) if *content == memory.content => memory.embedding = made.clone(),
                    _ => {
                        // Whoever changes it meanwhile is noticed by its version.
                        drop(turn.take());
                        memory.embedding = self.embed(caller.tenant().as_str(), &memory.content).await?;
                        embedded = Some((memory.content.clone(), memory.embedding.clone()));
                        turn = self.turn(id).await;
                    }
                }
                settle_state(&mut memory);
            }
            let actor = self.actor(caller, &assertion.identifiers);
            let journal = self.journal(actor, memory.updated_at, 1, reason);
            let memory = Arc::new(memory);
            let write = Write::Replace { memory: memory.clone(), current: current.clone() };
            let written = self.write(vec![write], journal).await?;
            drop(turn);
            if written == WriteOutcome::Done {
                if content_changed {
                    self.forget_vectors(caller.tenant().as_str(), &current.content);
                    self.parts.upgrades.notify_one();
                }
                count("memory.update", memory.scope.layer());
                let embedding_regenerated = content_changed && memory.embedding.is_some();
                return Ok(Updated { memory: Memory::clone(&memory), embedding_regenerated });
            }
        }
    }

    /// Deletes an entry; says whether there was one.
    pub async fn delete(
        &self,
        caller: &MemoryCaller,
        id: MemoryId,
        assertion: &Assertion,
        precondition: &Precondition,
    ) -> Result<bool> {
        let caller = &*self.charge_once(caller, &assertion.identifiers, CallKind::Write).await?;
        self.delete_if(caller, id, assertion, precondition, |_| true).await
    }

    /// Deletes an entry that the caller may reach and that is the right one.
    pub(super) async fn delete_if(
        &self,
        caller: &MemoryCaller,
        id: MemoryId,
        assertion: &Assertion,
        precondition: &Precondition,
        is_right: impl Fn(&Memory) -> bool,
    ) -> Result<bool> {
        caller.check_company(&assertion.identifiers)?;
        let _turn = self.turn(id).await;
        loop {
            let found = self.find(caller, id).await?;
            let reached = |memory: &Memory| {
                assertion.holds(memory) && caller.reaches(memory, &assertion.identifiers) && is_right(memory)
            };
            let Some(memory) = found.filter(reached) else { return Ok(false) };
            let memory = Writable::by(caller, memory)?;
            precondition.check(&memory)?;
            let actor = self.actor(caller, &assertion.identifiers);
            let journal = self.journal(actor, self.now(), 1, "delete");
            let written = match memory.lineage.mirror_of {
                Some(_) => self.delete_event(memory.clone(), journal).await?,
                None => self.write(vec![Write::Remove(memory.clone())], journal).await?,
            };
            if written == WriteOutcome::Done {
                count("memory.delete", memory.scope.layer());
                self.forget_vectors(caller.tenant().as_str(), &memory.content);
                return Ok(true);
            }
        }
    }
}

/// An entry is active exactly if it can be found by meaning.
pub(super) fn settle_state(memory: &mut Memory) {
    match (memory.state, &memory.embedding) {
        (State::Active, None) => memory.state = State::Created,
        (State::Created, Some(_)) => memory.state = State::Active,
        _ => {}
    }
}
