use super::*;
use crate::rest::openspec::decode::{self, NextEntry};
use crate::rest::testing::{members, memory_with, scope, user};
use memtrove_core::memories::members::Members;
use memtrove_core::memories::openspec::SOURCE_TYPES;
use memtrove_core::memories::{
    AccessPolicy, Change, Fact, Kind, Layer, Policy, Precondition, Rules, metadata as ours,
};
use memtrove_core::{Result, Timestamp};
use memtrove_service::memories::Replacement;
use proptest::prelude::*;

const EVERYTHING: Show = Show { content: true, embedding: true };

#[test]
fn an_entry_is_shown_in_the_protocols_words() {
    let stored = members(json!({
        "tags": ["a"], "title": "T", "importance": 1, "custom": {"custom": 1}, "relevance": 0.9,
        "source": {"type": "import", "origin": "web_scrape", "reference": "https://x.y", "version": "2"}
    }));
    let memory = Memory { scope: scope(Layer::Session), kind: Kind::Session, ..memory_with(stored) };
    let expected = json!({
        "id": "00000000-0000-0000-0000-000000000007",
        "content": "the text",
        "embedding": [1.0, 0.0],
        "metadata": {"title": "T", "tags": ["a"], "importance": 1, "custom": {"custom": {"custom": 1}, "relevance": 0.9}},
        "source": {"type": "web_scrape", "identifier": "https://x.y", "version": "2"},
        "access_policy": "private",
        "created_at": "1970-01-01T00:00:00.000000Z",
        "updated_at": "1970-01-01T00:00:00.000000Z",
        "version": 1,
        "layer": {"type": "session", "scope": "session", "user_id": "x", "session_id": "x"}
    });
    assert_eq!(serde_json::to_string(&entry(&memory, EVERYTHING)).unwrap(), expected.to_string());
    let brief = json!(entry(&memory, Show { content: false, embedding: false }));
    assert!(brief.get("content").is_none() && brief.get("embedding").is_none());
    assert_eq!(json!(metadata(&memory, false)), json!({"title": "T", "tags": ["a"], "importance": 1}));
}

#[test]
fn a_fact_is_shown_among_custom_metadata() {
    let fact = Fact {
        fact_type: "preference".to_owned(),
        subject: "anna".to_owned(),
        predicate: "likes".to_owned(),
        object: "tea".to_owned(),
        confidence: 0.9,
    };
    let memory = Memory { kind: Kind::Procedural, fact: Some(fact), ..memory_with(Map::new()) };
    assert_eq!(
        json!(metadata(&memory, true)),
        json!({"custom": {"fact":
            {"fact_type": "preference", "subject": "anna", "predicate": "likes", "object": "tea", "confidence": 0.9}}})
    );
}

/// An entry after a replacement.
fn replaced(stored: &Memory, entry: Value) -> Result<Memory> {
    let body = json!({"entry": entry});
    let any = Precondition::default();
    let NextEntry::Text(with) = decode::replacement(Members::body(&body)?, stored, &any)? else {
        panic!("{stored:?} states no fact")
    };
    let Replacement { content, metadata, policy } = with;
    let change = Change { content: Some(content), metadata: Some(metadata), policy, ..Change::default() };
    let emptied = Memory { metadata: Map::new(), ..stored.clone() };
    change.apply(&emptied, Timestamp::from_micros(9), &Rules::default()).map(|applied| applied.memory)
}

fn some_metadata() -> impl Strategy<Value = Map<String, Value>> {
    let value = prop_oneof![
        Just(json!("text")),
        Just(json!(1.5)),
        Just(json!([null, {"custom": {}}])),
        Just(json!({"type": "x"})),
    ];
    let custom = prop::collection::btree_map("custom|fact|layer|colour|metadata|identifier", value, 0..4);
    let reference = prop::option::of("[a-z]{1,5}");
    let kind = prop::sample::select(ours::SOURCE_TYPES.to_vec());
    let origin = prop::option::of(prop::sample::select(SOURCE_TYPES.to_vec()));
    let more = prop::collection::btree_map("version|provider_id|identifier|page", "[a-z]{1,3}", 0..3);
    let source = prop::option::of((kind, reference, origin, more));
    let named = prop::sample::subsequence(NAMED.to_vec(), 0..=NAMED.len());
    let known =
        prop::sample::subsequence(vec!["relevance", "decayFactor", "sensitive", "conflictKey"], 0..=4);
    (custom, source, named, known).prop_map(|(custom, source, named, known)| {
        let mut metadata: Map<String, Value> = custom.into_iter().collect();
        for name in named.into_iter().chain(known) {
            let value = match name {
                "tags" => json!(["a", "b"]),
                "confidence" | "importance" | "relevance" | "decayFactor" => json!(0.5),
                "sensitive" => json!(true),
                _ => json!("text"),
            };
            metadata.insert(name.to_owned(), value);
        }
        if let Some((kind, reference, origin, more)) = source {
            let mut source: Map<String, Value> =
                more.into_iter().map(|(name, value)| (name, json!(value))).collect();
            source.insert("type".to_owned(), json!(kind));
            source.extend(reference.map(|reference| ("reference".to_owned(), json!(reference))));
            source.extend(origin.map(|origin| ("origin".to_owned(), json!(origin))));
            metadata.insert("source".to_owned(), source.into());
        }
        metadata
    })
}

proptest! {
    #[test]
    fn putting_back_what_was_got_loses_nothing(metadata in some_metadata(), policy in prop::sample::select(Policy::ALL.to_vec())) {
        let policy = AccessPolicy {
            approved_users: vec!["u".to_owned()],
            allowed_teams: vec!["t".to_owned()],
            ..AccessPolicy::new(policy)
        };
        let stored = Memory { policy, ..memory_with(metadata) };
        let got = json!(entry(&stored, EVERYTHING));
        let after = replaced(&stored, got).unwrap();
        let expected = Memory { version: 2, updated_at: after.updated_at, ..stored };
        prop_assert_eq!(after, expected);
    }

    #[test]
    fn what_is_created_shows_what_was_said(source in prop::sample::select(SOURCE_TYPES.to_vec()), custom in "[a-z]{1,4}") {
        let given = json!({
            "content": "x",
            "metadata": {"title": "T", "custom": {(format!("own {custom}")): 1}},
            "source": {"type": source, "identifier": "i", "version": "1", "provider_id": "p"},
            "access_policy": "shared"
        });
        let create = json!({"entry": given, "options": {"layer": {"type": "user", "user_id": "alice"}}});
        let alice = user("alice");
        let add = decode::create(Members::body(&create).unwrap(), &alice).unwrap().add;
        let new = add.check(&Rules::default(), &alice).unwrap();
        let made = new.into_memory(memory_with(Map::new()).id, Timestamp::from_micros(0));
        let shown = json!(entry(&made, EVERYTHING));
        for name in ["content", "metadata", "source", "access_policy"] {
            prop_assert_eq!(&shown[name], &given[name]);
        }
    }
}
