//! Events as episodic memories: one record, two views. Both are written and removed together, in one unit of work.

use super::Memories;
use super::access::Writable;
use super::pieces::CutTexts;

use super::entries::settle_state;
use super::journal::{self, Actor, Entry, Told};
use super::stream::{Event, Update};
use super::writing::{Write, WriteOutcome, terms_of};
use memtrove_core::files::Scope;
use memtrove_core::memories::{Memory, mirror};
use memtrove_core::recall::terms::EntryTerms;
use memtrove_core::{Error, Result, Timestamp, UserId};
use memtrove_recall::embed::EmbedError;
use memtrove_store::changes::{self, Change, ChangeKind};
use memtrove_store::files::scopes::ScopeId;
use memtrove_store::files::{events, scopes};
use memtrove_store::memories::writing::Writing;
use memtrove_store::memories::{entries, purge, upgrades, versions};
use memtrove_store::{Recorded, Tx};
use std::sync::Arc;

/// Mirrors that one unit of work makes at most: other writes wait meanwhile.
const STEP: usize = 100;

/// An entry that mirrors an event, ready to be written.
pub(crate) struct Mirror {
    memory: Memory,
    terms: EntryTerms,
    /// Whether a vector, or a better one, is still to be made.
    waits: bool,
}

impl Mirror {
    /// Writes it: a new entry, or the next version of the one that mirrors the event already.
    pub fn put(&self, tx: &mut dyn Tx) -> Result<Write> {
        let (id, tenant) = (self.memory.id, self.memory.scope.tenant());
        let mut writing = Writing::default();
        let (write, no) = match entries::get(tx, tenant, id)? {
            Some(old) => {
                let memory = mirror::renewed(self.memory.clone(), &old.memory);
                writing.replace(tx, &memory, &self.terms, old.memory.version)?;
                versions::record(tx, id, memory.version, memory.updated_at, &memory.created_by)?;
                (Write::Replace { memory: Arc::new(memory), current: Writable::by_task(old.memory) }, old.no)
            }
            None => {
                // One of before its user was forgotten may not be cleared away yet.
                purge::clear_id(tx, id)?;
                let no = writing.insert(tx, &self.memory, &self.terms)?;
                (Write::Insert(Arc::new(self.memory.clone())), no)
            }
        };
        writing.finish(tx)?;
        if self.waits {
            upgrades::add(tx, no)?;
        }
        Ok(write)
    }

    fn event_id(&self) -> &str {
        self.memory.lineage.mirror_of.as_deref().unwrap_or_default()
    }
}

/// What followers of the stream are told of a mirror, under the number of the change that tells of its event.
pub(crate) fn told(tx: &mut dyn Tx, recorded: Recorded, write: &Write, at: Timestamp) -> Result<Told> {
    let update = if matches!(write, Write::Insert(_)) { Update::Created } else { Update::Updated };
    let event = Event { update, memory: write.memory().clone(), at, milestone: None };
    journal::keep(tx, recorded, &event)?;
    Ok(vec![(recorded, Arc::new(event))])
}

/// Removes the entries that mirror events which are gone, in the unit of work that removes those.
pub(crate) fn remove(tx: &mut dyn Tx, scope: &Scope, events: &[String], journal: &Entry) -> Result<Told> {
    let (mut writing, mut writes) = (Writing::default(), Vec::new());
    for event in events {
        let Some(stored) = entries::get(tx, scope.tenant(), mirror::id(scope, event))? else { continue };
        writing.remove(tx, &stored.memory, None)?;
        writes.push(Write::Remove(Writable::by_task(stored.memory)));
    }
    writing.finish(tx)?;
    journal.tell(tx, &writes)
}

impl Memories {
    /// The entries that mirror events of a scope; an event that cannot be read has none. Where no embedding can be made they
    /// are found by their words for the time being: an event is stored in any case.
    pub(crate) async fn mirrors(&self, scope: &Scope, events: &[&str]) -> Vec<Mirror> {
        let (now, most) = (self.now(), self.rules().limits.metadata_bytes);
        let mut memories: Vec<Memory> =
            events.iter().filter_map(|event| mirror::memory(scope, event, most, now)).collect();
        let texts: Vec<&str> = memories.iter().map(|memory| memory.content.as_str()).collect();
        let cut = CutTexts::of(&texts);
        match self.cx.embeddings.documents(scope.tenant().as_str(), cut.all()).await {
            Ok(made) => {
                let made = cut.embeddings(made);
                for (memory, made) in memories.iter_mut().zip(made) {
                    memory.embedding = Some(made);
                    settle_state(memory);
                }
            }
            Err(EmbedError::Disabled) => {}
            Err(error) => tracing::warn!(%error, "an event could not be embedded; that is made up for later"),
        }
        let preferred = self.cx.embeddings.preferred_model_id();
        let mirror = |memory: Memory| {
            let model = memory.embedding.as_ref().map(|embedding| &*embedding.model);
            let waits = model.is_none() || model != preferred;
            Mirror { terms: terms_of(&self.cx, &memory), waits, memory }
        };
        memories.into_iter().map(mirror).collect()
    }

