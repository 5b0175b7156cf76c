//! The halves of the memories' store, on both engines, held to the suite that each passes.

use crate::world::World;
use memtrove_core::Json;
use memtrove_core::legacy_labels::POSTGRES_VOLATILE_SCHEMA;
use memtrove_core::memories::{
    AddMemory, Assertion, Change, ClearMemories, Identifier, Identifiers, Kind, Layer, MemoryId, Precondition,
};
use memtrove_service::memories::memory_store::Status;
use memtrove_service::memories::{AddedMemory, AnswerKey, Answered, Reply};
use memtrove_service::{Services, Settings};
use memtrove_store::postgres::PostgresEngine;
use memtrove_store::{Store, StoreError, Tx, TxExt};
use memtrove_testkit::clock::TestClock;
use memtrove_testkit::memory_suite::Fixture;
use memtrove_testkit::postgres::Database;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

async fn durable() -> Fixture {
    let world = World::new(Settings::default()).await;
    Fixture::durable(world.services.clone(), world)
}

async fn volatile() -> Fixture {
    let world = World::new(Settings::default()).await;
    Fixture::volatile(world.services.clone(), world)
}

/// The services on a database of their own.
async fn on_postgres() -> (Services, Arc<Database>) {
    let database = Database::fresh();
    let store = Store::new(Arc::new(PostgresEngine::open(database.config()).unwrap()));
    let services = Services::new(store, Arc::new(TestClock::new()), Settings::default()).await.unwrap();
    (services, database)
}

async fn durable_on_postgres() -> Fixture {
    let (services, database) = on_postgres().await;
    Fixture::durable(services, database)
}

async fn volatile_on_postgres() -> Fixture {
    let (services, database) = on_postgres().await;
    Fixture::volatile(services, database)
}

mod in_the_store {
    memtrove_testkit::memory_suite!(super::durable);
}

mod in_memory {
    memtrove_testkit::memory_suite!(super::volatile);
}

mod in_postgres {
    memtrove_testkit::memory_suite!(super::durable_on_postgres);
}

mod in_postgres_unlogged {
    memtrove_testkit::memory_suite!(super::volatile_on_postgres);
}

#[tokio::test]
async fn a_store_that_is_closed_is_not_well() {
    let world = World::new(Settings::default()).await;
    let store = world.store.clone();
    tokio::task::spawn_blocking(move || store.close()).await.unwrap();
    let health = world.services.memories.health().await;
    assert_eq!(health.status, Status::Unhealthy);
    let components: BTreeMap<String, Status> =
        health.components.into_iter().map(|(name, health)| (name, health.status)).collect();
    assert_eq!(components["provider:embedded"], Status::Unhealthy, "{components:?}");
    assert_eq!(components["provider:embedded-ram"], Status::Healthy, "{components:?}");
}

fn alice() -> Identifiers {
    crate::world::identifiers(&[(Identifier::User, "alice")])
}

/// Something that Alice keeps.
fn scratch(kind: Kind, content: &str) -> AddMemory {
    AddMemory { kind: Some(kind), ..AddMemory::new(Layer::User, alice(), content.to_owned()) }
}

