//! The alert rules in `ops/` are about metrics that a server really exports, and the operations page says what each of those is.

use memtrove_testkit::server::TestServer;
use serde_json::json;
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

const RULES: &str = include_str!("../../../../ops/alerts.yml");
const OPERATIONS: &str = include_str!("../../../../docs/operations.md");

/// Every metric of ours begins with one of these, and nothing else in the file does.
const PREFIXES: [&str; 4] = ["http_", "db_", "memory_", "memtrove_"];

fn metrics_in_rules() -> BTreeSet<&'static str> {
    RULES
        .split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
        .filter(|word| PREFIXES.iter().any(|prefix| word.starts_with(prefix)))
        .collect()
}

#[test]
fn every_alert_is_about_a_metric_that_is_exported() {
    let named = metrics_in_rules();
    assert!(named.len() >= 9, "the rules were not understood: {named:?}");
    let server = TestServer::start(env!("CARGO_BIN_EXE_memtrove"));
    // Durations appear with the first of what they measure.
    let alice = server.as_user("alice");
    let conversation = alice.post("/v1/conversations", json!({"title": "Plans"})).expect(201);
    let entries = format!("/v1/conversations/{}/entries", conversation.json["id"].as_str().unwrap());
    alice
        .post(&entries, json!({"channel": "history", "contentType": "history", "content": [{"role": "USER", "text": "Hi"}]}))
        .expect(201);
    alice.get("/v1/tenants/default/users/alice/files/notes.json").expect(404);

    let deadline = Instant::now() + Duration::from_secs(30);
    loop {
        let exported = server.anonymous().get("/metrics").expect(200).text;
        let is_exported = |name: &&str| {
            exported
                .lines()
                .any(|line| line.strip_prefix(name).is_some_and(|rest| rest.starts_with([' ', '{'])))
        };
        let missing: Vec<_> = named.iter().copied().filter(|name| !is_exported(name)).collect();
        if missing.is_empty() {
            return;
        }
        // The task worker has its first look at the queue a moment after the start.
        assert!(Instant::now() < deadline, "nobody exports {missing:?}:\n{exported}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn every_metric_is_described() {
    let server = TestServer::start(env!("CARGO_BIN_EXE_memtrove"));
    let alice = server.as_user("alice");
    let own = json!({"userId": "alice"});
    alice
        .post("/v1/memories", json!({"content": "Likes tea", "layer": "user", "identifiers": own}))
        .expect(201);
    alice.post("/v1/memories:search", json!({"query": "tea", "identifiers": own})).expect(200);
    alice.get("/v1/memories/00000000-0000-4000-8000-000000000000").expect(404);
    alice.get("/v1/tenants/default/users/alice/files:list").expect(200);

    let exported = server.anonymous().get("/metrics").expect(200).text;
    let names = exported.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next());
    let ours: BTreeSet<_> =
        names.filter(|name| PREFIXES.iter().any(|prefix| name.starts_with(prefix))).collect();
    assert!(ours.len() > 15, "{exported}");
    let missing: Vec<_> = ours.iter().filter(|name| !OPERATIONS.contains(&format!("`{name}`"))).collect();
    assert!(missing.is_empty(), "docs/operations.md does not describe {missing:?}");
}
