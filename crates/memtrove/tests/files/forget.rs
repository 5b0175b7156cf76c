//! Forgetting a user: the report, what is gone everywhere, what others keep, and what is left on the disk.

use crate::support::*;
use rusqlite::types::ValueRef;
use std::collections::HashSet;
use std::path::Path;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

static SERVER: LazyLock<TestServer> = LazyLock::new(local_server);

/// The scope's user, as the conversations see it.
#[track_caller]
fn speaker(server: &TestServer, scope: &Scope) -> Client {
    server.as_user(&scope.user).with_key(AGENT).in_tenant(&scope.tenant)
}

/// Somebody else in the scope's tenant.
#[track_caller]
fn someone(server: &TestServer, scope: &Scope, role: &str) -> Client {
    server.someone(role).with_key(AGENT).in_tenant(&scope.tenant)
}

/// The admin of the scope's tenant.
#[track_caller]
fn admin(server: &TestServer, scope: &Scope) -> Client {
    server.as_user("admin").with_key(AGENT).in_tenant(&scope.tenant)
}

#[track_caller]
fn start(owner: &Client, title: &str) -> String {
    owner.post("/v1/conversations", json!({"title": title})).expect(201).id()
}

fn entries(conversation: &str) -> String {
    format!("/v1/conversations/{conversation}/entries")
}

fn said(text: &str) -> Value {
    json!({"channel": "history", "contentType": "history", "content": [{"role": "USER", "text": text}]})
}

fn noted(text: &str) -> Value {
    json!({"channel": "memory", "contentType": "notes", "content": [text]})
}

#[track_caller]
fn say(who: &Client, conversation: &str, text: &str) -> String {
    who.post(&entries(conversation), said(text)).expect(201).id()
}

#[track_caller]
fn share(owner: &Client, conversation: &str, with: &str, level: &str) {
    let body = json!({"userId": with, "accessLevel": level});
    owner.post(&format!("/v1/conversations/{conversation}/memberships"), body).expect(201);
}

#[track_caller]
fn hits(who: &Client, route: &str, query: &str) -> Vec<String> {
    who.post(route, json!({"query": query, "includeDeleted": true})).expect_page().all("conversationId")
}

/// Requires exactly the contract's members and these counts.
#[track_caller]
fn assert_report(answer: Answer, documents: u64, events: u64, audit: u64, conversations: Value) {
    let answer = answer.expect(200).expect_members(&[
        "documents_deleted",
        "events_deleted",
        "audit_deleted",
        "snapshots_deleted",
        "search_documents_deleted",
        "conversations",
        "memories",
    ]);
    let count =
        |member: &str| answer.json[member].as_u64().unwrap_or_else(|| panic!("{}", answer.describe()));
    let counts = ["documents_deleted", "events_deleted", "audit_deleted", "snapshots_deleted"].map(count);
    assert_eq!(counts, [documents, events, audit, 0], "{}", answer.describe());
    assert_eq!(answer.json["conversations"], conversations, "{}", answer.describe());
    // Events are memories, too.
    assert_eq!(answer.json["memories"], json!({"deleted": events, "anonymized": 0}), "{}", answer.describe());
    count("search_documents_deleted");
}

#[track_caller]
fn assert_nothing_to_forget(answer: Answer) {
    assert_report(answer, 0, 0, 0, json!({"deleted": 0, "anonymized": 0}));
}

/// Requires that no route of the files surface knows anything of the scope.
#[track_caller]
fn assert_unknown(scope: &Scope, path: &str, change: &str) {
    let auditor = scope.as_admin();
    assert_eq!(scope.paths(""), Vec::<String>::new());
    scope.get(path).refused(404, "DOCUMENT_NOT_FOUND");
    let files = scope.post("/context:assemble", json!({"files": [{"path": path}]})).expect(200);
    assert_eq!(files.json, json!({"files": [], "dropped_files": []}));
    assert_eq!(scope.search(json!({"top_k": 500})), Vec::<Value>::new());
    assert_eq!(scope.search(json!({"query": "walrus a e i o u"})), Vec::<Value>::new());
    assert_eq!(scope.audit(), Vec::<Value>::new());
    auditor.client.get(&scope.at(&format!("/audit/{change}"))).refused(404, "AUDIT_NOT_FOUND");
    scope.reconstruct(path, change).refused(404, "AUDIT_NOT_FOUND");
    let ever = json!({"path": path, "as_of_utc": "2099-01-01T00:00:00Z"});
    auditor.post("/audit:reconstruct", ever).refused(404, "AUDIT_NOT_FOUND");
    let rules =
        json!({"events_days": 0, "audit_days": 0, "snapshots_days": 0, "as_of_utc": "2099-01-01T00:00:00Z"});
    let retained = auditor.retain(rules).expect(200).json;
    for kind in ["events_deleted", "audit_deleted", "snapshots_deleted", "search_documents_deleted"] {
        assert_eq!(retained[kind], 0, "{retained}");
    }
}

// ---- files, events, audit

#[test]
fn what_the_second_address_refuses_says_which_operation_it_was() {
    let (alice, big) = (SERVER.someone("alice"), "x".repeat(21 << 20));
    for (answer, status, code) in [
        (SERVER.anonymous().post("/v1/users:forget", json!({"userId": "a"})), 401, "UNAUTHORIZED"),
        (alice.post("/v1/users:forget", json!({"userId": "somebody else"})), 403, "FORBIDDEN"),
        (alice.in_tenant("another").post("/v1/users:forget", json!({"userId": "a"})), 403, "FORBIDDEN"),
        (alice.post("/v1/users:forget", json!({})), 400, "INVALID_REQUEST"),
        (alice.post("/v1/users:forget", json!({"userId": 7})), 400, "INVALID_REQUEST"),
        (alice.post("/v1/users:forget", json!([])), 400, "INVALID_REQUEST"),
        (alice.send("POST", "/v1/users:forget", Body::json_text("{")), 400, "INVALID_REQUEST"),
        (alice.post("/v1/users:forget", json!({"userId": big})), 413, "REQUEST_TOO_LARGE"),
        (alice.get("/v1/users:forget"), 405, "METHOD_NOT_ALLOWED"),
    ] {
        let answer = answer.expect(status);
        let error = &answer.json["error"];
        let members = ["code", "message", "operation", "retryable", "details", "request_id"];
        assert_eq!(names(error), members.into(), "{}", answer.describe());
        assert_eq!(
            (&error["code"], &error["retryable"]),
            (&json!(code), &json!(false)),
            "{}",
            answer.describe()
        );
        let operation = if status == 405 { "unknown" } else { "user.forget" };
        assert_eq!(error["operation"], operation, "{}", answer.describe());
        assert_eq!(error["request_id"], answer.header("x-request-id"));
    }
}

