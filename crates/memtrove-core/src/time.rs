//! Time and fresh ids, injected so that tests can travel and repeat.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use uuid::Uuid;

/// An instant with microsecond precision: what the store keeps and the wire shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(i64);

impl Timestamp {
    /// The first and the last instant that RFC 3339 can write, in years 0 and 9999.
    const FIRST: Self = Self(-62_167_219_200_000_000);
    const LAST: Self = Self(253_402_300_799_999_999);

    /// From microseconds since 1970-01-01T00:00:00Z.
    pub const fn from_micros(micros: i64) -> Self {
        Self(micros)
    }

    /// Microseconds since 1970-01-01T00:00:00Z.
    pub const fn as_micros(self) -> i64 {
        self.0
    }

    /// Reads a timestamp, strictly as RFC 3339 has it: date, `T`, time with seconds, optional fraction, offset.
    pub fn parse(text: &str) -> Option<Self> {
        let (date_time, rest) = text.split_at_checked("0000-00-00T00:00:00".len())?;
        let shaped = date_time.bytes().zip(*b"0000-00-00T00:00:00").all(|(byte, shape)| match shape {
            b'0' => byte.is_ascii_digit(),
            _ => byte.eq_ignore_ascii_case(&shape),
        });
        let (fraction, offset) = rest.split_at(rest.find(['Z', 'z', '+', '-'])?);
        (shaped && is_fraction(fraction) && is_offset(offset)).then_some(())?;
        let number = |range: std::ops::Range<usize>| date_time[range].parse::<u32>().ok();
        let civil =
            [number(0..4)?, number(5..7)?, number(8..10)?, number(11..13)?, number(14..16)?, number(17..19)?];
        // Digits beyond microseconds are more than an instant has.
        let micros: i64 = format!("{:0<6.6}", fraction.strip_prefix('.').unwrap_or_default()).parse().ok()?;
        let offset_minutes: i64 = match offset.as_bytes()[0] {
            b'Z' | b'z' => 0,
            sign => {
                let minutes = offset[1..3].parse::<i64>().ok()? * 60 + offset[4..6].parse::<i64>().ok()?;
                if sign == b'-' { -minutes } else { minutes }
            }
        };
        // Not through jiff, whose time ends a day before 9999-12-31, which people write for "never".
        let local = Self::of_civil(civil)?;
        Some(local.saturating_add_micros(micros - offset_minutes * 60_000_000))
    }

    /// The instant at year, month, day, hour, minute and second in UTC, if there is such a date and time. A leap second is
    /// the second before it.
    fn of_civil([year, month, day, hour, minute, second]: [u32; 6]) -> Option<Self> {
        let leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
        let days = match month {
            1 | 3 | 5 | 7 | 8 | 10 | 12 => 31,
            4 | 6 | 9 | 11 => 30,
            2 if leap => 29,
            2 => 28,
            _ => return None,
        };
        if !(1..=days).contains(&day) || hour > 23 || minute > 59 || second > 60 {
            return None;
        }
        let of_day = i64::from(hour) * 3600 + i64::from(minute) * 60 + i64::from(second.min(59));
        let days = days_from_civil(i64::from(year), i64::from(month), i64::from(day));
        Some(Self((days * 86_400 + of_day) * 1_000_000))
    }

    /// Whether RFC 3339 can write it in UTC: an offset can lead out of the years from 0 to 9999.
    pub fn is_writable(self) -> bool {
        (Self::FIRST..=Self::LAST).contains(&self)
    }

    /// This instant moved by a number of microseconds, stopping at the ends of time.
    pub const fn saturating_add_micros(self, micros: i64) -> Self {
        Self(self.0.saturating_add(micros))
    }
}

