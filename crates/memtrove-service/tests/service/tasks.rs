//! The task queue: claimed, tried again later, and one failure at a time.

use crate::world::World;
use memtrove_core::{Clock, Error};
use memtrove_service::Settings;
use memtrove_store::{AllTenants, TxExt, tasks};
use std::time::Duration;

const MINUTE: i64 = 60_000_000;
const HOUR: i64 = 60 * MINUTE;

async fn world() -> World {
    World::new(Settings {
        task_batch_size: 3,
        task_retry_delay: Duration::from_secs(600),
        ..Settings::default()
    })
    .await
}

trait Queue {
    async fn enqueue(&self, name: Option<&'static str>, kind: &'static str);
    /// Kind, failures and microseconds until the next try of every task.
    async fn queue(&self) -> Vec<(String, i64, i64)>;
}

impl Queue for World {
    async fn enqueue(&self, name: Option<&'static str>, kind: &'static str) {
        let (id, now) = (self.clock.new_id(), self.clock.now());
        let body = format!("{{\"conversationGroupId\":\"{id}\"}}");
        self.store
            .write(AllTenants, "test", move |tx| {
                Ok::<_, Error>(tasks::enqueue(tx, id, name, kind, &body, now)?)
            })
            .await
            .unwrap();
    }

    async fn queue(&self) -> Vec<(String, i64, i64)> {
        let now = self.clock.now().as_micros();
        self.store
            .read(AllTenants, "test", move |tx| {
                Ok::<_, Error>(tx.rows(
                    "SELECT type, retry_count, retry_at FROM tasks ORDER BY created_at, id",
                    &[],
                    |row| Ok((row.text(0)?.to_owned(), row.int(1)?, row.int(2)? - now)),
                )?)
            })
            .await
            .unwrap()
    }
}

#[tokio::test]
async fn a_task_that_succeeds_is_gone() {
    let world = world().await;
    world.enqueue(None, "vector_store_delete").await;
    world.services.run_due_tasks().await.unwrap();
    assert_eq!(world.queue().await, []);
}

#[tokio::test]
async fn a_task_with_a_name_exists_once() {
    let world = world().await;
    for _ in 0..3 {
        world.enqueue(Some("vector_store_index_retry"), "vector_store_index_retry").await;
    }
    assert_eq!(world.queue().await.len(), 1);
    world.enqueue(None, "vector_store_delete").await;
    world.enqueue(None, "vector_store_delete").await;
    assert_eq!(world.queue().await.len(), 3, "tasks without a name are all different");
}

#[tokio::test]
async fn a_poison_task_stays_behind_alone() {
    let world = world().await;
    for kind in [
        "vector_store_delete",
        "brew_coffee",
        "vector_store_delete",
        "vector_store_delete",
        "vector_store_delete",
    ] {
        world.enqueue(None, kind).await;
    }
    world.services.run_due_tasks().await.unwrap();
    let queue = world.queue().await;
    assert_eq!(queue.len(), 1, "{queue:?}");
    let (kind, failures, wait) = &queue[0];
    assert_eq!((kind.as_str(), *failures), ("brew_coffee", 1));
    assert!((6 * HOUR..=8 * HOUR).contains(wait), "an unknown task waits as long as any may: {wait}");
    world.services.run_due_tasks().await.unwrap();
    assert_eq!(world.queue().await[0].1, 1, "it is not due yet");
    world.clock.advance_micros(9 * HOUR);
    world.services.run_due_tasks().await.unwrap();
    assert_eq!(world.queue().await[0].1, 2, "it is tried again when it is");
}

