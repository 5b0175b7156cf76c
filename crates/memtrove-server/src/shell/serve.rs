//! The server loop: one port for HTTP/1.1 and HTTP/2, and an end that loses no request.

use super::connection::Connection;
use super::operations::OPERATIONAL;
use super::pace::Patience;
use super::request_id::{self, X_REQUEST_ID};
use super::socket::{self, Socket};
use crate::rest::error::RequestInfo;
use crate::rest::operation;
use crate::rest::surface::Surface;
use axum::Router;
use axum::body::Body;
use axum::response::Response;
use futures_util::future::Either;
use http::Request;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use memtrove_core::Error;
use std::convert::Infallible;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until, timeout};
use tower::Service;

/// How many bytes a stream, and all streams of a connection, may send before we have read them. The defaults of HTTP/2 make
/// large messages wait for round trips; but what waits here is not counted, so a connection has no more of it than it needs:
/// with four megabytes each, the 32 of the recorder's load test took 170 MiB more.
const STREAM_WINDOW: u32 = 512 * 1024;
const CONNECTION_WINDOW: u32 = 1024 * 1024;
/// How many bytes of an answer wait for the connection before we make more of it. Thousands of streams that are read slowly
/// must not each hold the 400 KiB of the default.
const SEND_BUFFER: usize = 32 * 1024;
/// How many bytes of headers, of a body that was not asked for yet, or of an answer a connection of HTTP/1.1 may hold. They
/// are not counted, and 400 KiB by default; with less, a body of a hundred messages comes in pieces that have to be joined.
const HTTP1_BUFFER: usize = 256 * 1024;
/// How many requests of one connection may be under way at a time.
const STREAMS: u32 = 128;

/// How many connections beyond the cap are told so at a time, and how long each may take to hear it. Those beyond are closed
/// without a word.
const TOLD_AT_ONCE: usize = 256;
const TOLD_WITHIN: Duration = Duration::from_secs(2);
/// How often the log says so.
const WARNED_EVERY: Duration = Duration::from_secs(60);

/// What the loop grants its clients.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// How long requests and streams may go on after the end was announced.
    pub grace: Duration,
    /// How long a connection may take to the end of a request's headers, counted from the end of the one before. So it
    /// is also how long an idle connection is kept.
    pub header_timeout: Duration,
    /// How many connections there may be; one more is told to come again.
    pub connections: usize,
    /// How slowly a peer may take what is written.
    pub patience: Patience,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            grace: Duration::from_secs(10),
            // Load balancers drop idle connections after 60 s and expect their backends to keep them a little longer.
            header_timeout: Duration::from_secs(65),
            connections: 16_384,
            patience: Patience::default(),
        }
    }
}

/// Serves until `shutdown`, then lets what is under way finish within the grace.
pub async fn run(listener: TcpListener, router: Router, shutdown: impl Future<Output = ()>, limits: Limits) {
    let router = router.with_state(());
    let (end, ending) = watch::channel(());
    let server = Server { router, builder: builder(limits), limits, ending };
    let served = Arc::new(Semaphore::new(limits.connections.min(Semaphore::MAX_PERMITS)));
    let told = Arc::new(Semaphore::new(TOLD_AT_ONCE));
    let mut connections = JoinSet::new();
    let mut warned: Option<Instant> = None;
    let mut shutdown = std::pin::pin!(shutdown);
    socket::prepare(&listener);

    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => {
                    if let Ok(permit) = Arc::clone(&served).try_acquire_owned() {
                        connections.spawn(server.clone().serve(stream, permit));
                        continue;
                    }
                    if warned.is_none_or(|warned| warned.elapsed() > WARNED_EVERY) {
                        warned = Some(Instant::now());
                        tracing::warn!(connections = limits.connections, "refusing connections: there are too many");
                    }
                    if let Ok(permit) = Arc::clone(&told).try_acquire_owned() {
                        connections.spawn(server.clone().refuse(stream, permit));
                    }
                }
                Err(error) => accept_failed(&error).await,
            },
            Some(_) = connections.join_next() => {}
            () = &mut shutdown => break,
        }
    }
    drop((listener, server));

    drop(end);
    let all_ended = async { while connections.join_next().await.is_some() {} };
    if timeout(limits.grace, all_ended).await.is_err() {
        tracing::warn!(connections = connections.len(), "closing connections that did not finish in time");
    }
    connections.shutdown().await;
}

fn builder(limits: Limits) -> auto::Builder<TokioExecutor> {
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.header_timeout)
        .max_buf_size(HTTP1_BUFFER);
    builder
        .http2()
        .timer(TokioTimer::new())
        .keep_alive_interval(Duration::from_secs(30))
        .keep_alive_timeout(Duration::from_secs(20))
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .max_send_buf_size(SEND_BUFFER)
        .max_concurrent_streams(STREAMS);
    builder
}

