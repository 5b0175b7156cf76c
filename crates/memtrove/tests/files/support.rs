//! The few sentences that nearly every test begins with.

pub use memtrove_testkit::server::{Answer, Body, Client, Setup, TestServer, fresh_id, fresh_name};
pub use memtrove_testkit::steps::{Dice, assert_timestamp, at_once, spread};
pub use serde_json::{Value, json};

use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use serde::Deserialize;
use serde_json::value::RawValue;
use std::collections::BTreeSet;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// The agent that acts for a scope unless a test says otherwise.
pub const AGENT: &str = "agent-a";

/// The binary under test with its defaults (local mode), plus these lines of configuration.
pub fn server_with(toml: &str) -> TestServer {
    Setup::new(env!("CARGO_BIN_EXE_memtrove")).toml(toml).start()
}

/// The binary under test with its defaults: local mode.
pub fn local_server() -> TestServer {
    server_with("")
}

/// The binary under test in local mode, with content encrypted at rest.
pub fn encrypted_server() -> TestServer {
    server_with("[encryption.dek]\nkey = \"bWVtbG9vbSB0ZXN0IGtleSB3aXRoIDMyIGJ5dGVzIS4=\"\n")
}

/// An envelope with this content and nothing that a caller may leave out.
pub fn envelope(content: Value) -> Value {
    json!({"doc_id": "doc-1", "schema_id": "notes", "schema_version": "1.0.0", "content": content})
}

/// An envelope whose content is this text.
pub fn note(text: &str) -> Value {
    envelope(json!({"text": text}))
}

/// One user of one tenant, as one caller sees it.
#[derive(Debug, Clone)]
pub struct Scope {
    pub tenant: String,
    pub user: String,
    pub client: Client,
    url: String,
}

impl Scope {
    /// A tenant and a user that no other test knows, seen by [`AGENT`].
    #[track_caller]
    pub fn fresh(server: &TestServer) -> Self {
        Self::of(server, &fresh_name("tenant"), &fresh_name("user"))
    }

    /// This user of this tenant, seen by [`AGENT`].
    #[track_caller]
    pub fn of(server: &TestServer, tenant: &str, user: &str) -> Self {
        Self {
            tenant: tenant.to_owned(),
            user: user.to_owned(),
            client: server.anonymous().with_key(AGENT),
            url: server.url().to_owned(),
        }
    }

    /// The same scope, seen by somebody else.
    pub fn seen_by(&self, client: &Client) -> Self {
        Self { client: client.clone(), ..self.clone() }
    }

    /// The same scope and caller, with this header set on every request.
    pub fn with_header(&self, name: &str, value: &str) -> Self {
        self.seen_by(&self.client.with_header(name, value))
    }

    /// The address of something in this scope: `scope.at("/events")`.
    pub fn at(&self, rest: &str) -> String {
        format!("/v1/tenants/{}/users/{}{rest}", self.tenant, self.user)
    }

    /// The address of a file, whose path must already be as it goes over the wire.
    pub fn file(&self, path: &str) -> String {
        self.at(&format!("/files/{path}"))
    }

    /// Reads a file.
    #[track_caller]
    pub fn get(&self, path: &str) -> Answer {
        self.client.get(&self.file(path))
    }

    /// Writes a file.
    #[track_caller]
    pub fn put(&self, path: &str, if_match: &str, document: Value) -> Answer {
        self.put_body(path, if_match, Body::Json(json!({"document": document})))
    }

    /// Writes a file, with a request of one's own making.
    #[track_caller]
    pub fn put_body(&self, path: &str, if_match: &str, body: Body) -> Answer {
        self.client.with_header("if-match", if_match).send("PUT", &self.file(path), body)
    }

    /// Patches a file.
    #[track_caller]
    pub fn patch(&self, path: &str, if_match: &str, body: Value) -> Answer {
        self.patch_body(path, if_match, Body::Json(body))
    }

