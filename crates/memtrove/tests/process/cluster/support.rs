//! The few sentences that nearly every test begins with.

pub use memtrove_testkit::postgres::{Cluster, Database};
pub use memtrove_testkit::proxy::Proxy;
pub use memtrove_testkit::server::{Answer, Body, Client, Setup, TestServer, fresh_id, fresh_name};
pub use memtrove_testkit::steps::{at_once, until};
pub use serde_json::{Value, json};

use std::sync::Arc;
use std::thread::JoinHandle;

/// The agent that acts for everybody here.
pub const AGENT: &str = "agent-a";

/// The binary under test, with nodes that notice within a second that another one is gone.
pub fn setup() -> Setup {
    Setup::new(env!("CARGO_BIN_EXE_memtrove"))
        .toml("[tasks]\nlease = \"1s\"\nprocessor_interval = \"500ms\"\nstale_claim_timeout = \"1s\"")
}

/// A user of a tenant with its agent, as one node sees them.
#[derive(Debug, Clone)]
pub struct Person {
    pub tenant: String,
    pub user: String,
    pub client: Client,
}

impl Person {
    /// Somebody that no other test knows.
    pub fn fresh(node: &TestServer, role: &str) -> Self {
        Self::of(node, &fresh_name("tenant"), &fresh_name(role))
    }

    pub fn of(node: &TestServer, tenant: &str, user: &str) -> Self {
        let client = node.as_user(user).with_key(AGENT).in_tenant(tenant);
        Self { tenant: tenant.to_owned(), user: user.to_owned(), client }
    }

    /// The same person at another node.
    pub fn at(&self, node: &TestServer) -> Self {
        Self::of(node, &self.tenant, &self.user)
    }

    /// The same person, whose requests carry this key.
    pub fn with_key(&self, key: &str) -> Self {
        Self { client: self.client.with_header("idempotency-key", key), ..self.clone() }
    }

    /// The admin of the tenant, at the same node.
    pub fn admin(&self) -> Client {
        self.client.with_header("authorization", "Bearer admin")
    }

    /// A new conversation; its id.
    pub fn start(&self) -> String {
        self.client.post("/v1/conversations", json!({"title": "Plans"})).expect(201).id()
    }

    /// Appends to the transcript.
    pub fn say(&self, conversation: &str, text: &str) -> Answer {
        self.client.post(&entries(conversation), history(text))
    }

    /// Synchronises the agent's memory.
    pub fn sync(&self, conversation: &str, items: &[Value]) -> Answer {
        self.client.post(&format!("{}/sync", entries(conversation)), memory(items))
    }

    /// The transcript.
    pub fn transcript(&self, conversation: &str) -> Vec<String> {
        let items = walk(&self.client, &format!("{}?limit=200", entries(conversation)));
        items.iter().map(|entry| text_of(&entry["content"][0]["text"])).collect()
    }

    /// The agent's memory.
    pub fn memory(&self, conversation: &str) -> Vec<Value> {
        let items = walk(&self.client, &format!("{}?channel=memory&limit=200", entries(conversation)));
        items.iter().flat_map(|entry| entry["content"].as_array().cloned().unwrap_or_default()).collect()
    }

    /// The address of something on the files surface.
    pub fn path(&self, rest: &str) -> String {
        format!("/v1/tenants/{}/users/{}{rest}", self.tenant, self.user)
    }

    /// Writes a file whose content is this; `*` makes a new one.
    pub fn put(&self, name: &str, if_match: &str, content: Value) -> Answer {
        let document =
            json!({"doc_id": "doc-1", "schema_id": "notes", "schema_version": "1.0.0", "content": content});
        let client = self.client.with_header("if-match", if_match);
        client.send("PUT", &self.path(&format!("/files/{name}")), Body::Json(json!({"document": document})))
    }

    /// Adds a line to a file's content.
    pub fn add_line(&self, name: &str, if_match: &str, line: &str) -> Answer {
        let client = self.client.with_header("if-match", if_match);
        client.patch(&self.path(&format!("/files/{name}")), line_patch(line))
    }

    /// Reads a file.
    pub fn read(&self, name: &str) -> Answer {
        self.client.get(&self.path(&format!("/files/{name}")))
    }

    /// Writes an event.
    pub fn tell(&self, id: &str, digest: &str) -> Answer {
        let event = json!({"event_id": id, "tenant_id": self.tenant, "user_id": self.user, "digest": digest,
                           "timestamp": "2026-02-15T00:00:00Z"});
        self.client.post(&self.path("/events"), json!({"event": event}))
    }

    /// Adds a memory of the user.
    pub fn remember(&self, content: &str) -> Answer {
        self.client.post("/v1/memories", self.note(content))
    }

    /// A memory of the user, to be added.
    pub fn note(&self, content: &str) -> Value {
        json!({"layer": "user", "identifiers": {"userId": self.user}, "content": content})
    }

