//! What a change leaves behind: the audit trail, the change feed, the answer under an idempotency key, the stream.

use super::event_json;
use super::forget::{Source, owner};
use super::stream::{Bus, Event, Update};
use super::writing::Write;
use crate::idempotency::replayed;
use memtrove_core::files::{ETag, Scope, canonical};
use memtrove_core::memories::{Author, Memory, MemoryCaller};
use memtrove_core::{Result, Timestamp, UserId};
use memtrove_store::changes::{self, Change, ChangeKind};
use memtrove_store::files::audit::{self, NewRecord};
use memtrove_store::files::scopes;
use memtrove_store::idempotency::{self, RequestKey};
use memtrove_store::memories::versions;
use memtrove_store::stream::{self, NewEvent};
use memtrove_store::{Recorded, Tx};
use serde_json::{Value, json};
use std::sync::Arc;
use uuid::Uuid;

/// Who changes entries, and why.
#[derive(Debug, Clone)]
pub struct Actor {
    /// Who makes the versions that come about.
    pub author: Author,
    /// Who really called.
    pub principal: String,
    /// The id of the request.
    pub request_id: String,
}

impl Actor {
    /// Somebody who calls.
    pub fn of(caller: &MemoryCaller, author: Author) -> Self {
        Self { author, principal: caller.principal.clone(), request_id: caller.request_id.clone() }
    }

    /// A background job.
    pub fn system(job: &str) -> Self {
        Self { author: Author::default(), principal: format!("system:{job}"), request_id: String::new() }
    }
}

/// What the life of an entry came to, beyond that it changed.
#[derive(Debug, Clone)]
pub struct Milestone {
    /// `decayed`, `archived`, `restored`, `promoted`, `consolidated` or `expired`.
    pub name: &'static str,
    /// What else there is to say.
    pub details: Value,
}

/// What is to be told of a batch of writes.
#[derive(Debug, Clone)]
pub struct Entry {
    /// Who.
    pub actor: Arc<Actor>,
    /// When.
    pub at: Timestamp,
    /// Fresh ids, one per write: what the audit trail calls them.
    pub ids: Vec<Uuid>,
    /// Milestones, by the number of the write.
    pub milestones: Vec<(usize, Milestone)>,
    /// The key the request came with, and what it will be answered.
    pub remember: Option<Remember>,
    /// Whether the audit trail is told: not of what only mirrors something else.
    pub audited: bool,
    /// Of copies: what they are made from.
    pub sources: Vec<Source>,
    /// Why, for the audit trail.
    pub reason: &'static str,
}

/// The answer to be given again.
#[derive(Debug, Clone)]
pub struct Remember {
    /// The key.
    pub key: RequestKey,
    /// Whom the answer tells of.
    pub users: Vec<String>,
    /// Older answers do not count.
    pub since: Timestamp,
    /// The answer, as JSON.
    pub answer: String,
}

/// What was told, for those who follow the stream.
pub type Told = Vec<(Recorded, Arc<Event>)>;

impl Entry {
    /// Waits for its turn with the user that these writes are about: the one that something is copied from, or whose scope it is.
    /// They must not cross with forgetting that user. A scope without a user has a turn of its own. First in a unit of work of
    /// the primary store.
    pub fn take_turn(&self, tx: &mut dyn Tx, writes: &[Write]) -> Result<()> {
        let Some(first) = writes.first() else { return Ok(()) };
        let scope = &first.memory().scope;
        let copied = self.sources.iter().find_map(Source::of).cloned();
        match copied.or_else(|| owner(scope)) {
            Some(user) => scopes::take_turn(tx, &user)?,
            None => tx.lock(&scope.hash().0)?,
        }
        Ok(())
    }