#[tokio::test]
async fn a_claim_keeps_others_away_until_it_is_stale() {
    let world = world().await;
    world.enqueue(None, "vector_store_delete").await;
    let claim = |at: i64| {
        let now = world.clock.now().saturating_add_micros(at);
        let stale = now.saturating_add_micros(-5 * MINUTE);
        world.store.write(AllTenants, "test", move |tx| Ok::<_, Error>(tasks::claim(tx, now, stale, 10)?))
    };
    assert_eq!(claim(0).await.unwrap().len(), 1);
    assert_eq!(claim(MINUTE).await.unwrap().len(), 0, "somebody is at it");
    assert_eq!(claim(6 * MINUTE).await.unwrap().len(), 1, "whoever it was is gone");
}

#[tokio::test]
async fn whoever_lost_its_claim_does_not_end_the_task_of_another() {
    let world = world().await;
    world.enqueue(None, "vector_store_delete").await;
    let claim = |at: i64| {
        let now = world.clock.now().saturating_add_micros(at);
        let stale = now.saturating_add_micros(-5 * MINUTE);
        world.store.write(AllTenants, "test", move |tx| Ok::<_, Error>(tasks::claim(tx, now, stale, 10)?))
    };
    let (lost, taken) = (claim(0).await.unwrap().remove(0), claim(6 * MINUTE).await.unwrap().remove(0));
    let (late, retry_at) = (lost.clone(), world.clock.now());
    let write = world.store.write(AllTenants, "test", move |tx| {
        tasks::complete(tx, &late)?;
        Ok::<_, Error>(tasks::fail(tx, &late, "too late", retry_at)?)
    });
    write.await.unwrap();
    let queue = world.queue().await;
    assert_eq!((queue.len(), queue[0].1), (1, 0), "it is the other's by now");
    world
        .store
        .write(AllTenants, "test", move |tx| Ok::<_, Error>(tasks::complete(tx, &taken)?))
        .await
        .unwrap();
    assert_eq!(world.queue().await, []);
}

#[tokio::test]
async fn a_failure_is_tried_again_later_and_later() {
    let world = world().await;
    world.enqueue(None, "vector_store_delete").await;
    let (now, stale) = (world.clock.now(), world.clock.now().saturating_add_micros(-5 * MINUTE));
    let task = world
        .store
        .write(AllTenants, "test", move |tx| Ok::<_, Error>(tasks::claim(tx, now, stale, 1)?))
        .await
        .unwrap()
        .remove(0);
    let retry_at = now.saturating_add_micros(10 * MINUTE);
    world
        .store
        .write(AllTenants, "test", move |tx| {
            Ok::<_, Error>(tasks::fail(tx, &task, "the disk hummed", retry_at)?)
        })
        .await
        .unwrap();
    assert_eq!(world.queue().await, [("vector_store_delete".to_owned(), 1, 10 * MINUTE)]);
    world.services.run_due_tasks().await.unwrap();
    assert_eq!(world.queue().await.len(), 1);
    world.clock.advance_micros(10 * MINUTE);
    world.services.run_due_tasks().await.unwrap();
    assert_eq!(world.queue().await, [], "its claim ended with its failure");
}

#[tokio::test]
async fn a_chore_that_fails_keeps_nothing_else_from_being_done() {
    let world = world().await;
    world.enqueue(None, "vector_store_delete").await;
    let age = |tx: &mut dyn memtrove_store::Tx| {
        tx.execute("ALTER TABLE file_idempotency RENAME TO lost", &[])?;
        tx.execute(
            "INSERT INTO jobs (id, tenant, started_by, kind, status, created_at, processed, total, errors) \
             VALUES (x'00', 'default', 'nobody', 'test', 'succeeded', 0, 0, 0, '[]')",
            &[],
        )
    };
    world.store.write(AllTenants, "test", age).await.unwrap();
    world.services.run_due_tasks().await.unwrap();
    assert_eq!(world.queue().await, [], "the queue was worked on");
    let jobs = world.store.read(AllTenants, "test", |tx| {
        Ok::<_, Error>(tx.first("SELECT COUNT(*) FROM jobs", &[], |row| row.int(0))?)
    });
    assert_eq!(jobs.await.unwrap(), Some(0), "and so was the next chore");
}
