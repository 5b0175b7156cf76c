//! Fading: a pure function of what is stored and of an instant, and passes that only write down where it has led to.

use crate::instants::*;
use crate::lifecycle::create_without_embedding;
use crate::support::*;
use std::collections::BTreeMap;

/// One pass.
#[track_caller]
fn decay(tenant: &Tenant, body: Value) -> Value {
    let answer = tenant.client.post("/v1/memories:decay", body).expect(200);
    let members = ["asOf", "dryRun", "processed", "decayed", "archived", "skipped", "entries"];
    assert_members(&answer.json, &members);
    let entries = list(&answer.json["entries"]);
    let ids: Vec<String> = entries.iter().map(id_of).collect();
    assert_eq!(ids, sorted(ids.clone()), "by id");
    for entry in &entries {
        assert_members(entry, &["id", "layer", "relevance", "previousState", "state"]);
    }
    answer.json
}

/// Processed, decayed, archived, skipped.
fn counts(pass: &Value) -> [u64; 4] {
    ["processed", "decayed", "archived", "skipped"].map(|member| pass[member].as_u64().expect("a count"))
}

/// What a pass says about an entry.
#[track_caller]
fn verdict(pass: &Value, id: &str) -> Value {
    let entries = list(&pass["entries"]);
    entries.iter().find(|entry| entry["id"] == id).unwrap_or_else(|| panic!("{id} is not in {pass}")).clone()
}

/// `initial × (1 − rate)^days`
fn faded(initial: f64, rate: f64, days: f64) -> f64 {
    initial * (1.0 - rate.min(1.0)).powf(days.max(0.0))
}

#[track_caller]
fn assert_near(found: &Value, expected: f64) {
    assert!((number(found) - expected).abs() < 1e-12, "{found} is not {expected}");
}

#[test]
fn relevance_follows_the_formula() {
    let tenant = Tenant::fresh();
    let place = Place::user("u");
    let cases = [
        (json!({}), 0.01, 30.0),
        (json!({"relevance": 0.6}), 0.01, 30.0),
        (json!({"relevance": 0.6, "decayFactor": 2}), 0.05, 3.5),
        (json!({"decayFactor": 0.25}), 0.4, 0.125),
        (json!({"decayFactor": 10}), 0.1, 2.0),
        (json!({"decayFactor": 10}), 0.5, 0.001),
        (json!({"decayFactor": 10}), 0.5, 0.0),
        (json!({"relevance": 0}), 0.1, 1.0),
        (json!({}), 0.0, 36_500.0),
        (json!({}), 1.0, 1.0),
        (json!({}), 1.0, 0.0),
        (json!({"relevance": 0.7}), 0.3, -100.0),
    ];
    for (metadata, rate, days) in cases {
        let entry = tenant.added(place.with(json!({"content": "fades", "metadata": metadata})));
        let as_of = after(&entry["createdAt"], days * DAY);
        let pass = decay(
            &tenant,
            json!({"identifiers": place.identifiers, "asOf": as_of, "ratePerDay": rate, "dryRun": true}),
        );
        let initial = metadata["relevance"].as_f64().unwrap_or(1.0);
        let factor = metadata["decayFactor"].as_f64().unwrap_or(1.0);
        let found = verdict(&pass, &id_of(&entry));
        assert_near(&found["relevance"], faded(initial, rate * factor, days));
        assert_eq!((&found["layer"], &found["previousState"]), (&json!("user"), &json!("active")));
        assert_eq!(instant(&pass["asOf"]), instant(&as_of));
        tenant.delete(&id_of(&entry)).expect(200);
    }
}

