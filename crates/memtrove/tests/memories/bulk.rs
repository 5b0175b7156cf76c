//! Many at once: one by one or all or nothing, with every item's own answer.

use crate::support::*;

#[track_caller]
fn add(tenant: &Tenant, memories: &[Value], atomic: bool) -> Answer {
    tenant.client.post("/v1/memories:bulkAdd", json!({"memories": memories, "atomic": atomic}))
}

/// Items with every kind of fault between good ones.
fn mixed() -> Vec<(Value, Option<&'static str>)> {
    let place = Place::project("p");
    let good = |content: &str| (place.with(json!({"content": content})), None);
    vec![
        good("zero"),
        (place.with(json!({"content": " "})), Some("INVALID_REQUEST")),
        good("two"),
        (json!({"content": "a", "layer": "galaxy"}), Some("INVALID_LAYER")),
        (place.with(json!({"content": "a", "kind": "session"})), Some("INVALID_KIND")),
        (
            json!({"content": "a", "layer": "session", "identifiers": {"userId": "u"}}),
            Some("MISSING_IDENTIFIER"),
        ),
        (place.with(json!({"content": "x".repeat(100_001)})), Some("CONTENT_TOO_LONG")),
        (
            place.with(json!({"content": "a", "metadata": {"k": "x".repeat(70_000)}})),
            Some("METADATA_TOO_LARGE"),
        ),
        (
            json!({"content": "a", "layer": "company", "identifiers": {"companyId": "other"}}),
            Some("FORBIDDEN"),
        ),
        (place.with(json!({"content": "a", "embedding": [1.0]})), Some("INVALID_REQUEST")),
        good("ten"),
        good("ten"),
    ]
}

#[test]
fn every_item_gets_its_own_answer() {
    let tenant = Tenant::fresh();
    let items = mixed();
    let bodies: Vec<Value> = items.iter().map(|(body, _)| body.clone()).collect();

    let answer = add(&tenant, &bodies, false).expect(200);

    assert_members(&answer.json, &["results", "added", "failed"]);
    assert_eq!((&answer.json["added"], &answer.json["failed"]), (&json!(4), &json!(8)));
    let results = list(&answer.json["results"]);
    assert_eq!(results.len(), items.len());
    for (n, (result, (body, code))) in results.iter().zip(&items).enumerate() {
        assert_eq!(result["index"], n);
        match code {
            None => {
                assert_members(result, &["index", "memory", "embeddingGenerated"]);
                assert_eq!(result["memory"]["content"], body["content"]);
                assert_eq!(tenant.entry(&id_of(&result["memory"])), settled(&result["memory"]));
            }
            Some(code) => {
                assert_members(result, &["index", "error"]);
                assert_eq!(result["error"]["code"], *code, "{result}");
                assert!(result["error"]["details"].is_object(), "{result}");
                assert_eq!(result["error"]["retryable"], false, "{result}");
            }
        }
    }
    assert_eq!(tenant.page(Place::project("p").with(json!({}))).total, 4);
    assert_eq!(tenant.search(Place::project("p").everything(json!({}))).expect(200).json["totalCount"], 4);
}

#[test]
fn all_or_nothing_stores_nothing_and_tells_the_first_fault() {
    let tenant = Tenant::fresh();
    let items = mixed();
    let statuses = [
        ("INVALID_REQUEST", 400),
        ("INVALID_LAYER", 400),
        ("INVALID_KIND", 400),
        ("MISSING_IDENTIFIER", 400),
        ("CONTENT_TOO_LONG", 422),
        ("METADATA_TOO_LARGE", 422),
        ("FORBIDDEN", 403),
    ];
    for first in 0..items.len() {
        // The good ones in front, then this one, then the rest.
        let Some(code) = items[first].1 else { continue };
        let good = items.iter().filter(|(_, code)| code.is_none()).map(|(body, _)| body.clone());
        let mut bodies: Vec<Value> = good.collect();
        bodies.push(items[first].0.clone());
        bodies.extend(items.iter().map(|(body, _)| body.clone()));

        let status = statuses.iter().find(|(name, _)| *name == code).unwrap().1;
        let refused = add(&tenant, &bodies, true).refused(status, code);

        assert_eq!(refused.details()["index"], 4, "{}", refused.describe());
        assert_eq!(tenant.page(Place::project("p").with(json!({}))).total, 0);
        assert_eq!(
            tenant.search(Place::project("p").everything(json!({}))).expect(200).json["totalCount"],
            0
        );
    }
    let good: Vec<Value> =
        items.into_iter().filter(|(_, code)| code.is_none()).map(|(body, _)| body).collect();
    let answer = add(&tenant, &good, true).expect(200);
    assert_eq!((&answer.json["added"], &answer.json["failed"]), (&json!(4), &json!(0)));
}

#[test]
fn five_hundred_is_the_most_and_one_the_least() {
    let tenant = Tenant::fresh();
    let place = Place::user("u");
    let many = |count: usize| -> Vec<Value> {
        (0..count).map(|n| place.with(json!({"content": format!("entry {n}")}))).collect()
    };
    let refused = add(&tenant, &many(501), false).refused(422, "BATCH_TOO_LARGE");
    assert_eq!(refused.details()["maxItems"], 500);
    add(&tenant, &[], false).refused(400, "INVALID_REQUEST");
    for wrong in [
        json!({}),
        json!({"memories": {}}),
        json!({"memories": "x"}),
        json!({"memories": [], "atomic": "yes"}),
        json!({"memories": many(1), "atomic": 1}),
    ] {
        tenant.client.post("/v1/memories:bulkAdd", wrong).refused(400, "INVALID_REQUEST");
    }
    assert_eq!(add(&tenant, &many(500), false).expect(200).json["added"], 500);
    assert_eq!(tenant.page(place.with(json!({}))).total, 500);
}

