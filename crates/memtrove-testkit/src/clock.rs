//! A clock that tests wind by hand.

use memtrove_core::{Clock, Timestamp};
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use uuid::Uuid;

/// Stands still until it is told to go on; its ids are numbered, so that a run can be repeated.
#[derive(Debug)]
pub struct TestClock {
    micros: AtomicI64,
    ids: AtomicU64,
}

impl TestClock {
    /// 2026-01-01T00:00:00Z.
    pub fn new() -> Self {
        Self { micros: AtomicI64::new(1_767_225_600_000_000), ids: AtomicU64::new(1) }
    }

    /// Goes on (or back) by this many microseconds.
    pub fn advance_micros(&self, micros: i64) {
        self.micros.fetch_add(micros, Ordering::Relaxed);
    }
}

impl Default for TestClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for TestClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_micros(self.micros.load(Ordering::Relaxed))
    }

    fn new_id(&self) -> Uuid {
        let millis = self.micros.load(Ordering::Relaxed) / 1000;
        let number = self.ids.fetch_add(1, Ordering::Relaxed);
        // The layout of version 7: the time, then what makes it unique.
        Uuid::from_u128(((millis as u128) << 80) | (0x7 << 76) | (0b10 << 62) | u128::from(number))
    }
}
