//! Writing a database anew, so that nothing is left in it of what was deleted or replaced.

use super::connection::DatabaseSession;
use super::failure::DatabaseFailure;
use super::{PostgresConfig, waiting};
use crate::StoreError;
use std::time::Duration;
use tokio_postgres::Error;

/// A large table takes as long as it takes.
const PATIENCE: Duration = Duration::from_secs(7 * 24 * 3600);

/// Our tables, in the order of their names.
const TABLES: &str = "SELECT quote_ident(tablename) FROM pg_tables \
                      WHERE schemaname = current_schema() AND tableowner = current_user ORDER BY tablename";

/// Writes every table anew, one after the other. No other process may use the database; for as long as it takes it needs the
/// space of the largest table once more. What the database's own log and its backups hold stays until they expire.
pub fn rewrite(config: &PostgresConfig) -> Result<(), StoreError> {
    let config = PostgresConfig { statement_timeout: PATIENCE, ..config.clone() };
    waiting(|| rewrite_here(&config))?
}

fn rewrite_here(config: &PostgresConfig) -> Result<(), StoreError> {
    let mut session = DatabaseSession::connect(config, None)?;
    let client = session.client().clone();
    let rewritten = session.wait(async {
        let failed = |error: Error| DatabaseFailure::from(&error);
        for row in client.query(TABLES, &[]).await.map_err(failed)? {
            let table: String = row.try_get(0).map_err(failed)?;
            client.batch_execute(&format!("VACUUM (FULL) {table}")).await.map_err(failed)?;
        }
        Ok(())
    });
    rewritten.map_err(|failure| match failure.error {
        // All that is waited for here is somebody else's lock.
        StoreError::Overloaded => StoreError::Unavailable(
            "another program reads from the database: close it and run this again".into(),
        ),
        error => error,
    })
}
