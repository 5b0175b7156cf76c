//! Several nodes on one database: each sees what the others do, and together they do everything once.

use crate::world::{entry_of, identifiers, list_of, principal};
use memtrove_core::files::ScopedCaller;
use memtrove_core::memories::{
    Assertion, Identifier, Layer, Memory, MemoryCaller, MemoryId, Precondition, Promote, SearchMemories,
    Viewer,
};
use memtrove_core::{Clock, Error};
use memtrove_service::files::{Reader, WriteEvent};
use memtrove_service::memories::{StreamRequest, Streamed, Subscription};
use memtrove_service::quota::{QuotaLimits, QuotaSettings, Rate};
use memtrove_service::{Services, Settings};
use memtrove_store::files::forget;
use memtrove_store::postgres::PostgresEngine;
use memtrove_store::{AllTenants, Store, Tx, TxExt, leases, nodes};
use memtrove_testkit::clock::TestClock;
use memtrove_testkit::postgres::Database;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::task::{JoinHandle, JoinSet};
use uuid::Uuid;

const SECOND: i64 = 1_000_000;
const MINUTE: i64 = 60 * SECOND;

struct Node {
    services: Services,
    store: Store,
}

/// Nodes on one database, with one clock.
struct Cluster {
    nodes: Vec<Node>,
    clock: Arc<TestClock>,
    database: Arc<Database>,
}

impl Cluster {
    async fn new(nodes: usize, settings: Settings) -> Self {
        let (database, clock) = (Database::fresh(), Arc::new(TestClock::new()));
        let mut cluster = Self { nodes: Vec::new(), clock, database };
        for _ in 0..nodes {
            let engine = PostgresEngine::open(cluster.database.config()).unwrap();
            let store = Store::new(Arc::new(engine));
            let services =
                Services::new(store.clone(), cluster.clock.clone(), settings.clone()).await.unwrap();
            cluster.nodes.push(Node { services, store });
        }
        cluster
    }

    /// Who holds each lease.
    fn holders(&self) -> Vec<(String, String)> {
        let rows = self.database.rows("SELECT name, holder FROM leases ORDER BY name");
        rows.into_iter().map(|row| (row[0].clone().unwrap(), row[1].clone().unwrap())).collect()
    }

    async fn alive(&self) -> usize {
        let since = self.clock.now().saturating_add_micros(-15 * SECOND);
        self.nodes[0]
            .store
            .read(AllTenants, "test", move |tx| nodes::seen_since(tx, since))
            .await
            .unwrap()
            .len()
    }
}

impl Node {
    fn caller(&self, user: &str) -> MemoryCaller {
        self.services.memories.caller(&principal(user, None), "request".into())
    }

    async fn remember(&self, user: &str, body: Value) -> MemoryId {
        let memories = &self.services.memories;
        let added = memories.add(&self.caller(user), entry_of(&body), None).await.unwrap().now().unwrap();
        added.memory.memory.id
    }

    async fn delete(&self, user: &str, id: MemoryId) {
        let (any, at_any) = (Assertion::default(), Precondition::default());
        let caller = self.caller(user);
        let deleted = self.services.memories.delete(&caller, id, &any, &at_any);
        assert!(deleted.await.unwrap());
    }

    async fn remembered(&self, user: &str, place: Value) -> Vec<Memory> {
        let memories = &self.services.memories;
        let caller = self.caller(user);
        let list = list_of(&place);
        memories.list(&caller, list).await.unwrap().memories
    }

    async fn found(&self, user: &str, query: &str) -> Vec<String> {
        let memories = &self.services.memories;
        let caller = self.caller(user);
        let search = SearchMemories::new(identifiers(&[(Identifier::User, user)]), query.to_owned());
        let answer = memories.search(&caller, search).await.unwrap();
        answer.hits.into_iter().map(|hit| hit.memory.content.clone()).collect()
    }

