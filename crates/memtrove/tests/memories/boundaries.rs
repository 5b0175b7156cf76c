//! What policies, roles and deleted conversations close stays closed to maintenance, promotion and the stream too.

use crate::openspec::*;
use crate::sse::*;
use crate::support::*;

/// A private entry of user `v` in the project, which has a secret.
#[track_caller]
fn private(tenant: &Tenant, content: &str) -> String {
    let members = json!({
        "content": content, "accessPolicy": {"policy": "private"}, "metadata": {"secret": "walrus", "tags": ["hidden"]},
    });
    tenant.as_user("v").say_with(&Place::project("p"), members)
}

#[test]
fn consolidation_does_not_carry_what_is_private_to_others() {
    let tenant = Tenant::fresh();
    let place = Place::project("p");
    let hidden = private(&tenant, "the heron waits");
    let open = tenant.as_user("u").say(&place, "The heron waits.");
    let before = tenant.as_user("v").entry(&hidden);

    let answer =
        tenant.as_user("u").client.post("/v1/memories:consolidate", place.with(json!({}))).expect(200);

    assert!(!answer.text.contains(&hidden), "it tells of it: {}", answer.describe());
    assert_eq!(tenant.as_user("v").entry(&hidden), before);
    assert_eq!(tenant.as_user("u").entry(&open)["metadata"], json!({}), "nor does its metadata come over");
}

#[test]
fn a_private_duplicate_is_no_answer_to_a_promotion() {
    let tenant = Tenant::fresh();
    let hidden = private(&tenant, "the heron waits");
    let mine = tenant.as_user("u").say(&Place::user("u"), "the heron waits");
    let body = json!({"targetLayer": "project", "identifiers": {"projectId": "p"}});
    let answer = tenant.as_user("u").client.post(&format!("/v1/memories/{mine}/promote"), body).expect(201);
    assert!(!answer.text.contains(&hidden) && !answer.text.contains("walrus"), "{}", answer.describe());
}

#[test]
fn a_pass_of_decay_does_not_tell_of_what_is_private() {
    let tenant = Tenant::fresh();
    let place = Place::project("p");
    let hidden = private(&tenant, "the heron waits");
    let body = json!({"identifiers": place.identifiers, "asOf": "2126-01-01T00:00:00Z", "dryRun": true});
    let answer = tenant.as_user("u").client.post("/v1/memories:decay", body).expect(200);
    assert!(!answer.text.contains(&hidden), "{}", answer.describe());
}

#[test]
fn steps_and_replacements_of_what_is_private_are_not_found() {
    let tenant = Tenant::fresh();
    let hidden = private(&tenant, "the heron waits");
    let (other, at) = (tenant.as_user("u"), format!("/v1/memories/{hidden}"));
    for verb in ["archive", "restore"] {
        other.client.post_nothing(&format!("{at}/{verb}")).not_found();
    }
    other
        .client
        .post(&format!("{at}/promote"), json!({"targetLayer": "user", "identifiers": {"userId": "u"}}))
        .not_found();
    other.replace(&hidden, json!({"content": "mine now"})).fails(404, 404, "MEMORY_NOT_FOUND");
    other.client.get(&format!("{KNOWLEDGE}/{hidden}/metadata")).fails(404, 404, "MEMORY_NOT_FOUND");
    let query = json!({"query": "the heron waits", "layer": {"project_id": "p"}});
    let found = other.client.post(&format!("{KNOWLEDGE}/query"), query).expect(200).json;
    assert_eq!((&found["results"], &found["metadata"]["total_results"]), (&json!([]), &json!(0)));
    assert_eq!(tenant.as_user("v").entry(&hidden)["version"], 1);
}

