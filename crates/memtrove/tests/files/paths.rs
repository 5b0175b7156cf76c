//! File paths and scope ids, as they stand in the request target: sent byte for byte, because HTTP clients tidy up.

use crate::support::*;
use std::sync::LazyLock;

static SERVER: LazyLock<TestServer> = LazyLock::new(local_server);

/// Every byte of a text, percent-encoded.
fn encoded(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02X}")).collect()
}

fn get(scope: &Scope, path: &str) -> Answer {
    scope.raw("GET", &scope.file(path), &[], "")
}

fn put(scope: &Scope, path: &str, if_match: &str, text: &str) -> Answer {
    let body = json!({"document": note(text)}).to_string();
    scope.raw("PUT", &scope.file(path), &[("if-match", if_match)], &body)
}

fn patch(scope: &Scope, path: &str, if_match: &str) -> Answer {
    let body = json!({"ops": [{"op": "add", "path": "/content/n", "value": 1}]}).to_string();
    scope.raw("PATCH", &scope.file(path), &[("if-match", if_match)], &body)
}

/// Requires that no method takes these paths.
#[track_caller]
fn rejected(paths: &[&str]) {
    let scope = Scope::fresh(&SERVER);
    for path in paths {
        for answer in [get(&scope, path), put(&scope, path, "*", "x"), patch(&scope, path, "*")] {
            assert!(answer.status == 400, "{path:?}: {}", answer.describe());
            answer.refused(400, "INVALID_PATH");
        }
    }
    assert_eq!(scope.paths(""), [""; 0]);
}

/// Requires that each of these targets is a file of its own, with this path.
#[track_caller]
fn distinct(targets_and_paths: &[(&str, &str)]) {
    let scope = Scope::fresh(&SERVER);
    for (target, path) in targets_and_paths {
        let answer = put(&scope, target, "*", path);
        assert!(answer.status == 200, "{target:?}: {}", answer.describe());
    }
    for (target, path) in targets_and_paths {
        assert_eq!(get(&scope, target).stored().content()["text"], *path, "{target:?}");
    }
    let mut listed = scope.paths("limit=500");
    let mut expected: Vec<&str> = targets_and_paths.iter().map(|(_, path)| *path).collect();
    listed.sort_unstable();
    expected.sort_unstable();
    assert_eq!(listed, expected);
}

// ---- rejections

/// One or two of each rule; all of them are in the core, in `files/path/tests.rs`.
#[test]
fn what_is_no_path_is_rejected() {
    rejected(&["a%", "%zz", "%u0041", "%FF", "%C0%AE%C0%AE/a", "%ED%A0%80"]);
    rejected(&[
        "..",
        "../a",
        "a/../b",
        "../../../../etc/passwd",
        "a..b",
        "%2e%2e",
        ".%2e/a",
        "a%2F..%2Fb",
        "..%5Ca",
    ]);
    rejected(&[
        "/a",
        "%2Fetc%2Fpasswd",
        "%5c%5chost%5cshare",
        "//a",
        "/",
        "a/",
        "a%2F",
        "a//b",
        "a/%2Fb",
        "a%5C%5Cb",
    ]);
    rejected(&[".", "./a", "a/.", "a/./b", "%2e/a", "a%5C.%5Cb", "%20/a", "a/%20", "a/%E2%80%83/b"]);
    rejected(&[
        "a%00b",
        "a.md%00",
        "%0A",
        "a%0D%0AX-Evil:%201",
        "a%7fb",
        "%252e%252e%252fetc",
        "a%252fb",
        "a%25%32%65b",
    ]);
}

#[test]
fn an_empty_path_is_rejected() {
    rejected(&["", "?x=1", "%20", "%20%20", "%09", "%E3%80%80", "%C2%A0"]);
    let scope = Scope::fresh(&SERVER);
    let body = json!({"document": note("x")}).to_string();
    for target in [scope.at("/files"), scope.at("/files?prefix=a")] {
        scope.raw("GET", &target, &[], "").refused(400, "INVALID_PATH");
        scope.raw("PUT", &target, &[("if-match", "*")], &body).refused(400, "INVALID_PATH");
        let patch = json!({"ops": [{"op": "add", "path": "/content/n", "value": 1}]}).to_string();
        scope.raw("PATCH", &target, &[("if-match", "*")], &patch).refused(400, "INVALID_PATH");
    }
}