#[test]
fn a_pass_sorts_entries_into_states_and_a_second_one_changes_nothing() {
    let tenant = Tenant::fresh();
    let place = Place::project("p");
    let mut ids = BTreeMap::new();
    for (relevance, state) in
        [(1.0, "active"), (0.5, "active"), (0.49, "decayed"), (0.1, "decayed"), (0.09, "archived")]
    {
        let body =
            place.with(json!({"content": format!("{relevance}"), "metadata": {"relevance": relevance}}));
        ids.insert(id_of(&tenant.added(body)), state);
    }
    let body = json!({"identifiers": place.identifiers, "layers": ["project"], "ratePerDay": 0});
    let before: Vec<Value> = ids.keys().map(|id| tenant.entry(id)).collect();

    let rehearsal = decay(&tenant, merged(body.clone(), &json!({"dryRun": true})));
    assert_eq!(counts(&rehearsal), [5, 2, 1, 0]);
    assert_eq!(rehearsal["dryRun"], true);
    assert_eq!(
        ids.keys().map(|id| tenant.entry(id)).collect::<Vec<_>>(),
        before,
        "a rehearsal changes nothing"
    );

    let pass = decay(&tenant, body.clone());

    assert_eq!(counts(&pass), [5, 2, 1, 0], "what equals a threshold is not below it");
    assert_eq!(pass["dryRun"], false);
    for ((id, state), before) in ids.iter().zip(&before) {
        assert_eq!(verdict(&pass, id)["state"], *state);
        let entry = tenant.entry(id);
        assert_eq!(entry["state"], *state);
        let changed = *state != "active";
        assert_eq!(entry["version"], if changed { 2 } else { 1 }, "a state is part of the version: {entry}");
        assert_eq!(entry["content"], before["content"]);
        if *state == "archived" {
            assert_eq!(entry["originKind"], "semantic");
        }
    }
    assert_eq!(tenant.page(place.with(json!({}))).total, 4, "the archived is hidden");
    assert_eq!(tenant.page(place.with(json!({"state": "decayed"}))).total, 2);
    assert_eq!(tenant.found(place.everything(json!({}))).len(), 4, "the decayed is still found");

    let settled_now: Vec<Value> = ids.keys().map(|id| tenant.entry(id)).collect();
    for _ in 0..3 {
        assert_eq!(counts(&decay(&tenant, body.clone())), [4, 0, 0, 1]);
    }
    assert_eq!(ids.keys().map(|id| tenant.entry(id)).collect::<Vec<_>>(), settled_now);
}

#[test]
fn many_passes_fade_no_more_than_one() {
    let tenant = Tenant::fresh();
    let place = Place::user("u");
    let entry = tenant.added(place.with(json!({"content": "fades"})));
    let pass = |days: f64| {
        let as_of = after(&entry["createdAt"], days * DAY);
        let body = json!({"identifiers": place.identifiers, "asOf": as_of, "ratePerDay": 0.1});
        verdict(&decay(&tenant, body), &id_of(&entry))
    };
    for hour in 1..=24 {
        assert_near(&pass(f64::from(hour) / 24.0)["relevance"], faded(1.0, 0.1, f64::from(hour) / 24.0));
    }
    assert_near(&pass(10.0)["relevance"], faded(1.0, 0.1, 10.0));
    assert_near(&pass(10.0)["relevance"], faded(1.0, 0.1, 10.0));
}

#[test]
fn the_decayed_recovers_and_the_archived_does_not() {
    let tenant = Tenant::fresh();
    let place = Place::user("u");
    let (one, two) = (tenant.say(&place, "one"), create_without_embedding(&tenant, "u", "two"));
    let two = id_of(&two);
    let created_at = tenant.entry(&one)["createdAt"].clone();
    let pass = |days: f64, rate: f64| {
        let as_of = after(&created_at, days * DAY);
        decay(&tenant, json!({"identifiers": place.identifiers, "asOf": as_of, "ratePerDay": rate}))
    };
    let states = || [text(&tenant.entry(&one)["state"]), text(&tenant.entry(&two)["state"])];

    assert_eq!(counts(&pass(100.0, 0.01)), [2, 2, 0, 0]);
    assert_eq!(states(), ["decayed", "decayed"]);
    let recovered = pass(100.0, 0.0001);
    assert_eq!(counts(&recovered), [2, 0, 0, 0], "recovering is not entering one of the two states");
    assert_eq!(verdict(&recovered, &one)["previousState"], "decayed");
    assert_eq!(states(), ["active", "created"], "without an embedding it is not active");
    pass(100.0, 0.01);
    assert_eq!(counts(&pass(-100.0, 0.01)), [2, 0, 0, 0], "before it was made nothing has faded");
    assert_eq!(states(), ["active", "created"]);

    assert_eq!(counts(&pass(10_000.0, 0.01)), [2, 0, 2, 0]);
    assert_eq!(counts(&pass(0.0, 0.0)), [0, 0, 0, 2], "what is archived is not looked at");
    assert_eq!(states(), ["archived", "archived"]);
}

