//! The embedded providers of memories, held to the suite that every provider passes.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod world;

use memtrove_core::memories::Kind;
use memtrove_service::{Services, Settings};
use memtrove_store::Store;
use memtrove_store::postgres::PostgresEngine;
use memtrove_testkit::clock::TestClock;
use memtrove_testkit::postgres::Database;
use memtrove_testkit::provider_suite::Fixture;
use std::sync::Arc;
use world::World;

/// Everything but working memory is kept in the store.
const DURABLE: [Kind; 6] =
    [Kind::Semantic, Kind::Session, Kind::Episodic, Kind::Procedural, Kind::UserPersonal, Kind::Archival];
/// Working memory is kept in RAM, or where every node finds it and a crash empties it.
const VOLATILE: [Kind; 1] = [Kind::Working];

async fn durable() -> Fixture {
    let world = World::new(Settings::default()).await;
    let [provider, _] = world.services.memories.providers();
    Fixture::new(provider, &DURABLE, world)
}

async fn volatile() -> Fixture {
    let world = World::new(Settings::default()).await;
    let [_, provider] = world.services.memories.providers();
    Fixture::new(provider, &VOLATILE, world)
}

/// The services on a database of their own.
async fn on_postgres() -> (Services, Store, Arc<Database>) {
    let database = Database::fresh();
    let store = Store::new(Arc::new(PostgresEngine::open(database.config()).unwrap()));
    let services =
        Services::new(store.clone(), Arc::new(TestClock::new()), Settings::default()).await.unwrap();
    (services, store, database)
}

async fn durable_on_postgres() -> Fixture {
    let world = on_postgres().await;
    let [provider, _] = world.0.memories.providers();
    Fixture::new(provider, &DURABLE, world)
}

async fn volatile_on_postgres() -> Fixture {
    let world = on_postgres().await;
    let [_, provider] = world.0.memories.providers();
    Fixture::new(provider, &VOLATILE, world)
}

mod in_the_store {
    memtrove_testkit::provider_suite!(super::durable);
}

mod in_memory {
    memtrove_testkit::provider_suite!(super::volatile);
}

mod in_postgres {
    memtrove_testkit::provider_suite!(super::durable_on_postgres);
}

mod in_postgres_unlogged {
    memtrove_testkit::provider_suite!(super::volatile_on_postgres);
}
