//! Adding: what an entry looks like, what it keeps of the request, what it refuses.

use crate::support::*;

#[test]
fn an_entry_has_what_every_entry_has_and_nothing_that_is_null() {
    let tenant = Tenant::fresh();
    let answer = tenant.add(Place::project("p").with(json!({"content": "Deploys happen on Tuesdays"})));

    let answer = answer.expect(201);
    assert_members(&answer.json, &["memory", "embeddingGenerated"]);
    assert_eq!(answer.json["embeddingGenerated"], true);
    let entry = &answer.json["memory"];
    assert_entry(entry);
    assert_eq!(entry["content"], "Deploys happen on Tuesdays");
    assert_eq!(
        entry["contentHash"],
        "sha256:266a83c1f38ca1262a12f986bdece98ea7ea8299a7e0ef926621495c18fffb00",
    );
    assert_eq!(entry["identifiers"], json!({"projectId": "p"}));
    assert_eq!(entry["metadata"], json!({}));
    assert_eq!((&entry["state"], &entry["version"]), (&json!("active"), &json!(1)));
    assert_eq!(number(&entry["relevance"]), 1.0);
    assert_eq!(entry["createdAt"], entry["updatedAt"]);
    assert!(!text(&entry["embeddingModel"]).is_empty());
    for absent in ["originKind", "occurredAt", "expiresAt", "ttlSeconds", "embedding", "fact", "lineage"] {
        assert!(!names(entry).contains(absent), "{absent} in {entry}");
    }
    assert_eq!(answer.header("location"), format!("/v1/memories/{}", id_of(entry)));
    assert_eq!(answer.header("etag"), "\"v1\"");
    assert_eq!(answer.header("cache-control"), "no-store");
    assert!(!answer.header("x-request-id").is_empty());
}

#[test]
fn the_id_is_a_uuid_of_version_7() {
    let tenant = Tenant::fresh();
    for n in 0..3 {
        let id = tenant.say(&Place::user("u"), &format!("note {n}"));
        let parts: Vec<&str> = id.split('-').collect();
        assert_eq!(parts.iter().map(|part| part.len()).collect::<Vec<_>>(), [8, 4, 4, 4, 12], "{id}");
        assert!(parts[2].starts_with('7'), "{id}");
        assert!(id.chars().all(|c| matches!(c, '0'..='9' | 'a'..='f' | '-')), "{id}");
    }
}

#[test]
fn content_comes_back_letter_by_letter() {
    let tenant = Tenant::fresh();
    for content in [
        " leading and trailing \n\t",
        "e\u{301} is not \u{e9}",
        "\u{feff}byte order mark",
        "line\r\nline\u{2028}line\u{85}line",
        "👩‍👩‍👧‍👦 \u{200b}zero width\u{200d}",
        "quotes \" and \\ and / and <script>",
        "控制流 한국어 עברית \u{202e}right to left",
        "control \u{1}\u{1f}\u{7f} characters",
        "?",
        "\u{10ffff}",
    ] {
        let entry = tenant.added(Place::project("p").with(json!({"content": content})));
        assert_eq!(entry["content"], content);
        assert_eq!(tenant.entry(&id_of(&entry)), entry);
    }
}

#[test]
fn content_is_needed_and_must_say_something() {
    let tenant = Tenant::fresh();
    let place = Place::user("u");
    for content in
        [json!(""), json!(" "), json!("\n\t\u{3000}\u{a0}"), json!(5), json!(["a"]), json!({}), json!(true)]
    {
        tenant.add(place.with(json!({"content": content}))).invalid("content");
    }
    tenant.add(place.with(json!({}))).invalid("content");
    tenant.add(place.with(json!({"content": null}))).invalid("content");
    assert_eq!(tenant.page(place.with(json!({}))).total, 0);
}

