//! Points in time as people write them for mem0: a date, a time with or without an offset, seconds since 1970.

use crate::Timestamp;
use serde_json::Value;

/// The seconds of a day.
pub(super) const DAY: i64 = 86_400;

/// A point in time, or a whole day.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Instant {
    /// An instant.
    At(Timestamp),
    /// The day that begins then, in UTC.
    Day(Timestamp),
}

impl Instant {
    /// Reads one.
    pub(super) fn read(value: &Value) -> Option<Self> {
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
    pub(super) fn first(self) -> Timestamp {
        match self {
            Self::At(at) | Self::Day(at) => at,
        }
    }

    /// Its last moment.
    pub(super) fn last(self) -> Timestamp {
        match self {
            Self::At(at) => at,
            Self::Day(day) => day.saturating_add_micros(DAY * 1_000_000 - 1),
        }
    }
}

/// A date, as the moment at which it begins in UTC.
pub(super) fn date(text: &str) -> Option<Timestamp> {
    (text.len() == "0000-00-00".len()).then(|| Timestamp::parse(&format!("{text}T00:00:00Z"))).flatten()
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
