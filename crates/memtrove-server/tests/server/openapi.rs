//! The API document in the repository is the one the server serves.

use memtrove_server::rest;
use serde_json::Value;
use std::collections::BTreeSet;

const SNAPSHOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../openapi/memtrove.json");

#[test]
fn the_snapshot_is_current() {
    let stored = std::fs::read_to_string(SNAPSHOT).unwrap_or_default();
    let current = rest::document().to_pretty_json().unwrap();
    assert!(
        stored.trim() == current.trim(),
        "openapi/memtrove.json is out of date: run `make openapi`, look at the difference, commit it"
    );
}

#[test]
fn every_operation_is_described() {
    let document: Value = serde_json::from_str(&rest::document().to_json().unwrap()).unwrap();
    let mut ids = BTreeSet::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap().iter().filter(|(name, _)| *name != "parameters")
        {
            let name = format!("{method} {path}");
            assert!(
                operation["summary"].as_str().is_some_and(|s| s.ends_with('.')),
                "{name} needs a summary"
            );
            assert!(
                ids.insert(operation["operationId"].as_str().unwrap().to_owned()),
                "{name} repeats an operationId"
            );
            assert_eq!(operation["tags"].as_array().map(Vec::len), Some(1), "{name} needs one tag");
            for parameter in operation["parameters"].as_array().into_iter().flatten() {
                assert!(
                    parameter["description"].is_string(),
                    "{name}: {} needs a description",
                    parameter["name"]
                );
            }
        }
    }
    assert!(ids.len() > 30, "{ids:?}");
}

#[test]
fn headers_that_many_operations_read_are_described_once() {
    let document: Value = serde_json::from_str(&rest::document().to_json().unwrap()).unwrap();
    let common = |path: &str| {
        let references = document["paths"][path]["parameters"].as_array().cloned().unwrap_or_default();
        let pointers =
            references.into_iter().map(|reference| reference["$ref"].as_str().unwrap()[1..].to_owned());
        pointers.map(|pointer| document.pointer(&pointer).unwrap()["name"].clone()).collect::<Vec<_>>()
    };
    assert_eq!(common("/v1/conversations"), ["X-Tenant-Id", "X-User-ID"]);
    assert_eq!(common("/v1/admin/evict"), ["X-Tenant-Id", "X-Justification"]);
    assert_eq!(common("/v1/admin/reindex"), ["X-Tenant-Id", "X-Justification"]);
    assert_eq!(common("/v1/health"), [""; 0], "which asks nobody who they are");
    let file = &document["paths"]["/v1/tenants/{tenant_id}/users/{user_id}/files/{path}"];
    for (method, status) in [("get", "200"), ("get", "304"), ("put", "200"), ("patch", "200")] {
        let headers = &file[method]["responses"][status]["headers"];
        assert!(headers["ETag"]["description"].is_string(), "{method} {status}: {headers}");
    }
}

#[test]
fn routes_that_only_read_are_posted_to_and_nothing_else() {
    let document: Value = serde_json::from_str(&rest::document().to_json().unwrap()).unwrap();
    let calls = String::from_utf8_lossy(memtrove_proto::DESCRIPTORS);
    for route in memtrove_server::READING_ROUTES {
        if let Some(call) = route.strip_prefix("/memory.v1.") {
            let (service, call) = call.split_once('/').unwrap();
            assert!(calls.contains(service) && calls.contains(call), "{route}");
            continue;
        }
        let item = document["paths"][route].as_object().unwrap_or_else(|| panic!("no {route}"));
        let methods: Vec<&String> = item.keys().filter(|name| *name != "parameters").collect();
        assert_eq!(methods, ["post"], "{route}");
    }
}