#[test]
fn the_report_counts_what_is_gone() {
    let scope = Scope::fresh(&SERVER);
    let stored = scope.create("a.md", json!({"text": "n0;"}));
    let patch = json!({"edits": [{"old_text": "n0;", "new_text": "n1;"}]});
    let stored = scope.patch("a.md", &stored.etag, patch).stored();
    scope.put("a.md", &stored.etag, note("two")).stored();
    scope.create("dir/b.json", json!({}));
    scope.create("no-extension", json!({}));
    scope.tell("evt_01", json!({}));
    scope.tell("evt_01", json!({}));
    scope.tell("evt_02", json!({}));

    let answer = scope.forget();

    assert!([json!(0), json!(2)].contains(&answer.json["search_documents_deleted"]), "{}", answer.describe());
    assert_report(answer, 3, 2, 5, json!({"deleted": 0, "anonymized": 0}));
}

#[test]
fn upstream_defect_11_markdown_is_counted_and_no_index_finds_what_is_forgotten() {
    let scope = Scope::fresh(&SERVER);
    scope.create("profile.md", json!({"text": "walrus"}));
    scope.create("long_term_memory.md", json!({}));
    scope.tell("evt_01", json!({"digest": "walrus", "keywords": ["tusk"]}));
    scope.tell("evt_02", json!({"digest": "expired walrus", "timestamp": "2001-01-01T00:00:00Z"}));
    let rules = json!({"events_days": 30, "audit_days": 30, "snapshots_days": 30, "as_of_utc": "2026-02-20T00:00:00Z"});
    scope.retain(rules).expect(200);
    assert_eq!(scope.found(json!({"query": "walrus"})), ["evt_01"], "an expired event is not found either");

    let report = scope.forget().expect(200);

    assert_eq!(report.json["documents_deleted"], 2);
    for query in ["walrus", "tusk", "", "expired"] {
        assert_eq!(scope.search(json!({"query": query})), Vec::<Value>::new(), "{query}");
    }
}

#[test]
fn nothing_of_the_user_is_readable_by_any_route() {
    let scope = Scope::fresh(&SERVER);
    let stored = scope.create("secret-diary.md", json!({"text": "n0;"}));
    scope
        .patch("secret-diary.md", &stored.etag, json!({"edits": [{"old_text": "n0;", "new_text": "n1;"}]}))
        .stored();
    scope.tell("secret-event", json!({"digest": "walrus"}));
    let change = scope.audit()[1]["change_id"].as_str().unwrap().to_owned();

    scope.forget().expect(200);

    assert_unknown(&scope, "secret-diary.md", &change);
    let feed = admin(&SERVER, &scope).get("/v1/changes?limit=1000").expect(200);
    assert!(!feed.text.contains("secret-"), "the change feed remembers: {}", feed.text);
    scope
        .patch("secret-diary.md", &stored.etag, json!({"edits": [{"old_text": "n0;", "new_text": "x"}]}))
        .refused(404, "DOCUMENT_NOT_FOUND");
    scope.put("secret-diary.md", &stored.etag, note("x")).refused(412, "ETAG_MISMATCH");
    assert_nothing_to_forget(scope.forget());
}

#[test]
fn nothing_comes_back_with_a_restart() {
    let mut server = local_server();
    let scope = Scope::fresh(&server);
    scope.create("a.md", json!({}));
    scope.tell("evt_01", json!({"digest": "walrus"}));
    let change = scope.audit()[0]["change_id"].as_str().unwrap().to_owned();
    scope.forget().expect(200);
    server.restart();
    let scope = Scope::of(&server, &scope.tenant, &scope.user);

    assert_unknown(&scope, "a.md", &change);
    assert_nothing_to_forget(scope.forget());
}

#[test]
fn an_unknown_user_can_be_forgotten() {
    let scope = Scope::fresh(&SERVER);
    assert_nothing_to_forget(scope.forget());
    assert_nothing_to_forget(scope.forget());
}

#[test]
fn other_scopes_are_untouched() {
    let scope = Scope::fresh(&SERVER);
    let others = [
        Scope::of(&SERVER, &scope.tenant, &fresh_name("user")),
        Scope::of(&SERVER, &fresh_name("tenant"), &scope.user),
        Scope::of(&SERVER, &scope.tenant, &scope.user.to_uppercase()),
        Scope::of(&SERVER, &scope.tenant.to_uppercase(), &scope.user),
        Scope::of(&SERVER, &scope.tenant, &format!("{}x", scope.user)),
    ];
    for scope in others.iter().chain([&scope]) {
        scope.create("a.md", json!({"text": "mine"}));
        scope.tell("evt_01", json!({"digest": "walrus"}));
        scope.with_header("idempotency-key", "key").put("b.md", "*", note("one")).expect(200);
        start(&speaker(&SERVER, scope), "Chat");
    }

    scope.forget().expect(200);

    for other in &others {
        assert_eq!(other.read("a.md").content()["text"], "mine");
        assert_eq!(other.paths(""), ["a.md", "b.md"]);
        assert_eq!(other.found(json!({"query": "walrus"})), ["evt_01"]);
        assert_eq!(other.audit().len(), 2);
        let again = other.with_header("idempotency-key", "key").put("b.md", "*", note("one")).expect(200);
        assert_eq!(again.header("idempotency-replayed"), "true");
        let listed = speaker(&SERVER, other).get("/v1/conversations").expect_page();
        assert_eq!(listed.all("title"), ["Chat"]);
    }
}

