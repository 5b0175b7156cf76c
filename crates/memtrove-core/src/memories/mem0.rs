//! The mem0 API in terms of memories, and back. The same entries in other words: `user_id`, `agent_id`, `app_id` and `run_id`
//! say whose they are, messages become entries, and filters are trees of conditions.
//!
//! What is added or changed is an add or a change like any other: there is one set of rules. What mem0 knows of an entry and we
//! have no place for is kept in one member of its metadata, [`OWN`].

mod entities;
mod filter;
mod kept;
mod last_day;
mod metadata;
mod shown;
mod writing;

pub use entities::{Entities, Entity, Home, may_look_into};
pub use filter::{Field, Filters, Mem0Operator, Test, WhichTime, in_scope};
pub use kept::{Lifetime, Mem0Memory};
pub use last_day::{DAY_SECONDS, LastDay, date, seconds_left};
pub use metadata::{SplitMetadata, all as all_metadata};
pub use shown::{SaidBy, expiration_date, has_last_day, said_by};
pub use writing::{Update, Utterance};

use super::{Conditions, Filter, Kind};

/// The member of metadata that holds what only mem0 knows.
pub const OWN: &str = "mem0";

/// Which of the entries of a scope these conditions are about: everything that lasts and is not put away.
pub(super) fn conditions(test: Option<Test>) -> Conditions {
    let kinds = Kind::ALL.into_iter().filter(|kind| !matches!(kind, Kind::Working | Kind::Archival));
    let filter = Filter { mem0: test, ..Filter::default() };
    Conditions { kinds: Some(kinds.collect()), filter, ..Conditions::default() }
}

#[cfg(test)]
mod tests;
