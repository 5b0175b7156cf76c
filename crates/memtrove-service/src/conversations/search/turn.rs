//! What a search may take from others: not the last of the store's readers, and none once the caller is gone.

use memtrove_core::{Error, Result};
use memtrove_store::Store;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Lets all readers of the store but one search at a time. A search of a million entries that are not in memory takes as long as
/// reading them does; pages of others do not wait for that, unless the store has a single reader.
pub(crate) struct Turns {
    turns: Arc<Semaphore>,
    waiting: Semaphore,
}

/// Searches that wait for a turn at most: the next is told to come again.
const MOST_WAITING: usize = 256;

/// Held by a unit of work while it searches: it ends with the work, not with its caller.
pub(super) type Turn = OwnedSemaphorePermit;

/// Held by whoever waits for a search. When it goes, because the search is answered or the caller hung up, the search ends.
#[derive(Default)]
pub(super) struct Waiting(Arc<AtomicBool>);

/// Asked by a search between two trees.
#[derive(Clone, Default)]
pub(super) struct Wanted(Arc<AtomicBool>);

impl Turns {
    pub fn of(store: &Store) -> Self {
        Self::new(store.health().readers.saturating_sub(1).max(1), MOST_WAITING)
    }

    fn new(turns: usize, waiting: usize) -> Self {
        Self { turns: Arc::new(Semaphore::new(turns)), waiting: Semaphore::new(waiting) }
    }

    /// Waits for a turn. To be taken right before the work is queued: what comes before may wait for a network.
    pub(super) async fn take(&self) -> Result<Turn> {
        let _waits = self.waiting.try_acquire().map_err(|_| Error::overloaded(1))?;
        self.turns.clone().acquire_owned().await.map_err(|error| Error::internal(error.to_string()))
    }
}

impl Waiting {
    pub fn wanted(&self) -> Wanted {
        Wanted(self.0.clone())
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl Wanted {
    /// An error once nobody waits for the answer. Nobody sees it.
    pub fn check(&self) -> Result<()> {
        if self.0.load(Ordering::Relaxed) { Err(Error::TIMEOUT) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;
    use memtrove_core::Code;

    #[tokio::test]
    async fn a_search_waits_until_the_work_of_another_has_ended() {
        let turns = Turns::new(1, 1);
        let work = turns.take().await.unwrap();
        let second = turns.take();
        tokio::pin!(second);
        assert!(futures_util::poll!(second.as_mut()).is_pending(), "there is one turn");
        assert_eq!(turns.take().await.unwrap_err().code, Code::Overloaded, "one may wait");
        drop(work);
        drop(second.await.unwrap());
    }

    #[test]
    fn a_search_is_wanted_as_long_as_somebody_waits() {
        let waiting = Waiting::default();
        let wanted = waiting.wanted();
        assert!(wanted.check().is_ok());
        drop(waiting);
        assert!(wanted.check().is_err());
    }
}
