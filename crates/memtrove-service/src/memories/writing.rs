//! Writing: batches of entries, done whole or not at all, in one unit of work.
//!
//! That unit of work also writes the audit trail, the change feed and the stream. Working memory writes nothing that lasts:
//! only connected readers of the stream learn of it.

use super::access::Writable;
use super::access_counts::AccessCounts;
use super::journal::{self, Entry, Milestone, Told};
use super::memory_store::Half;
use super::remember::stating_already;
use super::scope_search::Span;
use super::stream::{Event, Update};
use crate::Context;
use memtrove_core::identity::Tenant;
use memtrove_core::memories::{Kind, Memory, MemoryId, ScopeKey, Viewer};
use memtrove_core::recall::passages::{self, MEMORY_PIECES};
use memtrove_core::recall::terms::{self, EntryTerms};
use memtrove_core::{Error, Result};
use memtrove_store::Tx;
use memtrove_store::memories::entries;
use memtrove_store::memories::writing::Writing;
use memtrove_store::memories::{facts, scopes, upgrades};
use serde_json::json;
use std::ops::ControlFlow;
use std::sync::Arc;

/// Entries that are read at a time.
const BATCH: i64 = 200;

/// What is written.
#[derive(Debug, Clone)]
pub enum Write {
    /// A new entry. Its id is fixed before the first attempt, so that another attempt does no harm.
    Insert(Arc<Memory>),
    /// A new entry, unless one that somebody sees states the same already.
    Remember {
        /// The new entry.
        memory: Arc<Memory>,
        /// Who must see the other.
        viewer: Viewer,
    },
    /// A new version of an entry that is still as it was read.
    Replace {
        /// The new version.
        memory: Arc<Memory>,
        /// The one it replaces.
        current: Writable,
    },
    /// The end of an entry that is still at this version.
    Remove(Writable),
}

impl Write {
    /// The entry that is written.
    pub fn memory(&self) -> &Arc<Memory> {
        match self {
            Self::Insert(memory) | Self::Remember { memory, .. } | Self::Replace { memory, .. } => memory,
            Self::Remove(memory) => memory,
        }
    }
}

/// What became of a batch of writes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WriteOutcome {
    /// All of it is done.
    Done,
    /// Nothing was done: these are not as expected any more. They changed, went, or are there already.
    Conflict(Vec<MemoryId>),
    /// Nothing was done: the very request was answered before, with this.
    Replayed(String),
}

/// What became of a batch: what is told of it, or why nothing was done.
enum Attempt<T> {
    Done(T),
    Conflict(Vec<MemoryId>),
    Replayed(String),
}

impl<T> Attempt<T> {
    fn outcome(self) -> WriteOutcome {
        match self {
            Self::Done(_) => WriteOutcome::Done,
            Self::Conflict(ids) => WriteOutcome::Conflict(ids),
            Self::Replayed(answer) => WriteOutcome::Replayed(answer),
        }
    }
}

impl Half {
    /// Writes all of these or, unless every one can be done, none.
    pub async fn write(&self, writes: Vec<Write>, journal: Entry) -> Result<WriteOutcome> {
        let terms: Vec<EntryTerms> = writes
            .iter()
            .map(|write| match write {
                Write::Remove(_) => EntryTerms::default(),
                _ => terms_of(&self.cx, write.memory()),
            })
            .collect();
        match self.is_durable() {
            true => self.write_lasting(writes, terms, journal).await,
            false => self.write_working(writes, terms, journal).await,
        }
    }

    async fn write_lasting(
        &self,
        writes: Vec<Write>,
        terms: Vec<EntryTerms>,
        journal: Entry,
    ) -> Result<WriteOutcome> {
        let Some(tenant) = tenant_of(&writes) else { return Ok(WriteOutcome::Done) };
        let preferred = PreferredModel(self.cx.embeddings.preferred_model_id().map(str::to_owned));
        let work = move |tx: &mut dyn Tx| {
            journal.take_turn(tx, &writes)?;
            if let Some(answer) = journal.replayed(tx, &writes)? {
                return Ok(Attempt::Replayed(answer));
            }
            if !journal.has_sources(tx)? {
                return Ok(Attempt::Conflict(ids(&writes)));
            }
            match apply(tx, &writes, &terms, Some(&preferred))? {
                Some(conflicts) => Ok(Attempt::Conflict(conflicts)),
                None => journal.tell(tx, &writes).map(Attempt::Done),
            }
        };
        let bus = self.bus.clone();
        let publish = move |attempt: &Attempt<Told>| {
            if let Attempt::Done(told) = attempt {
                journal::publish(&bus, told);
            }
        };
        Ok(self.store().write_then(tenant, "write_memories", work, publish).await?.outcome())
    }