#[test]
fn a_path_of_1024_bytes_is_accepted_and_one_more_is_not() {
    let scope = Scope::fresh(&SERVER);
    let longest = "a/".repeat(511) + "ab";
    assert_eq!(longest.len(), 1024);

    put(&scope, &longest, "*", "long").stored();
    assert_eq!(scope.paths(""), [longest.as_str()]);
    put(&scope, &format!("{longest}c"), "*", "long").refused(400, "INVALID_PATH");
    get(&scope, &format!("{longest}c")).refused(400, "INVALID_PATH");

    // Bytes count as they are after decoding: one letter of the target's three, three of a 漢.
    get(&scope, &encoded(&longest)).stored();
    get(&scope, &encoded(&format!("{longest}c"))).refused(400, "INVALID_PATH");
    let wide = encoded(&("漢/".repeat(256)));
    get(&scope, &format!("{wide}a")).refused(400, "INVALID_PATH");
}

#[test]
fn a_segment_of_255_bytes_is_accepted_and_one_more_is_not() {
    let scope = Scope::fresh(&SERVER);
    let longest = "s".repeat(255);
    for path in [longest.clone(), format!("{longest}/a"), format!("a/{longest}"), encoded(&"漢".repeat(85))]
    {
        put(&scope, &path, "*", "long").stored();
    }
    for path in [
        format!("{longest}s"),
        format!("{longest}s/a"),
        format!("a/{longest}s"),
        encoded(&"漢".repeat(86)),
        encoded(&("😀".repeat(63) + "漢字")),
    ] {
        put(&scope, &path, "*", "long").refused(400, "INVALID_PATH");
    }
}

#[test]
fn a_path_is_judged_before_the_body_and_the_headers() {
    let scope = Scope::fresh(&SERVER);

    scope.raw("PUT", &scope.file("a/../b"), &[], "not json").refused(400, "INVALID_PATH");
    scope.raw("PATCH", &scope.file("a//b"), &[], "").refused(400, "INVALID_PATH");
}

// ---- identity

#[test]
fn a_path_is_decoded_exactly_once() {
    distinct(&[
        ("a%20b", "a b"),
        ("a+b", "a+b"),
        ("a%2Bc", "a+c"),
        ("%2541", "%41"),
        ("A", "A"),
        ("100%25", "100%"),
        ("%2525", "%25"),
        ("%25zz", "%zz"),
        ("%3F", "?"),
        ("a%23b", "a#b"),
        ("%22", "\""),
        ("%7B%7D", "{}"),
        ("a;b=c,d", "a;b=c,d"),
        ("a:b@c!$&'()*", "a:b@c!$&'()*"),
        ("~user", "~user"),
        ("a%C2%85b", "a\u{85}b"),
    ]);
}

#[test]
fn spellings_of_one_path_are_one_file() {
    for (one, others) in [
        ("a/b.md", ["a%2Fb.md", "a%2fb.md", "a%5Cb.md", "a%5cb.md"].as_slice()),
        ("plain.md", &["%70lain.md", "plain%2emd", "plain%2Emd", &encoded("plain.md")]),
        ("%C3%A9", &["%c3%a9", "%C3%a9"]),
        ("x/y/z", &["x%2Fy/z", "x/y%5Cz", "x%5Cy%2Fz"]),
    ] {
        let scope = Scope::fresh(&SERVER);
        let mut current = put(&scope, one, "*", "first").stored();
        for other in others {
            assert_eq!(get(&scope, other).stored(), current, "{other}");
            put(&scope, other, "*", "second").refused(412, "ETAG_MISMATCH");
            current = put(&scope, other, &current.etag, other).stored();
            assert_eq!(get(&scope, one).stored(), current, "{other}");
            current = patch(&scope, one, &current.etag).stored();
        }
        assert_eq!(scope.paths("").len(), 1);
    }
}

#[test]
fn a_backslash_becomes_a_slash() {
    let scope = Scope::fresh(&SERVER);
    put(&scope, "a%5Cb%5Cc.md", "*", "x").stored();

    assert_eq!(scope.paths(""), ["a/b/c.md"]);
}

#[test]
fn the_query_is_not_part_of_the_path() {
    let scope = Scope::fresh(&SERVER);
    let stored = put(&scope, "a.md?x=1", "*", "x").stored();

    for target in ["a.md", "a.md?", "a.md?y=/../..", "a.md?%zz", "a.md?a=b?c=d"] {
        assert_eq!(get(&scope, target).stored(), stored, "{target}");
    }
    assert_eq!(scope.paths(""), ["a.md"]);
}

