//! Facts: procedural entries by what they state.

use super::access::Writable;
use super::entries::settle_state;
use super::replay::{AnswerKey, Answered, KeyedRequest};
use super::writing::{Write, WriteOutcome};
use super::{AddedMemory, Listed, Memories, Updated, count};
use crate::quota::CallKind;
use memtrove_core::memories::{
    AddFact, Applied, Assertion, Code, Embedding, Fact, FactChange, FactPosition, Kind, Memory, MemoryCaller,
    MemoryId, NewFact, NewMemory, Precondition, QueryFacts, ScopeKey,
};
use memtrove_core::{Error, Result};
use memtrove_store::memories::facts::{self, FactPattern};
use memtrove_store::memories::{entries, scopes};
use serde_json::json;
use std::sync::Arc;

/// A fact that is stated.
#[derive(Debug, Clone)]
pub struct AddedFact {
    /// The entry that states it.
    pub memory: Memory,
    /// Whether nothing stated it before.
    pub created: bool,
}

impl Memories {
    /// States a fact; one that is stated already is changed.
    pub async fn add_fact(
        &self,
        caller: &MemoryCaller,
        add: AddFact,
        key: Option<AnswerKey<AddedFact>>,
    ) -> Result<Answered<AddedFact>> {
        let new = add.check(self.rules(), caller)?;
        let caller = &*self.charge_once(caller, &new.memory.identifiers, CallKind::Write).await?;
        count("fact.add", new.memory.scope.layer());
        let replay = KeyedRequest::new(caller, key, new.memory.author.user.as_deref())?;
        if let Some(first) = replay.find(self, caller).await? {
            return Ok(first);
        }
        self.state(caller, &new, &replay, |memory, created| AddedFact { memory, created }).await
    }

    /// An add of a procedural entry that states what another one states already.
    pub(super) async fn upsert_fact(
        &self,
        caller: &MemoryCaller,
        new: NewMemory,
        replay: &KeyedRequest<AddedMemory>,
    ) -> Result<Answered<AddedMemory>> {
        let Some(new) = NewFact::of_memory(new) else {
            return Err(Error::internal("a new id is there already"));
        };
        let answer = |memory, _| AddedMemory { memory: self.show(caller, memory), created: false };
        self.state(caller, &new, replay, answer).await
    }

    async fn state<A>(
        &self,
        caller: &MemoryCaller,
        new: &NewFact,
        replay: &KeyedRequest<A>,
        answer: impl Fn(Memory, bool) -> A,
    ) -> Result<Answered<A>> {
        let NewMemory { scope, policy, author, .. } = &new.memory;
        let hidden_by = facts::hidden_by(scope, policy, author);
        let stated_as = digest(scope, &new.fact, hidden_by);
        let mut embedded: Option<(String, Option<Embedding>)> = None;
        loop {
            let mut turn = Some(self.parts.stating.take(stated_as).await);
            let stated = self.stating(scope, &new.fact, hidden_by).await?;
            let stated = stated.filter(|memory| memory.is_live(self.now()));
            if stated.as_ref().is_some_and(|memory| !caller.reaches(memory, &new.memory.identifiers)) {
                let message = "this fact is stated already, by somebody whose entries you may not change";
                return Err(Error::new(Code::InvalidState, message).with("reason", "duplicate"));
            }
            let stated = stated.map(|memory| Writable::by(caller, memory)).transpose()?;
            let (mut memory, changed) = match &stated {
                Some(memory) => {
                    let Applied { memory, content_changed } = new.apply(memory, self.now(), self.rules())?;
                    (memory, content_changed)
                }
                None => (new.memory.clone().into_memory(self.new_id(new.memory.kind), self.now()), true),
            };
            if changed {
                match &embedded {
                    Some((content, made)) if *content == memory.content => memory.embedding = made.clone(),
                    _ => {
                        // If another caller states it meanwhile, its version says so.
                        drop(turn.take());
                        memory.embedding = self.embed(caller.tenant().as_str(), &memory.content).await?;
                        embedded = Some((memory.content.clone(), memory.embedding.clone()));
                        turn = Some(self.parts.stating.take(stated_as).await);
                    }
                }
                settle_state(&mut memory);
            }
            let answer = answer(memory.clone(), stated.is_none());
            let actor = self.actor(caller, &new.memory.identifiers);
            let mut journal = self.journal(actor, memory.updated_at, 1, "state");
            journal.remember = replay.remember(self, &answer, [&memory])?;
            let memory = Arc::new(memory);
            let write = match stated {
                Some(current) => Write::Replace { memory: memory.clone(), current },
                None => Write::Insert(memory.clone()),
            };
            let written = self.write(vec![write], journal).await?;
            drop(turn);
            match written {
                WriteOutcome::Done => {
                    self.added(&[memory]).await;
                    return Ok(Answered::Now(answer));
                }
                WriteOutcome::Replayed(first) => return Answered::stored(&first),
                WriteOutcome::Conflict(_) => {
                    self.sweep_expired(&new.memory.scope, &new.fact, hidden_by).await?
                }
            }
        }
    }

    /// The entry of a scope that states this, openly or hidden by somebody.
    async fn stating(
        &self,
        scope: &ScopeKey,
        fact: &Fact,
        hidden_by: Option<&str>,
    ) -> Result<Option<Memory>> {
        let (scope, fact, hidden_by) = (scope.clone(), fact.clone(), hidden_by.map(str::to_owned));
        self.cx
            .store
            .read(scope.tenant().clone(), "find_fact", move |tx| {
                let Some(row) = scopes::find(tx, &scope)? else { return Ok(None) };
                let Some(no) = facts::stating(tx, row.no, &fact, hidden_by.as_deref())? else {
                    return Ok(None);
                };
                let Some(stored) = entries::by_no(tx, no)? else { return Ok(None) };
                Ok::<_, Error>(Some(entries::with_embedding(tx, stored)?.memory))
            })
            .await
    }

