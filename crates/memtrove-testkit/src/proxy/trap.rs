//! Cuts that wait for their moment. Each springs once.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// What is waited for.
#[derive(Debug, Default)]
pub(super) struct Traps {
    armed: Mutex<Armed>,
    sprung: AtomicU64,
}

#[derive(Debug, Default)]
struct Armed {
    before: Option<String>,
    after: Option<String>,
    bytes: Option<u64>,
}

/// What a statement runs into.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Nothing.
    Pass,
    /// The connection is cut before the statement is passed on.
    CutNow,
    /// The statement is passed on, and the connection is cut when its answer comes.
    CutAtAnswer,
}

impl Traps {
    pub(super) fn arm_before(&self, statement: &str) {
        self.with(|armed| armed.before = Some(statement.to_owned()));
    }

    pub(super) fn arm_after(&self, statement: &str) {
        self.with(|armed| armed.after = Some(statement.to_owned()));
    }

    pub(super) fn arm_bytes(&self, bytes: u64) {
        self.with(|armed| armed.bytes = Some(bytes));
    }

    pub(super) fn sprung(&self) -> u64 {
        self.sprung.load(Ordering::Acquire)
    }

    /// A statement is about to be passed on.
    pub(super) fn meet(&self, statement: &str) -> Verdict {
        let verdict = self.with(|armed| {
            if armed.before.take_if(|text| statement.contains(text.as_str())).is_some() {
                Verdict::CutNow
            } else if armed.after.take_if(|text| statement.contains(text.as_str())).is_some() {
                Verdict::CutAtAnswer
            } else {
                Verdict::Pass
            }
        });
        if verdict == Verdict::CutNow {
            self.count();
        }
        verdict
    }

    /// This many bytes are about to be passed on: how many of them may be, if not all.
    pub(super) fn allow(&self, bytes: usize) -> Option<usize> {
        let allowed = self.with(|armed| {
            let left = armed.bytes.as_mut()?;
            if *left > bytes as u64 {
                *left -= bytes as u64;
                return None;
            }
            armed.bytes.take().map(|left| left as usize)
        });
        if allowed.is_some() {
            self.count();
        }
        allowed
    }

    /// A connection was cut.
    pub(super) fn count(&self) {
        self.sprung.fetch_add(1, Ordering::AcqRel);
    }

    fn with<T>(&self, look: impl FnOnce(&mut Armed) -> T) -> T {
        look(&mut self.armed.lock().expect("a lock that nobody panicked with"))
    }
}
