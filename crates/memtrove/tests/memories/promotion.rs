//! Explicit promotion: a copy for more eyes, without what only some of them should see.

use crate::support::*;

#[track_caller]
fn ask(tenant: &Tenant, id: &str, body: Value) -> Answer {
    tenant.client.post(&format!("/v1/memories/{id}/promote"), body)
}

/// Promotes; the copy.
#[track_caller]
fn promoted(tenant: &Tenant, id: &str, layer: &str, identifiers: Value) -> Value {
    let answer = ask(tenant, id, json!({"targetLayer": layer, "identifiers": identifiers})).expect(201);
    assert_members(&answer.json, &["memory", "deduplicated"]);
    assert_eq!(answer.json["deduplicated"], false);
    let copy = settled(&answer.json["memory"]);
    assert_eq!(answer.header("etag"), "\"v1\"");
    copy
}

#[test]
fn a_promoted_entry_is_a_copy_that_knows_where_it_came_from() {
    let tenant = Tenant::fresh();
    let before = tenant.added(Place::session("u", "s").with(json!({
        "content": "prefers window seats", "metadata": {"tags": ["seat"], "own": [1, null]}, "ttlSeconds": 900,
    })));
    let id = id_of(&before);

    let copy = promoted(&tenant, &id, "user", json!({}));

    assert_eq!(copy["identifiers"], json!({"userId": "u"}), "those of the entry are merged in");
    assert_eq!((&copy["layer"], &copy["kind"]), (&json!("user"), &json!("user_personal")));
    assert_eq!((&copy["content"], &copy["metadata"]), (&before["content"], &before["metadata"]));
    assert_eq!(copy["lineage"], json!({"promotedFrom": id}));
    assert!(!names(&copy).contains("ttlSeconds"), "{copy}");
    assert_eq!(tenant.entry(&id_of(&copy)), copy);
    let original = tenant.entry(&id);
    assert_eq!(original["lineage"], json!({"promotedTo": copy["id"]}));
    assert_eq!((&original["version"], &original["expiresAt"]), (&json!(1), &before["expiresAt"]));
}

#[test]
fn every_layer_can_be_promoted_to() {
    let tenant = Tenant::fresh();
    let all = tenant.all_identifiers();
    for (layer, required) in LAYERS {
        let source = if layer == "session" { Place::user("u1") } else { Place::session("u1", "s9") };
        let id = tenant.say_with(&source, json!({"content": "the heron waits", "kind": "semantic"}));
        let copy = promoted(&tenant, &id, layer, all.clone());
        assert_eq!(names(&copy["identifiers"]), required.iter().copied().collect());
        assert_eq!(copy["layer"], layer);
    }
}

#[test]
fn shared_layers_get_no_addresses_and_no_numbers_of_people() {
    let cases = [
        ("write to bob.smith+x@mail.example.com today", "write to [REDACTED_EMAIL] today"),
        ("a@b.io, C_D@E-F.CO.UK", "[REDACTED_EMAIL], [REDACTED_EMAIL]"),
        ("call +1 555 123 4567 at noon", "call [REDACTED_PHONE] at noon"),
        ("call 555-123-4567 at noon", "call [REDACTED_PHONE] at noon"),
        ("call (030) 1234567 at noon", "call [REDACTED_PHONE] at noon"),
        ("call 555.123.4567 at noon", "call [REDACTED_PHONE] at noon"),
        ("call +491701234567 at noon", "call [REDACTED_PHONE] at noon"),
        ("call 1234567 at noon", "call [REDACTED_PHONE] at noon"),
        ("room 123456 on floor 12", "room 123456 on floor 12"),
        ("since 2019 there are 3 of them", "since 2019 there are 3 of them"),
        ("a sign @ the door", "a sign @ the door"),
        ("Grüße an zoë@büro, or zoe@example.org", "Grüße an zoë@büro, or [REDACTED_EMAIL]"),
    ];
    let tenant = Tenant::fresh();
    for (number, (content, redacted)) in cases.into_iter().enumerate() {
        let id = tenant.say(&Place::user("u"), content);
        let project = Place::project(&format!("p{number}"));
        let copy = promoted(&tenant, &id, "project", project.identifiers.clone());
        let domain_is_ascii = !content.contains("büro");
        if domain_is_ascii {
            assert_eq!(copy["content"], redacted);
        } else {
            assert!(!text(&copy["content"]).contains("zoe@example.org"), "{copy}");
        }
        assert_eq!(tenant.entry(&id)["content"], content, "the original is as it was");
        assert_eq!(copy["accessPolicy"]["policy"], "organization");

        // The vector is that of the text which is there, not of the one that was.
        let same = tenant.say_with(&Place::project("same"), json!({"content": copy["content"]}));
        let vector = |id: &str| {
            tenant.get(&format!("{id}?includeEmbedding=true")).expect(200).json["memory"]["embedding"].clone()
        };
        assert!(vector(&same).is_array());
        assert_eq!(vector(&id_of(&copy)), vector(&same), "{content}");
    }
}

