//! A server that makes embeddings in OpenAI's protocol, as well or as badly as a test wants.

use crate::support::*;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

/// What the server answers a request, counted from nought since the last change of mood.
type Mood = Box<dyn Fn(usize, &Value) -> Reply + Send>;

/// A status, a header if any, and a body.
pub struct Reply(pub u16, pub Option<(&'static str, &'static str)>, pub Value);

/// The right answer: three dimensions, from the numbers of vowels, of other letters, and one.
pub fn good(request: &Value) -> Reply {
    let vector = |text: &Value| {
        let text = text.as_str().unwrap_or_default();
        let vowels = text.chars().filter(|c| "aeiou".contains(*c)).count() as f64;
        let others = text.chars().filter(|c| c.is_alphabetic()).count() as f64 - vowels;
        let norm = (vowels * vowels + others * others + 1.0).sqrt();
        [vowels / norm, others / norm, 1.0 / norm]
    };
    let input = list(&request["input"]);
    let data: Vec<Value> = input
        .iter()
        .enumerate()
        .map(|(index, text)| json!({"index": index, "embedding": vector(text)}))
        .collect();
    Reply(200, None, json!({"data": data}))
}

/// The server.
pub struct Embedder {
    url: String,
    mood: Arc<Mutex<(Mood, Vec<Value>)>>,
}

impl Embedder {
    pub fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = format!("http://{}/v1", listener.local_addr().expect("its address"));
        let mood: Arc<Mutex<(Mood, Vec<Value>)>> =
            Arc::new(Mutex::new((Box::new(|_, request| good(request)), Vec::new())));
        let shared = mood.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let shared = shared.clone();
                std::thread::spawn(move || answer(stream, &shared));
            }
        });
        Self { url, mood }
    }

    /// From now on it answers so; the requests before are forgotten.
    pub fn becomes(&self, mood: impl Fn(usize, &Value) -> Reply + Send + 'static) {
        *self.mood.lock().unwrap() = (Box::new(mood), Vec::new());
    }

    /// The requests since the last change of mood.
    pub fn requests(&self) -> Vec<Value> {
        self.mood.lock().unwrap().1.clone()
    }

    /// A memtrove that uses it, with these further lines of configuration.
    pub fn used_by(&self, toml: &str) -> TestServer {
        server_with(&format!(
            "[embedding]\nprovider = \"openai\"\n[embedding.openai]\nbase_url = \"{}\"\nmodel = \"tiny\"\ndimensions = 3\n\
             api_key = \"sk-secret\"\ntimeout = \"2s\"\n[memories.retry]\ninitial_delay = \"5ms\"\nmax_delay = \"20ms\"\n{toml}",
            self.url
        ))
    }
}

/// Answers the requests of one connection.
fn answer(stream: TcpStream, mood: &Mutex<(Mood, Vec<Value>)>) {
    let mut reader = BufReader::new(stream);
    loop {
        let (mut length, mut line, mut is_ours) = (0, String::new(), false);
        loop {
            line.clear();
            if reader.read_line(&mut line).unwrap_or_default() == 0 {
                return;
            }
            let lower = line.trim().to_lowercase();
            is_ours |= lower == "authorization: bearer sk-secret";
            if let Some(value) = lower.strip_prefix("content-length:") {
                length = value.trim().parse().unwrap_or_default();
            }
            if lower.is_empty() {
                break;
            }
        }
        let mut body = vec![0; length];
        if reader.read_exact(&mut body).is_err() {
            return;
        }
        let request: Value = serde_json::from_slice(&body).unwrap_or_default();
        let Reply(status, header, body) = {
            let mut mood = mood.lock().unwrap();
            mood.1.push(request.clone());
            if is_ours { (mood.0)(mood.1.len() - 1, &request) } else { Reply(401, None, json!({})) }
        };
        let header = header.map(|(name, value)| format!("{name}: {value}\r\n")).unwrap_or_default();
        let body = body.to_string();
        let head = format!(
            "HTTP/1.1 {status} X\r\ncontent-type: application/json\r\n{header}content-length: {}\r\n\r\n",
            body.len()
        );
        if reader.get_mut().write_all((head + &body).as_bytes()).is_err() {
            return;
        }
    }
}
