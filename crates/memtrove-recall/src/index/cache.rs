//! The partitions in use, within a budget.

use super::Partition;
use std::collections::HashMap;
use std::hash::Hash;
use std::mem::size_of;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

/// Gauge: how many bytes all partitions take.
pub const INDEX_BYTES: &str = "memory_index_bytes";
/// Gauge: how many partitions there are.
pub const INDEX_PARTITIONS: &str = "memory_index_partitions";
/// Counter: partitions that were dropped to make room.
pub const INDEX_EVICTIONS: &str = "memory_index_evictions_total";

/// Describes the metrics of this module.
pub fn announce_metrics() {
    metrics::describe_gauge!(INDEX_BYTES, metrics::Unit::Bytes, "What the search indexes in memory take.");
    metrics::describe_gauge!(INDEX_PARTITIONS, "Search indexes in memory.");
    metrics::describe_counter!(
        INDEX_EVICTIONS,
        "Search indexes dropped from memory to make room for others."
    );
    metrics::counter!(INDEX_EVICTIONS).increment(0);
}

/// The partitions in use, by key, within a budget of bytes; beside each a state of the caller's (`S`), such as the last
/// change it has seen.
///
/// Each partition has its own lock, so that loading one delays no search of another; readers share it. One that is larger
/// than the whole budget still works, and is the first to go when it is no longer in use.
///
/// Made by hand: `moka` evicts entries that are in use, refuses one larger than its capacity, and weighs an entry only when it is
/// inserted, while a partition grows where it is.
pub struct PartitionCache<K, S, M> {
    budget: usize,
    shelf: Mutex<Shelf<K, S, M>>,
}

struct Shelf<K, S, M> {
    places: HashMap<K, CachedPartition<S, M>>,
    bytes: usize,
    /// Counts uses, to tell which was the last.
    uses: u64,
}

struct CachedPartition<S, M> {
    partition: Arc<Shared<S, M>>,
    bytes: usize,
    last_use: u64,
}

/// `None` before it is loaded, and again when that went wrong.
type Shared<S, M> = RwLock<Option<(S, Partition<M>)>>;

impl<K: Eq + Hash + Clone, S: Default, M> PartitionCache<K, S, M> {
    /// A cache that drops the partitions used longest ago once all together take more than `budget` bytes.
    pub fn new(budget: usize) -> Self {
        Self { budget, shelf: Mutex::new(Shelf { places: HashMap::new(), bytes: 0, uses: 0 }) }
    }

    /// Reads a partition, brought up to date first if it `needs` to be. One that is not here begins empty, with
    /// `S::default()`; two callers never load the same one twice. Do not call it from within itself: two threads could
    /// wait for each other.
    ///
    /// # Errors
    /// What `catch_up` fails with. The partition is dropped then, and loaded anew by the next search.
    pub fn with<R, E>(
        &self,
        key: &K,
        needs: impl Fn(&S) -> bool,
        mut catch_up: impl FnMut(&mut S, &mut Partition<M>) -> Result<(), E>,
        read: impl FnOnce(&S, &Partition<M>) -> R,
    ) -> Result<R, E> {
        let shared = self.take(key);
        let mut is_new_enough = false;
        loop {
            // What was dropped while no lock was held is loaded again.
            if let Some((state, partition)) = &*shared.read().unwrap_or_else(PoisonError::into_inner)
                && (is_new_enough || !needs(state))
            {
                return Ok(read(state, partition));
            }
            self.bring_up_to_date(key, &shared, &needs, &mut catch_up)?;
            is_new_enough = true;
        }
    }

    /// Looks at the partitions that are loaded, but for those that are being brought up to date.
    pub fn look(&self, mut each: impl FnMut(&K, &S, &Partition<M>)) {
        let all: Vec<(K, Arc<Shared<S, M>>)> = {
            let shelf = self.lock();
            shelf.places.iter().map(|(key, place)| (key.clone(), Arc::clone(&place.partition))).collect()
        };
        for (key, shared) in all {
            if let Ok(content) = shared.try_read()
                && let Some((state, partition)) = &*content
            {
                each(&key, state, partition);
            }
        }
    }

    /// Drops a partition. Those who read it may finish.
    pub fn drop_key(&self, key: &K) {
        let mut shelf = self.lock();
        let dropped = shelf.remove(key);
        shelf.report();
        drop(shelf);
        drop(dropped);
    }

    /// Changes the partitions with such a state, one after the other. Waits for those who read them.
    pub fn change_where(
        &self,
        is_meant: impl Fn(&S) -> bool,
        mut change: impl FnMut(&mut S, &mut Partition<M>),
    ) {
        let all: Vec<(K, Arc<Shared<S, M>>)> = {
            let shelf = self.lock();
            shelf.places.iter().map(|(key, place)| (key.clone(), Arc::clone(&place.partition))).collect()
        };
        for (key, shared) in all {
            let is_meant = |content: &Option<(S, Partition<M>)>| {
                content.as_ref().is_some_and(|(state, _)| is_meant(state))
            };
            // Most are not meant, and somebody may be reading them.
            if !is_meant(&shared.read().unwrap_or_else(PoisonError::into_inner)) {
                continue;
            }
            let mut content = shared.write().unwrap_or_else(PoisonError::into_inner);
            if !is_meant(&content) {
                continue;
            }
            // Taken out while it changes, as when it is brought up to date.
            let Some((mut state, mut partition)) = content.take() else { continue };
            change(&mut state, &mut partition);
            let bytes = Self::size_of(&partition);
            *content = Some((state, partition));
            drop(content);
            self.settle(&key, &shared, bytes);
        }
    }

