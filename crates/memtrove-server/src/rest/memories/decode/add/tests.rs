use super::*;
use crate::rest::testing::{client, code, refusal, user, with};
use memtrove_core::Timestamp;
use memtrove_core::memories::{
    AccessPolicy, Author, Kind, Layer, Limits, Memory, MemoryCaller, MemoryId, NewMemory, Policy, State,
};
use serde_json::{Map, json};
use uuid::Uuid;

const NOW: Timestamp = Timestamp::from_micros(1_000_000);

fn body(members: Value) -> Value {
    with(json!({"content": "likes tea", "layer": "user", "identifiers": {"userId": "alice"}}), members)
}

fn checked(body: &Value, rules: &Rules, caller: &MemoryCaller) -> Result<NewMemory> {
    add(body, rules)?.check(rules, caller)
}

fn read(members: Value) -> Result<NewMemory> {
    checked(&body(members), &Rules::default(), &user("alice"))
}

fn stored(members: Value) -> Memory {
    read(members).unwrap().into_memory(MemoryId(Uuid::from_u128(7)), NOW)
}

fn fact(members: Value) -> Value {
    with(
        json!({"factType": "rule", "subject": "deploys", "predicate": "happen_on", "object": "Tuesdays"}),
        members,
    )
}

#[test]
fn the_smallest_add_gets_the_defaults_of_its_layer() {
    let memory = stored(json!({}));
    assert_eq!(
        (memory.content.as_str(), memory.kind, memory.state),
        ("likes tea", Kind::UserPersonal, State::Active)
    );
    assert_eq!((memory.created_at, memory.updated_at, memory.anchor, memory.version), (NOW, NOW, NOW, 1));
    assert_eq!((memory.ttl_seconds, memory.expires_at, memory.occurred_at), (None, None, None));
    assert_eq!(memory.policy, AccessPolicy::new(Policy::Private));
    assert_eq!(memory.created_by, Author { user: Some("alice".to_owned()), client: None });
    assert_eq!((memory.metadata, memory.fact, memory.embedding), (Map::new(), None, None));
    let shared = stored(json!({"layer": "PROJECT", "identifiers": {"projectId": "p", "userId": "alice"}}));
    assert_eq!((shared.kind, shared.policy.policy), (Kind::Semantic, Policy::Organization));
    assert_eq!(shared.scope.values(), ["p"]);
    assert_eq!(shared.created_by.user.as_deref(), Some("alice"));
}

#[test]
fn content_is_kept_byte_for_byte() {
    let content = " \u{feff}a\u{301}\r\n\t";
    assert_eq!(stored(json!({"content": content})).content, content);
}

#[test]
fn working_and_session_entries_expire_and_others_when_told_to() {
    let session = json!({"layer": "session", "identifiers": {"userId": "alice", "sessionId": "s"}});
    let rows = [
        (session.clone(), Some(3_600)),
        (with(session.clone(), json!({"ttlSeconds": 5})), Some(5)),
        (with(session, json!({"kind": "episodic"})), None),
        (json!({"kind": "working"}), Some(3_600)),
        (json!({"ttlSeconds": 31_536_000}), Some(31_536_000)),
        (json!({"ttlSeconds": null}), None),
    ];
    for (members, ttl) in rows {
        let memory = stored(members.clone());
        let expires = ttl.map(|ttl| NOW.saturating_add_micros(ttl * 1_000_000));
        assert_eq!((memory.ttl_seconds, memory.expires_at), (ttl, expires), "{members}");
        assert!(memory.is_live(NOW));
    }
}

#[test]
fn an_entry_happened_when_it_says_and_an_episode_otherwise_when_it_was_made() {
    let at = "2031-01-01T00:00:00Z";
    let said = stored(json!({"kind": "episodic", "occurredAt": at}));
    assert_eq!(said.occurred_at, Timestamp::parse(at));
    assert_eq!(stored(json!({"kind": "episodic"})).occurred_at, Some(NOW));
    for kind in ["user_personal", "archival", "working"] {
        let said = stored(json!({"kind": kind, "occurredAt": at}));
        assert_eq!((said.kind.as_str(), said.occurred_at), (kind, Timestamp::parse(at)));
        assert_eq!(stored(json!({"kind": kind})).occurred_at, None);
    }
}

#[test]
fn a_procedural_entry_states_a_fact_and_says_it_if_nobody_else_does() {
    let rendered =
        stored(with(body(json!({"kind": "procedural", "fact": fact(json!({}))})), json!({"content": null})));
    assert_eq!(rendered.content, "deploys happen on Tuesdays");
    assert_eq!(
        rendered.fact.map(|fact| (fact.predicate, fact.confidence)),
        Some(("happen_on".to_owned(), 1.0))
    );
    let own = stored(json!({"kind": "procedural", "fact": fact(json!({"confidence": 0.5}))}));
    assert_eq!((own.content.as_str(), own.fact.map(|fact| fact.confidence)), ("likes tea", Some(0.5)));
    for (members, field) in [
        (json!({"kind": "procedural"}), "fact"),
        (json!({"fact": fact(json!({}))}), "fact"),
        (json!({"kind": "procedural", "fact": "x"}), "fact"),
        (json!({"kind": "procedural", "fact": fact(json!({"object": " "}))}), "fact.object"),
        (json!({"kind": "procedural", "fact": fact(json!({"subject": null}))}), "fact.subject"),
        (json!({"kind": "procedural", "fact": fact(json!({"factType": "x".repeat(1025)}))}), "fact.factType"),
        (json!({"kind": "procedural", "fact": fact(json!({"confidence": 2}))}), "fact.confidence"),
        (json!({"kind": "procedural", "content": null}), "content"),
    ] {
        assert_eq!(code(read(members)), format!("INVALID_REQUEST {field}"));
    }
}

