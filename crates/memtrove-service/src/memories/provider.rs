//! What keeps entries: the port that every storage provider implements, and its catalogue.
//!
//! The manager asks a provider by the kind of an entry. Every method takes scopes, which only the resolver can build, so that
//! no provider can forget to filter. A provider says what it can do ([`Capabilities`]) and passes the compliance suite.

use futures_util::future::BoxFuture;
use memtrove_core::identity::Tenant;
use memtrove_core::memories::cursor::Position;
use memtrove_core::memories::merge::Match;
use memtrove_core::memories::search::Mode;
use memtrove_core::memories::{Conditions, Kind, Memory, MemoryId, ScopeKey, Viewer};
use memtrove_core::recall::evidence::Evidence;
use memtrove_core::{Result, Timestamp};
use memtrove_recall::embed::QueryVector;
use serde::Serialize;
use std::sync::Arc;

/// What a provider can do.
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

/// Who a provider is.
#[derive(Debug, Clone, Serialize)]
pub struct ProviderInfo {
    /// Its name in the configuration.
    pub id: &'static str,
    /// Its version.
    pub version: &'static str,
    /// See [`Capabilities`].
    pub capabilities: Capabilities,
}

/// How a provider is.
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

/// How a provider is, and what is wrong with it.
#[derive(Debug, Clone)]
pub struct Health {
    /// See [`Status`].
    pub status: Status,
    /// What is wrong, for people.
    pub message: Option<String>,
}

/// A scope to be read, perhaps only up to an instant: a fork sees what its ancestors remembered before it.
#[derive(Debug, Clone)]
pub struct Span {
    /// The scope.
    pub scope: ScopeKey,
    /// Entries made later are not seen.
    pub until: Option<Timestamp>,
}

/// What is written.
#[derive(Debug, Clone)]
pub enum Write {
    /// A new entry. Its id is fixed before the first attempt, so that another attempt does no harm.
    Insert(Arc<Memory>),
    /// A new entry, unless one that somebody sees states the same already.
    Remember {
        /// The new entry.
        memory: Arc<Memory>,
        /// Who must see the other.
        viewer: Viewer,
    },
    /// A new version of an entry that is still at another.
    Replace {
        /// The new version.
        memory: Arc<Memory>,
        /// The version it replaces.
        expected: i64,
    },
    /// The end of an entry that is still at this version.
    Remove(Arc<Memory>),
}

impl Write {
    /// The entry that is written.
    pub fn memory(&self) -> &Arc<Memory> {
        match self {
            Self::Insert(memory)
            | Self::Remember { memory, .. }
            | Self::Replace { memory, .. }
            | Self::Remove(memory) => memory,
        }
    }
}

/// What became of a batch of writes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Written {
    /// All of it is done.
    Done,
    /// Nothing was done: these are not as expected any more. They changed, went, or are there already.
    Conflict(Vec<MemoryId>),
    /// Nothing was done: the very request was answered before, with this.
    Replayed(String),
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
pub struct Page {
    /// At most as many as asked for.
    pub memories: Vec<Memory>,
    /// How many there are altogether.
    pub total: usize,
}

/// What is looked for.
#[derive(Debug, Clone)]
pub struct NearQuery {
    /// By meaning: the query in every space it could be embedded for.
    pub vectors: Vec<QueryVector>,
    /// By words: the digests of the query's terms.
    pub terms: Vec<u64>,
    /// Which of the two counts.
    pub mode: Mode,
    /// Whether entries must share a word with the query.
    pub words_required: bool,
    /// The least score.
    pub threshold: f64,
    /// How many of the best are needed, in each scope.
    pub want: usize,
    /// For whom.
    pub viewer: Viewer,
    /// Among which entries.
    pub conditions: Conditions,
    /// Now: what has expired does not exist.
    pub now: Timestamp,
}

