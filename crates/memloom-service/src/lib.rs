//! Memloom's use cases. Each is one function: validate, authorise, run the unit of work, tell the world.
//!
//! Transports call these and nothing below them; the order of checks and every decision is the same for all of them.
//! This crate knows no HTTP and no SQL. To add an operation: a method in its surface's module, the rules it needs as
//! pure functions in `memloom-core`, the statements it needs as functions in `memloom-store`.

mod audit;
pub mod changes;
pub mod conversations;
pub mod files;
pub mod files_metrics;
mod page;
pub mod quota;
mod settings;
pub mod tasks;

pub use changes::Changes;
pub use conversations::Conversations;
pub use files::Files;
pub use page::Page;
pub use quota::Quotas;
pub use settings::{AutoDerive, RetentionSettings, Settings};

use memloom_core::conversations::sync::Digester;
use memloom_core::text::Analyzer;
use memloom_core::{Clock, Error, Result};
use memloom_store::Store;
use std::sync::Arc;
use tokio::sync::{Notify, RwLock};

/// What every use case works with.
pub(crate) struct Context {
    pub store: Store,
    pub clock: Arc<dyn Clock>,
    pub settings: Settings,
    pub digester: Digester,
    pub analyzer: Analyzer,
    pub quotas: Quotas,
    /// Held for reading while a user is forgotten, so that the task worker does not do half of it unseen.
    pub forgetting: RwLock<()>,
    /// Wakes the task worker.
    pub tasks: Notify,
    /// Wakes whoever works on jobs.
    pub jobs: Notify,
}

/// The whole product behind its transports.
#[derive(Clone)]
pub struct Services {
    /// The conversations surface.
    pub conversations: Conversations,
    /// The files surface.
    pub files: Files,
    /// The change feed.
    pub changes: Changes,
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
        let key: Vec<u8> = store
            .write("digest_key", move |tx| {
                Ok::<_, Error>(memloom_store::meta::get_or_insert(tx, "digest_key", &fresh)?)
            })
            .await?;
        let key = key
            .try_into()
            .map_err(|_| Error::Internal("the stored digest key has the wrong length".into()))?;
        let quotas = Quotas::new(settings.quotas.clone(), clock.clone());
        let context = Arc::new(Context {
            store,
            clock,
            settings,
            digester: Digester::new(key),
            analyzer,
            quotas,
            forgetting: RwLock::default(),
            tasks: Notify::new(),
            jobs: Notify::new(),
        });
        Ok(Self {
            conversations: Conversations::new(context.clone()),
            changes: Changes::new(context.clone()),
            files: Files::new(context.clone()),
            context,
        })
    }

    /// The store under all of it, for health and metrics.
    pub fn store(&self) -> &Store {
        &self.context.store
    }

    /// Works on every task and job that is due now, once.
    pub async fn run_due_tasks(&self) -> Result<()> {
        tasks::round(&self.context).await?;
        tasks::work_off_jobs(&self.context).await
    }

    /// Works on the task queue and on jobs, and applies retention from time to time, until `shutdown` resolves.
    pub async fn run_tasks(&self, shutdown: impl Future<Output = ()>) {
        tokio::select! {
            () = tasks::run(&self.context, shutdown) => {}
            never = tasks::run_jobs(&self.context) => match never {},
            never = tasks::run_retention(&self.context, &self.files) => match never {},
        }
    }

    /// Sets the metrics that nothing keeps up to date, for whoever is about to look at them.
    pub async fn sample_metrics(&self) {
        files_metrics::sample(&self.context).await;
    }
}
