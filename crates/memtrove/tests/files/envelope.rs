//! The envelope: what it must hold, what the server fills in, how large it may be, and that it comes back as it was.

use crate::support::*;
use std::sync::LazyLock;

static SERVER: LazyLock<TestServer> = LazyLock::new(local_server);

const LIMIT: usize = 256_000;

/// A complete envelope with one member changed, or removed.
fn with(member: &str, value: Option<Value>) -> Value {
    let mut document = note("text");
    match value {
        Some(value) => document[member] = value,
        None => {
            document.as_object_mut().unwrap().shift_remove(member);
        }
    }
    document
}

/// Writes a document given as text.
#[track_caller]
fn put_text(scope: &Scope, path: &str, if_match: &str, document: &str) -> Answer {
    scope.put_body(path, if_match, Body::json_text(format!(r#"{{"document":{document}}}"#)))
}

/// An envelope whose content is this JSON text.
fn around(content: &str) -> String {
    format!(r#"{{"doc_id":"d","schema_id":"s","schema_version":"1","content":{content}}}"#)
}

// ---- required members

#[test]
fn the_three_ids_are_required_texts() {
    let scope = Scope::fresh(&SERVER);
    for field in ["doc_id", "schema_id", "schema_version"] {
        for value in [
            None,
            Some(json!(null)),
            Some(json!("")),
            Some(json!("  ")),
            Some(json!("\t\n\u{3000}")),
            Some(json!(7)),
            Some(json!(true)),
            Some(json!(["x"])),
            Some(json!({"x": 1})),
        ] {
            let refused = scope.put("a.md", "*", with(field, value)).refused(422, "INVALID_DOCUMENT");
            assert_eq!(refused.detail("field"), Some(field), "{}", refused.describe());
        }
    }
    scope.get("a.md").refused(404, "DOCUMENT_NOT_FOUND");
}

#[test]
fn the_content_is_a_required_object() {
    let scope = Scope::fresh(&SERVER);
    for value in [
        None,
        Some(json!(null)),
        Some(json!([])),
        Some(json!([{"text": "x"}])),
        Some(json!("text")),
        Some(json!(7)),
        Some(json!(false)),
    ] {
        let refused = scope.put("a.md", "*", with("content", value)).refused(422, "INVALID_DOCUMENT");
        assert_eq!(refused.detail("field"), Some("content"), "{}", refused.describe());
    }
    scope.get("a.md").refused(404, "DOCUMENT_NOT_FOUND");
    assert_eq!(scope.put("a.md", "*", with("content", Some(json!({})))).stored().content(), json!({}));
}

#[test]
fn ids_are_kept_as_they_are_and_mean_nothing() {
    let scope = Scope::fresh(&SERVER);
    let document = json!({
        "doc_id": " padded ", "schema_id": "no.such/schema:😀", "schema_version": "not semver", "content": {},
    });

    let stored = scope.put("a.md", "*", document.clone()).stored().document();

    for field in ["doc_id", "schema_id", "schema_version"] {
        assert_eq!(stored[field], document[field]);
    }
    scope.put("b.md", "*", document).stored();
}

#[test]
fn a_document_that_is_no_object_is_a_bad_request() {
    let scope = Scope::fresh(&SERVER);
    for body in [
        json!({}),
        json!({"document": null}),
        json!({"document": []}),
        json!({"document": [note("x")]}),
        json!({"document": "text"}),
        json!({"document": 7}),
        json!({"document": true}),
        json!({"Document": note("x")}),
        note("x"),
        json!([]),
        json!([note("x")]),
        json!("text"),
        json!(7),
        json!(null),
    ] {
        scope.put_body("a.md", "*", Body::Json(body)).refused(400, "INVALID_REQUEST");
    }
    scope.get("a.md").refused(404, "DOCUMENT_NOT_FOUND");
}

#[test]
fn the_envelope_is_judged_before_the_precondition() {
    let scope = Scope::fresh(&SERVER);
    scope.create("a.md", json!({}));
    for (path, if_match) in [("a.md", "\"stale\""), ("a.md", "*"), ("missing.md", "\"stale\"")] {
        scope.put(path, if_match, with("doc_id", None)).refused(422, "INVALID_DOCUMENT");
        let mut large = with("created_at", Some(json!("2026-01-01T00:00:00Z")));
        large["content"]["text"] = json!("x".repeat(LIMIT));
        scope.put(path, if_match, large).refused(422, "DOCUMENT_SIZE_EXCEEDED");
    }
}

// ---- what the server fills in

#[test]
fn the_server_says_when_and_by_whom() {
    let scope = Scope::fresh(&SERVER).with_header("x-service-id", "assistant-a");
    let mut document = note("one");
    document["updated_at"] = json!("1999-01-01T00:00:00Z");
    document["updated_by"] = json!("mallory");

    let created = scope.put("a.md", "*", document.clone()).stored();

    let first = created.document();
    assert_eq!(first["updated_by"], "assistant-a");
    assert_timestamp(&first["updated_at"]);
    assert_timestamp(&first["created_at"]);
    assert_eq!(first["created_at"], first["updated_at"]);
    let second = scope
        .with_header("x-service-id", "assistant-b")
        .put("a.md", &created.etag, document)
        .stored()
        .document();
    assert_eq!(second["updated_by"], "assistant-b");
    assert!(second["updated_at"].as_str() >= first["updated_at"].as_str(), "{first} {second}");
}

#[test]
fn what_the_caller_says_about_updates_is_not_even_looked_at() {
    let scope = Scope::fresh(&SERVER);
    for (n, value) in [json!(null), json!(7), json!([]), json!({}), json!("soon")].into_iter().enumerate() {
        let mut document = note("one");
        document["updated_at"] = value.clone();
        document["updated_by"] = value;

        let stored = scope.put(&format!("{n}.md"), "*", document).stored().document();

        assert_timestamp(&stored["updated_at"]);
        assert_eq!(stored["updated_by"], AGENT);
    }
}

#[test]
fn a_creation_time_is_stored_as_given() {
    let scope = Scope::fresh(&SERVER);
    for (n, given) in [
        "2020-01-02T03:04:05Z",
        "2020-01-02T03:04:05.1Z",
        "2020-01-02T03:04:05.123456789+05:30",
        "1969-12-31T23:59:59-08:00",
        "2020-02-29T00:00:00-00:00",
        "9999-12-31T23:59:59Z",
    ]
    .into_iter()
    .enumerate()
    {
        let path = format!("{n}.md");
        let created = scope.put(&path, "*", with("created_at", Some(json!(given)))).stored();
        assert_eq!(created.document()["created_at"], given);
        let kept = scope.put(&path, &created.etag, note("two")).stored();
        assert_eq!(kept.document()["created_at"], given, "a replacement that gives none keeps it");
    }
}

#[test]
fn a_replacement_without_a_creation_time_keeps_the_stored_one() {
    let scope = Scope::fresh(&SERVER);
    let created = scope.create("a.md", json!({}));
    let at = created.document()["created_at"].clone();

    let absent = scope.put("a.md", &created.etag, note("two")).stored();
    assert_eq!(absent.document()["created_at"], at);
    let null = scope.put("a.md", &absent.etag, with("created_at", Some(json!(null)))).stored();
    assert_eq!(null.document()["created_at"], at);
    let given = with("created_at", Some(json!("2001-01-01T00:00:00Z")));
    let given = scope.put("a.md", &null.etag, given).stored();
    assert_eq!(given.document()["created_at"], "2001-01-01T00:00:00Z");

    let null = scope.put("b.md", "*", with("created_at", Some(json!(null)))).stored();
    assert_timestamp(&null.document()["created_at"]);
}

#[test]
fn a_patch_keeps_the_creation_time() {
    let scope = Scope::fresh(&SERVER);
    let created =
        scope.put("a.md", "*", with("created_at", Some(json!("2001-01-01T00:00:00+01:00")))).stored();

    let edits = json!({"edits": [{"old_text": "text", "new_text": "words"}]});
    let patched = scope.patch("a.md", &created.etag, edits).stored().document();

    assert_eq!(patched["created_at"], "2001-01-01T00:00:00+01:00");
    assert!(patched["updated_at"].as_str() >= created.document()["updated_at"].as_str());
}

#[test]
fn a_creation_time_that_is_none_is_refused() {
    let scope = Scope::fresh(&SERVER);
    for value in [
        json!(""),
        json!("yesterday"),
        json!("2020-01-02"),
        json!("2020-01-02T03:04:05"),
        json!("2020-13-02T03:04:05Z"),
        json!("2020-02-30T03:04:05Z"),
        json!("2020-01-02T25:04:05Z"),
        json!("2020-01-02T03:04Z"),
        json!("2020-01-02T03:04:05+25:00"),
        json!("20200102T030405Z"),
        json!(1_577_934_245),
        json!(true),
        json!([]),
        json!({}),
    ] {
        let refused =
            scope.put("a.md", "*", with("created_at", Some(value))).refused(422, "INVALID_DOCUMENT");
        assert_eq!(refused.detail("field"), Some("created_at"), "{}", refused.describe());
    }
}

#[test]
fn other_members_are_preserved_as_sent() {
    let scope = Scope::fresh(&SERVER);
    let mut document = note("one");
    document["tags"] = json!(["b", "a"]);
    document["etag"] = json!("mine");
    document["x-null"] = json!(null);
    document[""] = json!({"deep": [1, {"er": null}]});

    let created = scope.put("a.md", "*", document).stored();
    let edits = json!({"edits": [{"old_text": "one", "new_text": "two"}]});
    let patched = scope.patch("a.md", &created.etag, edits).stored().document();

    for stored in [created.document(), patched] {
        assert_eq!(stored["tags"], json!(["b", "a"]));
        assert_eq!(stored["etag"], "mine");
        assert_eq!(stored.get("x-null"), Some(&json!(null)));
        assert_eq!(stored[""], json!({"deep": [1, {"er": null}]}));
    }
    let replaced = scope.read("a.md").etag;
    let replaced = scope.put("a.md", &replaced, note("three")).stored().document();
    assert_eq!(replaced.get("tags"), None, "a replacement is a whole envelope");
}

// ---- size

/// How many characters an envelope has besides the characters of its text.
fn overhead(scope: &Scope) -> usize {
    scope.create("measure.md", json!({"text": ""})).text.chars().count()
}

#[test]
fn a_document_of_256_000_characters_is_accepted_and_one_more_is_not() {
    let scope = Scope::fresh(&SERVER);
    let room = LIMIT - overhead(&scope);

    let largest = scope.put("a.md", "*", note(&"x".repeat(room))).stored();

    assert_eq!(largest.text.chars().count(), LIMIT);
    assert_eq!(scope.read("a.md"), largest);
    let refused = scope.put("b.md", "*", note(&"x".repeat(room + 1))).refused(422, "DOCUMENT_SIZE_EXCEEDED");
    assert_eq!(refused.detail("limit"), Some("256000"));
    assert_eq!(refused.detail("actual"), Some("256001"));
    scope.get("b.md").refused(404, "DOCUMENT_NOT_FOUND");
    let refused =
        scope.put("a.md", &largest.etag, note(&"x".repeat(room + 1))).refused(422, "DOCUMENT_SIZE_EXCEEDED");
    assert_eq!(refused.detail("actual"), Some("256001"));
    assert_eq!(scope.read("a.md"), largest);
}

#[test]
fn a_replacement_is_measured_with_the_creation_time_it_keeps() {
    let scope = Scope::fresh(&SERVER);
    let mut document = note("");
    document["created_at"] = json!("2026-01-01T00:00:00Z");
    let short = scope.put("a.md", "*", document).stored();
    let room = LIMIT - short.text.chars().count();
    let largest = scope.put("a.md", &short.etag, note(&"x".repeat(room))).stored();
    assert_eq!(largest.text.chars().count(), LIMIT);
    scope.put("a.md", &largest.etag, note(&"x".repeat(room + 1))).refused(422, "DOCUMENT_SIZE_EXCEEDED");
}

#[test]
fn every_character_costs_one_whatever_its_alphabet() {
    let scope = Scope::fresh(&SERVER);
    let room = LIMIT - overhead(&scope);
    for (n, c) in
        ["é", "字", "😀", "\u{301}", "\u{7f}", "\u{2028}", "/", "<", "\u{feff}"].into_iter().enumerate()
    {
        let largest = scope.put(&format!("{n}.md"), "*", note(&c.repeat(room))).stored();
        assert_eq!(largest.content()["text"].as_str().unwrap().chars().count(), room, "{c:?}");
        scope.put(&format!("{n}b.md"), "*", note(&c.repeat(room + 1))).refused(422, "DOCUMENT_SIZE_EXCEEDED");
    }
}

#[test]
fn what_json_must_escape_costs_its_escape() {
    let scope = Scope::fresh(&SERVER);
    let room = LIMIT - overhead(&scope);
    for (n, (c, cost)) in
        [("\"", 2), ("\\", 2), ("\n", 2), ("\t", 2), ("\u{8}", 2), ("\u{0}", 6), ("\u{1f}", 6)]
            .into_iter()
            .enumerate()
    {
        let count = room / cost;
        let text = c.repeat(count) + &"x".repeat(room - count * cost);
        scope.put(&format!("{n}.md"), "*", note(&text)).stored();
        let refused =
            scope.put(&format!("{n}b.md"), "*", note(&(text + "x"))).refused(422, "DOCUMENT_SIZE_EXCEEDED");
        assert_eq!(refused.detail("actual"), Some("256001"), "{c:?}");
    }
}

#[test]
fn how_the_request_spells_a_document_does_not_count() {
    let scope = Scope::fresh(&SERVER);
    let room = LIMIT - overhead(&scope);
    // Twelve bytes for each emoji, and white space all over.
    let text = "\\ud83d\\ude00".repeat(room);
    let document = format!(
        "{{ \"doc_id\" : \"doc-1\" ,\n\t\"schema_id\" : \"notes\" , \"schema_version\" : \"1.0.0\" ,\
         \"content\" : {{ {} \"text\" : \"{text}\" }} }}",
        " ".repeat(300_000)
    );

    let stored = put_text(&scope, "a.md", "*", &document).stored();

    assert_eq!(stored.text.chars().count(), LIMIT);
    assert_eq!(stored.content()["text"].as_str().unwrap(), "😀".repeat(room));
}

#[test]
fn numbers_cost_their_digits() {
    let scope = Scope::fresh(&SERVER);
    let base = put_text(&scope, "measure.md", "*", &around(r#"{"n":0}"#)).stored().text.chars().count();
    let number = |digits: usize| around(&format!(r#"{{"n":{}}}"#, "7".repeat(digits)));

    put_text(&scope, "a.md", "*", &number(LIMIT - base + 1)).stored();
    put_text(&scope, "b.md", "*", &number(LIMIT - base + 2)).refused(422, "DOCUMENT_SIZE_EXCEEDED");
}

#[test]
fn the_name_of_the_actor_counts_too() {
    let scope = Scope::fresh(&SERVER);
    let room = LIMIT - overhead(&scope);
    let named = scope.with_header("x-service-id", &format!("{AGENT}s"));

    let refused = named.put("a.md", "*", note(&"x".repeat(room))).refused(422, "DOCUMENT_SIZE_EXCEEDED");

    assert_eq!(refused.detail("actual"), Some("256001"));
    named.put("a.md", "*", note(&"x".repeat(room - 1))).stored();
}

#[test]
fn a_patch_may_reach_the_limit_and_not_pass_it() {
    let scope = Scope::fresh(&SERVER);
    let room = LIMIT - overhead(&scope);
    let before = scope.create("a.md", json!({"text": format!("{}y", "x".repeat(room - 2))}));
    let insert = |text: &str| json!({"edits": [{"old_text": "y", "new_text": text}]});

    let refused = scope.patch("a.md", &before.etag, insert("yyy")).refused(422, "DOCUMENT_SIZE_EXCEEDED");
    assert_eq!(refused.detail("limit"), Some("256000"));
    assert_eq!(refused.detail("actual"), Some("256001"));
    assert_eq!(scope.read("a.md"), before);
    let after = scope.patch("a.md", &before.etag, insert("yy")).stored();
    assert_eq!(after.text.chars().count(), LIMIT);
}

// ---- fidelity

#[test]
fn content_comes_back_letter_by_letter() {
    let content = concat!(
        r#"{"zebra":1,"apple":{"z":null,"a":[]},"numbers":[0,-0,1.0,1.10,1E400,1e400,2E+5,3e-7,0.1e1,"#,
        r#"123456789012345678901234567890,-0.00,100000000000000000000.000000000000000000001],"#,
        r#""texts":["","Zürich","😀","\"quoted\"","back\\slash","line\nbreak","\u0000\u0001\u001f",""#,
        "\u{7f}\u{2028}\u{feff}/",
        r#""],"10":"ten","9":"nine","":{"":""},"truths":[true,false,null]}"#
    );
    let scope = Scope::fresh(&SERVER);

    let stored = put_text(&scope, "a.md", "*", &around(content)).stored();

    assert!(stored.text.contains(&format!(r#""content":{content}"#)), "{}", stored.text);
    assert_eq!(scope.read("a.md"), stored);
    let edit = json!({"ops": [{"op": "add", "path": "/content/more", "value": 1}]});
    let patched = scope.patch("a.md", &stored.etag, edit).stored();
    let longer = format!("{},\"more\":1}}", &content[..content.len() - 1]);
    assert!(patched.text.contains(&format!(r#""content":{longer}"#)), "{}", patched.text);
}

#[test]
fn members_keep_their_order_and_their_names() {
    let scope = Scope::fresh(&SERVER);
    let names =
        ["z", "a", "10", "9", "Ä", "", "constructor", "__proto__", "$ref", "a.b", "a/b", "~", "\u{0}"];
    let content: String = names.iter().map(|name| format!("{}:0", json!(name))).collect::<Vec<_>>().join(",");
    let content = format!("{{{content}}}");

    let stored = put_text(&scope, "a.md", "*", &around(&content)).stored();

    assert!(stored.text.contains(&content), "{}", stored.text);
}

#[test]
fn names_that_a_library_keeps_for_itself_are_ordinary_names() {
    let scope = Scope::fresh(&SERVER);
    for (n, content) in [
        r#"{"v":{"$serde_json::private::Number":"12"}}"#,
        r#"{"v":{"$serde_json::private::Number":"abc"}}"#,
        r#"{"v":{"$serde_json::private::RawValue":"[1]"}}"#,
        r#"{"$serde_json::private::Number":"12"}"#,
        r#"{"$serde_json::private::RawValue":"{}"}"#,
    ]
    .into_iter()
    .enumerate()
    {
        let path = format!("{n}.md");
        let stored = put_text(&scope, &path, "*", &around(content)).stored();
        assert!(stored.text.contains(content), "{}", stored.text);
        let touch = json!({"ops": [{"op": "add", "path": "/content/w", "value": 1}]});
        let patched = scope.patch(&path, &stored.etag, touch).stored();
        assert!(patched.text.contains(&content[..content.len() - 1]), "{}", patched.text);
    }
}

#[test]
fn of_members_with_one_name_the_last_wins() {
    let scope = Scope::fresh(&SERVER);
    let content = r#"{"a":1,"b":{"c":1,"c":[2]},"a":{"d":3},"\u0061":4}"#;

    let stored = put_text(&scope, "a.md", "*", &around(content)).stored();

    assert_eq!(stored.content(), json!({"a": 4, "b": {"c": [2]}}));
    assert_eq!(stored.text.matches(r#""a":"#).count(), 1, "{}", stored.text);
    let twice = r#"{"document":7,"document":{"doc_id":"x","doc_id":"d","schema_id":"s","schema_version":"1",
        "content":[],"content":{}}}"#;
    let stored = scope.put_body("b.md", "*", Body::json_text(twice)).stored();
    assert_eq!(stored.document()["doc_id"], "d");
}

// ---- reason and evidence

#[test]
fn a_reason_has_at_most_256_characters() {
    let scope = Scope::fresh(&SERVER);
    let put = |path: &str, reason: Value| {
        scope.put_body(path, "*", Body::Json(json!({"document": note("a"), "reason": reason})))
    };
    for (n, c) in ["r", "字", "😀"].into_iter().enumerate() {
        let etag = put(&format!("{n}.md"), json!(c.repeat(256))).stored().etag;
        put(&format!("{n}b.md"), json!(c.repeat(257))).refused(400, "INVALID_REQUEST");
        let patch = |reason: String| json!({"edits": [{"old_text": "a", "new_text": "b"}], "reason": reason});
        let path = format!("{n}.md");
        scope.patch(&path, &etag, patch(c.repeat(257))).refused(400, "INVALID_REQUEST");
        scope.patch(&path, &etag, patch(c.repeat(256))).stored();
    }
    for wrong in [json!(7), json!([]), json!({}), json!(true)] {
        put("x.md", wrong).refused(400, "INVALID_REQUEST");
    }
    put("x.md", json!(null)).stored();
    put("y.md", json!("")).stored();
}

#[test]
fn evidence_has_at_most_64_000_characters() {
    let scope = Scope::fresh(&SERVER);
    let put = |path: &str, evidence: Value| {
        scope.put_body(path, "*", Body::Json(json!({"document": note("a"), "evidence": evidence})))
    };
    // The quotes of the text count.
    for (n, c) in ["e", "字", "😀"].into_iter().enumerate() {
        let path = format!("{n}.md");
        let etag = put(&path, json!(c.repeat(63_998))).stored().etag;
        put(&format!("{n}b.md"), json!(c.repeat(63_999))).refused(400, "INVALID_REQUEST");
        let patch =
            |evidence: Value| json!({"edits": [{"old_text": "a", "new_text": "b"}], "evidence": evidence});
        scope.patch(&path, &etag, patch(json!(c.repeat(63_999)))).refused(400, "INVALID_REQUEST");
        scope.patch(&path, &etag, patch(json!([c.repeat(63_996)]))).stored();
    }
}

#[test]
fn evidence_is_any_json_and_no_part_of_the_document() {
    let scope = Scope::fresh(&SERVER);
    for (n, evidence) in
        [json!({"source": "chat"}), json!([1, null]), json!("text"), json!(7), json!(true), json!(null)]
            .into_iter()
            .enumerate()
    {
        let body = json!({"document": note("a"), "evidence": evidence, "reason": "because", "more": 1});
        let stored = scope.put_body(&format!("{n}.md"), "*", Body::Json(body)).stored().document();
        let members: Vec<&String> = stored.as_object().unwrap().keys().collect();
        for member in ["evidence", "reason", "more"] {
            assert!(!members.iter().any(|name| *name == member), "{stored}");
        }
    }
}

#[test]
fn reason_and_evidence_are_kept_in_the_audit_trail_letter_by_letter() {
    let scope = Scope::fresh(&SERVER);
    let evidence = r#"{"z":1.10,"a":[1E400,123456789012345678901234567890],"m":{"b":null,"a":"😀"}}"#;
    let body = format!(
        r#"{{"document":{},"reason":" a reason ","evidence":{evidence}}}"#,
        around(r#"{"text":"a"}"#)
    );
    scope.put_body("a.md", "*", Body::json_text(body)).stored();

    let admin = scope.client.with_header("authorization", "Bearer admin");
    let trail = admin.get(&scope.at("/audit")).expect(200);

    assert!(trail.text.contains(&format!(r#""evidence":{evidence}"#)), "{}", trail.text);
    assert_eq!(scope.audit()[0]["reason"], " a reason ");
}
