//! A real `memtrove` process on a free port with a folder of its own, and a client whose failures explain themselves.
//!
//! Everything blocks, so a test reads from top to bottom; a test that wants concurrency starts threads.
//!
//! ```no_run
//! # use memtrove_testkit::server::TestServer;
//! # use serde_json::json;
//! let server = TestServer::start("target/debug/memtrove"); // a test says env!("CARGO_BIN_EXE_memtrove")
//! let alice = server.as_user("alice").with_key("agent-a");
//! alice.post("/v1/conversations", json!({"title": "Plans"})).expect(201);
//! ```
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test helper fails by panicking, with everything a person needs to see why"
)]

use crate::postgres::Database;
use crate::stored::Stored;
use reqwest::header::HeaderMap;
use serde_json::Value;
use std::collections::{BTreeSet, HashMap};
use std::fmt::{Display, Write as _};
use std::fs::{File, OpenOptions};
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::{Arc, LazyLock, Mutex};
use std::time::{Duration, Instant};
use tempfile::TempDir;
use uuid::Uuid;

/// How long a process may take until it answers; generous, because test machines are small and busy.
const START_TIMEOUT: Duration = Duration::from_secs(60);
const REQUEST_TIMEOUT: Duration = Duration::from_secs(120);

/// Says which engine the servers of tests use that do not name one: `sqlite`, or `postgres` with a database for each.
const ENGINE: &str = "MEMTROVE_TEST_ENGINE";
const STORE_URL: &str = "MEMTROVE_STORE__URL";

/// A fresh id.
#[expect(
    clippy::disallowed_methods,
    reason = "tests want ids that never repeat, not ids that they can foresee"
)]
pub fn fresh_id() -> String {
    Uuid::now_v7().to_string()
}

/// A fresh name that still says who it is: `alice-4f2a…`.
pub fn fresh_name(role: &str) -> String {
    let id = fresh_id().replace('-', "");
    // The tail of a v7 id is the random part; the head is the time, which neighbours share.
    format!("{role}-{}", &id[id.len() - 12..])
}

/// What a server is started with.
#[derive(Debug, Clone)]
pub struct Setup {
    binary: PathBuf,
    toml: String,
    variables: Vec<(String, String)>,
    data_dir: Option<PathBuf>,
    database: Option<Arc<Database>>,
    /// What answers 200 as soon as it has started.
    awaited: &'static str,
}

impl Setup {
    /// The binary under test with its defaults: local mode, and SQLite unless the tests are run on another engine.
    pub fn new(binary: impl Into<PathBuf>) -> Self {
        Self {
            binary: binary.into(),
            toml: String::new(),
            variables: Vec::new(),
            data_dir: None,
            database: None,
            awaited: "/health/ready",
        }
    }

    /// Waits for the server to be alive, ready or not: what it finds in its store may keep it from being that.
    pub fn ready_or_not(mut self) -> Self {
        self.awaited = "/health/live";
        self
    }

    /// Adds lines to the configuration file.
    pub fn toml(mut self, lines: &str) -> Self {
        self.toml.push_str(lines);
        self.toml.push('\n');
        self
    }

    /// Sets an environment variable of the process.
    pub fn variable(mut self, name: &str, value: impl Display) -> Self {
        self.variables.push((name.to_owned(), value.to_string()));
        self
    }

    /// Uses this folder instead of a temporary one.
    pub fn data_dir(mut self, folder: impl Into<PathBuf>) -> Self {
        self.data_dir = Some(folder.into());
        self
    }

    /// Keeps everything in this database on PostgreSQL, whatever engine the tests are run on.
    pub fn database(mut self, database: &Arc<Database>) -> Self {
        self.database = Some(database.clone());
        self
    }

    /// Starts several servers that share one database on PostgreSQL.
    #[track_caller]
    pub fn nodes(self, count: usize) -> Vec<TestServer> {
        let database = self.database.clone().unwrap_or_else(Database::fresh);
        (0..count).map(|_| self.clone().database(&database).start()).collect()
    }

