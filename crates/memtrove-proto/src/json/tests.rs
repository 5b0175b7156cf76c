#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use super::*;
use proptest::prelude::*;
use prost_types::value::Kind;
use serde_json::json;

/// What the usual types make of the bytes.
fn usual(value: &Value) -> serde_json::Value {
    fn of(value: prost_types::Value) -> serde_json::Value {
        match value.kind {
            None | Some(Kind::NullValue(_)) => serde_json::Value::Null,
            Some(Kind::NumberValue(number)) => json!(number),
            Some(Kind::StringValue(text)) => json!(text),
            Some(Kind::BoolValue(yes)) => json!(yes),
            Some(Kind::StructValue(object)) => object.fields.into_iter().map(|(k, v)| (k, of(v))).collect(),
            Some(Kind::ListValue(list)) => list.values.into_iter().map(of).collect(),
        }
    }
    of(prost_types::Value::decode(value.as_wire()).unwrap())
}

fn to_json(value: &Value) -> String {
    let mut json = String::new();
    value.write_json(&mut json, 64).unwrap();
    json
}

fn any_json() -> impl Strategy<Value = serde_json::Value> {
    let leaf = prop_oneof![
        Just(serde_json::Value::Null),
        any::<bool>().prop_map(|yes| json!(yes)),
        (-(1i64 << 53)..(1 << 53)).prop_map(|whole| json!(whole)),
        any::<f64>().prop_filter("finite", |n| n.is_finite()).prop_map(|number| json!(number)),
        any::<String>().prop_map(|text| json!(text)),
        "[\\x00-\\x7f\u{80}-\u{10ffff}\"\\\\]{0,300}".prop_map(|text| json!(text)),
    ];
    leaf.prop_recursive(6, 64, 8, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..8).prop_map(serde_json::Value::from),
            prop::collection::btree_map(any::<String>(), inner, 0..8)
                .prop_map(|members| serde_json::Value::Object(members.into_iter().collect())),
        ]
    })
}

/// The same value where numbers are doubles.
fn doubled(value: &serde_json::Value) -> serde_json::Value {
    match value {
        serde_json::Value::Number(number) => json!(number.as_f64().unwrap()),
        serde_json::Value::Array(items) => items.iter().map(doubled).collect(),
        serde_json::Value::Object(members) => {
            members.iter().map(|(name, value)| (name.clone(), doubled(value))).collect()
        }
        other => other.clone(),
    }
}

proptest! {
    #[test]
    fn what_is_written_is_what_the_usual_types_read(value in any_json()) {
        for text in [value.to_string(), serde_json::to_string_pretty(&value).unwrap()] {
            prop_assert_eq!(usual(&Value::from_json(&text)), doubled(&value));
        }
    }

    #[test]
    fn json_comes_back_from_the_wire(value in any_json()) {
        let back: serde_json::Value = serde_json::from_str(&to_json(&Value::from_json(&value.to_string()))).unwrap();
        prop_assert_eq!(doubled(&back), doubled(&value));
    }

    #[test]
    fn an_array_is_its_items(values in prop::collection::vec(any_json(), 0..6)) {
        let items = Value::items_from_json(&serde_json::Value::from(values.clone()).to_string());
        prop_assert_eq!(items.iter().map(usual).collect::<Vec<_>>(), values.iter().map(doubled).collect::<Vec<_>>());
    }

    #[test]
    fn no_text_makes_it_panic(text in any::<String>()) {
        Value::from_json(&text);
        Struct::from_json(&text);
        Value::items_from_json(&text);
    }

    #[test]
    fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        if let Ok(value) = Value::decode(&bytes[..]) {
            let mut json = String::new();
            if value.write_json(&mut json, 64).is_ok() {
                serde_json::from_str::<serde_json::Value>(&json).unwrap();
            }
        }
    }

    #[test]
    fn a_message_with_it_in_it_survives_the_wire(value in any_json()) {
        let entry = crate::v1::Entry { content: vec![Value::from_json(&value.to_string())], ..Default::default() };
        prop_assert_eq!(crate::v1::Entry::decode(&entry.encode_to_vec()[..]).unwrap(), entry);
    }
}

#[test]
fn whole_numbers_come_back_as_integers() {
    for (text, back) in [
        ("1", "1"),
        ("-3", "-3"),
        ("1.0", "1"),
        ("1.5", "1.5"),
        ("9007199254740992", "9007199254740992"),
        ("1e3", "1000"),
        ("1e300", "1e300"),
        ("1E400", "1.7976931348623157e308"),
    ] {
        assert_eq!(to_json(&Value::from_json(text)), back, "{text}");
    }
}

#[test]
fn what_json_cannot_say_is_refused() {
    let of = |kind| Value::decode(&prost_types::Value { kind: Some(kind) }.encode_to_vec()[..]).unwrap();
    for number in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        let refused = of(Kind::NumberValue(number)).write_json(&mut String::new(), 64);
        assert_eq!(refused, Err(NotJson::NotFinite));
    }
    let deep = Value::from_json(&format!("{}{}", "[".repeat(65), "]".repeat(65)));
    assert_eq!(deep.write_json(&mut String::new(), 64), Err(NotJson::TooDeep));
    let deep = Value::from_json(&format!("{}1{}", "{\"a\":".repeat(64), "}".repeat(64)));
    assert_eq!(deep.write_json(&mut String::new(), 64), Ok(()));
}

#[test]
fn of_two_members_of_one_name_the_last_one_holds() {
    let object = Struct::from_json(r#"{"a": 1, "b": 2, "a": 3}"#);
    let mut json = String::new();
    object.write_json(&mut json, 64).unwrap();
    assert_eq!(json, r#"{"b":2,"a":3}"#);
}

#[test]
fn what_is_deep_down_is_read_by_the_usual_types_too() {
    for depth in [3, 5, 6, 7, 15, 19] {
        let text = format!("{}\"{}\"{}", "[{\"a\":".repeat(depth), "x".repeat(300), "}]".repeat(depth));
        let value: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(usual(&Value::from_json(&text)), value, "{depth}");
        assert_eq!(to_json(&Value::from_json(&text)), text, "{depth}");
    }
}
