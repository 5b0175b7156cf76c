//! An agent: the process it starts, and what it says to it.

pub use memtrove_testkit::server::{Body, Client, Setup, TestServer, fresh_id, fresh_name};
pub use serde_json::{Value, json};

use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Generous, because test machines are small and busy.
pub const PATIENCE: Duration = Duration::from_secs(120);

/// The version of the protocol that tests speak.
pub const VERSION: &str = "2025-11-25";

/// The home folder of somebody who has never used memtrove.
pub struct Home(TempDir);

impl Home {
    pub fn new() -> Self {
        let home = TempDir::new().unwrap();
        std::fs::create_dir(home.path().join("work")).unwrap();
        Self(home)
    }

    pub fn path(&self) -> &Path {
        self.0.path()
    }

    /// Where data lies unless somebody says otherwise.
    pub fn data(&self) -> PathBuf {
        self.path().join(".local/share/memtrove")
    }

    /// The command that an editor runs, with nothing in its environment but what hosts pass on.
    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_memtrove"));
        command.arg("mcp").args(args).env_clear().env("HOME", self.path()).env("USER", "alice");
        command.env("PATH", "/usr/bin:/bin").current_dir(self.path().join("work"));
        command
    }

    /// An agent whose session has not begun.
    pub fn process(&self, args: &[&str]) -> Agent {
        Agent::start(self.command(args))
    }

    /// An agent whose session has begun.
    #[track_caller]
    pub fn agent(&self, args: &[&str]) -> Agent {
        let mut agent = self.process(args);
        agent.begin();
        agent
    }
}

/// A process that speaks MCP, and whoever speaks to it.
pub struct Agent {
    pub process: Child,
    input: Option<ChildStdin>,
    lines: Receiver<String>,
    errors: Arc<Mutex<String>>,
    /// Notes them, until there are no more.
    noting: Option<JoinHandle<()>>,
    next: i64,
}

