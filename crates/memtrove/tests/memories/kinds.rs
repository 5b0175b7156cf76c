//! Kinds: which layer allows which, what a layer takes by default, what they are called, and clearing.

use crate::support::*;

/// The layers that allow each kind.
const ALLOWED: [(&str, &[&str]); 7] = [
    ("working", &["agent", "user", "session"]),
    ("session", &["session"]),
    ("episodic", &["agent", "user", "session", "project", "team", "org", "company"]),
    ("semantic", &["agent", "user", "session", "project", "team", "org", "company"]),
    ("procedural", &["agent", "user", "session", "project", "team", "org", "company"]),
    ("user_personal", &["user"]),
    ("archival", &["agent", "user", "session", "project", "team", "org", "company"]),
];

/// What an entry of this kind needs beside its scope.
fn body(kind: &str) -> Value {
    match kind {
        "procedural" => {
            let fact = json!({"factType": "rule", "subject": "s", "predicate": "is", "object": "o"});
            json!({"kind": kind, "fact": fact})
        }
        _ => json!({"kind": kind, "content": "a"}),
    }
}

#[test]
fn every_layer_takes_the_kinds_it_allows_and_refuses_the_others() {
    let tenant = Tenant::fresh();
    for place in tenant.every_layer() {
        for (kind, layers) in ALLOWED {
            let answer = tenant.add(place.with(body(kind)));
            if layers.contains(&place.layer) {
                let entry = settled(&answer.expect(201).json["memory"]);
                assert_eq!(entry["kind"], kind, "{}", place.layer);
                assert_eq!(entry["state"], if kind == "archival" { "archived" } else { "active" });
                assert_eq!(tenant.entry(&id_of(&entry)), entry);
            } else {
                let refused = answer.refused(400, "INVALID_KIND");
                assert_eq!(refused.details()["layer"], place.layer);
                assert_eq!(refused.details()["kind"], kind);
                assert_eq!(refused.details()["allowedLayers"], json!(layers));
            }
        }
    }
}

#[test]
fn every_layer_has_its_default_kind() {
    let tenant = Tenant::fresh();
    let defaults = ["semantic", "user_personal", "session", "semantic", "semantic", "semantic", "semantic"];
    for (place, kind) in tenant.every_layer().iter().zip(defaults) {
        assert_eq!(tenant.added(place.with(json!({"content": "a"})))["kind"], kind, "{}", place.layer);
        let null = tenant.added(place.with(json!({"content": "a", "kind": null})));
        assert_eq!(null["kind"], kind, "{}", place.layer);
    }
}

#[test]
fn a_kind_has_one_name_and_one_of_them_some_more() {
    let tenant = Tenant::fresh();
    let place = Place::user("u");
    for name in ["user_personal", "userPersonal", "user-personal", "personal", "USER_PERSONAL", "Personal"] {
        assert_eq!(tenant.added(place.with(json!({"content": "a", "kind": name})))["kind"], "user_personal");
        assert!(tenant.page(place.with(json!({"kinds": [name]}))).total > 0, "{name}");
        let query = format!("/v1/memories?{}&kind={name}", place.query());
        assert!(Page::of(&tenant.client.get(&query)).total > 0, "{name}");
    }
    for wrong in [json!("long_term"), json!(""), json!(5), json!(["semantic"]), json!({}), json!(true)] {
        tenant.add(place.with(json!({"content": "a", "kind": wrong}))).refused(400, "INVALID_KIND");
        tenant.list(place.with(json!({"kinds": ["semantic", wrong]}))).refused(400, "INVALID_KIND");
        tenant.search(place.everything(json!({"kinds": [wrong]}))).refused(400, "INVALID_KIND");
    }
    for wrong in [json!([]), json!("semantic"), json!(5), json!({})] {
        tenant.list(place.with(json!({"kinds": wrong}))).invalid("kinds");
        tenant.search(place.everything(json!({"kinds": wrong}))).invalid("kinds");
        tenant.client.post("/v1/memories:clear", place.with(json!({"kinds": wrong}))).invalid("kinds");
    }
    tenant.client.get(&format!("/v1/memories?{}&kind=x", place.query())).refused(400, "INVALID_KIND");
}

#[test]
fn kinds_narrow_lists_and_searches() {
    let tenant = Tenant::fresh();
    let place = Place::user("u");
    for kind in ["working", "episodic", "semantic", "procedural", "user_personal", "archival"] {
        tenant.added(place.with(body(kind)));
    }
    let listed = |members: Value| {
        let entries = tenant.all(place.with(members));
        sorted(entries.iter().map(|entry| text(&entry["kind"])).collect::<Vec<_>>())
    };
    let found = |members: Value| {
        let results = tenant.results(place.everything(members));
        sorted(results.iter().map(|result| text(&result["memory"]["kind"])).collect::<Vec<_>>())
    };
    for kinds in [
        &["working"][..],
        &["episodic", "semantic"],
        &["archival"],
        &["archival", "procedural"],
        &["user_personal", "user_personal"],
    ] {
        let mut expected = sorted(kinds.iter().map(|kind| (*kind).to_owned()));
        expected.dedup();
        assert_eq!(listed(json!({"kinds": kinds})), expected);
        assert_eq!(found(json!({"kinds": kinds})), expected);
    }
    let live = ["episodic", "procedural", "semantic", "user_personal", "working"];
    assert_eq!(listed(json!({})), live);
    assert_eq!(found(json!({})), live);
    let all = ["archival", "episodic", "procedural", "semantic", "user_personal", "working"];
    assert_eq!(listed(json!({"includeArchived": true})), all);
    assert_eq!(found(json!({"includeArchived": true})), all);
    assert_eq!(listed(json!({"state": "archived"})), ["archival"]);
    let query = format!("/v1/memories?{}&kind=semantic&kind=episodic", place.query());
    assert_eq!(Page::of(&tenant.client.get(&query)).total, 2);
}

