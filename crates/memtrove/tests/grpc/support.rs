//! Callers over gRPC: with the clients that are made from the contract, with bytes of one's own as the message, and with
//! whole HTTP/2 requests of one's own.

pub use memtrove_testkit::server::{Body, Client, Setup, TestServer, fresh_id, fresh_name};
pub use serde_json::{Value, json};
pub use std::sync::LazyLock;
pub use std::time::{Duration, Instant};
pub use tonic::Code;

use bytes::{Buf as _, BufMut as _, Bytes};
use hyper::body::Body as _;
use hyper_util::rt::{TokioExecutor, TokioIo};
use std::pin::Pin;
use tokio::runtime::Runtime;
use tonic::codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};
use tonic::codegen::http::{HeaderMap, Request as HttpRequest};
use tonic::transport::{Channel, Endpoint};
use tonic::{Request, Status};

/// Longer than anything here takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// Connections outlive the test that opened them.
pub static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("a runtime")
});

/// The binary under test with its defaults (local mode), plus these lines of configuration.
pub fn server_with(toml: &str) -> TestServer {
    Setup::new(env!("CARGO_BIN_EXE_memtrove")).toml(toml).start()
}

/// The binary under test with its defaults: local mode.
pub fn local_server() -> TestServer {
    server_with("")
}

/// Waits for something that must happen.
#[track_caller]
pub fn soon<T>(work: impl Future<Output = T>) -> T {
    match RUNTIME.block_on(async { tokio::time::timeout(PATIENCE, work).await }) {
        Ok(done) => done,
        Err(_) => panic!("there was no answer within {PATIENCE:?}"),
    }
}

/// A connection to a server, made when it is first used.
pub fn channel(server: &TestServer) -> Channel {
    // Connecting, also later, is done by the runtime that this is made in.
    let _entered = RUNTIME.enter();
    Endpoint::from_shared(server.url().to_owned()).expect("an address").connect_lazy()
}

/// An id as calls have it: 16 bytes. What is no UUID stays the text it is.
pub fn bytes_of(id: &str) -> Bytes {
    match hex::decode(id.replace('-', "")) {
        Ok(bytes) if bytes.len() == 16 => Bytes::from(bytes),
        _ => Bytes::copy_from_slice(id.as_bytes()),
    }
}

/// An id as people write it.
#[track_caller]
pub fn text_of(id: &[u8]) -> String {
    assert_eq!(id.len(), 16, "answers have ids of 16 bytes, and this is {id:?}");
    let hex = hex::encode(id);
    [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]].join("-")
}

/// Who calls: what is sent along with every request.
#[derive(Debug, Clone, Default)]
pub struct Who {
    pub headers: Vec<(String, String)>,
}

impl Who {
    /// Nobody.
    pub fn anonymous() -> Self {
        Self::default()
    }

    /// In local mode this is all it takes to be somebody.
    pub fn user(name: &str) -> Self {
        Self::anonymous().with("authorization", &format!("Bearer {name}"))
    }

    /// Somebody that no other test knows.
    pub fn someone(role: &str) -> Self {
        Self::user(&fresh_name(role))
    }

    /// The same caller through this agent.
    pub fn with_key(&self, key: &str) -> Self {
        self.with("x-api-key", key)
    }

    /// The same caller with one header more.
    pub fn with(&self, name: &str, value: &str) -> Self {
        let mut who = self.clone();
        who.headers.push((name.to_owned(), value.to_owned()));
        who
    }

    /// A message from this caller.
    pub fn request<T>(&self, message: T) -> Request<T> {
        let mut request = Request::new(message);
        for (name, value) in &self.headers {
            let name: tonic::metadata::AsciiMetadataKey = name.parse().expect("the name of a header");
            request.metadata_mut().append(name, value.parse().expect("the value of a header"));
        }
        request
    }

    /// This caller over REST.
    pub fn rest(&self, server: &TestServer) -> Client {
        let client = server.anonymous();
        self.headers.iter().fold(client, |client, (name, value)| client.with_header(name, value))
    }
}

