//! How long events and audit records are kept, and who may shorten that.
//!
//! The audit trail has a floor: a number of days of it stay, whatever a writer asks for. An admin goes below it with a reason,
//! and the trail says so.

use super::Code;
use crate::{Error, Result, Timestamp};

/// The most days that can be named.
pub const MAX_DAYS: i64 = 36_500;
/// How far a caller's clock may be ahead of ours.
const CLOCK_LEEWAY_MICROS: i64 = 60 * 1_000_000;
const DAY_MICROS: i64 = 24 * 3600 * 1_000_000;

/// What a request for retention asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retention {
    /// Keep events of this many days.
    pub events_days: i64,
    /// Keep audit records of this many days.
    pub audit_days: i64,
    /// Keep snapshots of this many days.
    pub snapshots_days: i64,
    /// Counted back from here; from now, where nothing is said.
    pub as_of: Option<Timestamp>,
}

/// What a caller may do about the audit trail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Authority {
    /// May remove what is older than the floor.
    Writer,
    /// The same, and may count from a time to come.
    Admin,
    /// May go below the floor: an admin who said why.
    JustifiedAdmin,
}

/// What a request comes to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cutoffs {
    /// Events before this go.
    pub events: Timestamp,
    /// Audit records before this go.
    pub audit: Timestamp,
    /// Snapshots before this go.
    pub snapshots: Timestamp,
    /// The numbers that were changed, by their names.
    pub adjusted: Vec<&'static str>,
    /// Whether audit records go that the floor would keep.
    pub is_below_floor: bool,
}

impl Retention {
    /// What this comes to now, where a number of days of audit records has to stay.
    ///
    /// A time to come would undercut the floor as well as few days do, so it counts as now where the floor holds.
    pub fn cutoffs(&self, authority: Authority, floor_days: u32, now: Timestamp) -> Result<Cutoffs> {
        let as_of = self.as_of.unwrap_or(now);
        let is_ahead = as_of > now.saturating_add_micros(CLOCK_LEEWAY_MICROS);
        if is_ahead && authority == Authority::Writer {
            let message = "is more than 60 seconds ahead of the server's clock, which only an admin may say";
            return Err(invalid("as_of_utc", message));
        }
        let floor_days = i64::from(floor_days);
        let is_below_floor = floor_days > 0 && (self.audit_days < floor_days || is_ahead);
        let is_raised = is_below_floor && authority != Authority::JustifiedAdmin;
        let audit = match is_raised {
            true => before(if is_ahead { now } else { as_of }, self.audit_days.max(floor_days)),
            false => before(as_of, self.audit_days),
        };
        Ok(Cutoffs {
            events: before(as_of, self.events_days),
            audit,
            snapshots: before(as_of, self.snapshots_days),
            adjusted: if is_raised { vec!["audit_days"] } else { Vec::new() },
            is_below_floor: is_below_floor && !is_raised,
        })
    }
}

/// A number of days before an instant.
pub fn before(instant: Timestamp, days: i64) -> Timestamp {
    instant.saturating_add_micros(days.saturating_mul(-DAY_MICROS))
}

/// The refusal of a number of days, or of a time.
pub fn invalid(name: &str, what: impl std::fmt::Display) -> Error {
    Error::new(Code::InvalidRetentionValue, format!("'{name}' {what}")).with_text("field", name)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: &str = "2026-03-10T12:00:00Z";
    const DISTANT: &str = "2999-01-01T00:00:00Z";

    fn at(text: &str) -> Timestamp {
        Timestamp::parse(text).unwrap()
    }

    fn days(events: i64, audit: i64, as_of: Option<&str>) -> Retention {
        Retention { events_days: events, audit_days: audit, snapshots_days: 0, as_of: as_of.map(at) }
    }

    #[test]
    fn nobody_but_an_admin_with_a_reason_goes_below_the_floor() {
        use Authority::{Admin, JustifiedAdmin, Writer};
        let floor = at("2025-03-10T12:00:00Z");
        for (authority, days, floor_days, audit, adjusted, is_below_floor) in [
            (Writer, days(0, 365, None), 365, floor, false, false),
            (Writer, days(0, 366, None), 365, at("2025-03-09T12:00:00Z"), false, false),
            (Writer, days(0, 364, None), 365, floor, true, false),
            (Writer, days(0, 0, None), 365, floor, true, false),
            (Writer, days(0, 0, Some("2026-03-10T12:01:00Z")), 365, at("2025-03-10T12:01:00Z"), true, false),
            (Writer, days(0, 0, Some("2026-01-01T00:00:00Z")), 365, at("2025-01-01T00:00:00Z"), true, false),
            (Writer, days(0, 0, None), 0, at(NOW), false, false),
            (Writer, days(0, 29, None), 30, at("2026-02-08T12:00:00Z"), true, false),
            (Admin, days(0, 0, None), 365, floor, true, false),
            (Admin, days(0, 0, Some(DISTANT)), 365, floor, true, false),
            (Admin, days(0, 400, Some(DISTANT)), 365, at("2025-02-03T12:00:00Z"), true, false),
            (Admin, days(0, 365, None), 365, floor, false, false),
            (JustifiedAdmin, days(0, 0, None), 365, at(NOW), false, true),
            (JustifiedAdmin, days(0, 0, Some(DISTANT)), 365, at(DISTANT), false, true),
            (JustifiedAdmin, days(0, 365, None), 365, floor, false, false),
            (JustifiedAdmin, days(0, 365, Some(DISTANT)), 365, at("2998-01-01T00:00:00Z"), false, true),
            (JustifiedAdmin, days(0, 0, None), 0, at(NOW), false, false),
        ] {
            let cutoffs = days.cutoffs(authority, floor_days, at(NOW)).unwrap();
            let told = format!("{authority:?} {days:?} {floor_days}");
            assert_eq!(cutoffs.audit, audit, "{told}");
            assert_eq!(cutoffs.adjusted, if adjusted { vec!["audit_days"] } else { vec![] }, "{told}");
            assert_eq!(cutoffs.is_below_floor, is_below_floor, "{told}");
            assert_eq!(
                cutoffs.events,
                days.as_of.unwrap_or(at(NOW)),
                "the floor is of the trail alone: {told}"
            );
        }
    }

    #[test]
    fn only_an_admin_counts_from_a_time_to_come() {
        let ahead = |as_of: &str, authority| days(0, 400, Some(as_of)).cutoffs(authority, 365, at(NOW));
        for as_of in ["2026-03-10T12:01:00.000001Z", "2026-03-11T12:00:00Z", DISTANT] {
            let refusal = ahead(as_of, Authority::Writer).unwrap_err();
            assert_eq!(refusal.code, Code::InvalidRetentionValue);
            assert_eq!(refusal.details["field"], "as_of_utc");
            ahead(as_of, Authority::Admin).unwrap();
            ahead(as_of, Authority::JustifiedAdmin).unwrap();
        }
        ahead("2026-03-10T12:01:00Z", Authority::Writer).unwrap();
    }
}