    /// Starts the server and waits until it is ready.
    #[track_caller]
    pub fn start(self) -> TestServer {
        match self.try_start() {
            Ok(server) => server,
            Err(failed) => panic!("memtrove did not start: {}\n{}", failed.reason, failed.log),
        }
    }

    /// Starts the server; says why when it does not become ready.
    pub fn try_start(mut self) -> Result<TestServer, FailedStart> {
        let root = tempfile::Builder::new().prefix("memtrove-test-").tempdir().expect("a temporary folder");
        if self.database.is_none() && !self.names_a_store() && engine_is_postgres() {
            self.database = Some(self.data_dir.as_deref().map_or_else(Database::fresh, database_of));
        }
        let data_dir = self.data_dir.clone().unwrap_or_else(|| root.path().join("data"));
        std::fs::write(root.path().join("memtrove.toml"), &self.toml).expect("the configuration file");
        let mut server = TestServer { setup: self, data_dir, root, running: None };
        server.launch()?;
        Ok(server)
    }

    fn names_a_store(&self) -> bool {
        self.toml.contains("[store]") || self.variables.iter().any(|(name, _)| name == STORE_URL)
    }
}

/// Whether the tests are run on PostgreSQL, for those that look at what the engine keeps.
pub fn engine_is_postgres() -> bool {
    match std::env::var(ENGINE).as_deref() {
        Err(_) | Ok("sqlite") => false,
        Ok("postgres") => true,
        Ok(other) => panic!("{ENGINE} is {other:?}: say sqlite or postgres"),
    }
}

/// What servers with this data folder keep.
pub fn stored_of(folder: &Path) -> Stored {
    match engine_is_postgres() {
        true => Stored::Database(database_of(folder)),
        false => Stored::Folder(folder.to_owned()),
    }
}

/// The database that stands for a folder: who starts again on the folder finds what was there.
fn database_of(folder: &Path) -> Arc<Database> {
    static DATABASES: LazyLock<Mutex<HashMap<PathBuf, Arc<Database>>>> = LazyLock::new(Mutex::default);
    let mut databases = DATABASES.lock().expect("a lock that nobody panicked with");
    databases.entry(folder.to_owned()).or_insert_with(Database::fresh).clone()
}

/// A process that ended, or hung, before it was ready.
#[derive(Debug)]
pub struct FailedStart {
    /// In words.
    pub reason: String,
    /// How it ended; `None` when it had to be killed.
    pub status: Option<ExitStatus>,
    /// Everything it printed.
    pub log: String,
}

/// A running `memtrove` of its own. Killed when dropped, and also when the test process ends without dropping it.
#[derive(Debug)]
pub struct TestServer {
    setup: Setup,
    data_dir: PathBuf,
    root: TempDir,
    running: Option<Running>,
}

#[derive(Debug)]
struct Running {
    process: Child,
    url: Arc<str>,
    watchdog: Watchdog,
}

impl TestServer {
    /// Starts the binary with its defaults.
    #[track_caller]
    pub fn start(binary: impl Into<PathBuf>) -> Self {
        Setup::new(binary).start()
    }

    /// `http://127.0.0.1:<port>` of the running process.
    #[track_caller]
    pub fn url(&self) -> &str {
        &self.running.as_ref().expect("the server was killed and not restarted").url
    }

    /// The folder the server keeps its data in.
    pub fn data_dir(&self) -> &Path {
        &self.data_dir
    }

    /// The database the server keeps its data in, where that is PostgreSQL.
    pub fn database(&self) -> Option<&Arc<Database>> {
        self.setup.database.as_ref()
    }

    /// What the server keeps.
    pub fn stored(&self) -> Stored {
        match &self.setup.database {
            Some(database) => Stored::Database(database.clone()),
            None => Stored::Folder(self.data_dir.clone()),
        }
    }

    /// Starts one more server with the same configuration on the same database.
    #[track_caller]
    pub fn another_node(&self) -> Self {
        assert!(self.setup.database.is_some(), "only servers on PostgreSQL share a database");
        Setup { data_dir: None, ..self.setup.clone() }.start()
    }

    /// The process id, for tests that look at the process from outside.
    #[track_caller]
    pub fn pid(&self) -> u32 {
        self.running.as_ref().expect("the server was killed and not restarted").process.id()
    }

