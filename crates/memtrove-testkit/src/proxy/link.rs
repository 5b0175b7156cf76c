//! One connection through the proxy.

use super::messages::{Answers, Asks, Messages};
use super::trap::{Traps, Verdict};
use super::{Sky, Weather, reset};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::net::tcp::{ReadHalf, WriteHalf};
use tokio::sync::watch;

/// How a connection ends.
enum End {
    /// One side said goodbye, and the other is told.
    Closed,
    /// Both sides find it broken.
    Reset,
}

/// What both directions of a connection know of it.
struct Link {
    weather: watch::Receiver<Weather>,
    traps: Arc<Traps>,
    /// Bytes were swallowed: it can never be right again.
    holed: AtomicBool,
    /// Questions about TLS that were passed on.
    negotiations: AtomicU64,
    /// Which answer must not arrive, counted from 1; 0 while every one may. Answers before it are for what was asked earlier,
    /// and the statement has not run yet when they come.
    doomed: AtomicU64,
}

/// Passes bytes on until one side ends, or the network does.
pub(super) async fn run(
    mut client: TcpStream,
    mut server: TcpStream,
    weather: watch::Receiver<Weather>,
    traps: Arc<Traps>,
) {
    let _ = (client.set_nodelay(true), server.set_nodelay(true));
    let link = Link {
        weather,
        traps,
        holed: AtomicBool::new(false),
        negotiations: AtomicU64::new(0),
        doomed: AtomicU64::new(0),
    };
    let end = {
        let (from_client, to_client) = client.split();
        let (from_server, to_server) = server.split();
        tokio::select! {
            end = link.requests(from_client, to_server) => end,
            end = link.answers(from_server, to_client) => end,
            end = link.storm() => end,
        }
    };
    if let End::Reset = end {
        reset(&client);
        reset(&server);
    }
}

impl Link {
    /// Ends when the connection is cut from outside.
    async fn storm(&self) -> End {
        let mut weather = self.weather.clone();
        let begin = *weather.borrow();
        loop {
            if weather.changed().await.is_err() {
                return End::Reset;
            }
            let now = *weather.borrow();
            let healed = now.sky != Sky::BlackHole && self.holed.load(Ordering::Acquire);
            if now.cuts != begin.cuts || healed {
                return End::Reset;
            }
        }
    }

    async fn requests(&self, mut client: ReadHalf<'_>, mut server: WriteHalf<'_>) -> End {
        let (mut messages, mut buffer) = (Messages::default(), vec![0; 64 * 1024]);
        let mut asked = 0;
        loop {
            let Ok(read @ 1..) = client.read(&mut buffer).await else { return End::Closed };
            messages.push(&buffer[..read]);
            while let Some(message) = messages.next() {
                let allowed = self.traps.allow(message.bytes.len());
                let passed = &message.bytes[..allowed.unwrap_or(message.bytes.len())];
                match message.runs.as_deref().map_or(Verdict::Pass, |statement| self.traps.meet(statement)) {
                    Verdict::Pass => {}
                    Verdict::CutNow => return End::Reset,
                    Verdict::CutAtAnswer => self.doomed.store(asked + 1, Ordering::Release),
                }
                match message.asks {
                    Asks::Nothing => {}
                    Asks::ForAnAnswer => asked += 1,
                    Asks::ForTls => _ = self.negotiations.fetch_add(1, Ordering::AcqRel),
                }
                if self.pass(passed, &mut server).await.is_err() || allowed.is_some() {
                    return End::Reset;
                }
                // A client that sends ahead may have sent the commit along: it must not be run before the answer that never
                // arrives has come.
                if asked > 0 && self.doomed.load(Ordering::Acquire) == asked {
                    return std::future::pending().await;
                }
            }
        }
    }

    async fn answers(&self, mut server: ReadHalf<'_>, mut client: WriteHalf<'_>) -> End {
        let (mut answers, mut buffer) = (Answers::default(), vec![0; 64 * 1024]);
        let mut answered = 0;
        loop {
            let Ok(read @ 1..) = server.read(&mut buffer).await else { return End::Closed };
            let piece = &buffer[..read];
            answers.negotiated(self.negotiations.load(Ordering::Acquire));
            let doomed = self.doomed.load(Ordering::Acquire);
            // What arrives ends where the doomed answer begins; the connection ends where that does.
            let (mut at, mut arrives) = (0, if answered + 1 == doomed { 0 } else { read });
            let mut over = false;
            while let Some(end) = answers.end_in(&piece[at..]) {
                at += end;
                answered += 1;
                over |= answered == doomed;
                if answered + 1 == doomed {
                    arrives = at;
                }
            }
            if self.pass(&piece[..arrives], &mut client).await.is_err() {
                return End::Reset;
            }
            if over {
                self.traps.count();
                return End::Reset;
            }
        }
    }

    /// Passes a piece on, or does with it what the weather says.
    async fn pass(&self, piece: &[u8], to: &mut WriteHalf<'_>) -> std::io::Result<()> {
        let sky = self.weather.borrow().sky;
        if sky == Sky::BlackHole {
            self.holed.store(true, Ordering::Release);
        }
        if self.holed.load(Ordering::Acquire) {
            // Looked at again: it may have cleared up while this piece was being swallowed.
            return match self.weather.borrow().sky {
                Sky::BlackHole => Ok(()),
                _ => Err(std::io::ErrorKind::BrokenPipe.into()),
            };
        }
        if let Sky::Slow(delay) = sky {
            tokio::time::sleep(delay).await;
        }
        to.write_all(piece).await
    }
}
