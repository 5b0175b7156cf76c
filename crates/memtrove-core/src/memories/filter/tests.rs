use super::*;
use crate::memories::metadata::source_type;
use crate::memories::requests::{code, parsed};
use proptest::prelude::*;

fn custom(given: &Value) -> Result<MemberConditions> {
    MemberConditions::new(given.as_object().cloned().unwrap_or_default())
}

fn filter(given: &Value) -> Filter {
    let tags = given["tags"].as_array().map_or(&[][..], Vec::as_slice);
    Filter {
        tags: tags.iter().map(|tag| tag.as_str().unwrap().to_owned()).collect(),
        source_type: given["sourceType"].as_str().and_then(source_type),
        has_knowledge_pointer: given["hasKnowledgePointer"].as_bool(),
        custom: custom(&given["custom"]).unwrap(),
        ..Filter::default()
    }
}

fn admits(given: &Value, metadata: &Value) -> bool {
    filter(given).admits(metadata.as_object().unwrap())
}

/// Whether `{"k": condition}` admits metadata whose `k` is `stored`, both as JSON text; `-` is a missing key.
fn holds(condition: &str, stored: &str) -> bool {
    let metadata = if stored == "-" { json!({}) } else { parsed(&format!(r#"{{"k":{stored}}}"#)) };
    admits(&parsed(&format!(r#"{{"custom":{{"k":{condition}}}}}"#)), &metadata)
}

#[test]
fn an_empty_filter_admits_everything() {
    assert!(Filter::default().is_empty() && Filter::default().admits(&Map::new()));
    assert!(!filter(&json!({"custom": {"k": 1}})).is_empty());
}

#[test]
fn any_one_of_the_tags_is_enough_and_it_is_compared_exactly() {
    let metadata = json!({"tags": ["prefs", "ui"]});
    for (tags, found) in [
        (json!(["ui"]), true),
        (json!(["x", "prefs"]), true),
        (json!(["UI"]), false),
        (json!(["pref"]), false),
        (json!(["x"]), false),
    ] {
        assert_eq!(admits(&json!({"tags": tags}), &metadata), found);
        assert!(!admits(&json!({"tags": tags}), &json!({})));
    }
}

#[test]
fn sources_and_pointers() {
    let (import, pointer) = (json!({"source": {"type": "import"}}), json!({"knowledgePointer": {}}));
    assert!(admits(&json!({"sourceType": "IMPORT"}), &import));
    assert!(!admits(&json!({"sourceType": "manual"}), &import));
    assert!(!admits(&json!({"sourceType": "import"}), &json!({})));
    assert!(admits(&json!({"hasKnowledgePointer": true}), &pointer));
    assert!(!admits(&json!({"hasKnowledgePointer": false}), &pointer));
    assert!(admits(&json!({"hasKnowledgePointer": false}), &import));
}

#[test]
fn all_members_must_hold() {
    let metadata = json!({"tags": ["a"], "source": {"type": "manual"}, "n": 1, "language": "en"});
    let all = json!({"tags": ["a"], "sourceType": "manual", "hasKnowledgePointer": false, "custom": {"n": 1, "language": "en"}});
    assert!(admits(&all, &metadata));
    for (name, other) in [
        ("tags", json!(["b"])),
        ("sourceType", json!("import")),
        ("hasKnowledgePointer", json!(true)),
        ("custom", json!({"n": 1, "language": "de"})),
    ] {
        let mut filter = all.clone();
        filter[name] = other;
        assert!(!admits(&filter, &metadata), "{name}");
    }
}

#[test]
fn conditions_of_every_kind() {
    let rows = [
        // A scalar is the value, or in the list.
        ("1", "1", true),
        ("1", "1.0", true),
        ("1", "10e-1", true),
        ("1", "2", false),
        ("1", r#""1""#, false),
        ("1", "true", false),
        ("true", "true", true),
        ("true", "1", false),
        (r#""a""#, r#""a""#, true),
        (r#""a""#, r#""A""#, false),
        (r#""a""#, r#"["b","a"]"#, true),
        ("1", "[2, 1.0]", true),
        ("1", "[[1]]", false),
        (r#""a""#, r#"{"a":1}"#, false),
        (r#""a""#, "-", false),
        ("null", "-", false),
        ("null", "[null]", true),
        // Integers that a machine's float cannot tell apart.
        ("9007199254740993", "9007199254740993", true),
        ("9007199254740993", "9007199254740992", false),
        (r#"{"$gt":9007199254740992}"#, "9007199254740993", true),
        (r#"{"$gt":123456789012345678901234567890}"#, "123456789012345678901234567891", true),
        // An object without operators is equal as a whole.
        (r#"{"a":1}"#, r#"{"a":1.0}"#, true),
        (r#"{"a":1,"b":[2]}"#, r#"{"b":[2],"a":1}"#, true),
        (r#"{"a":1}"#, r#"{"a":1,"b":2}"#, false),
        (r#"{"a":1}"#, r#"[{"a":1}]"#, false),
        ("{}", "{}", true),
        ("{}", r#"{"a":1}"#, false),
        ("{}", "-", false),
        // $eq and $ne
        (r#"{"$eq":1}"#, "1.0", true),
        (r#"{"$eq":1}"#, "[1]", true),
        (r#"{"$eq":[1]}"#, "[1]", true),
        (r#"{"$eq":[1]}"#, "[[1]]", false),
        (r#"{"$eq":{"a":[1]}}"#, r#"{"a":[1]}"#, true),
        (r#"{"$eq":1}"#, "-", false),
        (r#"{"$ne":1}"#, "2", true),
        (r#"{"$ne":1}"#, "1", false),
        (r#"{"$ne":1}"#, "[1,2]", false),
        (r#"{"$ne":1}"#, r#""1""#, true),
        (r#"{"$ne":1}"#, "-", true),
        // Order: numbers with numbers, texts with texts.
        (r#"{"$gt":1}"#, "1.5", true),
        (r#"{"$gt":1}"#, "1", false),
        (r#"{"$gte":1}"#, "1.00", true),
        (r#"{"$lt":0}"#, "-0.5", true),
        (r#"{"$lt":-1}"#, "-2", true),
        (r#"{"$lt":0}"#, "-0.0", false),
        (r#"{"$lte":0}"#, "-0.0", true),
        (r#"{"$gt":2e-400}"#, "3e-400", true),
        (r#"{"$gt":1}"#, r#""2""#, false),
        (r#"{"$gt":"1"}"#, "2", false),
        (r#"{"$gt":"a"}"#, r#""b""#, true),
        (r#"{"$lt":"2026-02"}"#, r#""2026-01-31""#, true),
        (r#"{"$gt":false}"#, "true", false),
        (r#"{"$gt":1}"#, "[2]", false),
        (r#"{"$gt":1}"#, "-", false),
        (r#"{"$gte":1,"$lt":3}"#, "2", true),
        (r#"{"$gte":1,"$lt":3}"#, "3", false),
        // $in
        (r#"{"$in":[1,"a"]}"#, r#""a""#, true),
        (r#"{"$in":[1,"a"]}"#, "1.0", true),
        (r#"{"$in":[1,"a"]}"#, r#"["a"]"#, true),
        (r#"{"$in":[[1]]}"#, "[1]", true),
        (r#"{"$in":[1,"a"]}"#, r#""b""#, false),
        (r#"{"$in":[]}"#, "1", false),
        (r#"{"$in":[null]}"#, "-", false),
        // $contains
        (r#"{"$contains":"ell"}"#, r#""hello""#, true),
        (r#"{"$contains":"ELL"}"#, r#""hello""#, false),
        (r#"{"$contains":""}"#, r#""hello""#, true),
        (r#"{"$contains":1}"#, "[1.0]", true),
        (r#"{"$contains":{"a":1}}"#, r#"[{"a":1}]"#, true),
        (r#"{"$contains":"a"}"#, r#"["abc"]"#, false),
        (r#"{"$contains":"1"}"#, "1", false),
        (r#"{"$contains":"a"}"#, r#"{"a":1}"#, false),
        (r#"{"$contains":"a"}"#, "-", false),
        // $exists
        (r#"{"$exists":true}"#, "0", true),
        (r#"{"$exists":true}"#, "-", false),
        (r#"{"$exists":false}"#, "-", true),
        (r#"{"$exists":false}"#, "[]", false),
        (r#"{"$exists":false,"$ne":1}"#, "-", true),
        (r#"{"$exists":false,"$eq":1}"#, "-", false),
    ];
    for (condition, stored, expected) in rows {
        assert_eq!(holds(condition, stored), expected, "{condition} on {stored}");
    }
}

#[test]
fn keys_are_literal_and_the_products_own_are_keys_too() {
    let metadata = json!({"a.b": 1, "a": {"b": 2}, "importance": 0.9});
    assert!(admits(&json!({"custom": {"a.b": 1}}), &metadata));
    assert!(!admits(&json!({"custom": {"a.b": 2}}), &metadata));
    assert!(admits(&json!({"custom": {"importance": {"$gte": 0.9}}}), &metadata));
}

#[test]
fn a_condition_that_is_not_known_is_refused() {
    let rows = [
        (json!({"k": [1]}), "k"),
        (json!({"k": {"$regex": "a"}}), "k.$regex"),
        (json!({"k": {"$gt": 1, "x": 1}}), "k.x"),
        (json!({"k": {"$in": 1}}), "k.$in"),
        (json!({"k": {"$exists": 1}}), "k.$exists"),
        (json!({"k": {"$GT": 1}}), "k.$GT"),
    ];
    for (given, field) in rows {
        assert_eq!(code(custom(&given)), format!("INVALID_REQUEST filter.custom.{field}"));
    }
}

/// What a condition means, said as plainly as possible, for small numbers, letters and lists of them.
fn naive(condition: &Value, stored: Option<&Value>) -> bool {
    let matches = |wanted: &Value| match stored {
        Some(Value::Array(items)) if !wanted.is_array() && !wanted.is_object() => items.contains(wanted),
        Some(stored) => stored == wanted,
        None => false,
    };
    let Some(operators) = condition.as_object().filter(|members| !members.is_empty()) else {
        return matches(condition);
    };
    operators.iter().all(|(name, operand)| {
        let order = match (stored, operand) {
            (Some(Value::Number(a)), Value::Number(b)) => {
                a.as_i64().unwrap().partial_cmp(&b.as_i64().unwrap())
            }
            (Some(Value::String(a)), Value::String(b)) => a.partial_cmp(b),
            _ => None,
        };
        match name.as_str() {
            "$eq" => matches(operand),
            "$ne" => !matches(operand),
            "$gt" => order == Some(Ordering::Greater),
            "$gte" => matches!(order, Some(Ordering::Greater | Ordering::Equal)),
            "$lt" => order == Some(Ordering::Less),
            "$lte" => matches!(order, Some(Ordering::Less | Ordering::Equal)),
            "$in" => operand.as_array().unwrap().iter().any(matches),
            "$contains" => match (stored, operand) {
                (Some(Value::String(text)), Value::String(part)) => text.contains(part.as_str()),
                (Some(Value::Array(items)), item) => items.contains(item),
                _ => false,
            },
            "$exists" => stored.is_some() == (operand == &json!(true)),
            other => panic!("{other}"),
        }
    })
}

fn scalar() -> impl Strategy<Value = Value> {
    prop_oneof![
        (-2i64..3).prop_map(Value::from),
        "[ab]{0,2}".prop_map(Value::from),
        any::<bool>().prop_map(Value::from)
    ]
}

fn value() -> impl Strategy<Value = Value> {
    prop_oneof![scalar(), prop::collection::vec(scalar(), 0..3).prop_map(Value::from)]
}

fn operators() -> impl Strategy<Value = Value> {
    let plain = prop::sample::select(vec!["$eq", "$ne", "$gt", "$gte", "$lt", "$lte", "$contains"]);
    let operator = prop_oneof![
        (plain, value()).prop_map(|(name, operand)| (name.to_owned(), operand)),
        prop::collection::vec(value(), 0..3).prop_map(|items| ("$in".to_owned(), Value::from(items))),
        any::<bool>().prop_map(|exists| ("$exists".to_owned(), Value::from(exists))),
    ];
    prop::collection::vec(operator, 1..4).prop_map(|operators| Value::Object(operators.into_iter().collect()))
}

proptest! {
    #[test]
    fn a_condition_admits_what_its_plain_meaning_admits(condition in prop_oneof![scalar(), operators()], stored in prop::option::of(value())) {
        let metadata: Map<String, Value> = stored.iter().map(|stored| ("k".to_owned(), stored.clone())).collect();
        let filter = filter(&json!({"custom": {"k": condition}}));
        prop_assert_eq!(filter.admits(&metadata), naive(&condition, stored.as_ref()));
    }

    #[test]
    fn numbers_are_ordered_as_machines_order_them(a in any::<i64>(), b in any::<i64>(), x in -1e12f64..1e12, y in -1e12f64..1e12) {
        for (left, right, expected) in [(json!(a), json!(b), a.cmp(&b)), (json!(x), json!(y), x.total_cmp(&y))] {
            prop_assert_eq!(compare(&left, &right), Some(expected), "{} {}", left, right);
            prop_assert_eq!(compare(&left, &left), Some(Ordering::Equal));
        }
    }
}
