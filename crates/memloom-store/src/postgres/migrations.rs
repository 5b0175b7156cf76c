//! The schema, as numbered steps that are only ever added to.
//!
//! Nodes of two versions may work side by side while a cluster is upgraded. So every step says which is the oldest schema
//! whose version can still work on it: one that only adds what older versions do not look at leaves that where it was.

use super::connection::Session;
use super::failure::{Failure, Remedy};
use super::tx::key_number;
use crate::StoreError;
use std::time::Duration;

/// A step.
struct Step {
    name: &'static str,
    /// The oldest schema whose version can work on a database that has this step.
    works_with: i64,
    sql: &'static str,
}

/// Every step, in order. One that has been released is never edited: databases out there have run it.
const STEPS: &[Step] = &[
    Step { name: "0001_memloom", works_with: 1, sql: include_str!("migrations/0001_memloom.sql") },
    Step { name: "0002_nodes", works_with: 2, sql: include_str!("migrations/0002_nodes.sql") },
    Step { name: VECTORS, works_with: 3, sql: include_str!("migrations/0003_vectors.sql") },
];

/// How long a migration may take.
const PATIENCE: Duration = Duration::from_secs(24 * 3600);
/// The step that needs an extension.
const VECTORS: &str = "0003_vectors";
/// Held by whoever migrates.
const MIGRATING: &[u8] = b"memloom migrates";

/// The number of the newest step.
pub fn known() -> i64 {
    STEPS.len() as i64
}

/// Another one for every other schema.
pub fn fingerprint() -> String {
    let mut hasher = blake3::Hasher::new();
    for step in STEPS {
        hasher.update(step.name.as_bytes()).update(step.sql.as_bytes());
    }
    hasher.finalize().to_hex()[..16].to_owned()
}

/// What a database says of its schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Schema {
    /// The number of its newest step; 0 for none.
    pub number: i64,
    /// The oldest schema whose version can work on it.
    pub works_with: i64,
}

/// Brings the database to this version's schema: one process at a time, each step in a transaction of its own.
pub(super) fn migrate(session: &mut Session, volatile: Option<&str>) -> Result<(), StoreError> {
    let client = session.client().clone();
    let failed = |error: tokio_postgres::Error| Failure::from(&error);
    let lock = key_number(MIGRATING);
    let migrated = session.wait_for(PATIENCE, async {
        // Whoever waits here may wait for a long migration.
        let begin = format!(
            "SET lock_timeout = 0; SET statement_timeout = 0; SELECT pg_advisory_lock({lock}); \
             CREATE TABLE IF NOT EXISTS schema_steps \
             (number BIGINT PRIMARY KEY, name TEXT NOT NULL, works_with BIGINT NOT NULL, at TIMESTAMPTZ NOT NULL DEFAULT now())"
        );
        client.batch_execute(&begin).await.map_err(failed)?;
        let rows = client
            .query("SELECT COALESCE(MAX(number), 0), COALESCE(MAX(works_with), 0) FROM schema_steps", &[])
            .await
            .map_err(failed)?;
        let schema = rows.first().map_or(Schema { number: 0, works_with: 0 }, |row| Schema {
            number: row.get(0),
            works_with: row.get(1),
        });
        if let Some(refusal) = refusal(schema) {
            return Err(Failure::new(refusal, Remedy::None));
        }
        for (number, step) in (1i64..).zip(STEPS).skip(schema.number as usize) {
            let sql = match volatile {
                None => step.sql.to_owned(),
                Some(_) => step.sql.replace("CREATE TABLE", "CREATE UNLOGGED TABLE"),
            };
            let record = format!(
                "INSERT INTO schema_steps (number, name, works_with) VALUES ({number}, '{}', {})",
                step.name, step.works_with
            );
            if let Err(error) = client.batch_execute(&format!("BEGIN; {sql}; {record}; COMMIT")).await {
                let _ = client.batch_execute("ROLLBACK").await;
                return Err(explained(step.name, &error));
            }
            tracing::info!(migration = step.name, "schema migrated");
        }
        Ok(())
    });
    // Also after a failure: the session may be used again.
    let client = session.client().clone();
    let reset = session.wait(async {
        let sql = format!("SELECT pg_advisory_unlock({lock}); RESET lock_timeout; RESET statement_timeout");
        client.batch_execute(&sql).await.map_err(failed)
    });
    migrated.and(reset).map_err(|failure| failure.error)
}

/// Why this version cannot work on a database with this schema.
pub fn refusal(schema: Schema) -> Option<StoreError> {
    let known = known();
    (schema.works_with > known).then(|| {
        StoreError::Schema(format!(
            "the database has schema {}, which needs a version of memloom that knows {} at least, and this one knows up to \
             {known}: start the newer version, or restore a backup made before the upgrade",
            schema.number, schema.works_with
        ))
    })
}

fn explained(step: &str, error: &tokio_postgres::Error) -> Failure {
    let failure = Failure::from(error);
    let error = match failure.error {
        StoreError::Unavailable(why) => StoreError::Unavailable(why),
        other if step == VECTORS && other.to_string().contains("extension") => StoreError::Schema(format!(
            "the database needs pgvector: run CREATE EXTENSION vector; in it as a superuser, and install pgvector 0.8 or \
             newer on its server before where that is refused; then start again ({other})"
        )),
        other => StoreError::Schema(format!("migration {step} failed, nothing of it was kept: {other}")),
    };
    Failure { error, ..failure }
}
