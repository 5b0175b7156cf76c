//! `Idempotency-Key`: what succeeded once is answered again and not done again.

use crate::support::*;
use std::sync::LazyLock;

static SERVER: LazyLock<TestServer> = LazyLock::new(local_server);

/// The same caller, with this key.
fn with_key(scope: &Scope, key: &str) -> Scope {
    scope.with_header("idempotency-key", key)
}

fn count_up(n: usize) -> Value {
    json!({"edits": [{"old_text": format!("n{n};"), "new_text": format!("n{};", n + 1)}]})
}

/// Requires a fresh success: a version, and nothing that says otherwise.
#[track_caller]
fn assert_fresh(answer: Answer) -> Value {
    let answer = answer.expect(200);
    assert_eq!(answer.header("idempotency-replayed"), "", "{:?}", answer.headers);
    let mut version = answer.json;
    let replay = version.as_object_mut().unwrap().shift_remove("idempotency_replay");
    assert!(matches!(replay, None | Some(Value::Bool(false))), "{replay:?}");
    version
}

/// Requires the first answer again, marked as such.
#[track_caller]
fn assert_replayed(answer: Answer, first: &Value) {
    let answer = answer.expect(200);
    assert_eq!(answer.header("idempotency-replayed"), "true", "{:?}", answer.headers);
    assert_eq!(answer.header("etag"), first["etag"].as_str().unwrap());
    let mut expected = first.clone();
    expected["idempotency_replay"] = json!(true);
    assert_eq!(answer.json, expected);
}

// ---- a repetition

#[test]
fn a_repeated_put_answers_the_first_version_whatever_if_match_says() {
    let scope = Scope::fresh(&SERVER);
    let caller = with_key(&scope, "key");
    let first = assert_fresh(caller.put("a.md", "*", note("one")));
    let current = scope.put("a.md", first["etag"].as_str().unwrap(), note("two")).stored();

    for if_match in ["*", first["etag"].as_str().unwrap(), &current.etag, "\"never\""] {
        assert_replayed(caller.put("a.md", if_match, note("one")), &first);
    }

    assert_eq!(scope.read("a.md"), current);
    assert_eq!(scope.audit().len(), 2);
}

#[test]
fn a_repeated_patch_patches_once() {
    let scope = Scope::fresh(&SERVER);
    let created = scope.create("a.md", json!({"text": "n0;", "list": []}));
    let caller = with_key(&scope, "key");
    let append = json!({"ops": [{"op": "add", "path": "/content/list/-", "value": 1.50}], "reason": "r"});

    let first = assert_fresh(caller.patch("a.md", &created.etag, append.clone()));
    assert_replayed(caller.patch("a.md", &created.etag, append.clone()), &first);
    assert_replayed(caller.patch("a.md", first["etag"].as_str().unwrap(), append), &first);

    assert_eq!(scope.read("a.md").content()["list"].as_array().unwrap().len(), 1);
    assert_eq!(scope.audit().len(), 2);
}

#[test]
fn a_repetition_is_letter_by_letter_what_was_answered_first() {
    let scope = Scope::fresh(&SERVER);
    let content = r#"{"z":1.10,"a":1E400,"m":[123456789012345678901234567890]}"#;
    let body = format!(
        r#"{{"document":{{"doc_id":"d","schema_id":"s","schema_version":"1","content":{content}}}}}"#
    );
    let put = || with_key(&scope, "key").put_body("a.md", "*", Body::json_text(body.clone())).expect(200);
    let (first, again) = (put(), put());

    assert!(first.text.contains(content) && again.text.contains(content), "{}", again.text);
}

#[test]
fn a_repeated_event_is_written_once() {
    let scope = Scope::fresh(&SERVER);
    let caller = with_key(&scope, "key");
    let walrus = scope.event("evt_01", json!({"digest": "walrus"}));
    assert_eq!(caller.write_event(walrus.clone()).expect(202).header("idempotency-replayed"), "");
    scope.tell("evt_01", json!({"digest": "penguin"}));

    let again = caller.write_event(walrus).expect(202);

    assert_eq!(again.header("idempotency-replayed"), "true");
    assert!(again.text.is_empty() || again.json == json!({"idempotency_replay": true}), "{}", again.text);
    assert_eq!(scope.found(json!({"query": "penguin"})), ["evt_01"], "the newer event stays");
    assert_eq!(scope.found(json!({"query": "walrus"})), Vec::<String>::new());
}

#[test]
fn the_spelling_of_a_request_does_not_matter() {
    let scope = Scope::fresh(&SERVER);
    let caller = with_key(&scope, "key");
    let put = |path: &str, body: &str| caller.put_body(path, "*", Body::json_text(body));
    let first = assert_fresh(put(
        "dir/a.md",
        r#"{"document":{"doc_id":"d","schema_id":"s","schema_version":"1","content":{"x":1,"y":"\u00e9"}},"reason":"r"}"#,
    ));

    assert_replayed(
        put(
            "dir%2Fa.md",
            r#" { "reason" : "r", "document": {"content":{"y":"é", "x":1},"schema_version":"1","schema_id":"s","doc_id":"d"} } "#,
        ),
        &first,
    );
    assert_eq!(scope.audit().len(), 1);
}