    async fn write_working(
        &self,
        writes: Vec<Write>,
        terms: Vec<EntryTerms>,
        journal: Entry,
    ) -> Result<WriteOutcome> {
        let Some(tenant) = tenant_of(&writes) else { return Ok(WriteOutcome::Done) };
        let most = self.cx.settings.memories.rules.limits.working_entries;
        let uses = self.uses.clone();
        let work = move |tx: &mut dyn Tx| {
            if let Some(answer) = journal.replayed(tx, &writes)? {
                return Ok(Attempt::Replayed(answer));
            }
            if let Some(conflicts) = apply(tx, &writes, &terms, None)? {
                return Ok(Attempt::Conflict(conflicts));
            }
            let mut events = journal.note(tx, &writes)?;
            for scope in scopes_added_to(&writes) {
                let expired = evict(tx, scope, most, &uses)?.into_iter().map(|memory| Event {
                    update: Update::Deleted,
                    memory: Arc::new(memory),
                    at: journal.at,
                    milestone: Some(Milestone { name: "expired", details: json!({}) }),
                });
                events.extend(expired.map(Arc::new));
            }
            Ok::<_, Error>(Attempt::Done(events))
        };
        let bus = self.bus.clone();
        let publish = move |attempt: &Attempt<Vec<Arc<Event>>>| {
            if let Attempt::Done(events) = attempt {
                events.iter().cloned().for_each(|event| bus.publish_unnumbered(event));
            }
        };
        Ok(self.store().write_then(tenant, "write_memories", work, publish).await?.outcome())
    }
}

/// The tenant of some writes: all of them are of one.
fn tenant_of(writes: &[Write]) -> Option<Tenant> {
    writes.first().map(|write| write.memory().scope.tenant().clone())
}

/// The scopes that entries are added to, each once.
fn scopes_added_to(writes: &[Write]) -> Vec<&ScopeKey> {
    let mut scopes: Vec<&ScopeKey> = Vec::new();
    for write in writes {
        if let Write::Insert(memory) | Write::Remember { memory, .. } = write
            && !scopes.contains(&&memory.scope)
        {
            scopes.push(&memory.scope);
        }
    }
    scopes
}

/// Removes the entries of a scope that were used longest ago, if there are more than it may have; answers them.
fn evict(tx: &mut dyn Tx, scope: &ScopeKey, most: usize, uses: &AccessCounts) -> Result<Vec<Memory>> {
    let Some(row) = scopes::find(tx, scope)? else { return Ok(Vec::new()) };
    let excess = (row.entries as usize).saturating_sub(most);
    if excess == 0 {
        return Ok(Vec::new());
    }
    let mut all = Vec::new();
    entries::newest(tx, row.no, None, BATCH, |stored| {
        all.push(stored.memory);
        ControlFlow::Continue(())
    })?;
    all.sort_by_cached_key(|memory| {
        let used = memory.last_accessed_at.max(uses.last(memory.id));
        (used.unwrap_or(memory.updated_at), memory.id)
    });
    all.truncate(excess);
    let mut writing = Writing::default();
    for memory in &all {
        writing.remove(tx, memory, None)?;
    }
    writing.finish(tx)?;
    metrics::counter!("memory_expired_total").increment(all.len() as u64);
    Ok(all)
}

/// The model that entries should end up with; none while no vectors are made.
struct PreferredModel(Option<String>);

impl PreferredModel {
    /// Whether an entry is to get another vector than it is written with. What is written while no vectors are made is to get
    /// one; otherwise an entry without one is meant to have none.
    fn is_another_than(&self, memory: &Memory) -> bool {
        match (&self.0, &memory.embedding) {
            (Some(model), Some(made)) => *made.model != **model,
            (preferred, made) => preferred.is_none() && made.is_none(),
        }
    }
}