#[test]
fn what_becomes_private_is_not_told_any_more() {
    let tenant = Tenant::fresh();
    let place = Place::project("p");
    let mut stream = Follower::as_user(&SERVER, &tenant, "u", "user_id=u&project_id=p&tags=red");
    let owner = tenant.as_user("v");
    let id = owner.say_with(&place, json!({"content": "for all", "metadata": {"tags": ["red"]}}));
    owner.changed(&id, json!({"content": "a secret", "accessPolicy": {"policy": "private"}}));
    owner.changed(&id, json!({"content": "another secret"}));
    let seen = owner.say_with(&place, json!({"content": "seen", "metadata": {"tags": ["red"]}}));
    owner.delete(&seen).expect(200);
    let last = owner.say_with(&place, json!({"content": "the last one", "metadata": {"tags": ["red"]}}));

    let events = stream.until(&last);

    assert!(events.iter().all(|event| !event.data.to_string().contains("secret")), "{events:?}");
    let told: Vec<_> = events.iter().map(|event| (event.name.as_str(), event.entry())).collect();
    assert!(told.contains(&("created", id)), "{told:?}");
    assert_eq!(
        told[told.len() - 2..],
        [("created", seen.clone()), ("deleted", seen)],
        "what was seen is seen to go"
    );
}

#[test]
fn what_was_told_of_a_forgotten_user_is_not_told_again() {
    let tenant = Tenant::fresh();
    let stream = Follower::of(&SERVER, &tenant, "user_id=u");
    let begin = stream.ready["last_event_id"].to_string().trim_matches('"').parse().expect("a number");
    drop(stream);
    tenant.say(&Place::user("u"), "a walrus of u");
    tenant.client.post("/v1/users:forget", json!({"userId": "u"})).expect(200);
    let after = tenant.say(&Place::user("u"), "anew");

    let mut resumed = Follower::resuming(&SERVER, &tenant, "user_id=u", Some(begin));

    let mut told = Vec::new();
    let live = tenant.say(&Place::user("u"), "the last one");
    loop {
        let event = resumed.next();
        assert!(!event.data.to_string().contains("walrus"), "{event:?}");
        if event.name == "reset" {
            continue;
        }
        if event.entry() == live {
            break;
        }
        told.push((event.name.clone(), event.entry()));
    }
    assert!(told.iter().all(|(name, id)| name == "deleted" || *id == after), "{told:?}");
}

/// A session whose conversation is deleted, and a memory of it that mattered.
fn of_a_deleted_conversation(tenant: &Tenant) -> (Place, String) {
    let user = tenant.as_user("u").client;
    let id = user.post("/v1/conversations", json!({"title": "Plans"})).expect(201).id();
    let place = Place::session("u", &id);
    let memory = tenant.say_with(&place, json!({"content": "a walrus", "metadata": {"importance": 1}}));
    let fact = json!({"factType": "t", "subject": "s", "predicate": "p", "object": "o"});
    tenant.stated(&place, fact);
    user.delete(&format!("/v1/conversations/{id}")).expect(204);
    (place, memory)
}

#[test]
fn nothing_is_promoted_out_of_a_deleted_conversation() {
    let tenant = Tenant::fresh();
    let (place, memory) = of_a_deleted_conversation(&tenant);
    let ended =
        tenant.client.post("/v1/sessions:end", json!({"identifiers": place.identifiers})).expect(200).json;
    assert_eq!(
        (&ended["promoted"], &ended["evaluated"]),
        (&json!([]), &json!(0)),
        "the user asked to remove"
    );
    tenant.client.post(&format!("/v1/memories/{memory}/promote"), json!({"targetLayer": "user"})).not_found();
    assert_eq!(tenant.page(Place::user("u").with(json!({}))).total, 0);
}

