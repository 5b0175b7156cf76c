//! What every route has in common: credentials, media types, sizes, request ids, headers.

use crate::support::*;

const MIB: usize = 1024 * 1024;

/// Every route of this surface, with a body that would do.
fn routes(tenant: &Tenant) -> Vec<(&'static str, String, Option<Value>)> {
    let place = Place::user("u");
    let id = tenant.say(&place, "a");
    let fact = json!({"factType": "t", "subject": "s", "predicate": "p", "object": "o"});
    let fact_id = id_of(&tenant.stated(&place, fact.clone()));
    let one = format!("/v1/memories/{id}");
    let one_fact = format!("/v1/facts/{fact_id}");
    let post = |path: &str, body: Value| ("POST", path.to_owned(), Some(body));
    vec![
        post("/v1/memories", place.with(json!({"content": "b"}))),
        ("GET", format!("/v1/memories?{}", place.query()), None),
        post("/v1/memories:list", place.with(json!({}))),
        post("/v1/memories:search", place.everything(json!({}))),
        ("GET", one.clone(), None),
        ("PATCH", one.clone(), Some(json!({"content": "c"}))),
        post("/v1/memories:bulkAdd", json!({"memories": [place.with(json!({"content": "d"}))]})),
        post("/v1/memories:bulkDelete", json!({"ids": [fresh_id()]})),
        post("/v1/memories:clear", place.with(json!({}))),
        post("/v1/memories:decay", json!({"identifiers": {"userId": "u"}, "dryRun": true})),
        post("/v1/memories:consolidate", place.with(json!({"dryRun": true}))),
        post(&format!("{one}/promote"), json!({"targetLayer": "project", "identifiers": {"projectId": "p"}})),
        post(&format!("{one}/archive"), json!({})),
        post(&format!("{one}/restore"), json!({})),
        ("GET", "/v1/memories:capabilities".to_owned(), None),
        ("GET", "/v1/memories:health".to_owned(), None),
        post("/v1/sessions:end", json!({"identifiers": {"userId": "u", "sessionId": "s"}})),
        post("/v1/facts", place.with(fact)),
        ("GET", format!("/v1/facts?{}", place.query()), None),
        post("/v1/facts:query", json!({"identifiers": {"userId": "u"}})),
        ("GET", one_fact.clone(), None),
        ("PATCH", one_fact.clone(), Some(json!({"confidence": 0.5}))),
        ("DELETE", one_fact, None),
        ("DELETE", one, None),
    ]
}

#[test]
fn every_route_answers_and_says_the_same_things_about_itself() {
    let tenant = Tenant::fresh();
    for (method, path, body) in routes(&tenant) {
        let request = fresh_name("request");
        let body = body.map_or(Body::None, Body::Json);
        let answer = tenant.client.with_header("x-request-id", &request).send(method, &path, body);

        assert!(matches!(answer.status, 200 | 201), "{}", answer.describe());
        assert_eq!(answer.header("x-request-id"), request, "{method} {path}");
        assert_eq!(answer.header("cache-control"), "no-store", "{method} {path}");
        assert!(answer.header("content-type").starts_with("application/json"), "{:?}", answer.headers);
        let one = answer.json.get("memory").or_else(|| answer.json.get("fact"));
        match one {
            Some(entry) => {
                let tag = format!("\"v{}\"", entry["version"]);
                assert_eq!(answer.header("etag"), tag, "{}", answer.describe());
            }
            None => assert_eq!(answer.header("etag"), "", "{}", answer.describe()),
        }
    }
}

#[test]
fn without_a_credential_every_route_answers_401() {
    let tenant = Tenant::fresh();
    let anonymous = SERVER.anonymous();
    for (method, path, body) in routes(&tenant) {
        let body = || body.clone().map_or(Body::None, Body::Json);
        anonymous.send(method, &path, body()).refused(401, "UNAUTHORIZED");
        anonymous.in_tenant(&tenant.name).send(method, &path, body()).refused(401, "UNAUTHORIZED");
        anonymous.with_header("x-user-id", "u").send(method, &path, body()).refused(401, "UNAUTHORIZED");
        let broken = anonymous.with_header("authorization", "Basic YWxpY2U6eA==");
        broken.send(method, &path, body()).refused(401, "UNAUTHORIZED");
    }
}

