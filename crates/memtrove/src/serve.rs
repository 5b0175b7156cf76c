//! `memtrove serve`, and the one place where the parts are put together.

use crate::adopt;
use crate::config::{AutoDerive, Config, Database, FilesProvider, LogFormat, size};
use crate::descriptors;
use crate::mcp::owner::{Hello, OwnerKind, OwnerProcess};
use crate::mcp::socket::{self, SocketServer};
use crate::terminal::{Paint, line};
use anyhow::{Context, anyhow, bail};
use memtrove_blobs::Blobs;
use memtrove_core::SystemClock;
use memtrove_recall::embed;
use memtrove_server::auth::Authenticator;
use memtrove_server::auth::config::Mode;
use memtrove_server::forward::Peers;
use memtrove_server::grpc;
use memtrove_server::mcp;
use memtrove_server::rest::{self, stats::Prometheus};
use memtrove_server::shell;
use memtrove_server::telemetry::metrics::{DB_POOL_ACTIVE, DB_POOL_AVAILABLE, DB_QUEUE_LENGTH, Metrics};
use memtrove_server::telemetry::{self, TelemetryConfig};
use memtrove_service::{RetentionSettings, Services, Settings};
use memtrove_store::postgres::PostgresEngine;
use memtrove_store::sqlite::{SqliteConfig, SqliteEngine};
use memtrove_store::vault::{self, Vault};
use memtrove_store::{Store, StoreError};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::net::TcpListener;
use tokio::sync::oneshot;

/// Shown below the help.
pub const EXAMPLES: &str = "\
Examples:
  memtrove serve
  memtrove serve --listen 127.0.0.1:0 --data-dir /tmp/try
  memtrove serve --store 'postgres://memtrove@db.example/memtrove?sslmode=verify-full'
  MEMTROVE_LOG__LEVEL=debug memtrove serve --config /etc/memtrove.toml

Without configuration the server is in local mode: it listens on loopback only
and believes every caller. For anything else set auth.mode = \"jwt\" with an
issuer or API keys.";

/// Serves until SIGINT or SIGTERM.
pub async fn run(config: Config) -> anyhow::Result<()> {
    refuse_problems(&config)?;
    let signals = StopSignals::listen()?;
    let _telemetry = start_telemetry(&config)?;
    for warning in config.warnings() {
        tracing::warn!("{warning}");
    }
    let listen = config.server.listen;
    let listener = TcpListener::bind(listen.0).await.with_context(|| {
        format!(
            "cannot listen on {listen}; if something else does, stop it or choose another port with --listen"
        )
    })?;
    let store = open_store(&config)?;
    let address = listener.local_addr()?;
    let announcement = announcement(&config, address, Paint::for_stdout());
    launch(config, listener, store, || line(announcement), signals.first()).await
}

