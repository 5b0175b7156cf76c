//! The few sentences that nearly every test begins with.

pub use memtrove_testkit::server::{Answer, Body, Client, Setup, TestServer, assert_members};
pub use memtrove_testkit::server::{fresh_id, fresh_name};
pub use memtrove_testkit::steps::{at_once, until};
pub use serde_json::{Value, json};

use memtrove_testkit::stored::Stored;
use reqwest::header::HeaderMap;
use sha2::{Digest, Sha256};
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use tokio::runtime::Runtime;

pub const ATTACHMENTS: &str = "/v1/attachments";

/// One for the whole test process: connections outlive the test that opened them.
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

/// A user that no other test knows, in a tenant that no other test knows. Its key is needed to choose the tenant.
pub fn someone_in(server: &TestServer, role: &str, tenant: &str) -> Client {
    server.someone(role).with_key("gateway").in_tenant(tenant)
}

/// The local mode's admin, in this tenant.
pub fn admin_in(server: &TestServer, tenant: &str) -> Client {
    server.as_user("admin").with_key("gateway").in_tenant(tenant)
}

/// What `sha256` says of bytes.
pub fn digest(bytes: &[u8]) -> String {
    hex::encode(Sha256::digest(bytes))
}

/// So many bytes of every value, which differ from seed to seed.
pub fn noise(length: usize, seed: u64) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let step = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()
    };
    std::iter::repeat_with(step).flatten().take(length).collect()
}

// ---- forms

/// The media type of every form that [`Form`] makes.
pub const FORM: &str = "multipart/form-data; boundary=memtrove-test-boundary";

/// A form, byte by byte as a browser sends it.
#[derive(Debug, Clone, Default)]
pub struct Form(pub Vec<u8>);

impl Form {
    /// One more part: what its head says, line by line, and its bytes.
    pub fn part(mut self, head: &str, bytes: &[u8]) -> Self {
        self.0.extend_from_slice(b"--memtrove-test-boundary\r\n");
        self.0.extend_from_slice(head.as_bytes());
        self.0.extend_from_slice(b"\r\n\r\n");
        self.0.extend_from_slice(bytes);
        self.0.extend_from_slice(b"\r\n");
        self
    }

    /// The part `file`, with a name and a media type.
    pub fn file(self, filename: &str, content_type: &str, bytes: &[u8]) -> Self {
        let disposition = format!("Content-Disposition: form-data; name=\"file\"; filename=\"{filename}\"");
        self.part(&format!("{disposition}\r\nContent-Type: {content_type}"), bytes)
    }

    /// All of it, with its end.
    pub fn bytes(mut self) -> Vec<u8> {
        self.0.extend_from_slice(b"--memtrove-test-boundary--\r\n");
        self.0
    }

    /// As a body whose length is known.
    pub fn body(self) -> Body {
        Body::Raw { content_type: Some(FORM), bytes: self.bytes() }
    }

    /// As a body that comes in pieces, without a length in advance.
    pub fn chunked(self, piece: usize) -> Body {
        Body::Chunked { content_type: FORM, chunks: self.bytes().chunks(piece).map(<[u8]>::to_vec).collect() }
    }
}

/// Uploads a file; the whole answer.
#[track_caller]
pub fn try_upload(who: &Client, filename: &str, content_type: &str, bytes: &[u8]) -> Answer {
    who.send("POST", ATTACHMENTS, Form::default().file(filename, content_type, bytes).body())
}

/// Uploads a file; its id.
#[track_caller]
pub fn upload(who: &Client, filename: &str, content_type: &str, bytes: &[u8]) -> String {
    try_upload(who, filename, content_type, bytes).expect(201).id()
}

/// Where a file is.
pub fn at(id: &str) -> String {
    format!("{ATTACHMENTS}/{id}")
}

// ---- conversations

/// A new conversation with this title; its id.
#[track_caller]
pub fn start(owner: &Client, title: &str) -> String {
    owner.post("/v1/conversations", json!({"title": title})).expect(201).id()
}