    /// Patches a file, with a request of one's own making.
    #[track_caller]
    pub fn patch_body(&self, path: &str, if_match: &str, body: Body) -> Answer {
        self.client.with_header("if-match", if_match).send("PATCH", &self.file(path), body)
    }

    /// Makes a new file with this content.
    #[track_caller]
    pub fn create(&self, path: &str, content: Value) -> Stored {
        self.put(path, "*", envelope(content)).stored()
    }

    /// Deletes a file.
    #[track_caller]
    pub fn delete(&self, path: &str, if_match: &str) -> Answer {
        self.delete_body(if_match, json!({"path": path}))
    }

    /// Deletes a file, with a request of one's own making.
    #[track_caller]
    pub fn delete_body(&self, if_match: &str, body: Value) -> Answer {
        self.with_header("if-match", if_match).post("/files:delete", body)
    }

    /// Gives a file another path.
    #[track_caller]
    pub fn rename(&self, from: &str, to: &str, if_match: &str) -> Answer {
        self.rename_body(if_match, json!({"from": from, "to": to}))
    }

    /// Gives a file another path, with a request of one's own making.
    #[track_caller]
    pub fn rename_body(&self, if_match: &str, body: Value) -> Answer {
        self.with_header("if-match", if_match).post("/files:move", body)
    }

    /// The current version of a file.
    #[track_caller]
    pub fn read(&self, path: &str) -> Stored {
        self.get(path).stored()
    }

    /// A list of files; `query` comes after the `?`.
    #[track_caller]
    pub fn list(&self, query: &str) -> Answer {
        self.client.get(&self.at(&format!("/files:list?{query}")))
    }

    /// The paths of a list.
    #[track_caller]
    pub fn paths(&self, query: &str) -> Vec<String> {
        let answer = self.list(query).expect(200);
        let files =
            answer.json["files"].as_array().unwrap_or_else(|| panic!("no files: {}", answer.describe()));
        files.iter().map(|file| file["path"].as_str().unwrap_or_default().to_owned()).collect()
    }

    /// POST to something in this scope: `scope.post("/events", body)`.
    #[track_caller]
    pub fn post(&self, rest: &str, body: Value) -> Answer {
        self.client.post(&self.at(rest), body)
    }

    /// The whole audit trail, read by the local mode's admin.
    #[track_caller]
    pub fn audit(&self) -> Vec<Value> {
        let admin = self.client.with_header("authorization", "Bearer admin");
        let mut all: Vec<Value> = Vec::new();
        loop {
            let after = all.last().map(|record| format!("&after={}", record["sequence"])).unwrap_or_default();
            let answer = admin.get(&self.at(&format!("/audit?limit=500{after}"))).expect(200);
            let page = answer.json["records"].as_array().cloned();
            let page = page.unwrap_or_else(|| panic!("no records: {}", answer.describe()));
            if page.is_empty() {
                return all;
            }
            all.extend(page);
        }
    }

    /// The version that a change led to, from the audit trail alone.
    #[track_caller]
    pub fn reconstruct(&self, path: &str, change: &str) -> Answer {
        let admin = self.client.with_header("authorization", "Bearer admin");
        admin.post(&self.at("/audit:reconstruct"), json!({"path": path, "change_id": change}))
    }

    /// A request whose target goes out byte for byte: HTTP clients tidy up `..`, `//` and `%2e` before they send.
    #[track_caller]
    pub fn raw(&self, method: &str, target: &str, headers: &[(&str, &str)], body: &str) -> Answer {
        let address = self.url.strip_prefix("http://").expect("a plain address");
        let mut request = format!("{method} {target} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n");
        request.push_str(&format!("x-api-key: {AGENT}\r\ncontent-length: {}\r\n", body.len()));
        if !body.is_empty() {
            request.push_str("content-type: application/json\r\n");
        }
        for (name, value) in headers {
            request.push_str(&format!("{name}: {value}\r\n"));
        }
        request.push_str("\r\n");
        request.push_str(body);

        let mut stream = TcpStream::connect(address).expect("a connection");
        stream.set_read_timeout(Some(Duration::from_secs(60))).expect("a timeout");
        stream.write_all(request.as_bytes()).expect("the request goes out");
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).unwrap_or_else(|e| panic!("{method} {target} got no answer: {e}"));
        parse(&format!("{method} {target}"), &String::from_utf8_lossy(&bytes))
    }
}