#[test]
fn a_forgotten_user_can_start_again_and_no_version_returns() {
    let scope = Scope::fresh(&SERVER);
    let mut etags = vec![];
    for _ in 0..3 {
        let created = scope.create("a.md", json!({"text": "same"}));
        let replaced = scope.put("a.md", &created.etag, note("same")).stored();
        etags.extend([created.etag, replaced.etag]);
        scope.tell("evt_01", json!({"digest": "walrus"}));
        assert_eq!(scope.found(json!({"query": "walrus"})), ["evt_01"]);
        let records = scope.audit();
        assert_eq!(
            records.iter().map(|r| r["action"].as_str().unwrap()).collect::<Vec<_>>(),
            ["create", "replace"]
        );
        assert!(records[0]["previous_etag"].is_null());
        let change = records[1]["change_id"].as_str().unwrap();
        assert_eq!(scope.reconstruct("a.md", change).expect(200).json["etag"], etags[etags.len() - 1]);
        assert_report(scope.forget(), 1, 1, 2, json!({"deleted": 0, "anonymized": 0}));
    }

    let mut distinct = etags.clone();
    distinct.sort();
    distinct.dedup();
    assert_eq!(distinct.len(), etags.len(), "{etags:?}");
}

#[test]
fn the_keys_of_a_forgotten_user_are_free() {
    let scope = Scope::fresh(&SERVER);
    let caller = scope.with_header("idempotency-key", "key");
    let first = caller.put("a.md", "*", note("one")).expect(200);
    caller.write_event(scope.event("evt_01", json!({}))).refused(409, "IDEMPOTENCY_CONFLICT");

    scope.forget().expect(200);

    let again = caller.put("a.md", "*", note("one")).expect(200);
    assert_eq!(again.header("idempotency-replayed"), "");
    assert_ne!(again.json["etag"], first.json["etag"]);
    scope.forget().expect(200);
    caller.write_event(scope.event("evt_01", json!({}))).expect(202);
}

// ---- conversations

#[test]
fn the_users_conversations_are_gone_for_everybody() {
    let scope = Scope::fresh(&SERVER);
    let (owner, bob, admin) =
        (speaker(&SERVER, &scope), someone(&SERVER, &scope, "bob"), admin(&SERVER, &scope));
    let chat = start(&owner, "Chat");
    let entry = say(&owner, &chat, "a walrus");
    share(&owner, &chat, bob.user(), "manager");
    say(&bob, &chat, "my walrus too");
    let fork = owner.post_nothing(&format!("{}/{entry}/fork", entries(&chat))).expect(201).id();
    say(&owner, &fork, "a walrus in the fork");
    owner.post(&format!("{}/sync", entries(&chat)), noted("state")).expect(200);
    let body = json!({"conversationId": chat, "newOwnerUserId": bob.user()});
    let transfer = owner.post("/v1/ownership-transfers", body).expect(201).id();
    let deleted = start(&owner, "Deleted");
    say(&owner, &deleted, "a deleted walrus");
    owner.delete(&format!("/v1/conversations/{deleted}")).expect(204);

    assert_report(scope.forget(), 0, 0, 0, json!({"deleted": 2, "anonymized": 0}));

    for id in [&chat, &fork, &deleted] {
        for who in [&owner, &bob] {
            who.get(&format!("/v1/conversations/{id}")).expect_not_found("conversation", id);
            who.get(&entries(id)).expect_not_found("conversation", id);
        }
        for rest in ["", "/entries", "/memberships", "/forks"] {
            admin.get(&format!("/v1/admin/conversations/{id}{rest}")).expect_not_found("conversation", id);
        }
        admin
            .post(&format!("/v1/admin/conversations/{id}/restore"), json!({}))
            .expect_not_found("conversation", id);
    }
    for who in [&owner, &bob] {
        assert_eq!(who.get("/v1/conversations?mode=all").expect_page().ids(), Vec::<String>::new());
        assert_eq!(hits(who, "/v1/conversations/search", "walrus"), Vec::<String>::new());
        assert_eq!(who.get("/v1/ownership-transfers").expect_page().ids(), Vec::<String>::new());
    }
    assert_eq!(hits(&admin, "/v1/admin/conversations/search", "walrus"), Vec::<String>::new());
    let listed = admin.get("/v1/admin/conversations?mode=all&includeDeleted=true").expect_page();
    assert_eq!(listed.ids(), Vec::<String>::new());
    assert!(admin.get("/v1/conversations/unindexed").expect_page().data.is_empty());
    bob.get(&format!("/v1/ownership-transfers/{transfer}")).expect_not_found("transfer", &transfer);
    assert_nothing_to_forget(scope.forget());
}

