//! The alert rules in `ops/` are about metrics that a server really exports.

use memloom_testkit::server::TestServer;
use serde_json::json;
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

const RULES: &str = include_str!("../../../ops/alerts.yml");

/// Every metric of ours begins with one of these, and nothing else in the file does.
const PREFIXES: [&str; 4] = ["http_", "db_", "memory_", "memloom_"];

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
    let server = TestServer::start(env!("CARGO_BIN_EXE_memloom"));
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
