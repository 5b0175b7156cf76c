//! Where a query or a stream of the protocol looks, and which entries it wants there.

use super::{Type, kinds, source_type};
use crate::memories::{
    Conditions, Filter, Identifier, Identifiers, Kind, Layer, Memory, MemoryCaller, Policy, Rules, ScopeKey,
};
use crate::{Result, Timestamp};

/// Where a request looks.
#[derive(Debug, Clone, PartialEq)]
pub struct Reach {
    /// Whose entries, strongest first.
    pub scopes: Vec<ScopeKey>,
    /// What the request names, completed by what it need not say.
    pub identifiers: Identifiers,
    /// The types it asks for; none is all but archival.
    types: Vec<Type>,
}

impl Reach {
    /// Where a query or a stream looks, given the types and the identifiers that it names. The user is the authenticated one
    /// unless the request names one. The company is the tenant only where nothing is named or the organization is asked for: a
    /// query about one user would otherwise always be about the whole company, too.
    pub fn new(types: Vec<Type>, named: Identifiers, rules: &Rules, caller: &MemoryCaller) -> Result<Self> {
        let mut complete = Identifiers::default();
        complete.set(Identifier::User, "user_id", caller.user().unwrap_or_default())?;
        if named.is_empty() || types.contains(&Type::Organization) {
            complete.set(Identifier::Company, "company_id", caller.tenant().as_str())?;
        }
        let identifiers = named.or(&complete);
        // A type that is one layer names that layer, which must then be there.
        for layer in types.iter().filter_map(|of| of.layer()) {
            rules.check_layer(layer)?;
            identifiers.require(&[layer])?;
        }
        let mut layers = rules.accessible(&identifiers)?;
        if !types.is_empty() {
            layers.retain(|layer| !kinds(&types, *layer).is_empty());
        }
        if layers.is_empty() {
            // Every type but the working one has been somewhere by now.
            identifiers.require(&[Layer::User])?;
        }
        let scopes = caller.scopes(&identifiers, &layers)?;
        Ok(Self { scopes, identifiers, types })
    }

    /// The types it looks at: those asked for, or all that can be reached.
    pub fn types(&self) -> Vec<Type> {
        if !self.types.is_empty() {
            return self.types.clone();
        }
        let is_reached = |of: &Type| {
            *of != Type::Archival && self.scopes.iter().any(|scope| !kinds(&[*of], scope.layer()).is_empty())
        };
        Type::ALL.into_iter().filter(is_reached).collect()
    }

    /// Whether an entry of one of its scopes is of a type it looks at: also what was, before it was archived, so that a
    /// reader that follows an entry is told of that.
    pub fn covers(&self, memory: &Memory) -> bool {
        let layer = memory.scope.layer();
        let is_covered = |kind: Kind| self.types.iter().any(|of| of.covers(layer, kind));
        self.types.is_empty() || is_covered(memory.kind) || memory.origin_kind.is_some_and(is_covered)
    }

    /// The entries there that a query wants.
    pub fn conditions(&self, filter: Filter) -> Conditions {
        let mut conditions = Conditions { filter, ..Conditions::default() };
        if self.types.is_empty() {
            return conditions;
        }
        let of = |scope: &ScopeKey| kinds(&self.types, scope.layer());
        let wanted: Vec<Kind> = Kind::ALL
            .into_iter()
            .filter(|kind| self.scopes.iter().any(|scope| of(scope).contains(kind)))
            .collect();
        // Where all layers agree, kinds say it all; otherwise each entry is asked.
        let agree = self.scopes.iter().all(|scope| {
            let allowed = wanted.iter().filter(|kind| kind.layers().contains(&scope.layer()));
            of(scope).iter().eq(allowed)
        });
        if !agree {
            conditions.filter.knowledge.types.clone_from(&self.types);
        }
        conditions.kinds = Some(wanted);
        conditions
    }
}

/// What the protocol asks of an entry that a filter of `/v1` does not.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct KnowledgeFilter {
    /// Of one of these types; none is no condition.
    pub types: Vec<Type>,
    /// From this type of source.
    pub source_type: Option<&'static str>,
    /// With this policy.
    pub policy: Option<Policy>,
    /// Made no earlier.
    pub created_after: Option<Timestamp>,
    /// Made no later.
    pub created_before: Option<Timestamp>,
}

impl KnowledgeFilter {
    /// Whether an entry passes.
    pub fn admits(&self, memory: &Memory) -> bool {
        let layer = memory.scope.layer();
        (self.types.is_empty() || self.types.iter().any(|of| of.covers(layer, memory.kind)))
            && self.source_type.is_none_or(|wanted| source_type(&memory.metadata) == wanted)
            && self.policy.is_none_or(|wanted| memory.policy.policy == wanted)
            && self.created_after.is_none_or(|after| memory.created_at >= after)
            && self.created_before.is_none_or(|before| memory.created_at <= before)
    }
}

#[cfg(test)]
mod tests;
