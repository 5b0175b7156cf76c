//! Changing an entry: what a change may say, what it does to the version, and who wins.

use crate::support::*;

fn one_entry() -> (Tenant, String) {
    let tenant = Tenant::fresh();
    let body = json!({"content": "one", "metadata": {"tags": ["a", "b"], "keep": {"x": 1, "y": null}, "title": "T"}});
    let id = id_of(&tenant.added(Place::project("p").with(body)));
    (tenant, id)
}

#[test]
fn a_change_makes_a_version() {
    let (tenant, id) = one_entry();
    let before = tenant.entry(&id);

    let answer = tenant.change(&id, json!({"content": "two"})).expect(200);

    assert_members(&answer.json, &["memory", "embeddingRegenerated"]);
    assert_eq!(answer.json["embeddingRegenerated"], true);
    assert_eq!(answer.header("etag"), "\"v2\"");
    let after = &answer.json["memory"];
    assert_eq!((&after["content"], &after["version"]), (&json!("two"), &json!(2)));
    assert_eq!(after["createdAt"], before["createdAt"]);
    assert!(text(&after["updatedAt"]) > text(&before["updatedAt"]));
    assert_ne!(after["contentHash"], before["contentHash"]);
    assert_eq!(after["metadata"], before["metadata"]);
    assert_eq!(tenant.entry(&id), settled(after));
}

#[test]
fn time_goes_on_with_every_change() {
    let (tenant, id) = one_entry();
    let mut last = text(&tenant.entry(&id)["updatedAt"]);
    for n in 0..10 {
        let entry = tenant.changed(&id, json!({"metadata": {"n": n}}));
        let now = text(&entry["updatedAt"]);
        assert!(now > last, "{now} after {last}");
        assert_eq!(entry["version"], n + 2);
        last = now;
    }
}

#[test]
fn equal_content_is_not_embedded_again_but_makes_a_version() {
    let (tenant, id) = one_entry();
    for (n, content) in ["one", "one", "one "].into_iter().enumerate() {
        let answer = tenant.change(&id, json!({"content": content})).expect(200);
        assert_eq!(answer.json["embeddingRegenerated"], content == "one ", "{content:?}");
        assert_eq!(answer.json["memory"]["version"], n + 2);
    }
}

#[test]
fn a_new_text_is_found_and_the_old_one_is_not() {
    let tenant = Tenant::fresh();
    let place = Place::user("u");
    let id = tenant.say(&place, "The cat sleeps on the warm roof");
    let best = |query: &str| tenant.results(place.everything(json!({"query": query})))[0]["score"].clone();
    let before = number(&best("compile the kernel with clang"));

    tenant.changed(&id, json!({"content": "Compile the kernel with clang"}));

    assert!(number(&best("compile the kernel with clang")) > before);
    assert!(number(&best("The cat sleeps on the warm roof")) < 0.7);
}

#[test]
fn metadata_is_merged_key_by_key() {
    let (tenant, id) = one_entry();
    for (given, expected) in [
        (json!({"new": 1}), json!({"tags": ["a", "b"], "keep": {"x": 1, "y": null}, "title": "T", "new": 1})),
        (json!({"tags": ["c"]}), json!({"tags": ["c"], "keep": {"x": 1, "y": null}, "title": "T", "new": 1})),
        (json!({"keep": {"z": null}}), json!({"tags": ["c"], "keep": {"z": null}, "title": "T", "new": 1})),
        (json!({"keep": null, "absent": null}), json!({"tags": ["c"], "title": "T", "new": 1})),
        (json!({"tags": null, "title": null, "new": null}), json!({})),
        (json!({}), json!({})),
    ] {
        let changed = tenant.changed(&id, json!({"metadata": given}));
        assert_eq!(changed["metadata"], expected, "{given}");
        assert_eq!(tenant.entry(&id)["metadata"], expected, "{given}");
    }
    assert_eq!(tenant.entry(&id)["version"], 7);
}

#[test]
fn a_policy_is_replaced_as_a_whole() {
    let (tenant, id) = one_entry();
    let restricted = json!({"policy": "restricted", "approvedUsers": ["u1"]});
    assert_eq!(tenant.changed(&id, json!({"accessPolicy": restricted}))["accessPolicy"], restricted);
    let public = json!({"policy": "public"});
    let after = tenant.changed(&id, json!({"accessPolicy": public}));
    assert_eq!((&after["accessPolicy"], &after["version"]), (&public, &json!(3)));
}

