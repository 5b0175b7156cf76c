//! The states of an entry: how it gets into each, what that hides, and the way back.

use crate::instants::*;
use crate::support::*;

/// Asks for one step in an entry's life: `archive` or `restore`.
#[track_caller]
fn step(tenant: &Tenant, id: &str, verb: &str) -> Answer {
    tenant.client.post_nothing(&format!("/v1/memories/{id}/{verb}"))
}

/// The entry after such a step, which must succeed.
#[track_caller]
fn stepped(tenant: &Tenant, id: &str, verb: &str) -> Value {
    let answer = step(tenant, id, verb).expect(200);
    assert_members(&answer.json, &["memory"]);
    let entry = settled(&answer.json["memory"]);
    assert_eq!(answer.header("etag"), format!("\"v{}\"", entry["version"]), "{}", answer.describe());
    entry
}

#[test]
fn archiving_moves_an_entry_out_of_sight_and_restoring_brings_it_back() {
    let tenant = Tenant::fresh();
    let kinds = [
        (Place::user("u"), "user_personal"),
        (Place::user("u"), "semantic"),
        (Place::user("u"), "episodic"),
        (Place::session("u", "s"), "session"),
        (Place::project("p"), "semantic"),
        (Place::agent("a", "u"), "working"),
    ];
    for (place, kind) in kinds {
        let before = tenant.added(place.with(json!({"content": "the heron waits", "kind": kind})));
        let id = id_of(&before);
        assert_eq!((&before["state"], &before["kind"]), (&json!("active"), &json!(kind)));

        let archived = stepped(&tenant, &id, "archive");

        assert_eq!((&archived["state"], &archived["kind"]), (&json!("archived"), &json!("archival")));
        assert_eq!(archived["originKind"], kind);
        assert_eq!(archived["version"], 2);
        assert_eq!(archived["createdAt"], before["createdAt"]);
        assert!(instant(&archived["updatedAt"]) > instant(&before["updatedAt"]));
        for member in ["content", "contentHash", "identifiers", "layer", "metadata", "embeddingModel"] {
            assert_eq!(archived[member], before[member], "{member} of {kind}");
        }
        assert_eq!(tenant.entry(&id), archived, "by its id it is still there");

        let restored = stepped(&tenant, &id, "restore");

        assert_eq!((&restored["state"], &restored["kind"]), (&json!("active"), &json!(kind)));
        assert!(!names(&restored).contains("originKind"), "{restored}");
        assert_eq!(restored["version"], 3);
        assert_eq!(tenant.found_ids(place.everything(json!({"kinds": [kind]}))), [id.as_str()]);
        assert_eq!(tenant.delete(&id).expect(200).json["deleted"], true);
    }
}

#[test]
fn the_archived_is_found_by_those_who_ask_for_it() {
    let tenant = Tenant::fresh();
    let place = Place::user("u");
    let live = tenant.say(&place, "the heron waits");
    let gone = tenant.say(&place, "the heron waits no more");
    stepped(&tenant, &gone, "archive");

    let lists = |members: Value| sorted(tenant.all(place.with(members)).iter().map(id_of));
    let searches = |members: Value| sorted(tenant.found_ids(place.everything(members)));
    let (both, none): (Vec<_>, Vec<String>) = (sorted([live.clone(), gone.clone()]), Vec::new());
    let (live, gone) = (vec![live], vec![gone]);
    for ask in [&lists as &dyn Fn(Value) -> Vec<String>, &searches] {
        assert_eq!(ask(json!({})), live);
        assert_eq!(ask(json!({"includeArchived": false})), live);
        assert_eq!(ask(json!({"includeArchived": true})), both);
        assert_eq!(ask(json!({"kinds": ["archival"]})), gone);
        assert_eq!(ask(json!({"kinds": ["user_personal", "archival"]})), both);
        assert_eq!(ask(json!({"kinds": ["user_personal"], "includeArchived": true})), both);
        assert_eq!(ask(json!({"kinds": ["semantic"]})), none);
    }
    assert_eq!(lists(json!({"state": "archived"})), gone);
    assert_eq!(lists(json!({"state": "active"})), live);
    assert_eq!(lists(json!({"state": "decayed"})), none);
    assert_eq!(lists(json!({"state": "ARCHIVED"})), gone, "enumerations in any letter case");
    let answer = tenant.search(place.everything(json!({"includeArchived": true}))).expect(200);
    assert_eq!(answer.json["totalCount"], 2);
    assert_eq!(tenant.search(place.everything(json!({}))).expect(200).json["totalCount"], 1);
}

