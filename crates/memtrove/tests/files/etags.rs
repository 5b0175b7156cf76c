//! ETags, `If-Match` and `If-None-Match`.

use crate::support::*;
use std::sync::LazyLock;

static SERVER: LazyLock<TestServer> = LazyLock::new(local_server);

const OTHER: &str = "\"1-00000000000000000000000000000000\"";

/// A patch that applies to every file of these tests.
fn touch() -> Value {
    json!({"ops": [{"op": "add", "path": "/content/touched", "value": true}]})
}

// ---- what an ETag is

#[test]
fn an_etag_is_a_strong_validator_in_double_quotes() {
    let scope = Scope::fresh(&SERVER);

    let etag = scope.create("a.md", json!({})).etag;

    assert!(etag.len() > 2 && etag.starts_with('"') && etag.ends_with('"'), "{etag}");
    assert!(!etag[1..etag.len() - 1].contains('"'), "{etag}");
}

#[test]
fn reads_and_writes_tell_the_same_etag_in_body_and_header() {
    let scope = Scope::fresh(&SERVER);

    let created = scope.put("a.md", "*", note("one")).stored();
    assert_eq!(scope.get("a.md").stored(), created);
    let replaced = scope.put("a.md", &created.etag, note("two")).stored();
    assert_eq!(scope.get("a.md").stored(), replaced);
    let patched = scope.patch("a.md", &replaced.etag, touch()).stored();
    assert_eq!(scope.get("a.md").stored(), patched);
}

#[test]
fn a_write_that_changes_nothing_still_yields_a_new_etag() {
    let scope = Scope::fresh(&SERVER);
    let mut seen = vec![scope.create("a.md", json!({"text": "same"})).etag];
    for _ in 0..3 {
        let etag = scope.put("a.md", seen.last().unwrap(), note("same")).stored().etag;
        assert!(!seen.contains(&etag), "{etag} twice");
        seen.push(etag);
    }
    let same = json!({"ops": [{"op": "test", "path": "/content/text", "value": "same"}]});

    let etag = scope.patch("a.md", seen.last().unwrap(), same).stored().etag;

    assert!(!seen.contains(&etag), "{etag} twice");
}

#[test]
fn going_back_to_an_earlier_content_does_not_bring_back_its_etag() {
    let scope = Scope::fresh(&SERVER);
    let first = scope.create("a.md", json!({"text": "one"}));
    let second = scope.put("a.md", &first.etag, note("two")).stored();

    let third = scope.put("a.md", &second.etag, note("one")).stored();

    assert_ne!(third.etag, first.etag);
    scope.put("a.md", &first.etag, note("three")).refused(412, "ETAG_MISMATCH");
}

#[test]
fn a_file_recreated_after_forget_never_reuses_an_etag() {
    let scope = Scope::fresh(&SERVER);
    let mut seen = Vec::new();
    for _ in 0..3 {
        let created = scope.create("a.md", json!({"text": "same"}));
        let replaced = scope.put("a.md", &created.etag, note("same")).stored();
        for etag in [created.etag, replaced.etag] {
            assert!(!seen.contains(&etag), "{etag} twice");
            seen.push(etag);
        }
        scope.client.delete(&scope.at("/memory")).expect(200);
    }
    scope.create("a.md", json!({"text": "same"}));

    for etag in &seen {
        scope.put("a.md", etag, note("stale")).refused(412, "ETAG_MISMATCH");
    }
}

#[test]
fn a_compressed_answer_has_the_same_etag() {
    let scope = Scope::fresh(&SERVER);
    let stored = scope.create("a.md", json!({"text": "again and ".repeat(5_000)}));

    for encoding in ["gzip", "zstd", "gzip, deflate, br, zstd", "identity"] {
        let asking = scope.with_header("accept-encoding", encoding);
        assert_eq!(asking.get("a.md").expect(200).header("etag"), stored.etag, "{encoding}");
        asking.with_header("if-none-match", &stored.etag).get("a.md").expect(304);
    }
}

// ---- the table: a file that exists

