//! When a probe says that something happened, which may be relative to today.

use crate::support::*;
use memtrove_core::{Clock as _, SystemClock, Timestamp};

const DAY: i64 = 86_400_000_000;
const WEEKDAYS: [&str; 7] = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"];
const MONTHS: [&str; 12] = [
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
];

/// A day, counted from 1970-01-01, in UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Day(i64);

impl Day {
    /// By the clock of the machine, which the server has too.
    pub fn today() -> Self {
        Self(SystemClock.now().as_micros().div_euclid(DAY))
    }

    fn of([year, month, day]: [i64; 3]) -> Self {
        let noon = format!("{year:04}-{month:02}-{day:02}T12:00:00Z");
        Self(Timestamp::parse(&noon).unwrap_or_else(|| panic!("no date: {noon}")).as_micros().div_euclid(DAY))
    }

    /// Noon, which is the same day in nearly every time zone.
    fn noon(self) -> String {
        Timestamp::from_micros(self.0 * DAY + DAY / 2).to_string()
    }

    fn date(self) -> [i64; 3] {
        let text = self.noon();
        [0..4, 5..7, 8..10].map(|part| text[part].parse().expect("digits"))
    }

    /// Days since the Monday of its week.
    fn weekday(self) -> i64 {
        (self.0 + 3).rem_euclid(7)
    }

    /// The instant that `at` names: RFC 3339, or
    /// - `{"daysAgo": 9}`,
    /// - `{"weeksAgo": 1, "weekday": "thu"}`, the Thursday of last week; weeks begin on Monday,
    /// - `{"monthsAgo": 1, "day": 12}`, `{"yearsAgo": 1, "month": 5, "day": 29}`,
    /// - `{"last": "monday"}`, `{"last": "march", "day": 12}`: the latest one before today.
    pub fn instant(self, at: &Value) -> String {
        let member = |name: &str| at[name].as_i64();
        let [year, month, _] = self.date();
        if let Some(instant) = at.as_str() {
            return instant.to_owned();
        }
        let day = if let Some(days) = member("daysAgo") {
            Self(self.0 - days)
        } else if let Some(weeks) = member("weeksAgo") {
            let name = text(&at["weekday"]);
            Self(self.0 - self.weekday() - 7 * weeks + place_of(&name, &WEEKDAYS).expect("a weekday"))
        } else if let (Some(months), Some(day)) = (member("monthsAgo"), member("day")) {
            let month = year * 12 + month - 1 - months;
            Self::of([month.div_euclid(12), month.rem_euclid(12) + 1, day])
        } else if let (Some(years), Some(month), Some(day)) =
            (member("yearsAgo"), member("month"), member("day"))
        {
            Self::of([year - years, month, day])
        } else {
            let name = text(&at["last"]);
            match (place_of(&name, &WEEKDAYS), place_of(&name, &MONTHS), member("day")) {
                (Some(weekday), _, None) => Self(self.0 - 1 - (self.weekday() - 1 - weekday).rem_euclid(7)),
                (_, Some(month), Some(day)) => {
                    let this_year = Self::of([year, month + 1, day]);
                    if this_year < self { this_year } else { Self::of([year - 1, month + 1, day]) }
                }
                _ => panic!("no time: {at}"),
            }
        };
        assert!(day < self, "{at} is not in the past");
        day.noon()
    }
}

/// Where in the list the name with this beginning is.
fn place_of(beginning: &str, names: &[&str]) -> Option<i64> {
    names.iter().position(|name| name.starts_with(beginning)).and_then(|place| place.try_into().ok())
}

#[test]
fn relative_times_are_what_people_mean_by_them() {
    let wednesday = Day::of([2026, 11, 18]);
    let sunday = Day::of([2024, 3, 3]);
    for (today, at, date) in [
        (wednesday, json!("2024-05-16T10:00:00Z"), "2024-05-16T10"),
        (wednesday, json!({"daysAgo": 1}), "2026-11-17T12"),
        (wednesday, json!({"weeksAgo": 1, "weekday": "sun"}), "2026-11-15"),
        (wednesday, json!({"weeksAgo": 2, "weekday": "mon"}), "2026-11-02"),
        (sunday, json!({"weeksAgo": 1, "weekday": "wed"}), "2024-02-21"),
        (wednesday, json!({"last": "wednesday"}), "2026-11-11"),
        (wednesday, json!({"last": "tuesday"}), "2026-11-17"),
        (sunday, json!({"last": "monday"}), "2024-02-26"),
        (wednesday, json!({"last": "march", "day": 12}), "2026-03-12"),
        (wednesday, json!({"last": "november", "day": 18}), "2025-11-18"),
        (wednesday, json!({"last": "december", "day": 20}), "2025-12-20"),
        (sunday, json!({"monthsAgo": 3, "day": 9}), "2023-12-09"),
        (sunday, json!({"yearsAgo": 4, "month": 7, "day": 20}), "2020-07-20"),
    ] {
        assert!(today.instant(&at).starts_with(date), "{at} on {today:?} is {}", today.instant(&at));
    }
}
