//! What a decay pass and a consolidation are asked to do.

use super::members::Members;
use super::{DecayRules, Identifiers, Layer, MemoryCaller, Rules, ScopeKey};
use crate::{Result, Timestamp};
use serde_json::Value;

/// A decay pass.
#[derive(Debug, Clone, PartialEq)]
pub struct DecayRequest {
    /// The scopes it visits; none is every scope of the tenant.
    pub scopes: Option<Vec<ScopeKey>>,
    /// The layers it visits.
    pub layers: Vec<Layer>,
    /// The time it looks from, if not now.
    pub as_of: Option<Timestamp>,
    /// Whether it only tells what it would do.
    pub dry_run: bool,
    /// The configured rules with what the request says instead.
    pub rules: DecayRules,
}

impl DecayRequest {
    /// Reads the body of a decay pass. Without identifiers it is for the whole tenant, and for admins.
    pub fn read(body: &Value, rules: &Rules, caller: &MemoryCaller) -> Result<Self> {
        let members = Members::body(body)?;
        let identifiers = Identifiers::read(members.get("identifiers"))?;
        let as_of = members.instant("asOf")?;
        let dry_run = members.flag("dryRun")?;
        let named = members.items("layers")?;
        let exempt = members.array("exemptLayers")?;
        let part =
            |name, configured| Ok::<_, crate::Error>(members.number(name, 0.0..=1.0)?.unwrap_or(configured));
        let decay = &rules.decay;
        let mut decay = DecayRules {
            enabled: decay.enabled,
            rate_per_day: part("ratePerDay", decay.rate_per_day)?,
            archive_threshold: part("archiveThreshold", decay.archive_threshold)?,
            decayed_below: part("decayedBelow", decay.decayed_below)?,
            exempt_layers: decay.exempt_layers.clone(),
        };

        if let Some(exempt) = exempt {
            decay.exempt_layers = rules.layers(exempt)?;
        }
        let named = named.map(|named| rules.layers(named)).transpose()?;
        if identifiers.is_empty() {
            caller.require_admin()?;
            let layers = named.unwrap_or_else(|| rules.enabled_layers.clone());
            return Ok(Self { scopes: None, layers, as_of, dry_run, rules: decay });
        }
        let layers = named.map_or_else(|| rules.accessible(&identifiers), Ok)?;
        let scopes = caller.scopes(&identifiers, &layers)?;
        layers.iter().try_for_each(|layer| caller.authorise_write(*layer))?;
        Ok(Self { scopes: Some(scopes), layers, as_of, dry_run, rules: decay })
    }
}

/// A consolidation of one scope.
#[derive(Debug, Clone, PartialEq)]
pub struct ConsolidateRequest {
    /// Whose.
    pub scope: ScopeKey,
    /// The raw cosine from which two entries may be the same.
    pub similarity_threshold: f64,
    /// Whether it only tells what it would do.
    pub dry_run: bool,
}

impl ConsolidateRequest {
    /// Reads the body of a consolidation.
    pub fn read(body: &Value, rules: &Rules, caller: &MemoryCaller) -> Result<Self> {
        let members = Members::body(body)?;
        let identifiers = Identifiers::read(members.get("identifiers"))?;
        let configured = rules.consolidation.similarity_threshold;
        let similarity_threshold = members.number("similarityThreshold", 0.0..=1.0)?.unwrap_or(configured);
        let dry_run = members.flag("dryRun")?;
        let layer = rules.layer(members.get("layer"))?;
        let scope = caller.writable_scope(&identifiers, layer)?;
        Ok(Self { scope, similarity_threshold, dry_run })
    }
}

#[cfg(test)]
mod tests;
