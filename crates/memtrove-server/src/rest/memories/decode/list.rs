//! A list, by a body or by query parameters.

use super::fields::{identifiers, kinds, layer, metadata_filter};
use super::{Members, Params, SUPERSESSION, range};
use memtrove_core::Result;
use memtrove_core::memories::{Conditions, Filter, Identifiers, ListMemories, Rules, State};
use serde_json::Value;

pub(in crate::rest::memories) fn filter(body: &Value, rules: &Rules) -> Result<ListMemories> {
    let members = Members::body(body)?;
    members.refuse_unsupported(&SUPERSESSION)?;
    let identifiers = identifiers(members)?;
    let filter = metadata_filter(members.object("filter", "filter.")?)?;
    read(members, identifiers, filter, rules)
}

pub(in crate::rest::memories) fn list(params: &[(String, String)], rules: &Rules) -> Result<ListMemories> {
    let params = Params::new(params)?;
    params.refuse_unsupported(&SUPERSESSION)?;
    let texts = ["layer", "cursor", "from", "to", "state"];
    let mut members = params.members(&texts, &["limit", "includeArchived", "includeEmbedding"])?;
    let kinds: Vec<&str> = params.many("kind").collect();
    if !kinds.is_empty() {
        members.insert("kinds".to_owned(), kinds.into());
    }
    let filter = metadata_filter(Some(Members::within(&params.filter()?, "")))?;
    read(Members::within(&members, ""), params.identifiers()?, filter, rules)
}

/// Types and ranges, layer, kinds.
fn read(
    members: Members<'_>,
    identifiers: Identifiers,
    filter: Filter,
    rules: &Rules,
) -> Result<ListMemories> {
    let limit = members.at_most("limit", rules.limits.list_limit)?;
    let cursor = members.text("cursor")?.map(str::to_owned);
    let (from, to) = range(members)?;
    let state = members.word("state", State::parse, &State::ALL.map(State::as_str))?;
    let include_archived = members.flag("includeArchived")?;
    let include_embedding = members.flag("includeEmbedding")?;
    let wanted_kinds = members.items("kinds")?;
    let layer = layer(members, "layer", rules)?;
    let kinds = wanted_kinds.map(kinds).transpose()?;
    let conditions = Conditions { kinds, include_archived, from, to, state, filter };
    Ok(ListMemories { layer, identifiers, limit, cursor, conditions, include_embedding })
}

#[cfg(test)]
mod tests;
