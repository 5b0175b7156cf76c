//! Bringing in memories and facts that were kept elsewhere: with the times they had, each once however often it is brought.

use super::Memories;

use super::writing::{Write, WriteOutcome, possible};
use memtrove_core::memories::{
    AddMemory, Assertion, Change, Code, GivenMetadata, Kind, Memory, MemoryCaller, MemoryId, Rules,
};
use memtrove_core::{Error, Result, Timestamp};
use memtrove_store::Tx;
use memtrove_store::memories::entries;
use serde_json::Value;
use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

/// A memory that was kept elsewhere.
#[derive(Debug, Clone)]
pub struct Keepsake {
    /// The id it has here.
    pub id: MemoryId,
    /// What is added.
    pub add: AddMemory,
    /// When it was made.
    pub created_at: Option<Timestamp>,
    /// When it was last changed.
    pub updated_at: Option<Timestamp>,
}

/// What becomes of something that is brought in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// It was not there.
    New,
    /// It is there, as it is brought.
    Same,
    /// It is there, differs, and is left as it is.
    Kept,
    /// It was there, and differed.
    Replaced,
}

impl Keepsake {
    /// The memory, with the times it had. It fades, and lives for as long as it is given, from now on.
    fn memory(&self, rules: &Rules, caller: &MemoryCaller, now: Timestamp) -> Result<Memory> {
        let mut memory = self.add.clone().check(rules, caller)?.into_memory(self.id, now);
        if let Some(at) = self.created_at.filter(|at| at.is_writable() && *at <= now) {
            memory.created_at = at;
            memory.updated_at = self.updated_at.unwrap_or(at).clamp(at, now);
        }
        Ok(memory)
    }
}

impl Memories {
    /// Brings memories in; says what became of each. One that is there under its id and differs is replaced if `overwrite`
    /// says so; a fact that is stated already, under whichever id, is the same.
    pub async fn import(
        &self,
        caller: &MemoryCaller,
        items: Vec<Keepsake>,
        overwrite: bool,
    ) -> Result<Vec<Result<Fate>>> {
        let now = self.now();
        let read: Vec<Result<Arc<Memory>>> =
            items.iter().map(|item| item.memory(self.rules(), caller, now).map(Arc::new)).collect();
        let mut added = self.insert_unknown(caller, read.iter().flatten().cloned().collect()).await?;
        let is_new: Vec<bool> =
            read.iter().map(|memory| memory.as_ref().is_ok_and(|memory| added.remove(&memory.id))).collect();
        let known = read.iter().zip(&is_new).filter(|(_, is_new)| !**is_new);
        let mut stored =
            self.stored(caller, known.filter_map(|(memory, _)| memory.clone().ok()).collect()).await?;
        let mut fates = Vec::with_capacity(read.len());
        for (memory, is_new) in read.into_iter().zip(is_new) {
            fates.push(match memory {
                Err(error) => Err(error),
                Ok(_) if is_new => Ok(Fate::New),
                Ok(memory) => match stored.get(&memory.id) {
                    Some(there) if differ(there, &memory) && overwrite => {
                        let replaced = self.replace_by(caller, &memory).await;
                        replaced.map(|there| {
                            stored.insert(there.id, there);
                            Fate::Replaced
                        })
                    }
                    Some(there) if differ(there, &memory) => Ok(Fate::Kept),
                    Some(_) | None => Ok(Fate::Same),
                },
            });
        }
        Ok(fates)
    }

    /// Inserts those of some memories that are not there; says which they are.
    async fn insert_unknown(
        &self,
        caller: &MemoryCaller,
        candidates: Vec<Arc<Memory>>,
    ) -> Result<HashSet<MemoryId>> {
        let looked = candidates.clone();
        // Before vectors are made: some models are slow, and some are paid for.
        let known: HashSet<MemoryId> =
            self.cx.store.read(caller.tenant(), "find_imported", move |tx| known(tx, &looked)).await?;
        let mut once = HashSet::new();
        let mut new: Vec<Result<Memory>> = (candidates.iter())
            .filter(|memory| !known.contains(&memory.id) && once.insert(memory.id))
            .map(|memory| Ok(Memory::clone(memory)))
            .collect();
        self.embed_all(caller, &mut new).await?;
        let mut left: Vec<Arc<Memory>> = new.into_iter().flatten().map(Arc::new).collect();
        while !left.is_empty() {
            match self.insert_all(caller, &left, None).await? {
                WriteOutcome::Conflict(stated) => left.retain(|memory| !stated.contains(&memory.id)),
                WriteOutcome::Done | WriteOutcome::Replayed(_) => {
                    self.added(&left).await;
                    break;
                }
            }
        }
        Ok(left.iter().map(|memory| memory.id).collect())
    }

    /// What is there under the ids of these.
    async fn stored(
        &self,
        caller: &MemoryCaller,
        memories: Vec<Arc<Memory>>,
    ) -> Result<HashMap<MemoryId, Memory>> {
        if memories.is_empty() {
            return Ok(HashMap::new());
        }
        let now = self.now();
        let look = move |tx: &mut dyn Tx| {
            let mut stored = HashMap::new();
            for memory in &memories {
                if let Some(there) = stored_as(tx, memory, now)? {
                    stored.insert(there.id, there);
                }
            }
            Ok::<_, Error>(stored)
        };
        self.cx.store.read(caller.tenant(), "compare_imported", look).await
    }

