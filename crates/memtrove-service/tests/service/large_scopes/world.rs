//! Nodes on one database, and entries to search.

use memtrove_core::identity::Tenant;
use memtrove_core::memories::merge::Match;
use memtrove_core::memories::{
    AccessPolicy, Author, Conditions, Embedding, Kind, Layer, Lineage, Memory, MemoryId, Mode, Policy,
    ScopeKey, State, Viewer,
};
use memtrove_core::recall::terms::{self, EntryTerms};
use memtrove_core::text::Analyzer;
use memtrove_core::{Clock, Timestamp};
use memtrove_recall::embed::{Calibration, QueryVector, Space};
use memtrove_service::memories::journal::{Actor, Entry};
use memtrove_service::memories::scope_search::{Matches, ScopeQuery, Span};
use memtrove_service::memories::writing::{Write, WriteOutcome};
use memtrove_service::{Services, Settings};
use memtrove_store::memories::writing::Writing;
use memtrove_store::postgres::{PostgresConfig, PostgresEngine};
use memtrove_store::{AllTenants, Store, StoreError};
use memtrove_testkit::clock::TestClock;
use memtrove_testkit::postgres::Database;
use serde_json::Map;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use uuid::Uuid;

/// A model of 64 dimensions whose space is its own.
pub const MODEL: &str = "openai:suite:64";

/// A node.
pub struct Node {
    pub services: Services,
    pub store: Store,
}

impl Node {
    pub async fn open(config: PostgresConfig, above: usize) -> Self {
        let store = Store::new(Arc::new(PostgresEngine::open(config).unwrap()));
        let settings = Settings { database_index_above: above, ..Settings::default() };
        let services = Services::new(store.clone(), Arc::new(TestClock::new()), settings).await.unwrap();
        Self { services, store }
    }

    pub async fn tend(&self) {
        self.services.memories.tend_indexes().await.unwrap();
    }

    pub async fn write(&self, writes: Vec<Write>) -> WriteOutcome {
        // One number for every change, on whichever node.
        static CHANGES: AtomicU64 = AtomicU64::new(1);
        let change = || Uuid::from_u128(u128::from(CHANGES.fetch_add(1, Ordering::Relaxed)));
        let journal = Entry {
            actor: Arc::new(Actor::system("suite")),
            at: TestClock::new().now(),
            ids: writes.iter().map(|_| change()).collect(),
            milestones: Vec::new(),
            remember: None,
            audited: true,
            sources: Vec::new(),
            reason: "suite",
        };
        self.services.memories.store().durable.write(writes, journal).await.unwrap()
    }

    pub async fn nearest(&self, query: ScopeQuery) -> Matches {
        let spans = vec![Span { scope: scope(), until: None }];
        self.services.memories.store().durable.matches(spans, query).await.unwrap().matches
    }

    /// Writes very many at once, without telling anybody.
    pub async fn pour(&self, memories: Vec<Memory>) {
        let analyzer = Analyzer::new("english").unwrap();
        for some in memories.chunks(1_000) {
            let of = |memory: &Memory| terms::terms(&analyzer, &memory.content);
            let words: Vec<EntryTerms> =
                some.iter().map(|memory| EntryTerms { whole: of(memory), pieces: Vec::new() }).collect();
            let some = some.to_vec();
            let poured = self.store.write(AllTenants, "suite", move |tx| {
                let mut writing = Writing::default();
                for (memory, words) in some.iter().zip(&words) {
                    writing.insert(tx, memory, words)?;
                }
                writing.finish(tx)
            });
            poured.await.unwrap_or_else(|error: StoreError| panic!("{error}"));
        }
    }
}

/// How the scope is searched, and how many rows and indexes of it the database has.
pub fn searched(database: &Database) -> (String, String, String) {
    let one = |query: &str| database.rows(query).first().and_then(|row| row[0].clone()).unwrap_or_default();
    (
        one("SELECT searched FROM memory_scopes"),
        one("SELECT COUNT(*) FROM memory_vectors"),
        one("SELECT COUNT(*) FROM pg_indexes WHERE tablename = 'memory_vectors' AND indexdef LIKE '%hnsw%'"),
    )
}

