//! What several nodes do together, by PostgreSQL and by Redis.

use super::{
    AT_ONCE, conversation, elsewhere, ended_within, goes_on, in_progress, read, reader, record, replayed,
};
use crate::world::caller;
use memtrove_core::identity::Caller;
use memtrove_core::{Code, ConversationId, Error};
use memtrove_service::recorder::{Address, Cancel, EndReason, Recording, Replay};
use memtrove_service::{RecorderBackend, RecorderSettings, Services, Settings};
use memtrove_store::Store;
use memtrove_store::postgres::PostgresEngine;
use memtrove_testkit::clock::TestClock;
use memtrove_testkit::postgres::Database;
use memtrove_testkit::redis::Redis;
use std::io::{BufRead, BufReader, Write};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::oneshot;

/// How long a locator lasts here.
const TTL: Duration = Duration::from_millis(1200);
/// How long it lasts where it must not run out.
const LONG: Duration = Duration::from_secs(120);
/// Within what time everybody knows.
const SOON: Duration = Duration::from_secs(6);

/// Where locators are.
#[derive(Clone, Copy, PartialEq, Eq)]
enum By {
    Postgres,
    Redis,
}

struct Cluster {
    nodes: Vec<Services>,
    running: Vec<Option<oneshot::Sender<()>>>,
    database: Arc<Database>,
    redis: Option<Arc<Redis>>,
    alice: Caller,
}

impl Cluster {
    /// Two nodes that do not confirm what they hold.
    async fn new(by: By) -> Self {
        Self::lasting(by, TTL, |number| Some(Address { host: format!("node-{number}"), port: 8080 })).await
    }

    /// The same, with locators that last so long and these addresses.
    async fn lasting(by: By, locator_ttl: Duration, address: impl Fn(u16) -> Option<Address>) -> Self {
        let (database, clock) = (Database::fresh(), Arc::new(TestClock::new()));
        let redis = (by == By::Redis).then(Redis::start);
        let mut nodes = Vec::new();
        for number in 1..=2 {
            let backend = match &redis {
                Some(redis) => RecorderBackend::Redis(redis.url()),
                None => RecorderBackend::Store,
            };
            let advertised_address = address(number);
            let recorder =
                RecorderSettings { backend, advertised_address, locator_ttl, ..Default::default() };
            let settings = Settings { recorder, ..Settings::default() };
            let store = Store::new(Arc::new(PostgresEngine::open(database.config()).unwrap()));
            nodes.push(Services::new(store, clock.clone(), settings).await.unwrap());
        }
        Self { nodes, running: vec![None, None], database, redis, alice: caller("alice", None) }
    }

    /// As [`Cluster::new`], and both of them work as a server does.
    async fn running(by: By) -> Self {
        let mut cluster = Self::new(by).await;
        cluster.run(0);
        cluster.run(1);
        cluster
    }

    fn run(&mut self, node: usize) {
        let (stop, stopped) = oneshot::channel::<()>();
        let services = self.nodes[node].clone();
        tokio::spawn(async move { services.run_tasks(async { drop(stopped.await) }).await });
        self.running[node] = Some(stop);
    }

    async fn conversation(&self) -> ConversationId {
        conversation(&self.nodes[0], &self.alice).await
    }

    async fn record(&self, node: usize, id: ConversationId) -> Recording {
        record(&self.nodes[node], &self.alice, id).await
    }

    async fn elsewhere(&self, node: usize, id: ConversationId) -> Option<String> {
        elsewhere(&self.nodes[node], &self.alice, id).await.map(|address| address.to_string())
    }

    async fn in_progress(&self, node: usize, id: ConversationId) -> bool {
        in_progress(&self.nodes[node], &self.alice, id).await
    }

