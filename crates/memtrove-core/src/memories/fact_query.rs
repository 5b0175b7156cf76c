//! What a query of facts asks for, by a body or by query parameters.

use super::members::{Members, SUPERSESSION};
use super::params::Params;
use super::{
    FactPosition, Filter, Fingerprint, Identifiers, Kind, Layer, Memory, MemoryCaller, Rules, ScopeKey,
    Viewer,
};
use crate::Result;
use serde_json::{Value, json};
use std::collections::HashSet;

/// A page of the facts of some scopes.
#[derive(Debug, Clone, PartialEq)]
pub struct FactQuery {
    /// Whose, strongest first.
    pub scopes: Vec<ScopeKey>,
    /// All identifiers of the request.
    pub identifiers: Identifiers,
    /// For whom.
    pub viewer: Viewer,
    /// With exactly this type.
    pub fact_type: Option<String>,
    /// With exactly this subject.
    pub subject: Option<String>,
    /// With exactly this predicate.
    pub predicate: Option<String>,
    /// With exactly this object.
    pub object: Option<String>,
    /// At least so sure.
    pub min_confidence: Option<f64>,
    /// See [`Filter`].
    pub filter: Filter,
    /// Whether only the strongest of those with one subject and predicate is wanted.
    pub resolve: bool,
    /// How many at most.
    pub limit: usize,
    /// Where the page before this one ended.
    pub cursor: Option<String>,
}

impl FactQuery {
    /// Reads the body of a query.
    pub fn read(body: &Value, rules: &Rules, caller: &MemoryCaller) -> Result<Self> {
        let members = Members::body(body)?;
        members.refuse_unsupported(&SUPERSESSION)?;
        let identifiers = Identifiers::read(members.get("identifiers"))?;
        let filter = Filter::read(members.object("filter", "filter.")?)?;
        let named = members.items("layers")?;
        let draft = FactQueryDraft::read(members, identifiers, filter, rules)?;
        let layers = match named {
            Some(named) => rules.layers(named)?,
            None => rules.accessible(&draft.identifiers)?,
        };
        draft.settle(&layers, caller)
    }

    /// Reads the query parameters of a query, which is about one layer.
    pub fn from_params(params: &[(String, String)], rules: &Rules, caller: &MemoryCaller) -> Result<Self> {
        let params = Params::new(params)?;
        params.refuse_unsupported(&SUPERSESSION)?;
        let texts = ["layer", "factType", "subject", "predicate", "object", "cursor"];
        let members = params.members(&texts, &["minConfidence", "resolve", "limit"])?;
        let members = Members::within(&members, "");
        let filter = Filter::read(Some(Members::within(&params.filter()?, "")))?;
        let draft = FactQueryDraft::read(members, params.identifiers()?, filter, rules)?;
        draft.settle(&[rules.layer(members.get("layer"))?], caller)
    }

    /// Whether a fact passes: everything but who looks, and what [`FactQuery::resolve`] leaves.
    pub fn admits(&self, memory: &Memory) -> bool {
        let Some(fact) = memory.fact.as_ref().filter(|_| memory.kind == Kind::Procedural) else {
            return false;
        };
        let is =
            |wanted: &Option<String>, stated: &String| wanted.as_ref().is_none_or(|wanted| wanted == stated);
        is(&self.fact_type, &fact.fact_type)
            && is(&self.subject, &fact.subject)
            && is(&self.predicate, &fact.predicate)
            && is(&self.object, &fact.object)
            && self.min_confidence.is_none_or(|least| fact.confidence >= least)
            && self.filter.matches(memory)
    }

    /// Brings facts that pass into their order and, if the query says so, leaves the strongest of each subject and
    /// predicate.
    pub fn arrange(&self, facts: &mut Vec<Memory>) {
        facts.sort_by(|a, b| FactPosition::of(a).compare(&FactPosition::of(b)));
        if self.resolve {
            let mut seen = HashSet::new();
            facts.retain(|memory| {
                let Some(fact) = &memory.fact else { return false };
                seen.insert((fact.subject.clone(), fact.predicate.clone()))
            });
        }
    }

    /// What ties a cursor to this query: everything but the limit.
    pub fn fingerprint(&self) -> Fingerprint {
        let fields = [&self.fact_type, &self.subject, &self.predicate, &self.object];
        let rest = json!(["facts", fields, self.min_confidence, self.filter.fingerprint(), self.resolve]);
        Fingerprint::of(&self.scopes, &self.identifiers, &rest)
    }
}

/// A query of the right types, before its layers are known.
struct FactQueryDraft {
    identifiers: Identifiers,
    filter: Filter,
    fields: [Option<String>; 4],
    min_confidence: Option<f64>,
    resolve: bool,
    limit: usize,
    cursor: Option<String>,
}

impl FactQueryDraft {
    fn read(members: Members<'_>, identifiers: Identifiers, filter: Filter, rules: &Rules) -> Result<Self> {
        let text = |name| Ok::<_, crate::Error>(members.text(name)?.map(str::to_owned));
        Ok(Self {
            identifiers,
            filter,
            fields: [text("factType")?, text("subject")?, text("predicate")?, text("object")?],
            min_confidence: members.number("minConfidence", 0.0..=1.0)?,
            resolve: members.flag("resolve")?,
            limit: members.limit("limit", rules.fact_limit, rules.limits.fact_limit)?,
            cursor: text("cursor")?,
        })
    }

    fn settle(self, layers: &[Layer], caller: &MemoryCaller) -> Result<FactQuery> {
        let scopes = caller.scopes(&self.identifiers, layers)?;
        let [fact_type, subject, predicate, object] = self.fields;
        Ok(FactQuery {
            scopes,
            viewer: caller.viewer(&self.identifiers),
            identifiers: self.identifiers,
            fact_type,
            subject,
            predicate,
            object,
            min_confidence: self.min_confidence,
            filter: self.filter,
            resolve: self.resolve,
            limit: self.limit,
            cursor: self.cursor,
        })
    }
}

#[cfg(test)]
mod tests;
