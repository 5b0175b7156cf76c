//! Who may name which scope, and who of those may see an entry.

use super::{Identifier, Identifiers, Layer, Memory};
use crate::identity::{Principal, Role, Tenant};
use crate::{Error, Result, UserId};

const NOT_FOR_USERS: &str = "this client may not act for users, only for projects, teams and above; \
    auth.trusted_clients lists those that may";

/// Who made an entry.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Author {
    /// The authenticated user, else the one the request named.
    pub user: Option<String>,
    /// The API-key client.
    pub client: Option<String>,
}

/// Which of those who have the scope may see an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Policy {
    /// Its author.
    Private,
    /// Its author, and those it names.
    Restricted,
    /// The members of the teams it names.
    Shared,
    /// Everybody who has the scope.
    Organization,
    /// Everybody who has the scope.
    Public,
}

impl Policy {
    /// Every policy.
    pub const ALL: [Self; 5] =
        [Self::Private, Self::Restricted, Self::Shared, Self::Organization, Self::Public];

    /// The contract's word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Private => "private",
            Self::Restricted => "restricted",
            Self::Shared => "shared",
            Self::Organization => "organization",
            Self::Public => "public",
        }
    }

    /// The policy a word stands for, in any letter case.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|policy| policy.as_str().eq_ignore_ascii_case(word))
    }
}

/// A policy with the lists it may need.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AccessPolicy {
    /// See [`Policy`].
    pub policy: Policy,
    /// For [`Policy::Restricted`].
    pub approved_users: Vec<String>,
    /// For [`Policy::Shared`]; without any it is as [`Policy::Organization`].
    pub allowed_teams: Vec<String>,
}

impl AccessPolicy {
    /// A policy without lists.
    pub fn new(policy: Policy) -> Self {
        Self { policy, approved_users: Vec::new(), allowed_teams: Vec::new() }
    }

    /// What entries of a layer have unless something else is said.
    pub fn default_in(layer: Layer) -> Self {
        Self::new(if layer.is_personal() { Policy::Private } else { Policy::Organization })
    }
}

/// Who looks at entries.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Viewer {
    /// The authenticated or asserted user, or the one a trusted client names.
    pub user: Option<String>,
    /// The API-key client.
    pub client: Option<String>,
    /// The request's `teamId`.
    pub team: Option<String>,
    /// Whether everything may be seen: a trusted client that names no user, on one entry by its id.
    pub all: bool,
}

impl Viewer {
    /// Whether an entry with this policy and author is visible.
    pub fn sees(&self, policy: &AccessPolicy, author: &Author) -> bool {
        if self.all {
            return true;
        }
        let made_it = || match &author.user {
            Some(user) => self.user.as_deref() == Some(user),
            // An entry without a user belongs to its client; one that was made anonymous has no owner.
            None => author.client.is_some() && author.client == self.client,
        };
        match policy.policy {
            Policy::Organization | Policy::Public => true,
            Policy::Private => made_it(),
            Policy::Restricted => {
                made_it() || self.user.as_ref().is_some_and(|user| policy.approved_users.contains(user))
            }
            Policy::Shared => {
                policy.allowed_teams.is_empty()
                    || self.team.as_ref().is_some_and(|team| policy.allowed_teams.contains(team))
            }
        }
    }
}

/// Somebody who calls the memories surface.
#[derive(Debug, Clone)]
pub struct MemoryCaller {
    tenant: Tenant,
    /// The user of the token, or the one that a trusted client asserts by `X-User-ID`.
    user: Option<String>,
    /// Whether the credential is a user's: then it may name itself only.
    bound: bool,
    client: Option<String>,
    trusted: bool,
    admin: bool,
    /// Who really called, for audit and idempotency.
    pub principal: String,
    /// The id of the request, for the audit trail.
    pub request_id: String,
    claims: Vec<Layer>,
    /// Whether it may only name itself as `agentId`.
    agent_bound: bool,
    /// Whether the request was taken off the quotas.
    charged: bool,
}

impl MemoryCaller {
    /// Brings a principal to the memories of its tenant.
    pub fn enter(principal: &Principal, request_id: String) -> Self {
        let own = principal.user.as_ref();
        Self {
            tenant: principal.tenant().clone(),
            user: own.or(principal.asserted_user.as_ref()).map(|user| user.as_str().to_owned()),
            bound: own.is_some(),
            client: principal.client.as_ref().map(|client| client.as_str().to_owned()),
            trusted: principal.trusted,
            admin: principal.roles.has(Role::Admin),
            principal: principal.name(),
            request_id,
            claims: Layer::ALL.to_vec(),
            agent_bound: false,
            charged: false,
        }
    }

    /// The same caller, allowed to write only in these shared layers (`memories.write_roles`).
    pub fn writing_in(mut self, layers: Vec<Layer>) -> Self {
        self.claims = layers;
        self
    }

    /// The same caller, which may only name its API-key client as `agentId` (`memories.bind_agent_id`).
    pub fn binding_agent(mut self, bound: bool) -> Self {
        self.agent_bound = bound;
        self
    }

    /// The same caller in a request that was taken off the quotas: what it does further is a step of that.
    pub fn charged(mut self) -> Self {
        self.charged = true;
        self
    }

    /// Whether the request was taken off the quotas.
    pub fn is_charged(&self) -> bool {
        self.charged
    }

    /// The service that called, for quotas: the client, or a user without one.
    pub fn service(&self) -> String {
        self.client.as_ref().map_or_else(|| self.principal.clone(), |client| format!("client:{client}"))
    }

