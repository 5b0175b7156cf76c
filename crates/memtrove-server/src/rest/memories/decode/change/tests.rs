use super::*;
use crate::rest::testing::{code, members as object};
use memtrove_core::memories::{AccessPolicy, GivenMetadata, Policy};
use serde_json::json;

fn read(body: Value, if_match: Option<&str>) -> Result<Change> {
    change(&body, Precondition::if_match(if_match), &Rules::default())
}

#[test]
fn a_change_says_what_to_change() {
    let change = |body| read(body, None).unwrap();
    let said = change(
        json!({"content": " x ", "metadata": {"a": null}, "ttlSeconds": null, "accessPolicy": {"policy": "public"}}),
    );
    assert_eq!(said.content.as_deref(), Some(" x "));
    assert_eq!(said.metadata, Some(GivenMetadata::new(object(json!({"a": null}))).unwrap()));
    assert_eq!(said.ttl, Some(None));
    assert_eq!(said.policy, Some(AccessPolicy::new(Policy::Public)));
    assert_eq!(change(json!({"ttlSeconds": 5})).ttl, Some(Some(5)));
    assert_eq!(change(json!({"content": "x"})).ttl, None);
}

#[test]
fn a_change_of_nothing_is_refused() {
    for body in [
        json!({}),
        json!({"version": 3}),
        json!({"content": null, "metadata": null, "accessPolicy": null}),
        json!({"state": "active"}),
    ] {
        assert_eq!(code(read(body, None)), "INVALID_REQUEST");
    }
    assert!(read(json!({"metadata": {}}), None).is_ok());
}

#[test]
fn types_ranges_and_what_never_changes() {
    let rows = [
        (json!({"content": ""}), "content"),
        (json!({"content": 1}), "content"),
        (json!({"metadata": "x"}), "metadata"),
        (json!({"metadata": {"_x": null}}), "metadata._x"),
        (json!({"metadata": {"relevance": 2}}), "metadata.relevance"),
        (json!({"ttlSeconds": 0}), "ttlSeconds"),
        (json!({"ttlSeconds": "5"}), "ttlSeconds"),
        (json!({"accessPolicy": {}}), "accessPolicy.policy"),
        (json!({"content": "x", "version": 0}), "version"),
        (json!({"content": "x", "version": "3"}), "version"),
        (json!({"content": "x", "version": 3.0}), "version"),
        (json!({"content": "x", "layer": "user"}), "layer"),
        (json!({"content": "x", "kind": "semantic"}), "kind"),
        (json!({"content": "x", "identifiers": {}}), "identifiers"),
        (json!({"content": "x", "id": "1"}), "id"),
        (json!({"content": "x", "createdAt": "2026-01-01T00:00:00Z"}), "createdAt"),
        (json!({"content": "x", "embedding": []}), "embedding"),
    ];
    for (body, field) in rows {
        assert_eq!(code(read(body, None)), format!("INVALID_REQUEST {field}"));
    }
    assert_eq!(code(read(json!({"content": "x", "version": 2}), Some("\"v3\""))), "INVALID_REQUEST version");
    assert_eq!(code(read(json!({"content": "x".repeat(100_001)}), None)), "CONTENT_TOO_LONG");
}
