//! Rewriting the full-text index without what was taken out of it.
//!
//! FTS5 only notes which documents are gone. Their terms stay where they are until the segments that hold them are merged,
//! so everything there is has to be merged into one segment. That is done in steps between which others write: what comes
//! later lies in segments of its own, which the merge passes by.

use super::tx::SqliteTx;
use crate::{Compaction, StoreError, Tx, TxExt};

/// Pages (of 4 KiB) that a step writes, roughly: it ends with a term.
const STEP_PAGES: i64 = 256;

/// Begins, or goes on with what a step before it began; `None` when everything is rewritten that there was at the beginning.
pub(super) fn step(
    tx: &mut SqliteTx<'_>,
    begun: Option<Compaction>,
) -> Result<Option<Compaction>, StoreError> {
    if let Some(begun) = begun {
        let merged = merge(tx, STEP_PAGES)?;
        if is_done(tx, begun)? {
            return Ok(None);
        }
        // FTS5 does not go on with a merge of few segments while as many newer ones wait. Of all of them there are enough.
        if merged {
            return Ok(Some(begun));
        }
    }
    let begun = begin(tx)?;
    Ok(if is_done(tx, begun)? { None } else { Some(begun) })
}

/// Sets out to merge all segments there are, and makes the first step.
///
/// It adds one, of a document that no text belongs to. Without it FTS5 would finish a merge that is half done, with what
/// that has already written of documents that are gone by now; and would put a segment that is alone one level higher each
/// time, until it takes an index of more than 2000 levels for damaged.
fn begin(tx: &mut SqliteTx<'_>) -> Result<Compaction, StoreError> {
    tx.execute("INSERT OR REPLACE INTO text_index (rowid, terms) VALUES (0, '§')", &[])?;
    merge(tx, -STEP_PAGES)?;
    Ok(Compaction(segments(tx)?.into_iter().max().unwrap_or(0)))
}

/// Merges some pages; a negative number makes FTS5 take all segments together first. It says by the number of rows it
/// changed whether there was anything to do.
fn merge(tx: &mut SqliteTx<'_>, pages: i64) -> Result<bool, StoreError> {
    let before = tx.total_changes();
    tx.execute("INSERT INTO text_index (text_index, rank) VALUES ('merge', $1)", &[pages.into()])?;
    Ok(tx.total_changes() - before >= 2)
}

/// Whether of all segments there were at the beginning none is left but the one that was made of them.
fn is_done(tx: &mut SqliteTx<'_>, Compaction(newest): Compaction) -> Result<bool, StoreError> {
    Ok(segments(tx)?.into_iter().filter(|origin| *origin <= newest).count() < 2)
}

/// The index's segments, each as the number of the newest write that is in it. Writes are counted for as long as there is
/// an index, and a segment that is merged has the number of its newest part.
fn segments(tx: &mut SqliteTx<'_>) -> Result<Vec<u64>, StoreError> {
    let tx: &mut dyn Tx = tx;
    let record =
        tx.first("SELECT block FROM text_index_data WHERE id = 10", &[], |row| Ok(origins(row.bytes(0)?)))?;
    record.flatten().ok_or_else(|| {
        StoreError::Broken("the record of the index's segments is not as FTS5 writes it".into())
    })
}

/// Reads FTS5's record of its segments (`fts5StructureDecode`): a cookie, a version, and then numbers.
fn origins(record: &[u8]) -> Option<Vec<u64>> {
    let mut numbers = Varints(record.get(4..)?.strip_prefix(&[0xFF, 0, 0, 1])?);
    let levels = numbers.next()?;
    let (_segments, _pages_written) = (numbers.next()?, numbers.next()?);
    let mut origins = Vec::new();
    for _ in 0..levels {
        let (_merging, segments) = (numbers.next()?, numbers.next()?);
        for _ in 0..segments {
            let (_id, _first_page, _last_page) = (numbers.next()?, numbers.next()?, numbers.next()?);
            let (_oldest, newest) = (numbers.next()?, numbers.next()?);
            let (_pages_of_gone, _gone, _documents) = (numbers.next()?, numbers.next()?, numbers.next()?);
            origins.push(newest);
        }
    }
    Some(origins)
}

/// SQLite's variable-length integers: seven bits a byte, the first ones first; a ninth byte counts whole.
struct Varints<'r>(&'r [u8]);

impl Iterator for Varints<'_> {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        let mut number = 0;
        for length in 1..=9 {
            let (&byte, rest) = self.0.split_first()?;
            self.0 = rest;
            if length == 9 {
                return Some(number << 8 | u64::from(byte));
            }
            number = number << 7 | u64::from(byte & 0x7F);
            if byte < 0x80 {
                break;
            }
        }
        Some(number)
    }
}
