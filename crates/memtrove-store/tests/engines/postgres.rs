//! The engine for many nodes, held to the suite that every engine passes.

use memtrove_store::Store;
use memtrove_store::postgres::PostgresEngine;
use memtrove_testkit::engine_suite::EngineFixture;
use memtrove_testkit::postgres::Database;
use std::sync::Arc;

/// An engine on a database of its own.
struct Postgres {
    store: Store,
    database: Arc<Database>,
}

impl EngineFixture for Postgres {
    fn store(&self) -> &Store {
        &self.store
    }

    async fn reopen(&mut self) {
        self.store.close();
        self.store = open_on(&self.database);
    }
}

fn open_on(database: &Database) -> Store {
    Store::new(Arc::new(PostgresEngine::open(database.config()).unwrap()))
}

async fn open() -> Postgres {
    let database = Database::fresh();
    Postgres { store: open_on(&database), database }
}

memtrove_testkit::engine_suite!(open);
