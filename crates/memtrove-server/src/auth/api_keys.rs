//! API keys: which client a key belongs to.

use super::config::{AuthConfig, key_digest};
use memtrove_core::identity::VerifiedClient;
use std::collections::HashMap;

/// The configured keys, as SHA-256 digests only: a core dump or a debug print gives nothing away, and a lookup by
/// digest takes the same time whether or not a guess was close.
#[derive(Debug)]
pub(super) struct ApiKeys {
    clients: HashMap<[u8; 32], VerifiedClient>,
}

impl ApiKeys {
    pub(super) fn new(config: &AuthConfig) -> Self {
        let clients = config.api_keys.iter().flat_map(|(id, entry)| {
            entry.keys.iter().map(move |key| {
                let client = VerifiedClient { id: id.clone(), tenant: entry.tenant.clone() };
                (key_digest(key.expose().as_bytes()), client)
            })
        });
        Self { clients: clients.collect() }
    }

    /// The client this key belongs to.
    pub(super) fn find(&self, key: &[u8]) -> Option<&VerifiedClient> {
        if self.clients.is_empty() {
            return None;
        }
        self.clients.get(&key_digest(key))
    }
}