#[test]
fn a_body_is_json_and_says_so() {
    let tenant = Tenant::fresh();
    for (method, path, body) in routes(&tenant) {
        let Some(body) = body else { continue };
        if path.ends_with("/archive") || path.ends_with("/restore") {
            continue; // they need no body
        }
        for wrong in ["text/plain", "application/x-www-form-urlencoded", "application/jsonp"] {
            let body = Body::Raw { content_type: Some(wrong), bytes: body.to_string().into_bytes() };
            tenant.client.send(method, &path, body).refused(415, "UNSUPPORTED_MEDIA_TYPE");
        }
        if path == "/v1/memories:search" {
            for fine in ["application/json", "application/json; charset=utf-8", "Application/JSON"] {
                let body = Body::Raw { content_type: Some(fine), bytes: body.to_string().into_bytes() };
                tenant.client.send(method, &path, body).expect(200);
            }
        }
    }
}

#[test]
fn unknown_members_are_ignored_except_in_a_filter() {
    let tenant = Tenant::fresh();
    let place = Place::user("u");
    let id = id_of(&tenant.added(place.with(json!({"content": "a", "colour": "red"}))));
    tenant.changed(&id, json!({"metadata": {}, "colour": "red"}));
    assert_eq!(tenant.page(place.with(json!({"colour": "red"}))).total, 1);
    assert_eq!(tenant.results(place.everything(json!({"colour": "red"}))).len(), 1);
    let query = format!("/v1/memories?{}&colour=red", place.query());
    assert_eq!(Page::of(&tenant.client.get(&query)).total, 1);
    tenant.list(place.with(json!({"filter": {"colour": "red"}}))).invalid("colour");
    tenant.search(place.everything(json!({"filter": {"colour": "red"}}))).invalid("colour");
    tenant.facts(json!({"identifiers": {"userId": "u"}, "filter": {"colour": "red"}})).invalid("colour");
}

#[test]
fn a_body_has_twenty_megabytes_at_most() {
    let tenant = Tenant::fresh();
    let padded = |length: usize| {
        let mut body = Place::user("u").with(json!({"content": "a"})).to_string().into_bytes();
        body.resize(length, b' ');
        body
    };
    let raw = |bytes| Body::Raw { content_type: Some("application/json"), bytes };
    tenant.client.send("POST", "/v1/memories", raw(padded(20 * MIB))).expect(201);
    tenant.client.send("POST", "/v1/memories", raw(padded(20 * MIB + 1))).refused(413, "REQUEST_TOO_LARGE");
    let chunks = padded(20 * MIB + 1).chunks(MIB).map(<[u8]>::to_vec).collect();
    let chunked = Body::Chunked { content_type: "application/json", chunks };
    // The server may answer while the client still sends; a broken pipe is then as good as the answer.
    if let Ok(answer) = tenant.client.try_send("POST", "/v1/memories", chunked) {
        answer.refused(413, "REQUEST_TOO_LARGE");
    }
    assert_eq!(tenant.page(Place::user("u").with(json!({}))).total, 1);
}

#[test]
fn a_request_id_is_echoed_if_it_can_be_one() {
    let tenant = Tenant::fresh();
    let asked = |id: &str| tenant.with_header("x-request-id", id).get("unknown").not_found();
    for fine in ["a", "A-b_c.9", &"x".repeat(128)] {
        assert_eq!(asked(fine).header("x-request-id"), fine);
    }
    for other in ["two words", "semi;colon", &"x".repeat(129), "ünïcode"] {
        let answer = asked(other);
        assert!(!answer.header("x-request-id").is_empty() && answer.header("x-request-id") != other);
    }
}

#[test]
fn every_error_names_its_operation() {
    let tenant = Tenant::fresh();
    let id = tenant.say(&Place::user("u"), "a");
    let operation = |answer: Answer| text(&answer.json["error"]["operation"]);
    let add = operation(tenant.add(Place::user("u").with(json!({}))).refused(400, "INVALID_REQUEST"));
    assert_eq!(add, "memory.add");
    let all = [
        add,
        operation(tenant.get(&fresh_id())),
        operation(tenant.change(&id, json!({}))),
        operation(tenant.with_header("if-match", "\"v9\"").delete(&id)),
        operation(tenant.list(json!({}))),
        operation(tenant.search(json!({}))),
        operation(tenant.client.post("/v1/memories:bulkAdd", json!({}))),
        operation(tenant.client.post("/v1/memories:bulkDelete", json!({}))),
        operation(tenant.client.post("/v1/memories:clear", json!({}))),
        operation(tenant.fact(json!({}))),
    ];
    let mut distinct = all.to_vec();
    distinct.sort();
    distinct.dedup();
    assert_eq!(distinct.len(), all.len(), "{all:?}");
}
