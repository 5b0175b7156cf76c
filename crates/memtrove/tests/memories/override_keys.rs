//! Explicit conflicts: of the entries with one `conflictKey` the strongest match speaks.

use crate::support::*;

fn keyed(place: &Place, content: &str, key: &str) -> Value {
    place.with(json!({"content": content, "kind": "semantic", "metadata": {"conflictKey": key}}))
}

fn everywhere(tenant: &Tenant, members: Value) -> Value {
    let all = json!({
        "query": "indentation of source code", "identifiers": tenant.all_identifiers(), "threshold": 0, "limit": 100,
        "dedupe": false,
    });
    merged(all, &members)
}

#[test]
fn the_strongest_layer_wins() {
    let tenant = Tenant::fresh();
    let places = tenant.every_layer();
    let mut ids = Vec::new();
    // From the weakest to the strongest, so that the winner is not simply the first or the last.
    for place in places.iter().rev() {
        let content = format!("indent as the {} does", place.layer);
        ids.insert(0, id_of(&tenant.added(keyed(place, &content, "indent"))));
        assert_eq!(tenant.found_ids(everywhere(&tenant, json!({}))), [ids[0].clone()], "{}", place.layer);
    }
    let answer = tenant.search(everywhere(&tenant, json!({}))).expect(200);
    assert_eq!(answer.json["totalCount"], 7, "counted before losers are dropped");
    for (n, place) in places.iter().enumerate() {
        assert_eq!(tenant.found_ids(everywhere(&tenant, json!({"layers": [place.layer]}))), [ids[n].clone()]);
    }
    let kept = tenant.results(everywhere(&tenant, json!({"includeOverridden": true})));
    assert_eq!(kept.iter().map(|result| id_of(&result["memory"])).collect::<Vec<_>>(), ids, "kept in place");
    assert!(kept[0]["overriddenBy"].is_null());
    assert!(kept[1..].iter().all(|result| result["overriddenBy"] == json!(ids[0])), "{kept:?}");
}

#[test]
fn inside_a_layer_the_latest_change_wins() {
    let tenant = Tenant::fresh();
    let place = Place::project("p1");
    let ids: Vec<String> = ["tabs", "spaces", "both"]
        .map(|content| id_of(&tenant.added(keyed(&place, content, "indent"))))
        .into();
    let winner = || tenant.found_ids(everywhere(&tenant, json!({"layers": ["project"]})));

    assert_eq!(winner(), [ids[2].clone()]);
    tenant.changed(&ids[0], json!({"metadata": {"again": true}}));
    assert_eq!(winner(), [ids[0].clone()]);
    tenant.changed(&ids[0], json!({"metadata": {"conflictKey": null}}));
    assert_eq!(sorted(winner()), sorted([ids[0].clone(), ids[2].clone()]));
    tenant.delete(&ids[2]).expect(200);
    assert_eq!(sorted(winner()), sorted([ids[0].clone(), ids[1].clone()]));
}

#[test]
fn keys_are_told_apart_letter_by_letter() {
    let tenant = Tenant::fresh();
    let place = Place::project("p1");
    let keys = ["indent", "Indent", "indent ", "é", "e\u{301}", "x"];
    let bodies = keys.map(|key| keyed(&place, &format!("rule of {key}"), key));
    assert_eq!(tenant.found_ids(everywhere(&tenant, json!({}))).len(), 0);
    tenant.add_all(bodies);
    assert_eq!(tenant.found_ids(everywhere(&tenant, json!({}))).len(), keys.len());
}

/// Winners are chosen among the matches: what the threshold, the kinds, time or a filter leave out beats nobody.
#[test]
fn what_does_not_match_beats_nobody() {
    let tenant = Tenant::fresh();
    let strong = id_of(&tenant.added(keyed(&Place::user("u1"), "volcanoes erupt in Iceland", "k")));
    let body = merged(
        keyed(&Place::project("p1"), "indentation of source code", "k"),
        &json!({"metadata": {"conflictKey": "k", "tags": ["style"]}}),
    );
    let weak = id_of(&tenant.added(body));

    assert_eq!(tenant.found_ids(everywhere(&tenant, json!({}))), [strong.as_str()]);
    assert_eq!(tenant.found_ids(everywhere(&tenant, json!({"threshold": 0.7}))), [weak.as_str()]);
    assert_eq!(
        tenant.found_ids(everywhere(&tenant, json!({"filter": {"tags": ["style"]}}))),
        [weak.as_str()]
    );
    assert_eq!(tenant.found_ids(everywhere(&tenant, json!({"layers": ["project"]}))), [weak.as_str()]);
    tenant.client.post(&format!("/v1/memories/{strong}/archive"), json!({})).expect(200);
    assert_eq!(tenant.found_ids(everywhere(&tenant, json!({}))), [weak]);
    assert_eq!(tenant.found_ids(everywhere(&tenant, json!({"includeArchived": true}))), [strong]);
}

/// Winners are chosen before duplicates are dropped.
#[test]
fn a_winner_that_is_a_duplicate_still_beats_its_rivals() {
    let tenant = Tenant::fresh();
    let first =
        tenant.say_with(&Place::agent("a1", "u1"), json!({"content": "Use tabs", "kind": "semantic"}));
    let winner = id_of(&tenant.added(keyed(&Place::user("u1"), "use tabs.", "indent")));
    let rival = id_of(&tenant.added(keyed(&Place::project("p1"), "Prefer two spaces", "indent")));

    assert_eq!(tenant.found_ids(everywhere(&tenant, json!({"dedupe": true}))), [first.as_str()]);
    assert_eq!(tenant.found_ids(everywhere(&tenant, json!({}))), [first.clone(), winner.clone()]);
    let all = tenant.results(everywhere(&tenant, json!({"includeOverridden": true})));
    assert_eq!(all.len(), 3);
    assert_eq!(all[2]["memory"]["id"], json!(rival));
    assert_eq!(all[2]["overriddenBy"], json!(winner));
}

#[test]
fn similar_texts_without_a_key_are_both_returned() {
    let tenant = Tenant::fresh();
    tenant.added(Place::user("u1").with(json!({"content": "Use spaces for indentation"})));
    tenant.added(Place::project("p1").with(json!({"content": "Use tabs for indentation"})));
    let found = tenant.found(everywhere(&tenant, json!({"dedupe": true})));
    assert_eq!(found, ["Use spaces for indentation", "Use tabs for indentation"]);
}
