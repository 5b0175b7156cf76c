//! The port's transaction on one connection.

use super::compaction;
use super::dialect::translate;
use super::failure::{DatabaseFile, is_disk_full};
use super::feed;
use super::scrub;
use super::text::{self, TextChange};
use crate::memories::segments::SegmentFolder;
use crate::port::EachRow;
use crate::vault::Vault;
use crate::{
    Compaction, FeedEntry, Lock, Recorded, Row, StalePages, StoreError, TextDocument, TextHit, TextQuery, Tx,
    TxExt, UnitOfWork, Value,
};
use rusqlite::types::{ToSql, ToSqlOutput, Value as SqliteValue, ValueRef};
use rusqlite::{Connection, Statement};
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::Arc;
use uuid::Uuid;

/// Statements a connection keeps prepared. The repositories' statements are constants and far fewer; the bound is
/// for SQL that somebody builds at run time.
const STATEMENTS: usize = 512;

/// By their texts, which are long: the hash of std's map takes longer over them than SQLite over some statements.
type Statements<'c> = hashbrown::HashMap<Box<str>, Statement<'c>>;

/// A connection with its prepared statements, on which units of work run one after the other.
pub(super) struct SqliteTx<'c> {
    connection: &'c Connection,
    place: DatabaseFile,
    vault: Arc<Vault>,
    writable: bool,
    /// Keyed by the portable text, so that a call costs one look-up and no translation.
    statements: Statements<'c>,
    /// Changes to the full-text index. FTS5 writes a segment at every savepoint that sees pending changes, so they are
    /// kept here while units of work run in savepoints, and applied once before the commit.
    texts: Vec<TextChange>,
    /// Why a statement of the current unit of work failed. Nothing more runs in that unit then, and it is not kept
    /// whatever its closure answers: engines that abort a transaction at its first failure must not differ from this one.
    failed: Option<StoreError>,
    disk_full: bool,
}

/// How a unit of work ended.
pub(super) enum WorkOutcome {
    /// What it wrote is to be kept.
    Keep,
    /// What it wrote is to be undone; the engine's part of the answer.
    Undo(Result<(), StoreError>),
}

impl<'c> SqliteTx<'c> {
    pub(super) fn new(
        connection: &'c Connection,
        place: DatabaseFile,
        vault: Arc<Vault>,
        writable: bool,
    ) -> Self {
        Self {
            connection,
            place,
            vault,
            writable,
            statements: Statements::default(),
            texts: Vec::new(),
            failed: None,
            disk_full: false,
        }
    }

    /// Runs work of the engine itself in a transaction of its own.
    pub(super) fn alone(
        &mut self,
        work: impl FnOnce(&mut dyn Tx) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        self.control("BEGIN IMMEDIATE")?;
        work(self).and_then(|()| self.control("COMMIT")).inspect_err(|_| {
            if self.is_open() {
                // The reason counts, not what follows from it.
                let _ = self.control("ROLLBACK");
            }
        })
    }

    /// Runs a job's closure, whatever it does.
    pub(super) fn run(&mut self, job: &mut dyn UnitOfWork) -> WorkOutcome {
        self.failed = None;
        match catch_unwind(AssertUnwindSafe(|| job.run(self))) {
            Ok(kept) => match self.failed.take() {
                Some(error) => WorkOutcome::Undo(Err(error)),
                None if kept => WorkOutcome::Keep,
                None => WorkOutcome::Undo(Ok(())),
            },
            Err(_) => {
                self.failed = None;
                tracing::error!("a unit of work panicked; it was undone");
                WorkOutcome::Undo(Err(StoreError::Broken("the unit of work panicked".into())))
            }
        }
    }

    /// Runs a statement of the engine itself, such as `COMMIT`.
    pub(super) fn control(&mut self, sql: &str) -> Result<(), StoreError> {
        match prepared(&mut self.statements, self.connection, sql).and_then(Statement::raw_execute) {
            Ok(_) => Ok(()),
            Err(error) => Err(self.note(&error)),
        }
    }

