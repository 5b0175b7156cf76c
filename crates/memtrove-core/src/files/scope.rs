//! Who may act on whose files.

use crate::identity::{Principal, Role, Tenant};
use crate::{Error, Result, UserId};

/// What a call on a scope needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileRole {
    /// Reading files, events and assembled context.
    Reader,
    /// Changing them.
    Writer,
    /// Reading the audit trail.
    Auditor,
}

impl FileRole {
    /// The contract's word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            FileRole::Reader => "reader",
            FileRole::Writer => "writer",
            FileRole::Auditor => "auditor",
        }
    }
}

/// One user of one tenant. Only [`ScopedCaller::enter`] and [`Scope::listed`] make one.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Scope {
    tenant: Tenant,
    user: UserId,
}

impl Scope {
    /// The tenant.
    pub fn tenant(&self) -> &Tenant {
        &self.tenant
    }

    /// The user.
    pub fn user(&self) -> &UserId {
        &self.user
    }

    /// A scope that the store itself listed, for background jobs that visit every one.
    pub fn listed(tenant: Tenant, user: UserId) -> Self {
        Self { tenant, user }
    }
}

/// The actor of a caller that names none and has none.
pub const UNKNOWN_SERVICE: &str = "unknown-service";
const MAX_SERVICE_ID_CHARS: usize = 128;

/// Somebody who may act on a scope.
#[derive(Debug, Clone)]
pub struct ScopedCaller {
    /// Whose files.
    pub scope: Scope,
    /// Who acts, as the caller says: what `updated_by` shows.
    pub actor: String,
    /// Who really called.
    pub principal: String,
    /// The service that called, for quotas: the client, or a user without one.
    pub service: String,
    /// The id of the request, for the audit trail.
    pub request_id: String,
    /// Whether it may act on this user at all; an auditor may read its trail all the same.
    acts: bool,
    reader: bool,
    writer: bool,
    auditor: bool,
    may_forget: bool,
    admin: bool,
}

impl ScopedCaller {
    /// Brings a principal to a user of its tenant: a client acts on every one, a user on itself, an admin on all, and an
    /// auditor looks at all.
    pub fn enter(
        principal: &Principal,
        user: String,
        service_id: Option<&str>,
        request_id: String,
    ) -> Result<Self> {
        let roles = principal.roles;
        let speaks_for = principal.user.as_ref().or(principal.asserted_user.as_ref());
        let acts = speaks_for.is_none_or(|own| own.as_str() == user) || roles.has(Role::Admin);
        let service_id = service_id.map(str::trim).filter(|id| !id.is_empty());
        if service_id.is_some_and(|id| id.chars().count() > MAX_SERVICE_ID_CHARS) {
            let message = format!("must have at most {MAX_SERVICE_ID_CHARS} characters");
            return Err(Error::invalid("X-Service-Id", message));
        }
        let client = principal.client.as_ref().map(|client| client.as_str());
        Ok(Self {
            scope: Scope { tenant: principal.tenant().clone(), user: UserId(user) },
            actor: service_id.or(client).unwrap_or(UNKNOWN_SERVICE).to_owned(),
            service: client.map_or_else(|| principal.name(), |client| format!("client:{client}")),
            principal: principal.name(),
            request_id,
            acts,
            reader: acts && roles.reader,
            writer: acts && roles.writer,
            may_forget: acts && (speaks_for.is_some() || principal.trusted || roles.has(Role::Admin)),
            auditor: roles.has(Role::Auditor) || (acts && roles.scope_auditor),
            admin: roles.has(Role::Admin),
        })
    }

    /// Whether it is an admin of the tenant.
    pub fn is_admin(&self) -> bool {
        self.admin
    }

    /// Whether the user itself calls, without a service in between.
    pub fn acts_for_itself(&self) -> bool {
        self.principal.strip_prefix("user:") == Some(self.scope.user.as_str())
    }

    /// Requires the right to forget the user. It takes conversations along, which a client may not even read unless it
    /// is trusted to speak for the user.
    pub fn require_to_forget(&self) -> Result<()> {
        self.require(FileRole::Writer)?;
        if self.may_forget {
            return Ok(());
        }
        Err(Error::forbidden("only the user itself, a trusted client or an admin may forget a user"))
    }

    /// Requires a role.
    pub fn require(&self, role: FileRole) -> Result<()> {
        let held = match role {
            FileRole::Reader => self.reader,
            FileRole::Writer => self.writer,
            FileRole::Auditor => self.auditor,
        };
        if held {
            return Ok(());
        }
        if !self.acts {
            return Err(Error::forbidden("you may act on your own files only"));
        }
        Err(Error::forbidden(format!("the role {} is required for this operation", role.as_str())))
    }
}