#[test]
fn a_change_of_content_and_a_restore_begin_anew_and_a_change_of_metadata_does_not() {
    let tenant = Tenant::fresh();
    let place = Place::user("u");
    let entry = tenant.added(place.with(json!({"content": "one"})));
    let id = id_of(&entry);
    let rate = 0.9999;
    let relevance = |as_of: &Value| {
        let body =
            json!({"identifiers": place.identifiers, "asOf": as_of, "ratePerDay": rate, "dryRun": true});
        verdict(&decay(&tenant, body), &id)["relevance"].clone()
    };
    let pause = || std::thread::sleep(std::time::Duration::from_millis(30));
    let check = |anchor: &Value| {
        let as_of = after(anchor, 0.5 * DAY);
        assert_near(&relevance(&as_of), faded(1.0, rate, 0.5));
    };
    check(&entry["createdAt"]);
    pause();
    tenant.changed(&id, json!({"metadata": {"note": 1}}));
    check(&entry["createdAt"]);
    pause();
    tenant.changed(&id, json!({"content": "one", "metadata": {"note": 2}}));
    check(&entry["createdAt"]);
    pause();
    let changed = tenant.changed(&id, json!({"content": "two"}));
    check(&changed["updatedAt"]);
    pause();
    tenant.client.post_nothing(&format!("/v1/memories/{id}/archive")).expect(200);
    pause();
    let restored = tenant.client.post_nothing(&format!("/v1/memories/{id}/restore")).expect(200).json;
    check(&restored["memory"]["updatedAt"]);
}

#[test]
fn what_is_decayed_is_active_again_once_it_says_something_else() {
    let tenant = Tenant::fresh();
    let place = Place::user("u");
    let entry = tenant.added(place.with(json!({"content": "one"})));
    let as_of = after(&entry["createdAt"], 100.0 * DAY);
    decay(&tenant, json!({"identifiers": place.identifiers, "asOf": as_of}));
    assert_eq!(tenant.entry(&id_of(&entry))["state"], "decayed");
    assert_eq!(tenant.changed(&id_of(&entry), json!({"metadata": {"n": 1}}))["state"], "decayed");
    assert_eq!(tenant.changed(&id_of(&entry), json!({"content": "two"}))["state"], "active");
}

#[test]
fn some_entries_never_fade() {
    let tenant = Tenant::fresh();
    let pointer = json!({"sourceType": "adr", "sourceId": "adr-7", "contentHash": "sha256:0", "syncedAt": "2026-01-01T00:00:00Z"});
    let place = Place::session("u", "s");
    let exempt = [
        json!({"content": "a", "kind": "working"}),
        json!({"content": "b", "kind": "session"}),
        json!({"content": "c", "kind": "archival"}),
        json!({"content": "d", "kind": "semantic", "metadata": {"knowledgePointer": pointer}}),
        json!({"content": "e", "kind": "semantic", "metadata": {"decayFactor": 0}}),
    ];
    let mut ids: Vec<String> = exempt.into_iter().map(|members| tenant.say_with(&place, members)).collect();
    let fading = [
        tenant.say_with(&place, json!({"content": "f", "kind": "semantic"})),
        tenant.say_with(&place, json!({"content": "g", "kind": "episodic"})),
        id_of(
            &tenant.stated(&place, json!({"factType": "t", "subject": "s", "predicate": "p", "object": "o"})),
        ),
    ];
    let body =
        json!({"identifiers": place.identifiers, "layers": ["session"], "asOf": "2126-01-01T00:00:00Z"});

    let pass = decay(&tenant, body);

    assert_eq!(counts(&pass), [3, 0, 3, 5]);
    let archived = sorted(list(&pass["entries"]).iter().map(id_of));
    assert_eq!(archived, sorted(fading));
    ids.remove(2);
    for id in ids {
        assert_eq!(tenant.entry(&id)["state"], "active");
    }
}

