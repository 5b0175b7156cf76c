use super::*;
use crate::rest::testing::client;
use serde_json::json;

fn asked(given: Value) -> Result<Filters> {
    filters(Members::body(&json!({"filters": given}))?)
}

/// The ids of each place, by their members.
fn places(given: Value) -> Vec<Map<String, Value>> {
    let ids = |place: &Entities| {
        place.given().map(|(entity, id)| (entity.member().to_owned(), json!(id))).collect()
    };
    asked(given).unwrap().places.iter().map(ids).collect()
}

#[test]
fn every_way_through_a_tree_leads_to_a_place() {
    for (given, expected) in [
        (json!({"user_id": "u"}), json!([{"user_id": "u"}])),
        (
            json!({"AND": [{"user_id": "u"}, {"n": 1}, {"run_id": "r"}]}),
            json!([{"user_id": "u", "run_id": "r"}]),
        ),
        (json!({"OR": [{"user_id": "u"}, {"app_id": "p"}]}), json!([{"user_id": "u"}, {"app_id": "p"}])),
        (
            json!({"AND": [{"OR": [{"user_id": "u"}, {"user_id": "v"}]}, {"agent_id": {"in": ["a", "b"]}}, {"user_id": "u"}]}),
            json!([{"user_id": "u", "agent_id": "a"}, {"user_id": "u", "agent_id": "b"}]),
        ),
        (json!({"user_id": "u", "NOT": [{"run_id": "r"}]}), json!([{"user_id": "u"}])),
        (json!({"user_id": {"eq": "u", "ne": "v"}}), json!([{"user_id": "u"}])),
        (json!({"AND": [{"user_id": "u"}, {"user_id": "v"}]}), json!([])),
    ] {
        assert_eq!(json!(places(given.clone())), expected, "{given}");
    }
    for given in [json!({}), json!({"OR": [{"user_id": "u"}, {"n": 1}]}), json!({"user_id": {"ne": "u"}})] {
        assert!(asked(given.clone()).is_err(), "{given}");
    }
}

#[test]
fn too_many_ids_or_values_are_refused_before_they_are_compared() {
    let ids = |many: usize| (0..many).map(|number| json!(format!("u{number}"))).collect::<Vec<_>>();
    let message = |given: Value| asked(given).unwrap_err().to_string();
    assert_eq!(places(json!({"user_id": {"in": ids(32)}})).len(), 32);
    assert!(message(json!({"user_id": {"in": ids(33)}})).contains("more than 32 combinations"));
    let one_of = |many: usize| ids(many).into_iter().map(|id| json!({"user_id": id})).collect::<Vec<_>>();
    assert!(message(json!({"OR": one_of(33)})).contains("more than 32 combinations"));
    let product = json!({"user_id": {"in": ids(6)}, "agent_id": {"in": ids(6)}});
    assert!(message(product).contains("more than 32 combinations"));
    // The same id again is no other place.
    assert_eq!(places(json!({"user_id": {"in": vec![json!("u"); 100]}})).len(), 1);
    for list in ["in", "nin"] {
        assert!(asked(json!({"user_id": "u", "n": {list: ids(1000)}})).is_ok());
        assert!(message(json!({"user_id": "u", "n": {list: ids(1001)}})).contains("at most 1000 values"));
        let two = json!({"user_id": "u", "n": {list: ids(600)}, "m": {list: ids(600)}});
        assert!(message(two).contains("at most 1000 values"));
    }
    let categories = json!({"filters": {"user_id": "u"}, "categories": ids(1001)});
    assert!(filters(Members::body(&categories).unwrap()).is_err());
}

#[test]
fn a_star_is_any_value_in_conditions_alone() {
    assert!(asked(json!({"user_id": {"in": ["*"]}})).is_err());
    assert!(asked(json!({"user_id": "u", "agent_id": "*"})).is_ok());
}

#[test]
fn where_the_place_says_it_all_no_entry_is_asked() {
    let filter = |given: Value| asked(given).unwrap().conditions(&client("gateway")).filter;
    for given in [
        json!({"user_id": "u"}),
        json!({"AND": [{"user_id": "u"}, {"run_id": "r"}]}),
        json!({"agent_id": "a"}),
    ] {
        assert!(filter(given.clone()).is_empty(), "{given}");
    }
    for given in [
        json!({"user_id": "u", "agent_id": "a"}),
        json!({"user_id": "u", "n": 1}),
        json!({"app_id": "p", "run_id": "r"}),
    ] {
        assert!(!filter(given.clone()).is_empty(), "{given}");
    }
}

#[test]
fn messages_become_adds_and_some_are_left_out() {
    /// 2026-01-31T12:00:00Z
    const NOON: Timestamp = Timestamp::from_micros(1_769_860_800_000_000);
    let body = json!({
        "messages": [{"role": "user", "content": "a", "name": "Ann"}, {"role": "system", "content": "b"}, {"role": "tool"}],
        "infer": false, "user_id": "u", "app_id": "p", "expiration_date": "2026-02-01", "metadata": {"n": 1}
    });
    let many = json!({"messages": vec![body["messages"][0].clone(); 9], "infer": false, "user_id": "u"});
    let cut = add(&many, 5, NOON).unwrap();
    assert_eq!((cut.adds.len(), cut.count), (5, 9), "what is refused for its number is not read");
    let NewMemories { about, adds, count, left_out } = add(&body, 500, NOON).unwrap();
    let named: Vec<&str> = about.given().map(|(_, id)| id).collect();
    assert_eq!(named, ["u", "p"]);
    assert_eq!(count, 1);
    let [Ok(add)] = &adds[..] else { panic!("{adds:?}") };
    assert_eq!((add.content.as_str(), add.ttl_seconds), ("a", Some(36 * 3600)));
    let own = json!({"app_id": "p", "role": "user", "actor_id": "Ann", "expiration_date": "2026-02-01"});
    assert_eq!(Value::Object(add.metadata.as_map().clone()), json!({"n": 1, "mem0": own}));
    let left_out = left_out.unwrap();
    assert!(left_out.starts_with("1 system message(s)") && left_out.contains("; 1 message(s)"), "{left_out}");
}
