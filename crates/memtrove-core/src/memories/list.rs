//! What a list asks for, by a body or by query parameters.

use super::add::check_limit;
use super::members::{Members, SUPERSESSION, kinds};
use super::params::Params;
use super::{
    Conditions, Filter, Fingerprint, Identifiers, Layer, MemoryCaller, Rules, ScopeKey, State, Viewer,
};
use crate::Result;
use serde_json::{Value, json};

/// A page of the entries of one scope, as somebody asks for it.
#[derive(Debug, Clone, PartialEq)]
pub struct ListMemories {
    /// Whose.
    pub layer: Layer,
    /// What the scope is named by, and maybe more.
    pub identifiers: Identifiers,
    /// How many at most, if not as many as configured.
    pub limit: Option<usize>,
    /// Where the page before this one ended.
    pub cursor: Option<String>,
    /// Which of them.
    pub conditions: Conditions,
    /// Whether they carry their embeddings.
    pub include_embedding: bool,
}

/// A page that may be read.
#[derive(Debug, Clone, PartialEq)]
pub struct List {
    /// Whose.
    pub scope: ScopeKey,
    /// All identifiers of the request.
    pub identifiers: Identifiers,
    /// For whom.
    pub viewer: Viewer,
    /// How many at most.
    pub limit: usize,
    /// Where the page before this one ended.
    pub cursor: Option<String>,
    /// Which of them.
    pub conditions: Conditions,
}

impl ListMemories {
    /// The first page of a scope.
    pub fn new(layer: Layer, identifiers: Identifiers) -> Self {
        let conditions = Conditions::default();
        Self { layer, identifiers, limit: None, cursor: None, conditions, include_embedding: false }
    }

    /// Reads the body of a list.
    pub fn read(body: &Value, rules: &Rules) -> Result<Self> {
        let members = Members::body(body)?;
        members.refuse_unsupported(&SUPERSESSION)?;
        let identifiers = Identifiers::read(members.get("identifiers"))?;
        let filter = Filter::read(members.object("filter", "filter.")?)?;
        Self::of(members, identifiers, filter, rules)
    }

    /// Reads the query parameters of a list.
    pub fn from_params(params: &[(String, String)], rules: &Rules) -> Result<Self> {
        let params = Params::new(params)?;
        params.refuse_unsupported(&SUPERSESSION)?;
        let texts = ["layer", "cursor", "from", "to", "state"];
        let mut members = params.members(&texts, &["limit", "includeArchived", "includeEmbedding"])?;
        let kinds: Vec<&str> = params.many("kind").collect();
        if !kinds.is_empty() {
            members.insert("kinds".to_owned(), kinds.into());
        }
        let filter = Filter::read(Some(Members::within(&params.filter()?, "")))?;
        Self::of(Members::within(&members, ""), params.identifiers()?, filter, rules)
    }

    /// Types and ranges, layer, kinds.
    fn of(members: Members<'_>, identifiers: Identifiers, filter: Filter, rules: &Rules) -> Result<Self> {
        let limit = members.at_most("limit", rules.limits.list_limit)?;
        let cursor = members.text("cursor")?.map(str::to_owned);
        let (from, to) = Conditions::range(members)?;
        let state = members.word("state", State::parse, &State::ALL.map(State::as_str))?;
        let include_archived = members.flag("includeArchived")?;
        let include_embedding = members.flag("includeEmbedding")?;
        let wanted_kinds = members.items("kinds")?;
        let layer = rules.layer(members.get("layer"))?;
        let kinds = wanted_kinds.map(kinds).transpose()?;
        let conditions = Conditions { kinds, include_archived, from, to, state, filter };
        Ok(Self { layer, identifiers, limit, cursor, conditions, include_embedding })
    }

    /// The page that may be read, in the contract's order: types and ranges, layer, identifiers, rights.
    pub fn check(self, rules: &Rules, caller: &MemoryCaller) -> Result<List> {
        let limit = check_limit(self.limit, rules.list_limit, rules.limits.list_limit)?;
        rules.check_layer(self.layer)?;
        let scope = caller.scope(&self.identifiers, self.layer)?;
        Ok(List {
            scope,
            viewer: caller.viewer(&self.identifiers),
            identifiers: self.identifiers,
            limit,
            cursor: self.cursor,
            conditions: self.conditions,
        })
    }
}

impl List {
    /// What ties a cursor to this list: everything but the limit.
    pub fn fingerprint(&self) -> Fingerprint {
        Fingerprint::of([&self.scope], &self.identifiers, &json!(["list", self.conditions.fingerprint()]))
    }
}

#[cfg(test)]
mod tests;
