//! The schema, as numbered steps that are only ever added to.

use super::failure::DatabaseFile;
use crate::StoreError;
use rusqlite::Connection;

/// Every step, in order; the number of applied steps is the database's `user_version`. A step that has been released
/// is never edited: databases out there have run it.
const MIGRATIONS: &[(&str, &str)] = &[
    ("0001_conversations", include_str!("migrations/0001_conversations.sql")),
    ("0002_vault", include_str!("migrations/0002_vault.sql")),
    ("0003_files", include_str!("migrations/0003_files.sql")),
    ("0004_changes", include_str!("migrations/0004_changes.sql")),
    ("0005_meaning", include_str!("migrations/0005_meaning.sql")),
    ("0006_memories", include_str!("migrations/0006_memories.sql")),
    ("0007_nodes", include_str!("migrations/0007_nodes.sql")),
    ("0008_searched", include_str!("migrations/0008_searched.sql")),
    ("0009_attachments", include_str!("migrations/0009_attachments.sql")),
    ("0010_texts", include_str!("migrations/0010_texts.sql")),
    ("0011_statements", include_str!("migrations/0011_statements.sql")),
];

/// The number of the newest step.
pub(super) fn known() -> i64 {
    MIGRATIONS.len() as i64
}

/// Brings the database to this version's schema, each step in a transaction of its own.
pub(super) fn migrate(connection: &Connection, place: &DatabaseFile) -> Result<(), StoreError> {
    let sqlite = |error: rusqlite::Error| place.error(&error);
    let applied: i64 = connection.query_row("PRAGMA user_version", [], |row| row.get(0)).map_err(sqlite)?;
    let known = known();
    if !(0..=known).contains(&applied) {
        return Err(StoreError::Schema(format!(
            "the database {} has schema {applied}, and this version of memtrove knows up to {known}: \
             start the newer version that wrote it, or restore a backup made before the upgrade",
            place.database.display()
        )));
    }
    for (number, (name, sql)) in (1..).zip(MIGRATIONS).skip(applied as usize) {
        let step = format!("BEGIN IMMEDIATE;\n{sql}\nPRAGMA user_version = {number};\nCOMMIT;");
        if let Err(error) = connection.execute_batch(&step) {
            // The failed step may have left its transaction open; the connection is dropped right after anyway.
            let _ = connection.execute_batch("ROLLBACK");
            return Err(match place.error(&error) {
                StoreError::Unavailable(why) => StoreError::Unavailable(why),
                other => StoreError::Schema(format!(
                    "migration {name} of {} failed, nothing of it was kept: {other}",
                    place.database.display()
                )),
            });
        }
        tracing::info!(migration = name, database = %place.database.display(), "schema migrated");
    }
    Ok(())
}
