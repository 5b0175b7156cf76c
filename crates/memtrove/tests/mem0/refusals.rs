//! What a language model would do says that there is none, and stores nothing.

use crate::support::*;

#[test]
fn what_needs_a_language_model_says_so_and_stores_nothing() {
    let mem0 = Mem0::fresh();
    let add = |members: Value| {
        let mut body = json!({"messages": [{"role": "user", "content": "I live in Lisbon"}], "user_id": "u"});
        for (name, value) in members.as_object().unwrap() {
            body[name] = value.clone();
        }
        mem0.0.post("/v3/memories/add/", body).refused(400, "no language model is configured")
    };
    let refused = add(json!({}));
    assert!(refused.json["detail"].as_str().unwrap().contains("pass infer=False"), "{}", refused.json);
    assert_eq!(refused.json["details"], json!({"reason": "no_language_model"}));
    add(json!({"infer": true}));
    for (member, value) in [
        ("custom_categories", json!([{"food": "what is eaten"}])),
        ("custom_instructions", json!("only food")),
        ("structured_data_schema", json!({"type": "object"})),
        ("includes", json!("food")),
        ("enable_graph", json!(true)),
        ("memory_type", json!("procedural_memory")),
    ] {
        let mut members = json!({"infer": false});
        members[member] = value;
        add(members);
    }
    let picture = json!([{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "https://example.org/a.png"}}]}]);
    add(json!({"infer": false, "messages": picture}));
    mem0.add(json!("a"), json!({"user_id": "u", "immutable": true}))
        .refused(400, "every memory here can be changed");
    assert_eq!(mem0.texts(json!({"user_id": "u"})), Vec::<String>::new());

    for (method, path) in [
        ("POST", "/v1/exports/"),
        ("POST", "/v1/exports/get/"),
        ("POST", "/v1/summary/"),
        ("GET", "/v2/entities/user/u/profile/"),
        ("POST", "/v2/profiles/jobs/"),
        ("GET", "/v2/profiles/settings/"),
    ] {
        mem0.0.send(method, path, Body::Json(json!({}))).refused(400, "no language model is configured");
    }
    for (method, path, part) in [
        ("POST", "/v1/feedback/", "feedback is not taken"),
        ("GET", "/api/v1/webhooks/projects/p/", "no webhooks"),
        ("DELETE", "/api/v1/webhooks/7/", "no webhooks"),
        ("PATCH", "/api/v1/orgs/organizations/o/projects/p/", "no organizations"),
        ("POST", "/v2/memories/", "older mem0 client"),
        ("POST", "/v2/memories/search/", "older mem0 client"),
        ("POST", "/v1/memories/search/", "older mem0 client"),
        ("DELETE", "/v1/entities/user/u/", "older mem0 client"),
    ] {
        mem0.0.send(method, path, Body::Json(json!({}))).refused(400, part);
    }
    SERVER.anonymous().send("POST", "/v1/exports/", Body::Json(json!({}))).refused(401, "credentials");
}
