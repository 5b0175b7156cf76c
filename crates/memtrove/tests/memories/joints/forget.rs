//! Forgetting a user reaches its memories, whatever layer, kind and state they are in.

use super::*;
use crate::sse::Follower;

/// Everything that can be asked about the memories of a user.
#[track_caller]
fn assert_nothing_of(tenant: &Tenant, user: &str, ids: &[String]) {
    for id in ids {
        tenant.get(id).not_found();
    }
    for place in [Place::user(user), Place::agent("a1", user), Place::session(user, "s1")] {
        assert_eq!(tenant.all(place.with(json!({"includeArchived": true}))), Vec::<Value>::new());
        let found = tenant.search(place.everything(json!({"includeArchived": true}))).expect(200);
        assert_eq!(found.json["totalCount"], 0, "{}", found.describe());
        let facts = json!({"layers": [place.layer], "identifiers": place.identifiers});
        assert_eq!(tenant.facts(facts).expect(200).json["totalCount"], 0);
    }
}

/// Leaves memories of every kind; their ids.
#[track_caller]
fn leave(tenant: &Tenant, user: &str) -> Vec<String> {
    let place = Place::user(user);
    let archived = tenant.say(&place, "an archived walrus");
    tenant.client.post(&format!("/v1/memories/{archived}/archive"), json!({})).expect(200);
    let fact = json!({"factType": "habit", "subject": user, "predicate": "feeds", "object": "walrus"});
    let fact = id_of(&tenant.stated(&place, fact));
    tell(tenant, user, "evt", json!({"digest": "a walrus was seen"}));
    vec![
        archived,
        fact,
        id_of(&mirrors(tenant, user)[0]),
        tenant.say(&place, "a walrus"),
        tenant.say(&Place::agent("a1", user), "an agent's walrus"),
        tenant.say(&Place::session(user, "s1"), "a walrus of the session"),
        tenant
            .say_with(&Place::session(user, "s1"), json!({"content": "a working walrus", "kind": "working"})),
        tenant.say_with(&place, json!({"content": "a walrus of the past", "kind": "episodic"})),
    ]
}

#[test]
fn everything_of_the_user_goes_and_nothing_of_others() {
    let tenant = Tenant::fresh();
    let (ids, others) = (leave(&tenant, "dana"), leave(&tenant, "bob"));

    assert_eq!(forget(&tenant, "dana"), json!({"deleted": ids.len(), "anonymized": 0}));

    assert_nothing_of(&tenant, "dana", &ids);
    assert_eq!(events(&tenant, "dana"), Vec::<String>::new());
    for id in &others {
        tenant.get(id).expect(200);
    }
    assert_eq!(forget(&tenant, "dana"), json!({"deleted": 0, "anonymized": 0}));
    let again = leave(&tenant, "dana");
    assert_eq!(again[2], ids[2], "the memory of an event has its id from the event");
    assert_eq!(tenant.entry(&again[2])["version"], 1);
    assert_eq!(tenant.all(Place::user("dana").with(json!({}))).len(), 4);
}

#[test]
fn the_other_address_is_the_same_operation() {
    let tenant = Tenant::fresh();
    let ids = [
        tenant.say(&Place::user("team/dana"), "a walrus"),
        tenant
            .say_with(&Place::session("team/dana", "s1"), json!({"content": "a walrus", "kind": "working"})),
    ];
    let report = tenant.client.post("/v1/users:forget", json!({"userId": "team/dana"})).expect(200);
    assert_eq!(report.json["memories"], json!({"deleted": ids.len(), "anonymized": 0}));
    assert_nothing_of(&tenant, "team/dana", &ids);
}

#[test]
fn in_shared_layers_the_name_goes_and_what_was_said_stays() {
    let tenant = Tenant::fresh();
    let (dana, bob) = (tenant.as_user("dana"), tenant.as_user("bob"));
    let shared = dana.say_with(
        &Place::project("p1"),
        json!({"content": "use tabs", "metadata": {"author": "dana", "x": 1}}),
    );
    let signed =
        dana.say_with(&Place::team("t1"), json!({"content": "by hand", "metadata": {"author": "somebody"}}));
    let private = dana.say_with(
        &Place::project("p1"),
        json!({"content": "my own walrus", "accessPolicy": {"policy": "private"}}),
    );
    let restricted = dana.say_with(
        &Place::project("p1"),
        json!({"content": "for two", "accessPolicy": {"policy": "restricted", "approvedUsers": ["dana", "bob"]}}),
    );
    let of_bob = bob.say(&Place::project("p1"), "by bob");
    dana.changed(&of_bob, json!({"metadata": {"touched": true}}));

    assert_eq!(forget(&tenant, "dana"), json!({"deleted": 1, "anonymized": 3}));

    let entry = tenant.entry(&shared);
    assert_eq!((&entry["content"], &entry["metadata"]), (&json!("use tabs"), &json!({"x": 1})));
    assert_eq!((&entry["createdBy"], &entry["version"]), (&json!({}), &json!(2)));
    assert_eq!(tenant.entry(&signed)["metadata"]["author"], "somebody");
    tenant.get(&private).not_found();
    assert_eq!(bob.entry(&restricted)["accessPolicy"]["approvedUsers"], json!(["bob"]));
    assert_eq!(tenant.entry(&of_bob)["createdBy"]["userId"], "bob");
    for id in [&shared, &signed, &restricted, &of_bob] {
        let history = tenant.client.get(&format!("/openspec/v1/knowledge/{id}/metadata")).expect(200);
        assert!(!history.text.contains("dana"), "{}", history.describe());
    }
    let found = tenant.found(Place::project("p1").everything(json!({"query": "tabs"})));
    assert_eq!(sorted(found), ["by bob", "use tabs"], "what only two may see needs a user");
    let feed = tenant.as_user("admin").client.get("/v1/changes?limit=1000").expect(200);
    let named = list(&feed.json["changes"]).into_iter().filter(|change| change["user"] == "dana").count();
    assert_eq!(named, 0, "{}", feed.text);
    assert_eq!(forget(&tenant, "dana"), json!({"deleted": 0, "anonymized": 0}));
}

