//! The numbers behind `/metrics`: one recorder per process, and what is sampled only when they are read.

use futures_util::future::{BoxFuture, FutureExt, join_all};
use metrics_exporter_prometheus::{BuildError, Matcher, PrometheusBuilder, PrometheusHandle};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

/// Requests answered, by route template; recorded by the shell.
pub const HTTP_SERVER_REQUESTS: &str = "http_server_requests_seconds";
/// Requests to routes that begin so belong to the files surface, which has a histogram of its own beside the one of all.
pub const FILES_ROUTES: &str = "/v1/tenants/";
/// Store operations, by `operation`.
pub const STORE_OPERATION: &str = "memory_store_operation_seconds";
/// Store connections at work.
pub const DB_POOL_ACTIVE: &str = "db_pool_active";
/// Store connections waiting for work.
pub const DB_POOL_AVAILABLE: &str = "db_pool_available";
/// Gauge: units of work that wait for a connection.
pub const DB_QUEUE_LENGTH: &str = "db_queue_length";
/// Background tasks waiting.
pub const TASK_QUEUE_DEPTH: &str = "memory_task_queue_depth";
/// Age of the oldest background task that waits.
pub const TASK_QUEUE_OLDEST: &str = "memory_task_queue_oldest_seconds";

/// Upper bounds in seconds: from a cached read to a request that is about to time out.
const BUCKETS: [f64; 19] = [
    0.000_05, 0.000_1, 0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5,
    5.0, 10.0, 20.0, 30.0,
];

/// How many results a search has.
const RESULTS: [f64; 8] = [0.0, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0];

/// A sampler that hangs (a store that does not answer) must not take the scrape down with it.
const SAMPLER_TIMEOUT: Duration = Duration::from_secs(2);

/// The recorder keeps every observation until it is folded into buckets; this bounds how many there can be.
const UPKEEP_INTERVAL: Duration = Duration::from_secs(5);

type Sampler = Arc<dyn Fn() -> BoxFuture<'static, ()> + Send + Sync>;

/// A handle to the process's metrics. Clones share everything.
#[derive(Clone)]
pub struct Metrics {
    recorder: PrometheusHandle,
    samplers: Arc<Mutex<Vec<Sampler>>>,
}

impl Metrics {
    /// Installs the recorder, or finds the one that is already installed. Call it before the first request: the shell
    /// keeps the handles it got then.
    ///
    /// Fails when another library has installed a recorder of its own in this process.
    pub fn install() -> Result<Self, BuildError> {
        static INSTALLED: OnceLock<Metrics> = OnceLock::new();
        static INSTALLING: Mutex<()> = Mutex::new(());
        let _one_at_a_time = INSTALLING.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(metrics) = INSTALLED.get() {
            return Ok(metrics.clone());
        }
        // The names of the memories contract are in milliseconds, and one counts results.
        let millis = BUCKETS.map(|seconds| seconds * 1e3);
        let recorder = PrometheusBuilder::new()
            .set_buckets(&BUCKETS)?
            .set_buckets_for_metric(Matcher::Full("memory_operations_latency".to_owned()), &millis)?
            .set_buckets_for_metric(Matcher::Full("memory_embedding_latency".to_owned()), &millis)?
            .set_buckets_for_metric(Matcher::Full("memory_search_results".to_owned()), &RESULTS)?
            .install_recorder()?;
        describe();
        let metrics = Self { recorder, samplers: Arc::default() };
        Ok(INSTALLED.get_or_init(|| metrics).clone())
    }

    /// Adds a closure that runs before every rendering and sets gauges that nothing keeps up to date otherwise.
    pub fn sample<F, Fut>(&self, sampler: F)
    where
        F: Fn() -> Fut + Send + Sync + 'static,
        Fut: Future<Output = ()> + Send + 'static,
    {
        let sampler: Sampler = Arc::new(move || sampler().boxed());
        self.samplers.lock().unwrap_or_else(PoisonError::into_inner).push(sampler);
    }

    /// The Prometheus text format, after all samplers have run (or have run out of time).
    pub async fn render(&self) -> String {
        let samplers = self.samplers.lock().unwrap_or_else(PoisonError::into_inner).clone();
        join_all(samplers.iter().map(|sampler| tokio::time::timeout(SAMPLER_TIMEOUT, sampler()))).await;
        self.recorder.render()
    }

    /// Folds observations into buckets now and then, forever; spawn it next to the server.
    pub async fn upkeep(self) {
        let mut ticks = tokio::time::interval(UPKEEP_INTERVAL);
        loop {
            ticks.tick().await;
            self.recorder.run_upkeep();
        }
    }
}

fn describe() {
    metrics::describe_histogram!(HTTP_SERVER_REQUESTS, metrics::Unit::Seconds, "Time to response head.");
    metrics::describe_histogram!(STORE_OPERATION, metrics::Unit::Seconds, "Time of one store operation.");
    metrics::describe_gauge!(DB_POOL_ACTIVE, "Store connections at work.");
    metrics::describe_gauge!(DB_POOL_AVAILABLE, "Store connections waiting for work.");
    metrics::describe_gauge!(DB_QUEUE_LENGTH, "Units of work waiting for a store connection.");
    metrics::describe_gauge!(TASK_QUEUE_DEPTH, "Background tasks waiting.");
    metrics::describe_gauge!(
        TASK_QUEUE_OLDEST,
        metrics::Unit::Seconds,
        "Age of the oldest background task that waits."
    );
    memtrove_service::files_metrics::announce();
    memtrove_service::memories::announce_metrics();
    memtrove_service::changes::announce_metrics();
    memtrove_service::vectors::announce_metrics();
    memtrove_service::recorder::announce_metrics();
    memtrove_store::vault::announce_metrics();
}
