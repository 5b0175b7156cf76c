//! What an operator sets for the memories surface, with the contract's defaults.

use super::add::check_length;
use super::{Code, Kind, Layer};
use crate::recall::relevance::DEFAULT_THRESHOLD;
use crate::{Error, Result};
use serde_json::Value;

/// The most tags of an entry.
pub const MAX_TAGS: usize = 64;
/// The longest tag, in characters.
pub const MAX_TAG_CHARS: usize = 128;
/// How deep metadata may be nested; the object itself is the first level.
pub const MAX_METADATA_DEPTH: usize = 64;
/// The longest cursor.
pub const MAX_CURSOR_LENGTH: usize = 512;
/// The longest `Idempotency-Key`.
pub const MAX_IDEMPOTENCY_KEY_LENGTH: usize = 128;
/// The longest time to live, in seconds: a year.
pub const MAX_TTL_SECONDS: i64 = 31_536_000;
/// The longest field of a fact, in characters.
pub const MAX_FACT_FIELD_CHARS: usize = 1024;
/// The longest `conflictKey`, in characters.
pub const MAX_CONFLICT_KEY_CHARS: usize = 255;
/// The most users or teams that an access policy may name.
pub const MAX_POLICY_NAMES: usize = 1000;

/// How much of everything there may be. Lengths count characters unless they say bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// `maxContentLength`
    pub content_length: usize,
    /// `maxQueryLength`
    pub query_length: usize,
    /// `maxMetadataBytes`, as compact JSON.
    pub metadata_bytes: usize,
    /// `maxSearchLimit`
    pub search_limit: usize,
    /// `maxListLimit`
    pub list_limit: usize,
    /// `maxFactLimit`
    pub fact_limit: usize,
    /// `maxBulkAdd`
    pub bulk_add: usize,
    /// `maxBulkDelete`
    pub bulk_delete: usize,
    /// `maxBodyBytes`
    pub body_bytes: usize,
    /// The most working entries of a scope; beyond that the ones used longest ago go.
    pub working_entries: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            content_length: 100_000,
            query_length: 8_192,
            metadata_bytes: 65_536,
            search_limit: 100,
            list_limit: 100,
            fact_limit: 1_000,
            bulk_add: 500,
            bulk_delete: 1_000,
            body_bytes: 20 * 1024 * 1024,
            working_entries: 10_000,
        }
    }
}

/// When entries fade.
#[derive(Debug, Clone, PartialEq)]
pub struct DecayRules {
    /// Whether the daily job runs, and whether reads show what has faded.
    pub enabled: bool,
    /// The part of its relevance that an entry loses in a day.
    pub rate_per_day: f64,
    /// Below it an entry is archived.
    pub archive_threshold: f64,
    /// Below it an entry counts as decayed.
    pub decayed_below: f64,
    /// The layers where nothing fades.
    pub exempt_layers: Vec<Layer>,
}

impl Default for DecayRules {
    fn default() -> Self {
        Self {
            enabled: false,
            rate_per_day: 0.01,
            archive_threshold: 0.1,
            decayed_below: 0.5,
            exempt_layers: vec![Layer::Org, Layer::Company],
        }
    }
}

/// When similar entries of a scope are merged.
#[derive(Debug, Clone, PartialEq)]
pub struct ConsolidationRules {
    /// Whether an add may start it.
    pub enabled: bool,
    /// The raw cosine from which two entries may be the same.
    pub similarity_threshold: f64,
    /// The number of entries beyond which an add starts it.
    pub max_memories_before_trigger: usize,
    /// The layers where an add may start it.
    pub target_layers: Vec<Layer>,
}

impl Default for ConsolidationRules {
    fn default() -> Self {
        Self {
            enabled: false,
            similarity_threshold: 0.95,
            max_memories_before_trigger: 1_000,
            target_layers: vec![Layer::Agent, Layer::User, Layer::Session],
        }
    }
}

/// What happens at the end of a session.
#[derive(Debug, Clone, PartialEq)]
pub struct SessionRules {
    /// Whether what is not promoted goes.
    pub auto_delete: bool,
    /// How long it stays then.
    pub retention_seconds: i64,
    /// Whether what matters is copied to the user layer.
    pub promote_important: bool,
    /// From which score something matters.
    pub promotion_threshold: f64,
}

impl Default for SessionRules {
    fn default() -> Self {
        Self {
            auto_delete: false,
            retention_seconds: 7 * 86_400,
            promote_important: true,
            promotion_threshold: 0.8,
        }
    }
}

/// Everything that decides how a request is read.
#[derive(Debug, Clone, PartialEq)]
pub struct Rules {
    /// See [`Limits`].
    pub limits: Limits,
    /// The layers there are, strongest first; any other is refused.
    pub enabled_layers: Vec<Layer>,
    /// How long working entries live that do not say.
    pub working_ttl_seconds: i64,
    /// How long session entries live that do not say.
    pub session_ttl_seconds: i64,
    /// How many results a search returns that does not say.
    pub search_limit: usize,
    /// The least score of a result where a search does not say.
    pub search_threshold: f64,
    /// How many entries a page has that does not say.
    pub list_limit: usize,
    /// How many facts a page has that does not say.
    pub fact_limit: usize,
    /// See [`DecayRules`].
    pub decay: DecayRules,
    /// See [`ConsolidationRules`].
    pub consolidation: ConsolidationRules,
    /// See [`SessionRules`].
    pub session: SessionRules,
}

impl Default for Rules {
    fn default() -> Self {
        Self {
            limits: Limits::default(),
            enabled_layers: Layer::ALL.to_vec(),
            working_ttl_seconds: 3_600,
            session_ttl_seconds: 3_600,
            search_limit: 10,
            search_threshold: DEFAULT_THRESHOLD,
            list_limit: 50,
            fact_limit: 100,
            decay: DecayRules::default(),
            consolidation: ConsolidationRules::default(),
            session: SessionRules::default(),
        }
    }
}

impl Rules {
    /// How long an entry of a kind lives that does not say.
    pub fn default_ttl(&self, kind: Kind) -> Option<i64> {
        match kind {
            Kind::Working => Some(self.working_ttl_seconds),
            Kind::Session => Some(self.session_ttl_seconds),
            _ => None,
        }
    }

    /// Refuses a layer that is switched off.
    pub fn check_layer(&self, layer: Layer) -> Result<()> {
        if self.enabled_layers.contains(&layer) {
            return Ok(());
        }
        Err(self.no_such_layer(layer.as_str().into()))
    }

    /// The refusal of what is none of these.
    pub fn no_such_layer(&self, given: Value) -> Error {
        let names: Vec<&str> = self.enabled_layers.iter().map(|layer| layer.as_str()).collect();
        let message = format!("the layer must be one of {}", names.join(", "));
        Error::new(Code::InvalidLayer, message).with("layer", given)
    }

    /// Refuses a query that is too long.
    pub fn check_query(&self, query: &str) -> Result<()> {
        check_length(Code::QueryTooLong, query, self.limits.query_length)
    }
}

#[cfg(test)]
mod tests;
