//! Streams that survive their connections.

use crate::support::*;
use futures_util::{StreamExt, TryStreamExt};
use memloom_client::ConversationId;
use memloom_client::admin::EvictRequest;
use memloom_client::changes::FeedEvent;
use memloom_client::conversations::ResponseEvent;

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
    assert!(
        matches!(told.as_slice(), [Ok(40), Err(error)] if error.to_string().contains("disk is full")),
        "{told:?}"
    );
    assert_eq!(stage.count(), 1, "an eviction is a change");
}
