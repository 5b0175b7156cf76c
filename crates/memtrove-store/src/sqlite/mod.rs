//! The embedded engine: SQLite in one file, one thread that writes, several that read.
//!
//! Writes are grouped: the writer takes what is queued, runs each unit of work in a savepoint of one transaction, commits
//! once, durably, and then answers all of them ([`writer`]). Readers work on snapshots and never wait for it
//! ([`reader`]). The write-ahead log is moved into the database by a thread of its own ([`checkpoint`]).

mod checkpoint;
mod compaction;
mod connection;
mod dialect;
mod failure;
mod feed;
mod inspection;
mod migrations;
mod reader;
mod scrub;
mod text;
mod tx;
mod volatile;
mod writer;

use crate::memories::segments::{self, SegmentFolder};
use crate::vault::{self, Vault};
use crate::{Engine, Health, QueuedWork, StoreError};
use checkpoint::{Log, LogKeeper};
use connection::ConnectionRole;
use crossbeam_channel::{Sender, TrySendError, bounded};
use failure::DatabaseFile;
pub use inspection::{Soundness, SqliteInspection, check, inspect, look};
use std::fs::{File, OpenOptions, TryLockError};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::thread::JoinHandle;
use tokio::sync::oneshot;
use tx::SqliteTx;
pub use volatile::VolatileEngine;
use writer::WriterThread;

/// Where the database is and how much the engine may take on.
#[derive(Debug, Clone)]
pub struct SqliteConfig {
    /// The database file. Its folder is made if it is missing.
    pub path: PathBuf,
    /// Threads that read, each with a connection.
    pub readers: usize,
    /// Units of work that may wait for the writer; more are answered `Overloaded`.
    pub write_queue: usize,
    /// Units of work that may wait for a reader; more are answered `Overloaded`.
    pub read_queue: usize,
    /// Units of work that share a commit at most.
    pub max_batch: usize,
    /// What seals and opens content.
    pub vault: Arc<Vault>,
}

impl Default for SqliteConfig {
    fn default() -> Self {
        let cores = std::thread::available_parallelism().map_or(2, usize::from);
        Self {
            path: PathBuf::from("memtrove.db"),
            // One more than searches of conversations may take.
            readers: cores.clamp(2, 4) + 1,
            write_queue: 4096,
            read_queue: 4096,
            max_batch: 512,
            vault: Arc::new(Vault::plain()),
        }
    }
}

/// Where it goes whether the log was emptied.
type Reply = oneshot::Sender<Result<bool, StoreError>>;

/// What the writer does, one after the other.
enum Order {
    Run(QueuedWork),
    EmptyLog(Reply),
}

/// What the threads count.
#[derive(Debug, Default)]
struct ThreadLoad {
    active: AtomicUsize,
    commits: AtomicU64,
}

#[derive(Clone)]
struct ThreadQueues {
    write: Sender<Order>,
    read: Sender<QueuedWork>,
}

#[derive(Default)]
struct Threads {
    readers: Vec<JoinHandle<()>>,
    writer: Option<JoinHandle<()>>,
}

/// The first release whose log survives a checkpoint from another connection in every case.
const OLDEST_SQLITE: i32 = 3_051_003;

/// The embedded engine.
pub struct SqliteEngine {
    place: DatabaseFile,
    readers: usize,
    load: Arc<ThreadLoad>,
    /// `None` once the engine is closed.
    queues: RwLock<Option<ThreadQueues>>,
    threads: Mutex<Threads>,
}

