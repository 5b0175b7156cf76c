//! Units of work: a closure in, its result out, one hop each way.

use crate::memories::segments::SegmentFolder;
use crate::pulse::Pulse;
use crate::sqlite::VolatileEngine;
use crate::{AllTenants, StoreError, TenantScope, Tx};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tokio::sync::{Mutex, oneshot, watch};

/// For how long, and how far apart, emptying the log is tried again.
const EMPTYING_PATIENCE: Duration = Duration::from_secs(2);
const SHORTEST_PAUSE: Duration = Duration::from_millis(5);
const LONGEST_PAUSE: Duration = Duration::from_millis(160);

/// Pages (of 4 KiB) that are emptied in one unit of work.
const PAGES_AT_ONCE: usize = 256;

/// Where on the disk something may be of what was deleted, each with all that come before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Traces {
    Log,
    /// In unused space of pages.
    Pages,
    /// In the full-text index, which texts were taken out of.
    Texts,
}

/// Work that an engine runs on one of its connection threads.
pub trait UnitOfWork: Send {
    /// Whose rows it may see and write.
    fn tenants(&self) -> &TenantScope;

    /// Runs the closure. `true` keeps what it wrote, `false` undoes it. An engine may call this again after a
    /// serialisation failure or a lost connection: nothing of the first run was kept then.
    fn run(&mut self, tx: &mut dyn Tx) -> bool;

    /// Answers the caller, after the commit (or the reason why there was none).
    fn finish(self: Box<Self>, outcome: Result<(), StoreError>);
}

/// A unit of work in the queue of an engine.
pub type QueuedWork = Box<dyn UnitOfWork>;

/// What `/health/ready` and the metrics want to know of an engine.
#[derive(Debug, Clone, Copy, Default)]
pub struct Health {
    /// Connections that are at work.
    pub active: usize,
    /// Connections there are.
    pub total: usize,
    /// How many of them only read.
    pub readers: usize,
    /// Work waiting for a connection.
    pub queued: usize,
    /// Whether the database could not be reached when that was last tried.
    pub is_away: bool,
    /// Whether something stored could not be read since the engine was opened.
    pub is_damaged: bool,
}

/// A storage engine: threads, connections, queues.
pub trait Engine: Send + Sync {
    /// Queues work that only reads. It sees every write committed before it was queued.
    fn read(&self, job: QueuedWork);
    /// Queues work that reads and writes; it is answered after its commit is durable.
    fn write(&self, job: QueuedWork);
    /// Load, for metrics.
    fn health(&self) -> Health;
    /// Tries to empty the engine's log, which still holds what was deleted, without making anybody wait for long; says
    /// whether it could.
    fn empty_log(&self) -> oneshot::Receiver<Result<bool, StoreError>>;
    /// Whether other processes may use the same store.
    fn is_shared(&self) -> bool {
        false
    }
    /// Where others may commit too: `wake` is to be called whenever they did.
    fn follow(&self, _wake: Arc<dyn Fn() + Send + Sync>) {}
    /// Has exactly these indexes for finding vectors, each of a scope and a length, for engines that find them. May take long,
    /// and does not block writes. `false`: another process is at it.
    fn keep_vector_indexes(&self, _wanted: Vec<(i64, i64)>) -> oneshot::Receiver<Result<bool, StoreError>> {
        let (reply, answer) = oneshot::channel();
        // The caller may have gone away.
        let _ = reply.send(Ok(true));
        answer
    }
    /// A store beside this one for what need not outlive it, as durable as memory.
    fn volatile_twin(&self) -> Result<Arc<dyn Engine>, StoreError> {
        Ok(Arc::new(VolatileEngine::open()?))
    }
    /// Where indexes are kept between starts, if they are: see [`crate::memories::segments`].
    fn segments(&self) -> Option<&Arc<SegmentFolder>> {
        None
    }
    /// What this engine is, for people: `sqlite at …`.
    fn describe(&self) -> String;
    /// Finishes queued work and closes the connections. Work queued afterwards is answered `Unavailable`.
    fn close(&self);
}

