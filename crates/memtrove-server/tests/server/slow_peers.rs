//! Callers that send nothing of what they announced and read nothing of what they asked for, on a real port: they get no more than
//! their part, they are given up, and nobody else notices.

use axum::Router;
use axum::body::{Body, Bytes};
use axum::response::sse::{Event, Sse};
use axum::routing::{get, post};
use futures_util::{StreamExt, stream};
use http::{Request, Response, StatusCode};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::client::conn::http2::SendRequest;
use hyper_util::rt::{TokioExecutor, TokioIo};
use memtrove_server::shell::{Limits, Patience, ShellConfig, run, shell};
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

const MIB: usize = 1 << 20;
/// More than the system's buffers take of it.
const PAGE: usize = 16 * MIB;
/// Long enough for a busy machine, short enough to wait for.
const STALL: Duration = Duration::from_secs(2);
/// When something that must happen has not happened.
const NEVER: Duration = Duration::from_secs(60);

const PATIENCE: Patience = Patience { stall: STALL, rate: 16 * 1024 };

async fn start(router: Router, config: ShellConfig, connections: usize) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let limits = Limits { connections, patience: config.patience, ..Limits::default() };
    tokio::spawn(run(listener, shell(router, &config), std::future::pending(), limits));
    address
}

/// `POST /length` takes a body in, `GET /page` answers with a large one, `GET /word` with a small one.
fn routes() -> Router {
    Router::new()
        .route("/length", post(|body: Bytes| async move { body.len().to_string() }))
        .route("/page", get(|| async { vec![b'x'; PAGE] }))
        .route("/word", get(|| async { "word" }))
        .route("/health/live", get(|| async { "alive" }))
}

/// A server that is soon out of patience.
async fn server(config: ShellConfig) -> SocketAddr {
    start(routes(), ShellConfig { patience: PATIENCE, ..config }, 1000).await
}

/// A server that waits for as long as these tests do.
async fn patient_server(router: Router, config: ShellConfig) -> SocketAddr {
    let patience = Patience { stall: NEVER * 10, rate: 1 };
    start(router, ShellConfig { patience, request_timeout: NEVER * 10, ..config }, 1000).await
}

fn url(server: SocketAddr, path: &str) -> String {
    format!("http://{server}{path}")
}

async fn get_status(server: SocketAddr, path: &str) -> StatusCode {
    let response = reqwest::get(url(server, path)).await.unwrap();
    let status = response.status();
    response.bytes().await.unwrap();
    status
}

async fn upload(server: SocketAddr, length: usize) -> StatusCode {
    let request =
        reqwest::Client::new().post(url(server, "/length")).bearer_auth("honest").body(vec![b'x'; length]);
    request.send().await.unwrap().status()
}

