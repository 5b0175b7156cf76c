//! Texts to vectors, whichever model makes them: what the rest of the product uses.

use super::cache::{Key, VectorCache};
use super::models::{Model, Models};
use super::static_model::StaticModel;
use super::{
    Calibration, EmbedError, EmbeddingConfig, RetryConfig, STATIC_MODEL, Space, Vector, vector, windows,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

/// How long a provider took for the texts of one call, in milliseconds.
const LATENCY: &str = "memory_embedding_latency";
/// Texts whose vectors were remembered.
const CACHE_HITS: &str = "memory_embedding_cache_hits";
/// Texts whose vectors had to be made although they are remembered.
const CACHE_MISSES: &str = "memory_embedding_cache_misses";

/// Describes the numbers of this module to the recorder.
pub fn announce_metrics() {
    metrics::describe_histogram!(LATENCY, "How long embedding took, in milliseconds.");
    metrics::describe_counter!(CACHE_HITS, "Texts whose vector was found in the cache.");
    metrics::describe_counter!(CACHE_MISSES, "Texts whose vector was not found in the cache.");
    metrics::counter!(CACHE_HITS).increment(0);
    metrics::counter!(CACHE_MISSES).increment(0);
}

/// A text as a vector, and the model that made it.
#[derive(Clone, Debug, PartialEq)]
pub struct Embedded {
    /// Stored with the vector: it tells which space the vector is of.
    pub model: Arc<str>,
    /// Of unit length, or all zero.
    pub vector: Vector,
}

/// A query as a vector of one space.
#[derive(Clone, Debug, PartialEq)]
pub struct QueryVector {
    /// Only vectors of this space may be compared with it.
    pub space: Space,
    /// Of unit length, or all zero.
    pub vector: Vector,
    /// What the cosines are worth.
    pub calibration: Calibration,
    /// Which share of the text the model understands, from 0 to 1.
    pub understood: f64,
}

/// Makes vectors of texts. Clones share everything.
#[derive(Clone)]
pub struct Embeddings(Arc<Inner>);

struct Inner {
    provider: &'static str,
    /// `None` where words alone are searched.
    models: Option<Models>,
    is_calibrated: bool,
    cache: VectorCache,
    retry: RetryConfig,
    is_failing: AtomicBool,
}

impl Embeddings {
    /// Puts the configured models together. A transformer is read from its directory; no server is asked.
    pub fn new(config: EmbeddingConfig) -> Result<Self, EmbedError> {
        let EmbeddingConfig { provider, calibration, cache, retry } = config;
        Ok(Self(Arc::new(Inner {
            provider: provider.name(),
            models: Models::open(provider)?,
            is_calibrated: calibration,
            cache: VectorCache::new(cache),
            retry,
            is_failing: AtomicBool::new(false),
        })))
    }

    /// What the provider is called in the configuration.
    pub fn provider(&self) -> &'static str {
        self.0.provider
    }

    /// The space of everything that is embedded from now on. `None`: nothing is.
    pub fn space(&self) -> Option<&Space> {
        self.0.models.as_ref().map(|models| models.preferred.embedder.space())
    }

    /// The model that embeds what is written, at once.
    pub fn model_id(&self) -> Option<&str> {
        self.0.models.as_ref().map(|models| &*models.write.id)
    }

    /// The model that documents should end up with. Where it is another than [`model_id`](Self::model_id), documents are
    /// to be [upgraded](Self::upgrade) in the background.
    pub fn preferred_model_id(&self) -> Option<&str> {
        self.0.models.as_ref().map(|models| &*models.preferred.id)
    }

    /// Whether the last thing the provider was asked for failed.
    pub fn is_failing(&self) -> bool {
        self.0.is_failing.load(Ordering::Relaxed)
    }

    /// What cosines in a space are worth.
    pub fn calibration_of(&self, space: &Space) -> Calibration {
        let current = self.0.models.as_ref().map(|models| &*models.query.embedder);
        match current.filter(|model| model.space() == space) {
            _ if !self.0.is_calibrated => Calibration::identity(),
            Some(model) => model.calibration().clone(),
            None if space.is_shared() => Calibration::shared(),
            None => Calibration::identity(),
        }
    }

    /// Embeds a text that is being written.
    pub async fn document(&self, tenant: &str, text: &str) -> Result<Embedded, EmbedError> {
        let document = self.documents(tenant, &[text]).await?.pop();
        document.ok_or_else(|| EmbedError::Unusable("there is none".into()))
    }

    /// Embeds texts that are being written, in their order: as few calls of the provider as possible.
    pub async fn documents(&self, tenant: &str, texts: &[&str]) -> Result<Vec<Embedded>, EmbedError> {
        let model = &self.models()?.write;
        let vectors = self.remembered(tenant, model, texts).await?;
        Ok(vectors.into_iter().map(|vector| model.made(vector)).collect())
    }

    /// Embeds texts with the model that documents should end up with: background work, which may take its time.
    pub async fn upgrade(&self, texts: &[&str]) -> Result<Vec<Embedded>, EmbedError> {
        let model = &self.models()?.preferred;
        let vectors = self.embed(model, texts).await?;
        Ok(vectors.into_iter().map(|vector| model.made(vector)).collect())
    }

    /// The vector of a text in microseconds and without waiting for anybody, where the current space allows it.
    pub fn now(&self, text: &str) -> Option<Embedded> {
        let is_shared = self.space().is_some_and(Space::is_shared);
        is_shared.then(|| Embedded { model: STATIC_MODEL.into(), vector: StaticModel::vector(text) })
    }

    /// Embeds a query: in the current space and, where that is another than the bundled model's, in that too, so that what
    /// was embedded before a change of models is still found. Empty where words alone are searched.
    pub async fn query(&self, tenant: &str, text: &str) -> Result<Vec<QueryVector>, EmbedError> {
        let Some(models) = &self.0.models else { return Ok(Vec::new()) };
        let vectors = self.remembered(tenant, &models.query, &[text]).await?;
        let space = models.query.embedder.space();
        let mut queries: Vec<_> =
            vectors.into_iter().map(|vector| self.query_vector(space.clone(), vector, text)).collect();
        if !space.is_shared() {
            queries.push(self.query_vector(Space::shared(), StaticModel::vector(text), text));
        }
        Ok(queries)
    }

    /// Drops what is remembered of a text that is gone.
    pub fn forget(&self, tenant: &str, text: &str) {
        for model in self.0.models.iter().flat_map(|models| [&models.write, &models.query]) {
            if model.is_remembered() {
                self.0.cache.remove(&Key::of(tenant, &*model.embedder, text));
            }
        }
    }

    /// Drops everything that is remembered.
    pub fn forget_all(&self) {
        self.0.cache.clear();
    }

    fn models(&self) -> Result<&Models, EmbedError> {
        self.0.models.as_ref().ok_or(EmbedError::Disabled)
    }

    fn query_vector(&self, space: Space, vector: Vector, text: &str) -> QueryVector {
        let calibration = self.calibration_of(&space);
        // Both models of the shared space know English, by the same vocabulary. Of others nothing is known.
        let understood = if space.is_shared() { StaticModel::understood(text) } else { 1.0 };
        QueryVector { space, vector, calibration, understood }
    }

    /// The texts' vectors, for somebody who waits: before the deadline, and from the cache where they are there.
    async fn remembered(
        &self,
        tenant: &str,
        model: &Model,
        texts: &[&str],
    ) -> Result<Vec<Vector>, EmbedError> {
        if !model.is_remembered() {
            return self.embed_in_time(model, texts).await;
        }
        let cache = &self.0.cache;
        let keys: Vec<_> = texts.iter().map(|text| Key::of(tenant, &*model.embedder, text)).collect();
        let mut vectors: Vec<_> = keys.iter().map(|key| cache.get(key)).collect();
        let missing: Vec<_> = (0..texts.len()).filter(|index| vectors[*index].is_none()).collect();
        metrics::counter!(CACHE_HITS).increment((texts.len() - missing.len()) as u64);
        metrics::counter!(CACHE_MISSES).increment(missing.len() as u64);
        let texts: Vec<_> = missing.iter().map(|index| texts[*index]).collect();
        let made = self.embed_in_time(model, &texts).await?;
        for (index, vector) in missing.into_iter().zip(made) {
            cache.insert(keys[index], vector.clone());
            vectors[index] = Some(vector);
        }
        Ok(vectors.into_iter().flatten().collect())
    }

    async fn embed_in_time(&self, model: &Model, texts: &[&str]) -> Result<Vec<Vector>, EmbedError> {
        let answer = tokio::time::timeout(self.0.retry.deadline, self.embed(model, texts)).await;
        answer.unwrap_or_else(|_| {
            self.0.is_failing.store(true, Ordering::Relaxed);
            Err(EmbedError::transient("it did not answer before the deadline"))
        })
    }

    /// The texts' vectors, each looked at; of long texts in parts.
    async fn embed(&self, model: &Model, texts: &[&str]) -> Result<Vec<Vector>, EmbedError> {
        let embedder = &*model.embedder;
        let texts: Vec<_> =
            texts.iter().map(|text| windows::split(text, embedder.max_input_chars())).collect();
        let parts = texts.concat();
        let mut vectors = Vec::with_capacity(parts.len());
        for batch in parts.chunks(embedder.max_batch().max(1)) {
            vectors.extend(self.ask(model, batch).await?);
        }
        let mut vectors = vectors.as_slice();
        Ok(texts
            .iter()
            .map(|parts| {
                let (own, rest) = vectors.split_at(parts.len());
                vectors = rest;
                windows::join(parts, own, embedder.space().dimensions)
            })
            .collect())
    }

    /// One batch, again if need be. What comes back is as many vectors of the model's space as there were texts.
    async fn ask(&self, model: &Model, texts: &[&str]) -> Result<Vec<Vector>, EmbedError> {
        let embedder = &*model.embedder;
        let started = Instant::now();
        let answer = self.0.retry.run(|| embedder.embed(texts)).await;
        metrics::histogram!(LATENCY, "model" => model.id.clone())
            .record(started.elapsed().as_secs_f64() * 1e3);
        let checked = answer.and_then(|mut vectors| {
            vector::check(&mut vectors, texts.len(), embedder.space())?;
            Ok(vectors)
        });
        self.0.is_failing.store(checked.is_err(), Ordering::Relaxed);
        checked
    }
}

#[cfg(test)]
mod tests;
