//! What no JSON library agrees on, and what a store might not hold: refused in the contract's words, never a 5xx.

use crate::support::*;

/// Sends this text as JSON.
#[track_caller]
fn raw(tenant: &Tenant, path: &str, text: &str) -> Answer {
    tenant.client.send("POST", path, Body::json_text(text))
}

/// An add whose metadata is this text.
#[track_caller]
fn with_metadata(tenant: &Tenant, metadata: &str) -> Answer {
    let body = r#"{"content":"a","layer":"user","identifiers":{"userId":"u"},"metadata":METADATA}"#;
    raw(tenant, "/v1/memories", &body.replace("METADATA", metadata))
}

#[test]
fn what_is_no_json_is_refused() {
    let tenant = Tenant::fresh();
    for text in [
        "",
        " ",
        "{",
        "}",
        "nul",
        "'a'",
        "{\"content\"}",
        "{\"content\":\"a\",}",
        "{content:\"a\"}",
        "\u{feff}{}",
        "{} {}",
        "{\"a\":01}",
        "{\"a\":+1}",
        "{\"a\":.5}",
        "{\"a\":0x1}",
        "{\"a\":\"\t\"}",
        "{\"a\":\"\\x\"}",
        "// comment\n{}",
    ] {
        for path in
            ["/v1/memories", "/v1/memories:search", "/v1/memories:list", "/v1/facts", "/v1/memories:bulkAdd"]
        {
            raw(&tenant, path, text).refused(400, "INVALID_REQUEST");
        }
    }
    for text in ["[]", "\"text\"", "5", "null", "true"] {
        for path in ["/v1/memories:bulkAdd", "/v1/memories:bulkDelete", "/v1/memories:list"] {
            let answer = raw(&tenant, path, text);
            assert_eq!(answer.status, 400, "{}", answer.describe());
        }
    }
    let bytes =
        Body::Raw { content_type: Some("application/json"), bytes: b"{\"content\":\"\xff\xfe\"}".to_vec() };
    tenant.client.send("POST", "/v1/memories", bytes).refused(400, "INVALID_REQUEST");
}

