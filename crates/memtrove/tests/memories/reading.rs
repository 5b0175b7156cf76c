//! Reading one entry: its ETag, its vector, and the scope that a careful caller asserts.

use crate::support::*;

#[test]
fn an_entry_reads_as_it_was_answered() {
    let tenant = Tenant::fresh();
    for place in tenant.every_layer() {
        let body =
            json!({"content": "a note", "metadata": {"tags": ["t"], "custom": {"deep": [null, 1.50]}}});
        let entry = tenant.added(place.with(body));

        let answer = tenant.get(&id_of(&entry)).expect(200);

        assert_members(&answer.json, &["memory"]);
        assert_eq!(settled(&answer.json["memory"]), entry);
        assert_eq!(answer.header("etag"), "\"v1\"");
        assert_eq!(answer.header("cache-control"), "no-store");
    }
}

#[test]
fn the_same_etag_needs_no_second_copy() {
    let tenant = Tenant::fresh();
    let id = tenant.say(&Place::user("u"), "one");
    let asking = |tag: &str| tenant.with_header("if-none-match", tag).get(&id);

    for tag in ["\"v1\"", "W/\"v1\"", "*", "\"v9\", \"v1\""] {
        let unchanged = asking(tag).expect(304);
        assert_eq!(unchanged.text, "", "{tag}");
        assert_eq!(unchanged.header("etag"), "\"v1\"", "{tag}");
        assert_eq!(unchanged.header("cache-control"), "no-store", "{tag}");
    }
    tenant.changed(&id, json!({"content": "two"}));
    assert_eq!(asking("\"v1\"").expect(200).json["memory"]["content"], "two");
    asking("\"v2\"").expect(304);
    tenant.with_header("if-none-match", "*").get(&fresh_id()).not_found();
}

#[test]
fn a_vector_is_shown_on_request() {
    let tenant = Tenant::fresh();
    let place = Place::user("u");
    let id = tenant.say(&place, "My dog is called Rex");
    let shown = |answer: Answer| answer.expect(200).json["memory"]["embedding"].clone();

    let vector = shown(tenant.get(&format!("{id}?includeEmbedding=true")));
    let length: f64 = list(&vector).iter().map(|x| number(x).powi(2)).sum::<f64>().sqrt();
    assert!((length - 1.0).abs() < 1e-3, "not of unit length: {length}");
    let dimensions = tenant.client.get("/v1/memories:capabilities").json["embedding"]["dimensions"].clone();
    assert_eq!(dimensions, json!(list(&vector).len()));
    assert_eq!(shown(tenant.get(&format!("{id}?includeEmbedding=false"))), Value::Null);
    assert_eq!(shown(tenant.get(&id)), Value::Null);
    let listed = tenant.page(place.with(json!({"includeEmbedding": true})));
    assert_eq!(listed.entries[0]["embedding"], vector);
    let query = format!("/v1/memories?{}&includeEmbedding=true", place.query());
    assert_eq!(Page::of(&tenant.client.get(&query)).entries[0]["embedding"], vector);
    let found = tenant.results(place.everything(json!({"includeEmbedding": true})));
    assert_eq!(found[0]["memory"]["embedding"], vector);
    assert_eq!(tenant.results(place.everything(json!({})))[0]["memory"]["embedding"], Value::Null);
    for wrong in ["yes", "1", ""] {
        tenant.get(&format!("{id}?includeEmbedding={wrong}")).invalid("includeEmbedding");
    }
}

#[test]
fn what_is_no_uuid_is_not_there() {
    let tenant = Tenant::fresh();
    let id = tenant.say(&Place::user("u"), "a");
    let body = || json!({"content": "b"});
    for unknown in [
        fresh_id().as_str(),
        "00000000-0000-0000-0000-000000000000",
        "not-a-uuid",
        "1",
        "%20",
        "%00",
        "..%2f..%2fetc",
        &"x".repeat(300),
        &format!("{id}x"),
        &id[..35],
        "%F0%9F%92%A9",
    ] {
        tenant.get(unknown).not_found();
        tenant.change(unknown, body()).not_found();
        let deleted = tenant.delete(unknown).expect(200);
        assert_eq!(deleted.json, json!({"success": true, "deleted": false}), "{unknown}");
        tenant.client.get(&format!("/v1/facts/{unknown}")).not_found();
    }
    assert_eq!(tenant.entry(&id)["content"], "a");
}

/// An entry of every layer, and assertions about it that hold and that do not.
#[test]
fn an_asserted_scope_must_be_the_entrys_own() {
    let tenant = Tenant::fresh();
    for place in tenant.every_layer() {
        let id = tenant.say(&place, "asserted");
        let asserting = |query: &str| tenant.get(&format!("{id}?{query}"));

        asserting(&place.query()).expect(200);
        asserting(&format!("layer={}", place.layer.to_uppercase())).expect(200);
        for (name, value) in place.identifiers.as_object().unwrap() {
            asserting(&format!("{name}={}", text(value))).expect(200);
        }
        for (layer, _) in LAYERS.iter().filter(|(layer, _)| *layer != place.layer) {
            asserting(&format!("layer={layer}")).not_found();
        }
        for (name, value) in place.identifiers.as_object().unwrap() {
            if name != "companyId" {
                asserting(&format!("{name}={}", text(value).to_uppercase())).not_found();
                asserting(&format!("{name}={}%20", text(value))).not_found();
            }
        }
        asserting("layer=galaxy").refused(400, "INVALID_LAYER");
        assert_eq!(tenant.entry(&id)["content"], "asserted");
    }
}

#[test]
fn an_assertion_guards_changes_and_deletions_too() {
    let tenant = Tenant::fresh();
    let place = Place::session("u1", "s1");
    let id = tenant.say(&place, "a");

    for wrong in
        ["userId=u2", "sessionId=s2", "layer=user", "userId=u1&sessionId=s2", "layer=session&userId=u2"]
    {
        tenant.change(&format!("{id}?{wrong}"), json!({"content": "b"})).not_found();
        let kept = tenant.delete(&format!("{id}?{wrong}")).expect(200);
        assert_eq!(kept.json["deleted"], false, "{wrong}");
    }
    assert_eq!(tenant.entry(&id)["version"], 1);
    tenant.changed(&format!("{id}?{}", place.query()), json!({"content": "b"}));
    let gone = tenant.delete(&format!("{id}?{}", place.query())).expect(200);
    assert_eq!(gone.json, json!({"success": true, "deleted": true}));
    tenant.get(&id).not_found();
}
