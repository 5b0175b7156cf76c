//! Forgetting a user: what belongs to it is decided by what is there, and whatever stops it, it comes to its end.

use crate::world::{World, caller, principal};
use memtrove_core::changes::{ChangeKind, RecordedChange};
use memtrove_core::conversations::{AccessLevel, Channel};
use memtrove_core::files::{ScopedCaller, SearchEvents};
use memtrove_core::{Clock, Code, ConversationId, Error, Json, UserId};
use memtrove_service::conversations::{
    AppendRequest, Explanation, ListConversations, ListEntries, MemberLevel, SearchRequest,
};
use memtrove_service::files::{Forgotten, WriteEvent};
use memtrove_service::{PageRequest, Settings};
use memtrove_store::files::forget;
use memtrove_store::{AllTenants, Tx, TxExt};
use serde_json::json;
use std::sync::{Mutex, mpsc};

const HOUR: i64 = 3_600_000_000;

fn scoped(user: &str) -> ScopedCaller {
    ScopedCaller::enter(&principal(user, Some("agent")), user.to_owned(), None, "request".to_owned()).unwrap()
}

trait People {
    async fn tell(&self, user: &str, id: &str);
    async fn told(&self, user: &str) -> usize;
    async fn say(&self, user: &str, conversation: ConversationId);
    async fn say_this(&self, user: &str, conversation: ConversationId, text: &str);
    async fn start(&self, user: &str) -> ConversationId;
    async fn invite(&self, host: &str, conversation: ConversationId, guest: &str);
    async fn authors(&self, reader: &str, conversation: ConversationId) -> Vec<Option<String>>;
    async fn listed(&self, user: &str) -> Vec<ConversationId>;
    async fn feed(&self) -> Vec<RecordedChange>;
    async fn forget(&self, user: &str) -> Forgotten;
    async fn detach(&self, user: &str);
    async fn count(&self, sql: &'static str) -> i64;
    async fn assert_nothing_is_left_to_do(&self);
}

impl People for World {
    async fn tell(&self, user: &str, id: &str) {
        let event = json!({"event_id": id, "tenant_id": "default", "user_id": user, "digest": "met Bob"});
        let (files, request) = (&self.services.files, WriteEvent { event: Some(event), key: None });
        files.write_event(&files.admit(scoped(user)).await.unwrap(), request).await.unwrap();
    }

    async fn told(&self, user: &str) -> usize {
        let (files, everything) = (&self.services.files, SearchEvents::default());
        files.search_events(&files.admit(scoped(user)).await.unwrap(), everything).await.unwrap().len()
    }

    async fn say(&self, user: &str, conversation: ConversationId) {
        self.say_this(user, conversation, "walrus").await;
    }

    async fn say_this(&self, user: &str, conversation: ConversationId, text: &str) {
        let request = AppendRequest {
            channel: Some(Channel::History),
            content_type: Some("history".into()),
            content: Some(Json::of(&json!([{"role": "USER", "text": text}])).unwrap()),
            ..AppendRequest::default()
        };
        self.services.conversations.append(&caller(user, None), conversation, request, None).await.unwrap();
    }

    async fn start(&self, user: &str) -> ConversationId {
        let id = ConversationId(self.clock.new_id());
        self.say(user, id).await;
        id
    }

    async fn invite(&self, host: &str, conversation: ConversationId, guest: &str) {
        let (host, level) = (caller(host, None), Some(AccessLevel::Writer));
        let member = MemberLevel::share(Some(guest.into()), level).unwrap();
        self.services.conversations.share(&host, conversation, member).await.unwrap();
    }

    async fn authors(&self, reader: &str, conversation: ConversationId) -> Vec<Option<String>> {
        let (reader, all) = (caller(reader, None), ListEntries::default());
        let page = self.services.conversations.list_entries(&reader, conversation, all).await.unwrap();
        page.data.into_iter().map(|entry| entry.user_id.map(|user| user.0)).collect()
    }

