//! Files that leave their path: deleted, or moved to another one. What was there stays provable.

use crate::support::*;
use std::collections::HashSet;
use std::sync::LazyLock;

/// A server that keeps no audit record longer than it is told.
static SERVER: LazyLock<TestServer> = LazyLock::new(|| server_with("[retention]\naudit_min_days = 0\n"));

const RACERS: usize = 32;

/// Requires 200 for a file that was deleted at this version.
#[track_caller]
fn assert_deleted(answer: Answer, path: &str, etag: &str) {
    let answer = answer.expect(200);
    assert_eq!(answer.json, json!({"path": path, "etag": etag, "deleted": true}));
    assert_eq!(answer.header("etag"), etag);
    assert_eq!(answer.header("idempotency-replayed"), "");
}

/// An edit that turns the text `n` of a note into `n + 1`.
fn count_up(n: usize) -> Value {
    json!({"edits": [{"old_text": format!("n{n};"), "new_text": format!("n{};", n + 1)}]})
}

/// The document without what every change sets.
#[track_caller]
fn lasting(stored: &Stored) -> Value {
    let mut document = stored.document();
    for name in ["updated_at", "updated_by"] {
        assert!(document.as_object_mut().unwrap().shift_remove(name).is_some(), "{name}: {}", stored.text);
    }
    document
}

#[track_caller]
fn text(record: &Value, member: &str) -> String {
    record[member].as_str().unwrap_or_else(|| panic!("no text {member} in {record}")).to_owned()
}

/// Requires that the change of this record is reproduced letter by letter.
#[track_caller]
fn assert_proves(scope: &Scope, record: &Value, version: &Stored) {
    let answer = scope.reconstruct(&text(record, "path"), &text(record, "change_id")).expect(200);
    assert_eq!(answer.json["etag"], version.etag.as_str());
    assert!(answer.text.contains(&version.text), "{}\nis not {}", answer.describe(), version.text);
}

/// What the trail says of a path at a time.
#[track_caller]
fn as_of(scope: &Scope, path: &str, time: &str) -> Answer {
    scope.as_admin().post("/audit:reconstruct", json!({"path": path, "as_of_utc": time}))
}

/// What the feed tells of files: kind, path and version.
#[track_caller]
fn told(scope: &Scope) -> Vec<(String, String, String)> {
    let feed =
        scope.client.with_header("x-tenant-id", &scope.tenant).get("/v1/changes?limit=1000").expect(200);
    let changes = feed.json["changes"].as_array().unwrap().clone();
    let of_files = changes.iter().filter(|change| text(change, "kind").starts_with("file."));
    of_files
        .map(|change| {
            assert_eq!(change["user"], scope.user.as_str());
            (text(change, "kind"), text(change, "resource"), text(change, "version"))
        })
        .collect()
}

// ---- deleting

#[test]
fn a_deleted_file_is_gone_for_every_reader() {
    let scope = Scope::fresh(&SERVER);
    let kept = scope.create("keep.md", json!({"text": "stays"}));
    let stored = scope.create("a/b.md", json!({"text": "goes"}));

    assert_deleted(scope.delete("a/b.md", &stored.etag), "a/b.md", &stored.etag);

    scope.get("a/b.md").refused(404, "DOCUMENT_NOT_FOUND");
    assert_eq!(scope.paths(""), ["keep.md"]);
    let refs = json!({"files": [{"path": "a/b.md"}, {"path": "keep.md"}]});
    let context = scope.post("/context:assemble", refs).expect(200);
    assert_eq!(context.json["files"].as_array().unwrap().len(), 1);
    assert_eq!(context.json["dropped_files"], json!([]));
    assert_eq!(scope.read("keep.md"), kept);
    scope.patch("a/b.md", &stored.etag, count_up(0)).refused(404, "DOCUMENT_NOT_FOUND");
    let stale = scope.put("a/b.md", &stored.etag, note("x")).refused(412, "ETAG_MISMATCH");
    assert_eq!(stale.detail("latest_etag"), None);
    for if_match in ["*", &stored.etag] {
        scope.delete("a/b.md", if_match).refused(404, "DOCUMENT_NOT_FOUND");
    }
}

#[test]
fn a_file_is_deleted_at_the_version_that_if_match_names_or_with_a_star_at_any() {
    let scope = Scope::fresh(&SERVER);
    let first = scope.create("a.md", json!({"text": "n0;"}));
    let second = scope.patch("a.md", &first.etag, count_up(0)).stored();

    let bare = second.etag.trim_matches('"');
    for other in
        [&*first.etag, bare, &format!("W/{}", second.etag), &format!("{0}, {0}", second.etag), "\"x\""]
    {
        for answer in [scope.delete("a.md", other), scope.rename("a.md", "b.md", other)] {
            let refused = answer.refused(412, "ETAG_MISMATCH");
            assert_eq!(refused.detail("latest_etag"), Some(&*second.etag), "{other}");
        }
    }
    let without =
        [("/files:delete", json!({"path": "a.md"})), ("/files:move", json!({"from": "a.md", "to": "b.md"}))];
    for (route, body) in without {
        scope.post(route, body.clone()).refused(400, "MISSING_IF_MATCH");
        scope.with_header("if-match", " ").post(route, body).refused(400, "MISSING_IF_MATCH");
    }
    assert_eq!(scope.read("a.md"), second);
    assert_eq!(scope.audit().len(), 2, "what was refused left no record");

    assert_deleted(scope.delete("a.md", "*"), "a.md", &second.etag);
}

