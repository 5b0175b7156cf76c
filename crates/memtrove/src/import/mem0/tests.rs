//! The shapes that memories of mem0 come in.

use super::*;
use memtrove_core::memories::{AddMemory, Kind, Layer};

/// 2026-01-31T12:00:00Z
const NOON: Timestamp = Timestamp::from_micros(1_769_860_800_000_000);

fn memory(item: Value) -> Remembered {
    match read(&item, NOON, &mut LeftOut::default()).unwrap().remove(0) {
        Record::Memory(memory) => memory,
        other => panic!("{other:?}"),
    }
}

/// What is added for a memory, for whoever imports it.
fn added(item: Value, user: Option<&str>) -> AddMemory {
    memory(item).kept.unwrap().add(user, NOON).unwrap()
}

/// The identifiers of an add, by their names.
fn identifiers(add: &AddMemory) -> Value {
    add.identifiers.given().map(|(name, value)| (name.as_str(), value)).collect()
}

#[test]
fn what_the_platform_answers_is_kept() {
    let item = json!({"id": "m1", "memory": "Likes tea", "user_id": "dev", "agent_id": null, "hash": "h",
        "categories": ["food"], "metadata": {"type": "taste", "title": 7, "_x": 1, "source": "chat", "mem0": "x"},
        "created_at": "2024-07-20T01:30:36.275141-07:00", "updated_at": "2024-07-21T00:00:00Z"});
    let found = memory(item.clone());
    assert_eq!((found.source_id.as_str(), found.user.as_deref()), ("m1", Some("dev")));
    assert_eq!(found.created_at.unwrap().to_string(), "2024-07-20T08:30:36.275141Z");
    let add = added(item, None);
    assert_eq!((add.layer, add.kind), (Layer::User, Some(Kind::UserPersonal)));
    let own = json!({"id": "m1", "metadata": {"title": 7, "_x": 1, "source": "chat", "mem0": "x"}});
    assert_eq!(json!(add.metadata.as_map()), json!({"type": "taste", "tags": ["food"], "mem0": own}));
}

#[test]
fn ids_lead_where_they_lead_when_it_is_added() {
    let placed = |ids: Value, user: Option<&str>| {
        let mut item = ids;
        item["memory"] = json!("Rows");
        item["id"] = json!("m");
        let add = added(item, user);
        (add.layer, identifiers(&add), add.metadata.as_map()["mem0"].clone())
    };
    let all = json!({"user_id": "u", "agent_id": "a", "app_id": "p", "run_id": "r"});
    assert_eq!(
        placed(all, None),
        (
            Layer::Session,
            json!({"userId": "u", "sessionId": "r"}),
            json!({"agent_id": "a", "app_id": "p", "id": "m"})
        )
    );
    assert_eq!(
        placed(json!({"agent_id": "a"}), None),
        (Layer::Project, json!({"projectId": "agent:a"}), json!({"id": "m"}))
    );
    assert_eq!(
        placed(json!({"agent_id": "a"}), Some("u")),
        (Layer::Agent, json!({"userId": "u", "agentId": "a"}), json!({"id": "m"}))
    );
}

#[test]
fn a_last_day_is_the_last_day() {
    let on = |day: &str| json!({"id": "m", "memory": "Rows", "user_id": "u", "expiration_date": day});
    let add = added(on("2026-01-31"), None);
    assert_eq!(add.ttl_seconds, Some(12 * 60 * 60));
    assert_eq!(add.metadata.as_map()["mem0"]["expiration_date"], "2026-01-31");
    assert_eq!(added(on("2999-01-01"), None).ttl_seconds, None);
    let mut left_out = LeftOut::default();
    assert!(read(&on("2026-01-30"), NOON, &mut left_out).unwrap().is_empty());
    read(&on("2999-01-01"), NOON, &mut left_out).unwrap();
    assert_eq!(left_out.iter().map(|(_, times)| times).collect::<Vec<_>>(), [1, 1]);
}

#[test]
fn points_of_a_vector_store_have_it_in_their_payload() {
    let item = json!({"id": 7, "payload": {"data": "Rows", "user_id": "dev", "run_id": "r"}});
    let found = memory(item.clone());
    assert_eq!((found.source_id.as_str(), found.content.as_deref()), ("7", Some("Rows")));
    assert_eq!(identifiers(&added(item, None)), json!({"userId": "dev", "sessionId": "r"}));
}

#[test]
fn metadata_of_a_payload_stand_beside_what_is_of_mem0() {
    let payload = json!({"data": "Prefers window seats", "hash": "h", "user_id": "alice", "agent_id": null, "role": "user",
        "actor_id": "Alice", "text_lemmatized": "prefer window seat", "created_at": "2024-07-20T08:30:36Z", "updated_at": null,
        "category": "travel", "source": "chat", "priority": 5, "text": "a note", "categories": "few",
        "metadata": {"priority": 6, "nested": true}});
    let kept = memory(json!({"id": "p1", "payload": payload})).kept.unwrap();
    assert_eq!(
        Value::from(kept.metadata),
        json!({"category": "travel", "source": "chat", "priority": 6, "text": "a note", "categories": "few", "nested": true})
    );
    let plain =
        memory(json!({"id": "m", "memory": "Rows", "user_id": "u", "score": 0.5, "metadata": {"a": 1}}));
    assert_eq!(
        Value::from(plain.kept.unwrap().metadata),
        json!({"a": 1}),
        "what is no payload says what they are"
    );
}

#[test]
fn relations_are_facts() {
    let fact = memory(json!({"source": "alice", "relationship": "likes", "target": "tea"})).fact.unwrap();
    assert_eq!([fact.subject, fact.predicate, fact.object], ["alice", "likes", "tea"]);
}