/// What the server wrote on a connection that it then closed.
#[track_caller]
fn parse(asked: &str, response: &str) -> Answer {
    let (head, text) = response.split_once("\r\n\r\n").unwrap_or_else(|| panic!("{asked} got {response:?}"));
    let mut lines = head.lines();
    let status = lines.next().and_then(|line| line.split(' ').nth(1)).and_then(|status| status.parse().ok());
    let mut headers = HeaderMap::new();
    for (name, value) in lines.filter_map(|line| line.split_once(':')) {
        let name = HeaderName::from_bytes(name.as_bytes()).expect("a header name");
        headers.append(name, HeaderValue::from_str(value.trim()).expect("a header value"));
    }
    assert!(!headers.contains_key("transfer-encoding"), "{asked} was answered in chunks");
    Answer {
        asked: asked.to_owned(),
        status: status.unwrap_or_else(|| panic!("{asked} got {response:?}")),
        headers,
        json: serde_json::from_str(text).unwrap_or(Value::Null),
        text: text.to_owned(),
    }
}

/// A version of a file, as an answer tells it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stored {
    pub etag: String,
    /// The document letter by letter, because numbers and the order of members must survive.
    pub text: String,
}

impl Stored {
    /// The envelope.
    #[track_caller]
    pub fn document(&self) -> Value {
        serde_json::from_str(&self.text).expect("a document")
    }

    /// The envelope's content.
    #[track_caller]
    pub fn content(&self) -> Value {
        self.document()["content"].clone()
    }
}

/// What the answers of the files surface have in common.
pub trait FilesAnswer {
    /// Requires 200 with a version of a file, and its ETag in the header too.
    #[track_caller]
    fn stored(self) -> Stored;

    /// Requires 200 with a file that was moved to this path, and its ETag in the header too.
    #[track_caller]
    fn moved_to(self, path: &str) -> Stored;

    /// Requires the error envelope, to the letter, with this status and code.
    #[track_caller]
    fn refused(self, status: u16, code: &str) -> Answer;

    /// A text among the details of an error.
    fn detail(&self, name: &str) -> Option<&str>;
}

impl FilesAnswer for Answer {
    #[track_caller]
    fn stored(self) -> Stored {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Version {
            etag: String,
            document: Box<RawValue>,
        }
        let answer = self.expect(200);
        let version: Version = serde_json::from_str(&answer.text)
            .unwrap_or_else(|e| panic!("not an etag and a document ({e}): {}", answer.describe()));
        assert_eq!(answer.header("etag"), version.etag, "{}", answer.describe());
        assert!(answer.header("content-type").starts_with("application/json"), "{:?}", answer.headers);
        Stored { etag: version.etag, text: version.document.get().to_owned() }
    }

    #[track_caller]
    fn moved_to(self, path: &str) -> Stored {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Moved {
            path: String,
            etag: String,
            document: Box<RawValue>,
        }
        let answer = self.expect(200);
        let moved: Moved = serde_json::from_str(&answer.text)
            .unwrap_or_else(|e| panic!("not a path, an etag and a document ({e}): {}", answer.describe()));
        assert_eq!(moved.path, path, "{}", answer.describe());
        assert_eq!(answer.header("etag"), moved.etag, "{}", answer.describe());
        assert!(answer.header("content-type").starts_with("application/json"), "{:?}", answer.headers);
        Stored { etag: moved.etag, text: moved.document.get().to_owned() }
    }

