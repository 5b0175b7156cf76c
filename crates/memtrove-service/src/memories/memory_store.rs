//! Where entries are: what lasts in the primary store, working memory in its volatile twin.
//!
//! Both halves have the same tables and the same way to find entries. Every method takes scopes, which only the resolver can
//! build. Each reads in one unit of work: what is found, loaded and ranked is of one snapshot.

use super::access_counts::AccessCounts;
use super::ranking::{Order, RankedHits, rank};
use super::scope_search::{self, Admission, Matches, ScopeCache, ScopeQuery, Span};
use super::stream::Bus;
use crate::Context;
use memtrove_core::Result;
use memtrove_core::Timestamp;
use memtrove_core::identity::Tenant;
use memtrove_core::memories::cursor::Position;
use memtrove_core::memories::merge::{Match, Options};
use memtrove_core::memories::{Conditions, Kind, Memory, MemoryId, Viewer};
use memtrove_recall::index::PartitionCache;
use memtrove_store::memories::entries;
use memtrove_store::memories::purge::Detached;
use memtrove_store::memories::scopes;
use memtrove_store::{Store, Tx};
use serde::Serialize;
use std::collections::HashMap;
use std::ops::ControlFlow;
use std::sync::Arc;

/// Entries that a page reads at a time.
const BATCH: i64 = 200;
/// The halves' names, where they are introspected.
const DURABLE: &str = "embedded";
const VOLATILE: &str = "embedded-ram";

/// What a half can do.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Capabilities {
    /// It finds by meaning.
    pub vector_search: bool,
    /// It filters before it counts.
    pub metadata_filtering: bool,
    /// It writes many entries at once.
    pub bulk: bool,
    /// It replaces a version only if it is the expected one.
    pub compare_and_swap: bool,
    /// Entries expire by themselves.
    pub ttl: bool,
    /// Every count is exact. Where this is false, a search says of its own count whether it is (`totalCountExact`).
    pub exact_count: bool,
    /// A search sees every write that was acknowledged before it began.
    pub read_your_writes: bool,
    /// It is there after a restart.
    pub durable: bool,
    /// The longest content.
    pub max_content_chars: usize,
    /// The most metadata.
    pub max_metadata_bytes: usize,
    /// The vectors it takes; none is any.
    pub dimensions: Option<usize>,
    /// How it compares.
    pub metrics: &'static [&'static str],
}

/// Which half it is.
#[derive(Debug, Clone, Serialize)]
pub struct HalfInfo {
    /// Its name in the configuration.
    pub id: &'static str,
    /// Its version.
    pub version: &'static str,
    /// See [`Capabilities`].
    pub capabilities: Capabilities,
}

/// How a half is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// All is well.
    Healthy,
    /// It works, not all of it.
    Degraded,
    /// It does not work.
    Unhealthy,
}

impl Status {
    /// The contract's word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Healthy => "healthy",
            Self::Degraded => "degraded",
            Self::Unhealthy => "unhealthy",
        }
    }
}

/// How a half is, and what is wrong with it.
#[derive(Debug, Clone)]
pub struct Health {
    /// See [`Status`].
    pub status: Status,
    /// What is wrong, for people.
    pub message: Option<String>,
}

/// Which entries a page is made of.
#[derive(Debug, Clone)]
pub struct ScanQuery {
    /// For whom.
    pub viewer: Viewer,
    /// Which of them.
    pub conditions: Conditions,
    /// Only what comes after this position.
    pub after: Option<Position>,
    /// How many at most.
    pub limit: usize,
    /// Whether they carry their embeddings.
    pub with_embeddings: bool,
    /// Now: what has expired does not exist.
    pub now: Timestamp,
}

/// Entries in the order of lists, newest first.
#[derive(Debug, Clone, Default)]
pub struct MemoryPage {
    /// At most as many as asked for.
    pub memories: Vec<Memory>,
    /// How many there are altogether.
    pub total: usize,
}

/// Where entries are, by their kind.
pub struct MemoryStore {
    /// Everything but working memory.
    pub durable: Half,
    /// Working memory.
    pub volatile: Half,
}

/// One of the two stores that entries are in, and the indexes in memory of its scopes. Numbers of scopes mean nothing in the
/// other one.
pub struct Half {
    id: &'static str,
    store: Store,
    pub(super) indexes: Arc<ScopeCache>,
    pub(super) bus: Arc<Bus>,
    pub(super) uses: Arc<AccessCounts>,
    pub(super) cx: Arc<Context>,
}

/// What matches, with the entries.
#[derive(Debug, Clone, Default)]
pub struct LoadedMatches {
    /// The matches.
    pub matches: Matches,
    /// Their entries.
    pub memories: HashMap<MemoryId, Memory>,
}