#[test]
fn items_may_go_to_different_scopes_and_kinds() {
    let tenant = Tenant::fresh();
    let fact = json!({"factType": "t", "subject": "s", "predicate": "p", "object": "o"});
    let mut bodies: Vec<Value> =
        tenant.every_layer().iter().map(|place| place.with(json!({"content": place.layer}))).collect();
    bodies.push(Place::user("u1").with(json!({"content": "scratch", "kind": "working"})));
    bodies.push(Place::team("t1").with(json!({"kind": "procedural", "fact": fact})));
    tenant.add_all(bodies);

    for place in tenant.every_layer() {
        let expected = if ["user", "team"].contains(&place.layer) { 2 } else { 1 };
        assert_eq!(tenant.page(place.with(json!({}))).total, expected, "{}", place.layer);
    }
}

#[test]
fn a_fact_that_is_stated_already_does_not_stop_the_others() {
    let tenant = Tenant::fresh();
    let place = Place::project("p");
    let fact = |object: &str| {
        let fact = json!({"factType": "t", "subject": "s", "predicate": "p", "object": object});
        place.with(json!({"kind": "procedural", "fact": fact}))
    };
    tenant.added(fact("known"));
    let note = place.with(json!({"content": "a note"}));
    let bodies = [note.clone(), fact("known"), fact("new"), fact("new"), note];

    let answer = add(&tenant, &bodies, false).expect(200);

    let results = list(&answer.json["results"]);
    for n in [0, 2, 4] {
        assert_entry(&results[n]["memory"]);
    }
    let facts = tenant.facts(json!({"identifiers": place.identifiers})).expect(200);
    assert_eq!(facts.json["totalCount"], 2, "{}", answer.describe());
    assert_eq!(tenant.page(place.with(json!({"kinds": ["semantic"]}))).total, 2);
}

#[test]
fn deleting_many_tells_which_were_not_there() {
    let (tenant, other) = (Tenant::fresh(), Tenant::fresh());
    let place = Place::user("u");
    let ids = tenant.add_all((0..4).map(|n| place.with(json!({"content": format!("entry {n}")}))));
    let scratch = id_of(&tenant.added(place.with(json!({"content": "scratch", "kind": "working"}))));
    let foreign = other.say(&place, "foreign");
    let gone = ids[3].clone();
    tenant.delete(&gone).expect(200);
    let unknown = fresh_id();
    let asked = json!([ids[0], ids[1], scratch, ids[0], foreign, unknown, gone, "no uuid", unknown]);

    let answer = tenant.client.post("/v1/memories:bulkDelete", json!({"ids": asked})).expect(200);

    assert_members(&answer.json, &["deleted", "failed", "errors"]);
    assert_eq!(answer.json["deleted"], 3);
    let failed: Vec<String> = list(&answer.json["failed"]).iter().map(text).collect();
    assert_eq!(sorted(failed), sorted([foreign.clone(), unknown, gone, "no uuid".to_owned()]));
    for error in list(&answer.json["errors"]) {
        assert_eq!(error["code"], "MEMORY_NOT_FOUND", "{error}");
    }
    assert_eq!(tenant.page(place.with(json!({}))).ids(), [ids[2].clone()]);
    other.entry(&foreign);
}

#[test]
fn a_thousand_is_the_most_to_delete() {
    let tenant = Tenant::fresh();
    let ids = |count: usize| -> Vec<String> { (0..count).map(|_| fresh_id()).collect() };
    let delete = |ids: Value| tenant.client.post("/v1/memories:bulkDelete", json!({"ids": ids}));
    assert_eq!(delete(json!(ids(1001))).refused(422, "BATCH_TOO_LARGE").details()["maxItems"], 1000);
    let answer = delete(json!(ids(1000))).expect(200);
    assert_eq!((&answer.json["deleted"], list(&answer.json["failed"]).len()), (&json!(0), 1000));
    for wrong in [json!([]), json!("x"), json!({}), json!(null), json!([5]), json!([null])] {
        delete(wrong).invalid("ids");
    }
}

#[test]
fn users_add_and_delete_only_what_they_may() {
    let tenant = Tenant::fresh();
    let (alice, bob) = (tenant.as_user("alice"), tenant.as_user("bob"));
    let bodies = [
        Place::user("alice").with(json!({"content": "mine"})),
        Place::user("bob").with(json!({"content": "his"})),
    ];
    let answer = add(&alice, &bodies, false).expect(200);
    assert_eq!(answer.json["results"][1]["error"]["code"], "FORBIDDEN");
    let mine = id_of(&answer.json["results"][0]["memory"]);

    let answer = bob.client.post("/v1/memories:bulkDelete", json!({"ids": [mine]})).expect(200);
    assert_eq!((&answer.json["deleted"], &answer.json["failed"]), (&json!(0), &json!([mine])));
    assert_eq!(alice.entry(&mine)["content"], "mine");
}
