//! Events, and the blocks that searches look at instead of them.
//!
//! An event is stored under the number of its block, so that a block can be rebuilt from the events that belong to it,
//! one block at a time, while everything goes on.

use super::scopes::{self, Counted, ScopeId};
use super::{ANSWER_BYTES, STEP_BYTES};
use crate::vault::{self, SealContext, seal_contexts};
use crate::{Lock, StoreError, Tx, TxExt};
use memtrove_core::Timestamp;
use memtrove_core::files::blocks::{self, Hits, PreparedQuery};
use memtrove_core::files::{Event, EventQuery};
use memtrove_core::identity::Tenant;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

/// Stores an event, replacing the one with its id, and makes it findable.
pub fn put(tx: &mut dyn Tx, tenant: &Tenant, scope: &Counted, event: &Event) -> Result<(), StoreError> {
    let id = scope.id;
    let old_block = block_of(tx, id, &event.id)?;
    if let Some(block) = old_block {
        delete(tx, id, block, &event.id)?;
        unindex(tx, tenant, id, block, |one| one == event.id)?;
    }
    let sealed = vault::seal(tx, tenant, &seal_contexts::event(id.0, &event.id), event.json.as_bytes())?;
    tx.post(
        "INSERT INTO events (scope_id, block, event_id, timestamp, event) VALUES ($1, $2, $3, $4, $5)",
        &[
            id.0.into(),
            scope.open_block.into(),
            event.id.as_str().into(),
            event.timestamp.as_micros().into(),
            (*sealed).into(),
        ],
    )?;
    let block = read_block(tx, id, scope.open_block)?;
    let is_full = match block.and_then(|body| blocks::append(&body, &event.searchable).ok()) {
        Some(body) => {
            write_block(tx, tenant, id, scope.open_block, &body)?;
            blocks::is_full(&body)
        }
        None => {
            rebuild_block(tx, tenant, id, scope.open_block)?;
            true
        }
    };
    let next_block = scope.open_block + i64::from(is_full);
    scopes::set_events(tx, id, i64::from(old_block.is_none()), next_block)
}

/// Whether there is an event with this id.
pub fn exists(tx: &mut dyn Tx, scope: ScopeId, event_id: &str) -> Result<bool, StoreError> {
    block_of(tx, scope, event_id).map(|block| block.is_some())
}

fn block_of(tx: &mut dyn Tx, scope: ScopeId, event_id: &str) -> Result<Option<i64>, StoreError> {
    tx.first(
        "SELECT block FROM events WHERE scope_id = $1 AND event_id = $2",
        &[scope.0.into(), event_id.into()],
        |row| row.int(0),
    )
}

/// What was stored at a place, if it can still be opened: what cannot must not keep the rest from being found. The vault
/// has raised its alarm by then.
fn opened(tx: &mut dyn Tx, place: &SealContext<'_>, stored: Vec<u8>) -> Result<Option<Vec<u8>>, StoreError> {
    match vault::open(tx, place, stored) {
        Ok(content) => Ok(Some(content)),
        Err(StoreError::Broken(_)) => Ok(None),
        Err(error) => Err(error),
    }
}

/// A stored event, if it is still the JSON that it was.
fn readable(
    tx: &mut dyn Tx,
    scope: ScopeId,
    event_id: &str,
    stored: Vec<u8>,
) -> Result<Option<String>, StoreError> {
    let opened = opened(tx, &seal_contexts::event(scope.0, event_id), stored)?;
    let json = opened.and_then(|json| String::from_utf8(json).ok());
    Ok(json.filter(|json| serde_json::from_str::<serde::de::IgnoredAny>(json).is_ok()))
}

/// The events that match best, as they are stored, best first, as many as fit one answer; and the blocks that could not
/// be read, wholly or in part, and were left out.
pub fn search(
    tx: &mut dyn Tx,
    scope: ScopeId,
    query: &EventQuery,
) -> Result<(Vec<String>, BTreeSet<i64>), StoreError> {
    let (query, mut hits) = (PreparedQuery::new(query), Hits::new(query.top_k));
    let mut unreadable = BTreeSet::new();
    each_block(tx, scope, &mut |block, body| {
        if body.is_none_or(|body| blocks::search(body, &query, &mut hits).is_err()) {
            unreadable.insert(block);
        }
    })?;
    let (mut events, mut bytes) = (Vec::new(), 0);
    for id in hits.into_ids() {
        let found = tx.first(
            "SELECT block, event FROM events WHERE scope_id = $1 AND event_id = $2",
            &[scope.0.into(), id.as_str().into()],
            |row| Ok((row.int(0)?, row.bytes(1)?.to_vec())),
        )?;
        let Some((block, stored)) = found else { continue };
        let Some(event) = readable(tx, scope, &id, stored)? else {
            unreadable.insert(block);
            continue;
        };
        bytes += event.len();
        if bytes > ANSWER_BYTES && !events.is_empty() {
            break;
        }
        events.push(event);
    }
    Ok((events, unreadable))
}

