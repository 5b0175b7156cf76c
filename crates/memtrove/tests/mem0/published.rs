//! The routes of the server that mem0 publishes.

use crate::support::*;

#[test]
fn its_routes_go_through_the_life_of_a_memory() {
    let mem0 = Mem0::fresh();
    let client = &mem0.0;
    let messages =
        json!([{"role": "user", "content": "I love hiking"}, {"role": "assistant", "content": "Nice!"}]);
    client
        .post("/memories", json!({"messages": messages, "user_id": "u"}))
        .refused(400, "no language model is configured");
    let body = json!({"messages": messages, "user_id": "u", "infer": false, "metadata": {"k": "v"}});
    let added = client.post("/memories", body).expect(200).json;
    assert_eq!(texts(&added), ["I love hiking", "Nice!"]);
    let id = added["results"][0]["id"].as_str().unwrap();

    let listed = client.get("/memories?user_id=u").expect(200).json;
    assert_eq!(texts(&listed), ["Nice!", "I love hiking"]);
    assert_eq!(client.get(&format!("/memories/{id}")).expect(200).json["metadata"], json!({"k": "v"}));
    for body in [
        json!({"query": "hiking", "user_id": "u"}),
        json!({"query": "hiking", "filters": {"user_id": "u"}, "top_k": 5}),
        json!({"query": "hiking", "user_id": "u", "limit": 5}),
    ] {
        let found = client.post("/search", body).expect(200).json;
        assert_eq!(texts(&found)[0], "I love hiking");
    }
    for (body, text) in [
        (json!({"text": "I love sailing"}), "I love sailing"),
        (json!({"data": "I love rowing"}), "I love rowing"),
    ] {
        let done = mem0.put(&format!("/memories/{id}"), body).expect(200).json;
        assert_eq!(done, json!({"message": "Memory updated successfully!"}));
        assert_eq!(mem0.get(id)["memory"], text);
    }
    let events = client.get(&format!("/memories/{id}/history")).expect(200).json;
    assert_eq!(events.as_array().unwrap().len(), 3);
    assert_eq!(events[2]["old_memory"], "I love sailing");
    let done = client.delete(&format!("/memories/{id}")).expect(200).json;
    assert_eq!(done, json!({"message": "Memory deleted successfully"}));
    let done = client.delete("/memories?user_id=u").expect(200).json;
    assert_eq!(done, json!({"message": "All relevant memories deleted"}));
    assert_eq!(texts(&client.get("/memories?user_id=u").expect(200).json), Vec::<String>::new());
    client.get("/memories").refused(400, "at least one of user_id");
    client.delete("/memories").refused(400, "at least one of user_id");
    client.post("/search", json!({"query": "q"})).refused(400, "at least one of user_id");
    client.post("/configure", json!({"llm": {}})).refused(400, "has no language model");
}
