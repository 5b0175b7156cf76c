//! What a query of facts asks for, by a body or by query parameters.

use super::add::{check_limit, check_share};
use super::{
    FactPosition, Filter, Fingerprint, Identifiers, Kind, Layer, Memory, MemoryCaller, Rules, ScopeKey,
    Viewer,
};
use crate::Result;
use serde_json::json;
use std::collections::HashSet;

/// A page of facts, as somebody asks for it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct QueryFacts {
    /// Where; every layer that the identifiers open unless said.
    pub layers: Option<Vec<Layer>>,
    /// What the scopes are named by, and maybe more.
    pub identifiers: Identifiers,
    /// See [`FactPattern`].
    pub pattern: FactPattern,
    /// Whether only the strongest of those with one subject and predicate is wanted.
    pub resolve: bool,
    /// How many at most, if not as many as configured.
    pub limit: Option<usize>,
    /// Where the page before this one ended.
    pub cursor: Option<String>,
}

/// Which facts are wanted.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct FactPattern {
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
}

/// A page of facts that may be read.
#[derive(Debug, Clone, PartialEq)]
pub struct FactQuery {
    /// Whose, strongest first.
    pub scopes: Vec<ScopeKey>,
    /// All identifiers of the request.
    pub identifiers: Identifiers,
    /// For whom.
    pub viewer: Viewer,
    /// See [`FactPattern`].
    pub pattern: FactPattern,
    /// Whether only the strongest of those with one subject and predicate is wanted.
    pub resolve: bool,
    /// How many at most.
    pub limit: usize,
    /// Where the page before this one ended.
    pub cursor: Option<String>,
}

impl QueryFacts {
    /// The page that may be read, in the contract's order: types and ranges, layers, identifiers, rights.
    pub fn check(self, rules: &Rules, caller: &MemoryCaller) -> Result<FactQuery> {
        check_share("minConfidence", self.pattern.min_confidence)?;
        let limit = check_limit(self.limit, rules.fact_limit, rules.limits.fact_limit)?;
        let layers = rules.wanted_layers(self.layers, &self.identifiers)?;
        let scopes = caller.scopes(&self.identifiers, &layers)?;
        Ok(FactQuery {
            scopes,
            viewer: caller.viewer(&self.identifiers),
            identifiers: self.identifiers,
            pattern: self.pattern,
            resolve: self.resolve,
            limit,
            cursor: self.cursor,
        })
    }
}

impl FactQuery {
    /// Whether a fact passes: everything but who looks, and what [`FactQuery::resolve`] leaves.
    pub fn admits(&self, memory: &Memory) -> bool {
        let Some(fact) = memory.fact.as_ref().filter(|_| memory.kind == Kind::Procedural) else {
            return false;
        };
        let is =
            |wanted: &Option<String>, stated: &String| wanted.as_ref().is_none_or(|wanted| wanted == stated);
        let pattern = &self.pattern;
        is(&pattern.fact_type, &fact.fact_type)
            && is(&pattern.subject, &fact.subject)
            && is(&pattern.predicate, &fact.predicate)
            && is(&pattern.object, &fact.object)
            && pattern.min_confidence.is_none_or(|least| fact.confidence >= least)
            && pattern.filter.matches(memory)
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
        let FactPattern { fact_type, subject, predicate, object, min_confidence, filter } = &self.pattern;
        let fields = [fact_type, subject, predicate, object];
        let rest = json!(["facts", fields, min_confidence, filter.fingerprint(), self.resolve]);
        Fingerprint::of(&self.scopes, &self.identifiers, &rest)
    }
}
