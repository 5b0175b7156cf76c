//! What is written in one scope is never seen from another, whatever the identifiers look like.

use crate::support::*;
use std::collections::HashMap;

/// Texts that a careless encoding would take for each other: separators, case, normal forms, long common beginnings.
fn tricky() -> Vec<String> {
    let long = "p".repeat(200);
    let mut names: Vec<String> = [
        "a",
        "A",
        "b",
        "a_b",
        "a:b",
        "a/b",
        "a%b",
        "a#b",
        "a.b",
        "a b",
        "a\\b",
        "a|b",
        "a,b",
        "a'b",
        "a\"b",
        "a*",
        "a?",
        "a%2Fb",
        "a%",
        "_",
        ":",
        " ",
        "a ",
        " a",
        "é",
        "e\u{301}",
        "É",
        "ß",
        "ss",
        "ſ",
        "ﬁ",
        "fi",
        "K",
        "\u{212a}",
        "İ",
        "i",
        "ı",
        "😀",
        "👩‍👩‍👧",
        "👩👩👧",
        "\u{200b}",
        "a\u{200b}",
        "null",
        "undefined",
        "default",
        "0",
        "00",
        "1",
        "01",
        "-1",
        "agent",
        "user",
        "%00",
        "a\u{feff}",
        "\u{feff}a",
        "a:user",
        "ａ",
    ]
    .map(str::to_owned)
    .into();
    names.extend(["1", "2", "", "1/2"].map(|end| format!("{long}{end}")));
    names.push("q".repeat(255));
    names.push(format!("{}r", "q".repeat(254)));
    names
}

/// Scopes of all layers; many of the pairs share a joined form.
fn places(tenant: &Tenant, dice: &mut Dice) -> Vec<Place> {
    let names = tricky();
    let mut places = Vec::new();
    for name in &names {
        places.extend([Place::user(name), Place::project(name), Place::team(name), Place::org(name)]);
    }
    for (one, two) in [
        ("a_b", "c"),
        ("a", "b_c"),
        ("a:b", "c"),
        ("a", "b:c"),
        ("a/b", "c"),
        ("a", "b/c"),
        ("ab", "c"),
        ("a", "bc"),
    ] {
        places.extend([
            Place::agent(one, two),
            Place::agent(two, one),
            Place::session(one, two),
            Place::session(two, one),
        ]);
    }
    for _ in 0..60 {
        let (one, two) = (dice.pick(&names).clone(), dice.pick(&names).clone());
        places.extend([Place::agent(&one, &two), Place::session(&one, &two)]);
    }
    places.push(tenant.company());
    let mut distinct: Vec<Place> = Vec::new();
    for place in places {
        if !distinct.contains(&place) {
            distinct.push(place);
        }
    }
    distinct
}

/// One entry per scope, all with the same words, and one fact; every scope shows its own and nothing else.
#[test]
fn every_scope_shows_its_own_entries_and_no_others() {
    let tenant = Tenant::fresh();
    let mut dice = Dice(0x5EED_0001);
    let places = places(&tenant, &mut dice);
    let content = "the secret of this scope";
    // The default kind of a session is not allowed elsewhere; this one is allowed everywhere.
    let members = json!({"content": content, "kind": "semantic", "metadata": {"tags": ["same"]}});
    let ids = tenant.add_all(places.iter().map(|place| place.with(members.clone())));
    assert_eq!(ids.len(), places.len());

    for (place, id) in places.iter().zip(&ids) {
        let own = [id.clone()];
        assert_eq!(tenant.page(place.with(json!({"filter": {"tags": ["same"]}}))).ids(), own, "{place:?}");
        let answer = tenant.search(place.everything(json!({"query": content}))).expect(200);
        assert_eq!(answer.json["totalCount"], 1, "{place:?}");
        assert_eq!(answer.json["results"][0]["memory"]["id"], json!(id), "{place:?}");
        tenant.get(&format!("{id}?{}", place.query())).expect(200);
    }
    let places_by_id: HashMap<&String, &Place> = ids.iter().zip(&places).collect();
    for _ in 0..400 {
        let (id, other) = (dice.pick(&ids), dice.pick(&places));
        if places_by_id[id] != other {
            tenant.get(&format!("{id}?{}", other.query())).not_found();
        }
    }
}