impl MemoryStore {
    pub(super) fn new(cx: &Arc<Context>, twin: Store, bus: &Arc<Bus>, uses: &Arc<AccessCounts>) -> Self {
        let half = |id, store, memory| Half {
            id,
            store,
            indexes: Arc::new(PartitionCache::new(memory)),
            bus: bus.clone(),
            uses: uses.clone(),
            cx: cx.clone(),
        };
        let memory = cx.settings.index_memory;
        Self { durable: half(DURABLE, cx.store.clone(), memory), volatile: half(VOLATILE, twin, memory / 4) }
    }

    /// The half that keeps a kind.
    pub fn of(&self, kind: Kind) -> &Half {
        if kind == Kind::Working { &self.volatile } else { &self.durable }
    }

    /// Both halves, what lasts first.
    pub fn all(&self) -> [&Half; 2] {
        [&self.durable, &self.volatile]
    }

    /// An entry of a tenant, expired or not, with its embedding. The half that probably has it is asked first.
    pub async fn get(&self, tenant: &Tenant, id: MemoryId) -> Result<Option<Memory>> {
        let [first, second] = match id.looks_working() {
            true => [&self.volatile, &self.durable],
            false => [&self.durable, &self.volatile],
        };
        match first.get(tenant, id).await? {
            Some(memory) => Ok(Some(memory)),
            None => second.get(tenant, id).await,
        }
    }

    /// A page of both halves.
    pub async fn scan(&self, spans: Vec<Span>, query: ScanQuery) -> Result<MemoryPage> {
        let mut page = MemoryPage::default();
        for half in self.asked_for(&query.conditions, &spans).into_iter().flatten() {
            let part = half.scan(spans.clone(), query.clone()).await?;
            page.memories.extend(part.memories);
            page.total += part.total;
        }
        page.memories.sort_by(|a, b| Position::of(a).compare(&Position::of(b)));
        page.memories.truncate(query.limit);
        Ok(page)
    }

    /// The best matches of both halves. Working memory is asked first; what it has is ranked with the rest.
    pub async fn search(&self, spans: &[Span], query: &ScopeQuery, options: Options) -> Result<RankedHits> {
        let [durable, volatile] = self.asked_for(&query.conditions, spans);
        let (spans, query) = (spans.to_vec(), query.clone());
        match (durable, volatile) {
            (Some(durable), Some(volatile)) => {
                let working = volatile.matches(spans.clone(), query.clone()).await?;
                durable.search(spans, query, options, working).await
            }
            (Some(half), None) | (None, Some(half)) => {
                half.search(spans, query, options, LoadedMatches::default()).await
            }
            (None, None) => Ok(RankedHits::default()),
        }
    }

    /// The halves that may hold something of these conditions and scopes: what lasts, and working memory.
    fn asked_for(&self, conditions: &Conditions, spans: &[Span]) -> [Option<&Half>; 2] {
        let wants = |working: bool| match &conditions.kinds {
            None => true,
            Some(kinds) => kinds.iter().any(|kind| (*kind == Kind::Working) == working),
        };
        let personal = spans.iter().any(|span| Kind::Working.layers().contains(&span.scope.layer()));
        [
            (wants(false) || conditions.include_archived).then_some(&self.durable),
            (wants(true) && personal).then_some(&self.volatile),
        ]
    }
}

impl Half {
    pub(super) fn is_durable(&self) -> bool {
        self.id == DURABLE
    }

    pub(super) fn store(&self) -> &Store {
        &self.store
    }

    /// Drops the indexes of scopes that are out of reach.
    pub(super) fn drop_indexes(&self, gone: &[Detached]) {
        gone.iter().for_each(|scope| self.indexes.drop_key(&scope.no));
    }

    /// Drops all indexes. They are loaded again as they are needed.
    pub(super) fn drop_all_indexes(&self) {
        self.indexes.clear();
    }

    /// Who it is and what it can do.
    pub fn info(&self) -> HalfInfo {
        let limits = &self.cx.settings.memories.rules.limits;
        HalfInfo {
            id: self.id,
            version: env!("CARGO_PKG_VERSION"),
            capabilities: Capabilities {
                vector_search: self.cx.embeddings.space().is_some(),
                metadata_filtering: true,
                bulk: true,
                compare_and_swap: true,
                ttl: true,
                // Lists are; searches of large scopes are not, and each answer says so.
                exact_count: false,
                read_your_writes: true,
                durable: self.is_durable(),
                max_content_chars: limits.content_length,
                max_metadata_bytes: limits.metadata_bytes,
                dimensions: None,
                metrics: &["cosine"],
            },
        }
    }

    /// How it is.
    pub async fn health(&self) -> Health {
        match self.store.pulse().await {
            Ok(()) => Health { status: Status::Healthy, message: None },
            Err(reason) => {
                tracing::warn!(%reason, half = self.id, "not healthy");
                Health { status: Status::Unhealthy, message: Some("the store is not available".into()) }
            }
        }
    }