    /// Whether a transaction is open; SQLite ends it by itself when the disk fails in the midst of a statement.
    pub(super) fn is_open(&self) -> bool {
        !self.connection.is_autocommit()
    }

    /// Whether the disk was full since this was last asked.
    pub(super) fn take_disk_full(&mut self) -> bool {
        std::mem::take(&mut self.disk_full)
    }

    /// How many rows this connection has changed in its life.
    pub(super) fn total_changes(&self) -> u64 {
        self.connection.total_changes()
    }

    /// How many changes to the index wait for the commit.
    pub(super) fn pending_texts(&self) -> usize {
        self.texts.len()
    }

    /// Forgets the changes to the index that came after the first `keep`.
    pub(super) fn forget_texts(&mut self, keep: usize) {
        self.texts.truncate(keep);
    }

    /// Writes the waiting changes to the index.
    pub(super) fn apply_texts(&mut self) -> Result<(), StoreError> {
        if self.texts.is_empty() {
            return Ok(());
        }
        let mut changes = std::mem::take(&mut self.texts);
        self.failed = None;
        let applied = text::apply(self, &mut changes);
        self.failed = None;
        self.texts = changes; // empty, but with room for the next batch
        applied
    }

    /// What a failure of the engine itself means for the caller.
    pub(super) fn explain(&self, error: &rusqlite::Error) -> StoreError {
        self.place.error(error)
    }

    fn note(&mut self, error: &rusqlite::Error) -> StoreError {
        self.disk_full |= is_disk_full(error);
        self.explain(error)
    }

    fn fail(&mut self, error: &rusqlite::Error) -> StoreError {
        let error = if !self.writable && error.sqlite_error_code() == Some(rusqlite::ErrorCode::ReadOnly) {
            read_only()
        } else {
            self.note(error)
        };
        self.failed = Some(error.clone());
        error
    }

    fn healthy(&self) -> Result<(), StoreError> {
        self.failed.clone().map_or(Ok(()), Err)
    }

    fn writing(&self) -> Result<(), StoreError> {
        self.healthy()?;
        if self.writable { Ok(()) } else { Err(read_only()) }
    }
}

fn read_only() -> StoreError {
    StoreError::Broken("a unit of work that only reads tried to write".into())
}