/// A call with these bytes as its message, whatever they are.
pub fn call_raw(channel: &Channel, who: &Who, path: &str, message: Vec<u8>) -> Result<Bytes, Status> {
    let mut client = tonic::client::Grpc::new(channel.clone());
    soon(async {
        client.ready().await.map_err(|error| Status::unavailable(error.to_string()))?;
        let path = path.parse().expect("a path");
        client.unary(who.request(message), path, AsTheyAre).await.map(tonic::Response::into_inner)
    })
}

/// Messages that nobody encodes.
#[derive(Debug, Clone, Copy, Default)]
pub struct AsTheyAre;

impl Codec for AsTheyAre {
    type Encode = Vec<u8>;
    type Decode = Bytes;
    type Encoder = Self;
    type Decoder = Self;

    fn encoder(&mut self) -> Self {
        Self
    }

    fn decoder(&mut self) -> Self {
        Self
    }
}

impl Encoder for AsTheyAre {
    type Item = Vec<u8>;
    type Error = Status;

    fn encode(&mut self, item: Vec<u8>, to: &mut EncodeBuf<'_>) -> Result<(), Status> {
        to.put_slice(&item);
        Ok(())
    }
}

impl Decoder for AsTheyAre {
    type Item = Bytes;
    type Error = Status;

    fn decode(&mut self, from: &mut DecodeBuf<'_>) -> Result<Option<Bytes>, Status> {
        Ok(Some(from.copy_to_bytes(from.remaining())))
    }
}

/// A message in its frame: not compressed, and so long.
pub fn framed(message: &[u8]) -> Vec<u8> {
    let mut frame = vec![0];
    frame.extend_from_slice(&u32::try_from(message.len()).expect("a short message").to_be_bytes());
    frame.extend_from_slice(message);
    frame
}

/// What an HTTP/2 request came to.
#[derive(Debug)]
pub struct Http2Answer {
    pub status: u16,
    pub headers: HeaderMap,
    pub body: Vec<u8>,
    pub trailers: HeaderMap,
}

impl Http2Answer {
    /// The status of the call, wherever it stands.
    #[track_caller]
    pub fn code(&self) -> Code {
        let said = self.trailers.get("grpc-status").or_else(|| self.headers.get("grpc-status"));
        let said = said.unwrap_or_else(|| panic!("an answer without grpc-status: {self:?}"));
        Code::from_bytes(said.as_bytes())
    }
}

/// An HTTP/2 request with exactly these headers and these bytes, on a connection of its own. No client of gRPC is in
/// between, so that nothing is enforced before it is sent.
pub fn http2(server: &TestServer, path: &str, headers: &[(&str, &str)], body: Vec<u8>) -> Http2Answer {
    http2_with(server, path, headers, reqwest::Body::from(body))
}

/// The same, from somebody who has more to say after these bytes and never does.
pub fn http2_and_silence(
    server: &TestServer,
    path: &str,
    headers: &[(&str, &str)],
    body: Vec<u8>,
) -> Http2Answer {
    let begun = tokio_stream::once(Ok::<_, std::io::Error>(body));
    let body = futures_util::StreamExt::chain(begun, futures_util::stream::pending());
    http2_with(server, path, headers, reqwest::Body::wrap_stream(body))
}

fn http2_with(server: &TestServer, path: &str, headers: &[(&str, &str)], body: reqwest::Body) -> Http2Answer {
    let address = server.url().trim_start_matches("http://").to_owned();
    soon(async move {
        let stream = tokio::net::TcpStream::connect(&address).await.expect("a connection");
        let (mut sender, connection) =
            hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream))
                .await
                .expect("HTTP/2");
        // It goes on after the answer, for as long as there is something to send.
        tokio::spawn(connection);
        let mut request = HttpRequest::post(format!("http://{address}{path}"));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(body).expect("a request");
        let answer = sender.send_request(request).await.expect("an answer");
        let (head, mut incoming) = answer.into_parts();
        let (mut body, mut trailers) = (Vec::new(), HeaderMap::new());
        while let Some(frame) = std::future::poll_fn(|cx| Pin::new(&mut incoming).poll_frame(cx)).await {
            match frame.expect("a frame").into_data() {
                Ok(data) => body.extend_from_slice(&data),
                Err(frame) => trailers.extend(frame.into_trailers().unwrap_or_default()),
            }
        }
        Http2Answer { status: head.status.as_u16(), headers: head.headers, body, trailers }
    })
}
