//! The `openai` provider against a server that answers as servers do: late, out of order, wrong, or not at all.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use axum::Router;
use axum::body::Bytes;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use memtrove_recall::embed::{
    ApiKey, EmbedError, EmbeddingConfig, Embeddings, OpenAiConfig, Provider, RetryConfig,
};
use serde_json::{Value, json};
use std::io::Write;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

const KEY: &str = "sk-very-secret";

/// A request as the server saw it.
#[derive(Clone)]
struct Seen {
    authorization: Option<String>,
    body: Value,
}

impl Seen {
    fn input(&self) -> Vec<&str> {
        self.body["input"].as_array().unwrap().iter().map(|text| text.as_str().unwrap()).collect()
    }
}

struct Server {
    url: String,
    seen: Arc<Mutex<Vec<Seen>>>,
}

impl Server {
    /// A server that answers its n-th request, counted from nought, by what `answer` makes of it.
    async fn start(answer: impl Fn(usize, &Seen) -> Response + Clone + Send + Sync + 'static) -> Self {
        let seen = Arc::<Mutex<Vec<Seen>>>::default();
        let log = seen.clone();
        let handler = async move |headers: HeaderMap, body: Bytes| {
            let authorization =
                headers.get(header::AUTHORIZATION).map(|value| value.to_str().unwrap().to_owned());
            let request = Seen { authorization, body: serde_json::from_slice(&body).unwrap() };
            let mut log = log.lock().unwrap();
            log.push(request.clone());
            answer(log.len() - 1, &request)
        };
        let router = Router::new().route("/v1/embeddings", post(handler));
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/v1", listener.local_addr().unwrap());
        tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self { url, seen }
    }

    fn requests(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }

    fn config(&self) -> OpenAiConfig {
        OpenAiConfig {
            api_key: Some(ApiKey::new(KEY)),
            dimensions: Some(2),
            timeout: Duration::from_millis(500),
            ..OpenAiConfig::new(&self.url, "small")
        }
    }

    fn embeddings(&self) -> Embeddings {
        embeddings(self.config())
    }
}

fn embeddings(config: OpenAiConfig) -> Embeddings {
    let retry = RetryConfig { initial_delay: Duration::from_millis(1), ..RetryConfig::default() };
    let provider = Provider::OpenAi(config);
    Embeddings::new(EmbeddingConfig { provider, retry, ..EmbeddingConfig::default() }).unwrap()
}

/// The vector that stands for a text: its length and one.
fn vector(text: &str) -> [f32; 2] {
    let length = text.len() as f32;
    let norm = length.hypot(1.0);
    [length / norm, 1.0 / norm]
}

/// The right answer.
fn good(request: &Seen) -> Value {
    let data: Vec<_> = request
        .input()
        .into_iter()
        .enumerate()
        .map(|(index, text)| json!({"object": "embedding", "index": index, "embedding": vector(text)}))
        .collect();
    json!({"object": "list", "model": "small", "data": data, "usage": {"total_tokens": 5}})
}

fn ok(body: &Value) -> Response {
    ([(header::CONTENT_TYPE, "application/json")], body.to_string()).into_response()
}

fn assert_near(found: &[f32], expected: &[f32]) {
    let near = found.len() == expected.len() && found.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-6);
    assert!(near, "{found:?} is not {expected:?}");
}

#[tokio::test]
async fn a_request_says_who_asks_for_what() {
    let server = Server::start(|_, request| ok(&good(request))).await;
    let document = server.embeddings().document("acme", "hello").await.unwrap();
    assert_near(&document.vector, &vector("hello"));
    assert_eq!(&*document.model, "openai:small:2");
    let [request] = &server.requests()[..] else { panic!() };
    assert_eq!(request.authorization.as_deref(), Some("Bearer sk-very-secret"));
    assert_eq!(request.body, json!({"model": "small", "input": ["hello"], "dimensions": 2}));
}

#[tokio::test]
async fn a_server_that_has_no_key_and_one_length_is_not_bothered_with_either() {
    let server = Server::start(|_, request| ok(&good(request))).await;
    let config = OpenAiConfig { api_key: None, send_dimensions: false, ..server.config() };
    embeddings(config).document("acme", "hello").await.unwrap();
    let [request] = &server.requests()[..] else { panic!() };
    assert_eq!(request.authorization, None);
    assert_eq!(request.body, json!({"model": "small", "input": ["hello"]}));
}