#[test]
fn a_put_with_a_star_on_an_existing_file_fails_and_tells_the_latest_etag() {
    let scope = Scope::fresh(&SERVER);
    let before = scope.create("a.md", json!({"text": "one"}));

    let refused = scope.put("a.md", "*", note("two")).refused(412, "ETAG_MISMATCH");

    assert_eq!(refused.detail("latest_etag"), Some(before.etag.as_str()));
    assert_eq!(scope.read("a.md"), before);
}

#[test]
fn a_put_with_the_matching_etag_replaces() {
    let scope = Scope::fresh(&SERVER);
    let before = scope.create("a.md", json!({"text": "one", "gone": 1}));

    let after = scope.put("a.md", &before.etag, note("two")).stored();

    assert_ne!(after.etag, before.etag);
    assert_eq!(after.content(), json!({"text": "two"}));
}

#[test]
fn a_put_with_another_etag_fails_and_tells_the_latest_etag() {
    let scope = Scope::fresh(&SERVER);
    let first = scope.create("a.md", json!({"text": "one"}));
    let second = scope.put("a.md", &first.etag, note("two")).stored();

    for stale in [first.etag.as_str(), OTHER] {
        let refused = scope.put("a.md", stale, note("three")).refused(412, "ETAG_MISMATCH");
        assert_eq!(refused.detail("latest_etag"), Some(second.etag.as_str()));
    }
    assert_eq!(scope.read("a.md"), second);
}

#[test]
fn a_patch_with_a_star_on_an_existing_file_fails_and_tells_the_latest_etag() {
    let scope = Scope::fresh(&SERVER);
    let before = scope.create("a.md", json!({"text": "one"}));

    let refused = scope.patch("a.md", "*", touch()).refused(412, "ETAG_MISMATCH");

    assert_eq!(refused.detail("latest_etag"), Some(before.etag.as_str()));
    assert_eq!(scope.read("a.md"), before);
}

#[test]
fn a_patch_with_the_matching_etag_patches() {
    let scope = Scope::fresh(&SERVER);
    let before = scope.create("a.md", json!({"text": "one"}));

    let after = scope.patch("a.md", &before.etag, touch()).stored();

    assert_ne!(after.etag, before.etag);
    assert_eq!(after.content(), json!({"text": "one", "touched": true}));
}

#[test]
fn a_patch_with_another_etag_fails_and_tells_the_latest_etag() {
    let scope = Scope::fresh(&SERVER);
    let first = scope.create("a.md", json!({"text": "one"}));
    let second = scope.patch("a.md", &first.etag, touch()).stored();

    for stale in [first.etag.as_str(), OTHER] {
        let refused = scope.patch("a.md", stale, touch()).refused(412, "ETAG_MISMATCH");
        assert_eq!(refused.detail("latest_etag"), Some(second.etag.as_str()));
    }
    assert_eq!(scope.read("a.md"), second);
}

// ---- the table: a file that is missing

#[test]
fn a_put_with_a_star_creates_a_missing_file_with_200() {
    let scope = Scope::fresh(&SERVER);

    let created = scope.put("a.md", "*", note("one")).expect(200).stored();

    assert_eq!(scope.read("a.md"), created);
}

#[test]
fn a_put_with_an_etag_on_a_missing_file_fails_without_a_latest_etag() {
    let scope = Scope::fresh(&SERVER);

    let refused = scope.put("a.md", OTHER, note("one")).refused(412, "ETAG_MISMATCH");

    assert_eq!(refused.json["error"]["details"].get("latest_etag"), None, "{}", refused.describe());
    scope.get("a.md").refused(404, "DOCUMENT_NOT_FOUND");
}

#[test]
fn a_patch_of_a_missing_file_is_not_found_whatever_it_expects() {
    let scope = Scope::fresh(&SERVER);
    for if_match in ["*", OTHER] {
        scope.patch("a.md", if_match, touch()).refused(404, "DOCUMENT_NOT_FOUND");
    }
    scope.get("a.md").refused(404, "DOCUMENT_NOT_FOUND");
}

// ---- the header

