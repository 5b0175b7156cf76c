//! The vectors of texts that were embedded before.
//!
//! A text is known by its digest, so that nothing here can be read, and a vector is found for the very same text only: one
//! for a similar text would make different things equal.

use super::{CacheConfig, Embedder, Vector};
use moka::policy::EvictionPolicy;
use moka::sync::Cache;
use sha2::{Digest, Sha256};
use std::time::Duration;

/// Remembers as many vectors as it may, those used last, none longer than it may.
pub(super) struct VectorCache(Cache<Key, Vector>);

/// What stands for one text of one tenant under one model.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Key([u8; 32]);

impl Key {
    pub(super) fn of(tenant: &str, model: &dyn Embedder, text: &str) -> Self {
        let mut digest = Sha256::new();
        // With their lengths before them, so that no two lists of parts are one list of bytes.
        for part in [tenant, model.model_id()] {
            digest.update((part.len() as u64).to_le_bytes());
            digest.update(part);
        }
        digest.update((model.space().dimensions as u64).to_le_bytes());
        digest.update(text);
        Self(digest.finalize().into())
    }
}

/// A hundred years: a cache that is to keep vectors for longer than moka can count keeps them this long.
const LONGEST: Duration = Duration::from_secs(100 * 365 * 24 * 3600);

impl VectorCache {
    pub(super) fn new(config: CacheConfig) -> Self {
        let cache = Cache::builder()
            .max_capacity(config.size as u64)
            .time_to_live(config.ttl.min(LONGEST))
            .eviction_policy(EvictionPolicy::lru());
        Self(cache.build())
    }

    pub(super) fn get(&self, key: &Key) -> Option<Vector> {
        self.0.get(key)
    }

    pub(super) fn insert(&self, key: Key, vector: Vector) {
        self.0.insert(key, vector);
        // Without this the size is met a little later only. A model was asked for the vector, which takes far longer.
        self.0.run_pending_tasks();
    }

    pub(super) fn remove(&self, key: &Key) {
        self.0.invalidate(key);
        // What was forgotten leaves memory now, not with the next insert.
        self.0.run_pending_tasks();
    }

    pub(super) fn clear(&self) {
        self.0.invalidate_all();
        self.0.run_pending_tasks();
    }
}