#[tokio::test]
async fn many_texts_are_few_requests() {
    let server = Server::start(|_, request| ok(&good(request))).await;
    let texts: Vec<_> = (1..=7).map(|length| "x".repeat(length)).collect();
    let texts: Vec<_> = texts.iter().map(String::as_str).collect();
    let documents =
        embeddings(OpenAiConfig { batch: 3, ..server.config() }).documents("acme", &texts).await.unwrap();
    let sizes: Vec<_> = server.requests().iter().map(|request| request.input().len()).collect();
    assert_eq!(sizes, [3, 3, 1]);
    for (document, text) in documents.iter().zip(texts) {
        assert_near(&document.vector, &vector(text));
    }
}

#[tokio::test]
async fn a_long_text_goes_out_in_parts() {
    let server = Server::start(|_, request| ok(&good(request))).await;
    let embeddings = embeddings(OpenAiConfig { max_input_chars: 8, ..server.config() });
    embeddings.document("acme", "one two three four").await.unwrap();
    assert_eq!(server.requests()[0].input(), ["one two", "three", "four"]);
}

#[tokio::test]
async fn vectors_are_matched_by_index_not_by_place() {
    let server = Server::start(|_, request| {
        let mut answer = good(request);
        answer["data"].as_array_mut().unwrap().reverse();
        ok(&answer)
    })
    .await;
    let documents = server.embeddings().documents("acme", &["a", "bb", "ccc"]).await.unwrap();
    for (document, text) in documents.iter().zip(["a", "bb", "ccc"]) {
        assert_near(&document.vector, &vector(text));
    }
}

#[tokio::test]
async fn an_answer_that_is_not_one_is_refused_and_not_asked_for_again() {
    let data = |items: Value| json!({ "data": items }).to_string();
    let wrong = [
        ("too few", data(json!([{"index": 0, "embedding": [1, 0]}]))),
        (
            "one index twice",
            data(json!([{"index": 0, "embedding": [1, 0]}, {"index": 0, "embedding": [1, 0]}])),
        ),
        (
            "an index from nowhere",
            data(json!([{"index": 0, "embedding": [1, 0]}, {"index": 7, "embedding": [1, 0]}])),
        ),
        ("too short", data(json!([{"index": 0, "embedding": [1]}, {"index": 1, "embedding": [1]}]))),
        ("no number", data(json!([{"index": 0, "embedding": [null, 1]}, {"index": 1, "embedding": [1, 1]}]))),
        (
            "too large for a vector",
            data(json!([{"index": 0, "embedding": [1e39, 1]}, {"index": 1, "embedding": [1, 1]}])),
        ),
        (
            "too large for anything",
            r#"{"data": [{"index": 0, "embedding": [1e999, 1]}, {"index": 1, "embedding": [1, 1]}]}"#
                .to_owned(),
        ),
        ("not JSON", "<html>".to_owned()),
        ("endless", " ".repeat(10_000_000)),
    ];
    for (name, answer) in wrong {
        let server = Server::start(move |_, _| answer.clone().into_response()).await;
        let embeddings = server.embeddings();
        let error = embeddings.documents("acme", &["a", "b"]).await.unwrap_err();
        assert!(matches!(error, EmbedError::Unusable(_)), "{name}: {error}");
        assert_eq!(server.requests().len(), 1, "{name}");
        assert!(embeddings.is_failing());
    }
}

#[tokio::test]
async fn a_server_that_is_asked_too_often_says_when_to_come_back() {
    let server = Server::start(|count, request| match count {
        0 => (StatusCode::TOO_MANY_REQUESTS, [(header::RETRY_AFTER, "1")]).into_response(),
        _ => ok(&good(request)),
    })
    .await;
    let started = Instant::now();
    server.embeddings().document("acme", "hello").await.unwrap();
    assert!(started.elapsed() >= Duration::from_secs(1));
    assert_eq!(server.requests().len(), 2);
}