    /// Changes what is there to what is brought, as an update does.
    async fn replace_by(&self, caller: &MemoryCaller, memory: &Memory) -> Result<Memory> {
        let change = Change {
            content: Some(memory.content.clone()),
            metadata: Some(GivenMetadata::of(memory)),
            ttl: Some(memory.ttl_seconds),
            ..Change::default()
        };
        let apply = |there: &Memory| {
            replaceable(there, memory)?;
            change.apply(there, self.now(), self.rules())
        };
        Ok(self.change(caller, memory.id, &Assertion::default(), "update", apply).await?.memory)
    }
}

/// What an import would bring, one memory after the other: what one brings is there for those that come after it.
#[derive(Debug, Default)]
pub struct Foresight {
    brought: HashMap<MemoryId, u64>,
}

impl Foresight {
    /// Says what [`Memories::import`] would do with a memory, by what a reader of the store sees; without one, in a store
    /// that has nothing.
    pub fn foresee(
        &mut self,
        tx: Option<&mut dyn Tx>,
        caller: &MemoryCaller,
        item: &Keepsake,
        overwrite: bool,
        rules: &Rules,
        now: Timestamp,
    ) -> Result<Fate> {
        let memory = Arc::new(item.memory(rules, caller, now)?);
        let digest = digest(&memory);
        let differs = match (self.brought.get(&memory.id), tx) {
            (Some(brought), _) => Some(*brought != digest && memory.fact.is_none()),
            (None, Some(tx)) => differs_in(tx, &memory, overwrite, now)?,
            (None, None) => None,
        };
        let fate = match (differs, overwrite) {
            (None, _) => Fate::New,
            (Some(false), _) => Fate::Same,
            (Some(true), true) => Fate::Replaced,
            (Some(true), false) => Fate::Kept,
        };
        if matches!(fate, Fate::New | Fate::Replaced) {
            self.brought.insert(memory.id, digest);
        }
        Ok(fate)
    }
}

/// Whether a memory that is brought differs from what is in the store; nothing, if it is not there. One that cannot be
/// replaced is refused if it should be.
fn differs_in(
    tx: &mut dyn Tx,
    memory: &Arc<Memory>,
    overwrite: bool,
    now: Timestamp,
) -> Result<Option<bool>> {
    if possible(tx, &Write::Insert(memory.clone()))? {
        return Ok(None);
    }
    let there = stored_as(tx, memory, now)?.filter(|there| differ(there, memory));
    if let Some(there) = there.as_ref().filter(|_| overwrite) {
        replaceable(there, memory)?;
    }
    Ok(Some(there.is_some()))
}

/// What tells memories with the same id apart. There may be more of them than fit into memory.
fn digest(memory: &Memory) -> u64 {
    let mut hasher = DefaultHasher::new();
    (&memory.content, Value::from(memory.metadata.clone()).to_string()).hash(&mut hasher);
    hasher.finish()
}

/// What is there under the id of a memory that is brought.
fn stored_as(tx: &mut dyn Tx, memory: &Memory, now: Timestamp) -> Result<Option<Memory>> {
    let stored = entries::get(tx, memory.scope.tenant(), memory.id)?;
    Ok(stored.map(|stored| stored.memory).filter(|there| there.is_live(now)))
}

/// Whether what is there says anything else than what is brought. What was added to it here is no difference, and a fact is
/// what it states.
fn differ(there: &Memory, brought: &Memory) -> bool {
    let is_there =
        |(name, value): (&String, &Value)| there.metadata.get(name).unwrap_or(&Value::Null) == value;
    brought.fact.is_none()
        && (there.content != brought.content
            || there.scope != brought.scope
            || !brought.metadata.iter().all(is_there))
}

/// Refuses to replace what belongs to another agent or run: an entry stays in its scope.
fn replaceable(there: &Memory, brought: &Memory) -> Result<()> {
    if there.scope == brought.scope {
        return Ok(());
    }
    let message = "it belongs to another agent or run here; delete it, and import it again";
    Err(Error::new(Code::InvalidState, message))
}

/// Those of new memories that are there already, or state what one before them states.
fn known(tx: &mut dyn Tx, memories: &[Arc<Memory>]) -> Result<HashSet<MemoryId>> {
    let mut known = repeated(memories);
    for memory in memories {
        if !known.contains(&memory.id) && !possible(tx, &Write::Insert(memory.clone()))? {
            known.insert(memory.id);
        }
    }
    Ok::<_, Error>(known)
}

/// Facts that one before them states, under another id.
fn repeated(memories: &[Arc<Memory>]) -> HashSet<MemoryId> {
    let mut stated = HashSet::new();
    let facts = memories.iter().filter(|memory| memory.kind == Kind::Procedural);
    let mut ids: HashSet<MemoryId> = HashSet::new();
    facts
        .filter(|memory| ids.insert(memory.id))
        .filter(|memory| {
            let fact = memory.fact.as_ref();
            fact.is_some_and(|fact| !stated.insert((memory.scope.hash(), fact.key())))
        })
        .map(|memory| memory.id)
        .collect()
}
