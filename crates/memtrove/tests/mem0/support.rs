//! The few sentences that nearly every test begins with.

pub use memtrove_testkit::server::{Answer, Body, Client, Setup, TestServer, fresh_name};
pub use serde_json::{Value, json};

use std::sync::LazyLock;

/// The server of every test that needs none of its own.
pub static SERVER: LazyLock<TestServer> = LazyLock::new(|| server_with(""));

/// The binary under test with its defaults (local mode), plus these lines of configuration.
pub fn server_with(toml: &str) -> TestServer {
    Setup::new(env!("CARGO_BIN_EXE_memtrove")).toml(toml).start()
}

/// A tenant as a client of mem0 sees it.
#[derive(Debug, Clone)]
pub struct Mem0(pub Client);

impl Mem0 {
    /// In a tenant of the shared server that no other test knows, by a key that our own routes take, too.
    pub fn fresh() -> Self {
        Self(SERVER.anonymous().in_tenant(&fresh_name("tenant")).with_key("m0-key"))
    }

    /// Sends a body with `PUT`.
    #[track_caller]
    pub fn put(&self, path: &str, body: Value) -> Answer {
        self.0.send("PUT", path, Body::Json(body))
    }

    /// Adds messages as they are; with `infer` and what else is given.
    #[track_caller]
    pub fn add(&self, messages: Value, members: Value) -> Answer {
        let mut body = json!({"messages": messages, "infer": false});
        for (name, value) in members.as_object().expect("members") {
            body[name] = value.clone();
        }
        self.0.post("/v3/memories/add/", body)
    }

    /// Adds one text; its id.
    #[track_caller]
    pub fn say(&self, text: &str, members: Value) -> String {
        let added = self.add(json!([{"role": "user", "content": text}]), members).expect(200);
        added.json["results"][0]["id"].as_str().expect("an id").to_owned()
    }

    /// A memory.
    #[track_caller]
    pub fn get(&self, id: &str) -> Value {
        self.0.get(&format!("/v1/memories/{id}/")).expect(200).json
    }

    /// The texts of all memories that filters are about, newest first.
    #[track_caller]
    pub fn texts(&self, filters: Value) -> Vec<String> {
        texts(&self.0.post("/v3/memories/", json!({"filters": filters})).expect(200).json)
    }

    /// What a search finds, strongest first.
    #[track_caller]
    pub fn found(&self, query: &str, filters: Value) -> Vec<String> {
        let body = json!({"query": query, "filters": filters});
        texts(&self.0.post("/v3/memories/search/", body).expect(200).json)
    }

    /// What happened to a memory: event, old text, new text.
    #[track_caller]
    pub fn history(&self, id: &str) -> Vec<(String, Value, Value)> {
        let events = self.0.get(&format!("/v1/memories/{id}/history/")).expect(200).json;
        let event = |one: &Value| {
            assert_eq!(one["memory_id"], *id);
            (one["event"].as_str().unwrap().to_owned(), one["old_memory"].clone(), one["new_memory"].clone())
        };
        events.as_array().expect("events").iter().map(event).collect()
    }
}

/// The texts of an answer's results.
#[track_caller]
pub fn texts(answer: &Value) -> Vec<String> {
    let results = answer["results"].as_array().unwrap_or_else(|| panic!("no results in {answer}"));
    results.iter().map(|one| one["memory"].as_str().expect("a text").to_owned()).collect()
}

/// What the errors of this surface have in common.
pub trait Refused {
    /// Requires an error with this status whose `detail` has this in it.
    #[track_caller]
    fn refused(self, status: u16, part: &str) -> Answer;
}

impl Refused for Answer {
    fn refused(self, status: u16, part: &str) -> Answer {
        let answer = self.expect(status);
        let members: Vec<&String> = answer.json.as_object().expect("an object").keys().collect();
        assert_eq!(members, ["detail", "code", "details", "request_id"], "{}", answer.describe());
        let detail = answer.json["detail"].as_str().expect("a detail");
        assert!(detail.contains(part), "'{part}' is not in {}", answer.describe());
        answer
    }
}