#[test]
fn a_path_can_be_used_again_and_no_etag_comes_back() {
    let scope = Scope::fresh(&SERVER);
    let mut etags: HashSet<String> = HashSet::new();
    for round in 0..5 {
        let stored = scope.put("a.md", "*", note("the same")).stored();
        for old in &etags {
            scope.delete("a.md", old).refused(412, "ETAG_MISMATCH");
        }
        assert!(etags.insert(stored.etag.clone()), "{round}: {}", stored.etag);
        assert_deleted(scope.delete("a.md", &stored.etag), "a.md", &stored.etag);
    }
    assert_eq!(scope.paths(""), Vec::<String>::new());
}

#[test]
fn a_scope_that_never_was_has_nothing_to_delete() {
    let scope = Scope::fresh(&SERVER);
    for if_match in ["*", "\"1-00000000000070008000000000000000\""] {
        scope.delete("a.md", if_match).refused(404, "DOCUMENT_NOT_FOUND");
        scope.rename("a.md", "b.md", if_match).refused(404, "DOCUMENT_NOT_FOUND");
    }
    assert_eq!(scope.audit(), Vec::<Value>::new());
}

#[test]
fn other_scopes_keep_their_files() {
    let scope = Scope::fresh(&SERVER);
    let others = [
        Scope::of(&SERVER, &scope.tenant, &fresh_name("user")),
        Scope::of(&SERVER, &fresh_name("tenant"), &scope.user),
    ];
    let kept = others.each_ref().map(|other| other.create("a.md", json!({"text": "mine"})));
    let stored = scope.create("a.md", json!({}));
    scope.delete("a.md", &kept[0].etag).refused(412, "ETAG_MISMATCH");
    let moved = scope.rename("a.md", "b.md", &stored.etag).moved_to("b.md");
    scope.delete("b.md", &moved.etag).expect(200);
    for (other, kept) in others.iter().zip(kept) {
        assert_eq!(other.paths(""), ["a.md"]);
        assert_eq!(other.read("a.md"), kept);
    }
}

// ---- moving

#[test]
fn a_moved_file_is_the_same_document_at_another_path() {
    let scope = Scope::fresh(&SERVER);
    let document = r#"{"own":[1.10,1E400],"doc_id":"d","schema_id":"s","schema_version":"1",
        "created_at":"2020-01-01T00:00:00+02:00","content":{"z":123456789012345678901234567890,"text":"n0;"}}"#;
    let body = format!(r#"{{"document":{document}}}"#);
    let first = scope.put_body("a.md", "*", Body::json_text(body)).stored();

    let mover = scope.with_header("x-service-id", "mover");
    let moved = mover.rename("a.md", "dir/b.md", &first.etag).moved_to("dir/b.md");

    assert_eq!(scope.read("dir/b.md"), moved);
    assert_ne!(moved.etag, first.etag);
    assert_eq!(lasting(&moved), lasting(&first));
    assert!(moved.text.contains("[1.10,1E400]") && moved.text.contains("123456789012345678901234567890"));
    assert_eq!(moved.document()["created_at"], "2020-01-01T00:00:00+02:00");
    assert_eq!(moved.document()["updated_by"], "mover");
    assert_timestamp(&moved.document()["updated_at"]);
    assert!(text(&moved.document(), "updated_at") >= text(&first.document(), "updated_at"));
    scope.get("a.md").refused(404, "DOCUMENT_NOT_FOUND");
    assert_eq!(scope.paths(""), ["dir/b.md"]);
    scope.patch("dir/b.md", &first.etag, count_up(0)).refused(412, "ETAG_MISMATCH");
    let patched = scope.patch("dir/b.md", &moved.etag, count_up(0)).stored();
    let back = scope.rename("dir/b.md", "a.md", "*").moved_to("a.md");
    assert_eq!(lasting(&back), lasting(&patched));
}

