//! Context assembly from named files.

use crate::support::*;
use std::sync::LazyLock;

static SERVER: LazyLock<TestServer> = LazyLock::new(local_server);

/// A request for these files, with these members beside them.
fn request(paths: &[&str], members: Value) -> Value {
    let files: Vec<Value> = paths.iter().map(|path| json!({"path": path})).collect();
    let mut body = json!({ "files": files });
    for (name, value) in members.as_object().expect("members") {
        body[name] = value.clone();
    }
    body
}

#[track_caller]
fn ask(scope: &Scope, body: Value) -> Answer {
    scope.post("/context:assemble", body)
}

/// Which files an assembly selects, and which it drops for what reason (`path:reason`).
#[track_caller]
fn assembled(scope: &Scope, paths: &[&str], members: Value) -> (Vec<String>, Vec<String>) {
    let answer = ask(scope, request(paths, members)).expect(200);
    let list = |member: &str| match answer.json[member].as_array() {
        Some(list) => list.clone(),
        None => panic!("no {member}: {}", answer.describe()),
    };
    let text = |value: &Value| value.as_str().unwrap_or("<absent>").to_owned();
    (
        list("files").iter().map(|file| text(&file["path"])).collect(),
        list("dropped_files")
            .iter()
            .map(|file| format!("{}:{}", text(&file["path"]), text(&file["reason"])))
            .collect(),
    )
}

/// The size of a stored envelope as the budget counts it.
fn chars(stored: &Stored) -> usize {
    serde_json::to_string(&stored.document()).unwrap().chars().count()
}

#[test]
fn the_answer_has_every_file_with_its_etag_and_document_in_the_order_asked_for() {
    let scope = Scope::fresh(&SERVER);
    let profile = scope.create("profile.md", json!({"text": "profile"}));
    let memory = scope.create("notes/memory.md", json!({"text": "memory"}));

    let answer = ask(&scope, request(&["notes/memory.md", "profile.md"], json!({}))).expect(200);

    assert_eq!(
        answer.json,
        json!({
            "files": [
                {"path": "notes/memory.md", "etag": memory.etag, "document": memory.document()},
                {"path": "profile.md", "etag": profile.etag, "document": profile.document()},
            ],
            "dropped_files": [],
        })
    );
}

#[test]
fn upstream_defect_9_the_member_is_called_etag_and_can_be_matched_with() {
    let scope = Scope::fresh(&SERVER);
    scope.create("a.md", json!({"text": "one"}));

    let answer = ask(&scope, request(&["a.md"], json!({}))).expect(200);
    let file = &answer.json["files"][0];

    assert!(file.get("e_tag").is_none(), "{file}");
    let etag = file["etag"].as_str().expect("an ETag");
    assert_eq!(scope.put("a.md", etag, note("two")).stored().content()["text"], "two");
}

#[test]
fn documents_keep_the_order_of_members_and_the_spelling_of_numbers() {
    let scope = Scope::fresh(&SERVER);
    let content = r#"{"z":1.10,"a":1E400,"m":123456789012345678901234567890}"#;
    let body = format!(
        r#"{{"document":{{"doc_id":"d","schema_id":"s","schema_version":"1","content":{content}}}}}"#
    );
    scope.put_body("a.md", "*", Body::json_text(body)).expect(200);

    let answer = ask(&scope, request(&["a.md"], json!({}))).expect(200);

    assert!(answer.text.contains(content), "{}", answer.text);
}

#[test]
fn a_request_names_what_it_wants() {
    let scope = Scope::fresh(&SERVER);
    for body in [json!({}), json!({"files": null}), json!({"files": []}), json!({"max_docs": 3})] {
        ask(&scope, body).refused(400, "MISSING_ASSEMBLY_TARGETS");
    }
    ask(&scope, request(&["a.md"], json!({"profile_id": "p"}))).refused(400, "INVALID_ASSEMBLY_MODE");
    scope.client.post_nothing(&scope.at("/context:assemble")).refused(400, "INVALID_JSON");
    for body in
        [json!([]), json!({"files": "a.md"}), json!({"files": ["a.md"]}), json!({"files": {"path": "a"}})]
    {
        ask(&scope, body).refused(400, "INVALID_REQUEST");
    }
}

#[test]
fn there_are_at_most_five_hundred_references() {
    let scope = Scope::fresh(&SERVER);
    scope.create("a.md", json!({}));
    let many = vec!["a.md"; 500];

    let (files, dropped) = assembled(&scope, &many, json!({}));

    assert_eq!((files.len(), dropped.len()), (4, 496));
    ask(&scope, request(&vec!["a.md"; 501], json!({}))).refused(400, "INVALID_REQUEST");
}

