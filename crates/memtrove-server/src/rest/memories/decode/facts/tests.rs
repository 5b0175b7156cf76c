use super::*;
use crate::rest::testing::{code, memory, params, scope, user, with};
use memtrove_core::Timestamp;
use memtrove_core::memories::{FactQuery, Kind, Layer, Memory, NewFact, ScopeKey, State};
use serde_json::json;

fn query(members: Value) -> Result<FactQuery> {
    let body = with(json!({"identifiers": {"userId": "alice", "projectId": "p"}}), members);
    query_facts(&body, &Rules::default())?.check(&Rules::default(), &user("alice"))
}

fn stored(id: u128, layer: Layer, [subject, predicate, object]: [&str; 3], confidence: f64) -> Memory {
    let fact = Fact {
        fact_type: "rule".to_owned(),
        subject: subject.to_owned(),
        predicate: predicate.to_owned(),
        object: object.to_owned(),
        confidence,
    };
    Memory { scope: scope(layer), kind: Kind::Procedural, fact: Some(fact), ..memory(id, "x") }
}

fn new(members: Value) -> Result<NewFact> {
    let fact = json!({
        "layer": "user", "identifiers": {"userId": "alice"},
        "factType": "preference", "subject": "alice", "predicate": "drinks_with", "object": "milk",
    });
    add_fact(&with(fact, members), &Rules::default())?.check(&Rules::default(), &user("alice"))
}

fn changed(body: Value) -> Result<FactChange> {
    change_fact(&body, Precondition::Exists, &Rules::default())
}

#[test]
fn a_fact_is_as_sure_as_it_says() {
    assert_eq!(new(json!({})).unwrap().fact.confidence, 1.0);
    assert_eq!(new(json!({"confidence": 0.5})).unwrap().fact.confidence, 0.5);
    assert_eq!(new(json!({"content": " own "})).unwrap().memory.content, " own ");
    assert_eq!(changed(json!({"subject": "x"})).unwrap().confidence, None);
}

#[test]
fn types_ranges_and_their_order() {
    for field in ["factType", "subject", "predicate", "object"] {
        for bad in [json!(null), json!(""), json!(" \n"), json!(5), json!("é".repeat(1025)), json!("a\0")] {
            assert_eq!(code(new(json!({field: bad}))), format!("INVALID_REQUEST {field}"));
            if !bad.is_null() {
                assert_eq!(code(changed(json!({field: bad}))), format!("INVALID_REQUEST {field}"));
            }
        }
        assert!(new(json!({field: "é".repeat(1024)})).is_ok());
    }
    let rows = [
        (json!({"confidence": 1.1}), "INVALID_REQUEST confidence"),
        (json!({"confidence": "1"}), "INVALID_REQUEST confidence"),
        (json!({"content": ""}), "INVALID_REQUEST content"),
        (json!({"metadata": {"_x": 1}}), "INVALID_REQUEST metadata._x"),
        (json!({"ttlSeconds": 0}), "INVALID_REQUEST ttlSeconds"),
        (json!({"layer": "x", "content": "x".repeat(100_001)}), "INVALID_LAYER"),
        (json!({"layer": "team", "content": "x".repeat(100_001)}), "MISSING_IDENTIFIER"),
        (json!({"identifiers": {"userId": "bob"}, "content": "x".repeat(100_001)}), "FORBIDDEN"),
        (json!({"content": "x".repeat(100_001)}), "CONTENT_TOO_LONG"),
    ];
    for (members, expected) in rows {
        assert_eq!(code(new(members)), expected);
    }
}

#[test]
fn a_change_of_a_fact_names_something_to_change_and_a_version_it_is_for() {
    for body in [json!({}), json!({"version": 1}), json!({"subject": null}), json!({"ttlSeconds": 5})] {
        assert_eq!(code(changed(body)), "INVALID_REQUEST");
    }
    for fixed in ["layer", "kind", "identifiers", "id", "createdAt"] {
        assert_eq!(code(changed(json!({"subject": "x", fixed: "x"}))), format!("INVALID_REQUEST {fixed}"));
    }
}

#[test]
fn the_smallest_query_has_the_contracts_defaults() {
    let query = query(json!({})).unwrap();
    let layers: Vec<Layer> = query.scopes.iter().map(ScopeKey::layer).collect();
    assert_eq!(layers, [Layer::User, Layer::Project]);
    assert_eq!((query.limit, query.resolve, query.cursor.as_deref()), (100, false, None));
}

