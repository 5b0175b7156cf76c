//! The documents of a partition, by number and by key.

use super::chunk::{CHUNK, PieceNo};
use super::segment::shared_bytes;
use hashbrown::{DefaultHashBuilder, HashTable};
use std::hash::BuildHasher;
use std::mem::size_of;
use std::ops::Range;
use std::sync::Arc;

#[derive(Clone)]
pub(super) struct Document<M> {
    pub(super) key: u64,
    pub(super) meta: M,
    pub(super) first: PieceNo,
}

/// Documents have numbers, which are shorter than their keys; the number of one that went goes to another.
pub(super) struct Documents<M> {
    numbers: HashTable<u32>,
    hasher: DefaultHashBuilder,
    chunks: Vec<DocumentChunk<M>>,
    free: Vec<u32>,
}

/// Some documents by number. Shared with a [snapshot](super::segment) for as long as that is written, and copied if one of them
/// changes meanwhile.
pub(super) type DocumentChunk<M> = Arc<Vec<Option<Document<M>>>>;

impl<M> Documents<M> {
    pub(super) fn new() -> Self {
        Self {
            numbers: HashTable::new(),
            hasher: DefaultHashBuilder::default(),
            chunks: Vec::new(),
            free: Vec::new(),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.numbers.len()
    }

    /// The number of the document with a key.
    pub(super) fn find(&self, key: u64) -> Option<u32> {
        self.numbers.find(self.hasher.hash_one(key), |&number| self.key(number) == key).copied()
    }

    pub(super) fn get(&self, number: u32) -> Option<&Document<M>> {
        self.chunks.get(number as usize / CHUNK)?.get(number as usize % CHUNK)?.as_ref()
    }

    /// The key of a document that is there.
    pub(super) fn key(&self, number: u32) -> u64 {
        self.get(number).map_or(0, |document| document.key)
    }

    /// All of them as they are now.
    pub(super) fn snapshot(&self) -> Vec<DocumentChunk<M>> {
        self.chunks.clone()
    }

    /// Documents that were written down.
    pub(super) fn restored(chunks: Vec<DocumentChunk<M>>) -> Self {
        let mut restored = Self { chunks, ..Self::new() };
        let all = restored.numbers();
        restored.numbers.reserve(all.len(), |_| 0);
        for number in all {
            let Some(key) = restored.get(number).map(|document| document.key) else {
                restored.free.push(number);
                continue;
            };
            let Self { numbers, hasher, chunks, .. } = &mut restored;
            let key_of = |number: u32| {
                let document = chunks[number as usize / CHUNK][number as usize % CHUNK].as_ref();
                document.map_or(0, |document| document.key)
            };
            numbers.insert_unique(hasher.hash_one(key), number, |&number| hasher.hash_one(key_of(number)));
        }
        restored
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Document<M>> {
        self.chunks.iter().flat_map(|chunk| chunk.iter()).flatten()
    }

    /// All numbers that documents have or had.
    pub(super) fn numbers(&self) -> Range<u32> {
        let full = self.chunks.len().saturating_sub(1) * CHUNK;
        0..(full + self.chunks.last().map_or(0, |last| last.len())) as u32
    }

    /// A number that no document has; the next new one should get it.
    pub(super) fn vacant(&self) -> u32 {
        self.free.last().copied().unwrap_or(self.numbers().end)
    }

    /// How many bytes they take on the heap, without what `M` points to.
    pub(super) fn heap(&self) -> usize {
        let slots: usize = self.chunks.iter().map(|chunk| chunk.capacity()).sum();
        self.numbers.allocation_size()
            + self.chunks.capacity() * size_of::<DocumentChunk<M>>()
            + self.chunks.len() * shared_bytes::<Vec<Option<Document<M>>>>()
            + slots * size_of::<Option<Document<M>>>()
            + self.free.capacity() * size_of::<u32>()
    }
}

impl<M: Clone> Documents<M> {
    pub(super) fn get_mut(&mut self, number: u32) -> Option<&mut Document<M>> {
        Arc::make_mut(self.chunks.get_mut(number as usize / CHUNK)?)
            .get_mut(number as usize % CHUNK)?
            .as_mut()
    }

    /// Sets what has a number: a vacant one, or that of the document with the same key.
    pub(super) fn set(&mut self, number: u32, document: Document<M>) {
        if let Some(known) = self.get_mut(number) {
            *known = document;
            return;
        }
        let hash = self.hasher.hash_one(document.key);
        if self.free.last() == Some(&number) {
            self.free.pop();
            Arc::make_mut(&mut self.chunks[number as usize / CHUNK])[number as usize % CHUNK] =
                Some(document);
        } else {
            if self.chunks.last().is_none_or(|last| last.len() == CHUNK) {
                self.chunks.push(Arc::default());
            }
            let last = self.chunks.len() - 1;
            Arc::make_mut(&mut self.chunks[last]).push(Some(document));
        }
        let Self { numbers, hasher, chunks, .. } = self;
        numbers.insert_unique(hash, number, |&number| {
            let document = chunks[number as usize / CHUNK][number as usize % CHUNK].as_ref();
            hasher.hash_one(document.map_or(0, |document| document.key))
        });
    }

    pub(super) fn remove(&mut self, number: u32) -> Option<M> {
        let hash = self.hasher.hash_one(self.key(number));
        if let Ok(entry) = self.numbers.find_entry(hash, |&other| other == number) {
            entry.remove();
        }
        let chunk = Arc::make_mut(self.chunks.get_mut(number as usize / CHUNK)?);
        let document = chunk.get_mut(number as usize % CHUNK)?.take()?;
        self.free.push(number);
        Some(document.meta)
    }
}
