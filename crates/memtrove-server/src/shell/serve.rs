//! The server loop: one port for HTTP/1.1 and HTTP/2, and an end that loses no request.

use axum::Router;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use hyper_util::server::graceful::GracefulShutdown;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tower::Service;

/// How many bytes a stream, and all streams of a connection, may send before we have read them. The defaults of HTTP/2 make
/// large messages wait for round trips.
const STREAM_WINDOW: u32 = 1024 * 1024;
const CONNECTION_WINDOW: u32 = 4 * 1024 * 1024;
/// How many bytes of an answer wait for the connection before we make more of it. Thousands of streams that are read slowly
/// must not each hold the 400 KiB of the default.
const SEND_BUFFER: usize = 32 * 1024;

/// How long the loop waits for its clients.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// How long requests and streams may go on after the end was announced.
    pub grace: Duration,
    /// How long a connection may take to the end of a request's headers, counted from the end of the one before. So it
    /// is also how long an idle connection is kept.
    pub header_timeout: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        // Load balancers drop idle connections after 60 s and expect their backends to keep them a little longer.
        Self { grace: Duration::from_secs(10), header_timeout: Duration::from_secs(65) }
    }
}

/// The end of a connection that is ours: an address at which this node was reached.
#[derive(Debug, Clone, Copy)]
pub struct LocalAddress(pub SocketAddr);

/// Serves until `shutdown`, then lets what is under way finish within `grace`.
pub async fn run(listener: TcpListener, router: Router, shutdown: impl Future<Output = ()>, grace: Duration) {
    run_with(listener, router, shutdown, Limits { grace, ..Limits::default() }).await;
}

/// Like [`run`], with every limit given.
pub async fn run_with(
    listener: TcpListener,
    router: Router,
    shutdown: impl Future<Output = ()>,
    limits: Limits,
) {
    let router = router.with_state(());
    let builder = builder(limits);
    let graceful = GracefulShutdown::new();
    let mut connections = JoinSet::new();
    let mut shutdown = std::pin::pin!(shutdown);

    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => {
                    let watcher = graceful.watcher();
                    connections.spawn(serve(stream, router.clone(), builder.clone(), watcher, limits));
                }
                Err(error) => accept_failed(&error).await,
            },
            Some(_) = connections.join_next() => {}
            () = &mut shutdown => break,
        }
    }
    drop(listener);

    if tokio::time::timeout(limits.grace, graceful.shutdown()).await.is_err() {
        tracing::warn!(connections = connections.len(), "closing connections that did not finish in time");
    }
    connections.shutdown().await;
}

fn builder(limits: Limits) -> auto::Builder<TokioExecutor> {
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder.http1().timer(TokioTimer::new()).header_read_timeout(limits.header_timeout);
    builder
        .http2()
        .timer(TokioTimer::new())
        .keep_alive_interval(Duration::from_secs(30))
        .keep_alive_timeout(Duration::from_secs(20))
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .max_send_buf_size(SEND_BUFFER)
        .max_concurrent_streams(1024);
    builder
}

async fn serve(
    stream: TcpStream,
    router: Router,
    builder: auto::Builder<TokioExecutor>,
    watcher: hyper_util::server::graceful::Watcher,
    limits: Limits,
) {
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "cannot set TCP_NODELAY");
    }
    let local = stream.local_addr().ok().map(LocalAddress);
    let spoke = Arc::new(AtomicBool::new(false));
    let service = {
        let spoke = spoke.clone();
        // `axum::Router` is always ready, so calling it directly spares what an adapter would do about readiness.
        service_fn(move |mut request: http::Request<Incoming>| {
            spoke.store(true, Ordering::Relaxed);
            if let Some(local) = local {
                request.extensions_mut().insert(local);
            }
            router.clone().call(request)
        })
    };
    let connection = builder.serve_connection_with_upgrades(TokioIo::new(stream), service);
    let mut connection = std::pin::pin!(watcher.watch(connection));

    // hyper's header timeout starts once the protocol is known; this one is for clients that never get that far.
    let ended = match tokio::time::timeout(limits.header_timeout, &mut connection).await {
        Ok(ended) => ended,
        Err(_) if spoke.load(Ordering::Relaxed) => connection.await,
        Err(_) => return,
    };
    if let Err(error) = ended {
        tracing::debug!(error = &*error, "connection ended early");
    }
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
