use super::*;
use serde_json::json;

fn read(status: u16, body: &str) -> ApiError {
    let headers = HeaderMap::from_iter([("x-request-id".parse().unwrap(), "req-7".parse().unwrap())]);
    ApiError::read(StatusCode::from_u16(status).unwrap(), &headers, body.as_bytes())
}

#[test]
fn errors_of_files_are_read() {
    let body = json!({"error": {"code": "ETAG_MISMATCH", "message": "somebody was faster", "request_id": "r1",
        "details": {"latest_etag": "\"2-b\""}}});
    let error = read(412, &body.to_string());
    assert_eq!((error.code.as_str(), error.message.as_str()), ("ETAG_MISMATCH", "somebody was faster"));
    assert_eq!(error.request_id.as_deref(), Some("r1"));
    assert!(error.is_conflict() && !error.is_not_found());
    assert_eq!(error.latest_etag(), Some(ETag::from("\"2-b\"")));
    assert_eq!(error.to_string(), "ETAG_MISMATCH (412): somebody was faster");
}

#[test]
fn a_conflict_is_412_and_the_code() {
    let body = |code: &str| json!({"error": {"code": code, "message": "no"}}).to_string();
    assert!(!read(412, &body("VERSION_CONFLICT")).is_conflict());
    assert!(!read(409, &body("ETAG_MISMATCH")).is_conflict());
    assert!(read(412, &body("ETAG_MISMATCH")).latest_etag().is_none());
}

#[test]
fn errors_of_memories_are_read() {
    let body = json!({"error": {"code": "MEMORY_NOT_FOUND", "message": "none", "operation": "memories.get",
        "retryable": false, "details": {"id": "x"}, "requestId": "r2"}});
    let error = read(404, &body.to_string());
    assert_eq!((error.code.as_str(), error.request_id.as_deref()), ("MEMORY_NOT_FOUND", Some("r2")));
    assert_eq!(error.details["id"], "x");
    assert!(error.is_not_found());
}

#[test]
fn errors_of_the_knowledge_protocol_are_read() {
    let body = json!({"error": {"code": 1001, "name": "EMBEDDING_FAILED", "message": "no vector", "retryable": true,
        "operation": "openspec.query", "details": {}}, "request_id": "r3", "timestamp": "2026-01-31T12:00:00Z"});
    let error = read(503, &body.to_string());
    assert_eq!((error.code.as_str(), error.request_id.as_deref()), ("EMBEDDING_FAILED", Some("r3")));
}

#[test]
fn a_kind_of_search_that_is_not_there_is_read() {
    let body = json!({"error": "search_type_unavailable", "message": "there are no vectors", "availableTypes": ["fulltext"]});
    let error = read(501, &body.to_string());
    assert_eq!(
        (error.code.as_str(), error.message.as_str()),
        ("search_type_unavailable", "there are no vectors")
    );
    assert_eq!(error.details["availableTypes"], json!(["fulltext"]));
}

#[test]
fn errors_of_conversations_are_read() {
    let violations = json!({"error": "Validation failed", "code": "validation_error", "details": {"violations": [
        {"field": "title", "message": "is too long"}, {"field": "limit", "message": "must be positive"}]}});
    let error = read(400, &violations.to_string());
    assert_eq!(error.code, "validation_error");
    assert_eq!(error.message, "Validation failed: title is too long, limit must be positive");
    assert_eq!(error.request_id.as_deref(), Some("req-7"), "from the header");

    let body = json!({"error": "Conflict", "code": "conflict", "existingTransferId": "t1", "details": {"message": "one waits"}});
    let error = read(409, &body.to_string());
    assert_eq!(
        (error.message.as_str(), &error.details["existingTransferId"]),
        ("Conflict: one waits", &json!("t1"))
    );
}

#[test]
fn what_is_no_envelope_is_an_error_all_the_same() {
    let error = read(502, "<html>bad gateway</html>");
    assert_eq!((error.code.as_str(), error.message.as_str()), ("HTTP_502", "<html>bad gateway</html>"));
    let error = read(503, "");
    assert_eq!((error.code.as_str(), error.message.as_str()), ("HTTP_503", "Service Unavailable"));
    for odd in
        [r#"{"error": {"code": 7, "message": "x"}}"#, r#"{"error": "x"}"#, r#"{"error": 7}"#, "[]", "{}"]
    {
        assert_eq!(read(500, odd).code, "HTTP_500", "{odd}");
    }
}

#[test]
fn so_much_of_a_body_is_kept() {
    let error = read(500, &"ä".repeat(5000));
    assert_eq!((error.raw_body.chars().count(), error.message.chars().count()), (1024, 1024));
}

#[test]
fn a_transport_error_says_what_is_behind_it() {
    let inner = std::io::Error::other("connection reset");
    let text = Error::transport("get_file", inner).to_string();
    assert_eq!(text, "get_file: no answer from the service: connection reset");
}