/// Shows every block of a scope, the newest first; none where it cannot be opened. Blocks are looked at where they lie;
/// sealed ones have to be opened, which a row's reader cannot do, so they are taken some at a time.
fn each_block(
    tx: &mut dyn Tx,
    scope: ScopeId,
    show: &mut dyn FnMut(i64, Option<&[u8]>),
) -> Result<(), StoreError> {
    let sql = "SELECT block, body FROM event_blocks WHERE scope_id = $1 AND block < $2 ORDER BY block DESC";
    if tx.vault().is_plain() {
        return tx.query(sql, &[scope.0.into(), i64::MAX.into()], Lock::None, &mut |row| {
            show(row.int(0)?, Some(row.bytes(1)?));
            Ok(ControlFlow::Continue(()))
        });
    }
    let mut before = i64::MAX;
    loop {
        let (mut sealed, mut bytes) = (Vec::new(), 0);
        tx.query(sql, &[scope.0.into(), before.into()], Lock::None, &mut |row| {
            let body = row.bytes(1)?.to_vec();
            bytes += body.len();
            sealed.push((row.int(0)?, body));
            Ok(if bytes < STEP_BYTES { ControlFlow::Continue(()) } else { ControlFlow::Break(()) })
        })?;
        let Some((last, _)) = sealed.last() else { return Ok(()) };
        before = *last;
        for (block, body) in sealed {
            let body = opened(tx, &seal_contexts::event_block(scope.0, block), body)?;
            show(block, body.as_deref());
        }
    }
}

/// Notes that blocks could not be read, until they are rebuilt.
pub fn note_unreadable(
    tx: &mut dyn Tx,
    scope: ScopeId,
    blocks: &BTreeSet<i64>,
    now: Timestamp,
) -> Result<(), StoreError> {
    for block in blocks {
        tx.post(
            "INSERT INTO unreadable_blocks (scope_id, block, found_at) VALUES ($1, $2, $3) \
             ON CONFLICT (scope_id, block) DO NOTHING",
            &[scope.0.into(), (*block).into(), now.as_micros().into()],
        )?;
    }
    Ok(())
}

/// Since when there has been a block that could not be read.
pub fn unreadable_since(tx: &mut dyn Tx) -> Result<Option<Timestamp>, StoreError> {
    let since = tx.first(
        "SELECT MIN(u.found_at) FROM unreadable_blocks u JOIN scopes s ON s.id = u.scope_id",
        &[],
        |row| row.opt_int(0),
    )?;
    Ok(since.flatten().map(Timestamp::from_micros))
}

/// Whether there are events from before an instant.
pub fn any_before(tx: &mut dyn Tx, scope: ScopeId, cutoff: Timestamp) -> Result<bool, StoreError> {
    let found = tx.first(
        "SELECT 1 FROM events WHERE scope_id = $1 AND timestamp < $2 LIMIT 1",
        &[scope.0.into(), cutoff.as_micros().into()],
        |_| Ok(()),
    )?;
    Ok(found.is_some())
}

/// Removes an event, out of the index too; says whether there was one.
pub fn remove(tx: &mut dyn Tx, tenant: &Tenant, scope: &Counted, event_id: &str) -> Result<bool, StoreError> {
    let Some(block) = block_of(tx, scope.id, event_id)? else { return Ok(false) };
    delete(tx, scope.id, block, event_id)?;
    unindex(tx, tenant, scope.id, block, |one| one == event_id)?;
    scopes::set_events(tx, scope.id, -1, scope.open_block)?;
    Ok(true)
}

/// Removes some of the events from before an instant, out of the index too: up to `limit`, and not much more than a step's
/// bytes. Answers their ids.
pub fn expire(
    tx: &mut dyn Tx,
    tenant: &Tenant,
    scope: &Counted,
    cutoff: Timestamp,
    limit: i64,
) -> Result<Vec<String>, StoreError> {
    let id = scope.id;
    let (mut old, mut bytes) = (BTreeMap::<i64, BTreeSet<String>>::new(), 0);
    tx.query(
        "SELECT block, event_id, LENGTH(event) FROM events WHERE scope_id = $1 AND timestamp < $2 \
         ORDER BY timestamp LIMIT $3",
        &[id.0.into(), cutoff.as_micros().into(), limit.into()],
        Lock::None,
        &mut |row| {
            old.entry(row.int(0)?).or_default().insert(row.text(1)?.to_owned());
            bytes += row.int(2)? as usize;
            Ok(if bytes < STEP_BYTES { ControlFlow::Continue(()) } else { ControlFlow::Break(()) })
        },
    )?;
    let (mut removed, mut bytes) = (Vec::new(), 0);
    for (block, ids) in old {
        for event_id in &ids {
            delete(tx, id, block, event_id)?;
        }
        bytes += unindex(tx, tenant, id, block, |one| ids.contains(one))?;
        removed.extend(ids);
        if bytes >= STEP_BYTES {
            break;
        }
    }
    scopes::set_events(tx, id, -(removed.len() as i64), scope.open_block)?;
    Ok(removed)
}

