//! Many entries at once.

use super::access::Writable;
use super::entries::settle_state;
use super::pieces::CutTexts;
use super::replay::{AnswerKey, Answered, KeyedRequest};
use super::view::ShownMemory;
use super::writing::{Write, WriteOutcome};
use super::{Memories, count, embedding_failed};
use crate::quota::CallKind;
use memtrove_core::memories::{
    Assertion, BulkAdd, BulkDelete, Code, Kind, Memory, MemoryCaller, MemoryId, Precondition,
};
use memtrove_core::{Error, Result};
use memtrove_recall::embed::EmbedError;
use std::sync::Arc;

/// What became of a bulk delete.
#[derive(Debug, Clone, Default)]
pub struct BulkDeleted {
    /// How many went.
    pub deleted: usize,
    /// The ids of the others, as they were given, each with the code of what was wrong.
    pub failed: Vec<(String, &'static str)>,
}

/// What became of the entries of a bulk add, in the order they were given.
#[derive(Debug, Clone)]
pub struct BulkAdded {
    /// The entry, or why it was not stored.
    pub results: Vec<Result<ShownMemory>>,
}

impl Memories {
    /// Stores entries, each by itself or all of them or none.
    pub async fn bulk_add(
        &self,
        caller: &MemoryCaller,
        add: BulkAdd,
        key: Option<AnswerKey<BulkAdded>>,
    ) -> Result<Answered<BulkAdded>> {
        add.check(self.rules())?;
        let caller = &*self.charge(caller, CallKind::Write, |caller| caller.speaks_for(add.user())).await?;
        let replay = KeyedRequest::new(caller, key, None)?;
        if let Some(first) = replay.find(self, caller).await? {
            return Ok(first);
        }
        let BulkAdd { items, atomic, .. } = add;
        let mut read: Vec<Result<Memory>> = Vec::with_capacity(items.len());
        for item in items {
            let new = item.and_then(|item| item.check(self.rules(), caller));
            read.push(new.map(|new| {
                let id = self.new_id(new.kind);
                new.into_memory(id, self.now())
            }));
        }
        if atomic && let Some((index, error)) = first_error(&read) {
            return Err(at_index(error, index));
        }
        self.embed_all(caller, &mut read).await?;
        refuse_repeated_facts(&mut read);
        let mut results: Vec<Result<Arc<Memory>>> =
            read.into_iter().map(|memory| memory.map(Arc::new)).collect();
        loop {
            if atomic && let Some((index, error)) = first_error(&results) {
                return Err(at_index(error, index));
            }
            let shown = |memory: &Arc<Memory>| self.show(caller, Memory::clone(memory));
            let shown = results.iter().map(|one| one.as_ref().map(shown).map_err(Clone::clone));
            let answer = BulkAdded { results: shown.collect() };
            let added: Vec<Arc<Memory>> = results.iter().flatten().cloned().collect();
            if added.is_empty() {
                return Ok(Answered::Now(answer));
            }
            let remember = replay.remember(self, &answer, added.iter().map(Arc::as_ref))?;
            match self.insert_all(caller, &added, remember).await? {
                WriteOutcome::Done => {
                    added.iter().for_each(|memory| count("memory.add", memory.scope.layer()));
                    self.added(&added).await;
                    return Ok(Answered::Now(answer));
                }
                WriteOutcome::Replayed(first) => return Answered::stored(&first),
                // Ids are new, so these are facts. They fail, the others are tried again: fewer each time.
                WriteOutcome::Conflict(stated) => {
                    for one in &mut results {
                        if one.as_ref().is_ok_and(|memory| stated.contains(&memory.id)) {
                            let message = "this fact is stated already; change it with POST /v1/facts";
                            *one = Err(Error::new(Code::InvalidState, message).with("reason", "duplicate"));
                        }
                    }
                }
            }
        }
    }