/// Puts the parts together and serves on `listener` until `stop`. Calls `ready` when the first request can be served.
pub async fn launch(
    mut config: Config,
    listener: TcpListener,
    store: Store,
    ready: impl FnOnce(),
    stop: impl Future<Output = ()>,
) -> anyhow::Result<()> {
    let clock = Arc::new(SystemClock);
    let metrics = Metrics::install()?;
    vault::announce_metrics();
    embed::announce_metrics();
    let mut settings = settings(&config);
    settings.recorder.port = listener.local_addr()?.port();
    settings.attachments.blobs = open_blobs(&config)?;
    settings.attachments.fetcher = config.attachments.fetcher()?;
    let services = Services::new(store.clone(), clock.clone(), settings).await?;
    let local = config.auth.mode == Mode::Local;
    let shell = config.shell()?;
    // Taken out, so that its keys and secrets are gone from memory once they are digested.
    let authenticator = Authenticator::new(std::mem::take(&mut config.auth))?;
    let prometheus = Prometheus::new(config.prometheus.url.as_deref(), clock)?;
    let peers = Arc::new(Peers::new()?);

    let health = store.clone();
    metrics.sample(move || {
        let health = health.health();
        metrics::gauge!(DB_POOL_ACTIVE).set(health.active as f64);
        metrics::gauge!(DB_QUEUE_LENGTH).set(health.queued as f64);
        metrics::gauge!(DB_POOL_AVAILABLE).set(health.total.saturating_sub(health.active) as f64);
        async {}
    });
    let sampled = services.clone();
    metrics.sample(move || {
        let services = sampled.clone();
        async move { services.sample_metrics().await }
    });
    let upkeep = tokio::spawn(metrics.clone().upkeep());

    let (readiness, stopping) = (store.clone(), Arc::new(AtomicBool::new(false)));
    let told_to_stop = stopping.clone();
    let readiness = shell::readiness_of(move || {
        let (store, stopping) = (readiness.clone(), told_to_stop.load(Ordering::Relaxed));
        async move {
            if stopping {
                return Err("the server is stopping".to_owned());
            }
            if store.health().is_away {
                return Err("the database cannot be reached".to_owned());
            }
            if store.health().is_damaged {
                return Err("the database is damaged".to_owned());
            }
            store.pulse().await.map_err(|reason| {
                // Anybody may ask whether we are ready; where our files lie is for the log.
                tracing::warn!(%reason, "not ready");
                "the store is not available".to_owned()
            })
        }
    });
    let operations = shell::operations(readiness.clone(), metrics);
    let uploads = rest::Uploads::new(config.attachments.uploads);
    let app = rest::App::new(services.clone(), authenticator, prometheus, peers.clone(), uploads);
    let calls = grpc::router(app.clone(), size(config.server.body_limit), readiness)?;
    let tools = mcp::router(app.clone());
    let api =
        rest::router(app).merge(calls).merge(tools).merge(operations).merge(shell::docs(rest::document));
    let router = shell::shell(api, &shell);

    let (changes, memories, recorder) =
        (services.changes.clone(), services.memories.clone(), services.recorder.clone());
    let delay = config.server.shutdown_delay.0;
    let stop = async move {
        stop.await;
        stopping.store(true, Ordering::Relaxed);
        tokio::time::sleep(delay).await;
        changes.close();
        memories.close();
        recorder.close();
        peers.close();
    };
    // Where every caller is believed, so are the user's own processes.
    let socket = match config.database()? {
        Database::Sqlite(path) if local => SocketServer::open(&path, OwnerKind::Serve, services.clone()),
        Database::Sqlite(_) | Database::Postgres(_) => None,
    };
    let (stop_tasks, tasks_stopped) = oneshot::channel::<()>();
    let tasks = tokio::spawn(async move {
        // The sender says nothing; being told or being dropped both mean stop.
        services.run_tasks(async { drop(tasks_stopped.await) }).await;
    });
    ready();
    let limits = shell::Limits {
        grace: config.server.shutdown_grace.0,
        connections: descriptors::connections(config.server.connections),
        patience: config.patience(),
        ..shell::Limits::default()
    };
    shell::run(listener, router, stop, limits).await;

    if let Some(socket) = socket {
        socket.close().await;
    }
    drop(stop_tasks);
    if tasks.await.is_err() {
        tracing::error!("the task worker panicked");
    }
    upkeep.abort();
    tokio::task::spawn_blocking(move || store.close()).await?;
    Ok(())
}

/// Sets up logs and traces, for as long as the guard lives.
pub(crate) fn start_telemetry(config: &Config) -> anyhow::Result<telemetry::Guard> {
    Ok(telemetry::init(&TelemetryConfig {
        format: match config.log.format {
            LogFormat::Pretty => telemetry::LogFormat::Pretty,
            LogFormat::Json => telemetry::LogFormat::Json,
        },
        filter: config.log.level.clone(),
        otlp_endpoint: config.telemetry.otlp_endpoint.clone(),
        ..TelemetryConfig::default()
    })?)
}

/// The OpenAPI description of the REST API, as JSON.
pub fn openapi() -> anyhow::Result<String> {
    Ok(rest::document().to_pretty_json()?)
}

/// Opens the database that the configuration names, making and upgrading it as needed.
pub fn open_store(config: &Config) -> anyhow::Result<Store> {
    open_store_with(config, config.encryption.vault()?)
}

/// As [`open_store`], with a vault of the caller's.
pub(crate) fn open_store_with(config: &Config, vault: Vault) -> anyhow::Result<Store> {
    try_open_store(config, vault).map_err(|error| held(config, error))
}

