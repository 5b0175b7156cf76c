//! One connection: how it is made, and how messages go over it.
//!
//! A session belongs to one thread, and its runtime runs only while that thread waits. Messages are sent without waiting for
//! the answers to those before them, so that several statements cost one round trip.

use super::PostgresConfig;
use super::address::DatabaseUrl;
use super::failure::{DatabaseFailure, Remedy, full};
use super::tls::tls;
use crate::StoreError;
use futures_util::future::{MaybeDone, maybe_done};
use std::collections::HashMap;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Waker};
use std::time::Duration;
use tokio::runtime::Runtime;
use tokio_postgres::tls::MakeTlsConnect;
use tokio_postgres::types::Type;
use tokio_postgres::{Client, Connection, Error, Socket, Statement};
use tokio_postgres_rustls::MakeRustlsConnect;

/// How long making a connection may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// How long a unit of work waits for a row or a key that another one holds.
const LOCK_TIMEOUT: Duration = Duration::from_secs(10);
/// How long the network may be silent after the database should have given up by itself.
const SILENCE: Duration = Duration::from_secs(5);
/// How soon the server notices that a node was cut off, and frees the keys that it holds.
pub(super) const KEEP_ALIVE: &str = "SET tcp_keepalives_idle = 15; SET tcp_keepalives_interval = 5; \
                                     SET tcp_keepalives_count = 3; SET tcp_user_timeout = 30000";
const FOR_EVER: Duration = Duration::from_secs(365 * 24 * 3600);
/// Statements a connection keeps prepared; the bound is for SQL that somebody builds at run time.
const STATEMENTS: usize = 1024;

/// A message on its way, whose answer is not awaited yet.
pub(super) type Posted = Pin<Box<MaybeDone<Pin<Box<dyn Future<Output = Result<(), Error>> + Send>>>>>;

/// A statement, as it was prepared for parameters of these types.
type Prepared = (Box<[Type]>, Statement);

/// What a connection sends and receives through.
pub type Wire = Connection<Socket, <MakeRustlsConnect as MakeTlsConnect<Socket>>::Stream>;

/// A connection with its prepared statements.
pub struct DatabaseSession {
    runtime: Idle,
    client: Arc<Client>,
    patience: Duration,
    statements: HashMap<Box<str>, Vec<Prepared>>,
    posted: Vec<Posted>,
}

impl DatabaseSession {
    /// Makes a connection and sets it up.
    pub fn connect(config: &PostgresConfig, schema: Option<&str>) -> Result<Self, StoreError> {
        let runtime = Idle(Some(runtime()?));
        let client = runtime.block_on(async {
            let (client, connection) = connect(config).await?;
            tokio::spawn(async move {
                // The next use of the connection reports what broke it.
                let _ = connection.await;
            });
            client.batch_execute(&settings(config, schema)).await.map_err(|error| away(config, &error))?;
            Ok::<_, StoreError>(client)
        })?;
        let patience = config.statement_timeout.max(LOCK_TIMEOUT) + SILENCE;
        Ok(Self {
            runtime,
            client: Arc::new(client),
            patience,
            statements: HashMap::new(),
            posted: Vec::new(),
        })
    }

    /// Sets it up anew, after something else was done on it.
    pub(super) fn set_up(&mut self, config: &PostgresConfig, schema: Option<&str>) -> Result<(), StoreError> {
        let (client, settings) = (self.client.clone(), settings(config, schema));
        let set = self.wait(async {
            client.batch_execute(&settings).await.map_err(|error| DatabaseFailure::from(&error))
        });
        set.map_err(|failure| failure.error)
    }

    /// As [`DatabaseSession::connect`], for work that may take as long as it takes.
    pub(super) fn connect_patiently(config: &PostgresConfig) -> Result<Self, StoreError> {
        let mut session = Self::connect(config, None)?;
        session.patience = FOR_EVER;
        let client = session.client.clone();
        let patient = "SET statement_timeout = 0; SET idle_in_transaction_session_timeout = 0";
        let set = session.wait(async {
            client.batch_execute(patient).await.map_err(|error| DatabaseFailure::from(&error))
        });
        set.map_err(|failure| failure.error).map(|()| session)
    }

    /// What requests go through.
    pub fn client(&self) -> &Arc<Client> {
        &self.client
    }

    /// Sends a message now, and goes on.
    pub(super) fn post(&mut self, message: impl Future<Output = Result<(), Error>> + Send + 'static) {
        let mut posted: Posted = Box::pin(maybe_done(Box::pin(message)));
        // The first poll puts it on its way; a later wait is woken then.
        let _ = posted.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        self.posted.push(posted);
    }

    /// Waits for something, after the answers to everything posted before. The first thing that failed is the reason of all
    /// that failed after it.
    pub(super) fn wait<T>(
        &mut self,
        work: impl Future<Output = Result<T, DatabaseFailure>>,
    ) -> Result<T, DatabaseFailure> {
        self.wait_for(self.patience, work)
    }

