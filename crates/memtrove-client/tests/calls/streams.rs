//! Streams that survive their connections.

use crate::support::*;
use futures_util::{StreamExt, TryStreamExt};
use memtrove_client::ConversationId;
use memtrove_client::admin::EvictRequest;
use memtrove_client::changes::FeedEvent;
use memtrove_client::conversations::ResponseEvent;

fn change(number: i64) -> String {
    let data = json!({"sequence": number, "at": "2026-01-31T12:00:00.000000Z", "kind": "file.created",
        "user": "alice", "resource": "a.md", "version": null});
    format!("id: {number}\nevent: file.created\ndata: {data}\n\n")
}

#[tokio::test]
async fn a_feed_goes_on_behind_what_was_told() {
    let stage = Stage::playing([
        events(&format!("id: 4\n\n{}{}", change(5), change(6))),
        Act::Drop,
        text(503, ""),
        events(&format!("event: gap\ndata: {{\"oldest\":8}}\n\n{}", change(8))),
    ]);
    let feed: Vec<FeedEvent> = stage.client().follow_changes(None).take(4).try_collect().await.unwrap();
    let told: Vec<i64> = feed
        .iter()
        .map(|event| match event {
            FeedEvent::Change(change) => change.sequence,
            FeedEvent::Gap(gap) => -gap.oldest,
        })
        .collect();
    assert_eq!(told, [5, 6, -8, 8]);
    let resumed: Vec<String> =
        stage.seen().iter().map(|seen| seen.header("last-event-id").to_owned()).collect();
    assert_eq!(resumed, ["", "6", "6", "6"]);
    assert_eq!(stage.seen()[0].header("accept"), "text/event-stream");
}

#[tokio::test]
async fn a_feed_resumes_from_where_it_began_if_nothing_happened() {
    let stage = Stage::playing([events("id: 4\n\n"), events(&change(5))]);
    let mut feed = std::pin::pin!(stage.client().follow_changes(None));
    assert!(matches!(feed.next().await, Some(Ok(FeedEvent::Change(change))) if change.sequence == 5));
    assert_eq!(stage.seen()[1].header("last-event-id"), "4");
}

#[tokio::test]
async fn a_feed_that_never_says_anything_is_given_up() {
    let stage = Stage::playing(vec![events(""); 9]);
    let feed: Vec<_> = stage.client().follow_changes(Some(3)).collect().await;
    assert!(matches!(feed.as_slice(), [Err(Error::Transport { .. })]), "{feed:?}");
    assert_eq!(stage.count(), 4);
}

#[tokio::test]
async fn a_feed_outlives_a_service_that_is_away_for_longer_than_a_call_waits() {
    let mut script = vec![events(&change(5))];
    script.extend(vec![Act::Drop; 13]);
    script.extend([429, 502, 503, 504].map(|status| vec![text(status, ""); 5]).into_iter().flatten());
    script.push(events(&change(6)));
    let stage = Stage::playing(script);
    let mut feed = std::pin::pin!(stage.client().follow_changes(Some(4)));
    for number in [5, 6] {
        let told = feed.next().await;
        assert!(
            matches!(&told, Some(Ok(FeedEvent::Change(change))) if change.sequence == number),
            "{told:?}"
        );
    }
    assert_eq!((stage.count(), stage.seen()[34].header("last-event-id")), (35, "5"));
}

#[tokio::test]
async fn a_feed_that_broke_before_it_said_anything_still_outlives_the_service() {
    let mut script = vec![events("")];
    script.extend(vec![Act::Drop; 13]);
    script.push(events(&change(5)));
    let stage = Stage::playing(script);
    let told = std::pin::pin!(stage.client().follow_changes(Some(4))).next().await;
    assert!(matches!(told, Some(Ok(FeedEvent::Change(change))) if change.sequence == 5));
}

#[tokio::test]
async fn a_feed_that_cannot_even_begin_is_given_up() {
    let stage = Stage::playing(vec![Act::Drop; 30]);
    let feed: Vec<_> = stage.client().follow_changes(Some(3)).collect().await;
    assert!(matches!(feed.as_slice(), [Err(Error::Transport { .. })]), "{feed:?}");
    assert_eq!(stage.count(), 4);
}

#[tokio::test]
async fn who_retries_nothing_hears_of_the_first_break() {
    let stage = Stage::playing([events(&change(5)), events(&change(6))]);
    let client = stage.builder().retry(RetryPolicy::never()).build().unwrap();
    let feed: Vec<_> = client.follow_changes(Some(4)).collect().await;
    assert!(matches!(feed.as_slice(), [Ok(_), Err(Error::Transport { .. })]), "{feed:?}");
    assert_eq!(stage.count(), 1);
}

#[tokio::test]
async fn a_connection_that_nothing_is_heard_on_is_replaced() {
    let stage = Stage::playing([silence_after(&change(5)), events(&change(6))]);
    let client = stage.builder().stream_idle_timeout(Duration::from_millis(200)).build().unwrap();
    let feed = client.follow_changes(Some(4)).take(2).try_collect::<Vec<_>>();
    let feed = tokio::time::timeout(Duration::from_secs(20), feed).await.expect("it does not hang").unwrap();
    assert_eq!((feed.len(), stage.count()), (2, 2));
    assert_eq!(stage.seen()[1].header("last-event-id"), "5");
}