/// The store, as the use cases see it.
#[derive(Clone)]
pub struct Store {
    engine: Arc<dyn Engine>,
    commits: Arc<watch::Sender<u64>>,
    compactions: Arc<Together>,
    page_scrubs: Arc<Together>,
    settlings: Arc<Together>,
    pub(crate) pulse: Pulse,
}

/// Something that many may want at once, and that is done for all of them together: all who ask while it is done are served by
/// the next time.
#[derive(Default)]
struct Together {
    asked: AtomicU64,
    /// How many of them have been served. Locked while some are.
    served: Mutex<u64>,
}

impl Together {
    async fn serve<E, F: Future<Output = Result<(), E>>>(&self, work: impl FnOnce() -> F) -> Result<(), E> {
        let asked = self.asked.fetch_add(1, Ordering::SeqCst) + 1;
        let mut served = self.served.lock().await;
        if *served >= asked {
            return Ok(());
        }
        let serving = self.asked.load(Ordering::SeqCst);
        work().await?;
        *served = serving;
        Ok(())
    }
}

impl Store {
    /// Wraps an engine.
    pub fn new(engine: Arc<dyn Engine>) -> Self {
        let commits: Arc<watch::Sender<u64>> = Arc::default();
        let announced = commits.clone();
        engine.follow(Arc::new(move || announced.send_modify(|count| *count += 1)));
        Self {
            engine,
            commits,
            compactions: Arc::default(),
            page_scrubs: Arc::default(),
            settlings: Arc::default(),
            pulse: Pulse::default(),
        }
    }

    /// An empty store for what need not outlive this one: in memory where one process uses it, else where all of them can.
    pub fn volatile_twin(&self) -> Result<Self, StoreError> {
        Ok(Self::new(self.engine.volatile_twin()?))
    }

    /// Whether other processes may use the same store.
    pub fn is_shared(&self) -> bool {
        self.engine.is_shared()
    }

    /// Gives every committed change its number in the feed, where they do not have it at once. A reader of the feed calls
    /// this before, to find its own writes.
    pub async fn settle(&self) -> Result<(), StoreError> {
        if !self.is_shared() {
            return Ok(());
        }
        self.settlings.serve(|| self.number_changes()).await
    }

    async fn number_changes(&self) -> Result<(), StoreError> {
        // Mostly there is nothing to do, and finding that out must not wait for the thread that numbers.
        while self.read(AllTenants, "unnumbered_changes", |tx| tx.has_unnumbered_changes()).await? {
            // Not announced: what a commit wakes comes here.
            let work = |tx: &mut dyn Tx| tx.number_changes();
            let unit = Unit::new(AllTenants.into(), work, |_: &bool| {}, None);
            self.submit("number_changes", unit, |engine, job| engine.write(job)).await?;
        }
        Ok(())
    }

    /// Has exactly these indexes for finding vectors, each of a scope and a length: see [`crate::vectors`]. May take long, and
    /// does not block writes. `false`: another process is at it.
    pub async fn keep_vector_indexes(&self, wanted: Vec<(i64, i64)>) -> Result<bool, StoreError> {
        self.engine.keep_vector_indexes(wanted).await.unwrap_or_else(|_| Err(closed()))
    }

    /// An empty store in memory, which is gone with its last handle: for what must not outlive the process.
    pub fn in_memory() -> Result<Self, StoreError> {
        Ok(Self::new(Arc::new(VolatileEngine::open()?)))
    }

    /// Runs a closure that only reads, on rows of these tenants. `operation` names it in the metrics.
    pub async fn read<T, E, F>(
        &self,
        tenants: impl Into<TenantScope>,
        operation: &'static str,
        work: F,
    ) -> Result<T, E>
    where
        F: Fn(&mut dyn Tx) -> Result<T, E> + Send + 'static,
        T: Send + 'static,
        E: From<StoreError> + Send + 'static,
    {
        let unit = Unit::new(tenants.into(), work, |_: &T| {}, None);
        self.submit(operation, unit, |engine, job| engine.read(job)).await
    }

