//! The memories surface: one file per family of operations.
//!
//! An operation validates (rules in `memtrove_core::memories`), embeds before anything is locked, and hands the write to the
//! [half](memory_store::Half) of the store that keeps the entry's kind, with what belongs in the journal. A change of an
//! entry is computed from what was read and committed if the entry is still at that version.

pub mod access;
mod access_counts;
mod bulk;
mod capabilities;
mod charge;
mod consolidate;
mod decay;
mod entries;
mod event_json;
mod facts;
pub(crate) mod forget;
mod history;
pub mod import;
mod indexing;
pub mod journal;
mod lifecycle;
mod listing;
mod maintenance;
pub mod memory_store;
pub(crate) mod mirror;
mod passages;
mod pieces;
mod pointers;
mod ranking;
mod relay;
mod remember;
mod replay;
pub mod scope_search;
mod search;
mod segments;
mod sessions;
pub mod stream;
mod subjects;
mod subscription;
mod turns;
mod upgrades;
mod view;
pub mod writing;

pub use bulk::{BulkAdded, BulkDeleted};
pub use capabilities::{MemoryCapabilities, MemoryHealth};
pub use consolidate::ConsolidationReport;
pub use decay::{DecayReport, FadedMemory};
pub use entries::{AddedMemory, Replacement, Updated};
pub use facts::AddedFact;
pub use history::Saying;
pub use lifecycle::Promoted;
pub use listing::Listed;
pub use ranking::Hit;
pub use remember::Remembered;
pub use replay::{AnswerKey, Answered, Reply};
pub use search::{AskedTime, KnowledgeMode, KnowledgeQuery, Metric, SearchResults};
pub use sessions::{EndedSession, SessionPromotion};
pub use subjects::{Subject, SubjectSearch};
pub use subscription::{StreamRequest, Streamed, Subscription};
pub use view::{ShownHit, ShownMemory};

use crate::Context;
use access::Writable;
use access_counts::AccessCounts;
use consolidate::UnderWay;
use journal::{Actor, Entry};
use memory_store::MemoryStore;
use memtrove_core::identity::{Principal, Role};
use memtrove_core::memories::stream_position::StreamKey;
use memtrove_core::memories::{
    Assertion, Code, CursorKey, Embedding, Identifiers, Kind, Layer, Memory, MemoryCaller, MemoryId, Rules,
    ScopeHash,
};
use memtrove_core::{Error, Result, Timestamp};
use memtrove_recall::embed::EmbedError;
use memtrove_store::Store;
use pieces::CutTexts;
use std::sync::Arc;
use stream::Bus;
use tokio::sync::Notify;
use turns::{HeldTurn, Turns};
use writing::{Write, WriteOutcome};

/// What is told to callers and means something to the server alone is sealed with these.
#[derive(Clone, Copy)]
pub(crate) struct Keys {
    pub cursors: CursorKey,
    pub stream: StreamKey,
}

/// The memories surface.
#[derive(Clone)]
pub struct Memories {
    cx: Arc<Context>,
    parts: Arc<Parts>,
}

struct Parts {
    store: MemoryStore,
    bus: Arc<Bus>,
    uses: Arc<AccessCounts>,
    keys: Keys,
    /// Held while an index is written to a file.
    keeping: tokio::sync::Mutex<()>,
    /// Wakes the task that makes better vectors.
    upgrades: Notify,
    /// Of those who copy entries to a scope, and behind it a lease that holds off other nodes: two that look for what says the
    /// same at the same time would both find nothing, and both copy.
    promoting: Turns<ScopeHash>,
    consolidating: UnderWay,
    /// Of those who change an entry.
    turns: Turns<MemoryId>,
    /// Of those who state a fact.
    stating: Turns<[u8; 32]>,
}

impl Memories {
    /// Puts the surface on the primary store and, for what need not outlive it, on one as durable as memory.
    pub(crate) fn new(cx: Arc<Context>, twin: Store, keys: Keys) -> Self {
        let (bus, uses) = (Arc::new(Bus::new(cx.clock.clone())), Arc::new(AccessCounts::default()));
        let parts = Parts {
            store: MemoryStore::new(&cx, twin, &bus, &uses),
            bus,
            uses,
            keys,
            keeping: tokio::sync::Mutex::default(),
            upgrades: Notify::new(),
            promoting: Turns::default(),
            consolidating: UnderWay::default(),
            turns: Turns::default(),
            stating: Turns::default(),
        };
        Self { cx, parts: Arc::new(parts) }
    }

    /// How requests are read.
    pub fn rules(&self) -> &Rules {
        &self.cx.settings.memories.rules
    }

    /// Brings a principal to the memories of its tenant.
    pub fn caller(&self, principal: &Principal, request_id: String) -> MemoryCaller {
        let holds = |role: &str| match role {
            "admin" => principal.roles.admin,
            "auditor" => principal.roles.has(Role::Auditor),
            "indexer" => principal.roles.has(Role::Indexer),
            "reader" => principal.roles.reader,
            "writer" => principal.roles.writer,
            _ => false,
        };
        let open = |layer: &Layer| {
            let roles = self.cx.settings.memories.write_roles.get(layer);
            roles.is_none_or(|roles| roles.iter().any(|role| holds(role)))
        };
        let caller = MemoryCaller::enter(principal, request_id);
        let caller = caller.writing_in(Layer::ALL.into_iter().filter(open).collect());
        caller.binding_agent(self.cx.settings.memories.bind_agent_id)
    }

