//! The change feed: what every operation on conversations tells, who may read it, and what becomes of it with time.

use crate::world::{World, caller, principal};
use memtrove_core::changes::{ChangeKind, RecordedChange};
use memtrove_core::conversations::{AccessLevel, Channel};
use memtrove_core::identity::Caller;
use memtrove_core::{Clock, Code, ConversationId, EntryId, Error, Json, TransferId, UserId};
use memtrove_service::Settings;
use memtrove_service::changes::Follower;
use memtrove_service::conversations::{
    AppendRequest, CreateConversation, EvictRequest, Idempotency, MemberLevel, NewTransfer,
};
use memtrove_store::AllTenants;
use serde_json::{Value, json};
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::timeout;
use uuid::Uuid;

const HOUR: i64 = 3_600_000_000;

fn alice() -> Caller {
    caller("alice", Some("planner"))
}

/// A world, and how much of its feed has been looked at.
struct Feed {
    world: World,
    seen: i64,
}

impl std::ops::Deref for Feed {
    type Target = World;

    fn deref(&self) -> &World {
        &self.world
    }
}

impl Feed {
    async fn new() -> Self {
        Self { world: World::new(Settings::default()).await, seen: 0 }
    }

    fn fresh(&self) -> ConversationId {
        ConversationId(self.clock.new_id())
    }

    /// What was told since the last time this was asked.
    async fn told(&mut self) -> Vec<RecordedChange> {
        let page =
            self.services.changes.page(&principal("admin", None), Some(self.seen), Some(1000)).await.unwrap();
        assert!(!page.gap);
        for change in &page.changes {
            self.seen += 1;
            assert_eq!(change.sequence, self.seen);
            assert_eq!(change.at, self.clock.now());
        }
        page.changes
    }

    /// Requires that exactly this was told since the last time: kind, user, conversation, version.
    #[track_caller]
    fn expect(
        told: Vec<RecordedChange>,
        expected: &[(ChangeKind, Option<&str>, ConversationId, Option<Uuid>)],
    ) {
        let told: Vec<_> =
            told.into_iter().map(|c| (c.kind, c.user.map(|user| user.0), c.resource, c.version)).collect();
        let expected: Vec<_> = expected
            .iter()
            .map(|(kind, user, id, version)| {
                (*kind, user.map(str::to_owned), Some(id.to_string()), version.map(|id| id.to_string()))
            })
            .collect();
        assert_eq!(told, expected);
    }

    async fn append(
        &self,
        caller: &Caller,
        id: ConversationId,
        channel: Channel,
        content: Value,
        fork: Option<(ConversationId, EntryId)>,
    ) -> Result<EntryId, Error> {
        let request = AppendRequest {
            forked_at_conversation_id: fork.map(|(parent, _)| parent),
            forked_at_entry_id: fork.map(|(_, entry)| entry),
            ..request(channel, content)
        };
        Ok(self.services.conversations.append(caller, id, request, None).await?.id)
    }

    async fn say(&self, id: ConversationId, text: &str) -> EntryId {
        self.append(&alice(), id, Channel::History, said(text), None).await.unwrap()
    }

    async fn sync(
        &self,
        id: ConversationId,
        items: Value,
        fork: Option<(ConversationId, EntryId)>,
    ) -> Option<EntryId> {
        let api = &self.services.conversations;
        let digest = api.request_digest(&alice(), items.to_string().as_bytes());
        let request = AppendRequest {
            forked_at_conversation_id: fork.map(|(parent, _)| parent),
            forked_at_entry_id: fork.map(|(_, entry)| entry),
            ..request(Channel::Memory, items)
        };
        api.sync(&alice(), id, request, digest).await.unwrap().entry.map(|entry| entry.id)
    }

    async fn create(&self) -> ConversationId {
        let new = CreateConversation { title: Some("Plans".into()), metadata: None };
        self.services.conversations.create(&alice(), new).await.unwrap().id
    }

    async fn share(&self, id: ConversationId, user: &str, level: AccessLevel) {
        let member = MemberLevel::share(Some(user.into()), Some(level)).unwrap();
        self.services.conversations.share(&alice(), id, member).await.unwrap();
    }
}