#[test]
fn a_mutation_needs_if_match() {
    let scope = Scope::fresh(&SERVER);
    let before = scope.create("a.md", json!({"text": "one"}));
    let put = || Body::Json(json!({"document": note("two")}));

    for path in ["a.md", "missing.md"] {
        scope.client.send("PUT", &scope.file(path), put()).refused(400, "MISSING_IF_MATCH");
        scope.client.send("PATCH", &scope.file(path), Body::Json(touch())).refused(400, "MISSING_IF_MATCH");
        for blank in ["", " ", "\t "] {
            scope.put_body(path, blank, put()).refused(400, "MISSING_IF_MATCH");
            scope.patch(path, blank, touch()).refused(400, "MISSING_IF_MATCH");
        }
    }
    assert_eq!(scope.read("a.md"), before);
    scope.get("missing.md").refused(404, "DOCUMENT_NOT_FOUND");
}

#[test]
fn the_header_is_compared_exactly() {
    let scope = Scope::fresh(&SERVER);
    let before = scope.create("a.md", json!({"text": "one"}));
    let etag = &before.etag;
    let bare = etag.trim_matches('"');
    let mut spellings = vec![
        format!("W/{etag}"),
        format!("w/{etag}"),
        bare.to_owned(),
        format!("'{bare}'"),
        format!("\"{bare}"),
        format!("{bare}\""),
        format!("\"\"{bare}\"\""),
        format!("\"{bare} \""),
        format!("{etag}, {OTHER}"),
        format!("{OTHER}, {etag}"),
        format!("{etag}, {etag}"),
        format!("{etag},"),
        format!("*, {etag}"),
        "**".to_owned(),
        "\"*\"".to_owned(),
        "\"\"".to_owned(),
    ];
    spellings.extend([etag.to_lowercase(), etag.to_uppercase()].into_iter().filter(|other| other != etag));

    for spelling in &spellings {
        for answer in [scope.put("a.md", spelling, note("two")), scope.patch("a.md", spelling, touch())] {
            let refused = answer.refused(412, "ETAG_MISMATCH");
            assert_eq!(refused.detail("latest_etag"), Some(etag.as_str()), "{spelling}");
        }
    }
    assert_eq!(scope.read("a.md"), before);
}

#[test]
fn two_header_lines_match_nothing() {
    let scope = Scope::fresh(&SERVER);
    let before = scope.create("a.md", json!({"text": "one"}));
    let body = json!({"document": note("two")}).to_string();

    for lines in [[before.etag.as_str(), OTHER], [OTHER, before.etag.as_str()]] {
        let headers = [("if-match", lines[0]), ("if-match", lines[1])];
        let answer = scope.raw("PUT", &scope.file("a.md"), &headers, &body);
        assert!(matches!(answer.status, 400 | 412), "{}", answer.describe());
    }
    assert_eq!(scope.read("a.md"), before);
}

#[test]
fn space_around_the_header_does_not_count() {
    let scope = Scope::fresh(&SERVER);
    let created = scope.put("a.md", "  * ", note("one")).stored();

    let replaced = scope.put("a.md", &format!("  {}\t", created.etag), note("two")).stored();

    assert_eq!(replaced.content()["text"], "two");
}

// ---- If-None-Match

#[test]
fn a_read_with_the_current_etag_is_not_modified() {
    let scope = Scope::fresh(&SERVER);
    let first = scope.create("a.md", json!({"text": "one"}));

    let unchanged = scope.with_header("if-none-match", &first.etag).get("a.md").expect(304);
    assert_eq!(unchanged.text, "");
    assert_eq!(unchanged.header("etag"), first.etag);

    let second = scope.put("a.md", &first.etag, note("two")).stored();
    assert_eq!(scope.with_header("if-none-match", &first.etag).get("a.md").stored(), second);
    scope.with_header("if-none-match", &second.etag).get("a.md").expect(304);
}

#[test]
fn a_read_with_another_etag_gets_the_file_and_a_missing_file_stays_missing() {
    let scope = Scope::fresh(&SERVER);
    let stored = scope.create("a.md", json!({"text": "one"}));
    let asking = scope.with_header("if-none-match", OTHER);

    assert_eq!(asking.get("a.md").stored(), stored);
    asking.get("missing.md").refused(404, "DOCUMENT_NOT_FOUND");
    let elsewhere = scope.create("b.md", json!({"text": "one"}));
    scope.with_header("if-none-match", &elsewhere.etag).get("a.md").expect(200);
}
