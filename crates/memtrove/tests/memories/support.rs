//! The few sentences that nearly every test begins with.

pub use memtrove_testkit::server::{Answer, Body, Client, Setup, TestServer, fresh_id, fresh_name};
pub use memtrove_testkit::steps::{Dice, assert_timestamp, at_once, until};
pub use serde_json::{Value, json};

mod tenant;

pub use tenant::{Page, Tenant};

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::sync::LazyLock;

/// The server of every test that needs none of its own.
pub static SERVER: LazyLock<TestServer> = LazyLock::new(|| server_with(""));

/// The agent that acts unless a test says otherwise. Local mode trusts it to speak for any user of any tenant.
pub const AGENT: &str = "agent-a";

/// The layers in the order of their precedence, each with the identifiers that make its scope.
pub const LAYERS: [(&str, &[&str]); 7] = [
    ("agent", &["agentId", "userId"]),
    ("user", &["userId"]),
    ("session", &["userId", "sessionId"]),
    ("project", &["projectId"]),
    ("team", &["teamId"]),
    ("org", &["orgId"]),
    ("company", &["companyId"]),
];

/// The names of all identifiers.
pub const IDENTIFIERS: [&str; 7] =
    ["agentId", "userId", "sessionId", "projectId", "teamId", "orgId", "companyId"];

/// All kinds.
pub const KINDS: [&str; 7] =
    ["working", "session", "episodic", "semantic", "procedural", "user_personal", "archival"];

/// The binary under test with its defaults (local mode), plus these lines of configuration.
pub fn server_with(toml: &str) -> TestServer {
    Setup::new(env!("CARGO_BIN_EXE_memtrove")).toml(toml).start()
}

/// Whose memory: a layer and the identifiers that name one scope in it.
#[derive(Debug, Clone, PartialEq)]
pub struct Place {
    pub layer: &'static str,
    pub identifiers: Value,
}

impl Place {
    pub fn agent(agent: &str, user: &str) -> Self {
        Self { layer: "agent", identifiers: json!({"agentId": agent, "userId": user}) }
    }

    pub fn user(user: &str) -> Self {
        Self { layer: "user", identifiers: json!({"userId": user}) }
    }

    pub fn session(user: &str, session: &str) -> Self {
        Self { layer: "session", identifiers: json!({"userId": user, "sessionId": session}) }
    }

    pub fn project(project: &str) -> Self {
        Self { layer: "project", identifiers: json!({"projectId": project}) }
    }

    pub fn team(team: &str) -> Self {
        Self { layer: "team", identifiers: json!({"teamId": team}) }
    }

    pub fn org(org: &str) -> Self {
        Self { layer: "org", identifiers: json!({"orgId": org}) }
    }

    pub fn company(company: &str) -> Self {
        Self { layer: "company", identifiers: json!({"companyId": company}) }
    }

    /// A request about this scope with these further members.
    pub fn with(&self, members: Value) -> Value {
        merged(json!({"layer": self.layer, "identifiers": self.identifiers}), &members)
    }

    /// A search of this scope alone that nothing falls through: everything similar or not, duplicates too.
    pub fn everything(&self, members: Value) -> Value {
        let all = json!({
            "query": "anything", "layers": [self.layer], "identifiers": self.identifiers,
            "threshold": 0, "limit": 100, "dedupe": false,
        });
        merged(all, &members)
    }

    /// The scope as query parameters, without a question mark.
    pub fn query(&self) -> String {
        let mut query = format!("layer={}", self.layer);
        for (name, value) in self.identifiers.as_object().expect("identifiers") {
            let _ = write!(query, "&{name}={}", encoded(value.as_str().expect("a text")));
        }
        query
    }
}

/// The object with these members added or replaced.
pub fn merged(mut object: Value, members: &Value) -> Value {
    for (name, value) in members.as_object().expect("members") {
        object[name] = value.clone();
    }
    object
}

/// Text for a query string.
pub fn encoded(text: &str) -> String {
    let mut encoded = String::new();
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => encoded.push(byte.into()),
            _ => _ = write!(encoded, "%{byte:02X}"),
        }
    }
    encoded
}

/// What the errors of this surface have in common.
pub trait MemoriesAnswer {
    /// Requires the error envelope, to the letter, with this status and code.
    #[track_caller]
    fn refused(self, status: u16, code: &str) -> Answer;

    /// Requires `INVALID_REQUEST` about this field, which may be named with the path that leads to it.
    #[track_caller]
    fn invalid(self, field: &str) -> Answer;

    /// Requires that nothing is known of such an entry.
    #[track_caller]
    fn not_found(self) -> Answer;

    /// The details of an error.
    fn details(&self) -> &Value;
}