    /// Whether all that is copied is still there; always so for what is no copy. Of the primary store's unit of work.
    pub fn has_sources(&self, tx: &mut dyn Tx) -> Result<bool> {
        for source in &self.sources {
            if !source.is_there(tx)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// What the very request was answered before, if it came with a key.
    pub fn replayed(&self, tx: &mut dyn Tx, writes: &[Write]) -> Result<Option<String>> {
        let (Some(remember), Some(first)) = (&self.remember, writes.first()) else { return Ok(None) };
        replayed(tx, first.memory().scope.tenant(), &remember.key, remember.since)
    }

    /// Notes writes to working memory that are done, in their unit of work: neither the audit trail nor the change feed is told.
    pub fn note(&self, tx: &mut dyn Tx, writes: &[Write]) -> Result<Vec<Arc<Event>>> {
        let mut events = Vec::with_capacity(writes.len());
        for (number, write) in writes.iter().enumerate() {
            events.push(Arc::new(self.event(tx, number, write)?));
        }
        self.remember(tx, writes)?;
        Ok(events)
    }

    /// What happened to an entry. A new version is noted with the entry.
    fn event(&self, tx: &mut dyn Tx, number: usize, write: &Write) -> Result<Event> {
        let memory = write.memory();
        let update = match write {
            Write::Insert(_) | Write::Remember { .. } => Update::Created,
            Write::Replace { .. } => Update::Updated,
            Write::Remove(_) => Update::Deleted,
        };
        if update == Update::Updated {
            versions::record(tx, memory.id, memory.version, self.at, &self.actor.author)?;
        }
        let milestone = self.milestones.iter().find(|(of, _)| *of == number).map(|(_, m)| m.clone());
        Ok(Event { update, memory: memory.clone(), at: self.at, milestone })
    }

    /// Keeps the answer under the key of the request.
    fn remember(&self, tx: &mut dyn Tx, writes: &[Write]) -> Result<()> {
        if let (Some(remember), Some(first)) = (&self.remember, writes.first()) {
            let tenant = first.memory().scope.tenant();
            let Remember { key, users, answer, .. } = remember;
            idempotency::remember(tx, tenant, key, users, answer, self.at)?;
        }
        Ok(())
    }

    /// Tells of writes that are done, in their unit of work.
    pub fn tell(&self, tx: &mut dyn Tx, writes: &[Write]) -> Result<Told> {
        let mut told = Vec::with_capacity(writes.len());
        for (number, write) in writes.iter().enumerate() {
            let memory = write.memory();
            let event = self.event(tx, number, write)?;
            if self.audited {
                self.audit(tx, memory, event.update, self.ids.get(number).copied().unwrap_or_default())?;
            }
            let version = memory.etag();
            let change = Change {
                kind: match event.update {
                    Update::Created => ChangeKind::MemoryCreated,
                    Update::Updated => ChangeKind::MemoryUpdated,
                    Update::Deleted => ChangeKind::MemoryDeleted,
                },
                user: memory.scope.user().or(memory.created_by.user.as_deref()),
                resource: &memory.id.to_string(),
                version: Some(&version),
            };
            let recorded = changes::record(tx, memory.scope.tenant(), self.at, &change)?;
            keep(tx, recorded, &event)?;
            told.push((recorded, Arc::new(event)));
        }
        self.remember(tx, writes)?;
        Ok(told)
    }

    /// Writes the record of a change: references, never content.
    fn audit(&self, tx: &mut dyn Tx, memory: &Memory, update: Update, change: Uuid) -> Result<()> {
        let Actor { author, principal, request_id } = &*self.actor;
        let user = memory.scope.user().or(author.user.as_deref()).map_or_else(
            || author.client.as_ref().map_or_else(|| principal.clone(), |client| format!("client:{client}")),
            str::to_owned,
        );
        let tenant = memory.scope.tenant();
        let (scope, sequence) = scopes::take_place(tx, &Scope::listed(tenant.clone(), UserId(user)))?;
        let previous = match update {
            Update::Created => None,
            Update::Updated => Some(memory.version - 1),
            Update::Deleted => Some(memory.version),
        };
        let record = json!({
            "layer": "memories",
            "action": match update {
                Update::Created => "create",
                Update::Updated => "replace",
                Update::Deleted => "delete",
            },
            "actor": author.client.as_deref().or(author.user.as_deref()).unwrap_or(principal),
            "principal": principal,
            "reason": self.reason,
            "ops": [],
            "edits": [],
            "document_sha256": memory.content_hash().trim_start_matches("sha256:"),
            "ops_hash": canonical::ops_hash(&[], &[]),
            "evidence": memory.metadata.get("source"),
            "idempotency_key_hash": null,
            "request_id": request_id,
            "previous_version": previous,
            "version": if update == Update::Deleted { None } else { Some(memory.version) },
            "memory_layer": memory.scope.layer().as_str(),
        });
        let path = format!("memories/{}", memory.id);
        let new = NewRecord {
            sequence,
            at: self.at,
            path: &path,
            etag: ETag { revision: memory.version, change },
            previous: None,
            record: &record.to_string(),
            image: None,
        };
        audit::insert(tx, tenant, scope, &new)?;
        Ok(())
    }
}

/// Writes an event down for those who follow the stream on any node, in the unit of work that records its change. Where a change
/// has its number at once there is no other node, and nothing to be written.
pub(crate) fn keep(tx: &mut dyn Tx, recorded: Recorded, event: &Event) -> Result<()> {
    if matches!(recorded, Recorded::Numbered(_)) {
        return Ok(());
    }
    let memory = &event.memory;
    if event.update == Update::Deleted {
        // What it said goes with it.
        stream::blank_memory(tx, memory.id)?;
    }
    let body = event_json::write(event);
    let new = NewEvent {
        recorded,
        scope: memory.scope.hash(),
        memory: memory.id,
        author: memory.created_by.user.as_deref(),
        at: event.at,
        body: body.as_bytes(),
    };
    Ok(stream::insert(tx, memory.scope.tenant(), &new)?)
}

/// Tells those who follow the stream, in the order of the commits.
pub fn publish(bus: &Bus, told: &Told) {
    for (recorded, event) in told {
        bus.publish(*recorded, event.clone());
    }
}