    #[track_caller]
    fn refused(self, status: u16, code: &str) -> Answer {
        let answer = self.expect(status);
        let described = || answer.describe();
        assert_eq!(names(&answer.json), ["error"].into(), "{}", described());
        let error = &answer.json["error"];
        assert_eq!(names(error), ["code", "details", "message", "request_id"].into(), "{}", described());
        assert!(error["code"] == code, "expected code {code}, but {}", described());
        assert!(!error["message"].as_str().unwrap_or_default().trim().is_empty(), "{}", described());
        let details = error["details"].as_object().unwrap_or_else(|| panic!("no details: {}", described()));
        assert!(details.values().all(Value::is_string), "details are texts, but {}", described());
        let id = error["request_id"].as_str().unwrap_or_default();
        assert!(
            !id.is_empty() && answer.header("x-request-id") == id,
            "{:?} {}",
            answer.headers,
            described()
        );
        assert!(answer.header("content-type").starts_with("application/json"), "{:?}", answer.headers);
        for secret in ["memtrove-test-", ".rs:", "sqlite", "panicked", "serde"] {
            assert!(!answer.text.to_lowercase().contains(secret), "leaks {secret:?}: {}", described());
        }
        answer
    }

    fn detail(&self, name: &str) -> Option<&str> {
        self.json["error"]["details"][name].as_str()
    }
}

/// The names of an object's members.
pub fn names(object: &Value) -> BTreeSet<&str> {
    object.as_object().map(|members| members.keys().map(String::as_str).collect()).unwrap_or_default()
}

/// Events, and what ends the life of things.
impl Scope {
    /// The same scope, seen by the local mode's admin.
    pub fn as_admin(&self) -> Self {
        self.with_header("authorization", "Bearer admin")
    }

    /// A whole event of this scope, with these members instead of the usual ones.
    pub fn event(&self, id: &str, members: Value) -> Value {
        let mut event = json!({
            "event_id": id, "tenant_id": self.tenant, "user_id": self.user, "service_id": "assistant-a",
            "timestamp": "2026-02-15T00:00:00Z", "source_type": "chat", "digest": "short summary",
            "keywords": ["memory"], "project_ids": ["project-alpha"], "evidence": {"message_ids": ["m1"]},
        });
        for (name, value) in members.as_object().expect("members") {
            event[name] = value.clone();
        }
        event
    }

    /// Sends an event.
    #[track_caller]
    pub fn write_event(&self, event: Value) -> Answer {
        self.post("/events", json!({"event": event}))
    }

    /// Writes a whole event with these members instead of the usual ones.
    #[track_caller]
    pub fn tell(&self, id: &str, members: Value) {
        self.write_event(self.event(id, members)).expect(202);
    }

    /// The events that a search finds.
    #[track_caller]
    pub fn search(&self, body: Value) -> Vec<Value> {
        let answer = self.post("/events:search", body).expect(200);
        assert_eq!(names(&answer.json), ["results"].into(), "{}", answer.describe());
        answer.json["results"].as_array().unwrap_or_else(|| panic!("{}", answer.describe())).clone()
    }

    /// The ids of the events that a search finds, in its order.
    #[track_caller]
    pub fn found(&self, body: Value) -> Vec<String> {
        self.search(body).iter().map(|event| event["event_id"].as_str().expect("an id").to_owned()).collect()
    }

    /// Applies retention.
    #[track_caller]
    pub fn retain(&self, body: Value) -> Answer {
        self.post("/retention:apply", body)
    }

    /// Forgets the user.
    #[track_caller]
    pub fn forget(&self) -> Answer {
        self.client.delete(&self.at("/memory"))
    }
}

/// Repeats one thing on some threads for as long as another lasts.
pub fn meanwhile<T>(threads: usize, again: impl Fn(usize) + Sync, work: impl FnOnce() -> T) -> T {
    /// Ends the repetition also when the work fails.
    struct Done<'a>(&'a AtomicBool);
    impl Drop for Done<'_> {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Relaxed);
        }
    }
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let (done, again) = (&done, &again);
        for n in 0..threads {
            scope.spawn(move || {
                while !done.load(Ordering::Relaxed) {
                    again(n);
                }
            });
        }
        let _done = Done(done);
        work()
    })
}