#[test]
fn numbers_that_are_none_or_overflow_are_refused_wherever_they_stand() {
    let tenant = Tenant::fresh();
    for number in ["NaN", "Infinity", "-Infinity", "1e999", "-1e999", "1e400", "inf"] {
        with_metadata(&tenant, &format!("{{\"x\":{number}}}")).refused(400, "INVALID_REQUEST");
        with_metadata(&tenant, &format!("{{\"x\":{{\"deep\":[1,{number}]}}}}"))
            .refused(400, "INVALID_REQUEST");
        with_metadata(&tenant, &format!("{{\"importance\":{number}}}")).refused(400, "INVALID_REQUEST");
        for member in ["threshold", "limit"] {
            let search = format!(r#"{{"query":"a","identifiers":{{"userId":"u"}},"{member}":{number}}}"#);
            raw(&tenant, "/v1/memories:search", &search).refused(400, "INVALID_REQUEST");
        }
        let filter = format!(
            r#"{{"layer":"user","identifiers":{{"userId":"u"}},"filter":{{"custom":{{"x":{{"$gt":{number}}}}}}}}}"#,
        );
        raw(&tenant, "/v1/memories:list", &filter).refused(400, "INVALID_REQUEST");
        // Unknown members are ignored, but the body must be JSON that means something.
        let ignored =
            format!(r#"{{"content":"a","layer":"user","identifiers":{{"userId":"u"}},"junk":{number}}}"#);
        raw(&tenant, "/v1/memories", &ignored).refused(400, "INVALID_REQUEST");
    }
    with_metadata(&tenant, "{\"x\":1e-999}").expect(201);
    with_metadata(&tenant, "{\"x\":1e308}").expect(201);
}

#[test]
fn a_nul_is_refused_in_every_text() {
    let tenant = Tenant::fresh();
    let place = Place::user("u");
    let nul = "a\u{0}b";
    for (what, body) in [
        ("content", place.with(json!({"content": nul}))),
        ("a value", place.with(json!({"content": "a", "metadata": {"x": nul}}))),
        ("a deep value", place.with(json!({"content": "a", "metadata": {"x": [{"y": nul}]}}))),
        ("a key", place.with(json!({"content": "a", "metadata": {nul: 1}}))),
        ("a deep key", place.with(json!({"content": "a", "metadata": {"x": {nul: 1}}}))),
        ("a tag", place.with(json!({"content": "a", "metadata": {"tags": [nul]}}))),
        ("an identifier", Place::user(nul).with(json!({"content": "a"}))),
        (
            "a policy",
            place.with(
                json!({"content": "a", "accessPolicy": {"policy": "restricted", "approvedUsers": [nul]}}),
            ),
        ),
    ] {
        let answer = tenant.add(body);
        assert_eq!(answer.status, 400, "a NUL in {what}: {}", answer.describe());
        answer.refused(400, "INVALID_REQUEST");
    }
    let fact = json!({"factType": "t", "subject": "s", "predicate": "p", "object": "o"});
    for member in ["factType", "subject", "predicate", "object", "content"] {
        let mut fact = fact.clone();
        fact[member] = json!(nul);
        tenant.fact(place.with(fact)).refused(400, "INVALID_REQUEST");
    }
    tenant.search(place.everything(json!({"query": nul}))).refused(400, "INVALID_REQUEST");
    tenant.facts(json!({"identifiers": {"userId": "u"}, "subject": nul})).refused(400, "INVALID_REQUEST");
    tenant.list(place.with(json!({"filter": {"tags": [nul]}}))).refused(400, "INVALID_REQUEST");
    tenant.list(place.with(json!({"filter": {"custom": {"k": nul}}}))).refused(400, "INVALID_REQUEST");
    tenant.client.get("/v1/memories?layer=user&userId=a%00b").refused(400, "INVALID_REQUEST");
    assert_eq!(tenant.page(place.with(json!({}))).total, 0);
}

#[test]
fn half_a_character_is_no_json() {
    let tenant = Tenant::fresh();
    for half in ["\\ud800", "\\udc00", "\\ud800\\ud800", "\\udc00\\ud800", "\\ud83d x"] {
        let add = format!(r#"{{"content":"a {half}","layer":"user","identifiers":{{"userId":"u"}}}}"#);
        raw(&tenant, "/v1/memories", &add).refused(400, "INVALID_REQUEST");
        with_metadata(&tenant, &format!(r#"{{"x":"{half}"}}"#)).refused(400, "INVALID_REQUEST");
        with_metadata(&tenant, &format!(r#"{{"{half}":1}}"#)).refused(400, "INVALID_REQUEST");
        let search = format!(r#"{{"query":"{half}","identifiers":{{"userId":"u"}}}}"#);
        raw(&tenant, "/v1/memories:search", &search).refused(400, "INVALID_REQUEST");
    }
    let whole = r#"{"content":"\ud83e\uddad","layer":"user","identifiers":{"userId":"u"}}"#;
    assert_eq!(raw(&tenant, "/v1/memories", whole).expect(201).json["memory"]["content"], "🦭");
}

#[test]
fn depth_is_bounded() {
    let tenant = Tenant::fresh();
    let nested = |depth: usize| format!("{{\"x\":{}1{}}}", "[".repeat(depth), "]".repeat(depth));
    with_metadata(&tenant, &nested(60)).expect(201);
    with_metadata(&tenant, &nested(70)).refused(400, "INVALID_REQUEST");
    with_metadata(&tenant, &nested(20_000)).refused(400, "INVALID_REQUEST");
    let list = |filter: &str| {
        let body = r#"{"layer":"user","identifiers":{"userId":"u"},"filter":{"custom":{"x":FILTER}}}"#;
        raw(&tenant, "/v1/memories:list", &body.replace("FILTER", filter))
    };
    let answer = list(&format!("{}1{}", "{\"a\":".repeat(20_000), "}".repeat(20_000)));
    answer.refused(400, "INVALID_REQUEST");
}

/// Every route with every value that somebody might send: whatever the answer is, the server is not at fault.
#[test]
fn no_value_of_any_member_makes_the_server_fail() {
    let tenant = Tenant::fresh();
    let id = tenant.say(&Place::user("u"), "a");
    let values = [
        json!(null),
        json!(true),
        json!(0),
        json!(-1),
        json!(1.5),
        json!(1e300),
        json!(-0.0),
        json!(18_446_744_073_709_551_615_u64),
        json!(""),
        json!(" "),
        json!("\u{10ffff}"),
        json!("'; DROP TABLE memories; --"),
        json!("%_\\*?[]"),
        json!([]),
        json!([null]),
        json!([[]]),
        json!({}),
        json!({"$eq": {}}),
        json!({"": ""}),
        json!("9999-12-31T23:59:59.999999Z"),
        json!("-0001-01-01T00:00:00Z"),
        json!("x".repeat(600)),
    ];
    for (method, path, good) in routes(&id) {
        for member in members(&good) {
            for value in &values {
                let mut body = good.clone();
                *body.pointer_mut(&member).expect("a member") = value.clone();
                let answer = tenant.client.send(method, &path, Body::Json(body));
                assert!(answer.status < 500, "{member}: {value}: {}", answer.describe());
            }
        }
    }
    tenant.client.get("/v1/memories:health").expect(200);
}

/// Pointers at every member, however deep.
fn members(value: &Value) -> Vec<String> {
    let children: Vec<(String, &Value)> = match value {
        Value::Object(object) => object.iter().map(|(name, child)| (name.clone(), child)).collect(),
        Value::Array(list) => list.iter().enumerate().map(|(n, child)| (n.to_string(), child)).collect(),
        _ => Vec::new(),
    };
    let deeper = children.into_iter().flat_map(|(name, child)| {
        let below = members(child);
        std::iter::once(String::new()).chain(below).map(move |rest| format!("/{name}{rest}"))
    });
    deeper.collect()
}

/// A request of every route that says all it can.
fn routes(id: &str) -> Vec<(&'static str, String, Value)> {
    let place = Place::user("u");
    let post = |path: &str, body: Value| ("POST", path.to_owned(), body);
    let time = "2026-01-01T00:00:00Z";
    let pointer = json!({"sourceType": "adr", "sourceId": "x", "contentHash": "h", "syncedAt": time});
    let metadata = json!({"tags": ["t"], "source": {"type": "manual"}, "knowledgePointer": pointer, "relevance": 1, "x": 1});
    let policy = json!({"policy": "restricted", "approvedUsers": ["u"]});
    let fact = json!({"factType": "t", "subject": "s", "predicate": "p", "object": "o", "confidence": 1});
    let condition = json!({"$eq": 1, "$in": [1], "$gt": 1, "$contains": 1, "$exists": true});
    let filter = json!({"tags": ["t"], "sourceType": "manual", "hasKnowledgePointer": true, "custom": {"k": condition}});
    let change =
        json!({"content": "a", "metadata": metadata, "ttlSeconds": 60, "accessPolicy": policy, "version": 1});
    let add = place.with(json!({
        "content": "a", "kind": "episodic", "metadata": metadata, "ttlSeconds": 60, "accessPolicy": policy,
        "occurredAt": time,
    }));
    let search = place.everything(json!({
        "filter": filter, "kinds": ["episodic"], "timeRange": {"from": time}, "includeArchived": true,
        "includeEmbedding": true, "includeOverridden": true, "ranking": "score", "mode": "hybrid", "explain": true,
    }));
    let list = place.with(json!({
        "limit": 1, "cursor": null, "filter": {}, "kinds": ["episodic"], "from": time, "to": null, "state": "active",
        "includeArchived": true,
    }));
    let query = json!({
        "layers": ["user"], "identifiers": {"userId": "u"}, "subject": "s", "predicate": "p", "object": "o",
        "factType": "t", "minConfidence": 0, "filter": {}, "resolve": true, "limit": 1, "cursor": null,
    });
    let stated = place.with(merged(fact.clone(), &json!({"content": "a", "metadata": {}, "ttlSeconds": 60})));
    vec![
        post("/v1/memories", add),
        post("/v1/memories", place.with(json!({"kind": "procedural", "fact": fact}))),
        ("PATCH", format!("/v1/memories/{id}"), change),
        post("/v1/memories:search", search),
        post("/v1/memories:list", list),
        post(
            "/v1/memories:bulkAdd",
            json!({"memories": [place.with(json!({"content": "a"}))], "atomic": false}),
        ),
        post("/v1/memories:bulkDelete", json!({"ids": [fresh_id()]})),
        post("/v1/memories:clear", place.with(json!({"kinds": ["working"]}))),
        post("/v1/facts", stated),
        post("/v1/facts:query", query),
    ]
}