#[test]
fn a_step_that_is_not_in_the_table_is_a_conflict() {
    let tenant = Tenant::fresh();
    let id = tenant.say(&Place::user("u"), "the heron waits");
    let refused = step(&tenant, &id, "restore").refused(409, "INVALID_STATE");
    assert_eq!(refused.details()["state"], "active");
    stepped(&tenant, &id, "archive");
    let refused = step(&tenant, &id, "archive").refused(409, "INVALID_STATE");
    assert_eq!(refused.details()["state"], "archived");
    assert_eq!(tenant.entry(&id)["version"], 2, "a refused step is no change");
    for unknown in [fresh_id(), "no-uuid".to_owned()] {
        step(&tenant, &unknown, "archive").not_found();
        step(&tenant, &unknown, "restore").not_found();
    }
    tenant.delete(&id).expect(200);
    step(&tenant, &id, "restore").not_found();
}

#[test]
fn what_is_added_as_archival_is_archived_from_the_start() {
    let tenant = Tenant::fresh();
    for (place, default) in [(Place::user("u"), "user_personal"), (Place::project("p"), "semantic")] {
        let entry = tenant.added(place.with(json!({"content": "an old note", "kind": "archival"})));
        assert_eq!((&entry["state"], &entry["kind"]), (&json!("archived"), &json!("archival")));
        assert!(!names(&entry).contains("originKind"), "{entry}");
        assert_eq!(tenant.found_ids(place.everything(json!({}))), Vec::<String>::new());

        let restored = stepped(&tenant, &id_of(&entry), "restore");

        assert_eq!(restored["kind"], default, "it never had a kind of its own");
        assert_eq!(tenant.found_ids(place.everything(json!({}))), [id_of(&entry)]);
    }
}

#[test]
fn steps_honour_if_match_and_one_of_many_wins() {
    let tenant = Tenant::fresh();
    let id = tenant.say(&Place::user("u"), "the heron waits");
    let stale = step(&tenant.with_header("if-match", "\"v7\""), &id, "archive").refused(412, "ETAG_MISMATCH");
    assert_eq!(stale.details()["latestVersion"], 1);
    assert_eq!(stale.details()["latest_etag"], "\"v1\"");
    step(&tenant.with_header("if-match", "W/\"v1\""), &id, "archive").refused(412, "ETAG_MISMATCH");
    step(&tenant.with_header("if-match", "\"v1\""), &id, "archive").expect(200);
    step(&tenant.with_header("if-match", "\"v1\""), &id, "restore").refused(412, "ETAG_MISMATCH");
    step(&tenant.with_header("if-match", "*"), &id, "restore").expect(200);

    let statuses = at_once(6, |_| step(&tenant, &id, "archive").status);

    assert_eq!(sorted(statuses), [200, 409, 409, 409, 409, 409]);
    assert_eq!(tenant.entry(&id)["version"], 4, "one step, one version");
}

#[test]
fn what_is_archived_can_be_changed_and_stays_what_it_is() {
    let tenant = Tenant::fresh();
    let place = Place::user("u");
    let id = tenant.say_with(&place, json!({"content": "the heron waits", "metadata": {"a": 1}}));
    stepped(&tenant, &id, "archive");

    let changed = tenant.changed(&id, json!({"metadata": {"b": 2}}));

    assert_eq!(changed["metadata"], json!({"a": 1, "b": 2}));
    assert_eq!((&changed["state"], &changed["version"]), (&json!("archived"), &json!(3)));
    let restored = stepped(&tenant, &id, "restore");
    assert_eq!(restored["metadata"], json!({"a": 1, "b": 2}));
}