#[test]
fn what_is_at_the_new_path_is_never_overwritten() {
    let scope = Scope::fresh(&SERVER);
    let (from, to) = (scope.create("a.md", json!({"text": "a"})), scope.create("b.md", json!({"text": "b"})));
    for if_match in ["*", &from.etag] {
        let refused = scope.rename("a.md", "b.md", if_match).refused(409, "DOCUMENT_EXISTS");
        assert_eq!(refused.detail("path"), Some("b.md"));
    }
    // Whether the file may leave is asked first.
    scope.rename("a.md", "b.md", &to.etag).refused(412, "ETAG_MISMATCH");
    scope.rename("c.md", "b.md", "*").refused(404, "DOCUMENT_NOT_FOUND");
    assert_eq!((scope.read("a.md"), scope.read("b.md")), (from.clone(), to.clone()));
    assert_eq!(scope.audit().len(), 2);

    scope.delete("b.md", &to.etag).expect(200);
    assert_eq!(scope.rename("a.md", "b.md", &from.etag).moved_to("b.md").content(), json!({"text": "a"}));
}

#[test]
fn a_file_is_not_moved_to_where_it_is() {
    let scope = Scope::fresh(&SERVER);
    let stored = scope.create("a/b.md", json!({}));
    for (from, to) in [("a/b.md", "a/b.md"), ("a\\b.md", "a/b.md"), ("missing.md", "missing.md")] {
        let refused = scope.rename(from, to, &stored.etag).refused(400, "INVALID_REQUEST");
        assert_eq!(refused.detail("field"), Some("to"));
    }
    assert_eq!(scope.read("a/b.md"), stored);
    let moved = scope.rename("a\\b.md", "A/B.md", &stored.etag).moved_to("A/B.md");
    assert_eq!(scope.paths(""), ["A/B.md"]);
    scope.rename("A/B.md", "A/B.md/c", &moved.etag).moved_to("A/B.md/c");
}

#[test]
fn a_move_may_not_make_the_document_too_large() {
    let scope = Scope::fresh(&SERVER);
    let empty = scope.create("a.md", json!({"text": ""}));
    let room = 256_000 - empty.text.chars().count();
    let full = scope.put("b.md", "*", note(&"é".repeat(room))).stored();
    let longer = scope.with_header("x-service-id", &format!("{AGENT}-x"));
    let refused = longer.rename("b.md", "c.md", &full.etag).refused(422, "DOCUMENT_SIZE_EXCEEDED");
    assert_eq!(refused.detail("actual"), Some("256002"));
    assert_eq!(scope.read("b.md"), full);
    scope.rename("b.md", "c.md", &full.etag).moved_to("c.md");
}

// ---- what is refused

#[test]
fn paths_in_bodies_follow_the_rules_of_paths() {
    let scope = Scope::fresh(&SERVER);
    let stored = scope.create("a.md", json!({}));
    let long = "x".repeat(256);
    let wrong = [
        "", " ", "..", "a..b", "/a.md", "a.md/", "a//b", "./a.md", "a/./b", "a/ /b", "a\u{0}b", "a\nb",
        "%2e%2e", "a%2Fb", "a%5cb", "%00", &long, "\\a",
    ];
    for path in wrong {
        scope.delete(path, "*").refused(400, "INVALID_PATH");
        scope.rename(path, "b.md", "*").refused(400, "INVALID_PATH");
        scope.rename("a.md", path, "*").refused(400, "INVALID_PATH");
    }
    // A body is not percent-decoded.
    scope.delete("a%2emd", "*").refused(400, "INVALID_PATH");
    scope.delete("%61.md", "*").refused(404, "DOCUMENT_NOT_FOUND");
    for name in ["files:list", "100% sure.md", "é", "e\u{301}", "漢字/😀.md"] {
        let moved = scope.rename("a.md", name, "*").moved_to(name);
        assert_eq!(scope.paths(""), [name]);
        scope.rename(name, "a.md", &moved.etag).moved_to("a.md");
    }
    assert_eq!(lasting(&scope.read("a.md")), lasting(&stored));
}

