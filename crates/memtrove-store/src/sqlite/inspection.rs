//! Looking at a database without opening it for work: whether a server could start on it.

use super::connection::PATIENCE;
use super::failure::Place;
use super::migrations;
use super::tx::SqliteTx;
use crate::vault::{self, Vault};
use crate::{StoreError, Tx};
use rusqlite::{Connection, OpenFlags};
use std::path::Path;
use std::sync::Arc;

/// What a look at a database finds.
#[derive(Debug)]
pub struct Inspection {
    /// The number of its schema.
    pub schema: i64,
    /// Whether its content can be read with the vault; an error is what a start would be refused with. `None` if the schema
    /// is another than this version's: then only the upgrade shows it.
    pub readable: Option<Result<(), StoreError>>,
}

/// Looks at a database, which may be in use. Nothing is changed, upgraded or made.
pub fn inspect(database: &Path, vault: Vault) -> Result<Inspection, StoreError> {
    let place = Place { database: database.to_owned() };
    let failed = |error: rusqlite::Error| place.error(&error);
    let connection = open_to_look(&place).map_err(failed)?;
    let schema = connection.query_row("PRAGMA user_version", [], |row| row.get(0)).map_err(failed)?;
    let readable = (schema == migrations::known()).then(|| {
        let mut tx = SqliteTx::new(&connection, place.clone(), Arc::new(vault), false);
        tx.control("BEGIN").and_then(|()| vault::check(&mut tx))
    });
    Ok(Inspection { schema, readable })
}

/// Reads from a database of this version's schema, which may be in use. Nothing is changed or made.
pub fn look<T>(
    database: &Path,
    vault: Vault,
    read: impl FnOnce(&mut dyn Tx) -> Result<T, StoreError>,
) -> Result<T, StoreError> {
    let place = Place { database: database.to_owned() };
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

fn open_to_look(place: &Place) -> rusqlite::Result<Connection> {
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
