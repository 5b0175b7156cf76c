//! Points in time as people write them for mem0: a date, a time with or without an offset, seconds since 1970.

use memtrove_core::Timestamp;
use memtrove_core::memories::mem0::{DAY_SECONDS, date};
use serde_json::Value;

/// A point in time, or a whole day.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Instant {
    At(Timestamp),
    /// The day that begins then, in UTC.
    Day(Timestamp),
}

impl Instant {
    pub fn read(value: &Value) -> Option<Self> {
        let instant = match value {
            Value::Number(seconds) => Self::At(of_seconds(seconds.as_f64()?)?),
            Value::String(text) => match date(text) {
                Some(day) => Self::Day(day),
                None => Self::At(of_text(text)?),
            },
            _ => return None,
        };
        instant.first().is_writable().then_some(instant)
    }

    /// Its first moment.
    pub fn first(self) -> Timestamp {
        match self {
            Self::At(at) | Self::Day(at) => at,
        }
    }

    /// Its last moment.
    pub fn last(self) -> Timestamp {
        match self {
            Self::At(at) => at,
            Self::Day(day) => day.saturating_add_micros(DAY_SECONDS * 1_000_000 - 1),
        }
    }
}

fn of_text(text: &str) -> Option<Timestamp> {
    let text = text.replacen(' ', "T", 1);
    Timestamp::parse(&text).or_else(|| Timestamp::parse(&format!("{text}Z")))
}

fn of_seconds(seconds: f64) -> Option<Timestamp> {
    let micros = seconds * 1_000_000.0;
    // Beyond this no number of microseconds is exact, and no year has four digits.
    (micros.abs() < 9e18).then(|| Timestamp::from_micros(micros as i64))
}
