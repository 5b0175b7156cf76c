//! Memories that point at files hear what becomes of them.

use super::*;

/// Adds a memory that points at a file in the version with this hash; its id.
#[track_caller]
fn point(tenant: &Tenant, place: &Place, path: &str, hash: &str) -> String {
    let pointer = json!({
        "sourceType": "spec", "sourceId": format!("file:{path}"), "contentHash": hash, "syncedAt": "2026-01-31T12:00:00Z",
        "keeper": "anna",
    });
    tenant
        .say_with(place, json!({"content": format!("see {path}"), "metadata": {"knowledgePointer": pointer}}))
}

/// Whether an entry is stale and orphaned, as far as it says.
#[track_caller]
fn flags(tenant: &Tenant, id: &str) -> [bool; 2] {
    let pointer = &tenant.entry(id)["metadata"]["knowledgePointer"];
    ["isStale", "isOrphaned"].map(|name| pointer[name].as_bool().unwrap_or(false))
}

#[track_caller]
fn becomes(tenant: &Tenant, id: &str, expected: [bool; 2]) {
    until(&format!("{expected:?} of {id}"), || flags(tenant, id) == expected);
}

/// The hash of a file's newest version, as the audit trail has it.
#[track_caller]
fn audited_hash(tenant: &Tenant, user: &str, path: &str) -> String {
    let trail =
        tenant.as_user("admin").client.get(&at(tenant, user, &format!("/audit?path={path}"))).expect(200);
    text(&list(&trail.json["records"]).last().unwrap()["document_sha256"])
}

fn sha256(text: &str) -> String {
    memtrove_core::files::canonical::sha256_hex(text.as_bytes())
}

#[test]
fn a_pointer_is_stale_while_the_file_says_something_else() {
    let tenant = Tenant::fresh();
    let first = put(&tenant, "dana", "spec.md", "*", "one");
    let first_hash = format!("sha256:{}", audited_hash(&tenant, "dana", "spec.md"));
    let by_audit = point(&tenant, &Place::user("dana"), "spec.md", &first_hash);
    let by_text = point(&tenant, &Place::agent("a1", "dana"), "spec.md", &sha256("one"));
    let other = point(&tenant, &Place::user("dana"), "other.md", "sha256:00");

    let second = put(&tenant, "dana", "spec.md", &text(&first["etag"]), "two");

    for id in [&by_audit, &by_text] {
        becomes(&tenant, id, [true, false]);
        assert_eq!(tenant.entry(id)["version"], 2);
        assert_eq!(tenant.entry(id)["metadata"]["knowledgePointer"]["keeper"], "anna");
    }
    assert_eq!((flags(&tenant, &other), &tenant.entry(&other)["version"]), ([false, false], &json!(1)));
    let third = put(&tenant, "dana", "spec.md", &text(&second["etag"]), "one");
    becomes(&tenant, &by_text, [false, false]);
    assert_eq!(flags(&tenant, &by_audit), [true, false], "the text is back, the version is another");
    let synced = json!({"metadata": {"knowledgePointer": {
        "sourceType": "spec", "sourceId": "file:spec.md", "syncedAt": "2026-02-01T12:00:00Z",
        "contentHash": audited_hash(&tenant, "dana", "spec.md"),
    }}});
    tenant.changed(&by_audit, synced);
    put(&tenant, "dana", "spec.md", &text(&third["etag"]), "three");
    becomes(&tenant, &by_audit, [true, false]);
    assert!(tenant.found(Place::user("dana").everything(json!({"query": "spec.md"})))[0].contains("spec.md"));
}

#[test]
fn personal_pointers_follow_their_own_users_files_and_shared_ones_the_tenants() {
    let (tenant, elsewhere) = (Tenant::fresh(), Tenant::fresh());
    let of_dana = point(&tenant, &Place::user("dana"), "spec.md", "sha256:00");
    let of_bob = point(&tenant, &Place::session("bob", "s1"), "spec.md", "sha256:00");
    let of_project = point(&tenant, &Place::project("p1"), "spec.md", "sha256:00");
    let foreign = point(&elsewhere, &Place::user("dana"), "spec.md", "sha256:00");
    let foreign_project = point(&elsewhere, &Place::project("p1"), "spec.md", "sha256:00");

    put(&tenant, "dana", "spec.md", "*", "one");

    becomes(&tenant, &of_dana, [true, false]);
    becomes(&tenant, &of_project, [true, false]);
    assert_eq!(flags(&tenant, &of_bob), [false, false]);
    for id in [&foreign, &foreign_project] {
        assert_eq!(elsewhere.entry(id)["version"], 1);
    }
    let records = tenant.as_user("admin").client.get(&at(&tenant, "dana", "/audit")).expect(200);
    let marked =
        list(&records.json["records"]).into_iter().find(|record| record["principal"] == "system:pointers");
    assert_eq!(marked.unwrap()["path"], json!(format!("memories/{of_dana}")));
}

#[test]
fn a_pointer_at_files_of_somebody_who_was_forgotten_is_orphaned() {
    let tenant = Tenant::fresh();
    put(&tenant, "docs", "spec.md", "*", "one");
    let id = point(&tenant, &Place::project("p1"), "spec.md", &sha256("one"));

    forget(&tenant, "docs");

    assert_eq!(flags(&tenant, &id), [false, true]);
    put(&tenant, "docs", "spec.md", "*", "two");
    becomes(&tenant, &id, [true, false]);
}

#[test]
fn a_pointer_at_a_file_that_was_deleted_or_moved_away_is_orphaned() {
    let tenant = Tenant::fresh();
    let spec = put(&tenant, "dana", "spec.md", "*", "one");
    let plan = put(&tenant, "dana", "plan.md", "*", "two");
    let at_spec = point(&tenant, &Place::user("dana"), "spec.md", &sha256("one"));
    let shared = point(&tenant, &Place::project("p1"), "plan.md", &sha256("two"));
    let at_plan = point(&tenant, &Place::user("dana"), "plan.md", &sha256("two"));
    let ahead = point(&tenant, &Place::user("dana"), "plans/next.md", "sha256:00");
    let matching = |etag: &Value| tenant.client.with_header("if-match", &text(etag));

    let body = json!({"path": "spec.md"});
    matching(&spec["etag"]).post(&at(&tenant, "dana", "/files:delete"), body).expect(200);
    becomes(&tenant, &at_spec, [false, true]);
    let body = json!({"from": "plan.md", "to": "plans/next.md"});
    matching(&plan["etag"]).post(&at(&tenant, "dana", "/files:move"), body).expect(200);
    becomes(&tenant, &at_plan, [false, true]);
    becomes(&tenant, &shared, [false, true]);
    becomes(&tenant, &ahead, [true, false]);

    put(&tenant, "dana", "spec.md", "*", "one");
    becomes(&tenant, &at_spec, [false, false]);
}

#[test]
fn many_pointers_at_one_file_all_hear_of_it() {
    let tenant = Tenant::fresh();
    let ids: Vec<String> =
        (0..120).map(|_| point(&tenant, &Place::project("p1"), "a/spec.md", "sha256:00")).collect();
    put(&tenant, "docs", "a/spec.md", "*", "one");
    for id in &ids {
        becomes(&tenant, id, [true, false]);
    }
}