    /// Where entries are, for the suite that both halves pass.
    pub fn store(&self) -> &MemoryStore {
        &self.parts.store
    }

    /// Ends all streams: the server stops.
    pub fn close(&self) {
        self.parts.bus.close();
    }

    fn now(&self) -> Timestamp {
        self.cx.clock.now()
    }

    fn new_id(&self, kind: Kind) -> MemoryId {
        MemoryId::new(self.cx.clock.new_id(), kind)
    }

    /// What the journal is told of writes: as many ids as there are writes.
    fn journal(&self, actor: Actor, at: Timestamp, writes: usize, reason: &'static str) -> Entry {
        Entry {
            actor: Arc::new(actor),
            at,
            ids: (0..writes).map(|_| self.cx.clock.new_id()).collect(),
            milestones: Vec::new(),
            remember: None,
            audited: true,
            sources: Vec::new(),
            reason,
        }
    }

    /// Makes the embedding of a text that is being written.
    async fn embed(&self, tenant: &str, text: &str) -> Result<Option<Embedding>> {
        let texts = CutTexts::of(&[text]);
        match self.cx.embeddings.documents(tenant, texts.all()).await {
            Ok(made) => Ok(texts.embeddings(made).pop()),
            Err(EmbedError::Disabled) => Ok(None),
            Err(error) => Err(embedding_failed(&error)),
        }
    }

    /// An entry that a caller may reach by its id, with the scope it asserts.
    async fn reach(&self, caller: &MemoryCaller, id: MemoryId, assertion: &Assertion) -> Result<Memory> {
        caller.check_company(&assertion.identifiers)?;
        let found = self.find(caller, id).await?;
        found
            .filter(|memory| assertion.holds(memory) && caller.reaches(memory, &assertion.identifiers))
            .ok_or_else(Error::no_such_memory)
    }

    /// The same, for a caller that may change it.
    async fn reach_to_write(
        &self,
        caller: &MemoryCaller,
        id: MemoryId,
        assertion: &Assertion,
    ) -> Result<Writable> {
        Writable::by(caller, self.reach(caller, id, assertion).await?)
    }

    /// An entry of the caller's tenant that exists at this moment.
    async fn find(&self, caller: &MemoryCaller, id: MemoryId) -> Result<Option<Memory>> {
        if id.names_nothing() {
            return Ok(None);
        }
        let Some(memory) = self.parts.store.get(caller.tenant(), id).await? else { return Ok(None) };
        let exists = memory.is_live(self.now()) && self.session_exists(caller, &memory).await?;
        Ok(exists.then_some(memory))
    }

    /// Waits for the turn to change an entry. There is no turn for what is no id: all of those would wait for each other.
    async fn turn(&self, id: MemoryId) -> Option<HeldTurn<'_, MemoryId>> {
        if id.names_nothing() { None } else { Some(self.parts.turns.take(id).await) }
    }

    /// Writes to the half that keeps the entries' kind; the caller says what to do if others were faster.
    async fn write(&self, writes: Vec<Write>, journal: Entry) -> Result<WriteOutcome> {
        let Some(kind) = writes.first().map(|write| write.memory().kind) else {
            return Ok(WriteOutcome::Done);
        };
        self.parts.store.of(kind).write(writes, journal).await
    }

    /// Who changes an entry, as its versions and the audit trail tell.
    fn actor(&self, caller: &MemoryCaller, identifiers: &Identifiers) -> Actor {
        Actor::of(caller, caller.author(identifiers))
    }
}

/// Describes the metrics of the surface.
pub fn announce_metrics() {
    charge::announce_metrics();
    scope_search::announce_metrics();
}

/// Counts an operation on a layer.
fn count(operation: &'static str, layer: Layer) {
    metrics::counter!("memory_operations_total", "operation" => operation, "layer" => layer.as_str())
        .increment(1);
}

fn embedding_failed(error: &EmbedError) -> Error {
    tracing::warn!(%error, "an embedding could not be made");
    let retry_after = error.retry_after().map(|after| after.as_secs().max(1));
    let (code, message) = match error {
        EmbedError::RateLimited { .. } => {
            (Code::RateLimited, "the embedding provider is asked too often; try again later")
        }
        EmbedError::Configuration(_) => {
            (Code::ConfigurationError, "the embedding provider is not configured correctly")
        }
        EmbedError::Permanent(_) => (
            Code::EmbeddingRefused,
            "the embedding provider refused, and would refuse this again; nothing was stored, and the log says why",
        ),
        _ => (Code::EmbeddingFailed, "no embedding could be made; nothing was stored, try again later"),
    };
    let refusal = Error::new(code, message);
    match retry_after {
        Some(seconds) => refusal.with("retryAfterSeconds", seconds),
        None => refusal,
    }
}
