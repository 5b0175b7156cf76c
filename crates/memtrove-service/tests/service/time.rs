//! What depends on the clock: ties, expiry, retention.

use crate::world::{World, caller, principal};
use memtrove_core::conversations::{Channel, ListMode};
use memtrove_core::identity::Caller;
use memtrove_core::{Clock, Code, ConversationId, EntryId, Error, Json, Timestamp};
use memtrove_service::Settings;
use memtrove_service::conversations::{
    AppendRequest, EvictRequest, Idempotency, ListConversations, MemberLevel, NewTransfer,
};
use memtrove_store::AllTenants;
use memtrove_store::TxExt;
use tokio::sync::mpsc;

const HOUR: i64 = 3_600_000_000;

async fn world() -> World {
    World::new(Settings::default()).await
}

fn alice() -> Caller {
    caller("alice", None)
}

trait Talk {
    async fn say(&self, id: ConversationId, text: &str, key: Option<&str>) -> Result<EntryId, Error>;
    fn fresh(&self) -> ConversationId;
}

impl Talk for World {
    async fn say(&self, id: ConversationId, text: &str, key: Option<&str>) -> Result<EntryId, Error> {
        let content = Json::of(&[serde_json::json!({"role": "USER", "text": text})]).unwrap();
        let request = AppendRequest {
            channel: Some(Channel::History),
            content_type: Some("history".into()),
            content: Some(content),
            ..AppendRequest::default()
        };
        let api = &self.services.conversations;
        let idempotency = key
            .map(|key| Idempotency { key: key.into(), body: api.request_digest(&alice(), text.as_bytes()) });
        Ok(api.append(&alice(), id, request, idempotency).await?.id)
    }

    fn fresh(&self) -> ConversationId {
        ConversationId(self.clock.new_id())
    }
}

fn in_mode(mode: ListMode) -> ListConversations {
    ListConversations { mode, ..ListConversations::default() }
}

#[tokio::test]
async fn a_tie_on_the_update_time_gives_one_latest_fork() {
    let world = world().await;
    let root = world.fresh();
    let first = world.say(root, "one", None).await.unwrap();
    let api = &world.services.conversations;
    let mut ids = vec![root];
    for _ in 0..3 {
        ids.push(api.fork(&alice(), root, first, None).await.unwrap().id);
    }
    // The clock stands still, so all four carry the same time.
    let listed = api.list(&alice(), in_mode(ListMode::LatestFork)).await.unwrap().data;
    assert_eq!(listed.iter().map(|c| c.id).collect::<Vec<_>>(), [*ids.iter().max().unwrap()]);
    let all = api.list(&alice(), in_mode(ListMode::All)).await.unwrap().data;
    ids.sort_unstable_by(|a, b| b.cmp(a));
    assert_eq!(all.iter().map(|c| c.id).collect::<Vec<_>>(), ids, "equals are ordered by id, descending");
    world.say(root, "two", None).await.unwrap();
    let listed = api.list(&alice(), in_mode(ListMode::LatestFork)).await.unwrap().data;
    assert_eq!(
        listed.iter().map(|c| c.id).collect::<Vec<_>>(),
        [ids[0]],
        "the tie still goes to the greatest id"
    );
    world.clock.advance_micros(1);
    world.say(root, "three", None).await.unwrap();
    let listed = api.list(&alice(), in_mode(ListMode::LatestFork)).await.unwrap().data;
    assert_eq!(
        listed.iter().map(|c| c.id).collect::<Vec<_>>(),
        [root],
        "and time decides where there is no tie"
    );
}

#[tokio::test]
async fn an_idempotency_key_counts_for_a_day() {
    let world = world().await;
    let id = world.fresh();
    let first = world.say(id, "hello", Some("k")).await.unwrap();
    world.clock.advance_micros(24 * HOUR - 1);
    assert_eq!(world.say(id, "hello", Some("k")).await.unwrap(), first);
    assert!(matches!(world.say(id, "other", Some("k")).await, Err(Error { code: Code::Conflict, .. })));
    world.clock.advance_micros(2);
    let second = world.say(id, "other", Some("k")).await.unwrap();
    assert_ne!(second, first, "after a day the key is free");
    assert_eq!(world.say(id, "other", Some("k")).await.unwrap(), second);
    world.clock.advance_micros(25 * HOUR);
    world.services.run_due_tasks().await.unwrap();
    let left = world.store.read(AllTenants, "test", |tx| {
        Ok::<_, Error>(tx.first("SELECT COUNT(*) FROM idempotency_keys", &[], |row| row.int(0))?)
    });
    assert_eq!(left.await.unwrap(), Some(0), "and the worker forgets it");
}

