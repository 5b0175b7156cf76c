//! Whatever comes in, no answer is a failure of the server.

use crate::support::*;

#[test]
fn odd_bodies_and_ids_are_refused_in_the_shape_of_mem0() {
    let mem0 = Mem0::fresh();
    let id = mem0.say("a", json!({"user_id": "u"}));
    let routes = [
        ("POST", "/v3/memories/add/".to_owned()),
        ("POST", "/v3/memories/search/".to_owned()),
        ("POST", "/v3/memories/".to_owned()),
        ("PUT", format!("/v1/memories/{id}/")),
        ("PUT", "/v1/batch/".to_owned()),
        ("DELETE", "/v1/batch/".to_owned()),
        ("POST", "/memories".to_owned()),
        ("POST", "/search".to_owned()),
        ("PUT", format!("/memories/{id}")),
    ];
    let bodies = [
        "",
        "null",
        "[]",
        "7",
        "{",
        "{}",
        r#"{"messages": 7, "infer": false, "user_id": "u"}"#,
        r#"{"query": 7, "filters": 7}"#,
        r#"{"filters": {"user_id": "\u0000"}, "query": "q"}"#,
        r#"{"messages": [{"content": null}], "infer": false, "user_id": "u"}"#,
        r#"{"messages": "a", "infer": "no", "user_id": "u"}"#,
        r#"{"messages": "a", "infer": false, "user_id": 7}"#,
        r#"{"memories": [{"memory_id": "x", "text": "y"}]}"#,
        r#"{"text": 7}"#,
        r#"{"text": "a", "expiration_date": 7}"#,
        r#"{"metadata": []}"#,
    ];
    for (method, path) in &routes {
        for body in bodies {
            let answer = mem0.0.send(method, path, Body::json_text(body));
            assert!((400..500).contains(&answer.status), "{body}: {}", answer.describe());
            assert!(answer.json["detail"].is_string(), "{body}: {}", answer.describe());
        }
    }
    assert_eq!(mem0.texts(json!({"user_id": "u"})), ["a"]);
    for path in
        ["/v1/memories/nothing/", "/v1/memories/%FF/", "/v1/memories/nothing/history/", "/memories/nothing"]
    {
        mem0.0.get(path).refused(404, "there is no such memory");
    }
    mem0.0.delete("/v2/entities/user/%FF/").refused(404, "about nothing else");
    mem0.0.get("/v3/memories/nowhere/").refused(404, "");
    mem0.0.send("PATCH", "/v1/memories/", Body::Json(json!({}))).refused(405, "");
}

#[test]
fn ours_are_as_they_were() {
    let mem0 = Mem0::fresh();
    let id = mem0.say("a", json!({"user_id": "u"}));
    let members = |answer: &Value| answer.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    let key = mem0.0.with_header("authorization", "Bearer u");
    let ours = key.get(&format!("/v1/memories/{id}")).expect(200);
    assert_eq!(members(&ours.json), ["memory"]);
    assert_eq!(members(&key.get("/v1/memories/nothing").expect(404).json), ["error"]);
    assert_eq!(members(&key.get("/v1/memories").expect(400).json), ["error"]);
    // Only the routes of mem0 take its tokens.
    let token = SERVER.anonymous().with_header("authorization", "Token m0-key");
    token.get("/v1/memories:capabilities").expect(401);
    token.get("/v1/conversations").expect(401);
}