#[test]
fn in_the_trees_of_others_the_user_was_never_there() {
    let scope = Scope::fresh(&SERVER);
    let (user, bob, admin) =
        (speaker(&SERVER, &scope), someone(&SERVER, &scope, "bob"), admin(&SERVER, &scope));
    let chat = start(&bob, "Chat of Bob");
    share(&bob, &chat, user.user(), "writer");
    say(&bob, &chat, "a question");
    let entry = say(&user, &chat, "an answer about the walrus");
    user.post(&entries(&chat), noted("state")).expect(201);
    let fork = user.post_nothing(&format!("{}/{entry}/fork", entries(&chat))).expect(201).id();
    say(&user, &fork, "another answer");
    let body = json!({"conversationId": chat, "newOwnerUserId": user.user()});
    bob.post("/v1/ownership-transfers", body).expect(201);
    let deleted = start(&bob, "Deleted by Bob");
    share(&bob, &deleted, user.user(), "writer");
    say(&user, &deleted, "an answer that Bob deleted");
    bob.delete(&format!("/v1/conversations/{deleted}")).expect(204);

    assert_report(scope.forget(), 0, 0, 0, json!({"deleted": 0, "anonymized": 4}));

    let of_bob = bob.get(&entries(&chat)).expect_page();
    assert_eq!(of_bob.data.len(), 2);
    assert_eq!(of_bob.all("userId"), [bob.user(), "<absent>"]);
    assert_eq!(of_bob.data[1]["content"][0]["text"], "an answer about the walrus", "what was said stays");
    assert_eq!(hits(&bob, "/v1/conversations/search", "walrus"), [chat.as_str()]);
    assert_eq!(bob.get(&entries(&fork)).expect_page().all("userId"), [bob.user(), "<absent>"]);
    for id in [&chat, &deleted] {
        let path = format!("/v1/admin/conversations/{id}");
        for rest in ["", "/entries?forks=all", "/memberships", "/forks"] {
            let shown = admin.get(&format!("{path}{rest}")).expect(200).text;
            assert!(!shown.contains(user.user()), "{path}{rest} names the user: {shown}");
        }
    }
    let members = bob.get(&format!("/v1/conversations/{chat}/memberships")).expect_page();
    assert_eq!(members.all("userId"), [bob.user()]);
    user.get(&format!("/v1/conversations/{chat}")).expect_forbidden();
    assert_eq!(bob.get("/v1/ownership-transfers").expect_page().ids(), Vec::<String>::new());
    assert_eq!(user.get("/v1/ownership-transfers").expect_page().ids(), Vec::<String>::new());
    assert_eq!(hits(&user, "/v1/conversations/search", "walrus"), Vec::<String>::new());
    let restored = admin.post(&format!("/v1/admin/conversations/{deleted}/restore"), json!({})).expect(200);
    assert!(!restored.text.contains(user.user()), "{}", restored.text);
    assert_eq!(bob.get(&entries(&deleted)).expect_page().all("userId"), ["<absent>"]);
    assert_nothing_to_forget(scope.forget());
}

#[test]
fn those_who_shared_a_forgotten_tree_hear_that_it_is_gone() {
    let scope = Scope::fresh(&SERVER);
    let (owner, bob, admin) =
        (speaker(&SERVER, &scope), someone(&SERVER, &scope, "bob"), admin(&SERVER, &scope));
    let chat = start(&owner, "Chat");
    share(&owner, &chat, bob.user(), "reader");
    let deleted = start(&owner, "Deleted");
    owner.delete(&format!("/v1/conversations/{deleted}")).expect(204);

    scope.forget().expect(200);

    let feed = admin.get("/v1/changes?limit=1000").expect(200).json;
    let told = |kind: &str| -> Vec<Value> {
        let changes = feed["changes"].as_array().unwrap().iter();
        changes.filter(|change| change["kind"] == kind).map(|change| change["resource"].clone()).collect()
    };
    assert_eq!(told("user.forgotten"), [owner.user()]);
    let (mut gone, mut expected) = (told("conversation.evicted"), vec![json!(chat), json!(deleted)]);
    gone.sort_by_key(Value::to_string);
    expected.sort_by_key(Value::to_string);
    assert_eq!(gone, expected);
    let removed = ["MEMBERSHIP_CHANGE", "actor=- action=remove", &format!("conversation={chat}")];
    let line = SERVER.wait_for_log(&removed);
    assert!(line.contains(&format!("target={}", bob.user())), "{line}");
    assert_eq!(SERVER.log_lines(&removed).len(), 1, "nobody is named who was forgotten");
}

#[test]
fn the_keys_of_a_forgotten_speaker_are_free() {
    let scope = Scope::fresh(&SERVER);
    let (user, bob) = (speaker(&SERVER, &scope), someone(&SERVER, &scope, "bob"));
    let chat = start(&bob, "Chat");
    share(&bob, &chat, user.user(), "writer");
    let caller = user.with_header("idempotency-key", "key");
    caller.post(&entries(&chat), said("one")).expect(201);
    caller.post(&entries(&chat), said("two")).expect(409);

    scope.forget().expect(200);

    share(&bob, &chat, user.user(), "writer");
    caller.post(&entries(&chat), said("two")).expect(201);
}

#[test]
fn the_id_of_a_forgotten_conversation_is_as_good_as_new() {
    let scope = Scope::fresh(&SERVER);
    let user = speaker(&SERVER, &scope);
    let id = fresh_id();
    say(&user, &id, "before");

    scope.forget().expect(200);

    say(&user, &id, "after");
    let page = user.get(&entries(&id)).expect_page();
    assert_eq!(page.data.len(), 1);
    assert_eq!(page.data[0]["content"][0]["text"], "after");
}

#[test]
fn conversations_of_the_same_name_in_other_tenants_stay() {
    let scope = Scope::fresh(&SERVER);
    let namesake = Scope::of(&SERVER, &fresh_name("tenant"), &scope.user);
    let other = speaker(&SERVER, &namesake);
    let id = fresh_id();
    say(&speaker(&SERVER, &scope), &id, "walrus here");
    say(&other, &id, "walrus there");

    assert_report(scope.forget(), 0, 0, 0, json!({"deleted": 1, "anonymized": 0}));

    assert_eq!(other.get(&entries(&id)).expect_page().data[0]["content"][0]["text"], "walrus there");
    assert_eq!(hits(&other, "/v1/conversations/search", "walrus"), [id]);
}

// ---- the second address

#[test]
fn both_addresses_are_the_same_operation() {
    let scope = Scope::fresh(&SERVER);
    scope.create("a.md", json!({}));
    scope.tell("evt_01", json!({}));
    start(&speaker(&SERVER, &scope), "Chat");
    let change = scope.audit()[0]["change_id"].as_str().unwrap().to_owned();
    let client = scope.client.in_tenant(&scope.tenant);
    let forget = || client.post("/v1/users:forget", json!({"userId": scope.user}));

    assert_report(forget(), 1, 1, 1, json!({"deleted": 1, "anonymized": 0}));

    assert_unknown(&scope, "a.md", &change);
    assert_nothing_to_forget(forget());
}

