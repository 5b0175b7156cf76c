use super::*;
use crate::files::testing::{code, detail};
use proptest::prelude::*;
use serde_json::json;

fn edit(old_text: &str, new_text: &str, occurrence: Option<i64>) -> TextEdit {
    TextEdit { old_text: old_text.to_owned(), new_text: new_text.to_owned(), occurrence }
}

fn check(text: &str, edits: &[TextEdit], expected: Result<&str, (&str, usize, usize)>) {
    let result = apply(text, edits);
    match expected {
        Ok(expected) => assert_eq!(result.as_deref(), Ok(expected)),
        Err((expected, edit_index, match_count)) => {
            let refused = result.unwrap_err();
            assert_eq!(detail(&refused, "edit_index"), Some(edit_index.to_string()));
            assert_eq!(detail(&refused, "match_count"), Some(match_count.to_string()));
            assert_eq!(code::<()>(Err(refused)), expected);
        }
    }
}

#[test]
fn the_table_of_the_contract() {
    check("aaaa", &[edit("aa", "b", None)], Err(("PATCH_MATCH_AMBIGUOUS", 0, 2)));
    check("aaaa", &[edit("aa", "b", Some(1))], Ok("baa"));
    check("aaaa", &[edit("aa", "b", Some(2))], Ok("aab"));
    check("aaaa", &[edit("aa", "b", Some(3))], Err(("PATCH_OCCURRENCE_OUT_OF_RANGE", 0, 2)));
    check("aaa", &[edit("aa", "b", None)], Ok("ba"));
    check("abc", &[edit("a", "b", None), edit("bb", "Q", None)], Ok("Qc"));
    check("abc", &[edit("a", "Z", None), edit("nope", "Q", None)], Err(("PATCH_MATCH_NOT_FOUND", 1, 0)));
    check("a\r\nb", &[edit("a\nb", "x", None)], Err(("PATCH_MATCH_NOT_FOUND", 0, 0)));
    check("e\u{301}", &[edit("\u{e9}", "x", None)], Err(("PATCH_MATCH_NOT_FOUND", 0, 0)));
    check("abc", &[edit("abc", "", None)], Ok(""));
    check("abc", &[edit("abc", "", None), edit("a", "b", None)], Err(("PATCH_MATCH_NOT_FOUND", 1, 0)));
    check("a", &[edit("a", "a", None)], Ok("a"));
    check("a", &[edit("a", "aa", None)], Ok("aa"));
    check("a", &[edit("a", "aa", None), edit("a", "b", None)], Err(("PATCH_MATCH_AMBIGUOUS", 1, 2)));
}

#[test]
fn occurrences_count_from_one() {
    for occurrence in [0, -1, -3, i64::MIN, 4, (1 << 32) + 1, i64::MAX] {
        check("a-a-a", &[edit("a", "b", Some(occurrence))], Err(("PATCH_OCCURRENCE_OUT_OF_RANGE", 0, 3)));
    }
    for occurrence in [0, -1, 1, 2, i64::MIN, i64::MAX] {
        check("xyz", &[edit("a", "b", Some(occurrence))], Err(("PATCH_MATCH_NOT_FOUND", 0, 0)));
    }
    check("a-a-a", &[edit("a", "b", Some(1))], Ok("b-a-a"));
    check("a-a-a", &[edit("a", "b", Some(3))], Ok("a-a-b"));
    check("x", &[edit("x", "y", Some(1))], Ok("y"));
}

#[test]
fn matching_is_exact() {
    check("Straße", &[edit("straße", "x", None)], Err(("PATCH_MATCH_NOT_FOUND", 0, 0)));
    check("你好，世界😀", &[edit("，世", ", ", None), edit("😀", "", None)], Ok("你好, 界"));
    check("", &[edit("a", "b", None)], Err(("PATCH_MATCH_NOT_FOUND", 0, 0)));
    for (text, other) in [
        ("Straße", "STRASSE"),
        ("İstanbul", "istanbul"),
        ("a b", "a\u{a0}b"),
        ("a b", "a  b"),
        ("a\nb", "a\r\nb"),
        ("\u{e9}", "e\u{301}"),
        ("abc", "a.c"),
    ] {
        check(text, &[edit(other, "x", None)], Err(("PATCH_MATCH_NOT_FOUND", 0, 0)));
        check(other, &[edit(other, "x", None)], Ok("x"));
    }
    check("a\u{a0}b", &[edit("\u{a0}", " ", None)], Ok("a b"));
    check("a.b", &[edit(".", "$0\\1&", None)], Ok("a$0\\1&b"));
    check("(.*)", &[edit("(.*)", "{}", None)], Ok("{}"));
    check("👩\u{200d}💻 codes", &[edit("👩", "👨", None)], Ok("👨\u{200d}💻 codes"));
    check("e\u{301}", &[edit("e", "o", None)], Ok("o\u{301}"));
    check("😀😀😀", &[edit("😀", "🙂", Some(2))], Ok("😀🙂😀"));
    check("漢字と漢字", &[edit("漢字", "かな", Some(2))], Ok("漢字とかな"));
    check("a\0b", &[edit("\0", "-", None)], Ok("a-b"));
}