/// Asks until the answer is this: what was freed elsewhere is free a moment later.
async fn eventually<F: Future<Output = StatusCode>>(wanted: StatusCode, ask: impl Fn() -> F) {
    let asked = async {
        while ask().await != wanted {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(NEVER, asked).await.unwrap();
}

/// A connection whose side of the system takes little without being read.
async fn connect(server: SocketAddr) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(16 * 1024).unwrap();
    socket.connect(server).await.unwrap()
}

async fn say(server: SocketAddr, head: &str, body: &[u8]) -> TcpStream {
    let mut stream = connect(server).await;
    stream.write_all(format!("{head}\r\nhost: x\r\n\r\n").as_bytes()).await.unwrap();
    stream.write_all(body).await.unwrap();
    stream
}

/// Everything that is said until the other side closes.
async fn rest_of(stream: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    let read = tokio::time::timeout(NEVER, stream.read_to_end(&mut bytes)).await;
    // It may also be reset, which says the same.
    let _closed = read.unwrap();
    String::from_utf8_lossy(&bytes).into_owned()
}

struct Http2 {
    sender: SendRequest<Body>,
    ended: JoinHandle<()>,
}

/// A connection over HTTP/2 on which nothing of an answer can be sent beyond this window.
async fn http2(server: SocketAddr, window: u32) -> Http2 {
    let io = TokioIo::new(TcpStream::connect(server).await.unwrap());
    let mut builder = hyper::client::conn::http2::Builder::new(TokioExecutor::new());
    builder.initial_stream_window_size(window);
    let (sender, connection) = builder.handshake(io).await.unwrap();
    Http2 { sender, ended: tokio::spawn(async { drop(connection.await) }) }
}

impl Http2 {
    async fn get(&self, server: SocketAddr, path: &str) -> Response<Incoming> {
        let request = Request::get(url(server, path)).body(Body::empty()).unwrap();
        self.sender.clone().send_request(request).await.unwrap()
    }

    /// Begins to send a body of which more was announced. It goes on for as long as what is returned lives.
    fn begin(&self, server: SocketAddr, announced: usize, sent: usize) -> (mpsc::Sender<Bytes>, Answer) {
        let (pieces, coming) = mpsc::channel::<Bytes>(1);
        let pieces_coming = tokio_stream::wrappers::ReceiverStream::new(coming).map(Ok::<_, Infallible>);
        let body = Body::from_stream(stream::iter([Ok(Bytes::from(vec![0; sent]))]).chain(pieces_coming));
        let request = Request::post(url(server, "/length")).header("content-length", announced);
        let mut sender = self.sender.clone();
        let answer = tokio::spawn(async move { sender.send_request(request.body(body).unwrap()).await });
        (pieces, answer)
    }
}

type Answer = JoinHandle<hyper::Result<Response<Incoming>>>;

// ---- bodies

#[tokio::test]
async fn bodies_that_are_announced_and_do_not_come_stop_nobody_over_http2() {
    let server = server(ShellConfig { bodies_limit: MIB as u64, ..ShellConfig::default() }).await;
    let attacker = http2(server, 65_535).await;
    let _stalled: Vec<_> = (0..13).map(|_| attacker.begin(server, 20 * MIB, 10)).collect();
    for _ in 0..20 {
        assert_eq!(upload(server, 100_000).await, StatusCode::OK);
    }
}

#[tokio::test]
async fn bodies_that_come_in_part_stop_nobody_over_http2() {
    let server = server(ShellConfig { bodies_limit: MIB as u64, ..ShellConfig::default() }).await;
    let attacker = http2(server, 65_535).await;
    // Together they are more than there is room for.
    let mut stalled: Vec<_> = (0..13).map(|_| attacker.begin(server, 20 * MIB, 100_000)).collect();
    // The last of them has been read when it is answered, that it finds no room.
    let refused = futures_util::future::select_all(stalled.iter_mut().map(|(_, answer)| answer)).await.0;
    let refused = refused.unwrap().unwrap();
    assert_eq!(refused.status(), StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(refused.headers()["retry-after"], "1");
    for _ in 0..20 {
        assert_eq!(upload(server, 100_000).await, StatusCode::OK);
    }
}

#[tokio::test]
async fn one_credential_on_many_connections_leaves_room_for_others() {
    let server = server(ShellConfig { bodies_limit: MIB as u64, ..ShellConfig::default() }).await;
    let head = "POST /length HTTP/1.1\r\nauthorization: Bearer mallory\r\ncontent-length: 20000000";
    let mut stalled = Vec::new();
    for _ in 0..13 {
        stalled.push(say(server, head, &[0; 100_000]).await);
    }
    let mut refusal = [0; 12];
    let refused = futures_util::future::select_all(
        stalled.iter_mut().map(|stream| Box::pin(async { stream.readable().await })),
    );
    let (_, index, rest) = refused.await;
    drop(rest);
    stalled[index].read_exact(&mut refusal).await.unwrap();
    assert_eq!(&refusal, b"HTTP/1.1 503");
    for _ in 0..20 {
        assert_eq!(upload(server, 100_000).await, StatusCode::OK);
    }
}

#[tokio::test]
async fn a_body_that_does_not_come_times_out_and_its_connection_is_closed() {
    let server = server(ShellConfig { bodies_limit: MIB as u64, ..ShellConfig::default() }).await;
    for framing in ["content-length: 500000", "transfer-encoding: chunked"] {
        let body = [b"61a80\r\n".as_slice(), &[0; 300_000]].concat();
        let body = if framing.starts_with("content") { &body[7..] } else { &body };
        let mut stalled = say(server, &format!("POST /length HTTP/1.1\r\n{framing}"), body).await;
        let answer = rest_of(&mut stalled).await;
        assert!(answer.starts_with("HTTP/1.1 504"), "{answer}");
        assert!(answer.contains("connection: close"), "{answer}");
        assert!(answer.contains(r#""code":"timeout""#), "{answer}");
        // Only a lone body may have all the room.
        assert_eq!(upload(server, 2 * MIB).await, StatusCode::OK);
    }
    let attacker = http2(server, 65_535).await;
    let (pieces, answer) = attacker.begin(server, 500_000, 300_000);
    assert_eq!(answer.await.unwrap().unwrap().status(), StatusCode::GATEWAY_TIMEOUT);
    tokio::time::timeout(NEVER, pieces.closed()).await.unwrap();
    assert_eq!(upload(server, 2 * MIB).await, StatusCode::OK);
}

#[tokio::test]
async fn a_handler_whose_body_does_not_come_ends_with_its_caller() {
    struct Counted(Arc<AtomicUsize>);
    impl Drop for Counted {
        fn drop(&mut self) {
            self.0.fetch_sub(1, Ordering::SeqCst);
        }
    }
    let handlers = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&handlers);
    let reading = post(move |request: axum::extract::Request| {
        counter.fetch_add(1, Ordering::SeqCst);
        let counted = Counted(Arc::clone(&counter));
        async move {
            let _counted = counted;
            request
                .into_body()
                .collect()
                .await
                .map(|read| read.to_bytes().len().to_string())
                .unwrap_or_default()
        }
    });
    let server = patient_server(Router::new().route("/read", reading), ShellConfig::default()).await;

    let until = async |count: usize| {
        while handlers.load(Ordering::SeqCst) != count {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    let stalled = say(server, "POST /read HTTP/1.1\r\ncontent-length: 1000", &[0; 10]).await;
    tokio::time::timeout(NEVER, until(1)).await.unwrap();
    drop(stalled);
    tokio::time::timeout(NEVER, until(0)).await.unwrap();
}

#[tokio::test]
async fn room_comes_back_when_stalled_callers_hang_up() {
    let config = ShellConfig { bodies_limit: MIB as u64, ..ShellConfig::default() };
    let server = patient_server(routes(), config).await;
    let stalled = say(server, "POST /length HTTP/1.1\r\ncontent-length: 500000", &[0; 200_000]).await;
    eventually(StatusCode::SERVICE_UNAVAILABLE, || upload(server, 2 * MIB)).await;
    drop(stalled);
    eventually(StatusCode::OK, || upload(server, 2 * MIB)).await;
}

#[tokio::test]
async fn a_body_that_comes_slowly_is_taken_even_if_that_takes_longer_than_a_request_may() {
    let config = ShellConfig { request_timeout: STALL, ..ShellConfig::default() };
    let server = server(config).await;
    let mut stream =
        say(server, "POST /length HTTP/1.1\r\nconnection: close\r\ncontent-length: 400000", &[]).await;
    for _ in 0..40 {
        stream.write_all(&[0; 10_000]).await.unwrap();
        tokio::time::sleep(STALL / 20).await;
    }
    let answer = rest_of(&mut stream).await;
    assert!(answer.starts_with("HTTP/1.1 200") && answer.ends_with("400000"), "{answer}");
}

#[tokio::test]
async fn a_call_of_grpc_that_is_no_stream_has_one_message() {
    const CALL: &str = "/memory.v1.SystemService/GetHealth";
    let read = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&read);
    let reading = post(move |body: Body| async move {
        let mut pieces = body.into_data_stream();
        while let Some(Ok(piece)) = pieces.next().await {
            counter.fetch_add(piece.len(), Ordering::SeqCst);
        }
    });
    let config = ShellConfig { body_limit: 100_000, bodies_limit: MIB as u64, ..ShellConfig::default() };
    let server = patient_server(routes().route(CALL, reading), config).await;
    let attacker = http2(server, 65_535).await;
    let mut message = vec![0; 60_005];
    message[1..5].copy_from_slice(&60_000u32.to_be_bytes());
    // More than there is room for, and it never ends.
    let messages = stream::iter(vec![Ok::<_, Infallible>(message); 40]).chain(stream::pending());
    let request = Request::post(url(server, CALL)).header("content-type", "application/grpc");
    let request = request.body(Body::from_stream(messages)).unwrap();
    let refused = attacker.sender.clone().send_request(request).await.unwrap();
    assert_ne!(refused.headers()["grpc-status"], "0");
    assert!(read.load(Ordering::SeqCst) <= 100_005, "{read:?}");
    assert_eq!(upload(server, 100_000).await, StatusCode::OK);
}

// ---- answers

/// Room for four pages, and one on each connection.
fn four_pages() -> ShellConfig {
    ShellConfig { answers_limit: 4 * PAGE as u64, ..ShellConfig::default() }
}

#[tokio::test]
async fn pages_that_nobody_reads_are_bounded() {
    let server = patient_server(routes(), four_pages()).await;
    let mut unread = Vec::new();
    for reader in 0..4 {
        let head = format!("GET /page HTTP/1.1\r\nauthorization: Bearer reader-{reader}");
        let mut stream = say(server, &head, &[]).await;
        let mut status = [0; 12];
        stream.read_exact(&mut status).await.unwrap();
        assert_eq!(&status, b"HTTP/1.1 200");
        unread.push(stream);
    }
    let refused = reqwest::get(url(server, "/page")).await.unwrap();
    assert_eq!(refused.status(), StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(refused.headers()["retry-after"], "1");
    assert!(refused.text().await.unwrap().contains("overloaded"));
    assert_eq!(get_status(server, "/word").await, StatusCode::OK, "what is small is answered all the same");

    unread.pop();
    eventually(StatusCode::OK, || get_status(server, "/page")).await;
}

#[tokio::test]
async fn one_http2_connection_has_a_quarter_of_the_room_for_pages() {
    let server = patient_server(routes(), four_pages()).await;
    let attacker = http2(server, 0).await;
    let _unread = attacker.get(server, "/page").await;
    let refused = attacker.get(server, "/page").await;
    assert_eq!(refused.status(), StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(attacker.get(server, "/word").await.status(), StatusCode::OK);
    let refused = reqwest::get(url(server, "/page")).await.unwrap();
    assert_eq!(refused.status(), StatusCode::SERVICE_UNAVAILABLE, "as much is there for all strangers");
    let honest = reqwest::Client::new().get(url(server, "/page")).bearer_auth("honest");
    assert_eq!(honest.send().await.unwrap().status(), StatusCode::OK, "others have theirs");
}

#[tokio::test]
async fn made_up_names_are_strangers_where_nobody_asks_for_a_name() {
    let router = routes().route("/docs", get(|| async { vec![b'x'; PAGE] }));
    let server = patient_server(router, four_pages()).await;
    let ask = |path: &'static str, name: &'static str| {
        reqwest::Client::new().get(url(server, path)).bearer_auth(name).send()
    };
    let _unread = ask("/docs", "one").await.unwrap();
    assert_eq!(ask("/docs", "another").await.unwrap().status(), StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(ask("/page", "another").await.unwrap().status(), StatusCode::OK, "there it is looked at");
}

#[tokio::test]
async fn what_was_done_is_answered_without_room_and_a_repetition_is_not() {
    let page = || vec![b'x'; PAGE];
    let replayed = [("idempotency-replayed", "true")];
    let router = routes()
        .route("/change", post(move || async move { page() }))
        .route("/repeat", post(move || async move { (replayed, page()) }));
    let server = patient_server(router, four_pages()).await;
    let mut unread = Vec::new();
    for reader in 0..4 {
        let page = reqwest::Client::new().get(url(server, "/page")).bearer_auth(format!("reader-{reader}"));
        unread.push(page.send().await.unwrap().error_for_status().unwrap());
    }
    let ask = |path: &'static str| reqwest::Client::new().post(url(server, path)).bearer_auth(path).send();
    assert_eq!(ask("/repeat").await.unwrap().status(), StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(ask("/change").await.unwrap().status(), StatusCode::OK);
}

#[tokio::test]
async fn nothing_is_done_for_a_caller_that_does_not_read() {
    let done = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&done);
    let change = post(move || {
        counter.fetch_add(1, Ordering::SeqCst);
        async { vec![b'x'; PAGE] }
    });
    let server = patient_server(routes().route("/change", change), four_pages()).await;
    let attacker = http2(server, 0).await;
    let ask = || {
        let request = Request::post(url(server, "/change")).header("authorization", "Bearer mallory");
        attacker.sender.clone().send_request(request.body(Body::empty()).unwrap())
    };
    let _unread = ask().await.unwrap();
    assert_eq!(ask().await.unwrap().status(), StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(done.load(Ordering::SeqCst), 1, "what is refused is not done");
}

#[tokio::test]
async fn pages_that_nobody_reads_are_let_go_of_over_http1() {
    let server = server(four_pages()).await;
    let mut unread = say(server, "GET /page HTTP/1.1", &[]).await;
    unread.read_exact(&mut [0; 12]).await.unwrap();
    // Nothing is read meanwhile, not even to see whether it goes on.
    tokio::time::timeout(NEVER, closed_by_peer(&unread)).await.unwrap();
    assert!(rest_of(&mut unread).await.len() < PAGE, "the connection was closed before the end of the page");
}

/// Waits until the other side has closed the connection, without reading from it.
async fn closed_by_peer(stream: &TcpStream) {
    loop {
        let ready = stream.ready(tokio::io::Interest::ERROR | tokio::io::Interest::WRITABLE).await.unwrap();
        if ready.is_error() || ready.is_write_closed() || stream.take_error().unwrap().is_some() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn pages_that_nobody_reads_are_let_go_of_over_http2() {
    let server = server(four_pages()).await;
    let Http2 { sender, ended } = http2(server, 0).await;
    let request = Request::get(url(server, "/page")).body(Body::empty()).unwrap();
    let unread = sender.clone().send_request(request).await.unwrap();
    assert_eq!(unread.status(), StatusCode::OK);
    tokio::time::timeout(NEVER, ended).await.unwrap().unwrap();
    assert!(unread.into_body().collect().await.is_err());
}

#[tokio::test]
async fn answers_of_which_a_byte_is_read_are_let_go_of_over_http2() {
    let note = || async { vec![b'x'; 30_000] };
    let streamed =
        || async { Body::from_stream(stream::iter([Ok::<_, Infallible>(Bytes::from(vec![b'x'; 30_000]))])) };
    let router = Router::new().route("/note", get(note)).route("/streamed", get(streamed));
    for path in ["/note", "/streamed"] {
        let config = ShellConfig { patience: PATIENCE, ..ShellConfig::default() };
        let server = start(router.clone(), config, 10).await;
        let Http2 { sender, ended } = http2(server, 1).await;
        let request = Request::get(url(server, path)).body(Body::empty()).unwrap();
        let _unread = sender.clone().send_request(request).await.unwrap();
        tokio::time::timeout(NEVER, ended).await.expect(path).unwrap();
    }
}

#[tokio::test]
async fn what_others_on_the_connection_read_arrives_though_one_is_given_up() {
    let patience = Patience { stall: STALL * 3, ..PATIENCE };
    let config = ShellConfig { patience, answers_limit: 16 * PAGE as u64, ..ShellConfig::default() };
    let server = start(routes(), config, 10).await;
    let Http2 { sender, ended } = http2(server, 65_535).await;
    let page =
        || sender.clone().send_request(Request::get(url(server, "/page")).body(Body::empty()).unwrap());
    let _unread = page().await.unwrap();
    let mut read = page().await.unwrap().into_body();
    let (mut length, begun) = (0, tokio::time::Instant::now());
    while let Some(frame) = tokio::time::timeout(NEVER, read.frame()).await.unwrap() {
        length += frame.unwrap().into_data().map_or(0, |data| data.len());
        // Slowly, until the other one was given up; there is as much time again to come to the end.
        if begun.elapsed() < STALL * 4 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
    assert!(begun.elapsed() > STALL * 4, "it was not read for long enough");
    assert_eq!(length, PAGE);
    tokio::time::timeout(NEVER, ended).await.unwrap().unwrap();
}

#[tokio::test]
async fn a_page_that_is_read_slowly_arrives() {
    // The systems of both sides hold a megabyte, and say only then that something was taken: it must be read within a stall.
    let patience = Patience { stall: STALL, rate: 128 * 1024 };
    let server = start(routes(), ShellConfig { patience, ..four_pages() }, 10).await;
    // With less the system would send only now and then, however much is read.
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(256 * 1024).unwrap();
    let mut stream = socket.connect(server).await.unwrap();
    stream.write_all(b"GET /page HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").await.unwrap();
    let (mut buffer, mut read, mut paused) = (vec![0; 16 * 1024], 0, false);
    // Not much faster than it has to be, and once not at all; and then quickly, because a test has an end.
    let begun = tokio::time::Instant::now();
    loop {
        let length = stream.read(&mut buffer).await.unwrap_or_else(|error| {
            panic!("{error} after {read} bytes and {:?}", begun.elapsed());
        });
        if length == 0 {
            break;
        }
        read += length;
        if begun.elapsed() < STALL * 3 {
            tokio::time::sleep(Duration::from_secs(1) * length as u32 / (16 * patience.rate as u32)).await;
            if !std::mem::replace(&mut paused, true) {
                tokio::time::sleep(STALL * 4 / 10).await;
            }
        }
    }
    assert!(begun.elapsed() > STALL * 3 && read > PAGE, "{read} in {:?}", begun.elapsed());
}

#[tokio::test]
async fn a_stream_that_has_nothing_to_say_is_not_given_up() {
    let quiet = get(|| async {
        Sse::new(stream::iter(0..2).then(|n| async move {
            tokio::time::sleep(STALL * 2 * n).await;
            Ok::<_, Infallible>(Event::default().data(n.to_string()))
        }))
    });
    let config = ShellConfig { patience: PATIENCE, ..ShellConfig::default() };
    let server = start(Router::new().route("/quiet", quiet), config, 10).await;
    let client = http2(server, 65_535).await;
    let over_http2 = async {
        let body = client.get(server, "/quiet").await.into_body().collect().await.unwrap();
        String::from_utf8(body.to_bytes().to_vec()).unwrap()
    };
    let over_http1 = async { reqwest::get(url(server, "/quiet")).await.unwrap().text().await.unwrap() };
    let (one, other) = tokio::join!(over_http1, over_http2);
    assert_eq!((one.as_str(), other.as_str()), ("data: 0\n\ndata: 1\n\n", "data: 0\n\ndata: 1\n\n"));
}

// ---- connections

#[tokio::test]
async fn a_connection_over_http2_that_is_idle_is_closed_and_one_that_is_asked_something_is_not() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let server = listener.local_addr().unwrap();
    let limits = Limits { header_timeout: STALL, patience: PATIENCE, ..Limits::default() };
    let slow = get(|| async {
        tokio::time::sleep(STALL * 3).await;
        "word"
    });
    let router = shell(routes().route("/slow", slow), &ShellConfig::default());
    tokio::spawn(run(listener, router, std::future::pending(), limits));

    let idle = http2(server, 65_535).await;
    let busy = http2(server, 65_535).await;
    idle.get(server, "/word").await.into_body().collect().await.unwrap();
    let answer = busy.get(server, "/slow").await;
    assert_eq!(answer.into_body().collect().await.unwrap().to_bytes(), "word");
    tokio::time::timeout(NEVER, idle.ended).await.unwrap().unwrap();
    assert_eq!(busy.get(server, "/word").await.status(), StatusCode::OK);
}

#[tokio::test]
async fn headers_without_end_are_refused_early() {
    let server = server(ShellConfig::default()).await;
    let mut stream = say(server, &format!("GET /word HTTP/1.1\r\nx: {}", "x".repeat(300_000)), &[]).await;
    let answer = rest_of(&mut stream).await;
    assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 431"), "{answer}");
}

#[tokio::test]
async fn connections_beyond_the_cap_are_told_so() {
    let server = start(routes(), ShellConfig::default(), 2).await;
    let mut kept = Vec::new();
    for _ in 0..2 {
        let mut stream = say(server, "GET /word HTTP/1.1", &[]).await;
        stream.read_exact(&mut [0; 12]).await.unwrap();
        kept.push(stream);
    }
    let mut refused = say(server, "GET /v1/memories HTTP/1.1", &[]).await;
    let answer = rest_of(&mut refused).await;
    assert!(answer.starts_with("HTTP/1.1 503") && answer.contains("retry-after: 1"), "{answer}");
    assert!(
        answer.contains(r#""retryable":true"#) && answer.contains("x-request-id"),
        "in the shape of its surface: {answer}"
    );
    let over_http2 = http2(server, 65_535).await;
    assert_eq!(over_http2.get(server, "/word").await.status(), StatusCode::SERVICE_UNAVAILABLE);
    tokio::time::timeout(NEVER, over_http2.ended).await.unwrap().unwrap();
    assert_eq!(get_status(server, "/health/live").await, StatusCode::OK, "it is alive");

    kept.pop();
    eventually(StatusCode::OK, || get_status(server, "/word")).await;
}

#[tokio::test]
async fn a_connection_has_128_streams() {
    let server = server(ShellConfig::default()).await;
    let mut stream = TcpStream::connect(server).await.unwrap();
    stream.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0").await.unwrap();
    let mut head = [0; 9];
    stream.read_exact(&mut head).await.unwrap();
    let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
    let mut settings = vec![0; length as usize];
    stream.read_exact(&mut settings).await.unwrap();
    let most = settings.chunks(6).find(|setting| setting[..2] == [0, 3]).unwrap();
    assert_eq!(most[2..], 128u32.to_be_bytes());
}