#[test]
fn nobody_is_unforgettable() {
    let tenant = fresh_name("tenant");
    for name in ["team/alice", "..", "team\\alice", "a%2Fb"] {
        let name = format!("{}{name}", fresh_name("user"));
        let user = SERVER.as_user(&name).with_key(AGENT).in_tenant(&tenant);
        let chat = start(&user, "Chat");

        let forgotten = user.post("/v1/users:forget", json!({"userId": name}));

        assert_report(forgotten, 0, 0, 0, json!({"deleted": 1, "anonymized": 0}));
        user.get(&format!("/v1/conversations/{chat}")).expect_not_found("conversation", &chat);
    }
}

#[test]
fn users_forget_themselves_and_agents_and_admins_anybody() {
    let (alice, bob) = (SERVER.someone("alice"), SERVER.someone("bob"));
    let path = |who: &Client| format!("/v1/tenants/default/users/{}/memory", who.user());
    let body = |who: &Client| json!({"userId": who.user()});
    let chat = start(&alice, "Chat");

    bob.delete(&path(&alice)).refused(403, "FORBIDDEN");
    bob.post("/v1/users:forget", body(&alice)).expect(403);
    SERVER.anonymous().delete(&path(&alice)).refused(401, "UNAUTHENTICATED");
    SERVER.anonymous().post("/v1/users:forget", body(&alice)).expect(401);
    for wrong in [json!({}), json!({"userId": null}), json!({"userId": ""}), json!({"userId": 7}), json!([])]
    {
        alice.post("/v1/users:forget", wrong).expect(400);
    }
    alice.get(&format!("/v1/conversations/{chat}")).expect(200);

    alice.delete(&path(&alice)).expect(200);
    alice.get(&format!("/v1/conversations/{chat}")).expect(404);
    bob.post("/v1/users:forget", body(&bob)).expect(200);
    SERVER.as_user("admin").delete(&path(&bob)).expect(200);
    SERVER.as_user("admin").post("/v1/users:forget", body(&alice)).expect(200);
    SERVER.anonymous().with_key("gateway").delete(&path(&bob)).expect(200);
    SERVER.anonymous().with_key("gateway").post("/v1/users:forget", body(&alice)).expect(200);
}

// ---- what is left on the disk

/// A word that occurs nowhere else, in letters that no analyser changes.
fn marker() -> String {
    let name = fresh_name("x");
    format!("{}q", &name[name.len() - 12..])
}

