//! Changes, one or many, and what they leave in the history.

use crate::support::*;

#[test]
fn an_update_changes_what_it_names_and_history_tells_of_texts() {
    let mem0 = Mem0::fresh();
    let id = mem0.say("likes tea", json!({"user_id": "u", "metadata": {"a": 1, "b": 2}}));
    let path = format!("/v1/memories/{id}/");
    let updated = mem0.put(&path, json!({"text": "likes coffee"})).expect(200).json;
    assert_eq!(
        (&updated["memory"], &updated["metadata"]),
        (&json!("likes coffee"), &json!({"a": 1, "b": 2}))
    );
    let updated =
        mem0.put(&path, json!({"metadata": {"b": 3, "source": "chat", "a": null}})).expect(200).json;
    assert_eq!(updated["metadata"], json!({"b": 3, "source": "chat"}));
    let updated = mem0.put(&path, json!({"metadata": {"source": {"type": "manual"}}})).expect(200).json;
    assert_eq!(updated["metadata"], json!({"b": 3, "source": {"type": "manual"}}));
    mem0.put(&path, json!({"text": "likes water", "metadata": {"source": null}})).expect(200);

    assert_eq!(
        mem0.history(&id),
        [
            ("ADD".to_owned(), Value::Null, json!("likes tea")),
            ("UPDATE".to_owned(), json!("likes tea"), json!("likes coffee")),
            ("UPDATE".to_owned(), json!("likes coffee"), json!("likes water")),
        ]
    );
    assert_eq!(mem0.found("water", json!({"user_id": "u"})), ["likes water"]);
    mem0.put(&path, json!({})).refused(400, "at least one of text");
    mem0.put(&path, json!({"timestamp": 5})).refused(400, "'timestamp' cannot be changed");
    mem0.put(&path, json!({"user_id": "v"})).refused(400, "'user_id' cannot be changed");
}

#[test]
fn history_says_who_said_it() {
    let mem0 = Mem0::fresh();
    let message = json!([{"role": "assistant", "content": "You like tea.", "name": "poet"}]);
    let added = mem0.add(message, json!({"user_id": "u"})).expect(200).json;
    let id = added["results"][0]["id"].as_str().unwrap();
    mem0.put(&format!("/v1/memories/{id}/"), json!({"text": "You like coffee."})).expect(200);
    for path in [format!("/v1/memories/{id}/history/"), format!("/memories/{id}/history")] {
        let events = mem0.0.get(&path).expect(200).json;
        let said: Vec<(&Value, &Value)> =
            events.as_array().unwrap().iter().map(|one| (&one["role"], &one["actor_id"])).collect();
        assert_eq!(said, [(&json!("assistant"), &json!("poet")); 2]);
    }
}

#[test]
fn history_tells_of_changes_by_every_other_way() {
    let mem0 = Mem0::fresh();
    let body = json!({"layer": "user", "identifiers": {"userId": "u"}, "content": "one"});
    let id = mem0.0.post("/v1/memories", body).expect(201).json["memory"]["id"].as_str().unwrap().to_owned();
    mem0.0.patch(&format!("/v1/memories/{id}"), json!({"metadata": {"a": 1}})).expect(200);
    mem0.0.patch(&format!("/v1/memories/{id}"), json!({"content": "two"})).expect(200);
    let entry = json!({"entry": {"content": "three"}});
    mem0.put(&format!("/openspec/v1/knowledge/{id}"), entry).expect(200);
    let events = mem0.history(&id);
    let texts: Vec<&Value> = events.iter().map(|(_, _, new)| new).collect();
    assert_eq!(texts, ["one", "two", "three"]);
}

