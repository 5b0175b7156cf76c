//! `files:list`: order, prefixes, limits, pages.

use crate::support::*;
use std::sync::LazyLock;

static SERVER: LazyLock<TestServer> = LazyLock::new(local_server);

/// A fresh scope with these files, whose names need no escapes.
fn scope_with(paths: &[&str]) -> Scope {
    let scope = Scope::fresh(&SERVER);
    for path in paths {
        scope.create(path, json!({}));
    }
    scope
}

/// Follows `next_after` to the end.
#[track_caller]
fn walk(scope: &Scope, query: &str) -> Vec<String> {
    let mut all = Vec::new();
    let mut after = String::new();
    loop {
        let answer = scope.list(&format!("{query}{after}")).expect(200);
        let files = answer.json["files"].as_array().unwrap();
        all.extend(files.iter().map(|file| file["path"].as_str().unwrap().to_owned()));
        let Some(next) = answer.json["next_after"].as_str() else { return all };
        assert!(!files.is_empty(), "a page that is not the last is not empty: {}", answer.describe());
        after = format!("&after={}", encoded(next));
        assert!(all.len() < 10_000, "{query} never ends");
    }
}

/// Every byte of a text, percent-encoded.
fn encoded(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02X}")).collect()
}

// ---- shape

#[test]
fn a_list_has_exactly_the_contracts_members() {
    let scope = Scope::fresh(&SERVER);
    let stored = scope.create("projects/mem.md", json!({"text": "x"}));

    let answer = scope.client.get(&scope.at("/files:list")).expect(200);

    assert!(answer.header("content-type").starts_with("application/json"));
    let modified = &stored.document()["updated_at"];
    assert_timestamp(&answer.json["files"][0]["last_modified_utc"]);
    assert_eq!(
        answer.json,
        json!({"files": [{"path": "projects/mem.md", "last_modified_utc": modified}], "next_after": null})
    );
}

#[test]
fn an_unknown_scope_is_an_empty_list() {
    let answer = Scope::fresh(&SERVER).list("").expect(200);

    assert_eq!(answer.json, json!({"files": [], "next_after": null}));
}

#[test]
fn a_list_shows_one_scope_only() {
    let mine = scope_with(&["mine.md"]);
    Scope::of(&SERVER, &mine.tenant, &fresh_name("other")).create("theirs.md", json!({}));
    Scope::of(&SERVER, &fresh_name("elsewhere"), &mine.user).create("elsewhere.md", json!({}));

    assert_eq!(mine.paths(""), ["mine.md"]);
}

#[test]
fn a_mutation_moves_the_time_and_nothing_else() {
    let scope = scope_with(&["a.md", "b.md"]);
    let first = scope.list("").expect(200).json;
    let etag = scope.read("a.md").etag;

    let stored = scope.put("a.md", &etag, note("two")).stored();

    let second = scope.list("").expect(200).json;
    assert_eq!(second["files"][0]["path"], "a.md");
    assert_eq!(second["files"][0]["last_modified_utc"], stored.document()["updated_at"]);
    assert_eq!(second["files"][1], first["files"][1]);
}

// ---- order

#[test]
fn files_are_sorted_by_lower_cased_path_and_then_by_exact_path() {
    let scope =
        scope_with(&["b", "a/b", "B", "A", "a", "a.md", "Z", "_", "aa", "A/C", "10", "9", "c", "C/a"]);

    assert_eq!(
        scope.paths(""),
        ["10", "9", "_", "A", "a", "a.md", "a/b", "A/C", "aa", "B", "b", "c", "C/a", "Z"]
    );
}

#[test]
fn letters_of_every_alphabet_are_lower_cased() {
    let scope = Scope::fresh(&SERVER);
    for path in ["Éclair", "école", "Ökonom", "ось", "ОСА", "Zoo", "😀", "漢字"] {
        scope.create(&encoded(path), json!({}));
    }

    assert_eq!(scope.paths(""), ["Zoo", "Éclair", "école", "Ökonom", "ОСА", "ось", "漢字", "😀"]);
}

// ---- prefixes

