//! What a search of conversations takes from others: no more than its budget, also inside one tree, and nothing once its caller is
//! gone. On an engine that is as slow as the test wants.

use crate::world::caller;
use memtrove_core::conversations::Channel;
use memtrove_core::identity::Caller;
use memtrove_core::{ConversationId, Json};
use memtrove_service::conversations::{
    AppendRequest, CreateConversation, ListEntries, SearchPage, SearchRequest,
};
use memtrove_service::{SearchSettings, Services, Settings};
use memtrove_store::sqlite::{SqliteConfig, SqliteEngine};
use memtrove_store::vault::Vault;
use memtrove_store::vectors::VectorIndex;
use memtrove_store::{
    Compaction, EachRow, Engine, FeedEntry, Health, Lock, QueuedWork, Recorded, StalePages, Store,
    StoreError, TenantScope, TextDocument, TextHit, TextQuery, Tx, UnitOfWork, Value,
};
use memtrove_testkit::clock::TestClock;
use serde_json::json;
use std::ops::ControlFlow;
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;
use tokio::sync::oneshot;
use uuid::Uuid;

/// Rows of indexes pass one by one, as far as it is open.
#[derive(Default)]
struct Gate {
    state: Mutex<GateState>,
    changed: Condvar,
}

#[derive(Default)]
struct GateState {
    /// How many rows may pass; `None` is all.
    open: Option<usize>,
    passed: usize,
    waiting: usize,
}

impl Gate {
    /// Lets so many rows pass from now on.
    fn set(&self, open: Option<usize>) {
        let mut state = self.state.lock().unwrap();
        (state.open, state.passed) = (open, 0);
        self.changed.notify_all();
    }

    fn pass(&self) {
        let mut state = self.state.lock().unwrap();
        state.waiting += 1;
        self.changed.notify_all();
        let closed = |state: &mut GateState| state.open.is_some_and(|open| state.passed >= open);
        let mut state = self.changed.wait_while(state, closed).unwrap();
        state.waiting -= 1;
        state.passed += 1;
    }

    fn passed(&self) -> usize {
        self.state.lock().unwrap().passed
    }

    /// Returns once so many searches wait at the gate.
    async fn wait_for(self: &Arc<Self>, searches: usize) {
        let gate = self.clone();
        let waits = move || {
            let full = gate.changed.wait_while(gate.state.lock().unwrap(), |state| state.waiting < searches);
            drop(full.unwrap());
        };
        tokio::task::spawn_blocking(waits).await.unwrap();
    }
}

/// An engine whose indexes are read through a gate.
struct Gated {
    engine: SqliteEngine,
    gate: Arc<Gate>,
}

impl Engine for Gated {
    fn read(&self, job: QueuedWork) {
        self.engine.read(Box::new(GatedWork { job, gate: self.gate.clone() }));
    }

    fn write(&self, job: QueuedWork) {
        self.engine.write(job);
    }

    fn health(&self) -> Health {
        self.engine.health()
    }

    fn empty_log(&self) -> oneshot::Receiver<Result<bool, StoreError>> {
        self.engine.empty_log()
    }

    fn describe(&self) -> String {
        self.engine.describe()
    }

    fn close(&self) {
        self.engine.close();
    }
}

struct GatedWork {
    job: QueuedWork,
    gate: Arc<Gate>,
}

impl UnitOfWork for GatedWork {
    fn tenants(&self) -> &TenantScope {
        self.job.tenants()
    }

    fn run(&mut self, tx: &mut dyn Tx) -> bool {
        self.job.run(&mut GatedTx { tx, gate: &self.gate })
    }

    fn finish(self: Box<Self>, outcome: Result<(), StoreError>) {
        self.job.finish(outcome);
    }
}

struct GatedTx<'t> {
    tx: &'t mut dyn Tx,
    gate: &'t Gate,
}

