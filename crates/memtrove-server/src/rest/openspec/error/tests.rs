use super::*;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, RETRY_AFTER};
use http_body_util::BodyExt;
use memtrove_core::Timestamp;
use memtrove_core::memories::Code;
use serde_json::json;

async fn rendered(operation: &'static str, error: Error) -> (http::response::Parts, Value) {
    let response = render(error, RequestInfo { id: "r-1", operation });
    let (head, body) = response.into_parts();
    assert_eq!(head.headers[CONTENT_TYPE], "application/json; charset=utf-8");
    assert_eq!(head.headers[CACHE_CONTROL], "no-store");
    assert_eq!(head.headers["x-provider-version"], env!("CARGO_PKG_VERSION"));
    (head, serde_json::from_slice(&body.collect().await.unwrap().to_bytes()).unwrap())
}

#[tokio::test]
async fn a_refusal_has_the_status_of_the_contract_and_the_number_of_the_protocol() {
    for code in Code::ALL.iter().filter(|code| code.is_of_memories()) {
        let (head, body) = rendered("openspec.create", Error::new(*code, "no").with("field", "x")).await;
        let number = match code {
            Code::EmbeddingFailed | Code::EmbeddingRefused => 1001,
            Code::ProviderFailed | Code::ProviderUnavailable => 1002,
            _ => head.status.as_u16(),
        };
        let error = json!({"code": number, "name": code.as_str(), "message": "no", "retryable": code.retryable(),
            "operation": "openspec.create", "details": {"field": "x"}});
        assert_eq!(body["error"], error, "{code:?}");
        assert_eq!(body["request_id"], "r-1");
        assert!(Timestamp::parse(body["timestamp"].as_str().unwrap()).is_some(), "{body}");
        assert_eq!(head.headers.contains_key(RETRY_AFTER), head.status == 503, "{code:?}");
    }
}

#[tokio::test]
async fn the_protocol_tells_failed_queries_and_batches_from_failed_storage() {
    let overloaded = || Error::overloaded(1);
    for (operation, number) in
        [("openspec.query", 1003), ("openspec.batch", 1004), ("openspec.replace", 1002)]
    {
        let (head, body) = rendered(operation, overloaded()).await;
        assert_eq!((head.status.as_u16(), &body["error"]["code"]), (503, &json!(number)), "{operation}");
    }
}