fn said(text: &str) -> Value {
    json!([{"role": "USER", "text": text}])
}

fn request(channel: Channel, content: Value) -> AppendRequest {
    AppendRequest {
        channel: Some(channel),
        content_type: Some(if channel == Channel::History { "history" } else { "LC4J" }.into()),
        content: Some(Json::of(&content).unwrap()),
        ..AppendRequest::default()
    }
}

#[tokio::test]
async fn making_and_renaming_a_conversation_is_told() {
    let mut feed = Feed::new().await;
    let id = feed.create().await;
    Feed::expect(feed.told().await, &[(ChangeKind::ConversationCreated, Some("alice"), id, None)]);
    let api = feed.services.conversations.clone();
    api.rename(&alice(), id, Some(Some("Trips".into()))).await.unwrap();
    Feed::expect(feed.told().await, &[(ChangeKind::ConversationUpdated, Some("alice"), id, None)]);
    api.rename(&alice(), id, Some(Some("Trips".into()))).await.unwrap();
    api.rename(&alice(), id, None).await.unwrap();
    Feed::expect(feed.told().await, &[]);
    api.rename(&alice(), id, Some(None)).await.unwrap();
    Feed::expect(feed.told().await, &[(ChangeKind::ConversationUpdated, Some("alice"), id, None)]);
}

#[tokio::test]
async fn an_append_is_told_with_its_entry_and_with_the_conversation_it_made() {
    let mut feed = Feed::new().await;
    let id = feed.fresh();
    let first = feed.say(id, "one").await;
    Feed::expect(
        feed.told().await,
        &[
            (ChangeKind::ConversationCreated, Some("alice"), id, None),
            (ChangeKind::EntryAppended, Some("alice"), id, Some(first.0)),
        ],
    );
    let second = feed.say(id, "two").await;
    Feed::expect(feed.told().await, &[(ChangeKind::EntryAppended, Some("alice"), id, Some(second.0))]);
    let remembered = feed.append(&alice(), id, Channel::Memory, json!(["a"]), None).await.unwrap();
    Feed::expect(feed.told().await, &[(ChangeKind::MemoryAppended, Some("alice"), id, Some(remembered.0))]);
    let fork = feed.fresh();
    let on_fork =
        feed.append(&alice(), fork, Channel::History, said("three"), Some((id, second))).await.unwrap();
    Feed::expect(
        feed.told().await,
        &[
            (ChangeKind::ConversationCreated, Some("alice"), fork, None),
            (ChangeKind::EntryAppended, Some("alice"), fork, Some(on_fork.0)),
        ],
    );
}

#[tokio::test]
async fn what_is_refused_or_repeated_is_not_told() {
    let mut feed = Feed::new().await;
    let id = feed.fresh();
    let api = feed.services.conversations.clone();
    let once = async || {
        let body = api.request_digest(&alice(), b"one");
        let key = Some(Idempotency { key: "k".into(), body });
        api.append(&alice(), id, request(Channel::History, said("one")), key).await
    };
    let first = once().await.unwrap().id;
    assert_eq!(feed.told().await.len(), 2);
    assert_eq!(once().await.unwrap().id, first);
    let mallory = caller("mallory", Some("planner"));
    assert!(feed.append(&mallory, id, Channel::History, said("x"), None).await.is_err());
    assert!(api.delete(&mallory, id).await.is_err());
    assert!(api.rename(&mallory, id, Some(None)).await.is_err());
    assert!(api.fork(&alice(), id, EntryId(feed.clock.new_id()), None).await.is_err());
    Feed::expect(feed.told().await, &[]);
}

