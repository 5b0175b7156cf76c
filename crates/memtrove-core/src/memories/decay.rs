//! How memories fade. Relevance is a function of what is stored and of the time, never multiplied into what is stored: so
//! a pass may run twice, or hourly instead of daily, and finds the same.

use super::limits::DecayRules;
use super::{Kind, Layer, Memory, State};
use crate::Timestamp;

const DAY_MICROS: f64 = 86_400_000_000.0;

/// What of an entry its relevance depends on: little enough to be kept for each entry of an index.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Fading {
    /// The relevance it began with.
    pub initial: f64,
    /// How much faster than others it fades; 0 if it never does.
    pub factor: f64,
    /// Since when.
    pub anchor: Timestamp,
}

impl Fading {
    /// How an entry fades. Those that expire do not, nor do pointers: their source rules.
    pub fn of(memory: &Memory) -> Self {
        let lasts = memory.kind.expires() || memory.is_pointer();
        Self {
            initial: memory.number("relevance").unwrap_or(1.0),
            factor: if lasts { 0.0 } else { memory.number("decayFactor").unwrap_or(1.0) },
            anchor: memory.anchor,
        }
    }
}

/// What a pass finds about one entry.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Judgement {
    /// Its relevance at the time of the pass.
    pub relevance: f64,
    /// The state it is to have.
    pub state: State,
}

impl DecayRules {
    /// The relevance of an entry at a time.
    pub fn relevance(&self, layer: Layer, fading: &Fading, at: Timestamp) -> f64 {
        if self.exempt_layers.contains(&layer) {
            return fading.initial;
        }
        let rate = (self.rate_per_day * fading.factor).min(1.0);
        let micros = at.as_micros().saturating_sub(fading.anchor.as_micros()).max(0);
        fading.initial * (1.0 - rate).powf(micros as f64 / DAY_MICROS)
    }

    /// The relevance that reads show: the initial one while nothing fades by itself.
    pub fn shown(&self, layer: Layer, fading: &Fading, now: Timestamp) -> f64 {
        if self.enabled { self.relevance(layer, fading, now) } else { fading.initial }
    }

    /// What a pass at a time makes of an entry; `None` if the entry is exempt. One that has no embedding goes back to
    /// [`State::Created`] where others become active.
    pub fn judge(&self, memory: &Memory, is_embedded: bool, at: Timestamp) -> Option<Judgement> {
        let (layer, fading) = (memory.scope.layer(), Fading::of(memory));
        if memory.kind == Kind::Archival || fading.factor == 0.0 || self.exempt_layers.contains(&layer) {
            return None;
        }
        let relevance = self.relevance(layer, &fading, at);
        let state = if relevance < self.archive_threshold {
            State::Archived
        } else if relevance < self.decayed_below {
            State::Decayed
        } else if is_embedded {
            State::Active
        } else {
            State::Created
        };
        Some(Judgement { relevance, state })
    }
}

#[cfg(test)]
mod tests;
