//! A request by id may say which scope it means, so that a service with one credential for many users cannot be led to
//! somebody else's entry.

use super::params::Params;
use super::{Code, Identifiers, Layer, Memory, members};
use crate::{Error, Result};

/// The scope that a request by id means.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Assertion {
    /// Its layer.
    pub layer: Option<Layer>,
    /// Its identifiers, and maybe more.
    pub identifiers: Identifiers,
}

impl Assertion {
    /// Reads the query parameters of a request by id.
    pub fn read(params: &[(String, String)]) -> Result<Self> {
        let params = Params::new(params)?;
        let identifiers = params.identifiers()?;
        let layer = params.one("layer")?.map(|word| {
            Layer::parse(word).ok_or_else(|| {
                Error::new(Code::InvalidLayer, "there is no such layer")
                    .with("layer", members::echo(&word.into()))
            })
        });
        Ok(Self { layer: layer.transpose()?, identifiers })
    }

    /// Whether an entry is in that scope. Identifiers that its layer does not need do not matter, as everywhere.
    pub fn holds(&self, memory: &Memory) -> bool {
        let scope = &memory.scope;
        self.layer.is_none_or(|layer| layer == scope.layer())
            && scope
                .named()
                .all(|(name, value)| self.identifiers.get(name).is_none_or(|asserted| asserted == value))
    }
}

#[cfg(test)]
mod tests;
