//! What is deleted is gone, with everything it ever said.

use crate::support::*;

#[test]
fn a_deleted_memory_is_not_there_and_neither_is_its_history() {
    let server = server_with("");
    let mem0 = Mem0(server.anonymous().with_header("authorization", "Token key"));
    let (first, second) = ("zwieback morning", "knaeckebrot evening");
    let id = mem0.say(first, json!({"user_id": "u"}));
    mem0.put(&format!("/v1/memories/{id}/"), json!({"text": second})).expect(200);
    let holds = |text: &str| !server.stored().holding(text).is_empty();
    assert!(holds(first) && holds(second));

    let done = mem0.0.delete(&format!("/v1/memories/{id}/")).expect(200);
    assert_eq!(done.json, json!({"message": "Memory deleted successfully!"}));

    mem0.0.get(&format!("/v1/memories/{id}/")).refused(404, "there is no such memory");
    mem0.0.get(&format!("/v1/memories/{id}/history/")).refused(404, "there is no such memory");
    mem0.0.delete(&format!("/v1/memories/{id}/")).refused(404, "there is no such memory");
    assert_eq!(server.stored().bytes("SELECT text FROM memory_texts LIMIT 1"), None);
}

#[test]
fn what_a_memory_absorbed_goes_with_it_where_asked_for() {
    let mem0 = Mem0::fresh();
    let absorbed = |linked: &str| {
        let user = fresh_name("user");
        let ids = [0, 1].map(|_| mem0.say("the cat sleeps", json!({"user_id": user})));
        let body = json!({"layer": "user", "identifiers": {"userId": user}});
        let merged = mem0.0.post("/v1/memories:consolidate", body).expect(200).json;
        let survivor = merged["groups"][0]["survivorId"].as_str().expect("a survivor").to_owned();
        mem0.0.delete(&format!("/v1/memories/{survivor}/{linked}")).expect(200);
        let other = ids.into_iter().find(|id| *id != survivor).unwrap();
        mem0.0.get(&format!("/v1/memories/{other}/")).status
    };
    assert_eq!(absorbed(""), 200);
    assert_eq!(absorbed("?delete_linked=True"), 404);
}

#[test]
fn deleting_all_is_about_the_ids_that_are_named() {
    let mem0 = Mem0::fresh();
    let leave = || {
        mem0.say("user", json!({"user_id": "u"}));
        mem0.say("agent", json!({"user_id": "u", "agent_id": "a"}));
        mem0.say("run", json!({"user_id": "u", "run_id": "r"}));
        mem0.say("both", json!({"user_id": "u", "run_id": "r", "agent_id": "a"}));
        mem0.say("other", json!({"user_id": "v"}));
    };
    let left = || {
        let mut left = mem0.texts(json!({"OR": [{"user_id": "u"}, {"user_id": "v"}]}));
        left.sort();
        left
    };
    leave();
    mem0.0.delete("/v1/memories/?user_id=u&agent_id=a").expect(200);
    assert_eq!(left(), ["other", "run", "user"]);
    mem0.0.delete("/v1/memories/?user_id=u&run_id=r").expect(200);
    assert_eq!(left(), ["other", "user"]);
    leave();
    let done = mem0.0.delete("/v1/memories/?user_id=u").expect(200);
    assert_eq!(done.json, json!({"message": "Memories deleted successfully!"}));
    assert_eq!(left(), ["other", "other"]);

    mem0.0.delete("/v1/memories/").refused(400, "at least one of user_id");
    mem0.0.delete("/v1/memories/?user_id=").refused(400, "at least one of user_id");
    mem0.0.delete("/v1/memories/?user_id=*").refused(400, "must be one id");
    mem0.add(json!("a"), json!({"user_id": "*"})).refused(400, "must be one id");
    // The client would send a filter like this, and without it everything would go.
    mem0.0.delete("/v1/memories/?user_id=v&filters=%7B%7D").refused(400, "'filters' is not known here");
    assert_eq!(left(), ["other", "other"]);
}
