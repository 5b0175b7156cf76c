//! Who is calling, for which tenant, with which roles.
//!
//! The transport verifies credentials (a signature, a key's digest); [`resolve`] decides what they are worth. It is the
//! only place that can make a [`Tenant`], and every query takes one, so a forgotten tenant does not compile.

use crate::{ClientId, Error, Result, UserId};
use std::collections::HashSet;

/// The longest user id, in characters.
pub const MAX_USER_ID_CHARS: usize = 255;
const MAX_TENANT_BYTES: usize = 256;

/// The tenant a request runs in. Only [`resolve`] and [`Tenant::listed`] make one.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Tenant(String);

impl Tenant {
    /// The tenant as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// A tenant name that the store itself listed, for background jobs that visit every tenant.
    pub fn listed(name: String) -> Self {
        Self(name)
    }
}

/// Rights beyond membership. `admin` implies the other two.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// May change anything in its tenant.
    Admin,
    /// May read anything in its tenant.
    Auditor,
    /// May index entries.
    Indexer,
}

impl Role {
    /// The contract's word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Role::Admin => "admin",
            Role::Auditor => "auditor",
            Role::Indexer => "indexer",
        }
    }
}

/// The roles a principal holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Roles {
    /// See [`Role::Admin`].
    pub admin: bool,
    /// See [`Role::Auditor`].
    pub auditor: bool,
    /// See [`Role::Indexer`].
    pub indexer: bool,
    /// May read the files of the scopes it may act on.
    pub reader: bool,
    /// May change the files of the scopes it may act on.
    pub writer: bool,
    /// May read the audit trail of the scopes it may act on.
    pub scope_auditor: bool,
}

impl Roles {
    /// Whether this role is held, directly or through admin.
    pub fn has(self, role: Role) -> bool {
        self.admin
            || match role {
                Role::Admin => false,
                Role::Auditor => self.auditor,
                Role::Indexer => self.indexer,
            }
    }
}

/// A user whose token was verified.
#[derive(Debug, Clone, Default)]
pub struct VerifiedUser {
    /// The user id.
    pub id: String,
    /// The tenant the token is bound to, if it names one.
    pub tenant: Option<String>,
    /// The values found at the configured role claims.
    pub role_values: Vec<String>,
}

/// A client whose API key was verified.
#[derive(Debug, Clone, Default)]
pub struct VerifiedClient {
    /// The client id the key belongs to.
    pub id: String,
    /// The tenant the key is bound to, if any.
    pub tenant: Option<String>,
}

/// What a request presented, after verification and before any decision.
#[derive(Debug, Clone, Default)]
pub struct Credentials {
    /// From the bearer token.
    pub user: Option<VerifiedUser>,
    /// From the API key.
    pub client: Option<VerifiedClient>,
    /// From `X-User-ID`: a claim that only a trusted client may make.
    pub asserted_user: Option<String>,
    /// From `X-Tenant-Id`: likewise.
    pub asserted_tenant: Option<String>,
}

/// Which clients may speak for users and choose a tenant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Trust {
    /// Every client with an API key (local mode).
    EveryClient,
    /// These client ids, exactly.
    Clients(HashSet<String>),
}

/// Who holds one role.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RoleGrant {
    /// Users by id.
    pub users: HashSet<String>,
    /// API-key clients by id.
    pub clients: HashSet<String>,
    /// Values at the configured role claims of a token.
    pub claim_values: HashSet<String>,
}

/// The deployment's decisions about identity.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdentityPolicy {
    /// The tenant of a caller that is bound to none and chooses none.
    pub default_tenant: String,
    /// See [`Trust`].
    pub trust: Trust,
    /// Who is admin.
    pub admin: RoleGrant,
    /// Who is auditor.
    pub auditor: RoleGrant,
    /// Who is indexer.
    pub indexer: RoleGrant,
    /// Who may read files; everybody unless somebody is named.
    pub reader: Option<RoleGrant>,
    /// Who may change files; everybody unless somebody is named.
    pub writer: Option<RoleGrant>,
}

/// Somebody who presented valid credentials: a user, a client, or both.
#[derive(Debug, Clone)]
pub struct Principal {
    tenant: Tenant,
    /// The user of the token, if there was one.
    pub user: Option<UserId>,
    /// The user a trusted client speaks for; never holds that user's roles.
    pub asserted_user: Option<UserId>,
    /// The client of the API key, if there was one.
    pub client: Option<ClientId>,
    /// Whether that client may speak for every user.
    pub trusted: bool,
    /// What the token's user and the key's client hold.
    pub roles: Roles,
}

impl Principal {
    /// The tenant this principal acts in.
    pub fn tenant(&self) -> &Tenant {
        &self.tenant
    }

    /// Who this is, for the audit trail and for quotas: `client:robot`, `user:alice`, or both.
    pub fn name(&self) -> String {
        match (&self.client, &self.user) {
            (Some(client), Some(user)) => format!("client:{client} user:{user}"),
            (Some(client), None) => format!("client:{client}"),
            (None, Some(user)) => format!("user:{user}"),
            (None, None) => "nobody".to_owned(),
        }
    }