impl Tx for SqliteTx<'_> {
    fn segments(&self) -> Option<&SegmentFolder> {
        self.place.segments.as_deref()
    }

    fn vault(&self) -> &Arc<Vault> {
        &self.vault
    }

    fn execute(&mut self, sql: &str, params: &[Value<'_>]) -> Result<u64, StoreError> {
        self.healthy()?;
        let run = |statement: &mut Statement<'_>| {
            bind(statement, params)?;
            let changed = statement.raw_execute();
            statement.clear_bindings();
            changed
        };
        match prepared(&mut self.statements, self.connection, sql).and_then(run) {
            Ok(changed) => Ok(changed as u64),
            Err(error) => Err(self.fail(&error)),
        }
    }

    fn insert_numbered(&mut self, sql: &str, params: &[Value<'_>]) -> Result<i64, StoreError> {
        let (insert, _) = sql
            .rsplit_once(" RETURNING ")
            .ok_or_else(|| StoreError::Broken("an insert does not say what its number is called".into()))?;
        self.execute(insert, params)?;
        Ok(self.connection.last_insert_rowid())
    }

    fn query(
        &mut self,
        sql: &str,
        params: &[Value<'_>],
        _: Lock,
        each: EachRow<'_>,
    ) -> Result<(), StoreError> {
        self.healthy()?;
        let mut refused = Ok(());
        let mut run = |statement: &mut Statement<'_>| {
            bind(statement, params)?;
            let mut rows = statement.raw_query();
            while let Some(row) = rows.next()? {
                match each(&SqliteRow(row)) {
                    Ok(ControlFlow::Continue(())) => {}
                    Ok(ControlFlow::Break(())) => break,
                    Err(error) => {
                        refused = Err(error);
                        break;
                    }
                }
            }
            Ok(())
        };
        let ran = prepared(&mut self.statements, self.connection, sql).and_then(|statement| {
            let ran = run(statement);
            // A bound text would otherwise stay in memory until the statement is used again.
            statement.clear_bindings();
            ran
        });
        if let Err(StoreError::Damaged(what)) = &refused {
            self.place.damage.found(what);
        }
        match ran {
            Ok(()) => refused,
            Err(error) => Err(self.fail(&error)),
        }
    }

    fn lock(&mut self, _: &[u8]) -> Result<(), StoreError> {
        self.healthy()
    }

    fn record_change(&mut self, change: &FeedEntry<'_>) -> Result<Recorded, StoreError> {
        feed::record(self, change)
    }

    fn has_unnumbered_changes(&mut self) -> Result<bool, StoreError> {
        self.healthy().map(|()| false)
    }

    fn number_changes(&mut self) -> Result<bool, StoreError> {
        self.healthy().map(|()| false)
    }

    fn last_number(&mut self, table: &str) -> Result<i64, StoreError> {
        let tx: &mut dyn Tx = self;
        let last =
            tx.first("SELECT seq FROM sqlite_sequence WHERE name = $1", &[table.into()], |row| row.int(0))?;
        Ok(last.unwrap_or_default())
    }

    fn number_past(&mut self, table: &str, number: i64) -> Result<(), StoreError> {
        if self.last_number(table)? < number {
            self.execute("DELETE FROM sqlite_sequence WHERE name = $1", &[table.into()])?;
            self.execute(
                "INSERT INTO sqlite_sequence (name, seq) VALUES ($1, $2)",
                &[table.into(), number.into()],
            )?;
        }
        Ok(())
    }

    fn index_text(&mut self, document: TextDocument) -> Result<(), StoreError> {
        self.writing()?;
        self.texts.push(TextChange::Index(document));
        Ok(())
    }

    fn unindex_text(&mut self, id: Uuid) -> Result<(), StoreError> {
        self.writing()?;
        self.texts.push(TextChange::UnindexText(id));
        Ok(())
    }

    fn unindex_group(&mut self, group: Uuid) -> Result<(), StoreError> {
        self.writing()?;
        self.texts.push(TextChange::UnindexGroup(group));
        Ok(())
    }

    fn compact_texts(&mut self, begun: Option<Compaction>) -> Result<Option<Compaction>, StoreError> {
        self.writing()?;
        compaction::step(self, begun)
    }

    fn find_stale_pages(&mut self, from: i64) -> Result<StalePages, StoreError> {
        scrub::find(self, from)
    }

    fn clear_stale_pages(&mut self, pages: &[i64]) -> Result<(), StoreError> {
        self.writing()?;
        scrub::clear(self, pages)
    }

    fn has_untaken_texts(&mut self) -> Result<bool, StoreError> {
        text::has_untaken(self)
    }

    fn untaken_texts(&mut self, group: Option<Uuid>, after: i64, limit: i64) -> Result<Vec<i64>, StoreError> {
        text::untaken(self, group, after, limit)
    }

    fn count_untaken_texts(&mut self, limit: i64) -> Result<i64, StoreError> {
        text::count_untaken(self, limit)
    }

    fn take_in_texts(&mut self, numbers: &[i64]) -> Result<(), StoreError> {
        text::take_in(self, numbers)
    }

    fn search_text(
        &mut self,
        query: &TextQuery,
        each: &mut dyn FnMut(TextHit<'_>) -> Result<ControlFlow<()>, StoreError>,
    ) -> Result<(), StoreError> {
        text::search(self, query, each)
    }
}

fn prepared<'s, 'c>(
    statements: &'s mut Statements<'c>,
    connection: &'c Connection,
    sql: &str,
) -> rusqlite::Result<&'s mut Statement<'c>> {
    if !statements.contains_key(sql) {
        if statements.len() >= STATEMENTS {
            statements.clear();
        }
        let flags = rusqlite::PrepFlags::SQLITE_PREPARE_PERSISTENT;
        let statement = connection.prepare_with_flags(&translate(sql), flags)?;
        statements.insert(sql.into(), statement);
    }
    // The second look-up is what the borrow checker asks for; it costs some 50 ns.
    statements.get_mut(sql).ok_or(rusqlite::Error::InvalidQuery)
}

fn bind(statement: &mut Statement<'_>, params: &[Value<'_>]) -> rusqlite::Result<()> {
    let expected = statement.parameter_count();
    if expected != params.len() {
        return Err(rusqlite::Error::InvalidParameterCount(params.len(), expected));
    }
    for (index, value) in (1..).zip(params) {
        statement.raw_bind_parameter(index, Bound(value))?;
    }
    Ok(())
}

