//! Many entries in one request.

use super::members::Members;
use super::{AddMemory, Code, Rules};
use crate::{Error, Result};
use serde_json::Value;
use std::collections::HashSet;

/// Entries to add together.
#[derive(Debug, Clone, PartialEq)]
pub struct BulkAdd {
    /// The adds; one that cannot even be read is refused by itself.
    pub items: Vec<Result<AddMemory>>,
    /// Whether all or none are stored.
    pub atomic: bool,
}

impl BulkAdd {
    /// Reads the body of a bulk add.
    pub fn read(body: &Value, rules: &Rules) -> Result<Self> {
        let Some(members) = body.as_object() else {
            return Err(Error::new(Code::InvalidRequest, "the body must be a JSON object"));
        };
        let atomic = Members::within(members, "").flag("atomic")?;
        let items = members.get("memories").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        Ok(Self { items: items.iter().map(|item| AddMemory::read(item, rules)).collect(), atomic })
    }

    /// Refuses none, and too many.
    pub fn check(&self, rules: &Rules) -> Result<()> {
        if self.items.is_empty() {
            return Err(Error::field("memories", "must be a list of at least one memory"));
        }
        check_count(self.items.len(), rules.limits.bulk_add)
    }
}

/// Entries to delete together, each id once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BulkDelete {
    /// The ids as they were given, also those that can name nothing.
    pub ids: Vec<String>,
}

impl BulkDelete {
    /// Reads the body of a bulk delete.
    pub fn read(body: &Value) -> Result<Self> {
        let ids = Members::body(body)?.texts("ids")?.unwrap_or_default();
        Ok(Self { ids: ids.into_iter().map(str::to_owned).collect() })
    }

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

#[cfg(test)]
mod tests;
