//! Removing from the pages of the database what SQLite leaves in their unused space.
//!
//! `secure_delete` overwrites a row where it stands when it is deleted. But when a page overflows, SQLite spreads its rows over
//! the neighbours and builds it anew from the end backwards (`rebuildPage`): what stood in the part that is unused now stays
//! there, a copy of rows that live elsewhere. Deleting or overwriting such a row does not find the copy. So once rows are
//! gone for good, all pages are looked through, and those whose unused space is not empty are written with zeros there.
//!
//! Pages are read and written through SQLite (`sqlite_dbpage`), inside transactions like everything else. Rows that are gone
//! are not copied any more, and unused space is never moved to another page, so that one walk is enough however much is
//! written meanwhile.

use super::tx::SqliteTx;
use crate::{Lock, StalePages, StoreError, Tx, TxExt};
use std::ops::{ControlFlow, Range};

/// Pages (of 4 KiB) that one step looks at: a matter of milliseconds, for one of the readers.
const STEP_PAGES: i64 = 1024;

/// Page 1 holds the schema and nothing else.
const FIRST_PAGE: i64 = 2;

/// Looks at the pages from this one on, as many as one step may.
pub(super) fn find(tx: &mut SqliteTx<'_>, from: i64) -> Result<StalePages, StoreError> {
    let count = page_count(tx)?;
    let from = from.max(FIRST_PAGE);
    let end = (from + STEP_PAGES).min(count + 1);
    let mut pages = Vec::new();
    for number in from..end {
        read(tx, number, |page| {
            if stale(page, count).next().is_some() {
                pages.push(number);
            }
        })?;
    }
    Ok(StalePages { pages, next: (end <= count).then_some(end) })
}

/// Writes zeros into the unused space of these pages, as they are now.
pub(super) fn clear(tx: &mut SqliteTx<'_>, pages: &[i64]) -> Result<(), StoreError> {
    let count = page_count(tx)?;
    for &number in pages {
        let mut cleared = None;
        read(tx, number, |page| {
            for part in stale(page, count) {
                cleared.get_or_insert_with(|| page.to_vec())[part].fill(0);
            }
        })?;
        if let Some(page) = cleared {
            tx.execute(
                "UPDATE sqlite_dbpage SET data = $2 WHERE pgno = $1",
                &[number.into(), page.as_slice().into()],
            )?;
        }
    }
    Ok(())
}

fn page_count(tx: &mut dyn Tx) -> Result<i64, StoreError> {
    let count = tx.first("PRAGMA page_count", &[], |row| row.int(0))?;
    count.ok_or_else(|| StoreError::Broken("the database does not say how many pages it has".into()))
}

/// Shows a page, if there is one of this number.
fn read(tx: &mut SqliteTx<'_>, number: i64, mut show: impl FnMut(&[u8])) -> Result<(), StoreError> {
    tx.query("SELECT data FROM sqlite_dbpage WHERE pgno = $1", &[number.into()], Lock::None, &mut |row| {
        show(row.bytes(0)?);
        Ok(ControlFlow::Break(()))
    })
}

/// The unused parts of a page that are not empty.
fn stale(page: &[u8], page_count: i64) -> impl Iterator<Item = Range<usize>> + '_ {
    let unused = unused(page, page_count).unwrap_or_default();
    unused.into_iter().filter(|part| page[part.clone()].iter().any(|byte| *byte != 0))
}