#[tokio::test]
async fn an_event_that_never_ends_ends_the_stream() {
    let long = "x".repeat(1000);
    let endless =
        [format!("data: {long}\n"), long.clone(), format!("event: {long}\nid: {long}\ndata: {long}\n")];
    for text in endless {
        let stage = Stage::playing([forever(&text), events(&change(5))]);
        let client = stage.builder().max_event_bytes(1 << 20).build().unwrap();
        let feed: Vec<_> = client.follow_changes(Some(4)).collect().await;
        let [Err(error @ Error::Decode { .. })] = feed.as_slice() else { panic!("{feed:?}") };
        assert!(error.to_string().contains("longer than 1048576 bytes (max_event_bytes)"), "{error}");
        assert_eq!(stage.count(), 1, "it would come again");
    }
}

#[tokio::test]
async fn many_events_may_be_longer_than_one_may_be() {
    let stage = Stage::playing([forever(&format!(": {}\n\n{}", "x".repeat(900), change(5)))]);
    let client = stage.builder().max_event_bytes(1000).build().unwrap();
    let feed: Vec<_> = client.follow_changes(Some(4)).take(5000).try_collect().await.unwrap();
    assert_eq!((feed.len(), stage.count()), (5000, 1));
}

#[tokio::test]
async fn a_stream_that_does_not_begin_is_asked_for_again() {
    let stage = Stage::playing([Act::Stall, events(&change(5))]);
    let client = stage.builder().timeout(Duration::from_millis(500)).build().unwrap();
    let mut feed = std::pin::pin!(client.follow_changes(Some(4)));
    let told = tokio::time::timeout(Duration::from_secs(20), feed.next()).await.expect("it does not hang");
    assert!(matches!(told, Some(Ok(FeedEvent::Change(change))) if change.sequence == 5));
    assert_eq!(stage.count(), 2);
}

#[tokio::test]
async fn a_feed_that_is_only_kept_alive_goes_on() {
    let mut quiet = vec![events(": keep-alive\n\n"); 9];
    quiet.push(answer(403, json!({"error": "Forbidden", "code": "forbidden"})));
    let stage = Stage::playing(quiet);
    let feed: Vec<_> = stage.client().follow_changes(Some(3)).collect().await;
    assert!(matches!(feed.as_slice(), [Err(Error::Api(_))]), "{feed:?}");
    assert_eq!(stage.count(), 10);
}

#[tokio::test]
async fn a_refused_feed_says_why() {
    let stage = Stage::playing([answer(403, json!({"error": "Forbidden", "code": "forbidden"}))]);
    let feed: Vec<_> = stage.client().follow_changes(None).collect().await;
    assert!(matches!(feed.as_slice(), [Err(Error::Api(error))] if error.code == "forbidden"), "{feed:?}");
}

#[tokio::test]
async fn a_replay_resumes_and_ends() {
    let stage = Stage::playing([
        events("id: r:5\ndata: {\"content\":\"Hello\"}\n\nid: r:9\ndata: {\"cont"),
        events(
            "id: r:11\ndata: {\"content\":\" world\"}\n\nid: r:end\nevent: end\ndata: {\"status\":\"success\"}\n\n",
        ),
    ]);
    let id = ConversationId(uuid::Uuid::nil());
    let told: Vec<ResponseEvent> = stage.client().replay_response(id, None).try_collect().await.unwrap();
    let piece =
        |content: &str, id: &str| ResponseEvent::Piece { content: content.into(), id: Some(id.into()) };
    let end = ResponseEvent::End { status: "success".into() };
    assert_eq!(told, [piece("Hello", "r:5"), piece(" world", "r:11"), end]);
    let resumed = stage.seen()[1].header("last-event-id").to_owned();
    assert_eq!((stage.count(), resumed.as_str()), (2, "r:5"), "behind the last event that was whole");
}

#[tokio::test]
async fn nothing_to_replay_is_an_empty_stream() {
    let stage = Stage::playing([Act::Answer(204, vec![], String::new())]);
    let told: Vec<_> =
        stage.client().replay_response(ConversationId(uuid::Uuid::nil()), None).collect().await;
    assert!(told.is_empty(), "{told:?}");
}

#[tokio::test]
async fn progress_is_told_once_and_a_failure_is_an_error() {
    let stage = Stage::playing([Act::Answer(
        200,
        vec![],
        "data: {\"progress\": 40}\n\nevent: error\ndata: {\"error\": \"the disk is full\"}\n\n".into(),
    )]);
    let told: Vec<_> = stage.client().admin().evict_with_progress(EvictRequest::default()).collect().await;
    let [Ok(40), Err(Error::Api(refusal))] = told.as_slice() else { panic!("{told:?}") };
    assert_eq!((refusal.status.as_u16(), refusal.code.as_str()), (500, "eviction_failed"));
    assert_eq!(refusal.message, "the disk is full");
    assert_eq!(stage.count(), 1, "an eviction is a change");
}

#[tokio::test]
async fn progress_that_ends_before_the_end_is_an_error() {
    let progress = |percents: &[u8]| {
        let events = percents.iter().map(|percent| format!("data: {{\"progress\": {percent}}}\n\n"));
        Act::Answer(200, vec![], events.collect())
    };
    let stage = Stage::playing([progress(&[0, 40]), progress(&[]), progress(&[0, 100])]);
    let admin = stage.client().admin();
    let told: Vec<_> = admin.evict_with_progress(EvictRequest::default()).collect().await;
    let [Ok(0), Ok(40), Err(error)] = told.as_slice() else { panic!("{told:?}") };
    assert!(matches!(error, Error::Transport { .. }) && error.to_string().contains("40 of 100"), "{error}");
    let told: Vec<_> = admin.evict_with_progress(EvictRequest::default()).collect().await;
    assert!(matches!(told.as_slice(), [Err(Error::Transport { .. })]), "{told:?}");
    let told: Vec<_> = admin.evict_with_progress(EvictRequest::default()).collect().await;
    assert!(matches!(told.as_slice(), [Ok(0), Ok(100)]), "{told:?}");
}