#[test]
fn bodies_of_the_wrong_shape_are_refused_and_nothing_happens() {
    let scope = Scope::fresh(&SERVER);
    let stored = scope.create("a.md", json!({}));
    let at = |route: &str| scope.at(route);
    let client = scope.client.with_header("if-match", "*");
    for route in ["/files:delete", "/files:move"] {
        for body in ["", "{", "\u{feff}{}", "nul"] {
            client.send("POST", &at(route), Body::json_text(body.to_owned())).refused(400, "INVALID_JSON");
        }
        for body in [json!([]), json!("a.md"), json!(null), json!(1)] {
            client.post(&at(route), body).refused(400, "INVALID_REQUEST");
        }
        client.post(&at(route), json!({})).refused(400, "INVALID_PATH");
    }
    let delete = |more: Value| with(json!({"path": "a.md"}), more);
    let relocate = |more: Value| with(json!({"from": "a.md", "to": "b.md"}), more);
    for (more, field) in [
        (json!({"reason": 1}), "reason"),
        (json!({"reason": "é".repeat(257)}), "reason"),
        (json!({"evidence": "x".repeat(64_000)}), "evidence"),
    ] {
        for answer in [scope.delete_body("*", delete(more.clone())), scope.rename_body("*", relocate(more))] {
            assert_eq!(answer.refused(400, "INVALID_REQUEST").detail("field"), Some(field));
        }
    }
    for (body, field) in
        [(json!({"from": 1, "to": "b.md"}), "from"), (json!({"from": "a.md", "to": []}), "to")]
    {
        assert_eq!(scope.rename_body("*", body).refused(400, "INVALID_REQUEST").detail("field"), Some(field));
    }
    assert_eq!(
        scope.delete_body("*", json!({"path": 1})).refused(400, "INVALID_REQUEST").detail("field"),
        Some("path")
    );
    let keyed = scope.with_header("idempotency-key", &"k".repeat(129));
    keyed.delete("a.md", "*").refused(400, "INVALID_IDEMPOTENCY_KEY");
    keyed.rename("a.md", "b.md", "*").refused(400, "INVALID_IDEMPOTENCY_KEY");
    assert_eq!(scope.read("a.md"), stored);
    // Exactly as much as is allowed, and what nobody knows.
    let more = json!({"reason": "é".repeat(256), "evidence": "x".repeat(63_998), "unknown": 1});
    let moved = scope.rename_body(&stored.etag, relocate(more)).moved_to("b.md");
    let more = json!({"path": "b.md", "reason": null, "evidence": null});
    assert_deleted(scope.delete_body(&moved.etag, more), "b.md", &moved.etag);
}

fn with(mut body: Value, more: Value) -> Value {
    for (name, value) in more.as_object().unwrap() {
        body[name] = value.clone();
    }
    body
}

#[test]
fn checks_come_in_the_order_of_the_contract() {
    let scope = Scope::fresh(&SERVER);
    scope.create("a.md", json!({}));
    let long = "x".repeat(257);
    // Path before header, header before limits, limits before existence.
    scope.post("/files:delete", json!({"path": "..", "reason": long})).refused(400, "INVALID_PATH");
    scope.post("/files:delete", json!({"path": "b.md", "reason": long})).refused(400, "MISSING_IF_MATCH");
    scope.delete_body("\"x\"", json!({"path": "b.md", "reason": long})).refused(400, "INVALID_REQUEST");
    scope.delete_body("\"x\"", json!({"path": "b.md"})).refused(404, "DOCUMENT_NOT_FOUND");
    scope.post("/files:move", json!({"from": "a.md", "to": ".."})).refused(400, "INVALID_PATH");
    scope.post("/files:move", json!({"from": "a.md", "to": "b.md"})).refused(400, "MISSING_IF_MATCH");
    let same = scope.post("/files:move", json!({"from": "a.md", "to": "a.md", "reason": long}));
    assert_eq!(same.refused(400, "INVALID_REQUEST").detail("field"), Some("to"));
}

#[test]
fn deleting_and_moving_take_the_role_of_a_writer() {
    let server = server_with("[roles.writer]\nclients = [\"agent-b\"]\n");
    let reader = Scope::fresh(&server);
    let writer = reader.seen_by(&server.anonymous().with_key("agent-b"));
    let stored = writer.create("a.md", json!({}));
    reader.delete("a.md", "*").refused(403, "FORBIDDEN");
    reader.rename("a.md", "b.md", "*").refused(403, "FORBIDDEN");
    assert_eq!(reader.read("a.md"), stored);
    let moved = writer.rename("a.md", "b.md", "*").moved_to("b.md");
    assert_deleted(writer.delete("b.md", "*"), "b.md", &moved.etag);
}

// ---- repeating

#[test]
fn a_repeated_deletion_answers_the_first_and_deletes_nothing_else() {
    let scope = Scope::fresh(&SERVER);
    let first = scope.create("a.md", json!({}));
    let caller = scope.with_header("idempotency-key", "key");
    assert_deleted(caller.delete("a.md", &first.etag), "a.md", &first.etag);
    let again = scope.create("a.md", json!({"text": "again"}));

    for if_match in ["*", &first.etag, &again.etag, "\"never\""] {
        let answer = caller.delete("a.md", if_match).expect(200);
        let expected =
            json!({"path": "a.md", "etag": first.etag, "deleted": true, "idempotency_replay": true});
        assert_eq!(answer.json, expected);
        assert_eq!(answer.header("etag"), first.etag);
        assert_eq!(answer.header("idempotency-replayed"), "true");
    }

    assert_eq!(scope.read("a.md"), again);
    assert_eq!(scope.audit().len(), 3);
    caller.delete("b.md", "*").refused(409, "IDEMPOTENCY_CONFLICT");
    caller.delete_body("*", json!({"path": "a.md", "reason": "r"})).refused(409, "IDEMPOTENCY_CONFLICT");
    caller.rename("a.md", "b.md", "*").refused(409, "IDEMPOTENCY_CONFLICT");
    caller.put("a.md", &again.etag, note("x")).refused(409, "IDEMPOTENCY_CONFLICT");
}

