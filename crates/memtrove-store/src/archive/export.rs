//! From a store to an archive: every table in the order of its keys, some rows at a time.

use super::format::{Header, Summary, Tally, Writer};
use super::numbers::Numbers;
use super::tables::{CHANGES_WITH_WAITING, Column, Owner, TABLES, Table};
use super::{ArchiveError, rows};
use crate::{Lock, Row, StoreError, Tx, TxExt, Value, attachments, meta};
use memtrove_core::Timestamp;
use std::io::Write;
use std::ops::ControlFlow;
use uuid::Uuid;

/// Rows and bytes that are read at a time: what an export keeps in memory, but for a row that alone has more.
const FIRST_ROWS: i64 = 64;
const MOST_ROWS: i64 = 1024;
const BATCH_BYTES: usize = 1 << 20;

/// What an archive says of how it came to be.
#[derive(Debug, Clone)]
pub struct About {
    /// A fresh id.
    pub id: Uuid,
    /// The version of memtrove.
    pub version: String,
    /// Now.
    pub at: Timestamp,
}

/// What is archived.
#[derive(Debug, Clone, Copy, Default)]
pub struct Selection<'a> {
    /// One tenant, or everything.
    pub tenant: Option<&'a str>,
    /// Whether several processes may use the store: then changes may wait for their number.
    pub shared: bool,
}

/// How far an export, or an import, is.
#[derive(Debug, Clone, Copy)]
pub struct ArchiveProgress {
    /// The table that is at work.
    pub table: &'static str,
    /// Rows of all tables so far.
    pub rows: u64,
}

/// Where the bytes of attachments are, which are not in the store.
pub trait ByteSource {
    /// Looks for the bytes under a storage key; `false` if there are none.
    fn find(&mut self, key: &str) -> Result<bool, ArchiveError>;
    /// Hands over the bytes that were found last, piece by piece.
    fn read(&mut self, each: &mut dyn FnMut(&[u8]) -> Result<(), ArchiveError>) -> Result<(), ArchiveError>;
}

/// An archive that has all rows. Nothing of the store is held any more.
pub struct Rows<W: Write> {
    writer: Writer<W>,
    keys: Vec<String>,
}

/// An archive that is whole.
pub struct Exported<W> {
    /// What it was written to.
    pub sink: W,
    /// What it holds.
    pub summary: Summary,
    /// Attachments whose bytes were not found. They were deleted meanwhile, or lost.
    pub missing: u64,
}

/// Writes the rows of everything, or of everything of one tenant, as one snapshot of the store shows it; `with_bytes` also notes
/// whose bytes are to follow them.
pub fn export<W: Write>(
    tx: &mut dyn Tx,
    about: &About,
    of: &Selection<'_>,
    with_bytes: bool,
    sink: W,
    mut progress: impl FnMut(ArchiveProgress),
) -> Result<Rows<W>, ArchiveError> {
    let mut header = Header::new(about.id, &about.version, about.at, of.tenant);
    header.plain = meta::get(tx, super::mark::PLAIN_CONTENT)?.is_some();
    header.keys = keys(tx, of.tenant)?;
    header.numbers = Numbers::given(tx)?;
    let (mut writer, mut total) = (Writer::new(sink, &header)?, 0);
    for table in visited(of) {
        writer.begin(table)?;
        visit(tx, table, of, |count, bytes| {
            writer.rows(count, bytes)?;
            total += count;
            progress(ArchiveProgress { table: table.name, rows: total });
            Ok(())
        })?;
        writer.end(table)?;
    }
    let keys = if with_bytes { attachments::keys_of_bytes(tx, of.tenant)? } else { Vec::new() };
    Ok(Rows { writer, keys })
}

impl<W: Write> Rows<W> {
    /// Adds the bytes of attachments that are found, which may take long: no snapshot should wait for it.
    pub fn finish(mut self, mut blobs: Option<&mut dyn ByteSource>) -> Result<Exported<W>, ArchiveError> {
        let mut missing = 0;
        for key in &self.keys {
            let Some(blobs) = &mut blobs else { break };
            match blobs.find(key)? {
                true => self.writer.blob(key, |each| blobs.read(each))?,
                false => missing += 1,
            }
        }
        let (sink, summary) = self.writer.finish()?;
        Ok(Exported { sink, summary, missing })
    }
}

/// What an archive of the same would hold, without writing it.
pub fn checksum(
    tx: &mut dyn Tx,
    of: &Selection<'_>,
    progress: impl FnMut(ArchiveProgress),
) -> Result<Summary, ArchiveError> {
    checksum_moved_back(tx, of, &Numbers::default(), progress)
}