    /// Requires a role, for admin and indexer endpoints.
    pub fn require(&self, role: Role) -> Result<()> {
        if self.roles.has(role) {
            return Ok(());
        }
        Err(Error::forbidden(match role {
            Role::Admin => "Admin role required for this operation",
            Role::Auditor => "Auditor or admin role required for this operation",
            Role::Indexer => "Indexer or admin role required for this operation",
        }))
    }

    /// The user this principal acts as on user endpoints.
    pub fn into_caller(self) -> Result<Caller> {
        let user = self.user.or(self.asserted_user).ok_or(Error::UNAUTHORIZED)?;
        Ok(Caller { tenant: self.tenant, user, client: self.client })
    }
}

/// A user, acting directly or through an agent: what every user endpoint needs.
#[derive(Debug, Clone)]
pub struct Caller {
    tenant: Tenant,
    /// The effective user: membership is always checked for this one.
    pub user: UserId,
    /// The agent, when an API key was presented.
    pub client: Option<ClientId>,
}

impl Caller {
    /// The tenant this caller acts in.
    pub fn tenant(&self) -> &Tenant {
        &self.tenant
    }
}

/// Decides who is calling.
///
/// A tenant bound to a credential wins and cannot be contradicted; an unbound trusted client or admin may choose one
/// with `X-Tenant-Id`; everybody else is in the default tenant.
pub fn resolve(credentials: Credentials, policy: &IdentityPolicy) -> Result<Principal> {
    let Credentials { user, client, asserted_user, asserted_tenant } = credentials;
    if user.is_none() && client.is_none() {
        return Err(Error::UNAUTHORIZED);
    }
    if user.as_ref().is_some_and(|user| !is_user_id(&user.id)) {
        return Err(Error::UNAUTHORIZED);
    }
    let trusted = client.as_ref().is_some_and(|client| match &policy.trust {
        Trust::EveryClient => true,
        Trust::Clients(ids) => ids.contains(&client.id),
    });
    let holds = |grant: &RoleGrant| {
        user.as_ref().is_some_and(|user| {
            grant.users.contains(&user.id) || user.role_values.iter().any(|v| grant.claim_values.contains(v))
        }) || client.as_ref().is_some_and(|client| grant.clients.contains(&client.id))
    };
    let admin = holds(&policy.admin);
    let unless_restricted = |grant: &Option<RoleGrant>| admin || grant.as_ref().is_none_or(holds);
    let auditor = holds(&policy.auditor);
    let roles = Roles {
        admin,
        auditor,
        indexer: holds(&policy.indexer),
        reader: unless_restricted(&policy.reader),
        writer: unless_restricted(&policy.writer),
        // Where every caller is believed, every caller holds the roles of files.
        scope_auditor: admin || auditor || policy.trust == Trust::EveryClient,
    };

    let user_bound = user.as_ref().and_then(|u| u.tenant.as_deref());
    let client_bound = client.as_ref().and_then(|c| c.tenant.as_deref());
    let bound = match (user_bound, client_bound) {
        (Some(a), Some(b)) if a != b => {
            return Err(Error::tenant_forbidden("the token and the API key belong to different tenants"));
        }
        (a, b) => a.or(b),
    };
    let tenant = match (bound, asserted_tenant.as_deref().filter(|t| !t.is_empty())) {
        (Some(bound), None) => bound,
        (Some(bound), Some(asked)) if asked == bound => bound,
        (Some(_), Some(_)) => {
            return Err(Error::tenant_forbidden("these credentials belong to another tenant"));
        }
        (None, Some(asked)) if asked == policy.default_tenant || trusted || roles.admin => asked,
        (None, Some(_)) => {
            return Err(Error::tenant_forbidden("only trusted clients and admins may choose a tenant"));
        }
        (None, None) => &policy.default_tenant,
    };
    if !is_tenant(tenant) {
        return Err(Error::invalid(
            "X-Tenant-Id",
            "must be 1..256 bytes without control characters, not blank",
        ));
    }
    let tenant = Tenant(tenant.to_owned());

    let asserted_user = match asserted_user {
        Some(id) if trusted && user.is_none() && !id.trim().is_empty() => {
            if !is_user_id(&id) {
                return Err(Error::invalid("X-User-ID", "must be 1..255 characters without NUL, not blank"));
            }
            Some(UserId(id))
        }
        _ => None,
    };
    Ok(Principal {
        tenant,
        user: user.map(|u| UserId(u.id)),
        asserted_user,
        client: client.map(|c| ClientId(c.id)),
        trusted,
        roles,
    })
}

/// Whether this text can be a user id: 1..255 characters, not blank, no NUL.
pub fn is_user_id(id: &str) -> bool {
    !id.trim().is_empty() && id.chars().count() <= MAX_USER_ID_CHARS && !id.contains('\0')
}

