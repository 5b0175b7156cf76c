//! Many entries in one request.

use super::members::Members;
use super::{Code, Rules};
use crate::{Error, Result};
use serde_json::Value;
use std::collections::HashSet;

/// Entries to add together.
#[derive(Debug, Clone, PartialEq)]
pub struct BulkAdd {
    /// The bodies of the adds, each to be read by itself.
    pub items: Vec<Value>,
    /// Whether all or none are stored.
    pub atomic: bool,
}

impl BulkAdd {
    /// Reads the body of a bulk add.
    pub fn read(mut body: Value, rules: &Rules) -> Result<Self> {
        let Some(members) = body.as_object_mut() else {
            return Err(Error::new(Code::InvalidRequest, "the body must be a JSON object"));
        };
        let atomic = Members::within(members, "").flag("atomic")?;
        match members.get_mut("memories").map(Value::take) {
            Some(Value::Array(items)) if !items.is_empty() => {
                check_count(items.len(), rules.limits.bulk_add)?;
                Ok(Self { items, atomic })
            }
            _ => Err(Error::field("memories", "must be a list of at least one memory")),
        }
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
    pub fn read(body: &Value, rules: &Rules) -> Result<Self> {
        let members = Members::body(body)?;
        let ids = members.texts("ids")?.unwrap_or_default();
        if ids.is_empty() {
            return Err(members.refuse("ids", "must be a list of at least one id"));
        }
        check_count(ids.len(), rules.limits.bulk_delete)?;
        let mut seen = HashSet::new();
        Ok(Self { ids: ids.into_iter().filter(|id| seen.insert(*id)).map(str::to_owned).collect() })
    }
}

fn check_count(actual: usize, max: usize) -> Result<()> {
    if actual > max { Err(Error::too_long(Code::BatchTooLarge, max, actual)) } else { Ok(()) }
}

#[cfg(test)]
mod tests;
