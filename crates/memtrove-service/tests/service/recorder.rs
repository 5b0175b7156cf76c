//! Responses are recorded and replayed: on one node, and on several that find each other by PostgreSQL or by Redis.

mod nodes;
mod one_node;

use memtrove_core::ConversationId;
use memtrove_core::identity::Caller;
use memtrove_service::Services;
use memtrove_service::conversations::CreateConversation;
use memtrove_service::recorder::{Address, EndReason, Recording, RecordingReader, Replay};
use std::time::Duration;

/// Far more than anything here takes that is to be at once.
const AT_ONCE: Duration = Duration::from_secs(1);

async fn conversation(services: &Services, owner: &Caller) -> ConversationId {
    services.conversations.create(owner, CreateConversation::default()).await.unwrap().id
}

async fn record(services: &Services, caller: &Caller, id: ConversationId) -> Recording {
    services.recorder.record(caller, id, None).await.unwrap()
}

/// What there is to replay, which is here.
async fn reader(services: &Services, caller: &Caller, id: ConversationId) -> RecordingReader {
    match services.recorder.replay(caller, id, None).await.unwrap() {
        Replay::Here(reader) => reader,
        Replay::Elsewhere(address) => panic!("it is at {address}"),
        Replay::Nothing => panic!("there is nothing"),
    }
}

async fn read(mut reader: RecordingReader) -> String {
    let mut text = String::new();
    while let Some(more) = reader.next().await.unwrap() {
        text.push_str(&more);
    }
    text
}

/// All that is replayed here; nothing where there is nothing.
async fn replayed(services: &Services, caller: &Caller, id: ConversationId) -> Option<String> {
    match services.recorder.replay(caller, id, None).await.unwrap() {
        Replay::Here(reader) => Some(read(reader).await),
        Replay::Elsewhere(address) => panic!("it is at {address}"),
        Replay::Nothing => None,
    }
}

/// Where it is replayed instead.
async fn elsewhere(services: &Services, caller: &Caller, id: ConversationId) -> Option<Address> {
    match services.recorder.replay(caller, id, None).await.unwrap() {
        Replay::Elsewhere(address) => Some(address),
        Replay::Here(_) | Replay::Nothing => None,
    }
}

async fn in_progress(services: &Services, caller: &Caller, id: ConversationId) -> bool {
    !services.recorder.check(caller, vec![id]).await.unwrap().is_empty()
}

/// Why a recording has to stop, which it has to soon.
async fn ended_within(recording: &Recording, time: Duration) -> EndReason {
    tokio::time::timeout(time, recording.ended()).await.expect("a recording that goes on")
}

async fn goes_on(recording: &Recording) -> bool {
    tokio::time::timeout(Duration::ZERO, recording.ended()).await.is_err()
}