#[test]
fn every_scope_has_its_own_facts() {
    let tenant = Tenant::fresh();
    let mut dice = Dice(0x5EED_0002);
    let places: Vec<Place> = places(&tenant, &mut dice).into_iter().step_by(3).collect();
    for (n, place) in places.iter().enumerate() {
        // Equal but for the object, so that a scope that leaks would show two.
        let fact = json!({"factType": "t", "subject": "s", "predicate": "p", "object": format!("o{n}")});
        assert_eq!(tenant.fact(place.with(fact)).expect(201).json["created"], true, "{place:?}");
        let same = json!({"factType": "t", "subject": "s", "predicate": "p", "object": "same"});
        assert_eq!(tenant.fact(place.with(same)).expect(201).json["created"], true, "{place:?}");
    }
    for (n, place) in places.iter().enumerate() {
        let query = json!({"layers": [place.layer], "identifiers": place.identifiers, "subject": "s"});
        let answer = tenant.facts(query).expect(200);
        assert_eq!(answer.json["totalCount"], 2, "{place:?}");
        let objects =
            list(&answer.json["facts"]).iter().map(|fact| text(&fact["object"])).collect::<Vec<_>>();
        assert_eq!(sorted(objects), sorted([format!("o{n}"), "same".to_owned()]), "{place:?}");
    }
}

#[test]
fn clearing_one_scope_leaves_every_other_alone() {
    let tenant = Tenant::fresh();
    let places = [
        Place::agent("a_b", "c"),
        Place::agent("a", "b_c"),
        Place::user("c"),
        Place::user("C"),
        Place::session("c", "s"),
        Place::session("c", "S"),
        Place::session("s", "c"),
    ];
    for place in &places {
        tenant.added(place.with(json!({"content": "scratch", "kind": "working"})));
    }
    for (n, place) in places.iter().enumerate() {
        let cleared = tenant.client.post("/v1/memories:clear", place.with(json!({}))).expect(200);
        assert_eq!(cleared.json, json!({"cleared": 1}), "{place:?}");
        for (m, other) in places.iter().enumerate() {
            assert_eq!(tenant.page(other.with(json!({}))).total, usize::from(m > n), "{place:?} {other:?}");
        }
    }
}

#[test]
fn tenants_never_meet() {
    let (one, two) = (Tenant::fresh(), Tenant::fresh());
    let shouted = Tenant::of(&SERVER, &one.name.to_uppercase());
    let fact = json!({"factType": "t", "subject": "s", "predicate": "p", "object": "o"});
    for place in &one.every_layer()[..6] {
        let id = one.say(place, "the tenant's own");
        one.stated(place, fact.clone());
        for other in [&two, &shouted] {
            other.get(&id).not_found();
            other.change(&id, json!({"content": "taken"})).not_found();
            assert_eq!(other.delete(&id).expect(200).json["deleted"], false);
            assert_eq!(other.page(place.with(json!({}))).total, 0);
            assert_eq!(other.search(place.everything(json!({}))).expect(200).json["totalCount"], 0);
            let query = json!({"layers": [place.layer], "identifiers": place.identifiers});
            assert_eq!(other.facts(query).expect(200).json["totalCount"], 0);
            let body = json!({"ids": [id]});
            assert_eq!(other.client.post("/v1/memories:bulkDelete", body).expect(200).json["deleted"], 0);
        }
        assert_eq!(one.entry(&id)["content"], "the tenant's own");
        assert_eq!(one.page(place.with(json!({}))).total, 2);
    }
}

#[test]
fn what_others_store_does_not_move_a_score() {
    let (tenant, place) = (Tenant::fresh(), Place::project("p"));
    for content in ["the walrus eats fish", "the dog sleeps", "ticket JIRA-4821 is about the walrus"] {
        tenant.say(&place, content);
    }
    let scores = || {
        let results = tenant.results(place.everything(json!({"query": "walrus of JIRA-4821"})));
        results.iter().map(|result| (id_of(&result["memory"]), number(&result["score"]))).collect::<Vec<_>>()
    };
    let before = scores();
    let elsewhere = |tenant: &Tenant, place: &Place| {
        let note =
            |n: usize| place.with(json!({"content": format!("walrus {n} of JIRA-4821"), "kind": "semantic"}));
        tenant.add_all((0..50).map(note));
    };
    elsewhere(&tenant, &Place::project("q"));
    elsewhere(&tenant, &Place::team("p"));
    elsewhere(&Tenant::fresh(), &place);

    assert_eq!(scores(), before);
}

#[test]
fn equal_session_ids_of_different_users_are_different_sessions() {
    let tenant = Tenant::fresh();
    let (alice, bob) = (Place::session("alice", "s"), Place::session("bob", "s"));
    let id = tenant.say(&alice, "alice's words");

    assert_eq!(tenant.page(bob.with(json!({}))).total, 0);
    assert_eq!(tenant.page(Place::user("alice").with(json!({}))).total, 0);
    assert_eq!(tenant.found(bob.everything(json!({"query": "alice's words"}))), Vec::<String>::new());
    tenant.get(&format!("{id}?userId=bob&sessionId=s")).not_found();
    assert_eq!(tenant.page(alice.with(json!({}))).total, 1);
}
