//! Text edits: that they are applied, refused and counted.
//!
//! What matches, and which occurrence is meant, is tested in the core, in `files/edits/tests.rs`.

use crate::support::*;
use std::sync::LazyLock;

static SERVER: LazyLock<TestServer> = LazyLock::new(local_server);

/// A file with this text, edited in one request; the answer, and the text afterwards.
#[track_caller]
fn edit(text: &str, edits: Value) -> (Answer, String) {
    let scope = Scope::fresh(&SERVER);
    let before = scope.create("a.md", json!({"text": text}));
    let answer = scope.patch("a.md", &before.etag, json!({"edits": edits}));
    let after = scope.read("a.md");
    match answer.status {
        200 => assert_ne!(after.etag, before.etag, "{}", answer.describe()),
        _ => assert_eq!(after, before, "a refused edit changed the file: {}", answer.describe()),
    }
    (answer, after.content()["text"].as_str().unwrap().to_owned())
}

/// Requires this text after the edits.
#[track_caller]
fn becomes(text: &str, edits: Value, expected: &str) {
    let (answer, after) = edit(text, edits);
    assert_eq!(answer.stored().content()["text"], expected);
    assert_eq!(after, expected);
}

/// Requires a refusal of this edit, which found so many matches.
#[track_caller]
fn refused(text: &str, edits: Value, code: &str, index: usize, matches: usize) {
    let (answer, _) = edit(text, edits);
    let answer = answer.refused(422, code);
    assert_eq!(answer.detail("edit_index"), Some(index.to_string().as_str()), "{}", answer.describe());
    assert_eq!(answer.detail("match_count"), Some(matches.to_string().as_str()), "{}", answer.describe());
}

fn one(old: &str, new: &str) -> Value {
    json!({"old_text": old, "new_text": new})
}

fn nth(old: &str, new: &str, occurrence: i64) -> Value {
    json!({"old_text": old, "new_text": new, "occurrence": occurrence})
}

// ---- applied, or refused

#[test]
fn edits_are_applied_one_after_the_other() {
    becomes("aaaa", json!([nth("aa", "b", 2), one("aab", "Q\r\n漢")]), "Q\r\n漢");
}

#[test]
fn one_failing_edit_fails_them_all() {
    refused("abc", json!([one("a", "Z"), one("nope", "Q")]), "PATCH_MATCH_NOT_FOUND", 1, 0);
    refused("abb", json!([one("a", "Z"), one("b", "Q")]), "PATCH_MATCH_AMBIGUOUS", 1, 2);
    refused("aaaa", json!([nth("aa", "b", 3)]), "PATCH_OCCURRENCE_OUT_OF_RANGE", 0, 2);
}

#[test]
fn replacing_a_text_with_itself_is_a_new_version() {
    becomes("a", json!([one("a", "a")]), "a");
}

#[test]
fn special_characters_survive() {
    let text = "tab\t nul\u{0} bell\u{7} quote\" back\\ line\u{2028} del\u{7f} bom\u{feff}";

    becomes(text, json!([one("quote", "QUOTE")]), &text.replace("quote", "QUOTE"));
    becomes("a\u{0}b", json!([one("\u{0}", "")]), "ab");
}

// ---- the target

#[test]
fn a_document_without_a_text_cannot_be_edited() {
    for content in [
        json!({}),
        json!({"Text": "a"}),
        json!({"text": null}),
        json!({"text": 1}),
        json!({"text": ["a"]}),
        json!({"text": {"text": "a"}}),
        json!({"body": {"text": "a"}}),
    ] {
        let scope = Scope::fresh(&SERVER);
        let before = scope.create("a.md", content);

        scope
            .patch("a.md", &before.etag, json!({"edits": [one("a", "b")]}))
            .refused(422, "PATCH_TEXT_NOT_FOUND");

        assert_eq!(scope.read("a.md"), before);
    }
}

