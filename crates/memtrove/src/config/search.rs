//! `[search]`: how things are found.

use super::{Bytes, Span};
use memtrove_core::recall::fusion;
use memtrove_core::text::Analyzer;
use memtrove_server::auth::config::ConfigProblem;
use memtrove_service::SearchSettings;
use serde::{Deserialize, Serialize};

/// `[search]`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Search {
    /// Whether words can be searched for.
    pub fulltext_enabled: bool,
    /// Whether conversations can be searched by meaning, where `embedding.provider` is not `none`.
    pub semantic_enabled: bool,
    /// The language whose word forms are treated as one.
    pub language: String,
    /// How `auto` searches conversations: by words and meaning together (`hybrid`), or by words only where nothing was found
    /// by meaning (`fallback`).
    pub auto_mode: AutoMode,
    /// `auto` leaves out what is less similar than this and shares no word with the query. As the model has it unless set; 0
    /// leaves out nothing.
    pub min_score: Option<f64>,
    /// Whether it counts who said something when a query asks for what somebody said.
    pub actor: bool,
    /// What each kind of evidence counts.
    pub weights: Weights,
    /// How long a search of conversations may read what is not in memory before it is answered with what it has.
    pub budget: Span,
    /// How much memory the indexes of memories may take, and those of conversations as much again.
    pub index_memory: Bytes,
    /// Scopes of memories with more entries are searched by the database where it can, instead of in the memory of every node;
    /// 0 is never.
    pub database_index_above: usize,
}

impl Default for Search {
    fn default() -> Self {
        let SearchSettings { semantic, min_score, auto_mode: _, actor, weights: _, budget } =
            SearchSettings::default();
        Self {
            fulltext_enabled: true,
            semantic_enabled: semantic,
            language: "english".into(),
            auto_mode: AutoMode::default(),
            min_score,
            actor,
            weights: Weights::default(),
            budget: Span(budget),
            index_memory: Bytes::mebi(1024),
            database_index_above: 20_000,
        }
    }
}

/// How `auto` searches conversations.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AutoMode {
    /// By words and meaning together.
    #[default]
    Hybrid,
    /// By words only where nothing was found by meaning.
    Fallback,
}

/// `[search.weights]`: how turns of a conversation are ranked. Tuned by measurement; change them with one of your own.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Weights {
    /// The share of the words; the rest is meaning.
    pub lexical: f64,
    /// How much the meaning of what was said around counts.
    pub context: f64,
    /// What a turn keeps that somebody else said than whom the query is about.
    pub by_another: f64,
    /// What a turn keeps that ends with a question.
    pub asks: f64,
}

impl Default for Weights {
    fn default() -> Self {
        let fusion::Weights { lexical, context, by_another, asks } = fusion::Weights::default();
        Self { lexical, context, by_another, asks }
    }
}

impl Search {
    /// What cannot stand, each with what to do about it.
    pub(super) fn problems(&self) -> Vec<ConfigProblem> {
        let Weights { lexical, context, by_another, asks } = self.weights;
        let mut found = super::shares([
            ("search.min_score", self.min_score.unwrap_or_default()),
            ("search.weights.lexical", lexical),
            ("search.weights.context", context),
            ("search.weights.by_another", by_another),
            ("search.weights.asks", asks),
        ]);
        found.extend(super::positive([("search.index_memory", self.index_memory.0 > 0)]));
        if Analyzer::new(&self.language).is_none() {
            let problem = format!("'{}' is not a language this version knows the words of", self.language);
            found.push(ConfigProblem::new("search.language", problem, "use e.g. \"english\""));
        }
        found
    }

    /// The same, as the use cases take it.
    pub fn settings(&self) -> SearchSettings {
        let Weights { lexical, context, by_another, asks } = self.weights;
        SearchSettings {
            semantic: self.semantic_enabled,
            min_score: self.min_score,
            auto_mode: match self.auto_mode {
                AutoMode::Hybrid => memtrove_service::AutoMode::Hybrid,
                AutoMode::Fallback => memtrove_service::AutoMode::Fallback,
            },
            actor: self.actor,
            weights: fusion::Weights { lexical, context, by_another, asks },
            budget: self.budget.0,
        }
    }
}