/// As [`checksum`], with the numbers of rows as they were before an import moved them.
pub(super) fn checksum_moved_back(
    tx: &mut dyn Tx,
    of: &Selection<'_>,
    moved: &Numbers,
    mut progress: impl FnMut(ArchiveProgress),
) -> Result<Summary, ArchiveError> {
    let (mut tally, mut total, mut back) = (Tally::default(), 0, Vec::new());
    for table in visited(of) {
        visit(tx, table, of, |count, mut bytes| {
            if *moved == Numbers::default() {
                tally.rows(count, bytes);
            } else {
                back.clear();
                while let Some(row) = rows::take_row(&mut bytes, table.columns) {
                    for (column, value) in table.columns.iter().zip(row) {
                        rows::append(&mut back, moved.move_back(column, value))?;
                    }
                }
                tally.rows(count, &back);
            }
            total += count;
            progress(ArchiveProgress { table: table.name, rows: total });
            Ok(())
        })?;
        tally.end(table);
    }
    Ok(tally.summary())
}

/// How many rows a whole store has, for those who want to know how far an export is.
pub fn count(tx: &mut dyn Tx) -> Result<u64, StoreError> {
    let mut rows = 0;
    for table in TABLES {
        let sql = format!("SELECT COUNT(*) FROM {} t{}", table.name, table.conditions(None, None));
        rows += tx.first(&sql, &[], |row| row.int(0))?.unwrap_or_default() as u64;
    }
    Ok(rows)
}

/// The tables that have rows of one tenant, or any.
fn visited(of: &Selection<'_>) -> impl Iterator<Item = &'static Table> + use<> {
    let all = of.tenant.is_none();
    TABLES.iter().filter(move |table| all || table.owner != Owner::Store)
}

/// The names of the configured keys that wrap data keys.
fn keys(tx: &mut dyn Tx, tenant: Option<&str>) -> Result<Vec<String>, StoreError> {
    const ALL: &str = "SELECT DISTINCT wrapped_by FROM data_keys ORDER BY wrapped_by";
    const ONE: &str = "SELECT DISTINCT wrapped_by FROM data_keys WHERE tenant = $1 ORDER BY wrapped_by";
    let name = |row: &dyn Row| Ok(row.text(0)?.to_owned());
    match tenant {
        None => tx.rows(ALL, &[], name),
        Some(tenant) => tx.rows(ONE, &[tenant.into()], name),
    }
}

/// Hands over a table's rows in the order of its key, as many at a time as fit into a batch.
fn visit(
    tx: &mut dyn Tx,
    table: &'static Table,
    of: &Selection<'_>,
    mut each: impl FnMut(u64, &[u8]) -> Result<(), ArchiveError>,
) -> Result<(), ArchiveError> {
    let (mut batch, mut last, mut limit) = (Vec::new(), Vec::new(), FIRST_ROWS);
    loop {
        let key = rows::take_row(&mut last.as_slice(), &table.columns[..table.key]);
        let sql = table.select(of, key.is_some());
        let mut params: Vec<Value<'_>> = vec![limit.into()];
        params.extend(of.tenant.map(Value::from));
        params.extend(key.into_iter().flatten());
        batch.clear();
        let (mut count, mut last_at) = (0, 0);
        tx.query(&sql, &params, Lock::None, &mut |row| {
            last_at = batch.len();
            rows::append_row(&mut batch, table.columns, row)?;
            count += 1;
            Ok(if batch.len() < BATCH_BYTES { ControlFlow::Continue(()) } else { ControlFlow::Break(()) })
        })?;
        if count == 0 {
            return Ok(());
        }
        each(count, &batch)?;
        if (count as i64) < limit && batch.len() < BATCH_BYTES {
            return Ok(());
        }
        last = batch[last_at..].to_vec();
        // An engine that is far away sends all it was asked for, so it is asked for what will fit.
        limit = (BATCH_BYTES as i64 * count as i64 / batch.len() as i64).clamp(1, MOST_ROWS);
    }
}

impl Table {
    /// Rows in the order of the key: `$1` at most, then perhaps a tenant's, then perhaps after a key.
    fn select(&self, of: &Selection<'_>, after_key: bool) -> String {
        let names = |columns: &[Column]| {
            let names: Vec<String> = columns.iter().map(|column| format!("t.{}", column.name)).collect();
            names.join(", ")
        };
        let key = names(&self.columns[..self.key]);
        let tenant = of.tenant.map(|_| 2);
        let after = after_key.then(|| {
            let first = 2 + usize::from(of.tenant.is_some());
            let values: Vec<String> = (first..first + self.key).map(|at| format!("${at}")).collect();
            format!("({key}) > ({})", values.join(", "))
        });
        let rows = if of.shared && self.name == "changes" { CHANGES_WITH_WAITING } else { self.name };
        let conditions = self.conditions(tenant, after.as_deref());
        format!("SELECT {} FROM {rows} t{conditions} ORDER BY {key} LIMIT $1", names(self.columns))
    }

    fn conditions(&self, tenant: Option<usize>, after: Option<&str>) -> String {
        let tenant = tenant.map(|at| match self.owner {
            Owner::Found(query) => format!("({query}) = ${at}"),
            Owner::Tenant | Owner::Store => format!("t.tenant = ${at}"),
        });
        let all = [self.only.map(str::to_owned), tenant, after.map(str::to_owned)];
        let all: Vec<String> = all.into_iter().flatten().collect();
        if all.is_empty() { String::new() } else { format!(" WHERE {}", all.join(" AND ")) }
    }
}