/// The words an entry is found by: of a long one those of each piece, too, with what belongs to all of them.
pub(super) fn terms_of(cx: &Context, memory: &Memory) -> EntryTerms {
    let content = memory.content.as_str();
    let of = |text: &str| terms::of_entry(&cx.analyzer, &searchable_text(memory, text));
    let pieces = if passages::is_long(content) { passages::cut(content, MEMORY_PIECES) } else { Vec::new() };
    EntryTerms { whole: of(content), pieces: pieces.into_iter().map(|piece| of(&content[piece])).collect() }
}

/// What the words of an entry, or of a part of it, are taken from.
fn searchable_text(memory: &Memory, content: &str) -> String {
    let mut text = content.to_owned();
    let mut add = |more: &str| {
        text.push('\n');
        text.push_str(more);
    };
    if let Some(title) = memory.metadata.get("title").and_then(|title| title.as_str()) {
        add(title);
    }
    let tags = memory.metadata.get("tags").and_then(|tags| tags.as_array());
    tags.into_iter().flatten().filter_map(|tag| tag.as_str()).for_each(add);
    text
}

fn ids(writes: &[Write]) -> Vec<MemoryId> {
    writes.iter().map(|write| write.memory().id).collect()
}

/// Does all writes or, if some of them cannot be done, none; answers those then.
fn apply(
    tx: &mut dyn Tx,
    writes: &[Write],
    terms: &[EntryTerms],
    preferred: Option<&PreferredModel>,
) -> Result<Option<Vec<MemoryId>>> {
    // Looked at before anything is written: what was written would have to be undone.
    let mut conflicts = Vec::new();
    for write in writes {
        if !possible(tx, write)? {
            conflicts.push(write.memory().id);
        }
    }
    if !conflicts.is_empty() {
        return Ok(Some(conflicts));
    }
    let is_provisional = |memory: &Memory| preferred.is_some_and(|model| model.is_another_than(memory));
    let mut writing = Writing::default();
    for (write, terms) in writes.iter().zip(terms) {
        let done = match write {
            Write::Insert(memory) | Write::Remember { memory, .. } => {
                let no = match write {
                    Write::Remember { .. } => writing.insert_first(tx, memory, terms)?,
                    _ => writing.insert(tx, memory, terms)?,
                };
                if is_provisional(memory) {
                    upgrades::add(tx, no)?;
                }
                true
            }
            Write::Replace { memory, current } => {
                let done = writing.replace(tx, memory, terms, current.version)?;
                if is_provisional(memory)
                    && let Some(stored) = entries::get(tx, memory.scope.tenant(), memory.id)?
                {
                    upgrades::add(tx, stored.no)?;
                }
                done
            }
            Write::Remove(memory) => writing.remove(tx, memory, None)?,
        };
        if !done {
            return Err(Error::internal("an entry changed inside a unit of work"));
        }
    }
    writing.finish(tx)?;
    Ok(None)
}

/// Whether a write can be done as things are.
pub(super) fn possible(tx: &mut dyn Tx, write: &Write) -> Result<bool> {
    let memory = write.memory();
    let version = entries::version(tx, memory.scope.tenant(), memory.id)?;
    Ok(match write {
        Write::Insert(memory) => version.is_none() && states_anew(tx, memory)?,
        Write::Remember { memory, viewer } => {
            let span = Span { scope: memory.scope.clone(), until: None };
            version.is_none()
                && states_anew(tx, memory)?
                && stating_already(tx, &span, memory, viewer)?.is_none()
        }
        Write::Replace { memory, current } => version == Some(current.version) && states_anew(tx, memory)?,
        Write::Remove(memory) => version == Some(memory.version),
    })
}

/// Whether no other entry of the scope states the same fact.
fn states_anew(tx: &mut dyn Tx, memory: &Memory) -> Result<bool> {
    let Some(fact) = memory.fact.as_ref().filter(|_| memory.kind == Kind::Procedural) else {
        return Ok(true);
    };
    let Some(scope) = scopes::find(tx, &memory.scope)? else { return Ok(true) };
    let hidden_by = facts::hidden_by(&memory.scope, &memory.policy, &memory.created_by);
    let Some(stated) = facts::stating(tx, scope.no, fact, hidden_by)? else { return Ok(true) };
    Ok(entries::by_no(tx, stated)?.is_none_or(|stored| stored.memory.id == memory.id))
}