    async fn follow(&self, user: &str, since: Option<i64>) -> Subscription {
        let caller = self.caller(user);
        let rules = self.services.memories.rules();
        let list = list_of(&place(user, json!({}))).check(rules, &caller).unwrap();
        let request = StreamRequest {
            scopes: vec![list.scope],
            viewer: Viewer { all: true, ..Viewer::default() },
            admits: Box::new(|_| true),
            milestones: false,
        };
        self.services.memories.subscribe(&caller, request, since).await.unwrap()
    }

    /// Works as a server does until it is told to stop, or is aborted.
    fn start(&self) -> (oneshot::Sender<()>, JoinHandle<()>) {
        let (stop, stopped) = oneshot::channel::<()>();
        let services = self.services.clone();
        (stop, tokio::spawn(async move { services.run_tasks(async { drop(stopped.await) }).await }))
    }
}

fn place(user: &str, members: Value) -> Value {
    let mut body = json!({"layer": "user", "identifiers": {"userId": user}});
    body.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
    body
}

fn say(user: &str, content: &str) -> Value {
    place(user, json!({ "content": content }))
}

fn scoped(user: &str) -> ScopedCaller {
    ScopedCaller::enter(&principal(user, Some("agent")), user.to_owned(), None, "request".to_owned()).unwrap()
}

/// What a follower is told next: the number, what happened and to what.
async fn next(following: &mut Subscription) -> (i64, &'static str, String) {
    let told = tokio::time::timeout(Duration::from_secs(10), following.next()).await;
    match told.expect("something is told").expect("the stream goes on") {
        Streamed::Happened(number, event) => (number, event.update.as_str(), event.memory.content.clone()),
        Streamed::Ready(newest) => (newest, "ready", String::new()),
        Streamed::Reset => (0, "reset", String::new()),
    }
}

