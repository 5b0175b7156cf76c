//! A server that answers by a script, and the few sentences that nearly every test begins with.
//!
//! It is written by hand because no framework lets a test end a connection in the middle of an answer.

pub use memtrove_client::{CallOptions, Client, ClientBuilder, Error, FilePath, RetryPolicy, Scope};
pub use serde_json::json;
pub use std::time::{Duration, Instant};

use std::collections::VecDeque;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

/// What becomes of one request.
#[derive(Debug, Clone)]
pub enum Act {
    /// An answer: status, headers, body.
    Answer(u16, Vec<(String, String)>, String),
    /// The connection ends without one.
    Drop,
    /// The answer breaks off after these bytes of its body.
    Break(Vec<(String, String)>, String),
    /// The answer stops after these bytes of its body, and nothing says so.
    Hang(Vec<(String, String)>, String),
    /// The answer repeats these bytes for as long as somebody reads them.
    Forever(Vec<(String, String)>, String),
    /// No answer comes.
    Stall,
}

/// An answer with a JSON body.
pub fn answer(status: u16, body: serde_json::Value) -> Act {
    Act::Answer(status, vec![("content-type".into(), "application/json".into())], body.to_string())
}

/// An answer whose body is this text.
pub fn text(status: u16, body: &str) -> Act {
    Act::Answer(status, vec![], body.into())
}

/// The same with one header more.
pub fn with(act: Act, name: &str, value: &str) -> Act {
    let Act::Answer(status, mut headers, body) = act else { panic!("no answer: {act:?}") };
    headers.push((name.into(), value.into()));
    Act::Answer(status, headers, body)
}

/// A stream of events that breaks off behind them.
pub fn events(text: &str) -> Act {
    Act::Break(vec![("content-type".into(), "text/event-stream".into())], text.into())
}

/// A stream of events that is never heard of again behind them.
pub fn silence_after(text: &str) -> Act {
    Act::Hang(vec![("content-type".into(), "text/event-stream".into())], text.into())
}

/// A stream of events that repeats this text for as long as somebody reads it.
pub fn forever(text: &str) -> Act {
    Act::Forever(vec![("content-type".into(), "text/event-stream".into())], text.into())
}

/// A request as it arrived.
#[derive(Debug, Clone)]
pub struct Seen {
    pub line: String,
    pub headers: Vec<(String, String)>,
    pub body: String,
}

impl Seen {
    /// A header; empty when absent.
    pub fn header(&self, name: &str) -> &str {
        let found = self.headers.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str()).unwrap_or_default()
    }
}

/// The server. Once its script is over, it says so with a status that nothing expects.
#[derive(Clone)]
pub struct Stage {
    url: String,
    script: Arc<Mutex<VecDeque<Act>>>,
    seen: Arc<Mutex<Vec<Seen>>>,
}

impl Stage {
    pub fn playing(script: impl IntoIterator<Item = Act>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let stage = Self {
            url: format!("http://{}", listener.local_addr().unwrap()),
            script: Arc::new(Mutex::new(script.into_iter().collect())),
            seen: Arc::default(),
        };
        let playing = stage.clone();
        std::thread::spawn(move || {
            for connection in listener.incoming() {
                let (playing, connection) = (playing.clone(), connection.unwrap());
                std::thread::spawn(move || playing.serve(connection));
            }
        });
        stage
    }

    pub fn url(&self) -> &str {
        &self.url
    }

    /// Every request so far.
    pub fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }

    /// How many there were.
    pub fn count(&self) -> usize {
        self.seen().len()
    }

    /// A client that does not wait long between attempts.
    pub fn builder(&self) -> ClientBuilder {
        self.plain_builder().http_client(http())
    }

    /// The same with the HTTP client that everybody has who brings none.
    pub fn plain_builder(&self) -> ClientBuilder {
        let quick = Duration::from_millis(1);
        let retry = RetryPolicy { max_retries: 3, base_delay: quick, max_delay: quick };
        Client::builder().base_url(self.url()).retry(retry)
    }

    pub fn client(&self) -> Client {
        self.builder().build().unwrap()
    }

    fn serve(&self, connection: TcpStream) {
        let mut reader = BufReader::new(connection.try_clone().unwrap());
        let Some(request) = read(&mut reader) else { return };
        let act = self.script.lock().unwrap().pop_front();
        self.seen.lock().unwrap().push(request);
        play(connection, act.unwrap_or(Act::Answer(599, vec![], "the script is over".into())));
    }
}

/// Not through a proxy that the machine may have, and as the client's own otherwise: without redirects.
fn http() -> reqwest::Client {
    reqwest::Client::builder().no_proxy().redirect(reqwest::redirect::Policy::none()).build().unwrap()
}

fn read(reader: &mut BufReader<TcpStream>) -> Option<Seen> {
    let mut next = || {
        let mut line = String::new();
        reader.read_line(&mut line).ok().filter(|read| *read > 0).map(|_| line.trim_end().to_owned())
    };
    let line = next()?;
    let mut headers = Vec::new();
    while let Some((name, value)) = next()?.split_once(':') {
        headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
    let length = headers.iter().find(|(name, _)| name == "content-length");
    let mut body = vec![0; length.map_or(0, |(_, length)| length.parse().unwrap())];
    reader.read_exact(&mut body).ok()?;
    Some(Seen { line, headers, body: String::from_utf8(body).unwrap() })
}

fn play(mut connection: TcpStream, act: Act) {
    let head = |status: u16, headers: &[(String, String)], length: usize| {
        let lines: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        format!("HTTP/1.1 {status} \r\n{lines}content-length: {length}\r\nconnection: close\r\n\r\n")
    };
    let waits = matches!(act, Act::Hang(..) | Act::Stall);
    let sent = match act {
        Act::Answer(status @ (204 | 304), _, _) => format!("HTTP/1.1 {status} \r\nconnection: close\r\n\r\n"),
        Act::Answer(status, headers, body) => head(status, &headers, body.len()) + &body,
        Act::Break(headers, body) | Act::Hang(headers, body) => {
            head(200, &headers, body.len() + 1000) + &body
        }
        Act::Forever(headers, body) => {
            let _ = connection.write_all(head(200, &headers, usize::MAX >> 1).as_bytes());
            while connection.write_all(body.as_bytes()).is_ok() {}
            return;
        }
        Act::Drop => return,
        Act::Stall => String::new(),
    };
    let _ = connection.write_all(sent.as_bytes());
    if waits {
        // Until the client gives up.
        let _ = connection.read(&mut [0]);
    }
}

pub fn alice() -> Scope {
    Scope::new("acme", "alice")
}

pub fn path(text: &str) -> FilePath {
    text.parse().unwrap()
}

/// A file at this version, as it is sent.
pub fn file(etag: &str) -> Act {
    let document = json!({"doc_id": "d", "schema_id": "s", "schema_version": "1", "content": {"text": etag}});
    answer(200, json!({"etag": etag, "document": document}))
}

/// A refusal in the shape that files have.
pub fn refusal(status: u16, code: &str) -> Act {
    answer(status, json!({"error": {"code": code, "message": "no", "request_id": "r", "details": {}}}))
}