#[test]
fn an_absolute_target_leads_to_the_same_file() {
    let scope = Scope::fresh(&SERVER);
    let stored = put(&scope, "a%2Fb.md", "*", "x").stored();
    let absolute = |path: &str| format!("{}{}", SERVER.url(), scope.file(path));

    for path in ["a/b.md", "a%2Fb.md", "a%5Cb.md?x=1"] {
        assert_eq!(scope.raw("GET", &absolute(path), &[], "").stored(), stored, "{path}");
    }
    scope.raw("GET", &absolute("a/../b.md"), &[], "").refused(400, "INVALID_PATH");
}

#[test]
fn letter_case_counts() {
    distinct(&[("Readme.md", "Readme.md"), ("README.md", "README.md"), ("readme.md", "readme.md")]);
}

#[test]
fn unicode_is_not_normalised() {
    distinct(&[
        ("caf%C3%A9", "caf\u{e9}"),
        ("cafe%CC%81", "cafe\u{301}"),
        ("%E2%84%AB", "\u{212b}"),
        ("%C3%85", "\u{c5}"),
        ("%EF%AC%81", "\u{fb01}"),
        ("fi", "fi"),
        ("%E2%80%8B", "\u{200b}"),
        ("a%E2%80%8B", "a\u{200b}"),
        ("a", "a"),
        ("%F0%9F%98%80", "😀"),
    ]);
}

#[test]
fn spaces_are_kept() {
    distinct(&[
        ("%20a", " a"),
        ("a%20", "a "),
        ("a", "a"),
        ("a%20%20b", "a  b"),
        ("a%20b", "a b"),
        ("a%20/b", "a /b"),
        ("%20x/%20y%20", " x/ y "),
        ("a%C2%A0b", "a\u{a0}b"),
    ]);
}

#[test]
fn the_key_space_is_flat() {
    let scope = Scope::fresh(&SERVER);
    for path in ["x", "x/y.md", "x/y.md/z", "x/y"] {
        put(&scope, path, "*", path).stored();
    }

    for path in ["x", "x/y.md", "x/y.md/z", "x/y"] {
        assert_eq!(get(&scope, path).stored().content()["text"], path);
    }
    get(&scope, "x/y.m").refused(404, "DOCUMENT_NOT_FOUND");
}

#[test]
fn a_prefix_of_other_files_is_not_itself_a_file() {
    let scope = Scope::fresh(&SERVER);
    put(&scope, "x/y/z.md", "*", "x").stored();

    for path in ["x", "x/y", "x/y/z"] {
        get(&scope, path).refused(404, "DOCUMENT_NOT_FOUND");
        patch(&scope, path, "*").refused(404, "DOCUMENT_NOT_FOUND");
    }
}

#[test]
fn no_name_is_reserved() {
    distinct(&[
        ("files:list", "files:list"),
        ("files", "files"),
        ("files/files", "files/files"),
        ("memory", "memory"),
        ("context:assemble", "context:assemble"),
        ("audit", "audit"),
        ("audit:reconstruct", "audit:reconstruct"),
        (".hidden", ".hidden"),
        ("a.", "a."),
        ("CON", "CON"),
        ("nul.txt", "nul.txt"),
        ("-", "-"),
        ("*", "*"),
        ("null", "null"),
        ("v1/tenants/t/users/u/files/a", "v1/tenants/t/users/u/files/a"),
        ("a'%3B%20DROP%20TABLE%20files%3B--", "a'; DROP TABLE files;--"),
        ("%25", "%"),
        ("_", "_"),
    ]);
}

#[test]
fn spellings_of_one_path_contend_for_one_file() {
    const SPELLINGS: [&str; 3] = ["a/b.md", "a%2Fb.md", "a%5Cb.md"];
    let scope = Scope::fresh(&SERVER);
    let winner = |answers: Vec<Answer>| {
        let (won, lost): (Vec<_>, Vec<_>) = answers.into_iter().partition(|answer| answer.status == 200);
        assert_eq!(won.len(), 1, "exactly one of the spellings wins");
        let won = won.into_iter().next().unwrap().stored();
        for answer in lost {
            assert_eq!(answer.refused(412, "ETAG_MISMATCH").detail("latest_etag"), Some(won.etag.as_str()));
        }
        won
    };

    let mut current = winner(at_once(12, |n| put(&scope, SPELLINGS[n % 3], "*", "created")));
    for round in 0..10 {
        let text = format!("round {round}");
        current = winner(at_once(12, |n| put(&scope, SPELLINGS[n % 3], &current.etag, &text)));
    }

    assert_eq!(scope.paths(""), ["a/b.md"]);
    assert_eq!(scope.audit().len(), 11);
}

