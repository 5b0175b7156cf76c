use super::*;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use http_body_util::BodyExt;
use memtrove_core::{Quota, Resource, Violation};
use serde_json::json;

const REQUEST: RequestInfo<'_> = RequestInfo { id: "r-1", operation: "memory.add" };

/// Status, the headers that say something, and the body.
async fn rendered(error: Error) -> (u16, Vec<String>, Value) {
    let response = render(error, REQUEST);
    assert_eq!(response.headers()[CONTENT_TYPE], "application/json; charset=utf-8");
    assert_eq!(response.headers()[CACHE_CONTROL], "no-store");
    let headers = [WWW_AUTHENTICATE, RETRY_AFTER]
        .into_iter()
        .filter_map(|name| Some(format!("{name}: {}", response.headers().get(&name)?.to_str().ok()?)))
        .collect();
    let status = response.status().as_u16();
    let body = response.into_body().collect().await.unwrap().to_bytes();
    (status, headers, serde_json::from_slice(&body).unwrap())
}

#[tokio::test]
async fn the_envelope_has_every_member_of_the_contract() {
    let refusal = Error::new(Code::MissingIdentifier, "the session layer needs sessionId")
        .with("layer", "session")
        .with("missing", json!(["sessionId"]));
    let response = render(refusal, REQUEST);
    let body = response.into_body().collect().await.unwrap().to_bytes();
    insta::assert_snapshot!(String::from_utf8(body.to_vec()).unwrap(), @r#"{"error":{"code":"MISSING_IDENTIFIER","message":"the session layer needs sessionId","operation":"memory.add","retryable":false,"details":{"layer":"session","missing":["sessionId"]},"request_id":"r-1"}}"#);
}

#[tokio::test]
async fn a_refusal_is_answered_with_its_own_status_and_whether_it_can_be_retried() {
    let table = [
        (Code::InvalidRequest, "INVALID_REQUEST", 400, false),
        (Code::InvalidLayer, "INVALID_LAYER", 400, false),
        (Code::InvalidKind, "INVALID_KIND", 400, false),
        (Code::MissingIdentifier, "MISSING_IDENTIFIER", 400, false),
        (Code::InvalidCursor, "INVALID_CURSOR", 400, false),
        (Code::Forbidden, "FORBIDDEN", 403, false),
        (Code::MemoryNotFound, "MEMORY_NOT_FOUND", 404, false),
        (Code::IdempotencyConflict, "IDEMPOTENCY_CONFLICT", 409, false),
        (Code::InvalidState, "INVALID_STATE", 409, false),
        (Code::EtagMismatch, "ETAG_MISMATCH", 412, false),
        (Code::ContentTooLong, "CONTENT_TOO_LONG", 422, false),
        (Code::QueryTooLong, "QUERY_TOO_LONG", 422, false),
        (Code::MetadataTooLarge, "METADATA_TOO_LARGE", 422, false),
        (Code::BatchTooLarge, "BATCH_TOO_LARGE", 422, false),
        (Code::RateLimited, "RATE_LIMITED", 429, true),
        (Code::ConfigurationError, "CONFIGURATION_ERROR", 500, false),
        (Code::NotImplemented, "NOT_IMPLEMENTED", 501, false),
        (Code::ProviderFailed, "PROVIDER_ERROR", 502, false),
        (Code::ProviderUnavailable, "PROVIDER_ERROR", 503, true),
        (Code::EmbeddingFailed, "EMBEDDING_FAILED", 503, true),
        (Code::EmbeddingRefused, "EMBEDDING_FAILED", 503, false),
    ];
    let own = Code::ALL.iter().filter(|code| code.is_of_memories()).count();
    assert_eq!(table.len(), own, "every code of the contract has its row");
    for (code, word, expected_status, retryable) in table {
        let (status, headers, body) = rendered(Error::new(code, "no").with("field", "x")).await;
        assert_eq!(status, expected_status, "{code:?}");
        let error = json!({"code": word, "message": "no", "operation": "memory.add",
            "retryable": retryable, "details": {"field": "x"}, "request_id": "r-1"});
        assert_eq!(body, json!({"error": error}), "{code:?}");
        let expected: &[&str] = match status {
            503 => &["retry-after: 5"],
            _ => &[],
        };
        assert_eq!(headers, expected, "{code:?}");
    }
}

/// An error, and the status, code, retryability, details and headers it is answered with.
type Case = (Error, u16, &'static str, bool, Value, &'static [&'static str]);

#[tokio::test]
async fn every_other_error_of_the_domain_has_a_code_of_this_contract() {
    let quota =
        Quota { scope: "user", resource: "writes", limit: 1, window_seconds: 60, retry_after_seconds: 7 };
    let violation = Violation { field: "If-Match".into(), message: "must be UTF-8".into() };
    let invalid_json = Error::new(Code::InvalidJson, "the body is not valid JSON at byte 3");
    let cases: Vec<Case> = vec![
        (invalid_json, 400, "INVALID_REQUEST", false, json!({}), &[]),
        (
            Error::violations(vec![violation]),
            400,
            "INVALID_REQUEST",
            false,
            json!({"field": "If-Match"}),
            &[],
        ),
        (Error::bad_request("no"), 400, "INVALID_REQUEST", false, json!({}), &[]),
        (Error::JUSTIFICATION_REQUIRED, 400, "INVALID_REQUEST", false, json!({}), &[]),
        (Error::UNAUTHORIZED, 401, "UNAUTHORIZED", false, json!({}), &["www-authenticate: Bearer"]),
        (Error::forbidden("no"), 403, "FORBIDDEN", false, json!({}), &[]),
        (Error::tenant_forbidden("no"), 403, "FORBIDDEN", false, json!({}), &[]),
        (Error::not_found(Resource::Route, "/x"), 404, "ROUTE_NOT_FOUND", false, json!({}), &[]),
        (Error::not_found(Resource::Entry, "x"), 404, "MEMORY_NOT_FOUND", false, json!({}), &[]),
        (Error::METHOD_NOT_ALLOWED, 405, "METHOD_NOT_ALLOWED", false, json!({}), &[]),
        (Error::conflict("no"), 409, "INVALID_STATE", false, json!({}), &[]),
        (Error::too_large(10, Some(11)), 413, "REQUEST_TOO_LARGE", false, json!({"maxBytes": 10}), &[]),
        (Error::UNSUPPORTED_MEDIA_TYPE, 415, "UNSUPPORTED_MEDIA_TYPE", false, json!({}), &[]),
        (
            Error::quota_exceeded(quota),
            429,
            "RATE_LIMITED",
            true,
            json!({"retryAfterSeconds": 7}),
            &["retry-after: 7"],
        ),
        (Error::internal("a secret"), 500, "INTERNAL_ERROR", false, json!({}), &[]),
        (Error::SEARCH_DISABLED, 501, "NOT_IMPLEMENTED", false, json!({}), &[]),
        (
            Error::overloaded(2),
            503,
            "PROVIDER_ERROR",
            true,
            json!({"provider": "embedded"}),
            &["retry-after: 2"],
        ),
        (
            Error::storage_unavailable("the disk is full"),
            503,
            "PROVIDER_ERROR",
            true,
            json!({"provider": "embedded"}),
            &["retry-after: 5"],
        ),
        (
            Error::IDENTITY_PROVIDER_UNAVAILABLE,
            503,
            "PROVIDER_ERROR",
            true,
            json!({"provider": "identity"}),
            &["retry-after: 5"],
        ),
        (Error::TIMEOUT, 504, "TIMEOUT", true, json!({}), &[]),
    ];
    for (error, status, code, retryable, details, headers) in cases {
        let about = format!("{error:?}");
        let (rendered_status, rendered_headers, body) = rendered(error).await;
        let said = &body["error"];
        assert_eq!(
            (rendered_status, said["code"].as_str(), said["retryable"].as_bool(), &said["details"]),
            (status, Some(code), Some(retryable), &details),
            "{about}"
        );
        assert_eq!(rendered_headers, headers, "{about}");
        let message = said["message"].as_str().unwrap();
        assert!(!message.contains("secret") && !message.contains("disk"), "{about} tells: {message}");
    }
}

#[tokio::test]
async fn a_provider_that_says_when_to_come_back_is_believed() {
    let refusal = Error::new(Code::EmbeddingFailed, "later").with("retryAfterSeconds", 30);
    let (status, headers, _) = rendered(refusal).await;
    assert_eq!((status, headers), (503, vec!["retry-after: 30".to_owned()]));
}
