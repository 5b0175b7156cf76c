//! Looking at a database without opening it for work: whether a server could start on it.

use super::connection::PATIENCE;
use super::failure::DatabaseFile;
use super::migrations;
use super::tx::SqliteTx;
use crate::vault::{self, Vault};
use crate::{StoreError, Tx};
use rusqlite::{Connection, OpenFlags};
use std::path::Path;
use std::sync::Arc;

/// What a look at a database finds.
#[derive(Debug)]
pub struct SqliteInspection {
    /// The number of its schema.
    pub schema: i64,
    /// Whether its content can be read with the vault; an error is what a start would be refused with. `None` if the schema
    /// is another than this version's: then only the upgrade shows it.
    pub readable: Option<Result<(), StoreError>>,
}

/// Looks at a database, which may be in use. Nothing is changed, upgraded or made.
pub fn inspect(database: &Path, vault: Vault) -> Result<SqliteInspection, StoreError> {
    let place = DatabaseFile::new(database.to_owned());
    let failed = |error: rusqlite::Error| place.error(&error);
    let connection = open_to_look(&place).map_err(failed)?;
    let schema = connection.query_row("PRAGMA user_version", [], |row| row.get(0)).map_err(failed)?;
    let readable = (schema == migrations::known()).then(|| {
        let mut tx = SqliteTx::new(&connection, place.clone(), Arc::new(vault), false);
        tx.control("BEGIN").and_then(|()| vault::check(&mut tx))
    });
    Ok(SqliteInspection { schema, readable })
}

/// Reads from a database of this version's schema, which may be in use. Nothing is changed or made.
pub fn look<T>(
    database: &Path,
    vault: Vault,
    read: impl FnOnce(&mut dyn Tx) -> Result<T, StoreError>,
) -> Result<T, StoreError> {
    let place = DatabaseFile::new(database.to_owned());
    let opened = open_to_look(&place).and_then(|connection| {
        // Statements that look for any of several need it.
        rusqlite::vtab::array::load_module(&connection)?;
        Ok(connection)
    });
    let connection = opened.map_err(|error| place.error(&error))?;
    let mut tx = SqliteTx::new(&connection, place, Arc::new(vault), false);
    tx.control("BEGIN")?;
    read(&mut tx)
}

/// How sound a database is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Soundness {
    /// Nothing is wrong with it.
    Sound,
    /// What is wrong with it, in SQLite's words, some of it.
    Damaged(Vec<String>),
    /// It was not looked at to the end.
    Unfinished,
}

/// Up to this size indexes are compared with their tables, too; beyond it that would take minutes.
const THOROUGH_BYTES: u64 = 256 << 20;
/// Findings that are told at most: what to do does not depend on how many there are.
const FINDINGS: usize = 5;
/// Pages, and later steps of a statement, from one call of `go_on` to the next.
const PAGES_PER_CALL: u32 = 1000;

/// Looks at every page and row of a database, which may be in use. Nothing is changed. `go_on` is told again and again how many
/// pages were looked at, and of how many; `false` ends it.
pub fn check(
    database: &Path,
    mut go_on: impl FnMut(u64, u64) -> bool + Send + 'static,
) -> Result<Soundness, StoreError> {
    let place = DatabaseFile::new(database.to_owned());
    let failed = |error: rusqlite::Error| place.error(&error);
    let mut connection = open_to_look(&place).map_err(failed)?;
    let number = |sql: &str| connection.query_row(sql, [], |row| row.get::<_, i64>(0));
    let counted = number("PRAGMA page_count").and_then(|pages| Ok((pages, number("PRAGMA page_size")?)));
    let (pages, size) = match counted {
        Ok((pages, size)) => (pages.unsigned_abs(), size.unsigned_abs()),
        Err(error) => return verdict(&place, &error),
    };
    let is_small = pages.saturating_mul(size) <= THOROUGH_BYTES;
    let mut seen = 0;
    let show = move || {
        seen += u64::from(PAGES_PER_CALL);
        !go_on(seen.min(pages), pages)
    };
    connection.progress_handler(PAGES_PER_CALL as i32, Some(show)).map_err(failed)?;
    let checked = findings(&connection, if is_small { "integrity_check" } else { "quick_check" });
    match checked {
        Ok(found) if found.is_empty() => Ok(Soundness::Sound),
        Ok(found) => Ok(Soundness::Damaged(found)),
        Err(error) => verdict(&place, &error),
    }
}

fn findings(connection: &Connection, pragma: &str) -> rusqlite::Result<Vec<String>> {
    let mut statement = connection.prepare(&format!("PRAGMA {pragma}({FINDINGS})"))?;
    let mut found = statement.query_map([], |row| row.get(0))?.collect::<rusqlite::Result<Vec<String>>>()?;
    found.retain(|line| line != "ok");
    Ok(found)
}

/// What it means that a check failed.
fn verdict(place: &DatabaseFile, error: &rusqlite::Error) -> Result<Soundness, StoreError> {
    if error.sqlite_error_code() == Some(rusqlite::ErrorCode::OperationInterrupted) {
        return Ok(Soundness::Unfinished);
    }
    match place.error(error) {
        StoreError::Damaged(_) => Ok(Soundness::Damaged(vec![error.to_string()])),
        other => Err(other),
    }
}

fn open_to_look(place: &DatabaseFile) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    if place.log_file().exists() {
        // Somebody uses it, or ended without closing it: what counts may be in the log.
        let connection = Connection::open_with_flags(&place.database, flags)?;
        connection.busy_timeout(PATIENCE)?;
        return Ok(connection);
    }
    // Even who only reads makes a log where there is none, unless the file is declared never to change.
    let bytes = place.database.as_os_str().as_encoded_bytes();
    let path: String = bytes.iter().map(|byte| format!("%{byte:02x}")).collect();
    Connection::open_with_flags(format!("file:{path}?immutable=1"), flags | OpenFlags::SQLITE_OPEN_URI)
}
