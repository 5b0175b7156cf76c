//! The knowledge protocol's batches: one after the other, each on its own.

use crate::openspec::*;
use crate::support::*;

#[track_caller]
fn ask(tenant: &Tenant, operation: &str, entries: Value, options: Value) -> Answer {
    let body = json!({"operation": operation, "entries": entries, "options": options});
    tenant.client.post(&format!("{KNOWLEDGE}/batch"), body)
}

/// Runs a batch that goes on after errors, or does not.
#[track_caller]
fn batch(tenant: &Tenant, operation: &str, entries: Value, goes_on: bool) -> Value {
    let count = list(&entries).len();
    let answer = ask(tenant, operation, entries, json!({"continue_on_error": goes_on})).expect(200);
    assert_headers(&answer);
    assert_members(&answer.json, &["operation_id", "status", "results"]);
    let results = &answer.json["results"];
    assert_members(results, &["succeeded", "failed", "errors", "items"]);
    let items = list(&results["items"]);
    assert_eq!(items.len(), count, "{}", answer.describe());
    for (index, item) in items.iter().enumerate() {
        assert_eq!(item["index"], index);
    }
    let failed = items.iter().filter(|item| item["status"] == "failed").count();
    let skipped = items.iter().filter(|item| item["status"] == "skipped").count();
    assert_eq!(
        (&results["failed"], &results["succeeded"]),
        (&json!(failed), &json!(count - failed - skipped))
    );
    let errors = list(&results["errors"]);
    assert_eq!(errors.len(), failed);
    for error in errors {
        for member in ["index", "code", "name", "message"] {
            assert!(!error[member].is_null(), "{error}");
        }
    }
    answer.json
}

fn item(content: &str) -> Value {
    json!({"entry": {"content": content}, "options": {"layer": {"type": "user", "user_id": "u"}}})
}

fn statuses(batch: &Value) -> Vec<String> {
    list(&batch["results"]["items"]).iter().map(|item| text(&item["status"])).collect()
}

fn contents(tenant: &Tenant) -> Vec<String> {
    sorted(tenant.contents(Place::user("u").with(json!({}))))
}

#[test]
fn every_operation_does_what_it_does_alone() {
    let tenant = Tenant::fresh();

    let made = batch(&tenant, "create", json!([item("one"), item("two"), item("three")]), false);
    assert_eq!((&made["status"], statuses(&made)), (&json!("completed"), vec!["created".to_owned(); 3]));
    assert_eq!(contents(&tenant), ["one", "three", "two"]);
    let ids: Vec<String> = list(&made["results"]["items"]).iter().map(id_of).collect();
    assert_eq!(tenant.knowledge(&ids[1])["content"], "two");

    let changed = batch(&tenant, "update", json!([{"id": ids[0], "entry": {"content": "uno"}}]), false);
    assert_eq!(statuses(&changed), ["updated"]);
    assert_eq!(tenant.entry(&ids[0])["version"], 2);

    let unknown = fresh_id();
    let entries = json!([
        {"id": ids[1], "entry": {"content": "due"}},
        {"entry": {"content": "four"}, "options": {"layer": {"type": "user", "user_id": "u"}}},
        {"id": unknown, "entry": {"content": "five"}, "options": {"layer": {"type": "user", "user_id": "u"}}},
    ]);
    let put = batch(&tenant, "upsert", entries, false);
    assert_eq!(statuses(&put), ["updated", "created", "created"]);
    assert_ne!(put["results"]["items"][2]["id"], json!(unknown), "a fresh id");
    assert_eq!(contents(&tenant), ["due", "five", "four", "three", "uno"]);

    let gone = batch(
        &tenant,
        "delete",
        json!([{"id": ids[0]}, {"id": ids[1], "options": {"hard_delete": true}}]),
        false,
    );
    assert_eq!(statuses(&gone), ["deleted", "deleted"]);
    assert_eq!(contents(&tenant), ["five", "four", "three"]);
}

