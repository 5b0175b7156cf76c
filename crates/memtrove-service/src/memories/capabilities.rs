//! What this surface can do and how it is.

use super::Memories;
use super::memory_store::{HalfInfo, Health, Status};
use futures_util::future::join_all;
use memtrove_core::memories::Kind;
use memtrove_store::AllTenants;
use std::time::{Duration, Instant};

/// How long counting what waits may keep an answer about health.
const COUNTING: Duration = Duration::from_millis(200);

/// How the surface is.
#[derive(Debug, Clone)]
pub struct MemoryHealth {
    /// How the worst of its parts is.
    pub status: Status,
    /// How long it took to find out.
    pub latency: Duration,
    /// Its parts by name: both halves of the store, then the embedder.
    pub components: Vec<(String, Health)>,
}

/// What the surface can do, beside its rules.
#[derive(Debug, Clone)]
pub struct MemoryCapabilities {
    /// The half of the store that keeps each kind.
    pub kinds: [(Kind, &'static str); 7],
    /// Both halves of the store.
    pub halves: [HalfInfo; 2],
    /// What makes vectors of texts.
    pub embedder: &'static str,
    /// The model; none without one.
    pub model: Option<String>,
    /// How long its vectors are; none without one.
    pub dimensions: Option<usize>,
    /// How a raw cosine becomes a score: points of a line.
    pub calibration: Vec<[f64; 2]>,
}

impl Memories {
    /// How the store and the embedder are.
    pub async fn health(&self) -> MemoryHealth {
        let started = Instant::now();
        let (mut components, mut worst) = (Vec::new(), Status::Healthy);
        let mut note = |name: String, status: Status, message: Option<String>| {
            components.push((name, Health { status, message }));
            if worst == Status::Healthy || status == Status::Unhealthy {
                worst = status;
            }
        };
        // All at once: none of them may make the answer late.
        let halves = self.parts.store.all();
        let healths = join_all(halves.iter().map(|half| half.health())).await;
        for (half, health) in halves.iter().zip(healths) {
            note(format!("provider:{}", half.info().id), health.status, health.message);
        }
        let embeddings = &self.cx.embeddings;
        let (status, message) = if embeddings.space().is_none() {
            (Status::Degraded, Some("there is no embedding provider: only words are searched".to_owned()))
        } else if embeddings.is_failing() {
            (Status::Degraded, Some("the embedding provider failed the last time it was asked".to_owned()))
        } else {
            match self.waiting_upgrades().await {
                0 => (Status::Healthy, None),
                waiting => (Status::Healthy, Some(format!("{waiting} memories wait for a new embedding"))),
            }
        };
        note("embedding".to_owned(), status, message);
        MemoryHealth { status: worst, latency: started.elapsed(), components }
    }

    /// How many entries wait for a vector; 0 also where the store does not say in time.
    async fn waiting_upgrades(&self) -> i64 {
        if self.cx.store.pulse().await.is_err() {
            return 0;
        }
        let count =
            self.cx.store.read(AllTenants, "count_upgrades", memtrove_store::memories::upgrades::count);
        tokio::time::timeout(COUNTING, count).await.ok().and_then(Result::ok).unwrap_or_default()
    }

    /// What this surface can do.
    pub fn capabilities(&self) -> MemoryCapabilities {
        let (store, embeddings) = (&self.parts.store, &self.cx.embeddings);
        let calibration = embeddings.space().map_or_else(Vec::new, |space| {
            let calibration = embeddings.calibration_of(space);
            calibration.points().iter().map(|(raw, score)| [*raw, *score]).collect()
        });
        MemoryCapabilities {
            kinds: Kind::ALL.map(|kind| (kind, store.of(kind).info().id)),
            halves: store.all().map(|half| half.info()),
            embedder: embeddings.provider(),
            model: embeddings.preferred_model_id().map(|model| model.to_string()),
            dimensions: embeddings.space().map(|space| space.dimensions),
            calibration,
        }
    }
}