// ---- tenants and users

/// The target of one file under these raw ids.
fn target(tenant: &str, user: &str) -> String {
    format!("/v1/tenants/{tenant}/users/{user}/files/a.md")
}

#[test]
fn an_id_that_is_no_segment_is_rejected() {
    let scope = Scope::fresh(&SERVER);
    let too_long = "i".repeat(257);
    for id in [
        "",
        "%20",
        "%20%09",
        ".",
        "..",
        "%2e",
        "%2E%2e",
        ".%2e",
        "a%2Fb",
        "%2F",
        "a%2fb",
        "a%5Cb",
        "%5c",
        "..%2F..%2Fetc",
        "a%00b",
        "a%0Ab",
        "a%1Fb",
        "a%7Fb",
        "%FF",
        "a%C3",
        "a%",
        "a%zz",
        too_long.as_str(),
        encoded(&("漢".repeat(85) + "ab")).as_str(),
    ] {
        for target in [target(id, "user"), target("tenant", id)] {
            let answer = scope.raw("GET", &target, &[], "");
            assert!(answer.status == 400, "{target}: {}", answer.describe());
            answer.refused(400, "INVALID_PATH_SEGMENT");
            let body = json!({"document": note("x")}).to_string();
            scope.raw("PUT", &target, &[("if-match", "*")], &body).refused(400, "INVALID_PATH_SEGMENT");
        }
    }
}

#[test]
fn every_route_of_a_scope_judges_its_ids() {
    let scope = Scope::fresh(&SERVER);
    for (method, rest) in [
        ("GET", "/files:list"),
        ("POST", "/files:delete"),
        ("POST", "/files:move"),
        ("POST", "/context:assemble"),
        ("POST", "/events"),
        ("POST", "/events:search"),
        ("POST", "/retention:apply"),
        ("DELETE", "/memory"),
    ] {
        for ids in ["/v1/tenants/%2e%2e/users/u", "/v1/tenants/t/users/a%2Fb"] {
            let body = if method == "POST" { "{}" } else { "" };
            scope.raw(method, &format!("{ids}{rest}"), &[], body).refused(400, "INVALID_PATH_SEGMENT");
        }
    }
}

#[test]
fn an_id_is_decoded_exactly_once_and_compared_exactly() {
    let scope = Scope::fresh(&SERVER);
    let unique = fresh_name("id");
    let ids = [
        unique.clone(),
        unique.to_uppercase(),
        format!("{unique}%41"),
        format!("{unique}%2541"),
        format!("{unique}%252F"),
        format!("{unique}%20"),
        format!("%20{unique}"),
        format!("{unique}+"),
        format!("{unique}%2B%2B"),
        format!("{unique}caf%C3%A9"),
        format!("{unique}cafe%CC%81"),
        format!("{unique}%F0%9F%98%80"),
        format!("{unique}..x"),
        format!("...{unique}"),
        format!("{unique}{}", "l".repeat(256 - unique.len())),
    ];
    for (n, id) in ids.iter().enumerate() {
        for target in [target(id, "user"), target("tenant", id)] {
            let body = json!({"document": envelope(json!({"n": n}))}).to_string();
            scope.raw("PUT", &target, &[("if-match", "*")], &body).stored();
        }
    }

    for (n, id) in ids.iter().enumerate() {
        for target in [target(id, "user"), target("tenant", id)] {
            assert_eq!(scope.raw("GET", &target, &[], "").stored().content()["n"], n, "{target}");
        }
    }
    // The letter A needs no escape, so both spellings are one id.
    let plain = target("tenant", &format!("{unique}A"));
    assert_eq!(scope.raw("GET", &plain, &[], "").stored().content()["n"], 2);
}

#[test]
fn ids_and_paths_cannot_be_shifted_into_one_another() {
    let (a, b) = (fresh_name("a"), fresh_name("b"));
    let one = Scope::of(&SERVER, &a, &b);
    let other = Scope::of(&SERVER, &b, &a);
    one.create("x/y", json!({"text": "mine"}));

    other.get("x/y").refused(404, "DOCUMENT_NOT_FOUND");
    Scope::of(&SERVER, &a, "x").get("y").refused(404, "DOCUMENT_NOT_FOUND");
    Scope::of(&SERVER, &a, &format!("{b}x")).get("y").refused(404, "DOCUMENT_NOT_FOUND");
}
