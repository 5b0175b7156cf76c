//! Sealing everything anew: under fresh keys, or because encryption was turned on or off.
//!
//! [`begin`](Rotation::begin), then [`step`](Rotation::step) until nothing is left, then [`finish`](Rotation::finish), while
//! no other process uses the store. Each is one unit of work that notes how far it got, so that a rotation that was interrupted
//! goes on where it was. Until the end both the old and the new keys are there, and every row can be read.

use super::columns::{KeyValue, SealedTable, TABLES, Visited};
use super::{Provider, Vault, admission, data_keys, open, seal};
use crate::{Lock, StoreError, Tx, TxExt, Value, meta};
use memtrove_core::identity::Tenant;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::ops::ControlFlow;
use uuid::Uuid;

/// Where the rotation is that was interrupted, or is under way.
const POSITION: &str = "rotation";

/// The fact that derived texts are, or were, taken out of the index, by a rotation that has not come to its end.
const TEXT_TRACES: &str = "text_traces";

/// Rows and bytes of one unit of work, at most (but for a row that alone has more).
const STEP_ROWS: i64 = 256;
const STEP_BYTES: usize = 8 << 20;

/// How to rotate; into what is the [`Vault`]'s to say.
#[derive(Debug, Clone, Copy)]
pub struct Rotation {
    /// Whether search keeps the texts that were derived from content, which lie unsealed beside it.
    pub keep_derived_texts: bool,
}

/// How far a rotation is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// Rows that were visited.
    pub rows: u64,
    /// Rows there are.
    pub total: u64,
    /// Whether something readable is being sealed or taken out of the index: traces of it may still be in the file.
    pub leaves_traces: bool,
}

#[derive(Debug, Serialize, Deserialize)]
struct RotationPosition {
    /// What the rotation does. One that does something else cannot go on from here.
    plan: String,
    /// The stage: the tables, then the derived texts.
    stage: usize,
    /// The row that was visited last.
    after: Option<Vec<KeyValue>>,
    rows: u64,
}

impl Rotation {
    /// Starts a rotation, or goes on with the one that was interrupted.
    pub fn begin(&self, tx: &mut dyn Tx) -> Result<Progress, StoreError> {
        let plan = self.plan(tx.vault());
        let position = match position(tx)? {
            Some(position) if position.plan == plan => position,
            _ => {
                if tx.vault().writes == Provider::Dek {
                    rewrap(tx)?;
                } else {
                    admission::note_plain(tx, true)?;
                }
                data_keys::retire(tx)?;
                // Kept for minutes, for those who follow what happens; there are none now, and nothing visits it.
                tx.execute("DELETE FROM stream_events", &[])?;
                tx.execute("DELETE FROM stream_kept", &[])?;
                if self.drops_derived_texts(tx.vault()) && holds_derived_texts(tx)? {
                    meta::set(tx, TEXT_TRACES, Some(&[1]))?;
                }
                let position = RotationPosition { plan, stage: 0, after: None, rows: 0 };
                note(tx, &position)?;
                position
            }
        };
        let mut total = 0;
        for table in TABLES {
            total += table.count(tx)?;
        }
        let leaves_traces = tx.vault().writes == Provider::Dek
            && (admission::may_hold_plain(tx)? || meta::get(tx, TEXT_TRACES)?.is_some());
        Ok(Progress { rows: position.rows, total, leaves_traces })
    }

    /// Does the next piece of work; says how many rows were visited so far, or `None` when all were.
    pub fn step(&self, tx: &mut dyn Tx) -> Result<Option<u64>, StoreError> {
        let mut position = position(tx)?.ok_or_else(not_begun)?;
        let last = match TABLES.get(position.stage) {
            Some(table) => {
                let rows = batch(tx, table, position.after.as_deref())?;
                for row in &rows {
                    seal_anew(tx, table, row)?;
                }
                position.rows += rows.len() as u64;
                rows.into_iter().last().map(|row| row.key)
            }
            None if position.stage == TABLES.len() && self.drops_derived_texts(tx.vault()) => {
                drop_derived_texts(tx, position.after.as_deref())?
            }
            None => return Ok(None),
        };
        if last.is_none() {
            position.stage += 1;
        }
        position.after = last;
        note(tx, &position)?;
        Ok(Some(position.rows))
    }

    /// Destroys the keys that nothing is sealed with any more. Only after the last step: what was not visited is lost.
    pub fn finish(&self, tx: &mut dyn Tx) -> Result<(), StoreError> {
        let done = position(tx)?.is_some_and(|position| {
            position.plan == self.plan(tx.vault())
                && position.stage >= TABLES.len()
                && position.after.is_none()
        });
        if !done {
            return Err(not_begun());
        }
        let plain = tx.vault().writes == Provider::Plain;
        data_keys::destroy_retired(tx)?;
        admission::note_plain(tx, plain)?;
        meta::set(tx, TEXT_TRACES, None)?;
        start_over(tx)
    }

