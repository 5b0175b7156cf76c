//! Vectors of the configured model for everything that has those of another, in the background.
//!
//! It begins by itself: what is found by meaning remembers which model made its vector, so a server that starts with another
//! model knows what there is to do. Somebody who asks for it gets to know how far it is, and what stops it.

use crate::audit::{self as log, Call};
use crate::conversations::ingest;
use crate::jobs::{self, Request};
use crate::{Context, Memories};
use memtrove_core::files::Code;
use memtrove_core::identity::Principal;
use memtrove_core::{Error, Result};
use memtrove_recall::embed::EmbedError;
use memtrove_store::conversations::embeddings;
use memtrove_store::memories::upgrades;
use memtrove_store::{AllTenants, StoreError, Tx};
use std::convert::Infallible;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::Notify;
use uuid::Uuid;

/// What a job of this kind is called.
const KIND: &str = "embeddings_reindex";
/// Between two notes of how far a job is.
const NOTED_EVERY: Duration = Duration::from_secs(1);
/// After a failure in the background.
const PAUSE: Duration = Duration::from_secs(60);

/// Texts that wait for their vectors.
const WAITING: &str = "memory_embedding_waiting";

/// Describes the numbers of this module to the recorder.
pub fn announce_metrics() {
    crate::conversations::ingest::announce_metrics();
    metrics::describe_gauge!(WAITING, "Texts that wait for vectors of the configured model.");
}

/// How many texts have vectors of another model than this one, or none yet.
pub fn waiting(tx: &mut dyn Tx, model: &str, with_conversations: bool) -> Result<i64, StoreError> {
    let texts = if with_conversations { embeddings::count_outdated(tx, model)? } else { 0 };
    Ok(upgrades::count(tx)? + texts)
}

/// The vectors of everything that is found by meaning.
#[derive(Clone)]
pub struct Vectors {
    cx: Arc<Context>,
    memories: Memories,
    /// There may be a job.
    asked: Arc<Notify>,
}

impl Vectors {
    pub(crate) fn new(cx: Arc<Context>, memories: Memories) -> Self {
        Self { cx, memories, asked: Arc::default() }
    }

    /// Has all vectors of other models made anew, of every tenant: it is one model for all. Answers the job's id.
    pub async fn reindex(&self, principal: &Principal, justification: Option<&str>) -> Result<Uuid> {
        let detail = [("target", "embeddings".to_owned())];
        let call = Call::write("reindex", &detail);
        log::audited(&self.cx, principal, call, justification, |_| self.start_job(principal)).await
    }

    async fn start_job(&self, principal: &Principal) -> Result<Uuid> {
        self.require_provider()?;
        let (tenant, started_by) = (principal.tenant(), principal.name());
        let request = Request { kind: KIND, tenant, user: None, started_by: &started_by };
        // What there is to do shows when it is looked for, which is the job.
        let id = jobs::start(&self.cx, request, |_| Ok(0)).await?;
        self.asked.notify_one();
        Ok(id)
    }

    fn require_provider(&self) -> Result<()> {
        match self.cx.embeddings.space() {
            Some(_) => Ok(()),
            None => {
                let message = "no vectors are made here: embedding.provider is none";
                Err(Error::new(Code::InvalidRequest, message))
            }
        }
    }

    /// Makes all vectors of other models anew, telling how many are done out of how many.
    pub async fn reindex_now(&self, mut progress: impl FnMut(i64, i64)) -> Result<i64> {
        self.require_provider()?;
        self.memories.list_outdated().await?;
        self.memories.make_missing_pieces().await?;
        let (mut done, mut total) = (0, self.waiting().await?);
        loop {
            progress(done, total);
            match self.step().await?.map_err(|error| Error::internal(error.to_string()))? {
                0 => return Ok(done),
                made => done += made,
            }
            total = total.max(done);
        }
    }

