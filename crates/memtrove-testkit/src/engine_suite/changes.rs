//! The change feed: one sequence per tenant, whole whatever else happens.

use super::{EngineFixture, Failure};
use memtrove_core::changes::RecordedChange;
use memtrove_core::identity::Tenant;
use memtrove_core::{Timestamp, UserId};
use memtrove_store::changes::{self, Bounds, Change, ChangeKind};
use memtrove_store::{AllTenants, Store, StoreError, Tx, TxExt};
use std::time::Duration;
use tokio::task::JoinSet;

fn tenant(name: &str) -> Tenant {
    Tenant::listed(name.to_owned())
}

fn at(second: i64) -> Timestamp {
    Timestamp::from_micros(second * 1_000_000)
}

fn record(tx: &mut dyn Tx, name: &str, second: i64, user: &str, resource: &str) -> Result<(), StoreError> {
    let change = Change { kind: ChangeKind::FileUpdated, user: Some(user), resource, version: Some("\"1\"") };
    changes::record(tx, &tenant(name), at(second), &change).map(drop)
}

/// Records changes of one tenant, one unit of work each: the second it happened in, and the user.
async fn tell(store: &Store, name: &'static str, told: &'static [(i64, &'static str)]) {
    for (second, user) in told {
        let written =
            store.write(AllTenants, "suite", move |tx| record(tx, name, *second, user, "notes/today"));
        written.await.unwrap();
    }
    // Their numbers may come a moment after the commit.
    store.settle().await.unwrap();
}

async fn feed(store: &Store, name: &'static str) -> Vec<RecordedChange> {
    store.settle().await.unwrap();
    let read = store.read(AllTenants, "suite", move |tx| changes::page(tx, &tenant(name), 0, i64::MAX));
    read.await.unwrap()
}

async fn numbers(store: &Store, name: &'static str) -> Vec<i64> {
    feed(store, name).await.iter().map(|change| change.sequence).collect()
}

async fn bounds(store: &Store, name: &'static str) -> (i64, i64) {
    let read = store.read(AllTenants, "suite", move |tx| changes::bounds(tx, &tenant(name)));
    let Bounds { oldest, newest } = read.await.unwrap();
    (oldest, newest)
}

async fn trim(store: &Store, name: &'static str, before: i64, batch: i64) -> u64 {
    let trimmed =
        store.write(AllTenants, "suite", move |tx| changes::trim(tx, &tenant(name), at(before), batch));
    trimmed.await.unwrap()
}

pub async fn a_change_comes_back_as_it_was_recorded(fixture: impl EngineFixture) {
    let store = fixture.store();
    let written = store.write(AllTenants, "suite", |tx| {
        let evicted = Change {
            kind: ChangeKind::ConversationEvicted,
            user: None,
            resource: "0199d2a0-7c1e-7000-8000-000000000001",
            version: None,
        };
        record(tx, "a", 5, "ålice/東京", "notes/ünïcode.md")?;
        changes::record(tx, &tenant("a"), at(6), &evicted).map(drop)
    });
    written.await.unwrap();
    let expected = [
        RecordedChange {
            sequence: 1,
            at: at(5),
            kind: ChangeKind::FileUpdated,
            user: Some(UserId("ålice/東京".into())),
            resource: Some("notes/ünïcode.md".into()),
            version: Some("\"1\"".into()),
        },
        RecordedChange {
            sequence: 2,
            at: at(6),
            kind: ChangeKind::ConversationEvicted,
            user: None,
            resource: Some("0199d2a0-7c1e-7000-8000-000000000001".into()),
            version: None,
        },
    ];
    assert_eq!(feed(store, "a").await, expected);
    let second = store.read(AllTenants, "suite", |tx| changes::page(tx, &tenant("a"), 1, 10));
    assert_eq!(second.await.unwrap(), expected[1..]);
    let first = store.read(AllTenants, "suite", |tx| changes::page(tx, &tenant("a"), 0, 1));
    assert_eq!(first.await.unwrap(), expected[..1]);
}

pub async fn every_tenant_has_a_feed_of_its_own(fixture: impl EngineFixture) {
    let store = fixture.store();
    tell(store, "a", &[(1, "alice"), (2, "alice")]).await;
    tell(store, "b", &[(3, "alice")]).await;
    assert_eq!(numbers(store, "a").await, [1, 2]);
    assert_eq!(numbers(store, "b").await, [1]);
    assert!(feed(store, "").await.is_empty());
    assert_eq!(bounds(store, "a").await, (1, 2));
    assert_eq!(bounds(store, "nobody").await, (1, 0), "an empty feed begins at 1 and ends before it");
}

pub async fn changes_are_numbered_in_the_order_of_the_commits_whatever_fails(fixture: impl EngineFixture) {
    let store = fixture.store();
    super::run(store, &[super::COUNTERS, "INSERT INTO suite_counters VALUES (1, 0)"]).await;
    let mut writers = JoinSet::new();
    for writer in 0..32 {
        let store = store.clone();
        writers.spawn(async move {
            let mut kept = 0;
            for round in 0..20 {
                let written = store.write(AllTenants, "suite", move |tx| {
                    // The counter is under a lock until the commit, so it says in which order they happened.
                    let count = tx.first(
                        "UPDATE suite_counters SET n = n + 1 WHERE id = 1 RETURNING n",
                        &[],
                        |row| row.int(0),
                    )?;
                    let count = count.unwrap_or_default().to_string();
                    let changes = 1 + (writer + round) % 3;
                    for _ in 0..changes {
                        record(tx, "a", 0, "alice", &count)?;
                    }
                    match (writer * 7 + round) % 5 {
                        0 => Err(Failure::Refused),
                        1 => panic!("a panic that the suite asks for"),
                        _ => Ok(changes),
                    }
                });
                kept += written.await.unwrap_or(0);
            }
            kept
        });
    }
    let kept: i64 = writers.join_all().await.into_iter().sum();
    let feed = feed(store, "a").await;
    let numbers: Vec<i64> = feed.iter().map(|change| change.sequence).collect();
    assert_eq!(numbers, (1..=kept).collect::<Vec<_>>());
    let order: Vec<i64> =
        feed.iter().map(|change| change.resource.as_ref().unwrap().parse().unwrap()).collect();
    assert!(order.is_sorted(), "{order:?}");
}

pub async fn numbers_are_never_used_twice(mut fixture: impl EngineFixture) {
    tell(fixture.store(), "a", &[(1, "alice"), (2, "alice"), (3, "alice")]).await;
    assert_eq!(trim(fixture.store(), "a", 100, 10).await, 2, "the newest stays, however old it is");
    assert_eq!(trim(fixture.store(), "a", 100, 10).await, 0);
    assert_eq!(numbers(fixture.store(), "a").await, [3]);
    let forgotten = fixture.store().write(AllTenants, "suite", |tx| {
        changes::forget_user(tx, &tenant("a"), &UserId("alice".into()), 0, 10, 3)
    });
    assert_eq!(forgotten.await.unwrap(), None);
    fixture.reopen().await;
    tell(fixture.store(), "a", &[(4, "bob")]).await;
    assert_eq!(numbers(fixture.store(), "a").await, [3, 4]);
}

pub async fn trimming_removes_the_oldest_in_batches(fixture: impl EngineFixture) {
    let store = fixture.store();
    tell(store, "a", &[(1, "a"), (2, "a"), (3, "a"), (9, "a"), (4, "a"), (5, "a")]).await;
    tell(store, "old", &[(1, "a")]).await;
    tell(store, "young", &[(8, "a"), (9, "a")]).await;
    let trimmable =
        async || store.read(AllTenants, "suite", |tx| changes::trimmable(tx, at(7))).await.unwrap();
    assert_eq!(trimmable().await, [tenant("a"), tenant("old")]);
    assert_eq!(trim(store, "a", 7, 2).await, 2);
    assert_eq!(bounds(store, "a").await, (3, 6));
    assert_eq!(
        trim(store, "a", 7, 2).await,
        1,
        "what comes after something young stays: a feed has no holes"
    );
    assert_eq!(numbers(store, "a").await, [4, 5, 6]);
    assert_eq!(trim(store, "nobody", 7, 2).await, 0);
    assert_eq!(trim(store, "old", 7, 2).await, 0, "the newest of a feed stays");
    let kept = feed(store, "old").await.remove(0);
    assert_eq!((kept.sequence, kept.kind), (1, ChangeKind::Forgotten), "as a number");
    assert_eq!((kept.user, kept.resource, kept.version), (None, None, None));
    assert_eq!(trimmable().await, []);
    assert_eq!(trim(store, "a", 10, 2).await, 2);
    assert_eq!(numbers(store, "a").await, [6]);
    assert_eq!(numbers(store, "young").await, [1, 2]);
    assert!(feed(store, "young").await.iter().all(|change| change.resource.is_some()));
}

pub async fn forgetting_a_user_blanks_its_changes_step_by_step(fixture: impl EngineFixture) {
    let store = fixture.store();
    tell(store, "a", &[(1, "bob"), (2, "alice"), (3, "bob"), (4, "alice"), (5, "bob"), (6, "alicea")]).await;
    tell(store, "a", &[(1, "alice")]).await;
    tell(store, "b", &[(1, "alice")]).await;
    trim(store, "a", 2, 10).await;
    let mut steps = Vec::new();
    let mut from = Some(0);
    while let Some(number) = from {
        let step = store.write(AllTenants, "suite", move |tx| {
            changes::forget_user(tx, &tenant("a"), &UserId("alice".into()), number, 2, 6)
        });
        from = step.await.unwrap();
        steps.push(from);
    }
    assert_eq!(steps, [Some(4), Some(6), None]);
    let told: Vec<_> = feed(store, "a")
        .await
        .into_iter()
        .map(|change| (change.sequence, change.at, change.kind, change.user.map(|user| user.0)))
        .collect();
    let updated = ChangeKind::FileUpdated;
    assert_eq!(
        told,
        [
            (2, at(2), ChangeKind::Forgotten, None),
            (3, at(3), updated, Some("bob".into())),
            (4, at(4), ChangeKind::Forgotten, None),
            (5, at(5), updated, Some("bob".into())),
            (6, at(6), updated, Some("alicea".into())),
            (7, at(1), updated, Some("alice".into())),
        ]
    );
    let blank = &feed(store, "a").await[0];
    assert_eq!((&blank.resource, &blank.version), (&None, &None));
    assert_eq!(feed(store, "b").await[0].kind, updated, "another tenant's alice is somebody else");
}

pub async fn a_commit_is_announced_to_those_who_listen(fixture: impl EngineFixture) {
    let store = fixture.store();
    tell(store, "a", &[(1, "alice")]).await;
    feed(store, "a").await;
    // Where others may commit too, a commit is announced once more when they can know of it.
    tokio::time::sleep(Duration::from_millis(300)).await;
    let mut commits = store.commits();
    assert!(!commits.has_changed().unwrap(), "what was before is not announced");
    let refused = store.write(AllTenants, "suite", |tx| {
        record(tx, "a", 2, "alice", "notes")?;
        Err::<(), _>(Failure::Refused)
    });
    assert!(refused.await.is_err());
    feed(store, "a").await;
    assert!(!commits.has_changed().unwrap(), "neither a refused write nor a read is a commit");
    tell(store, "a", &[(3, "alice")]).await;
    assert!(commits.has_changed().unwrap(), "it is announced before the writer is answered");
    commits.mark_unchanged();
    let (listener, writer) = (store.clone(), store.clone());
    let heard = tokio::spawn(async move {
        loop {
            commits.changed().await.unwrap();
            let read = numbers(&listener, "a").await;
            // The one before may be announced once more, too.
            if read.len() != 2 {
                return read;
            }
        }
    });
    tell(&writer, "a", &[(4, "alice")]).await;
    let heard = tokio::time::timeout(Duration::from_secs(30), heard).await.unwrap();
    assert_eq!(heard.unwrap(), [1, 2, 3], "whoever hears of it can read it");
}