/// As [`open_store_with`], for commands that can do without the store: that another process has it stays the store's error.
pub(crate) fn try_open_store(config: &Config, vault: Vault) -> anyhow::Result<Store> {
    Ok(match config.database()? {
        Database::Sqlite(path) => {
            adopt::refuse_unadopted(config, &path)?;
            let vault = Arc::new(vault);
            let engine = SqliteEngine::open(SqliteConfig { path, vault, ..SqliteConfig::default() })?;
            Store::new(Arc::new(engine))
        }
        Database::Postgres(_) => {
            let engine = PostgresEngine::open(config.store.postgres(vault)).map_err(advised)?;
            Store::new(Arc::new(engine))
        }
    })
}

/// Why a folder cannot be opened, with who has it.
fn held(config: &Config, error: anyhow::Error) -> anyhow::Error {
    let (Some(StoreError::InUse(_)), Ok(Database::Sqlite(path))) = (error.downcast_ref(), config.database())
    else {
        return error;
    };
    match owner_of(&path) {
        Some(OwnerProcess { kind: OwnerKind::Mcp, pid }) => anyhow!(
            "another memtrove process uses this data folder ({}): `memtrove mcp`, process {pid}, which an editor started. \
             Close that editor first, or choose another folder with --data-dir. A server that is started before the editors \
             shares its folder with them",
            config.server.data_dir.display()
        ),
        Some(OwnerProcess { kind: OwnerKind::Serve, pid }) => {
            error.context(format!("a server is running, process {pid}"))
        }
        None => error,
    }
}

/// Asks which process owns a folder. On a thread of its own, because the caller may be on one that must not wait.
fn owner_of(database: &Path) -> Option<OwnerProcess> {
    let ask = || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().ok()?;
        runtime.block_on(socket::connect(database, &Hello::Who)).ok().map(|(process, _)| process)
    };
    std::thread::scope(|scope| scope.spawn(ask).join().ok().flatten())
}

/// Opens the place where the bytes of attachments are kept. One on another machine may be away for now; that is said, and the
/// rest works without it.
fn open_blobs(config: &Config) -> anyhow::Result<Option<Blobs>> {
    let blobs = config.attachments.blobs(&config.server.data_dir);
    let blobs = blobs.context("attachments cannot be kept; check the settings below [attachments]")?;
    if let Some(blobs) = blobs.clone() {
        tokio::spawn(async move {
            if let Err(error) = blobs.check().await {
                tracing::warn!(%error, "attachments can neither be stored nor read now; `memtrove doctor` says more");
            }
        });
    }
    Ok(blobs)
}

/// Why a database on a server cannot be opened, with whom to ask where the sentence does not say what to do.
fn advised(error: StoreError) -> anyhow::Error {
    // What a server says may have lines, and ends with a full stop.
    let said = error.to_string().replace('\n', " ");
    let said = said.trim_end_matches('.');
    match &error {
        StoreError::Broken(_) => anyhow!("{said}; run `memtrove doctor`, which says what is missing"),
        StoreError::Unavailable(why) if why.starts_with("postgres") => {
            anyhow!("{said}; run `memtrove doctor`, which says what to do about it")
        }
        _ => error.into(),
    }
}

/// What the use cases need to know of the configuration. Only a server that serves opens where attachments are kept.
pub fn settings(config: &Config) -> Settings {
    Settings {
        managers_may_delete: config.policy.managers_may_delete,
        managers_may_grant_manager: config.policy.managers_may_grant_manager,
        require_justification: config.admin.require_justification,
        fulltext: config.search.fulltext_enabled,
        language: config.search.language.clone(),
        auto_derive: match config.auto_derive() {
            AutoDerive::Text => memtrove_service::AutoDerive::Text,
            AutoDerive::Off => memtrove_service::AutoDerive::Off,
        },
        max_content_bytes: size(config.limits.content_bytes),
        eviction_batch_size: config.eviction.batch_size,
        eviction_batch_delay: config.eviction.batch_delay.0,
        task_retry_delay: config.tasks.retry_delay.0,
        task_interval: config.tasks.processor_interval.0,
        task_batch_size: config.tasks.batch_size,
        task_stale_claim: config.tasks.stale_claim_timeout.0,
        lease: config.tasks.lease.0,
        changes_retention: config.changes.retention.0,
        quotas: config.quotas.settings(),
        files_enabled: config.files.provider == FilesProvider::Store,
        idempotency_retention: config.idempotency.retention.0,
        retention: RetentionSettings {
            events_days: config.retention.events_days,
            audit_days: config.retention.audit_days,
            audit_min_days: config.retention.audit_floor(),
            interval: config.retention.interval.0,
        },
        search: config.search.settings(),
        embedding: config.embedding.settings(&config.memories),
        index_memory: size(config.search.index_memory),
        database_index_above: config.search.database_index_above,
        memories: config.memories.settings(config.limits.memories_body),
        recorder: config.recorder.settings(&config.redis),
        attachments: config.attachments.settings(),
    }
}

