//! The engine for many nodes: PostgreSQL, a pool of threads that each own a connection.
//!
//! A unit of work is a transaction of its own on one snapshot ([`tx`]). Two that change the same row cannot both commit: the
//! second is run again ([`worker`]). Nothing is kept in this process that another one would have to know: locks, numbers and
//! the change feed are the database's ([`feed`], [`follower`]).

pub mod address;
mod batch;
pub mod connection;
mod failure;
mod feed;
mod follower;
pub mod inspection;
mod keys;
mod migrations;
mod presence;
mod rewriting;
mod row;
mod text;
mod tls;
mod tx;
mod vector_indexes;
mod vectors;
mod worker;

use crate::damage::Damage;
use crate::vault::{self, Vault};
use crate::{Engine, Health, QueuedWork, StoreError, TenantScope, Tx};
use connection::{DatabaseSession, waiting};
use crossbeam_channel::{Receiver, Sender, TrySendError, bounded};
use follower::Follower;
use keys::BusyKeys;
pub use migrations::{Schema, fingerprint as schema_fingerprint, known as known_schema, works_with};
pub use rewriting::rewrite;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::sync::oneshot;
pub use tx::set_every_tenant;
use worker::{Outage, Worker, WorkerPool, WorkerRole};

/// The schema that a store's volatile twin lives in.
const VOLATILE_SCHEMA: &str = memtrove_core::legacy_labels::POSTGRES_VOLATILE_SCHEMA;
/// Connections of a volatile twin: what it keeps is small and short.
const VOLATILE_CONNECTIONS: usize = 4;

/// Where the database is and how much the engine may take on.
#[derive(Clone)]
pub struct PostgresConfig {
    /// `postgres://user:password@host:port/database?sslmode=…`.
    pub url: String,
    /// Threads, each with a connection; half of them write.
    pub connections: usize,
    /// Units of work that may wait for a connection that reads, and as many for one that writes; more are answered
    /// `Overloaded`.
    pub queue: usize,
    /// How long one statement may take.
    pub statement_timeout: Duration,
    /// Certificates (PEM) that the server's is checked against, in place of the system's.
    pub tls_ca: Option<PathBuf>,
    /// What seals and opens content.
    pub vault: Arc<Vault>,
}

impl Default for PostgresConfig {
    fn default() -> Self {
        Self {
            url: "postgres://localhost/memtrove".into(),
            connections: 16,
            queue: 4096,
            statement_timeout: Duration::from_secs(30),
            tls_ca: None,
            vault: Arc::new(Vault::plain()),
        }
    }
}

impl std::fmt::Debug for PostgresConfig {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PostgresConfig")
            .field("url", &address::redacted(&self.url))
            .field("connections", &self.connections)
            .finish_non_exhaustive()
    }
}

/// Brings a database to this version's schema and does nothing else.
pub fn migrate(config: &PostgresConfig) -> Result<(), StoreError> {
    waiting(|| {
        for schema in [None, Some(VOLATILE_SCHEMA)] {
            migrations::migrate(&mut DatabaseSession::connect(config, schema)?, schema, true)?;
        }
        Ok(())
    })?
}

/// Looks at a database on one connection, without changing anything of it.
pub fn look<T: Send>(
    config: &PostgresConfig,
    tenants: TenantScope,
    work: impl FnOnce(&mut dyn Tx) -> Result<T, StoreError> + Send,
) -> Result<T, StoreError> {
    waiting(|| {
        // It may take as long as it takes: an archive of everything is one look.
        let mut session = DatabaseSession::connect_patiently(config)?;
        let mut tx = tx::PostgresTx::new(&mut session, &config.vault, &tenants, false);
        let looked = work(&mut tx);
        tx.roll_back();
        looked
    })?
}

/// What the threads count.
#[derive(Debug, Default)]
struct PoolLoad {
    active: AtomicUsize,
}

