//! What a search asks for.

use super::add::check_length;
use super::members::{Members, SUPERSESSION, kinds};
use super::{Code, Conditions, Filter, Identifiers, MemoryCaller, Rules, ScopeKey, Viewer};
use crate::Result;
use serde_json::Value;

/// What decides the order of results.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Ranking {
    /// The layer first, then the score.
    #[default]
    Precedence,
    /// The score first.
    Score,
}

impl Ranking {
    const WORDS: [&str; 2] = ["precedence", "score"];

    fn parse(word: &str) -> Option<Self> {
        [Self::Precedence, Self::Score]
            .into_iter()
            .zip(Self::WORDS)
            .find_map(|(ranking, name)| name.eq_ignore_ascii_case(word).then_some(ranking))
    }
}

/// What decides the score of a result.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Mode {
    /// Meaning, raised by words in common.
    #[default]
    Hybrid,
    /// Meaning alone.
    Semantic,
}

impl Mode {
    const WORDS: [&str; 2] = ["hybrid", "semantic"];

    fn parse(word: &str) -> Option<Self> {
        [Self::Hybrid, Self::Semantic]
            .into_iter()
            .zip(Self::WORDS)
            .find_map(|(mode, name)| name.eq_ignore_ascii_case(word).then_some(mode))
    }
}

/// A search.
#[derive(Debug, Clone, PartialEq)]
pub struct Search {
    /// What to look for.
    pub query: String,
    /// Where, strongest first.
    pub scopes: Vec<ScopeKey>,
    /// All identifiers of the request.
    pub identifiers: Identifiers,
    /// For whom.
    pub viewer: Viewer,
    /// How many results at most.
    pub limit: usize,
    /// The least score.
    pub threshold: f64,
    /// Among which entries.
    pub conditions: Conditions,
    /// Whether results carry their embeddings.
    pub include_embedding: bool,
    /// Whether results that a stronger one overrides stay.
    pub include_overridden: bool,
    /// Whether results that say the same as a stronger one go.
    pub dedupe: bool,
    /// See [`Ranking`].
    pub ranking: Ranking,
    /// See [`Mode`].
    pub mode: Mode,
    /// Whether each result says how its score came about.
    pub explain: bool,
}

impl Search {
    /// Reads the body of a search, in the contract's order: types and ranges, layers, kinds, identifiers, rights, lengths.
    pub fn read(body: &Value, rules: &Rules, caller: &MemoryCaller) -> Result<Self> {
        let members = Members::body(body)?;
        members.refuse_unsupported(&SUPERSESSION)?;
        let query = members.required("query", members.spoken("query"))?;
        let named = members.items("layers")?;
        let identifiers = Identifiers::read(members.get("identifiers"))?;
        let limit = members.limit("limit", rules.search_limit, rules.limits.search_limit)?;
        let threshold = members.number("threshold", 0.0..=1.0)?.unwrap_or(rules.search_threshold);
        let wanted_kinds = members.items("kinds")?;
        let mut conditions = Conditions {
            include_archived: members.flag("includeArchived")?,
            filter: Filter::read(members.object("filter", "filter.")?)?,
            ..Conditions::default()
        };
        if let Some(range) = members.object("timeRange", "timeRange.")? {
            (conditions.from, conditions.to) = Conditions::range(range)?;
        }
        let include_embedding = members.flag("includeEmbedding")?;
        let include_overridden = members.flag("includeOverridden")?;
        let dedupe = members.boolean("dedupe")?.unwrap_or(true);
        let ranking = members.word("ranking", Ranking::parse, &Ranking::WORDS)?.unwrap_or_default();
        let mode = members.word("mode", Mode::parse, &Mode::WORDS)?.unwrap_or_default();
        let explain = members.flag("explain")?;

        let named = named.map(|named| rules.layers(named)).transpose()?;
        conditions.kinds = wanted_kinds.map(kinds).transpose()?;
        let layers = named.map_or_else(|| rules.accessible(&identifiers), Ok)?;
        let scopes = caller.scopes(&identifiers, &layers)?;
        check_length(Code::QueryTooLong, query, rules.limits.query_length)?;
        Ok(Self {
            query: query.to_owned(),
            scopes,
            viewer: caller.viewer(&identifiers),
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
}

#[cfg(test)]
mod tests;