pub(crate) fn refuse_problems(config: &Config) -> anyhow::Result<()> {
    let problems = config.problems();
    if problems.is_empty() {
        return Ok(());
    }
    let lines: Vec<String> = problems.iter().map(|problem| format!("  {problem}")).collect();
    bail!("the configuration is invalid:\n{}", lines.join("\n"))
}

/// The lines a start prints: where, what, and something to paste.
fn announcement(config: &Config, address: SocketAddr, paint: Paint) -> String {
    let absolute = |path: PathBuf| std::path::absolute(&path).unwrap_or(path).display().to_string();
    let data = match config.database() {
        Ok(Database::Sqlite(path)) => absolute(path),
        Ok(Database::Postgres(address)) => address.to_string(),
        Err(_) => String::new(),
    };
    let url = format!("http://{}", reachable(address));
    let mode = match config.auth.mode {
        Mode::Local => paint.yellow("local: every caller is believed; only this machine can call"),
        Mode::Jwt if config.auth.jwt.hmac_secret.is_some() => {
            paint.yellow("jwt, tokens signed with auth.jwt.hmac_secret: for tests")
        }
        Mode::Jwt => match &config.auth.jwt.issuer {
            Some(issuer) => format!("jwt, tokens of {issuer}"),
            None => "jwt, API keys only".to_owned(),
        },
    };
    let create = |credential: &str| {
        format!(
            "curl -sS {url}/v1/conversations -H {credential} -H 'Content-Type: application/json' -d '{{\"title\":\"Hello\"}}'"
        )
    };
    let example = match config.auth.mode {
        Mode::Local => create("'Authorization: Bearer alice'"),
        Mode::Jwt if config.auth.jwt.hmac_secret.is_some() => create("\"$(memtrove token --user alice)\""),
        Mode::Jwt => format!("curl -sS {url}/v1/health"),
    };
    format!(
        "{title}\n\n  address  {address}\n  docs     {url}/docs\n  data     {data}\n  mode     {mode}\n\nTry it:\n  {example}\n",
        title = paint.bold(format_args!("memtrove {}", env!("CARGO_PKG_VERSION"))),
        address = paint.bold(&url),
    )
}

/// Where to reach a server on this machine; "every address" is not one that can be called.
fn reachable(address: SocketAddr) -> SocketAddr {
    let ip = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    SocketAddr::new(ip, address.port())
}

/// SIGINT and SIGTERM. They are noted from the moment this is made, also while they are not awaited, so that a signal
/// during the start is not the end without an ending.
#[cfg(unix)]
pub(crate) struct StopSignals {
    interrupt: tokio::signal::unix::Signal,
    terminate: tokio::signal::unix::Signal,
}

#[cfg(unix)]
impl StopSignals {
    pub(crate) fn listen() -> std::io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Self { interrupt: signal(SignalKind::interrupt())?, terminate: signal(SignalKind::terminate())? })
    }

    async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}

/// Ctrl-C.
#[cfg(not(unix))]
pub(crate) struct StopSignals;

#[cfg(not(unix))]
impl StopSignals {
    pub(crate) fn listen() -> std::io::Result<Self> {
        Ok(Self)
    }

    async fn next(&mut self) {
        let _ = tokio::signal::ctrl_c().await;
    }
}

impl StopSignals {
    /// Resolves at the first signal. The second one ends the process at once.
    pub(crate) async fn first(mut self) {
        self.next().await;
        tracing::info!("stopping; requests that are under way may finish, a second signal ends at once");
        tokio::spawn(async move {
            self.next().await;
            std::process::exit(130);
        });
    }
}
