//! One product: what is written here is an ordinary memory there, and the other way round.

use crate::support::*;

#[test]
fn ids_lead_to_layers_and_back() {
    let mem0 = Mem0::fresh();
    for (ids, layer, kind, identifiers) in [
        (json!({"user_id": "u"}), "user", "user_personal", json!({"userId": "u"})),
        (
            json!({"user_id": "u", "agent_id": "a"}),
            "agent",
            "semantic",
            json!({"agentId": "a", "userId": "u"}),
        ),
        (
            json!({"user_id": "u", "run_id": "r"}),
            "session",
            "semantic",
            json!({"userId": "u", "sessionId": "r"}),
        ),
        (
            json!({"user_id": "u", "agent_id": "a", "app_id": "p", "run_id": "r"}),
            "session",
            "semantic",
            json!({"userId": "u", "sessionId": "r"}),
        ),
        (json!({"agent_id": "a", "app_id": "p"}), "project", "semantic", json!({"projectId": "agent:a"})),
        (json!({"run_id": "r"}), "project", "semantic", json!({"projectId": "run:r"})),
        (json!({"app_id": "p"}), "project", "semantic", json!({"projectId": "p"})),
    ] {
        let id = mem0.say("something", ids.clone());
        let ours = mem0.0.get(&format!("/v1/memories/{id}")).expect(200).json["memory"].clone();
        assert_eq!((&ours["layer"], &ours["kind"]), (&json!(layer), &json!(kind)), "{ids}");
        assert_eq!(ours["identifiers"], identifiers, "{ids}");
        let theirs = mem0.get(&id);
        for name in ["user_id", "agent_id", "app_id", "run_id"] {
            assert_eq!(theirs[name], ids[name], "{name} of {ids}");
        }
        assert_eq!(theirs["metadata"], json!({}));
    }
}

#[test]
fn both_ways_find_what_either_wrote() {
    let mem0 = Mem0::fresh();
    mem0.say("the piano was tuned", json!({"user_id": "u"}));
    let body = json!({
        "layer": "session", "identifiers": {"userId": "u", "sessionId": "s"}, "content": "the violin was tuned",
        "metadata": {"tags": ["music"]},
    });
    mem0.0.post("/v1/memories", body).expect(201);
    let mut found = mem0.found("which instrument was tuned?", json!({"user_id": "u"}));
    found.sort();
    assert_eq!(found, ["the piano was tuned", "the violin was tuned"]);
    assert_eq!(
        mem0.texts(json!({"user_id": "u", "run_id": "s", "categories": "music"})),
        ["the violin was tuned"]
    );

    let body =
        json!({"query": "which instrument was tuned?", "identifiers": {"userId": "u", "sessionId": "s"}});
    let ours = mem0.0.post("/v1/memories:search", body).expect(200).json;
    assert_eq!(ours["totalCount"], 2, "{ours}");
}

#[test]
fn what_our_own_routes_put_where_mem0_keeps_its_ids_attributes_nothing() {
    let mem0 = Mem0::fresh();
    let add = |layer: &str, identifiers: Value, own: Value| {
        let body =
            json!({"layer": layer, "identifiers": identifiers, "content": "a", "metadata": {"mem0": own}});
        let id =
            mem0.0.post("/v1/memories", body).expect(201).json["memory"]["id"].as_str().unwrap().to_owned();
        mem0.get(&id)
    };
    let planted = json!({
        "user_id": "boss", "run_id": "r", "agent_id": "chief", "app_id": 7, "role": ["system"], "actor_id": {"name": "boss"},
        "expiration_date": 5,
    });
    let shown = add("user", json!({"userId": "u"}), planted.clone());
    let ids: Vec<&Value> = ["user_id", "agent_id", "app_id", "run_id", "role", "actor_id", "expiration_date"]
        .map(|name| &shown[name])
        .into();
    assert_eq!(json!(ids), json!(["u", null, null, null, null, null, null]));
    let shown = add("team", json!({"teamId": "t"}), planted.clone());
    assert_eq!(json!([shown["user_id"], shown["agent_id"], shown["run_id"]]), json!([null, null, null]));
    assert_eq!(mem0.texts(json!({"user_id": "u", "agent_id": "chief"})), Vec::<String>::new());
    for other in [json!("text"), json!(["user_id"]), json!({"app_id": "*"}), json!({"metadata": "text"})] {
        let shown = add("user", json!({"userId": "u"}), other);
        assert_eq!(json!([shown["user_id"], shown["app_id"], shown["metadata"]]), json!(["u", null, {}]));
    }
}

