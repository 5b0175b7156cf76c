use super::*;
use crate::rest::testing::code;
use serde_json::json;

fn object(value: &Value) -> &Map<String, Value> {
    value.as_object().unwrap()
}

fn given(body: Value) -> Result<Reasons> {
    reasons(object(&body))
}

#[test]
fn a_reason_is_a_text_and_evidence_is_anything_and_both_have_an_end() {
    assert_eq!(given(json!({})).unwrap(), Reasons::default());
    assert_eq!(given(json!({"reason": null, "evidence": null})).unwrap(), Reasons::default());
    let both = given(json!({"reason": "r".repeat(256), "evidence": {"seen": [1]}})).unwrap();
    assert_eq!((both.reason().map(str::len), both.evidence()), (Some(256), Some(&json!({"seen": [1]}))));
    for (body, field) in [
        (json!({"reason": 1}), "reason"),
        (json!({"reason": "r".repeat(257)}), "reason"),
        (json!({"evidence": "e".repeat(64_000)}), "evidence"),
        (json!({"profile_id": "p"}), "profile_id"),
    ] {
        assert_eq!(code(given(body)), format!("INVALID_REQUEST {field}"));
    }
}

fn request(value: Value) -> Result<(Vec<FileRef>, Budget)> {
    wanted_files(object(&value))
}

#[test]
fn a_request_names_files_and_may_say_how_much() {
    let (files, budget) =
        request(json!({"files": [{"path": "a\\b"}, {"path": "a/b", "x": 1}], "max_docs": null})).unwrap();
    assert_eq!(budget, Budget { max_docs: 4, max_chars_total: 30_000 });
    assert_eq!((files[0].given.as_str(), files[0].path.as_str()), ("a\\b", "a/b"));
    assert_eq!(files[0].path, files[1].path);
    let (_, budget) =
        request(json!({"files": [{"path": "a"}], "max_docs": 0, "max_chars_total": 7})).unwrap();
    assert_eq!(budget, Budget { max_docs: 0, max_chars_total: 7 });
}

#[test]
fn no_request_can_ask_for_more_than_memory_has_room_for() {
    let (_, budget) = request(json!({"files": [{"path": "a"}], "max_chars_total": 1_000_000_000})).unwrap();
    assert_eq!(budget.max_chars_total, 8_000_000);
    let (_, budget) = request(json!({"files": [{"path": "a"}], "max_chars_total": 8_000_000})).unwrap();
    assert_eq!(budget.max_chars_total, 8_000_000);
}

#[test]
fn requests_of_another_shape_are_refused() {
    let files = json!([{"path": "a"}]);
    let many = vec![json!({"path": "a"}); 501];
    assert!(request(json!({"files": many[..500]})).is_ok());
    let wrong = [
        (json!({}), "MISSING_ASSEMBLY_TARGETS"),
        (json!({"files": null}), "MISSING_ASSEMBLY_TARGETS"),
        (json!({"files": []}), "MISSING_ASSEMBLY_TARGETS"),
        (json!({"files": {}}), "INVALID_REQUEST"),
        (json!({"files": ["a"]}), "INVALID_REQUEST"),
        (json!({"files": many}), "INVALID_REQUEST"),
        (json!({"files": files, "profile_id": "p"}), "INVALID_ASSEMBLY_MODE"),
        (json!({"files": [{"path": "a"}, {}]}), "INVALID_PATH"),
        (json!({"files": [{"path": null}]}), "INVALID_PATH"),
        (json!({"files": [{"path": ""}]}), "INVALID_PATH"),
        (json!({"files": [{"path": "../a"}]}), "INVALID_PATH"),
        (json!({"files": [{"path": 1}]}), "INVALID_REQUEST"),
        (json!({"files": files, "max_docs": -1}), "INVALID_LIMIT"),
        (json!({"files": files, "max_chars_total": -1}), "INVALID_LIMIT"),
        (json!({"files": files, "max_docs": 1.5}), "INVALID_REQUEST"),
        (json!({"files": files, "max_docs": "4"}), "INVALID_REQUEST"),
    ];
    for (value, expected) in wrong {
        let found = code(request(value.clone()));
        assert_eq!(found.split(' ').next(), Some(expected), "{value}");
    }
}

#[test]
fn a_search_of_the_wrong_shape_is_refused() {
    let cases = [
        ("query", json!([1, [], {}])),
        ("service_id", json!([1])),
        ("source_type", json!([true])),
        ("project_id", json!([["p"]])),
        ("from", json!(["", "yesterday", 1, "2026-01-31T12:00:00"])),
        ("to", json!(["", "2026-01-31", {}])),
        ("top_k", json!(["10", 1.5, [], true])),
    ];
    for (name, values) in cases {
        for value in values.as_array().unwrap() {
            let result = search_events(object(&json!({name: value})));
            assert_eq!(code(result), format!("INVALID_REQUEST {name}"), "{name}: {value}");
        }
    }
}

fn read(request: Value) -> Result<Retention> {
    retained(object(&request))
}

#[test]
fn a_request_names_all_days_or_is_refused_by_what_is_wrong() {
    let all = json!({"events_days": 1, "audit_days": 2, "snapshots_days": 3, "profile_id": null});
    let read_days = read(all.clone()).unwrap();
    assert_eq!((read_days.events_days, read_days.audit_days, read_days.snapshots_days), (1, 2, 3));
    let with = |name: &str, value: Value| {
        let mut request = all.clone();
        request[name] = value;
        request
    };
    for (request, refused) in [
        (json!({}), "MISSING_RETENTION_RULES"),
        (json!({"audit_days": 1}), "INCOMPLETE_RETENTION_RULES"),
        (with("audit_days", json!(-1)), "INVALID_RETENTION_VALUE audit_days"),
        (with("events_days", json!(36_501)), "INVALID_RETENTION_VALUE events_days"),
        (with("as_of_utc", json!("soon")), "INVALID_REQUEST as_of_utc"),
        (with("profile_id", json!("p")), "INVALID_RETENTION_MODE profile_id"),
        (json!({"profile_id": "p"}), "INVALID_REQUEST profile_id"),
    ] {
        assert_eq!(code(read(request.clone())), refused, "{request}");
    }
}
