//! One bad request has one predictable code: the order of checks, and what each of them says.

use crate::support::*;

/// Faults of an add, in the order in which they must be noticed.
fn faults() -> Vec<(u16, &'static str, Value)> {
    vec![
        (400, "INVALID_REQUEST", json!({"ttlSeconds": 0})),
        (400, "INVALID_LAYER", json!({"layer": "galaxy"})),
        (400, "INVALID_KIND", json!({"kind": "fleeting"})),
        (400, "MISSING_IDENTIFIER", json!({"identifiers": {"sessionId": "s"}})),
        (403, "FORBIDDEN", json!({"identifiers": {"userId": "somebody-else"}})),
        (422, "CONTENT_TOO_LONG", json!({"content": "x".repeat(100_001)})),
    ]
}

#[test]
fn of_two_faults_of_an_add_the_earlier_check_speaks() {
    let tenant = Tenant::fresh().as_user("u1");
    let good = Place::user("u1").with(json!({"content": "a"}));
    let faults = faults();
    for (n, (status, code, first)) in faults.iter().enumerate() {
        tenant.add(merged(good.clone(), first)).refused(*status, code);
        for (_, _, second) in &faults[n + 1..] {
            // Where both are about the same member, the earlier one is what the request says.
            let body = merged(merged(good.clone(), second), first);
            tenant.add(body).refused(*status, code);
        }
    }
    assert_eq!(tenant.page(Place::user("u1").with(json!({}))).total, 0);
}

#[test]
fn who_calls_is_asked_before_the_body_is_read() {
    let (anonymous, agent) = (SERVER.anonymous(), Tenant::fresh().client);
    let raw = |content_type, text: &str| Body::Raw { content_type, bytes: text.as_bytes().to_vec() };
    for body in [raw(Some("application/json"), "{"), raw(Some("text/plain"), "{}"), raw(None, "")] {
        anonymous.send("POST", "/v1/memories", body).refused(401, "UNAUTHORIZED");
    }
    agent.send("POST", "/v1/memories", raw(Some("application/json"), "{")).refused(400, "INVALID_REQUEST");
    agent.send("POST", "/v1/memories", raw(Some("text/plain"), "{")).refused(415, "UNSUPPORTED_MEDIA_TYPE");
}

#[test]
fn the_state_of_an_entry_is_looked_at_last() {
    let tenant = Tenant::fresh();
    let unknown = fresh_id();
    let stale = tenant.with_header("if-match", "\"v9\"");
    let id = tenant.say(&Place::user("u"), "a");
    let long = "x".repeat(100_001);

    tenant.change(&unknown, json!({"ttlSeconds": 0})).invalid("ttlSeconds");
    tenant.change(&unknown, json!({"layer": "user", "content": "b"})).invalid("layer");
    tenant.change(&unknown, json!({"content": long})).refused(422, "CONTENT_TOO_LONG");
    stale.change(&id, json!({"content": long})).refused(422, "CONTENT_TOO_LONG");
    stale.change(&id, json!({"content": " "})).invalid("content");
    stale.change(&unknown, json!({"content": "b"})).not_found();
    stale.change(&id, json!({"content": "b"})).refused(412, "ETAG_MISMATCH");
    tenant
        .as_user("stranger")
        .with_header("if-match", "\"v9\"")
        .change(&id, json!({"content": "b"}))
        .not_found();
}

#[test]
fn of_two_faults_of_a_search_the_earlier_check_speaks() {
    let tenant = Tenant::fresh().as_user("u1");
    let good = json!({"query": "a", "identifiers": {"userId": "u1"}});
    let faults = [
        (400, "INVALID_REQUEST", json!({"limit": 101})),
        (400, "INVALID_LAYER", json!({"layers": ["user", "galaxy"]})),
        (400, "INVALID_KIND", json!({"kinds": ["fleeting"]})),
        (400, "MISSING_IDENTIFIER", json!({"layers": ["team"]})),
        (403, "FORBIDDEN", json!({"identifiers": {"userId": "u2", "companyId": "another"}})),
        (422, "QUERY_TOO_LONG", json!({"query": "x".repeat(8_193)})),
    ];
    tenant.search(good.clone()).expect(200);
    for (n, (status, code, first)) in faults.iter().enumerate() {
        tenant.search(merged(good.clone(), first)).refused(*status, code);
        for (_, _, second) in &faults[n + 1..] {
            tenant.search(merged(merged(good.clone(), second), first)).refused(*status, code);
        }
    }
}

