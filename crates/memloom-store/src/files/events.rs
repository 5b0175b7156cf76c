//! Events, and the blocks that searches look at instead of them.
//!
//! An event is stored under the number of its block, so that a block can be rebuilt from the events that belong to it,
//! one block at a time, while everything goes on.

use super::scopes::{self, Counted, ScopeId};
use crate::vault::{self, places};
use crate::{Lock, StoreError, Tx, TxExt};
use memloom_core::Timestamp;
use memloom_core::files::blocks::{self, Hits, PreparedQuery};
use memloom_core::files::{Event, EventQuery};
use memloom_core::identity::Tenant;
use std::collections::BTreeMap;
use std::ops::ControlFlow;

/// Stores an event, replacing the one with its id, and makes it findable.
pub fn put(tx: &mut dyn Tx, tenant: &Tenant, scope: &Counted, event: &Event) -> Result<(), StoreError> {
    let id = scope.id;
    let old_block = block_of(tx, id, &event.id)?;
    if let Some(block) = old_block {
        let body = read_block(tx, id, block)?;
        tx.execute(
            "DELETE FROM events WHERE scope_id = $1 AND block = $2 AND event_id = $3",
            &[id.0.into(), block.into(), event.id.as_str().into()],
        )?;
        match blocks::remove(&body, &event.id) {
            Ok(rest) => write_block(tx, tenant, id, block, &rest)?,
            Err(_) => drop(rebuild_block(tx, tenant, id, block)?),
        }
    }
    let sealed = vault::seal(tx, tenant, &places::event(id.0, &event.id), event.json.as_bytes())?;
    tx.execute(
        "INSERT INTO events (scope_id, block, event_id, timestamp, event) VALUES ($1, $2, $3, $4, $5)",
        &[
            id.0.into(),
            scope.open_block.into(),
            event.id.as_str().into(),
            event.timestamp.as_micros().into(),
            (*sealed).into(),
        ],
    )?;
    let body = read_block(tx, id, scope.open_block)?;
    let is_full = match blocks::append(&body, &event.searchable) {
        Ok(body) => {
            write_block(tx, tenant, id, scope.open_block, &body)?;
            blocks::is_full(&body)
        }
        Err(_) => {
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

/// A stored event, if it is what was stored: one that is not must not keep the others from being found.
fn readable(stored: Vec<u8>) -> Option<String> {
    let json = String::from_utf8(stored).ok()?;
    serde_json::from_str::<serde::de::IgnoredAny>(&json).is_ok().then_some(json)
}

/// The events that match best, as they are stored, best first; and the blocks that could not be read, wholly or in part,
/// and were left out.
pub fn search(
    tx: &mut dyn Tx,
    scope: ScopeId,
    query: &EventQuery,
) -> Result<(Vec<String>, Vec<i64>), StoreError> {
    let (query, mut hits) = (PreparedQuery::new(query), Hits::new(query.top_k));
    let mut malformed = Vec::new();
    // Blocks are looked at where they lie; where they are sealed they have to be opened first, which a row's reader
    // cannot do.
    let (is_plain, mut sealed) = (tx.vault().is_plain(), Vec::new());
    tx.query(
        "SELECT block, body FROM event_blocks WHERE scope_id = $1 ORDER BY block DESC",
        &[scope.0.into()],
        Lock::None,
        &mut |row| {
            let (block, body) = (row.int(0)?, row.bytes(1)?);
            if !is_plain {
                sealed.push((block, body.to_vec()));
            } else if blocks::search(body, &query, &mut hits).is_err() {
                malformed.push(block);
            }
            Ok(ControlFlow::Continue(()))
        },
    )?;
    for (block, body) in sealed {
        let body = vault::open(tx, &places::event_block(scope.0, block), body)?;
        if blocks::search(&body, &query, &mut hits).is_err() {
            malformed.push(block);
        }
    }
    let mut events = Vec::new();
    for id in hits.into_ids() {
        let found = tx.first(
            "SELECT block, event FROM events WHERE scope_id = $1 AND event_id = $2",
            &[scope.0.into(), id.as_str().into()],
            |row| Ok((row.int(0)?, row.bytes(1)?.to_vec())),
        )?;
        let Some((block, stored)) = found else { continue };
        match readable(vault::open(tx, &places::event(scope.0, &id), stored)?) {
            Some(event) => events.push(event),
            None => malformed.push(block),
        }
    }
    Ok((events, malformed))
}

/// Removes up to `limit` events from before an instant, out of the index too; says how many.
pub fn expire(
    tx: &mut dyn Tx,
    tenant: &Tenant,
    scope: &Counted,
    cutoff: Timestamp,
    limit: i64,
) -> Result<u64, StoreError> {
    let id = scope.id;
    let mut old: BTreeMap<i64, Vec<String>> = BTreeMap::new();
    tx.query(
        "SELECT block, event_id FROM events WHERE scope_id = $1 AND timestamp < $2 ORDER BY block LIMIT $3",
        &[id.0.into(), cutoff.as_micros().into(), limit.into()],
        Lock::Rows,
        &mut |row| {
            old.entry(row.int(0)?).or_default().push(row.text(1)?.to_owned());
            Ok(ControlFlow::Continue(()))
        },
    )?;
    let mut removed = 0;
    for (block, ids) in old {
        for event_id in &ids {
            removed += tx.execute(
                "DELETE FROM events WHERE scope_id = $1 AND block = $2 AND event_id = $3",
                &[id.0.into(), block.into(), event_id.as_str().into()],
            )?;
        }
        rebuild_block(tx, tenant, id, block)?;
    }
    scopes::set_events(tx, id, -(removed as i64), scope.open_block)?;
    Ok(removed)
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

/// Makes a block of the index anew from the events that belong to it; says how many those are. What is stored of an event
/// that cannot be read is left alone, and out of the index.
pub fn rebuild_block(
    tx: &mut dyn Tx,
    tenant: &Tenant,
    scope: ScopeId,
    block: i64,
) -> Result<u64, StoreError> {
    let stored = tx.rows(
        "SELECT event_id, event FROM events WHERE scope_id = $1 AND block = $2",
        &[scope.0.into(), block.into()],
        |row| Ok((row.text(0)?.to_owned(), row.bytes(1)?.to_vec())),
    )?;
    let (mut body, mut events) = (Vec::new(), 0);
    for (id, sealed) in stored {
        let json = readable(vault::open(tx, &places::event(scope.0, &id), sealed)?);
        let Some(event) = json.as_deref().and_then(Event::stored) else {
            tracing::warn!(block, "a stored event cannot be read; it is left out of the index");
            continue;
        };
        body = blocks::append(&body, &event).map_err(|error| StoreError::Broken(error.to_string()))?;
        events += 1;
    }
    write_block(tx, tenant, scope, block, &body)?;
    Ok(events)
}

fn read_block(tx: &mut dyn Tx, scope: ScopeId, block: i64) -> Result<Vec<u8>, StoreError> {
    let stored = tx.first(
        "SELECT body FROM event_blocks WHERE scope_id = $1 AND block = $2",
        &[scope.0.into(), block.into()],
        |row| Ok(row.bytes(0)?.to_vec()),
    )?;
    stored.map_or(Ok(Vec::new()), |stored| vault::open(tx, &places::event_block(scope.0, block), stored))
}

/// Stores a block; one without events is no block.
fn write_block(
    tx: &mut dyn Tx,
    tenant: &Tenant,
    scope: ScopeId,
    block: i64,
    body: &[u8],
) -> Result<(), StoreError> {
    if blocks::count(body) == 0 {
        tx.execute(
            "DELETE FROM event_blocks WHERE scope_id = $1 AND block = $2",
            &[scope.0.into(), block.into()],
        )?;
        return Ok(());
    }
    let sealed = vault::seal(tx, tenant, &places::event_block(scope.0, block), body)?;
    tx.execute(
        "INSERT INTO event_blocks (scope_id, block, body) VALUES ($1, $2, $3) \
         ON CONFLICT (scope_id, block) DO UPDATE SET body = excluded.body",
        &[scope.0.into(), block.into(), (*sealed).into()],
    )?;
    Ok(())
}
