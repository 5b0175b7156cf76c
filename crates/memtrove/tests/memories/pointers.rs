//! Knowledge pointers: what makes one, and what does not.

use crate::instants::*;
use crate::support::*;

fn pointer(source: &str) -> Value {
    json!({"sourceType": "adr", "sourceId": source, "contentHash": "sha256:0", "syncedAt": "2026-01-01T00:00:00Z"})
}

fn pointing(pointer: Value) -> Value {
    json!({"content": "Decision: one store", "metadata": {"knowledgePointer": pointer}})
}

#[test]
fn a_pointer_has_four_members_and_may_have_three_more() {
    let tenant = Tenant::fresh();
    let place = Place::project("p");
    for source_type in ["adr", "policy", "pattern", "spec"] {
        let given = merged(pointer("adr-7"), &json!({"sourceType": source_type}));
        let entry = tenant.added(place.with(pointing(given.clone())));
        for (name, value) in given.as_object().unwrap() {
            if name == "syncedAt" {
                assert_eq!(instant(&entry["metadata"]["knowledgePointer"][name]), instant(value));
            } else {
                assert_eq!(&entry["metadata"]["knowledgePointer"][name], value);
            }
        }
    }
    for source_layer in ["project", "team", "org", "company"] {
        let more = json!({"sourceLayer": source_layer, "isOrphaned": true, "isStale": false});
        let entry = tenant.added(place.with(pointing(merged(pointer("adr-7"), &more))));
        for (name, value) in more.as_object().unwrap() {
            assert_eq!(&entry["metadata"]["knowledgePointer"][name], value);
        }
    }
}

#[test]
fn anything_else_is_no_pointer() {
    let tenant = Tenant::fresh();
    let place = Place::project("p");
    let id = tenant.say(&place, "not a pointer");
    let without = |member: &str| {
        let mut pointer = pointer("adr-7");
        pointer.as_object_mut().unwrap().shift_remove(member);
        pointer
    };
    let with = |member: &str, value: Value| merged(pointer("adr-7"), &json!({member: value}));
    let wrong = [
        json!("adr-7"),
        json!([]),
        json!({}),
        without("sourceType"),
        without("sourceId"),
        without("contentHash"),
        without("syncedAt"),
        with("sourceType", json!("novel")),
        with("sourceId", json!("")),
        with("sourceId", json!(7)),
        with("contentHash", json!("")),
        with("contentHash", json!(null)),
        with("syncedAt", json!("yesterday")),
        with("sourceLayer", json!("user")),
        with("isOrphaned", json!("no")),
        with("isStale", json!(1)),
    ];
    for wrong in wrong {
        tenant.add(place.with(pointing(wrong.clone()))).invalid("knowledgePointer");
        tenant.change(&id, json!({"metadata": {"knowledgePointer": wrong}})).invalid("knowledgePointer");
    }
    assert_eq!(tenant.page(place.with(json!({}))).total, 1);
    assert_eq!(tenant.entry(&id)["version"], 1);
}

#[test]
fn a_pointer_can_be_put_on_and_taken_off() {
    let tenant = Tenant::fresh();
    let place = Place::project("p");
    let (plain, id) = (tenant.say(&place, "plain"), tenant.say_with(&place, pointing(pointer("adr-7"))));
    let pointers = |has: bool| tenant.page(place.with(json!({"filter": {"hasKnowledgePointer": has}}))).ids();
    assert_eq!((pointers(true), pointers(false)), (vec![id.clone()], vec![plain.clone()]));

    let taken_off = tenant.changed(&id, json!({"metadata": {"knowledgePointer": null}}));
    assert_eq!(taken_off["metadata"], json!({}));
    tenant.changed(&plain, json!({"metadata": {"knowledgePointer": pointer("adr-8")}}));
    assert_eq!((pointers(true), pointers(false)), (vec![plain], vec![id]));
}