#[test]
fn the_whole_list_is_judged_by_its_shape_first() {
    let fine = json!({"old_text": "a", "new_text": ""});
    let wrong = [
        json!({"new_text": "b"}),
        json!({"old_text": "", "new_text": "b"}),
        json!({"old_text": null, "new_text": "b"}),
        json!({"old_text": 1, "new_text": "b"}),
        json!({"old_text": ["a"], "new_text": "b"}),
        json!({"oldText": "a", "new_text": "b"}),
        json!({"old_text": "a", "newText": "b"}),
        json!({"old_text": "a"}),
        json!({"old_text": "a", "new_text": null}),
        json!({"old_text": "a", "new_text": 1}),
        json!({"old_text": "a", "new_text": {}}),
        json!({"old_text": "a", "new_text": "b", "occurrence": "1"}),
        json!({"old_text": "a", "new_text": "b", "occurrence": 1.0}),
        json!({"old_text": "a", "new_text": "b", "occurrence": 1.5}),
        json!({"old_text": "a", "new_text": "b", "occurrence": true}),
        json!({"old_text": "a", "new_text": "b", "occurrence": [1]}),
        json!({"old_text": "a", "new_text": "b", "occurrence": {}}),
        json!("a"),
        json!(1),
        json!([]),
        json!(["a", "b"]),
        json!(null),
    ];
    for wrong in wrong {
        let refused = read(&[fine.clone(), wrong]).unwrap_err();
        assert_eq!(detail(&refused, "edit_index").as_deref(), Some("1"));
        assert_eq!(code::<()>(Err(refused)), "INVALID_TEXT_PATCH");
    }
}

#[test]
fn null_is_no_occurrence_and_a_huge_one_is_out_of_range() {
    let list = body::parse(
        br#"[{"old_text":"a","new_text":"b","occurrence":null},
             {"old_text":"a","new_text":"b","occurrence":99999999999999999999},
             {"old_text":"a","new_text":"b","occurrence":-99999999999999999999,"ignored":1}]"#,
    )
    .unwrap();
    let edits = read(list.as_array().unwrap()).unwrap();
    assert_eq!(edits[0].occurrence, None);
    check("a", &edits[1..2], Err(("PATCH_OCCURRENCE_OUT_OF_RANGE", 0, 1)));
    check("a", &edits[2..], Err(("PATCH_OCCURRENCE_OUT_OF_RANGE", 0, 1)));
}

#[test]
fn a_text_may_grow_for_a_while_but_not_without_end() {
    let long = "x".repeat(WORKING_CHARS);
    assert_eq!(apply("a", &[edit("a", &long, None), edit(&long, "b", None)]).as_deref(), Ok("b"));
    assert_eq!(
        code(apply("ab", &[edit("a", &long, None), edit(&long, "c", None)])),
        "DOCUMENT_SIZE_EXCEEDED"
    );
}

/// The contract's words on arrays of chars, as slowly as can be.
fn model(text: &str, edit: &TextEdit) -> Result<String, (Code, usize)> {
    let (text, old): (Vec<char>, Vec<char>) = (text.chars().collect(), edit.old_text.chars().collect());
    let (mut matches, mut at) = (Vec::new(), 0);
    while at + old.len() <= text.len() {
        if text[at..at + old.len()] == old[..] {
            matches.push(at);
            at += old.len();
        } else {
            at += 1;
        }
    }
    let count = matches.len();
    let chosen = match (count, edit.occurrence) {
        (0, _) => return Err((Code::PatchMatchNotFound, 0)),
        (_, Some(n)) if n < 1 || n > count as i64 => return Err((Code::PatchOccurrenceOutOfRange, count)),
        (_, Some(n)) => matches[n as usize - 1],
        (1, None) => matches[0],
        (_, None) => return Err((Code::PatchMatchAmbiguous, count)),
    };
    Ok(text[..chosen]
        .iter()
        .copied()
        .chain(edit.new_text.chars())
        .chain(text[chosen + old.len()..].iter().copied())
        .collect())
}

proptest! {
    #[test]
    fn edits_do_what_a_scan_by_chars_does(
        text in "[abé😀]{0,20}",
        edits in prop::collection::vec(("[abé😀]{1,3}", "[abé😀]{0,4}", prop::option::of(-1i64..5)), 1..5),
    ) {
        let edits: Vec<_> = edits.into_iter().map(|(old, new, occurrence)| edit(&old, &new, occurrence)).collect();
        let expected = edits.iter().enumerate().try_fold(text.clone(), |text, (index, edit)| {
            model(&text, edit).map_err(|(code, count)| failed(code, index, count))
        });
        prop_assert_eq!(apply(&text, &edits), expected);
    }
}
