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
    reader: Mutex<Reader>,
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
            reader: Mutex::default(),
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

    pub(super) fn is_given_up(&self) -> bool {
        self.given_up.load(Ordering::Relaxed)
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

    /// The peer took so many bytes of one of them.
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

    fn reader(&self) -> MutexGuard<'_, Reader> {
        self.reader.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