#[test]
fn a_repeated_move_answers_the_first_and_moves_nothing_else() {
    let scope = Scope::fresh(&SERVER);
    let first = scope.create("a.md", json!({"n": 1}));
    let caller = scope.with_header("idempotency-key", "key");
    let moved = caller.rename("a.md", "b.md", &first.etag).moved_to("b.md");
    let next = scope.put("b.md", &moved.etag, note("next")).stored();
    let again = scope.create("a.md", json!({"n": 2}));

    for if_match in ["*", &first.etag, &again.etag] {
        let answer = caller.rename("a.md", "b.md", if_match).expect(200);
        assert_eq!(answer.header("idempotency-replayed"), "true");
        assert_eq!(answer.header("etag"), moved.etag);
        let expected = format!(
            r#"{{"path":"b.md","etag":{},"document":{},"idempotency_replay":true}}"#,
            json!(moved.etag),
            moved.text
        );
        assert_eq!(answer.text, expected);
    }

    assert_eq!((scope.read("a.md"), scope.read("b.md")), (again, next));
    caller.rename("a.md", "c.md", "*").refused(409, "IDEMPOTENCY_CONFLICT");
}

#[test]
fn a_refusal_is_not_remembered_under_its_key() {
    let scope = Scope::fresh(&SERVER);
    let caller = scope.with_header("idempotency-key", "key");
    caller.delete("a.md", "*").refused(404, "DOCUMENT_NOT_FOUND");
    let stored = scope.create("a.md", json!({}));
    assert_deleted(caller.delete("a.md", "*"), "a.md", &stored.etag);
}

// ---- the trail, the feed

#[test]
fn every_version_is_proved_through_deletion_moves_and_a_new_beginning() {
    let scope = Scope::fresh(&SERVER);
    let first = scope.create("a.md", json!({"text": "n0;"}));
    let second = scope.patch("a.md", &first.etag, count_up(0)).stored();
    let moved = scope.rename("a.md", "b.md", &second.etag).moved_to("b.md");
    let third = scope.patch("b.md", &moved.etag, count_up(1)).stored();
    let fresh = scope.create("a.md", json!({"text": "another"}));
    scope.delete("b.md", &third.etag).expect(200);
    let back = scope.rename("a.md", "b.md", &fresh.etag).moved_to("b.md");

    let records = scope.audit();
    let story: Vec<Value> = records
        .iter()
        .map(|r| {
            json!([r["path"], r["action"], r["previous_etag"], r["new_etag"], r["moved_from"], r["moved_to"]])
        })
        .collect();
    let expected = [
        json!(["a.md", "create", null, first.etag, null, null]),
        json!(["a.md", "patch", first.etag, second.etag, null, null]),
        json!(["a.md", "move", second.etag, null, null, "b.md"]),
        json!(["b.md", "move", second.etag, moved.etag, "a.md", null]),
        json!(["b.md", "patch", moved.etag, third.etag, null, null]),
        json!(["a.md", "create", null, fresh.etag, null, null]),
        json!(["b.md", "delete", third.etag, null, null, null]),
        json!(["a.md", "move", fresh.etag, null, null, "b.md"]),
        json!(["b.md", "move", fresh.etag, back.etag, "a.md", null]),
    ];
    assert_eq!(story, expected);
    for (n, record) in records.iter().enumerate() {
        assert_eq!(record["sequence"], n as u64 + 1);
        let alone = scope.as_admin().client.get(&scope.at(&format!("/audit/{}", text(record, "change_id"))));
        assert_eq!(alone.expect(200).json, *record);
    }
    let versions = [(0, &first), (1, &second), (3, &moved), (4, &third), (5, &fresh), (8, &back)];
    for (n, version) in versions {
        assert_proves(&scope, &records[n], version);
        assert!(records[n].get("moved_from").is_some() == (n == 3 || n == 8), "{}", records[n]);
    }
    for left in [2, 6, 7].map(|n| &records[n]) {
        assert_eq!((&left["document"], &left["ops"], &left["edits"]), (&json!(null), &json!([]), &json!([])));
        scope.reconstruct(&text(left, "path"), &text(left, "change_id")).refused(404, "AUDIT_NOT_FOUND");
    }
    for (n, record) in records.iter().enumerate() {
        let (path, time) = (text(record, "path"), text(record, "timestamp"));
        let last =
            records.iter().rfind(|r| r["path"] == record["path"] && text(r, "timestamp") <= time).unwrap();
        match last["new_etag"].as_str() {
            Some(etag) => {
                assert_eq!(as_of(&scope, &path, &time).expect(200).json["etag"], etag, "record {n}")
            }
            None => {
                as_of(&scope, &path, &time).refused(404, "AUDIT_NOT_FOUND");
            }
        }
    }
    let of_b = scope.as_admin().client.get(&scope.at("/audit?path=b.md")).expect(200).json;
    assert_eq!(of_b["records"].as_array().unwrap().len(), 4);
}