fn delete(tx: &mut dyn Tx, scope: ScopeId, block: i64, event_id: &str) -> Result<u64, StoreError> {
    tx.execute(
        "DELETE FROM events WHERE scope_id = $1 AND block = $2 AND event_id = $3",
        &[scope.0.into(), block.into(), event_id.into()],
    )
}

/// Takes events that were deleted out of their block; answers how many bytes that took.
fn unindex(
    tx: &mut dyn Tx,
    tenant: &Tenant,
    scope: ScopeId,
    block: i64,
    gone: impl Fn(&str) -> bool,
) -> Result<usize, StoreError> {
    match read_block(tx, scope, block)?.and_then(|body| blocks::remove(&body, gone).ok()) {
        Some(rest) => {
            write_block(tx, tenant, scope, block, &rest)?;
            Ok(rest.len())
        }
        None => Ok(rebuild_block(tx, tenant, scope, block)?.bytes),
    }
}

/// The numbers of a scope's blocks from `from` on, those with events and those in the index.
pub fn blocks_from(tx: &mut dyn Tx, scope: ScopeId, from: i64, limit: i64) -> Result<Vec<i64>, StoreError> {
    tx.rows(
        "SELECT block FROM events WHERE scope_id = $1 AND block >= $2 UNION \
         SELECT block FROM event_blocks WHERE scope_id = $1 AND block >= $2 ORDER BY 1 LIMIT $3",
        &[scope.0.into(), from.into(), limit.into()],
        |row| row.int(0),
    )
}

/// A block that was made anew.
#[derive(Debug, Clone, Copy)]
pub struct Rebuilt {
    /// How many events are in it.
    pub events: u64,
    /// How much had to be read.
    pub bytes: usize,
}

/// Makes a block of the index anew from the events that belong to it. What is stored of an event that cannot be read is
/// left alone, and out of the index.
pub fn rebuild_block(
    tx: &mut dyn Tx,
    tenant: &Tenant,
    scope: ScopeId,
    block: i64,
) -> Result<Rebuilt, StoreError> {
    let (mut events, mut bytes) = (Vec::new(), 0);
    for (id, stored) in stored_in(tx, scope, block)? {
        bytes += stored.len();
        match readable(tx, scope, &id, stored)?.as_deref().and_then(Event::stored) {
            Some(event) => events.push(event),
            None => tracing::warn!(block, "a stored event cannot be read; it is left out of the index"),
        }
    }
    let rebuilt = Rebuilt { events: events.len() as u64, bytes };
    write_block(tx, tenant, scope, block, &blocks::build(events))?;
    tx.post(
        "DELETE FROM unreadable_blocks WHERE scope_id = $1 AND block = $2",
        &[scope.0.into(), block.into()],
    )?;
    Ok(rebuilt)
}

/// The events of a block that can be read: their ids, and each as it is stored.
pub fn in_block(tx: &mut dyn Tx, scope: ScopeId, block: i64) -> Result<Vec<(String, String)>, StoreError> {
    let mut events = Vec::new();
    for (id, stored) in stored_in(tx, scope, block)? {
        events.extend(readable(tx, scope, &id, stored)?.map(|event| (id, event)));
    }
    Ok(events)
}

fn stored_in(tx: &mut dyn Tx, scope: ScopeId, block: i64) -> Result<Vec<(String, Vec<u8>)>, StoreError> {
    tx.rows(
        "SELECT event_id, event FROM events WHERE scope_id = $1 AND block = $2",
        &[scope.0.into(), block.into()],
        |row| Ok((row.text(0)?.to_owned(), row.bytes(1)?.to_vec())),
    )
}

/// A block, or the empty one where there is none; none where it cannot be opened.
fn read_block(tx: &mut dyn Tx, scope: ScopeId, block: i64) -> Result<Option<Vec<u8>>, StoreError> {
    let stored = tx.first(
        "SELECT body FROM event_blocks WHERE scope_id = $1 AND block = $2",
        &[scope.0.into(), block.into()],
        |row| Ok(row.bytes(0)?.to_vec()),
    )?;
    match stored {
        Some(stored) => opened(tx, &seal_contexts::event_block(scope.0, block), stored),
        None => Ok(Some(Vec::new())),
    }
}

/// Stores a block; one without events is no block.
fn write_block(
    tx: &mut dyn Tx,
    tenant: &Tenant,
    scope: ScopeId,
    block: i64,
    body: &[u8],
) -> Result<(), StoreError> {
    if body.is_empty() {
        tx.post(
            "DELETE FROM event_blocks WHERE scope_id = $1 AND block = $2",
            &[scope.0.into(), block.into()],
        )?;
        return Ok(());
    }
    let sealed = vault::seal(tx, tenant, &seal_contexts::event_block(scope.0, block), body)?;
    tx.post(
        "INSERT INTO event_blocks (scope_id, block, body) VALUES ($1, $2, $3) \
         ON CONFLICT (scope_id, block) DO UPDATE SET body = excluded.body",
        &[scope.0.into(), block.into(), (*sealed).into()],
    )?;
    Ok(())
}