#[test]
fn a_layer_is_one_of_seven_words() {
    let tenant = Tenant::fresh();
    for layer in [
        json!("galaxy"),
        json!(""),
        json!(5),
        json!(["user"]),
        json!({}),
        json!(true),
        json!(null),
        json!("user "),
    ] {
        let body = json!({"content": "a", "layer": layer, "identifiers": {"userId": "u"}});
        let refused = tenant.add(body.clone()).refused(400, "INVALID_LAYER");
        assert!(names(refused.details()).contains("layer") || layer.is_null(), "{}", refused.describe());
        tenant.list(body.clone()).refused(400, "INVALID_LAYER");
        tenant.client.post("/v1/memories:clear", body).refused(400, "INVALID_LAYER");
        let fact = json!({"factType": "t", "subject": "s", "predicate": "p", "object": "o", "layer": layer});
        tenant.fact(merged(fact, &json!({"identifiers": {"userId": "u"}}))).refused(400, "INVALID_LAYER");
        let layers = json!({"query": "a", "layers": ["user", layer], "identifiers": {"userId": "u"}});
        tenant.search(layers).refused(400, "INVALID_LAYER");
    }
    tenant.add(json!({"content": "a", "identifiers": {"userId": "u"}})).refused(400, "INVALID_LAYER");
    tenant.client.get("/v1/memories?userId=u").refused(400, "INVALID_LAYER");
    tenant.client.get("/v1/memories?layer=galaxy&userId=u").refused(400, "INVALID_LAYER");
}

#[test]
fn whole_numbers_are_whole_numbers_and_nothing_is_clamped() {
    let tenant = Tenant::fresh();
    let place = Place::user("u");
    let wrong = |low: i64, high: i64| {
        vec![
            json!(low - 1),
            json!(high + 1),
            json!(-1),
            json!(1.5),
            json!("5"),
            json!(true),
            json!([1]),
            json!({}),
            json!(1e30),
        ]
    };
    for limit in wrong(1, 100) {
        tenant.list(place.with(json!({"limit": limit}))).invalid("limit");
        tenant.search(place.everything(json!({"limit": limit}))).invalid("limit");
    }
    for limit in wrong(1, 1000) {
        tenant.facts(json!({"identifiers": {"userId": "u"}, "limit": limit})).invalid("limit");
    }
    for ttl in wrong(1, 31_536_000) {
        tenant.add(place.with(json!({"content": "a", "ttlSeconds": ttl}))).invalid("ttlSeconds");
    }
    for limit in ["0", "101", "-1", "1.5", "ten", ""] {
        let query = format!("/v1/memories?{}&limit={limit}", place.query());
        tenant.client.get(&query).invalid("limit");
    }
    for fine in [1, 100] {
        tenant.page(place.with(json!({"limit": fine})));
        tenant.results(place.everything(json!({"limit": fine})));
        Page::of(&tenant.client.get(&format!("/v1/memories?{}&limit={fine}", place.query())));
    }
    for fine in [1, 1000] {
        tenant.facts(json!({"identifiers": {"userId": "u"}, "limit": fine})).expect(200);
    }
    for fine in [1, 31_536_000] {
        let entry = tenant.added(place.with(json!({"content": "a", "ttlSeconds": fine})));
        assert_eq!(entry["ttlSeconds"], fine);
    }
}

#[test]
fn lengths_are_counted_in_characters() {
    let tenant = Tenant::fresh();
    let place = Place::project("p");
    for letter in ["x", "é", "🦭"] {
        let entry = tenant.added(place.with(json!({"content": letter.repeat(100_000)})));
        assert_eq!(text(&entry["content"]).chars().count(), 100_000);
        let refused = tenant.add(place.with(json!({"content": letter.repeat(100_001)})));
        let refused = refused.refused(422, "CONTENT_TOO_LONG");
        assert_eq!(refused.details()["maxLength"], 100_000);
        assert_eq!(refused.details()["actualLength"], 100_001);
        let change = tenant.change(&id_of(&entry), json!({"content": letter.repeat(100_005)}));
        assert_eq!(change.refused(422, "CONTENT_TOO_LONG").details()["actualLength"], 100_005);

        tenant.results(place.everything(json!({"query": letter.repeat(8_192), "limit": 1})));
        let refused = tenant.search(place.everything(json!({"query": letter.repeat(8_193)})));
        let refused = refused.refused(422, "QUERY_TOO_LONG");
        assert_eq!(refused.details()["maxLength"], 8_192);
        assert_eq!(refused.details()["actualLength"], 8_193);
    }
}