    /// What the memories of the user say.
    pub fn remembered(&self) -> Vec<String> {
        let mut body = json!({"layer": "user", "identifiers": {"userId": self.user}, "limit": 100});
        let mut all = Vec::new();
        loop {
            let page = self.client.post("/v1/memories:list", body.clone()).expect(200);
            let memories = page.json["memories"].as_array().cloned().unwrap_or_default();
            all.extend(memories.iter().map(|memory| text_of(&memory["content"])));
            match page.json["nextCursor"].as_str() {
                Some(cursor) => body["cursor"] = json!(cursor),
                None => return all,
            }
        }
    }

    /// The whole change feed of the tenant.
    pub fn feed(&self) -> Vec<Value> {
        let (admin, mut all, mut after) = (self.admin(), Vec::new(), 0);
        loop {
            let page = admin.get(&format!("/v1/changes?limit=1000&after={after}")).expect(200);
            all.extend(page.json["changes"].as_array().cloned().unwrap_or_default());
            match page.json["next_after"].as_i64() {
                Some(next) => after = next,
                None => return all,
            }
        }
    }
}

/// Where the entries of a conversation are.
pub fn entries(conversation: &str) -> String {
    format!("/v1/conversations/{conversation}/entries")
}

/// A history entry by the user.
pub fn history(text: &str) -> Value {
    json!({"channel": "history", "contentType": "history", "content": [{"role": "USER", "text": text}]})
}

/// A memory entry with these items.
pub fn memory(items: &[Value]) -> Value {
    json!({"channel": "memory", "contentType": "LC4J", "content": items})
}

/// Adds a line to the content of a file.
pub fn line_patch(line: &str) -> Value {
    json!({"ops": [{"op": "add", "path": "/content/lines/-", "value": line}]})
}

/// The lines of a file that was read.
pub fn lines(answer: &Answer) -> Vec<String> {
    let lines = answer.json["document"]["content"]["lines"].as_array().cloned().unwrap_or_default();
    lines.iter().map(text_of).collect()
}

pub fn text_of(value: &Value) -> String {
    value.as_str().unwrap_or_else(|| panic!("no text: {value}")).to_owned()
}

/// Follows `afterCursor` to the end; `path` must already have a query.
#[track_caller]
pub fn walk(who: &Client, path: &str) -> Vec<Value> {
    let mut all = Vec::new();
    let mut page = who.get(path).expect_page();
    loop {
        all.append(&mut page.data);
        let Some(after) = page.after else { return all };
        page = who.get(&format!("{path}&after={after}")).expect_page();
    }
}

/// Whether a node says that it can be sent requests.
pub fn is_ready(node: &Client) -> bool {
    node.try_send("GET", "/health/ready", Body::None).is_ok_and(|answer| answer.status == 200)
}

/// The number that a query answers.
#[track_caller]
pub fn number(database: &Database, query: &str) -> i64 {
    let rows = database.rows(query);
    let number =
        rows.first().and_then(|row| row.first().cloned().flatten()).and_then(|text| text.parse().ok());
    number.unwrap_or_else(|| panic!("{query} answered {rows:?}"))
}

/// A table that nobody can write to, so that whoever must write to it stands still at a known point.
pub struct Frozen {
    database: Arc<Database>,
    mark: String,
    thread: Option<JoinHandle<()>>,
}

impl Frozen {
    pub fn table(database: &Arc<Database>, table: &str) -> Self {
        let mark = fresh_name("thaw");
        let hold = format!(
            "DO $$ BEGIN \
                LOCK TABLE {table} IN SHARE MODE; \
                WHILE NOT EXISTS (SELECT 1 FROM meta WHERE key = '{mark}') LOOP PERFORM pg_sleep(0.01); END LOOP; \
             END $$"
        );
        let holder = database.clone();
        let thread = std::thread::spawn(move || {
            holder.rows(&hold);
        });
        let held = format!("{} AND granted AND mode = 'ShareLock'", locks_of(table));
        until("the table is frozen", || number(database, &held) > 0);
        Self { database: database.clone(), mark, thread: Some(thread) }
    }

    /// Whether somebody stands still at the table.
    pub fn has_met(database: &Database, table: &str) -> bool {
        let waiting = format!("{} AND NOT granted", locks_of(table));
        number(database, &waiting) > 0
    }
}

/// Counts locks of a table. Databases of tests are copies of one, so a table's number alone does not tell whose it is.
fn locks_of(table: &str) -> String {
    format!(
        "SELECT count(*) FROM pg_locks WHERE relation = '{table}'::regclass \
         AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
    )
}

impl Drop for Frozen {
    fn drop(&mut self) {
        let mark = format!("INSERT INTO meta (key, value) VALUES ('{}', '')", self.mark);
        self.database.execute(&mark, b"");
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
