use super::*;
use http::header::CACHE_CONTROL;
use http_body_util::BodyExt;
use memtrove_core::{Quota, Violation, files};
use serde_json::json;

/// Status, the headers that say something, and the body.
async fn rendered(error: impl Into<Error>) -> (u16, Vec<String>, Value) {
    let response = operation::within("memory.add", || MemoriesError(error.into()).into_response());
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
    let refusal = Refusal::new(Code::MissingIdentifier, "the session layer needs sessionId")
        .with("layer", "session")
        .with("missing", json!(["sessionId"]));
    let response = operation::within("memory.add", || MemoriesError(refusal.into()).into_response());
    let body = response.into_body().collect().await.unwrap().to_bytes();
    insta::assert_snapshot!(String::from_utf8(body.to_vec()).unwrap(), @r#"{"error":{"code":"MISSING_IDENTIFIER","message":"the session layer needs sessionId","operation":"memory.add","retryable":false,"details":{"layer":"session","missing":["sessionId"]},"request_id":"unknown"}}"#);
}

#[tokio::test]
async fn a_refusal_is_answered_with_its_own_status_and_whether_it_can_be_retried() {
    for code in Code::ALL {
        let (status, headers, body) = rendered(Refusal::new(*code, "no").with("field", "x")).await;
        assert_eq!(status, code.status(), "{code:?}");
        let error = json!({"code": code.as_str(), "message": "no", "operation": "memory.add",
            "retryable": code.retryable(), "details": {"field": "x"}, "request_id": "unknown"});
        assert_eq!(body, json!({"error": error}), "{code:?}");
        let expected: &[&str] = match status {
            401 => &["www-authenticate: Bearer"],
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
    let invalid_json = files::Refusal::new(files::Code::InvalidJson, "the body is not valid JSON at byte 3");
    let cases: Vec<Case> = vec![
        (invalid_json.into(), 400, "INVALID_REQUEST", false, json!({}), &[]),
        (Error::Invalid(vec![violation]), 400, "INVALID_REQUEST", false, json!({"field": "If-Match"}), &[]),
        (Error::bad_request("no"), 400, "INVALID_REQUEST", false, json!({}), &[]),
        (Error::JustificationRequired, 400, "INVALID_REQUEST", false, json!({}), &[]),
        (Error::Unauthorized, 401, "UNAUTHORIZED", false, json!({}), &["www-authenticate: Bearer"]),
        (Error::forbidden("no"), 403, "FORBIDDEN", false, json!({}), &[]),
        (Error::TenantForbidden("no".into()), 403, "FORBIDDEN", false, json!({}), &[]),
        (Error::not_found(Resource::Route, "/x"), 404, "ROUTE_NOT_FOUND", false, json!({}), &[]),
        (Error::not_found(Resource::Entry, "x"), 404, "MEMORY_NOT_FOUND", false, json!({}), &[]),
        (Error::MethodNotAllowed, 405, "METHOD_NOT_ALLOWED", false, json!({}), &[]),
        (Error::Conflict("no".into()), 409, "INVALID_STATE", false, json!({}), &[]),
        (
            Error::TooLarge { max_bytes: 10, actual_bytes: Some(11) },
            413,
            "REQUEST_TOO_LARGE",
            false,
            json!({"maxBytes": 10}),
            &[],
        ),
        (Error::UnsupportedMediaType, 415, "UNSUPPORTED_MEDIA_TYPE", false, json!({}), &[]),
        (
            Error::QuotaExceeded(Box::new(quota)),
            429,
            "RATE_LIMITED",
            true,
            json!({"retryAfterSeconds": 7}),
            &["retry-after: 7"],
        ),
        (Error::Internal("a secret".into()), 500, "INTERNAL_ERROR", false, json!({}), &[]),
        (Error::SearchDisabled, 501, "NOT_IMPLEMENTED", false, json!({}), &[]),
        (
            Error::Overloaded { retry_after_seconds: 2 },
            503,
            "PROVIDER_ERROR",
            true,
            json!({"provider": "embedded"}),
            &["retry-after: 2"],
        ),
        (
            Error::StorageUnavailable("the disk is full".into()),
            503,
            "PROVIDER_ERROR",
            true,
            json!({"provider": "embedded"}),
            &["retry-after: 5"],
        ),
        (
            Error::IdentityProviderUnavailable,
            503,
            "PROVIDER_ERROR",
            true,
            json!({"provider": "identity"}),
            &["retry-after: 5"],
        ),
        (Error::Timeout, 504, "TIMEOUT", true, json!({}), &[]),
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
    let refusal = Refusal::new(Code::EmbeddingFailed, "later").with("retryAfterSeconds", 30);
    let (status, headers, _) = rendered(refusal).await;
    assert_eq!((status, headers), (503, vec!["retry-after: 30".to_owned()]));
}
