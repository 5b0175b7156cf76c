//! JSON Patch: RFC 6902 over RFC 6901 pointers, with the whole envelope as its root.
//!
//! What each operation, pointer and comparison comes to is tested in the core, in `files/patch/tests.rs`.

use crate::support::*;
use std::sync::LazyLock;

static SERVER: LazyLock<TestServer> = LazyLock::new(local_server);

/// A file with this content, patched in one request; the answer, and the content afterwards.
#[track_caller]
fn patch(content: Value, ops: Value) -> (Answer, Value) {
    let scope = Scope::fresh(&SERVER);
    let before = scope.create("a.md", content);
    let answer = scope.patch("a.md", &before.etag, json!({"ops": ops}));
    let after = scope.read("a.md");
    match answer.status {
        200 => assert_eq!(answer.clone().stored(), after),
        _ => assert_eq!(after, before, "a refused patch changed the file: {}", answer.describe()),
    }
    (answer, after.content())
}

/// Requires this content after the operations.
#[track_caller]
fn becomes(content: Value, ops: Value, expected: Value) {
    let (answer, after) = patch(content, ops);
    answer.stored();
    assert_eq!(after, expected);
}

/// Requires a refusal that names the operation and the pointer at fault.
#[track_caller]
fn refused(content: Value, ops: Value, code: &str, index: usize) {
    let op = ops[index].clone();
    assert_names(&patch(content, ops).0.refused(422, code), &op, index);
}

#[track_caller]
fn assert_names(answer: &Answer, op: &Value, index: usize) {
    assert_eq!(answer.detail("op_index"), Some(index.to_string().as_str()), "{}", answer.describe());
    let path = answer.detail("path").unwrap_or_else(|| panic!("no path: {}", answer.describe()));
    assert!(op["path"] == path || op["from"] == path, "{}", answer.describe());
}

fn add(path: &str, value: Value) -> Value {
    json!({"op": "add", "path": path, "value": value})
}

fn replace(path: &str, value: Value) -> Value {
    json!({"op": "replace", "path": path, "value": value})
}

fn test(path: &str, value: Value) -> Value {
    json!({"op": "test", "path": path, "value": value})
}

fn remove(path: &str) -> Value {
    json!({"op": "remove", "path": path})
}

fn relocate(from: &str, path: &str) -> Value {
    json!({"op": "move", "from": from, "path": path})
}

fn copy(from: &str, path: &str) -> Value {
    json!({"op": "copy", "from": from, "path": path})
}

// ---- operations

#[test]
fn operations_apply_in_order_each_to_the_result_of_the_one_before() {
    becomes(
        json!({}),
        json!([
            add("/content/a", json!({})),
            add("/content/a/list", json!([])),
            add("/content/a/list/-", json!(1)),
            add("/content/a/list/0", json!(0)),
            test("/content/a/list", json!([0, 1])),
            relocate("/content/a/list", "/content/b"),
            copy("/content/b/1", "/content/a/one"),
            remove("/content/b/0"),
        ]),
        json!({"a": {"one": 1}, "b": [1]}),
    );
}

#[test]
fn one_failing_operation_fails_them_all() {
    refused(
        json!({"a": 1}),
        json!([replace("/content/a", json!(2)), test("/content/a", json!(1)), add("/content/b", json!(3))]),
        "PATCH_TEST_FAILED",
        1,
    );
    refused(
        json!({"a": 1}),
        json!([remove("/content/a"), add("/content/b", json!(3)), remove("/content/a")]),
        "INVALID_PATCH_PATH",
        2,
    );
    refused(
        json!({"a": 1}),
        json!([add("/content/b", json!(3)), relocate("/content/c", "/content/d")]),
        "INVALID_PATCH_PATH",
        1,
    );
    refused(
        json!({"a": 1}),
        json!([add("/content/b", json!(3)), {"op": "increment", "path": "/content/a"}]),
        "INVALID_PATCH_OP",
        1,
    );
}