/// What every connection is served with.
#[derive(Clone)]
struct Server {
    router: Router,
    builder: auto::Builder<TokioExecutor>,
    limits: Limits,
    /// Fails when the end is announced.
    ending: watch::Receiver<()>,
}

impl Server {
    async fn serve(mut self, stream: TcpStream, _permit: OwnedSemaphorePermit) {
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(%error, "cannot set TCP_NODELAY");
        }
        let state = Connection::new(stream.local_addr().ok());
        let spoke = AtomicBool::new(false);
        // `axum::Router` is always ready, so calling it directly spares what an adapter would do about readiness.
        let service = service_fn(|mut request: Request<Incoming>| {
            if !spoke.swap(true, Ordering::Relaxed) {
                state.note_version(request.version());
            }
            request.extensions_mut().insert(Arc::clone(&state));
            self.router.clone().call(request)
        });
        let io = TokioIo::new(Socket::new(stream, self.limits.patience, Arc::clone(&state)));
        let mut connection = std::pin::pin!(self.builder.serve_connection_with_upgrades(io, service));

        // hyper's header timeout starts once the protocol is known; this one is for clients that never get that far.
        let mut until = Some(Instant::now() + self.limits.header_timeout);
        let (mut is_ending, mut is_leaving) = (false, false);
        let ended = loop {
            let time =
                until.map_or(Either::Right(std::future::pending()), |until| Either::Left(sleep_until(until)));
            tokio::select! {
                biased;
                ended = connection.as_mut() => break ended,
                () = time => {
                    if is_leaving || !spoke.load(Ordering::Relaxed) {
                        return state.abandon();
                    }
                    // hyper does the same for HTTP/1.1 by itself.
                    until = state.speaks_http2().then(|| {
                        let idle_since = state.idle_since().unwrap_or_else(Instant::now);
                        idle_since + self.limits.header_timeout
                    });
                    if until.is_some_and(|until| until <= Instant::now()) {
                        is_leaving = true;
                        connection.as_mut().graceful_shutdown();
                        until = Some(Instant::now() + self.limits.patience.stall);
                    }
                }
                // What one reader leaves lying is no reason to cut off others on the same connection: they may finish.
                () = state.given_up(), if !is_leaving => {
                    if !state.speaks_http2() {
                        return state.abandon();
                    }
                    is_leaving = true;
                    connection.as_mut().graceful_shutdown();
                    until = Some(Instant::now() + self.limits.patience.stall);
                }
                _ = self.ending.changed(), if !is_ending => {
                    is_ending = true;
                    connection.as_mut().graceful_shutdown();
                }
            }
        };
        if let Err(error) = ended {
            tracing::debug!(error = &*error, "connection ended early");
        }
    }

    /// Tells a client that there are too many connections, in the protocol and the shape that it expects. Probes are answered
    /// even so: a watcher must not take the server for dead.
    async fn refuse(self, stream: TcpStream, _permit: OwnedSemaphorePermit) {
        let state = Connection::new(stream.local_addr().ok());
        let told = tokio::sync::Notify::new();
        let service = service_fn(|request: Request<Incoming>| {
            told.notify_one();
            let router = self.router.clone();
            answer_beyond_the_cap(router, request)
        });
        let io = TokioIo::new(Socket::new(stream, self.limits.patience, state));
        let mut connection = std::pin::pin!(self.builder.serve_connection(io, service));
        let refused = timeout(TOLD_WITHIN, async {
            tokio::select! {
                ended = connection.as_mut() => return ended,
                () = told.notified() => {}
            }
            connection.as_mut().graceful_shutdown();
            connection.await
        });
        if let Ok(Err(error)) = refused.await {
            tracing::debug!(error = &*error, "refused connection ended early");
        }
    }
}

async fn answer_beyond_the_cap(
    mut router: Router,
    request: Request<Incoming>,
) -> Result<Response, Infallible> {
    let path = request.uri().path();
    if OPERATIONAL.contains(&path) {
        return router.call(request.map(Body::new)).await;
    }
    tracing::debug!(path, "refused a connection: there are too many");
    let surface = Surface::of(path);
    let id = request_id::accept_or_generate(request.headers().get(X_REQUEST_ID), surface);
    let info = RequestInfo { id: id.to_str().unwrap_or_default(), operation: operation::UNKNOWN };
    let mut response = surface.render(Error::overloaded(1), info);
    response.headers_mut().insert(X_REQUEST_ID, id);
    Ok(response)
}

/// Running out of file descriptors passes; spinning on it does not help it pass.
async fn accept_failed(error: &io::Error) {
    if matches!(
        error.kind(),
        io::ErrorKind::ConnectionAborted | io::ErrorKind::ConnectionReset | io::ErrorKind::ConnectionRefused
    ) {
        return;
    }
    tracing::error!(%error, "cannot accept connections");
    tokio::time::sleep(Duration::from_millis(250)).await;
}
