//! The embedded engine: the suite, and what only this engine promises.

use memtrove_store::sqlite::{SqliteConfig, SqliteEngine};
use memtrove_store::{
    AllTenants, Engine, Store, StoreError, TextDocument, TextQuery, Traces, Tx, TxExt, Value,
};
use memtrove_testkit::engine_suite::EngineFixture;
use memtrove_testkit::small_disk::SmallDisk;
use std::collections::HashSet;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;
use tempfile::TempDir;
use tokio::task::JoinSet;
use uuid::Uuid;

/// An engine in a folder that goes away with it.
struct Sqlite {
    folder: TempDir,
    store: Store,
}

impl EngineFixture for Sqlite {
    fn store(&self) -> &Store {
        &self.store
    }

    async fn reopen(&mut self) {
        self.store.close();
        self.store = Store::new(Arc::new(SqliteEngine::open(config(self.folder.path())).unwrap()));
    }
}

async fn open() -> Sqlite {
    let folder = TempDir::new().unwrap();
    let store = Store::new(Arc::new(SqliteEngine::open(config(folder.path())).unwrap()));
    Sqlite { folder, store }
}

memtrove_testkit::engine_suite!(open);

fn config(folder: &Path) -> SqliteConfig {
    SqliteConfig { path: folder.join("memtrove.db"), ..SqliteConfig::default() }
}

fn open_in(folder: &Path) -> (Arc<SqliteEngine>, Store) {
    let engine = Arc::new(SqliteEngine::open(config(folder)).unwrap());
    (Arc::clone(&engine), Store::new(engine))
}

async fn put(store: &Store, key: String, size: usize) -> Result<(), StoreError> {
    let put = store.write(AllTenants, "test", move |tx| {
        let value = vec![7; size];
        tx.execute(
            "INSERT INTO meta (key, value) VALUES ($1, $2)",
            &[key.as_str().into(), Value::Bytes(&value)],
        )?;
        Ok(())
    });
    put.await
}

/// How often [`put`] was heard; the engine keeps facts of its own there too.
const WRITTEN: &str = "SELECT count(*) FROM meta WHERE key <> 'plain_content'";

async fn number(store: &Store, sql: &'static str) -> i64 {
    store.read(AllTenants, "test", move |tx| tx.first(sql, &[], |row| row.int(0))).await.unwrap().unwrap()
}

async fn integrity(store: &Store) -> String {
    let checked = store.read(AllTenants, "test", |tx| {
        tx.first("PRAGMA integrity_check", &[], |row| Ok(row.text(0)?.to_owned()))
    });
    checked.await.unwrap().unwrap()
}

fn refusal(opened: Result<SqliteEngine, StoreError>) -> StoreError {
    match opened {
        Ok(engine) => panic!("{} should not have opened", engine.describe()),
        Err(error) => error,
    }
}

#[cfg(unix)]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn files_are_for_their_owner_alone_in_whatever_folder() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = TempDir::new().unwrap();
    std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    let mode = |name: &str| std::fs::metadata(folder.path().join(name)).unwrap().permissions().mode() & 0o777;
    let (_, store) = open_in(folder.path());
    put(&store, "key".to_owned(), 10).await.unwrap();
    for name in ["memtrove.db", "memtrove.db-wal", "memtrove.db-shm", "memtrove.db.lock"] {
        assert_eq!(mode(name), 0o600, "{name}");
    }
    store.close();
    // Somebody lets others read it.
    std::fs::set_permissions(folder.path().join("memtrove.db"), std::fs::Permissions::from_mode(0o640))
        .unwrap();
    let (_, store) = open_in(folder.path());
    put(&store, "another key".to_owned(), 10).await.unwrap();
    assert_eq!((mode("memtrove.db"), mode("memtrove.db-wal")), (0o640, 0o640));
}

