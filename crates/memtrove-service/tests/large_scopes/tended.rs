//! A provider whose every scope is large: before each search all of them are given to the database.

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use memtrove_core::Result;
use memtrove_core::identity::Tenant;
use memtrove_core::memories::{Kind, Memory, MemoryId};
use memtrove_service::memories::journal::Entry;
use memtrove_service::memories::provider::{
    Health, Hits, MemoryProvider, NearQuery, Page, ProviderInfo, ScanQuery, Span, Write, Written,
};
use memtrove_service::{Services, Settings};
use memtrove_store::Store;
use memtrove_store::postgres::PostgresEngine;
use memtrove_testkit::clock::TestClock;
use memtrove_testkit::postgres::Database;
use memtrove_testkit::provider_suite::Fixture;
use std::sync::Arc;

const KINDS: [Kind; 6] =
    [Kind::Semantic, Kind::Session, Kind::Episodic, Kind::Procedural, Kind::UserPersonal, Kind::Archival];

pub async fn open() -> Fixture {
    let database = Database::fresh();
    let store = Store::new(Arc::new(PostgresEngine::open(database.config()).unwrap()));
    let settings = Settings { database_index_above: 1, ..Settings::default() };
    let services = Services::new(store.clone(), Arc::new(TestClock::new()), settings).await.unwrap();
    let [inner, _] = services.memories.providers();
    let provider = Arc::new(Tended { inner, services });
    Fixture::new(provider, &KINDS, (store, database))
}

struct Tended {
    inner: Arc<dyn MemoryProvider>,
    services: Services,
}

impl MemoryProvider for Tended {
    fn info(&self) -> ProviderInfo {
        self.inner.info()
    }

    fn initialize(&self) -> BoxFuture<'_, Result<()>> {
        self.inner.initialize()
    }

    fn shutdown(&self) -> BoxFuture<'_, Result<()>> {
        self.inner.shutdown()
    }

    fn health(&self) -> BoxFuture<'_, Health> {
        self.inner.health()
    }

    fn write(&self, writes: Vec<Write>, journal: Entry) -> BoxFuture<'_, Result<Written>> {
        self.inner.write(writes, journal)
    }

    fn get<'a>(&'a self, tenant: &'a Tenant, id: MemoryId) -> BoxFuture<'a, Result<Option<Memory>>> {
        self.inner.get(tenant, id)
    }

    fn load<'a>(&'a self, tenant: &'a Tenant, ids: &'a [MemoryId]) -> BoxFuture<'a, Result<Vec<Memory>>> {
        self.inner.load(tenant, ids)
    }

    fn scan(&self, spans: Vec<Span>, query: ScanQuery) -> BoxFuture<'_, Result<Page>> {
        async move {
            self.services.memories.tend_indexes().await?;
            self.inner.scan(spans, query).await
        }
        .boxed()
    }

    fn nearest(&self, spans: Vec<Span>, query: NearQuery) -> BoxFuture<'_, Result<Hits>> {
        async move {
            self.services.memories.tend_indexes().await?;
            self.inner.nearest(spans, query).await
        }
        .boxed()
    }
}