#[derive(Clone)]
struct WorkerQueues {
    write: Sender<QueuedWork>,
    read: Sender<QueuedWork>,
}

/// The engine for many nodes.
pub struct PostgresEngine {
    config: PostgresConfig,
    connections: usize,
    load: Arc<PoolLoad>,
    outage: Arc<Outage>,
    damage: Arc<Damage>,
    keys: Arc<BusyKeys>,
    /// `None` once the engine is closed.
    queues: RwLock<Option<WorkerQueues>>,
    threads: Mutex<Vec<JoinHandle<()>>>,
    /// Volatile stores have no feed.
    follower: Option<Follower>,
    /// Says that somebody is here, for as long as it is open.
    _presence: Mutex<Option<DatabaseSession>>,
}

impl PostgresEngine {
    /// Connects, makes or upgrades the schema (one process at a time), and starts the threads.
    pub fn open(config: PostgresConfig) -> Result<Self, StoreError> {
        waiting(|| Self::start(config, None))?
    }

    fn start(mut config: PostgresConfig, schema: Option<&'static str>) -> Result<Self, StoreError> {
        let mut first = DatabaseSession::connect(&config, schema)?;
        let (presence, is_first) = match schema {
            None => presence::admit(&config).map(|(session, is_first)| (Some(session), is_first))?,
            Some(_) => (None, true),
        };
        migrations::migrate(&mut first, schema, is_first)?;
        first.set_up(&config, schema)?;
        if schema.is_none() && !config.vault.is_rotating() {
            presence::join(&mut first)?;
        }
        tx::alone(&mut first, &config.vault, vault::admit)?;
        tx::alone(&mut first, &config.vault, vector_indexes::drop_if_sealed)?;
        config.connections = config.connections.max(2);
        let outage: Arc<Outage> = Arc::default();
        let follower = match schema {
            None => Some(Follower::start(config.clone(), outage.clone())?),
            Some(_) => None,
        };
        let (write, writes) = bounded(config.queue.max(1));
        let (read, reads) = bounded(config.queue.max(1));
        let engine = Self {
            connections: config.connections,
            load: Arc::default(),
            outage,
            damage: Arc::default(),
            keys: Arc::default(),
            queues: RwLock::new(Some(WorkerQueues { write, read })),
            threads: Mutex::default(),
            follower,
            _presence: Mutex::new(presence),
            config,
        };
        // From here on an early return drops the engine, which ends the threads that have started.
        let writers = engine.connections.div_ceil(2);
        let pool = |role| {
            let notifier = engine.follower.as_ref().map(Follower::notifier);
            let condition = (engine.outage.clone(), engine.damage.clone());
            Arc::new(WorkerPool::new(
                role,
                engine.config.clone(),
                schema,
                notifier,
                condition,
                engine.keys.clone(),
            ))
        };
        let (writing, reading) = (pool(WorkerRole::Writer), pool(WorkerRole::Reader));
        engine.add_thread(&writing, &writes, Some(first))?;
        for _ in 1..writers {
            engine.add_thread(&writing, &writes, None)?;
        }
        for _ in writers..engine.connections {
            engine.add_thread(&reading, &reads, None)?;
        }
        tracing::info!(database = %engine.describe(), connections = engine.connections, "postgres opened");
        Ok(engine)
    }

    /// A thread connects when it has something to do.
    fn add_thread(
        &self,
        pool: &Arc<WorkerPool>,
        queue: &Receiver<QueuedWork>,
        session: Option<DatabaseSession>,
    ) -> Result<(), StoreError> {
        let mut threads = self.threads.lock().unwrap_or_else(PoisonError::into_inner);
        let name = format!("memtrove-pg-{}", threads.len());
        let mut worker = Worker::new(pool.clone(), session);
        let (queue, load) = (queue.clone(), Arc::clone(&self.load));
        let thread = std::thread::Builder::new().name(name.clone()).spawn(move || worker.work(&queue, &load));
        let thread = thread
            .map_err(|error| StoreError::Unavailable(format!("cannot start the thread {name}: {error}")))?;
        threads.push(thread);
        Ok(())
    }