    /// The tenant.
    pub fn tenant(&self) -> &Tenant {
        &self.tenant
    }

    /// The authenticated or asserted user.
    pub fn user(&self) -> Option<&str> {
        self.user.as_deref()
    }

    /// The API-key client.
    pub fn client(&self) -> Option<&str> {
        self.client.as_deref()
    }

    /// Whether it may act for any user of the tenant.
    pub fn is_trusted(&self) -> bool {
        self.trusted || self.admin
    }

    /// Whether it holds the admin role.
    pub fn is_admin(&self) -> bool {
        self.admin
    }

    /// Whether it acts for all users of its tenant at once. Who is a user acts for itself, unless it is an admin; who asserts one
    /// acts for that one, whatever it may do otherwise.
    pub fn acts_for_all(&self) -> bool {
        match self.user {
            None => self.is_trusted(),
            Some(_) => self.admin && self.bound,
        }
    }

    /// Refuses identifiers that this caller may not use.
    pub fn authorise(&self, identifiers: &Identifiers, layers: &[Layer]) -> Result<()> {
        self.check_company(identifiers)?;
        let agent = identifiers.get(Identifier::Agent);
        if self.agent_bound && agent.is_some() && agent != self.client() {
            return Err(Error::forbidden("agentId must be the client of your API key"));
        }
        if let Some(named) = identifiers.get(Identifier::User) {
            match &self.user {
                Some(own) if own == named => {}
                Some(_) if self.admin && self.bound => {}
                Some(_) if self.bound => {
                    return Err(Error::forbidden("you may name yourself only as userId"));
                }
                Some(_) => {
                    let message = "contradicts X-User-ID; leave one of them out, or make them agree";
                    return Err(Error::field("identifiers.userId", message));
                }
                None if self.is_trusted() => {}
                None if layers.iter().any(|layer| layer.is_personal()) => {
                    return Err(Error::forbidden(NOT_FOR_USERS));
                }
                None => {}
            }
        } else if self.user.is_none() && !self.is_trusted() && layers.iter().any(|layer| layer.is_personal())
        {
            return Err(Error::forbidden(NOT_FOR_USERS));
        }
        Ok(())
    }

    /// Refuses a `companyId` that is not the caller's tenant, wherever it is given.
    pub fn check_company(&self, identifiers: &Identifiers) -> Result<()> {
        match identifiers.get(Identifier::Company) {
            Some(company) if company != self.tenant.as_str() => {
                Err(Error::forbidden("companyId must be your own tenant"))
            }
            _ => Ok(()),
        }
    }

    /// Refuses to write in a layer that this caller may only read.
    pub fn authorise_write(&self, layer: Layer) -> Result<()> {
        if layer.is_personal() || self.admin || self.claims.contains(&layer) {
            return Ok(());
        }
        Err(Error::forbidden(format!("a role is required to write in the {} layer", layer.as_str())))
    }

    /// Requires the admin role.
    pub fn require_admin(&self) -> Result<()> {
        if self.admin {
            Ok(())
        } else {
            Err(Error::forbidden("the role admin is required for this operation"))
        }
    }

    /// The user a request is made for: the authenticated or asserted one, else the one its identifiers name.
    pub fn acting_user(&self, identifiers: &Identifiers) -> Option<UserId> {
        self.user.clone().or_else(|| identifiers.get(Identifier::User).map(str::to_owned)).map(UserId)
    }

    /// Who makes an entry with these identifiers.
    pub fn author(&self, identifiers: &Identifiers) -> Author {
        let user = self.acting_user(identifiers).map(|user| user.0);
        Author { user, client: self.client.clone() }
    }

    /// The user whom a request is for that names one, or none, as far as this caller may speak for that one.
    pub fn speaks_for(&self, named: Option<&str>) -> Option<String> {
        match &self.user {
            // An admin that names somebody else looks through that user's eyes. Others may not: a request by id names
            // users without being authorised to.
            Some(own) if self.admin && self.bound => Some(named.unwrap_or(own).to_owned()),
            Some(own) => Some(own.clone()),
            None if self.is_trusted() => named.map(str::to_owned),
            None => None,
        }
    }

    /// Who looks at lists and searches with these identifiers.
    pub fn viewer(&self, identifiers: &Identifiers) -> Viewer {
        let user = self.speaks_for(identifiers.get(Identifier::User));
        let team = identifiers.get(Identifier::Team).map(str::to_owned);
        Viewer { user, client: self.client.clone(), team, all: false }
    }

    /// Whether one entry may be reached by its id, with the identifiers that the request asserts.
    pub fn reaches(&self, memory: &Memory, asserted: &Identifiers) -> bool {
        if memory.scope.tenant() != &self.tenant {
            return false;
        }
        let owner = memory.scope.user();
        let own_scope = match (&self.user, owner) {
            (_, None) => true,
            (Some(user), Some(owner)) => user == owner || (self.admin && self.bound),
            (None, Some(_)) => self.is_trusted(),
        };
        let mut viewer = self.viewer(asserted);
        if viewer.user.is_none() {
            viewer.all = self.is_trusted();
        } else if self.admin && self.bound {
            viewer.all = true;
        }
        own_scope && viewer.sees(&memory.policy, &memory.created_by)
    }

    /// Whether the maker of an entry is shown.
    pub fn sees_author(&self, memory: &Memory) -> bool {
        self.is_trusted() || (self.user.is_some() && self.user == memory.created_by.user)
    }
}

#[cfg(test)]
mod tests;
