//! Which identifiers a layer needs, which layers a set of identifiers reaches, and what an identifier may be.

use crate::support::*;

/// No identifier, each by itself, what each layer needs, and all. The matrix of all 128 sets is tested in the core, in
/// `memories/layer/tests.rs`.
fn telling_sets(tenant: &Tenant) -> Vec<Value> {
    let all = tenant.all_identifiers();
    let of = |names: &[&str]| -> Value {
        names.iter().map(|name| ((*name).to_owned(), all[*name].clone())).collect()
    };
    let mut sets = vec![of(&[]), of(&IDENTIFIERS)];
    sets.extend(IDENTIFIERS.iter().map(|name| of(&[*name])));
    sets.extend(LAYERS.iter().filter(|(_, required)| required.len() > 1).map(|(_, required)| of(required)));
    sets
}

/// What this layer needs and the set does not have, in the order of the matrix.
fn missing(required: &[&str], set: &Value) -> Vec<String> {
    required.iter().filter(|name| set.get(**name).is_none()).map(|name| (*name).to_owned()).collect()
}

#[test]
fn a_set_of_identifiers_reaches_the_layers_of_the_matrix() {
    let tenant = Tenant::fresh();
    for set in telling_sets(&tenant) {
        let accessible: Vec<_> =
            LAYERS.iter().filter(|(_, required)| missing(required, &set).is_empty()).collect();
        let answer = tenant.search(json!({"query": "anything", "identifiers": set, "threshold": 0}));
        if accessible.is_empty() {
            let refused = answer.refused(400, "MISSING_IDENTIFIER");
            let named = list(&refused.details()["missing"]);
            assert_eq!(sorted(named.iter().map(text)), sorted(IDENTIFIERS.map(str::to_owned)), "{set}");
        } else {
            let layers: Vec<&str> = accessible.iter().map(|(layer, _)| *layer).collect();
            assert_eq!(answer.expect(200).json["searchedLayers"], json!(layers), "{set}");
        }
    }
}

#[test]
fn every_layer_asks_for_what_is_missing() {
    let tenant = Tenant::fresh();
    let sets = telling_sets(&tenant);
    for (layer, required) in LAYERS {
        let bodies = sets.iter().map(|set| json!({"content": "a", "layer": layer, "identifiers": set}));
        let body = json!({"memories": bodies.collect::<Vec<_>>()});
        let answer = tenant.client.post("/v1/memories:bulkAdd", body).expect(200);
        for (set, result) in sets.iter().zip(list(&answer.json["results"])) {
            let missing = missing(required, set);
            if missing.is_empty() {
                let exactly: Value =
                    required.iter().map(|name| ((*name).to_owned(), set[*name].clone())).collect();
                assert_eq!(result["memory"]["identifiers"], exactly, "extras are dropped: {layer} {set}");
                assert_entry(&result["memory"]);
            } else {
                assert_eq!(result["error"]["code"], "MISSING_IDENTIFIER", "{layer} {set}");
                assert_eq!(result["error"]["details"]["layer"], layer, "{set}");
                assert_eq!(result["error"]["details"]["missing"], json!(missing), "{layer} {set}");
            }
        }
        for set in &sets {
            let answer = tenant.list(json!({"layer": layer, "identifiers": set, "limit": 1}));
            match missing(required, set) {
                none if none.is_empty() => {
                    let complete = sets.iter().filter(|set| missing(required, set).is_empty()).count();
                    assert_eq!(Page::of(&answer).total, complete, "{layer} {set}");
                }
                missing => {
                    let refused = answer.refused(400, "MISSING_IDENTIFIER");
                    assert_eq!(refused.details()["missing"], json!(missing), "{layer} {set}");
                }
            }
        }
    }
}

#[test]
fn a_search_of_named_layers_skips_none_of_them() {
    let tenant = Tenant::fresh();
    let search = |layers: Value, identifiers: Value| {
        tenant.search(json!({"query": "a", "layers": layers, "identifiers": identifiers}))
    };
    let refused = search(json!(["team"]), json!({"userId": "u"})).refused(400, "MISSING_IDENTIFIER");
    assert_eq!(refused.details()["layer"], "team");
    assert_eq!(refused.details()["missing"], json!(["teamId"]));
    let several = search(json!(["org", "user", "session", "agent"]), json!({"userId": "u"}));
    let several = several.refused(400, "MISSING_IDENTIFIER");
    let expected = json!({"agent": ["agentId"], "session": ["sessionId"], "org": ["orgId"]});
    assert_eq!(names(&several.details()["layers"]), names(&expected), "{}", several.describe());
    for (layer, missing) in expected.as_object().unwrap() {
        assert_eq!(several.details()["layers"][layer], *missing);
    }
    assert!(names(several.details()).contains("missing"), "{}", several.describe());
    let twice =
        search(json!(["project", "user", "project", "USER"]), json!({"userId": "u", "projectId": "p"}));
    assert_eq!(twice.expect(200).json["searchedLayers"], json!(["user", "project"]));
    tenant.search(json!({"query": "a"})).refused(400, "MISSING_IDENTIFIER");
}

