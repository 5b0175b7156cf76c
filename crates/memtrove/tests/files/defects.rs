//! What was found wrong in the service that this contract comes from, each with a test that it is not so here.
//!
//! The numbers are the contract's. Those about events, retention and assembly are in the modules of those names.

use crate::support::*;
use std::path::Path;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicBool, Ordering};

static SERVER: LazyLock<TestServer> = LazyLock::new(local_server);

fn add(path: &str, value: Value) -> Value {
    json!({"ops": [{"op": "add", "path": path, "value": value}]})
}

fn edit(old: &str, new: &str) -> Value {
    json!({"edits": [{"old_text": old, "new_text": new}]})
}

fn event(scope: &Scope, id: &str) -> Value {
    json!({"event": {"event_id": id, "tenant_id": scope.tenant, "user_id": scope.user, "digest": "something"}})
}

#[test]
fn defect_1_no_encoded_path_leaves_the_data_folder() {
    let scope = Scope::fresh(&SERVER);
    let name = fresh_name("escape");
    let outside = std::env::temp_dir().join(&name);
    let body = json!({"document": note("escaped")}).to_string();
    let encoded = outside.to_string_lossy().replace('/', "%2F");

    for target in [
        encoded.clone(),
        encoded.replace("%2F", "%5C"),
        encoded.replace("%2F", "%252F"),
        format!("..%2F..%2F..%2F..%2F..%2F..{encoded}"),
        format!("../../../../../../tmp/{name}"),
        format!("%2e%2e/%2e%2e/%2e%2e/%2e%2e/%2e%2e/tmp/{name}"),
        format!("/tmp/{name}"),
    ] {
        scope.raw("PUT", &scope.file(&target), &[("if-match", "*")], &body).refused(400, "INVALID_PATH");
    }
    for target in
        ["%2Fetc%2Fpasswd", "..%2F..%2F..%2Fetc%2Fpasswd", "%5Cetc%5Cpasswd", "../../../etc/hostname"]
    {
        scope.raw("GET", &scope.file(target), &[], "").refused(400, "INVALID_PATH");
    }
    for id in ["../../escape", "..", "a/../b", "/etc/passwd", "a\\b", &format!("../../../tmp/{name}")] {
        scope.post("/events", event(&scope, id)).refused(400, "INVALID_EVENT");
    }
    let ids = format!("/v1/tenants/..%2F..%2F{name}/users/u/files/a.md");
    scope.raw("PUT", &ids, &[("if-match", "*")], &body).refused(400, "INVALID_PATH_SEGMENT");

    assert!(!outside.exists(), "{} was written", outside.display());
    assert!(!holds_name(SERVER.data_dir(), &name), "a caller's name became the name of a file");
}

/// Whether a file or folder somewhere below has this in its name.
fn holds_name(folder: &Path, name: &str) -> bool {
    // On PostgreSQL there is no folder at all.
    folder.exists()
        && std::fs::read_dir(folder).unwrap().any(|entry| {
            let entry = entry.unwrap();
            entry.file_name().to_string_lossy().contains(name)
                || entry.file_type().unwrap().is_dir() && holds_name(&entry.path(), name)
        })
}

#[test]
fn defect_1_names_of_files_and_scopes_are_data_not_locations() {
    let name = fresh_name("located");
    let scope = Scope::of(&SERVER, &format!("{name}-tenant"), &format!("{name}-user"));

    scope.create(&format!("{name}/path.md"), json!({}));
    scope.post("/events", event(&scope, &format!("{name}-event"))).expect(202);

    assert!(!holds_name(SERVER.data_dir(), &name), "a caller's name became the name of a file");
}