/// Entries that the database has and should not, or the other way round, or under another change.
pub fn differences(database: &Database) -> Vec<Vec<Option<String>>> {
    database.rows(
        "(SELECT no, place & ((1::BIGINT << 36) - 1) FROM memory_index EXCEPT SELECT no, seq FROM memory_vectors) \
         UNION ALL (SELECT no, seq FROM memory_vectors EXCEPT SELECT no, place & ((1::BIGINT << 36) - 1) FROM memory_index)",
    )
}

pub fn scope() -> ScopeKey {
    ScopeKey::listed(Tenant::listed("acme".into()), Layer::User, vec!["alice".into()]).unwrap()
}

pub fn memory(number: u128, content: &str, vector: Vec<f32>) -> Memory {
    let now = Timestamp::from_micros(1_700_000_000_000_000 + number as i64);
    Memory {
        id: MemoryId(Uuid::from_u128(1 << 100 | number)),
        scope: scope(),
        kind: Kind::Semantic,
        origin_kind: None,
        content: content.to_owned(),
        metadata: Map::new(),
        state: State::Active,
        policy: AccessPolicy::new(Policy::Organization),
        created_by: Author { user: Some("alice".into()), client: None },
        created_at: now,
        updated_at: now,
        occurred_at: None,
        expires_at: None,
        ttl_seconds: None,
        version: 1,
        anchor: now,
        fact: None,
        lineage: Lineage::default(),
        access_count: 0,
        last_accessed_at: None,
        embedding: Some(Embedding::of_whole(MODEL.into(), vector)),
    }
}

pub fn like(model: &str, vector: &[f32], words: &str, want: usize) -> ScopeQuery {
    let analyzer = Analyzer::new("english").unwrap();
    ScopeQuery {
        vectors: vec![QueryVector {
            space: Space::of(model).unwrap(),
            vector: vector.to_vec(),
            calibration: Calibration::identity(),
            understood: 1.0,
        }],
        terms: terms::query_for_entries(&analyzer, words),
        mode: if words.is_empty() { Mode::Semantic } else { Mode::Hybrid },
        words_required: false,
        threshold: 0.0,
        farthest: None,
        time: None,
        time_alone: false,
        faint_terms: Vec::new(),
        want,
        viewer: Viewer { user: Some("alice".into()), client: None, team: None, all: false },
        conditions: Conditions::default(),
        now: Timestamp::from_micros(1_800_000_000_000_000),
    }
}

/// The ids of the best.
pub fn best(hits: &Matches, count: usize) -> Vec<MemoryId> {
    ranked(hits).iter().take(count).map(|near| near.id).collect()
}

/// Hits, the best first.
pub fn ranked(hits: &Matches) -> Vec<&Match> {
    let mut near: Vec<&Match> = hits.matches.iter().collect();
    near.sort_by(|a, b| a.by_precedence(b));
    near
}

/// Numbers that look random and are the same every time.
pub struct Dice(pub u64);

impl Dice {
    /// From 0 to 1.
    pub fn roll(&mut self) -> f32 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut x = self.0;
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((x ^ (x >> 31)) >> 40) as f32 / (1u64 << 24) as f32
    }

    /// A direction of so many dimensions.
    pub fn direction(&mut self, dimensions: usize) -> Vec<f32> {
        unit((0..dimensions).map(|_| (0..4).map(|_| self.roll() - 0.5).sum()).collect())
    }

    /// A direction near another.
    pub fn near(&mut self, centre: &[f32], spread: f32) -> Vec<f32> {
        let away = self.direction(centre.len());
        unit(centre.iter().zip(&away).map(|(x, y)| x + spread * y).collect())
    }
}

pub fn unit(vector: Vec<f32>) -> Vec<f32> {
    let length = vector.iter().map(|x| x * x).sum::<f32>().sqrt();
    vector.into_iter().map(|x| x / length).collect()
}