#[test]
fn nothing_null_and_empty_mean_the_same() {
    let tenant = Tenant::fresh();
    for absent in [json!(null), json!("")] {
        let identifiers = json!({"userId": "u", "sessionId": absent, "projectId": absent});
        let answer = tenant.search(json!({"query": "a", "identifiers": identifiers})).expect(200);
        assert_eq!(answer.json["searchedLayers"], json!(["user"]));
        let body = json!({"content": "a", "layer": "session", "identifiers": identifiers});
        let refused = tenant.add(body).refused(400, "MISSING_IDENTIFIER");
        assert_eq!(refused.details()["missing"], json!(["sessionId"]));
    }
    for nothing in [json!(null), json!({})] {
        let body = json!({"content": "a", "layer": "agent", "identifiers": nothing});
        let refused = tenant.add(body).refused(400, "MISSING_IDENTIFIER");
        assert_eq!(refused.details()["missing"], json!(["agentId", "userId"]));
    }
    tenant.add(json!({"content": "a", "layer": "user"})).refused(400, "MISSING_IDENTIFIER");
    let query = "/v1/memories?layer=session&userId=u&sessionId=";
    tenant.client.get(query).refused(400, "MISSING_IDENTIFIER");
    for wrong in [json!([]), json!("u"), json!(5)] {
        tenant.add(json!({"content": "a", "layer": "user", "identifiers": wrong})).invalid("identifiers");
    }
}

#[test]
fn an_identifier_is_a_text_of_255_characters_without_control_characters() {
    let tenant = Tenant::fresh();
    let with = |layer: &str, name: &str, value: Value| {
        let mut identifiers = tenant.all_identifiers();
        identifiers[name] = value;
        tenant.add(json!({"content": "a", "layer": layer, "identifiers": identifiers}))
    };
    for (layer, name) in [
        ("agent", "agentId"),
        ("user", "userId"),
        ("session", "sessionId"),
        ("project", "projectId"),
        ("team", "teamId"),
        ("org", "orgId"),
    ] {
        for wrong in [json!(5), json!({}), json!("🦭".repeat(256)), json!("a\nb"), json!("\u{7f}")] {
            with(layer, name, wrong).invalid(name);
        }
        for fine in ["🦭".repeat(255), "a_b:c/d%e#f.g h".to_owned(), "\u{80}\u{feff}".to_owned()] {
            let entry = with(layer, name, json!(fine)).expect(201).json["memory"].clone();
            assert_eq!(entry["identifiers"][name], fine);
            let scope = Place {
                layer: LAYERS.iter().find(|(l, _)| *l == layer).unwrap().0,
                identifiers: entry["identifiers"].clone(),
            };
            assert_eq!(tenant.page(scope.with(json!({}))).ids(), [id_of(&entry)], "{fine:?}");
            let query = format!("/v1/memories?{}", scope.query());
            assert_eq!(Page::of(&tenant.client.get(&query)).ids(), [id_of(&entry)], "{fine:?}");
        }
        // An identifier that the layer does not need must be one all the same.
        let other = if layer == "project" { "team" } else { "project" };
        with(other, name, json!("a\nb")).invalid(name);
        with(other, name, json!(5)).invalid(name);
    }
}

/// What cannot be decoded must not be mended: two broken names would then be one.
#[test]
fn an_address_that_is_no_unicode_is_refused() {
    let tenant = Tenant::fresh();
    let id = tenant.say(&Place::user("\u{fffd}"), "the replacement character is a name of its own");
    for broken in ["%FF", "%C3%28", "%ED%A0%80", "a%80"] {
        tenant
            .client
            .get(&format!("/v1/memories?layer=user&userId={broken}"))
            .refused(400, "INVALID_REQUEST");
        let asserted = tenant.get(&format!("{id}?userId={broken}"));
        assert!(matches!(asserted.status, 400 | 404), "{}", asserted.describe());
    }
}

#[test]
fn identifiers_beyond_the_required_ones_neither_narrow_nor_widen() {
    let tenant = Tenant::fresh();
    let (alice, bob) = (tenant.as_user("alice"), tenant.as_user("bob"));
    let identifiers = json!({"projectId": "p", "userId": "alice", "teamId": "t"});
    let entry = alice.added(json!({"content": "a", "layer": "project", "identifiers": identifiers}));
    assert_eq!(entry["identifiers"], json!({"projectId": "p"}));
    assert_eq!(entry["createdBy"]["userId"], "alice");

    let bobs = json!({"projectId": "p", "userId": "bob", "orgId": "o"});
    assert_eq!(bob.page(json!({"layer": "project", "identifiers": bobs})).ids(), [id_of(&entry)]);
    let found =
        bob.found_ids(json!({"query": "a", "layers": ["project"], "identifiers": bobs, "threshold": 0}));
    assert_eq!(found, [id_of(&entry)]);
    assert_eq!(bob.page(json!({"layer": "team", "identifiers": {"teamId": "t"}})).total, 0);
}

#[test]
fn the_company_is_the_tenant() {
    let tenant = Tenant::fresh();
    let company = tenant.company();
    let id = tenant.say(&company, "a");
    assert_eq!(tenant.page(company.with(json!({}))).ids(), [id.as_str()]);

    for other in ["another", "default", &tenant.name.to_uppercase(), &format!("{} ", tenant.name)] {
        let place = Place::company(other);
        tenant.add(place.with(json!({"content": "a"}))).refused(403, "FORBIDDEN");
        tenant.list(place.with(json!({}))).refused(403, "FORBIDDEN");
        tenant.search(place.everything(json!({}))).refused(403, "FORBIDDEN");
        tenant.client.get(&format!("/v1/memories?{}", place.query())).refused(403, "FORBIDDEN");
        tenant.facts(json!({"identifiers": place.identifiers})).refused(403, "FORBIDDEN");
        // Also where the layer does not ask for it.
        let body =
            json!({"content": "a", "layer": "user", "identifiers": {"userId": "u", "companyId": other}});
        tenant.add(body).refused(403, "FORBIDDEN");
    }
    assert_eq!(tenant.page(company.with(json!({}))).total, 1);
}