#[tokio::test]
async fn a_sync_is_told_when_it_writes() {
    let mut feed = Feed::new().await;
    let id = feed.fresh();
    assert_eq!(feed.sync(id, json!([]), None).await, None);
    Feed::expect(feed.told().await, &[]);
    let entry = feed.sync(id, json!(["a"]), None).await.unwrap();
    Feed::expect(
        feed.told().await,
        &[
            (ChangeKind::ConversationCreated, Some("alice"), id, None),
            (ChangeKind::MemoryAppended, Some("alice"), id, Some(entry.0)),
        ],
    );
    assert_eq!(feed.sync(id, json!(["a"]), None).await, None);
    Feed::expect(feed.told().await, &[]);
    let entry = feed.sync(id, json!(["b"]), None).await.unwrap();
    Feed::expect(feed.told().await, &[(ChangeKind::MemoryAppended, Some("alice"), id, Some(entry.0))]);
    // The fork inherits what the sync would write: only the fork itself is new.
    let last = feed.say(id, "end").await;
    feed.told().await;
    let fork = feed.fresh();
    assert_eq!(feed.sync(fork, json!(["b"]), Some((id, last))).await, None);
    Feed::expect(feed.told().await, &[(ChangeKind::ConversationCreated, Some("alice"), fork, None)]);
}

#[tokio::test]
async fn a_fork_is_told_as_a_new_conversation() {
    let mut feed = Feed::new().await;
    let id = feed.fresh();
    let entry = feed.say(id, "one").await;
    feed.told().await;
    let fork = feed.services.conversations.fork(&alice(), id, entry, None).await.unwrap().id;
    Feed::expect(feed.told().await, &[(ChangeKind::ConversationCreated, Some("alice"), fork, None)]);
}

#[tokio::test]
async fn deleting_restoring_and_evicting_a_tree_is_told_once() {
    let mut feed = Feed::new().await;
    let root = feed.fresh();
    let entry = feed.say(root, "one").await;
    let api = feed.services.conversations.clone();
    let fork = api.fork(&alice(), root, entry, None).await.unwrap().id;
    feed.told().await;

    api.delete(&alice(), fork).await.unwrap();
    Feed::expect(feed.told().await, &[(ChangeKind::ConversationDeleted, Some("alice"), fork, None)]);
    let admin = principal("admin", None);
    api.admin_restore(&admin, root, None).await.unwrap();
    Feed::expect(feed.told().await, &[(ChangeKind::ConversationRestored, Some("admin"), root, None)]);
    api.admin_delete(&admin, fork, None).await.unwrap();
    api.admin_delete(&admin, fork, None).await.unwrap();
    Feed::expect(feed.told().await, &[(ChangeKind::ConversationDeleted, Some("admin"), fork, None)]);

    feed.clock.advance_micros(2 * HOUR);
    let request = EvictRequest {
        retention_period: Some("PT1H".into()),
        resource_types: Some(vec!["conversations".into()]),
        justification: None,
    };
    let eviction = api.admit_eviction(&admin, request, None).unwrap();
    let (progress, _heard) = mpsc::channel(100);
    assert_eq!(api.evict(&eviction, progress).await.unwrap(), 1);
    Feed::expect(feed.told().await, &[(ChangeKind::ConversationEvicted, None, root, None)]);
}

#[tokio::test]
async fn a_change_of_a_membership_is_told_with_the_member() {
    let mut feed = Feed::new().await;
    let id = feed.create().await;
    feed.told().await;
    feed.share(id, "bob", AccessLevel::Reader).await;
    Feed::expect(feed.told().await, &[(ChangeKind::MembershipAdded, Some("bob"), id, None)]);
    feed.share(id, "bob", AccessLevel::Reader).await;
    Feed::expect(feed.told().await, &[]);
    feed.share(id, "bob", AccessLevel::Writer).await;
    Feed::expect(feed.told().await, &[(ChangeKind::MembershipUpdated, Some("bob"), id, None)]);
    let api = feed.services.conversations.clone();
    let bob = || UserId("bob".into());
    let at = |level| MemberLevel::change(bob(), Some(level)).unwrap();
    api.update_membership(&alice(), id, at(AccessLevel::Writer)).await.unwrap();
    Feed::expect(feed.told().await, &[]);
    api.update_membership(&alice(), id, at(AccessLevel::Manager)).await.unwrap();
    Feed::expect(feed.told().await, &[(ChangeKind::MembershipUpdated, Some("bob"), id, None)]);
    api.delete_membership(&alice(), id, bob()).await.unwrap();
    Feed::expect(feed.told().await, &[(ChangeKind::MembershipRemoved, Some("bob"), id, None)]);
}