#[test]
fn the_person_keeps_its_own_address() {
    let tenant = Tenant::fresh();
    let content = "I am bob@example.com, call +1 555 123 4567";
    let id = tenant.say(&Place::session("u", "s"), content);
    for (layer, identifiers) in [("user", json!({})), ("agent", json!({"agentId": "a"}))] {
        assert_eq!(promoted(&tenant, &id, layer, identifiers)["content"], content, "{layer}");
    }
}

#[test]
fn a_duplicate_in_the_target_is_the_answer() {
    let tenant = Tenant::fresh();
    let known = tenant.say(&Place::project("p"), "Write to [REDACTED_EMAIL].");
    let id = tenant.say(&Place::user("u"), "write to bob@example.com");

    let answer =
        ask(&tenant, &id, json!({"targetLayer": "project", "identifiers": {"projectId": "p"}})).expect(200);

    assert_eq!(answer.json["deduplicated"], true);
    assert_eq!(answer.json["memory"]["id"], known, "compared is what would be stored");
    assert_eq!(tenant.page(Place::project("p").with(json!({}))).total, 1);

    let fresh = promoted(&tenant, &id, "team", json!({"teamId": "t"}));
    let again =
        ask(&tenant, &id, json!({"targetLayer": "team", "identifiers": {"teamId": "t"}})).expect(200).json;
    assert_eq!((&again["memory"]["id"], &again["deduplicated"]), (&fresh["id"], &json!(true)));
}

#[test]
fn promoting_the_same_thing_many_times_at_once_makes_one_copy() {
    let tenant = Tenant::fresh();
    let id = tenant.say(&Place::user("u"), "the heron waits");
    let body = json!({"targetLayer": "project", "identifiers": {"projectId": "p"}});
    let statuses = at_once(4, |_| ask(&tenant, &id, body.clone()).status);
    assert_eq!(tenant.page(Place::project("p").with(json!({}))).total, 1, "{statuses:?}");
}

#[test]
fn what_may_not_be_promoted_is_refused() {
    let tenant = Tenant::fresh();
    let place = Place::user("u");
    let target = json!({"targetLayer": "project", "identifiers": {"projectId": "p"}});
    for mark in ["sensitive", "private"] {
        let id = tenant.say_with(&place, json!({"content": "a secret", "metadata": {mark: true}}));
        let refused = ask(&tenant, &id, target.clone()).refused(403, "FORBIDDEN");
        assert_eq!(refused.details()["reason"], "sensitive");
    }
    let archived = tenant.say_with(&place, json!({"content": "old", "kind": "archival"}));
    let refused = ask(&tenant, &archived, target.clone()).refused(409, "INVALID_STATE");
    assert_eq!(refused.details()["state"], "archived");

    let id = tenant.say(&place, "the heron waits");
    ask(&tenant, &id, json!({"targetLayer": "user"})).refused(400, "INVALID_REQUEST");
    ask(&tenant, &id, json!({"targetLayer": "user", "identifiers": {"userId": "u"}}))
        .refused(400, "INVALID_REQUEST");
    ask(&tenant, &id, json!({"targetLayer": "galaxy"})).refused(400, "INVALID_LAYER");
    ask(&tenant, &id, json!({})).refused(400, "INVALID_LAYER");
    let refused = ask(&tenant, &id, json!({"targetLayer": "project"})).refused(400, "MISSING_IDENTIFIER");
    assert_eq!(refused.details()["missing"], json!(["projectId"]));
    let foreign = json!({"targetLayer": "company", "identifiers": {"companyId": "another"}});
    ask(&tenant, &id, foreign).refused(403, "FORBIDDEN");
    ask(&tenant, &fresh_id(), target.clone()).not_found();
    ask(&tenant.as_user("v"), &id, target.clone()).not_found();
    ask(&tenant.as_user("u"), &id, json!({"targetLayer": "user", "identifiers": {"userId": "v"}}))
        .refused(403, "FORBIDDEN");
    ask(&tenant.with_header("if-match", "\"v2\""), &id, target.clone()).refused(412, "ETAG_MISMATCH");
    assert_eq!(tenant.page(Place::project("p").with(json!({}))).total, 0);
    assert!(!names(&tenant.entry(&id)).contains("lineage"));
    ask(&tenant.with_header("if-match", "\"v1\"").as_user("u"), &id, target).expect(201);
}
