//! Entries whose vector is to be made anew: by a better model of the same space, or in another space.

use super::{MemoryNo, entries, index};
use crate::{StoreError, Tx, TxExt, meta};
use memtrove_core::memories::Embedding;
use memtrove_core::recall::terms::EntryTerms;

const LISTED_FOR: &str = "memory_vectors_listed_for";
/// A cut that puts other pieces into the index needs another name.
const PIECES_MADE: &str = "memory_pieces_made";

/// Puts an entry on the list.
pub fn add(tx: &mut dyn Tx, no: MemoryNo) -> Result<(), StoreError> {
    tx.post("INSERT INTO memory_upgrades (no) VALUES ($1) ON CONFLICT DO NOTHING", &[no.0.into()])?;
    Ok(())
}

/// Takes an entry off the list.
pub fn remove(tx: &mut dyn Tx, no: MemoryNo) -> Result<(), StoreError> {
    tx.post("DELETE FROM memory_upgrades WHERE no = $1", &[no.0.into()])?;
    Ok(())
}

/// Puts entries on the list whose vector another model made, looking at `limit` of them after a place; answers the last place
/// looked at, or `None` at the end. An entry without a vector is there already, or somebody wanted it without.
pub fn add_others(tx: &mut dyn Tx, model: &str, after: i64, limit: i64) -> Result<Option<i64>, StoreError> {
    let found = tx.rows(
        "SELECT place, no, CASE WHEN model <> $1 THEN 1 ELSE 0 END FROM memory_index \
         WHERE place > $2 ORDER BY place LIMIT $3",
        &[model.into(), after.into(), limit.into()],
        |row| Ok((row.int(0)?, MemoryNo(row.int(1)?), row.int(2)? == 1)),
    )?;
    for (_, no, _) in found.iter().filter(|(_, _, by_another)| *by_another) {
        add(tx, *no)?;
    }
    Ok(found.last().map(|(place, _, _)| *place))
}

/// The model that entries of others were put on the list for last, all of them.
pub fn listed_for(tx: &mut dyn Tx) -> Result<Option<String>, StoreError> {
    let model = meta::get(tx, LISTED_FOR)?;
    Ok(model.map(|model| String::from_utf8_lossy(&model).into_owned()))
}

/// Notes that all entries of others than this model are on the list.
pub fn set_listed_for(tx: &mut dyn Tx, model: &str) -> Result<(), StoreError> {
    meta::set(tx, LISTED_FOR, Some(model.as_bytes()))
}

/// Up to `limit` entries after a place that may be long, for they take at least so many bytes; and the last place that was looked
/// at, or `None` at the end.
pub fn long_after(
    tx: &mut dyn Tx,
    after: i64,
    bytes: i64,
    limit: i64,
) -> Result<(Vec<entries::Stored>, Option<i64>), StoreError> {
    let found = tx.rows(
        "SELECT i.place, i.no, CASE WHEN LENGTH(m.content) >= $1 THEN 1 ELSE 0 END FROM memory_index i \
         LEFT JOIN memories m ON m.no = i.no WHERE i.place > $2 ORDER BY i.place LIMIT $3",
        &[bytes.into(), after.into(), limit.into()],
        |row| Ok((row.int(0)?, row.int(1)?, row.int(2)? == 1)),
    )?;
    let last = found.last().map(|(place, _, _)| *place);
    let numbers: Vec<i64> = found.into_iter().filter(|(_, _, long)| *long).map(|(_, no, _)| no).collect();
    Ok((entries::with_numbers(tx, &numbers)?, last))
}

/// Whether every long entry was looked at that an older version may have written.
pub fn are_pieces_made(tx: &mut dyn Tx) -> Result<bool, StoreError> {
    Ok(meta::get(tx, PIECES_MADE)?.is_some())
}

/// Notes that every long entry was looked at.
pub fn set_pieces_made(tx: &mut dyn Tx) -> Result<(), StoreError> {
    meta::set(tx, PIECES_MADE, Some(b"1"))
}

/// How many entries are on the list.
pub fn count(tx: &mut dyn Tx) -> Result<i64, StoreError> {
    Ok(tx.first("SELECT COUNT(*) FROM memory_upgrades", &[], |row| row.int(0))?.unwrap_or_default())
}

/// The next entries of the list.
pub fn next(tx: &mut dyn Tx, limit: i64) -> Result<Vec<entries::Stored>, StoreError> {
    let numbers =
        tx.rows("SELECT no FROM memory_upgrades ORDER BY no LIMIT $1", &[limit.into()], |row| row.int(0))?;
    let mut found = Vec::with_capacity(numbers.len());
    for no in numbers {
        found.extend(entries::by_no(tx, MemoryNo(no))?);
    }
    Ok(found)
}

/// Gives an entry other terms and keeps its vector, if it has not changed since it was read.
pub fn put_terms(
    tx: &mut dyn Tx,
    stored: &entries::Stored,
    embedding: Option<Embedding>,
    terms: &EntryTerms,
    writing: &mut super::writing::Writing,
) -> Result<bool, StoreError> {
    let Some(mut current) = entries::load(tx, stored.scope_no, stored.no, stored.seq)? else {
        return Ok(false);
    };
    current.memory.embedding = embedding;
    let version = current.memory.version;
    writing.replace(tx, &current.memory, terms, version)
}

/// Takes entries off the list that are not there any more, with all that `next` would have answered.
pub fn drop_missing(tx: &mut dyn Tx, limit: i64) -> Result<u64, StoreError> {
    tx.execute(
        "DELETE FROM memory_upgrades WHERE no IN (SELECT u.no FROM memory_upgrades u LEFT JOIN memories m ON m.no = u.no \
         WHERE m.no IS NULL ORDER BY u.no LIMIT $1)",
        &[limit.into()],
    )
}

/// Gives an entry another vector and takes it off the list, if it has not changed since it was read; and other terms, if there
/// are some. Neither its version nor its time changes: it says the same as before.
pub fn put(
    tx: &mut dyn Tx,
    stored: &entries::Stored,
    embedding: &Embedding,
    terms: Option<&EntryTerms>,
    writing: &mut super::writing::Writing,
) -> Result<bool, StoreError> {
    let current = entries::load(tx, stored.scope_no, stored.no, stored.seq)?;
    let Some(mut current) = current else { return Ok(false) };
    remove(tx, stored.no)?;
    let terms = match terms {
        Some(terms) => terms.clone(),
        None => index::terms(tx, stored.scope_no, stored.seq)?,
    };
    current.memory.embedding = Some(embedding.clone());
    if current.memory.state == memtrove_core::memories::State::Created {
        current.memory.state = memtrove_core::memories::State::Active;
    }
    let version = current.memory.version;
    writing.replace(tx, &current.memory, &terms, version)
}
