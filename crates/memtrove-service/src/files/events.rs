//! Writing events and finding them.

use super::replay::FileReplay;
use super::{Admitted, Files, Reader, Writer};
use crate::memories::journal::Told;
use crate::memories::mirror;
use crate::{files_metrics, quota};
use memtrove_core::files::{Event, IdempotencyKey, SearchEvents};
use memtrove_core::{Error, Result};
use memtrove_store::changes::{self, Change, ChangeKind};
use memtrove_store::files::{events, scopes};
use serde_json::Value;
use std::sync::Arc;
use std::time::Instant;

/// An event to be stored: a JSON object, which must name the scope it is for.
#[derive(Debug, Clone)]
pub struct WriteEvent {
    pub event: Option<Value>,
    pub key: Option<IdempotencyKey>,
}

/// That an event is stored and can be found.
#[derive(Debug, Clone, Copy)]
pub struct EventWritten {
    /// Whether this is the answer to an earlier request.
    pub replayed: bool,
}

impl Files {
    /// Stores an event, replacing the one with its id, and the memory that mirrors it.
    pub async fn write_event(
        &self,
        admitted: &Admitted<Writer>,
        request: WriteEvent,
    ) -> Result<EventWritten> {
        let (caller, now) = (admitted.caller(), self.cx.clock.now());
        let replay = FileReplay::new(&self.cx, request.key);
        let (tenant, user) = (caller.scope.tenant().as_str(), caller.scope.user().as_str());
        let event = Event::read(request.event, tenant, user, &caller.actor, now)?;
        let mirrors = Arc::new(self.memories.mirrors(&caller.scope, &[&event.json]).await);
        let (cx, writer, made) = (self.cx.clone(), caller.clone(), mirrors.clone());
        let publish = self.memories.publish();
        let written = self
            .cx
            .store
            .write_then(
                caller.scope.tenant(),
                "write_event",
                move |tx| {
                    scopes::take_turn(tx, &writer.scope)?;
                    let scope = scopes::lock(tx, &writer.scope)?;
                    if replay.find(tx, &writer, scope.id)?.is_some() {
                        return Ok((EventWritten { replayed: true }, Told::new()));
                    }
                    let tenant = writer.scope.tenant();
                    if let Some(limit) = cx.quotas.max_events(tenant.as_str())
                        && scope.events as u64 >= limit
                        && !events::exists(tx, scope.id, &event.id)?
                    {
                        return Err(quota::full("events", limit));
                    }
                    events::put(tx, tenant, &scope, &event)?;
                    let change = Change {
                        kind: ChangeKind::EventWritten,
                        user: Some(writer.scope.user().as_str()),
                        resource: &event.id,
                        version: None,
                    };
                    let recorded = changes::record(tx, tenant, now, &change)?;
                    let mut told = Told::new();
                    for mirror in made.iter() {
                        let put = mirror.put(tx)?;
                        told.extend(mirror::told(tx, recorded, &put, now)?);
                    }
                    replay.remember(tx, &writer, scope.id, now, || Ok("{}".to_owned()))?;
                    Ok((EventWritten { replayed: false }, told))
                },
                move |(_, told)| publish(told),
            )
            .await;
        self.memories.mirrored(&mirrors);
        self.refund_refused(admitted, written.map(|(written, _)| written))
    }

    /// The events that answer a query best, each as it is stored.
    pub async fn search_events(
        &self,
        admitted: &Admitted<Reader>,
        query: SearchEvents,
    ) -> Result<Vec<String>> {
        let (query, started) = (query.check()?, Instant::now());
        let scope = admitted.caller().scope.clone();
        let (found, unreadable) = self
            .cx
            .store
            .read(admitted.caller().scope.tenant(), "search_events", move |tx| {
                match scopes::find(tx, &scope)? {
                    Some(id) => {
                        let (found, unreadable) = events::search(tx, id, &query)?;
                        Ok::<_, Error>((found, (!unreadable.is_empty()).then_some((id, unreadable))))
                    }
                    None => Ok(Default::default()),
                }
            })
            .await?;
        if let Some((id, blocks)) = unreadable {
            tracing::error!(
                blocks = blocks.len(),
                "blocks of the event index cannot be read; rebuild it with `memtrove reindex`"
            );
            let now = self.cx.clock.now();
            let noted = self.cx.store.write(admitted.caller().scope.tenant(), "note_unreadable", move |tx| {
                if scopes::lock_known(tx, id)?.is_some() {
                    events::note_unreadable(tx, id, &blocks, now)?;
                }
                Ok::<_, Error>(())
            });
            // What was found is an answer all the same.
            if let Err(error) = noted.await {
                tracing::warn!(%error, "that could not be noted");
            }
        }
        files_metrics::event_search(started.elapsed(), found.len());
        Ok(found)
    }
}