#[test]
fn archival_may_be_added_and_is_archived_then() {
    let memory = stored(json!({"kind": "archival"}));
    assert_eq!((memory.kind, memory.state, memory.origin_kind), (Kind::Archival, State::Archived, None));
}

#[test]
fn members_that_the_server_owns_are_ignored() {
    let owned = json!({
        "id": "mine", "createdAt": 5, "updatedAt": [], "version": "9", "state": "archived", "createdBy": "me",
        "relevance": 7, "contentHash": 1, "lineage": false, "embeddingModel": 1, "embedding": null, "whatever": {},
    });
    assert_eq!(stored(owned), stored(json!({})));
}

#[test]
fn types_and_ranges() {
    let rows = [
        (json!({"content": null}), "content"),
        (json!({"content": 5}), "content"),
        (json!({"content": ""}), "content"),
        (json!({"content": " \n\u{2003}"}), "content"),
        (json!({"content": "a\0"}), "content"),
        (json!({"embedding": [1.0]}), "embedding"),
        (json!({"embedding": []}), "embedding"),
        (json!({"identifiers": "alice"}), "identifiers"),
        (json!({"identifiers": {"userId": 1}}), "identifiers.userId"),
        (json!({"identifiers": {"userId": "alice", "teamId": "a\u{7}"}}), "identifiers.teamId"),
        (json!({"metadata": []}), "metadata"),
        (json!({"metadata": {"tags": "x"}}), "metadata.tags"),
        (json!({"metadata": {"_scope": "x"}}), "metadata._scope"),
        (json!({"metadata": {"deep": {"x": "\0"}}}), "metadata.deep.x"),
        (json!({"ttlSeconds": 0}), "ttlSeconds"),
        (json!({"ttlSeconds": 31_536_001}), "ttlSeconds"),
        (json!({"ttlSeconds": 1.5}), "ttlSeconds"),
        (json!({"ttlSeconds": "60"}), "ttlSeconds"),
        (json!({"ttlSeconds": true}), "ttlSeconds"),
        (json!({"occurredAt": "yesterday"}), "occurredAt"),
        (json!({"accessPolicy": "private"}), "accessPolicy"),
    ];
    for (members, field) in rows {
        assert_eq!(code(read(members)), format!("INVALID_REQUEST {field}"));
    }
    assert_eq!(code(checked(&json!([]), &Rules::default(), &client("gateway"))), "INVALID_REQUEST");
}

#[test]
fn one_bad_request_has_one_code() {
    // Each row mends the first thing that was wrong with the row before.
    let rules = Rules::default();
    let long = "x".repeat(rules.limits.content_length + 1);
    let heavy = json!({"blob": "x".repeat(rules.limits.metadata_bytes)});
    let bad = json!({
        "content": long, "metadata": heavy, "ttlSeconds": 0, "layer": "planet", "kind": "user_personal",
        "occurredAt": "2026-01-01T00:00:00Z", "identifiers": {"userId": "bob"},
    });
    let rows = [
        (json!({}), "INVALID_REQUEST ttlSeconds"),
        (json!({"ttlSeconds": 1}), "INVALID_LAYER"),
        (json!({"layer": "session"}), "INVALID_KIND"),
        (json!({"kind": "session"}), "MISSING_IDENTIFIER"),
        (json!({"identifiers": {"userId": "bob", "sessionId": "s"}}), "FORBIDDEN"),
        (json!({"identifiers": {"userId": "alice", "sessionId": "s"}}), "CONTENT_TOO_LONG"),
        (json!({"content": "x"}), "METADATA_TOO_LARGE"),
    ];
    let mut request = bad;
    for (mended, expected) in rows {
        request = with(request, mended);
        assert_eq!(code(checked(&request, &rules, &user("alice"))), expected);
    }
    assert!(checked(&with(request, json!({"metadata": null})), &rules, &user("alice")).is_ok());
}

#[test]
fn content_is_counted_in_characters() {
    let rules = Rules::default();
    let text = |count: usize| body(json!({"content": "é".repeat(count)}));
    assert!(checked(&text(100_000), &rules, &user("alice")).is_ok());
    let refusal = refusal(checked(&text(100_001), &rules, &user("alice")));
    assert_eq!(refusal.details["maxLength"], 100_000);
    assert_eq!(refusal.details["actualLength"], 100_001);
}

#[test]
fn metadata_is_measured_without_what_is_dropped() {
    let limits = Limits { metadata_bytes: 10, ..Default::default() };
    let rules = Rules { limits, ..Rules::default() };
    let read = |metadata: Value| checked(&body(json!({"metadata": metadata})), &rules, &user("alice"));
    assert_eq!(
        Value::Object(read(json!({"aaaaaaaaaaaaa": null, "b": 1})).unwrap().metadata),
        json!({"b": 1})
    );
    assert_eq!(code(read(json!({"b": "12345"}))), "METADATA_TOO_LARGE");
}

#[test]
fn who_may_add_where() {
    let project = body(json!({"layer": "project", "identifiers": {"projectId": "p"}}));
    let rules = Rules::default();
    assert!(checked(&project, &rules, &client("robot")).is_ok());
    assert_eq!(code(checked(&body(json!({})), &rules, &client("robot"))), "FORBIDDEN");
    assert_eq!(code(checked(&body(json!({})), &rules, &user("bob"))), "FORBIDDEN");
    assert!(checked(&body(json!({})), &rules, &client("gateway")).is_ok());
    let reader = client("robot").writing_in(vec![Layer::Team]);
    assert_eq!(code(checked(&project, &rules, &reader)), "FORBIDDEN");
}