#[test]
fn a_change_says_something_and_not_what_cannot_change() {
    let (tenant, id) = one_entry();
    for nothing in [json!({}), json!({"unknown": 1}), json!({"version": 1})] {
        tenant.change(&id, nothing).refused(400, "INVALID_REQUEST");
    }
    for (member, value) in [
        ("layer", json!("user")),
        ("kind", json!("episodic")),
        ("identifiers", json!({"projectId": "p"})),
        ("id", json!(id)),
        ("createdAt", json!("2026-01-01T00:00:00Z")),
    ] {
        let mut body = json!({"content": "two"});
        body[member] = value;
        tenant.change(&id, body).invalid(member);
    }
    for (field, body) in [
        ("content", json!({"content": " "})),
        ("content", json!({"content": 5})),
        ("metadata", json!({"metadata": []})),
        ("metadata", json!({"metadata": "x"})),
        ("ttlSeconds", json!({"ttlSeconds": 0})),
        ("ttlSeconds", json!({"ttlSeconds": "60"})),
        ("accessPolicy", json!({"accessPolicy": "public"})),
        ("version", json!({"content": "two", "version": "1"})),
        ("version", json!({"content": "two", "version": 1.5})),
        ("embedding", json!({"content": "two", "embedding": [1.0]})),
    ] {
        tenant.change(&id, body).invalid(field);
    }
    let entry = tenant.entry(&id);
    assert_eq!((&entry["content"], &entry["version"]), (&json!("one"), &json!(1)));
}

#[test]
fn a_stale_version_never_overwrites() {
    let (tenant, id) = one_entry();
    let expecting = |tag: &str| tenant.with_header("if-match", tag);
    expecting("\"v1\"").changed(&id, json!({"content": "two"}));
    tenant.changed(&id, json!({"content": "three", "version": 2}));
    expecting("*").changed(&id, json!({"content": "four"}));
    expecting("\"v9\", \"v4\"").changed(&id, json!({"content": "five"}));

    for tag in ["\"v1\"", "W/\"v5\"", "\"v6\"", "\"v1\", \"v2\"", "\"\"", "\"V5\""] {
        let refused = expecting(tag).change(&id, json!({"content": "stale"})).refused(412, "ETAG_MISMATCH");
        assert_eq!(refused.details()["latest_etag"], "\"v5\"", "{tag}");
        assert_eq!(refused.details()["latestVersion"], 5, "{tag}");
        expecting(tag).delete(&id).refused(412, "ETAG_MISMATCH");
    }
    for version in [1, 6] {
        let refused = tenant.change(&id, json!({"content": "stale", "version": version}));
        assert_eq!(refused.refused(412, "ETAG_MISMATCH").details()["latestVersion"], 5);
    }
    expecting("\"v5\"").change(&id, json!({"content": "both", "version": 4})).refused(400, "INVALID_REQUEST");
    let entry = tenant.entry(&id);
    assert_eq!((&entry["content"], &entry["version"]), (&json!("five"), &json!(5)));
    expecting("\"v5\"").changed(&id, json!({"content": "six", "version": 5}));
    expecting("*").change(&fresh_id(), json!({"content": "x"})).not_found();
}

#[test]
fn many_changes_of_different_keys_all_survive() {
    const WRITERS: usize = 16;
    let tenant = Tenant::fresh();
    for kind in ["user_personal", "working"] {
        let body = json!({"content": "one", "kind": kind, "metadata": {"title": "T"}});
        let id = tenant.say_with(&Place::user("u"), body);
        let answers = at_once(WRITERS, |n| {
            let mut metadata = json!({});
            metadata[format!("key-{n}")] = json!(n);
            // Some of them change the text as well, which is embedded outside any lock.
            let body = match n % 4 {
                0 => json!({"metadata": metadata, "content": format!("text of {n}")}),
                _ => json!({"metadata": metadata}),
            };
            tenant.change(&id, body).expect(200)
        });

        let entry = tenant.entry(&id);
        assert_eq!(entry["version"], WRITERS + 1);
        for n in 0..WRITERS {
            assert_eq!(entry["metadata"][format!("key-{n}")], n, "{entry}");
        }
        assert_eq!(entry["metadata"]["title"], "T");
        let versions =
            sorted(answers.iter().map(|answer| answer.json["memory"]["version"].as_u64().unwrap()));
        assert_eq!(
            versions,
            (2..=WRITERS as u64 + 1).collect::<Vec<_>>(),
            "every answer is a version of its own"
        );
    }
}