#[test]
fn what_was_said_in_a_deleted_conversation_is_not_found() {
    let mem0 = Mem0::fresh();
    let user = mem0.0.with_header("authorization", "Bearer u");
    let chat = user.post("/v1/conversations", json!({"title": "t"})).expect(201).json["id"]
        .as_str()
        .unwrap()
        .to_owned();
    mem0.say("of the chat", json!({"user_id": "u", "run_id": chat}));
    mem0.say("of the user", json!({"user_id": "u"}));
    assert_eq!(mem0.texts(json!({"user_id": "u"})).len(), 2);
    user.delete(&format!("/v1/conversations/{chat}")).expect(204);
    assert_eq!(mem0.texts(json!({"user_id": "u"})), ["of the user"]);
    assert_eq!(mem0.found("chat", json!({"user_id": "u", "run_id": chat})), Vec::<String>::new());
}

#[test]
fn private_memories_of_others_stay_so() {
    let mem0 = Mem0::fresh();
    let carol = mem0.0.with_header("authorization", "Bearer carol");
    let body = json!({
        "layer": "project", "identifiers": {"projectId": "shop"}, "content": "carol's own", "accessPolicy": {"policy": "private"},
    });
    carol.post("/v1/memories", body).expect(201);
    mem0.say("everybody's", json!({"app_id": "shop"}));
    let dave = Mem0(mem0.0.with_header("authorization", "Bearer dave"));
    assert_eq!(dave.texts(json!({"app_id": "shop"})), ["everybody's"]);
    assert_eq!(
        dave.0.post("/v3/memories/", json!({"filters": {"app_id": "shop"}})).expect(200).json["count"],
        1
    );
}

#[test]
fn what_was_said_to_fewer_is_not_in_the_history_for_more() {
    let mem0 = Mem0::fresh();
    let [carol, dave] =
        ["carol", "dave"].map(|user| Mem0(mem0.0.with_header("authorization", &format!("Bearer {user}"))));
    let body = json!({
        "layer": "project", "identifiers": {"projectId": "shop"}, "content": "carol's secret",
        "accessPolicy": {"policy": "private"},
    });
    let made = carol.0.post("/v1/memories", body).expect(201);
    let id = made.json["memory"]["id"].as_str().unwrap().to_owned();
    let patch =
        |body: Value| carol.0.send("PATCH", &format!("/v1/memories/{id}"), Body::Json(body)).expect(200);
    patch(json!({"content": "another secret"}));
    let event = |event: &str, before: Value, after: Value| (event.to_owned(), before, after);
    let kept = event("UPDATE", json!("carol's secret"), json!("another secret"));
    assert_eq!(carol.history(&id)[1], kept, "the policy is what it was");

    patch(json!({"content": "for all", "accessPolicy": {"policy": "organization"}}));
    patch(json!({"content": "for everybody"}));

    let nothing = || Value::Null;
    let told = [
        event("ADD", nothing(), nothing()),
        event("UPDATE", nothing(), nothing()),
        event("UPDATE", nothing(), json!("for all")),
        event("UPDATE", json!("for all"), json!("for everybody")),
    ];
    assert_eq!(dave.history(&id), told);
    assert_eq!(carol.history(&id), told);
    // Also where only the list of those who may see it is another, and the text stays.
    let few = |users: &[&str]| json!({"accessPolicy": {"policy": "restricted", "approvedUsers": users}});
    patch(few(&["carol"]));
    patch(json!({"content": "for two"}));
    patch(few(&["carol", "dave"]));
    let last = dave.history(&id).pop();
    assert_eq!(last, Some(event("UPDATE", nothing(), json!("for two"))));
}