    /// Runs a closure that writes, on rows of these tenants. `Ok` means committed and durable; `Err` means that nothing of it was written.
    pub async fn write<T, E, F>(
        &self,
        tenants: impl Into<TenantScope>,
        operation: &'static str,
        work: F,
    ) -> Result<T, E>
    where
        F: Fn(&mut dyn Tx) -> Result<T, E> + Send + 'static,
        T: Send + 'static,
        E: From<StoreError> + Send + 'static,
    {
        self.write_then(tenants, operation, work, |_| {}).await
    }

    /// As [`Store::write`], and `then` is shown the result as soon as it is committed, before anybody is answered and in the
    /// order of the commits: also when the caller has gone away meanwhile. It runs on the engine's thread, so it must
    /// not wait for anything.
    pub async fn write_then<T, E, F, A>(
        &self,
        tenants: impl Into<TenantScope>,
        operation: &'static str,
        work: F,
        then: A,
    ) -> Result<T, E>
    where
        F: Fn(&mut dyn Tx) -> Result<T, E> + Send + 'static,
        A: FnOnce(&T) + Send + 'static,
        T: Send + 'static,
        E: From<StoreError> + Send + 'static,
    {
        let unit = Unit::new(tenants.into(), work, then, Some(Arc::clone(&self.commits)));
        self.submit(operation, unit, |engine, job| engine.write(job)).await
    }

    /// Changes after every commit that goes through this store: for those who wait for something to be written. What
    /// was committed before this call is not announced, it can be read.
    pub fn commits(&self) -> watch::Receiver<u64> {
        self.commits.subscribe()
    }

    /// Removes from the disk what was deleted before. `false` says that the log could not be emptied, as when somebody reads
    /// from it for long: to be tried again later, and then it is only the log.
    pub async fn scrub(&self, traces: Traces) -> Result<bool, StoreError> {
        if traces >= Traces::Texts {
            self.rewrite_texts().await?;
        }
        if traces >= Traces::Pages {
            self.page_scrubs.serve(|| self.clear_stale_pages()).await?;
        }
        let (started, mut pause) = (Instant::now(), SHORTEST_PAUSE);
        loop {
            match self.engine.empty_log().await.unwrap_or_else(|_| Err(closed())) {
                Ok(false) | Err(StoreError::Overloaded) if started.elapsed() < EMPTYING_PATIENCE => {
                    tokio::time::sleep(pause).await;
                    pause = (pause * 2).min(LONGEST_PAUSE);
                }
                Err(StoreError::Overloaded) => return Ok(false),
                emptied => return emptied,
            }
        }
    }

    /// Rewrites the full-text index without what was taken out of it. One at a time: a second rewriting would make the first
    /// start anew.
    pub async fn rewrite_texts(&self) -> Result<(), StoreError> {
        let work = || async {
            let mut begun = self.write(AllTenants, "compact_texts", |tx| tx.compact_texts(None)).await?;
            while begun.is_some() {
                begun = self.write(AllTenants, "compact_texts", move |tx| tx.compact_texts(begun)).await?;
            }
            Ok(())
        };
        self.compactions.serve(work).await
    }

    /// Walks through all pages on readers, so that writers only wait for what there is to write.
    async fn clear_stale_pages(&self) -> Result<(), StoreError> {
        let mut next = Some(0);
        while let Some(from) = next {
            let found =
                self.read(AllTenants, "find_stale_pages", move |tx| tx.find_stale_pages(from)).await?;
            for pages in found.pages.chunks(PAGES_AT_ONCE) {
                let pages = pages.to_vec();
                self.write(AllTenants, "clear_stale_pages", move |tx| tx.clear_stale_pages(&pages)).await?;
            }
            next = found.next;
        }
        Ok(())
    }

    /// Load, for metrics and readiness.
    pub fn health(&self) -> Health {
        self.engine.health()
    }