/// Whether this text can name a tenant: 1..256 bytes, not blank, no control characters.
pub fn is_tenant(name: &str) -> bool {
    !name.trim().is_empty() && name.len() <= MAX_TENANT_BYTES && !name.chars().any(char::is_control)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Code;

    fn policy() -> IdentityPolicy {
        IdentityPolicy {
            default_tenant: "default".into(),
            trust: Trust::Clients(HashSet::from(["gateway".to_owned()])),
            admin: RoleGrant { users: HashSet::from(["alice".to_owned()]), ..RoleGrant::default() },
            auditor: RoleGrant { claim_values: HashSet::from(["audit".to_owned()]), ..RoleGrant::default() },
            reader: None,
            writer: None,
            indexer: RoleGrant { clients: HashSet::from(["robot".to_owned()]), ..RoleGrant::default() },
        }
    }

    fn user(id: &str) -> Option<VerifiedUser> {
        Some(VerifiedUser { id: id.into(), ..VerifiedUser::default() })
    }

    fn client(id: &str) -> Option<VerifiedClient> {
        Some(VerifiedClient { id: id.into(), tenant: None })
    }

    #[test]
    fn nobody_is_unauthorized() {
        assert_eq!(resolve(Credentials::default(), &policy()).unwrap_err(), Error::UNAUTHORIZED);
    }

    #[test]
    fn only_a_trusted_client_may_assert_a_user() {
        let asserted = |id: &str| Credentials {
            client: client(id),
            asserted_user: Some("alice".into()),
            ..Credentials::default()
        };
        let trusted = resolve(asserted("gateway"), &policy()).unwrap();
        assert!(!trusted.roles.admin, "an asserted user never brings its roles");
        assert_eq!(trusted.into_caller().unwrap().user.as_str(), "alice");
        let untrusted = resolve(asserted("robot"), &policy()).unwrap();
        assert_eq!(untrusted.into_caller().unwrap_err(), Error::UNAUTHORIZED);
    }

    #[test]
    fn the_token_wins_over_an_asserted_user() {
        let both = Credentials {
            user: user("bob"),
            client: client("gateway"),
            asserted_user: Some("alice".into()),
            ..Credentials::default()
        };
        assert_eq!(resolve(both, &policy()).unwrap().into_caller().unwrap().user.as_str(), "bob");
    }

    #[test]
    fn a_bound_tenant_cannot_be_contradicted() {
        let bound = |asked: Option<&str>| Credentials {
            user: Some(VerifiedUser { id: "bob".into(), tenant: Some("acme".into()), role_values: vec![] }),
            asserted_tenant: asked.map(str::to_owned),
            ..Credentials::default()
        };
        assert_eq!(resolve(bound(None), &policy()).unwrap().tenant().as_str(), "acme");
        assert_eq!(resolve(bound(Some("acme")), &policy()).unwrap().tenant().as_str(), "acme");
        assert!(matches!(
            resolve(bound(Some("evil")), &policy()),
            Err(Error { code: Code::TenantForbidden, .. })
        ));
    }

    #[test]
    fn an_unbound_user_cannot_choose_a_tenant() {
        let asking = |who| Credentials {
            user: user(who),
            asserted_tenant: Some("acme".into()),
            ..Credentials::default()
        };
        assert!(matches!(resolve(asking("bob"), &policy()), Err(Error { code: Code::TenantForbidden, .. })));
        assert_eq!(resolve(asking("alice"), &policy()).unwrap().tenant().as_str(), "acme", "an admin may");
    }

    #[test]
    fn roles_come_from_users_clients_and_claims() {
        let roles = |credentials| resolve(credentials, &policy()).unwrap().roles;
        let alice = roles(Credentials { user: user("alice"), ..Credentials::default() });
        assert!(alice.has(Role::Admin) && alice.has(Role::Auditor) && alice.has(Role::Indexer));
        let robot = roles(Credentials { client: client("robot"), ..Credentials::default() });
        assert!(robot.has(Role::Indexer) && !robot.has(Role::Admin) && !robot.has(Role::Auditor));
        let auditor = roles(Credentials {
            user: Some(VerifiedUser { id: "eve".into(), tenant: None, role_values: vec!["audit".into()] }),
            ..Credentials::default()
        });
        assert!(auditor.has(Role::Auditor) && !auditor.has(Role::Admin));
    }

    #[test]
    fn everybody_reads_and_writes_until_somebody_is_named() {
        let roles = |id: &str, policy: &IdentityPolicy| {
            resolve(Credentials { client: client(id), ..Credentials::default() }, policy).unwrap().roles
        };
        let open = roles("robot", &policy());
        assert!(open.reader && open.writer);

        let named = RoleGrant { clients: HashSet::from(["robot".to_owned()]), ..RoleGrant::default() };
        let restricted =
            IdentityPolicy { reader: Some(RoleGrant::default()), writer: Some(named), ..policy() };
        let robot = roles("robot", &restricted);
        assert!(!robot.reader && robot.writer, "a writer need not be a reader");
        let other = roles("other", &restricted);
        assert!(!other.reader && !other.writer);
        let alice = Credentials { user: user("alice"), ..Credentials::default() };
        let alice = resolve(alice, &restricted).unwrap().roles;
        assert!(alice.reader && alice.writer, "an admin holds every role");
    }
}