impl Tx for GatedTx<'_> {
    fn query(
        &mut self,
        sql: &str,
        params: &[Value<'_>],
        lock: Lock,
        each: EachRow<'_>,
    ) -> Result<(), StoreError> {
        let is_gated = sql.contains("FROM meanings");
        self.tx.query(sql, params, lock, &mut |row| {
            if is_gated {
                self.gate.pass();
            }
            each(row)
        })
    }

    fn vault(&self) -> &Arc<Vault> {
        self.tx.vault()
    }

    fn execute(&mut self, sql: &str, params: &[Value<'_>]) -> Result<u64, StoreError> {
        self.tx.execute(sql, params)
    }

    fn lock(&mut self, key: &[u8]) -> Result<(), StoreError> {
        self.tx.lock(key)
    }

    fn record_change(&mut self, change: &FeedEntry<'_>) -> Result<Recorded, StoreError> {
        self.tx.record_change(change)
    }

    fn has_unnumbered_changes(&mut self) -> Result<bool, StoreError> {
        self.tx.has_unnumbered_changes()
    }

    fn number_changes(&mut self) -> Result<bool, StoreError> {
        self.tx.number_changes()
    }

    fn last_number(&mut self, table: &str) -> Result<i64, StoreError> {
        self.tx.last_number(table)
    }

    fn number_past(&mut self, table: &str, number: i64) -> Result<(), StoreError> {
        self.tx.number_past(table, number)
    }

    fn index_text(&mut self, document: TextDocument) -> Result<(), StoreError> {
        self.tx.index_text(document)
    }

    fn unindex_text(&mut self, id: Uuid) -> Result<(), StoreError> {
        self.tx.unindex_text(id)
    }

    fn unindex_group(&mut self, group: Uuid) -> Result<(), StoreError> {
        self.tx.unindex_group(group)
    }

    fn compact_texts(&mut self, begun: Option<Compaction>) -> Result<Option<Compaction>, StoreError> {
        self.tx.compact_texts(begun)
    }

    fn find_stale_pages(&mut self, from: i64) -> Result<StalePages, StoreError> {
        self.tx.find_stale_pages(from)
    }

    fn has_untaken_texts(&mut self) -> Result<bool, StoreError> {
        self.tx.has_untaken_texts()
    }

    fn untaken_texts(&mut self, group: Option<Uuid>, after: i64, limit: i64) -> Result<Vec<i64>, StoreError> {
        self.tx.untaken_texts(group, after, limit)
    }

    fn count_untaken_texts(&mut self, limit: i64) -> Result<i64, StoreError> {
        self.tx.count_untaken_texts(limit)
    }

    fn take_in_texts(&mut self, numbers: &[i64]) -> Result<(), StoreError> {
        self.tx.take_in_texts(numbers)
    }

    fn search_text(
        &mut self,
        query: &TextQuery,
        each: &mut dyn FnMut(TextHit<'_>) -> Result<ControlFlow<()>, StoreError>,
    ) -> Result<(), StoreError> {
        self.tx.search_text(query, each)
    }

    fn vectors(&mut self) -> Option<&mut dyn VectorIndex> {
        self.tx.vectors()
    }
}

/// How many entries each owner has, all in one tree.
const ENTRIES: usize = 300;
/// Rows that pass at most before a search looks up again.
const UNASKED: usize = 32;

struct World {
    services: Services,
    store: Store,
    gate: Arc<Gate>,
    _folder: tempfile::TempDir,
}

impl World {
    /// Owners with a long conversation each, of which nothing is in memory.
    async fn new(budget: Duration, owners: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("memtrove.db");
        let gate = Arc::new(Gate::default());
        let engine = SqliteEngine::open(SqliteConfig { path, ..SqliteConfig::default() }).unwrap();
        let store = Store::new(Arc::new(Gated { engine, gate: gate.clone() }));
        let search = SearchSettings { budget, ..SearchSettings::default() };
        let settings = Settings { search, ..Settings::default() };
        let services = Services::new(store.clone(), Arc::new(TestClock::new()), settings).await.unwrap();
        let world = Self { services, store, gate, _folder: folder };
        for owner in owners {
            world.talk(&caller(owner, None)).await;
        }
        world.services.run_due_tasks().await.unwrap();
        world
    }

    async fn talk(&self, owner: &Caller) -> ConversationId {
        let api = &self.services.conversations;
        let id = api.create(owner, CreateConversation::default()).await.unwrap().id;
        for number in 0..ENTRIES {
            let text = format!("walrus number {number}");
            let request = AppendRequest {
                channel: Some(Channel::History),
                content_type: Some("history".into()),
                content: Some(Json::of(&json!([{"role": "USER", "text": text}])).unwrap()),
                ..AppendRequest::default()
            };
            api.append(owner, id, request, None).await.unwrap();
        }
        id
    }

    fn search(&self, owner: &str) -> tokio::task::JoinHandle<SearchPage> {
        let (api, owner) = (self.services.conversations.clone(), caller(owner, None));
        let request =
            SearchRequest { query: Some("walrus".into()), limit: Some(200), ..SearchRequest::default() };
        tokio::spawn(async move { api.search(&owner, request).await.unwrap() })
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_search_ends_inside_a_tree_when_its_budget_is_spent_and_the_rest_is_read_later() {
    let budget = Duration::from_millis(500);
    let world = World::new(budget, &["alice"]).await;
    world.gate.set(Some(1));
    let search = world.search("alice");
    world.gate.wait_for(1).await;
    tokio::time::sleep(2 * budget).await;
    world.gate.set(None);

    let found = search.await.unwrap();

    assert!(found.degraded);
    assert_eq!(found.data.len(), UNASKED, "what was read is found");
    world.services.run_due_tasks().await.unwrap();
    let found = world.search("alice").await.unwrap();
    assert!(!found.degraded);
    assert_eq!(found.data.len(), 200, "a whole page");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_search_ends_inside_a_tree_when_its_caller_is_gone() {
    let world = World::new(Duration::from_secs(3600), &["alice"]).await;
    world.gate.set(Some(1));
    let search = world.search("alice");
    world.gate.wait_for(1).await;

    search.abort();
    assert!(search.await.unwrap_err().is_cancelled());
    world.gate.set(None);
    // Ends once all readers have ended.
    let store = world.store.clone();
    tokio::task::spawn_blocking(move || store.close()).await.unwrap();

    assert!(world.gate.passed() <= UNASKED, "{} rows were read for nobody", world.gate.passed());
}

#[tokio::test(flavor = "multi_thread")]
async fn two_owners_who_search_leave_others_a_reader() {
    let world = World::new(Duration::from_secs(3600), &["alice", "bob"]).await;
    let carol = caller("carol", None);
    let conversation = world.talk(&carol).await;
    world.gate.set(Some(0));
    let turns = world.store.health().readers - 1;
    let searches = [world.search("alice"), world.search("bob")];
    world.gate.wait_for(turns.min(2)).await;

    let page = world.services.conversations.list_entries(&carol, conversation, ListEntries::default()).await;

    assert!(!page.unwrap().data.is_empty(), "both searches stand still");
    world.gate.set(None);
    for search in searches {
        assert!(!search.await.unwrap().degraded);
    }
}