    /// Where indexes are kept between starts, if they are.
    pub fn segments(&self) -> Option<&Arc<SegmentFolder>> {
        self.engine.segments()
    }

    /// What this store is, for people.
    pub fn describe(&self) -> String {
        self.engine.describe()
    }

    /// Finishes queued work and closes the connections.
    pub fn close(&self) {
        self.engine.close();
    }

    async fn submit<T, E, F, A>(
        &self,
        operation: &'static str,
        (unit, answer): UnitAndAnswer<F, A, T, E>,
        queue: impl FnOnce(&dyn Engine, QueuedWork),
    ) -> Result<T, E>
    where
        F: Fn(&mut dyn Tx) -> Result<T, E> + Send + 'static,
        A: FnOnce(&T) + Send + 'static,
        T: Send + 'static,
        E: From<StoreError> + Send + 'static,
    {
        let started = Instant::now();
        if unit.tenants == TenantScope::All {
            metrics::counter!("memory_store_all_tenants_total", "operation" => operation).increment(1);
        }
        queue(&*self.engine, Box::new(unit));
        let result = match answer.await {
            Ok(result) => result,
            // The engine dropped the job: its thread is gone or the store is closed.
            Err(_) => Err(closed().into()),
        };
        metrics::histogram!("memory_store_operation_seconds", "operation" => operation)
            .record(started.elapsed().as_secs_f64());
        result
    }
}

fn closed() -> StoreError {
    StoreError::Unavailable("the store is closed".into())
}

/// A closure together with the place its result goes to.
struct Unit<F, A, T, E> {
    tenants: TenantScope,
    work: F,
    /// What is shown a result that is committed.
    then: A,
    /// Where its commit is announced; work that only reads has none.
    commits: Option<Arc<watch::Sender<u64>>>,
    result: Option<Result<T, E>>,
    reply: oneshot::Sender<Result<T, E>>,
}

/// A unit of work, and where its answer comes from.
type UnitAndAnswer<F, A, T, E> = (Unit<F, A, T, E>, oneshot::Receiver<Result<T, E>>);

impl<F, A, T, E> Unit<F, A, T, E> {
    fn new(
        tenants: TenantScope,
        work: F,
        then: A,
        commits: Option<Arc<watch::Sender<u64>>>,
    ) -> UnitAndAnswer<F, A, T, E> {
        let (reply, answer) = oneshot::channel();
        (Self { tenants, work, then, commits, result: None, reply }, answer)
    }
}

impl<F, A, T, E> UnitOfWork for Unit<F, A, T, E>
where
    F: Fn(&mut dyn Tx) -> Result<T, E> + Send,
    A: FnOnce(&T) + Send,
    T: Send,
    E: From<StoreError> + Send,
{
    fn tenants(&self) -> &TenantScope {
        &self.tenants
    }

    fn run(&mut self, tx: &mut dyn Tx) -> bool {
        // The caller has gone away. Under overload most of the queue is like that.
        if self.commits.is_none() && self.reply.is_closed() {
            return false;
        }
        self.result.insert((self.work)(tx)).is_ok()
    }

    fn finish(self: Box<Self>, outcome: Result<(), StoreError>) {
        let result = match (outcome, self.result) {
            // The closure's own refusal is the answer even if the engine failed elsewhere: it wrote nothing.
            (_, Some(Err(error))) => Err(error),
            (Err(error), _) => Err(error.into()),
            (Ok(()), Some(Ok(value))) => {
                (self.then)(&value);
                // Mostly there is no listener. One that begins only now finds the commit by reading.
                if let Some(commits) = self.commits.filter(|commits| commits.receiver_count() > 0) {
                    commits.send_modify(|count| *count += 1);
                }
                Ok(value)
            }
            (Ok(()), None) => {
                Err(StoreError::Broken("the engine answered before it ran the work".into()).into())
            }
        };
        // A caller that went away does not want the answer.
        let _ = self.reply.send(result);
    }
}
