//! What is sent again, how often, and after how long.

use crate::support::*;
use memtrove_client::conversations::CreateConversationRequest;

fn ok() -> Act {
    answer(200, json!({"service": "memtrove", "status": "ok"}))
}

#[tokio::test]
async fn a_read_outlives_what_passes() {
    for status in [429, 502, 503, 504] {
        let stage = Stage::playing([text(status, ""), text(status, ""), text(status, ""), ok()]);
        assert_eq!(stage.client().status().await.unwrap().service, "memtrove");
        assert_eq!(stage.count(), 4);
    }
}

#[tokio::test]
async fn there_is_one_attempt_more_than_retries() {
    for max_retries in [0, 2] {
        let stage = Stage::playing(vec![text(503, ""); 9]);
        let policy = RetryPolicy { max_retries, ..RetryPolicy::never() };
        let error = stage.builder().retry(policy).build().unwrap().status().await.unwrap_err();
        assert_eq!(error.api().unwrap().code, "HTTP_503");
        assert_eq!(stage.count(), max_retries as usize + 1);
    }
}

#[tokio::test]
async fn what_does_not_pass_is_asked_once() {
    for status in [400, 401, 404, 409, 412, 422, 500, 501] {
        let stage = Stage::playing([text(status, ""), ok()]);
        let error = stage.client().status().await.unwrap_err();
        assert_eq!(error.api().unwrap().status.as_u16(), status);
        assert_eq!(stage.count(), 1, "{status}");
    }
}

#[tokio::test]
async fn a_read_outlives_its_connection() {
    let cut = Act::Break(vec![], r#"{"service": "#.into());
    let stage = Stage::playing([Act::Drop, cut, ok()]);
    assert_eq!(stage.client().status().await.unwrap().status, "ok");
    assert_eq!(stage.count(), 3);
}

#[tokio::test]
async fn a_connection_that_keeps_breaking_is_a_transport_error() {
    let stage = Stage::playing(vec![Act::Drop; 9]);
    let error = stage.client().status().await.unwrap_err();
    assert!(matches!(error, Error::Transport { operation: "status", .. }), "{error:?}");
    assert_eq!(stage.count(), 4);
}

#[tokio::test]
async fn an_answer_that_does_not_come_is_waited_for_so_long() {
    let stage = Stage::playing([Act::Stall, ok()]);
    let client = stage.builder().timeout(Duration::from_secs(5)).build().unwrap();
    assert_eq!(client.status().await.unwrap().status, "ok");
    assert_eq!(stage.count(), 2);
}

#[tokio::test]
async fn a_download_that_does_not_begin_is_waited_for_so_long_and_one_that_began_is_read() {
    use memtrove_client::attachments::DownloadOptions;
    let stage = Stage::playing([Act::Stall, text(200, "the bytes"), Act::Stall]);
    let client = stage.builder().timeout(Duration::from_millis(500)).build().unwrap();
    let id = memtrove_client::AttachmentId(uuid::Uuid::nil());
    let download =
        tokio::time::timeout(Duration::from_secs(20), client.get_attachment(id, DownloadOptions::default()));
    let download = download.await.expect("it does not hang").unwrap();
    assert_eq!((download.bytes().await.unwrap(), stage.count()), ("the bytes".into(), 2));

    let client =
        stage.builder().timeout(Duration::from_millis(200)).retry(RetryPolicy::never()).build().unwrap();
    let error = client.get_attachment(id, DownloadOptions::default()).await.unwrap_err();
    assert!(matches!(error, Error::Transport { operation: "get_attachment", .. }), "{error}");
}

#[tokio::test]
async fn the_service_says_how_long_to_wait() {
    let patient = Duration::from_secs(120);
    let policy = RetryPolicy { max_retries: 1, base_delay: patient, max_delay: patient };
    let stage = Stage::playing([with(text(429, ""), "retry-after", "1"), ok()]);
    let before = Instant::now();
    stage.builder().retry(policy).build().unwrap().status().await.unwrap();
    let waited = before.elapsed();
    assert!(waited >= Duration::from_secs(1) && waited < patient, "{waited:?}");
}

#[tokio::test]
async fn searches_are_reads() {
    let stage = Stage::playing([text(503, ""), answer(200, json!({"results": []}))]);
    assert!(stage.client().search_events(&alice(), Default::default()).await.unwrap().is_empty());
    assert_eq!(stage.count(), 2);
}

#[tokio::test]
async fn a_change_is_sent_once() {
    let event = alice().event("e1", "something happened");
    for act in [text(503, ""), Act::Drop] {
        let stage = Stage::playing([act.clone(), text(202, "")]);
        assert!(stage.client().write_event(&alice(), &event).await.is_err());
        assert_eq!(stage.count(), 1);
        let stage = Stage::playing([act, text(202, "")]);
        assert!(stage.client().create_conversation(CreateConversationRequest::default()).await.is_err());
        assert_eq!(stage.count(), 1);
    }
}

#[tokio::test]
async fn a_change_with_a_key_is_retried_by_those_who_ask_for_it() {
    let event = alice().event("e1", "something happened");
    let stage = Stage::playing([Act::Drop, text(503, ""), text(202, "")]);
    let client = stage.client().with_options(CallOptions::idempotent("key-1"));
    client.write_event(&alice(), &event).await.unwrap();
    let keys: Vec<String> =
        stage.seen().iter().map(|seen| seen.header("idempotency-key").to_owned()).collect();
    assert_eq!(keys, ["key-1"; 3]);

    let stage = Stage::playing([text(503, ""), text(202, "")]);
    let options = CallOptions { retry: false, ..CallOptions::idempotent("key-1") };
    assert!(stage.client().with_options(options).write_event(&alice(), &event).await.is_err());
    assert_eq!(stage.count(), 1);
}

#[tokio::test]
async fn a_key_that_would_mean_nothing_is_refused() {
    let stage = Stage::playing([]);
    let client = stage.client().with_options(CallOptions::idempotent("key-1"));
    let error = client.create_conversation(CreateConversationRequest::default()).await.unwrap_err();
    assert!(matches!(&error, Error::InvalidInput(why) if why.contains("create_conversation")), "{error}");
    assert_eq!(stage.count(), 0);
}

#[tokio::test]
async fn an_event_query_is_sent_as_the_service_reads_it() {
    use memtrove_client::{EventQuery, Timestamp};
    let stage = Stage::playing([answer(200, json!({"results": []}))]);
    let query = EventQuery { from: Some(Timestamp::from_micros(0)), top_k: Some(3), ..EventQuery::default() };
    stage.client().search_events(&alice(), query).await.unwrap();
    assert_eq!(stage.seen()[0].body, r#"{"from":"1970-01-01T00:00:00.000000Z","top_k":3}"#);
}

#[tokio::test]
async fn any_version_is_meant_by_a_star() {
    use memtrove_client::{DeleteRequest, FileVersion};
    let gone = || answer(200, json!({"path": "a.md", "etag": "\"1\""}));
    let stage = Stage::playing([gone(), gone()]);
    let client = stage.client();
    let file = client.delete_file(&alice(), &path("a.md"), DeleteRequest::default(), FileVersion::Any).await;
    client.delete_file(&alice(), &path("a.md"), DeleteRequest::default(), &file.unwrap().etag).await.unwrap();
    let asked: Vec<String> = stage.seen().iter().map(|seen| seen.header("if-match").to_owned()).collect();
    assert_eq!(asked, ["*", "\"1\""]);
}