    /// As [`DatabaseSession::wait`], for so long.
    pub(super) fn wait_for<T>(
        &mut self,
        patience: Duration,
        work: impl Future<Output = Result<T, DatabaseFailure>>,
    ) -> Result<T, DatabaseFailure> {
        let posted = std::mem::take(&mut self.posted);
        let all = async {
            let mut failed = None;
            for mut message in posted {
                message.as_mut().await;
                if let Some(Err(error)) = message.as_mut().take_output() {
                    failed.get_or_insert_with(|| DatabaseFailure::from(&error));
                }
            }
            match failed {
                Some(failure) => Err(failure),
                None => work.await,
            }
        };
        self.runtime.block_on(async move { tokio::time::timeout(patience, all).await }).unwrap_or_else(|_| {
            let silent = StoreError::Unavailable("the database does not answer".into());
            Err(DatabaseFailure::new(silent, Remedy::Reconnect))
        })
    }

    /// Gives what was posted to the network, without waiting for answers.
    pub(super) fn flush(&mut self) {
        self.runtime.block_on(async {
            // Once for the connection to take the messages, once for it to write them.
            tokio::task::yield_now().await;
            tokio::task::yield_now().await;
        });
    }

    /// Whether the connection can still be used, as far as the network has told by now.
    pub(super) fn is_open(&mut self) -> bool {
        self.flush();
        !self.client.is_closed()
    }

    /// The statement for this SQL and these types of parameters; [`Type::UNKNOWN`] leaves one to the database.
    pub(super) fn statement(&mut self, sql: &str, types: &[Type]) -> Result<Statement, DatabaseFailure> {
        let known = self.statements.get(sql);
        let known = known.and_then(|known| known.iter().find(|(of, _)| &**of == types));
        if let Some((_, statement)) = known {
            return Ok(statement.clone());
        }
        // The database takes more than the statement has, which is a mistake too.
        let wanted = placeholders(sql);
        if wanted != types.len() {
            let what = format!("the statement has {wanted} parameters and was given {}", types.len());
            return Err(DatabaseFailure::broken(what));
        }
        if self.statements.len() >= STATEMENTS {
            self.statements.clear();
        }
        let client = self.client.clone();
        let statement = self.wait(async {
            client.prepare_typed(sql, types).await.map_err(|error| DatabaseFailure::from(&error))
        })?;
        self.statements.entry(sql.into()).or_default().push((types.into(), statement.clone()));
        Ok(statement)
    }
}

/// A runtime that runs only while something is awaited. It may be dropped anywhere, also where blocking is forbidden.
struct Idle(Option<Runtime>);

impl Idle {
    fn block_on<F: Future>(&self, work: F) -> F::Output {
        match &self.0 {
            Some(runtime) => runtime.block_on(work),
            None => unreachable!("it is taken away when it is dropped"),
        }
    }
}

impl Drop for Idle {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

/// Does something that waits for the database, wherever the caller is: a thread that drives tasks must not wait itself.
pub(super) fn waiting<T: Send>(work: impl FnOnce() -> T + Send) -> Result<T, StoreError> {
    std::thread::scope(|scope| scope.spawn(work).join())
        .map_err(|_| StoreError::Broken("connecting to the database panicked".into()))
}

/// A runtime of one thread: the one that waits.
pub(super) fn runtime() -> Result<Runtime, StoreError> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| StoreError::Unavailable(format!("cannot start a runtime: {error}")))
}

/// Makes a connection that is not set up.
pub async fn connect(config: &PostgresConfig) -> Result<(Client, Wire), StoreError> {
    let address: DatabaseUrl =
        config.url.parse().map_err(|error| StoreError::Schema(format!("store.url {error}")))?;
    let mut settings = address.config();
    if settings.get_connect_timeout().is_none() {
        settings.connect_timeout(CONNECT_TIMEOUT);
    }
    settings.keepalives_idle(Duration::from_secs(30));
    if settings.get_application_name().is_none() {
        settings.application_name("memtrove");
    }
    let tls = MakeRustlsConnect::new(tls(&address, config.tls_ca.as_deref())?);
    let connected = tokio::time::timeout(CONNECT_TIMEOUT * 2, settings.connect(tls)).await;
    match connected {
        Ok(Ok(connected)) => Ok(connected),
        Ok(Err(error)) => Err(away(config, &error)),
        Err(_) => Err(StoreError::Unavailable(format!("{} does not answer", describe(&config.url)))),
    }
}

/// The greatest number of a placeholder, outside of text in quotes.
fn placeholders(sql: &str) -> usize {
    let digits = |part: &str| part.bytes().take_while(u8::is_ascii_digit).count();
    let outside = sql.split('\'').step_by(2).flat_map(|part| part.split('$').skip(1));
    outside.filter_map(|part| part[..digits(part)].parse().ok()).max().unwrap_or(0)
}

/// Every statement of the session works under these settings.
fn settings(config: &PostgresConfig, schema: Option<&str>) -> String {
    let path = schema.map_or(String::new(), |schema| format!("SET search_path = {schema}, public;"));
    format!(
        "SET default_transaction_isolation = 'repeatable read'; SET statement_timeout = {}; SET lock_timeout = {}; \
         SET idle_in_transaction_session_timeout = {}; SET jit = off; SET standard_conforming_strings = on; SET client_min_messages = warning; {KEEP_ALIVE}; {path}",
        config.statement_timeout.as_millis(),
        LOCK_TIMEOUT.as_millis(),
        (config.statement_timeout * 2).as_millis(),
    )
}

fn away(config: &PostgresConfig, error: &Error) -> StoreError {
    StoreError::Unavailable(format!("{}: {}", describe(&config.url), full(error)))
}

/// The database without anything secret.
pub fn describe(url: &str) -> String {
    url.parse().map_or_else(|_| "postgres".to_owned(), |address: DatabaseUrl| address.to_string())
}