#[test]
fn changes_at_once_wait_for_each_other_and_none_is_refused() {
    let tenant = Tenant::fresh();
    let place = Place::project("p");
    for writers in [32, 200_u64] {
        let id = tenant.say(&place, "one");
        let answers = at_once(writers as usize, |n| {
            let content = (n % 8 == 0).then(|| format!("text of {n}"));
            let mut body = json!({"metadata": {format!("key-{n}"): n}});
            content.into_iter().for_each(|content| body["content"] = content.into());
            tenant.change(&id, body)
        });
        let refused: Vec<_> = answers.iter().filter(|answer| answer.status != 200).collect();
        assert!(refused.is_empty(), "{} of {writers}: {}", refused.len(), refused[0].describe());
        let versions =
            sorted(answers.iter().map(|answer| answer.json["memory"]["version"].as_u64().unwrap()));
        assert_eq!(versions, (2..=writers + 1).collect::<Vec<_>>());
        let entry = tenant.entry(&id);
        assert!((0..writers).all(|n| entry["metadata"][format!("key-{n}")] == n), "{entry}");
        let history = tenant.client.get(&format!("/openspec/v1/knowledge/{id}/metadata")).expect(200).json;
        let history: Vec<u64> =
            list(&history["version_history"]).iter().map(|row| row["version"].as_u64().unwrap()).collect();
        // The last hundred are kept.
        assert_eq!(history, ((writers + 1).saturating_sub(99).max(1)..=writers + 1).collect::<Vec<_>>());
    }
}

#[test]
fn facts_at_once_wait_for_each_other_and_none_is_refused() {
    let tenant = Tenant::fresh();
    let place = Place::project("p");
    let body = place.with(json!({"factType": "f", "subject": "s", "predicate": "p", "object": "o"}));
    let stated =
        at_once(64, |n| tenant.fact(merged(body.clone(), &json!({"metadata": {format!("k{n}"): n}}))));
    let refused: Vec<_> = stated.iter().filter(|answer| !matches!(answer.status, 200 | 201)).collect();
    assert!(refused.is_empty(), "{} of 64: {}", refused.len(), refused[0].describe());
    let id = id_of(&stated[0].json["fact"]);
    let changed = at_once(32, |n| {
        let change =
            if n % 2 == 0 { json!({"object": format!("o{n}")}) } else { json!({"subject": format!("s{n}")}) };
        tenant.client.patch(&format!("/v1/facts/{id}"), change)
    });
    let refused: Vec<_> = changed.iter().filter(|answer| answer.status != 200).collect();
    assert!(refused.is_empty(), "{} of 32: {}", refused.len(), refused[0].describe());
    let entry = tenant.entry(&id);
    assert_eq!(entry["version"], 64 + 32);
    let fact = &entry["fact"];
    let content = format!("{} p {}", text(&fact["subject"]), text(&fact["object"]));
    assert_eq!(entry["content"], content, "the text is that of the last version");
}

#[test]
fn of_many_changes_of_one_version_one_wins() {
    const WRITERS: usize = 8;
    let (tenant, id) = one_entry();
    for round in 1..=5_u64 {
        let tag = format!("\"v{round}\"");
        let answers = at_once(WRITERS, |n| {
            let caller = tenant.with_header("if-match", &tag);
            caller.change(&id, json!({"content": format!("round {round} writer {n}")}))
        });
        let winners: Vec<_> = answers.iter().filter(|answer| answer.status == 200).collect();
        assert_eq!(winners.len(), 1, "{answers:?}");
        assert_eq!(tenant.entry(&id), settled(&winners[0].json["memory"]));
        for loser in answers.into_iter().filter(|answer| answer.status != 200) {
            loser.refused(412, "ETAG_MISMATCH");
        }
    }
}

#[test]
fn readers_see_an_entry_before_or_after_a_change_and_never_a_mixture() {
    let tenant = Tenant::fresh();
    let place = Place::user("u");
    let texts = ["Rex the dog sleeps in the garden", "The database runs on port 5432"];
    let [dog, _] = texts.map(|content| {
        let id = tenant.say(&Place::user("vectors"), content);
        tenant.get(&format!("{id}?includeEmbedding=true")).json["memory"]["embedding"].clone()
    });
    let id = tenant.say(&place, texts[0]);

    at_once(3, |n| {
        for round in 0..20 {
            if n == 0 {
                tenant.changed(&id, json!({"content": texts[(round + 1) % 2]}));
                continue;
            }
            let found = tenant.results(place.everything(json!({"includeEmbedding": true})));
            let entry = &found[0]["memory"];
            assert_eq!(entry["content"] == texts[0], entry["embedding"] == dog, "{}", entry["content"]);
        }
    });
}
