//! Time to live: exact when somebody looks, whatever the sweeper does, and renewed by changes only.
//!
//! The server runs on the machine's clock, so these tests wait; they wait for the time that an entry itself names.

use crate::support::*;
use std::time::{Duration, Instant};

/// Seconds between two timestamps of one day.
fn seconds(from: &Value, to: &Value) -> f64 {
    let of_day = |value: &Value| {
        let time = text(value);
        let part = |range: std::ops::Range<usize>| time[range].parse::<f64>().unwrap();
        part(11..13) * 3600.0 + part(14..16) * 60.0 + part(17..26)
    };
    // Midnight may lie between them.
    (of_day(to) - of_day(from)).rem_euclid(86_400.0)
}

/// Watches an entry of a scope until it is gone; how long that took.
fn until_gone(tenant: &Tenant, id: &str) -> Duration {
    let begin = Instant::now();
    while tenant.get(id).status == 200 {
        assert!(begin.elapsed() < Duration::from_secs(20), "it never expires");
        std::thread::sleep(Duration::from_millis(20));
    }
    begin.elapsed()
}

#[test]
fn working_and_session_entries_live_for_an_hour_and_others_for_ever() {
    let tenant = Tenant::fresh();
    let place = Place::session("u", "s");
    for kind in ["working", "session"] {
        for ttl in [json!({}), json!({"ttlSeconds": null})] {
            let entry = tenant.added(place.with(merged(json!({"content": "a", "kind": kind}), &ttl)));
            assert_eq!(entry["ttlSeconds"], 3600, "{kind}");
            assert!((seconds(&entry["createdAt"], &entry["expiresAt"]) - 3600.0).abs() < 1e-3, "{entry}");
        }
    }
    for kind in ["episodic", "semantic", "archival"] {
        let entry = tenant.added(place.with(json!({"content": "a", "kind": kind})));
        assert!(!names(&entry).contains("ttlSeconds") && !names(&entry).contains("expiresAt"), "{entry}");
        let entry = tenant.added(place.with(json!({"content": "a", "kind": kind, "ttlSeconds": 60})));
        assert!((seconds(&entry["createdAt"], &entry["expiresAt"]) - 60.0).abs() < 1e-3, "{entry}");
    }
}

#[test]
fn what_has_expired_is_nowhere_and_nothing_waits_for_the_sweeper() {
    let tenant = Tenant::fresh();
    let place = Place::user("u");
    let kept = tenant.say(&place, "stays");
    let mut going = Vec::new();
    for kind in ["working", "episodic", "semantic", "user_personal"] {
        going.push(id_of(
            &tenant.added(place.with(json!({"content": "goes", "kind": kind, "ttlSeconds": 2}))),
        ));
    }
    let fact = json!({"factType": "t", "subject": "s", "predicate": "p", "object": "o", "ttlSeconds": 2});
    let fact = id_of(&tenant.stated(&place, fact));
    assert_eq!(tenant.page(place.with(json!({}))).total, 6);

    let waited = until_gone(&tenant, &fact);

    assert!(waited > Duration::from_millis(500), "expired after {waited:?}");
    assert!(waited < Duration::from_secs(4), "still there after {waited:?}");
    for id in going.iter().chain([&fact]) {
        tenant.get(id).not_found();
        tenant.change(id, json!({"metadata": {"back": true}})).not_found();
    }
    tenant.client.get(&format!("/v1/facts/{fact}")).not_found();
    let page = tenant.page(place.with(json!({})));
    assert_eq!((page.ids(), page.total), (vec![kept.clone()], 1));
    let found = tenant.search(place.everything(json!({"query": "goes"}))).expect(200);
    assert_eq!(found.json["totalCount"], 1);
    assert_eq!(found.json["results"][0]["memory"]["id"], json!(kept));
    assert_eq!(tenant.facts(json!({"identifiers": place.identifiers})).expect(200).json["totalCount"], 0);
    let body = json!({"ids": going});
    let deleted = tenant.client.post("/v1/memories:bulkDelete", body).expect(200).json;
    assert_eq!(deleted["deleted"], 0, "what has expired does not exist");
    assert_eq!(tenant.delete(&fact).expect(200).json["deleted"], false);
}

#[test]
fn an_expired_fact_does_not_come_back_by_stating_it_again() {
    let tenant = Tenant::fresh();
    let place = Place::project("p");
    let fact = json!({"factType": "t", "subject": "s", "predicate": "p", "object": "o"});
    let first = id_of(
        &tenant.stated(&place, merged(fact.clone(), &json!({"ttlSeconds": 1, "metadata": {"old": 1}}))),
    );
    until_gone(&tenant, &first);

    let again = tenant.fact(place.with(fact)).expect(201).json;

    assert_eq!(again["created"], true);
    assert_ne!(id_of(&again["fact"]), first);
    assert_eq!((&again["fact"]["version"], &again["fact"]["metadata"]), (&json!(1), &json!({})));
}

#[test]
fn a_change_renews_and_a_read_does_not() {
    let tenant = Tenant::fresh();
    let place = Place::user("u");
    let entry = tenant.added(place.with(json!({"content": "a", "ttlSeconds": 3})));
    let id = id_of(&entry);
    assert_eq!(tenant.entry(&id)["expiresAt"], entry["expiresAt"]);
    tenant.results(place.everything(json!({})));
    tenant.page(place.with(json!({})));
    assert_eq!(tenant.entry(&id)["expiresAt"], entry["expiresAt"], "reads never renew");
    std::thread::sleep(Duration::from_millis(1500));

    let renewed = tenant.changed(&id, json!({"metadata": {"n": 1}}));

    assert!(text(&renewed["expiresAt"]) > text(&entry["expiresAt"]));
    assert!((seconds(&renewed["updatedAt"], &renewed["expiresAt"]) - 3.0).abs() < 0.1, "{renewed}");
    let longer = tenant.changed(&id, json!({"ttlSeconds": 600}));
    assert_eq!((&longer["ttlSeconds"], &longer["version"]), (&json!(600), &json!(3)));
    assert!((seconds(&longer["updatedAt"], &longer["expiresAt"]) - 600.0).abs() < 0.1, "{longer}");
    let kept = tenant.changed(&id, json!({"ttlSeconds": null}));
    assert!(!names(&kept).contains("ttlSeconds") && !names(&kept).contains("expiresAt"), "{kept}");
    assert_eq!(kept["version"], 4);
    let mortal = tenant.changed(&id, json!({"ttlSeconds": 1}));
    assert_eq!(mortal["ttlSeconds"], 1);
    until_gone(&tenant, &id);
}

#[test]
fn a_working_entry_must_end_some_day() {
    let tenant = Tenant::fresh();
    let id = id_of(&tenant.added(Place::user("u").with(json!({"content": "a", "kind": "working"}))));
    tenant.change(&id, json!({"ttlSeconds": null})).invalid("ttlSeconds");
    assert_eq!(tenant.entry(&id)["ttlSeconds"], 3600);
    assert_eq!(tenant.changed(&id, json!({"ttlSeconds": 7200}))["ttlSeconds"], 7200);
}
