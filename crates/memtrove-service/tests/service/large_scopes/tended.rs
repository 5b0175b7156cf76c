//! Memories whose every scope is large: before each search all of them are given to the database.

use memtrove_service::{Services, Settings};
use memtrove_store::Store;
use memtrove_store::postgres::PostgresEngine;
use memtrove_testkit::clock::TestClock;
use memtrove_testkit::memory_suite::Fixture;
use memtrove_testkit::postgres::Database;
use std::sync::Arc;

pub async fn open() -> Fixture {
    let database = Database::fresh();
    let store = Store::new(Arc::new(PostgresEngine::open(database.config()).unwrap()));
    let settings = Settings { database_index_above: 1, ..Settings::default() };
    let services = Services::new(store, Arc::new(TestClock::new()), settings).await.unwrap();
    Fixture::in_database(services, database)
}