#[test]
fn history_says_what_it_does_not_know_any_more() {
    let mem0 = Mem0::fresh();
    let id = mem0.say("0", json!({"user_id": "u"}));
    for number in 1..=102 {
        mem0.put(&format!("/v1/memories/{id}/"), json!({"text": number.to_string()})).expect(200);
    }
    let events = mem0.history(&id);
    assert_eq!(events.len(), 101);
    assert_eq!(events[0], ("ADD".to_owned(), Value::Null, Value::Null));
    assert_eq!(events[1], ("UPDATE".to_owned(), json!("2"), json!("3")));
    assert_eq!(events[100], ("UPDATE".to_owned(), json!("101"), json!("102")));
}

#[test]
fn a_batch_changes_all_or_finds_out_before_that_it_cannot() {
    let mem0 = Mem0::fresh();
    let ids = ["a", "b"].map(|text| mem0.say(text, json!({"user_id": "u"})));
    let update = |id: &str, text: &str| json!({"memory_id": id, "text": text});
    let body = json!({"memories": [update(&ids[0], "A"), update(&ids[1], "B")]});
    let done = mem0.put("/v1/batch/", body).expect(200);
    assert_eq!(done.json["message"], "Successfully updated 2 memories");
    assert_eq!(mem0.texts(json!({"user_id": "u"})), ["B", "A"]);

    let missing = "00000000-0000-7000-8000-000000000000";
    let body = json!({"memories": [update(&ids[0], "X"), update(missing, "Y")]});
    mem0.put("/v1/batch/", body).refused(404, "there is no such memory");
    let long = "x".repeat(200_001);
    let body = json!({"memories": [update(&ids[0], "X"), update(&ids[1], &long)]});
    mem0.put("/v1/batch/", body).refused(422, "");
    let much = json!({"memory_id": ids[1], "metadata": {"much": "x".repeat(100_000)}});
    let body = json!({"memories": [update(&ids[0], "X"), much]});
    mem0.put("/v1/batch/", body).refused(422, "");
    let body = json!({"memories": [{"memory_id": ids[0]}, {"memory_id": missing}]});
    mem0.0.send("DELETE", "/v1/batch/", Body::Json(body)).refused(404, "there is no such memory");
    assert_eq!(mem0.texts(json!({"user_id": "u"})), ["B", "A"]);

    let shouted = ids[0].to_uppercase();
    let body = json!({"memories": [update(&ids[0], "X"), update(&ids[1], "Y"), update(&shouted, "Z")]});
    mem0.put("/v1/batch/", body).refused(400, "names a memory twice");
    assert_eq!(mem0.texts(json!({"user_id": "u"})), ["B", "A"]);

    let body = json!({"memories": [{"memory_id": ids[0]}, {"memory_id": shouted}, {"memory_id": ids[1]}]});
    let done = mem0.0.send("DELETE", "/v1/batch/", Body::Json(body)).expect(200);
    assert_eq!(done.json["message"], "Successfully deleted 2 memories");
    assert_eq!(mem0.texts(json!({"user_id": "u"})), Vec::<String>::new());
    for body in [json!({}), json!({"memories": []}), json!({"memories": ["x"]}), json!({"memories": [{}]})] {
        mem0.put("/v1/batch/", body).refused(400, "memor");
    }
}

#[test]
fn a_batch_deletes_all_or_finds_out_before_that_it_may_not() {
    let server = server_with("[memories.write_roles]\nproject = [\"admin\"]\n");
    let admin = Mem0(server.anonymous().with_header("authorization", "Bearer admin"));
    let alice = Mem0(server.anonymous().with_header("authorization", "Bearer alice"));
    // The older one would go first.
    let own = alice.say("mine", json!({"user_id": "alice"}));
    let law = admin.say("the law", json!({"app_id": "shop"}));
    for ids in [[&own, &law], [&law, &own]] {
        let body = json!({"memories": ids.map(|id| json!({"memory_id": id}))});
        alice.0.send("DELETE", "/v1/batch/", Body::Json(body)).refused(403, "a role is required");
        assert_eq!(alice.get(&own)["memory"], "mine");
    }
}
