//! The table of operations against the description of the API: a route that nobody can call from here is a failure.

use memtrove_client::operations::{self, Effect, Operation};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// Operations of the description that the client leaves out, and why.
const LEFT_OUT: &[(&str, &str)] = &[("metrics", "text for Prometheus, which fetches it itself")];
/// Tags of the description that the client leaves out, and why.
const TAGS_LEFT_OUT: &[(&str, &str)] = &[("mem0", "for the clients of another product")];
/// Operations of the client that the description leaves out, and why.
const UNDESCRIBED: &[(&str, &str)] = &[("status", "the pointer at / says where the description is")];

/// What the description says: method and path by the operation's name.
fn described() -> BTreeMap<String, (String, String)> {
    let text = include_str!("../../../../openapi/memtrove.json");
    let document: Value = serde_json::from_str(text).unwrap();
    let mut described = BTreeMap::new();
    for (path, methods) in document["paths"].as_object().unwrap() {
        for (method, operation) in methods.as_object().unwrap() {
            let Some(id) = operation["operationId"].as_str() else { continue };
            let tags = operation["tags"].as_array().into_iter().flatten();
            let left_out =
                tags.filter_map(Value::as_str).any(|tag| TAGS_LEFT_OUT.iter().any(|(name, _)| *name == tag));
            if !left_out && !LEFT_OUT.iter().any(|(name, _)| *name == id) {
                described.insert(id.to_owned(), (method.to_uppercase(), path.clone()));
            }
        }
    }
    described
}

#[test]
fn every_operation_is_here_and_none_besides() {
    let ours: BTreeMap<String, (String, String)> = operations::ALL
        .iter()
        .filter(|operation| !UNDESCRIBED.iter().any(|(name, _)| *name == operation.id))
        .map(|operation| (operation.id.to_owned(), (operation.method.to_string(), operation.path.to_owned())))
        .collect();
    let described = described();
    assert!(described.len() > 90, "the description was read: {}", described.len());
    let missing: Vec<_> = described.iter().filter(|entry| ours.get(entry.0) != Some(entry.1)).collect();
    let surplus: Vec<_> = ours.iter().filter(|entry| described.get(entry.0) != Some(entry.1)).collect();
    assert!(
        missing.is_empty() && surplus.is_empty(),
        "without a row: {missing:#?}\nnot described: {surplus:#?}"
    );
}

#[test]
fn names_are_given_once() {
    let names: BTreeSet<&str> = operations::ALL.iter().map(|operation| operation.id).collect();
    assert_eq!(names.len(), operations::ALL.len());
}

#[test]
fn only_what_takes_a_key_is_keyed() {
    let text = include_str!("../../../../openapi/memtrove.json");
    let document: Value = serde_json::from_str(text).unwrap();
    let takes_key = |operation: &Operation| {
        let method = operation.method.as_str().to_lowercase();
        let parameters = document["paths"][operation.path][method]["parameters"].as_array();
        parameters.into_iter().flatten().any(|parameter| parameter["name"] == "Idempotency-Key")
    };
    for operation in operations::ALL {
        assert_eq!(operation.effect == Effect::Keyed, takes_key(operation), "{}", operation.id);
        let get = operation.method == http::Method::GET;
        assert!(!get || operation.effect == Effect::Read, "{} reads", operation.id);
    }
}

#[test]
fn an_operation_knows_its_requests() {
    let of = |method, path: &str| operations::find(&method, path).map(|operation| operation.id);
    let files = "/v1/tenants/a/users/b/files";
    assert_eq!(of(http::Method::GET, &format!("{files}/x/y.md")), Some("get_file"));
    assert_eq!(of(http::Method::GET, &format!("{files}:list")), Some("list_files"));
    assert_eq!(of(http::Method::GET, &format!("{files}/")), None);
    assert_eq!(of(http::Method::GET, "/v1/conversations/unindexed"), Some("list_unindexed"));
    assert_eq!(of(http::Method::GET, "/v1/conversations/7"), Some("get_conversation"));
    assert_eq!(of(http::Method::POST, "/v1/memories:search"), Some("search_memories"));
    assert_eq!(of(http::Method::GET, "/"), Some("status"));
}