#[test]
fn what_the_user_wrote_is_in_nobodys_history() {
    let tenant = Tenant::fresh();
    let (dana, bob) = (tenant.as_user("dana"), tenant.as_user("bob"));
    let place = Place::project("p1");
    let made = dana.say(&place, "a walrus of dana");
    bob.changed(&made, json!({"content": "a seal of bob"}));
    let changed = bob.say(&place, "a gull of bob");
    dana.changed(&changed, json!({"content": "a gannet of dana"}));
    bob.changed(&changed, json!({"content": "a puffin of bob"}));
    let others = bob.say(&place, "a tern of bob");
    bob.changed(&others, json!({"content": "a skua of bob"}));
    let history = |id: &str| bob.client.get(&format!("/v1/memories/{id}/history/")).expect(200).text;
    assert!(history(&made).contains("walrus") && history(&changed).contains("gannet"));

    forget(&tenant, "dana");

    assert!(!history(&made).contains("walrus"), "{}", history(&made));
    assert!(!history(&changed).contains("gannet"), "{}", history(&changed));
    assert!(history(&made).contains("a seal of bob") && history(&changed).contains("a puffin of bob"));
    assert!(history(&others).contains("a tern of bob"), "what others wrote and changed alone stays");
}

#[test]
fn whoever_resumes_a_stream_is_told_nothing_of_the_forgotten() {
    let tenant = Tenant::fresh();
    let mut stream = Follower::of(&SERVER, &tenant, "user_id=dana&project_id=p1");
    let first = tenant.say(&Place::project("p1"), "what nobody made");
    let seen = stream.next();
    assert_eq!(seen.entry(), first);
    let dana = tenant.as_user("dana");
    dana.say(&Place::user("dana"), "a walrus");
    let shared = dana.say(&Place::project("p1"), "use tabs");
    drop(stream);

    forget(&tenant, "dana");

    let mut resumed = Follower::resuming(&SERVER, &tenant, "user_id=dana&project_id=p1", seen.id);
    let told = resumed.next();
    assert_eq!((told.name.as_str(), told.entry()), ("updated", shared));
    let last = tenant.say(&Place::project("p1"), "the end");
    assert_eq!(resumed.next().entry(), last);
}

#[test]
fn what_an_admin_made_for_somebody_loses_the_admins_name_only() {
    let tenant = Tenant::fresh();
    let admin = tenant.as_user("admin");
    let body = json!({"content": "noted by an admin", "accessPolicy": {"policy": "organization"}});
    let id = admin.say_with(&Place::user("dana"), body);

    assert_eq!(forget(&tenant, "admin"), json!({"deleted": 0, "anonymized": 1}));

    assert_eq!(tenant.entry(&id)["createdBy"], json!({}));
    assert_eq!(forget(&tenant, "dana"), json!({"deleted": 1, "anonymized": 0}));
}

#[test]
fn keys_whose_answers_tell_of_the_user_are_free() {
    let tenant = Tenant::fresh();
    let keyed = tenant.with_header("idempotency-key", "key");
    let add = || Place::user("dana").with(json!({"content": "a walrus"}));
    let bulk = || json!({"memories": [Place::user("bob").with(json!({"content": "x"})), add()]});
    let post = |route: &str, body: Value| keyed.client.post(route, body);
    let first = post("/v1/memories", add()).expect(201);
    let both = post("/v1/memories:bulkAdd", bulk()).expect(200);
    assert_eq!(post("/v1/memories:bulkAdd", bulk()).expect(200).header("idempotency-replayed"), "true");

    forget(&tenant, "dana");

    let again = post("/v1/memories", add()).expect(201);
    assert_eq!(again.header("idempotency-replayed"), "");
    assert_ne!(again.json["memory"]["id"], first.json["memory"]["id"]);
    let again = post("/v1/memories:bulkAdd", bulk()).expect(200);
    assert_ne!(again.json["results"], both.json["results"]);
}

#[test]
fn a_promotion_at_the_same_time_brings_nothing_back() {
    let tenant = Tenant::fresh();
    for round in 0..12 {
        let user = format!("dana-{round}");
        let working =
            json!({"content": "a working walrus", "kind": "working", "metadata": {"importance": 1}});
        let sources = [
            tenant.say_with(
                &Place::session(&user, "s1"),
                json!({"content": "a lasting walrus", "metadata": {"importance": 1}}),
            ),
            tenant.say_with(&Place::session(&user, "s1"), working),
        ];
        let target = json!({"targetLayer": "user", "identifiers": {"userId": user}});
        at_once(4, |n| match n {
            0 => drop(forget(&tenant, &user)),
            1 => drop(
                tenant
                    .client
                    .post("/v1/sessions:end", json!({"identifiers": {"userId": user, "sessionId": "s1"}})),
            ),
            _ => {
                let answer =
                    tenant.client.post(&format!("/v1/memories/{}/promote", sources[n - 2]), target.clone());
                assert!([200, 201, 404].contains(&answer.status), "{}", answer.describe());
            }
        });
        assert_nothing_of(&tenant, &user, &sources);
    }
}