#[test]
fn defect_2_losers_get_412_and_readers_get_whole_documents() {
    let scope = Scope::fresh(&SERVER);
    let filler = "x".repeat(50_000);
    let mut etag = scope.create("a.md", json!({"text": filler, "n": 0})).etag;
    let over = AtomicBool::new(false);

    std::thread::scope(|threads| {
        let reader = threads.spawn(|| {
            let mut read = 0;
            while !over.load(Ordering::Relaxed) || read == 0 {
                let answer = scope.get("a.md");
                assert!(answer.status == 200, "a plain reader got {}", answer.describe());
                assert_eq!(answer.stored().content()["text"].as_str().unwrap().len(), filler.len());
                read += 1;
            }
        });
        let rounds: Vec<Vec<u16>> = (1..=20)
            .map(|round| {
                let answers =
                    at_once(8, |_| scope.put("a.md", &etag, envelope(json!({"text": filler, "n": round}))));
                let statuses = answers.iter().map(|answer| answer.status).collect();
                if let Some(won) = answers.into_iter().find(|answer| answer.status == 200) {
                    etag = won.stored().etag;
                }
                statuses
            })
            .collect();
        over.store(true, Ordering::Relaxed);
        reader.join().unwrap();
        for statuses in rounds {
            assert_eq!(statuses.iter().filter(|status| **status == 200).count(), 1, "{statuses:?}");
            assert_eq!(statuses.iter().filter(|status| **status == 412).count(), 7, "{statuses:?}");
        }
    });
}

#[test]
fn defect_3_the_seeds_own_example_of_edits_works() {
    let scope = Scope::fresh(&SERVER);
    let before = scope.create("profile.md", json!({"text": "## Preferences\n- concise answers\n"}));
    let example = json!({
        "edits": [
            {
                "old_text": "## Preferences\n- concise answers\n",
                "new_text": "## Preferences\n- concise answers\n- include tradeoffs first\n",
                "occurrence": 1
            }
        ],
        "reason": "preference_update",
        "evidence": {"source": "chat", "conversation_id": "c_123", "trace_id": "abc-123"}
    });

    let after = scope.patch("profile.md", &before.etag, example).stored();

    assert_eq!(after.content()["text"], "## Preferences\n- concise answers\n- include tradeoffs first\n");
}

#[test]
fn defect_3_incomplete_requests_are_refused_not_crashed_on() {
    let scope = Scope::fresh(&SERVER);
    let before = scope.create("a.md", json!({"text": "a"}));
    let number = scope.create("number.md", json!({"text": 7}));
    let patch = |body: Value| scope.patch("a.md", &before.etag, body);

    patch(json!({"edits": [{"old_text": "a"}]})).refused(400, "INVALID_TEXT_PATCH");
    scope.patch("number.md", &number.etag, edit("7", "8")).refused(422, "PATCH_TEXT_NOT_FOUND");
    patch(json!({"ops": null})).refused(400, "INVALID_PATCH");
    patch(json!({"ops": [null]})).refused(400, "INVALID_REQUEST");
    patch(json!({"ops": [{"op": "replace", "path": "/content", "value": []}]}))
        .refused(422, "INVALID_DOCUMENT");
    scope.put_body("a.md", &before.etag, Body::Json(json!({}))).refused(400, "INVALID_REQUEST");
    scope.post("/events", json!({})).refused(400, "INVALID_EVENT");
    scope.post("/context:assemble", json!({})).refused(400, "MISSING_ASSEMBLY_TARGETS");

    assert_eq!(scope.read("a.md"), before);
    assert_eq!(scope.read("number.md"), number);
}

#[test]
fn defect_6_no_patch_stores_a_document_without_content() {
    let scope = Scope::fresh(&SERVER);
    let before = scope.create("a.md", json!({"text": "a"}));
    for op in [
        json!({"op": "remove", "path": "/content"}),
        json!({"op": "move", "from": "/content", "path": "/elsewhere"}),
        json!({"op": "replace", "path": "/content", "value": null}),
    ] {
        let refused =
            scope.patch("a.md", &before.etag, json!({"ops": [op]})).refused(422, "INVALID_DOCUMENT");
        assert_eq!(refused.detail("field"), Some("content"));
    }
    assert_eq!(scope.read("a.md"), before);
}

#[test]
fn defect_7_operations_count_when_there_are_edits_too() {
    let scope = Scope::fresh(&SERVER);
    let before = scope.create("a.md", json!({"text": "a"}));
    let mut both = add("/content/n", json!(1));
    both["edits"] = edit("a", "b")["edits"].clone();

    assert_eq!(scope.patch("a.md", &before.etag, both).stored().content(), json!({"text": "b", "n": 1}));
    assert_eq!(scope.audit()[1]["ops"], add("/content/n", json!(1))["ops"]);
    assert_eq!(scope.audit()[1]["edits"], edit("a", "b")["edits"]);
}

