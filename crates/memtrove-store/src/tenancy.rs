//! For whom a unit of work runs.

use memtrove_core::identity::Tenant;

/// Says by name that a unit of work is for every tenant: background jobs, migrations, start-up, `doctor`, archives of a whole
/// store. A request of a caller names its tenant instead; docs/decisions.md lists the few that cannot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AllTenants;

/// Whose rows a unit of work sees and writes. An engine with policies enforces it; the conditions of every statement say it
/// again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TenantScope {
    /// Those of one tenant, and those that belong to none.
    One(Tenant),
    /// Everybody's.
    All,
}

impl TenantScope {
    /// The tenant, where it is one.
    pub fn tenant(&self) -> Option<&Tenant> {
        match self {
            TenantScope::One(tenant) => Some(tenant),
            TenantScope::All => None,
        }
    }
}

impl From<AllTenants> for TenantScope {
    fn from(_: AllTenants) -> Self {
        TenantScope::All
    }
}

impl From<Tenant> for TenantScope {
    fn from(tenant: Tenant) -> Self {
        TenantScope::One(tenant)
    }
}

impl From<&Tenant> for TenantScope {
    fn from(tenant: &Tenant) -> Self {
        TenantScope::One(tenant.clone())
    }
}

/// Work that an operator may want for one tenant or for the whole store.
impl From<Option<Tenant>> for TenantScope {
    fn from(tenant: Option<Tenant>) -> Self {
        tenant.map_or(TenantScope::All, TenantScope::from)
    }
}
