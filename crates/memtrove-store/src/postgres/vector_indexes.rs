//! The indexes that large scopes of memories are searched along, made and dropped beside those who write.

use super::PostgresConfig;
use super::connection::{connect, runtime};
use super::failure::DatabaseFailure;
use super::tx::key_number;
use crate::{Row, StoreError, Tx, TxExt};
use memtrove_core::legacy_labels;
use std::collections::BTreeSet;
use tokio_postgres::{Client, Error};

/// How the names of these indexes begin; a scope and a length follow.
const PREFIX: &str = "memory_vectors_";
/// The longest vectors that such an index takes.
const MOST_DIMENSIONS: i64 = 4000;
/// What making one may take of the database's memory. Beyond it, it takes many times as long: some 350,000 entries fit.
const MEMORY: &str = "256MB";

/// These indexes, and whether each can be used.
const LISTED: &str = "SELECT c.relname::TEXT, i.indisvalid FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid \
                      JOIN pg_am a ON a.oid = c.relam \
                      WHERE i.indrelid = 'memory_vectors'::regclass AND a.amname = 'hnsw'";

fn possible(wanted: &[(i64, i64)]) -> BTreeSet<(i64, i64)> {
    wanted.iter().filter(|(_, length)| *length <= MOST_DIMENSIONS).copied().collect()
}

/// Whether the indexes are exactly these.
pub(super) fn are(tx: &mut dyn Tx, wanted: &[(i64, i64)]) -> Result<bool, StoreError> {
    let there = tx.rows(LISTED, &[], |row| {
        let valid = row.int(1)? == 1;
        Ok(read(row.text(0)?).filter(|_| valid))
    })?;
    let there: Option<BTreeSet<(i64, i64)>> = there.into_iter().collect();
    Ok(there == Some(possible(wanted)))
}

/// What vectors say of contents that are sealed from now on: nothing may be left of them.
pub(super) fn drop_if_sealed(tx: &mut dyn Tx) -> Result<(), StoreError> {
    let is_there = |row: &dyn Row| row.int(0);
    if tx.vault().is_plain() || tx.first("SELECT 1 FROM memory_vectors LIMIT 1", &[], is_there)?.is_none() {
        return Ok(());
    }
    tx.post("UPDATE memory_scopes SET searched = 0, searched_to = 0 WHERE searched <> 0", &[])?;
    tx.post("TRUNCATE memory_vectors, memory_common_terms", &[])?;
    for name in tx.rows(LISTED, &[], |row| Ok(row.text(0)?.to_owned()))? {
        tx.post(&format!("DROP INDEX {name}"), &[])?;
    }
    tracing::info!("large scopes of memories are searched in memory from now on: their content is encrypted");
    Ok(())
}

/// Has exactly these indexes; `false` if another process is at it. Takes a thread for as long as that takes.
pub(super) fn keep(config: &PostgresConfig, wanted: &[(i64, i64)]) -> Result<bool, StoreError> {
    runtime()?.block_on(async {
        let (client, connection) = connect(config).await?;
        let connection = tokio::spawn(connection);
        let kept = reconcile(&client, wanted).await;
        drop(client);
        connection.abort();
        kept.map_err(|error| DatabaseFailure::from(&error).error)
    })
}

async fn reconcile(client: &Client, wanted: &[(i64, i64)]) -> Result<bool, Error> {
    let set_up = format!(
        "SET statement_timeout = 0; SET lock_timeout = 0; SET client_min_messages = error; \
         SET maintenance_work_mem = '{MEMORY}'"
    );
    client.batch_execute(&set_up).await?;
    let lock = client
        .query_one(
            "SELECT pg_try_advisory_lock($1)",
            &[&key_number(legacy_labels::POSTGRES_VECTOR_INDEX_LOCK)],
        )
        .await?;
    if !lock.get::<_, bool>(0) {
        return Ok(false);
    }
    let mut missing = possible(wanted);
    let there = client.query(LISTED, &[]).await?;
    for row in &there {
        let (name, valid): (String, bool) = (row.get(0), row.get(1));
        // One that is not valid is what is left of a process that ended on the way.
        if !(valid && read(&name).is_some_and(|index| missing.remove(&index))) {
            client.batch_execute(&format!("DROP INDEX CONCURRENTLY IF EXISTS {name}")).await?;
            tracing::info!(index = name, "dropped");
        }
    }
    if !missing.is_empty() {
        // The planner has to know how common words are, and need not wait for the database to find out by itself.
        client.batch_execute("ANALYZE memory_vectors").await?;
    }
    for (scope, length) in missing {
        let sql = format!(
            "CREATE INDEX CONCURRENTLY {PREFIX}{scope}_{length} ON memory_vectors \
             USING hnsw ((CAST(embedding AS halfvec({length}))) halfvec_cosine_ops) \
             WHERE scope_no = {scope} AND dimensions = {length}"
        );
        client.batch_execute(&sql).await?;
        tracing::info!(scope, length, "the database has an index for a large scope of memories");
    }
    Ok(true)
}

/// What an index is of, by its name.
fn read(name: &str) -> Option<(i64, i64)> {
    let (scope, length) = name.strip_prefix(PREFIX)?.split_once('_')?;
    Some((scope.parse().ok()?, length.parse().ok()?))
}