    /// Drops every partition. Those who read one may finish.
    pub fn clear(&self) {
        let mut shelf = self.lock();
        let dropped = std::mem::take(&mut shelf.places);
        shelf.bytes = 0;
        shelf.report();
        drop(shelf);
        drop(dropped);
    }

    /// How much memory all partitions take.
    pub fn bytes(&self) -> usize {
        self.lock().bytes
    }

    /// How much memory the partition of a key takes; 0 where there is none.
    pub fn bytes_of(&self, key: &K) -> usize {
        self.lock().places.get(key).map_or(0, |place| place.bytes)
    }

    /// How many partitions there are.
    pub fn len(&self) -> usize {
        self.lock().places.len()
    }

    /// Whether there is no partition.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn size_of(partition: &Partition<M>) -> usize {
        size_of::<(K, CachedPartition<S, M>, Shared<S, M>)>() + partition.bytes()
    }

    fn lock(&self) -> MutexGuard<'_, Shelf<K, S, M>> {
        self.shelf.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The partition of a key, which is now the one used last.
    fn take(&self, key: &K) -> Arc<Shared<S, M>> {
        let mut shelf = self.lock();
        shelf.uses += 1;
        let uses = shelf.uses;
        if let Some(place) = shelf.places.get_mut(key) {
            place.last_use = uses;
            return Arc::clone(&place.partition);
        }
        let partition = Arc::new(RwLock::new(None));
        let place = CachedPartition { partition: Arc::clone(&partition), bytes: 0, last_use: uses };
        shelf.places.insert(key.clone(), place);
        partition
    }

    fn bring_up_to_date<E>(
        &self,
        key: &K,
        shared: &Arc<Shared<S, M>>,
        needs: &impl Fn(&S) -> bool,
        catch_up: &mut impl FnMut(&mut S, &mut Partition<M>) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut content = shared.write().unwrap_or_else(PoisonError::into_inner);
        if content.as_ref().is_some_and(|(state, _)| !needs(state)) {
            return Ok(());
        }
        // Taken out while it changes: if that fails, or panics, nothing half-done is left.
        let (mut state, mut partition) = content.take().unwrap_or_default();
        if let Err(error) = catch_up(&mut state, &mut partition) {
            drop(content);
            self.forget(key, shared);
            return Err(error);
        }
        let bytes = Self::size_of(&partition);
        *content = Some((state, partition));
        drop(content);
        self.settle(key, shared, bytes);
        Ok(())
    }

    /// Takes a partition that could not be loaded off the shelf.
    fn forget(&self, key: &K, shared: &Arc<Shared<S, M>>) {
        let mut shelf = self.lock();
        if shelf.place(key, shared).is_some() {
            shelf.remove(key);
            shelf.report();
        }
    }

    /// Notes how large a partition has become, and makes room for it.
    fn settle(&self, key: &K, shared: &Arc<Shared<S, M>>, bytes: usize) {
        let mut shelf = self.lock();
        // It may have been dropped in the meantime.
        let Some(place) = shelf.place(key, shared) else { return };
        let before = std::mem::replace(&mut place.bytes, bytes);
        shelf.bytes = shelf.bytes + bytes - before;
        let dropped = if shelf.bytes > self.budget { shelf.make_room(self.budget) } else { Vec::new() };
        shelf.report();
        drop(shelf);
        // Freeing half a gigabyte takes a while; it happens outside the lock.
        drop(dropped);
    }
}

impl<K: Eq + Hash + Clone, S, M> Shelf<K, S, M> {
    /// The place of a partition, if this very one is still there.
    fn place(&mut self, key: &K, shared: &Arc<Shared<S, M>>) -> Option<&mut CachedPartition<S, M>> {
        self.places.get_mut(key).filter(|place| Arc::ptr_eq(&place.partition, shared))
    }

    fn remove(&mut self, key: &K) -> Option<CachedPartition<S, M>> {
        let place = self.places.remove(key)?;
        self.bytes -= place.bytes;
        Some(place)
    }

    /// Takes out what was used longest ago and is not in use, with some room to spare so that this is rare.
    fn make_room(&mut self, budget: usize) -> Vec<CachedPartition<S, M>> {
        let idle = self.places.iter().filter(|(_, place)| Arc::strong_count(&place.partition) == 1);
        let mut idle: Vec<(u64, K)> = idle.map(|(key, place)| (place.last_use, key.clone())).collect();
        idle.sort_unstable_by_key(|(last_use, _)| *last_use);
        let mut dropped = Vec::new();
        for (_, key) in idle {
            if self.bytes <= budget - budget / 8 {
                break;
            }
            dropped.extend(self.remove(&key));
        }
        metrics::counter!(INDEX_EVICTIONS).increment(dropped.len() as u64);
        dropped
    }

    fn report(&self) {
        metrics::gauge!(INDEX_BYTES).set(self.bytes as f64);
        metrics::gauge!(INDEX_PARTITIONS).set(self.places.len() as f64);
    }
}
