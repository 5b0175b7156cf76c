//! Bringing in memories and facts that were kept elsewhere: with the times they had, each once however often it is brought.

use super::Memories;
use super::embedded::possible;
use super::provider::{Write, Written};
use memloom_core::memories::{Kind, Memory, MemoryCaller, MemoryId, NewMemory, Rules};
use memloom_core::{Error, Result, Timestamp};
use memloom_store::Tx;
use serde_json::Value;
use std::collections::HashSet;
use std::sync::Arc;

/// A memory that was kept elsewhere.
#[derive(Debug, Clone)]
pub struct Keepsake {
    /// The id it has here.
    pub id: MemoryId,
    /// The body of an add.
    pub body: Value,
    /// When it was made.
    pub created_at: Option<Timestamp>,
    /// When it was last changed.
    pub updated_at: Option<Timestamp>,
}

impl Keepsake {
    /// The memory, with the times it had. It fades, and lives for as long as it is given, from now on.
    fn read(&self, rules: &Rules, caller: &MemoryCaller, now: Timestamp) -> Result<Memory> {
        let mut memory = NewMemory::read(&self.body, rules, caller)?.into_memory(self.id, now);
        if let Some(at) = self.created_at.filter(|at| at.is_writable() && *at <= now) {
            memory.created_at = at;
            memory.updated_at = self.updated_at.unwrap_or(at).clamp(at, now);
        }
        Ok(memory)
    }
}

impl Memories {
    /// Brings memories in; says of each whether it is new or was there already, under its id or as the same fact.
    pub async fn import(&self, caller: &MemoryCaller, items: Vec<Keepsake>) -> Result<Vec<Result<bool>>> {
        let now = self.now();
        let mut outcomes: Vec<Result<bool>> = Vec::with_capacity(items.len());
        let mut read = Vec::new();
        for item in &items {
            let memory = item.read(self.rules(), caller, now);
            outcomes.push(memory.as_ref().map(|_| true).map_err(Clone::clone));
            read.extend(memory);
        }
        let candidates: Vec<Arc<Memory>> = read.into_iter().map(Arc::new).collect();
        let looked = candidates.clone();
        // Before vectors are made: some models are slow, and some are paid for.
        let known: HashSet<MemoryId> =
            self.cx.store.read("find_imported", move |tx| known(tx, &looked)).await?;
        let mut once = HashSet::new();
        let mut new: Vec<Result<Memory>> = (candidates.iter())
            .filter(|memory| !known.contains(&memory.id) && once.insert(memory.id))
            .map(|memory| Ok(Memory::clone(memory)))
            .collect();
        self.embed_all(caller, &mut new).await?;
        let mut left: Vec<Arc<Memory>> = new.into_iter().flatten().map(Arc::new).collect();
        while !left.is_empty() {
            match self.insert_all(caller, &left, None).await? {
                Written::Conflict(stated) => left.retain(|memory| !stated.contains(&memory.id)),
                Written::Done | Written::Replayed(_) => {
                    self.added(&left).await;
                    break;
                }
            }
        }
        let mut added: HashSet<MemoryId> = left.iter().map(|memory| memory.id).collect();
        for (item, outcome) in items.iter().zip(&mut outcomes) {
            if let Ok(is_new) = outcome {
                *is_new = added.remove(&item.id);
            }
        }
        Ok(outcomes)
    }
}

/// Says what [`Memories::import`] would, by what a reader of the store sees; without one, in a store that has nothing.
pub fn foresee(
    tx: Option<&mut dyn Tx>,
    caller: &MemoryCaller,
    items: &[Keepsake],
    rules: &Rules,
    now: Timestamp,
) -> Result<Vec<Result<bool>>> {
    let read: Vec<Result<Arc<Memory>>> =
        items.iter().map(|item| item.read(rules, caller, now).map(Arc::new)).collect();
    let memories: Vec<Arc<Memory>> = read.iter().flatten().cloned().collect();
    let known = match tx {
        Some(tx) => known(tx, &memories)?,
        None => repeated(&memories),
    };
    let mut seen = HashSet::new();
    let outcome = |memory: Result<Arc<Memory>>| {
        memory.map(|memory| !known.contains(&memory.id) && seen.insert(memory.id))
    };
    Ok(read.into_iter().map(outcome).collect())
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