    /// Has vectors made that mirrors wait for.
    pub(crate) fn mirrored(&self, mirrors: &[Mirror]) {
        if mirrors.iter().any(|mirror| mirror.waits) {
            self.wake_upgrades();
        }
    }

    /// What the journal is told of changes that the audit trail is not: it keeps no events, and nothing of forgetting.
    pub(crate) fn unaudited(&self, job: &'static str) -> Entry {
        Entry { audited: false, ..self.journal(Actor::system(job), self.now(), 0, job) }
    }

    /// Tells followers of the stream, for [`memtrove_store::Store::write_then`].
    pub(crate) fn publish(&self) -> impl Fn(&Told) + Send + use<> {
        let bus = self.parts.bus.clone();
        move |told| journal::publish(&bus, told)
    }

    /// Drops the remembered vectors of what is gone.
    pub(crate) fn forget_texts(&self, told: &Told) {
        for (_, event) in told {
            self.forget_vectors(event.memory.scope.tenant().as_str(), &event.memory.content);
        }
    }

    /// Removes an event together with the entry that mirrors it, if that is still at its version.
    pub(super) async fn delete_event(&self, memory: Writable, journal: Entry) -> Result<WriteOutcome> {
        let (publish, at, tenant) = (self.publish(), journal.at, memory.scope.tenant().clone());
        let work = move |tx: &mut dyn Tx| {
            let tenant = memory.scope.tenant();
            if entries::version(tx, tenant, memory.id)? != Some(memory.version) {
                return Ok((WriteOutcome::Conflict(vec![memory.id]), Told::new()));
            }
            let scope =
                Scope::listed(tenant.clone(), UserId(memory.scope.user().unwrap_or_default().to_owned()));
            let event = memory.lineage.mirror_of.as_deref().unwrap_or_default();
            let counted = scopes::lock(tx, &scope)?;
            if events::remove(tx, tenant, &counted, event)? {
                let user = Some(scope.user().as_str());
                let change = Change { kind: ChangeKind::EventDeleted, user, resource: event, version: None };
                changes::record(tx, tenant, at, &change)?;
            }
            let mut writing = Writing::default();
            writing.remove(tx, &memory, None)?;
            writing.finish(tx)?;
            Ok::<_, Error>((WriteOutcome::Done, journal.tell(tx, &[Write::Remove(memory.clone())])?))
        };
        let written =
            self.cx.store.write_then(tenant, "delete_event", work, move |(_, told)| publish(told)).await?;
        Ok(written.0)
    }

    /// Makes the mirrors that events of some blocks do not have: those that an older version wrote.
    pub(crate) async fn mirror_missing(&self, id: ScopeId, scope: &Scope, blocks: Vec<i64>) -> Result<()> {
        let owner = scope.clone();
        let missing = self.cx.store.read(scope.tenant(), "list_unmirrored", move |tx| {
            let mut missing = Vec::new();
            for block in &blocks {
                for (event_id, event) in events::in_block(tx, id, *block)? {
                    if entries::version(tx, owner.tenant(), mirror::id(&owner, &event_id))?.is_none() {
                        missing.push(event);
                    }
                }
            }
            Ok::<_, Error>(missing)
        });
        let missing = missing.await?;
        for step in missing.chunks(STEP) {
            let events: Vec<&str> = step.iter().map(String::as_str).collect();
            let mirrors = Arc::new(self.mirrors(scope, &events).await);
            let (made, journal, publish) = (mirrors.clone(), self.unaudited("mirroring"), self.publish());
            let work = move |tx: &mut dyn Tx| {
                // The user may have been forgotten since, and an event removed, or written again with its mirror.
                if scopes::lock_known(tx, id)?.is_none() {
                    return Ok(Told::new());
                }
                let mut writes = Vec::new();
                for mirror in made.iter() {
                    let (tenant, memory) = (mirror.memory.scope.tenant(), mirror.memory.id);
                    if events::exists(tx, id, mirror.event_id())?
                        && entries::version(tx, tenant, memory)?.is_none()
                    {
                        writes.push(mirror.put(tx)?);
                    }
                }
                journal.tell(tx, &writes)
            };
            self.cx.store.write_then(scope.tenant(), "mirror_events", work, publish).await?;
            self.mirrored(&mirrors);
        }
        Ok(())
    }
}