    fn queue(&self, job: QueuedWork, choose: impl FnOnce(&WorkerQueues) -> &Sender<QueuedWork>) {
        let queues = self.queues.read().unwrap_or_else(PoisonError::into_inner);
        let queued = match queues.as_ref() {
            Some(queues) => choose(queues).try_send(job),
            None => Err(TrySendError::Disconnected(job)),
        };
        match queued {
            Ok(()) => {}
            Err(TrySendError::Full(job)) => job.finish(Err(StoreError::Overloaded)),
            Err(TrySendError::Disconnected(job)) => {
                job.finish(Err(StoreError::Unavailable("the store is closed".into())));
            }
        }
    }
}

impl Engine for PostgresEngine {
    fn read(&self, job: QueuedWork) {
        self.queue(job, |queues| &queues.read);
    }

    fn write(&self, job: QueuedWork) {
        self.queue(job, |queues| &queues.write);
    }

    fn health(&self) -> Health {
        let queues = self.queues.read().unwrap_or_else(PoisonError::into_inner);
        Health {
            active: self.load.active.load(Ordering::Relaxed),
            total: self.connections,
            readers: self.connections / 2,
            queued: queues.as_ref().map_or(0, |queues| queues.write.len() + queues.read.len()),
            is_away: self.outage.is_on(),
            is_damaged: self.damage.is_found(),
        }
    }

    /// The log is the database's, and so is when it goes.
    fn empty_log(&self) -> oneshot::Receiver<Result<bool, StoreError>> {
        let (reply, answer) = oneshot::channel();
        // The caller may have gone away.
        let _ = reply.send(Ok(true));
        answer
    }

    fn is_shared(&self) -> bool {
        true
    }

    fn follow(&self, wake: Arc<dyn Fn() + Send + Sync>) {
        if let Some(follower) = &self.follower {
            follower.wake_too(wake);
        }
    }

    fn keep_vector_indexes(&self, wanted: Vec<(i64, i64)>) -> oneshot::Receiver<Result<bool, StoreError>> {
        let (reply, answer) = oneshot::channel();
        let config = self.config.clone();
        let keep = move || {
            // The caller may have gone away.
            let _ = reply.send(vector_indexes::keep(&config, &wanted));
        };
        if let Err(error) = std::thread::Builder::new().name("memtrove-pg-vectors".into()).spawn(keep) {
            tracing::warn!(%error, "cannot start a thread");
        }
        answer
    }

    /// Tables that are not logged, in a schema of their own: every node sees them, and a crash of the database empties them.
    fn volatile_twin(&self) -> Result<Arc<dyn Engine>, StoreError> {
        let config =
            PostgresConfig { connections: VOLATILE_CONNECTIONS.min(self.connections), ..self.config.clone() };
        Ok(Arc::new(waiting(|| Self::start(config, Some(VOLATILE_SCHEMA)))??))
    }

    fn describe(&self) -> String {
        connection::describe(&self.config.url)
    }

    fn close(&self) {
        let queues = self.queues.write().unwrap_or_else(PoisonError::into_inner).take();
        if queues.is_none() {
            return;
        }
        drop(queues);
        let threads = std::mem::take(&mut *self.threads.lock().unwrap_or_else(PoisonError::into_inner));
        for thread in threads {
            // A unit of work may hold the last handle of its own store.
            if thread.thread().id() != std::thread::current().id() && thread.join().is_err() {
                tracing::error!("a thread of the store panicked");
            }
        }
        if let Some(follower) = &self.follower {
            follower.stop();
        }
        tracing::info!(database = %self.describe(), "postgres closed");
    }
}

impl Drop for PostgresEngine {
    fn drop(&mut self) {
        self.close();
    }
}