#[test]
fn the_other_members_of_the_content_are_untouched() {
    let scope = Scope::fresh(&SERVER);
    let content = r#"{"z":1.10,"text":"a","b":{"text":"a"},"a":["a",1E400]}"#;
    let body = format!(
        r#"{{"document":{{"doc_id":"d","schema_id":"s","schema_version":"1","extra":"a","content":{content}}}}}"#
    );
    let before = scope.put_body("a.md", "*", Body::json_text(body)).stored();

    let after = scope.patch("a.md", &before.etag, json!({"edits": [one("a", "b")]})).stored();

    assert!(
        after.text.contains(&content.replace(r#""text":"a","b""#, r#""text":"b","b""#)),
        "{}",
        after.text
    );
    assert_eq!(after.document()["extra"], "a");
}

// ---- shapes

#[test]
fn unknown_members_of_an_edit_are_ignored() {
    becomes("a", json!([{"old_text": "a", "new_text": "b", "note": [1], "Occurrence": 7}]), "b");
}

#[test]
fn shapes_are_judged_for_the_whole_list_before_anything_is_applied() {
    let misshapen = json!({"old_text": ""});

    edit("a", json!([one("nope", "x"), misshapen])).0.refused(400, "INVALID_TEXT_PATCH");
    edit("a a", json!([one("a", "x"), misshapen])).0.refused(400, "INVALID_TEXT_PATCH");
    edit("a", json!([one("a", "x"), one("x", "y"), misshapen])).0.refused(400, "INVALID_TEXT_PATCH");

    let scope = Scope::fresh(&SERVER);
    let body = json!({"edits": [misshapen]});
    scope.patch("missing.md", "\"other\"", body.clone()).refused(400, "INVALID_TEXT_PATCH");
    scope.create("a.md", json!({"text": 1}));
    scope.patch("a.md", "\"other\"", body).refused(400, "INVALID_TEXT_PATCH");
}

// ---- with operations, and alone

#[test]
fn edits_alone_are_enough_whatever_the_other_list_is() {
    for ops in [None, Some(json!(null)), Some(json!([]))] {
        let scope = Scope::fresh(&SERVER);
        let before = scope.create("a.md", json!({"text": "a"}));
        let mut body =
            json!({"edits": [one("a", "b")], "reason": "a reason", "evidence": {"source": "chat"}});
        if let Some(ops) = ops {
            body["ops"] = ops;
        }

        assert_eq!(scope.patch("a.md", &before.etag, body).stored().content(), json!({"text": "b"}));
    }
}

#[test]
fn operations_come_first_and_edits_see_their_result() {
    let scope = Scope::fresh(&SERVER);
    let before = scope.create("a.md", json!({"text": "old"}));

    let after = scope
        .patch(
            "a.md",
            &before.etag,
            json!({
                "edits": [one("new", "newest")],
                "ops": [
                    {"op": "test", "path": "/content/text", "value": "old"},
                    {"op": "replace", "path": "/content/text", "value": "new"},
                    {"op": "add", "path": "/content/n", "value": 1},
                ],
            }),
        )
        .stored();

    assert_eq!(after.content(), json!({"text": "newest", "n": 1}));
    assert_eq!(scope.audit().len(), 2, "one mutation, one record");
}

#[test]
fn a_failing_edit_undoes_the_operations_and_a_failing_operation_keeps_the_edits_out() {
    let scope = Scope::fresh(&SERVER);
    let before = scope.create("a.md", json!({"text": "old"}));
    let add = json!({"op": "add", "path": "/content/n", "value": 1});
    let fail = json!({"op": "remove", "path": "/content/none"});

    let both = |op: &Value, old: &str| json!({"ops": [op], "edits": [one(old, "x")]});
    scope.patch("a.md", &before.etag, both(&add, "nope")).refused(422, "PATCH_MATCH_NOT_FOUND");
    scope.patch("a.md", &before.etag, both(&fail, "old")).refused(422, "INVALID_PATCH_PATH");
    let no_text = json!({"ops": [{"op": "remove", "path": "/content/text"}], "edits": [one("old", "x")]});
    scope.patch("a.md", &before.etag, no_text).refused(422, "PATCH_TEXT_NOT_FOUND");

    assert_eq!(scope.read("a.md"), before);
    assert_eq!(scope.audit().len(), 1);
}

#[test]
fn operations_can_make_the_text_that_edits_need() {
    let scope = Scope::fresh(&SERVER);
    let before = scope.create("a.md", json!({"text": 7}));
    let body = json!({
        "ops": [{"op": "replace", "path": "/content/text", "value": "seven"}],
        "edits": [one("seven", "eight")],
    });

    assert_eq!(scope.patch("a.md", &before.etag, body).stored().content(), json!({"text": "eight"}));
}

// ---- how many

#[test]
fn a_hundred_edits_are_accepted_and_one_more_is_not() {
    let count = |n: usize| json!(vec![one("a", "a"); n]);

    becomes("a", count(100), "a");
    edit("a", count(101)).0.refused(422, "PATCH_TOO_LARGE");
}

#[test]
fn operations_and_edits_are_counted_together() {
    let scope = Scope::fresh(&SERVER);
    let before = scope.create("a.md", json!({"text": "a"}));
    let op = json!({"op": "test", "path": "/content/text", "value": "a"});
    let body =
        |ops: usize, edits: usize| json!({"ops": vec![op.clone(); ops], "edits": vec![one("a", "a"); edits]});

    scope.patch("a.md", &before.etag, body(60, 41)).refused(422, "PATCH_TOO_LARGE");
    scope.patch("a.md", &before.etag, body(1, 100)).refused(422, "PATCH_TOO_LARGE");
    assert_eq!(scope.read("a.md"), before);
    scope.patch("a.md", &before.etag, body(50, 50)).stored();
}

#[test]
fn too_many_edits_are_refused_before_the_file_is_looked_at() {
    let scope = Scope::fresh(&SERVER);
    let body = json!({"edits": vec![one("a", "a"); 101]});

    scope.patch("missing.md", "*", body.clone()).refused(422, "PATCH_TOO_LARGE");
    scope.client.patch(&scope.file("missing.md"), body).refused(400, "MISSING_IF_MATCH");
}

#[test]
fn a_text_of_two_hundred_thousand_characters_is_edited_in_the_middle() {
    let line = "Ünïcödé 漢字 😀 line\n";
    let text = format!("{}needle{}", line.repeat(5_000), line.repeat(5_000));

    becomes(&text, json!([one("needle", "thread")]), &text.replace("needle", "thread"));
}