    /// Works for as long as it is polled.
    pub(crate) async fn run(&self) -> Infallible {
        let after_failure = self.cx.settings.task_retry_delay.min(PAUSE);
        loop {
            let pause = match self.make_waiting().await {
                Ok(Ok(())) => self.cx.settings.task_interval,
                Ok(Err(error)) => {
                    tracing::warn!(%error, "vectors could not be made; trying again later");
                    if !error.is_worth_retrying() {
                        // A provider that refuses everything is not asked again because something was written.
                        tokio::time::sleep(after_failure).await;
                        continue;
                    }
                    after_failure
                }
                Err(error) => {
                    tracing::warn!(%error, "vectors could not be made; trying again later");
                    after_failure
                }
            };
            tokio::select! {
                () = self.memories.upgrades_wanted() => {}
                () = tokio::time::sleep(pause) => {}
            }
        }
    }

    /// Makes the vectors that memories wait for. Texts of conversations do not wait for this.
    pub(crate) async fn round(&self) -> Result<()> {
        self.make_waiting().await?.map_err(|error| Error::internal(error.to_string()))
    }

    /// As [`Vectors::round`]; the inner error is the provider's.
    async fn make_waiting(&self) -> Result<Result<(), EmbedError>> {
        self.memories.list_outdated_after_a_change().await?;
        self.memories.make_missing_pieces().await?;
        loop {
            match self.memories.upgrade_some().await? {
                Ok(0) => return Ok(Ok(())),
                Ok(_) => {}
                Err(error) => return Ok(Err(error)),
            }
        }
    }

    /// Works on jobs whenever there are some, for as long as it is polled. Beside the vectors that are made anyway: a caller who
    /// asks while much is to do wants to see how far it is, not to wait for the end of it.
    pub(crate) async fn run_jobs(&self) -> Infallible {
        loop {
            if let Err(error) = self.work_off_jobs().await {
                tracing::warn!(%error, "a job could not be worked on; trying again later");
            }
            tokio::select! {
                () = self.asked.notified() => {}
                () = tokio::time::sleep(self.cx.settings.task_interval) => {}
            }
        }
    }

    /// Works on every job that waits.
    pub(crate) async fn work_off_jobs(&self) -> Result<()> {
        while self.work_on_job().await? {}
        Ok(())
    }

    /// Works on the next job; says whether there was one.
    async fn work_on_job(&self) -> Result<bool> {
        let Some(mut job) = jobs::claim(&self.cx, KIND).await? else { return Ok(false) };
        self.memories.list_outdated().await?;
        self.memories.make_missing_pieces().await?;
        (job.processed, job.total) = (0, self.waiting().await?);
        let mut noted = Instant::now();
        let mut errors = Vec::new();
        if !jobs::note(&self.cx, &mut job).await? {
            return Ok(true);
        }
        loop {
            match self.step().await? {
                Ok(0) => break,
                Ok(_) => {}
                Err(error) => {
                    tracing::error!(%error, "vectors could not be made anew");
                    errors.push("the embedding provider failed, and the log says how; what is left is tried again later");
                    break;
                }
            }
            if noted.elapsed() >= NOTED_EVERY {
                noted = Instant::now();
                // Counted, because others make vectors too.
                job.processed = job.processed.max(job.total - self.waiting().await?);
                if !jobs::note(&self.cx, &mut job).await? {
                    return Ok(true);
                }
            }
        }
        job.processed =
            if errors.is_empty() { job.total } else { (job.total - self.waiting().await?).max(0) };
        jobs::end(&self.cx, job, &errors).await?;
        Ok(true)
    }

    /// Makes some of the vectors that wait to be made; how many.
    async fn step(&self) -> Result<Result<i64, EmbedError>> {
        Ok(match self.memories.upgrade_some().await? {
            Ok(0) => ingest::upgrade(&self.cx).await?,
            made => made,
        }
        .map(|made| made as i64))
    }

    /// Sets the metrics that nothing keeps up to date.
    pub(crate) async fn sample_metrics(&self) {
        match self.waiting().await {
            Ok(waiting) => metrics::gauge!(WAITING).set(waiting as f64),
            Err(error) => tracing::warn!(%error, "texts that wait for their vectors could not be counted"),
        }
    }

    /// How many texts wait for their vectors.
    async fn waiting(&self) -> Result<i64> {
        let Some(model) = self.cx.embeddings.preferred_model_id().map(str::to_owned) else { return Ok(0) };
        let semantic = self.cx.settings.search.semantic;
        let count = move |tx: &mut dyn Tx| Ok::<_, Error>(waiting(tx, &model, semantic)?);
        self.cx.store.read(AllTenants, "count_vectors_waiting", count).await
    }
}
