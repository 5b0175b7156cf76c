//! Idempotency keys: one request per key, answered alike for ever after.

use crate::support::*;

fn with_key(tenant: &Tenant, key: &str) -> Tenant {
    tenant.with_header("idempotency-key", key)
}

/// The routes that know keys, each with two different requests.
fn routes() -> [(&'static str, Value, Value); 3] {
    let place = Place::project("p");
    let fact = |object: &str| {
        place.with(json!({"factType": "t", "subject": "s", "predicate": "p", "object": object}))
    };
    let add = |content: &str| place.with(json!({"content": content}));
    [
        ("/v1/memories", add("one"), add("two")),
        (
            "/v1/memories:bulkAdd",
            json!({"memories": [add("one"), add("three")]}),
            json!({"memories": [add("two")]}),
        ),
        ("/v1/facts", fact("one"), fact("two")),
    ]
}

fn total(tenant: &Tenant) -> usize {
    tenant.page(Place::project("p").with(json!({}))).total
}

#[test]
fn a_repetition_gets_the_first_answer_and_does_nothing() {
    for (path, one, two) in routes() {
        let tenant = Tenant::fresh();
        let caller = with_key(&tenant, "key");
        let first = caller.client.post(path, one.clone());
        assert!(matches!(first.status, 200 | 201), "{}", first.describe());
        assert_eq!(first.header("idempotency-replayed"), "");
        let before = total(&tenant);

        let again = caller.client.post(path, one.clone()).expect(first.status);
        assert_eq!(again.header("idempotency-replayed"), "true", "{path}");
        assert_eq!(again.json, first.json, "{path}");
        assert_eq!(again.header("etag"), first.header("etag"), "{path}");
        assert_eq!(again.header("location"), first.header("location"), "{path}");
        caller.client.post(path, two.clone()).refused(409, "IDEMPOTENCY_CONFLICT");
        assert_eq!(total(&tenant), before, "{path}");
        with_key(&tenant, "Key").client.post(path, two).expect(first.status);
        assert!(total(&tenant) > before, "another key, another request: {path}");
    }
}

#[test]
fn the_spelling_of_a_body_does_not_matter() {
    let tenant = Tenant::fresh();
    let caller = with_key(&tenant, "key");
    let send = |body: &str| caller.client.send("POST", "/v1/memories", Body::json_text(body));
    let first =
        send(r#"{"content":"é","layer":"project","identifiers":{"projectId":"p"},"metadata":{"a":1,"b":2}}"#);
    let first = first.expect(201);
    let again = send(
        r#" { "metadata" : {"b":2, "a":1}, "identifiers":{"projectId":"p"}, "layer":"project","content":"\u00e9" } "#,
    );
    assert_eq!(again.header("idempotency-replayed"), "true", "{}", again.describe());
    assert_eq!(again.json, first.json);
    assert_eq!(total(&tenant), 1);
}

#[test]
fn a_key_belongs_to_one_caller_on_one_route() {
    let tenant = Tenant::fresh();
    let body = Place::project("p").with(json!({"content": "one"}));
    let fresh = |caller: &Tenant| {
        let answer = with_key(caller, "key").add(body.clone()).expect(201);
        assert_eq!(answer.header("idempotency-replayed"), "", "{}", answer.describe());
        id_of(&answer.json["memory"])
    };
    let ids = [
        fresh(&tenant),
        fresh(&Tenant::fresh()),
        fresh(&tenant.seen_by(&tenant.client.with_key("agent-b"))),
        fresh(&tenant.as_user("alice")),
        fresh(&tenant.as_user("bob")),
    ];
    let mut distinct = ids.to_vec();
    distinct.sort();
    distinct.dedup();
    assert_eq!(distinct.len(), ids.len());
    let elsewhere = with_key(&tenant, "key").client.post("/v1/memories:bulkAdd", json!({"memories": [body]}));
    assert_eq!(elsewhere.expect(200).header("idempotency-replayed"), "");
}

#[test]
fn a_trusted_client_uses_a_key_for_each_of_its_users() {
    let tenant = Tenant::fresh();
    let ids = ["alice", "bob"].map(|user| {
        let body = Place::user(user).with(json!({"content": "one"}));
        let first = with_key(&tenant, "key").add(body.clone()).expect(201);
        assert_eq!(first.header("idempotency-replayed"), "");
        let again = with_key(&tenant, "key").add(body).expect(201);
        assert_eq!(again.header("idempotency-replayed"), "true");
        id_of(&first.json["memory"])
    });
    assert_ne!(ids[0], ids[1]);
}

#[test]
fn what_failed_is_not_remembered() {
    let tenant = Tenant::fresh();
    let caller = with_key(&tenant, "key");
    let place = Place::project("p");
    caller.add(place.with(json!({"content": " "}))).invalid("content");
    caller.add(json!({"content": "a", "layer": "galaxy"})).refused(400, "INVALID_LAYER");
    caller.add(place.with(json!({"content": "x".repeat(100_001)}))).refused(422, "CONTENT_TOO_LONG");
    let first = caller.add(place.with(json!({"content": "one"}))).expect(201);
    assert_eq!(first.header("idempotency-replayed"), "");
    assert_eq!(caller.add(place.with(json!({"content": "one"}))).header("idempotency-replayed"), "true");
    let atomic =
        json!({"memories": [place.with(json!({"content": "two"})), {"content": "x"}], "atomic": true});
    let bulk = with_key(&tenant, "bulk");
    bulk.client.post("/v1/memories:bulkAdd", atomic).refused(400, "INVALID_LAYER");
    let mended = json!({"memories": [place.with(json!({"content": "two"}))], "atomic": true});
    bulk.client.post("/v1/memories:bulkAdd", mended).expect(200);
    assert_eq!(total(&tenant), 2);
}

#[test]
fn of_many_repetitions_at_once_one_writes() {
    let tenant = Tenant::fresh();
    let body = Place::project("p").with(json!({"content": "one"}));
    for round in 0..4 {
        let caller = with_key(&tenant, &format!("key-{round}"));
        let answers = at_once(8, |_| caller.add(body.clone()));
        let mut ids = Vec::new();
        for answer in answers {
            if answer.status == 409 {
                let refused = answer.refused(409, "IDEMPOTENCY_CONFLICT");
                assert_eq!(refused.details()["reason"], "in_progress");
            } else {
                ids.push(id_of(&answer.expect(201).json["memory"]));
            }
        }
        assert!(ids.iter().all(|id| *id == ids[0]) && !ids.is_empty(), "{ids:?}");
        assert_eq!(total(&tenant), round + 1);
    }
}

#[test]
fn a_key_has_128_characters_at_most() {
    let tenant = Tenant::fresh();
    for (path, one, _) in routes() {
        with_key(&tenant, &"k".repeat(128)).client.post(path, one.clone());
        let refused = with_key(&tenant, &"k".repeat(129)).client.post(path, one);
        refused.refused(400, "INVALID_REQUEST");
    }
}

#[test]
fn the_first_answer_outlives_what_it_told_about() {
    let tenant = Tenant::fresh();
    let caller = with_key(&tenant, "key");
    let body = Place::project("p").with(json!({"content": "one"}));
    let first = caller.add(body.clone()).expect(201);
    let id = id_of(&first.json["memory"]);
    tenant.changed(&id, json!({"metadata": {"later": true}}));
    let replay = caller.add(body).expect(201);
    assert_eq!((replay.header("idempotency-replayed"), &replay.json), ("true", &first.json));
    assert_eq!(total(&tenant), 1);
}
