//! What a decay pass and a consolidation are asked to do.

use super::add::check_share;
use super::{DecayRules, Identifiers, Layer, MemoryCaller, Rules, ScopeKey};
use crate::{Error, Result, Timestamp};

/// A decay pass, as somebody asks for it; what is not said is as configured.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct DecayRequest {
    /// What the scopes are named by; without any it is for the whole tenant, and for admins.
    pub identifiers: Identifiers,
    /// The layers it visits; those that the identifiers open, or all, unless said.
    pub layers: Option<Vec<Layer>>,
    /// The time it looks from, if not now.
    pub as_of: Option<Timestamp>,
    /// Whether it only tells what it would do.
    pub dry_run: bool,
    /// The part of its relevance that an entry loses in a day.
    pub rate_per_day: Option<f64>,
    /// Below it an entry is archived.
    pub archive_threshold: Option<f64>,
    /// Below it an entry counts as decayed.
    pub decayed_below: Option<f64>,
    /// The layers where nothing fades.
    pub exempt_layers: Option<Vec<Layer>>,
}

/// A decay pass that may be made.
#[derive(Debug, Clone, PartialEq)]
pub struct Decay {
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
    /// The pass that may be made.
    pub fn check(self, rules: &Rules, caller: &MemoryCaller) -> Result<Decay> {
        let configured = &rules.decay;
        let share = |name, share, configured| Ok::<_, Error>(check_share(name, share)?.unwrap_or(configured));
        let decay = DecayRules {
            enabled: configured.enabled,
            rate_per_day: share("ratePerDay", self.rate_per_day, configured.rate_per_day)?,
            archive_threshold: share(
                "archiveThreshold",
                self.archive_threshold,
                configured.archive_threshold,
            )?,
            decayed_below: share("decayedBelow", self.decayed_below, configured.decayed_below)?,
            exempt_layers: match self.exempt_layers {
                Some(layers) => rules.in_order(layers)?,
                None => configured.exempt_layers.clone(),
            },
        };
        let Self { identifiers, as_of, dry_run, .. } = self;
        let named = self.layers.map(|layers| rules.in_order(layers)).transpose()?;
        if identifiers.is_empty() {
            caller.require_admin()?;
            let layers = named.unwrap_or_else(|| rules.enabled_layers.clone());
            return Ok(Decay { scopes: None, layers, as_of, dry_run, rules: decay });
        }
        let layers = rules.wanted_layers(named, &identifiers)?;
        let scopes = caller.scopes(&identifiers, &layers)?;
        layers.iter().try_for_each(|layer| caller.authorise_write(*layer))?;
        Ok(Decay { scopes: Some(scopes), layers, as_of, dry_run, rules: decay })
    }
}

/// A consolidation of one scope, as somebody asks for it.
#[derive(Debug, Clone, PartialEq)]
pub struct ConsolidateRequest {
    /// Whose.
    pub layer: Layer,
    /// What the scope is named by, and maybe more.
    pub identifiers: Identifiers,
    /// The raw cosine from which two entries may be the same, if not the configured one.
    pub similarity_threshold: Option<f64>,
    /// Whether it only tells what it would do.
    pub dry_run: bool,
}

/// A consolidation that may be made.
#[derive(Debug, Clone, PartialEq)]
pub struct Consolidation {
    /// Whose.
    pub scope: ScopeKey,
    /// The raw cosine from which two entries may be the same.
    pub similarity_threshold: f64,
    /// Whether it only tells what it would do.
    pub dry_run: bool,
}

impl ConsolidateRequest {
    /// The consolidation that may be made.
    pub fn check(self, rules: &Rules, caller: &MemoryCaller) -> Result<Consolidation> {
        let threshold = check_share("similarityThreshold", self.similarity_threshold)?;
        rules.check_layer(self.layer)?;
        Ok(Consolidation {
            scope: caller.writable_scope(&self.identifiers, self.layer)?,
            similarity_threshold: threshold.unwrap_or(rules.consolidation.similarity_threshold),
            dry_run: self.dry_run,
        })
    }
}