/// A parameter on its way into SQLite.
struct Bound<'a>(&'a Value<'a>);

impl ToSql for Bound<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match self.0 {
            Value::Null => ValueRef::Null,
            Value::Int(value) => ValueRef::Integer(*value),
            Value::Real(value) => ValueRef::Real(*value),
            Value::Text(value) => ValueRef::Text(value.as_bytes()),
            Value::Bytes(value) => ValueRef::Blob(value),
            Value::Uuid(value) => ValueRef::Blob(value.as_bytes()),
            Value::Uuids(values) => {
                return Ok(array(values.iter().map(|id| SqliteValue::Blob(id.as_bytes().to_vec()))));
            }
            Value::Ints(values) => {
                return Ok(array(values.iter().map(|value| SqliteValue::Integer(*value))));
            }
        }))
    }
}

fn array<'a>(values: impl Iterator<Item = SqliteValue>) -> ToSqlOutput<'a> {
    let values: rusqlite::vtab::array::Array = Rc::new(values.collect());
    ToSqlOutput::from_rc(values, c"rarray")
}

struct SqliteRow<'r>(&'r rusqlite::Row<'r>);

impl SqliteRow<'_> {
    fn value(&self, column: usize) -> Result<ValueRef<'_>, StoreError> {
        self.0
            .get_ref(column)
            .map_err(|_| StoreError::Broken(format!("the statement has no column {column}")))
    }
}

fn mistyped(column: usize, value: ValueRef<'_>, wanted: &str) -> StoreError {
    StoreError::Damaged(format!(
        "a row is damaged: column {column} holds {} where {wanted} was asked for",
        value.data_type()
    ))
}

impl Row for SqliteRow<'_> {
    fn opt_int(&self, column: usize) -> Result<Option<i64>, StoreError> {
        match self.value(column)? {
            ValueRef::Null => Ok(None),
            ValueRef::Integer(value) => Ok(Some(value)),
            other => Err(mistyped(column, other, "an integer")),
        }
    }

    fn opt_real(&self, column: usize) -> Result<Option<f64>, StoreError> {
        match self.value(column)? {
            ValueRef::Null => Ok(None),
            ValueRef::Real(value) => Ok(Some(value)),
            other => Err(mistyped(column, other, "a double")),
        }
    }

    fn opt_text(&self, column: usize) -> Result<Option<&str>, StoreError> {
        match self.value(column)? {
            ValueRef::Null => Ok(None),
            value @ ValueRef::Text(bytes) => {
                std::str::from_utf8(bytes).map(Some).map_err(|_| mistyped(column, value, "UTF-8"))
            }
            other => Err(mistyped(column, other, "a text")),
        }
    }

    fn opt_bytes(&self, column: usize) -> Result<Option<&[u8]>, StoreError> {
        match self.value(column)? {
            ValueRef::Null => Ok(None),
            ValueRef::Blob(bytes) => Ok(Some(bytes)),
            other => Err(mistyped(column, other, "bytes")),
        }
    }

    fn opt_uuid(&self, column: usize) -> Result<Option<Uuid>, StoreError> {
        match self.value(column)? {
            ValueRef::Null => Ok(None),
            value @ ValueRef::Blob(bytes) => {
                Uuid::from_slice(bytes).map(Some).map_err(|_| mistyped(column, value, "a UUID"))
            }
            other => Err(mistyped(column, other, "a UUID")),
        }
    }
}