#[test]
fn a_prefix_is_plain_text_and_no_folder() {
    let scope = scope_with(&["notes/a", "notes/b", "notes.md", "note", "other", "x/notes/a"]);

    assert_eq!(scope.paths("prefix=notes/"), ["notes/a", "notes/b"]);
    assert_eq!(scope.paths("prefix=notes"), ["notes.md", "notes/a", "notes/b"]);
    assert_eq!(scope.paths("prefix=not"), ["note", "notes.md", "notes/a", "notes/b"]);
    assert_eq!(scope.paths("prefix=notes/a"), ["notes/a"]);
    assert_eq!(scope.paths("prefix=notes/a/"), [""; 0]);
    assert_eq!(scope.paths("prefix=none"), [""; 0]);
}

#[test]
fn letter_case_does_not_count_in_a_prefix() {
    let scope = Scope::fresh(&SERVER);
    for path in ["Notes/A", "notes/b", "NOTES/c", "Éa", "éb", "ΑΣ", "Straße", "\u{130}x"] {
        scope.create(&encoded(path), json!({}));
    }

    for prefix in ["notes/", "NOTES/", "nOtEs/"] {
        assert_eq!(scope.paths(&format!("prefix={prefix}")), ["Notes/A", "notes/b", "NOTES/c"]);
    }
    for prefix in ["é", "É"] {
        assert_eq!(scope.paths(&format!("prefix={}", encoded(prefix))), ["Éa", "éb"]);
    }
    // Letter by letter: a sigma at the end of a word is a sigma, and an ß is no SS.
    for prefix in ["ασ", "ΑΣ", "αΣ"] {
        assert_eq!(scope.paths(&format!("prefix={}", encoded(prefix))), ["ΑΣ"], "{prefix}");
    }
    assert_eq!(scope.paths("prefix=STRASS"), [""; 0]);
    assert_eq!(scope.paths(&format!("prefix={}", encoded("\u{130}"))), ["\u{130}x"]);
}

#[test]
fn unicode_is_not_normalised_in_a_prefix() {
    let scope = Scope::fresh(&SERVER);
    scope.create(&encoded("caf\u{e9}"), json!({}));
    scope.create(&encoded("cafe\u{301}"), json!({}));

    assert_eq!(scope.paths(&format!("prefix={}", encoded("caf\u{e9}"))), ["caf\u{e9}"]);
    assert_eq!(scope.paths("prefix=cafe"), ["cafe\u{301}"]);
}

#[test]
fn a_prefix_is_tidied_up() {
    let scope = scope_with(&["notes/a", "other"]);
    for prefix in ["/notes", "%5Cnotes", "notes%5C", "%20notes/%20", "%20/notes", "+notes+", "/notes%5Ca"] {
        assert_eq!(scope.paths(&format!("prefix={prefix}")), ["notes/a"], "{prefix}");
    }
    for blank in ["", "%20", "+", "/", "%5C", "%09"] {
        assert_eq!(scope.paths(&format!("prefix={blank}")).len(), 2, "{blank}");
    }
}

#[test]
fn two_dots_are_refused_in_a_prefix() {
    let scope = Scope::fresh(&SERVER);
    for prefix in ["..", "../", "a/..", "a..b", "%2e%2e", "/../etc", "..%5C", "...", "+.."] {
        scope.list(&format!("prefix={prefix}")).refused(400, "INVALID_PATH_PREFIX");
    }
}

#[test]
fn operators_of_pattern_languages_are_plain_text_in_a_prefix() {
    let scope = Scope::fresh(&SERVER);
    for path in ["a%b", "a_b", "axb", "a*b", "a[b"] {
        scope.create(&encoded(path), json!({}));
    }
    for path in ["a%b", "a_b", "axb", "a*b", "a[b"] {
        assert_eq!(scope.paths(&format!("prefix={}", encoded(path))), [path]);
    }
    assert_eq!(scope.paths("prefix=%25"), [""; 0]);
    assert_eq!(scope.paths("prefix=_"), [""; 0]);
    assert_eq!(scope.paths("prefix=*"), [""; 0]);
}

// ---- limits

#[test]
fn a_limit_is_between_1_and_500() {
    let scope = scope_with(&["a", "b", "c"]);

    assert_eq!(scope.paths("limit=1"), ["a"]);
    assert_eq!(scope.paths("limit=2"), ["a", "b"]);
    assert_eq!(scope.paths("limit=500"), ["a", "b", "c"]);
}