/// An entry that matches, without its content.
#[derive(Debug, Clone)]
pub struct Near {
    /// What orders it.
    pub matched: Match,
    /// Its scope's number among those that were asked for.
    pub span: usize,
    /// The raw cosine, clamped to 0..1.
    pub similarity: f64,
    /// The raw cosine.
    pub cosine: f64,
    /// How the score came about.
    pub evidence: Evidence,
    /// The caller's key for entries that contradict each other.
    pub conflict_key: Option<Arc<str>>,
}

/// The entries that match.
#[derive(Debug, Clone, Default)]
pub struct Hits {
    /// The best of each scope, and every one that has a conflict key.
    pub near: Vec<Near>,
    /// How many match altogether.
    pub total: usize,
    /// Whether that is certain.
    pub exact: bool,
    /// Whether there are more than are named here.
    pub truncated: bool,
}

/// Keeps entries.
pub trait MemoryProvider: Send + Sync {
    /// Who it is and what it can do.
    fn info(&self) -> ProviderInfo;

    /// Gets ready to be asked.
    fn initialize(&self) -> BoxFuture<'_, Result<()>>;

    /// Writes down what it has; after that it refuses.
    fn shutdown(&self) -> BoxFuture<'_, Result<()>>;

    /// How it is.
    fn health(&self) -> BoxFuture<'_, Health>;

    /// Writes all of these or, unless every one can be done, none. `journal` is told of it in the same unit of work where
    /// the provider is the primary store, and right after it otherwise.
    fn write(&self, writes: Vec<Write>, journal: super::journal::Entry) -> BoxFuture<'_, Result<Written>>;

    /// An entry of a tenant, expired or not, with its embedding.
    fn get<'a>(&'a self, tenant: &'a Tenant, id: MemoryId) -> BoxFuture<'a, Result<Option<Memory>>>;

    /// Entries of a tenant, with their embeddings; those that are gone are left out.
    fn load<'a>(&'a self, tenant: &'a Tenant, ids: &'a [MemoryId]) -> BoxFuture<'a, Result<Vec<Memory>>>;

    /// A page of entries.
    fn scan(&self, spans: Vec<Span>, query: ScanQuery) -> BoxFuture<'_, Result<Page>>;

    /// Entries by meaning and words.
    fn nearest(&self, spans: Vec<Span>, query: NearQuery) -> BoxFuture<'_, Result<Hits>>;
}

/// Which provider keeps which kind.
#[derive(Clone)]
pub struct Catalogue {
    durable: Arc<dyn MemoryProvider>,
    volatile: Arc<dyn MemoryProvider>,
}

impl Catalogue {
    /// The embedded provider for what lasts, and its twin in memory for what does not.
    pub fn new(durable: Arc<dyn MemoryProvider>, volatile: Arc<dyn MemoryProvider>) -> Self {
        Self { durable, volatile }
    }

    /// The provider of a kind.
    pub fn of(&self, kind: Kind) -> &Arc<dyn MemoryProvider> {
        match kind {
            Kind::Working => &self.volatile,
            _ => &self.durable,
        }
    }

    /// Every provider once.
    pub fn all(&self) -> [&Arc<dyn MemoryProvider>; 2] {
        [&self.durable, &self.volatile]
    }

    /// The providers that may hold something of these conditions and layers.
    pub fn for_conditions(&self, conditions: &Conditions, spans: &[Span]) -> Vec<&Arc<dyn MemoryProvider>> {
        let wants = |working: bool| match &conditions.kinds {
            None => true,
            Some(kinds) => kinds.iter().any(|kind| (*kind == Kind::Working) == working),
        };
        let personal = spans.iter().any(|span| Kind::Working.layers().contains(&span.scope.layer()));
        let mut providers = Vec::with_capacity(2);
        if wants(false) || conditions.include_archived {
            providers.push(&self.durable);
        }
        if wants(true) && personal {
            providers.push(&self.volatile);
        }
        providers
    }
}