#[tokio::test]
async fn nobody_waits_for_a_server_that_wants_to_be_asked_in_an_hour() {
    let server = Server::start(|_, _| {
        (StatusCode::TOO_MANY_REQUESTS, [(header::RETRY_AFTER, "3600")]).into_response()
    })
    .await;
    let error = server.embeddings().document("acme", "hello").await.unwrap_err();
    assert_eq!(error, EmbedError::RateLimited { retry_after: Some(Duration::from_secs(3600)) });
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test]
async fn a_server_that_fails_once_is_asked_again() {
    let server = Server::start(|count, request| match count {
        0 => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
        _ => ok(&good(request)),
    })
    .await;
    let embeddings = server.embeddings();
    embeddings.document("acme", "hello").await.unwrap();
    assert_eq!(server.requests().len(), 2);
    assert!(!embeddings.is_failing());
}

#[tokio::test]
async fn a_refusal_is_final() {
    for status in [StatusCode::BAD_REQUEST, StatusCode::UNAUTHORIZED, StatusCode::FOUND] {
        let server = Server::start(move |_, _| status.into_response()).await;
        let error = server.embeddings().document("acme", "hello").await.unwrap_err();
        assert!(matches!(error, EmbedError::Permanent(_)), "{error}");
        assert_eq!(server.requests().len(), 1);
    }
}

#[tokio::test]
async fn a_server_that_does_not_answer_is_given_up() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/v1", listener.local_addr().unwrap());
    let config = OpenAiConfig {
        dimensions: Some(2),
        timeout: Duration::from_millis(50),
        ..OpenAiConfig::new(url, "small")
    };
    let error = embeddings(config).document("acme", "hello").await.unwrap_err();
    assert_eq!(error.to_string(), "the embedding provider failed: it took too long to answer");
}

#[tokio::test]
async fn a_server_that_keeps_failing_is_left_alone() {
    let server = Server::start(|_, _| StatusCode::BAD_GATEWAY.into_response()).await;
    let embeddings = server.embeddings();
    // Three attempts, then two: the fifth failure is one too many.
    assert!(matches!(embeddings.document("acme", "a").await, Err(EmbedError::Transient { .. })));
    assert!(matches!(embeddings.document("acme", "b").await, Err(EmbedError::Unavailable { .. })));
    assert!(matches!(embeddings.document("acme", "c").await, Err(EmbedError::Unavailable { .. })));
    assert_eq!(server.requests().len(), 5);
}

/// Everything that is logged, at every level.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn neither_key_nor_text_is_told_to_anybody() {
    const TEXT: &str = "my deepest secret";
    let log = Log::default();
    let writer = log.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(tracing_subscriber::filter::LevelFilter::TRACE)
        .with_writer(move || writer.clone())
        .finish();
    let _logging = tracing::subscriber::set_default(subscriber);
    // A server that quotes what it was asked, in every way there is to fail.
    let echo = |request: &Seen| format!("{:?} {} {}", request.authorization, request.body, TEXT);
    let servers = [
        Server::start(move |_, request| (StatusCode::BAD_REQUEST, echo(request)).into_response()).await,
        Server::start(move |_, request| (StatusCode::BAD_GATEWAY, echo(request)).into_response()).await,
        Server::start(move |_, request| (StatusCode::TOO_MANY_REQUESTS, echo(request)).into_response()).await,
        Server::start(move |_, request| echo(request).into_response()).await,
        Server::start(move |_, request| ok(&json!({"data": echo(request)}))).await,
    ];
    let mut told = format!("{:?}", servers[0].config());
    for server in &servers {
        let error = server.embeddings().document("acme", TEXT).await.unwrap_err();
        told += &format!("{error} {error:?}");
    }
    let unreachable = OpenAiConfig {
        base_url: format!("http://user:{KEY}@127.0.0.1:1/v1?key={KEY}"),
        ..servers[0].config()
    };
    let error = embeddings(unreachable).document("acme", TEXT).await.unwrap_err();
    told += &format!("{error} {error:?}");
    told += &String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
    assert!(told.contains("an embedding is tried again"), "the log is listened to: {told}");
    for secret in [KEY, TEXT] {
        assert!(!told.contains(secret), "{told}");
    }
}
