//! The last day of an entry, and for how long it lives until that day is over.

use crate::Timestamp;

/// The seconds of a day.
pub const DAY_SECONDS: i64 = 86_400;

/// The last day of an entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LastDay {
    /// The date, such as `2030-12-31`.
    pub date: String,
    /// The seconds until it is over.
    pub seconds_left: i64,
}

/// A date, as the moment at which it begins in UTC.
pub fn date(text: &str) -> Option<Timestamp> {
    (text.len() == "0000-00-00".len()).then(|| Timestamp::parse(&format!("{text}T00:00:00Z"))).flatten()
}

/// The seconds until a day is over.
pub fn seconds_left(day: Timestamp, now: Timestamp) -> i64 {
    (day.as_micros() - now.as_micros()).div_euclid(1_000_000) + DAY_SECONDS
}