/// Everything of a user that could be found on a disk.
struct Traces {
    /// What was said and written.
    content: Vec<(&'static str, String)>,
    /// What it was called.
    names: Vec<(&'static str, String)>,
    /// Text that was given to be searched by, which is never encrypted.
    indexed: Vec<(&'static str, String)>,
}

impl Traces {
    fn new() -> Self {
        let marked = |names: &[&'static str]| names.iter().map(|name| (*name, marker())).collect();
        Self {
            content: marked(&[
                "the content of a file",
                "the end of a large file",
                "a replaced content",
                "the old text of an edit",
                "the new text of an edit",
                "the value of an operation",
                "the evidence of a change",
                "the digest of an event",
                "a keyword of an event",
                "the evidence of an event",
                "a replaced digest",
                "a title",
                "an entry",
                "an entry of the memory",
                "a memory",
                "a replaced memory",
                "the metadata of a memory",
                "the object of a fact",
                "the name of an attachment",
                "a private memory of a project",
                "a replaced private memory of a project",
            ]),
            names: marked(&[
                "a path",
                "a long path",
                "an event's id",
                "a reason",
                "an idempotency key",
                "a project",
                "a session",
            ]),
            indexed: marked(&["an indexed content"]),
        }
    }

    #[track_caller]
    fn of(&self, name: &str) -> &str {
        let all = self.content.iter().chain(&self.names).chain(&self.indexed);
        &all.clone().find(|(known, _)| *known == name).unwrap_or_else(|| panic!("no marker for {name}")).1
    }

    /// Leaves every trace once. Answers that a writer gets who races with *forget* are fine, failures are not.
    fn leave(&self, scope: &Scope, speaker: &Client) {
        let allowed = |answer: Answer, statuses: &[u16]| {
            assert!(statuses.contains(&answer.status), "{}", answer.describe());
            answer
        };
        let path = format!("{}/{}.md", self.of("a path"), fresh_name("file"));
        let keyed = |scope: &Scope| {
            scope.with_header(
                "idempotency-key",
                &format!("{}-{}", self.of("an idempotency key"), fresh_name("key")),
            )
        };
        let body = json!({
            "document": envelope(json!({
                "text": format!("{} {};", self.of("the content of a file"), self.of("the old text of an edit")),
            })),
            "reason": self.of("a reason"),
            "evidence": {"message": self.of("the evidence of a change")},
        });
        let etag = |answer: &Answer| answer.header("etag").to_owned();
        let created = allowed(keyed(scope).put_body(&path, "*", Body::Json(body)), &[200, 412]);
        let patch = json!({
            "ops": [{"op": "add", "path": "/content/added", "value": [self.of("the value of an operation")]}],
            "edits": [{"old_text": self.of("the old text of an edit"), "new_text": self.of("the new text of an edit")}],
            "reason": self.of("a reason"),
        });
        let patched = allowed(keyed(scope).patch(&path, &etag(&created), patch), &[200, 404, 412]);
        let replaced =
            allowed(scope.put(&path, &etag(&patched), note(self.of("a replaced content"))), &[200, 400, 412]);
        let large =
            format!("{} {}", "many words of no matter ".repeat(1500), self.of("the end of a large file"));
        allowed(scope.put(&path, &etag(&replaced), note(&large)), &[200, 400, 412]);

        let folders =
            format!("{}/", "A Folder With A Long Name ".repeat(9).trim_end().replace(' ', "-")).repeat(3);
        let long_path = format!("{folders}{}-{}.md", self.of("a long path"), fresh_name("file"));
        allowed(scope.put(&long_path, "*", note("far down")), &[200]);

        let id = format!("{}-{}", self.of("an event's id"), fresh_name("event"));
        for digest in ["a replaced digest", "the digest of an event"] {
            let event = scope.event(
                &id,
                json!({"digest": format!("walrus {}", self.of(digest)), "keywords": [self.of("a keyword of an event")],
                       "evidence": [self.of("the evidence of an event")], "project_ids": [self.of("a project")]}),
            );
            allowed(keyed(scope).write_event(event), &[202]);
        }

        let chat =
            allowed(speaker.post("/v1/conversations", json!({"title": self.of("a title")})), &[201]).id();
        let mut entry = said(&format!("walrus {}", self.of("an entry")));
        allowed(speaker.post(&entries(&chat), entry.clone()), &[201, 404]);
        entry["indexedContent"] = json!(format!("walrus {}", self.of("an indexed content")));
        allowed(speaker.post(&entries(&chat), entry), &[201, 404]);
        let memory = noted(self.of("an entry of the memory"));
        allowed(speaker.post(&format!("{}/sync", entries(&chat)), memory), &[200, 404]);
        self.leave_memories(scope, speaker);
        self.leave_attachment(speaker, &chat);
    }

    /// Leaves the trace that an attachment of an entry leaves.
    fn leave_attachment(&self, speaker: &Client, chat: &str) {
        let form = format!(
            "--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"{}.txt\"\r\n\
             Content-Type: text/plain\r\n\r\n{}\r\n--b--\r\n",
            self.of("the name of an attachment"),
            fresh_name("bytes")
        );
        let form =
            Body::Raw { content_type: Some("multipart/form-data; boundary=b"), bytes: form.into_bytes() };
        let uploaded = speaker.send("POST", "/v1/attachments", form);
        if uploaded.status == 503 {
            return; // its user was forgotten meanwhile
        }
        let uploaded = uploaded.expect(201);
        let mut entry = said("with an attachment");
        entry["content"][0]["attachments"] = json!([{"attachmentId": uploaded.json["id"]}]);
        let answer = speaker.post(&entries(chat), entry);
        // Whoever is being forgotten has neither conversations nor attachments any more.
        assert!([201, 400, 404].contains(&answer.status), "{}", answer.describe());
    }

    /// Leaves the traces that memories leave.
    fn leave_memories(&self, scope: &Scope, speaker: &Client) {
        let allowed = |answer: Answer, statuses: &[u16]| {
            assert!(statuses.contains(&answer.status), "{}", answer.describe());
            answer
        };
        let session = format!("{}-{}", self.of("a session"), fresh_name("session"));
        let identifiers = json!({"userId": scope.user, "sessionId": session, "projectId": "p"});
        let keyed = speaker.with_header(
            "idempotency-key",
            &format!("{}-{}", self.of("an idempotency key"), fresh_name("key")),
        );
        let memory = json!({
            "layer": "session", "identifiers": identifiers, "content": format!("walrus {}", self.of("a replaced memory")),
            "metadata": {"tags": [self.of("the metadata of a memory")]},
        });
        let added = allowed(keyed.post("/v1/memories", memory), &[201]);
        let path = format!("/v1/memories/{}", added.json["memory"]["id"].as_str().unwrap_or_default());
        let changed = json!({"content": format!("walrus {}", self.of("a memory"))});
        allowed(speaker.patch(&path, changed), &[200, 404]);
        let fact = json!({
            "layer": "user", "identifiers": identifiers, "factType": "f", "subject": "s", "predicate": fresh_name("p"),
            "object": self.of("the object of a fact"),
        });
        allowed(speaker.post("/v1/facts", fact), &[201]);
        let private = json!({
            "layer": "project", "identifiers": identifiers, "accessPolicy": {"policy": "private"},
            "content": self.of("a replaced private memory of a project"),
        });
        let added = allowed(speaker.post("/v1/memories", private), &[201]);
        let path = format!("/v1/memories/{}", added.json["memory"]["id"].as_str().unwrap_or_default());
        let changed = json!({"content": self.of("a private memory of a project")});
        allowed(speaker.patch(&path, changed), &[200, 404]);
    }
}

/// Which of the markers are still kept somewhere. The first letters do not count: a sorted index shares them between
/// neighbours.
fn found_in<'a>(
    server: &TestServer,
    markers: impl IntoIterator<Item = &'a (&'static str, String)>,
) -> Vec<&'static str> {
    let everything = server.stored().everything().into_values();
    let texts: Vec<String> = everything.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).collect();
    let holds = |marker: &str| texts.iter().any(|text| text.contains(&marker[3..]));
    markers.into_iter().filter(|(_, marker)| holds(marker)).map(|(name, _)| *name).collect()
}

#[test]
fn no_byte_of_a_forgotten_user_is_left() {
    let mut server = local_server();
    let (scope, traces) = (Scope::fresh(&server), Traces::new());
    let neighbour = Scope::of(&server, &scope.tenant, &fresh_name("user"));
    let kept = [("what a neighbour keeps", marker())];
    neighbour.create("a.md", json!({"text": kept[0].1}));
    let all = || traces.content.iter().chain(&traces.names).chain(&traces.indexed);
    for _ in 0..5 {
        traces.leave(&scope, &speaker(&server, &scope));
    }
    let before = found_in(&server, all());
    assert_eq!(before, all().map(|(name, _)| *name).collect::<Vec<_>>(), "the scan sees what is there");

    scope.forget().expect(200);

    assert_eq!(found_in(&server, all()), Vec::<&str>::new(), "right after the answer");
    assert!(server.stop().success());
    assert_eq!(found_in(&server, all()), Vec::<&str>::new(), "after the server has stopped");
    assert_eq!(found_in(&server, &kept), ["what a neighbour keeps"]);
    let log = server.log();
    for (name, marker) in traces.content.iter().chain(&traces.indexed) {
        assert!(!log.contains(marker.as_str()), "{name} is in the log");
    }
}

