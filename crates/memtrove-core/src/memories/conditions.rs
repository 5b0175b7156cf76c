//! Which entries of a scope a list or a search is about.

use super::{Filter, Kind, Memory, State};
use crate::Timestamp;
use serde_json::{Value, json};

/// Conditions on entries, all of which must hold.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Conditions {
    /// These kinds; none is all but archival.
    pub kinds: Option<Vec<Kind>>,
    /// Archived entries as well.
    pub include_archived: bool,
    /// Happened or made no earlier.
    pub from: Option<Timestamp>,
    /// Happened or made no later.
    pub to: Option<Timestamp>,
    /// In this state.
    pub state: Option<State>,
    /// See [`Filter`].
    pub filter: Filter,
}

impl Conditions {
    /// Whether an entry passes.
    pub fn admits(&self, memory: &Memory) -> bool {
        self.admits_head(memory.kind, memory.state, memory.at()) && self.filter.matches(memory)
    }

    /// Whether an entry passes everything but the filter. `at` is [`Memory::at`].
    pub fn admits_head(&self, kind: Kind, state: State, at: Timestamp) -> bool {
        self.admits_kind(kind)
            && self.state.is_none_or(|wanted| wanted == state)
            && self.from.is_none_or(|from| at >= from)
            && self.to.is_none_or(|to| at <= to)
    }

    /// Whether entries of a kind can pass at all.
    pub fn admits_kind(&self, kind: Kind) -> bool {
        let named = self.kinds.as_ref().map(|kinds| kinds.contains(&kind));
        if kind == Kind::Archival {
            return self.include_archived || self.state == Some(State::Archived) || named == Some(true);
        }
        named.unwrap_or(true)
    }

    /// What they ask, as one value for all ways to ask it.
    pub(super) fn fingerprint(&self) -> Value {
        let kinds: Vec<&str> =
            Kind::ALL.into_iter().filter(|kind| self.admits_kind(*kind)).map(Kind::as_str).collect();
        let state = self.state.map(State::as_str);
        json!([kinds, self.from, self.to, state, self.filter.fingerprint()])
    }
}

#[cfg(test)]
mod tests;
