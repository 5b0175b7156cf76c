use super::*;
use crate::files::testing::{code, detail};
use proptest::prelude::*;
use serde_json::json;

fn nested(levels: usize) -> String {
    format!("{}{}", "[".repeat(levels), "]".repeat(levels))
}

#[test]
fn what_is_no_json_is_refused() {
    let wrong = [
        "",
        " \n",
        "{",
        "}",
        "[1,]",
        "{\"a\":1,}",
        "{\"a\"}",
        "{a:1}",
        "{1:1}",
        "[1 2]",
        "{} {}",
        "nul",
        "truefalse",
        "True",
        "'a'",
        "\"a",
        "\"a\\\"",
        "\"\\x\"",
        "\"a\nb\"",
        "\"\\ud800\"",
        "\"\\udc00\"",
        "\"\\ud800\\u0041\"",
        "\"\\u12\"",
        "01",
        "-",
        "-a",
        "1.",
        ".1",
        "1e",
        "1e+",
        "+1",
        "0x1",
        "--1",
        "NaN",
        "\u{feff}{}",
        "{\"\\ud800\":1}",
        "\u{a0}1",
        "{\"$serde_json::private::Number\":\"1\"",
    ];
    for text in wrong {
        assert_eq!(code(parse(text.as_bytes())), "INVALID_JSON", "{text:?}");
    }
    for bytes in [&b"\"\xff\""[..], b"\xff", b"\"\xc3", b"\"\xed\xa0\x80\""] {
        assert_eq!(code(parse(bytes)), "INVALID_JSON", "{bytes:?}");
    }
}

#[test]
fn a_body_is_nested_at_most_128_levels() {
    assert!(parse(nested(128).as_bytes()).is_ok());
    assert_eq!(code(parse(nested(129).as_bytes())), "INVALID_JSON");
    assert_eq!(code(parse(nested(1_000_000).as_bytes())), "INVALID_JSON");
    assert_eq!(code(parse("[".repeat(1_000_000).as_bytes())), "INVALID_JSON");
    assert!(parse(format!("\"{}\"", nested(200)).as_bytes()).is_ok(), "brackets in a text are no levels");
}

#[test]
fn names_our_json_library_would_misread_are_names_like_any_other() {
    for text in [
        r#"{"$serde_json::private::Number":"1"}"#,
        r#"[{"$serde_json::private::RawValue":1}]"#,
        r#"{"\u0000":"\u0000"}"#,
    ] {
        assert_eq!(parse(text.as_bytes()).unwrap().to_string(), text);
    }
}