impl MemoriesAnswer for Answer {
    #[track_caller]
    fn refused(self, status: u16, code: &str) -> Answer {
        let answer = self.expect(status);
        let described = || answer.describe();
        assert_eq!(names(&answer.json), ["error"].into(), "{}", described());
        let error = &answer.json["error"];
        let members = ["code", "details", "message", "operation", "request_id", "retryable"];
        assert_eq!(names(error), members.into(), "{}", described());
        assert!(error["code"] == code, "expected code {code}, but {}", described());
        assert!(!text(&error["message"]).trim().is_empty(), "{}", described());
        assert!(!text(&error["operation"]).is_empty(), "{}", described());
        // An embedding may be refused for good.
        if code != "EMBEDDING_FAILED" {
            assert_eq!(error["retryable"], json!(matches!(status, 429 | 503 | 504)), "{}", described());
        }
        assert!(error["details"].is_object(), "{}", described());
        assert!(!answer.header("x-request-id").is_empty(), "{:?}", answer.headers);
        assert_eq!(answer.header("x-request-id"), text(&error["request_id"]), "{}", described());
        assert_eq!(answer.header("cache-control"), "no-store", "{}", described());
        assert!(answer.header("content-type").starts_with("application/json"), "{:?}", answer.headers);
        for secret in ["memtrove-test-", ".rs:", "sqlite", "panicked", "serde"] {
            assert!(!answer.text.to_lowercase().contains(secret), "leaks {secret:?}: {}", described());
        }
        answer
    }

    #[track_caller]
    fn invalid(self, field: &str) -> Answer {
        let answer = self.refused(400, "INVALID_REQUEST");
        let named = answer.details()["field"].as_str().unwrap_or_default();
        assert!(named.contains(field), "expected details.field about {field:?}, but {}", answer.describe());
        answer
    }

    #[track_caller]
    fn not_found(self) -> Answer {
        self.refused(404, "MEMORY_NOT_FOUND")
    }

    fn details(&self) -> &Value {
        &self.json["error"]["details"]
    }
}

/// A whole entry, without what the server counts behind everybody's back.
#[track_caller]
pub fn settled(entry: &Value) -> Value {
    assert_entry(entry);
    let mut entry = entry.clone();
    for written_behind in ["accessCount", "lastAccessedAt"] {
        entry.as_object_mut().expect("an entry").shift_remove(written_behind);
    }
    entry
}

/// Requires what every entry has, and nothing the contract does not name.
#[track_caller]
pub fn assert_entry(entry: &Value) {
    const ALWAYS: [&str; 12] = [
        "id",
        "content",
        "contentHash",
        "layer",
        "kind",
        "identifiers",
        "metadata",
        "state",
        "relevance",
        "accessPolicy",
        "createdAt",
        "updatedAt",
    ];
    const SOMETIMES: [&str; 11] = [
        "originKind",
        "createdBy",
        "occurredAt",
        "expiresAt",
        "ttlSeconds",
        "embedding",
        "embeddingModel",
        "fact",
        "lineage",
        "accessCount",
        "lastAccessedAt",
    ];
    let present = names(entry);
    for name in ALWAYS.iter().chain(&["version"]) {
        assert!(present.contains(name), "no {name} in {entry}");
    }
    for name in &present {
        let known = ALWAYS.contains(name) || SOMETIMES.contains(name) || *name == "version";
        assert!(known, "{name} is not in the contract: {entry}");
        assert!(!entry[name].is_null(), "{name} is null instead of absent: {entry}");
    }
    let layer = text(&entry["layer"]);
    let (_, required) = LAYERS.iter().find(|(name, _)| *name == layer).unwrap_or_else(|| panic!("{entry}"));
    assert_eq!(names(&entry["identifiers"]), required.iter().copied().collect(), "{entry}");
    assert!(KINDS.contains(&text(&entry["kind"]).as_str()), "{entry}");
    assert_eq!(entry["kind"] == "archival", entry["state"] == "archived", "{entry}");
    assert!((0.0..=1.0).contains(&number(&entry["relevance"])), "{entry}");
    assert!(entry["version"].as_u64() >= Some(1), "{entry}");
    assert!(entry["metadata"].is_object() && entry["accessPolicy"]["policy"].is_string(), "{entry}");
    for time in ["createdAt", "updatedAt", "occurredAt", "expiresAt", "lastAccessedAt"] {
        if present.contains(time) {
            assert_timestamp(&entry[time]);
        }
    }
    assert_eq!(present.contains("expiresAt"), present.contains("ttlSeconds"), "{entry}");
}

/// Requires exactly these members; they may be null.
#[track_caller]
pub fn assert_members(object: &Value, expected: &[&str]) {
    assert_eq!(names(object), expected.iter().copied().collect(), "{object}");
}

/// The names of an object's members.
pub fn names(object: &Value) -> BTreeSet<&str> {
    object.as_object().map(|members| members.keys().map(String::as_str).collect()).unwrap_or_default()
}

/// A text, which it must be.
#[track_caller]
pub fn text(value: &Value) -> String {
    value.as_str().unwrap_or_else(|| panic!("not a text: {value}")).to_owned()
}

/// A number, which it must be.
#[track_caller]
pub fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("not a number: {value}"))
}

/// A list, which it must be.
#[track_caller]
pub fn list(value: &Value) -> Vec<Value> {
    value.as_array().unwrap_or_else(|| panic!("not a list: {value}")).clone()
}

/// The `id` of something.
#[track_caller]
pub fn id_of(value: &Value) -> String {
    text(&value["id"])
}

/// In any order.
pub fn sorted<T: Ord>(items: impl IntoIterator<Item = T>) -> Vec<T> {
    let mut items: Vec<T> = items.into_iter().collect();
    items.sort();
    items
}
