//! What a search asks for.

use super::add::{check_length, check_limit, check_share, check_text};
use super::{Code, Conditions, Identifiers, Layer, MemoryCaller, Rules, ScopeKey, Viewer};
use crate::Result;

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
    /// The contract's words for them.
    pub const WORDS: [&str; 2] = ["precedence", "score"];

    /// What a word stands for, in any letter case.
    pub fn parse(word: &str) -> Option<Self> {
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
    /// The contract's words for them.
    pub const WORDS: [&str; 2] = ["hybrid", "semantic"];

    /// What a word stands for, in any letter case.
    pub fn parse(word: &str) -> Option<Self> {
        [Self::Hybrid, Self::Semantic]
            .into_iter()
            .zip(Self::WORDS)
            .find_map(|(mode, name)| name.eq_ignore_ascii_case(word).then_some(mode))
    }
}

/// A search, as somebody asks for it.
#[derive(Debug, Clone, PartialEq)]
pub struct SearchMemories {
    /// What to look for.
    pub query: String,
    /// Where; every layer that the identifiers open unless said.
    pub layers: Option<Vec<Layer>>,
    /// What the scopes are named by, and maybe more.
    pub identifiers: Identifiers,
    /// How many results at most, if not as many as configured.
    pub limit: Option<usize>,
    /// The least score, if not the configured one.
    pub threshold: Option<f64>,
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

/// A search that may be made.
#[derive(Debug, Clone, PartialEq)]
pub struct Search {
    /// What to look for.
    pub query: String,
    /// Where, strongest first.
    pub scopes: Vec<ScopeKey>,
    /// For whom.
    pub viewer: Viewer,
    /// How many results at most.
    pub limit: usize,
    /// The least score.
    pub threshold: f64,
    /// Among which entries.
    pub conditions: Conditions,
    /// Whether results that a stronger one overrides stay.
    pub include_overridden: bool,
    /// Whether results that say the same as a stronger one go.
    pub dedupe: bool,
    /// See [`Ranking`].
    pub ranking: Ranking,
    /// See [`Mode`].
    pub mode: Mode,
}

impl Search {
    /// Whether words of time in the query say when to look: not beside a range that says so, nor where words count nothing.
    pub fn asks_about_time(&self) -> bool {
        let Conditions { from, to, .. } = &self.conditions;
        self.mode == Mode::Hybrid && from.is_none() && to.is_none()
    }
}

impl SearchMemories {
    /// A search for a text, with the defaults of the contract.
    pub fn new(identifiers: Identifiers, query: String) -> Self {
        Self {
            query,
            layers: None,
            identifiers,
            limit: None,
            threshold: None,
            conditions: Conditions::default(),
            include_embedding: false,
            include_overridden: false,
            dedupe: true,
            ranking: Ranking::default(),
            mode: Mode::default(),
            explain: false,
        }
    }

    /// The search that may be made, in the contract's order: types and ranges, layers, identifiers, rights, lengths.
    pub fn check(self, rules: &Rules, caller: &MemoryCaller) -> Result<Search> {
        check_text("query", &self.query)?;
        let limit = check_limit(self.limit, rules.search_limit, rules.limits.search_limit)?;
        let threshold = check_share("threshold", self.threshold)?.unwrap_or(rules.search_threshold);
        let layers = rules.wanted_layers(self.layers, &self.identifiers)?;
        let scopes = caller.scopes(&self.identifiers, &layers)?;
        check_length(Code::QueryTooLong, &self.query, rules.limits.query_length)?;
        Ok(Search {
            query: self.query,
            scopes,
            viewer: caller.viewer(&self.identifiers),
            limit,
            threshold,
            conditions: self.conditions,
            include_overridden: self.include_overridden,
            dedupe: self.dedupe,
            ranking: self.ranking,
            mode: self.mode,
        })
    }
}
