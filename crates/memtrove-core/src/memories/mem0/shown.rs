//! What mem0 shows of entries that we keep in other words.

use super::OWN;
use super::last_day::date;
use crate::memories::Memory;

/// Who said what an entry says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SaidBy<'a> {
    /// The role.
    pub role: Option<&'a str>,
    /// The name.
    pub actor_id: Option<&'a str>,
}

/// Who said what an entry says, as far as its add told.
pub fn said_by(memory: &Memory) -> SaidBy<'_> {
    SaidBy { role: text_of_own(memory, "role"), actor_id: text_of_own(memory, "actor_id") }
}

/// The last day of an entry: the one that was asked for, or the one on which it expires.
pub fn expiration_date(memory: &Memory) -> Option<String> {
    let expires = memory.expires_at?;
    match text_of_own(memory, "expiration_date").filter(|text| date(text).is_some()) {
        Some(asked) => Some(asked.to_owned()),
        None => expires.to_string().get(..10).map(str::to_owned),
    }
}

/// Whether its add or an update named its last day.
pub fn has_last_day(memory: &Memory) -> bool {
    memory.expires_at.is_some() && text_of_own(memory, "expiration_date").is_some()
}

fn text_of_own<'a>(memory: &'a Memory, name: &str) -> Option<&'a str> {
    memory.metadata.get(OWN)?.get(name)?.as_str()
}