    async fn listed(&self, user: &str) -> Vec<ConversationId> {
        let user = caller(user, None);
        let list = self.services.conversations.list(&user, ListConversations::default());
        list.await.unwrap().data.into_iter().map(|conversation| conversation.id).collect()
    }

    async fn feed(&self) -> Vec<RecordedChange> {
        let admin = principal("admin", None);
        self.services.changes.page(&admin, None, Some(1000)).await.unwrap().changes
    }

    async fn forget(&self, user: &str) -> Forgotten {
        let files = &self.services.files;
        files.forget(&files.admit(scoped(user)).await.unwrap()).await.unwrap()
    }

    /// The first unit of work of a forget, as a process leaves it that is killed right then.
    async fn detach(&self, user: &str) {
        let (who, now) = (scoped(user).scope, self.clock.now());
        self.store.write(AllTenants, "test", move |tx| forget::detach(tx, &who, now)).await.unwrap();
    }

    async fn count(&self, sql: &'static str) -> i64 {
        self.store
            .read(AllTenants, "test", move |tx| Ok::<_, Error>(tx.first(sql, &[], |row| row.int(0))?))
            .await
            .unwrap()
            .unwrap()
    }

    async fn assert_nothing_is_left_to_do(&self) {
        for sql in [
            "SELECT COUNT(*) FROM forgotten_users",
            "SELECT COUNT(*) FROM forgotten_groups",
            "SELECT COUNT(*) FROM forgotten_members",
            "SELECT COUNT(*) FROM memory_purges",
        ] {
            assert_eq!(self.count(sql).await, 0, "{sql}");
        }
    }
}

/// Nobody may learn from the feed whom it was about.
#[track_caller]
fn assert_unnamed(feed: &[RecordedChange], user: &str) {
    let about = |change: &&RecordedChange| change.user == Some(UserId(user.into()));
    assert_eq!(feed.iter().filter(about).collect::<Vec<_>>(), Vec::<&RecordedChange>::new());
}

#[tokio::test]
async fn a_clock_that_goes_back_keeps_nothing_from_being_forgotten() {
    let world = World::new(Settings::default()).await;
    let (of_bob, left) = (world.start("bob").await, world.start("bob").await);
    for conversation in [of_bob, left] {
        world.invite("bob", conversation, "alice").await;
        world.say("alice", conversation).await;
    }
    let bob = caller("bob", None);
    world.services.conversations.delete_membership(&bob, left, UserId("alice".into())).await.unwrap();
    world.start("alice").await;
    world.tell("alice", "e").await;
    world.clock.advance_micros(-HOUR);

    let removed = world.forget("alice").await;

    let expected = Forgotten {
        events: 1,
        indexed: 1,
        memories: 1,
        conversations: 1,
        anonymized: 2,
        ..Forgotten::default()
    };
    assert_eq!(removed, expected);
    for conversation in [of_bob, left] {
        assert_eq!(world.authors("bob", conversation).await, [Some("bob".into()), None]);
        let all = PageRequest::default();
        let members = world.services.conversations.list_memberships(&bob, conversation, all).await;
        assert_eq!(members.unwrap().data.len(), 1);
    }
    assert_unnamed(&world.feed().await, "alice");
    world.assert_nothing_is_left_to_do().await;
    assert_eq!(world.count("SELECT COUNT(*) FROM past_members").await, 0);
}

#[tokio::test]
async fn what_was_broken_off_is_finished_and_what_came_afterwards_stays() {
    let world = World::new(Settings::default()).await;
    let of_bob = world.start("bob").await;
    world.invite("bob", of_bob, "alice").await;
    world.say("alice", of_bob).await;
    let old = world.start("alice").await;
    world.tell("alice", "old").await;

    world.detach("alice").await;
    world.clock.advance_micros(-HOUR);
    assert_eq!(world.told("alice").await, 0, "out of reach at once");
    let gone = world.services.conversations.get(&caller("alice", None), old).await;
    assert!(matches!(gone, Err(Error { code: Code::NotFound, .. })), "closed at once");
    world.tell("alice", "new").await;
    let new = world.start("alice").await;
    world.invite("bob", of_bob, "alice").await;
    world.say("alice", of_bob).await;
    world.services.run_due_tasks().await.unwrap();

    assert_eq!(world.told("alice").await, 1);
    assert_eq!(world.listed("alice").await, [of_bob, new]);
    assert_eq!(world.authors("bob", of_bob).await, [Some("bob".into()), None, Some("alice".into())]);
    let named = world.feed().await.into_iter().filter(|change| change.user == Some(UserId("alice".into())));
    let kinds: Vec<ChangeKind> = named.map(|change| change.kind).collect();
    assert_eq!(
        kinds,
        [
            ChangeKind::EventWritten,
            ChangeKind::ConversationCreated,
            ChangeKind::EntryAppended,
            ChangeKind::MembershipAdded,
            ChangeKind::EntryAppended
        ]
    );
    world.assert_nothing_is_left_to_do().await;
}

#[tokio::test]
async fn whoever_forgets_again_forgets_what_was_broken_off_before() {
    let world = World::new(Settings::default()).await;
    world.start("alice").await;
    world.tell("alice", "one").await;
    world.detach("alice").await;
    world.start("alice").await;
    world.tell("alice", "two").await;

    let removed = world.forget("alice").await;

    assert_eq!((removed.conversations, removed.events), (2, 2));
    assert_eq!(world.listed("alice").await, []);
    world.assert_nothing_is_left_to_do().await;
    assert_eq!(world.forget("alice").await, Forgotten::default());
}

#[tokio::test]
async fn the_feed_tells_of_every_tree_that_is_gone() {
    let world = World::new(Settings::default()).await;
    let shared = world.start("alice").await;
    world.invite("alice", shared, "bob").await;
    let deleted = world.start("alice").await;
    world.services.conversations.delete(&caller("alice", None), deleted).await.unwrap();
    let before = world.feed().await.len();

    world.forget("alice").await;

    let feed = world.feed().await;
    assert_unnamed(&feed, "alice");
    let told = |change: &RecordedChange| (change.kind, change.user.clone(), change.resource.clone());
    let mut news: Vec<_> = feed[before..].iter().map(told).collect();
    assert_eq!(news.remove(0), (ChangeKind::UserForgotten, None, Some("alice".into())));
    news.sort_by_key(|(.., resource)| resource.clone());
    let mut roots = [shared, deleted].map(|id| (ChangeKind::ConversationEvicted, None, Some(id.to_string())));
    roots.sort_by_key(|(.., resource)| resource.clone());
    assert_eq!(news, roots);
}

#[tokio::test]
async fn jobs_name_nobody_who_was_forgotten() {
    let world = World::new(Settings::default()).await;
    world.tell("alice", "e").await;
    let files = &world.services.files;
    let on_alice =
        files.reindex_scope(&files.admit(scoped("alice")).await.unwrap()).await.unwrap().to_string();
    let alice =
        ScopedCaller::enter(&principal("alice", None), "alice".into(), None, "request".into()).unwrap();
    assert_eq!(files.reindex_scope(&files.admit(alice).await.unwrap()).await.unwrap().to_string(), on_alice);
    world.tell("bob", "e").await;
    let on_bob = files.reindex_scope(&files.admit(scoped("bob")).await.unwrap()).await.unwrap().to_string();

    world.forget("alice").await;

    let naming = "SELECT COUNT(*) FROM jobs WHERE user_id = 'alice' OR started_by LIKE '%alice%'";
    assert_eq!(world.count(naming).await, 0);
    assert_eq!(world.count("SELECT COUNT(*) FROM jobs WHERE user_id = 'bob' AND status = 'queued'").await, 1);
    let admin = principal("admin", None);
    assert_eq!(files.job(&admin, &on_alice).await.unwrap().status.as_str(), "succeeded");
    assert_eq!(files.job(&admin, &on_bob).await.unwrap().status.as_str(), "queued");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_somebody_still_reads_is_scrubbed_from_the_disk_later() {
    let world = World::new(Settings::default()).await;
    world.start("alice").await;
    let (release, released) = mpsc::channel::<()>();
    let (started, starting) = mpsc::channel::<()>();
    let (released, store) = (Mutex::new(released), world.store.clone());
    let reading = tokio::spawn(async move {
        let read = store.read(AllTenants, "test", move |tx| {
            tx.first("SELECT COUNT(*) FROM entries", &[], |row| row.int(0))?;
            started.send(()).unwrap();
            released.lock().unwrap().recv().unwrap();
            Ok::<_, Error>(())
        });
        read.await.unwrap();
    });
    tokio::task::spawn_blocking(move || starting.recv().unwrap()).await.unwrap();

    assert_eq!(world.forget("alice").await.conversations, 1, "the answer does not wait for it");

    let pending = "SELECT COUNT(*) FROM forgotten_users WHERE user_id IS NULL";
    assert_eq!(world.count(pending).await, 1);
    release.send(()).unwrap();
    reading.await.unwrap();
    world.services.run_due_tasks().await.unwrap();
    world.assert_nothing_is_left_to_do().await;
}

#[tokio::test]
async fn neither_vectors_nor_the_name_of_a_speaker_stay() {
    let world = World::new(Settings::default()).await;
    let (own, shared) = (ConversationId(world.clock.new_id()), world.start("bob").await);
    world.say_this("alice-who-goes", own, "a purple hippopotamus").await;
    world.invite("bob", shared, "alice-who-goes").await;
    world.say("alice-who-goes", shared).await;
    world.services.run_due_tasks().await.unwrap();
    // What a hit keeps for who said it: less where it was somebody else than whom the query names.
    let kept = || async {
        let query = Some("What did alice-who-goes say about a walrus?".to_owned());
        let request = SearchRequest { query, explain: true, ..SearchRequest::default() };
        let page = world.services.conversations.search(&caller("bob", None), request).await.unwrap();
        let kept = page.data.iter().map(|hit| match hit.explanation {
            Some(Explanation::Fused(score)) => score.by_another,
            other => panic!("{other:?}"),
        });
        kept.collect::<Vec<f64>>()
    };
    assert!(matches!(kept().await[..], [1.0, others] if others < 1.0));
    let derived = move |tx: &mut dyn Tx| {
        tx.rows("SELECT conversation_id, pieces FROM meanings", &[], |row| {
            Ok((ConversationId(row.uuid(0)?), row.bytes(1)?.to_vec()))
        })
    };
    let rows = world.store.read(AllTenants, "test", derived).await.unwrap();
    let (_, hers) = rows.iter().find(|(id, _)| *id == own).unwrap();
    let on_disk = |traces: &[u8]| {
        let files = std::fs::read_dir(world.folder.path()).unwrap();
        files
            .map(|file| std::fs::read(file.unwrap().path()).unwrap())
            .any(|bytes| bytes.windows(traces.len()).any(|window| window == traces))
    };
    assert!(on_disk(hers));

    world.forget("alice-who-goes").await;
    world.services.run_due_tasks().await.unwrap();

    let left = world.store.read(AllTenants, "test", derived).await.unwrap();
    assert_eq!(left.iter().map(|(id, _)| *id).collect::<Vec<_>>(), [shared, shared]);
    assert!(!on_disk(hers));
    let named = "SELECT COUNT(*) FROM meanings WHERE speaker = 'alice-who-goes'";
    assert_eq!(world.count(named).await, 0);
    assert_eq!(kept().await, [1.0, 1.0], "indexes in memory do not know the name either");
}