#[test]
fn a_deleted_conversation_is_closed_to_maintenance() {
    let tenant = Tenant::fresh();
    let (place, memory) = of_a_deleted_conversation(&tenant);
    let other = tenant.say(&place, "A walrus!");
    let body =
        json!({"identifiers": place.identifiers, "layers": ["session"], "asOf": "2126-01-01T00:00:00Z"});
    let pass = tenant.client.post("/v1/memories:decay", body).expect(200);
    assert!(!pass.text.contains(&memory) && !pass.text.contains(&other), "{}", pass.describe());
    let merged = tenant.client.post("/v1/memories:consolidate", place.with(json!({}))).expect(200);
    assert_eq!(merged.json["groups"], json!([]), "{}", merged.describe());
}

#[test]
fn what_a_deleted_conversation_remembered_is_found_nowhere() {
    let tenant = Tenant::fresh();
    let (place, memory) = of_a_deleted_conversation(&tenant);
    tenant.client.post_nothing(&format!("/v1/memories/{memory}/archive")).not_found();
    assert_eq!(tenant.facts(json!({"identifiers": place.identifiers})).expect(200).json["totalCount"], 0);
    let session = &place.identifiers["sessionId"];
    let query = json!({"query": "walrus", "layer": {"user_id": "u", "session_id": session}});
    let found = tenant.client.post(&format!("{KNOWLEDGE}/query"), query).expect(200).json;
    assert_eq!(found["results"], json!([]));
    tenant.client.get(&format!("{KNOWLEDGE}/{memory}")).fails(404, 404, "MEMORY_NOT_FOUND");
    tenant.client.get(&format!("{KNOWLEDGE}/{memory}/metadata")).fails(404, 404, "MEMORY_NOT_FOUND");
    assert_eq!(tenant.delete(&memory).expect(200).json["deleted"], false);
    let page = tenant.page(place.with(json!({"includeArchived": true})));
    assert_eq!(page.total, 0);
}

#[test]
fn roles_that_may_write_are_asked_by_every_way_to_write() {
    let server = server_with("[memories.write_roles]\nproject = [\"admin\"]\n");
    let tenant = Tenant::of(&server, "acme");
    let (admin, place) = (tenant.as_user("admin"), Place::project("p"));
    let id = admin.say(&place, "a rule");
    let archived = admin.say_with(&place, json!({"content": "an old rule", "kind": "archival"}));
    let mine = tenant.as_user("u").say(&Place::user("u"), "mine");
    let user = tenant.as_user("u");
    let at = |id: &str, verb: &str| format!("/v1/memories/{id}/{verb}");

    user.entry(&id);
    user.add(place.with(json!({"content": "b"}))).refused(403, "FORBIDDEN");
    user.change(&id, json!({"metadata": {"n": 1}})).refused(403, "FORBIDDEN");
    user.delete(&id).refused(403, "FORBIDDEN");
    user.client.post_nothing(&at(&id, "archive")).refused(403, "FORBIDDEN");
    user.client.post_nothing(&at(&archived, "restore")).refused(403, "FORBIDDEN");
    let target = json!({"targetLayer": "project", "identifiers": place.identifiers});
    user.client.post(&at(&mine, "promote"), target).refused(403, "FORBIDDEN");
    user.client.post("/v1/memories:consolidate", place.with(json!({}))).refused(403, "FORBIDDEN");
    user.client
        .post("/v1/memories:decay", json!({"identifiers": place.identifiers}))
        .refused(403, "FORBIDDEN");
    let fact = json!({"factType": "t", "subject": "s", "predicate": "p", "object": "o"});
    user.fact(place.with(fact)).refused(403, "FORBIDDEN");
    let layer = json!({"layer": {"type": "semantic", "scope": "project", "project_id": "p"}});
    user.create(json!({"content": "b"}), layer).fails(403, 403, "FORBIDDEN");
    user.replace(&id, json!({"content": "b"})).fails(403, 403, "FORBIDDEN");
    user.client.delete(&format!("{KNOWLEDGE}/{id}")).fails(403, 403, "FORBIDDEN");
    let bulk = json!({"ids": [id]});
    let answer = user.client.post("/v1/memories:bulkDelete", bulk);
    assert!(answer.status == 403 || answer.json["deleted"] == 0, "{}", answer.describe());
    assert_eq!(admin.entry(&id)["version"], 1);
    user.client
        .post(&at(&mine, "promote"), json!({"targetLayer": "team", "identifiers": {"teamId": "t"}}))
        .expect(201);
}