#[test]
fn anything_else_is_no_limit() {
    let scope = Scope::fresh(&SERVER);
    for query in [
        "limit=0",
        "limit=-1",
        "limit=501",
        "limit=",
        "limit",
        "limit=%20",
        "limit=ten",
        "limit=1.5",
        "limit=1.0",
        "limit=1e2",
        "limit=0x10",
        "limit=99999999999999999999",
        "limit=-99999999999999999999",
        "limit=%D9%A1",
        "limit=1,2",
        "limit=1&limit=1",
        "limit=1&limit=2",
        "limit=null",
        "limit=%00",
    ] {
        scope.list(query).refused(400, "INVALID_LIMIT");
    }
}

#[test]
fn a_hundred_files_are_listed_by_default() {
    let scope = Scope::fresh(&SERVER);
    spread(101, |n| drop(scope.create(&format!("{n:03}"), json!({}))));

    let answer = scope.list("").expect(200);

    assert_eq!(answer.json["files"].as_array().unwrap().len(), 100);
    assert_eq!(answer.json["next_after"], "099");
    assert_eq!(scope.paths("after=099"), ["100"]);
}

// ---- pages

#[test]
fn pages_follow_one_another_without_gaps_and_repeats() {
    let paths =
        ["B", "a", "A", "b/1", "B/2", "b", "c", "É", "é", "😀", "z/z/z", "a%b", "a b", "a+b", "a&b=c"];
    let scope = Scope::fresh(&SERVER);
    for path in paths {
        scope.create(&encoded(path), json!({}));
    }
    let all = scope.paths("limit=500");
    assert_eq!(all.len(), paths.len());

    for limit in [1, 2, 3, 7, 15] {
        assert_eq!(walk(&scope, &format!("limit={limit}")), all, "limit {limit}");
    }
    let with_b: Vec<String> =
        all.iter().filter(|path| path.to_lowercase().starts_with('b')).cloned().collect();
    assert_eq!(with_b.len(), 4);
    assert_eq!(walk(&scope, "limit=1&prefix=B"), with_b);
}

#[test]
fn there_is_a_next_page_only_when_there_is_more() {
    let scope = scope_with(&["a", "b", "c", "x/1", "x/2"]);
    let next = |query: &str| scope.list(query).expect(200).json["next_after"].clone();

    assert_eq!(next("limit=4"), "x/1");
    assert_eq!(next("limit=5"), json!(null));
    assert_eq!(next("limit=500"), json!(null));
    assert_eq!(next("limit=2&prefix=x"), json!(null), "more files, but none with this prefix");
    assert_eq!(next("limit=1&prefix=x"), "x/1");
    assert_eq!(next("limit=2&after=c"), json!(null));
    assert_eq!(next("limit=1&after=c"), "x/1");
}

#[test]
fn after_names_a_place_whether_or_not_a_file_is_there() {
    let scope = scope_with(&["A", "a", "b", "C", "d"]);

    assert_eq!(scope.paths("after=A"), ["a", "b", "C", "d"]);
    assert_eq!(scope.paths("after=a"), ["b", "C", "d"]);
    assert_eq!(scope.paths("after=B"), ["b", "C", "d"], "B would stand before b");
    assert_eq!(scope.paths("after=bb"), ["C", "d"]);
    assert_eq!(scope.paths("after=c"), ["d"], "c would stand behind C");
    assert_eq!(scope.paths("after=d"), [""; 0]);
    assert_eq!(scope.paths("after=zzz"), [""; 0]);
    assert_eq!(scope.paths("after=0"), ["A", "a", "b", "C", "d"]);
}

#[test]
fn files_that_come_and_change_meanwhile_disturb_no_walk() {
    let scope = scope_with(&["b", "d", "f", "h"]);
    let first = scope.list("limit=2").expect(200).json;
    assert_eq!(first["next_after"], "d");
    scope.create("a", json!({}));
    scope.create("e", json!({}));
    let etag = scope.read("b").etag;
    scope.put("b", &etag, note("changed")).stored();

    assert_eq!(scope.paths("limit=500&after=d"), ["e", "f", "h"]);
}