#[test]
fn what_the_server_owns_is_not_taken_from_the_body() {
    let tenant = Tenant::fresh();
    let theirs = fresh_id();
    let entry = tenant.added(Place::project("p").with(json!({
        "content": "mine", "id": theirs, "createdAt": "2001-01-01T00:00:00Z", "updatedAt": "2001-01-01T00:00:00Z",
        "version": 7, "state": "archived", "createdBy": {"userId": "somebody"}, "contentHash": "sha256:00",
        "relevance": 0.1, "embeddingModel": "mine", "lineage": {"promotedFrom": theirs}, "accessCount": 9,
        "tenant": "another", "unknown": {"member": 1},
    })));

    assert_ne!(id_of(&entry), theirs);
    assert!(text(&entry["createdAt"]).as_str() > "2020");
    assert_eq!((&entry["version"], &entry["state"]), (&json!(1), &json!("active")));
    assert_eq!(number(&entry["relevance"]), 1.0);
    assert_ne!(entry["createdBy"]["userId"], "somebody");
    assert!(!names(&entry).contains("lineage"), "{entry}");
    assert!(!names(&entry).contains("tenant") && !names(&entry).contains("unknown"), "{entry}");
    tenant.get(&theirs).not_found();
}

#[test]
fn a_vector_of_the_callers_own_is_refused() {
    let tenant = Tenant::fresh();
    let place = Place::user("u");
    for embedding in [json!([0.1, 0.2]), json!([]), json!("AAAA")] {
        tenant.add(place.with(json!({"content": "a", "embedding": embedding}))).invalid("embedding");
    }
    assert_eq!(tenant.page(place.with(json!({}))).total, 0);
}

#[test]
fn two_identical_adds_are_two_entries() {
    let tenant = Tenant::fresh();
    let place = Place::user("u");
    let (one, two) = (tenant.say(&place, "the same"), tenant.say(&place, "the same"));

    assert_ne!(one, two);
    assert_eq!(sorted(tenant.page(place.with(json!({}))).ids()), sorted([one, two]));
}

#[test]
fn what_was_acknowledged_is_found_at_once_by_everybody() {
    let tenant = Tenant::fresh();
    let place = Place::project("p");
    let seen = at_once(8, |n| {
        let mut missing = Vec::new();
        for round in 0..6 {
            let content = format!("colleague {n} keeps the walrus number {round}");
            let id = tenant.say(&place, &content);
            let found = tenant.found_ids(place.everything(json!({"query": content})));
            let listed = tenant.page(place.with(json!({"limit": 100}))).ids();
            let there = tenant.get(&id).status == 200 && found.contains(&id) && listed.contains(&id);
            if !there {
                missing.push(content);
            }
        }
        missing
    });
    assert_eq!(seen.concat(), Vec::<String>::new());
}

#[test]
fn a_memory_of_any_kind_says_when_it_happened() {
    let tenant = Tenant::fresh();
    let place = Place::user("u");
    let told = |members: Value| tenant.add(place.with(merged(json!({"content": "we met"}), &members)));

    for (given, shown) in [
        ("1969-07-20T20:17:40Z", "1969-07-20T20:17:40.000000Z"),
        ("2031-01-01T00:00:00.123456Z", "2031-01-01T00:00:00.123456Z"),
        ("2026-03-01T12:00:00+02:00", "2026-03-01T10:00:00.000000Z"),
    ] {
        let answer = told(json!({"kind": "episodic", "occurredAt": given})).expect(201);
        assert_eq!(answer.json["memory"]["occurredAt"], shown);
        assert_eq!(tenant.entry(&id_of(&answer.json["memory"]))["occurredAt"], shown);
    }
    let undated = told(json!({"kind": "episodic", "occurredAt": null})).expect(201).json["memory"].clone();
    assert_eq!(undated["occurredAt"], undated["createdAt"]);
    for kind in ["user_personal", "semantic", "working", "archival"] {
        let dated = told(json!({"kind": kind, "occurredAt": "2026-01-01T00:00:00Z"})).expect(201);
        assert_eq!(dated.json["memory"]["kind"], kind, "a time never changes the kind");
        assert_eq!(dated.json["memory"]["occurredAt"], "2026-01-01T00:00:00.000000Z");
        assert_eq!(tenant.entry(&id_of(&dated.json["memory"])), dated.json["memory"]);
        let undated = told(json!({"kind": kind, "occurredAt": null})).expect(201);
        assert!(undated.json["memory"]["occurredAt"].is_null());
    }
    for wrong in [
        json!("yesterday"),
        json!("2026-02-30T00:00:00Z"),
        json!(1_767_225_600),
        json!(""),
        json!("2026-01-01"),
        json!("2026-01-01T24:00:00Z"),
        json!("9999-12-31T23:59:59.999999-00:01"),
        json!("0000-01-01T00:00:00+00:01"),
    ] {
        told(json!({"kind": "episodic", "occurredAt": wrong})).invalid("occurredAt");
    }
}

