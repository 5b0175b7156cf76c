//! How a scope comes to the database and goes again, while others write.

use super::world::{Dice, MODEL, Node, best, differences, like, memory, scope, searched};
use memtrove_core::identity::Tenant;
use memtrove_core::memories::{Embedding, Memory};
use memtrove_service::memories::access::Writable;
use memtrove_service::memories::writing::{Write, WriteOutcome};
use memtrove_store::AllTenants;
use memtrove_store::memories::purge::{self, Selector};
use memtrove_store::postgres::PostgresConfig;
use memtrove_store::vault::{Keys, Vault, WrappingKey};
use memtrove_testkit::postgres::Database;
use std::sync::Arc;
use tokio::task::JoinSet;

fn some(dice: &mut Dice, numbers: std::ops::Range<u128>) -> Vec<Memory> {
    numbers.map(|number| memory(number, &format!("note {number}"), dice.direction(64))).collect()
}

fn vector(memory: &Memory) -> Vec<f32> {
    memory.embedding.as_ref().unwrap().vector.clone()
}

fn states(database: &Database) -> (String, String, String) {
    searched(database)
}

fn are(state: &str, rows: usize, indexes: usize) -> (String, String, String) {
    (state.into(), rows.to_string(), indexes.to_string())
}

/// Whatever was acknowledged on one node is what the next search on another sees.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn changes_are_seen_at_once_on_every_node() {
    let (database, mut dice) = (Database::fresh(), Dice(2));
    let node = Node::open(database.config(), 200).await;
    let other = Node::open(database.config(), 200).await;
    node.pour(some(&mut dice, 0..300)).await;
    let (one, two) =
        tokio::join!(node.services.memories.tend_indexes(), other.services.memories.tend_indexes(),);
    one.and(two).unwrap();
    node.tend().await;
    assert_eq!(states(&database), are("2", 300, 1), "two that are at it do it once");

    for number in 1_000..1_020 {
        let made = memory(number, "a late note", dice.direction(64));
        assert_eq!(node.write(vec![Write::Insert(Arc::new(made.clone()))]).await, WriteOutcome::Done);
        let find = async |vector: &[f32]| best(&other.nearest(like(MODEL, vector, "", 5)).await, 1);
        assert_eq!(find(&vector(&made)).await, [made.id]);

        let mut changed = Memory { version: 2, ..made.clone() };
        let elsewhere: Vec<f32> = vector(&made).into_iter().map(|x| -x).collect();
        changed.embedding = Some(Embedding::of_whole(MODEL.into(), elsewhere.clone()));
        let write =
            Write::Replace { memory: Arc::new(changed.clone()), current: Writable::by_task(made.clone()) };
        assert_eq!(other.write(vec![write]).await, WriteOutcome::Done);
        let find = async |vector: &[f32]| best(&node.nearest(like(MODEL, vector, "", 5)).await, 1);
        assert_eq!(find(&elsewhere).await, [made.id]);
        assert_ne!(find(&vector(&made)).await, [made.id], "it is not what it was");

        assert_eq!(node.write(vec![Write::Remove(Writable::by_task(changed))]).await, WriteOutcome::Done);
        let hits = other.nearest(like(MODEL, &elsewhere, "", 400)).await;
        assert!(hits.matches.iter().all(|near| near.id != made.id), "it is gone");
        assert_eq!((hits.total, hits.inexact), (300, false));
    }
    assert_eq!(differences(&database), [] as [Vec<_>; 0]);
}

/// Writers of all kinds, on two nodes, while a scope is given to the database, taken back and given again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_lost_on_the_way() {
    let (database, mut dice) = (Database::fresh(), Dice(3));
    let node = Arc::new(Node::open(database.config(), 200).await);
    let other = Arc::new(Node::open(database.config(), 200).await);
    node.pour(some(&mut dice, 0..500)).await;
    let mut writers = JoinSet::new();
    for (writer, node) in [(1, node.clone()), (2, other.clone()), (3, node.clone())] {
        writers.spawn(async move {
            let mut dice = Dice(100 + writer as u64);
            for number in 0..40 {
                let made = memory(writer * 1_000 + number, "written meanwhile", dice.direction(64));
                assert_eq!(node.write(vec![Write::Insert(Arc::new(made.clone()))]).await, WriteOutcome::Done);
                let mut changed = Memory { version: 2, ..made.clone() };
                changed.embedding = Some(Embedding::of_whole(MODEL.into(), dice.direction(64)));
                let write = Write::Replace {
                    memory: Arc::new(changed.clone()),
                    current: Writable::by_task(made.clone()),
                };
                assert_eq!(node.write(vec![write]).await, WriteOutcome::Done);
                if number % 2 == 0 {
                    assert_eq!(
                        node.write(vec![Write::Remove(Writable::by_task(changed))]).await,
                        WriteOutcome::Done
                    );
                }
            }
        });
    }
    let never = Node::open(database.config(), 0).await;
    while !writers.is_empty() {
        // Two that are at it at once, and one that takes it back.
        let (one, two) =
            tokio::join!(node.services.memories.tend_indexes(), other.services.memories.tend_indexes(),);
        one.and(two).unwrap();
        let (one, two) =
            tokio::join!(never.services.memories.tend_indexes(), node.services.memories.tend_indexes());
        one.and(two).unwrap();
        while let Some(done) = writers.try_join_next() {
            done.unwrap();
        }
    }
    node.tend().await;
    assert_eq!(states(&database), are("2", 560, 1));
    assert_eq!(differences(&database), [] as [Vec<_>; 0]);
}