#[test]
fn a_body_and_parameters_say_the_same() {
    let body = json!({
        "layers": ["project"], "subject": "s", "predicate": "", "object": "5", "factType": "t", "minConfidence": 0.5,
        "filter": {"tags": ["a"]}, "resolve": true, "limit": 1000, "cursor": "c",
    });
    let pairs = [
        ("layer", "project"),
        ("userId", "alice"),
        ("projectId", "p"),
        ("subject", "s"),
        ("predicate", ""),
        ("object", "5"),
        ("factType", "t"),
        ("minConfidence", "0.5"),
        ("tag", "a"),
        ("resolve", "true"),
        ("limit", "1000"),
        ("cursor", "c"),
    ];
    let by_params = list_facts(&params(&pairs), &Rules::default()).unwrap();
    let by_params = by_params.check(&Rules::default(), &user("alice")).unwrap();
    assert_eq!(query(body), Ok(by_params));
}

#[test]
fn types_and_ranges() {
    let rows = [
        (json!({"limit": 0}), "INVALID_REQUEST limit"),
        (json!({"limit": 1001}), "INVALID_REQUEST limit"),
        (json!({"minConfidence": 1.5}), "INVALID_REQUEST minConfidence"),
        (json!({"subject": 5}), "INVALID_REQUEST subject"),
        (json!({"resolve": "yes"}), "INVALID_REQUEST resolve"),
        (json!({"filter": {"subject": "x"}}), "INVALID_REQUEST filter.subject"),
        (json!({"layers": []}), "INVALID_REQUEST layers"),
        (json!({"layers": ["x"]}), "INVALID_LAYER"),
        (json!({"layers": ["team"]}), "MISSING_IDENTIFIER"),
        (json!({"identifiers": {}}), "MISSING_IDENTIFIER"),
        (json!({"identifiers": {"userId": "bob"}}), "FORBIDDEN"),
    ];
    for (members, expected) in rows {
        assert_eq!(code(query(members)), expected);
    }
    let without_layer = list_facts(&params(&[("userId", "alice")]), &Rules::default());
    assert_eq!(code(without_layer), "INVALID_LAYER");
}

#[test]
fn fields_are_compared_exactly_and_all_of_them() {
    let entry = stored(1, Layer::User, ["tea", "is", "hot"], 0.5);
    let rows = [
        (json!({}), true),
        (
            json!({"subject": "tea", "predicate": "is", "object": "hot", "factType": "rule", "minConfidence": 0.5}),
            true,
        ),
        (json!({"subject": "Tea"}), false),
        (json!({"subject": "te"}), false),
        (json!({"subject": "tea", "object": "cold"}), false),
        (json!({"factType": "x"}), false),
        (json!({"minConfidence": 0.51}), false),
        (json!({"filter": {"tags": ["a"]}}), false),
    ];
    for (members, found) in rows {
        assert_eq!(query(members.clone()).unwrap().admits(&entry), found, "{members}");
    }
    let all = query(json!({})).unwrap();
    assert!(!all.admits(&memory(1, "no fact")));
    assert!(!all.admits(&Memory { kind: Kind::Archival, state: State::Archived, ..entry }));
}

#[test]
fn facts_are_arranged_and_the_strongest_of_a_subject_and_predicate_is_left() {
    let newer = |memory: Memory| Memory { updated_at: Timestamp::from_micros(9), ..memory };
    let facts = || {
        vec![
            stored(1, Layer::Project, ["tea", "is", "cold"], 1.0),
            stored(2, Layer::User, ["tea", "is", "warm"], 0.4),
            newer(stored(3, Layer::User, ["tea", "is", "hot"], 0.4)),
            stored(4, Layer::User, ["tea", "costs", "1"], 0.9),
            stored(5, Layer::Company, ["milk", "is", "white"], 0.1),
        ]
    };
    let ids = |members: Value| -> Vec<u128> {
        let mut facts = facts();
        query(members).unwrap().arrange(&mut facts);
        facts.iter().map(|memory| memory.id.0.as_u128()).collect()
    };
    assert_eq!(ids(json!({})), [4, 3, 2, 1, 5]);
    assert_eq!(ids(json!({"resolve": true})), [4, 3, 5]);
}

#[test]
fn a_fingerprint_depends_on_everything_but_the_limit() {
    let print = |members: Value| query(members).unwrap().fingerprint();
    assert_eq!(print(json!({})), print(json!({"limit": 5, "cursor": "x"})));
    let others = [
        json!({"layers": ["user"]}),
        json!({"identifiers": {"userId": "alice"}}),
        json!({"subject": "x"}),
        json!({"predicate": "x"}),
        json!({"object": "x"}),
        json!({"factType": "x"}),
        json!({"minConfidence": 0}),
        json!({"filter": {"tags": ["x"]}}),
        json!({"resolve": true}),
    ];
    let mut prints = vec![print(json!({}))];
    for members in others {
        let print = print(members.clone());
        assert!(!prints.contains(&print), "{members}");
        prints.push(print);
    }
}
