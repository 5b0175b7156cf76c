use super::*;
use crate::rest::testing::{code, params, user, with};
use memtrove_core::memories::{Kind, Layer, List};
use serde_json::json;

type Pairs = &'static [(&'static str, &'static str)];

fn by_body(members: Value) -> Result<List> {
    let body = with(json!({"layer": "user", "identifiers": {"userId": "alice"}}), members);
    filter(&body, &Rules::default())?.check(&Rules::default(), &user("alice"))
}

fn by_params(pairs: &[(&str, &str)]) -> Result<List> {
    let mut pairs = pairs.to_vec();
    for (name, value) in [("layer", "user"), ("userId", "alice")] {
        if !pairs.iter().any(|(given, _)| *given == name) {
            pairs.push((name, value));
        }
    }
    list(&params(&pairs), &Rules::default())?.check(&Rules::default(), &user("alice"))
}

#[test]
fn the_smallest_list_has_the_contracts_defaults() {
    let smallest = by_body(json!({})).unwrap();
    assert_eq!((smallest.scope.layer(), smallest.limit, smallest.cursor.as_deref()), (Layer::User, 50, None));
    assert_eq!(smallest.conditions, Conditions::default());
    assert_eq!(by_params(&[]), Ok(smallest));
}

#[test]
fn a_body_and_parameters_say_the_same() {
    let rows: [(Value, Pairs); 8] = [
        (
            json!({"limit": 7, "cursor": "c", "includeEmbedding": true}),
            &[("limit", "7"), ("cursor", "c"), ("includeEmbedding", "true")],
        ),
        (json!({"filter": {"tags": ["a", "b"]}}), &[("tag", "a"), ("tag", "b")]),
        (json!({"filter": {"sourceType": "Manual"}}), &[("sourceType", "manual")]),
        (json!({"filter": {"hasKnowledgePointer": false}}), &[("hasKnowledgePointer", "false")]),
        (json!({"kinds": ["semantic", "archival"]}), &[("kind", "archival"), ("kind", "Semantic")]),
        (
            json!({"from": "2026-01-01T01:00:00+01:00", "to": "2026-01-02T00:00:00Z"}),
            &[("from", "2026-01-01T00:00:00Z"), ("to", "2026-01-02T00:00:00.000Z")],
        ),
        (json!({"state": "archived"}), &[("state", "ARCHIVED")]),
        (
            json!({"includeArchived": true, "identifiers": {"userId": "alice", "teamId": "t"}}),
            &[("includeArchived", "true"), ("teamId", "t")],
        ),
    ];
    for (body, parameters) in rows {
        let (one, other) = (by_body(body).unwrap(), by_params(parameters).unwrap());
        assert_eq!(one.fingerprint(), other.fingerprint());
        assert_eq!(one, other);
    }
}

#[test]
fn a_fingerprint_depends_on_everything_but_the_limit_and_embeddings() {
    let plain = by_body(json!({})).unwrap().fingerprint();
    for members in [
        json!({"limit": 1}),
        json!({"includeEmbedding": true}),
        json!({"cursor": "x"}),
        json!({"filter": {"tags": []}}),
    ] {
        assert_eq!(by_body(members).unwrap().fingerprint(), plain);
    }
    let others = [
        json!({"layer": "session", "identifiers": {"userId": "alice", "sessionId": "s"}}),
        json!({"identifiers": {"userId": "alice", "teamId": "t"}}),
        json!({"filter": {"tags": ["a"]}}),
        json!({"filter": {"sourceType": "manual"}}),
        json!({"filter": {"hasKnowledgePointer": true}}),
        json!({"filter": {"custom": {"a": 1}}}),
        json!({"filter": {"custom": {"a": 2}}}),
        json!({"kinds": ["semantic"]}),
        json!({"from": "2026-01-01T00:00:00Z"}),
        json!({"to": "2026-01-01T00:00:00Z"}),
        json!({"state": "active"}),
        json!({"includeArchived": true}),
    ];
    let mut prints = vec![plain];
    for members in others {
        let print = by_body(members.clone()).unwrap().fingerprint();
        assert!(!prints.contains(&print), "{members}");
        prints.push(print);
    }
    let ordered = by_body(json!({"filter": {"custom": {"a": 1, "b": {"x": 1, "y": 2}}}})).unwrap();
    let reordered = by_body(json!({"filter": {"custom": {"b": {"y": 2, "x": 1}, "a": 1}}})).unwrap();
    assert_eq!(ordered.fingerprint(), reordered.fingerprint());
}

#[test]
fn types_and_ranges_of_a_body() {
    let rows = [
        (json!({"limit": 0}), "INVALID_REQUEST limit"),
        (json!({"limit": 101}), "INVALID_REQUEST limit"),
        (json!({"limit": "5"}), "INVALID_REQUEST limit"),
        (json!({"cursor": 5}), "INVALID_REQUEST cursor"),
        (json!({"from": "x"}), "INVALID_REQUEST from"),
        (json!({"to": 5}), "INVALID_REQUEST to"),
        (json!({"from": "2026-01-02T00:00:00Z", "to": "2026-01-01T00:00:00Z"}), "INVALID_REQUEST from"),
        (json!({"state": "updated"}), "INVALID_REQUEST state"),
        (json!({"state": "deleted"}), "INVALID_REQUEST state"),
        (json!({"kinds": []}), "INVALID_REQUEST kinds"),
        (json!({"kinds": "semantic"}), "INVALID_REQUEST kinds"),
        (json!({"kinds": ["x"]}), "INVALID_KIND"),
        (json!({"kinds": [5]}), "INVALID_KIND"),
        (json!({"filter": {"tag": "x"}}), "INVALID_REQUEST filter.tag"),
        (json!({"layer": null}), "INVALID_LAYER"),
        (json!({"layer": ["user"]}), "INVALID_LAYER"),
        (json!({"identifiers": {}}), "MISSING_IDENTIFIER"),
        (json!({"identifiers": {"userId": "bob"}}), "FORBIDDEN"),
    ];
    for (members, expected) in rows {
        assert_eq!(code(by_body(members)), expected);
    }
}

#[test]
fn types_and_ranges_of_parameters() {
    let rows: [(Pairs, &str); 12] = [
        (&[("limit", "0")], "INVALID_REQUEST limit"),
        (&[("limit", "5.0")], "INVALID_REQUEST limit"),
        (&[("limit", "")], "INVALID_REQUEST limit"),
        (&[("limit", "5"), ("limit", "5")], "INVALID_REQUEST limit"),
        (&[("includeArchived", "1")], "INVALID_REQUEST includeArchived"),
        (&[("hasKnowledgePointer", "yes")], "INVALID_REQUEST hasKnowledgePointer"),
        (&[("sourceType", "web")], "INVALID_REQUEST sourceType"),
        (&[("state", "")], "INVALID_REQUEST state"),
        (&[("kind", "x")], "INVALID_KIND"),
        (&[("layer", "")], "INVALID_LAYER"),
        (&[("userId", "")], "MISSING_IDENTIFIER"),
        (&[("userId", "a\u{1}")], "INVALID_REQUEST userId"),
    ];
    for (pairs, expected) in rows {
        assert_eq!(code(by_params(pairs)), expected, "{pairs:?}");
    }
    assert_eq!(code(list(&[], &Rules::default())), "INVALID_LAYER");
    let kinds = by_params(&[("kind", "semantic"), ("unknown", "x")]).unwrap().conditions.kinds;
    assert_eq!(kinds, Some(vec![Kind::Semantic]));
}