    /// A client without credentials.
    #[track_caller]
    pub fn anonymous(&self) -> Client {
        Client { base: Arc::from(self.url()), user: None, headers: Vec::new() }
    }

    /// A client with `Authorization: Bearer <user>`, which in local mode is all it takes to be that user.
    #[track_caller]
    pub fn as_user(&self, user: impl Into<String>) -> Client {
        let user = user.into();
        let mut client = self.anonymous().with_header("authorization", &format!("Bearer {user}"));
        client.user = Some(user);
        client
    }

    /// A user of this name that no other test knows.
    #[track_caller]
    pub fn someone(&self, role: &str) -> Client {
        self.as_user(fresh_name(role))
    }

    /// Everything the process has printed, over all its starts.
    pub fn log(&self) -> String {
        read_from(&self.log_path(), 0)
    }

    /// The first log line that contains all the parts; waits for it, because logging may lag behind the answer.
    #[track_caller]
    pub fn wait_for_log(&self, parts: &[&str]) -> String {
        let deadline = Instant::now() + Duration::from_secs(5);
        loop {
            let log = self.log();
            if let Some(line) = log.lines().find(|line| parts.iter().all(|part| line.contains(part))) {
                return line.to_owned();
            }
            if Instant::now() > deadline {
                panic!("no log line contains all of {parts:?}; the log ends with:\n{}", last_lines(&log, 40));
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// All log lines that contain all the parts, now.
    pub fn log_lines(&self, parts: &[&str]) -> Vec<String> {
        let log = self.log();
        log.lines().filter(|line| parts.iter().all(|part| line.contains(part))).map(str::to_owned).collect()
    }

    /// `kill -9`: no handler runs, nothing is flushed.
    pub fn kill(&mut self) {
        if let Some(mut running) = self.running.take() {
            running.watchdog.dismiss();
            let _ = running.process.kill();
            let _ = running.process.wait();
        }
    }

    /// Asks the process to end (SIGTERM) and waits for it.
    #[track_caller]
    pub fn stop(&mut self) -> ExitStatus {
        let mut running = self.running.take().expect("the server was killed and not restarted");
        running.watchdog.dismiss();
        let pid = running.process.id().to_string();
        let sent = Command::new("kill").args(["-TERM", &pid]).status().expect("the kill command");
        assert!(sent.success(), "could not send SIGTERM to {pid}");
        let deadline = Instant::now() + START_TIMEOUT;
        loop {
            if let Some(status) = running.process.try_wait().expect("the state of the process") {
                return status;
            }
            if Instant::now() > deadline {
                let _ = running.process.kill();
                let _ = running.process.wait();
                panic!("memtrove ignored SIGTERM; its log ends with:\n{}", last_lines(&self.log(), 40));
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Starts again on the same folder, ending the old process first if it still runs.
    #[track_caller]
    pub fn restart(&mut self) {
        self.kill();
        if let Err(failed) = self.launch() {
            panic!("memtrove did not start again: {}\n{}", failed.reason, failed.log);
        }
    }

    fn log_path(&self) -> PathBuf {
        self.root.path().join("memtrove.log")
    }

    fn launch(&mut self) -> Result<(), FailedStart> {
        let path = self.log_path();
        let log = OpenOptions::new().create(true).append(true).open(&path).expect("the log file");
        let begin = log.metadata().expect("the size of the log file").len();
        let mut command = Command::new(&self.setup.binary);
        command
            .arg("serve")
            .arg("--config")
            .arg(self.root.path().join("memtrove.toml"))
            .current_dir(self.root.path())
            .stdin(Stdio::null())
            .stdout(log.try_clone().expect("a second handle of the log file"))
            .stderr(log);
        // A developer's own settings must not change what a test means.
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("MEMTROVE_") {
                command.env_remove(name);
            }
        }
        command
            .env("MEMTROVE_SERVER__LISTEN", "127.0.0.1:0")
            .env("MEMTROVE_SERVER__DATA_DIR", &self.data_dir)
            .env("NO_COLOR", "1");
        if !self.setup.toml.contains("budget = ") {
            // On a busy machine a debug build may take longer to read than a search waits: its answer would be cut.
            command.env("MEMTROVE_SEARCH__BUDGET", "20s");
        }
        if let Some(database) = &self.setup.database {
            // Few connections: many servers run at once on one machine and one PostgreSQL.
            command.env(STORE_URL, database.url()).env("MEMTROVE_STORE__CONNECTIONS", "4");
        }
        for (name, value) in &self.setup.variables {
            command.env(name, value);
        }
        let mut process = command.spawn().unwrap_or_else(|e| panic!("{}: {e}", self.setup.binary.display()));
        let mut watchdog = Watchdog::over(process.id(), self.root.path());

        let deadline = Instant::now() + START_TIMEOUT;
        let mut url = None;
        loop {
            let printed = read_from(&path, begin);
            if let Some(status) = process.try_wait().expect("the state of the process") {
                watchdog.dismiss();
                let reason = format!("it ended with {status}");
                return Err(FailedStart { reason, status: Some(status), log: read_from(&path, begin) });
            }
            if url.is_none() {
                url = announced_url(&printed);
            }
            if let Some(url) = &url
                && answers(url, self.setup.awaited)
            {
                self.running = Some(Running { process, url: Arc::from(url.as_str()), watchdog });
                return Ok(());
            }
            if Instant::now() > deadline {
                watchdog.dismiss();
                let _ = process.kill();
                let _ = process.wait();
                let reason = match url {
                    Some(url) => format!("{url}{} did not answer 200", self.setup.awaited),
                    None => "it printed no line with http://127.0.0.1:<port>".to_owned(),
                };
                return Err(FailedStart { reason, status: None, log: printed });
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for TestServer {
    fn drop(&mut self) {
        if std::thread::panicking() && self.running.is_some() {
            eprintln!("the server's log ends with:\n{}", last_lines(&self.log(), 20));
        }
        self.kill();
    }
}

/// A shell that outlives the test process by a moment. A server in a `static` is never dropped; when the test process
/// ends, the shell's standard input closes and it kills the server and removes the folder.
#[derive(Debug)]
struct Watchdog {
    shell: Child,
    leash: Option<ChildStdin>,
}

impl Watchdog {
    fn over(pid: u32, folder: &Path) -> Self {
        let mut shell = Command::new("sh")
            .args(["-c", r#"cat >/dev/null; kill -9 "$0" 2>/dev/null; sleep 0.2; rm -rf "$1""#])
            .arg(pid.to_string())
            .arg(folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("a shell");
        let leash = shell.stdin.take();
        Self { shell, leash }
    }

    /// Ends the shell before it can do anything.
    fn dismiss(&mut self) {
        let _ = self.shell.kill();
        let _ = self.shell.wait();
        self.leash = None;
    }
}

/// Somebody who calls the server. Cheap to clone; usable from many threads.
#[derive(Debug, Clone)]
pub struct Client {
    base: Arc<str>,
    user: Option<String>,
    headers: Vec<(String, String)>,
}

impl Client {
    /// The user this client is.
    #[track_caller]
    pub fn user(&self) -> &str {
        self.user.as_deref().expect("this client has no user")
    }

    /// The same caller, with this API key. In local mode the key is the client id.
    pub fn with_key(&self, key: &str) -> Self {
        self.with_header("x-api-key", key)
    }

    /// The same caller in another tenant; the server honours it for trusted clients, so add a key.
    pub fn in_tenant(&self, tenant: &str) -> Self {
        self.with_header("x-tenant-id", tenant)
    }

    /// The same caller with this header set on every request.
    pub fn with_header(&self, name: &str, value: &str) -> Self {
        let mut client = self.clone();
        client.headers.retain(|(n, _)| !n.eq_ignore_ascii_case(name));
        client.headers.push((name.to_owned(), value.to_owned()));
        client
    }

    /// GET.
    #[track_caller]
    pub fn get(&self, path: &str) -> Answer {
        self.send("GET", path, Body::None)
    }

    /// POST with a JSON body.
    #[track_caller]
    pub fn post(&self, path: &str, body: Value) -> Answer {
        self.send("POST", path, Body::Json(body))
    }

    /// POST without a body.
    #[track_caller]
    pub fn post_nothing(&self, path: &str) -> Answer {
        self.send("POST", path, Body::None)
    }

    /// PATCH with a JSON body.
    #[track_caller]
    pub fn patch(&self, path: &str, body: Value) -> Answer {
        self.send("PATCH", path, Body::Json(body))
    }

    /// DELETE without a body.
    #[track_caller]
    pub fn delete(&self, path: &str) -> Answer {
        self.send("DELETE", path, Body::None)
    }

    /// Any method, any body. Panics when there is no answer at all.
    #[track_caller]
    pub fn send(&self, method: &str, path: &str, body: Body) -> Answer {
        match self.try_send(method, path, body) {
            Ok(answer) => answer,
            Err(error) => panic!("{method} {path} got no answer: {error}"),
        }
    }

    /// Like [`Client::send`], for tests in which the server may be gone.
    pub fn try_send(&self, method: &str, path: &str, body: Body) -> Result<Answer, String> {
        let method = reqwest::Method::from_bytes(method.as_bytes()).expect("an HTTP method");
        let mut request = HTTP.request(method.clone(), format!("{}{path}", self.base));
        for (name, value) in &self.headers {
            request = request.header(name, value);
        }
        request = match body {
            Body::None => request,
            Body::Json(value) => {
                request.header("content-type", "application/json").body(serde_json::to_vec(&value).unwrap())
            }
            Body::Raw { content_type, bytes } => {
                let request = match content_type {
                    Some(content_type) => request.header("content-type", content_type),
                    None => request,
                };
                request.body(bytes)
            }
            Body::Chunked { content_type, chunks } => {
                let parts = futures_util::stream::iter(chunks.into_iter().map(Ok::<_, std::io::Error>));
                request.header("content-type", content_type).body(reqwest::Body::wrap_stream(parts))
            }
        };
        RUNTIME.block_on(async {
            let response = request.send().await.map_err(|e| chain(&e))?;
            let status = response.status().as_u16();
            let headers = response.headers().clone();
            let bytes = response.bytes().await.map_err(|e| chain(&e))?;
            let text = String::from_utf8_lossy(&bytes).into_owned();
            let json = serde_json::from_str(&text).unwrap_or(Value::Null);
            let asked = match &self.user {
                Some(user) => format!("{method} {path} as {user}"),
                None => format!("{method} {path}"),
            };
            Ok(Answer { asked, status, headers, json, text })
        })
    }
}

/// What a request carries.
#[derive(Debug, Clone)]
pub enum Body {
    /// Nothing, not even a content type.
    None,
    /// `application/json`.
    Json(Value),
    /// These bytes, with this content type if any.
    Raw {
        /// The `Content-Type` header.
        content_type: Option<&'static str>,
        /// What is sent.
        bytes: Vec<u8>,
    },
    /// These pieces one after the other, without a length in advance.
    Chunked {
        /// The `Content-Type` header.
        content_type: &'static str,
        /// What is sent.
        chunks: Vec<Vec<u8>>,
    },
}

impl Body {
    /// Text that claims to be JSON.
    pub fn json_text(text: impl Into<String>) -> Self {
        Body::Raw { content_type: Some("application/json"), bytes: text.into().into_bytes() }
    }
}

/// What the server answered.
#[derive(Debug, Clone)]
pub struct Answer {
    /// Method, path and user of the request, for failures.
    pub asked: String,
    /// The status code.
    pub status: u16,
    /// The response headers.
    pub headers: HeaderMap,
    /// The body as JSON; null when it is not JSON.
    pub json: Value,
    /// The body as text.
    pub text: String,
}

impl Answer {
    /// The request and the answer, as a person wants to see them.
    pub fn describe(&self) -> String {
        let body = match &self.json {
            Value::Null => self.text.clone(),
            json => serde_json::to_string_pretty(json).unwrap_or_else(|_| self.text.clone()),
        };
        let mut end = body.len().min(4000);
        while !body.is_char_boundary(end) {
            end -= 1;
        }
        format!("{} answered {}\n{}", self.asked, self.status, &body[..end])
    }

    /// Requires this status.
    #[track_caller]
    pub fn expect(self, status: u16) -> Self {
        assert!(self.status == status, "expected status {status}, but {}", self.describe());
        self
    }

    /// Requires the error envelope with this status and code, and nothing in it that the contract does not name.
    #[track_caller]
    pub fn expect_error(self, status: u16, code: &str) -> Self {
        let answer = self.expect(status);
        let described = || answer.describe();
        let members = answer.json.as_object().unwrap_or_else(|| panic!("no error envelope: {}", described()));
        assert!(answer.json["code"] == code, "expected code {code:?}, but {}", described());
        let sentence = answer.json["error"].as_str().unwrap_or_default();
        assert!(!sentence.trim().is_empty(), "`error` is not a sentence: {}", described());
        for member in members.keys() {
            assert!(
                matches!(member.as_str(), "error" | "code" | "details" | "existingTransferId"),
                "the error envelope has the additional member {member:?}: {}",
                described()
            );
        }
        answer
    }

    /// Requires a 400 `validation_error` whose violations name this field.
    #[track_caller]
    pub fn expect_violation(self, field: &str) -> Self {
        let answer = self.expect_error(400, "validation_error");
        let violations = answer.json["details"]["violations"].as_array().cloned().unwrap_or_default();
        for violation in &violations {
            assert!(
                violation["field"].is_string() && violation["message"].is_string(),
                "a violation is not {{field, message}}: {}",
                answer.describe()
            );
        }
        assert!(
            violations.iter().any(|v| v["field"].as_str().is_some_and(|f| f.contains(field))),
            "no violation of the field {field:?}: {}",
            answer.describe()
        );
        answer
    }

    /// Requires this status and code with exactly this text in `details.message`.
    #[track_caller]
    pub fn expect_message(self, status: u16, code: &str, message: &str) -> Self {
        let answer = self.expect_error(status, code);
        assert!(
            answer.json["details"]["message"] == message,
            "expected details.message {message:?}, but {}",
            answer.describe()
        );
        answer
    }

    /// Requires 403 `forbidden` with a `details.message`.
    #[track_caller]
    pub fn expect_forbidden(self) -> Self {
        let answer = self.expect_error(403, "forbidden");
        assert!(answer.json["details"]["message"].is_string(), "no details.message: {}", answer.describe());
        answer
    }

    /// Requires 404 `not_found` about this resource with this id.
    #[track_caller]
    pub fn expect_not_found(self, resource: &str, id: &str) -> Self {
        let answer = self.expect_error(404, "not_found");
        assert!(
            answer.json["details"] == serde_json::json!({"resource": resource, "id": id}),
            "expected details {{resource: {resource:?}, id: {id:?}}}, but {}",
            answer.describe()
        );
        answer
    }

    /// Requires the body to be an object with exactly these members, none of them null.
    #[track_caller]
    pub fn expect_members(self, names: &[&str]) -> Self {
        assert_members(&self.json, names, &self.describe());
        self
    }

    /// Requires 200 with the list envelope: exactly `data` and `afterCursor`.
    #[track_caller]
    pub fn expect_page(self) -> Page {
        let answer = self.expect(200);
        let members: BTreeSet<&str> =
            answer.json.as_object().map(|o| o.keys().map(String::as_str).collect()).unwrap_or_default();
        assert!(
            members == BTreeSet::from(["data", "afterCursor"]),
            "expected exactly data and afterCursor, but {}",
            answer.describe()
        );
        Page::of(&answer)
    }

    /// Requires 200 with the envelope of `tail` and `before`: `data`, `afterCursor`, `beforeCursor`.
    #[track_caller]
    pub fn expect_backward_page(self) -> Page {
        let answer = self.expect(200);
        let members: BTreeSet<&str> =
            answer.json.as_object().map(|o| o.keys().map(String::as_str).collect()).unwrap_or_default();
        assert!(
            members == BTreeSet::from(["data", "afterCursor", "beforeCursor"]),
            "expected exactly data, afterCursor and beforeCursor, but {}",
            answer.describe()
        );
        Page::of(&answer)
    }

    /// The text of a string member.
    #[track_caller]
    pub fn text_of(&self, member: &str) -> String {
        match self.json[member].as_str() {
            Some(text) => text.to_owned(),
            None => panic!("no text {member:?}: {}", self.describe()),
        }
    }

    /// The member `id`.
    #[track_caller]
    pub fn id(&self) -> String {
        self.text_of("id")
    }

    /// A response header as text; empty when absent.
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).and_then(|v| v.to_str().ok()).unwrap_or_default()
    }
}

/// One page of a list.
#[derive(Debug, Clone)]
pub struct Page {
    /// The items.
    pub data: Vec<Value>,
    /// Where the next page starts.
    pub after: Option<String>,
    /// Where the page before starts, in answers to `tail` and `before`.
    pub before: Option<String>,
}

impl Page {
    #[track_caller]
    fn of(answer: &Answer) -> Self {
        let cursor = |member: &str| match &answer.json[member] {
            Value::Null => None,
            Value::String(text) => Some(text.clone()),
            _ => panic!("{member} is neither text nor null: {}", answer.describe()),
        };
        let data = answer.json["data"].as_array().cloned();
        Self {
            data: data.unwrap_or_else(|| panic!("data is not an array: {}", answer.describe())),
            after: cursor("afterCursor"),
            before: cursor("beforeCursor"),
        }
    }

    /// This text member of every item.
    pub fn all(&self, member: &str) -> Vec<String> {
        self.data.iter().map(|item| item[member].as_str().unwrap_or("<absent>").to_owned()).collect()
    }

    /// The ids of the items.
    pub fn ids(&self) -> Vec<String> {
        self.all("id")
    }
}

/// Requires an object with exactly these members, none of them null.
#[track_caller]
pub fn assert_members(object: &Value, names: &[&str], context: &str) {
    let expected: BTreeSet<&str> = names.iter().copied().collect();
    let members = object.as_object().unwrap_or_else(|| panic!("not an object: {object}\n{context}"));
    let actual: BTreeSet<&str> = members.keys().map(String::as_str).collect();
    let missing: Vec<_> = expected.difference(&actual).collect();
    let additional: Vec<_> = actual.difference(&expected).collect();
    assert!(
        missing.is_empty() && additional.is_empty(),
        "missing members {missing:?}, additional members {additional:?} in {object}\n{context}"
    );
    let nulls: Vec<_> = members.iter().filter(|(_, value)| value.is_null()).map(|(name, _)| name).collect();
    assert!(nulls.is_empty(), "members that are null instead of absent: {nulls:?} in {object}\n{context}");
}

/// One runtime for the whole test process: connections outlive the test that opened them.
static RUNTIME: LazyLock<tokio::runtime::Runtime> = LazyLock::new(|| {
    tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("a runtime")
});

static HTTP: LazyLock<reqwest::Client> = LazyLock::new(|| {
    reqwest::Client::builder()
        .no_proxy()
        .redirect(reqwest::redirect::Policy::none())
        .timeout(REQUEST_TIMEOUT)
        .build()
        .expect("an HTTP client")
});

fn answers(url: &str, path: &str) -> bool {
    let client = Client { base: Arc::from(url), user: None, headers: Vec::new() };
    client.try_send("GET", path, Body::None).is_ok_and(|answer| answer.status == 200)
}

fn announced_url(printed: &str) -> Option<String> {
    const START: &str = "http://127.0.0.1:";
    printed.match_indices(START).find_map(|(at, _)| {
        let rest = &printed[at + START.len()..];
        let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
        // A port at the very end may still be cut in half; the rest comes with the next read.
        let complete = digits.len() < rest.len();
        (complete && digits.parse::<u16>().is_ok_and(|port| port != 0)).then(|| format!("{START}{digits}"))
    })
}

fn read_from(path: &Path, begin: u64) -> String {
    let mut bytes = Vec::new();
    if let Ok(mut file) = File::open(path) {
        let _ = file.seek(SeekFrom::Start(begin));
        let _ = file.read_to_end(&mut bytes);
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn last_lines(text: &str, count: usize) -> String {
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(count)..].join("\n")
}

pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let _ = write!(text, ": {cause}");
        source = cause.source();
    }
    text
}
