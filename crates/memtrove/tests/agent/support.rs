//! The few sentences that nearly every test begins with.

pub use memtrove_agent::{AgentMemory, Error, Scope};
pub use memtrove_testkit::server::fresh_name;
pub use serde_json::{Value, json};

use memtrove_client::{Client, ClientBuilder, RetryPolicy};
use memtrove_testkit::server::TestServer;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, LazyLock, Mutex};

/// Started on a thread of its own, because starting blocks.
static SERVER: LazyLock<TestServer> = LazyLock::new(|| {
    let starting = std::thread::spawn(|| TestServer::start(env!("CARGO_BIN_EXE_memtrove")));
    starting.join().expect("the server starts")
});

/// A client of the server under test that is still to be built.
pub fn client() -> ClientBuilder {
    Client::builder().base_url(SERVER.url()).api_key("agent-a").service_id("tests")
}

/// A memory on the server under test.
pub fn memory() -> AgentMemory {
    AgentMemory::new(client().build().unwrap())
}

/// A user of a tenant that no other test knows.
pub fn someone() -> Scope {
    Scope::new(fresh_name("tenant"), fresh_name("user"))
}

/// The requests that a memory sent: method and the last part of the address.
#[derive(Debug, Clone, Default)]
pub struct Sent(Arc<Mutex<Vec<String>>>);

impl Sent {
    /// What was sent since the last time.
    pub fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

/// A memory whose requests can be seen.
pub fn watched() -> (AgentMemory, Sent) {
    let sent = Sent::default();
    let seen = sent.clone();
    let client = client().on_request(move |request| {
        let last = request.url().path().rsplit('/').next().unwrap_or_default().to_owned();
        seen.0.lock().unwrap().push(format!("{} {last}", request.method()));
    });
    (AgentMemory::new(client.build().unwrap()), sent)
}

/// A memory that is interrupted: so many times, right before it changes a file, `interrupt` runs to its end.
pub fn interrupted(
    times: usize,
    interrupt: impl Fn(tokio::runtime::Runtime) + Send + Sync + 'static,
) -> AgentMemory {
    let left = Mutex::new(times);
    let interrupt = Arc::new(interrupt);
    let client = client().on_request(move |request| {
        if !matches!(request.method().as_str(), "PUT" | "PATCH") {
            return;
        }
        let mut left = left.lock().unwrap();
        if *left == 0 {
            return;
        }
        *left -= 1;
        // On a thread and a runtime of its own: whoever is interrupted waits without doing anything else.
        let interrupt = interrupt.clone();
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            interrupt(runtime);
        });
        thread.join().unwrap();
    });
    AgentMemory::new(client.build().unwrap())
}

/// A memory whose n-th request from now on, counted from 1, never reaches the service.
pub fn cut_off_at(n: usize) -> AgentMemory {
    let left = Arc::new(Mutex::new(n));
    let client =
        client().retry(RetryPolicy { max_retries: 0, ..RetryPolicy::default() }).header_provider(move || {
            let left = left.clone();
            async move {
                let mut left = left.lock().unwrap();
                *left = left.wrapping_sub(1);
                if *left == 0 { Err("the connection is gone".into()) } else { Ok(vec![]) }
            }
        });
    AgentMemory::new(client.build().unwrap())
}

/// What becomes of a request on its way to the service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// It arrives and is answered.
    Answered,
    /// It arrives; instead of the answer comes one of a gateway that lost it.
    BadGateway,
    /// It does not arrive, and a gateway says so.
    Unavailable,
    /// It arrives; the connection ends without an answer.
    Lost,
    /// It does not arrive; the connection ends.
    Dropped,
    /// It arrives, and nothing ever comes back.
    Silent,
}

/// A client behind a gateway that decides about each request: by its first line, and its body in the next.
pub fn behind_a_gateway(decide: impl Fn(&str) -> Fate + Send + Sync + 'static) -> ClientBuilder {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let decide = Arc::new(decide);
    std::thread::spawn(move || {
        for caller in listener.incoming() {
            let (caller, decide) = (caller.unwrap(), decide.clone());
            std::thread::spawn(move || carry(caller, &*decide));
        }
    });
    client().base_url(url)
}

/// Carries one request.
fn carry(mut caller: TcpStream, decide: &dyn Fn(&str) -> Fate) -> Option<()> {
    let mut reader = BufReader::new(caller.try_clone().unwrap());
    let mut next = || {
        let mut line = String::new();
        reader.read_line(&mut line).ok().filter(|read| *read > 2).map(|_| line)
    };
    let first = next()?;
    let headers: Vec<String> = std::iter::from_fn(next).collect();
    let length = headers
        .iter()
        .find_map(|line| line.to_ascii_lowercase().strip_prefix("content-length:")?.trim().parse().ok());
    let mut body = vec![0; length.unwrap_or(0)];
    reader.read_exact(&mut body).ok()?;
    let fate = decide(&format!("{first}{}", String::from_utf8_lossy(&body)));

    let mut answer = Vec::new();
    if !matches!(fate, Fate::Unavailable | Fate::Dropped) {
        let mut server = TcpStream::connect(SERVER.url().strip_prefix("http://")?).ok()?;
        let head = format!("{first}{}connection: close\r\n\r\n", headers.concat());
        server.write_all(&[head.as_bytes(), &body].concat()).ok()?;
        server.read_to_end(&mut answer).ok()?;
    }
    let gateway =
        |status: &str| format!("HTTP/1.1 {status}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
    match fate {
        Fate::Answered => {}
        Fate::BadGateway => answer = gateway("502 Bad Gateway").into(),
        Fate::Unavailable => answer = gateway("503 Service Unavailable").into(),
        Fate::Lost | Fate::Dropped => return None,
        // Until the caller gives up.
        Fate::Silent => return caller.read(&mut [0]).ok().map(drop),
    }
    caller.write_all(&answer).ok()
}

/// The code of a refusal of the service.
#[track_caller]
pub fn refused<T: std::fmt::Debug>(outcome: Result<T, Error>) -> String {
    match outcome {
        Err(Error::Api(error)) => error.code,
        other => panic!("the service did not refuse it: {other:?}"),
    }
}

/// What was wrong with a call that was not even sent.
#[track_caller]
pub fn invalid<T: std::fmt::Debug>(outcome: Result<T, Error>) -> String {
    match outcome {
        Err(Error::InvalidInput(message)) => message,
        other => panic!("it was not refused as invalid: {other:?}"),
    }
}
