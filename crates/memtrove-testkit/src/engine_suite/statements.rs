//! Memories by the words they say.

use super::forget::{NOW, tenant, write};
use super::memories::{memory, of_alice, project, remember};
use super::{EngineFixture, count};
use memtrove_core::memories::{AccessPolicy, Kind, Memory, Policy, ScopeKey};
use memtrove_core::recall::terms::EntryTerms;
use memtrove_store::memories::writing::Writing;
use memtrove_store::memories::{scopes, statements};
use memtrove_store::{AllTenants, Store, StoreError, Tx};
use serde_json::json;
use tokio::task::JoinSet;

const STANDING: &str = "SELECT COUNT(*) FROM memories WHERE statement IS NOT NULL";

fn says(number: u128, scope: &ScopeKey, content: &str) -> Memory {
    Memory { content: content.into(), ..memory(number, scope, "alice", json!({})) }
}

fn saying(tx: &mut dyn Tx, scope: &ScopeKey, words: &str) -> Result<Vec<u128>, StoreError> {
    let Some(row) = scopes::find(tx, scope)? else { return Ok(Vec::new()) };
    let found = statements::saying(tx, &tenant(), row.no, words)?;
    Ok(found.iter().map(|stored| stored.memory.id.0.as_u128()).collect())
}

/// The entries of a scope that say some words.
async fn found(store: &Store, scope: &ScopeKey, words: &'static str) -> Vec<u128> {
    let scope = scope.clone();
    store.read(AllTenants, "suite", move |tx| saying(tx, &scope, words)).await.unwrap()
}

/// Stores a new version of an entry.
async fn replace(store: &Store, next: Memory) {
    write(store, move |tx| {
        let mut writing = Writing::default();
        assert!(writing.replace(tx, &next, &EntryTerms::default(), next.version - 1)?);
        writing.finish(tx)
    })
    .await;
}

/// An entry is found by its words, whatever their case and spacing, in its scope alone, and by no words that it does not say any
/// more.
pub async fn a_memory_is_found_by_the_words_it_says_now(fixture: impl EngineFixture) {
    let store = fixture.store();
    let first = says(1, &of_alice(), "Likes  Tea.");
    remember(store, vec![first.clone(), says(2, &project(), "likes tea"), says(3, &of_alice(), "🦭")]).await;
    assert_eq!(found(store, &of_alice(), "likes tea!").await, [1]);
    assert_eq!(found(store, &project(), "LIKES TEA").await, [2]);
    assert_eq!(found(store, &of_alice(), "🦭").await, [3]);
    assert_eq!(found(store, &of_alice(), "likes").await, [] as [u128; 0]);

    replace(store, Memory { content: "likes coffee".into(), version: 2, ..first.clone() }).await;
    assert_eq!(found(store, &of_alice(), "likes tea").await, [] as [u128; 0]);
    assert_eq!(found(store, &of_alice(), "likes coffee").await, [1]);
    write(store, move |tx| {
        let mut writing = Writing::default();
        assert!(writing.remove(tx, &first, Some(2))?);
        writing.finish(tx)
    })
    .await;
    assert_eq!(found(store, &of_alice(), "likes coffee").await, [] as [u128; 0]);
}

