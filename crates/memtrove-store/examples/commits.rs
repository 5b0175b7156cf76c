//! How fast the bare embedded engine is: durable single-row writes and point reads through `Store`, as JSON.
//!
//! `cargo run --release -p memtrove-store --example commits [seconds per run] [folder]`. Without a folder it measures the
//! disk that holds temporary files; durable commits are as fast as that disk's fsync.

#![allow(clippy::print_stdout, reason = "the result goes to standard output")]

use memtrove_store::sqlite::{SqliteConfig, SqliteEngine};
use memtrove_store::{AllTenants, Store, StoreError, TxExt, Value};
use serde_json::{Value as Json, json};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tokio::task::JoinSet;
use uuid::Uuid;

const CONTENT: [u8; 500] = [7; 500];

type Failure = Box<dyn std::error::Error>;

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let mut arguments = std::env::args().skip(1);
    let seconds: f64 = arguments.next().map_or(Ok(3.0), |seconds| seconds.parse())?;
    let scratch = arguments.next().map_or_else(tempfile::tempdir, tempfile::tempdir_in)?;
    let time = Duration::from_secs_f64(seconds);

    let mut writes = Vec::new();
    let mut last = 0;
    for writers in [1, 64, 256] {
        let path: PathBuf = scratch.path().join(format!("{writers}.db"));
        let engine = Arc::new(SqliteEngine::open(SqliteConfig { path, ..SqliteConfig::default() })?);
        let store = Store::new(engine.clone());
        create(&store).await?;
        let before = engine.commits();
        let next = Arc::new(AtomicU64::new(0));
        let mut result =
            measure(writers, time, || insert(store.clone(), next.fetch_add(1, Ordering::Relaxed))).await?;
        result["commits_per_second"] = json!(((engine.commits() - before) as f64 / seconds).round());
        writes.push(result);
        last = next.load(Ordering::Relaxed);
        store.close();
    }

    let path = scratch.path().join("256.db");
    let store = Store::new(Arc::new(SqliteEngine::open(SqliteConfig { path, ..SqliteConfig::default() })?));
    let mut reads = Vec::new();
    for readers in [1, 64, 256] {
        let next = Arc::new(AtomicU64::new(0));
        let any = || next.fetch_add(1, Ordering::Relaxed).wrapping_mul(0x9E37_79B9) % last;
        reads.push(measure(readers, time, || get(store.clone(), any())).await?);
    }
    println!(
        "{:#}",
        json!({ "engine": "sqlite", "row_bytes": CONTENT.len() + 16, "writes": writes, "reads": reads })
    );
    Ok(())
}

async fn create(store: &Store) -> Result<(), StoreError> {
    let created = store.write(AllTenants, "create", |tx| {
        tx.execute(
            "CREATE TABLE bench (id BLOB PRIMARY KEY, content BLOB NOT NULL) STRICT, WITHOUT ROWID",
            &[],
        )
    });
    created.await.map(drop)
}

/// Keys grow like UUIDv7 do.
fn key(number: u64) -> Uuid {
    Uuid::from_u128(u128::from(number) << 64)
}

async fn insert(store: Store, number: u64) -> Result<(), StoreError> {
    let inserted = store.write(AllTenants, "insert", move |tx| {
        tx.execute(
            "INSERT INTO bench (id, content) VALUES ($1, $2)",
            &[key(number).into(), Value::Bytes(&CONTENT)],
        )
    });
    inserted.await.map(drop)
}

async fn get(store: Store, number: u64) -> Result<(), StoreError> {
    let found = store.read(AllTenants, "get", move |tx| {
        tx.first("SELECT content FROM bench WHERE id = $1", &[key(number).into()], |row| {
            Ok(row.bytes(0)?.len())
        })
    });
    found.await.map(drop)
}

/// Runs `work` from so many tasks at once until the time is over.
async fn measure<W>(tasks: usize, time: Duration, work: impl Fn() -> W) -> Result<Json, Failure>
where
    W: Future<Output = Result<(), StoreError>> + Send + 'static,
{
    let started = Instant::now();
    let mut running = JoinSet::new();
    let spawn = |running: &mut JoinSet<_>| {
        let unit = work();
        running.spawn(async move {
            let started = Instant::now();
            unit.await.map(|()| started.elapsed())
        });
    };
    (0..tasks).for_each(|_| spawn(&mut running));
    let mut latencies = Vec::new();
    while let Some(unit) = running.join_next().await {
        latencies.push(unit??);
        if started.elapsed() < time {
            spawn(&mut running);
        }
    }
    let per_second = latencies.len() as f64 / started.elapsed().as_secs_f64();
    latencies.sort_unstable();
    let percentile =
        |share: f64| latencies[((latencies.len() - 1) as f64 * share) as usize].as_micros() as u64;
    Ok(json!({
        "concurrent": tasks,
        "rows_per_second": per_second.round(),
        "p50_us": percentile(0.5),
        "p99_us": percentile(0.99),
        "p999_us": percentile(0.999),
        "max_us": percentile(1.0),
    }))
}
