//! A new entry.

use super::fields::{access_policy, identifiers, kind, layer, metadata};
use super::{Members, facts};
use memtrove_core::Result;
use memtrove_core::memories::limits::MAX_TTL_SECONDS;
use memtrove_core::memories::{AddMemory, Fact, Rules};
use serde_json::Value;

/// Types and ranges, layer, kind.
pub(in crate::rest::memories) fn add(body: &Value, rules: &Rules) -> Result<AddMemory> {
    let members = Members::body(body)?;
    if members.get("embedding").is_some() {
        return Err(members.refuse("embedding", "is made by the server and cannot be given"));
    }
    let content = members.spoken("content")?.map(str::to_owned);
    let identifiers = identifiers(members)?;
    let metadata = metadata(members)?.unwrap_or_default();
    let ttl_seconds = members.integer("ttlSeconds", 1..=MAX_TTL_SECONDS)?;
    let occurred_at = members.instant("occurredAt")?;
    let policy = access_policy(members)?;
    let fact = members.object("fact", "fact.")?.map(facts::fact).transpose()?;
    let content = content.or_else(|| fact.as_ref().map(Fact::render));
    let content = members.required("content", Ok(content))?;
    let layer = layer(members, "layer", rules)?;
    let kind = members.get("kind").map(kind).transpose()?;
    Ok(AddMemory { layer, kind, identifiers, content, metadata, ttl_seconds, occurred_at, policy, fact })
}

#[cfg(test)]
mod tests;