impl SqliteEngine {
    /// Opens the database, makes or upgrades its schema, and starts the threads. Only one process may have it open.
    pub fn open(config: SqliteConfig) -> Result<SqliteEngine, StoreError> {
        let mut place = DatabaseFile::new(config.path);
        let segments = Arc::new(SegmentFolder::new(place.segment_folder()));
        place.segments = Some(Arc::clone(&segments));
        if rusqlite::version_number() < OLDEST_SQLITE {
            return Err(StoreError::Schema(format!(
                "SQLite {} can damage a log that is checkpointed while it is written: build with 3.51.3 or newer",
                rusqlite::version()
            )));
        }
        let lock = lock(&place)?;
        let mut writer = connection::open(&place, ConnectionRole::Writer)?;
        if !has_pages_table(&writer).map_err(|error| place.error(&error))? {
            return Err(StoreError::Schema(
                "SQLite was built without its table of pages, which forgetting needs: build with the flags in .cargo/config.toml"
                    .into(),
            ));
        }
        migrations::migrate(&writer, &place)?;
        SqliteTx::new(&writer, place.clone(), Arc::clone(&config.vault), true).alone(|tx| {
            vault::admit(tx)?;
            segments.tidy(tx)
        })?;
        let checkpointer = connection::open(&place, ConnectionRole::Checkpointer)?;
        let readers = (0..config.readers.max(1))
            .map(|_| connection::open(&place, ConnectionRole::Reader))
            .collect::<Result<Vec<_>, _>>()?;

        let load = Arc::new(ThreadLoad::default());
        let log = Arc::new(Log::default());
        let (pass, passes) = bounded(1);
        let (write, writes) = bounded(config.write_queue.max(1));
        let (read, reads) = bounded(config.read_queue.max(1));
        let keeper =
            LogKeeper::watch(&mut writer, Arc::clone(&log), pass).map_err(|error| place.error(&error))?;

        let checkpointer =
            spawn("memtrove-checkpoint", move || checkpoint::run(&checkpointer, &log, &passes))?;
        let engine = SqliteEngine {
            place: place.clone(),
            readers: readers.len(),
            load: Arc::clone(&load),
            queues: RwLock::new(Some(ThreadQueues { write, read })),
            threads: Mutex::default(),
        };
        // From here on an early return drops the engine, which ends the threads that have started.
        let mut threads = Threads::default();
        for (number, connection) in readers.into_iter().enumerate() {
            let (place, vault) = (place.clone(), Arc::clone(&config.vault));
            let (reads, load) = (reads.clone(), Arc::clone(&load));
            threads.readers.push(spawn(&format!("memtrove-reader-{number}"), move || {
                reader::run(SqliteTx::new(&connection, place, vault, false), &reads, &load);
            })?);
        }
        let (writer_place, vault, max_batch) = (place.clone(), config.vault, config.max_batch);
        threads.writer = Some(spawn("memtrove-writer", move || {
            let tx = SqliteTx::new(&writer, writer_place, vault, true);
            WriterThread::new(&writer, tx, keeper, max_batch).run(&writes, &load);
            // The writer is gone, so the checkpointer has ended; it must be, for the log to be emptied.
            let _ = checkpointer.join();
            checkpoint::empty(&writer);
            drop(writer);
            drop(lock);
        })?);
        *engine.threads.lock().unwrap_or_else(PoisonError::into_inner) = threads;
        tracing::info!(database = %place.database.display(), readers = engine.readers, "sqlite opened");
        Ok(engine)
    }

    /// Transactions committed since the engine was opened. Far fewer than units of work under load.
    pub fn commits(&self) -> u64 {
        self.load.commits.load(Ordering::Relaxed)
    }

    /// The database file.
    pub fn path(&self) -> &Path {
        &self.place.database
    }

    /// Hands the order back where it cannot be queued, with the reason.
    fn queue<T>(
        &self,
        order: T,
        choose: impl FnOnce(&ThreadQueues) -> &Sender<T>,
    ) -> Result<(), (T, StoreError)> {
        let queues = self.queues.read().unwrap_or_else(PoisonError::into_inner);
        let queued = match queues.as_ref() {
            Some(queues) => choose(queues).try_send(order),
            None => Err(TrySendError::Disconnected(order)),
        };
        queued.map_err(|refused| match refused {
            TrySendError::Full(order) => (order, StoreError::Overloaded),
            TrySendError::Disconnected(order) => {
                (order, StoreError::Unavailable("the store is closed".into()))
            }
        })
    }

    fn order(&self, order: Order) {
        match self.queue(order, |queues| &queues.write) {
            Ok(()) => {}
            Err((Order::Run(job), why)) => job.finish(Err(why)),
            Err((Order::EmptyLog(reply), why)) => drop(reply.send(Err(why))),
        }
    }
}

impl Engine for SqliteEngine {
    fn read(&self, job: QueuedWork) {
        if let Err((job, why)) = self.queue(job, |queues| &queues.read) {
            job.finish(Err(why));
        }
    }

    fn write(&self, job: QueuedWork) {
        self.order(Order::Run(job));
    }

    fn health(&self) -> Health {
        let queues = self.queues.read().unwrap_or_else(PoisonError::into_inner);
        Health {
            active: self.load.active.load(Ordering::Relaxed),
            total: self.readers + 1,
            readers: self.readers,
            queued: queues.as_ref().map_or(0, |queues| queues.write.len() + queues.read.len()),
            is_away: false,
            is_damaged: self.place.damage.is_found(),
        }
    }

    fn empty_log(&self) -> oneshot::Receiver<Result<bool, StoreError>> {
        let (reply, answer) = oneshot::channel();
        self.order(Order::EmptyLog(reply));
        answer
    }

    fn segments(&self) -> Option<&Arc<SegmentFolder>> {
        self.place.segments.as_ref()
    }