    /// A fact that has expired is still stated until it is swept away: it must not be in the way of a new one.
    async fn sweep_expired(&self, scope: &ScopeKey, fact: &Fact, hidden_by: Option<&str>) -> Result<()> {
        let Some(memory) = self.stating(scope, fact, hidden_by).await? else { return Ok(()) };
        if !memory.is_live(self.now()) {
            self.expire(vec![memory]).await?;
        }
        Ok(())
    }

    /// Refuses to bring back a fact that was stated anew meanwhile.
    pub(super) async fn refuse_restated(&self, memory: &Memory) -> Result<()> {
        let Some(fact) = memory.fact.as_ref().filter(|_| memory.kind == Kind::Procedural) else {
            return Ok(());
        };
        let hidden_by = facts::hidden_by(&memory.scope, &memory.policy, &memory.created_by);
        let stated = self.stating(&memory.scope, fact, hidden_by).await?;
        let Some(other) = stated.filter(|other| other.id != memory.id) else { return Ok(()) };
        if !other.is_live(self.now()) {
            return self.expire(vec![other]).await;
        }
        let message = "another fact of this scope states that already";
        Err(Error::new(Code::InvalidState, message).with("reason", "duplicate"))
    }

    /// A fact by its id.
    pub async fn get_fact(
        &self,
        caller: &MemoryCaller,
        id: MemoryId,
        assertion: &Assertion,
    ) -> Result<Memory> {
        let memory = self.get(caller, id, assertion).await?;
        if memory.kind == Kind::Procedural { Ok(memory) } else { Err(Error::no_such_memory()) }
    }

    /// Changes a fact.
    pub async fn update_fact(
        &self,
        caller: &MemoryCaller,
        id: MemoryId,
        assertion: &Assertion,
        change: FactChange,
    ) -> Result<Updated> {
        change.check(self.rules())?;
        let caller = &*self.charge_once(caller, &assertion.identifiers, CallKind::Write).await?;
        let current = self.reach(caller, id, assertion).await?;
        if current.kind != Kind::Procedural {
            return Err(Error::no_such_memory());
        }
        self.refuse_restated(&change.apply(&current, self.now(), self.rules())?.memory).await?;
        self.change(caller, id, assertion, "update", |memory| {
            if memory.kind != Kind::Procedural {
                return Err(Error::no_such_memory());
            }
            change.apply(memory, self.now(), self.rules())
        })
        .await
    }

    /// Deletes a fact; says whether there was one.
    pub async fn delete_fact(
        &self,
        caller: &MemoryCaller,
        id: MemoryId,
        assertion: &Assertion,
        precondition: &Precondition,
    ) -> Result<bool> {
        let caller = &*self.charge_once(caller, &assertion.identifiers, CallKind::Write).await?;
        self.delete_if(caller, id, assertion, precondition, |memory| memory.kind == Kind::Procedural).await
    }

    /// A page of facts.
    pub async fn facts(&self, caller: &MemoryCaller, query: QueryFacts) -> Result<Listed> {
        let query = query.check(self.rules(), caller)?;
        let caller = &*self.charge(caller, CallKind::Read, |_| query.viewer.user.clone()).await?;
        query.scopes.iter().for_each(|scope| count("fact.query", scope.layer()));
        let (fingerprint, key, now) = (query.fingerprint(), self.parts.keys.cursors, self.now());
        let after =
            query.cursor.as_deref().map(|text| FactPosition::decode(text, fingerprint, &key)).transpose()?;
        let spans = self.spans(caller, query.scopes.clone()).await?;
        let (limit, asked) = (query.limit, query.clone());
        let mut found = self
            .cx
            .store
            .read(caller.tenant(), "list_facts", move |tx| {
                let pattern = &query.pattern;
                let wanted = FactPattern {
                    fact_type: pattern.fact_type.as_deref(),
                    subject: pattern.subject.as_deref(),
                    predicate: pattern.predicate.as_deref(),
                    object: pattern.object.as_deref(),
                    min_confidence: pattern.min_confidence.unwrap_or_default(),
                };
                let mut found = Vec::new();
                for span in &spans {
                    let Some(row) = scopes::find(tx, &span.scope)? else { continue };
                    for no in facts::find(tx, row.no, &wanted)? {
                        let Some(stored) = entries::by_no(tx, no)? else { continue };
                        let memory = stored.memory;
                        let visible = memory.is_live(now)
                            && span.until.is_none_or(|until| memory.created_at <= until)
                            && query.viewer.sees(&memory.policy, &memory.created_by)
                            && query.admits(&memory);
                        if visible {
                            found.push(memory);
                        }
                    }
                }
                Ok::<_, Error>(found)
            })
            .await?;
        asked.arrange(&mut found);
        let total = found.len();
        if let Some(after) = after {
            found.retain(|memory| after.compare(&FactPosition::of(memory)).is_lt());
        }
        let more = found.len() > limit;
        found.truncate(limit);
        let next_cursor =
            found.last().filter(|_| more).map(|last| FactPosition::of(last).encode(fingerprint, &key));
        Ok(Listed { memories: found, next_cursor, total })
    }
}

/// What those have in common who state the same.
fn digest(scope: &ScopeKey, fact: &Fact, hidden_by: Option<&str>) -> [u8; 32] {
    let Fact { fact_type, subject, predicate, object, .. } = fact;
    let stated = json!([scope.hash().0, fact_type, subject, predicate, object, hidden_by]);
    *blake3::hash(stated.to_string().as_bytes()).as_bytes()
}
