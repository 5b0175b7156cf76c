//! A change of an entry.

use super::Members;
use super::fields::{access_policy, metadata};
use memtrove_core::Result;
use memtrove_core::memories::limits::MAX_TTL_SECONDS;
use memtrove_core::memories::{Change, Precondition, Rules};
use serde_json::Value;

/// What never changes, or changes in other ways.
const FIXED: [&str; 6] = ["layer", "kind", "identifiers", "id", "createdAt", "embedding"];

/// The body of a `PATCH` with its `If-Match`. It is checked here, because a caller hears what is wrong with a body before what is
/// wrong with parameters.
pub(in crate::rest::memories) fn change(
    body: &Value,
    if_match: Precondition,
    rules: &Rules,
) -> Result<Change> {
    let members = Members::body(body)?;
    refuse_fixed(members)?;
    let content = members.spoken("content")?.map(str::to_owned);
    let metadata = metadata(members)?;
    let ttl = match members.raw("ttlSeconds") {
        None => None,
        Some(_) => Some(members.integer("ttlSeconds", 1..=MAX_TTL_SECONDS)?),
    };
    let policy = access_policy(members)?;
    let precondition = precondition(members, if_match)?;
    let change = Change { content, metadata, ttl, policy, precondition };
    change.check(rules)?;
    Ok(change)
}

/// Refuses members that no change may name.
pub(super) fn refuse_fixed(members: Members<'_>) -> Result<()> {
    match FIXED.into_iter().find(|name| members.get(name).is_some()) {
        Some(name) => Err(members.refuse(name, "cannot be changed; to move a memory, promote it")),
        None => Ok(()),
    }
}

/// What `If-Match` and the member `version` expect.
pub(super) fn precondition(members: Members<'_>, if_match: Precondition) -> Result<Precondition> {
    if_match.and_version(members.integer("version", 1..=i64::MAX)?)
}

#[cfg(test)]
mod tests;