#[test]
fn one_bad_path_spoils_the_request() {
    let scope = Scope::fresh(&SERVER);
    scope.create("a.md", json!({}));
    for path in [
        "",
        " ",
        "../a.md",
        "x/../a.md",
        "a..b",
        "/a.md",
        "a.md/",
        "x//a.md",
        "./a.md",
        "a\u{0}",
        "a%2fb",
        "%2E%2e/x",
    ] {
        ask(&scope, request(&["a.md", path], json!({}))).refused(400, "INVALID_PATH");
        ask(&scope, request(&["a.md", path], json!({"max_docs": 0}))).refused(400, "INVALID_PATH");
    }
    ask(&scope, json!({"files": [{"path": "a.md"}, {}]})).refused(400, "INVALID_PATH");
    ask(&scope, json!({"files": [{"path": null}]})).refused(400, "INVALID_PATH");
    ask(&scope, request(&[&"x".repeat(256)], json!({}))).refused(400, "INVALID_PATH");
}

#[test]
fn a_path_is_echoed_as_it_was_asked_for() {
    let scope = Scope::fresh(&SERVER);
    let stored = scope.create("notes/a.md", json!({}));

    let answer =
        ask(&scope, request(&["notes\\a.md", "notes/a.md"], json!({"max_chars_total": chars(&stored)})));

    let answer = answer.expect(200);
    assert_eq!(answer.json["files"][0]["path"], "notes\\a.md");
    assert_eq!(answer.json["files"][0]["etag"], stored.etag);
    assert_eq!(answer.json["dropped_files"], json!([{"path": "notes/a.md", "reason": "max_chars_total"}]));
}

#[test]
fn without_limits_there_are_four_files_and_thirty_thousand_characters() {
    let scope = Scope::fresh(&SERVER);
    for n in 0..6 {
        scope.create(&format!("{n}.md"), json!({}));
    }
    let paths = ["0.md", "1.md", "2.md", "3.md", "4.md", "5.md"];
    let four = (
        ["0.md", "1.md", "2.md", "3.md"].map(str::to_owned).to_vec(),
        ["4.md:max_docs", "5.md:max_docs"].map(str::to_owned).to_vec(),
    );
    assert_eq!(assembled(&scope, &paths, json!({})), four);
    assert_eq!(assembled(&scope, &paths, json!({"max_docs": null, "max_chars_total": null})), four);
    assert_eq!(assembled(&scope, &paths, json!({"max_docs": 6})).0.len(), 6);

    let empty = chars(&scope.create("full.md", json!({"text": ""})));
    let full = scope.put("full.md", &scope.read("full.md").etag, note(&"茶".repeat(30_000 - empty))).stored();
    assert_eq!(chars(&full), 30_000);
    assert_eq!(assembled(&scope, &["full.md"], json!({})).0, ["full.md"]);
    let over = scope.put("full.md", &full.etag, note(&"茶".repeat(30_001 - empty))).stored();
    assert_eq!(chars(&over), 30_001);
    assert_eq!(assembled(&scope, &["full.md"], json!({})).1, ["full.md:max_chars_total"]);
    assert_eq!(assembled(&scope, &["full.md"], json!({"max_chars_total": 30_001})).0, ["full.md"]);
}

#[test]
fn the_budget_is_exact() {
    let scope = Scope::fresh(&SERVER);
    let one = chars(&scope.create("one.md", json!({"text": "quote \" and \u{1} and 🦀", "number": 1.50})));
    let two = chars(&scope.create("two.md", json!({"text": "longer than the first"})));
    let paths = ["one.md", "two.md"];

    assert_eq!(assembled(&scope, &paths, json!({"max_chars_total": one + two})).0, paths);
    let (files, dropped) = assembled(&scope, &paths, json!({"max_chars_total": one + two - 1}));
    assert_eq!(
        (files.as_slice(), dropped.as_slice()),
        (&["one.md".into()][..], &["two.md:max_chars_total".into()][..])
    );
}

#[test]
fn a_file_that_does_not_fit_lets_smaller_ones_pass() {
    let scope = Scope::fresh(&SERVER);
    let small = chars(&scope.create("small.md", json!({"text": "s"})));
    scope.create("large.md", json!({"text": "l".repeat(5000)}));
    scope.create("also-small.md", json!({"text": "a"}));

    let (files, dropped) = assembled(
        &scope,
        &["large.md", "small.md", "large.md", "also-small.md"],
        json!({"max_chars_total": 2 * small, "max_docs": 2}),
    );

    assert_eq!(files, ["small.md", "also-small.md"]);
    assert_eq!(dropped, ["large.md:max_chars_total", "large.md:max_chars_total"]);
}

#[test]
fn a_missing_file_is_skipped_without_a_word() {
    let scope = Scope::fresh(&SERVER);
    let stored = scope.create("a.md", json!({}));
    scope.create("dir/inner.md", json!({}));

    let (files, dropped) = assembled(
        &scope,
        &["missing.md", "dir", "A.md", "a.md"],
        json!({"max_docs": 1, "max_chars_total": chars(&stored)}),
    );

    assert_eq!((files, dropped), (vec!["a.md".to_owned()], vec![]));
    assert_eq!(assembled(&Scope::fresh(&SERVER), &["a.md"], json!({})), (vec![], vec![]), "an unknown scope");
}