async fn until(what: &str, mut done: impl AsyncFnMut() -> bool) {
    for _ in 0..200 {
        if done().await {
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("{what} did not happen");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_finds_at_once_what_another_wrote() {
    let cluster = Cluster::new(2, Settings::default()).await;
    let [one, other] = &cluster.nodes[..] else { unreachable!() };
    for round in 0..5 {
        let (writer, reader) = if round % 2 == 0 { (one, other) } else { (other, one) };
        let content = format!("the heron number {round} waits in the reeds");
        let id = writer.remember("alice", say("alice", &content)).await;
        assert!(reader.found("alice", "heron").await.contains(&content), "round {round}");
        writer.delete("alice", id).await;
        assert!(!reader.found("alice", "heron").await.contains(&content), "round {round}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn working_memory_is_one_for_all_nodes() {
    let cluster = Cluster::new(2, Settings::default()).await;
    let [one, other] = &cluster.nodes[..] else { unreachable!() };
    let body = place("alice", json!({"content": "scratch", "kind": "working"}));
    let id = one.remember("alice", body).await;
    let listed = other.remembered("alice", place("alice", json!({"limit": 10}))).await;
    assert_eq!(listed.iter().map(|memory| memory.content.as_str()).collect::<Vec<_>>(), ["scratch"]);
    other.delete("alice", id).await;
    assert_eq!(one.remembered("alice", place("alice", json!({"limit": 10}))).await.len(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn followers_are_told_in_one_order_on_every_node() {
    let cluster = Cluster::new(2, Settings::default()).await;
    let mut following = Vec::new();
    for node in &cluster.nodes {
        let mut follower = node.follow("alice", None).await;
        assert_eq!(next(&mut follower).await.1, "ready");
        following.push(follower);
    }
    let mut writers = JoinSet::new();
    for (writer, node) in cluster.nodes.iter().enumerate() {
        let (services, caller) = (node.services.clone(), node.caller("alice"));
        writers.spawn(async move {
            for number in 0..10 {
                let body = say("alice", &format!("number {number} of writer {writer}"));
                services.memories.add(&caller, entry_of(&body), None).await.unwrap();
            }
        });
    }
    writers.join_all().await;
    let mut told = Vec::new();
    for follower in &mut following {
        let mut here = Vec::new();
        for _ in 0..20 {
            here.push(next(follower).await);
        }
        told.push(here);
    }
    let without_position = |(_, update, said): &(i64, &'static str, String)| (*update, said.clone());
    let events = |told: &[(i64, &'static str, String)]| told.iter().map(without_position).collect::<Vec<_>>();
    assert_eq!(events(&told[0]), events(&told[1]));
    for told in &told {
        assert!(told.is_sorted_by(|(one, ..), (next, ..)| one < next), "{told:?}");
    }
    for writer in 0..2 {
        let mine = |(_, _, content): &&(i64, &str, String)| content.ends_with(&writer.to_string());
        let contents: Vec<&str> = told[0].iter().filter(mine).map(|(.., content)| content.as_str()).collect();
        let expected: Vec<String> = (0..10).map(|n| format!("number {n} of writer {writer}")).collect();
        assert_eq!(contents, expected, "nobody overtakes itself");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_writes_and_listens_on_one_node_is_told_everything() {
    let cluster = Cluster::new(1, Settings::default()).await;
    let node = &cluster.nodes[0];
    let mut following = node.follow("alice", None).await;
    assert_eq!(next(&mut following).await.1, "ready");
    for round in 0..5 {
        let content = format!("here and gone {round}");
        let id = node.remember("alice", say("alice", &content)).await;
        node.delete("alice", id).await;
        let (_, update, said) = next(&mut following).await;
        assert_eq!((update, said), ("created", content), "also of what is gone already");
        assert_eq!(next(&mut following).await.1, "deleted");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_event_is_told_on_another_node_as_the_memory_that_it_is() {
    let cluster = Cluster::new(2, Settings::default()).await;
    let [one, other] = &cluster.nodes[..] else { unreachable!() };
    let mut following = other.follow("alice", None).await;
    assert_eq!(next(&mut following).await.1, "ready");
    let event = json!({"event_id": "e", "tenant_id": "default", "user_id": "alice", "digest": "met Bob"});
    let (files, request) = (&one.services.files, WriteEvent { event: Some(event), key: None });
    files.write_event(&files.admit(scoped("alice")).await.unwrap(), request).await.unwrap();
    let (_, update, said) = next(&mut following).await;
    assert_eq!((update, said.as_str()), ("created", "met Bob"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_goes_on_on_another_node() {
    let cluster = Cluster::new(2, Settings::default()).await;
    let [one, other] = &cluster.nodes[..] else { unreachable!() };
    let mut following = one.follow("alice", None).await;
    assert_eq!(next(&mut following).await.1, "ready");
    let gone = one.remember("alice", say("alice", "first")).await;
    let (seen, update, _) = next(&mut following).await;
    assert_eq!(update, "created");
    drop(following);
    one.remember("alice", say("alice", "second")).await;
    other.remember("alice", say("alice", "third")).await;
    one.delete("alice", gone).await;

    let mut following = other.follow("alice", Some(seen)).await;
    let mut last = seen;
    for (expected, text) in [("ready", ""), ("created", "second"), ("created", "third"), ("deleted", "")] {
        let (position, update, said) = next(&mut following).await;
        assert_eq!((update, said.as_str()), (expected, text));
        assert!(position > last, "positions grow on every node");
        last = position;
    }
    let mut from_the_start = other.follow("alice", Some(0)).await;
    assert_eq!(next(&mut from_the_start).await.1, "ready");
    assert_eq!(next(&mut from_the_start).await.2, "second", "what is gone is not told again");

    one.remember("alice", say("alice", "fourth")).await;
    let (position, update, said) = next(&mut following).await;
    assert_eq!((update, said.as_str()), ("created", "fourth"));
    assert!(position > last);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_not_kept_any_more_is_said_on_every_node() {
    let cluster = Cluster::new(2, Settings::default()).await;
    let [one, other] = &cluster.nodes[..] else { unreachable!() };
    let mut following = one.follow("alice", None).await;
    assert_eq!(next(&mut following).await.1, "ready");
    one.remember("alice", say("alice", "first")).await;
    one.remember("alice", say("alice", "second")).await;
    let (first, ..) = next(&mut following).await;
    cluster.clock.advance_micros(6 * MINUTE);
    other.services.run_due_tasks().await.unwrap();
    let mut again = other.follow("alice", Some(first)).await;
    assert_eq!(next(&mut again).await.1, "ready");
    assert_eq!(next(&mut again).await.1, "reset");
    // A database that crashed has lost what it had.
    cluster.database.execute("TRUNCATE stream_events, stream_kept", &[]);
    one.remember("alice", say("alice", "third")).await;
    until("the end of the stream", async || again.next().await.is_none()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn forgetting_takes_the_words_out_of_what_is_still_told() {
    let cluster = Cluster::new(2, Settings::default()).await;
    let [one, other] = &cluster.nodes[..] else { unreachable!() };
    drop(one.follow("alice", None).await);
    one.remember("alice", say("alice", "a secret of alice")).await;
    let files = &other.services.files;
    files.forget(&files.admit(scoped("alice")).await.unwrap()).await.unwrap();
    let said = cluster.database.rows(
        "SELECT sequence FROM stream_events WHERE position('secret' in convert_from(body, 'UTF8')) > 0",
    );
    assert_eq!(said, Vec::<Vec<Option<String>>>::new());
    let left = cluster.database.rows("SELECT name FROM leases");
    assert_eq!(left, Vec::<Vec<Option<String>>>::new(), "and whoever forgot gave its lease back");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn promoting_the_same_on_two_nodes_makes_one_copy() {
    let cluster = Cluster::new(2, Settings::default()).await;
    let id = cluster.nodes[0].remember("alice", say("alice", "the heron waits")).await;
    let identifiers = identifiers(&[(Identifier::Project, "p")]);
    let to = Promote { target_layer: Layer::Project, identifiers, precondition: Precondition::default() };
    let mut promoting = JoinSet::new();
    for number in 0..6 {
        let node = &cluster.nodes[number % 2];
        let (services, caller) = (node.services.clone(), node.caller("alice"));
        let to = to.clone();
        promoting.spawn(async move { services.memories.promote(&caller, id, &to).await.unwrap() });
    }
    let promoted = promoting.join_all().await;
    assert_eq!(promoted.iter().filter(|promoted| !promoted.deduplicated).count(), 1);
    let project = json!({"layer": "project", "identifiers": {"projectId": "p"}, "limit": 10});
    assert_eq!(cluster.nodes[1].remembered("alice", project).await.len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn quotas_are_those_of_all_nodes_together() {
    let reads = Some(Rate { limit: 40, window: Duration::from_secs(3600) });
    let everywhere = QuotaLimits { user_reads: reads, ..QuotaLimits::default() };
    let quotas = QuotaSettings { everywhere, ..QuotaSettings::default() };
    let cluster = Cluster::new(3, Settings { quotas, ..Settings::default() }).await;
    let mut calls = JoinSet::new();
    for number in 0..90 {
        let files = cluster.nodes[number % 3].services.files.clone();
        calls.spawn(async move { files.admit::<Reader>(scoped("alice")).await.is_ok() });
    }
    let passed = calls.join_all().await.into_iter().filter(|passed| *passed).count();
    assert!((36..=40).contains(&passed), "{passed}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_feed_of_a_tenant_is_followed_on_any_node() {
    let cluster = Cluster::new(2, Settings::default()).await;
    let [one, other] = &cluster.nodes[..] else { unreachable!() };
    let admin = principal("admin", None);
    let mut follower = other.services.changes.follow(&admin, None).await.unwrap();
    for number in 1..=3 {
        one.remember("alice", say("alice", &format!("number {number}"))).await;
        let page = tokio::time::timeout(Duration::from_secs(10), follower.next());
        let page = page.await.expect("the follower is woken").unwrap().unwrap();
        assert_eq!(page.changes.iter().map(|change| change.sequence).collect::<Vec<_>>(), [number]);
    }
    other.remember("alice", say("alice", "number 4")).await;
    let page = one.services.changes.page(&admin, Some(3), None).await.unwrap();
    assert_eq!(page.changes.len(), 1, "what is acknowledged is in the feed");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_takes_over_what_a_dead_one_did_for_all() {
    let settings = Settings { lease: Duration::from_millis(300), ..Settings::default() };
    let cluster = Cluster::new(2, settings).await;
    let (_stop, dying) = cluster.nodes[0].start();
    let everything =
        ["chores", "retention", "texts", "upkeep of memories", "vectors"].map(str::to_owned).to_vec();
    let does =
        |holders: &[(String, String)]| everything.iter().all(|name| holders.iter().any(|(n, _)| n == name));
    until("the first node's work", async || does(&cluster.holders())).await;
    tokio::time::sleep(Duration::from_millis(200)).await;
    let first = cluster.holders();
    let (stop, living) = cluster.nodes[1].start();
    until("the second node", async || cluster.alive().await == 2).await;
    tokio::time::sleep(Duration::from_millis(400)).await;
    assert_eq!(cluster.holders(), first, "the second one leaves it to the first");

    dying.abort();
    let _ = dying.await;
    tokio::time::sleep(Duration::from_millis(400)).await;
    assert_eq!(cluster.holders(), first, "nobody knows yet");
    cluster.clock.advance_micros(16 * SECOND);
    let taken_over = async || {
        let now = cluster.holders();
        does(&now) && now.iter().zip(&first).all(|(now, first)| now.1 != first.1)
    };
    until("the second node's work", taken_over).await;
    until("the end of the first", async || cluster.alive().await == 1).await;

    drop(stop);
    living.await.unwrap();
    assert_eq!(cluster.holders(), [], "whoever stops gives back what it had");
    assert_eq!(cluster.alive().await, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_forget_is_finished_by_another_node_once_its_own_is_gone() {
    let cluster = Cluster::new(2, Settings::default()).await;
    let [one, other] = &cluster.nodes[..] else { unreachable!() };
    one.remember("alice", say("alice", "something")).await;
    let (who, now) = (scoped("alice").scope, cluster.clock.now());
    let detach = move |tx: &mut dyn Tx| {
        let begun = forget::detach(tx, &who, now)?;
        let (name, until) =
            (format!("forget {}", begun.forgets[0].number()), now.saturating_add_micros(15 * SECOND));
        leases::take(tx, &name, Uuid::from_u128(99), now, until)?;
        Ok::<_, Error>(())
    };
    one.store.write(AllTenants, "test", detach).await.unwrap();
    let unfinished = || {
        other.store.read(AllTenants, "test", |tx| {
            Ok::<_, Error>(tx.first("SELECT COUNT(*) FROM memories", &[], |row| row.int(0))?)
        })
    };
    let left = async || {
        let sql = "SELECT id FROM forgotten_users WHERE user_id IS NOT NULL";
        cluster.database.rows(sql).len()
    };
    other.services.run_due_tasks().await.unwrap();
    assert_eq!(left().await, 1, "somebody is at it");
    cluster.clock.advance_micros(16 * SECOND);
    other.services.run_due_tasks().await.unwrap();
    assert_eq!(left().await, 0);
    assert_eq!(unfinished().await.unwrap(), Some(0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_same_job_asked_for_on_two_nodes_is_one() {
    let cluster = Cluster::new(2, Settings::default()).await;
    let admin = principal("admin", None);
    let mut asked = JoinSet::new();
    for number in 0..6 {
        let (services, admin) = (cluster.nodes[number % 2].services.clone(), admin.clone());
        asked.spawn(async move { services.vectors.reindex(&admin, None).await.unwrap() });
    }
    let mut ids = asked.join_all().await;
    ids.dedup();
    assert_eq!(ids.len(), 1);
}