#[tokio::test]
async fn a_transfer_is_told_with_its_recipient() {
    let mut feed = Feed::new().await;
    let id = feed.create().await;
    feed.share(id, "bob", AccessLevel::Writer).await;
    feed.told().await;
    let api = feed.services.conversations.clone();
    let bob = caller("bob", None);
    let to = |user: &str| NewTransfer::new(Some(id), Some(user.into())).unwrap();
    let offer = async || -> TransferId { api.create_transfer(&alice(), to("bob")).await.unwrap().id };
    let first = offer().await;
    Feed::expect(feed.told().await, &[(ChangeKind::TransferCreated, Some("bob"), id, Some(first.0))]);
    assert!(api.create_transfer(&alice(), to("bob")).await.is_err());
    Feed::expect(feed.told().await, &[]);
    api.delete_transfer(&bob, first).await.unwrap();
    Feed::expect(feed.told().await, &[(ChangeKind::TransferDeleted, Some("bob"), id, Some(first.0))]);

    let second = offer().await;
    feed.told().await;
    api.accept_transfer(&bob, second).await.unwrap();
    Feed::expect(feed.told().await, &[(ChangeKind::OwnershipTransferred, Some("bob"), id, Some(second.0))]);

    // Somebody else became the owner behind the back of an offer.
    let third = api.create_transfer(&bob, to("alice")).await.unwrap().id;
    feed.told().await;
    let moved = feed.store.write(AllTenants, "test", |tx| {
        Ok::<_, Error>(tx.execute("UPDATE groups SET owner_user_id = 'carol'", &[])?)
    });
    moved.await.unwrap();
    assert!(api.accept_transfer(&alice(), third).await.is_err());
    Feed::expect(feed.told().await, &[(ChangeKind::TransferDeleted, Some("alice"), id, Some(third.0))]);
}

#[tokio::test]
async fn only_those_who_may_know_everything_may_read_the_feed() {
    let feed = Feed::new().await;
    let changes = &feed.services.changes;
    let alice_through = |agent| principal("alice", agent);
    let mut gateway = alice_through(Some("gateway"));
    gateway.user = None;
    for reader in [principal("admin", None), gateway] {
        changes.page(&reader, None, None).await.unwrap();
        changes.follow(&reader, None).await.unwrap();
    }
    for alice in [alice_through(None), alice_through(Some("gateway"))] {
        assert!(matches!(changes.page(&alice, None, None).await, Err(Error { code: Code::Forbidden, .. })));
        assert!(matches!(changes.follow(&alice, None).await, Err(Error { code: Code::Forbidden, .. })));
    }
}

/// The numbers of the next changes, and whether there was a gap before them.
async fn next(follower: &mut Follower) -> (bool, Vec<i64>) {
    let page =
        timeout(Duration::from_secs(10), follower.next()).await.expect("nothing was told").unwrap().unwrap();
    (page.gap, page.changes.iter().map(|change| change.sequence).collect())
}

#[tokio::test]
async fn a_follower_hears_what_comes_after_it_began() {
    let feed = Feed::new().await;
    let id = feed.create().await;
    let changes = feed.services.changes.clone();
    let admin = principal("admin", None);
    let mut from_now = changes.follow(&admin, None).await.unwrap();
    let mut from_the_start = changes.follow(&admin, Some(0)).await.unwrap();
    assert_eq!((from_now.after(), from_the_start.after()), (1, 0));
    assert_eq!(next(&mut from_the_start).await, (false, vec![1]));
    assert!(timeout(Duration::from_millis(100), from_now.next()).await.is_err(), "nothing has happened yet");
    feed.say(id, "two").await;
    assert_eq!(next(&mut from_now).await, (false, vec![2]));
    assert_eq!(next(&mut from_the_start).await, (false, vec![2]));
    // A backlog comes in parts that a follower can hold.
    for n in 0..250 {
        feed.say(id, &n.to_string()).await;
    }
    let mut heard = Vec::new();
    while heard.len() < 250 {
        let (gap, part) = next(&mut from_now).await;
        assert!(!gap && part.len() <= 100, "{part:?}");
        heard.extend(part);
    }
    assert_eq!(heard, (3..=252).collect::<Vec<i64>>());
}

