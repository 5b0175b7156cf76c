//! What happened to memories, for those who follow it on any node of a shared store: kept for minutes, in the order of the
//! change feed.
//!
//! An event is written with the change that it tells of, and has that change's number as soon as the change has. What it says
//! goes when its memory goes; the row stays, so that nothing is missed. A table that lost everything, as one that is not
//! logged does when its database crashes, is known by the tenant's row in `stream_kept` being gone.

use crate::vault::{self, seal_contexts};
use crate::{Recorded, StoreError, Tx, TxExt};
use memtrove_core::Timestamp;
use memtrove_core::identity::Tenant;
use memtrove_core::memories::{MemoryId, ScopeHash};

/// An event to be told.
#[derive(Debug, Clone, Copy)]
pub struct NewEvent<'a> {
    /// The change that it tells of.
    pub recorded: Recorded,
    /// The scope of the memory.
    pub scope: ScopeHash,
    pub memory: MemoryId,
    /// The user who made it.
    pub author: Option<&'a str>,
    /// When.
    pub at: Timestamp,
    /// What is told.
    pub body: &'a [u8],
}

/// An event that has its number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredEvent {
    /// The number of its change.
    pub sequence: i64,
    /// What its change waited under for it.
    pub waited: Option<i64>,
    pub memory: MemoryId,
    /// When.
    pub at: Timestamp,
    /// What is told; nothing once the memory is gone.
    pub body: Option<Vec<u8>>,
}

/// Writes an event, in the unit of work that records its change.
pub fn insert(tx: &mut dyn Tx, tenant: &Tenant, event: &NewEvent<'_>) -> Result<(), StoreError> {
    let place = seal_contexts::stream_event(tenant, event.memory.0, event.at);
    let body = vault::seal(tx, tenant, &place, event.body)?;
    let (waiting, sequence) = match event.recorded {
        Recorded::Numbered(sequence) => (None, Some(sequence)),
        Recorded::Waiting(waiting) => (Some(waiting), None),
    };
    tx.post(
        "INSERT INTO stream_events (tenant, waiting, sequence, scope, memory, author, at, body) \
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8)",
        &[
            tenant.as_str().into(),
            waiting.into(),
            sequence.into(),
            event.scope.0.as_slice().into(),
            event.memory.0.into(),
            event.author.into(),
            event.at.as_micros().into(),
            (*body).into(),
        ],
    )
}

/// The events after a number, in their order.
pub fn page(
    tx: &mut dyn Tx,
    tenant: &Tenant,
    after: i64,
    limit: i64,
) -> Result<Vec<StoredEvent>, StoreError> {
    let mut events = tx.rows(
        "SELECT sequence, waiting, memory, at, body FROM stream_events WHERE tenant = $1 AND sequence > $2 \
         ORDER BY sequence, id LIMIT $3",
        &[tenant.as_str().into(), after.into(), limit.into()],
        |row| {
            Ok(StoredEvent {
                sequence: row.int(0)?,
                waited: row.opt_int(1)?,
                memory: MemoryId(row.uuid(2)?),
                at: Timestamp::from_micros(row.int(3)?),
                body: row.opt_bytes(4)?.map(<[u8]>::to_vec),
            })
        },
    )?;
    for event in &mut events {
        if let Some(body) = event.body.take() {
            event.body =
                Some(vault::open(tx, &seal_contexts::stream_event(tenant, event.memory.0, event.at), body)?);
        }
    }
    Ok(events)
}

/// The number after which every event of a tenant is there; `None` if nothing is known of that.
pub fn kept_after(tx: &mut dyn Tx, tenant: &Tenant) -> Result<Option<i64>, StoreError> {
    tx.first("SELECT after FROM stream_kept WHERE tenant = $1", &[tenant.as_str().into()], |row| row.int(0))
}

/// As [`kept_after`], and where nothing is known, every event after `newest` is: the greatest number that was given so far.
pub fn keep_after(tx: &mut dyn Tx, tenant: &Tenant, newest: i64) -> Result<i64, StoreError> {
    tx.execute(
        "INSERT INTO stream_kept (tenant, after) VALUES ($1, $2) ON CONFLICT (tenant) DO NOTHING",
        &[tenant.as_str().into(), newest.into()],
    )?;
    kept_after(tx, tenant)?.ok_or_else(|| StoreError::Broken("a tenant's stream is missing".into()))
}

/// Takes out of the events of a memory what they say.
pub fn blank_memory(tx: &mut dyn Tx, memory: MemoryId) -> Result<(), StoreError> {
    tx.post("UPDATE stream_events SET body = NULL WHERE memory = $1 AND body IS NOT NULL", &[memory.0.into()])
}

/// Takes out of the events of a scope what they say.
pub fn blank_scope(tx: &mut dyn Tx, scope: ScopeHash) -> Result<(), StoreError> {
    tx.post(
        "UPDATE stream_events SET body = NULL WHERE scope = $1 AND body IS NOT NULL",
        &[scope.0.as_slice().into()],
    )
}

/// Takes out of the events of what a user made what they say, with its name.
pub fn blank_author(tx: &mut dyn Tx, tenant: &Tenant, user: &str) -> Result<(), StoreError> {
    tx.post(
        "UPDATE stream_events SET body = NULL, author = NULL WHERE tenant = $1 AND author = $2",
        &[tenant.as_str().into(), user.into()],
    )
}

/// Removes up to `limit` of the oldest events from before an instant; says how many.
pub fn trim(tx: &mut dyn Tx, before: Timestamp, limit: i64) -> Result<u64, StoreError> {
    let old = tx.rows(
        "SELECT id, tenant, sequence FROM stream_events WHERE at < $1 AND sequence IS NOT NULL ORDER BY at LIMIT $2",
        &[before.as_micros().into(), limit.into()],
        |row| Ok((row.int(0)?, row.text(1)?.to_owned(), row.int(2)?)),
    )?;
    let mut last = std::collections::BTreeMap::<&str, i64>::new();
    for (_, tenant, sequence) in &old {
        let last = last.entry(tenant).or_default();
        *last = (*last).max(*sequence);
    }
    for (tenant, sequence) in last {
        tx.execute(
            "UPDATE stream_kept SET after = $2 WHERE tenant = $1 AND after < $2",
            &[tenant.into(), sequence.into()],
        )?;
    }
    let ids: Vec<i64> = old.iter().map(|(id, ..)| *id).collect();
    tx.execute("DELETE FROM stream_events WHERE id = ANY($1)", &[crate::Value::Ints(&ids)])
}
