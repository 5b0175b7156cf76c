use super::*;
use crate::memories::requests::{code, parsed, refusal};
use crate::memories::testing::members;
use proptest::prelude::*;
use serde_json::json;

fn checked(metadata: Value) -> Result<Value> {
    GivenMetadata::new(members(metadata)).map(|given| given.0.into())
}

#[test]
fn members_the_product_does_not_know_are_kept_as_they_are() {
    let given = json!({"plan": {"b": [1, null, {"a": 1.10}]}, "": 0, "x_": true, "title": "t", "language": "", "gone": null});
    assert_eq!(checked(given.clone()), Ok(given));
    assert_eq!(checked(json!({})), Ok(json!({})));
    let spelled = r#"{"n":1.10,"big":123456789012345678901234567890,"e":1E4}"#;
    assert_eq!(checked(parsed(spelled)).unwrap().to_string(), spelled);
}

#[test]
fn members_the_product_knows_have_their_types_and_ranges() {
    let good = json!({
        "tags": ["a", &"é".repeat(128)], "relevance": 0, "decayFactor": 10, "title": "", "description": "d",
        "language": "en", "author": "a", "confidence": 1, "importance": 0.5, "sensitive": false, "private": true,
        "conflictKey": "k", "source": {"type": "manual", "reference": "r", "origin": {"any": 1}},
    });
    assert_eq!(checked(good.clone()), Ok(good));
    let many: Vec<String> = (0..65).map(|index| index.to_string()).collect();
    let rows = [
        ("tags", json!("a")),
        ("tags", json!([1])),
        ("tags", json!([""])),
        ("tags", json!(["é".repeat(129)])),
        ("tags", json!(many)),
        ("relevance", json!(1.01)),
        ("relevance", json!("1")),
        ("decayFactor", json!(-0.1)),
        ("decayFactor", json!(10.5)),
        ("title", json!(5)),
        ("description", json!([])),
        ("language", json!({})),
        ("author", json!(false)),
        ("confidence", json!(-1)),
        ("importance", json!(true)),
        ("sensitive", json!("yes")),
        ("private", json!(1)),
        ("conflictKey", json!("")),
        ("conflictKey", json!("k".repeat(256))),
        ("source", json!("manual")),
        ("_layer", json!(1)),
        ("_", json!(null)),
    ];
    for (key, value) in rows {
        let result = checked(json!({key: value}));
        assert_eq!(code(result), format!("INVALID_REQUEST metadata.{key}"));
    }
    for (source, field) in [
        (json!({}), "type"),
        (json!({"type": "web"}), "type"),
        (json!({"type": 1}), "type"),
        (json!({"type": "import", "reference": 1}), "reference"),
    ] {
        let result = checked(json!({"source": source}));
        assert_eq!(code(result), format!("INVALID_REQUEST metadata.source.{field}"));
    }
}

#[test]
fn words_are_written_in_lower_case_and_tags_come_once() {
    let given = json!({"tags": ["b", "a", "b", "A"], "source": {"reference": null, "type": "Tool_Result"}});
    let expected = json!({"tags": ["b", "a", "A"], "source": {"reference": null, "type": "tool_result"}});
    assert_eq!(checked(given), Ok(expected));
}

#[test]
fn a_knowledge_pointer_has_its_four_members() {
    let pointer = json!({
        "sourceType": "ADR", "sourceId": "file:/adr/1.md", "contentHash": "sha256:00", "syncedAt": "2026-01-01T00:00:00Z",
        "sourceLayer": "Org", "isOrphaned": false, "isStale": true, "more": [1],
    });
    let mut expected = pointer.clone();
    (expected["sourceType"], expected["sourceLayer"]) = (json!("adr"), json!("org"));
    assert_eq!(checked(json!({"knowledgePointer": pointer})), Ok(json!({"knowledgePointer": expected})));

    for (field, bad) in [
        ("sourceType", json!("page")),
        ("sourceType", json!(null)),
        ("sourceId", json!("")),
        ("sourceId", json!(null)),
        ("contentHash", json!("")),
        ("contentHash", json!(5)),
        ("syncedAt", json!("today")),
        ("syncedAt", json!(null)),
        ("sourceLayer", json!("user")),
        ("isOrphaned", json!("no")),
        ("isStale", json!(0)),
    ] {
        let mut pointer = pointer.clone();
        pointer[field] = bad;
        let result = checked(json!({"knowledgePointer": pointer}));
        assert_eq!(code(result), format!("INVALID_REQUEST metadata.knowledgePointer.{field}"));
    }
    assert_eq!(code(checked(json!({"knowledgePointer": "x"}))), "INVALID_REQUEST metadata.knowledgePointer");
}

#[test]
fn metadata_is_nested_64_levels_at_most() {
    let nested = |levels: usize| {
        let value = (1..levels)
            .fold(json!(1), |value, level| if level % 2 == 0 { json!([value]) } else { json!({"a": value}) });
        json!({"a": value})
    };
    assert!(checked(nested(64)).is_ok());
    assert_eq!(code(checked(nested(65))), "INVALID_REQUEST metadata");
}

#[test]
fn a_change_replaces_keys_as_a_whole_and_null_removes_them() {
    let object = |value: Value| value.as_object().cloned().unwrap();
    let stored = object(json!({"tags": ["a", "b"], "keep": {"x": 1}, "gone": 1, "deep": {"x": 1, "y": 2}}));
    let change = object(json!({"tags": ["c"], "gone": null, "never": null, "deep": {"x": null}}));
    let expected = json!({"tags": ["c"], "keep": {"x": 1}, "deep": {"x": null}});
    assert_eq!(Value::Object(merge(&stored, &change)), expected);
}

#[test]
fn metadata_is_measured_in_bytes_as_it_is_stored() {
    let metadata = parsed(r#"{"a": "é\n", "n": 1.50}"#).as_object().cloned().unwrap();
    let length = Value::Object(metadata.clone()).to_string().len();
    assert!(check_size(&metadata, length).is_ok());
    let refusal = refusal(check_size(&metadata, length - 1));
    assert_eq!((refusal.code, &refusal.details["maxBytes"]), (Code::MetadataTooLarge, &json!(length - 1)));
}

proptest! {
    #[test]
    fn changes_to_different_keys_commute(keys in prop::collection::vec("[a-z]{1,2}", 2..8), flags in prop::collection::vec(any::<bool>(), 8)) {
        let mut keys = keys;
        keys.sort();
        keys.dedup();
        let change = |index: usize| {
            let value = if flags[index] { json!(index) } else { Value::Null };
            Map::from_iter([(keys[index].clone(), value)])
        };
        let stored: Map<String, Value> = keys.iter().map(|key| (key.clone(), json!("old"))).collect();
        let forwards = (0..keys.len()).fold(stored.clone(), |merged, index| merge(&merged, &change(index)));
        let backwards = (0..keys.len()).rev().fold(stored, |merged, index| merge(&merged, &change(index)));
        prop_assert_eq!(forwards, backwards);
    }
}
