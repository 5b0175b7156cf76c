//! A query of facts, by a body or by query parameters.

use super::SUPERSESSION;
use memtrove_core::memories::members::Members;
use memtrove_core::memories::params::Params;
use memtrove_core::memories::{FactPattern, Filter, Identifiers, QueryFacts, Rules};
use memtrove_core::{Error, Result};
use serde_json::Value;

pub(in crate::rest::memories) fn query_facts(body: &Value, rules: &Rules) -> Result<QueryFacts> {
    let members = Members::body(body)?;
    members.refuse_unsupported(&SUPERSESSION)?;
    let identifiers = Identifiers::read(members.get("identifiers"))?;
    let filter = Filter::read(members.object("filter", "filter.")?)?;
    let named = members.items("layers")?;
    let query = read(members, identifiers, filter, rules)?;
    Ok(QueryFacts { layers: named.map(|named| rules.layers(named)).transpose()?, ..query })
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
    let filter = Filter::read(Some(Members::within(&params.filter()?, "")))?;
    let query = read(members, params.identifiers()?, filter, rules)?;
    Ok(QueryFacts { layers: Some(vec![rules.layer(members.get("layer"))?]), ..query })
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
