//! How long memories live, how they fade and how they are merged.

use super::super::{LayerName, Span, positive, shares};
use super::by::{layers, names};
use memtrove_core::memories::limits::MAX_TTL_SECONDS;
use memtrove_core::memories::{ConsolidationRules, DecayRules, Rules, SessionRules};
use memtrove_server::auth::config::ConfigProblem;
use memtrove_service::MemorySettings;
use serde::{Deserialize, Serialize};

/// `[memories.working]`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Working {
    /// How long working memories live that do not say.
    pub default_ttl: Span,
}

impl Default for Working {
    fn default() -> Self {
        Self { default_ttl: span(Rules::default().working_ttl_seconds) }
    }
}

impl Working {
    pub(super) fn problems(&self) -> Option<ConfigProblem> {
        ttl_problem("memories.working.default_ttl", self.default_ttl)
    }
}

/// `[memories.session]`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Session {
    /// How long memories of kind session live that do not say.
    pub default_ttl: Span,
    /// Whether the end of a session removes what is not promoted.
    pub auto_delete: bool,
    /// How long it stays then.
    pub retention_period: Span,
    /// Whether the end of a session copies what matters to the user.
    pub promote_important: bool,
    /// From which score something matters.
    pub promotion_threshold: f64,
}

impl Default for Session {
    fn default() -> Self {
        let rules = Rules::default();
        let SessionRules { auto_delete, retention_seconds, promote_important, promotion_threshold } =
            rules.session;
        Self {
            default_ttl: span(rules.session_ttl_seconds),
            auto_delete,
            retention_period: span(retention_seconds),
            promote_important,
            promotion_threshold,
        }
    }
}

impl Session {
    pub(super) fn problems(&self) -> Vec<ConfigProblem> {
        let mut found = shares([("memories.session.promotion_threshold", self.promotion_threshold)]);
        found.extend(ttl_problem("memories.session.default_ttl", self.default_ttl));
        let Span(retention) = self.retention_period;
        if retention.subsec_nanos() != 0 || retention.as_secs() > MAX_TTL_SECONDS.unsigned_abs() {
            found.push(ConfigProblem::new(
                "memories.session.retention_period",
                format!("is {}", self.retention_period),
                "use whole seconds up to 365d",
            ));
        }
        found
    }

    pub(super) fn rules(&self) -> SessionRules {
        SessionRules {
            auto_delete: self.auto_delete,
            retention_seconds: seconds(self.retention_period),
            promote_important: self.promote_important,
            promotion_threshold: self.promotion_threshold,
        }
    }
}

/// `[memories.decay]`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Decay {
    /// Whether memories fade by themselves.
    pub enabled: bool,
    /// The share of its relevance that a memory loses in a day.
    pub rate_per_day: f64,
    /// Below this relevance a memory is archived.
    pub archive_threshold: f64,
    /// Below this relevance a memory counts as decayed.
    pub decayed_below: f64,
    /// The layers where nothing fades.
    pub exempt_layers: Vec<LayerName>,
    /// How often that is looked at.
    pub interval: Span,
}

impl Default for Decay {
    fn default() -> Self {
        let MemorySettings { rules, decay_interval, .. } = MemorySettings::default();
        let DecayRules { enabled, rate_per_day, archive_threshold, decayed_below, exempt_layers } =
            rules.decay;
        Self {
            enabled,
            rate_per_day,
            archive_threshold,
            decayed_below,
            exempt_layers: names(&exempt_layers),
            interval: Span(decay_interval),
        }
    }
}

impl Decay {
    pub(super) fn problems(&self) -> Vec<ConfigProblem> {
        let (archived, decayed) = (self.archive_threshold, self.decayed_below);
        let mut found = shares([
            ("memories.decay.rate_per_day", self.rate_per_day),
            ("memories.decay.archive_threshold", archived),
            ("memories.decay.decayed_below", decayed),
        ]);
        if archived > decayed {
            found.push(ConfigProblem::new(
                "memories.decay.archive_threshold",
                format!("is {archived}, more than memories.decay.decayed_below, which is {decayed}"),
                "lower the one or raise the other: memories decay before they are archived",
            ));
        }
        found.extend(positive([("memories.decay.interval", !self.interval.0.is_zero())]));
        found
    }

    pub(super) fn rules(&self) -> DecayRules {
        DecayRules {
            enabled: self.enabled,
            rate_per_day: self.rate_per_day,
            archive_threshold: self.archive_threshold,
            decayed_below: self.decayed_below,
            exempt_layers: layers(&self.exempt_layers),
        }
    }
}

/// `[memories.consolidation]`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Consolidation {
    /// Whether similar memories are merged by themselves.
    pub enabled: bool,
    /// The cosine from which two memories may be the same.
    pub similarity_threshold: f64,
    /// The number of memories of a scope beyond which an add starts it.
    pub max_memories_before_trigger: usize,
    /// The layers where an add may start it.
    pub target_layers: Vec<LayerName>,
}

impl Default for Consolidation {
    fn default() -> Self {
        let ConsolidationRules { enabled, similarity_threshold, max_memories_before_trigger, target_layers } =
            ConsolidationRules::default();
        Self {
            enabled,
            similarity_threshold,
            max_memories_before_trigger,
            target_layers: names(&target_layers),
        }
    }
}

impl Consolidation {
    pub(super) fn problems(&self) -> Vec<ConfigProblem> {
        const TRIGGER: &str = "memories.consolidation.max_memories_before_trigger";
        let mut found = shares([("memories.consolidation.similarity_threshold", self.similarity_threshold)]);
        found.extend(positive([(TRIGGER, self.max_memories_before_trigger > 0)]));
        found
    }

    pub(super) fn rules(&self) -> ConsolidationRules {
        ConsolidationRules {
            enabled: self.enabled,
            similarity_threshold: self.similarity_threshold,
            max_memories_before_trigger: self.max_memories_before_trigger,
            target_layers: layers(&self.target_layers),
        }
    }
}

/// Lifetimes are told to callers in seconds, and one that a caller may not ask for is no default either.
fn ttl_problem(key: &'static str, ttl: Span) -> Option<ConfigProblem> {
    let Span(length) = ttl;
    let allowed = 1..=MAX_TTL_SECONDS.unsigned_abs();
    let stands = length.subsec_nanos() == 0 && allowed.contains(&length.as_secs());
    (!stands).then(|| ConfigProblem::new(key, format!("is {ttl}"), "use whole seconds from 1s to 365d"))
}

fn span(seconds: i64) -> Span {
    Span::seconds(seconds.unsigned_abs())
}

/// A length of time that was found to be one of seconds.
pub(super) fn seconds(span: Span) -> i64 {
    i64::try_from(span.0.as_secs()).unwrap_or(i64::MAX)
}