/// Everything that rows say in texts and bytes, vectors included. The full-text index, which is made of words that others may
/// have, counts only as what is there.
fn values(folder: &Path, with_words: bool) -> Vec<Vec<u8>> {
    let database = rusqlite::Connection::open(folder.join("memtrove.db")).unwrap();
    database.busy_timeout(Duration::from_secs(5)).unwrap();
    let mut tables = database
        .prepare(
            "SELECT name FROM sqlite_schema WHERE type = 'table' AND name <> 'text_index' AND sql NOT NULL",
        )
        .unwrap();
    let names = tables.query_map([], |row| row.get::<_, String>(0)).unwrap().map(Result::unwrap);
    let mut values = Vec::new();
    for name in names.filter(|name| with_words || !name.starts_with("text_index")) {
        let mut statement = database.prepare(&format!("SELECT * FROM {name}")).unwrap();
        let columns = statement.column_count();
        let mut rows = statement.query([]).unwrap();
        while let Some(row) = rows.next().unwrap() {
            for column in 0..columns {
                if let ValueRef::Text(bytes) | ValueRef::Blob(bytes) = row.get_ref(column).unwrap() {
                    values.push(bytes.to_vec());
                }
            }
        }
    }
    values
}

/// Parts of values, to be looked for.
struct Parts<const LENGTH: usize> {
    parts: HashSet<[u8; LENGTH]>,
    /// Of which first three bytes there are some: a look here is much faster than one into the set.
    beginnings: Vec<bool>,
}

impl<const LENGTH: usize> Parts<LENGTH> {
    fn new(parts: HashSet<[u8; LENGTH]>) -> Self {
        let mut beginnings = vec![false; 1 << 24];
        parts.iter().for_each(|part| beginnings[beginning(part)] = true);
        Self { parts, beginnings }
    }

    fn found_in(&self, bytes: &[u8]) -> HashSet<[u8; LENGTH]> {
        let likely = bytes.windows(LENGTH).filter(|part| self.beginnings[beginning(part)]);
        likely.filter_map(|part| self.parts.get(part).copied()).collect()
    }
}

/// Long enough to occur nowhere by chance.
const PART: usize = 16;
const HALF: usize = PART / 2;

impl Parts<PART> {
    /// All that the first values are made of and the others are not. A part that shares a half with them does not count: the
    /// end of a value and the first byte of its neighbour were seen to be such a part.
    fn only_in(values: &[Vec<u8>], others: &[Vec<u8>]) -> Self {
        let whole = values.iter().flat_map(|value| value.chunks_exact(PART).chain(value.rchunks_exact(PART)));
        let parts: HashSet<[u8; PART]> = whole.map(|part| part.try_into().unwrap()).collect();
        let halves = |part: &[u8; PART]| [&part[..HALF], &part[HALF..]].map(|half| half.try_into().unwrap());
        let all_halves = Parts::<HALF>::new(parts.iter().flat_map(halves).collect());
        let shared: HashSet<[u8; HALF]> =
            others.iter().flat_map(|value| all_halves.found_in(value)).collect();
        let is_theirs = |part: &[u8; PART]| halves(part).iter().any(|half| shared.contains(half));
        Self::new(parts.into_iter().filter(|part| !is_theirs(part)).collect())
    }
}

fn beginning(part: &[u8]) -> usize {
    usize::from(part[0]) << 16 | usize::from(part[1]) << 8 | usize::from(part[2])
}

