use super::*;
use crate::memories::requests::{code, refusal};
use crate::memories::testing::{members as object, memory};
use crate::memories::{Embedding, Fact, Limits};
use proptest::prelude::*;
use serde_json::{Value, json};

const NOW: Timestamp = Timestamp::from_micros(9_000_000);

fn content(text: impl Into<String>) -> Change {
    Change { content: Some(text.into()), ..Change::default() }
}

fn noting(metadata: Value) -> Change {
    Change { metadata: Some(GivenMetadata(object(metadata))), ..Change::default() }
}

fn ttl(seconds: Option<i64>) -> Change {
    Change { ttl: Some(seconds), ..Change::default() }
}

fn apply(change: Change, memory: &Memory) -> Result<Applied> {
    change.apply(memory, NOW, &Rules::default())
}

/// A decayed entry at version 3, with an embedding and some metadata, whose anchor is 0.
fn old() -> Memory {
    let metadata = object(json!({"tags": ["a", "b"], "keep": 1, "gone": true}));
    let embedding = Some(Embedding::of_whole("m".into(), vec![1.0]));
    Memory { version: 3, state: State::Decayed, metadata, embedding, ..memory(1, "old text") }
}

#[test]
fn a_change_of_nothing_is_refused() {
    let rules = Rules::default();
    let nothing = Change { precondition: Precondition::if_match(Some("\"v3\"")), ..Change::default() };
    assert_eq!(code(nothing.check(&rules)), "INVALID_REQUEST");
    assert!(Change { metadata: Some(GivenMetadata::default()), ..nothing }.check(&rules).is_ok());
    assert_eq!(code(content("x".repeat(100_001)).check(&rules)), "CONTENT_TOO_LONG");
}

#[test]
fn new_content_is_a_new_beginning() {
    let applied = apply(content("new text"), &old()).unwrap();
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
    let both = Change { metadata: Some(GivenMetadata::default()), ..content("old text") };
    for change in [content("old text"), noting(json!({})), both] {
        let applied = apply(change, &old()).unwrap();
        assert!(!applied.content_changed);
        assert_eq!(applied.memory, Memory { version: 4, updated_at: NOW, ..old() });
    }
}

#[test]
fn metadata_is_merged_one_level_deep() {
    let applied = apply(noting(json!({"tags": ["c"], "gone": null, "new": {"x": null}})), &old()).unwrap();
    let expected = object(json!({"tags": ["c"], "keep": 1, "new": {"x": null}}));
    assert_eq!(applied.memory.metadata, expected);
}

#[test]
fn metadata_is_measured_after_merging() {
    let rules = Rules { limits: Limits { metadata_bytes: 60, ..Limits::default() }, ..Rules::default() };
    let apply = |metadata| noting(metadata).apply(&old(), NOW, &rules);
    assert_eq!(code(apply(json!({"more": "x".repeat(30)}))), "METADATA_TOO_LARGE");
    assert!(apply(json!({"more": "x".repeat(30), "tags": null, "gone": null})).is_ok());
}

#[test]
fn every_change_renews_the_expiry() {
    let expiring =
        Memory { ttl_seconds: Some(10), expires_at: Some(Timestamp::from_micros(10_000_000)), ..old() };
    let in_seconds = |seconds: i64| Some(NOW.saturating_add_micros(seconds * 1_000_000));
    let expiry = |change| {
        apply(change, &expiring).map(|applied| (applied.memory.ttl_seconds, applied.memory.expires_at))
    };
    assert_eq!(expiry(noting(json!({}))), Ok((Some(10), in_seconds(10))));
    assert_eq!(expiry(ttl(Some(20))), Ok((Some(20), in_seconds(20))));
    assert_eq!(expiry(ttl(None)), Ok((None, None)));
    let lasting = apply(ttl(Some(5)), &old()).unwrap().memory;
    assert_eq!((lasting.ttl_seconds, lasting.expires_at), (Some(5), in_seconds(5)));
}

#[test]
fn an_expiry_without_a_time_to_live_stays_what_it_was_made() {
    let end = Some(Timestamp::from_micros(77_000_000));
    let ended = Memory { expires_at: end, ttl_seconds: None, ..old() };
    assert_eq!(apply(content("x"), &ended).unwrap().memory.expires_at, end);
}

#[test]
fn a_working_entry_always_expires() {
    let working = Memory { kind: Kind::Working, ttl_seconds: Some(5), ..old() };
    assert_eq!(code(apply(ttl(None), &working)), "INVALID_REQUEST ttlSeconds");
    assert!(apply(ttl(None), &Memory { kind: Kind::Session, ..working }).is_ok());
}

#[test]
fn an_archived_entry_stays_archived() {
    let archived = Memory { kind: Kind::Archival, state: State::Archived, ..old() };
    let applied = apply(content("new"), &archived).unwrap();
    assert_eq!((applied.memory.kind, applied.memory.state), (Kind::Archival, State::Archived));
}

#[test]
fn what_mirrors_an_event_or_states_a_fact_is_changed_elsewhere() {
    let mut mirror = old();
    mirror.lineage.mirror_of = Some("event".to_owned());
    let refusal = refusal(apply(noting(json!({})), &mirror));
    assert_eq!((refusal.code, &refusal.details["reason"]), (Code::InvalidState, &json!("mirrored")));

    let text = || "x".to_owned();
    let fact =
        Fact { fact_type: text(), subject: text(), predicate: text(), object: text(), confidence: 1.0 };
    let stated = Memory { kind: Kind::Procedural, fact: Some(fact), ..old() };
    assert_eq!(code(apply(content("y"), &stated)), "INVALID_REQUEST content");
    assert!(apply(noting(json!({"a": 1})), &stated).is_ok());
}

#[test]
fn a_stale_change_is_refused_with_the_latest_version() {
    let apply = |precondition| apply(Change { precondition, ..content("x") }, &old());
    let version = |version| Precondition::default().and_version(Some(version)).unwrap();
    let if_match = |header| Precondition::if_match(Some(header));
    for precondition in [version(2), if_match("\"v4\""), if_match("W/\"v3\"")] {
        let refusal = refusal(apply(precondition));
        assert_eq!(refusal.code, Code::EtagMismatch);
        assert_eq!(
            (&refusal.details["latest_etag"], &refusal.details["latestVersion"]),
            (&json!("\"v3\""), &json!(3))
        );
    }
    assert!(apply(if_match("\"v3\"").and_version(Some(3)).unwrap()).is_ok());
    assert!(apply(if_match("*")).is_ok());
}

proptest! {
    #[test]
    fn time_and_versions_only_grow(nows in prop::collection::vec(0i64..1_000, 1..20)) {
        let mut entry = old();
        for now in nows {
            let next = noting(json!({"at": now}))
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
