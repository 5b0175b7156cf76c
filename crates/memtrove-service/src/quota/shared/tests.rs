use super::*;
use crate::quota::{QuotaLimits, QuotaSettings};
use memtrove_core::{Clock, Details};
use memtrove_store::sqlite::VolatileEngine;
use memtrove_store::{Engine, Health, QueuedWork};
use memtrove_testkit::clock::TestClock;
use proptest::prelude::*;
use std::time::Duration;
use tokio::sync::oneshot;

const SECOND: i64 = 1_000_000;

fn rate(limit: u64, seconds: u64) -> Option<Rate> {
    Some(Rate { limit, window: Duration::from_secs(seconds) })
}

/// A store that says that others use it, too.
struct SaysShared(VolatileEngine);

impl Engine for SaysShared {
    fn read(&self, job: QueuedWork) {
        self.0.read(job);
    }

    fn write(&self, job: QueuedWork) {
        self.0.write(job);
    }

    fn health(&self) -> Health {
        self.0.health()
    }

    fn empty_log(&self) -> oneshot::Receiver<Result<bool, StoreError>> {
        self.0.empty_log()
    }

    fn is_shared(&self) -> bool {
        true
    }

    fn describe(&self) -> String {
        self.0.describe()
    }

    fn close(&self) {
        self.0.close();
    }
}

/// The quotas of some nodes that share a store, and one clock.
struct Cluster {
    nodes: Vec<Quotas>,
    store: Store,
    clock: Arc<TestClock>,
}

impl Cluster {
    fn new(nodes: usize, everywhere: QuotaLimits) -> Self {
        let engine = SaysShared(VolatileEngine::open().unwrap());
        let (store, clock) = (Store::new(Arc::new(engine)), Arc::new(TestClock::new()));
        let settings = QuotaSettings { everywhere, ..QuotaSettings::default() };
        let node = || Quotas::across(settings.clone(), clock.clone(), &store, [7; 32]);
        Self { nodes: (0..nodes).map(|_| node()).collect(), store: store.clone(), clock }
    }

    /// How many of `calls` calls of alice are let through, by the nodes in turn.
    async fn passed(&self, calls: usize) -> usize {
        let mut passed = 0;
        for node in self.nodes.iter().cycle().take(calls) {
            passed += usize::from(node.spend("acme", "alice", "agent", CallKind::Read).await.is_ok());
        }
        passed
    }

    /// How often the store was asked.
    fn draws(&self) -> u64 {
        *self.store.commits().borrow()
    }
}

#[tokio::test]
async fn nodes_together_pass_what_one_would() {
    let cluster = Cluster::new(3, QuotaLimits { user_reads: rate(10, 60), ..QuotaLimits::default() });
    assert_eq!(cluster.passed(30).await, 10);
    cluster.clock.advance_micros(6 * SECOND);
    assert_eq!(cluster.passed(9).await, 1);
    let refused = cluster.nodes[2].spend("acme", "alice", "agent", CallKind::Read).await;
    let Err(Error { details: Details::Quota(quota), .. }) = refused else { panic!("{refused:?}") };
    assert_eq!(quota.retry_after_seconds, 6);
    assert_eq!(cluster.nodes[0].spend("acme", "bob", "agent", CallKind::Read).await, Ok(()));
}

#[tokio::test]
async fn what_a_node_holds_is_all_that_another_may_miss() {
    let limit = 200;
    let cluster = Cluster::new(3, QuotaLimits { user_reads: rate(limit, 60), ..QuotaLimits::default() });
    let passed = cluster.passed(3 * limit as usize).await;
    assert!(passed <= limit as usize, "{passed}");
    assert!(passed >= limit as usize - 2 * limit as usize / 20, "{passed}");
}

#[tokio::test]
async fn a_busy_node_seldom_asks_the_store() {
    let cluster = Cluster::new(1, QuotaLimits { user_reads: rate(60_000, 60), ..QuotaLimits::default() });
    // Whoever listens makes the store count.
    let _listening = cluster.store.commits();
    for _ in 0..2_000 {
        cluster.clock.advance_micros(5_000);
        assert_eq!(cluster.nodes[0].spend("acme", "alice", "agent", CallKind::Read).await, Ok(()));
    }
    let draws = cluster.draws();
    assert!(draws < 40, "2000 calls in 10 seconds asked {draws} times");
}

