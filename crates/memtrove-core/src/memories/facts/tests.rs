use super::*;
use crate::memories::requests::{code, user, with};
use crate::memories::testing::members as object;
use crate::memories::{MemoryId, State};
use serde_json::json;
use uuid::Uuid;

const NOW: Timestamp = Timestamp::from_micros(5);
const LATER: Timestamp = Timestamp::from_micros(50);

fn body(members: Value) -> Value {
    with(
        json!({
            "layer": "user", "identifiers": {"userId": "alice"},
            "factType": "preference", "subject": "alice", "predicate": "drinks_with", "object": "milk",
        }),
        members,
    )
}

fn new(members: Value) -> Result<NewFact> {
    AddFact::read(&body(members), &Rules::default())?.check(&Rules::default(), &user("alice"))
}

fn stored(members: Value) -> Memory {
    new(members).unwrap().memory.into_memory(MemoryId(Uuid::from_u128(1)), NOW)
}

fn change(body: Value) -> Result<FactChange> {
    FactChange::read(&body, None, &Rules::default())
}

fn changed(body: Value, memory: &Memory) -> Applied {
    change(body).unwrap().apply(memory, LATER, &Rules::default()).unwrap()
}

#[test]
fn a_fact_is_a_procedural_memory() {
    let memory = stored(json!({"confidence": 0.5, "ttlSeconds": 9, "metadata": {"a": 1, "b": null}}));
    assert_eq!((memory.kind, memory.state), (Kind::Procedural, State::Active));
    assert_eq!(memory.content, "alice drinks with milk");
    assert_eq!((memory.ttl_seconds, memory.metadata), (Some(9), object(json!({"a": 1}))));
    assert_eq!(memory.fact, Some(new(json!({"confidence": 0.5})).unwrap().fact));
    assert_eq!(stored(json!({"content": " own "})).content, " own ");
}

#[test]
fn types_ranges_and_their_order() {
    for field in ["factType", "subject", "predicate", "object"] {
        for bad in [json!(null), json!(""), json!(" \n"), json!(5), json!("é".repeat(1025)), json!("a\0")] {
            assert_eq!(code(new(json!({field: bad}))), format!("INVALID_REQUEST {field}"));
            if !bad.is_null() {
                assert_eq!(code(change(json!({field: bad}))), format!("INVALID_REQUEST {field}"));
            }
        }
        assert!(new(json!({field: "é".repeat(1024)})).is_ok());
    }
    let rows = [
        (json!({"confidence": 1.1}), "INVALID_REQUEST confidence"),
        (json!({"confidence": "1"}), "INVALID_REQUEST confidence"),
        (json!({"content": ""}), "INVALID_REQUEST content"),
        (json!({"metadata": {"_x": 1}}), "INVALID_REQUEST metadata._x"),
        (json!({"ttlSeconds": 0}), "INVALID_REQUEST ttlSeconds"),
        (json!({"layer": "x", "content": "x".repeat(100_001)}), "INVALID_LAYER"),
        (json!({"layer": "team", "content": "x".repeat(100_001)}), "MISSING_IDENTIFIER"),
        (json!({"identifiers": {"userId": "bob"}, "content": "x".repeat(100_001)}), "FORBIDDEN"),
        (json!({"content": "x".repeat(100_001)}), "CONTENT_TOO_LONG"),
    ];
    for (members, expected) in rows {
        assert_eq!(code(new(members)), expected);
    }
}

#[test]
fn the_key_is_everything_but_the_confidence_and_its_parts_stay_apart() {
    let key = |members: Value| new(members).unwrap().fact.key();
    assert_eq!(key(json!({})), key(json!({"confidence": 0.1, "content": "other"})));
    let keys = [
        key(json!({})),
        key(json!({"factType": "Preference"})),
        key(json!({"subject": "alice "})),
        key(json!({"subject": "alicedrinks", "predicate": "_with"})),
        key(json!({"predicate": "drinks_withm", "object": "ilk"})),
        key(json!({"object": "Milk"})),
    ];
    let distinct: std::collections::HashSet<_> = keys.iter().collect();
    assert_eq!(distinct.len(), keys.len());
}

#[test]
fn stating_a_fact_again_replaces_what_was_said_and_merges_what_was_noted() {
    let first =
        stored(json!({"content": "first", "confidence": 0.2, "ttlSeconds": 9, "metadata": {"a": 1, "b": 1}}));
    let again = new(json!({"confidence": 0.9, "metadata": {"b": null, "c": 1}})).unwrap();
    let applied = again.apply(&first, LATER, &Rules::default()).unwrap();
    assert!(applied.content_changed);
    let next = applied.memory;
    assert_eq!((next.id, next.version, next.updated_at), (first.id, 2, LATER));
    assert_eq!((next.content.as_str(), next.fact.unwrap().confidence), ("alice drinks with milk", 0.9));
    assert_eq!(next.metadata, object(json!({"a": 1, "c": 1})));
    assert_eq!((next.ttl_seconds, next.expires_at), (Some(9), Some(LATER.saturating_add_micros(9_000_000))));
    assert_eq!(next.policy, first.policy);
}

#[test]
fn content_that_only_said_the_fact_follows_it() {
    let rendered = changed(json!({"object": "lemon"}), &stored(json!({})));
    assert!(rendered.content_changed);
    assert_eq!(rendered.memory.content, "alice drinks with lemon");
    let own = changed(json!({"object": "lemon"}), &stored(json!({"content": "own words"})));
    assert!(!own.content_changed);
    assert_eq!(own.memory.content, "own words");
    assert_eq!(own.memory.fact.unwrap().object, "lemon");
    let told = changed(json!({"object": "lemon", "content": "new words"}), &stored(json!({})));
    assert_eq!(told.memory.content, "new words");
    let surer = changed(json!({"confidence": 0.1, "metadata": {"a": 1}}), &stored(json!({})));
    assert!(!surer.content_changed);
    assert_eq!((surer.memory.version, surer.memory.fact.unwrap().confidence), (2, 0.1));
    assert_eq!(surer.memory.metadata, object(json!({"a": 1})));
}

#[test]
fn a_change_of_a_fact_names_something_to_change_and_a_version_it_is_for() {
    for body in [json!({}), json!({"version": 1}), json!({"subject": null}), json!({"ttlSeconds": 5})] {
        assert_eq!(code(change(body)), "INVALID_REQUEST");
    }
    for fixed in ["layer", "kind", "identifiers", "id", "createdAt"] {
        assert_eq!(code(change(json!({"subject": "x", fixed: "x"}))), format!("INVALID_REQUEST {fixed}"));
    }
    let stale = FactChange::read(&json!({"subject": "x"}), Some("\"v9\""), &Rules::default()).unwrap();
    assert_eq!(code(stale.apply(&stored(json!({})), LATER, &Rules::default())), "ETAG_MISMATCH");
    let other = Memory { fact: None, kind: Kind::Semantic, ..stored(json!({})) };
    let missing = change(json!({"subject": "x"})).unwrap().apply(&other, LATER, &Rules::default());
    assert_eq!(code(missing), "MEMORY_NOT_FOUND");
}