impl fmt::Display for Timestamp {
    /// RFC 3339, UTC, six fractional digits: `2026-01-31T12:00:00.000000Z`.
    ///
    /// Written out by hand because a page of entries formats one of these per row, and the general formatter was the
    /// largest single cost of encoding it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let days = self.0.div_euclid(86_400_000_000);
        let mut rest = self.0.rem_euclid(86_400_000_000);
        let (year, month, day) = civil_from_days(days);
        if !(0..=9999).contains(&year) {
            let (seconds, micros) = (rest / 1_000_000, rest % 1_000_000);
            let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
            return write!(f, "{year}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{micros:06}Z");
        }
        let mut out = *b"0000-00-00T00:00:00.000000Z";
        put(&mut out[0..4], year as u64);
        put(&mut out[5..7], u64::from(month));
        put(&mut out[8..10], u64::from(day));
        put(&mut out[20..26], (rest % 1_000_000) as u64);
        rest /= 1_000_000;
        put(&mut out[17..19], (rest % 60) as u64);
        rest /= 60;
        put(&mut out[14..16], (rest % 60) as u64);
        put(&mut out[11..13], (rest / 60) as u64);
        f.write_str(std::str::from_utf8(&out).unwrap_or_default())
    }
}

fn put(slot: &mut [u8], mut number: u64) {
    for digit in slot.iter_mut().rev() {
        *digit = b'0' + (number % 10) as u8;
        number /= 10;
    }
}

/// The Gregorian date of a day number counted from 1970-01-01 (Hinnant's era arithmetic).
fn civil_from_days(days: i64) -> (i64, u8, u8) {
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let day_of_era = shifted.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_index = (5 * day_of_year + 2) / 153;
    let day = (day_of_year - (153 * month_index + 2) / 5 + 1) as u8;
    let month = if month_index < 10 { month_index + 3 } else { month_index - 9 } as u8;
    (year_of_era + era * 400 + i64::from(month <= 2), month, day)
}

fn is_fraction(text: &str) -> bool {
    match text.strip_prefix('.') {
        Some(digits) => !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()),
        None => text.is_empty(),
    }
}

fn is_offset(text: &str) -> bool {
    match text.as_bytes() {
        [b'Z' | b'z'] => true,
        [b'+' | b'-', h, hh, b':', m, mm] => {
            let digits = [h, hh, m, mm].iter().all(|byte| byte.is_ascii_digit());
            digits && &text[1..3] <= "23" && &text[4..6] <= "59"
        }
        _ => false,
    }
}

/// The inverse of [`civil_from_days`].
fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let shifted_year = if month <= 2 { year - 1 } else { year };
    let era = shifted_year.div_euclid(400);
    let year_of_era = shifted_year.rem_euclid(400);
    let month_index = if month > 2 { month - 3 } else { month + 9 };
    let day_of_year = (153 * month_index + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<str>::deserialize(deserializer)?;
        Timestamp::parse(&text).ok_or_else(|| serde::de::Error::custom("not an RFC 3339 timestamp"))
    }
}

/// Where the time and fresh ids come from.
pub trait Clock: Send + Sync {
    /// The time now.
    fn now(&self) -> Timestamp;
    /// A fresh UUIDv7.
    fn new_id(&self) -> Uuid;
}

/// The machine's clock and its random source.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[allow(clippy::disallowed_methods, reason = "this is the one place that asks the machine for the time")]
    fn now(&self) -> Timestamp {
        Timestamp(jiff::Timestamp::now().as_microsecond())
    }

    #[allow(clippy::disallowed_methods, reason = "this is the one place that asks the machine for an id")]
    fn new_id(&self) -> Uuid {
        Uuid::now_v7()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_text_of_a_timestamp_names_the_same_instant(micros in -62_000_000_000_000_000i64..250_000_000_000_000_000) {
            let stamp = Timestamp::from_micros(micros);
            let text = stamp.to_string();
            let general = jiff::Timestamp::from_microsecond(micros).unwrap();
            prop_assert_eq!(&text, &format!("{general:.6}"));
            prop_assert_eq!(Timestamp::parse(&text), Some(stamp));
        }
    }

    #[test]
    fn offsets_are_read_and_text_is_utc() {
        let stamp = Timestamp::parse("2026-01-31T14:00:00.5+02:00").unwrap();
        assert_eq!(stamp.to_string(), "2026-01-31T12:00:00.500000Z");
        assert_eq!(Timestamp::parse("yesterday"), None);
        let beyond = Timestamp::parse("9999-12-31T23:00:01.5-02:00").unwrap();
        assert_eq!(beyond.to_string(), "10000-01-01T01:00:01.500000Z");
    }
}
