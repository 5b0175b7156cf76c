//! Whose files.

use super::EventDigest;
use std::fmt;

/// One user of one tenant: whose files and events a call is about.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Scope {
    /// The tenant.
    pub tenant_id: String,
    /// The user.
    pub user_id: String,
}

impl Scope {
    /// A user of a tenant.
    pub fn new(tenant_id: impl Into<String>, user_id: impl Into<String>) -> Self {
        Self { tenant_id: tenant_id.into(), user_id: user_id.into() }
    }

    /// An event of this user, with what every event needs.
    pub fn event(&self, event_id: impl Into<String>, digest: impl Into<String>) -> EventDigest {
        EventDigest {
            event_id: event_id.into(),
            tenant_id: self.tenant_id.clone(),
            user_id: self.user_id.clone(),
            service_id: None,
            timestamp: None,
            source_type: None,
            digest: digest.into(),
            keywords: Vec::new(),
            project_ids: Vec::new(),
            evidence: None,
            extra: serde_json::Map::new(),
        }
    }

    /// What the address of an operation on this scope needs.
    pub(crate) fn names(&self) -> [&str; 2] {
        [&self.tenant_id, &self.user_id]
    }

    /// The same and one name more.
    pub(super) fn names_with<'a>(&'a self, name: &'a str) -> [&'a str; 3] {
        [&self.tenant_id, &self.user_id, name]
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.tenant_id, self.user_id)
    }
}
