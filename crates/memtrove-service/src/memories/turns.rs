//! Turns: changes of one entry, and statements of one fact, are made one after the other on this node, in the order in which
//! they came.
//!
//! What decides is the version that a change was computed from, in the store: a change on another node may still come first, and
//! then the change is computed anew. Turns make that rare, so that any number of changes at once all get through.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::OwnedMutexGuard;

type Queue = Arc<tokio::sync::Mutex<()>>;

/// What is being changed here, each with those who wait for it.
pub(super) struct Turns<K>(Mutex<HashMap<K, Queue>>);

/// Held while something is changed; over no call to a model.
pub(super) struct HeldTurn<'a, K: Eq + Hash> {
    turns: &'a Turns<K>,
    key: K,
    held: Option<OwnedMutexGuard<()>>,
}

impl<K> Default for Turns<K> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<K: Eq + Hash + Copy> Turns<K> {
    /// Waits until all who came before are done.
    pub async fn take(&self, key: K) -> HeldTurn<'_, K> {
        let queue = self.queues().entry(key).or_default().clone();
        // Made before the wait: a caller that gives up leaves nothing behind.
        let mut turn = HeldTurn { turns: self, key, held: None };
        turn.held = Some(queue.lock_owned().await);
        turn
    }
}

impl<K> Turns<K> {
    fn queues(&self) -> MutexGuard<'_, HashMap<K, Queue>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K: Eq + Hash> Drop for HeldTurn<'_, K> {
    fn drop(&mut self) {
        drop(self.held.take());
        let mut queues = self.turns.queues();
        // Others that wait have it too, and so has the next one that is not awake yet.
        if queues.get(&self.key).is_some_and(|queue| Arc::strong_count(queue) == 1) {
            queues.remove(&self.key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[tokio::test]
    async fn turns_come_in_order_and_leave_nothing_behind() {
        let turns = Arc::new(Turns::default());
        let first = turns.take(1).await;
        let order = Arc::new(Mutex::new(Vec::new()));
        let mut others = Vec::new();
        for n in 0..8 {
            let (turns, order) = (turns.clone(), order.clone());
            others.push(tokio::spawn(async move {
                let _turn = turns.take(1).await;
                order.lock().unwrap().push(n);
            }));
            tokio::task::yield_now().await;
        }
        let given_up = tokio::time::timeout(Duration::from_millis(1), turns.take(1)).await;
        assert!(given_up.is_err(), "two at a time");
        drop(turns.take(2).await);
        drop(first);
        for other in others {
            other.await.unwrap();
        }
        assert_eq!(*order.lock().unwrap(), (0..8).collect::<Vec<_>>());
        assert!(turns.queues().is_empty());
    }
}
