use super::*;
use crate::rest::testing::{code, user};
use memtrove_core::memories::{Kind, Layer};
use serde_json::{Value, json};

fn asked(body: &Value) -> Result<ParsedQuery> {
    ParsedQuery::read(Members::body(body)?, &Rules::default(), &user("alice"))
}

#[test]
fn what_a_query_does_not_say_is_assumed() {
    let asked = asked(&json!({"query": "tea"})).unwrap();
    let query = asked.query;
    assert_eq!((query.mode, query.metric), (KnowledgeMode::Semantic, Metric::Cosine));
    assert_eq!((query.limit, query.offset, query.top_k, query.distance_threshold), (10, 0, None, None));
    assert_eq!(asked.shown.entry, Show { content: true, embedding: false });
    let layers: Vec<Layer> = query.scopes.iter().map(|scope| scope.layer()).collect();
    assert_eq!(layers, [Layer::User, Layer::Company]);
    assert_eq!(query.viewer.user.as_deref(), Some("alice"));
}

#[test]
fn every_member_of_a_query_is_read() {
    let body = json!({
        "query": "tea", "mode": "KEYWORD", "filters": {"tags": ["drinks"]}, "layer": {"types": ["semantic"], "project_id": "p"},
        "options": {"limit": 100, "offset": 5, "distance_threshold": 0.4, "distance_metric": "Euclidean",
            "include_content": false, "include_embeddings": true, "top_k": 50}
    });
    let asked = asked(&body).unwrap();
    let query = asked.query;
    assert_eq!((query.mode, query.metric), (KnowledgeMode::Keyword, Metric::Euclidean));
    assert_eq!(
        (query.limit, query.offset, query.top_k, query.distance_threshold),
        (100, 5, Some(50), Some(0.4))
    );
    assert_eq!(asked.shown.entry, Show { content: false, embedding: true });
    assert!(asked.shown.metric.is_none(), "words are not apart by any distance");
    assert_eq!(query.conditions.kinds, Some(vec![Kind::Semantic]));
    assert!(!query.conditions.filter.is_empty());
    assert_eq!(asked.types, ["semantic"]);
}

#[test]
fn a_query_that_is_not_right_is_refused() {
    for (body, expected) in [
        (json!({}), "INVALID_REQUEST query"),
        (json!({"query": " "}), "INVALID_REQUEST query"),
        (json!({"query": "x", "mode": "fuzzy"}), "INVALID_REQUEST mode"),
        (json!({"query": "x", "options": {"limit": 0}}), "INVALID_REQUEST options.limit"),
        (json!({"query": "x", "options": {"limit": 101}}), "INVALID_REQUEST options.limit"),
        (json!({"query": "x", "options": {"offset": -1}}), "INVALID_REQUEST options.offset"),
        (json!({"query": "x", "options": {"top_k": 0}}), "INVALID_REQUEST options.top_k"),
        (
            json!({"query": "x", "options": {"distance_threshold": -0.1}}),
            "INVALID_REQUEST options.distance_threshold",
        ),
        (
            json!({"query": "x", "options": {"distance_metric": "manhattan"}}),
            "INVALID_REQUEST options.distance_metric",
        ),
        (json!({"query": "x", "filters": {"colour": 1}}), "INVALID_REQUEST filters.colour"),
        (json!({"query": "x", "layer": {"types": ["session"]}}), "MISSING_IDENTIFIER"),
        (json!({"query": "x", "layer": {"user_id": "bob"}}), "FORBIDDEN"),
        (json!({"query": "x".repeat(8193)}), "QUERY_TOO_LONG"),
    ] {
        assert_eq!(code(asked(&body)), expected, "{body:.80}");
    }
}
