//! What the server deletes without being asked: events past their days, keys past their time.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod world;

use memloom_core::Error;
use memloom_core::files::ScopedCaller;
use memloom_service::{RetentionSettings, Settings};
use memloom_store::TxExt;
use serde_json::{Map, json};
use std::time::Duration;
use world::{World, principal};

const HOUR: i64 = 3600 * 1_000_000;
const DAY: i64 = 24 * HOUR;

fn caller(user: &str) -> ScopedCaller {
    ScopedCaller::enter(&principal(user, Some("agent")), user.to_owned(), None, "request".to_owned()).unwrap()
}

trait Events {
    async fn write(&self, user: &str, id: &str, key: Option<&str>);
    async fn found(&self, user: &str) -> usize;
    async fn keys(&self) -> i64;
}

impl Events for World {
    async fn write(&self, user: &str, id: &str, key: Option<&str>) {
        let event = json!({"event_id": id, "tenant_id": "default", "user_id": user, "digest": "met Bob"});
        let key = key.map(str::to_owned);
        self.services.files.write_event(&caller(user), json!({ "event": event }), key).await.unwrap();
    }

    async fn found(&self, user: &str) -> usize {
        self.services.files.search_events(&caller(user), &Map::new()).await.unwrap().len()
    }

    async fn keys(&self) -> i64 {
        let count = |row: &dyn memloom_store::Row| row.int(0);
        self.store
            .read("test", move |tx| {
                Ok::<_, Error>(tx.first("SELECT COUNT(*) FROM file_idempotency", &[], count)?.unwrap())
            })
            .await
            .unwrap()
    }
}

#[tokio::test]
async fn the_configured_days_are_applied_to_everybody_at_the_start_and_again() {
    let interval = Duration::from_millis(5);
    let retention = RetentionSettings { events_days: Some(30), interval, ..RetentionSettings::default() };
    let world = World::new(Settings { retention, ..Settings::default() }).await;
    for user in ["alice", "bob"] {
        world.write(user, "old", None).await;
    }
    world.clock.advance_micros(20 * DAY);
    world.write("alice", "new", None).await;

    let ends = async |alice: usize, bob: usize| {
        while (world.found("alice").await, world.found("bob").await) != (alice, bob) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let script = async {
        // Several sweeps later everything is still there, because nothing is old enough.
        tokio::time::sleep(Duration::from_millis(50)).await;
        assert_eq!((world.found("alice").await, world.found("bob").await), (2, 1));
        world.clock.advance_micros(11 * DAY);
        ends(1, 0).await;
        world.clock.advance_micros(20 * DAY);
        ends(0, 0).await;
    };
    tokio::time::timeout(Duration::from_secs(60), world.services.run_tasks(script)).await.unwrap();
}

#[tokio::test]
async fn without_days_nothing_goes() {
    let world = World::new(Settings::default()).await;
    world.write("alice", "old", None).await;
    world.clock.advance_micros(36_500 * DAY);
    assert_eq!(world.services.files.sweep().await.unwrap(), (0, 0));
    assert_eq!(world.found("alice").await, 1);
}

#[tokio::test]
async fn idempotency_keys_go_when_their_time_is_over() {
    let idempotency_retention = Duration::from_secs(3600);
    let world = World::new(Settings { idempotency_retention, ..Settings::default() }).await;
    world.write("alice", "e", Some("key")).await;
    world.clock.advance_micros(HOUR);
    world.services.run_due_tasks().await.unwrap();
    assert_eq!(world.keys().await, 1);
    world.clock.advance_micros(1);
    world.services.run_due_tasks().await.unwrap();
    assert_eq!(world.keys().await, 0);
}
