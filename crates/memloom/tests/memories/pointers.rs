//! Knowledge pointers: what makes one, and how those that name a file learn that it changed.

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

/// The files of a user, as far as pointers need them.
struct Files {
    tenant: Tenant,
    user: &'static str,
}

impl Files {
    fn at(&self, path: &str) -> String {
        format!("/v1/tenants/{}/users/{}/files/{path}", self.tenant.name, self.user)
    }

    #[track_caller]
    fn write(&self, path: &str, content: &str) {
        let document = json!({"doc_id": "d", "schema_id": "notes", "schema_version": "1.0.0", "content": {"text": content}});
        let client = self.tenant.client.with_header("if-match", "*");
        client.send("PUT", &self.at(path), Body::Json(json!({"document": document}))).expect(200);
    }

    #[track_caller]
    fn remove(&self, path: &str) {
        let answer = self.tenant.client.with_header("if-match", "*").delete(&self.at(path));
        assert!(answer.status < 300, "{}", answer.describe());
    }
}

#[test]
fn a_pointer_at_a_file_learns_that_it_changed_and_that_it_went() {
    let server = server_with("[memories]\nsweep_interval = \"1s\"\n");
    let tenant = Tenant::of(&server, "acme");
    let files = Files { tenant: tenant.clone(), user: "u" };
    files.write("notes/a.md", "one");
    let here = [
        tenant.say_with(&Place::user("u"), pointing(pointer("file:notes/a.md"))),
        tenant.say_with(&Place::session("u", "s"), pointing(pointer("file:notes/a.md"))),
        tenant.say_with(&Place::project("p"), pointing(pointer("file:notes/a.md"))),
    ];
    let elsewhere = [
        tenant.say_with(&Place::user("v"), pointing(pointer("file:notes/a.md"))),
        tenant.say_with(&Place::user("u"), pointing(pointer("file:notes/b.md"))),
        tenant.say_with(&Place::user("u"), pointing(pointer("notes/a.md"))),
    ];
    let other = Tenant::of(&server, "other");
    let foreign = other.say_with(&Place::project("p"), pointing(pointer("file:notes/a.md")));
    let embedding = |id: &str| tenant.get(&format!("{id}?includeEmbedding=true")).expect(200).json["memory"]["embedding"].clone();
    let vectors = here.each_ref().map(|id| embedding(id));

    files.write("notes/a.md", "two");

    let mark = |id: &str, name: &str| tenant.entry(id)["metadata"]["knowledgePointer"][name] == true;
    for id in &here {
        eventually("staleness", || mark(id, "isStale").then_some(()));
        assert!(!mark(id, "isOrphaned"));
        let entry = tenant.entry(id);
        assert!(entry["version"].as_u64() >= Some(2), "it is a change: {entry}");
        assert_eq!(entry["content"], "Decision: one store");
    }
    assert_eq!(here.each_ref().map(|id| embedding(id)), vectors, "nothing was embedded again");

    files.remove("notes/a.md");

    for id in &here {
        eventually("orphanhood", || mark(id, "isOrphaned").then_some(()));
    }
    for id in &elsewhere {
        assert!(!mark(id, "isStale"), "{}", tenant.entry(id));
    }
    assert_eq!(tenant.entry(&elsewhere[2])["version"], 1, "opaque");
    assert_eq!(other.entry(&foreign)["metadata"]["knowledgePointer"], foreign_pointer());
}

/// What a pointer looks like that nobody touched.
fn foreign_pointer() -> Value {
    merged(pointer("file:notes/a.md"), &json!({"syncedAt": "2026-01-01T00:00:00Z"}))
}
