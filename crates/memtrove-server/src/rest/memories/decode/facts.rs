//! A new fact, a change of one, and a query of facts, by a body or by query parameters.

use super::change::{precondition, refuse_fixed};
use super::fields::{access_policy, identifiers, layer, layers, metadata, metadata_filter};
use super::{Members, Params, SUPERSESSION};
use memtrove_core::memories::limits::{MAX_FACT_FIELD_CHARS, MAX_TTL_SECONDS};
use memtrove_core::memories::{
    AddFact, Fact, FactChange, FactPattern, Filter, Identifiers, Precondition, QueryFacts, Rules,
};
use memtrove_core::{Error, Result};
use serde_json::Value;

/// Types and ranges, layer.
pub(in crate::rest::memories) fn add_fact(body: &Value, rules: &Rules) -> Result<AddFact> {
    let members = Members::body(body)?;
    let fact = fact(members)?;
    let content = members.spoken("content")?.map(str::to_owned);
    let identifiers = identifiers(members)?;
    let metadata = metadata(members)?.unwrap_or_default();
    let ttl_seconds = members.integer("ttlSeconds", 1..=MAX_TTL_SECONDS)?;
    let policy = access_policy(members)?;
    let layer = layer(members, "layer", rules)?;
    Ok(AddFact { layer, identifiers, fact, content, metadata, ttl_seconds, policy })
}

/// The five members of a fact.
pub(in crate::rest) fn fact(members: Members<'_>) -> Result<Fact> {
    let field = |name| members.required(name, stated(members, name));
    Ok(Fact {
        fact_type: field("factType")?,
        subject: field("subject")?,
        predicate: field("predicate")?,
        object: field("object")?,
        confidence: members.number("confidence", 0.0..=1.0)?.unwrap_or(1.0),
    })
}

/// A part of a fact: not blank, and not endless.
pub(in crate::rest) fn stated(members: Members<'_>, name: &str) -> Result<Option<String>> {
    members.spoken(name)?;
    Ok(members.text_of(name, 1..=MAX_FACT_FIELD_CHARS)?.map(str::to_owned))
}

/// The body of a `PATCH` with its `If-Match`, checked as any other change is.
pub(in crate::rest::memories) fn change_fact(
    body: &Value,
    if_match: Precondition,
    rules: &Rules,
) -> Result<FactChange> {
    let members = Members::body(body)?;
    refuse_fixed(members)?;
    let change = FactChange {
        fact_type: stated(members, "factType")?,
        subject: stated(members, "subject")?,
        predicate: stated(members, "predicate")?,
        object: stated(members, "object")?,
        confidence: members.number("confidence", 0.0..=1.0)?,
        metadata: metadata(members)?,
        content: members.spoken("content")?.map(str::to_owned),
        precondition: precondition(members, if_match)?,
    };
    change.check(rules)?;
    Ok(change)
}

pub(in crate::rest::memories) fn query_facts(body: &Value, rules: &Rules) -> Result<QueryFacts> {
    let members = Members::body(body)?;
    members.refuse_unsupported(&SUPERSESSION)?;
    let identifiers = identifiers(members)?;
    let filter = metadata_filter(members.object("filter", "filter.")?)?;
    let named = members.items("layers")?;
    let query = read(members, identifiers, filter, rules)?;
    Ok(QueryFacts { layers: named.map(|named| layers(named, rules)).transpose()?, ..query })
}

/// A query by parameters is about one layer.
pub(in crate::rest::memories) fn list_facts(
    params: &[(String, String)],
    rules: &Rules,
) -> Result<QueryFacts> {
    let params = Params::new(params)?;
    params.refuse_unsupported(&SUPERSESSION)?;
    let texts = ["layer", "factType", "subject", "predicate", "object", "cursor"];
    let members = params.members(&texts, &["minConfidence", "resolve", "limit"])?;
    let members = Members::within(&members, "");
    let filter = metadata_filter(Some(Members::within(&params.filter()?, "")))?;
    let query = read(members, params.identifiers()?, filter, rules)?;
    Ok(QueryFacts { layers: Some(vec![layer(members, "layer", rules)?]), ..query })
}

/// Types and ranges.
fn read(members: Members<'_>, identifiers: Identifiers, filter: Filter, rules: &Rules) -> Result<QueryFacts> {
    let text = |name| Ok::<_, Error>(members.text(name)?.map(str::to_owned));
    let pattern = FactPattern {
        fact_type: text("factType")?,
        subject: text("subject")?,
        predicate: text("predicate")?,
        object: text("object")?,
        min_confidence: members.number("minConfidence", 0.0..=1.0)?,
        filter,
    };
    Ok(QueryFacts {
        layers: None,
        identifiers,
        pattern,
        resolve: members.flag("resolve")?,
        limit: members.at_most("limit", rules.limits.fact_limit)?,
        cursor: text("cursor")?,
    })
}

#[cfg(test)]
mod tests;
