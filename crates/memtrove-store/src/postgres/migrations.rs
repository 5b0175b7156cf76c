//! The schema, as numbered steps that are only ever added to.
//!
//! Nodes of two versions may work side by side while a cluster is upgraded. So every step says which is the oldest schema
//! whose version can still work on it: one that only adds what older versions do not look at leaves that where it was.

use super::connection::DatabaseSession;
use super::failure::{DatabaseFailure, Remedy};
use super::tx::key_number;
use crate::StoreError;
use memtrove_core::legacy_labels;
use std::time::Duration;

/// A step.
struct Migration {
    name: &'static str,
    /// The oldest schema whose version can work on a database that has this step.
    works_with: i64,
    sql: &'static str,
}

/// Every step, in order. One that has been released is never edited: databases out there have run it.
const STEPS: &[Migration] = &[
    Migration { name: "0001_memtrove", works_with: 1, sql: include_str!("migrations/0001_memtrove.sql") },
    Migration { name: "0002_nodes", works_with: 2, sql: include_str!("migrations/0002_nodes.sql") },
    Migration { name: VECTORS, works_with: 3, sql: include_str!("migrations/0003_vectors.sql") },
    Migration { name: "0004_locators", works_with: 3, sql: include_str!("migrations/0004_locators.sql") },
    Migration {
        name: "0005_attachments",
        works_with: 3,
        sql: include_str!("migrations/0005_attachments.sql"),
    },
    // An older version would delete entries and leave what they said before.
    Migration { name: "0006_texts", works_with: 6, sql: include_str!("migrations/0006_texts.sql") },
    // An older version would change what entries say and leave what they are found by.
    Migration { name: "0007_statements", works_with: 7, sql: include_str!("migrations/0007_statements.sql") },
    // An older version names no tenant in part of its work, and would see nothing there.
    Migration {
        name: "0008_tenants",
        works_with: DENIES_WITHOUT_TENANT,
        sql: include_str!("migrations/0008_tenants.sql"),
    },
    // An older version would put the vectors of entries in place of those of their pieces.
    Migration { name: "0009_pieces", works_with: 9, sql: include_str!("migrations/0009_pieces.sql") },
];

/// From this step on, who names no tenant sees nothing.
pub(super) const DENIES_WITHOUT_TENANT: i64 = 8;

/// How long a migration may take.
const PATIENCE: Duration = Duration::from_secs(24 * 3600);
/// The step that needs an extension.
const VECTORS: &str = "0003_vectors";

/// The number of the newest step.
pub fn known() -> i64 {
    STEPS.len() as i64
}

/// The oldest schema whose version can work on this version's.
pub fn works_with() -> i64 {
    STEPS.iter().map(|step| step.works_with).max().unwrap_or_default()
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

/// Brings the database to this version's schema, on a session that is to be set up anew afterwards: one process at a time, each step in a transaction of its own.
pub(super) fn migrate(
    session: &mut DatabaseSession,
    volatile: Option<&str>,
    is_alone: bool,
) -> Result<(), StoreError> {
    let client = session.client().clone();
    let failed = |error: tokio_postgres::Error| DatabaseFailure::from(&error);
    let lock = key_number(legacy_labels::POSTGRES_MIGRATION_LOCK);
    let migrated = session.wait_for(PATIENCE, async {
        let schema = volatile.map_or(String::new(), |schema| format!("CREATE SCHEMA IF NOT EXISTS {schema};"));
        // Another node's migration may take long.
        let begin = format!(
            "SET lock_timeout = 0; SET statement_timeout = 0; SELECT pg_advisory_lock({lock}); {schema} \
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
            return Err(DatabaseFailure::new(refusal, Remedy::None));
        }
        let works_with = STEPS.iter().skip(schema.number as usize).map(|step| step.works_with).max();
        if !is_alone && schema.number > 0 && works_with.is_some_and(|oldest| oldest > schema.number) {
            let why = "nodes of an older version use the database, and cannot work on the schema of this one: stop them first";
            return Err(DatabaseFailure::new(StoreError::Unavailable(why.into()), Remedy::None));
        }
        // Nothing is made where it could not be made to the end.
        if STEPS.iter().skip(schema.number as usize).any(|step| step.name == VECTORS) {
            need_pgvector(&client).await?;
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
    // Also after a failure: others may want to try.
    let client = session.client().clone();
    let reset = session.wait(async {
        let sql = format!("SELECT pg_advisory_unlock({lock})");
        client.batch_execute(&sql).await.map_err(failed)
    });
    migrated.and(reset).map_err(|failure| failure.error)
}

/// Why this version cannot work on a database with this schema.
pub fn refusal(schema: Schema) -> Option<StoreError> {
    let known = known();
    (schema.works_with > known).then(|| {
        StoreError::Schema(format!(
            "the database has schema {}, which needs a version of memtrove that knows {} at least, and this one knows up to \
             {known}: start the newer version, or restore a backup made before the upgrade",
            schema.number, schema.works_with
        ))
    })
}

/// Makes the extension that a step needs, where that is allowed; refuses where it is missing or too old.
async fn need_pgvector(client: &tokio_postgres::Client) -> Result<(), DatabaseFailure> {
    const VERSION: &str = "SELECT extversion, string_to_array(extversion, '.')::bigint[] < ARRAY[0, 8]::bigint[] \
                           FROM pg_extension WHERE extname = 'vector'";
    let refused = |why: String| DatabaseFailure::new(StoreError::Schema(why), Remedy::None);
    if let Err(error) = client.batch_execute("CREATE EXTENSION IF NOT EXISTS vector").await {
        let failure = DatabaseFailure::from(&error);
        return Err(match failure.error {
            StoreError::Unavailable(_) => failure,
            other => refused(format!(
                "pgvector 0.8 or newer is needed: as a superuser run CREATE EXTENSION vector; in this database (install the \
                 package on the server first if that fails), then start again ({other})"
            )),
        });
    }
    let found = client.query_one(VERSION, &[]).await.map_err(|error| DatabaseFailure::from(&error))?;
    if found.get(1) {
        return Err(refused(format!(
            "pgvector 0.8 or newer is needed, and this database has {}: install the package on the server, and as a superuser \
             run ALTER EXTENSION vector UPDATE; in this database, then start again",
            found.get::<_, String>(0)
        )));
    }
    Ok(())
}

fn explained(step: &str, error: &tokio_postgres::Error) -> DatabaseFailure {
    let failure = DatabaseFailure::from(error);
    let error = match failure.error {
        StoreError::Unavailable(why) => StoreError::Unavailable(why),
        other => StoreError::Schema(format!("migration {step} failed, nothing of it was kept: {other}")),
    };
    DatabaseFailure { error, ..failure }
}