#[test]
fn an_archived_fact_is_no_fact_until_it_is_restored() {
    let tenant = Tenant::fresh();
    let place = Place::project("p");
    let statement =
        json!({"factType": "rule", "subject": "build", "predicate": "runs_on", "object": "linux"});
    let id = id_of(&tenant.stated(&place, statement.clone()));
    let query = || tenant.facts(json!({"identifiers": place.identifiers})).expect(200).json;

    assert_eq!(stepped(&tenant, &id, "archive")["originKind"], "procedural");
    assert_eq!(query()["totalCount"], 0);
    let restored = stepped(&tenant, &id, "restore");
    assert_eq!((&restored["kind"], &restored["fact"]["subject"]), (&json!("procedural"), &json!("build")));
    assert_eq!(query()["totalCount"], 1);

    stepped(&tenant, &id, "archive");
    let second = tenant.fact(place.with(statement));
    assert!(second.status == 201 || second.status == 200, "{}", second.describe());
    let restored = step(&tenant, &id, "restore");
    assert!(restored.status < 500, "{}", restored.describe());
    assert_eq!(query()["totalCount"], 1, "a scope states a fact once");
}

#[test]
fn a_user_cannot_step_with_what_belongs_to_another() {
    let tenant = Tenant::fresh();
    let id = tenant.say(&Place::user("u"), "mine");
    for verb in ["archive", "restore"] {
        step(&tenant.as_user("v"), &id, verb).not_found();
        step(&Tenant::fresh(), &id, verb).not_found();
    }
    assert_eq!(tenant.entry(&id)["version"], 1);
    step(&tenant.as_user("u"), &id, "archive").expect(200);
}

#[test]
fn an_entry_without_an_embedding_is_created_and_not_found_by_meaning() {
    let tenant = Tenant::fresh();
    let place = Place::user("u");
    let entry = create_without_embedding(&tenant, "u", "the heron waits in the reeds");
    let id = id_of(&entry);

    let stored = tenant.entry(&id);

    assert_eq!(stored["state"], "created");
    assert!(!names(&stored).contains("embeddingModel"), "{stored}");
    assert_eq!(tenant.page(place.with(json!({"state": "created"}))).ids(), [id.as_str()]);
    assert_eq!(tenant.page(place.with(json!({}))).total, 1);
    let query = json!({"query": "the heron waits in the reeds", "mode": "semantic"});
    assert_eq!(tenant.found_ids(place.everything(query)), Vec::<String>::new());

    let changed = tenant.change(&id, json!({"content": "the heron has flown"})).expect(200).json;
    assert_eq!(changed["embeddingRegenerated"], true);
    assert_eq!(changed["memory"]["state"], "active");
    assert_eq!(tenant.found_ids(place.everything(json!({"mode": "semantic"}))), [id]);
}

#[test]
fn what_is_archived_outlives_the_process_whatever_it_was() {
    let mut server = server_with("");
    let tenant = Tenant::of(&server, "acme");
    let place = Place::user("u");
    let kept = tenant.say_with(&place, json!({"content": "scratch that matters", "kind": "working"}));
    let lost = tenant.say_with(&place, json!({"content": "scratch", "kind": "working"}));
    let before = stepped(&tenant, &kept, "archive");
    server.restart();
    let tenant = Tenant::of(&server, "acme");
    tenant.get(&lost).not_found();
    assert_eq!(tenant.entry(&kept), before);
    let restored = stepped(&tenant, &kept, "restore");
    assert_eq!((&restored["kind"], &restored["version"]), (&json!("working"), &json!(3)));
    assert_eq!(tenant.page(place.with(json!({"includeArchived": true}))).ids(), [kept]);
}

/// Adds an entry of a user that has no embedding; as the knowledge protocol shows it.
#[track_caller]
pub fn create_without_embedding(tenant: &Tenant, user: &str, content: &str) -> Value {
    let options = json!({"generate_embedding": false, "layer": {"type": "user", "user_id": user}});
    let body = json!({"entry": {"content": content}, "options": options});
    tenant.client.post("/openspec/v1/knowledge/create", body).expect(201).json["entry"].clone()
}