#[test]
fn order_and_number_literals_survive() {
    let texts = [
        r#"{"b":1.10,"a":123456789012345678901234567890,"c":[1E400,1e+400,1e400,-0,-0.0,0e-0,1.0E-02]}"#,
        r#"{"z":{"y":"\"\\\b\f\n\r\t\u0000\u001f/ü€😀","x":[[],{},null,true,false]}}"#,
    ];
    for text in texts {
        assert_eq!(serde_json::to_string(&parse(text.as_bytes()).unwrap()).unwrap(), text);
    }
    assert_eq!(
        parse(br#"{"a":1,"b":2,"a":3}"#).unwrap().to_string(),
        r#"{"a":3,"b":2}"#,
        "the last one wins"
    );
}

#[test]
fn an_object_is_an_object() {
    assert_eq!(object(br#"{"a":1}"#).unwrap().len(), 1);
    for body in ["[]", "null", "1", "\"{}\""] {
        assert_eq!(code(object(body.as_bytes())), "INVALID_REQUEST");
    }
}

#[test]
fn null_members_are_absent_and_wrong_ones_are_named() {
    let body =
        object(br#"{"text":"t","null":null,"list":[1],"number":5,"time":"2026-01-31T14:00:00+02:00"}"#)
            .unwrap();
    assert_eq!(text(&body, "text"), Ok(Some("t")));
    assert_eq!(array(&body, "list"), Ok(Some(&[json!(1)][..])));
    assert_eq!(integer(&body, "number"), Ok(Some(5)));
    assert_eq!(instant(&body, "time").unwrap().unwrap().to_string(), "2026-01-31T12:00:00.000000Z");
    for name in ["null", "absent"] {
        assert_eq!(
            (text(&body, name), array(&body, name), integer(&body, name)),
            (Ok(None), Ok(None), Ok(None))
        );
        assert_eq!(instant(&body, name), Ok(None));
    }
    let refused = text(&body, "number").unwrap_err();
    assert_eq!(detail(&refused, "field").as_deref(), Some("number"));
    assert_eq!(code(array(&body, "text")), "INVALID_REQUEST");
    assert_eq!(code(integer(&body, "text")), "INVALID_REQUEST");
    assert_eq!(code(instant(&body, "text")), "INVALID_REQUEST");
}

#[test]
fn an_integer_is_what_is_written_as_one_however_long() {
    let read = |text: &str| as_integer(&parse(text.as_bytes()).unwrap());
    assert_eq!(read("0"), Some(0));
    assert_eq!(read("-0"), Some(0));
    assert_eq!(read("9223372036854775807"), Some(i64::MAX));
    assert_eq!(read("123456789012345678901234567890"), Some(i64::MAX));
    assert_eq!(read("-123456789012345678901234567890"), Some(i64::MIN));
    for other in ["1.0", "1e2", "1E2", "0.5", "\"1\"", "true", "null", "[1]"] {
        assert_eq!(read(other), None, "{other}");
    }
}

#[test]
fn timestamps_are_rfc_3339_with_an_offset() {
    let fine = [
        ("2026-01-31T12:00:00Z", "2026-01-31T12:00:00.000000Z"),
        ("2026-01-31t12:00:00z", "2026-01-31T12:00:00.000000Z"),
        ("2026-01-31T14:00:00.5+02:00", "2026-01-31T12:00:00.500000Z"),
        ("2026-01-31T00:00:00-00:00", "2026-01-31T00:00:00.000000Z"),
        ("2026-01-31T00:00:00+23:59", "2026-01-30T00:01:00.000000Z"),
        ("2026-01-31T12:00:00.1234567891234Z", "2026-01-31T12:00:00.123456Z"),
        ("2016-12-31T23:59:60Z", "2016-12-31T23:59:59.000000Z"),
        ("2024-02-29T00:00:00Z", "2024-02-29T00:00:00.000000Z"),
        ("0001-01-01T00:00:00Z", "0001-01-01T00:00:00.000000Z"),
    ];
    for (text, utc) in fine {
        assert_eq!(Timestamp::parse(text).map(|stamp| stamp.to_string()).as_deref(), Some(utc), "{text}");
    }
    let wrong = [
        "",
        "yesterday",
        "2026-01-31",
        "2026-01-31T12:00:00",
        "2026-01-31 12:00:00Z",
        "2026-01-31T12:00Z",
        "20260131T120000Z",
        "2026-01-31T12:00:00,5Z",
        "2026-01-31T12:00:00.Z",
        "2026-01-31T12:00:00+02",
        "2026-01-31T12:00:00+0200",
        "2026-01-31T12:00:00+24:00",
        "2026-01-31T12:00:00+02:60",
        "2026-02-30T12:00:00Z",
        "2026-13-01T12:00:00Z",
        "2026-01-31T24:00:00Z",
        "2026-01-31T12:60:00Z",
        "2026-01-31T12:00:61Z",
        "2026-01-31T12:00:00Z ",
        " 2026-01-31T12:00:00Z",
        "2026-01-31T12:00:00Z[UTC]",
        "+002026-01-31T12:00:00Z",
        "-2026-01-31T12:00:00Z",
        "2026-W05-6T12:00:00Z",
        "2026-01-31T12:00:00\u{2212}02:00",
        "２026-01-31T12:00:00Z",
        "2025-02-29T00:00:00Z",
        "2026-01-31T12:00:00.5é",
        "2026-01-31T12:00:0é",
    ];
    for text in wrong {
        assert_eq!(Timestamp::parse(text), None, "{text:?}");
    }
}

/// JSON text as callers may write it: with white space, escapes and every spelling of a number.
fn json_text() -> impl Strategy<Value = String> {
    let number = "-?(0|[1-9][0-9]{0,24})(\\.[0-9]{1,8})?([eE][+-]?[0-9]{1,3})?";
    let string = "\"([a-zü😀 /]|\\\\[\"\\\\/bfnrt]|\\\\u00[0-9a-f]{2}|\\\\ud83d\\\\ude00){0,6}\"";
    let leaf = prop_oneof![
        Just("null".to_owned()),
        Just("true".to_owned()),
        Just("false".to_owned()),
        number,
        string
    ];
    leaf.prop_recursive(5, 40, 5, move |inner| {
        let spaced = ("[ \n\t\r]{0,2}", inner, "[ \n\t\r]{0,2}")
            .prop_map(|(before, value, after)| before + &value + &after);
        let member = (string, spaced.clone()).prop_map(|(name, value)| format!("{name} :{value}"));
        prop_oneof![
            prop::collection::vec(spaced, 0..5).prop_map(|items| format!("[{}]", items.join(","))),
            prop::collection::vec(member, 0..5).prop_map(|members| format!("{{{}}}", members.join(","))),
        ]
    })
}

/// The number as `serde_json` spells it.
fn respelt(value: Value) -> Value {
    match value {
        Value::Number(number) => serde_json::from_str(number.as_str()).unwrap(),
        Value::Array(items) => items.into_iter().map(respelt).collect(),
        Value::Object(members) => members.into_iter().map(|(name, value)| (name, respelt(value))).collect(),
        other => other,
    }
}

proptest! {
    #[test]
    fn our_parser_and_serde_json_agree_on_json(text in json_text()) {
        prop_assert_eq!(respelt(parse(text.as_bytes()).unwrap()).to_string(), serde_json::from_str::<Value>(&text).unwrap().to_string());
    }

    #[test]
    fn our_parser_and_serde_json_agree_on_what_is_none(text in json_text(), at in any::<prop::sample::Index>(), byte in "[\\[\\]{}\",:0-9eE+.\\\\u\n-]{0,2}") {
        let at = text.char_indices().map(|(at, _)| at).nth(at.index(text.chars().count())).unwrap();
        let next = text[at..].chars().next().map_or(at, |char| at + char.len_utf8());
        let broken = format!("{}{byte}{}", &text[..at], &text[next..]);
        let ours = parse(broken.as_bytes()).map(|value| respelt(value).to_string()).ok();
        prop_assert_eq!(ours, serde_json::from_str::<Value>(&broken).map(|value| value.to_string()).ok(), "{}", broken);
    }

    #[test]
    fn random_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = parse(&bytes);
    }

    #[test]
    fn random_text_made_of_json_tokens_is_read_or_refused(text in "[\\[\\]{}\",:0-9eE+.\\\\u$ntrfa -]{0,60}") {
        let _ = parse(text.as_bytes());
        let _ = Timestamp::parse(&text);
    }

    #[test]
    fn what_was_read_is_read_back_as_the_same_text(text in json_text()) {
        let once = parse(text.as_bytes()).unwrap().to_string();
        prop_assert_eq!(parse(once.as_bytes()).unwrap().to_string(), once);
    }

    #[test]
    fn a_timestamp_is_the_instant_the_clock_meant(micros in -60_000_000_000_000_000i64..250_000_000_000_000_000) {
        let stamp = Timestamp::from_micros(micros);
        prop_assert_eq!(Timestamp::parse(&stamp.to_string()), Some(stamp));
    }
}
