//! What survives: an orderly restart, and `kill -9` right after the answer.

use crate::support::*;

const ENCRYPTION: &str = "[encryption.dek]\nkey = \"bWVtbG9vbSB0ZXN0IGtleSB3aXRoIDMyIGJ5dGVzIS4=\"\n";

/// How the server ends.
#[derive(Debug, Clone, Copy)]
enum End {
    Stop,
    Kill,
}

/// One of everything, an end, and everything again.
#[track_caller]
fn survives(toml: &str, end: End) {
    let mut server = server_with(toml);
    let tenant = Tenant::of(&server, "t");
    let mut before = Vec::new();
    let fact = json!({"factType": "t", "subject": "Alice", "predicate": "likes", "object": "tea"});
    for place in tenant.every_layer() {
        let body =
            json!({"content": format!("{} remembers", place.layer), "metadata": {"tags": ["t"], "n": 1.50}});
        before.push(tenant.added(place.with(body)));
        let id = id_of(&tenant.stated(&place, fact.clone()));
        before.push(tenant.entry(&id));
    }
    let session = Place::session("u1", "s1");
    let user = Place::user("u1");
    let working = id_of(&tenant.added(user.with(json!({"content": "scratch", "kind": "working"}))));
    let changed = tenant.say(&user, "one");
    before.push(tenant.changed(&changed, json!({"content": "two", "metadata": {"k": {"deep": null}}})));
    let archived = tenant.say(&user, "cold");
    before.push(settled(&tenant.client.post(&format!("/v1/memories/{archived}/archive"), json!({})).expect(200).json["memory"]));
    let deleted = tenant.say(&user, "deleted");
    tenant.delete(&deleted).expect(200);
    let keyed = tenant.with_header("idempotency-key", "key");
    let keyed_body = Place::team("t1").with(json!({"content": "once"}));
    let first = keyed.add(keyed_body.clone()).expect(201);
    let page = tenant.page(session.with(json!({"limit": 1})));
    let search = json!({"query": "who remembers", "identifiers": tenant.all_identifiers(), "threshold": 0, "limit": 100, "kinds": ["semantic", "session", "user_personal", "procedural"]});
    let found = tenant.found_ids(search.clone());
    let facts = json!({"identifiers": tenant.all_identifiers(), "limit": 2});
    let facts_page = tenant.facts(facts.clone()).expect(200);

    match end {
        End::Stop => assert!(server.stop().success()),
        End::Kill => server.kill(),
    }
    server.restart();
    let tenant = Tenant::of(&server, "t");

    for entry in &before {
        assert_eq!(tenant.entry(&id_of(entry)), *entry, "{end:?}");
    }
    tenant.get(&working).not_found();
    tenant.get(&deleted).not_found();
    assert_eq!(tenant.found_ids(search), found, "{end:?}");
    let rest = tenant.page(session.with(json!({"cursor": page.next})));
    assert_eq!(page.entries.len() + rest.entries.len(), page.total, "a cursor survives: {end:?}");
    let rest = tenant.facts(merged(facts, &json!({"cursor": facts_page.json["nextCursor"]}))).expect(200);
    assert_eq!(list(&rest.json["facts"]).len(), 2, "a cursor of facts survives: {end:?}");
    let replay = tenant.with_header("idempotency-key", "key").add(keyed_body).expect(201);
    assert_eq!((replay.header("idempotency-replayed"), &replay.json), ("true", &first.json), "{end:?}");
    let again = tenant.fact(user.with(fact)).expect(200);
    assert_eq!(again.json["created"], false, "{end:?}");
    assert_eq!(tenant.changed(&changed, json!({"content": "three"}))["version"], 3);
}

#[test]
fn everything_but_working_entries_survives_a_restart() {
    survives("", End::Stop);
}

#[test]
fn everything_but_working_entries_survives_a_kill() {
    survives("", End::Kill);
}

#[test]
fn everything_but_working_entries_survives_a_kill_encrypted() {
    survives(ENCRYPTION, End::Kill);
}

#[test]
fn no_acknowledged_write_is_lost_in_the_middle_of_many() {
    let mut server = server_with("");
    let tenant = Tenant::of(&server, "t");
    let place = Place::project("p");
    let written = std::sync::Mutex::new(Vec::new());
    std::thread::scope(|threads| {
        for n in 0..8 {
            let (tenant, place, written) = (&tenant, &place, &written);
            threads.spawn(move || {
                for m in 0.. {
                    let content = format!("writer {n} note {m}");
                    let body = Body::Json(place.with(json!({"content": content})));
                    let Ok(answer) = tenant.client.try_send("POST", "/v1/memories", body) else { return };
                    written.lock().unwrap().push((id_of(&answer.expect(201).json["memory"]), content));
                }
            });
        }
        while written.lock().unwrap().len() < 200 {
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        server.kill();
    });
    server.restart();
    let tenant = Tenant::of(&server, "t");
    let written = written.into_inner().unwrap();

    let stored = tenant.all(place.with(json!({})));

    let stored: std::collections::HashMap<String, String> =
        stored.iter().map(|entry| (id_of(entry), text(&entry["content"]))).collect();
    for (id, content) in &written {
        assert_eq!(stored.get(id), Some(content), "an acknowledged write is gone");
    }
    // At most one request of each writer was on its way.
    assert!(stored.len() <= written.len() + 8);
    let (id, content) = &written[written.len() - 1];
    let found = tenant.found_ids(place.everything(json!({"query": content})));
    assert!(found.contains(id), "found by meaning too");
}
