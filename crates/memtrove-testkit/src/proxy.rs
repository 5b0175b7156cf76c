//! A network between Memtrove and PostgreSQL that fails on demand.
//!
//! It understands the client's half of the protocol, so that a connection can be cut at a statement, prepared or not. It
//! speaks in plain text only: a client that asks for TLS gets the server's own refusal.

#![expect(
    clippy::expect_used,
    reason = "a test helper fails by panicking, with what a person needs to see why"
)]

mod link;
mod messages;
mod trap;

use crate::postgres::Database;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Runtime;
use tokio::sync::watch;
use trap::Traps;

/// A port that leads to the database. Goes away, with its connections, when dropped.
#[derive(Debug)]
pub struct Proxy {
    url: String,
    weather: watch::Sender<Weather>,
    traps: Arc<Traps>,
    runtime: Option<Runtime>,
}

/// What happens to bytes on their way, at the moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Weather {
    sky: Sky,
    /// How often all connections were cut.
    cuts: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sky {
    Clear,
    /// Every piece is late by this much.
    Slow(Duration),
    /// Bytes are accepted and never arrive.
    BlackHole,
    /// New connections are reset at once.
    Refusing,
}

impl Proxy {
    /// A port that leads to this database.
    pub fn before(database: &Database) -> Self {
        let (head, tail) = database.url().split_once('@').expect("a url with a user");
        let (target, name) = tail.split_once('/').expect("a url with a database");
        let target: SocketAddr = target.parse().expect("an address and a port");
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .expect("a runtime");
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
        listener.set_nonblocking(true).expect("a port that does not block");
        let address = listener.local_addr().expect("the port");
        let weather = watch::Sender::new(Weather { sky: Sky::Clear, cuts: 0 });
        let traps = Arc::new(Traps::default());
        runtime.spawn(accept(listener, target, weather.subscribe(), traps.clone()));
        Self { url: format!("{head}@{address}/{name}"), weather, traps, runtime: Some(runtime) }
    }

    /// The database's url, by way of this proxy.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Resets every connection; new ones work.
    pub fn cut(&self) {
        self.weather.send_modify(|weather| weather.cuts += 1);
    }

    /// Resets every connection and refuses new ones until [`Proxy::heal`].
    pub fn refuse(&self) {
        self.weather.send_modify(|weather| {
            weather.sky = Sky::Refusing;
            weather.cuts += 1;
        });
    }

    /// Refuses new connections until [`Proxy::heal`]; those that there are go on.
    pub fn refuse_new(&self) {
        self.weather.send_modify(|weather| weather.sky = Sky::Refusing);
    }

    /// Swallows every byte in both directions until [`Proxy::heal`], without a word.
    pub fn black_hole(&self) {
        self.weather.send_modify(|weather| weather.sky = Sky::BlackHole);
    }

    /// Delays every piece that passes, in each direction, until [`Proxy::heal`].
    pub fn slow(&self, delay: Duration) {
        self.weather.send_modify(|weather| weather.sky = Sky::Slow(delay));
    }

    /// Lets everything pass again. Connections that have lost bytes meanwhile are reset: they can never be right again.
    pub fn heal(&self) {
        self.weather.send_modify(|weather| weather.sky = Sky::Clear);
    }

    /// Cuts the first connection that is about to run a statement with this text: the database never hears of the statement.
    pub fn cut_before(&self, statement: &str) {
        self.traps.arm_before(statement);
    }

    /// Cuts the first connection whose statement with this text was run: the client never hears of the outcome.
    pub fn cut_after(&self, statement: &str) {
        self.traps.arm_after(statement);
    }

    /// Cuts the connection that sends the last of this many bytes from now on, wherever in a message that is.
    pub fn cut_after_bytes(&self, bytes: u64) {
        self.traps.arm_bytes(bytes);
    }

    /// How many connections were cut by a trap so far.
    pub fn sprung(&self) -> u64 {
        self.traps.sprung()
    }

    /// Waits until this many connections were cut by a trap.
    #[track_caller]
    pub fn wait_until_sprung(&self, times: u64) {
        let deadline = Instant::now() + Duration::from_secs(30);
        while self.sprung() < times {
            assert!(Instant::now() < deadline, "only {} of {times} connections were cut", self.sprung());
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            // Without waiting, which an asynchronous test may not do here.
            runtime.shutdown_background();
        }
    }
}

async fn accept(
    listener: std::net::TcpListener,
    target: SocketAddr,
    weather: watch::Receiver<Weather>,
    traps: Arc<Traps>,
) {
    let listener = TcpListener::from_std(listener).expect("a port in a runtime");
    loop {
        let Ok((client, _)) = listener.accept().await else { continue };
        if weather.borrow().sky == Sky::Refusing {
            reset(&client);
            continue;
        }
        let (weather, traps) = (weather.clone(), traps.clone());
        tokio::spawn(async move {
            match TcpStream::connect(target).await {
                Ok(server) => link::run(client, server, weather, traps).await,
                Err(_) => reset(&client),
            }
        });
    }
}

/// Makes the coming end of a connection a reset instead of an orderly goodbye.
fn reset(stream: &TcpStream) {
    let _ = stream.set_zero_linger();
}