#[test]
fn a_record_says_who_did_it_and_why() {
    let scope =
        Scope::fresh(&SERVER).with_header("x-service-id", "janitor").with_header("x-request-id", "req-7");
    let stored = scope.create("a.md", json!({}));
    let why = json!({"from": "a.md", "to": "b.md", "reason": "tidy", "evidence": {"n": 1}});
    let caller = scope.with_header("idempotency-key", "key");
    let moved = caller.rename_body(&stored.etag, why).moved_to("b.md");
    let why = json!({"path": "b.md", "reason": "over", "evidence": [2]});
    scope.delete_body(&moved.etag, why).expect(200);

    let records = scope.audit();
    for record in &records {
        assert_eq!((&record["actor"], &record["layer"]), (&json!("janitor"), &json!("files")));
        assert_eq!(
            (&record["principal"], &record["request_id"]),
            (&records[0]["principal"], &json!("req-7"))
        );
        assert_eq!(text(record, "ops_hash"), text(&records[0], "ops_hash"));
        assert_timestamp(&record["timestamp"]);
    }
    for record in &records[1..3] {
        assert_eq!((&record["reason"], &record["evidence"]), (&json!("tidy"), &json!({"n": 1})));
        assert_eq!(text(record, "idempotency_key_hash").len(), 64);
    }
    assert_eq!(text(&records[1], "timestamp"), text(&records[2], "timestamp"));
    assert_eq!((&records[3]["reason"], &records[3]["evidence"]), (&json!("over"), &json!([2])));
    assert_eq!(records[2]["document"], moved.document());
}

#[test]
fn the_feed_tells_where_files_went_and_came_in_order() {
    let scope = Scope::fresh(&SERVER);
    let first = scope.create("a.md", json!({"text": "n0;"}));
    let moved = scope.rename("a.md", "b.md", &first.etag).moved_to("b.md");
    scope.rename("a.md", "b.md", "*").expect(404);
    let patched = scope.patch("b.md", &moved.etag, count_up(0)).stored();
    scope.delete("b.md", "*").expect(200);
    scope.delete("b.md", "*").expect(404);
    let again = scope.create("b.md", json!({}));
    let expected = [
        ("file.created", "a.md", &first.etag),
        ("file.deleted", "a.md", &first.etag),
        ("file.created", "b.md", &moved.etag),
        ("file.updated", "b.md", &patched.etag),
        ("file.deleted", "b.md", &patched.etag),
        ("file.created", "b.md", &again.etag),
    ];
    assert_eq!(told(&scope), expected.map(|(kind, path, etag)| (kind.into(), path.into(), etag.clone())));
}

#[test]
fn a_proof_never_reaches_back_beyond_a_file_that_left() {
    let scope = Scope::fresh(&SERVER);
    let old = scope.create("a.md", json!({"text": "n0;"}));
    scope.delete("a.md", &old.etag).expect(200);
    let mut versions = vec![scope.create("a.md", json!({"text": "n0;"}))];
    for n in 0..40 {
        versions.push(scope.patch("a.md", &versions[n].etag, count_up(n)).stored());
    }
    let moved = scope.rename("a.md", "b.md", &versions[40].etag).moved_to("b.md");
    let last = scope.patch("b.md", &moved.etag, count_up(40)).stored();
    let records = scope.audit();
    for (record, version) in records[2..].iter().zip(&versions) {
        assert_proves(&scope, record, version);
    }
    assert_proves(&scope, &records[0], &old);
    assert_proves(&scope, &records[records.len() - 2], &moved);
    assert_proves(&scope, records.last().unwrap(), &last);
    assert!(last.etag.starts_with("\"43-"), "revisions are counted through a move: {}", last.etag);
}

// ---- what ends the life of things

#[test]
fn retention_takes_what_is_old_of_files_that_are_gone_and_leaves_the_rest_provable() {
    let scope = Scope::fresh(&SERVER);
    let mut version = scope.create("a.md", json!({"text": "n0;"}));
    for n in 0..3 {
        version = scope.patch("a.md", &version.etag, count_up(n)).stored();
    }
    let moved = scope.rename("a.md", "b.md", &version.etag).moved_to("b.md");
    let patched = scope.patch("b.md", &moved.etag, count_up(3)).stored();
    scope.delete("b.md", &patched.etag).expect(200);
    let again = scope.create("a.md", json!({}));
    let records = scope.audit();
    assert_eq!(records.len(), 9);
    let rules =
        |cutoff: &str| json!({"events_days": 0, "audit_days": 0, "snapshots_days": 0, "as_of_utc": cutoff});

    // One record after the other: wherever the cut is, what is left can be proved.
    for cut in 1..records.len() {
        scope.retain(rules(&text(&records[cut], "timestamp"))).expect(200);
        let left = scope.audit();
        assert!(!left.is_empty() && left.len() <= records.len() - cut + 1, "{cut}: {}", left.len());
        for record in left {
            let answer = scope.reconstruct(&text(&record, "path"), &text(&record, "change_id"));
            match record["new_etag"].as_str() {
                Some(etag) => assert_eq!(answer.expect(200).json["etag"], etag, "{cut}"),
                None => {
                    answer.refused(404, "AUDIT_NOT_FOUND");
                }
            }
        }
    }
    scope.as_admin().retain(rules("9999-01-01T00:00:00Z")).expect(200);
    assert_eq!(scope.audit(), Vec::<Value>::new());
    assert_eq!(scope.read("a.md"), again);
    let next = scope.rename("a.md", "b.md", &again.etag).moved_to("b.md");
    assert_proves(&scope, &scope.audit()[1], &next);
}

