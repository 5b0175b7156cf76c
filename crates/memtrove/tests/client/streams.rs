//! Streams over a line that is cut: nothing is told twice or left out.

use crate::openspec::entry;
use crate::support::*;
use memtrove_client::ConversationId;
use memtrove_client::changes::FeedEvent;
use memtrove_client::conversations::{CreateConversationRequest, CreateEntryRequest, ResponseEvent};
use memtrove_client::openspec::{KnowledgeIdentifiers, StreamKnowledge};
use memtrove_proto::v1::RecordRequest;
use memtrove_proto::v1::response_recorder_service_client::ResponseRecorderServiceClient;
use std::pin::pin;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;

fn number(event: FeedEvent) -> i64 {
    match event {
        FeedEvent::Change(change) => change.sequence,
        FeedEvent::Gap(gap) => panic!("{gap:?}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_change_feed_goes_on_over_a_new_connection() {
    let world = World::new();
    let line = Line::to(&world.server);
    let alice = world.agent("alice");
    let chat = alice.create_conversation(CreateConversationRequest::titled("Chat")).await.unwrap().id;
    let mut feed = pin!(world.admin_at(line.url()).follow_changes(Some(0)));
    let mut last = number(next(&mut feed).await);
    assert_eq!(last, 1);
    for round in 0..3 {
        alice.append_entry(chat, CreateEntryRequest::message("USER", format!("{round}"))).await.unwrap();
        let told = number(next(&mut feed).await);
        assert_eq!(told, last + 1);
        last = told;
        assert_eq!(line.cut(), 1, "the feed has one connection");
        // What happens while nobody is connected is told, too.
        alice.append_entry(chat, CreateEntryRequest::message("AI", "indeed")).await.unwrap();
        let told = number(next(&mut feed).await);
        assert_eq!(told, last + 1);
        last = told;
    }
}

/// An agent that gives a response over gRPC.
struct Recording {
    pieces: mpsc::Sender<RecordRequest>,
    call: tokio::task::JoinHandle<Result<tonic::Response<memtrove_proto::v1::RecordResponse>, tonic::Status>>,
}

impl Recording {
    async fn begin(world: &World, user: &str, id: ConversationId) -> Self {
        let channel = tonic::transport::Endpoint::from_shared(world.server.url().to_owned()).unwrap();
        let mut client = ResponseRecorderServiceClient::new(channel.connect_lazy());
        let (pieces, receiver) = mpsc::channel(16);
        let id = bytes::Bytes::copy_from_slice(id.0.as_bytes());
        pieces.send(RecordRequest { conversation_id: id, ..RecordRequest::default() }).await.unwrap();
        let mut request = tonic::Request::new(ReceiverStream::new(receiver));
        for (name, value) in [("authorization", format!("Bearer {user}")), ("x-api-key", "agent-a".into())] {
            request.metadata_mut().insert(name, value.parse().unwrap());
        }
        request.metadata_mut().insert("x-tenant-id", world.tenant.parse().unwrap());
        let call = tokio::spawn(async move { client.record(request).await });
        Self { pieces, call }
    }

    async fn say(&self, content: &str) {
        self.pieces
            .send(RecordRequest { content: content.into(), ..RecordRequest::default() })
            .await
            .unwrap();
    }
}

/// Replays until this much was told.
async fn read(
    stream: &mut (impl Stream<Item = memtrove_client::Result<ResponseEvent>> + Unpin),
    expected: &str,
) {
    let mut text = String::new();
    while text.len() < expected.len() {
        match next(stream).await {
            ResponseEvent::Piece { content, .. } => text.push_str(&content),
            other => panic!("{other:?} after {text:?}"),
        }
    }
    assert_eq!(text, expected);
}

/// A replay that has begun: before its agent is heard, there is nothing to replay.
async fn replay(
    client: &Client,
    id: ConversationId,
) -> impl Stream<Item = memtrove_client::Result<ResponseEvent>> + Unpin {
    let deadline = std::time::Instant::now() + PATIENCE;
    loop {
        let mut stream = Box::pin(client.replay_response(id, None)).peekable();
        if std::pin::Pin::new(&mut stream).peek().await.is_some() {
            return stream;
        }
        assert!(std::time::Instant::now() < deadline, "the recording never began");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replay_goes_on_over_a_new_connection() {
    let world = World::new();
    let line = Line::to(&world.server);
    let (alice, afar) = (world.agent("alice"), world.agent_at(line.url(), "alice"));
    let chat = alice.create_conversation(CreateConversationRequest::titled("Chat")).await.unwrap().id;
    let recording = Recording::begin(&world, "alice", chat).await;
    recording.say("Once upon").await;
    let mut told = replay(&afar, chat).await;
    read(&mut told, "Once upon").await;
    assert!(line.cut() >= 1);
    recording.say(" a time").await;
    read(&mut told, " a time").await;
    recording.say(" there was").await;
    recording.pieces.send(RecordRequest { complete: true, ..RecordRequest::default() }).await.unwrap();
    read(&mut told, " there was").await;
    assert_eq!(next(&mut told).await, ResponseEvent::End { status: "success".into() });
    assert!(told.next().await.is_none());
    recording.call.await.unwrap().unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_response_can_be_cancelled() {
    let world = World::new();
    let alice = world.agent("alice");
    let chat = alice.create_conversation(CreateConversationRequest::titled("Chat")).await.unwrap().id;
    let recording = Recording::begin(&world, "alice", chat).await;
    recording.say("Well,").await;
    let mut told = replay(&alice, chat).await;
    read(&mut told, "Well,").await;
    alice.cancel_response(chat).await.unwrap();
    assert_eq!(next(&mut told).await, ResponseEvent::End { status: "cancelled".into() });
}

#[tokio::test(flavor = "multi_thread")]
async fn the_stream_of_knowledge_goes_on_over_a_new_connection() {
    let world = World::new();
    let line = Line::to(&world.server);
    let erin = world.agent("erin");
    let request = StreamKnowledge {
        identifiers: KnowledgeIdentifiers { user_id: Some("erin".into()), ..KnowledgeIdentifiers::default() },
        ..StreamKnowledge::default()
    };
    let mut told = pin!(world.agent_at(line.url(), "erin").stream_knowledge(request));
    assert_eq!(next(&mut told).await.name, "ready");
    let mut last = 0;
    for text in ["Erin keeps bees", "Erin sells honey"] {
        erin.create_knowledge(entry("erin", text)).await.unwrap();
        loop {
            let event = next(&mut told).await;
            match event.name.as_str() {
                "ready" => continue,
                "created" => {
                    assert!(event.id > Some(last), "{event:?} after {last}");
                    last = event.id.unwrap();
                    break;
                }
                _ => panic!("{event:?}"),
            }
        }
        assert_eq!(line.cut(), 1);
    }
}
