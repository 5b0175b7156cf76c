//! The thread that numbers changes and learns what other nodes committed.

use super::connection::{self, runtime};
use super::feed;
use super::worker::Outage;
use super::{PostgresConfig, presence, tx};
use crate::StoreError;
use futures_util::future::poll_fn;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::sync::Notify;
use tokio_postgres::{AsyncMessage, Client};

/// How often somebody looks for changes whose node died before it numbered them, and for messages that were lost with a
/// connection.
const INTERVAL: Duration = Duration::from_secs(1);
/// Changes of this time are numbered together.
const BATCHING: Duration = Duration::from_millis(5);
/// How long after a lost connection another is made.
const PAUSE: Duration = Duration::from_millis(500);

type Wakers = Arc<Mutex<Vec<Arc<dyn Fn() + Send + Sync>>>>;

/// Told when this node committed a change.
#[derive(Clone)]
pub(super) struct CommitNotifier(Arc<Notify>);

impl CommitNotifier {
    pub(super) fn notify(&self) {
        self.0.notify_one();
    }
}

/// The thread's handle.
pub(super) struct Follower {
    notifier: CommitNotifier,
    stop: Arc<Notify>,
    wakers: Wakers,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Follower {
    pub(super) fn start(config: PostgresConfig, outage: Arc<Outage>) -> Result<Self, StoreError> {
        let (notifier, stop, wakers) =
            (CommitNotifier(Arc::default()), Arc::new(Notify::new()), Wakers::default());
        let runtime = runtime()?;
        let (notified, stopped, woken) = (notifier.clone(), stop.clone(), wakers.clone());
        let thread = std::thread::Builder::new().name("memtrove-pg-follower".into()).spawn(move || {
            runtime.block_on(async {
                tokio::select! {
                    () = stopped.notified() => {}
                    () = follow(&config, &outage, &notified, &woken) => {}
                }
            });
        });
        let thread = thread.map_err(|error| {
            StoreError::Unavailable(format!("cannot start the follower's thread: {error}"))
        })?;
        Ok(Self { notifier, stop, wakers, thread: Mutex::new(Some(thread)) })
    }

    pub(super) fn notifier(&self) -> CommitNotifier {
        self.notifier.clone()
    }

    /// Also calls this whenever somebody committed.
    pub(super) fn wake_too(&self, wake: Arc<dyn Fn() + Send + Sync>) {
        self.wakers.lock().unwrap_or_else(PoisonError::into_inner).push(wake);
    }

    pub(super) fn stop(&self) {
        self.stop.notify_one();
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if thread.is_some_and(|thread| thread.join().is_err()) {
            tracing::error!("the follower of the store panicked");
        }
    }
}

fn wake(wakers: &Wakers) {
    for wake in wakers.lock().unwrap_or_else(PoisonError::into_inner).iter() {
        wake();
    }
}

/// Follows over one connection after the other, for ever.
async fn follow(config: &PostgresConfig, outage: &Outage, notifier: &CommitNotifier, wakers: &Wakers) {
    loop {
        if let Err(error) = follow_once(config, outage, notifier, wakers).await {
            tracing::debug!(%error, "the follower lost its connection");
        }
        tokio::time::sleep(PAUSE).await;
        // Whatever was told meanwhile was not heard.
        wake(wakers);
    }
}

async fn follow_once(
    config: &PostgresConfig,
    outage: &Outage,
    notifier: &CommitNotifier,
    wakers: &Wakers,
) -> Result<(), StoreError> {
    let connected = connection::connect(config).await.inspect_err(|error| outage.began(error));
    let (client, mut connection) = connected?;
    // The other threads may be idle, and readiness asks for the end of an outage.
    outage.ended();
    let heard = wakers.clone();
    let listening = async move {
        while let Some(message) = poll_fn(|cx| connection.poll_message(cx)).await {
            match message {
                Ok(AsyncMessage::Notification(_)) => wake(&heard),
                Ok(_) => {}
                Err(_) => return,
            }
        }
    };
    let working = async move {
        let listen = format!(
            "LISTEN {}; SET statement_timeout = '30s'; SET default_transaction_isolation = 'read committed'; {}; {}",
            feed::CHANNEL,
            connection::KEEP_ALIVE,
            // It numbers the changes of all tenants, and does nothing else.
            tx::set_every_tenant()
        );
        client.batch_execute(&listen).await?;
        // While a process must be alone this waits, as the connections of every other node do.
        client.execute("SELECT pg_advisory_lock_shared($1)", &[&presence::key()]).await?;
        loop {
            while number(&client).await? {}
            tokio::select! {
                // A reader of the feed numbers it first; followers are served better by fewer, larger batches.
                () = notifier.0.notified() => tokio::time::sleep(BATCHING).await,
                () = tokio::time::sleep(INTERVAL) => {}
            }
        }
    };
    tokio::select! {
        () = listening => Ok(()),
        ended = working => {
            let ended: Result<(), tokio_postgres::Error> = ended;
            ended.map_err(|error| StoreError::Unavailable(error.to_string()))
        }
    }
}

/// Numbers what is committed; whether there was something.
async fn number(client: &Client) -> Result<bool, tokio_postgres::Error> {
    if client.query_opt("SELECT 1 FROM changes_outbox LIMIT 1", &[]).await?.is_none() {
        return Ok(false);
    }
    client.batch_execute(&feed::numbering()).await.map(|()| true)
}
