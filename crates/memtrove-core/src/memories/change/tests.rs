use super::*;
use crate::memories::requests::{code, refusal};
use crate::memories::testing::{members as object, memory};
use crate::memories::{Embedding, Fact, Limits, Policy};
use proptest::prelude::*;
use serde_json::json;

const NOW: Timestamp = Timestamp::from_micros(9_000_000);

fn read(body: Value, if_match: Option<&str>) -> Result<Change> {
    Change::read(&body, if_match, &Rules::default())
}

fn change(body: Value) -> Change {
    read(body, None).unwrap()
}

fn apply(body: Value, memory: &Memory) -> Result<Applied> {
    change(body).apply(memory, NOW, &Rules::default())
}

/// A decayed entry at version 3, with an embedding and some metadata, whose anchor is 0.
fn old() -> Memory {
    let metadata = object(json!({"tags": ["a", "b"], "keep": 1, "gone": true}));
    let embedding = Some(Embedding { model: "m".into(), vector: vec![1.0] });
    Memory { version: 3, state: State::Decayed, metadata, embedding, ..memory(1, "old text") }
}

#[test]
fn a_change_says_what_to_change() {
    let read = change(
        json!({"content": " x ", "metadata": {"a": null}, "ttlSeconds": null, "accessPolicy": {"policy": "public"}}),
    );
    assert_eq!(read.content.as_deref(), Some(" x "));
    assert_eq!(read.metadata, Some(GivenMetadata(object(json!({"a": null})))));
    assert_eq!(read.ttl, Some(None));
    assert_eq!(read.policy, Some(AccessPolicy::new(Policy::Public)));
    assert_eq!(change(json!({"ttlSeconds": 5})).ttl, Some(Some(5)));
    assert_eq!(change(json!({"content": "x"})).ttl, None);
}

#[test]
fn a_change_of_nothing_is_refused() {
    for body in [
        json!({}),
        json!({"version": 3}),
        json!({"content": null, "metadata": null, "accessPolicy": null}),
        json!({"state": "active"}),
    ] {
        assert_eq!(code(read(body, None)), "INVALID_REQUEST");
    }
    assert!(read(json!({"metadata": {}}), None).is_ok());
}

#[test]
fn types_ranges_and_what_never_changes() {
    let rows = [
        (json!({"content": ""}), "content"),
        (json!({"content": 1}), "content"),
        (json!({"metadata": "x"}), "metadata"),
        (json!({"metadata": {"_x": null}}), "metadata._x"),
        (json!({"metadata": {"relevance": 2}}), "metadata.relevance"),
        (json!({"ttlSeconds": 0}), "ttlSeconds"),
        (json!({"ttlSeconds": "5"}), "ttlSeconds"),
        (json!({"accessPolicy": {}}), "accessPolicy.policy"),
        (json!({"content": "x", "version": 0}), "version"),
        (json!({"content": "x", "version": "3"}), "version"),
        (json!({"content": "x", "version": 3.0}), "version"),
        (json!({"content": "x", "layer": "user"}), "layer"),
        (json!({"content": "x", "kind": "semantic"}), "kind"),
        (json!({"content": "x", "identifiers": {}}), "identifiers"),
        (json!({"content": "x", "id": "1"}), "id"),
        (json!({"content": "x", "createdAt": "2026-01-01T00:00:00Z"}), "createdAt"),
        (json!({"content": "x", "embedding": []}), "embedding"),
    ];
    for (body, field) in rows {
        assert_eq!(code(read(body, None)), format!("INVALID_REQUEST {field}"));
    }
    assert_eq!(code(read(json!({"content": "x", "version": 2}), Some("\"v3\""))), "INVALID_REQUEST version");
    assert_eq!(code(read(json!({"content": "x".repeat(100_001)}), None)), "CONTENT_TOO_LONG");
}

#[test]
fn new_content_is_a_new_beginning() {
    let applied = apply(json!({"content": "new text"}), &old()).unwrap();
    assert!(applied.content_changed);
    let expected = Memory {
        content: "new text".to_owned(),
        version: 4,
        updated_at: NOW,
        anchor: NOW,
        state: State::Active,
        embedding: None,
        ..old()
    };
    assert_eq!(applied.memory, expected);
}

#[test]
fn equal_content_and_other_changes_leave_meaning_and_age_alone() {
    for body in [
        json!({"content": "old text"}),
        json!({"metadata": {}}),
        json!({"content": "old text", "metadata": {}}),
    ] {
        let applied = apply(body, &old()).unwrap();
        assert!(!applied.content_changed);
        assert_eq!(applied.memory, Memory { version: 4, updated_at: NOW, ..old() });
    }
}

#[test]
fn metadata_is_merged_one_level_deep() {
    let applied =
        apply(json!({"metadata": {"tags": ["c"], "gone": null, "new": {"x": null}}}), &old()).unwrap();
    let expected = object(json!({"tags": ["c"], "keep": 1, "new": {"x": null}}));
    assert_eq!(applied.memory.metadata, expected);
}

