//! What a list asks for, by a body or by query parameters.

use super::add::check_limit;
use super::{Conditions, Fingerprint, Identifiers, Layer, MemoryCaller, Rules, ScopeKey, Viewer};
use crate::Result;
use serde_json::json;

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
