//! `[memories]`: whose memories there are, how long they live and how they are found.

mod by;
mod lifecycle;

pub use by::{ByKind, Role, WriteRoles};
pub use lifecycle::{Consolidation, Decay, Session, Working};

use super::{Bytes, LayerName, Span};
use memtrove_core::memories::{Kind, Layer, Limits, Rules};
use memtrove_recall::embed::{CacheConfig, RetryConfig};
use memtrove_server::auth::config::ConfigProblem;
use memtrove_service::MemorySettings;
use serde::{Deserialize, Serialize};
use std::ops::RangeInclusive;
use std::time::Duration;

/// `[memories]`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Memories {
    /// The layers there are; any other is refused.
    pub enabled_layers: Vec<LayerName>,
    /// Whether `agentId` must be the client of the caller's API key.
    pub bind_agent_id: bool,
    /// Who may write in shared layers.
    pub write_roles: WriteRoles,
    /// Where each kind is kept.
    pub provider: ByKind<MemoryProvider>,
    /// How long each kind is kept at most; for ever unless set.
    pub retention: ByKind<Option<Span>>,
    /// What searches do that do not say.
    pub search: MemorySearch,
    pub working: Working,
    /// Memories of a session, and what happens at its end.
    pub session: Session,
    /// When memories fade.
    pub decay: Decay,
    /// When similar memories are merged.
    pub consolidation: Consolidation,
    /// How often an embedding is tried.
    pub retry: Retry,
    /// What is remembered of texts that were embedded before.
    pub cache: MemoryCache,
    /// How much of everything there may be.
    pub limits: MemoryLimits,
}

impl Default for Memories {
    fn default() -> Self {
        let settings = MemorySettings::default();
        Self {
            enabled_layers: by::names(&settings.rules.enabled_layers),
            bind_agent_id: settings.bind_agent_id,
            write_roles: WriteRoles::default(),
            provider: ByKind::default(),
            retention: ByKind::default(),
            search: MemorySearch::default(),
            working: Working::default(),
            session: Session::default(),
            decay: Decay::default(),
            consolidation: Consolidation::default(),
            retry: Retry::default(),
            cache: MemoryCache::default(),
            limits: MemoryLimits::default(),
        }
    }
}

/// Where a kind is kept.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MemoryProvider {
    /// With everything else; working memory in RAM.
    #[default]
    Embedded,
}

/// `[memories.search]`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct MemorySearch {
    /// How many results a search returns that does not say.
    pub default_limit: usize,
    /// The least score of a result where a search does not say.
    pub default_threshold: f64,
    /// How many results a search may ask for.
    pub max_limit: usize,
}

impl Default for MemorySearch {
    fn default() -> Self {
        let rules = Rules::default();
        Self {
            default_limit: rules.search_limit,
            default_threshold: rules.search_threshold,
            max_limit: rules.limits.search_limit,
        }
    }
}

/// `[memories.retry]`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Retry {
    /// How often an embedding is tried in total.
    pub max_attempts: u32,
    /// The pause before the second attempt.
    pub initial_delay: Span,
    /// The longest pause.
    pub max_delay: Span,
    /// How much longer each pause is than the one before.
    pub backoff_multiplier: f64,
    /// How long all attempts may take together.
    pub deadline: Span,
}

impl Default for Retry {
    fn default() -> Self {
        let usual = RetryConfig::default();
        Self {
            max_attempts: usual.max_attempts,
            initial_delay: Span(usual.initial_delay),
            max_delay: Span(usual.max_delay),
            backoff_multiplier: usual.backoff_multiplier,
            deadline: Span(usual.deadline),
        }
    }
}

impl Retry {
    /// The same, as the embedder takes it.
    pub(super) fn settings(&self) -> RetryConfig {
        RetryConfig {
            max_attempts: self.max_attempts,
            initial_delay: self.initial_delay.0,
            max_delay: self.max_delay.0,
            backoff_multiplier: self.backoff_multiplier,
            deadline: self.deadline.0,
        }
    }
}