#[test]
fn a_layer_that_is_switched_off_is_none_anywhere() {
    let server = server_with("[memories]\nenabled_layers = [\"user\", \"session\", \"project\"]\n");
    let tenant = Tenant::of(&server, "acme");
    let id = tenant.say(&Place::user("u"), "mine");
    let body = json!({"targetLayer": "team", "identifiers": {"teamId": "t"}});
    tenant.client.post(&format!("/v1/memories/{id}/promote"), body).refused(400, "INVALID_LAYER");
    let create = |layer: Value| tenant.create(json!({"content": "a"}), json!({"layer": layer}));
    create(json!({"type": "semantic", "team_id": "t"})).fails(400, 400, "INVALID_LAYER");
    create(json!({"type": "semantic", "project_id": "p"})).expect(201);
    let decay = |layers: Value| {
        tenant.client.post(
            "/v1/memories:decay",
            json!({"identifiers": {"teamId": "t", "userId": "u"}, "layers": layers}),
        )
    };
    decay(json!(["team"])).refused(400, "INVALID_LAYER");
    decay(json!(["user"])).expect(200);
    let query = json!({"query": "a", "layer": {"user_id": "u", "team_id": "t"}});
    let answer = tenant.client.post(&format!("{KNOWLEDGE}/query"), query);
    assert!(answer.status < 500, "{}", answer.describe());
}

#[test]
fn consolidation_leaves_duplicates_that_its_caller_may_not_see() {
    let tenant = Tenant::fresh();
    let place = Place::project("p");
    let hidden = [private(&tenant, "the heron waits"), private(&tenant, "the heron waits.")];
    let answer =
        tenant.as_user("u").client.post("/v1/memories:consolidate", place.with(json!({}))).expect(200);
    assert_eq!(
        (&answer.json["groups"], &answer.json["examined"]),
        (&json!([]), &json!(0)),
        "{}",
        answer.describe()
    );
    for id in hidden {
        assert_eq!(tenant.as_user("v").entry(&id)["state"], "active");
    }
}

#[test]
fn a_fact_that_loses_its_makers_name_is_in_nobodys_way() {
    let tenant = Tenant::fresh();
    let place = Place::project("p");
    let fact = json!({"factType": "t", "subject": "s", "predicate": "p", "object": "o"});
    let hidden = json!({"accessPolicy": {"policy": "restricted", "approvedUsers": ["w"]}});
    tenant.as_user("v").stated(&place, merged(fact.clone(), &hidden));
    tenant.as_user("u").stated(&place, fact);

    let answer = tenant.client.post("/v1/users:forget", json!({"userId": "v"})).expect(200);

    assert_eq!(answer.json["memories"]["anonymized"], 1, "{}", answer.describe());
    let left = tenant.as_user("u").facts(place.everything(json!({}))).expect(200);
    assert_eq!(list(&left.json["facts"]).len(), 1, "{}", left.describe());
}

#[test]
fn a_hidden_fact_cannot_be_opened_beside_an_open_one() {
    let tenant = Tenant::fresh();
    let place = Place::project("p");
    let fact = json!({"factType": "t", "subject": "s", "predicate": "p", "object": "o"});
    let hidden = merged(fact.clone(), &json!({"accessPolicy": {"policy": "private"}}));
    let hidden = id_of(&tenant.as_user("v").stated(&place, hidden));
    tenant.as_user("u").stated(&place, fact);
    let opened = tenant.as_user("v").change(&hidden, json!({"accessPolicy": {"policy": "organization"}}));
    opened.refused(409, "INVALID_STATE");
}