#[test]
fn archived_entries_keep_their_origin_and_come_back() {
    let tenant = Tenant::fresh();
    let place = Place::project("p");
    let id = id_of(&tenant.added(place.with(json!({"content": "cold", "kind": "episodic"}))));
    let verb = |verb: &str| tenant.client.post(&format!("/v1/memories/{id}/{verb}"), json!({}));

    let archived = settled(&verb("archive").expect(200).json["memory"]);
    assert_eq!((&archived["kind"], &archived["state"]), (&json!("archival"), &json!("archived")));
    assert_eq!((&archived["originKind"], &archived["version"]), (&json!("episodic"), &json!(2)));
    assert_eq!(tenant.entry(&id), archived, "archived entries are read by id");
    assert_eq!(tenant.page(place.with(json!({}))).total, 0);
    assert_eq!(tenant.search(place.everything(json!({}))).expect(200).json["totalCount"], 0);
    assert_eq!(
        tenant.search(place.everything(json!({"includeArchived": true}))).expect(200).json["totalCount"],
        1
    );
    verb("archive").refused(409, "INVALID_STATE");
    let restored = verb("restore").expect(200).json["memory"].clone();
    assert_eq!((&restored["kind"], &restored["state"]), (&json!("episodic"), &json!("active")));
    assert!(!names(&restored).contains("originKind"), "{restored}");
    verb("restore").refused(409, "INVALID_STATE");
    assert_eq!(tenant.found(place.everything(json!({}))), ["cold"]);
}

#[test]
fn clearing_removes_the_named_kinds_of_one_scope() {
    let tenant = Tenant::fresh();
    let place = Place::session("u", "s");
    let clear =
        |members: Value| tenant.client.post("/v1/memories:clear", place.with(members)).expect(200).json;
    for n in 0..3 {
        tenant.added(place.with(json!({"content": format!("scratch {n}"), "kind": "working"})));
    }
    let working = tenant.page(place.with(json!({}))).ids();
    let words = tenant.say(&place, "words");
    let event = id_of(&tenant.added(place.with(json!({"content": "event", "kind": "episodic"}))));

    assert_eq!(clear(json!({})), json!({"cleared": 3}));
    for id in &working {
        tenant.get(id).not_found();
    }
    assert_eq!(clear(json!({})), json!({"cleared": 0}));
    assert_eq!(sorted(tenant.page(place.with(json!({}))).ids()), sorted([words, event.clone()]));
    assert_eq!(clear(json!({"kinds": ["Session"]})), json!({"cleared": 1}));
    assert_eq!(tenant.page(place.with(json!({}))).ids(), [event]);
    assert_eq!(clear(json!({"kinds": ["working", "session", "episodic"]})), json!({"cleared": 1}));
    assert_eq!(tenant.page(place.with(json!({}))).total, 0);
    let nowhere = json!({"layer": "session", "identifiers": {"userId": "u"}});
    tenant.client.post("/v1/memories:clear", nowhere).refused(400, "MISSING_IDENTIFIER");
    let unknown = place.with(json!({"kinds": ["fleeting"]}));
    tenant.client.post("/v1/memories:clear", unknown).refused(400, "INVALID_KIND");
}

#[test]
fn working_memory_obeys_the_same_rules() {
    let tenant = Tenant::fresh();
    let place = Place::session("u", "s");
    let id = id_of(
        &tenant
            .added(place.with(json!({"content": "scratch", "kind": "working", "metadata": {"tags": ["t"]}}))),
    );
    let stale = tenant.with_header("if-match", "\"v9\"");
    stale.change(&id, json!({"content": "x"})).refused(412, "ETAG_MISMATCH");
    stale.delete(&id).refused(412, "ETAG_MISMATCH");
    tenant.with_header("if-none-match", "\"v1\"").get(&id).expect(304);
    tenant.get(&format!("{id}?userId=other")).not_found();
    tenant.as_user("stranger").get(&id).not_found();
    let changed = tenant.changed(&id, json!({"content": "scribble", "metadata": {"n": 1}}));
    assert_eq!((&changed["version"], &changed["metadata"]), (&json!(2), &json!({"tags": ["t"], "n": 1})));
    assert_eq!(tenant.found(place.everything(json!({"filter": {"custom": {"n": 1}}}))), ["scribble"]);
    let archived = tenant.client.post(&format!("/v1/memories/{id}/archive"), json!({}));
    assert!(archived.status < 500, "{}", archived.describe());
    assert_eq!(tenant.delete(&id).expect(200).json["deleted"], true);
    tenant.get(&id).not_found();
}
