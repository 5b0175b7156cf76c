//! What is remembered in a conversation goes with it.

use super::*;

#[track_caller]
fn start(owner: &Tenant) -> String {
    owner.client.post("/v1/conversations", json!({"title": "Chat"})).expect(201).id()
}

/// Lets somebody else into a conversation.
#[track_caller]
fn share(owner: &Tenant, chat: &str, user: &str) {
    let body = json!({"userId": user, "accessLevel": "reader"});
    owner.client.post(&format!("/v1/conversations/{chat}/memberships"), body).expect(201);
}

/// Evicts what was deleted before this call.
#[track_caller]
fn evict(tenant: &Tenant) {
    std::thread::sleep(Duration::from_millis(1100));
    let body = json!({"retentionPeriod": "PT1S", "resourceTypes": ["conversations"]});
    tenant.as_user("admin").client.post("/v1/admin/evict", body).expect(204);
}

#[test]
fn deletion_hides_restoring_shows_and_eviction_removes() {
    let tenant = Tenant::fresh();
    let owner = tenant.as_user("dana");
    let (chat, other) = (start(&owner), start(&owner));
    share(&owner, &chat, "bob");
    let lasting = json!({"content": "a walrus", "ttlSeconds": 86_400});
    let working = json!({"content": "a working walrus", "kind": "working"});
    let ids = [
        tenant.say_with(&Place::session("dana", &chat), lasting.clone()),
        tenant.say_with(&Place::session("bob", &chat), lasting),
        tenant.say_with(&Place::session("dana", &chat), working),
    ];
    let kept = [
        tenant.say(&Place::session("dana", &other), "of another conversation"),
        tenant.say(&Place::session("dana", "no-conversation"), "of none"),
        tenant.say(&Place::user("dana"), "of dana"),
    ];

    owner.client.delete(&format!("/v1/conversations/{chat}")).expect(204);
    ids.iter().for_each(|id| drop(tenant.get(id).not_found()));
    let restore = format!("/v1/admin/conversations/{chat}/restore");
    tenant.as_user("admin").client.post(&restore, json!({})).expect(200);
    ids.iter().for_each(|id| drop(tenant.get(id).expect(200)));
    owner.client.delete(&format!("/v1/conversations/{chat}")).expect(204);
    evict(&tenant);

    // The id is free now: what was remembered must not come back with whoever uses it next.
    ids.iter().for_each(|id| drop(tenant.get(id).not_found()));
    for user in ["dana", "bob"] {
        assert_eq!(tenant.all(Place::session(user, &chat).with(json!({}))), Vec::<Value>::new());
    }
    kept.iter().for_each(|id| drop(tenant.get(id).expect(200)));
}

#[test]
fn what_others_remembered_in_the_conversations_of_a_forgotten_user_goes_too() {
    let tenant = Tenant::fresh();
    let owner = tenant.as_user("dana");
    let chat = start(&owner);
    let say = |text: &str| {
        let said = json!({"channel": "history", "contentType": "history", "content": [{"role": "USER", "text": text}]});
        owner.client.post(&format!("/v1/conversations/{chat}/entries"), said).expect(201).id()
    };
    let entry = say("one");
    share(&owner, &chat, "bob");
    let fork =
        owner.client.post_nothing(&format!("/v1/conversations/{chat}/entries/{entry}/fork")).expect(201).id();
    let ids = [&chat, &fork].map(|session| tenant.say(&Place::session("bob", session), "what bob remembers"));
    let kept = tenant.say(&Place::user("bob"), "what bob is");

    assert_eq!(forget(&tenant, "dana"), json!({"deleted": 0, "anonymized": 0}));

    ids.iter().for_each(|id| drop(tenant.get(id).not_found()));
    tenant.get(&kept).expect(200);
}

/// Somebody who is no member remembers something under the id of a conversation. What others do with the conversation, and
/// whether there is one, must show nowhere.
#[test]
fn the_id_of_a_conversation_is_a_text_like_any_other_to_who_is_no_member() {
    let tenant = Tenant::fresh();
    let owner = tenant.as_user("dana");
    let eve = tenant.as_user("eve");
    let (deleted, evicted, forgotten) = (start(&owner), start(&owner), start(&tenant.as_user("fay")));
    let entry = {
        let said = json!({"channel": "history", "contentType": "history", "content": [{"role": "USER", "text": "one"}]});
        owner.client.post(&format!("/v1/conversations/{deleted}/entries"), said).expect(201).id()
    };
    let (never, lasting) = (fresh_id(), json!({"content": "a walrus", "ttlSeconds": 86_400}));
    let sessions = [&deleted, &evicted, &forgotten, &never];
    let remember = |session: &str| eve.say_with(&Place::session("eve", session), lasting.clone());
    let ids = sessions.map(|session| remember(session));
    let working = json!({"content": "a working walrus", "kind": "working"});
    let working = sessions.map(|session| eve.say_with(&Place::session("eve", session), working.clone()));
    let fork = owner.client.post_nothing(&format!("/v1/conversations/{deleted}/entries/{entry}/fork"));
    let fork = fork.expect(201).id();
    let look = |session: &str, number: usize| {
        let place = Place::session("eve", session);
        let all = eve.all(place.with(json!({})));
        let found = eve.search(place.everything(json!({}))).expect(200).json;
        let end = json!({"identifiers": place.identifiers, "promoteImportant": false});
        (
            eve.get(&ids[number]).status,
            eve.get(&working[number]).status,
            all.iter().map(|entry| text(&entry["content"])).collect::<Vec<_>>(),
            (found["totalCount"].clone(), list(&found["results"]).len()),
            names(&eve.client.post("/v1/sessions:end", end).expect(200).json).len(),
        )
    };
    owner.client.delete(&format!("/v1/conversations/{evicted}")).expect(204);
    evict(&tenant);
    owner.client.delete(&format!("/v1/conversations/{deleted}")).expect(204);
    forget(&tenant, "fay");

    let seen: Vec<_> =
        sessions.into_iter().enumerate().map(|(number, session)| look(session, number)).collect();

    for (session, one) in ["deleted", "evicted", "forgotten", "never"].iter().zip(&seen) {
        assert_eq!(one, &seen[3], "{session}");
    }
    // Nor does a fork say what it is a fork of.
    assert!(eve.all(Place::session("eve", &fork).with(json!({}))).is_empty());
}