/// The parts of a page of a table or an index that hold nothing: what lies between the list of its rows and the rows, and the
/// blocks between rows that are free. `None` for every other page, and for one that is not as the file format says.
///
/// Other pages that are in use begin with the number of a page, or with zeros. A first byte that is too large for the number of
/// any page there is tells them apart. In a database beyond 128 GiB that cannot be said of the inner pages of indexes, which are
/// then left alone, and beyond 320 GiB of those of tables, which hold numbers only.
fn unused(page: &[u8], page_count: i64) -> Option<Vec<Range<usize>>> {
    let kind = *page.first()?;
    let header = match kind {
        2 | 5 => 12,
        10 | 13 => 8,
        _ => return None,
    };
    if i64::from(kind) << 24 <= page_count {
        return None;
    }
    let rows_end = header + 2 * number_at(page, 3)?;
    let content = match number_at(page, 5)? {
        0 => 1 << 16,
        content => content,
    };
    if rows_end > content || content > page.len() {
        return None;
    }
    let mut unused = Vec::with_capacity(4);
    unused.push(rows_end..content);
    let (mut block, mut free_from) = (number_at(page, 1)?, content);
    while block != 0 {
        let (next, size) = (number_at(page, block)?, number_at(page, block + 2)?);
        let end = block + size;
        if block < free_from || size < 4 || end > page.len() {
            return None;
        }
        unused.push(block + 4..end);
        (block, free_from) = (next, end);
    }
    Some(unused)
}

fn number_at(page: &[u8], at: usize) -> Option<usize> {
    let bytes = page.get(at..at + 2)?;
    Some(usize::from(bytes[0]) << 8 | usize::from(bytes[1]))
}

#[cfg(test)]
mod tests {
    use super::*;

    const COUNT: i64 = 1000;

    /// A leaf of a table with two rows, and a free block between them.
    fn leaf() -> Vec<u8> {
        let mut page = vec![0xAA; 512];
        page[..8].copy_from_slice(&[13, 1, 200, 0, 2, 1, 144, 0]);
        page[456..460].copy_from_slice(&[0, 0, 0, 20]);
        page
    }

    #[test]
    fn what_lies_between_rows_is_unused() {
        assert_eq!(unused(&leaf(), COUNT), Some(vec![12..400, 460..476]));
    }

    #[test]
    fn inner_pages_have_a_longer_header() {
        let mut page = leaf();
        page[0] = 5;
        assert_eq!(unused(&page, COUNT).unwrap()[0], 16..400);
    }

    #[test]
    fn only_what_is_not_empty_is_stale() {
        let mut page = leaf();
        page[12..400].fill(0);
        assert!(stale(&page, COUNT).eq(std::iter::once(460..476)));
        page[460..476].fill(0);
        assert_eq!(stale(&page, COUNT).count(), 0);
    }

    #[test]
    fn pages_of_other_kinds_are_left_alone() {
        for kind in [0, 1, 3, 4, 6, 9, 11, 12, 14, 255] {
            let mut page = leaf();
            page[0] = kind;
            assert_eq!(unused(&page, COUNT), None, "{kind}");
        }
        assert_eq!(unused(&[], COUNT), None);
        assert_eq!(unused(&[13, 0, 0], COUNT), None);
    }

    #[test]
    fn a_page_that_may_be_of_another_kind_is_left_alone() {
        let kinds = [(2, 2 << 24), (5, 5 << 24), (10, 10 << 24), (13, 13 << 24)];
        for (kind, page_count) in kinds {
            let mut page = leaf();
            page[0] = kind;
            assert!(unused(&page, page_count - 1).is_some(), "{kind}");
            assert_eq!(unused(&page, page_count), None, "{kind}");
        }
    }

    #[test]
    fn a_damaged_page_is_left_alone() {
        let damaged: [fn(&mut [u8]); 5] = [
            |page| page[5..7].copy_from_slice(&600_u16.to_be_bytes()), // content beyond the end
            |page| page[3..5].copy_from_slice(&300_u16.to_be_bytes()), // more rows than fit
            |page| page[456..458].copy_from_slice(&456_u16.to_be_bytes()), // free blocks in a circle
            |page| page[458..460].copy_from_slice(&100_u16.to_be_bytes()), // a free block beyond the end
            |page| page[1..3].copy_from_slice(&100_u16.to_be_bytes()), // a free block outside the content
        ];
        for (number, damage) in damaged.into_iter().enumerate() {
            let mut page = leaf();
            damage(&mut page);
            assert_eq!(unused(&page, COUNT), None, "{number}");
        }
    }
}