#[test]
fn defect_8_what_the_framework_refuses_has_the_error_envelope_too() {
    let scope = Scope::fresh(&SERVER);
    let put = |body: Body| scope.put_body("a.md", "*", body);

    put(Body::json_text("{")).refused(400, "INVALID_JSON");
    put(Body::None).refused(400, "INVALID_JSON");
    scope.client.get(&scope.at("/no-such-route")).refused(404, "ROUTE_NOT_FOUND");
    let wrong = scope.client.delete(&scope.file("a.md")).refused(405, "METHOD_NOT_ALLOWED");
    assert!(wrong.header("allow").contains("PATCH"), "{:?}", wrong.headers);
    put(Body::json_text(" ".repeat(8 * 1024 * 1024 + 1))).refused(413, "PAYLOAD_TOO_LARGE");
    put(Body::Raw { content_type: Some("text/plain"), bytes: b"{}".to_vec() })
        .refused(415, "UNSUPPORTED_MEDIA_TYPE");
}

#[test]
fn defect_10_text_of_every_alphabet_costs_one_per_character() {
    let scope = Scope::fresh(&SERVER);
    for (n, text) in ["字".repeat(250_000), "😀".repeat(250_000)].into_iter().enumerate() {
        assert_eq!(scope.create(&format!("{n}.md"), json!({"text": text})).content()["text"], text);
    }
}

#[test]
fn defect_12_spellings_neither_alias_nor_crash() {
    let scope = Scope::fresh(&SERVER);
    let body = json!({"document": note("x")}).to_string();
    let put = |path: &str| scope.raw("PUT", &scope.file(path), &[("if-match", "*")], &body);

    put("a/b").stored();
    for alias in ["a//b", "./a/b", "a/./b", "a/b/"] {
        put(alias).refused(400, "INVALID_PATH");
    }
    put("a%5Cb").refused(412, "ETAG_MISMATCH");
    put("x").stored();
    put("x/y").stored();
    put("x/y/z").stored();
    put(&"n".repeat(255)).stored();
    put(&"n".repeat(256)).refused(400, "INVALID_PATH");
    assert_eq!(scope.paths(""), ["a/b", &"n".repeat(255), "x", "x/y", "x/y/z"]);
}