/// A write that holds the writer until the returned sender is dropped.
async fn block_writer(store: &Store) -> mpsc::Sender<()> {
    let (release, released) = mpsc::channel::<()>();
    let (started, starting) = tokio::sync::oneshot::channel();
    let released = std::sync::Mutex::new(Some((released, started)));
    let store = store.clone();
    tokio::spawn(async move {
        let blocked = store.write(AllTenants, "test", move |_| {
            if let Some((released, started)) = released.lock().unwrap().take() {
                started.send(()).unwrap();
                let _ = released.recv();
            }
            Ok::<_, StoreError>(())
        });
        blocked.await
    });
    starting.await.unwrap();
    release
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_writes_share_a_commit() {
    let folder = TempDir::new().unwrap();
    let (engine, store) = open_in(folder.path());
    let before = engine.commits();
    let release = block_writer(&store).await;
    let mut writes = JoinSet::new();
    for n in 0..1000 {
        let store = store.clone();
        writes.spawn(async move { put(&store, format!("key {n}"), 10).await.unwrap() });
    }
    while store.health().queued < 1000 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    drop(release);
    writes.join_all().await;
    let commits = engine.commits() - before;
    assert!(commits <= 50, "1000 writes took {commits} commits");
    assert_eq!(number(&store, WRITTEN).await, 1000);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_queue_answers_overloaded_at_once() {
    let folder = TempDir::new().unwrap();
    let config = SqliteConfig { write_queue: 4, ..config(folder.path()) };
    let store = Store::new(Arc::new(SqliteEngine::open(config).unwrap()));
    let release = block_writer(&store).await;
    let mut writes = JoinSet::new();
    for n in 0..20 {
        let store = store.clone();
        writes.spawn(async move { put(&store, format!("key {n}"), 10).await });
    }
    // Sixteen are refused while the writer is still held.
    for _ in 0..16 {
        let refused = writes.join_next().await.unwrap().unwrap();
        assert!(matches!(refused, Err(StoreError::Overloaded)), "{refused:?}");
    }
    assert_eq!(store.health().queued, 4);
    // Reads have a queue of their own.
    assert_eq!(number(&store, WRITTEN).await, 0);
    drop(release);
    while let Some(written) = writes.join_next().await {
        written.unwrap().unwrap();
    }
    assert_eq!(number(&store, WRITTEN).await, 4);
}

#[tokio::test]
async fn closing_finishes_what_is_queued() {
    let folder = TempDir::new().unwrap();
    let (_, store) = open_in(folder.path());
    let release = block_writer(&store).await;
    let mut writes = JoinSet::new();
    for n in 0..20 {
        let store = store.clone();
        writes.spawn(async move { put(&store, format!("key {n}"), 10).await });
    }
    while store.health().queued < 20 {
        tokio::task::yield_now().await;
    }
    drop(release);
    store.close();
    while let Some(written) = writes.join_next().await {
        written.unwrap().unwrap();
    }
    assert!(!folder.path().join("memtrove.db-wal").exists(), "the log is emptied and removed");
    let (_, store) = open_in(folder.path());
    assert_eq!(number(&store, WRITTEN).await, 20);
}

#[tokio::test]
async fn a_unit_of_work_may_drop_the_last_handle_of_its_store() {
    let folder = TempDir::new().unwrap();
    let (engine, store) = open_in(folder.path());
    drop(engine);
    let handle = std::sync::Mutex::new(Some(store.clone()));
    let (done, wait) = tokio::sync::oneshot::channel();
    let done = std::sync::Mutex::new(Some(done));
    let task = tokio::spawn(async move {
        let written = store.write(AllTenants, "test", move |_| {
            std::thread::sleep(Duration::from_millis(50));
            drop(handle.lock().unwrap().take());
            let _ = done.lock().unwrap().take().unwrap().send(());
            Ok::<_, StoreError>(())
        });
        written.await
    });
    tokio::time::sleep(Duration::from_millis(10)).await;
    task.abort();
    tokio::time::timeout(Duration::from_secs(5), wait).await.unwrap().unwrap();
}

#[tokio::test]
async fn a_second_process_is_kept_out() {
    let folder = TempDir::new().unwrap();
    let (engine, store) = open_in(folder.path());
    let refused = refusal(SqliteEngine::open(config(folder.path())));
    let expected = format!(
        "another memtrove process uses this data folder ({}): stop it, or choose another with --data-dir",
        folder.path().display()
    );
    assert!(matches!(&refused, StoreError::InUse(why) if *why == expected), "{refused}");
    store.close();
    drop(engine);
    SqliteEngine::open(config(folder.path())).unwrap();
}

#[tokio::test]
async fn a_missing_folder_is_made() {
    let folder = TempDir::new().unwrap();
    let (engine, store) = open_in(&folder.path().join("a/b"));
    put(&store, "key".into(), 1).await.unwrap();
    assert!(engine.path().exists());
}

#[tokio::test]
async fn a_newer_schema_is_refused() {
    let folder = TempDir::new().unwrap();
    let (_, store) = open_in(folder.path());
    store.close();
    let database = rusqlite::Connection::open(folder.path().join("memtrove.db")).unwrap();
    database.execute_batch("PRAGMA user_version = 99").unwrap();
    drop(database);
    let refused = refusal(SqliteEngine::open(config(folder.path())));
    assert!(
        matches!(&refused, StoreError::Schema(why) if why.contains("schema 99")
        && why.contains("start the newer version") && why.contains("restore a backup")),
        "{refused}"
    );
    // Refusing leaves no lock behind.
    let refused = refusal(SqliteEngine::open(config(folder.path())));
    assert!(matches!(refused, StoreError::Schema(_)));
}

#[tokio::test]
async fn a_file_that_is_no_database_is_refused() {
    let folder = TempDir::new().unwrap();
    std::fs::write(
        folder.path().join("memtrove.db"),
        "not a database, but long enough to look at it".repeat(50),
    )
    .unwrap();
    let refused = refusal(SqliteEngine::open(config(folder.path())));
    assert!(refused.to_string().contains("is damaged"), "{refused}");
}

#[tokio::test]
async fn the_settings_are_those_that_make_a_commit_durable() {
    let folder = TempDir::new().unwrap();
    let (_, store) = open_in(folder.path());
    let settings = store.write(AllTenants, "test", |tx| {
        Ok::<_, StoreError>((
            tx.first("PRAGMA journal_mode", &[], |row| Ok(row.text(0)?.to_owned()))?,
            tx.first("PRAGMA synchronous", &[], |row| row.int(0))?,
            tx.first("PRAGMA wal_autocheckpoint", &[], |row| row.int(0))?,
        ))
    });
    assert_eq!(settings.await.unwrap(), (Some("wal".into()), Some(2), Some(0)));
}

/// Fills the database up to a limit on its pages, the same error as a full disk in the midst of a statement.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_that_may_not_grow_says_so_and_recovers() {
    let folder = TempDir::new().unwrap();
    let (_, store) = open_in(folder.path());
    put(&store, "before".into(), 10).await.unwrap();
    limit_pages(&store, "PRAGMA max_page_count = 200").await;

    let mut writes = JoinSet::new();
    for n in 0..64 {
        let store = store.clone();
        writes.spawn(async move { (n, put(&store, format!("key {n}"), 100_000).await) });
    }
    let (mut stored, mut refused) = (Vec::new(), 0);
    while let Some(write) = writes.join_next().await {
        match write.unwrap() {
            (n, Ok(())) => stored.push(format!("key {n}")),
            (_, Err(StoreError::Unavailable(why))) => {
                assert!(why.starts_with("the disk is full: free space in "), "{why}");
                refused += 1;
            }
            (n, answer) => panic!("{n} was answered {answer:?}"),
        }
    }
    assert!(refused > 0 && !stored.is_empty(), "{refused} refused, {} stored", stored.len());
    // Exactly what was acknowledged is there, also for a small one that still fits.
    assert_eq!(number(&store, WRITTEN).await as usize, stored.len() + 1);
    assert_eq!(integrity(&store).await, "ok");

    limit_pages(&store, "PRAGMA max_page_count = 1000000").await;
    put(&store, "after".into(), 100_000).await.unwrap();
    assert_eq!(integrity(&store).await, "ok");
}

async fn limit_pages(store: &Store, sql: &'static str) {
    store.write(AllTenants, "test", move |tx| tx.first(sql, &[], |row| row.int(0))).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_disk_says_so_and_recovers() {
    let Some(disk) = SmallDisk::mount("4m") else { return };
    let (_, store) = open_in(disk.path());
    let mut stored = 0;
    for n in 0..1000 {
        match put(&store, format!("key {n}"), 20_000).await {
            Ok(()) => stored += 1,
            Err(StoreError::Unavailable(why)) => {
                assert!(why.contains("free space"), "{why}");
                break;
            }
            other => panic!("{other:?}"),
        }
    }
    assert!((1..1000).contains(&stored), "{stored} were stored");
    // Reading goes on, and a batch in which nothing fits answers everybody.
    assert_eq!(number(&store, WRITTEN).await, stored);
    let mut writes = JoinSet::new();
    for n in 0..50 {
        let store = store.clone();
        writes.spawn(async move { put(&store, format!("more {n}"), 500_000).await });
    }
    while let Some(written) = writes.join_next().await {
        assert!(matches!(written.unwrap(), Err(StoreError::Unavailable(_))));
    }
    assert_eq!(number(&store, WRITTEN).await, stored);

    disk.remount("size=32m");
    put(&store, "after".into(), 500_000).await.unwrap();
    assert_eq!(number(&store, WRITTEN).await, stored + 1);
    assert_eq!(integrity(&store).await, "ok");
    store.close();
    let (_, store) = open_in(disk.path());
    assert_eq!(number(&store, WRITTEN).await, stored + 1);
    store.close();
}

#[tokio::test]
async fn a_read_only_folder_says_so() {
    let Some(disk) = SmallDisk::mount("4m") else { return };
    let expected = format!(
        "the data folder {} is read-only: make it writable, or choose another with --data-dir",
        disk.path().display()
    );
    disk.remount("ro");
    let refused = refusal(SqliteEngine::open(config(disk.path())));
    assert!(matches!(&refused, StoreError::Unavailable(why) if *why == expected), "{refused}");

    disk.remount("rw");
    let (_, store) = open_in(disk.path());
    store.close();
    // A file that may not be written, in a folder that may: as a restored backup can have it.
    // SQLite opens it all the same; then the first write is refused, for the same reason.
    let protected = disk.protect("memtrove.db");
    let refused = match SqliteEngine::open(config(disk.path())) {
        Err(refused) => refused,
        Ok(engine) => {
            let store = Store::new(Arc::new(engine));
            let refused = put(&store, "meanwhile".into(), 10).await.unwrap_err();
            store.close();
            refused
        }
    };
    assert!(matches!(&refused, StoreError::Unavailable(why) if why.contains("read-only")), "{refused}");
    drop(protected);
    let (_, store) = open_in(disk.path());
    put(&store, "after".into(), 10).await.unwrap();
    store.close();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_log_stays_small_under_sustained_writes() {
    let folder = TempDir::new().unwrap();
    let (_, store) = open_in(folder.path());
    let log = folder.path().join("memtrove.db-wal");
    let mut largest = 0;
    let mut writes = JoinSet::new();
    for writer in 0..8 {
        let store = store.clone();
        writes.spawn(async move {
            for n in 0..120 {
                put(&store, format!("key {writer} {n}"), 400_000).await.unwrap();
            }
        });
    }
    while !writes.is_empty() {
        let _ = tokio::time::timeout(Duration::from_millis(5), writes.join_next()).await;
        largest = largest.max(std::fs::metadata(&log).unwrap().len());
    }
    assert_eq!(number(&store, WRITTEN).await, 960);
    // How early the log is started over depends on when the checkpointer runs. From 256 MiB on writers wait for it.
    assert!(largest < 288 << 20, "384 MB of writes grew the log to {largest} bytes");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_batch_makes_one_segment_of_the_index() {
    let folder = TempDir::new().unwrap();
    let (_, store) = open_in(folder.path());
    let release = block_writer(&store).await;
    let mut writes = JoinSet::new();
    for n in 0..100 {
        let store = store.clone();
        writes.spawn(async move {
            let indexed = store.write(AllTenants, "test", move |tx| {
                tx.index_text(TextDocument {
                    is_new: false,
                    tenant: "test".into(),
                    id: Uuid::from_u128(n),
                    group: Uuid::from_u128(1),
                    conversation: Uuid::from_u128(2),
                    text: "some words".into(),
                    by_agent: None,
                    terms: "some words".into(),
                })
            });
            indexed.await.unwrap();
        });
    }
    while store.health().queued < 100 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    drop(release);
    writes.join_all().await;
    let segments = number(&store, "SELECT count(DISTINCT segid) FROM text_index_idx").await;
    assert!(segments <= 2, "100 texts in one or two batches made {segments} segments");
    let found = store.read(AllTenants, "test", |tx: &mut dyn Tx| {
        let mut found = 0;
        let query = TextQuery { tenant: "test".into(), words: vec![vec!["word".into()]], groups: None };
        tx.search_text(&query, &mut |_| {
            found += 1;
            Ok(std::ops::ControlFlow::Continue(()))
        })?;
        Ok::<_, StoreError>(found)
    });
    assert_eq!(found.await.unwrap(), 100);
}

// ---- what is left on the disk

/// Whether the database or its log holds the bytes.
fn on_disk(folder: &Path, bytes: &str) -> bool {
    let files =
        ["memtrove.db", "memtrove.db-wal"].map(|file| std::fs::read(folder.join(file)).unwrap_or_default());
    files.iter().any(|file| String::from_utf8_lossy(file).contains(bytes))
}

fn log_size(folder: &Path) -> u64 {
    std::fs::metadata(folder.join("memtrove.db-wal")).unwrap().len()
}

/// A word of twelve letters that occurs nowhere else.
fn word(number: u64) -> String {
    let hash = number.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (0..12).map(|n| char::from(b'a' + (hash >> (5 * n) & 31).min(25) as u8)).collect()
}

/// A text of a hundred words, which no other number has.
fn long_text(number: u64, marker: &str) -> TextDocument {
    let words: Vec<String> = (0..100).map(|n| word(number * 100 + n)).collect();
    let text = format!("{marker} {}", words.join(" "));
    TextDocument {
        is_new: false,
        tenant: "test".into(),
        id: Uuid::from_u128(number.into()),
        group: Uuid::from_u128(1),
        conversation: Uuid::from_u128(2),
        by_agent: None,
        terms: text.clone(),
        text,
    }
}

/// Texts to be found later; `marker` is a word of the first.
async fn index_texts(store: &Store, numbers: std::ops::Range<u64>, marker: &'static str) {
    let first = numbers.start;
    let indexed = store.write(AllTenants, "test", move |tx| {
        for n in numbers.clone() {
            tx.index_text(long_text(n, if n == first { marker } else { "" }))?;
        }
        Ok::<_, StoreError>(())
    });
    indexed.await.unwrap();
}

async fn unindex_text(store: &Store, number: u64) {
    let removed = store.write(AllTenants, "test", move |tx| tx.unindex_text(Uuid::from_u128(number.into())));
    removed.await.unwrap();
}

async fn find_texts(store: &Store, words: &str) -> Vec<Uuid> {
    let words = words.split_whitespace().map(|word| vec![word.to_owned()]).collect();
    let query = TextQuery { tenant: "test".into(), words, groups: None };
    let found = store.read(AllTenants, "test", move |tx| {
        let mut found = Vec::new();
        tx.search_text(&query, &mut |hit| {
            found.push(hit.id);
            Ok(std::ops::ControlFlow::Continue(()))
        })?;
        Ok::<_, StoreError>(found)
    });
    found.await.unwrap()
}

/// Rewrites the index step by step, with `between` after each but the last; answers how many steps it took.
async fn compact(store: &Store, between: impl AsyncFn()) -> i64 {
    let (mut steps, mut begun) = (0, None);
    loop {
        begun = store.write(AllTenants, "test", move |tx| tx.compact_texts(begun)).await.unwrap();
        steps += 1;
        if begun.is_none() {
            return steps;
        }
        between().await;
    }
}

#[tokio::test]
async fn terms_of_what_is_gone_leave_the_disk_though_others_write() {
    let folder = TempDir::new().unwrap();
    let (_, store) = open_in(folder.path());
    let markers = [(5000, "mmqfirstmarker"), (6000, "zzqsecondmarker")];
    for (number, marker) in markers {
        index_texts(&store, number..number + 10, marker).await;
    }
    for batch in 0..30 {
        index_texts(&store, 100 * batch..100 * (batch + 1), "").await;
    }
    let next = AtomicU64::new(10_000);
    let others_write = async || {
        for _ in 0..2 {
            let first = next.fetch_add(2, Ordering::Relaxed);
            index_texts(&store, first..first + 2, "").await;
        }
    };

    for (round, (gone, marker)) in markers.into_iter().enumerate() {
        // Of many segments, and of one alone.
        if round == 1 {
            compact(&store, async || ()).await;
            assert_eq!(number(&store, "SELECT count(DISTINCT segid) FROM text_index_idx").await, 1);
        }
        unindex_text(&store, gone).await;
        assert!(on_disk(folder.path(), &marker[3..]), "a text that is gone leaves its terms");
        let pages = number(&store, "SELECT count(*) FROM text_index_data").await;
        let steps = compact(&store, others_write).await;
        assert!((4..=pages / 256 + 3).contains(&steps), "{steps} steps for {pages} pages");
        assert!(store.scrub(Traces::Pages).await.unwrap());
        assert!(!on_disk(folder.path(), &marker[3..]), "{marker} is still there");
    }
    for kept in [5001, 2999, next.into_inner() - 1] {
        let found = find_texts(&store, &long_text(kept, "").terms).await;
        assert_eq!(found, [Uuid::from_u128(kept.into())]);
    }
    assert_eq!(integrity(&store).await, "ok");
}

#[tokio::test]
async fn a_rewriting_that_was_broken_off_is_not_taken_for_ones_own() {
    let folder = TempDir::new().unwrap();
    let (_, store) = open_in(folder.path());
    for batch in 0..20 {
        // The marker is among the first words, so that the first step writes it.
        let marker = if batch == 0 { "aaqmarker" } else { "" };
        index_texts(&store, 100 * batch..100 * (batch + 1), marker).await;
    }
    let begun = store.write(AllTenants, "test", |tx| tx.compact_texts(None)).await.unwrap();
    assert!(begun.is_some(), "the index is rewritten in one step");
    unindex_text(&store, 0).await;
    assert!(store.scrub(Traces::Texts).await.unwrap());
    assert!(!on_disk(folder.path(), "marker"));
}

#[tokio::test]
async fn the_index_can_be_rewritten_any_number_of_times() {
    let folder = TempDir::new().unwrap();
    let (_, store) = open_in(folder.path());
    let rewritten = store.write(AllTenants, "test", |tx| {
        for no in 1..=2100 {
            tx.execute("INSERT INTO text_index (rowid, terms) VALUES ($1, 'word')", &[no.into()])?;
        }
        for no in 1..2100 {
            tx.execute("DELETE FROM text_index WHERE rowid = $1", &[no.into()])?;
            let mut begun = tx.compact_texts(None)?;
            while begun.is_some() {
                begun = tx.compact_texts(begun)?;
            }
        }
        Ok::<_, StoreError>(())
    });
    rewritten.await.unwrap();
    assert_eq!(number(&store, "SELECT rowid FROM text_index WHERE text_index MATCH 'word'").await, 2100);
}

#[tokio::test]
async fn who_wants_the_index_rewritten_at_the_same_time_shares_the_work() {
    let folder = TempDir::new().unwrap();
    let (engine, store) = open_in(folder.path());
    index_texts(&store, 0..10, "zzqmarker").await;
    unindex_text(&store, 0).await;
    let before = engine.commits();
    let release = block_writer(&store).await;
    let mut scrubs = JoinSet::new();
    for _ in 0..20 {
        let store = store.clone();
        scrubs.spawn(async move { store.scrub(Traces::Texts).await.unwrap() });
    }
    tokio::task::yield_now().await;
    drop(release);
    assert_eq!(scrubs.join_all().await, [true; 20]);
    let commits = engine.commits() - before;
    // The first for itself and the next for all others: the index, and then the pages. And what blocked the writer.
    assert!(commits <= 5, "20 scrubs took {commits} commits");
    assert!(!on_disk(folder.path(), "marker"));
}

/// A number that no other one gives, in an order that has nothing to do with theirs.
fn scattered(number: u64) -> u64 {
    let mixed = number.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (mixed ^ (mixed >> 31)).wrapping_mul(0xBF58_476D_1CE4_E5B9)
}

/// What the row of this number says: text that no other one has, of many lengths, some longer than a page.
fn saying(number: u64) -> String {
    let length = [10, 100, 300, 900, 5000][(scattered(number) >> 40) as usize % 5];
    format!("{:016x}{}", scattered(number), ".".repeat(length))
}

/// Two tables as ours are made, one in the order of writing and one in no order, with rows of two people in turn: even numbers
/// are one's, odd ones the other's.
async fn write_rows(store: &Store, numbers: std::ops::Range<u64>) {
    let written = store.write(AllTenants, "test", move |tx| {
        for sql in [
            "CREATE TABLE IF NOT EXISTS told (no INTEGER PRIMARY KEY, whose INTEGER NOT NULL, text TEXT NOT NULL) STRICT",
            "CREATE INDEX IF NOT EXISTS told_by_text ON told (text)",
            "CREATE TABLE IF NOT EXISTS kept (id INTEGER PRIMARY KEY, whose INTEGER NOT NULL, text TEXT NOT NULL) STRICT, WITHOUT ROWID",
        ] {
            tx.execute(sql, &[])?;
        }
        for number in numbers.clone() {
            let (no, whose, text) = (number as i64, (number % 2) as i64, saying(number));
            let place = (scattered(number) >> 1) as i64;
            let short = &text[..text.len().min(400)];
            tx.execute("INSERT INTO told VALUES ($1, $2, $3)", &[no.into(), whose.into(), short.into()])?;
            tx.execute("INSERT INTO kept VALUES ($1, $2, $3)", &[place.into(), whose.into(), text.as_str().into()])?;
        }
        Ok::<_, StoreError>(())
    });
    written.await.unwrap();
}

async fn delete_rows(store: &Store, whose: i64) {
    let deleted = store.write(AllTenants, "test", move |tx| {
        tx.execute("DELETE FROM told WHERE whose = $1", &[whose.into()])?;
        tx.execute("DELETE FROM kept WHERE whose = $1", &[whose.into()])
    });
    deleted.await.unwrap();
}

/// How many of these rows can be found in the files.
fn rows_on_disk(folder: &Path, numbers: impl Iterator<Item = u64>) -> usize {
    let files = std::fs::read_dir(folder).unwrap();
    let bytes: Vec<u8> = files.flat_map(|file| std::fs::read(file.unwrap().path()).unwrap()).collect();
    // Sixteen letters stand before the first of the full stops.
    let starts = bytes.windows(17).filter(|part| part[16] == b'.' && part[15] != b'.');
    let found: HashSet<&[u8]> = starts.map(|part| &part[..16]).collect();
    numbers.filter(|number| found.contains(&saying(*number).as_bytes()[..16])).count()
}

#[tokio::test]
async fn copies_of_deleted_rows_leave_the_unused_space_of_pages() {
    let folder = TempDir::new().unwrap();
    let (_, store) = open_in(folder.path());
    for batch in 0..20 {
        write_rows(&store, 200 * batch..200 * (batch + 1)).await;
    }
    delete_rows(&store, 1).await;
    assert!(store.scrub(Traces::Log).await.unwrap());
    let left = rows_on_disk(folder.path(), (1..4000).step_by(2));
    assert!(left > 0, "SQLite keeps no copies any more, and nobody has to look for them");

    assert!(store.scrub(Traces::Pages).await.unwrap());

    assert_eq!(rows_on_disk(folder.path(), (1..4000).step_by(2)), 0, "after the answer");
    assert_eq!(integrity(&store).await, "ok");
    assert_eq!(
        number(&store, "SELECT count(*) FROM told t JOIN kept k ON substr(k.text, 1, 400) = t.text").await,
        2000
    );
    store.close();
    assert_eq!(rows_on_disk(folder.path(), (1..4000).step_by(2)), 0, "after the end");
    assert_eq!(rows_on_disk(folder.path(), (0..4000).step_by(2)), 2000);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pages_are_scrubbed_while_others_read_and_write() {
    let folder = TempDir::new().unwrap();
    let (_, store) = open_in(folder.path());
    write_rows(&store, 0..2000).await;
    let next = Arc::new(AtomicU64::new(2000));
    let mut others = JoinSet::new();
    for _ in 0..3 {
        let (store, next) = (store.clone(), next.clone());
        others.spawn(async move {
            loop {
                // Even numbers only: these stay.
                let number = next.fetch_add(2, Ordering::Relaxed);
                write_rows(&store, number..number + 1).await;
                let sql = "SELECT count(*) FROM told WHERE text IN (SELECT substr(text, 1, 400) FROM kept)";
                assert!(self::number(&store, sql).await > 0);
            }
        });
    }
    delete_rows(&store, 1).await;
    while next.load(Ordering::Relaxed) < 2100 {
        tokio::task::yield_now().await;
    }

    assert!(store.scrub(Traces::Pages).await.unwrap());

    assert_eq!(rows_on_disk(folder.path(), (1..2000).step_by(2)), 0);
    others.abort_all();
    while others.join_next().await.is_some() {}
    // What was under way when it was broken off may still come.
    store.write(AllTenants, "test", |_| Ok::<_, StoreError>(())).await.unwrap();
    assert_eq!(integrity(&store).await, "ok");
    let (told, kept) = ("SELECT count(*) FROM told", "SELECT count(*) FROM kept");
    let written = number(&store, told).await;
    assert!(written >= 1050 && written == number(&store, kept).await, "{written}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_log_is_emptied_while_others_read_and_write() {
    let folder = TempDir::new().unwrap();
    let (_, store) = open_in(folder.path());
    // More than the writer may copy while others wait for it.
    for n in 0..20 {
        put(&store, format!("key {n}"), 500_000).await.unwrap();
    }
    let mut others = JoinSet::new();
    for other in 0..3 {
        let store = store.clone();
        others.spawn(async move {
            for n in 0.. {
                put(&store, format!("other {other} {n}"), 1000).await.unwrap();
                number(&store, WRITTEN).await;
            }
        });
    }
    for n in 0..10 {
        put(&store, format!("deleted {n}"), 10).await.unwrap();
        let deleted = store.write(AllTenants, "test", move |tx| {
            let key = format!("deleted {n}");
            tx.execute("DELETE FROM meta WHERE key = $1", &[key.as_str().into()])?;
            Ok::<_, StoreError>(())
        });
        deleted.await.unwrap();
        assert!(store.scrub(Traces::Pages).await.unwrap());
        assert!(!on_disk(folder.path(), &format!("deleted {n}")));
    }
    others.abort_all();
    while others.join_next().await.is_some() {}
    assert!(store.scrub(Traces::Pages).await.unwrap());
    assert_eq!(log_size(folder.path()), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_long_read_keeps_the_log_but_holds_up_nobody() {
    let folder = TempDir::new().unwrap();
    let (_, store) = open_in(folder.path());
    put(&store, "before".into(), 10).await.unwrap();
    let shell = rusqlite::Connection::open(folder.path().join("memtrove.db")).unwrap();
    shell.execute_batch("BEGIN; SELECT count(*) FROM meta;").unwrap();
    put(&store, "after".into(), 10).await.unwrap();

    let scrubbing = tokio::spawn({
        let store = store.clone();
        async move { store.scrub(Traces::Pages).await }
    });
    let (mut slowest, mut n) = (Duration::ZERO, 0);
    while !scrubbing.is_finished() {
        let started = std::time::Instant::now();
        put(&store, format!("meanwhile {n}"), 10).await.unwrap();
        slowest = slowest.max(started.elapsed());
        n += 1;
        assert!(n < 100_000, "it does not wait for ever");
    }
    assert!(!scrubbing.await.unwrap().unwrap(), "somebody still reads from the log");
    assert!(slowest < Duration::from_millis(500), "a commit waited for {slowest:?}");
    assert!(n > 20, "only {n} commits");

    drop(shell);
    assert!(store.scrub(Traces::Pages).await.unwrap());
    assert_eq!(log_size(folder.path()), 0);
}

#[tokio::test]
async fn an_upgrade_knows_who_had_left_a_tree_before() {
    let folder = TempDir::new().unwrap();
    let database = rusqlite::Connection::open(folder.path().join("memtrove.db")).unwrap();
    let schema = include_str!("../../src/sqlite/migrations/0001_conversations.sql");
    let tree = "x'00000000000000000000000000000001'";
    let entry = |id: u8, user: &str| {
        format!(
            "INSERT INTO entries (group_id, conversation_id, channel, ord, id, user_id, content_type, created_at, content)
             VALUES ({tree}, {tree}, 1, {id}, zeroblob({id}), {user}, 'history', 1, x'5b5d');"
        )
    };
    let entries =
        [entry(1, "'bob'"), entry(2, "'bob'"), entry(3, "'alice'"), entry(4, "'carol'"), entry(5, "NULL")];
    database
        .execute_batch(&format!(
            "PRAGMA journal_mode = WAL; BEGIN; {schema}
             INSERT INTO groups VALUES ({tree}, 'a', 'alice', 1, NULL, 6, 1, 1, {tree});
             INSERT INTO memberships VALUES ({tree}, 'alice', 'a', 1, 1), ({tree}, 'carol', 'a', 3, 1);
             {} PRAGMA user_version = 1; COMMIT;",
            entries.concat()
        ))
        .unwrap();
    drop(database);

    let (_, store) = open_in(folder.path());

    let left = store.read(AllTenants, "test", |tx| {
        tx.rows("SELECT user_id, tenant FROM past_members", &[], |row| {
            Ok((row.text(0)?.to_owned(), row.text(1)?.to_owned()))
        })
    });
    assert_eq!(left.await.unwrap(), [("bob".to_owned(), "a".to_owned())]);
}
