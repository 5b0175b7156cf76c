use super::*;
use crate::files::testing::{code, detail};
use proptest::prelude::*;
use serde_json::json;

const NOW: Timestamp = Timestamp::from_micros(1_769_860_800_000_000);

fn created() -> Stamp<'static> {
    Stamp { now: NOW, actor: "planner", previous_created_at: None }
}

fn envelope(text: &str) -> Map<String, Value> {
    stored(text).unwrap()
}

fn minimal() -> Map<String, Value> {
    envelope(r#"{"doc_id":"d","schema_id":"s","schema_version":"1","content":{}}"#)
}

#[test]
fn the_server_writes_its_members_and_keeps_the_rest() {
    let sent =
        r#"{"x":[1E400],"doc_id":"d","schema_id":"s","schema_version":"1","content":{"b":1.10,"a":2}}"#;
    let (stored, document) = finish(envelope(sent), &created()).unwrap();
    let expected = r#"{"x":[1E400],"doc_id":"d","schema_id":"s","schema_version":"1","content":{"b":1.10,"a":2},"created_at":"2026-01-31T12:00:00.000000Z","updated_at":"2026-01-31T12:00:00.000000Z","updated_by":"planner"}"#;
    assert_eq!(document.text, expected);
    assert_eq!(document.chars, expected.len());
    assert_eq!(serde_json::to_string(&stored).unwrap(), expected);
}

#[test]
fn members_that_are_there_keep_their_place() {
    let sent = r#"{"updated_by":7,"updated_at":null,"created_at":null,"doc_id":"d","schema_id":"s","schema_version":"1","content":{}}"#;
    let (_, document) = finish(envelope(sent), &created()).unwrap();
    let expected = r#"{"updated_by":"planner","updated_at":"2026-01-31T12:00:00.000000Z","created_at":"2026-01-31T12:00:00.000000Z","doc_id":"d","schema_id":"s","schema_version":"1","content":{}}"#;
    assert_eq!(document.text, expected);
}

#[test]
fn created_at_is_the_callers_then_the_stored_then_now() {
    let previous = json!("2020-01-01T00:00:00+01:00");
    let replaced = Stamp { previous_created_at: Some(&previous), ..created() };
    let created_at = |given: Option<Value>, stamp: &Stamp<'_>| {
        let mut envelope = minimal();
        if let Some(given) = given {
            envelope.insert("created_at".to_owned(), given);
        }
        finish(envelope, stamp).map(|(envelope, _)| envelope["created_at"].clone())
    };
    let given = json!("2021-06-01t00:00:00.5z");
    assert_eq!(
        created_at(Some(given.clone()), &replaced).unwrap(),
        given,
        "as given, not as we would write it"
    );
    assert_eq!(created_at(None, &replaced).unwrap(), previous);
    assert_eq!(created_at(Some(Value::Null), &replaced).unwrap(), previous);
    assert_eq!(created_at(None, &created()).unwrap(), json!("2026-01-31T12:00:00.000000Z"));
    for wrong in [json!("yesterday"), json!("2026-01-31"), json!(0), json!(""), json!({})] {
        let refused = created_at(Some(wrong), &replaced).unwrap_err();
        assert_eq!(detail(&refused, "field").as_deref(), Some("created_at"));
        assert_eq!(code::<()>(Err(refused)), "INVALID_DOCUMENT");
    }
}

#[test]
fn ids_are_texts_and_content_is_an_object() {
    for name in ["doc_id", "schema_id", "schema_version", "content"] {
        for wrong in [
            None,
            Some(Value::Null),
            Some(json!(1)),
            Some(json!("")),
            Some(json!(" \u{3000}")),
            Some(json!([])),
        ] {
            let mut envelope = minimal();
            match wrong {
                Some(wrong) => envelope.insert(name.to_owned(), wrong),
                None => envelope.shift_remove(name),
            };
            let refused = finish(envelope, &created()).unwrap_err();
            assert_eq!(detail(&refused, "field").as_deref(), Some(name));
            assert_eq!(code::<()>(Err(refused)), "INVALID_DOCUMENT");
        }
    }
}

#[test]
fn a_document_has_at_most_256_000_chars() {
    let (_, empty) = finish(minimal(), &created()).unwrap();
    let filled = |char: &str, count: usize| {
        let mut envelope = minimal();
        envelope["content"] = json!({"t": char.repeat(count)});
        finish(envelope, &created())
    };
    let room = MAX_CHARS - empty.chars - r#""t":"""#.len();
    for char in ["a", "é", "你", "😀"] {
        assert_eq!(filled(char, room).unwrap().1.chars, MAX_CHARS, "{char} counts once, whatever its bytes");
        let refused = filled(char, room + 1).unwrap_err();
        assert_eq!(detail(&refused, "limit").as_deref(), Some("256000"));
        assert_eq!(detail(&refused, "actual").as_deref(), Some("256001"));
        assert_eq!(code::<()>(Err(refused)), "DOCUMENT_SIZE_EXCEEDED");
    }
    assert_eq!(
        filled("\n", room / 2).unwrap().1.chars,
        MAX_CHARS - room % 2,
        "what is escaped counts as escaped"
    );
}

#[test]
fn a_request_must_bring_a_document() {
    assert!(document(Some(&json!({}))).is_ok());
    for wrong in [None, Some(json!(null)), Some(json!([])), Some(json!("{}"))] {
        let refused = document(wrong.as_ref()).unwrap_err();
        assert_eq!(detail(&refused, "field").as_deref(), Some("document"));
        assert_eq!(code::<()>(Err(refused)), "INVALID_REQUEST");
    }
}

#[test]
fn a_stored_document_that_cannot_be_read_is_our_defect() {
    assert!(matches!(stored("{"), Err(Error { code: Code::Internal, .. })));
    assert!(matches!(stored("[]"), Err(Error { code: Code::Internal, .. })));
}

fn values() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        "[0-9]E[0-9]{1,3}".prop_map(|number| body::parse(number.as_bytes()).unwrap()),
        "[a-zü😀\"\\\\\u{0}\n]{0,8}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 30, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec(("[a-zü\u{0}]{0,3}", inner), 0..4)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn finishing_again_what_was_stored_changes_nothing(extra in values(), content in values(), actor in "\\PC{1,8}") {
        let mut envelope = minimal();
        envelope.insert("extra".to_owned(), extra);
        envelope["content"] = json!({"value": content});
        let stamp = Stamp { actor: &actor, ..created() };
        let (_, once) = finish(envelope.clone(), &stamp).unwrap();
        let (_, again) = finish(envelope, &stamp).unwrap();
        prop_assert_eq!(&once, &again);
        let (_, reread) = finish(stored(&once.text).unwrap(), &stamp).unwrap();
        prop_assert_eq!(&once, &reread);
        prop_assert_eq!(once.chars, once.text.chars().count());
    }
}