#[tokio::test]
async fn a_node_that_was_refused_does_not_ask_again_before_there_is_something() {
    let cluster = Cluster::new(1, QuotaLimits { user_reads: rate(1, 60), ..QuotaLimits::default() });
    let _listening = cluster.store.commits();
    assert_eq!(cluster.passed(1_000).await, 1);
    assert_eq!(cluster.draws(), 2);
}

#[tokio::test]
async fn what_a_cap_refused_is_given_back_to_all_nodes() {
    let cluster = Cluster::new(2, QuotaLimits { user_writes: rate(1, 60), ..QuotaLimits::default() });
    for _ in 0..3 {
        assert_eq!(cluster.nodes[0].spend("acme", "alice", "agent", CallKind::Write).await, Ok(()));
        cluster.nodes[0].refund("acme", "alice", "agent", CallKind::Write);
    }
    // The next draw on the same node waits for it.
    assert_eq!(cluster.nodes[0].spend("acme", "alice", "agent", CallKind::Write).await, Ok(()));
    assert!(cluster.nodes[1].spend("acme", "alice", "agent", CallKind::Write).await.is_err());
}

#[tokio::test]
async fn refused_by_one_bucket_a_call_takes_nothing_from_the_other() {
    let limits =
        QuotaLimits { user_reads: rate(1, 60), service_reads: rate(5, 60), ..QuotaLimits::default() };
    let cluster = Cluster::new(2, limits);
    let (mut passed, nodes) = (0, &cluster.nodes);
    for number in 0..20 {
        cluster.clock.advance_micros(1);
        passed +=
            usize::from(nodes[number % 2].spend("acme", "alice", "agent", CallKind::Read).await.is_ok());
    }
    assert_eq!(passed, 1);
    for number in 0..20 {
        let user = format!("user {number}");
        cluster.clock.advance_micros(1);
        passed += usize::from(
            nodes[number % 2].spend("acme", user.as_str(), "agent", CallKind::Read).await.is_ok(),
        );
    }
    assert_eq!(passed, 5);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_of_all_nodes_at_once_share_what_there_is() {
    let limit = 100;
    let limits = QuotaLimits { user_reads: rate(limit, 60), ..QuotaLimits::default() };
    let cluster = Arc::new(Cluster::new(3, limits));
    let mut calls = tokio::task::JoinSet::new();
    for number in 0..300 {
        let cluster = cluster.clone();
        calls.spawn(async move {
            cluster.nodes[number % 3].spend("acme", "alice", "agent", CallKind::Read).await.is_ok()
        });
    }
    let passed = calls.join_all().await.into_iter().filter(|passed| *passed).count() as u64;
    assert!(passed <= limit && passed >= limit - 2 * (limit / 20), "{passed}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn nodes_together_never_pass_more_than_the_limit_and_its_refill_in_any_length_of_time(
        limit in 1..300u64,
        window in 1..10u64,
        calls in prop::collection::vec((0..3usize, prop_oneof![Just(0), 1..20_000i64, 0..SECOND]), 1..400),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let times = runtime.block_on(async {
            let limits = QuotaLimits { user_reads: rate(limit, window), ..QuotaLimits::default() };
            let cluster = Cluster::new(3, limits);
            let mut times = Vec::new();
            for (node, pause) in calls {
                cluster.clock.advance_micros(pause);
                if cluster.nodes[node].spend("acme", "alice", "agent", CallKind::Read).await.is_ok() {
                    times.push(cluster.clock.now().as_micros());
                }
            }
            times
        });
        for (first, from) in times.iter().enumerate() {
            for (last, to) in times.iter().enumerate().skip(first) {
                let refill = (to - from) as u64 * limit / (window * SECOND as u64);
                let calls = (last - first + 1) as u64;
                prop_assert!(calls <= limit + refill, "{calls} calls in {} µs", to - from);
            }
        }
    }
}
