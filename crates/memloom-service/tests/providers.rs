//! The embedded providers of memories, held to the suite that every provider passes.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod world;

use memloom_core::memories::Kind;
use memloom_service::Settings;
use memloom_testkit::provider_suite::Fixture;
use world::World;

/// Everything but working memory is kept in the store.
const DURABLE: [Kind; 6] =
    [Kind::Semantic, Kind::Session, Kind::Episodic, Kind::Procedural, Kind::UserPersonal, Kind::Archival];
/// Working memory is kept in RAM.
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

mod in_the_store {
    memloom_testkit::provider_suite!(super::durable);
}

mod in_memory {
    memloom_testkit::provider_suite!(super::volatile);
}