impl Agent {
    pub fn start(mut command: Command) -> Self {
        let mut process =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let (said, lines) = channel();
        let output = BufReader::new(process.stdout.take().unwrap());
        std::thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                if said.send(line).is_err() {
                    return;
                }
            }
        });
        let errors = Arc::new(Mutex::new(String::new()));
        let (noted, mut stderr) = (errors.clone(), process.stderr.take().unwrap());
        let noting = std::thread::spawn(move || {
            let mut piece = [0; 4096];
            while let Ok(length @ 1..) = stderr.read(&mut piece) {
                noted.lock().unwrap().push_str(&String::from_utf8_lossy(&piece[..length]));
            }
        });
        let input = process.stdin.take();
        Self { process, input, lines, errors, noting: Some(noting), next: 1 }
    }

    pub fn errors(&self) -> String {
        self.errors.lock().unwrap().clone()
    }

    /// Sends a line as it is.
    #[track_caller]
    pub fn say(&mut self, line: &str) {
        self.say_unended(&format!("{line}\n"));
    }

    /// Sends a line without its end.
    #[track_caller]
    pub fn say_unended(&mut self, line: &str) {
        let input = self.input.as_mut().expect("the agent has said all it has to say");
        input.write_all(line.as_bytes()).unwrap();
        input.flush().unwrap();
    }

    /// The next message, which must be one: standard output is for nothing else.
    #[track_caller]
    pub fn hear(&mut self) -> Value {
        match self.lines.recv_timeout(PATIENCE) {
            Ok(line) => serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line:?}")),
            Err(why) => panic!("nothing was said ({why}); stderr: {}", self.errors()),
        }
    }

    /// Sends a request, without waiting for its answer.
    #[track_caller]
    pub fn ask(&mut self, method: &str, params: Value) -> i64 {
        let id = self.next;
        self.next += 1;
        self.say(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string());
        id
    }

    /// Sends a request and waits for its answer, which must be the next message.
    #[track_caller]
    pub fn request(&mut self, method: &str, params: Value) -> Value {
        let id = self.ask(method, params);
        let answer = self.hear();
        assert_eq!(answer["id"], id, "{answer}");
        answer
    }

    #[track_caller]
    pub fn begin(&mut self) -> Value {
        let client = json!({"name": "test", "version": "1"});
        let params = json!({"protocolVersion": VERSION, "capabilities": {}, "clientInfo": client});
        let answer = self.request("initialize", params);
        assert!(answer.get("result").is_some(), "{answer}");
        self.say(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}).to_string());
        answer
    }

    /// Calls a tool that must succeed.
    #[track_caller]
    pub fn ok(&mut self, tool: &str, arguments: Value) -> String {
        succeeded(&self.request("tools/call", json!({"name": tool, "arguments": arguments})))
    }

    /// Calls a tool that must fail, and says how.
    #[track_caller]
    pub fn failure(&mut self, tool: &str, arguments: Value) -> Value {
        failed(&self.request("tools/call", json!({"name": tool, "arguments": arguments})))
    }

    /// Says no more.
    pub fn hang_up(&mut self) {
        self.input = None;
    }

    /// Waits until the process has ended by itself.
    #[track_caller]
    pub fn ended(&mut self) -> ExitStatus {
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(status) = self.process.try_wait().unwrap() {
                // What it said last may not be noted yet.
                self.noting.take().into_iter().for_each(|noting| noting.join().unwrap());
                return status;
            }
            assert!(Instant::now() < deadline, "it does not end; stderr: {}", self.errors());
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    pub fn signal(&self, signal: &str) {
        let sent = Command::new("kill").arg(signal).arg(self.process.id().to_string()).status().unwrap();
        assert!(sent.success());
    }

    /// Whatever was said and not heard.
    pub fn rest(&self) -> Vec<String> {
        self.lines.iter().collect()
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The text of a result that is no failure.
#[track_caller]
pub fn succeeded(answer: &Value) -> String {
    let result = &answer["result"];
    assert_ne!(result["isError"], json!(true), "{answer}");
    result["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{answer}")).to_owned()
}

/// The failure that a result tells of: it has a code, a sentence and a hint.
#[track_caller]
pub fn failed(answer: &Value) -> Value {
    let result = &answer["result"];
    assert_eq!(result["isError"], json!(true), "{answer}");
    let told: Value = serde_json::from_str(result["content"][0]["text"].as_str().unwrap()).unwrap();
    let error = told["error"].clone();
    for member in ["code", "message", "hint"] {
        assert!(error[member].as_str().is_some_and(|text| !text.is_empty()), "{member}: {error}");
    }
    error
}

/// The id in brackets that a result ends with.
#[track_caller]
pub fn id_in(text: &str) -> String {
    let inner = text.rsplit_once('[').and_then(|(_, rest)| rest.split_once(']')).map(|(inner, _)| inner);
    let inner = inner.unwrap_or_else(|| panic!("no [id] in {text:?}"));
    let word = inner.split([' ', ',']).find(|word| word.len() == 36);
    word.unwrap_or_else(|| panic!("no id in {text:?}")).to_owned()
}

/// Somebody who calls `/mcp`.
pub struct Caller(pub Client);

impl Caller {
    pub fn of(client: &Client) -> Self {
        Self(client.with_header("accept", "application/json, text/event-stream"))
    }

    #[track_caller]
    pub fn request(&self, method: &str, params: Value) -> Value {
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        self.0.post("/mcp", body).expect(200).json
    }

    #[track_caller]
    pub fn ok(&self, tool: &str, arguments: Value) -> String {
        succeeded(&self.request("tools/call", json!({"name": tool, "arguments": arguments})))
    }

    #[track_caller]
    pub fn failure(&self, tool: &str, arguments: Value) -> Value {
        failed(&self.request("tools/call", json!({"name": tool, "arguments": arguments})))
    }
}
