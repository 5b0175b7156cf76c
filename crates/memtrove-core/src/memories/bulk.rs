//! Many entries in one request.

use super::{AddMemory, Code, Identifier, Rules};
use crate::{Error, Result};
use std::collections::HashSet;

/// Entries to add together.
#[derive(Debug, Clone, PartialEq)]
pub struct BulkAdd {
    /// The adds; one that cannot even be read is refused by itself. Beyond the limit none need be read.
    pub items: Vec<Result<AddMemory>>,
    /// How many were sent.
    pub count: usize,
    /// Whether all or none are stored.
    pub atomic: bool,
}

impl BulkAdd {
    /// Refuses none, and too many.
    pub fn check(&self, rules: &Rules) -> Result<()> {
        if self.items.is_empty() {
            return Err(Error::field("memories", "must be a list of at least one memory"));
        }
        check_count(self.count, rules.limits.bulk_add)
    }

    /// The user whom all of them name, if that is one.
    pub fn user(&self) -> Option<&str> {
        one_of(self.items.iter().flatten().map(|item| item.identifiers.get(Identifier::User)))
    }
}

/// What all of these are, if that is one.
pub(super) fn one_of<'a>(mut named: impl Iterator<Item = Option<&'a str>>) -> Option<&'a str> {
    let first = named.next().flatten()?;
    named.all(|other| other == Some(first)).then_some(first)
}

/// Entries to delete together, each id once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BulkDelete {
    /// The ids as they were given, also those that can name nothing.
    pub ids: Vec<String>,
}

impl BulkDelete {
    /// The ids, each once; none, and too many, are refused.
    pub fn check(self, rules: &Rules) -> Result<Vec<String>> {
        if self.ids.is_empty() {
            return Err(Error::field("ids", "must be a list of at least one id"));
        }
        check_count(self.ids.len(), rules.limits.bulk_delete)?;
        let mut seen = HashSet::new();
        Ok(self.ids.into_iter().filter(|id| seen.insert(id.clone())).collect())
    }
}

fn check_count(actual: usize, max: usize) -> Result<()> {
    if actual > max { Err(Error::too_long(Code::BatchTooLarge, max, actual)) } else { Ok(()) }
}
