//! Steps that tests of every surface take: at the same time, again until it is so, at random.
#![expect(clippy::expect_used, reason = "a test fails by panicking")]

use serde_json::Value;
use std::sync::Barrier;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// As long as a test waits for what threads and processes do in their own time. No test measures time by it.
pub const PATIENCE: Duration = Duration::from_secs(40);

/// Looks again and again until something is so.
#[track_caller]
pub fn until(what: &str, mut done: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !done() {
        assert!(Instant::now() < deadline, "it never came about that {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Runs `count` copies at the same time; their results in order.
pub fn at_once<T: Send>(count: usize, work: impl Fn(usize) -> T + Sync) -> Vec<T> {
    let gate = Barrier::new(count);
    std::thread::scope(|scope| {
        let (gate, work) = (&gate, &work);
        let threads: Vec<_> = (0..count)
            .map(|n| {
                scope.spawn(move || {
                    gate.wait();
                    work(n)
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().expect("no thread fails")).collect()
    })
}

/// Runs `count` pieces of work on a few threads: for building large fixtures.
pub fn spread(count: usize, work: impl Fn(usize) + Sync) {
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..16 {
            scope.spawn(|| {
                loop {
                    let n = next.fetch_add(1, Ordering::Relaxed);
                    if n >= count {
                        return;
                    }
                    work(n);
                }
            });
        }
    });
}

/// A small deterministic generator: a failure names its seed and can be repeated.
pub struct Dice(pub u64);

impl Dice {
    /// A number below `sides`.
    pub fn roll(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % sides as u64).expect("a small number")
    }

    /// One of these.
    pub fn pick<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        &items[self.roll(items.len())]
    }
}

/// Requires `YYYY-MM-DDThh:mm:ss.ffffffZ`.
#[track_caller]
pub fn assert_timestamp(value: &Value) {
    let text = value.as_str().unwrap_or_default();
    let shape: String = text.chars().map(|c| if c.is_ascii_digit() { '0' } else { c }).collect();
    assert_eq!(shape, "0000-00-00T00:00:00.000000Z", "not RFC 3339 in UTC with microseconds: {value}");
}
