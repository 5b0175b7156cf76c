//! What a list asks for, by a body or by query parameters.

use super::members::{Members, SUPERSESSION, kinds};
use super::params::Params;
use super::{Conditions, Filter, Fingerprint, Identifiers, MemoryCaller, Rules, ScopeKey, State, Viewer};
use crate::Result;
use serde_json::{Value, json};

/// A page of the entries of one scope.
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
    /// Whether they carry their embeddings.
    pub include_embedding: bool,
}

impl List {
    /// Reads the body of a list.
    pub fn read(body: &Value, rules: &Rules, caller: &MemoryCaller) -> Result<Self> {
        let members = Members::body(body)?;
        members.refuse_unsupported(&SUPERSESSION)?;
        let identifiers = Identifiers::read(members.get("identifiers"))?;
        let filter = Filter::read(members.object("filter", "filter.")?)?;
        Self::of(members, identifiers, filter, rules, caller)
    }

    /// Reads the query parameters of a list.
    pub fn from_params(params: &[(String, String)], rules: &Rules, caller: &MemoryCaller) -> Result<Self> {
        let params = Params::new(params)?;
        params.refuse_unsupported(&SUPERSESSION)?;
        let texts = ["layer", "cursor", "from", "to", "state"];
        let mut members = params.members(&texts, &["limit", "includeArchived", "includeEmbedding"])?;
        let kinds: Vec<&str> = params.many("kind").collect();
        if !kinds.is_empty() {
            members.insert("kinds".to_owned(), kinds.into());
        }
        let filter = Filter::read(Some(Members::within(&params.filter()?, "")))?;
        Self::of(Members::within(&members, ""), params.identifiers()?, filter, rules, caller)
    }

    /// The contract's order: types and ranges, layer, kinds, identifiers, rights.
    fn of(
        members: Members<'_>,
        identifiers: Identifiers,
        filter: Filter,
        rules: &Rules,
        caller: &MemoryCaller,
    ) -> Result<Self> {
        let limit = members.limit("limit", rules.list_limit, rules.limits.list_limit)?;
        let cursor = members.text("cursor")?.map(str::to_owned);
        let (from, to) = Conditions::range(members)?;
        let state = members.word("state", State::parse, &State::ALL.map(State::as_str))?;
        let include_archived = members.flag("includeArchived")?;
        let include_embedding = members.flag("includeEmbedding")?;
        let wanted_kinds = members.items("kinds")?;

        let layer = rules.layer(members.get("layer"))?;
        let kinds = wanted_kinds.map(kinds).transpose()?;
        let scope = caller.scope(&identifiers, layer)?;
        Ok(Self {
            scope,
            viewer: caller.viewer(&identifiers),
            identifiers,
            limit,
            cursor,
            conditions: Conditions { kinds, include_archived, from, to, state, filter },
            include_embedding,
        })
    }

    /// What ties a cursor to this list: everything but the limit and whether embeddings are shown.
    pub fn fingerprint(&self) -> Fingerprint {
        Fingerprint::of([&self.scope], &self.identifiers, &json!(["list", self.conditions.fingerprint()]))
    }
}

#[cfg(test)]
mod tests;
