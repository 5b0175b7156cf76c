//! What a server keeps, looked at and changed behind its back, on whichever engine the tests are run.

#![expect(
    clippy::expect_used,
    reason = "a test helper fails by panicking, with what a person needs to see why"
)]

use crate::postgres::Database;
use rusqlite::Connection;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

/// The store of a server. Statements are SQL that both engines read alike.
#[derive(Debug, Clone)]
pub enum Stored {
    /// SQLite, in a data folder.
    Folder(PathBuf),
    /// PostgreSQL.
    Database(Arc<Database>),
}

impl Stored {
    /// Runs a statement in which `$1` stands for these bytes; how many rows it changed.
    #[track_caller]
    pub fn execute(&self, sql: &str, bytes: &[u8]) -> u64 {
        match self {
            Self::Folder(folder) if sql.contains("$1") => {
                open(folder).execute(sql, [bytes]).expect(sql) as u64
            }
            Self::Folder(folder) => open(folder).execute(sql, []).expect(sql) as u64,
            Self::Database(database) => database.execute(sql, bytes),
        }
    }

    /// The bytes in the first column of the first row, if there is one.
    #[track_caller]
    pub fn bytes(&self, sql: &str) -> Option<Vec<u8>> {
        match self {
            Self::Folder(folder) => {
                let database = open(folder);
                let mut statement = database.prepare(sql).expect(sql);
                let mut rows = statement.query([]).expect(sql);
                rows.next().expect(sql).map(|row| row.get(0).expect(sql))
            }
            Self::Database(database) => database.bytes(sql),
        }
    }

    /// Everything there is to find: SQLite's files byte by byte, with what its log still holds; PostgreSQL's rows, because
    /// its files belong to the user who runs it.
    #[track_caller]
    pub fn everything(&self) -> BTreeMap<String, Vec<u8>> {
        let mut all = BTreeMap::new();
        match self {
            Self::Folder(folder) => files_below(folder, &mut all),
            Self::Database(database) => {
                let tables = database.rows(
                    "SELECT quote_ident(schemaname) || '.' || quote_ident(tablename) FROM pg_tables \
                     WHERE schemaname NOT IN ('pg_catalog', 'information_schema')",
                );
                for table in tables.into_iter().flatten().flatten() {
                    // Bytes that are letters are to be seen as letters.
                    let query =
                        format!("SET bytea_output = 'escape'; SELECT whole::text FROM {table} AS whole");
                    let rows = database.rows(&query).into_iter().flatten().flatten();
                    all.insert(table, rows.collect::<Vec<_>>().join("\n").into_bytes());
                }
            }
        }
        all
    }

    /// Where a text stands, whatever its case: the names of files or tables.
    #[track_caller]
    pub fn holding(&self, text: &str) -> Vec<String> {
        let holds =
            |bytes: &[u8]| bytes.windows(text.len()).any(|part| part.eq_ignore_ascii_case(text.as_bytes()));
        self.everything().into_iter().filter(|(_, bytes)| holds(bytes)).map(|(name, _)| name).collect()
    }

    /// How a statement spells an id.
    pub fn id(&self, id: &str) -> String {
        match self {
            Self::Folder(_) => format!("X'{}'", id.replace('-', "")),
            Self::Database(_) => format!("'{id}'::uuid"),
        }
    }

    /// What makes a fresh id in a statement.
    pub fn fresh_id(&self) -> &'static str {
        match self {
            Self::Folder(_) => "randomblob(16)",
            Self::Database(_) => "gen_random_uuid()",
        }
    }

    /// Lets a command of the binary under test work on this store.
    pub fn aim(&self, command: &mut Command) {
        match self {
            Self::Folder(folder) => command.arg("--data-dir").arg(folder),
            Self::Database(database) => command.env("MEMTROVE_STORE__URL", database.url()),
        };
    }
}

fn open(folder: &Path) -> Connection {
    let database = Connection::open(folder.join("memtrove.db")).expect("the database in the folder");
    database.busy_timeout(Duration::from_secs(5)).expect("a timeout");
    database
}

fn files_below(folder: &Path, all: &mut BTreeMap<String, Vec<u8>>) {
    for entry in std::fs::read_dir(folder).expect("the folder") {
        let path = entry.expect("an entry of the folder").path();
        if path.is_dir() {
            files_below(&path, all);
        } else {
            // A file may go away meanwhile.
            let bytes = std::fs::read(&path).unwrap_or_default();
            all.insert(path.to_string_lossy().into_owned(), bytes);
        }
    }
}