    /// Gives every entry of a batch its embedding, in as few calls as possible. Where that fails for all, none is stored.
    pub(super) async fn embed_all(&self, caller: &MemoryCaller, read: &mut [Result<Memory>]) -> Result<()> {
        let texts: Vec<&str> = read.iter().flatten().map(|memory| memory.content.as_str()).collect();
        let cut = CutTexts::of(&texts);
        let made = match self.cx.embeddings.documents(caller.tenant().as_str(), cut.all()).await {
            Ok(made) => cut.embeddings(made).into_iter().map(Some).collect(),
            Err(EmbedError::Disabled) => vec![None; texts.len()],
            Err(error) => return Err(embedding_failed(&error)),
        };
        for (memory, made) in read.iter_mut().flatten().zip(made) {
            memory.embedding = made;
            settle_state(memory);
        }
        Ok(())
    }

    /// Inserts entries of several kinds. What lasts is one unit of work; it is told of first, and with the key.
    pub(super) async fn insert_all(
        &self,
        caller: &MemoryCaller,
        added: &[Arc<Memory>],
        remember: Option<super::journal::Remember>,
    ) -> Result<WriteOutcome> {
        let (working, lasting): (Vec<_>, Vec<_>) =
            added.iter().cloned().partition(|one| one.kind == Kind::Working);
        let mut remember = remember;
        let mut done: Vec<Arc<Memory>> = Vec::new();
        // The key goes with what is written last: an answer must not be remembered of what is taken back.
        let groups: Vec<_> = [working, lasting].into_iter().filter(|group| !group.is_empty()).collect();
        let last = groups.len().saturating_sub(1);
        for (number, group) in groups.into_iter().enumerate() {
            let actor = super::Actor::of(caller, group[0].created_by.clone());
            let mut journal = self.journal(actor, self.now(), group.len(), "add");
            journal.remember = remember.take_if(|_| number == last);
            let written = self.write(group.iter().cloned().map(Write::Insert).collect(), journal).await;
            if !matches!(written, Ok(WriteOutcome::Done)) {
                self.remove_all(&done).await;
                return written;
            }
            done.extend(group);
        }
        Ok(WriteOutcome::Done)
    }

    /// Takes back what was inserted for a batch that failed.
    async fn remove_all(&self, done: &[Arc<Memory>]) {
        let writes: Vec<Write> = done.iter().cloned().map(Writable::by_task).map(Write::Remove).collect();
        let journal = self.journal(super::Actor::system("bulk"), self.now(), writes.len(), "undo");
        if let Err(error) = self.write(writes, journal).await {
            tracing::warn!(%error, "a batch could not be taken back");
        }
    }

    /// Deletes entries, each by itself.
    pub async fn bulk_delete(&self, caller: &MemoryCaller, delete: BulkDelete) -> Result<BulkDeleted> {
        let ids = delete.check(self.rules())?;
        let caller = &*self.charge(caller, CallKind::Write, |caller| caller.speaks_for(None)).await?;
        let mut outcome = BulkDeleted::default();
        let (assertion, any) = (Assertion::default(), Precondition::default());
        for text in ids {
            match self.delete(caller, MemoryId::named(&text), &assertion, &any).await {
                Ok(true) => outcome.deleted += 1,
                Ok(false) => outcome.failed.push((text, Code::MemoryNotFound.as_str())),
                Err(error) if error.code.is_of_memories() => outcome.failed.push((text, error.code.as_str())),
                Err(error) => return Err(error),
            }
        }
        Ok(outcome)
    }
}

/// Two entries of one batch that state the same in one scope: the second is refused, since it can only change the first.
fn refuse_repeated_facts(read: &mut [Result<Memory>]) {
    let mut stated = std::collections::HashSet::new();
    for one in read {
        let Ok(memory) = one else { continue };
        let Some(fact) = &memory.fact else { continue };
        if !stated.insert((memory.scope.hash(), fact.key())) {
            let message = "this fact is stated before in the same batch";
            *one = Err(Error::new(Code::InvalidState, message));
        }
    }
}

fn first_error<T>(results: &[Result<T>]) -> Option<(usize, Error)> {
    results.iter().enumerate().find_map(|(index, one)| Some((index, one.as_ref().err()?.clone())))
}

/// An error of one item as that of the whole batch.
fn at_index(error: Error, index: usize) -> Error {
    if error.code.is_of_memories() { error.with("index", index) } else { error }
}