#[test]
fn the_words_of_the_contract_are_understood_in_any_letter_case_and_emitted_in_lower_case() {
    let tenant = Tenant::fresh();
    let entry = tenant.added(json!({
        "content": "a", "layer": "PROJECT", "kind": "Semantic", "identifiers": {"projectId": "P"},
        "accessPolicy": {"policy": "Public"}, "metadata": {"source": {"type": "MANUAL"}},
    }));

    assert_eq!((&entry["layer"], &entry["kind"]), (&json!("project"), &json!("semantic")));
    assert_eq!(entry["identifiers"], json!({"projectId": "P"}), "names are no words of the contract");
    assert_eq!(entry["accessPolicy"]["policy"], "public");
    assert_eq!(entry["metadata"]["source"]["type"], "manual");
    let found = tenant.search(json!({
        "query": "a", "layers": ["Project"], "identifiers": {"projectId": "P"}, "threshold": 0,
        "kinds": ["SEMANTIC"], "ranking": "Score", "mode": "SEMANTIC",
    }));
    assert_eq!(found.expect(200).json["searchedLayers"], json!(["project"]));
    let listed =
        tenant.page(json!({"layer": "pRoJeCt", "identifiers": {"projectId": "P"}, "state": "ACTIVE"}));
    assert_eq!(listed.total, 1);
}

#[test]
fn a_policy_is_one_of_five_words_with_lists_of_names() {
    let tenant = Tenant::fresh();
    let place = Place::project("p");
    let with = |policy: Value| tenant.add(place.with(json!({"content": "a", "accessPolicy": policy})));

    let policy = json!({"policy": "restricted", "approvedUsers": ["u1", "u2"]});
    assert_eq!(with(policy.clone()).expect(201).json["memory"]["accessPolicy"], policy);
    let policy = json!({"policy": "shared", "allowedTeams": ["t1"]});
    assert_eq!(with(policy.clone()).expect(201).json["memory"]["accessPolicy"], policy);
    let policies = |entry: Value| text(&entry["accessPolicy"]["policy"]);
    for place in tenant.every_layer() {
        let expected =
            if ["agent", "user", "session"].contains(&place.layer) { "private" } else { "organization" };
        assert_eq!(policies(tenant.added(place.with(json!({"content": "a"})))), expected, "{}", place.layer);
        assert_eq!(
            policies(tenant.added(place.with(json!({"content": "a", "accessPolicy": null})))),
            expected
        );
    }
    for wrong in [
        json!("private"),
        json!({}),
        json!({"policy": "secret"}),
        json!({"policy": 5}),
        json!({"policy": "restricted", "approvedUsers": "u1"}),
        json!({"policy": "restricted", "approvedUsers": [5]}),
        json!({"policy": "shared", "allowedTeams": {"t": 1}}),
    ] {
        with(wrong).invalid("accessPolicy");
    }
}