#[test]
fn without_a_key_everything_is_done_again() {
    let scope = Scope::fresh(&SERVER);
    let first = scope.put("a.md", "*", note("one")).stored();
    scope.put("a.md", "*", note("one")).refused(412, "ETAG_MISMATCH");
    let second = scope.put("a.md", &first.etag, note("one")).stored();
    assert_ne!(first.etag, second.etag);
}

#[test]
fn reads_take_no_notice_of_a_key() {
    let scope = Scope::fresh(&SERVER);
    let stored = scope.create("a.md", json!({}));
    let caller = with_key(&scope, "key");

    assert_eq!(caller.read("a.md"), stored);
    caller.search(json!({}));
    assert_eq!(caller.read("a.md"), stored);
    caller.put("b.md", "*", note("one")).expect(200);
}

// ---- another request

#[test]
fn a_key_carries_one_request() {
    let scope = Scope::fresh(&SERVER);
    let created = scope.create("a.md", json!({"text": "n0;"}));
    let caller = with_key(&scope, "key");
    let first = assert_fresh(caller.put("b.md", "*", note("one")));
    let before = scope.audit().len();

    caller.put("b.md", first["etag"].as_str().unwrap(), note("two")).refused(409, "IDEMPOTENCY_CONFLICT");
    caller.put("c.md", "*", note("one")).refused(409, "IDEMPOTENCY_CONFLICT");
    caller.patch("a.md", &created.etag, count_up(0)).refused(409, "IDEMPOTENCY_CONFLICT");
    caller.write_event(scope.event("evt_01", json!({}))).refused(409, "IDEMPOTENCY_CONFLICT");
    let reason = json!({"document": note("one"), "reason": "another"});
    caller.put_body("b.md", "*", Body::Json(reason)).refused(409, "IDEMPOTENCY_CONFLICT");

    assert_eq!(scope.audit().len(), before);
    assert_eq!(scope.found(json!({})), Vec::<String>::new());
    scope.get("c.md").refused(404, "DOCUMENT_NOT_FOUND");
    assert_replayed(caller.put("b.md", "*", note("one")), &first);
}

#[test]
fn a_key_for_an_event_carries_that_event() {
    let scope = Scope::fresh(&SERVER);
    let caller = with_key(&scope, "key");
    caller.write_event(scope.event("evt_01", json!({}))).expect(202);

    caller.write_event(scope.event("evt_02", json!({}))).refused(409, "IDEMPOTENCY_CONFLICT");
    caller
        .write_event(scope.event("evt_01", json!({"digest": "other"})))
        .refused(409, "IDEMPOTENCY_CONFLICT");
    caller.put("a.md", "*", note("one")).refused(409, "IDEMPOTENCY_CONFLICT");

    assert_eq!(scope.found(json!({"query": "summary"})), ["evt_01"]);
}

#[test]
fn what_failed_leaves_the_key_free() {
    let scope = Scope::fresh(&SERVER);
    let first = scope.create("a.md", json!({"text": "n0;"}));
    let second = scope.patch("a.md", &first.etag, count_up(0)).stored();
    let caller = with_key(&scope, "key");

    caller.patch("a.md", &first.etag, count_up(0)).refused(412, "ETAG_MISMATCH");
    caller.patch("missing.md", &first.etag, count_up(1)).refused(404, "DOCUMENT_NOT_FOUND");
    caller.patch("a.md", &second.etag, count_up(7)).refused(422, "PATCH_MATCH_NOT_FOUND");
    caller.patch("a.md", &second.etag, json!({})).refused(400, "INVALID_PATCH");
    caller.write_event(json!({})).refused(422, "EVENT_SCOPE_MISMATCH");
    let rebased = assert_fresh(caller.patch("a.md", &second.etag, count_up(1)));

    assert_eq!(rebased["document"]["content"]["text"], "n2;");
    assert_replayed(caller.patch("a.md", &second.etag, count_up(1)), &rebased);
}

#[test]
fn the_checks_before_the_key_still_come_first() {
    let scope = Scope::fresh(&SERVER);
    let caller = with_key(&scope, "key");
    assert_fresh(caller.put("a.md", "*", note("one")));

    let without =
        caller.client.send("PUT", &scope.file("a.md"), Body::Json(json!({"document": note("one")})));
    without.refused(400, "MISSING_IF_MATCH");
    caller.put_body("a.md", "*", Body::json_text("{")).refused(400, "INVALID_JSON");
}

// ---- whose key, which key