#[test]
fn defect_13_no_answer_exposes_paths_or_internals() {
    let scope = Scope::fresh(&SERVER);
    let stored = scope.create("a.md", json!({"text": "a"}));
    let folder = SERVER.data_dir().to_string_lossy().into_owned();
    let raw = |method: &str, path: &str, body: &str| {
        scope.raw(method, &scope.file(path), &[("if-match", &stored.etag)], body)
    };

    for answer in [
        raw("GET", "%2Fetc%2Fpasswd", ""),
        raw("GET", "missing.md", ""),
        raw("GET", "a%00b", ""),
        raw("PUT", "a.md", "{"),
        raw("PUT", "a.md", r#"{"document":7}"#),
        raw("PUT", "a.md", r#"{"document":{"doc_id":7}}"#),
        raw("PATCH", "a.md", r#"{"ops":[7]}"#),
        raw("PATCH", "a.md", r#"{"edits":{"old_text":"a"}}"#),
        raw("PATCH", "a.md", r#"{"ops":[{"op":"x'; DROP TABLE files;--","path":"/a"}]}"#),
        raw("DELETE", "a.md", ""),
        scope.list("limit=x"),
        scope.list("prefix=%27%22;--"),
        scope.post("/events:search", json!({"query": "' OR 1=1 --", "from": "never"})),
    ] {
        assert!(answer.status < 500, "{}", answer.describe());
        let text = answer.text.to_lowercase();
        for word in ["exception", "backtrace", "panicked", ".rs", "sqlite", "/home/", "struct ", &folder] {
            assert!(!text.contains(&word.to_lowercase()), "exposes {word:?}: {}", answer.describe());
        }
    }
}

#[test]
fn defect_14_every_change_has_its_record_with_what_was_done() {
    let scope = Scope::fresh(&SERVER);
    let created = scope.create("a.md", json!({"text": "a"}));
    let edited = scope.patch("a.md", &created.etag, edit("a", "b")).stored();
    let replaced = scope.put("a.md", &edited.etag, note("c")).stored();
    let patched = scope.patch("a.md", &replaced.etag, add("/content/n", json!(1))).stored();
    scope.patch("a.md", &patched.etag, edit("nope", "x")).expect(422);
    scope.put("a.md", &created.etag, note("stale")).expect(412);

    let trail = scope.audit();

    let actions: Vec<&Value> = trail.iter().map(|record| &record["action"]).collect();
    assert_eq!(actions, ["create", "patch", "replace", "patch"]);
    assert_eq!(trail[0]["document"], created.document());
    assert_eq!(trail[1]["edits"], edit("a", "b")["edits"]);
    assert_eq!(trail[2]["document"], replaced.document());
    assert_eq!(trail[3]["ops"], add("/content/n", json!(1))["ops"]);
    for (record, version) in trail.iter().zip([created, edited, replaced, patched]) {
        assert_eq!(record["new_etag"], version.etag);
        let rebuilt = scope.reconstruct("a.md", record["change_id"].as_str().unwrap()).expect(200).json;
        assert_eq!(rebuilt["document"], version.document());
    }
}

#[test]
fn defect_15_a_failure_does_not_burn_its_idempotency_key() {
    let scope = Scope::fresh(&SERVER);
    let before = scope.create("a.md", json!({"text": "a"}));
    let keyed = scope.with_header("idempotency-key", &fresh_name("key"));

    keyed.patch("a.md", &before.etag, edit("nope", "x")).refused(422, "PATCH_MATCH_NOT_FOUND");
    keyed.patch("a.md", "\"stale\"", edit("a", "b")).refused(412, "ETAG_MISMATCH");
    let patched = keyed.patch("a.md", &before.etag, edit("a", "c")).stored();

    assert_eq!(patched.content()["text"], "c");
}

#[test]
fn defect_15_idempotency_keys_of_two_tenants_have_nothing_to_do_with_each_other() {
    let key = fresh_name("key");
    let one = Scope::fresh(&SERVER).with_header("idempotency-key", &key);
    let two = Scope::of(&SERVER, &fresh_name("tenant"), &one.user).with_header("idempotency-key", &key);
    let three = Scope::of(&SERVER, &one.tenant, &fresh_name("user")).with_header("idempotency-key", &key);

    for (scope, text) in [(&one, "one"), (&two, "two"), (&three, "three")] {
        assert_eq!(scope.create("a.md", json!({"text": text})).content()["text"], text);
    }
}

#[test]
fn defect_16_lists_go_on_beyond_500_entries() {
    let scope = Scope::fresh(&SERVER);
    spread(510, |n| drop(scope.create(&format!("{n:03}.md"), json!({}))));

    let first = scope.list("limit=500").expect(200).json;
    let second =
        scope.list(&format!("limit=500&after={}", first["next_after"].as_str().unwrap())).expect(200).json;

    assert_eq!(second["next_after"], json!(null));
    let listed: Vec<&str> = [&first, &second]
        .into_iter()
        .flat_map(|page| page["files"].as_array().unwrap())
        .map(|file| file["path"].as_str().unwrap())
        .collect();
    let expected: Vec<String> = (0..510).map(|n| format!("{n:03}.md")).collect();
    assert_eq!(listed, expected);
}

#[test]
fn defect_16_there_are_etag_headers_and_credentials() {
    let scope = Scope::fresh(&SERVER);
    let put = scope.put("a.md", "*", note("a")).expect(200);
    let get = scope.get("a.md").expect(200);
    let patch = scope.patch("a.md", put.header("etag"), edit("a", "b")).expect(200);

    for answer in [&put, &get, &patch] {
        assert_eq!(answer.json["etag"], answer.header("etag"), "{}", answer.describe());
    }
    scope.seen_by(&SERVER.anonymous()).get("a.md").refused(401, "UNAUTHENTICATED");
}