/// How many rows each table of a store has.
async fn rows(store: &Store) -> BTreeMap<String, i64> {
    let count = |tx: &mut dyn Tx| {
        let tables = tx.rows("SELECT name FROM sqlite_master WHERE type = 'table'", &[], |row| {
            row.text(0).map(str::to_owned)
        })?;
        let mut rows = BTreeMap::new();
        for table in tables {
            let counted = tx.first(&format!("SELECT COUNT(*) FROM \"{table}\""), &[], |row| row.int(0))?;
            rows.insert(table, counted.unwrap_or_default());
        }
        Ok::<_, StoreError>(rows)
    };
    store.read(memtrove_store::AllTenants, "count_rows", count).await.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn working_memory_writes_nothing_that_lasts() {
    let world = World::new(Settings::default()).await;
    let memories = &world.services.memories;
    let caller = memories.caller(&crate::world::principal("alice", None), "request".to_owned());
    let before = rows(&world.store).await;

    let key = |fingerprint: &str| {
        let render = |added: &AddedMemory| {
            let (body, id) = (Json::stored("{}".to_owned()), Some(added.memory.memory.id.to_string()));
            Ok(Reply { body, created: true, etag: None, id })
        };
        let (text, fingerprint) = ("k1".to_owned(), fingerprint.to_owned());
        Some(AnswerKey { text, collection: "memories", fingerprint, render })
    };
    let first = memories.add(&caller, scratch(Kind::Working, "scratch"), key("1")).await.unwrap();
    let id = first.now().unwrap().memory.memory.id;
    let again = memories.add(&caller, scratch(Kind::Working, "scratch"), key("1")).await.unwrap();
    let Answered::Before(again) = again else { panic!("the key is known") };
    assert_eq!(again.id, Some(id.to_string()));
    for kind in [Kind::Working, Kind::Semantic] {
        let other = memories.add(&caller, scratch(kind, "something else"), key("2")).await;
        assert!(other.is_err(), "a key stands for one request, of whatever kind");
    }
    let (any, at_any) = (Assertion::default(), Precondition::default());
    let change = Change { content: Some("more scratch".to_owned()), ..Change::default() };
    memories.update(&caller, id, &any, change).await.unwrap();
    assert_eq!(memories.versions(&caller, id).await.unwrap().1.len(), 2);
    assert!(memories.delete(&caller, id, &any, &at_any).await.unwrap());
    memories.add(&caller, scratch(Kind::Working, "to be cleared"), None).await.unwrap();
    let clear = ClearMemories { layer: Layer::User, identifiers: alice(), kinds: None };
    assert_eq!(memories.clear(&caller, clear).await.unwrap(), 1);

    assert_eq!(rows(&world.store).await, before);
    memories.add(&caller, scratch(Kind::Semantic, "this lasts"), None).await.unwrap();
    let after = rows(&world.store).await;
    assert_eq!(after["changes"], before["changes"] + 1, "what lasts is told");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_moves_between_the_halves_is_told_where_it_lasts() {
    let world = World::new(Settings::default()).await;
    let memories = &world.services.memories;
    let caller = memories.caller(&crate::world::principal("alice", None), "request".to_owned());
    let added = memories.add(&caller, scratch(Kind::Working, "scratch"), None).await.unwrap();
    let id = added.now().unwrap().memory.memory.id;
    let (any, at_any) = (Assertion::default(), Precondition::default());
    let changes = async || rows(&world.store).await["changes"];
    let before = changes().await;

    memories.archive(&caller, id, &at_any).await.unwrap();
    assert_eq!(changes().await, before + 1);
    assert_eq!(memories.get(&caller, id, &any).await.unwrap().kind, Kind::Archival);
    memories.restore(&caller, id, &at_any).await.unwrap();
    assert_eq!(changes().await, before + 2, "that it left is told");
    assert_eq!(memories.get(&caller, id, &any).await.unwrap().kind, Kind::Working);
    assert_eq!(rows(&world.store).await["memories"], 0);
    memories.delete(&caller, id, &any, &at_any).await.unwrap();
    assert_eq!(changes().await, before + 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_copy_that_a_move_left_behind_does_not_stop_the_next_move() {
    let (services, database) = on_postgres().await;
    let memories = &services.memories;
    let caller = memories.caller(&crate::world::principal("alice", None), "request".to_owned());
    let (any, at_any) = (Assertion::default(), Precondition::default());
    let add = async |content: &str| {
        let added = memories.add(&caller, scratch(Kind::Working, content), None).await.unwrap();
        added.now().unwrap().memory.memory.id
    };
    let lasting = add("as it is").await;
    memories.archive(&caller, lasting, &at_any).await.unwrap();
    let left = add("as it was").await;
    // As a move leaves them whose outcome is unknown: one entry in both halves, under an id from before ids told the half.
    let id = MemoryId("0190b6c4-7a3e-7c1f-9d52-2f6f3a6f1a10".parse().unwrap());
    assert!(!id.looks_working());
    for (schema, old) in [("public", lasting), (POSTGRES_VOLATILE_SCHEMA, left)] {
        let sql = format!("UPDATE {schema}.memories SET id = '{id}' WHERE id = '{old}'");
        assert_eq!(database.execute(&sql, &[]), 1, "{sql}");
    }

    let restore = memories.restore(&caller, id, &at_any);
    let restored =
        tokio::time::timeout(Duration::from_secs(60), restore).await.expect("it comes to an end").unwrap();

    assert_eq!((restored.kind, restored.content.as_str()), (Kind::Working, "as it is"));
    let found = memories.get(&caller, id, &any).await.unwrap();
    assert_eq!((found.kind, found.content.as_str()), (Kind::Working, "as it is"), "what lasted is the truth");
    assert!(database.rows("SELECT id FROM public.memories").is_empty(), "it is in one half again");
}