/// Waits until everything that was said can be found by its meaning, too.
fn wait_for_vectors(folder: &Path) {
    let database = rusqlite::Connection::open(folder.join("memtrove.db")).unwrap();
    database.busy_timeout(Duration::from_secs(5)).unwrap();
    let waiting =
        "SELECT (SELECT count(*) FROM texts) - (SELECT count(*) FROM meanings WHERE model NOT NULL)";
    while database.query_row(waiting, [], |row| row.get::<_, i64>(0)).unwrap() > 0 {
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn nothing_of_a_forgotten_user_is_left_among_the_rows_of_another() {
    let mut server = local_server();
    let tenant = fresh_name("tenant");
    let is_sqlite = !memtrove_testkit::server::engine_is_postgres();
    // Where rows come to lie is chance on SQLite: what a rebuilt page left behind was seen in round 7. PostgreSQL is asked to
    // vacuum, and has no such gaps.
    for round in 0..if is_sqlite { 20 } else { 3 } {
        let [gone, stays] = ["gone", "stays"].map(|role| Scope::of(&server, &tenant, &fresh_name(role)));
        let (left, kept) = (Traces::new(), Traces::new());
        std::thread::scope(|threads| {
            for (traces, scope) in [(&left, &gone), (&kept, &stays)] {
                let speaker = speaker(&server, scope);
                threads.spawn(move || {
                    let chat = start(&speaker, "many rows in a row");
                    for number in 0..20 {
                        say(&speaker, &chat, &format!("{number} {}", fresh_name("word").repeat(number)));
                    }
                    traces.leave(scope, &speaker);
                });
            }
        });
        let before = if is_sqlite {
            wait_for_vectors(server.data_dir());
            values(server.data_dir(), false)
        } else {
            vec![]
        };

        gone.forget().expect(200);

        assert!(server.stop().success());
        let all = |traces: &Traces| [&traces.content[..], &traces.names, &traces.indexed].concat();
        assert_eq!(found_in(&server, &all(&left)), Vec::<&str>::new(), "round {round}");
        let names: Vec<&str> = all(&kept).iter().map(|(name, _)| *name).collect();
        assert_eq!(found_in(&server, &all(&kept)), names, "round {round}: what the other one keeps");
        if is_sqlite {
            let after = values(server.data_dir(), true);
            let whole: HashSet<&Vec<u8>> = after.iter().collect();
            let gone: Vec<Vec<u8>> = before.into_iter().filter(|value| !whole.contains(value)).collect();
            let parts = Parts::only_in(&gone, &after);
            assert!(parts.parts.len() > 200, "little is gone: {}", parts.parts.len());
            for (name, bytes) in server.stored().everything() {
                let found: Vec<String> = parts
                    .found_in(&bytes)
                    .iter()
                    .map(|part| String::from_utf8_lossy(part).into_owned())
                    .collect();
                assert_eq!(found, Vec::<String>::new(), "round {round}: {name}");
            }
        }
        server.restart();
        let stays = Scope::of(&server, &tenant, &stays.user);
        assert_eq!(stays.paths("limit=500").len(), 2, "round {round}");
        assert_eq!(stays.found(json!({"query": kept.of("the digest of an event")})).len(), 1);
    }
}

#[test]
fn no_byte_is_left_on_a_busy_server_either() {
    let server = local_server();
    let others: Vec<Scope> = (0..3).map(|_| Scope::fresh(&server)).collect();
    let be_busy = |n: usize| {
        let other = &others[n];
        other.create(&fresh_name("file"), json!({"text": "of somebody else"}));
        other.tell(&fresh_name("event"), json!({"digest": "walrus"}));
        other.search(json!({"query": "walrus", "top_k": 500}));
        other.list("limit=500").expect(200);
    };

    meanwhile(3, be_busy, || {
        for _ in 0..4 {
            let (scope, traces) = (Scope::fresh(&server), Traces::new());
            traces.leave(&scope, &speaker(&server, &scope));
            scope.forget().expect(200);
            let all = traces.content.iter().chain(&traces.names).chain(&traces.indexed);
            assert_eq!(found_in(&server, all), Vec::<&str>::new());
        }
    });
}

#[test]
fn forgetting_wins_against_writers() {
    let mut server = local_server();
    let (scope, traces) = (Scope::fresh(&server), Traces::new());
    let user = speaker(&server, &scope);
    let bob = someone(&server, &scope, "bob");
    let chat = start(&bob, "Chat of Bob");
    share(&bob, &chat, user.user(), "writer");
    say(&user, &chat, "an answer");
    let all = || traces.content.iter().chain(&traces.names).chain(&traces.indexed);
    let rounds = AtomicUsize::new(0);
    let write = |n: usize| {
        if n < 3 {
            traces.leave(&scope, &user);
        } else {
            share(&bob, &chat, user.user(), "writer");
            let answer = user.post(&entries(&chat), said("an answer"));
            assert!([201, 403].contains(&answer.status), "{}", answer.describe());
        }
        rounds.fetch_add(1, Ordering::Relaxed);
    };

    meanwhile(4, write, || {
        for n in 1..=6 {
            while rounds.load(Ordering::Relaxed) < 4 * n {
                std::thread::sleep(Duration::from_millis(5));
            }
            scope.forget().expect(200);
        }
    });
    let change = scope.audit().first().map(|record| record["change_id"].as_str().unwrap().to_owned());
    let path = scope.paths("").first().cloned();
    scope.forget().expect(200);

    let change = change.unwrap_or_else(|| "chg_0199c7e2-7a70-7000-8000-000000000000".into());
    assert_unknown(&scope, &path.unwrap_or_else(|| "a.md".into()), &change);
    assert_eq!(user.get("/v1/conversations?mode=all").expect_page().ids(), Vec::<String>::new());
    let admin = admin(&server, &scope);
    let listed = admin.get("/v1/admin/conversations?mode=all&includeDeleted=true").expect_page();
    assert_eq!(listed.ids(), [chat.as_str()]);
    for (name, marker) in all() {
        assert_eq!(hits(&admin, "/v1/admin/conversations/search", marker), Vec::<String>::new(), "{name}");
    }
    let said = admin.get(&format!("/v1/admin/conversations/{chat}/entries?limit=1000")).expect_page();
    assert!(!said.data.is_empty() && said.all("userId").iter().all(|user| user == "<absent>"), "{said:?}");
    let members = bob.get(&format!("/v1/conversations/{chat}/memberships")).expect_page();
    assert_eq!(members.all("userId"), [bob.user()]);
    assert_eq!(found_in(&server, all()), Vec::<&str>::new(), "right after the answer");
    assert!(server.stop().success());
    assert_eq!(found_in(&server, all()), Vec::<&str>::new(), "after the server has stopped");
}

#[test]
fn with_encryption_no_content_is_ever_on_the_disk() {
    let mut server = encrypted_server();
    let (mut scope, traces) = (Scope::fresh(&server), Traces::new());
    for _ in 0..5 {
        traces.leave(&scope, &speaker(&server, &scope));
    }

    assert_eq!(found_in(&server, &traces.content), Vec::<&str>::new(), "while it runs");
    let names = found_in(&server, &traces.names);
    assert!(names.contains(&"a path"), "the scan looks where the data is: {names:?}");
    assert!(server.stop().success());
    assert_eq!(found_in(&server, &traces.content), Vec::<&str>::new(), "after it has stopped");
    server.restart();
    scope = Scope::of(&server, &scope.tenant, &scope.user);
    let paths = scope.paths(&format!("prefix={}", traces.of("a path")));
    assert_eq!(paths.len(), 5);
    let text = scope.read(&paths[0]).content()["text"].as_str().unwrap().to_owned();
    assert!(text.ends_with(traces.of("the end of a large file")));
    assert_eq!(scope.found(json!({"query": traces.of("a keyword of an event")})).len(), 5);
    assert_eq!(scope.found(json!({"query": traces.of("a replaced digest")})), Vec::<String>::new());
    let titles = speaker(&server, &scope).get("/v1/conversations").expect_page().all("title");
    assert_eq!(titles, vec![traces.of("a title"); 5]);

    scope.forget().expect(200);

    let all = || traces.content.iter().chain(&traces.names).chain(&traces.indexed);
    assert_eq!(found_in(&server, all()), Vec::<&str>::new(), "right after forgetting");
    assert!(server.stop().success());
    assert_eq!(found_in(&server, all()), Vec::<&str>::new(), "after the end");
}