#[test]
fn forgetting_a_user_takes_the_traces_of_files_that_left_too() {
    let scope = Scope::fresh(&SERVER);
    let first = scope.create("a.md", json!({}));
    scope.rename("a.md", "b.md", &first.etag).expect(200);
    let deleted = scope.create("c.md", json!({}));
    scope.delete("c.md", &deleted.etag).expect(200);
    let report = scope.forget().expect(200);
    assert_eq!((&report.json["documents_deleted"], &report.json["audit_deleted"]), (&json!(1), &json!(5)));
    assert_eq!(scope.audit(), Vec::<Value>::new());
    scope.delete("b.md", "*").refused(404, "DOCUMENT_NOT_FOUND");
    scope.create("b.md", json!({}));
    assert_eq!(scope.audit().len(), 1);
}

#[test]
fn encrypted_files_move_and_stay_readable() {
    let mut server = encrypted_server();
    let scope = Scope::fresh(&server);
    let first = scope.create("a.md", json!({"text": "n0; walrus"}));
    let second = scope.patch("a.md", &first.etag, count_up(0)).stored();
    let moved = scope.rename("a.md", "b.md", &second.etag).moved_to("b.md");
    let third = scope.patch("b.md", &moved.etag, count_up(1)).stored();
    let gone = scope.create("c.md", json!({"text": "walrus"}));
    let keyed = scope.with_header("idempotency-key", "key");
    keyed.delete("c.md", &gone.etag).expect(200);
    let records = scope.audit();
    server.restart();
    let scope = Scope::of(&server, &scope.tenant, &scope.user);

    assert_eq!(scope.read("b.md"), third);
    assert_eq!(scope.audit(), records);
    for (n, version) in [(0, &first), (1, &second), (3, &moved), (4, &third), (5, &gone)] {
        assert_proves(&scope, &records[n], version);
    }
    for n in [2, 6] {
        let left = &records[n];
        assert_eq!(left["new_etag"], json!(null));
        scope.reconstruct(&text(left, "path"), &text(left, "change_id")).refused(404, "AUDIT_NOT_FOUND");
    }
    let again = scope.with_header("idempotency-key", "key").delete("c.md", "*").expect(200);
    assert_eq!(again.json["idempotency_replay"], true);
}

#[test]
fn what_was_acknowledged_survives_a_killed_process() {
    let mut server = local_server();
    let scope = Scope::fresh(&server);
    let first = scope.create("a.md", json!({"text": "a"}));
    let second = scope.create("b.md", json!({}));
    let moved = scope.rename("a.md", "c.md", &first.etag).moved_to("c.md");
    scope.delete("b.md", &second.etag).expect(200);
    server.kill();
    server.restart();
    let scope = Scope::of(&server, &scope.tenant, &scope.user);
    assert_eq!(scope.paths(""), ["c.md"]);
    assert_eq!(scope.read("c.md"), moved);
    assert_eq!(scope.audit().len(), 5);
}

#[test]
fn a_deleted_file_makes_room_and_a_moved_one_needs_none() {
    let server = server_with("[quotas]\nmax_files = 2\n");
    let scope = Scope::fresh(&server);
    let first = scope.create("a.md", json!({}));
    scope.create("b.md", json!({}));
    scope.put("c.md", "*", note("x")).refused(429, "QUOTA_EXCEEDED");
    let moved = scope.rename("a.md", "c.md", &first.etag).moved_to("c.md");
    scope.put("a.md", "*", note("x")).refused(429, "QUOTA_EXCEEDED");
    scope.delete("c.md", &moved.etag).expect(200);
    scope.create("a.md", json!({}));
    scope.put("c.md", "*", note("x")).refused(429, "QUOTA_EXCEEDED");
    assert_eq!(scope.paths(""), ["a.md", "b.md"]);
}

// ---- many at once