#[test]
fn a_test_compares_by_value_and_leaves_numbers_as_they_are_spelled() {
    for (stored, tested, equal) in [
        ("1.10", "1.1", true),
        ("1E400", "10E399", true),
        (r#"{"a":1,"b":[true,null]}"#, r#"{"b":[true,null],"a":1.0}"#, true),
        ("9007199254740992", "9007199254740993", false),
    ] {
        let scope = Scope::fresh(&SERVER);
        let document = format!(
            r#"{{"document":{{"doc_id":"d","schema_id":"s","schema_version":"1","content":{{"v":{stored}}}}}}}"#
        );
        let before = scope.put_body("a.md", "*", Body::json_text(document)).stored();
        let body = format!(r#"{{"ops":[{{"op":"test","path":"/content/v","value":{tested}}}]}}"#);
        let answer = scope.patch_body("a.md", &before.etag, Body::json_text(body));
        match equal {
            true => {
                assert!(answer.stored().text.contains(&format!(r#""v":{stored}"#)), "it changed {stored}")
            }
            false => _ = answer.refused(422, "PATCH_TEST_FAILED"),
        }
    }
}

#[test]
fn the_root_is_the_whole_envelope() {
    let scope = Scope::fresh(&SERVER);
    let before = scope.create("a.md", json!({"a": 1}));
    let ops = json!([
        replace("/doc_id", json!("doc-2")),
        replace("/schema_version", json!("2.0.0")),
        replace("/content", json!({"b": 2})),
        add("/tags", json!(["x"])),
        replace("/created_at", json!("2020-02-29T12:00:00+01:00")),
    ]);

    let after = scope.patch("a.md", &before.etag, json!({"ops": ops})).stored().document();

    assert_eq!(after["doc_id"], "doc-2");
    assert_eq!(after["schema_id"], "notes");
    assert_eq!(after["schema_version"], "2.0.0");
    assert_eq!(after["content"], json!({"b": 2}));
    assert_eq!(after["tags"], json!(["x"]));
    assert_eq!(after["created_at"], "2020-02-29T12:00:00+01:00");
}

#[test]
fn writes_to_what_the_server_keeps_are_accepted_and_overwritten() {
    for ops in [
        json!([
            replace("/updated_at", json!("2001-01-01T00:00:00Z")),
            replace("/updated_by", json!("mallory"))
        ]),
        json!([add("/updated_at", json!(7)), add("/updated_by", json!({"any": "thing"}))]),
        json!([remove("/updated_at"), remove("/updated_by")]),
        json!([copy("/doc_id", "/updated_at"), copy("/content", "/updated_by")]),
    ] {
        let scope = Scope::fresh(&SERVER);
        let before = scope.create("a.md", json!({}));

        let after = scope.patch("a.md", &before.etag, json!({"ops": ops})).stored().document();

        assert_timestamp(&after["updated_at"]);
        assert!(after["updated_at"].as_str() >= before.document()["updated_at"].as_str(), "{after}");
        assert_eq!(after["updated_by"], AGENT);
    }
}

#[test]
fn elements_are_judged_before_the_file_is_looked_at() {
    let scope = Scope::fresh(&SERVER);
    scope.create("a.md", json!({}));
    for body in [
        json!({"ops": [add("/content/a", json!(1)), {"op": "add"}]}),
        json!({"ops": add("/content/a", json!(1))}),
        json!({"ops": [add("/content/a", json!(1))], "edits": "a"}),
    ] {
        scope.patch("missing.md", "*", body.clone()).refused(400, "INVALID_REQUEST");
        scope.patch("a.md", "\"other\"", body).refused(400, "INVALID_REQUEST");
    }
}

// ---- what is left must be an envelope

#[test]
fn a_patch_cannot_break_the_envelope() {
    for (op, field) in [
        (remove("/content"), "content"),
        (replace("/content", json!([])), "content"),
        (replace("/content", json!(null)), "content"),
        (replace("/content", json!("text")), "content"),
        (add("/content", json!(7)), "content"),
        (relocate("/content", "/moved"), "content"),
        (copy("/doc_id", "/content"), "content"),
        (remove("/doc_id"), "doc_id"),
        (replace("/doc_id", json!("")), "doc_id"),
        (replace("/doc_id", json!(" \t")), "doc_id"),
        (replace("/doc_id", json!(7)), "doc_id"),
        (remove("/schema_id"), "schema_id"),
        (replace("/schema_id", json!("  ")), "schema_id"),
        (replace("/schema_id", json!(null)), "schema_id"),
        (remove("/schema_version"), "schema_version"),
        (replace("/schema_version", json!("")), "schema_version"),
        (replace("/schema_version", json!(1.0)), "schema_version"),
        (replace("/created_at", json!("yesterday")), "created_at"),
        (replace("/created_at", json!("2026-02-30T00:00:00Z")), "created_at"),
        (replace("/created_at", json!(0)), "created_at"),
    ] {
        let answer = patch(json!({"a": 1}), json!([op])).0.refused(422, "INVALID_DOCUMENT");
        assert_eq!(answer.detail("field"), Some(field), "{}", answer.describe());
    }
}

#[test]
fn only_the_end_of_a_patch_must_be_an_envelope() {
    let scope = Scope::fresh(&SERVER);
    let before = scope.create("a.md", json!({"a": 1}));
    let ops = json!([
        relocate("/content", "/aside"),
        add("/content", json!({})),
        relocate("/aside/a", "/content/b"),
        remove("/aside"),
        remove("/doc_id"),
        add("/doc_id", json!("doc-2")),
    ]);

    let after = scope.patch("a.md", &before.etag, json!({"ops": ops})).stored().document();

    assert_eq!(after["content"], json!({"b": 1}));
    assert_eq!(after["doc_id"], "doc-2");
    assert_eq!(after.get("aside"), None);
}

#[test]
fn a_patch_cannot_grow_a_document_beyond_its_limit() {
    let content = json!({"a": "x".repeat(100_000)});
    let grow = json!([copy("/content/a", "/content/b"), copy("/content/a", "/content/c")]);

    let answer = patch(content, grow).0.refused(422, "DOCUMENT_SIZE_EXCEEDED");

    assert_eq!(answer.detail("limit"), Some("256000"));
    assert!(answer.detail("actual").unwrap().parse::<usize>().unwrap() > 300_000, "{}", answer.describe());
}

// ---- nothing to do, too much to do

#[test]
fn a_patch_with_nothing_to_do_is_refused() {
    let scope = Scope::fresh(&SERVER);
    let before = scope.create("a.md", json!({"text": "a"}));
    for body in [
        json!({}),
        json!({"reason": "none"}),
        json!({"ops": null}),
        json!({"ops": []}),
        json!({"edits": null}),
        json!({"edits": []}),
        json!({"ops": null, "edits": null}),
        json!({"ops": [], "edits": []}),
        json!({"ops": [], "edits": null}),
        json!({"operations": [add("/content/a", json!(1))]}),
    ] {
        scope.patch("a.md", &before.etag, body.clone()).refused(400, "INVALID_PATCH");
        scope.patch("missing.md", "*", body).refused(400, "INVALID_PATCH");
    }
    assert_eq!(scope.read("a.md"), before);
}

#[test]
fn operations_alone_are_enough_whatever_the_other_list_is() {
    for edits in [None, Some(json!(null)), Some(json!([]))] {
        let scope = Scope::fresh(&SERVER);
        let before = scope.create("a.md", json!({}));
        let mut body = json!({"ops": [add("/content/a", json!(1))]});
        if let Some(edits) = edits {
            body["edits"] = edits;
        }

        assert_eq!(scope.patch("a.md", &before.etag, body).stored().content(), json!({"a": 1}));
    }
}

#[test]
fn a_hundred_operations_are_accepted_and_one_more_is_not() {
    let ops = |count: usize| (0..count).map(|n| add(&format!("/content/m{n}"), json!(n))).collect::<Vec<_>>();

    let (answer, content) = patch(json!({}), json!(ops(100)));
    answer.stored();
    assert_eq!(content.as_object().unwrap().len(), 100);
    patch(json!({}), json!(ops(101))).0.refused(422, "PATCH_TOO_LARGE");
}

// ---- fidelity

#[test]
fn values_arrive_with_their_numbers_and_their_order() {
    let scope = Scope::fresh(&SERVER);
    let before = scope.create("a.md", json!({"first": 1}));
    let value =
        r#"{"z":123456789012345678901234567890,"a":1.10,"m":[1E400,-0,1e-7,1.0e+2],"b":{"y":0.0,"x":null}}"#;
    let body = format!(r#"{{"ops":[{{"op":"add","path":"/content/v","value":{value}}}]}}"#);

    let after = scope.patch_body("a.md", &before.etag, Body::json_text(body)).stored();

    assert!(after.text.contains(&format!(r#""v":{value}"#)), "{}", after.text);
    assert_eq!(scope.read("a.md"), after);
    let copied = json!({"ops": [copy("/content/v/m", "/content/w"), relocate("/content/v/a", "/content/x")]});
    let copied = scope.patch("a.md", &after.etag, copied).stored();
    assert!(copied.text.contains(r#""w":[1E400,-0,1e-7,1.0e+2]"#), "{}", copied.text);
    assert!(copied.text.contains(r#""x":1.10"#), "{}", copied.text);
}

#[test]
fn the_members_that_stay_keep_their_order() {
    let scope = Scope::fresh(&SERVER);
    let before = scope.create("a.md", json!({"f": 1, "b": 2, "e": 3, "a": 4, "d": 5, "c": 6}));
    let order = |stored: &Stored| stored.content().as_object().unwrap().keys().cloned().collect::<String>();
    assert_eq!(order(&before), "fbeadc");

    let after = scope.patch("a.md", &before.etag, json!({"ops": [remove("/content/b")]})).stored();
    assert_eq!(order(&after), "feadc");
    let ops = json!([relocate("/content/f", "/content/g"), replace("/content/a", json!({"any": 1}))]);
    let after = scope.patch("a.md", &after.etag, json!({"ops": ops})).stored();
    assert_eq!(order(&after), "eadcg");
}

#[test]
fn a_document_that_a_patch_makes_very_deep_stays_a_document() {
    let nested = |levels: usize, inner: &str| format!("{}{inner}{}", "[".repeat(levels), "]".repeat(levels));
    let scope = Scope::fresh(&SERVER);
    let document = format!(
        r#"{{"document":{{"doc_id":"d","schema_id":"s","schema_version":"1","content":{{"v":{}}}}}}}"#,
        nested(100, "0")
    );
    let before = scope.put_body("a.md", "*", Body::json_text(document)).stored();
    let pointer = format!("/content/v{}", "/0".repeat(100));
    let body = format!(r#"{{"ops":[{{"op":"replace","path":"{pointer}","value":{}}}]}}"#, nested(100, "1"));

    let answer = scope.patch_body("a.md", &before.etag, Body::json_text(body));

    let now = scope.get("a.md").stored();
    if answer.status == 200 {
        assert!(now.text.contains(&nested(200, "1")), "{}", now.text);
        let more = json!({"ops": [add("/content/more", json!(true))]});
        scope.patch("a.md", &now.etag, more).stored();
        for record in scope.audit() {
            scope.reconstruct("a.md", record["change_id"].as_str().unwrap()).expect(200);
        }
    } else {
        assert!((400..500).contains(&answer.status), "{}", answer.describe());
        assert_eq!(now, before);
    }
}

#[test]
fn a_refused_patch_leaves_no_record() {
    let scope = Scope::fresh(&SERVER);
    let before = scope.create("a.md", json!({"a": 1}));
    for ops in [
        json!([test("/content/a", json!(2))]),
        json!([remove("/content/b")]),
        json!([remove("/content")]),
        json!([{"op": "nonsense", "path": "/content/a"}]),
    ] {
        scope.patch("a.md", &before.etag, json!({"ops": ops})).expect(422);
    }
    scope.patch("a.md", "\"stale\"", json!({"ops": [remove("/content/a")]})).expect(412);

    assert_eq!(scope.read("a.md"), before);
    assert_eq!(scope.audit().len(), 1, "the create's");
}
