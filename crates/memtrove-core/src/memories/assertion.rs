//! A request by id may say which scope it means, so that a service with one credential for many users cannot be led to
//! another user's entry.

use super::{Identifiers, Layer, Memory};

/// The scope that a request by id means.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Assertion {
    /// Its layer.
    pub layer: Option<Layer>,
    /// Its identifiers, and maybe more.
    pub identifiers: Identifiers,
}

impl Assertion {
    /// Whether an entry is in that scope. Identifiers that its layer does not need do not matter, as everywhere.
    pub fn holds(&self, memory: &Memory) -> bool {
        let scope = &memory.scope;
        self.layer.is_none_or(|layer| layer == scope.layer())
            && scope
                .named()
                .all(|(name, value)| self.identifiers.get(name).is_none_or(|asserted| asserted == value))
    }
}
