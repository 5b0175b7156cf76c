//! Memtrove's use cases. Each is one function: authorise, run the unit of work, notify.
//!
//! Transports decode requests into the types here and call these functions, nothing below them, so that all transports decide
//! alike. This crate knows no HTTP and no SQL. To add an operation, write a method in its surface's module, its rules as
//! pure functions in `memtrove-core`, and its statements as functions in `memtrove-store`.

pub mod attachments;
mod audit;
pub mod changes;
pub mod conversations;
pub mod files;
pub mod files_metrics;
mod idempotency;
mod jobs;
mod lease;
pub mod memories;
pub mod node;
mod page;
pub mod quota;
pub mod recorder;
mod settings;
pub mod tasks;
pub mod vectors;

pub use attachments::Attachments;
use attachments::deletion::Deletions;
pub use changes::Changes;
pub use conversations::Conversations;
pub use files::Files;
pub use memories::Memories;
pub use page::{Page, PageRequest};
pub use quota::Quotas;
pub use recorder::{Recorder, RecorderBackend, RecorderSettings};
pub use settings::{
    AttachmentSettings, AutoDerive, AutoMode, MemorySettings, RetentionSettings, SearchSettings, Settings,
};
pub use vectors::Vectors;

use conversations::ingest::{self, Patience};
use conversations::loading::{self, Unread};
use conversations::{SearchTurns, Trees};
use memories::Keys;
use memtrove_core::conversations::sync::Digester;
use memtrove_core::memories::Code;
use memtrove_core::text::Analyzer;
use memtrove_core::{Clock, Error, Result, Timestamp, legacy_labels};
use memtrove_recall::embed::Embeddings;
use memtrove_store::AllTenants;
use memtrove_store::Store;
use std::convert::Infallible;
use std::sync::Arc;
use tokio::sync::{Mutex, Notify, RwLock};
use uuid::Uuid;

/// What one node at a time does for all that share a store.
const ATTACHMENTS: &str = "attachments";
const CHORES: &str = "chores";
const RETENTION: &str = "retention";
const TEXTS: &str = "texts";
const UPKEEP: &str = "upkeep of memories";
const INDEXES: &str = "indexes of memories";
const VECTORS: &str = "vectors";

/// What every use case works with.
pub(crate) struct Context {
    pub store: Store,
    pub clock: Arc<dyn Clock>,
    pub settings: Settings,
    /// This process, among those that share the store.
    pub node: Uuid,
    pub started_at: Timestamp,
    pub digester: Digester,
    pub analyzer: Analyzer,
    /// Makes vectors of texts.
    pub embeddings: Embeddings,
    /// Indexes of conversations in memory.
    pub trees: Trees,
    /// See [`SearchTurns`].
    pub search_turns: SearchTurns,
    /// What searches left to be read.
    pub unread: Unread,
    /// With what makes vectors in the background.
    pub patience: Patience,
    /// Held while other vectors for texts of conversations are made. It saves making them twice and no more: of two that make the
    /// same, on this node or another, both write the same. So nodes need not agree on it.
    pub upgrading: Mutex<()>,
    pub quotas: Quotas,
    /// The recordings of this node.
    pub recorder: Recorder,
    /// Held for reading while a user is forgotten here, so that the chores do not do half of it unseen. Of forgets on other nodes
    /// they know by a lease that each takes as it begins.
    pub forgetting: RwLock<()>,
    /// Wakes the task worker.
    pub tasks: Notify,
    /// Wakes the worker of jobs.
    pub jobs: Notify,
    /// Wakes the worker that removes the bytes of attachments.
    pub deletions: Deletions,
}

/// The whole product behind its transports.
#[derive(Clone)]
pub struct Services {
    /// The conversations surface.
    pub conversations: Conversations,
    /// The files that belong to its entries.
    pub attachments: Attachments,
    /// The files surface.
    pub files: Files,
    /// The change feed.
    pub changes: Changes,
    /// The memories surface.
    pub memories: Memories,
    /// The vectors of all of it.
    pub vectors: Vectors,
    /// Responses that are being recorded.
    pub recorder: Recorder,
    context: Arc<Context>,
}

