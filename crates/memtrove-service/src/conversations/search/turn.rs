//! What a search may take from others: not the last of the store's readers, and none once the caller is gone.

use memtrove_core::{Error, Result};
use memtrove_store::Store;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use tokio::sync::{AcquireError, OwnedSemaphorePermit, Semaphore};

/// Lets all readers of the store but one search at a time, so that pages of others do not wait for a search, unless the store has a
/// single reader. Searches of large scopes also leave a core to others, where there are two.
pub(crate) struct SearchTurns {
    turns: Arc<Semaphore>,
    large: Arc<Semaphore>,
    waiting: Semaphore,
}

/// Searches that wait for a turn at most: the next is told to come again.
const MOST_WAITING: usize = 256;

/// Held by a unit of work while it searches: it ends with the work, not with its caller.
pub(super) struct SearchTurn {
    _reader: OwnedSemaphorePermit,
    _core: Option<OwnedSemaphorePermit>,
}

/// Held by whoever waits for a search. When it goes, because the search is answered or the caller hung up, the search ends.
#[derive(Default)]
pub(super) struct Waiting(Arc<AtomicBool>);

/// Asked by a search while it works.
#[derive(Clone, Default)]
pub(super) struct Wanted(Arc<AtomicBool>);

/// How long a search may read what is not in memory, as long as somebody waits for it.
#[derive(Clone)]
pub(in crate::conversations) struct Budget {
    wanted: Wanted,
    until: Instant,
}

impl SearchTurns {
    pub fn of(store: &Store) -> Self {
        let cores = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
        let all_but_one = |count: usize| count.saturating_sub(1).max(1);
        Self::new(all_but_one(store.health().readers), all_but_one(cores), MOST_WAITING)
    }

    fn new(turns: usize, large: usize, waiting: usize) -> Self {
        let semaphore = |permits| Arc::new(Semaphore::new(permits));
        Self { turns: semaphore(turns), large: semaphore(large), waiting: Semaphore::new(waiting) }
    }

    /// Waits for a turn. To be taken right before the work is queued: what comes before may wait for a network.
    pub(super) async fn take(&self, is_large: bool) -> Result<SearchTurn> {
        let _waits = self.waiting.try_acquire().map_err(|_| Error::overloaded(1))?;
        let closed = |error: AcquireError| Error::internal(error.to_string());
        // The core first: who waits for one takes no reader meanwhile.
        let core =
            if is_large { Some(self.large.clone().acquire_owned().await.map_err(closed)?) } else { None };
        let reader = self.turns.clone().acquire_owned().await.map_err(closed)?;
        Ok(SearchTurn { _reader: reader, _core: core })
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
    pub(super) fn is_over(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

impl Budget {
    /// So much time from now on.
    pub(super) fn begin(wanted: &Wanted, time: Duration) -> Self {
        Self { wanted: wanted.clone(), until: Instant::now() + time }
    }

    /// Whether to make do with what there is.
    pub fn is_spent(&self) -> bool {
        self.wanted.is_over() || Instant::now() >= self.until
    }

    /// An error once nobody waits for the answer. Nobody sees it.
    pub(super) fn check(&self) -> Result<()> {
        if self.wanted.is_over() { Err(Error::TIMEOUT) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;
    use memtrove_core::Code;

    #[tokio::test]
    async fn a_search_waits_until_the_work_of_another_has_ended() {
        let turns = SearchTurns::new(1, 1, 1);
        let work = turns.take(false).await.unwrap();
        let second = turns.take(false);
        tokio::pin!(second);
        assert!(futures_util::poll!(second.as_mut()).is_pending(), "there is one turn");
        assert_eq!(turns.take(false).await.err().unwrap().code, Code::Overloaded, "one may wait");
        drop(work);
        drop(second.await.unwrap());
    }

    #[tokio::test]
    async fn large_searches_leave_a_turn_to_others() {
        let turns = SearchTurns::new(2, 1, 2);
        let _large = turns.take(true).await.unwrap();
        let second = turns.take(true);
        tokio::pin!(second);
        assert!(futures_util::poll!(second.as_mut()).is_pending());
        drop(turns.take(false).await.unwrap());
    }

    #[test]
    fn a_search_is_wanted_as_long_as_somebody_waits() {
        let waiting = Waiting::default();
        let budget = Budget::begin(&waiting.wanted(), Duration::from_secs(3600));
        assert!(budget.check().is_ok() && !budget.is_spent());
        drop(waiting);
        assert!(budget.check().is_err() && budget.is_spent());
    }

    #[test]
    fn a_search_that_spent_its_budget_is_answered_all_the_same() {
        let waiting = Waiting::default();
        let budget = Budget::begin(&waiting.wanted(), Duration::ZERO);
        assert!(budget.is_spent() && budget.check().is_ok());
    }
}