/// Requires one success; everybody else was refused in one of these ways.
#[track_caller]
fn single_winner(answers: Vec<Answer>, refusals: &[(u16, &str)]) -> (usize, Answer) {
    let mut winner = None;
    for (n, answer) in answers.into_iter().enumerate() {
        if answer.status == 200 {
            assert!(winner.is_none(), "a second winner: {}", answer.describe());
            winner = Some((n, answer));
            continue;
        }
        let refusal = refusals.iter().find(|(status, _)| *status == answer.status);
        let (status, code) = refusal.unwrap_or_else(|| panic!("unexpected: {}", answer.describe()));
        answer.refused(*status, code);
    }
    winner.expect("somebody wins")
}

#[test]
fn of_32_deleters_and_movers_exactly_one_wins() {
    let scope = Scope::fresh(&SERVER);
    for round in 0..10 {
        let stored = scope.create("a.md", json!({"round": round}));
        let target = |n: usize| format!("{round}/{n}.md");
        let answers = at_once(RACERS, |n| {
            let if_match = if n % 4 < 2 { "*" } else { &*stored.etag };
            match n % 2 {
                0 => scope.delete("a.md", if_match),
                _ => scope.rename("a.md", &target(n), if_match),
            }
        });
        let (n, winner) = single_winner(answers, &[(404, "DOCUMENT_NOT_FOUND")]);
        scope.get("a.md").refused(404, "DOCUMENT_NOT_FOUND");
        let there = scope.paths(&format!("prefix={round}/"));
        match n % 2 {
            0 => assert_eq!(there, Vec::<String>::new()),
            _ => {
                let moved = winner.moved_to(&target(n));
                assert_eq!(there, [target(n)]);
                assert_eq!(scope.read(&target(n)), moved);
            }
        }
    }
    // A creation each, a departure each, and an arrival for every file that is there.
    assert_eq!(scope.audit().len(), 20 + scope.paths("").len());
    assert_eq!(told(&scope).len(), 20 + scope.paths("").len());
}

#[test]
fn of_32_movers_to_one_path_exactly_one_arrives() {
    let scope = Scope::fresh(&SERVER);
    let sources: Vec<Stored> =
        (0..RACERS).map(|n| scope.create(&format!("{n:02}.md"), json!({"n": n}))).collect();
    let answers = at_once(RACERS, |n| scope.rename(&format!("{n:02}.md"), "target.md", &sources[n].etag));
    let (n, winner) = single_winner(answers, &[(409, "DOCUMENT_EXISTS")]);
    let moved = winner.moved_to("target.md");
    assert_eq!(moved.content(), json!({"n": n}));
    assert_eq!(scope.read("target.md"), moved);
    assert_eq!(scope.paths("").len(), RACERS);
    for (other, source) in sources.iter().enumerate().filter(|(other, _)| *other != n) {
        assert_eq!(scope.read(&format!("{other:02}.md")), *source);
    }
}

#[test]
fn whoever_writes_deletes_and_moves_at_once_never_loses_what_was_acknowledged() {
    let scope = Scope::fresh(&SERVER);
    let first = scope.create("a.md", json!({"seen": []}));
    // Patches that were acknowledged go along with whatever version the movers take.
    let answers = at_once(RACERS, |n| match n % 4 {
        0 => (n, scope.rename("a.md", "b.md", "*")),
        1 => (n, scope.rename("b.md", "a.md", "*")),
        _ => {
            let ops = json!({"ops": [{"op": "add", "path": "/content/seen/-", "value": n}]});
            let path = if n % 8 < 4 { "a.md" } else { "b.md" };
            let mut answer = scope.patch(path, &first.etag, ops.clone());
            // Read, patch, and again: as agents do.
            for _ in 0..20 {
                if answer.status == 200 {
                    break;
                }
                let path = scope.paths("").pop().expect("a file");
                let read = scope.get(&path);
                if read.status == 200 {
                    answer = scope.patch(&path, &read.stored().etag, ops.clone());
                }
            }
            (n, answer)
        }
    });
    let [path] = <[String; 1]>::try_from(scope.paths("")).expect("one file, wherever it is");
    let mut expected: Vec<usize> =
        answers.iter().filter(|(n, answer)| n % 4 > 1 && answer.status == 200).map(|(n, _)| *n).collect();
    let content = scope.read(&path).content();
    let mut seen: Vec<usize> =
        content["seen"].as_array().unwrap().iter().map(|n| n.as_u64().unwrap() as usize).collect();
    expected.sort_unstable();
    seen.sort_unstable();
    assert_eq!(seen, expected);
    for (_, answer) in answers {
        assert!([200, 404, 409, 412].contains(&answer.status), "{}", answer.describe());
    }
    for record in scope.audit().iter().filter(|record| record["new_etag"].is_string()) {
        let proved = scope.reconstruct(&text(record, "path"), &text(record, "change_id")).expect(200);
        assert_eq!(proved.json["etag"], record["new_etag"]);
    }
}