/// `[memories.cache]`
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct MemoryCache {
    /// Vectors of texts.
    pub embeddings: EmbeddingCache,
}

/// `[memories.cache.embeddings]`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct EmbeddingCache {
    /// How many vectors are remembered; 0 remembers none.
    pub size: usize,
    /// How long each.
    pub ttl: Span,
}

impl Default for EmbeddingCache {
    fn default() -> Self {
        let CacheConfig { size, ttl } = CacheConfig::default();
        Self { size, ttl: Span(ttl) }
    }
}

impl EmbeddingCache {
    /// The same, as the embedder takes it.
    pub(super) fn settings(&self) -> CacheConfig {
        CacheConfig { size: self.size, ttl: self.ttl.0 }
    }
}

/// `[memories.limits]`, by the names that `:capabilities` tells them under. Lengths count characters.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct MemoryLimits {
    /// The longest content.
    pub max_content_length: usize,
    /// The longest query.
    pub max_query_length: usize,
    /// The most metadata of a memory, as JSON.
    pub max_metadata_bytes: Bytes,
    /// How many memories a page may have.
    pub max_list_limit: usize,
    /// How many facts a page may have.
    pub max_fact_limit: usize,
    /// How many memories may be added at once.
    pub max_bulk_add: usize,
    /// How many memories may be deleted at once.
    pub max_bulk_delete: usize,
    /// How many working memories a scope may have; beyond that the ones used longest ago go.
    pub max_working_entries: usize,
}

impl Default for MemoryLimits {
    fn default() -> Self {
        let limits = Limits::default();
        Self {
            max_content_length: limits.content_length,
            max_query_length: limits.query_length,
            max_metadata_bytes: Bytes(limits.metadata_bytes as u64),
            max_list_limit: limits.list_limit,
            max_fact_limit: limits.fact_limit,
            max_bulk_add: limits.bulk_add,
            max_bulk_delete: limits.bulk_delete,
            max_working_entries: limits.working_entries,
        }
    }
}

/// Longer pauses than these are mistakes, and times they are added to would overflow.
const DEADLINES: RangeInclusive<Duration> = Duration::from_millis(1)..=Duration::from_secs(3600);
const BACKOFFS: RangeInclusive<f64> = 1.0..=10.0;

impl Memories {
    /// What cannot stand, each with what to do about it.
    pub(super) fn problems(&self) -> Vec<ConfigProblem> {
        let mut found: Vec<ConfigProblem> = self.layer_problem().into_iter().collect();
        found.extend(self.search_problems());
        found.extend(self.working.problems());
        found.extend(self.session.problems());
        found.extend(self.decay.problems());
        found.extend(self.consolidation.problems());
        found.extend(self.retention_problems());
        found.extend(self.retry_problems());
        let limits = &self.limits;
        found.extend(super::positive([
            ("memories.limits.max_content_length", limits.max_content_length > 0),
            ("memories.limits.max_query_length", limits.max_query_length > 0),
            ("memories.limits.max_metadata_bytes", limits.max_metadata_bytes.0 > 0),
            ("memories.limits.max_list_limit", limits.max_list_limit > 0),
            ("memories.limits.max_fact_limit", limits.max_fact_limit > 0),
            ("memories.limits.max_bulk_add", limits.max_bulk_add > 0),
            ("memories.limits.max_bulk_delete", limits.max_bulk_delete > 0),
            ("memories.limits.max_working_entries", limits.max_working_entries > 0),
        ]));
        found
    }

    fn layer_problem(&self) -> Option<ConfigProblem> {
        const KEY: &str = "memories.enabled_layers";
        let has = |layer| self.enabled_layers.contains(&LayerName(layer));
        if self.enabled_layers.is_empty() {
            let fix = "name some, or remove the key to have all seven";
            return Some(ConfigProblem::new(KEY, "is empty, so nothing could be remembered", fix));
        }
        (has(Layer::Session) && !has(Layer::User) && self.session.promote_important).then(|| {
            ConfigProblem::new(
                KEY,
                "lacks \"user\", where the end of a session copies what matters",
                "add it, or set memories.session.promote_important = false",
            )
        })
    }

