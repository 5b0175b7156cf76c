//! What a deployment decides: which layers there are, defaults and limits.

use crate::support::*;

#[test]
fn a_layer_may_be_switched_off() {
    let server = server_with("[memories]\nenabled_layers = [\"user\", \"project\"]\n");
    let tenant = Tenant::of(&server, "t");
    for place in tenant.every_layer() {
        let answer = tenant.add(place.with(json!({"content": "a", "kind": "semantic"})));
        if ["user", "project"].contains(&place.layer) {
            answer.expect(201);
        } else {
            let refused = answer.refused(400, "INVALID_LAYER");
            assert_eq!(refused.details()["layer"], place.layer);
            tenant.list(place.with(json!({}))).refused(400, "INVALID_LAYER");
            tenant.search(place.everything(json!({}))).refused(400, "INVALID_LAYER");
        }
    }
    let all = json!({"query": "a", "identifiers": tenant.all_identifiers(), "threshold": 0});
    assert_eq!(tenant.search(all).expect(200).json["searchedLayers"], json!(["user", "project"]));
}

#[test]
fn defaults_and_limits_are_published_and_kept() {
    let server = server_with(
        r#"
        [memories.search]
        default_limit = 2
        default_threshold = 0.0
        max_limit = 5
        [memories.session]
        default_ttl = "2m"
        [memories.limits]
        max_content_length = 20
        max_list_limit = 60
        max_working_entries = 3
        "#,
    );
    let tenant = Tenant::of(&server, "t");
    let capabilities = tenant.client.get("/v1/memories:capabilities").expect(200).json;
    assert_eq!(capabilities["limits"]["maxContentLength"], 20);
    assert_eq!(capabilities["limits"]["maxSearchLimit"], 5);
    assert_eq!(capabilities["limits"]["maxListLimit"], 60);
    assert_eq!(capabilities["defaults"]["search"]["limit"], 2);
    let place = Place::session("u", "s");
    let entry = tenant.added(place.with(json!({"content": "01234567890123456789"})));
    assert_eq!(entry["ttlSeconds"], 120);
    let refused = tenant.add(place.with(json!({"content": "0123456789012345678901"})));
    assert_eq!(refused.refused(422, "CONTENT_TOO_LONG").details()["maxLength"], 20);
    let scratch = |n: usize| place.with(json!({"content": format!("scratch {n}"), "kind": "working"}));
    let ids: Vec<String> = (0..5).map(|n| id_of(&tenant.added(scratch(n)))).collect();
    assert_eq!(tenant.page(place.with(json!({"kinds": ["working"]}))).total, 3, "the oldest are gone");
    tenant.entry(&ids[4]);
    let search = json!({"query": "scratch", "identifiers": place.identifiers});
    let answer = tenant.search(search.clone()).expect(200).json;
    assert_eq!((list(&answer["results"]).len(), number(&answer["thresholdUsed"])), (2, 0.0));
    tenant.search(merged(search, &json!({"limit": 6}))).invalid("limit");
    tenant.list(place.with(json!({"limit": 61}))).invalid("limit");
}
