//! The shapes that memories of mem0 come in.

use super::*;

fn memory(item: Value) -> Remembered {
    match read(&item, &mut LeftOut::default()).unwrap().remove(0) {
        Record::Memory(memory) => memory,
        other => panic!("{other:?}"),
    }
}

#[test]
fn what_the_platform_answers_is_kept() {
    let found =
        memory(json!({"id": "m1", "memory": "Likes tea", "user_id": "dev", "agent_id": null, "hash": "h",
        "categories": ["food"], "metadata": {"type": "taste", "title": 7, "_x": 1},
        "created_at": "2024-07-20T01:30:36.275141-07:00", "updated_at": "2024-07-21T00:00:00Z"}));
    assert_eq!((found.source_id.as_str(), found.user.as_deref()), ("m1", Some("dev")));
    assert_eq!(found.metadata["tags"], json!(["food"]));
    assert_eq!(found.metadata["type"], json!("taste"));
    assert_eq!(found.metadata["mem0"], json!({"title": 7, "_x": 1, "hash": "h"}));
    assert_eq!(found.created_at.unwrap().to_string(), "2024-07-20T08:30:36.275141Z");
}

#[test]
fn points_of_a_vector_store_have_it_in_their_payload() {
    let found = memory(json!({"id": 7, "payload": {"data": "Rows", "user_id": "dev", "run_id": "r"}}));
    assert_eq!((found.source_id.as_str(), found.content.as_deref()), ("7", Some("Rows")));
    assert_eq!(found.session.as_deref(), Some("r"));
}

#[test]
fn relations_are_facts() {
    let fact = memory(json!({"source": "alice", "relationship": "likes", "target": "tea"})).fact.unwrap();
    assert_eq!([fact.subject, fact.predicate, fact.object], ["alice", "likes", "tea"]);
}
