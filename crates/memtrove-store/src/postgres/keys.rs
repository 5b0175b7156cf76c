//! BusyKeys that units of work of this process hold, before they ask the database for them.
//!
//! Work that wants a key which other work here holds does not wait on a thread: it is put aside, and run by the thread that gives
//! the key back. So one busy conversation takes up one connection, and not all of them.

use crate::QueuedWork;
use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Who holds which keys, and who waits for them.
#[derive(Default)]
pub(super) struct BusyKeys {
    /// A key that is here is held, or promised to the one that is run next.
    held: Mutex<HashMap<i64, VecDeque<QueuedWork>>>,
}

/// What became of work that wanted to wait.
pub(super) enum WaitingWork {
    /// It is put aside.
    Aside,
    /// The key was given back meanwhile.
    NoNeed(QueuedWork),
    /// Too many wait already.
    NoRoom(QueuedWork),
}

impl BusyKeys {
    fn held(&self) -> MutexGuard<'_, HashMap<i64, VecDeque<QueuedWork>>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a key, if it is free.
    pub(super) fn take(&self, key: i64) -> bool {
        let mut held = self.held();
        let free = !held.contains_key(&key);
        if free {
            held.insert(key, VecDeque::new());
        }
        free
    }

    /// Puts work aside until a key is given back, behind `most` others at most.
    pub(super) fn wait(&self, key: i64, job: QueuedWork, most: usize) -> WaitingWork {
        match self.held().get_mut(&key) {
            None => WaitingWork::NoNeed(job),
            Some(waiting) if waiting.len() >= most => WaitingWork::NoRoom(job),
            Some(waiting) => {
                waiting.push_back(job);
                WaitingWork::Aside
            }
        }
    }

    /// Everybody who waits for a key.
    pub(super) fn take_waiting(&self, key: i64) -> VecDeque<QueuedWork> {
        self.held().get_mut(&key).map(std::mem::take).unwrap_or_default()
    }

    /// Gives a key back. If somebody waits for it, it is promised to that one, which is to be run now.
    pub(super) fn give_back(&self, key: i64) -> Option<QueuedWork> {
        let mut held = self.held();
        let next = held.get_mut(&key)?.pop_front();
        if next.is_none() {
            held.remove(&key);
        }
        next
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{StoreError, TenantScope, Tx, UnitOfWork};

    struct Numbered;

    impl UnitOfWork for Numbered {
        fn tenants(&self) -> &TenantScope {
            &TenantScope::All
        }
        fn run(&mut self, _: &mut dyn Tx) -> bool {
            true
        }
        fn finish(self: Box<Self>, _: Result<(), StoreError>) {}
    }

    #[test]
    fn a_key_is_promised_to_whoever_waited_longest() {
        let keys = BusyKeys::default();
        assert!(keys.take(1) && keys.take(2) && !keys.take(1));
        assert!(matches!(keys.wait(1, Box::new(Numbered), 1), WaitingWork::Aside));
        assert!(matches!(keys.wait(1, Box::new(Numbered), 1), WaitingWork::NoRoom(_)));
        assert!(matches!(keys.wait(3, Box::new(Numbered), 1), WaitingWork::NoNeed(_)), "nobody holds it");
        assert!(keys.give_back(1).is_some());
        assert!(!keys.take(1), "promised");
        assert!(keys.give_back(1).is_none());
        assert!(keys.take(1));
        assert!(keys.give_back(2).is_none() && keys.give_back(2).is_none());
    }
}
