//! A connection, as its requests know it.

use super::pace::{Pace, Patience};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;
use tokio::time::Instant;

/// Every request has the one it came on among its extensions.
#[derive(Debug)]
pub struct Connection {
    id: u64,
    local_address: Option<SocketAddr>,
    speaks_http2: AtomicBool,
    given_up: AtomicBool,
    told: Notify,
    /// What is on its way to the peer is of no use any more.
    abandoned: AtomicBool,
    reader: Mutex<Reader>,
    requests: Mutex<Requests>,
}

/// The requests of a connection that are not answered to their end.
#[derive(Debug)]
struct Requests {
    open: usize,
    /// When there was none any more.
    idle_since: Instant,
}

/// A request that is not answered to its end, for as long as this lives.
#[derive(Debug)]
pub(super) struct OpenRequest(Arc<Connection>);

impl OpenRequest {
    /// None over HTTP/1.1, where hyper sees by itself which connections are idle.
    pub(super) fn on(connection: &Arc<Connection>) -> Option<Self> {
        if !connection.speaks_http2() {
            return None;
        }
        connection.requests().open += 1;
        Some(Self(Arc::clone(connection)))
    }
}

impl Drop for OpenRequest {
    fn drop(&mut self) {
        let mut requests = self.0.requests();
        requests.open -= 1;
        requests.idle_since = Instant::now();
    }
}

/// How its peer takes the answers that are held for it.
#[derive(Debug, Default)]
struct Reader {
    answers: usize,
    pace: Option<Pace>,
}

impl Connection {
    pub(super) fn new(local_address: Option<SocketAddr>) -> Arc<Self> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Arc::new(Self {
            id: NEXT.fetch_add(1, Ordering::Relaxed),
            local_address,
            speaks_http2: AtomicBool::new(false),
            given_up: AtomicBool::new(false),
            told: Notify::new(),
            abandoned: AtomicBool::new(false),
            reader: Mutex::default(),
            requests: Mutex::new(Requests { open: 0, idle_since: Instant::now() }),
        })
    }

    /// Our end of it: an address at which this node was reached.
    pub fn local_address(&self) -> Option<SocketAddr> {
        self.local_address
    }

    pub(super) fn id(&self) -> u64 {
        self.id
    }

    pub(super) fn note_version(&self, version: http::Version) {
        if version == http::Version::HTTP_2 {
            self.speaks_http2.store(true, Ordering::Relaxed);
        }
    }

    /// Whether its requests are answered side by side.
    pub(super) fn speaks_http2(&self) -> bool {
        self.speaks_http2.load(Ordering::Relaxed)
    }

    /// Says that its peer does not take what it asked for.
    pub(super) fn give_up(&self) {
        self.given_up.store(true, Ordering::Relaxed);
        self.told.notify_one();
    }

    #[cfg(test)]
    pub(super) fn is_given_up(&self) -> bool {
        self.given_up.load(Ordering::Relaxed)
    }

    /// Says that its peer is not waited for: what was written and not taken goes with the connection.
    pub(super) fn abandon(&self) {
        self.abandoned.store(true, Ordering::Relaxed);
    }

    pub(super) fn is_abandoned(&self) -> bool {
        self.abandoned.load(Ordering::Relaxed)
    }

    /// Since when every request was answered to its end.
    pub(super) fn idle_since(&self) -> Option<Instant> {
        let requests = self.requests();
        (requests.open == 0).then_some(requests.idle_since)
    }

    /// Waits until it is given up.
    pub(super) async fn given_up(&self) {
        self.told.notified().await;
    }

    /// An answer more is held for the peer.
    pub(super) fn hold(&self, patience: Patience) {
        let mut reader = self.reader();
        reader.answers += 1;
        reader.pace.get_or_insert_with(|| Pace::new(patience)).wait(Instant::now());
    }

    /// The peer took this many bytes of one of them.
    pub(super) fn took(&self, bytes: usize) {
        if let Some(pace) = &mut self.reader().pace {
            pace.moved(bytes);
            pace.wait(Instant::now());
        }
    }

    /// An answer less is held. Without any there is nothing to be slow with.
    pub(super) fn let_go(&self) {
        let mut reader = self.reader();
        reader.answers -= 1;
        if reader.answers == 0 {
            reader.pace = None;
        }
    }

    /// Whether the peer takes less than it must, of all its answers together: they share what it can take.
    pub(super) fn is_slow(&self, now: Instant) -> bool {
        self.reader().pace.as_mut().is_some_and(|pace| pace.wait(now) <= now)
    }

    fn requests(&self) -> MutexGuard<'_, Requests> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn reader(&self) -> MutexGuard<'_, Reader> {
        self.reader.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
