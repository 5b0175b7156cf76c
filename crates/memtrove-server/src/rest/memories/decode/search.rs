//! A search.

use super::fields::{identifiers, kinds, layers, metadata_filter};
use super::{Members, SUPERSESSION, range};
use memtrove_core::Result;
use memtrove_core::memories::{Conditions, Mode, Ranking, Rules, SearchMemories};
use serde_json::Value;

/// Types and ranges, layers, kinds.
pub(in crate::rest) fn search(body: &Value, rules: &Rules) -> Result<SearchMemories> {
    let members = Members::body(body)?;
    members.refuse_unsupported(&SUPERSESSION)?;
    let query = members.required("query", members.spoken("query"))?.to_owned();
    let named = members.items("layers")?;
    let identifiers = identifiers(members)?;
    let limit = members.at_most("limit", rules.limits.search_limit)?;
    let threshold = members.number("threshold", 0.0..=1.0)?;
    let wanted_kinds = members.items("kinds")?;
    let mut conditions = Conditions {
        include_archived: members.flag("includeArchived")?,
        filter: metadata_filter(members.object("filter", "filter.")?)?,
        ..Conditions::default()
    };
    if let Some(given) = members.object("timeRange", "timeRange.")? {
        (conditions.from, conditions.to) = range(given)?;
    }
    let include_embedding = members.flag("includeEmbedding")?;
    let include_overridden = members.flag("includeOverridden")?;
    let dedupe = members.boolean("dedupe")?.unwrap_or(true);
    let ranking = members.word("ranking", Ranking::parse, &Ranking::WORDS)?.unwrap_or_default();
    let mode = members.word("mode", Mode::parse, &Mode::WORDS)?.unwrap_or_default();
    let explain = members.flag("explain")?;
    let layers = named.map(|named| layers(named, rules)).transpose()?;
    conditions.kinds = wanted_kinds.map(kinds).transpose()?;
    Ok(SearchMemories {
        query,
        layers,
        identifiers,
        limit,
        threshold,
        conditions,
        include_embedding,
        include_overridden,
        dedupe,
        ranking,
        mode,
        explain,
    })
}

#[cfg(test)]
mod tests;
