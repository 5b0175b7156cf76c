use super::*;
use crate::files::body;
use proptest::prelude::*;
use serde_json::json;

fn value(text: &str) -> Value {
    body::parse(text.as_bytes()).unwrap()
}

#[test]
fn members_are_sorted_by_the_bytes_of_their_names() {
    let text =
        r#"{ "b" : [ {"z":1E2, "a":1.10} ], "\uff61":1, "\ud83d\ude00":2, "B":null, "":"\u0007\u007f/" }"#;
    let expected =
        "{\"\":\"\\u0007\u{7f}/\",\"B\":null,\"b\":[{\"a\":1.10,\"z\":1E2}],\"\u{ff61}\":1,\"😀\":2}";
    assert_eq!(canonical(&value(text)), expected, "UTF-16 order would put the emoji first");
}

#[test]
fn digests_are_those_of_sha_256() {
    assert_eq!(sha256_hex(b"abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    assert_eq!(canonical_sha256(&json!({"b": 1, "a": [true]})), sha256_hex(br#"{"a":[true],"b":1}"#));
    let (op, edit) = (json!({"path": "/a", "op": "remove"}), json!({"old_text": "a", "new_text": "b"}));
    let both = json!({"edits": [edit], "ops": [op]});
    assert_eq!(ops_hash(&[op], &[edit]), canonical_sha256(&both));
    assert_eq!(ops_hash(&[], &[]), sha256_hex(br#"{"edits":[],"ops":[]}"#));
}

#[test]
fn a_fingerprint_tells_requests_apart_by_method_path_and_body() {
    let body = value(r#"{"a":1,"b":2}"#);
    let first = fingerprint("PUT", "a/b", &body);
    assert_eq!(first, fingerprint("PUT", "a/b", &value(r#"{ "b":2, "a":1 }"#)));
    for other in [
        fingerprint("PATCH", "a/b", &body),
        fingerprint("PUT", "a", &body),
        fingerprint("PUT\",\"a", "b", &body),
        fingerprint("PUT", "a/b", &value(r#"{"a":1.0,"b":2}"#)),
    ] {
        assert_ne!(first, other);
    }
}

fn values() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![any::<i64>().prop_map(Value::from), "[a-zé]{0,4}".prop_map(Value::from)];
    leaf.prop_recursive(4, 30, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map("[a-cAé😀]{0,2}", inner, 0..5)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

fn reversed(value: &Value) -> Value {
    match value {
        Value::Array(items) => items.iter().map(reversed).collect(),
        Value::Object(members) => {
            Value::Object(members.iter().rev().map(|(name, value)| (name.clone(), reversed(value))).collect())
        }
        other => other.clone(),
    }
}

proptest! {
    #[test]
    fn the_order_of_members_does_not_matter(value in values()) {
        prop_assert_eq!(canonical(&value), canonical(&reversed(&value)));
    }

    #[test]
    fn a_canonical_text_says_the_same_and_is_its_own_canonical_text(value in values()) {
        let text = canonical(&value);
        let reread = body::parse(text.as_bytes()).unwrap();
        prop_assert_eq!(&reread, &value);
        prop_assert_eq!(reread.to_string(), canonical(&reread));
        prop_assert_eq!(canonical_sha256(&value), sha256_hex(text.as_bytes()));
    }
}