#[test]
fn it_stops_at_the_first_failure_unless_told_to_go_on() {
    let tenant = Tenant::fresh();
    let entries = json!([item("one"), item("  "), item("three")]);

    let stopped = batch(&tenant, "create", entries.clone(), false);
    assert_eq!(
        (&stopped["status"], statuses(&stopped)),
        (&json!("failed"), ["created", "failed", "skipped"].map(str::to_owned).to_vec())
    );
    assert_eq!(contents(&tenant), ["one"], "earlier items stay, later ones are not attempted");
    let error = &stopped["results"]["errors"][0];
    assert_eq!(
        (&error["index"], &error["code"], &error["name"]),
        (&json!(1), &json!(400), &json!("INVALID_REQUEST"))
    );

    let went_on = batch(&tenant, "create", entries, true);
    assert_eq!(
        (&went_on["status"], statuses(&went_on)),
        (&json!("completed"), ["created", "failed", "created"].map(str::to_owned).to_vec())
    );
    assert_eq!(contents(&tenant), ["one", "one", "three"]);

    let nothing = batch(&tenant, "create", json!([item(""), item(" ")]), true);
    assert_eq!(nothing["status"], "failed", "nothing succeeded");
}

#[test]
fn what_is_not_there_is_a_failure() {
    let tenant = Tenant::fresh();
    let id = id_of(&tenant.created(json!({"content": "one"}), json!({"type": "user", "user_id": "u"})));
    let unknown = fresh_id();
    for (operation, entries) in [
        ("delete", json!([{"id": unknown}, {"id": id}])),
        (
            "update",
            json!([{"id": unknown, "entry": {"content": "two"}}, {"id": id, "entry": {"content": "two"}}]),
        ),
    ] {
        let stopped = batch(&tenant, operation, entries, false);
        assert_eq!(statuses(&stopped), ["failed", "skipped"], "{operation}");
        let error = &stopped["results"]["errors"][0];
        assert_eq!(
            (&error["code"], &error["name"], &error["id"]),
            (&json!(404), &json!("MEMORY_NOT_FOUND"), &json!(unknown))
        );
        assert_eq!(tenant.entry(&id)["version"], 1);
    }
    let theirs = batch(&tenant.as_user("v"), "delete", json!([{"id": id}]), true);
    assert_eq!(statuses(&theirs), ["failed"], "another's does not exist");
    let without = batch(&tenant, "delete", json!([{}]), true);
    assert_eq!(statuses(&without), ["failed"]);
}

#[test]
fn a_batch_has_one_to_five_hundred_items() {
    let tenant = Tenant::fresh();
    ask(&tenant, "create", json!([]), json!({})).fails(400, 400, "INVALID_REQUEST");
    let many: Vec<Value> = (0..501).map(|n| item(&format!("note {n}"))).collect();
    ask(&tenant, "create", json!(many), json!({})).fails(422, 422, "BATCH_TOO_LARGE");
    assert_eq!(contents(&tenant), Vec::<String>::new());
    let full = batch(&tenant, "create", json!(many[..500]), false);
    assert_eq!(full["results"]["succeeded"], 500);
    ask(&tenant, "explode", json!([item("one")]), json!({})).fails(400, 400, "INVALID_REQUEST");
    ask(&tenant, "create", json!({}), json!({})).fails(400, 400, "INVALID_REQUEST");
    ask(&tenant, "create", json!([item("one")]), json!({"continue_on_error": "yes"})).fails(
        400,
        400,
        "INVALID_REQUEST",
    );
    assert_eq!(tenant.page(Place::user("u").with(json!({}))).total, 500);
}

#[test]
fn one_bad_item_is_its_own_problem() {
    let tenant = Tenant::fresh();
    let foreign = json!({"entry": {"content": "a"}, "options": {"layer": {"type": "user", "user_id": "w"}}});
    let items = json!([7, {"entry": 7}, {}, foreign, item("good")]);
    let done = batch(&tenant.as_user("u"), "create", items, true);
    assert_eq!(statuses(&done), ["failed", "failed", "failed", "failed", "created"]);
    assert_eq!(done["results"]["errors"][3]["code"], 403);
    assert_eq!(contents(&tenant), ["good"]);
}
