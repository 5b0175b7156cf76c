use super::*;
use crate::memories::requests::{code, parsed};
use serde_json::json;

/// What a reader makes of `{"x": …}`.
fn read<T: std::fmt::Debug>(value: &str, reader: impl Fn(Members<'_>) -> Result<T>) -> Result<T> {
    reader(Members::body(&parsed(&format!(r#"{{"x":{value}}}"#)))?)
}

#[test]
fn an_integer_is_written_as_one_and_in_range() {
    let integer = |value| read(value, |members| members.integer("x", 1..=100));
    assert_eq!(integer("1"), Ok(Some(1)));
    assert_eq!(integer("100"), Ok(Some(100)));
    assert_eq!(integer("null"), Ok(None));
    for value in ["1.0", "1e1", "\"1\"", "true", "[1]", "0", "101", "-1", "99999999999999999999999", "{}"] {
        assert_eq!(code(integer(value)), "INVALID_REQUEST x", "{value}");
    }
    assert_eq!(read("null", |members| members.limit("x", 7, 10)), Ok(7));
    assert_eq!(read("10", |members| members.limit("x", 7, 10)), Ok(10));
}

#[test]
fn a_number_is_finite_and_in_range() {
    let number = |value| read(value, |members| members.number("x", 0.0..=1.0));
    for (value, expected) in [("0", 0.0), ("1.0", 1.0), ("0.25", 0.25), ("1e-400", 0.0), ("-0.0", -0.0)] {
        assert_eq!(number(value), Ok(Some(expected)), "{value}");
    }
    for value in ["1.0000001", "-1e-9", "\"0.5\"", "false", "1e999", "-1e999"] {
        assert_eq!(code(number(value)), "INVALID_REQUEST x", "{value}");
    }
}

#[test]
fn texts_instants_lists_and_truth_values_are_of_their_type() {
    for value in ["5", "[]", "{}", "true"] {
        assert_eq!(code(read(value, |members| members.text("x").map(|_| ()))), "INVALID_REQUEST x");
    }
    for value in ["\"\"", "\" \\n\\u3000\"", "1"] {
        assert_eq!(code(read(value, |members| members.spoken("x").map(|_| ()))), "INVALID_REQUEST x");
    }
    for value in ["\"2026-01-31\"", "0", "\"2026-02-30T00:00:00Z\""] {
        assert_eq!(code(read(value, |members| members.instant("x"))), "INVALID_REQUEST x");
    }
    for value in ["\"true\"", "1", "0"] {
        assert_eq!(code(read(value, |members| members.flag("x"))), "INVALID_REQUEST x");
    }
    for value in ["\"a\"", "{}", "[1]", "[null]", "[\"a\", 2]"] {
        assert_eq!(code(read(value, |members| members.texts("x").map(|_| ()))), "INVALID_REQUEST x");
    }
    for value in ["[]", "\"a\"", "{}"] {
        assert_eq!(code(read(value, |members| members.items("x").map(|_| ()))), "INVALID_REQUEST x");
    }
    assert_eq!(
        code(read("null", |members| members.required("x", members.text("x")).map(|_| ()))),
        "INVALID_REQUEST x"
    );
}

#[test]
fn the_length_of_a_text_counts_characters() {
    let text =
        |value: &str| read(&json!(value).to_string(), |members| members.text_of("x", 1..=3).map(|_| ()));
    assert_eq!((text("é"), text("👍👍👍")), (Ok(()), Ok(())));
    for value in ["", "abcd"] {
        assert_eq!(code(text(value)), "INVALID_REQUEST x");
    }
}

#[test]
fn a_nul_or_an_endless_number_is_refused_wherever_it_stands() {
    let rows = [
        (r#"{"content":"a\u0000b"}"#, "content"),
        (r#"{"metadata":{"a":[1,{"b":"\u0000"}]}}"#, "metadata.a[1].b"),
        (r#"{"metadata":{"a":[[1e999]]}}"#, "metadata.a[0][0]"),
        (r#"{"unknown":-1e400}"#, "unknown"),
        (r#"{"metadata":{"a\u0000":1}}"#, "metadata.a\u{fffd}"),
    ];
    for (body, field) in rows {
        assert_eq!(code(Members::body(&parsed(body))), format!("INVALID_REQUEST {field}"));
    }
    for body in ["[]", "5", "\"text\"", "null"] {
        assert_eq!(code(Members::body(&parsed(body))), "INVALID_REQUEST");
    }
    assert!(Members::body(&parsed(r#"{"a":1e308,"b":"\u0001","c":123456789012345678901234567890}"#)).is_ok());
}

#[test]
fn a_member_of_a_member_is_named_with_its_place() {
    let body = json!({"timeRange": {"from": 5}});
    let range = Members::body(&body).unwrap().object("timeRange", "timeRange.").unwrap().unwrap();
    assert_eq!(code(range.instant("from")), "INVALID_REQUEST timeRange.from");
}