#[test]
fn organisations_and_companies_keep_everything_unless_told_otherwise() {
    let tenant = Tenant::fresh();
    let places = tenant.every_layer();
    for place in &places {
        tenant.say_with(place, json!({"content": "a rule", "kind": "semantic"}));
    }
    let body =
        json!({"identifiers": tenant.all_identifiers(), "asOf": "2126-01-01T00:00:00Z", "dryRun": true});
    let layers = |pass: &Value| sorted(list(&pass["entries"]).iter().map(|entry| text(&entry["layer"])));

    let pass = decay(&tenant, body.clone());
    assert_eq!(counts(&pass), [5, 0, 5, 2]);
    assert_eq!(layers(&pass), ["agent", "project", "session", "team", "user"]);
    let pass = decay(&tenant, merged(body.clone(), &json!({"exemptLayers": []})));
    assert_eq!(counts(&pass), [7, 0, 7, 0]);
    let pass = decay(&tenant, merged(body.clone(), &json!({"exemptLayers": ["user", "Project"]})));
    assert_eq!(layers(&pass), ["agent", "company", "org", "session", "team"]);
    let pass = decay(&tenant, merged(body, &json!({"layers": ["user", "org"]})));
    assert_eq!((layers(&pass), counts(&pass)), (vec!["user".to_owned()], [1, 0, 1, 1]));
}

#[test]
fn a_pass_reaches_the_named_scopes_and_a_whole_tenant_takes_an_admin() {
    let tenant = Tenant::fresh();
    let (mine, theirs) = (tenant.say(&Place::user("u"), "mine"), tenant.say(&Place::user("v"), "theirs"));
    let elsewhere = Tenant::fresh();
    let foreign = elsewhere.say(&Place::user("u"), "elsewhere");
    let late = json!({"asOf": "2126-01-01T00:00:00Z"});
    let state = |tenant: &Tenant, id: &str| text(&tenant.entry(id)["state"]);

    assert_eq!(counts(&decay(&tenant, merged(json!({"identifiers": {"userId": "u"}}), &late))), [1, 0, 1, 0]);
    assert_eq!([state(&tenant, &mine), state(&tenant, &theirs)], ["archived", "active"]);

    for nobody in [&tenant, &tenant.as_user("u")] {
        nobody.client.post("/v1/memories:decay", late.clone()).refused(403, "FORBIDDEN");
    }
    let user = tenant.as_user("u");
    let body = merged(json!({"identifiers": {"userId": "v"}}), &late);
    user.client.post("/v1/memories:decay", body).refused(403, "FORBIDDEN");
    assert_eq!(state(&tenant, &theirs), "active");

    let pass = decay(&tenant.as_user("admin"), late);
    assert_eq!(counts(&pass), [1, 0, 1, 1]);
    assert_eq!(state(&tenant, &theirs), "archived");
    assert_eq!(state(&elsewhere, &foreign), "active", "another tenant is another world");
}

#[test]
fn a_whole_tenant_is_looked_at_however_large() {
    // A debug build on a busy machine takes longer for a thousand than a request usually may.
    let server = server_with("[server]\nrequest_timeout = \"2m\"");
    let tenant = Tenant::of(&server, "t");
    let bodies = (0..1010).map(|n| {
        let place = if n % 2 == 0 { Place::user(&format!("u{}", n % 7)) } else { Place::project("p") };
        place.with(json!({"content": format!("note {n}")}))
    });
    let ids = sorted(tenant.add_all(bodies));

    let pass = decay(&tenant.as_user("admin"), json!({"asOf": "2126-01-01T00:00:00Z"}));

    assert_eq!(counts(&pass), [1010, 0, 1010, 0]);
    let listed: Vec<String> = list(&pass["entries"]).iter().map(id_of).collect();
    assert_eq!(listed, ids[..1000], "a thousand are listed, by id");
    for id in [&ids[0], &ids[1009]] {
        assert_eq!(tenant.entry(id)["state"], "archived");
    }
}