    fn describe(&self) -> String {
        format!("sqlite at {}", self.place.database.display())
    }

    fn close(&self) {
        let queues = self.queues.write().unwrap_or_else(PoisonError::into_inner).take();
        let Some(ThreadQueues { write, read }) = queues else { return };
        let threads = std::mem::take(&mut *self.threads.lock().unwrap_or_else(PoisonError::into_inner));
        // Readers first: the writer empties the log as its last act, and cannot while somebody reads from it.
        drop(read);
        threads.readers.into_iter().for_each(join);
        drop(write);
        threads.writer.into_iter().for_each(join);
        tracing::info!(database = %self.place.database.display(), "sqlite closed");
    }
}

impl Drop for SqliteEngine {
    fn drop(&mut self) {
        self.close();
    }
}

/// Makes the folder and the database file, and takes the lock that keeps a second process out. It goes with the file handle,
/// however the process ends.
fn lock(place: &DatabaseFile) -> Result<File, StoreError> {
    let io = |error: std::io::Error| place.io_error(&error);
    make_folder(place.folder()).map_err(io)?;
    let file = private().create(true).truncate(false).open(place.lock_file()).map_err(io)?;
    match file.try_lock() {
        Ok(()) => {
            make_database(&place.database).map_err(io)?;
            Ok(file)
        }
        Err(TryLockError::WouldBlock) => Err(StoreError::InUse(format!(
            "another memtrove process uses this data folder ({}): stop it, or choose another with --data-dir",
            place.folder().display()
        ))),
        Err(TryLockError::Error(error)) => Err(io(error)),
    }
}

/// Makes the folder for its owner alone: what people said to each other is in it. One that is there keeps its mode.
fn make_folder(folder: &Path) -> std::io::Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.recursive(true).create(folder)
}

/// Makes the database file for its owner alone, because the folder may be one that others can look into. SQLite gives the files
/// it puts beside a database the mode of that. One that is there keeps its mode.
fn make_database(database: &Path) -> std::io::Result<()> {
    match private().create_new(true).open(database) {
        Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => Err(error),
        Ok(_) | Err(_) => Ok(()),
    }
}

/// How files are made that only their owner may read and write.
fn private() -> OpenOptions {
    let mut options = File::options();
    options.write(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

/// Writes the database file anew, so that nothing is left in it of what was deleted or replaced. No other process may use it.
/// For as long as it takes that needs the space of the database twice more: in the folder for temporary files, where the
/// copy is made, and beside the database, where the log takes it in before it replaces what is there.
pub fn rewrite(database: &Path) -> Result<(), StoreError> {
    let place = DatabaseFile::new(database.to_owned());
    let _lock = lock(&place)?;
    let connection = connection::open(&place, ConnectionRole::Writer)?;
    // The copy is as large as the database, too large for memory.
    let rewritten = connection.execute_batch("PRAGMA temp_store = FILE; VACUUM;");
    rewritten.and_then(|()| checkpoint::truncate(&connection)).map_err(|error| place.error(&error))
}

/// Takes what is left in the log into the database, so that its files can be moved. No other process can open it until the
/// answer is dropped.
pub fn at_rest(database: &Path) -> Result<File, StoreError> {
    let place = DatabaseFile::new(database.to_owned());
    let lock = lock(&place)?;
    let connection = connection::open(&place, ConnectionRole::Writer)?;
    checkpoint::truncate(&connection).map_err(|error| place.error(&error))?;
    segments::remove_folder(&place.segment_folder()).map_err(|error| place.io_error(&error))?;
    connection.close().map_err(|(_, error)| place.error(&error))?;
    Ok(lock)
}

/// Whether SQLite was built with what [`scrub`] needs.
fn has_pages_table(connection: &rusqlite::Connection) -> rusqlite::Result<bool> {
    connection.query_row(
        "SELECT EXISTS (SELECT 1 FROM pragma_module_list WHERE name = 'sqlite_dbpage')",
        [],
        |row| row.get(0),
    )
}

/// The schema a database of this version has.
pub fn known_schema() -> i64 {
    migrations::known()
}

fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> Result<JoinHandle<()>, StoreError> {
    let thread = std::thread::Builder::new().name(name.into());
    thread
        .spawn(work)
        .map_err(|error| StoreError::Unavailable(format!("cannot start the thread {name}: {error}")))
}

/// Waits for a thread, unless it is the one that waits: a unit of work may hold the last handle of its own store.
fn join(thread: JoinHandle<()>) {
    if thread.thread().id() != std::thread::current().id() && thread.join().is_err() {
        tracing::error!("a thread of the store panicked");
    }
}
