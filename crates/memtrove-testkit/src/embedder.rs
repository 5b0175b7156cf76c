//! A server that speaks OpenAI's protocol and makes vectors of words: texts with words in common are similar.

use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, AtomicUsize, Ordering};

/// How long its vectors are.
pub const DIMENSIONS: usize = 64;

/// The server; it ends with the process.
pub struct Embedder {
    /// What `/embeddings` is appended to.
    pub base_url: String,
    state: Arc<State>,
}

#[derive(Default)]
struct State {
    /// What it answers instead of vectors; 0 for nothing.
    refusal: AtomicU16,
    texts: AtomicUsize,
}

impl Embedder {
    /// Starts on a port of its own.
    ///
    /// # Panics
    /// When there is no port.
    #[allow(clippy::expect_used, reason = "a test fails by panicking")]
    pub fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let base_url = format!("http://{}/v1", listener.local_addr().expect("a bound address"));
        let state = Arc::new(State::default());
        let shared = state.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let state = shared.clone();
                // A connection that breaks is the client's to notice.
                std::thread::spawn(move || drop(serve(&stream, &state)));
            }
        });
        Self { base_url, state }
    }

    /// Answers this status from now on; `None` makes vectors again.
    pub fn refuse(&self, status: Option<u16>) {
        self.state.refusal.store(status.unwrap_or_default(), Ordering::SeqCst);
    }

    /// How many texts it has embedded.
    pub fn texts(&self) -> usize {
        self.state.texts.load(Ordering::SeqCst)
    }
}

fn serve(stream: &TcpStream, state: &State) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream);
    loop {
        let (mut line, mut length) = (String::new(), 0);
        while reader.read_line(&mut line)? > 0 && line.trim() != "" {
            if let Some((_, value)) = line.to_ascii_lowercase().split_once("content-length:") {
                length = value.trim().parse().unwrap_or_default();
            }
            line.clear();
        }
        if line.is_empty() {
            return Ok(());
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body)?;
        let (status, answer) = answer(&body, state);
        let answer = answer.to_string();
        let mut stream = stream;
        write!(
            stream,
            "HTTP/1.1 {status} X\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{answer}",
            answer.len()
        )?;
    }
}

/// A text with the word "poison" is refused for good.
fn answer(body: &[u8], state: &State) -> (u16, Value) {
    let refusal = state.refusal.load(Ordering::SeqCst);
    let request: Value = serde_json::from_slice(body).unwrap_or_default();
    let texts: Vec<&str> = match &request["input"] {
        Value::String(text) => vec![text.as_str()],
        input => input.as_array().into_iter().flatten().filter_map(Value::as_str).collect(),
    };
    if refusal != 0 {
        return (refusal, json!({"error": {"message": "no"}}));
    }
    if texts.iter().any(|text| text.contains("poison")) {
        return (400, json!({"error": {"message": "not this text"}}));
    }
    state.texts.fetch_add(texts.len(), Ordering::SeqCst);
    let data: Vec<Value> = (0..)
        .zip(texts)
        .map(|(index, text): (usize, &str)| json!({"index": index, "object": "embedding", "embedding": vector(text)}))
        .collect();
    (200, json!({"object": "list", "data": data, "model": request["model"], "usage": {}}))
}

fn vector(text: &str) -> Vec<f32> {
    let mut vector = vec![0.0; DIMENSIONS];
    for word in text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()) {
        let hash =
            word.to_lowercase().bytes().fold(7usize, |hash, byte| hash.wrapping_mul(31) + usize::from(byte));
        vector[hash % DIMENSIONS] += 1.0;
    }
    vector
}