/// A message with these attachments.
pub fn message(attachments: Value) -> Value {
    let content = json!([{"role": "USER", "text": "look", "attachments": attachments}]);
    json!({"channel": "history", "contentType": "history", "content": content})
}

/// Appends a message with these attachments; the whole answer.
#[track_caller]
pub fn try_say(who: &Client, conversation: &str, attachments: Value) -> Answer {
    who.post(&format!("/v1/conversations/{conversation}/entries"), message(attachments))
}

/// Appends a message that names this file; the id of what the entry refers to.
#[track_caller]
pub fn link(who: &Client, conversation: &str, attachment: &str) -> String {
    let answer = try_say(who, conversation, json!([{"attachmentId": attachment}])).expect(201);
    referred(&answer.json)[0].clone()
}

/// The ids of the files that an entry refers to.
#[track_caller]
pub fn referred(entry: &Value) -> Vec<String> {
    let attachments = entry["content"][0]["attachments"].as_array().expect("attachments");
    let id = |attachment: &Value| {
        let href = attachment["href"].as_str().unwrap_or_else(|| panic!("no href in {attachment}"));
        assert!(attachment.get("attachmentId").is_none(), "{attachment}");
        href.strip_prefix("/v1/attachments/").expect("the path of an attachment").to_owned()
    };
    attachments.iter().map(id).collect()
}

/// Lets somebody in at this level.
#[track_caller]
pub fn share(owner: &Client, conversation: &str, with: &Client, level: &str) {
    let body = json!({"userId": with.user(), "accessLevel": level});
    owner.post(&format!("/v1/conversations/{conversation}/memberships"), body).expect(201);
}

// ---- bytes

/// What came back, byte by byte.
#[derive(Debug)]
pub struct Download {
    pub status: u16,
    pub headers: HeaderMap,
    pub bytes: Vec<u8>,
}

impl Download {
    /// A header as text; empty when absent.
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
    }

    #[track_caller]
    pub fn expect(self, status: u16) -> Self {
        let shown = String::from_utf8_lossy(&self.bytes[..self.bytes.len().min(500)]).into_owned();
        assert_eq!(self.status, status, "{shown}");
        self
    }
}

static HTTP: LazyLock<reqwest::Client> = LazyLock::new(|| {
    let client = reqwest::Client::builder().no_proxy().redirect(reqwest::redirect::Policy::none());
    client.build().expect("an HTTP client")
});

/// Sends a request without a body to an address; what comes back, byte by byte.
#[track_caller]
pub fn raw(method: &str, url: &str, headers: &[(&str, &str)]) -> Download {
    let method = method.parse().expect("a method");
    let request = headers
        .iter()
        .fold(HTTP.request(method, url), |request, (name, value)| request.header(*name, *value));
    RUNTIME.block_on(async {
        let response = request.send().await.expect(url);
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        Download { status, headers, bytes: response.bytes().await.expect(url).to_vec() }
    })
}

/// Reads a path of the server as this user.
#[track_caller]
pub fn read(server: &TestServer, user: &Client, path: &str, headers: &[(&str, &str)]) -> Download {
    let authorization = format!("Bearer {}", user.user());
    let all = [&[("authorization", authorization.as_str())], headers].concat();
    raw("GET", &format!("{}{path}", server.url()), &all)
}

// ---- what is left

/// The files in the folder that the directory backend writes to.
pub fn files_in(server: &TestServer) -> Vec<PathBuf> {
    let mut found = Vec::new();
    collect(&server.data_dir().join("attachments"), &mut found);
    found
}

fn collect(folder: &Path, found: &mut Vec<PathBuf>) {
    // A folder or file may go away meanwhile.
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            collect(&path, found);
        } else {
            found.push(path);
        }
    }
}

/// How many records there are.
pub fn records(stored: &Stored) -> usize {
    let nth = |n| stored.bytes(&format!("SELECT details FROM attachments ORDER BY id LIMIT 1 OFFSET {n}"));
    (0..).take_while(|n: &usize| nth(*n).is_some()).count()
}