    /// Waits until somebody who asks a node for a recording is told this.
    async fn until_elsewhere(&self, node: usize, id: ConversationId, address: Option<&str>) {
        let started = Instant::now();
        while self.elsewhere(node, id).await.as_deref() != address {
            assert!(started.elapsed() < SOON, "it is not at {address:?}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

macro_rules! by_both {
    ($($(#[$doc:meta])* $name:ident;)*) => {
        mod postgres {
            $(#[tokio::test(flavor = "multi_thread")] async fn $name() { super::$name(super::By::Postgres).await; })*
        }
        mod redis {
            $(#[tokio::test(flavor = "multi_thread")] async fn $name() { super::$name(super::By::Redis).await; })*
        }
    };
}

by_both! {
    another_node_says_where_a_recording_is;
    a_recording_on_another_node_supersedes_the_running_one;
    what_a_node_does_not_confirm_any_more_is_believed_for_a_while_and_no_longer;
    a_recording_that_another_node_took_over_is_never_confirmed_again;
    a_recording_that_was_superseded_by_a_short_one_does_not_go_on;
    a_conversation_deleted_on_another_node_is_not_recorded_any_more;
    of_many_that_begin_at_once_on_two_nodes_one_goes_on;
    a_locator_of_an_earlier_process_at_the_same_address_leads_nowhere_when_it_has_run_out;
    another_node_at_the_same_address_is_not_taken_for_this_one;
    what_ended_here_is_not_replayed_any_more_when_another_node_recorded_after_it;
    what_is_no_locator_leads_nowhere;
    a_node_that_stops_says_so;
    confirmed_recordings_outlive_their_first_locator;
}

async fn another_node_says_where_a_recording_is(by: By) {
    let cluster = Cluster::running(by).await;
    let id = cluster.conversation().await;
    assert_eq!(replayed(&cluster.nodes[1], &cluster.alice, id).await, None);
    let mut recording = cluster.record(0, id).await;
    recording.append("hello").await.unwrap();
    assert_eq!(cluster.elsewhere(1, id).await.unwrap(), "node-1:8080");
    assert!(cluster.in_progress(0, id).await && cluster.in_progress(1, id).await);
    let there = Address { host: "NODE-1".into(), port: 8080 };
    let cancelled = cluster.nodes[1].recorder.cancel(&cluster.alice, id, None).await.unwrap();
    assert_eq!(cancelled, Cancel::Elsewhere(there));
    assert!(goes_on(&recording).await);
    let cancelled = cluster.nodes[0].recorder.cancel(&cluster.alice, id, None).await.unwrap();
    assert_eq!(cancelled, Cancel::Done);
    assert_eq!(ended_within(&recording, AT_ONCE).await, EndReason::Cancelled);
    assert!(!cluster.in_progress(1, id).await, "whoever cancelled can rely on it");
    assert_eq!(replayed(&cluster.nodes[1], &cluster.alice, id).await, None);
    assert_eq!(replayed(&cluster.nodes[0], &cluster.alice, id).await.unwrap(), "hello");
}

async fn a_recording_on_another_node_supersedes_the_running_one(by: By) {
    let cluster = Cluster::running(by).await;
    let id = cluster.conversation().await;
    let mut old = cluster.record(0, id).await;
    old.append("old").await.unwrap();
    let of_old = reader(&cluster.nodes[0], &cluster.alice, id).await;
    let new = cluster.record(1, id).await;
    assert_eq!(cluster.elsewhere(0, id).await.unwrap(), "node-2:8080", "at once");
    assert_eq!(ended_within(&old, SOON).await, EndReason::Superseded);
    assert_eq!(read(of_old).await, "old");
    old.finish().await;
    tokio::time::sleep(TTL * 2).await;
    assert!(goes_on(&new).await);
    assert_eq!(cluster.elsewhere(0, id).await.unwrap(), "node-2:8080");
    new.finish().await;
    assert_eq!(
        replayed(&cluster.nodes[0], &cluster.alice, id).await,
        None,
        "the old one is not replayed any more"
    );
}

async fn what_a_node_does_not_confirm_any_more_is_believed_for_a_while_and_no_longer(by: By) {
    let mut cluster = Cluster::new(by).await;
    cluster.run(1);
    let id = cluster.conversation().await;
    let recording = cluster.record(0, id).await;
    assert!(cluster.in_progress(1, id).await);
    cluster.until_elsewhere(1, id, None).await;
    assert!(!cluster.in_progress(1, id).await);
    assert_eq!(replayed(&cluster.nodes[1], &cluster.alice, id).await, None);
    assert!(goes_on(&recording).await, "it does not know yet");
}

async fn a_recording_that_another_node_took_over_is_never_confirmed_again(by: By) {
    let mut cluster = Cluster::new(by).await;
    let id = cluster.conversation().await;
    let old = cluster.record(0, id).await;
    // As long as a node may stand still.
    cluster.until_elsewhere(1, id, None).await;
    let new = cluster.record(1, id).await;
    cluster.run(1);
    cluster.run(0);
    assert_eq!(ended_within(&old, SOON).await, EndReason::Superseded);
    assert!(goes_on(&new).await);
    assert_eq!(cluster.elsewhere(0, id).await.unwrap(), "node-2:8080");
}

async fn a_recording_that_was_superseded_by_a_short_one_does_not_go_on(by: By) {
    let cluster = Cluster::running(by).await;
    let id = cluster.conversation().await;
    let old = cluster.record(0, id).await;
    cluster.until_elsewhere(1, id, Some("node-1:8080")).await;
    cluster.record(1, id).await.finish().await;
    assert_eq!(ended_within(&old, SOON).await, EndReason::Superseded);
}

async fn a_conversation_deleted_on_another_node_is_not_recorded_any_more(by: By) {
    let cluster = Cluster::running(by).await;
    let id = cluster.conversation().await;
    let recording = cluster.record(0, id).await;
    cluster.nodes[1].conversations.delete(&cluster.alice, id).await.unwrap();
    assert_eq!(ended_within(&recording, SOON).await, EndReason::Cancelled);
}

async fn of_many_that_begin_at_once_on_two_nodes_one_goes_on(by: By) {
    let cluster = Cluster::running(by).await;
    let id = cluster.conversation().await;
    let begun: Vec<_> = (0..40)
        .map(|number| {
            let (services, alice) = (cluster.nodes[number % 2].clone(), cluster.alice.clone());
            tokio::spawn(async move { record(&services, &alice, id).await })
        })
        .collect();
    let mut recordings = Vec::new();
    for recording in begun {
        recordings.push(recording.await.unwrap());
    }
    // All but the one that the locator names come to know.
    let started = Instant::now();
    let on = loop {
        let mut on = Vec::new();
        for recording in &recordings {
            if goes_on(recording).await {
                on.push(recording.id());
            }
        }
        if on.len() <= 1 {
            break on;
        }
        assert!(started.elapsed() < SOON, "{} go on", on.len());
        tokio::time::sleep(Duration::from_millis(20)).await;
    };
    tokio::time::sleep(TTL).await;
    let last = recordings.iter().find(|recording| on.contains(&recording.id())).expect("one that goes on");
    assert!(goes_on(last).await);
    assert!(cluster.in_progress(0, id).await && cluster.in_progress(1, id).await);
}

async fn a_locator_of_an_earlier_process_at_the_same_address_leads_nowhere_when_it_has_run_out(by: By) {
    let mut cluster = Cluster::lasting(by, TTL, |_| None).await;
    cluster.run(1);
    let id = cluster.conversation().await;
    let reached_at = Some("10.0.0.7:8080".parse().unwrap());
    let alice = &cluster.alice;
    let _recording = cluster.nodes[0].recorder.record(alice, id, reached_at).await.unwrap();
    assert_eq!(cluster.elsewhere(1, id).await.unwrap(), "10.0.0.7:8080");
    let next = &cluster.nodes[1].recorder;
    let (replay, cancel) =
        tokio::join!(next.replay(alice, id, reached_at), next.cancel(alice, id, reached_at));
    assert!(matches!(replay.unwrap(), Replay::Nothing));
    assert_eq!(cancel.unwrap(), Cancel::Done);
}

async fn another_node_at_the_same_address_is_not_taken_for_this_one(by: By) {
    let mut cluster = Cluster::lasting(by, TTL, |_| None).await;
    cluster.run(0);
    cluster.run(1);
    let id = cluster.conversation().await;
    let reached_at = Some("127.0.0.1:8080".parse().unwrap());
    let alice = &cluster.alice;
    let recording = cluster.nodes[0].recorder.record(alice, id, reached_at).await.unwrap();
    let other = &cluster.nodes[1].recorder;
    let (replay, cancel) =
        tokio::join!(other.replay(alice, id, reached_at), other.cancel(alice, id, reached_at));
    for refused in [replay.err(), cancel.err()] {
        let Some(Error { code: Code::PeerUnreachable, cause: Some(reason), .. }) = refused else {
            panic!("{refused:?}")
        };
        assert!(reason.contains("recorder.advertised_address"), "{reason}");
    }
    assert!(goes_on(&recording).await);
    assert_eq!(cluster.nodes[0].recorder.cancel(alice, id, reached_at).await.unwrap(), Cancel::Done);
    assert_eq!(ended_within(&recording, AT_ONCE).await, EndReason::Cancelled);
}

async fn what_ended_here_is_not_replayed_any_more_when_another_node_recorded_after_it(by: By) {
    let cluster = Cluster::running(by).await;
    let (asked, checked) = (cluster.conversation().await, cluster.conversation().await);
    for id in [asked, checked] {
        let mut first = cluster.record(0, id).await;
        first.append("the first").await.unwrap();
        first.finish().await;
        assert_eq!(replayed(&cluster.nodes[0], &cluster.alice, id).await.unwrap(), "the first");
    }
    let second = [cluster.record(1, asked).await, cluster.record(1, checked).await];
    assert!(cluster.elsewhere(0, asked).await.is_some());
    assert!(cluster.in_progress(0, checked).await);
    for recording in second {
        recording.finish().await;
    }
    assert_eq!(replayed(&cluster.nodes[0], &cluster.alice, asked).await, None);
    assert_eq!(replayed(&cluster.nodes[0], &cluster.alice, checked).await, None);
}

async fn what_is_no_locator_leads_nowhere(by: By) {
    let cluster = Cluster::lasting(by, LONG, |_| None).await;
    let id = cluster.conversation().await;
    let recording = cluster.record(0, id).await;
    assert!(cluster.elsewhere(1, id).await.is_some());
    match &cluster.redis {
        Some(redis) => {
            let value = format!("a@evil.example|80|{}|{}", recording.id(), recording.id());
            assert_eq!(said(redis, &format!("SET memtrove:default:response:{id} {value}")), "+OK");
        }
        None => {
            let changed = "UPDATE recordings SET host = 'a@evil.example' WHERE tenant <> ''";
            assert_eq!(cluster.database.execute(changed, &[]), 1);
        }
    }
    assert_eq!(replayed(&cluster.nodes[1], &cluster.alice, id).await, None);
    assert!(!cluster.in_progress(1, id).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_redis_heard_of_and_did_not_answer_in_time_is_taken_back() {
    let cluster = Cluster::lasting(By::Redis, LONG, |_| None).await;
    let id = cluster.conversation().await;
    let redis = cluster.redis.as_ref().unwrap();
    assert_eq!(said(redis, "CLIENT PAUSE 2600 ALL"), "+OK");
    let refused = cluster.nodes[0].recorder.record(&cluster.alice, id, None).await.err().unwrap();
    assert!(matches!(refused, Error { code: Code::StorageUnavailable, .. }), "{refused}");
    // Answered when the pause is over, behind what was sent during it.
    said(redis, "PING");
    let started = Instant::now();
    while cluster.in_progress(1, id).await {
        assert!(started.elapsed() < SOON, "it is said to be in progress");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// What Redis answers.
fn said(redis: &Redis, command: &str) -> String {
    let mut stream = std::net::TcpStream::connect(redis.address()).unwrap();
    write!(stream, "{command}\r\n").unwrap();
    let mut line = String::new();
    BufReader::new(stream).read_line(&mut line).unwrap();
    line.trim_end().to_owned()
}

async fn a_node_that_stops_says_so(by: By) {
    let mut cluster = Cluster::running(by).await;
    let id = cluster.conversation().await;
    let recording = cluster.record(0, id).await;
    assert!(cluster.elsewhere(1, id).await.is_some());
    drop(cluster.running[0].take());
    assert_eq!(ended_within(&recording, SOON).await, EndReason::Stopped);
    cluster.until_elsewhere(1, id, None).await;
}

async fn confirmed_recordings_outlive_their_first_locator(by: By) {
    let cluster = Cluster::running(by).await;
    let (first, second) = (cluster.conversation().await, cluster.conversation().await);
    let recordings = [cluster.record(0, first).await, cluster.record(0, second).await];
    tokio::time::sleep(TTL * 3).await;
    let found = cluster.nodes[1].recorder.check(&cluster.alice, vec![second, first]).await.unwrap();
    assert_eq!(found, [second, first]);
    assert!(goes_on(&recordings[0]).await && goes_on(&recordings[1]).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn recordings_go_on_while_redis_is_away_and_are_found_when_it_is_back() {
    let cluster = Cluster::running(By::Redis).await;
    let (id, other) = (cluster.conversation().await, cluster.conversation().await);
    let mut recording = cluster.record(0, id).await;
    recording.append("before").await.unwrap();
    let redis = cluster.redis.as_ref().unwrap();
    redis.kill();
    let refused = cluster.nodes[0].recorder.record(&cluster.alice, other, None).await.err().unwrap();
    assert!(matches!(refused, Error { code: Code::StorageUnavailable, .. }), "{refused}");
    recording.append(", meanwhile").await.unwrap();
    let mut reading = reader(&cluster.nodes[0], &cluster.alice, id).await;
    assert_eq!(reading.next().await.unwrap().unwrap(), "before, meanwhile");
    let refused = cluster.nodes[1].recorder.replay(&cluster.alice, id, None).await.err().unwrap();
    assert!(matches!(refused, Error { code: Code::StorageUnavailable, .. }), "{refused}");
    tokio::time::sleep(TTL * 2).await;
    redis.restart();
    let started = Instant::now();
    while !matches!(cluster.nodes[1].recorder.check(&cluster.alice, vec![id]).await.as_deref(), Ok([_])) {
        assert!(started.elapsed() < SOON, "nobody finds it");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(cluster.elsewhere(1, id).await.unwrap(), "node-1:8080");
    assert!(goes_on(&recording).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_crash_of_the_database_that_empties_its_table_ends_no_recording() {
    let cluster = Cluster::running(By::Postgres).await;
    let id = cluster.conversation().await;
    let recording = cluster.record(0, id).await;
    // Until both nodes have confirmed something.
    tokio::time::sleep(TTL).await;
    cluster.database.execute("TRUNCATE recordings", &[]);
    assert_eq!(cluster.elsewhere(1, id).await, None);
    cluster.until_elsewhere(1, id, Some("node-1:8080")).await;
    assert!(goes_on(&recording).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restart_of_redis_that_empties_it_ends_no_recording() {
    let cluster = Cluster::running(By::Redis).await;
    let id = cluster.conversation().await;
    let recording = cluster.record(0, id).await;
    tokio::time::sleep(TTL).await;
    cluster.redis.as_ref().unwrap().restart();
    let started = Instant::now();
    while !matches!(cluster.nodes[1].recorder.check(&cluster.alice, vec![id]).await.as_deref(), Ok([_])) {
        assert!(started.elapsed() < SOON, "nobody finds it");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert!(goes_on(&recording).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_dead_nodes_have_left_in_the_database_is_removed() {
    let mut cluster = Cluster::new(By::Postgres).await;
    let id = cluster.conversation().await;
    let _recording = cluster.record(0, id).await;
    cluster.until_elsewhere(1, id, None).await;
    cluster.run(1);
    let started = Instant::now();
    while !cluster.database.rows("SELECT 1 FROM recordings WHERE tenant <> ''").is_empty() {
        assert!(started.elapsed() < SOON * 3, "it is still there");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