/// What became small is searched by nodes again, and nothing of it stays behind.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_scope_that_shrinks_is_taken_back() {
    let (database, mut dice) = (Database::fresh(), Dice(4));
    let node = Node::open(database.config(), 200).await;
    let memories = some(&mut dice, 0..210);
    node.pour(memories.clone()).await;
    node.tend().await;
    assert_eq!(states(&database), are("2", 210, 1));
    for memory in &memories[40..] {
        assert_eq!(
            node.write(vec![Write::Remove(Writable::by_task(memory.clone()))]).await,
            WriteOutcome::Done
        );
    }
    assert_eq!(states(&database), are("2", 40, 1));
    node.tend().await;
    assert_eq!(states(&database), are("0", 0, 0));
    let hits = node.nearest(like(MODEL, &vector(&memories[7]), "", 100)).await;
    assert_eq!((best(&hits, 1), hits.total), (vec![memories[7].id], 40));
}

/// Vectors of another length get an index of their own, and the one that nobody needs goes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_model_gets_another_index() {
    const OTHER: &str = "openai:better:32";
    let (database, mut dice) = (Database::fresh(), Dice(5));
    let node = Node::open(database.config(), 100).await;
    let memories = some(&mut dice, 0..150);
    node.pour(memories.clone()).await;
    node.tend().await;
    let better: Vec<Memory> = memories
        .iter()
        .map(|memory| {
            let embedding = Some(Embedding::of_whole(OTHER.into(), dice.direction(32)));
            Memory { version: 2, embedding, ..memory.clone() }
        })
        .collect();
    let replace = |memory: &Memory| {
        let current = Writable::by_task(Memory { version: 1, ..memory.clone() });
        Write::Replace { memory: Arc::new(memory.clone()), current }
    };
    for some in better[..75].chunks(25) {
        assert_eq!(node.write(some.iter().map(replace).collect()).await, WriteOutcome::Done);
    }
    let half = like(OTHER, &vector(&better[3]), "", 100);
    assert_eq!(best(&node.nearest(half.clone()).await, 1), [better[3].id], "before there is an index");
    node.tend().await;
    assert_eq!(states(&database), are("2", 150, 2));
    assert_eq!(best(&node.nearest(half.clone()).await, 1), [better[3].id]);
    assert_eq!(node.nearest(half.clone()).await.matches.len(), 75, "those that can be compared");
    let old = like(MODEL, &vector(&memories[100]), "", 10);
    assert_eq!(best(&node.nearest(old).await, 1), [memories[100].id]);
    for some in better[75..].chunks(25) {
        assert_eq!(node.write(some.iter().map(replace).collect()).await, WriteOutcome::Done);
    }
    node.tend().await;
    assert_eq!(states(&database), are("2", 150, 1));
    assert_eq!(node.nearest(half).await.matches.len(), 100);
}

/// Forgetting reaches what the database was given.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_forgotten_leaves_neither_rows_nor_an_index() {
    let (database, mut dice) = (Database::fresh(), Dice(6));
    let node = Node::open(database.config(), 200).await;
    node.pour(some(&mut dice, 0..210)).await;
    node.tend().await;
    let tenant = Tenant::listed("acme".into());
    let detach = move |tx: &mut dyn memtrove_store::Tx| purge::detach(tx, &tenant, &Selector::User("alice"));
    assert_eq!(node.store.write(AllTenants, "suite", detach).await.unwrap()[0].scope, scope());
    while node.store.write(AllTenants, "suite", |tx| purge::step(tx, 50)).await.unwrap().is_some() {}
    assert_eq!(states(&database), are("", 0, 1));
    node.tend().await;
    assert_eq!(states(&database), are("", 0, 0));
    assert_eq!(database.rows("SELECT 1 FROM memory_common_terms"), [] as [Vec<_>; 0]);
}

/// Vectors say much of what they were made of: where content is sealed the database is given none, and loses what it has.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_store_that_is_encrypted_has_no_vectors_in_the_open() {
    let (database, mut dice) = (Database::fresh(), Dice(7));
    let node = Node::open(database.config(), 200).await;
    let memories = some(&mut dice, 0..210);
    node.pour(memories.clone()).await;
    node.tend().await;
    assert_eq!(states(&database), are("2", 210, 1));
    node.store.close();

    let vault = Vault::sealing(Keys::new(WrappingKey::new(&[1; 32]).unwrap(), Vec::new())).reading_plain();
    let sealed = Node::open(PostgresConfig { vault: Arc::new(vault), ..database.config() }, 200).await;
    assert_eq!(states(&database), are("0", 0, 0));
    sealed.tend().await;
    let made = memory(1_000, "a sealed note", dice.direction(64));
    assert_eq!(sealed.write(vec![Write::Insert(Arc::new(made.clone()))]).await, WriteOutcome::Done);
    sealed.tend().await;
    assert_eq!(states(&database), are("0", 0, 0));
    let hits = sealed.nearest(like(MODEL, &vector(&made), "", 5)).await;
    assert_eq!(best(&hits, 1), [made.id]);
}
