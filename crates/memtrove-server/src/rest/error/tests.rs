use super::*;
use http_body_util::BodyExt;
use memtrove_core::Resource;

/// Status, the headers that say something, and the body, byte for byte.
async fn rendered(error: Error) -> String {
    let response = render(error);
    let mut text = response.status().to_string();
    for name in [WWW_AUTHENTICATE, RETRY_AFTER] {
        if let Some(value) = response.headers().get(&name) {
            text += &format!("\n{name}: {}", value.to_str().unwrap());
        }
    }
    assert_eq!(response.headers()[CONTENT_TYPE], "application/json; charset=utf-8");
    let body = response.into_body().collect().await.unwrap().to_bytes();
    format!("{text}\n{}", String::from_utf8(body.to_vec()).unwrap())
}

#[tokio::test]
async fn invalid() {
    let error = Error::violations(vec![
        Violation { field: "limit".into(), message: "must be at most 200".into() },
        Violation { field: "title".into(), message: "must be at most 500 characters".into() },
    ]);
    insta::assert_snapshot!(rendered(error).await, @r#"
    400 Bad Request
    {"error":"Validation failed","code":"validation_error","details":{"violations":[{"field":"limit","message":"must be at most 200"},{"field":"title","message":"must be at most 500 characters"}]}}
    "#);
}

#[tokio::test]
async fn bad_request() {
    let error = Error::bad_request("userId does not match the authenticated user");
    insta::assert_snapshot!(rendered(error).await, @r#"
    400 Bad Request
    {"error":"Bad request","code":"bad_request","details":{"message":"userId does not match the authenticated user"}}
    "#);
}

#[tokio::test]
async fn justification_required() {
    let error = Error::JUSTIFICATION_REQUIRED;
    insta::assert_snapshot!(rendered(error).await, @r#"
    400 Bad Request
    {"error":"Justification is required for admin operations","code":"JUSTIFICATION_REQUIRED"}
    "#);
}

#[tokio::test]
async fn unauthorized() {
    let error = Error::UNAUTHORIZED;
    insta::assert_snapshot!(rendered(error).await, @r#"
    401 Unauthorized
    www-authenticate: Bearer
    {"error":"Unauthorized","code":"unauthorized"}
    "#);
}

#[tokio::test]
async fn forbidden() {
    let error = Error::forbidden("only the owner may delete");
    insta::assert_snapshot!(rendered(error).await, @r#"
    403 Forbidden
    {"error":"Forbidden","code":"forbidden","details":{"message":"only the owner may delete"}}
    "#);
}

#[tokio::test]
async fn not_found() {
    let error = Error::not_found(Resource::Conversation, "not-a-uuid");
    insta::assert_snapshot!(rendered(error).await, @r#"
    404 Not Found
    {"error":"Not found","code":"not_found","details":{"resource":"conversation","id":"not-a-uuid"}}
    "#);
}

#[tokio::test]
async fn method_not_allowed() {
    let error = Error::METHOD_NOT_ALLOWED;
    insta::assert_snapshot!(rendered(error).await, @r#"
    405 Method Not Allowed
    {"error":"Method not allowed","code":"method_not_allowed"}
    "#);
}

#[tokio::test]
async fn conflict() {
    let error = Error::conflict("the conversation is not deleted");
    insta::assert_snapshot!(rendered(error).await, @r#"
    409 Conflict
    {"error":"Conflict","code":"conflict","details":{"message":"the conversation is not deleted"}}
    "#);
}

#[tokio::test]
async fn transfer_already_pending() {
    let error = Error::transfer_already_pending(Uuid::from_u128(7));
    insta::assert_snapshot!(rendered(error).await, @r#"
    409 Conflict
    {"error":"A pending ownership transfer already exists for this conversation","code":"TRANSFER_ALREADY_PENDING","existingTransferId":"00000000-0000-0000-0000-000000000007"}
    "#);
}

#[tokio::test]
async fn too_large() {
    let error = Error::too_large(10, Some(11));
    insta::assert_snapshot!(rendered(error).await, @r#"
    413 Payload Too Large
    {"error":"Payload too large","code":"payload_too_large","details":{"maxBytes":10,"actualBytes":11}}
    "#);
}

#[tokio::test]
async fn too_large_by_an_unknown_amount() {
    let error = Error::too_large(10, None);
    insta::assert_snapshot!(rendered(error).await, @r#"
    413 Payload Too Large
    {"error":"Payload too large","code":"payload_too_large","details":{"maxBytes":10}}
    "#);
}

#[tokio::test]
async fn unsupported_media_type() {
    let error = Error::UNSUPPORTED_MEDIA_TYPE;
    insta::assert_snapshot!(rendered(error).await, @r#"
    415 Unsupported Media Type
    {"error":"Unsupported media type","code":"unsupported_media_type"}
    "#);
}

#[tokio::test]
async fn timeout() {
    let error = Error::TIMEOUT;
    insta::assert_snapshot!(rendered(error).await, @r#"
    504 Gateway Timeout
    {"error":"Request timed out","code":"timeout","details":{"message":"the request took too long; it may have been carried out, so repeat it with the same Idempotency-Key or look first"}}
    "#);
}

#[tokio::test]
async fn search_type_unavailable() {
    let error = Error::search_type_unavailable("semantic", vec!["fulltext", "auto"]);
    insta::assert_snapshot!(rendered(error).await, @r#"
    501 Not Implemented
    {"error":"search_type_unavailable","message":"search type 'semantic' is not available","availableTypes":["fulltext","auto"]}
    "#);
}

#[tokio::test]
async fn search_disabled() {
    let error = Error::SEARCH_DISABLED;
    insta::assert_snapshot!(rendered(error).await, @r#"
    501 Not Implemented
    {"error":"Search disabled","code":"search_store_disabled","details":{"message":"search is disabled on this server"}}
    "#);
}

#[tokio::test]
async fn semantic_search_unavailable() {
    let error = Error::semantic_unavailable("it answered 500");
    insta::assert_snapshot!(rendered(error).await, @r#"
    503 Service Unavailable
    retry-after: 5
    {"error":"Semantic search unavailable","code":"semantic_search_unavailable","details":{"message":"search by meaning is not available at the moment: search with 'fulltext', or try again later"}}
    "#);
}

#[tokio::test]
async fn prometheus_not_configured() {
    let error = Error::PROMETHEUS_NOT_CONFIGURED;
    insta::assert_snapshot!(rendered(error).await, @r#"
    501 Not Implemented
    {"error":"Prometheus not configured","code":"prometheus_not_configured","details":{"message":"no Prometheus server is configured: set prometheus.url"}}
    "#);
}

#[tokio::test]
async fn prometheus_unavailable() {
    let error = Error::PROMETHEUS_UNAVAILABLE;
    insta::assert_snapshot!(rendered(error).await, @r#"
    503 Service Unavailable
    {"error":"Prometheus unavailable","code":"prometheus_unavailable","details":{"message":"the Prometheus server did not answer"}}
    "#);
}

#[tokio::test]
async fn overloaded() {
    let error = Error::overloaded(3);
    insta::assert_snapshot!(rendered(error).await, @r#"
    503 Service Unavailable
    retry-after: 3
    {"error":"Overloaded","code":"overloaded","details":{"retryAfterSeconds":3}}
    "#);
}

#[tokio::test]
async fn storage_unavailable() {
    let error = Error::storage_unavailable("the disk is full: free space in /var/lib/memtrove");
    insta::assert_snapshot!(rendered(error).await, @r#"
    503 Service Unavailable
    retry-after: 5
    {"error":"Storage unavailable","code":"storage_unavailable","details":{"message":"the store is not available at the moment; nothing was written, try again later"}}
    "#);
}

#[tokio::test]
async fn an_identity_provider_that_is_away_is_not_the_callers_fault() {
    insta::assert_snapshot!(rendered(Error::IDENTITY_PROVIDER_UNAVAILABLE).await, @r#"
    503 Service Unavailable
    retry-after: 5
    {"error":"Identity provider unavailable","code":"identity_provider_unavailable","details":{"message":"the identity provider cannot be reached, so nobody can sign in; try again later"}}
    "#);
}

#[tokio::test]
async fn internal_keeps_its_text_to_itself() {
    let error = Error::internal("row 7 of secrets");
    insta::assert_snapshot!(rendered(error).await, @r#"
    500 Internal Server Error
    {"error":"Internal server error","code":"internal_error"}
    "#);
}
