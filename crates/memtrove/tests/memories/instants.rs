//! Instants as the wire shows them, and patience with what the server does in its own time.

use crate::support::*;
use memtrove_core::Timestamp;
use std::time::{Duration, Instant};

/// A day in seconds.
pub const DAY: f64 = 86_400.0;

/// The instant that a timestamp names.
#[track_caller]
pub fn instant(value: &Value) -> Timestamp {
    Timestamp::parse(&text(value)).unwrap_or_else(|| panic!("not a timestamp: {value}"))
}

/// So many seconds from one timestamp to another.
#[track_caller]
pub fn seconds_between(from: &Value, to: &Value) -> f64 {
    (instant(to).as_micros() - instant(from).as_micros()) as f64 / 1e6
}

/// The timestamp so many seconds after another.
#[track_caller]
pub fn after(value: &Value, seconds: f64) -> Value {
    json!(instant(value).saturating_add_micros((seconds * 1e6).round() as i64).to_string())
}

/// Asks again and again until there is an answer.
#[track_caller]
pub fn eventually<T>(what: &str, mut ask: impl FnMut() -> Option<T>) -> T {
    let begin = Instant::now();
    loop {
        if let Some(answer) = ask() {
            return answer;
        }
        assert!(begin.elapsed() < Duration::from_secs(20), "{what} never came about");
        std::thread::sleep(Duration::from_millis(25));
    }
}