#[tokio::test]
async fn closing_the_feed_ends_its_followers_and_admits_no_more() {
    let feed = Feed::new().await;
    let changes = feed.services.changes.clone();
    let admin = principal("admin", None);
    let mut follower = changes.follow(&admin, None).await.unwrap();
    let waiting = tokio::spawn(async move { follower.next().await });
    tokio::task::yield_now().await;
    changes.close();
    let ended = timeout(Duration::from_millis(500), waiting).await.expect("it still waits").unwrap();
    assert_eq!(ended.unwrap(), None);
    assert!(matches!(changes.follow(&admin, None).await, Err(Error { code: Code::Overloaded, .. })));
}

#[tokio::test]
async fn places_for_followers_are_limited_and_given_back() {
    let feed = Feed::new().await;
    let changes = feed.services.changes.clone();
    let admin = principal("admin", None);
    let mut followers = Vec::new();
    for _ in 0..256 {
        followers.push(changes.follow(&admin, None).await.unwrap());
    }
    assert!(matches!(changes.follow(&admin, None).await, Err(Error { code: Code::Overloaded, .. })));
    followers.pop();
    changes.follow(&admin, None).await.unwrap();
}

#[tokio::test]
async fn what_is_older_than_the_retention_goes_and_whoever_missed_it_is_told() {
    let feed = Feed::new().await;
    let id = feed.create().await;
    feed.say(id, "old").await;
    feed.clock.advance_micros(8 * 24 * HOUR);
    feed.say(id, "new").await;
    let admin = principal("admin", None);
    let changes = feed.services.changes.clone();
    let mut slow = changes.follow(&admin, Some(1)).await.unwrap();
    feed.services.run_due_tasks().await.unwrap();

    let page = changes.page(&admin, None, None).await.unwrap();
    assert_eq!(
        (page.oldest, page.changes.len(), page.gap),
        (3, 1, false),
        "whoever asks for what there is gets it"
    );
    let page = changes.page(&admin, Some(2), None).await.unwrap();
    assert_eq!((page.oldest, page.changes.len(), page.gap), (3, 1, false));
    for missed in [0, 1, 4, i64::MAX] {
        let page = changes.page(&admin, Some(missed), None).await.unwrap();
        assert_eq!((page.oldest, page.changes[0].sequence, page.gap), (3, 3, true), "after {missed}");
    }
    let page = changes.page(&admin, Some(3), None).await.unwrap();
    assert_eq!((page.changes.len(), page.next_after, page.gap), (0, None, false), "nothing new is no gap");
    assert_eq!(next(&mut slow).await, (true, vec![3]));

    feed.clock.advance_micros(8 * 24 * HOUR);
    feed.services.run_due_tasks().await.unwrap();
    let page = changes.page(&admin, Some(3), None).await.unwrap();
    assert_eq!((page.oldest, page.gap), (3, false), "the newest stays, so that numbers go on");
    let kept = changes.page(&admin, None, None).await.unwrap().changes.remove(0);
    assert_eq!((kept.sequence, kept.kind), (3, ChangeKind::Forgotten), "but it says nothing any more");
    assert_eq!((kept.user, kept.resource, kept.version), (None, None, None));
    let mut lost = changes.follow(&admin, Some(7)).await.unwrap();
    assert_eq!(next(&mut lost).await, (true, vec![3]), "a number that was never given away is a gap, too");
    feed.say(id, "newer").await;
    assert_eq!(next(&mut lost).await, (false, vec![4]));
}

#[tokio::test]
async fn a_number_from_another_life_of_an_empty_feed_is_a_gap() {
    let feed = Feed::new().await;
    let admin = principal("admin", None);
    let page = feed.services.changes.page(&admin, Some(5), None).await.unwrap();
    assert_eq!((page.oldest, page.changes.len(), page.gap), (1, 0, true));
    let page = feed.services.changes.page(&admin, Some(0), None).await.unwrap();
    assert_eq!((page.oldest, page.next_after, page.gap), (1, None, false));
    let mut follower = feed.services.changes.follow(&admin, Some(5)).await.unwrap();
    assert_eq!(next(&mut follower).await, (true, vec![]));
    feed.create().await;
    assert_eq!(next(&mut follower).await, (false, vec![1]));
}
