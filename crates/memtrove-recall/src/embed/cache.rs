//! The vectors of texts that were embedded before.
//!
//! A text is known by its digest, so that nothing here can be read, and a vector is found for the very same text only: one
//! for a similar text would make different things equal.

use super::{CacheConfig, Embedder, Vector};
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::time::Instant;

/// Remembers as many vectors as it may, those used last, none longer than it may.
pub(super) struct VectorCache {
    config: CacheConfig,
    entries: Mutex<Entries>,
}

/// What stands for one text of one tenant under one model.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
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

#[derive(Default)]
struct Entries {
    by_key: HashMap<Key, Entry>,
    /// The keys, by when they were used last.
    by_use: BTreeMap<u64, Key>,
    uses: u64,
}

struct Entry {
    vector: Vector,
    made: Instant,
    used: u64,
}

impl VectorCache {
    pub(super) fn new(config: CacheConfig) -> Self {
        Self { config, entries: Mutex::default() }
    }

    pub(super) fn get(&self, key: &Key) -> Option<Vector> {
        let mut entries = self.entries();
        let entry = entries.remove(key).filter(|entry| self.is_fresh(entry))?;
        let vector = entry.vector.clone();
        entries.add(*key, entry.vector, entry.made);
        Some(vector)
    }

    pub(super) fn insert(&self, key: Key, vector: Vector) {
        let mut entries = self.entries();
        entries.remove(&key);
        entries.add(key, vector, Instant::now());
        while let Some(oldest) = entries.oldest() {
            let is_kept = entries.by_key.len() <= self.config.size
                && entries.by_key.get(&oldest).is_some_and(|entry| self.is_fresh(entry));
            if is_kept {
                break;
            }
            entries.remove(&oldest);
        }
    }

    pub(super) fn remove(&self, key: &Key) {
        self.entries().remove(key);
    }

    pub(super) fn clear(&self) {
        *self.entries() = Entries::default();
    }

    fn is_fresh(&self, entry: &Entry) -> bool {
        entry.made.elapsed() < self.config.ttl
    }

    fn entries(&self) -> MutexGuard<'_, Entries> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Entries {
    fn oldest(&self) -> Option<Key> {
        self.by_use.first_key_value().map(|(_, key)| *key)
    }

    fn add(&mut self, key: Key, vector: Vector, made: Instant) {
        self.uses += 1;
        self.by_use.insert(self.uses, key);
        self.by_key.insert(key, Entry { vector, made, used: self.uses });
    }

    fn remove(&mut self, key: &Key) -> Option<Entry> {
        let entry = self.by_key.remove(key)?;
        self.by_use.remove(&entry.used);
        Some(entry)
    }
}