    fn drops_derived_texts(&self, vault: &Vault) -> bool {
        vault.writes == Provider::Dek && !self.keep_derived_texts
    }

    fn plan(&self, vault: &Vault) -> String {
        let keys = vault.keys.as_ref().filter(|_| vault.writes == Provider::Dek);
        let target = keys.map_or("plain", |keys| keys.current().id());
        let tables: Vec<&str> = TABLES.iter().map(|table| table.name).collect();
        format!("{target}: {}, derived texts: {}", tables.join(", "), self.keep_derived_texts)
    }
}

/// Wraps every data key with the current configured key; says how many were wrapped by another.
pub fn rewrap(tx: &mut dyn Tx) -> Result<u64, StoreError> {
    data_keys::rewrap(tx)
}

/// Forgets how far a rotation got: the next one begins at the beginning.
pub(super) fn start_over(tx: &mut dyn Tx) -> Result<(), StoreError> {
    meta::set(tx, POSITION, None)
}

fn position(tx: &mut dyn Tx) -> Result<Option<RotationPosition>, StoreError> {
    let stored = meta::get(tx, POSITION)?;
    // One of another version cannot be gone on with.
    Ok(stored.and_then(|stored| serde_json::from_slice(&stored).ok()))
}

fn note(tx: &mut dyn Tx, position: &RotationPosition) -> Result<(), StoreError> {
    let position = serde_json::to_vec(position).map_err(|error| StoreError::Broken(error.to_string()))?;
    meta::set(tx, POSITION, Some(&position))
}

fn not_begun() -> StoreError {
    StoreError::Broken("the rotation was not begun, or is not at its end".into())
}

/// The rows that come next.
fn batch(
    tx: &mut dyn Tx,
    table: &SealedTable,
    after: Option<&[KeyValue]>,
) -> Result<Vec<Visited>, StoreError> {
    let mut params: Vec<Value<'_>> = vec![STEP_ROWS.into()];
    params.extend(after.unwrap_or_default().iter().map(Value::from));
    let (mut rows, mut bytes) = (Vec::new(), 0);
    tx.query(&table.visit(after.is_none()), &params, Lock::Rows, &mut |row| {
        let row = table.visited(row)?;
        bytes += row.bytes();
        rows.push(row);
        Ok(if bytes < STEP_BYTES { ControlFlow::Continue(()) } else { ControlFlow::Break(()) })
    })?;
    Ok(rows)
}

fn seal_anew(tx: &mut dyn Tx, table: &SealedTable, row: &Visited) -> Result<(), StoreError> {
    let tenant = Tenant::listed(row.tenant.clone());
    let mut contents = Vec::with_capacity(row.contents.len());
    for (place, stored) in table.seal_contexts(&row.key).zip(&row.contents) {
        let Some(stored) = stored else {
            contents.push(None);
            continue;
        };
        let plain = open(tx, &place, stored.clone()).map_err(|error| table.named(&row.key, &error))?;
        contents.push(Some(match seal(tx, &tenant, &place, &plain)? {
            Cow::Owned(sealed) => sealed,
            Cow::Borrowed(_) => plain,
        }));
    }
    if contents == row.contents {
        return Ok(());
    }
    table.replace(tx, &row.key, &contents)
}

fn holds_derived_texts(tx: &mut dyn Tx) -> Result<bool, StoreError> {
    let derived = "SELECT 1 FROM unindexed JOIN texts ON texts.id = unindexed.entry_id LIMIT 1";
    Ok(tx.first(derived, &[], |_| Ok(()))?.is_some())
}

/// Takes texts out of the index that were derived from content and not given, after a row of the indexers' work
/// list: what is on it has no other.
fn drop_derived_texts(
    tx: &mut dyn Tx,
    after: Option<&[KeyValue]>,
) -> Result<Option<Vec<KeyValue>>, StoreError> {
    let first = [KeyValue::Text(String::new()), KeyValue::Int(i64::MIN), KeyValue::Uuid(Uuid::nil())];
    let after = after.unwrap_or(&first).iter().map(Value::from);
    let params: Vec<Value<'_>> = std::iter::once(STEP_ROWS.into()).chain(after).collect();
    let rows = tx.rows(
        "SELECT tenant, created_at, entry_id FROM unindexed WHERE (tenant, created_at, entry_id) > ($2, $3, $4) \
         ORDER BY tenant, created_at, entry_id LIMIT $1",
        &params,
        |row| Ok((row.text(0)?.to_owned(), row.int(1)?, row.uuid(2)?)),
    )?;
    for (_, _, id) in &rows {
        tx.unindex_text(*id)?;
    }
    let key = |(tenant, at, id): (String, i64, Uuid)| {
        vec![KeyValue::Text(tenant), KeyValue::Int(at), KeyValue::Uuid(id)]
    };
    Ok(rows.into_iter().last().map(key))
}