#[test]
fn once_there_are_enough_files_nobody_looks_at_the_rest() {
    let scope = Scope::fresh(&SERVER);
    scope.create("a.md", json!({}));
    scope.create("large.md", json!({"text": "l".repeat(40_000)}));

    let (files, dropped) = assembled(&scope, &["a.md", "missing.md", "large.md"], json!({"max_docs": 1}));

    assert_eq!(files, ["a.md"]);
    assert_eq!(dropped, ["missing.md:max_docs", "large.md:max_docs"]);
}

#[test]
fn zero_is_a_limit_and_less_is_none() {
    let scope = Scope::fresh(&SERVER);
    scope.create("a.md", json!({}));

    let (files, dropped) = assembled(&scope, &["a.md", "missing.md"], json!({"max_docs": 0}));
    assert_eq!(
        (files.len(), dropped),
        (0, vec!["a.md:max_docs".to_owned(), "missing.md:max_docs".to_owned()])
    );
    let (files, dropped) = assembled(&scope, &["a.md", "missing.md"], json!({"max_chars_total": 0}));
    assert_eq!((files.len(), dropped), (0, vec!["a.md:max_chars_total".to_owned()]));

    for limits in [json!({"max_docs": -1}), json!({"max_chars_total": -1}), json!({"max_docs": i64::MIN})] {
        ask(&scope, request(&["a.md"], limits)).refused(400, "INVALID_LIMIT");
    }
    for limits in [json!({"max_docs": "2"}), json!({"max_chars_total": 1.5})] {
        let answer = ask(&scope, request(&["a.md"], limits)).expect(400);
        assert!(matches!(answer.json["error"]["code"].as_str(), Some("INVALID_LIMIT" | "INVALID_REQUEST")));
    }
    let huge = json!({"max_docs": i64::MAX, "max_chars_total": i64::MAX});
    assert_eq!(assembled(&scope, &["a.md"], huge).0, ["a.md"]);
}

#[test]
fn a_file_asked_for_twice_is_served_and_counted_twice() {
    let scope = Scope::fresh(&SERVER);
    let size = chars(&scope.create("a.md", json!({})));

    assert_eq!(assembled(&scope, &["a.md", "a.md"], json!({})).0, ["a.md", "a.md"]);
    assert_eq!(assembled(&scope, &["a.md", "a.md", "a.md"], json!({"max_docs": 2})).1, ["a.md:max_docs"]);
    assert_eq!(
        assembled(&scope, &["a.md", "a.md"], json!({"max_chars_total": 2 * size - 1})).1,
        ["a.md:max_chars_total"]
    );
}

#[test]
fn no_budget_is_larger_than_eight_million_characters() {
    let scope = Scope::fresh(&SERVER);
    let size = chars(&scope.create("a.md", json!({"text": "𝄞".repeat(250_000)})));
    let boundless = json!({"max_docs": 500, "max_chars_total": 1_000_000_000});

    let answer = ask(&scope, request(&["a.md"; 500], boundless)).expect(200);

    let served = 8_000_000 / size;
    assert_eq!(answer.json["files"].as_array().unwrap().len(), served);
    let dropped = vec![json!({"path": "a.md", "reason": "max_chars_total"}); 500 - served];
    assert_eq!(answer.json["dropped_files"], json!(dropped));
}

#[test]
fn events_and_other_scopes_are_no_context() {
    let scope = Scope::fresh(&SERVER);
    scope.tell("evt_01", json!({}));
    let neighbour = Scope::of(&SERVER, &scope.tenant, &fresh_name("user"));
    neighbour.create("a.md", json!({}));

    let answer = ask(&scope, request(&["a.md", "evt_01"], json!({}))).expect(200);

    assert_eq!(answer.json, json!({"files": [], "dropped_files": []}));
}

#[test]
fn all_files_are_read_at_one_moment() {
    let scope = Scope::fresh(&SERVER);
    let (mut first, mut second) =
        (scope.create("first.md", json!({"n": 0})), scope.create("second.md", json!({"n": 0})));
    let read = |_| {
        let answer = ask(&scope, request(&["first.md", "second.md"], json!({}))).expect(200);
        let n = |file: usize| answer.json["files"][file]["document"]["content"]["n"].as_i64().unwrap();
        assert!(n(0) == n(1) || n(0) == n(1) + 1, "{} and {}", n(0), n(1));
    };
    meanwhile(3, read, || {
        for n in 1..=150 {
            first = scope.put("first.md", &first.etag, envelope(json!({ "n": n }))).stored();
            second = scope.put("second.md", &second.etag, envelope(json!({ "n": n }))).stored();
        }
    });
}