#[test]
fn what_is_out_of_range_is_refused() {
    let tenant = Tenant::fresh();
    let base = json!({"identifiers": {"userId": "u"}});
    let cases = [
        ("ratePerDay", json!(1.01)),
        ("ratePerDay", json!(-0.01)),
        ("ratePerDay", json!("0.5")),
        ("archiveThreshold", json!(2)),
        ("decayedBelow", json!(-1)),
        ("asOf", json!("yesterday")),
        ("asOf", json!(1)),
        ("dryRun", json!("yes")),
    ];
    for (member, value) in cases {
        let body = merged(base.clone(), &json!({member: value}));
        tenant.client.post("/v1/memories:decay", body).invalid(member);
    }
    let layer = |value: Value| {
        let body = merged(base.clone(), &json!({"layers": value}));
        tenant.client.post("/v1/memories:decay", body)
    };
    layer(json!(["galaxy"])).refused(400, "INVALID_LAYER");
    layer(json!(["project"])).refused(400, "MISSING_IDENTIFIER");
    let body = merged(base.clone(), &json!({"exemptLayers": ["galaxy"]}));
    tenant.client.post("/v1/memories:decay", body).refused(400, "INVALID_LAYER");
    for as_of in ["0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z"] {
        decay(&tenant, merged(base.clone(), &json!({"asOf": as_of})));
    }
}

#[test]
fn while_the_switch_is_off_the_relevance_shown_is_the_initial_one() {
    let tenant = Tenant::fresh();
    let place = Place::user("u");
    let (plain, rated) = (
        tenant.say(&place, "plain"),
        tenant.say_with(&place, json!({"content": "rated", "metadata": {"relevance": 0.75}})),
    );
    decay(
        &tenant,
        json!({"identifiers": place.identifiers, "asOf": "2126-01-01T00:00:00Z", "archiveThreshold": 0}),
    );
    assert_eq!(tenant.entry(&plain)["state"], "decayed");
    assert_eq!(number(&tenant.entry(&plain)["relevance"]), 1.0);
    assert_eq!(number(&tenant.entry(&rated)["relevance"]), 0.75);
    let changed = tenant.changed(&rated, json!({"metadata": {"relevance": 0.25}}));
    assert_eq!(number(&changed["relevance"]), 0.25);
}

#[test]
fn with_the_switch_on_reads_show_the_relevance_of_the_moment() {
    // So steep that the milliseconds of a test can be told apart: (1 − rate) is 10⁻¹⁵.
    let rate = 1.0 - 1e-15;
    let server = server_with(&format!("[memories.decay]\nenabled = true\nrate_per_day = {rate:?}\n"));
    let tenant = Tenant::of(&server, "acme");
    let place = Place::user("u");
    let first = tenant.added(place.with(json!({"content": "fades", "metadata": {"relevance": 0.8}})));
    let kept = tenant.say(&Place::org("o"), "kept");
    std::thread::sleep(std::time::Duration::from_millis(200));

    // Something made now tells the time of the server.
    let before = tenant.added(place.with(json!({"content": "before"})));
    let shown = tenant.entry(&id_of(&first));
    let hit = &tenant.results(place.everything(json!({"query": "fades"})))[0];
    let listed = tenant.page(place.with(json!({})));
    let later = tenant.added(place.with(json!({"content": "after"})));

    let at =
        |moment: &Value| faded(0.8, rate, seconds_between(&first["createdAt"], &moment["createdAt"]) / DAY);
    let listed = listed.entries.iter().find(|entry| entry["id"] == first["id"]).expect("it is listed");
    for relevance in [&shown["relevance"], &hit["memory"]["relevance"], &listed["relevance"]] {
        let relevance = number(relevance);
        assert!(at(&later) <= relevance && relevance <= at(&before), "{relevance} is out of time");
    }
    assert_eq!(number(&tenant.entry(&kept)["relevance"]), 1.0, "exempt");
    assert_eq!(shown["version"], first["version"], "nothing was written");
}
