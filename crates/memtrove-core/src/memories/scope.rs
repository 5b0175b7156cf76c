//! A scope: tenant, layer and exactly the identifiers the layer requires. Everything that reads or writes entries takes one.

use super::{Identifier, Identifiers, Layer};
use crate::Result;
use crate::identity::Tenant;
use sha2::{Digest, Sha256};
use std::fmt;

/// The scope of an entry. Only [`resolve`], [`resolve_one`] and [`ScopeKey::listed`] make one.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct ScopeKey {
    tenant: Tenant,
    layer: Layer,
    /// The required identifiers' values, in the order of the matrix.
    values: Vec<String>,
    hash: ScopeHash,
}

/// What stands for a scope in keys and cursors: the whole SHA-256 of its parts, each with its length.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ScopeHash(pub [u8; 32]);

/// Makes the scopes of layers, in the order given, from the identifiers of a request.
pub fn resolve(tenant: &Tenant, identifiers: &Identifiers, layers: &[Layer]) -> Result<Vec<ScopeKey>> {
    identifiers.require(layers)?;
    Ok(layers.iter().map(|layer| ScopeKey::new(tenant, *layer, identifiers)).collect())
}

/// Makes the scope of one layer from the identifiers of a request.
pub fn resolve_one(tenant: &Tenant, identifiers: &Identifiers, layer: Layer) -> Result<ScopeKey> {
    identifiers.require(&[layer])?;
    Ok(ScopeKey::new(tenant, layer, identifiers))
}

impl ScopeKey {
    fn new(tenant: &Tenant, layer: Layer, identifiers: &Identifiers) -> Self {
        let value = |identifier: &Identifier| identifiers.get(*identifier).unwrap_or_default().to_owned();
        Self::of(tenant.clone(), layer, layer.required().iter().map(value).collect())
    }

    fn of(tenant: Tenant, layer: Layer, values: Vec<String>) -> Self {
        let mut hasher = Sha256::new();
        let mut part = |bytes: &[u8]| {
            hasher.update((bytes.len() as u64).to_be_bytes());
            hasher.update(bytes);
        };
        part(tenant.as_str().as_bytes());
        part(&[layer.precedence()]);
        values.iter().for_each(|value| part(value.as_bytes()));
        let hash = ScopeHash(hasher.finalize().into());
        Self { tenant, layer, values, hash }
    }

    /// A scope that the store itself listed, for what the store found by an entry's id and for background jobs. `values` are
    /// the layer's required identifiers; `None` if they are not as many.
    pub fn listed(tenant: Tenant, layer: Layer, values: Vec<String>) -> Option<Self> {
        (values.len() == layer.required().len()).then(|| Self::of(tenant, layer, values))
    }

    /// The tenant.
    pub fn tenant(&self) -> &Tenant {
        &self.tenant
    }

    /// The layer.
    pub fn layer(&self) -> Layer {
        self.layer
    }

    /// What stands for it.
    pub fn hash(&self) -> ScopeHash {
        self.hash
    }

    /// The required identifiers' values, in the order of the matrix.
    pub fn values(&self) -> &[String] {
        &self.values
    }

    /// One of its identifiers.
    pub fn get(&self, identifier: Identifier) -> Option<&str> {
        self.named().find(|(name, _)| *name == identifier).map(|(_, value)| value)
    }

    /// Its identifiers with their names: exactly the required ones.
    pub fn named(&self) -> impl Iterator<Item = (Identifier, &str)> {
        self.layer.required().iter().copied().zip(self.values.iter().map(String::as_str))
    }

    /// The user it belongs to, in personal layers.
    pub fn user(&self) -> Option<&str> {
        self.get(Identifier::User)
    }

    /// Its identifiers as those of a request.
    pub fn identifiers(&self) -> Identifiers {
        let mut identifiers = Identifiers::default();
        for (name, value) in self.named() {
            // They were checked when they came in.
            let _ = identifiers.set(name, name.as_str(), value);
        }
        identifiers
    }
}

impl fmt::Debug for ScopeKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {:?} of {}", self.layer.as_str(), self.values, self.tenant.as_str())
    }
}

impl fmt::Debug for ScopeHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

#[cfg(test)]
mod tests;