    /// An entry of a tenant, expired or not, with its embedding.
    pub async fn get(&self, tenant: &Tenant, id: MemoryId) -> Result<Option<Memory>> {
        let of = tenant.clone();
        let get = move |tx: &mut dyn Tx| Ok(entries::get(tx, &of, id)?.map(|stored| stored.memory));
        self.store.read(tenant, "get_memory", get).await
    }

    /// Entries of a tenant by their ids, expired or not, with their embeddings.
    pub async fn get_all(&self, tenant: &Tenant, ids: Vec<MemoryId>) -> Result<Vec<Option<Memory>>> {
        if ids.is_empty() {
            return Ok(Vec::new());
        }
        let of = tenant.clone();
        let get = move |tx: &mut dyn Tx| {
            let stored = ids.iter().map(|id| Ok(entries::get(tx, &of, *id)?.map(|stored| stored.memory)));
            stored.collect::<Result<Vec<_>>>()
        };
        self.store.read(tenant, "get_memories", get).await
    }

    /// A page of entries.
    pub async fn scan(&self, spans: Vec<Span>, query: ScanQuery) -> Result<MemoryPage> {
        let Some(tenant) = tenant_of(&spans) else { return Ok(MemoryPage::default()) };
        let indexes = self.indexes.clone();
        self.store.read(tenant, "list_memories", move |tx| scan(tx, &indexes, &spans, &query)).await
    }

    /// Everything that the index names, loaded.
    pub async fn matches(&self, spans: Vec<Span>, query: ScopeQuery) -> Result<LoadedMatches> {
        let Some(tenant) = tenant_of(&spans) else { return Ok(LoadedMatches::default()) };
        let (indexes, cx) = (self.indexes.clone(), self.cx.clone());
        let find = move |tx: &mut dyn Tx| {
            let decay = &cx.settings.memories.rules.decay;
            let mut matches = scope_search::search(tx, &indexes, &spans, &query, decay, &cx.analyzer)?;
            let all: Vec<&Match> = matches.matches.iter().collect();
            let memories: HashMap<MemoryId, Memory> =
                matches.load(tx, &all, &query)?.into_iter().map(|memory| (memory.id, memory)).collect();
            matches.matches.retain(|matched| memories.contains_key(&matched.id));
            Ok(LoadedMatches { matches, memories })
        };
        self.store.read(tenant, "search_memories", find).await
    }

    /// Finds, loads and ranks, together with what the other half has.
    pub async fn search(
        &self,
        spans: Vec<Span>,
        query: ScopeQuery,
        options: Options,
        others: LoadedMatches,
    ) -> Result<RankedHits> {
        let Some(tenant) = tenant_of(&spans) else { return Ok(RankedHits::default()) };
        let (indexes, cx) = (self.indexes.clone(), self.cx.clone());
        let search = move |tx: &mut dyn Tx| {
            let decay = &cx.settings.memories.rules.decay;
            let mut all = scope_search::search(tx, &indexes, &spans, &query, decay, &cx.analyzer)?;
            all.extend(&others.matches);
            let mut load = |matches: &[&Match]| all.load(tx, matches, &query);
            rank(&all, others.memories.clone(), &Order::new(&query, options, &cx.analyzer), &mut load)
        };
        self.store.read(tenant, "search_memories", search).await
    }
}

/// The tenant that some spans are of: all of them are of one.
fn tenant_of(spans: &[Span]) -> Option<Tenant> {
    spans.first().map(|span| span.scope.tenant().clone())
}

fn scan(tx: &mut dyn Tx, cache: &ScopeCache, spans: &[Span], query: &ScanQuery) -> Result<MemoryPage> {
    let mut page = Vec::new();
    let mut total = 0;
    for span in spans {
        let Some(row) = scopes::find(tx, &span.scope)? else { continue };
        let before = query.after.as_ref().map(|position| (position.at, position.id));
        let admission = Admission {
            viewer: &query.viewer,
            conditions: &query.conditions,
            until: span.until,
            now: query.now,
            only: None,
        };
        let mut taken = 0;
        entries::newest(tx, row.no, before, BATCH.min(query.limit as i64 + 1), |stored| {
            if admission.admits_memory(&stored.memory) {
                taken += 1;
                page.push(stored);
            }
            if taken == query.limit { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })?;
        total += if query.conditions.filter.is_empty() {
            scope_search::count(tx, cache, row, &admission)?
        } else {
            let mut count = 0;
            entries::newest(tx, row.no, None, BATCH, |stored| {
                count += usize::from(admission.admits_memory(&stored.memory));
                ControlFlow::Continue(())
            })?;
            count
        };
    }
    page.sort_unstable_by(|a, b| Position::of(&a.memory).compare(&Position::of(&b.memory)));
    page.truncate(query.limit);
    if query.with_embeddings {
        entries::add_embeddings(tx, &mut page)?;
    }
    Ok(MemoryPage { memories: page.into_iter().map(|stored| stored.memory).collect(), total })
}