#[test]
fn metadata_is_measured_after_merging() {
    let rules = Rules { limits: Limits { metadata_bytes: 60, ..Limits::default() }, ..Rules::default() };
    let apply = |body: Value| Change::read(&body, None, &rules).unwrap().apply(&old(), NOW, &rules);
    assert_eq!(code(apply(json!({"metadata": {"more": "x".repeat(30)}}))), "METADATA_TOO_LARGE");
    assert!(apply(json!({"metadata": {"more": "x".repeat(30), "tags": null, "gone": null}})).is_ok());
}

#[test]
fn every_change_renews_the_expiry() {
    let expiring =
        Memory { ttl_seconds: Some(10), expires_at: Some(Timestamp::from_micros(10_000_000)), ..old() };
    let in_seconds = |seconds: i64| Some(NOW.saturating_add_micros(seconds * 1_000_000));
    let expiry = |body: Value| {
        apply(body, &expiring).map(|applied| (applied.memory.ttl_seconds, applied.memory.expires_at))
    };
    assert_eq!(expiry(json!({"metadata": {}})), Ok((Some(10), in_seconds(10))));
    assert_eq!(expiry(json!({"ttlSeconds": 20})), Ok((Some(20), in_seconds(20))));
    assert_eq!(expiry(json!({"ttlSeconds": null})), Ok((None, None)));
    let lasting = apply(json!({"ttlSeconds": 5}), &old()).unwrap().memory;
    assert_eq!((lasting.ttl_seconds, lasting.expires_at), (Some(5), in_seconds(5)));
}

#[test]
fn an_expiry_without_a_time_to_live_stays_what_it_was_made() {
    let end = Some(Timestamp::from_micros(77_000_000));
    let ended = Memory { expires_at: end, ttl_seconds: None, ..old() };
    assert_eq!(apply(json!({"content": "x"}), &ended).unwrap().memory.expires_at, end);
}

#[test]
fn a_working_entry_always_expires() {
    let working = Memory { kind: Kind::Working, ttl_seconds: Some(5), ..old() };
    assert_eq!(code(apply(json!({"ttlSeconds": null}), &working)), "INVALID_REQUEST ttlSeconds");
    assert!(apply(json!({"ttlSeconds": null}), &Memory { kind: Kind::Session, ..working }).is_ok());
}

#[test]
fn an_archived_entry_stays_archived() {
    let archived = Memory { kind: Kind::Archival, state: State::Archived, ..old() };
    let applied = apply(json!({"content": "new"}), &archived).unwrap();
    assert_eq!((applied.memory.kind, applied.memory.state), (Kind::Archival, State::Archived));
}

#[test]
fn what_mirrors_an_event_or_states_a_fact_is_changed_elsewhere() {
    let mut mirror = old();
    mirror.lineage.mirror_of = Some("event".to_owned());
    let refusal = refusal(apply(json!({"metadata": {}}), &mirror));
    assert_eq!((refusal.code, &refusal.details["reason"]), (Code::InvalidState, &json!("mirrored")));

    let text = || "x".to_owned();
    let fact =
        Fact { fact_type: text(), subject: text(), predicate: text(), object: text(), confidence: 1.0 };
    let stated = Memory { kind: Kind::Procedural, fact: Some(fact), ..old() };
    assert_eq!(code(apply(json!({"content": "y"}), &stated)), "INVALID_REQUEST content");
    assert!(apply(json!({"metadata": {"a": 1}}), &stated).is_ok());
}

#[test]
fn a_stale_change_is_refused_with_the_latest_version() {
    let apply = |body: Value, if_match| read(body, if_match).unwrap().apply(&old(), NOW, &Rules::default());
    for (body, if_match) in [
        (json!({"content": "x", "version": 2}), None),
        (json!({"content": "x"}), Some("\"v4\"")),
        (json!({"content": "x"}), Some("W/\"v3\"")),
        (json!({"content": "x", "version": 4}), Some("*")),
    ] {
        let refusal = refusal(apply(body, if_match));
        assert_eq!(refusal.code, Code::EtagMismatch);
        assert_eq!(
            (&refusal.details["latest_etag"], &refusal.details["latestVersion"]),
            (&json!("\"v3\""), &json!(3))
        );
    }
    assert!(apply(json!({"content": "x", "version": 3}), Some("\"v3\"")).is_ok());
    assert!(apply(json!({"content": "x"}), Some("*")).is_ok());
}

proptest! {
    #[test]
    fn time_and_versions_only_grow(nows in prop::collection::vec(0i64..1_000, 1..20)) {
        let mut entry = old();
        for now in nows {
            let next = change(json!({"metadata": {"at": now}}))
                .apply(&entry, Timestamp::from_micros(now), &Rules::default())
                .unwrap()
                .memory;
            prop_assert_eq!(next.version, entry.version + 1);
            prop_assert!(next.updated_at > entry.updated_at && next.updated_at.as_micros() >= now);
            prop_assert_eq!(next.created_at, entry.created_at);
            entry = next;
        }
    }
}
