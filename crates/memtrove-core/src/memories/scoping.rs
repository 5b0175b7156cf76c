//! From the identifiers of a request to the scopes its caller may use: what they name first, then whether that is allowed.

use super::scope::resolve_one;
use super::{Code, Identifier, Identifiers, Layer, MemoryCaller, Rules, ScopeKey, resolve};
use crate::{Error, Result};
use serde_json::Value;

impl MemoryCaller {
    /// The scopes that these identifiers name in these layers.
    pub fn scopes(&self, identifiers: &Identifiers, layers: &[Layer]) -> Result<Vec<ScopeKey>> {
        let scopes = resolve(self.tenant(), identifiers, layers)?;
        self.authorise(identifiers, layers)?;
        Ok(scopes)
    }

    /// The scope that these identifiers name in one layer.
    pub fn scope(&self, identifiers: &Identifiers, layer: Layer) -> Result<ScopeKey> {
        let scope = resolve_one(self.tenant(), identifiers, layer)?;
        self.authorise(identifiers, &[layer])?;
        Ok(scope)
    }

    /// The scope that these identifiers name in one layer, to write there.
    pub fn writable_scope(&self, identifiers: &Identifiers, layer: Layer) -> Result<ScopeKey> {
        let scope = self.scope(identifiers, layer)?;
        self.authorise_write(layer)?;
        Ok(scope)
    }
}

impl Rules {
    /// The layers that a request names, or else those that its identifiers open, strongest first.
    pub fn wanted_layers(&self, named: Option<Vec<Layer>>, identifiers: &Identifiers) -> Result<Vec<Layer>> {
        match named {
            None => self.accessible(identifiers),
            Some(named) => self.in_order(named),
        }
    }

    /// Layers that are switched on: each once, strongest first.
    pub fn in_order(&self, mut layers: Vec<Layer>) -> Result<Vec<Layer>> {
        layers.iter().try_for_each(|layer| self.check_layer(*layer))?;
        layers.sort_unstable();
        layers.dedup();
        Ok(layers)
    }

    /// The layers that these identifiers open, strongest first, for a request that names none.
    pub fn accessible(&self, identifiers: &Identifiers) -> Result<Vec<Layer>> {
        let mut layers = identifiers.accessible();
        layers.retain(|layer| self.enabled_layers.contains(layer));
        if layers.is_empty() {
            let all: Value = Identifier::ALL.iter().map(|identifier| identifier.as_str()).collect();
            let message = "these identifiers open no layer; give at least one that a layer needs";
            return Err(Error::new(Code::MissingIdentifier, message).with("missing", all));
        }
        Ok(layers)
    }
}

#[cfg(test)]
mod tests;