impl Services {
    /// Puts the use cases on a store.
    pub async fn new(store: Store, clock: Arc<dyn Clock>, settings: Settings) -> Result<Self> {
        let analyzer = Analyzer::new(&settings.language).ok_or_else(|| {
            Error::invalid("search.language", format!("'{}' is not a known language", settings.language))
        })?;
        let mut fresh = [0u8; 32];
        for half in fresh.chunks_exact_mut(16) {
            half.copy_from_slice(clock.new_id().as_bytes());
        }
        // The ids are 74 random bits each; hashing them together makes a key of full width.
        let fresh = *blake3::hash(&fresh).as_bytes();
        let (key, place, links_key): (Vec<u8>, Vec<u8>, [u8; 32]) = store
            .write(AllTenants, "digest_key", move |tx| {
                memtrove_store::archive::refuse_unfinished(tx)?;
                let key = memtrove_store::meta::get_or_insert(tx, "digest_key", &fresh)?;
                // Not a digest of the key, which an archive may bring into another store.
                let place = &blake3::derive_key(legacy_labels::ATTACHMENTS_PREFIX, &fresh)[..16];
                let place = memtrove_store::meta::get_or_insert(tx, "attachments_place", place)?;
                // Where content is sealed, a copy of the store must not be enough to sign links.
                let links_key = match tx.vault().signing_key() {
                    Some(signing) => *blake3::keyed_hash(signing, &key).as_bytes(),
                    None => blake3::derive_key(legacy_labels::STORE_LINKS_KEY, &key),
                };
                Ok::<_, Error>((key, place, links_key))
            })
            .await?;
        let key: [u8; 32] =
            key.try_into().map_err(|_| Error::internal("the stored digest key has the wrong length"))?;
        let embeddings = Embeddings::new(settings.embedding.clone())
            .map_err(|error| Error::new(Code::ConfigurationError, error.to_string()))?;
        let rates_key = blake3::derive_key(legacy_labels::RATES_KEY, &key);
        let quotas = Quotas::across(settings.quotas.clone(), clock.clone(), &store, rates_key);
        let (node, started_at) = (clock.new_id(), clock.now());
        let trees = Trees::new(settings.index_memory);
        let search_turns = SearchTurns::of(&store);
        let recorder = Recorder::new(store.clone(), clock.clone(), settings.recorder.clone())?;
        let context = Arc::new(Context {
            store,
            clock,
            settings,
            node,
            started_at,
            digester: Digester::new(key),
            analyzer,
            embeddings,
            trees,
            search_turns,
            unread: Unread::default(),
            patience: Patience::default(),
            upgrading: Mutex::default(),
            quotas,
            recorder,
            forgetting: RwLock::default(),
            tasks: Notify::new(),
            jobs: Notify::new(),
            deletions: Deletions::default(),
        });
        let ram = context.store.volatile_twin()?;
        let cursor_key = blake3::derive_key(legacy_labels::MEMORY_CURSORS_KEY, &key);
        let stream_key = blake3::derive_key("memtrove positions of streams", &key);
        let memories = Memories::new(context.clone(), ram, Keys { cursors: cursor_key, stream: stream_key });
        Ok(Self {
            attachments: Attachments::new(context.clone(), &links_key, &place),
            conversations: Conversations::new(context.clone(), memories.clone()),
            changes: Changes::new(context.clone()),
            files: Files::new(context.clone(), memories.clone()),
            vectors: Vectors::new(context.clone(), memories.clone()),
            recorder: context.recorder.clone(),
            memories,
            context,
        })
    }

    /// The store under all of it, for health and metrics.
    pub fn store(&self) -> &Store {
        &self.context.store
    }

    /// Works on every task and job that is due now, once; not on what another node is at.
    pub async fn run_due_tasks(&self) -> Result<()> {
        let cx = &self.context;
        lease::alone(cx, CHORES, tasks::chores(cx, &self.files)).await?;
        tasks::round(cx).await?;
        lease::alone(cx, ATTACHMENTS, self.attachments.clean_up(true)).await?.transpose()?;
        lease::alone(cx, TEXTS, ingest::work_off(cx, false)).await?.transpose()?;
        loading::work_off(cx).await;
        self.memories.write_down().await;
        lease::alone(cx, UPKEEP, self.memories.upkeep()).await?;
        lease::alone(cx, INDEXES, self.memories.tend_indexes()).await?.transpose()?;
        self.vectors.work_off_jobs().await?;
        lease::alone(cx, VECTORS, self.vectors.round()).await?.transpose()?;
        tasks::work_off_jobs(&self.files).await
    }

    /// Works on the task queue and on jobs, and applies retention from time to time, until `shutdown` resolves. What is done for
    /// all nodes of a store is done by one of them at a time.
    pub async fn run_tasks(&self, shutdown: impl Future<Output = ()>) {
        let (cx, files, memories, vectors) = (&self.context, &self.files, &self.memories, &self.vectors);
        tokio::select! {
            () = tasks::run(cx, shutdown) => {}
            never = tasks::run_jobs(cx, files) => match never {},
            never = vectors.run_jobs() => match never {},
            never = memories.run_writing_down() => match never {},
            never = memories.run_segments() => match never {},
            never = node::run(cx, memories) => match never {},
            never = cx.recorder.run() => match never {},
            never = loading::run(cx) => match never {},
            never = self.run_cleanup() => match never {},
            never = self.attachments.run_deletions() => match never {},
            never = lease::hold(cx, CHORES, || tasks::run_chores(cx, files)) => match never {},
            never = lease::hold(cx, TEXTS, || ingest::run(cx)) => match never {},
            never = lease::hold(cx, UPKEEP, || memories.run_upkeep()) => match never {},
            never = lease::hold(cx, INDEXES, || memories.run_indexing()) => match never {},
            never = lease::hold(cx, VECTORS, || vectors.run()) => match never {},
            never = lease::hold(cx, RETENTION, || tasks::run_retention(cx, files)) => match never {},
        }
        cx.recorder.leave().await;
        memories.keep_last_segments().await;
        node::leave(cx).await;
    }

    /// Does until `shutdown` resolves what every node has to do for itself, and leaves to others what is done for all.
    pub async fn run_beside_others(&self, shutdown: impl Future<Output = ()>) {
        let (cx, memories) = (&self.context, &self.memories);
        tokio::select! {
            () = shutdown => {}
            never = memories.run_writing_down() => match never {},
            never = node::run(cx, memories) => match never {},
            never = loading::run(cx) => match never {},
        }
        memories.write_down().await;
        node::leave(cx).await;
    }

    /// Cleans up after attachments, where there are some.
    async fn run_cleanup(&self) -> Infallible {
        if !self.attachments.is_enabled() {
            return std::future::pending().await;
        }
        lease::hold(&self.context, ATTACHMENTS, || self.attachments.run_cleanup()).await
    }

    /// Sets the metrics that nothing else keeps up to date, before they are read.
    pub async fn sample_metrics(&self) {
        files_metrics::sample(&self.context).await;
        self.memories.sample_metrics().await;
        self.vectors.sample_metrics().await;
        ingest::sample_metrics(&self.context).await;
        node::sample_metrics(&self.context).await;
    }
}