#[tokio::test]
async fn eviction_removes_what_was_deleted_before_the_retention_period_and_leaves_a_task_for_its_vectors() {
    let world = world().await;
    let (old, young, live) = (world.fresh(), world.fresh(), world.fresh());
    for id in [old, young, live] {
        world.say(id, "some words", None).await.unwrap();
    }
    let api = &world.services.conversations;
    api.delete(&alice(), old).await.unwrap();
    world.clock.advance_micros(2 * HOUR);
    api.delete(&alice(), young).await.unwrap();
    world.clock.advance_micros(HOUR);

    let request = EvictRequest {
        retention_period: Some("PT2H".into()),
        resource_types: Some(vec!["conversations".into()]),
        justification: None,
    };
    let eviction = api.admit_eviction(&principal("admin", None), request, None).unwrap();
    let (progress, mut heard) = mpsc::channel(100);
    assert_eq!(api.evict(&eviction, progress).await.unwrap(), 1);
    let mut percent = Vec::new();
    while let Some(n) = heard.recv().await {
        percent.push(n);
    }
    assert_eq!((percent.first(), percent.last()), (Some(&0), Some(&100)));

    let tasks = world.store.read(AllTenants, "test", |tx| {
        Ok::<_, Error>(tx.rows("SELECT type, body FROM tasks", &[], |row| {
            Ok((row.text(0)?.to_owned(), row.text(1)?.to_owned()))
        })?)
    });
    let tasks = tasks.await.unwrap();
    assert_eq!(tasks.len(), 1);
    assert_eq!(tasks[0].0, "vector_store_delete");
    let body: serde_json::Value = serde_json::from_str(&tasks[0].1).unwrap();
    assert!(body["conversationGroupId"].as_str().is_some_and(|id| id.len() == 36), "{body}");

    for (table, rows) in [
        ("groups", 2),
        ("conversations", 2),
        ("entries", 2),
        ("memberships", 2),
        ("texts", 2),
        ("unindexed", 2),
    ] {
        let sql = format!("SELECT COUNT(*) FROM {table}");
        let count = world
            .store
            .read(AllTenants, "test", move |tx| Ok::<_, Error>(tx.first(&sql, &[], |row| row.int(0))?));
        assert_eq!(count.await.unwrap(), Some(rows), "{table}");
    }
}

#[tokio::test]
async fn a_transfer_whose_sender_no_longer_owns_is_refused_and_removed() {
    let world = world().await;
    let id = world.fresh();
    world.say(id, "mine", None).await.unwrap();
    let api = &world.services.conversations;
    let level = Some(memtrove_core::conversations::AccessLevel::Writer);
    api.share(&alice(), id, MemberLevel::share(Some("bob".into()), level).unwrap()).await.unwrap();
    let offer = NewTransfer::new(Some(id), Some("bob".into())).unwrap();
    let transfer = api.create_transfer(&alice(), offer).await.unwrap();
    // Somebody else became the owner behind its back.
    let moved = world.store.write(AllTenants, "test", |tx| {
        Ok::<_, Error>(tx.execute("UPDATE groups SET owner_user_id = 'carol'", &[])?)
    });
    moved.await.unwrap();
    let bob = caller("bob", None);
    assert!(matches!(api.accept_transfer(&bob, transfer.id).await, Err(Error { code: Code::Conflict, .. })));
    assert!(matches!(api.get_transfer(&alice(), transfer.id).await, Err(Error { code: Code::NotFound, .. })));
}

#[tokio::test]
async fn time_never_runs_backwards_in_a_tree() {
    let world = world().await;
    let id = world.fresh();
    world.say(id, "now", None).await.unwrap();
    let before = world.clock.now();
    world.clock.advance_micros(-HOUR);
    world.say(id, "earlier?", None).await.unwrap();
    let conversation = world.services.conversations.get(&alice(), id).await.unwrap();
    assert!(conversation.updated_at >= before, "{} < {before}", conversation.updated_at);
    assert_eq!(conversation.updated_at, Timestamp::from_micros(before.as_micros()));
}