    fn search_problems(&self) -> Vec<ConfigProblem> {
        let MemorySearch { default_limit, default_threshold, max_limit } = self.search;
        let mut found = super::shares([("memories.search.default_threshold", default_threshold)]);
        found.extend(super::positive([
            ("memories.search.default_limit", default_limit > 0),
            ("memories.search.max_limit", max_limit > 0),
        ]));
        if default_limit > max_limit {
            found.push(ConfigProblem::new(
                "memories.search.default_limit",
                format!("is {default_limit}, more than memories.search.max_limit, which is {max_limit}"),
                "lower the one or raise the other",
            ));
        }
        found
    }

    fn retention_problems(&self) -> Vec<ConfigProblem> {
        let kept = self.retention.each();
        let kept = kept.into_iter().filter_map(|(kind, span)| Some((kind, (*span)?)));
        kept.filter_map(|(kind, span)| {
            let (problem, fix) = if kind == Kind::Working {
                ("working memory lives for its ttl anyway", "set memories.working.default_ttl")
            } else if span.0.is_zero() {
                ("is 0, so nothing would be kept", "set how long, or remove the key to keep them")
            } else {
                return None;
            };
            Some(ConfigProblem::new(format!("memories.retention.{}", kind.as_str()), problem, fix))
        })
        .collect()
    }

    fn retry_problems(&self) -> Vec<ConfigProblem> {
        let Retry { max_attempts, backoff_multiplier, deadline, .. } = self.retry;
        let mut found: Vec<_> =
            super::positive([("memories.retry.max_attempts", max_attempts > 0)]).collect();
        if !BACKOFFS.contains(&backoff_multiplier) {
            found.push(ConfigProblem::new(
                "memories.retry.backoff_multiplier",
                format!("is {backoff_multiplier}"),
                "use 1 to 10; 1 makes all pauses equal",
            ));
        }
        if !DEADLINES.contains(&deadline.0) {
            found.push(ConfigProblem::new(
                "memories.retry.deadline",
                format!("is {deadline}"),
                "use up to 1h; callers wait for server.request_timeout at most",
            ));
        }
        found
    }

    /// The same, as the use cases take it. `body` is the largest request.
    pub fn settings(&self, body: Bytes) -> MemorySettings {
        let retention = self.retention.each().into_iter();
        MemorySettings {
            rules: self.rules(body),
            write_roles: self.write_roles.settings(),
            bind_agent_id: self.bind_agent_id,
            retention: retention.filter_map(|(kind, span)| Some((kind, span.as_ref()?.0))).collect(),
            decay_interval: self.decay.interval.0,
            ..MemorySettings::default()
        }
    }

    fn rules(&self, body: Bytes) -> Rules {
        let usual = Rules::default();
        let limits = &self.limits;
        Rules {
            limits: Limits {
                content_length: limits.max_content_length,
                query_length: limits.max_query_length,
                metadata_bytes: super::size(limits.max_metadata_bytes),
                search_limit: self.search.max_limit,
                list_limit: limits.max_list_limit,
                fact_limit: limits.max_fact_limit,
                bulk_add: limits.max_bulk_add,
                bulk_delete: limits.max_bulk_delete,
                body_bytes: super::size(body),
                working_entries: limits.max_working_entries,
            },
            enabled_layers: by::layers(&self.enabled_layers),
            working_ttl_seconds: lifecycle::seconds(self.working.default_ttl),
            session_ttl_seconds: lifecycle::seconds(self.session.default_ttl),
            search_limit: self.search.default_limit,
            search_threshold: self.search.default_threshold,
            list_limit: usual.list_limit.min(limits.max_list_limit),
            fact_limit: usual.fact_limit.min(limits.max_fact_limit),
            decay: self.decay.rules(),
            consolidation: self.consolidation.rules(),
            session: self.session.rules(),
        }
    }
}