#[test]
fn a_key_belongs_to_one_caller_of_one_scope() {
    let scope = Scope::fresh(&SERVER);
    let neighbour = Scope::of(&SERVER, &scope.tenant, &fresh_name("user"));
    let namesake = Scope::of(&SERVER, &fresh_name("tenant"), &scope.user);
    let first = assert_fresh(with_key(&scope, "key").put("a.md", "*", note("one")));

    for other in [&neighbour, &namesake] {
        let fresh = assert_fresh(with_key(other, "key").put("a.md", "*", note("one")));
        assert_ne!(fresh["etag"], first["etag"]);
    }
    let other_caller = scope.seen_by(&SERVER.anonymous().with_key("agent-b"));
    with_key(&other_caller, "key").put("a.md", "*", note("one")).refused(412, "ETAG_MISMATCH");
    assert_fresh(with_key(&other_caller, "key").put("b.md", "*", note("other")));
    // The name a caller gives itself is not who it is.
    let renamed = scope.with_header("x-service-id", "somebody-else");
    assert_replayed(with_key(&renamed, "key").put("a.md", "*", note("one")), &first);
}

#[test]
fn keys_are_told_apart_letter_by_letter() {
    let scope = Scope::fresh(&SERVER);
    for (n, key) in ["key", "Key", "key.", "0", "!~", &"k".repeat(128)].into_iter().enumerate() {
        let path = format!("{n}.md");
        let first = assert_fresh(with_key(&scope, key).put(&path, "*", note("one")));
        assert_replayed(with_key(&scope, key).put(&path, "*", note("one")), &first);
    }
}

#[test]
fn a_key_is_one_to_a_hundred_and_twenty_eight_visible_characters() {
    let scope = Scope::fresh(&SERVER);
    let body = json!({"document": note("one")}).to_string();
    for key in ["", "two words", "tab\there", "é", &"k".repeat(129)] {
        let headers = [("if-match", "*"), ("idempotency-key", key)];
        let refused = scope.raw("PUT", &scope.file("a.md"), &headers, &body);
        refused.refused(400, "INVALID_IDEMPOTENCY_KEY");
        let event = json!({"event": scope.event("evt_01", json!({}))}).to_string();
        let refused = scope.raw("POST", &scope.at("/events"), &[("idempotency-key", key)], &event);
        refused.refused(400, "INVALID_IDEMPOTENCY_KEY");
    }
    scope.get("a.md").refused(404, "DOCUMENT_NOT_FOUND");
    assert_eq!(scope.found(json!({})), Vec::<String>::new());
}

// ---- at the same time, and later

#[test]
fn of_many_duplicates_one_writes_and_all_are_answered_alike() {
    let scope = Scope::fresh(&SERVER);
    let created = scope.create("patched.md", json!({"text": "n0;"}));
    for round in 0..5 {
        let caller = with_key(&scope, &format!("key-{round}"));
        let path = format!("{round}.md");
        let answers = at_once(12, |_| caller.put(&path, "*", note("one")).expect(200));
        let replays = answers.iter().filter(|answer| answer.header("idempotency-replayed") == "true").count();
        assert_eq!(replays, 11);
        for answer in &answers {
            assert_eq!(answer.json["etag"], answers[0].json["etag"]);
            assert_eq!(answer.json["document"], answers[0].json["document"]);
        }
    }
    let caller = with_key(&scope, "patch");
    let answers = at_once(12, |_| caller.patch("patched.md", &created.etag, count_up(0)).expect(200));
    assert!(answers.iter().all(|answer| answer.json["etag"] == answers[0].json["etag"]));

    assert_eq!(scope.read("patched.md").content()["text"], "n1;");
    assert_eq!(scope.audit().len(), 1 + 5 + 1);
}

#[test]
fn of_many_different_requests_with_one_key_one_succeeds() {
    let scope = Scope::fresh(&SERVER);
    let caller = with_key(&scope, "key");

    let answers = at_once(8, |n| caller.put(&format!("{n}.md"), "*", note("one")));

    let (done, refused): (Vec<_>, Vec<_>) = answers.into_iter().partition(|answer| answer.status == 200);
    assert_eq!((done.len(), refused.len()), (1, 7));
    for answer in refused {
        answer.refused(409, "IDEMPOTENCY_CONFLICT");
    }
    assert_eq!(scope.paths("").len(), 1);
}

#[test]
fn a_key_survives_a_crash_with_what_it_carried() {
    survives_a_crash(local_server());
}

#[test]
fn a_key_survives_a_crash_with_what_it_carried_encrypted() {
    survives_a_crash(encrypted_server());
}

#[track_caller]
fn survives_a_crash(mut server: TestServer) {
    let scope = Scope::fresh(&server);
    let first = assert_fresh(with_key(&scope, "put").put("a.md", "*", note("one")));
    with_key(&scope, "event").write_event(scope.event("evt_01", json!({}))).expect(202);
    server.restart();
    let scope = Scope::of(&server, &scope.tenant, &scope.user);

    assert_replayed(with_key(&scope, "put").put("a.md", "*", note("one")), &first);
    let again = with_key(&scope, "event").write_event(scope.event("evt_01", json!({}))).expect(202);
    assert_eq!(again.header("idempotency-replayed"), "true");
    with_key(&scope, "put").put("a.md", "*", note("two")).refused(409, "IDEMPOTENCY_CONFLICT");
    assert_eq!(scope.audit().len(), 1);
}