/// Of entries that state the same, one stands for it: the first, until another takes over or it says something else. Another kind
/// and what somebody hides are statements of their own.
pub async fn one_memory_stands_for_what_several_state(fixture: impl EngineFixture) {
    let store = fixture.store();
    let made = |number, change: fn(&mut Memory)| {
        let mut memory = says(number, &project(), "tea");
        change(&mut memory);
        memory
    };
    let twins = vec![made(1, |_| {}), made(2, |_| {})];
    let others = vec![
        made(3, |memory| memory.kind = Kind::Episodic),
        made(4, |memory| memory.policy = AccessPolicy::new(Policy::Private)),
    ];
    remember(store, [twins.clone(), others].concat()).await;
    assert_eq!(count(store, STANDING).await, 3);
    assert_eq!(found(store, &project(), "tea").await, [1, 3, 4, 2], "those that stand for something first");

    write(store, move |tx| {
        let mut writing = Writing::default();
        writing.insert_first(tx, &says(5, &project(), "Tea"), &EntryTerms::default())?;
        writing.finish(tx)
    })
    .await;
    assert_eq!(found(store, &project(), "tea").await, [3, 4, 5, 1, 2]);
    assert_eq!(count(store, STANDING).await, 3);
    // It says something else, and the next one that is written is the first again.
    replace(store, Memory { content: "coffee".into(), version: 2, ..says(5, &project(), "") }).await;
    replace(store, Memory { version: 2, ..twins[1].clone() }).await;
    assert_eq!(found(store, &project(), "tea").await, [2, 3, 4, 1]);

    let twice = store.write(AllTenants, "suite", |tx| {
        tx.execute(
            "UPDATE memories SET statement = (SELECT o.statement FROM memories o WHERE o.id = $2) WHERE id = $1",
            &[twin_id(1), twin_id(2)],
        )
    });
    assert!(twice.await.is_err(), "two cannot stand for the same");
}

fn twin_id(number: u128) -> memtrove_store::Value<'static> {
    uuid::Uuid::from_u128(number).into()
}

/// Of many that store an entry unless its words are there, one does.
pub async fn of_many_who_state_the_same_at_once_one_is_stored(fixture: impl EngineFixture) {
    let store = fixture.store();
    let mut units = JoinSet::new();
    for number in 1..=32u128 {
        let store = store.clone();
        units.spawn(async move {
            write(&store, move |tx| {
                let new = says(number, &project(), "tea");
                if !saying(tx, &project(), "tea")?.is_empty() {
                    return Ok(());
                }
                let mut writing = Writing::default();
                writing.insert_first(tx, &new, &EntryTerms::default())?;
                writing.finish(tx)
            })
            .await;
        });
    }
    units.join_all().await;
    assert_eq!(count(store, "SELECT COUNT(*) FROM memories").await, 1);
    assert_eq!(count(store, STANDING).await, 1);
}

/// Entries that have no digest yet get theirs step by step, those of a scope first if it is in a hurry; what is out of reach gets
/// none.
pub async fn memories_of_older_versions_come_to_be_found_by_their_words(fixture: impl EngineFixture) {
    let store = fixture.store();
    let mut memories: Vec<Memory> = (1..=5).map(|number| says(number, &project(), "tea")).collect();
    memories.push(says(6, &of_alice(), "tea"));
    memories.push(says(
        7,
        &ScopeKey::listed(tenant(), of_alice().layer(), vec!["bob".into()]).unwrap(),
        "tea",
    ));
    remember(store, memories).await;
    write(store, |tx| tx.execute("UPDATE memories SET words = NULL, statement = NULL", &[])).await;
    assert_eq!(found(store, &project(), "tea").await, [] as [u128; 0]);

    let project = project();
    let no = write(store, move |tx| Ok(scopes::find(tx, &project)?.unwrap().no)).await;
    let mut steps = Vec::new();
    while !store.read(AllTenants, "suite", move |tx| statements::is_registered(tx, no)).await.unwrap() {
        steps.push(write(store, move |tx| statements::register(tx, Some(no), 2)).await);
    }
    assert_eq!(steps, [2, 2, 1]);
    assert_eq!(found(store, &super::memories::project(), "tea").await, [1, 2, 3, 4, 5]);
    assert_eq!(count(store, STANDING).await, 1);

    write(store, |tx| Ok(memtrove_store::files::forget::detach(tx, &super::forget::alice(), NOW)?.memories))
        .await;
    let mut all = 0;
    loop {
        match write(store, |tx| statements::register(tx, None, 2)).await {
            0 => break,
            some => all += some,
        }
    }
    assert_eq!(all, 1, "those of bob");
}
