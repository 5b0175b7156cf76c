//! How the engine's connections are set up.

use super::failure::DatabaseFile;
use crate::StoreError;
use rusqlite::Connection;
use rusqlite::config::DbConfig;
use std::time::Duration;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ConnectionRole {
    Writer,
    Reader,
    Checkpointer,
}

/// How long a statement waits for somebody outside this process, such as a backup or the `sqlite3` shell.
pub(super) const PATIENCE: Duration = Duration::from_secs(5);

/// Opens a connection with the settings of its role.
pub(super) fn open(place: &DatabaseFile, role: ConnectionRole) -> Result<Connection, StoreError> {
    let opened = Connection::open(&place.database).and_then(|connection| {
        configure(&connection, role)?;
        Ok(connection)
    });
    let connection = opened.map_err(|error| place.error(&error))?;
    // SQLite opens a file it may not write all the same, and would only say so at the first write.
    match connection.is_readonly(rusqlite::MAIN_DB) {
        Ok(false) => Ok(connection),
        Ok(true) => Err(place.read_only()),
        Err(error) => Err(place.error(&error)),
    }
}

/// Opens a database in memory, which is gone with its connection.
pub(super) fn open_in_memory(place: &DatabaseFile) -> Result<Connection, StoreError> {
    let opened = Connection::open_in_memory().and_then(|connection| {
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
        connection.execute_batch("PRAGMA foreign_keys = OFF; PRAGMA temp_store = MEMORY;")?;
        rusqlite::vtab::array::load_module(&connection)?;
        Ok(connection)
    });
    opened.map_err(|error| place.error(&error))
}

fn configure(connection: &Connection, role: ConnectionRole) -> rusqlite::Result<()> {
    connection.busy_timeout(PATIENCE)?;
    // Without this SQLite prepares a statement again for every new value that a partial index might depend on: a third of
    // the time of a page.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    // `foreign_keys`: the schema has none, and the check would cost a lookup per statement if it had.
    // `fullfsync`: without it a Mac acknowledges writes that still sit in the drive's cache; no effect elsewhere.
    // `journal_size_limit`: a log that grew large for once gives its space back when it starts over.
    connection.execute_batch(
        "PRAGMA journal_mode = WAL;
         PRAGMA synchronous = FULL;
         PRAGMA fullfsync = ON;
         PRAGMA checkpoint_fullfsync = ON;
         PRAGMA foreign_keys = OFF;
         PRAGMA temp_store = MEMORY;
         PRAGMA wal_autocheckpoint = 0;
         PRAGMA journal_size_limit = 134217728;",
    )?;
    match role {
        // What is deleted is overwritten with zeros: a row that is gone must not be found in the file, as it could be
        // wherever its page is not used again.
        ConnectionRole::Writer => {
            connection.execute_batch("PRAGMA secure_delete = ON; PRAGMA cache_size = -65536;")?
        }
        // A reader walks through all that ten thousand events are found by; in a cache that is smaller than such a walk
        // every page has gone when it comes by again.
        ConnectionRole::Reader => {
            connection.execute_batch("PRAGMA query_only = ON; PRAGMA cache_size = -16384;")?
        }
        ConnectionRole::Checkpointer => connection.execute_batch("PRAGMA cache_size = -64;")?,
    }
    rusqlite::vtab::array::load_module(connection)
}
