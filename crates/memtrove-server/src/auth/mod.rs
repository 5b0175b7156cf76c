//! Who is calling: from the headers of a request to a [`Principal`].
//!
//! This module verifies credentials: a token's signature and claims, an API key's digest. What they are worth is decided
//! by [`memtrove_core::identity::resolve`] and nowhere else. It must not know routes or operations.
//!
//! | File | Holds |
//! |---|---|
//! | `config.rs` | the `[auth]` and `[roles]` sections and what may not be combined in them |
//! | `api_keys.rs` | API key → client |
//! | `token.rs` | bearer token → user, tenant, role values |
//! | `verified.rs` | the tokens of the last minute, so that each is verified once |
//! | `issuer.rs` | an issuer's public keys: discovery, cache, refresh |
//! | `loopback.rs` | the names that local mode answers to |

mod api_keys;
pub mod config;
mod issuer;
pub(crate) mod loopback;
mod token;
mod verified;

#[cfg(test)]
mod tests;

use api_keys::ApiKeys;
pub use config::{AuthConfig, ConfigProblem, Secret};
use config::{Mode, RoleConfig};
use http::HeaderMap;
use http::header::{AUTHORIZATION, HeaderName};
use issuer::Issuer;
pub use issuer::KeyFetchPace;
use memtrove_core::identity::{
    Credentials, IdentityPolicy, Principal, RoleGrant, Trust, VerifiedClient, VerifiedUser, is_user_id,
    resolve,
};
use memtrove_core::{Clock, Error, Result, SystemClock};
use std::sync::Arc;
use token::{TokenFailure, TokenVerifier};

/// The header of an agent's credential.
pub const X_API_KEY: HeaderName = HeaderName::from_static("x-api-key");
/// The header by which a trusted client names the user it speaks for.
pub const X_USER_ID: HeaderName = HeaderName::from_static("x-user-id");
/// The header by which an unbound trusted client or admin chooses a tenant.
pub const X_TENANT_ID: HeaderName = HeaderName::from_static("x-tenant-id");

/// Turns the headers of a request into who is calling. One per server; cheap to share, safe to call concurrently.
pub struct Authenticator {
    policy: IdentityPolicy,
    api_keys: ApiKeys,
    bearer: Bearer,
}

/// What a bearer credential means here.
enum Bearer {
    /// The user's name, believed.
    UserName,
    /// A token to verify.
    Token(Box<TokenVerifier>),
    /// Nothing: only API keys are configured.
    Nothing,
}

impl Authenticator {
    /// An authenticator for this configuration, or the first thing that is wrong with it.
    ///
    /// Does not reach out to the issuer: a server can start while its issuer is down.
    pub fn new(config: AuthConfig) -> Result<Self, ConfigProblem> {
        Self::with(config, Arc::new(SystemClock), KeyFetchPace::default())
    }

    /// Like [`Authenticator::new`], with another clock and another pace of key refreshes.
    pub fn with(
        config: AuthConfig,
        clock: Arc<dyn Clock>,
        pace: KeyFetchPace,
    ) -> Result<Self, ConfigProblem> {
        if let Some(problem) = config.problems().into_iter().next() {
            return Err(problem);
        }
        let bearer = match (config.mode, &config.jwt.issuer, &config.jwt.hmac_secret) {
            (Mode::Local, _, _) => Bearer::UserName,
            (Mode::Jwt, Some(name), _) => {
                let issuer =
                    Issuer::new(name, config.jwt.discovery_url.as_deref(), pace).map_err(|error| {
                        ConfigProblem::new(
                            "auth.jwt.issuer",
                            format!("no HTTP client can be made for it ({error})"),
                            "check that the machine's root certificates are installed",
                        )
                    })?;
                Bearer::Token(Box::new(TokenVerifier::for_issuer(issuer, &config, clock)))
            }
            (Mode::Jwt, None, Some(secret)) => {
                Bearer::Token(Box::new(TokenVerifier::for_secret(secret.expose(), &config, clock)))
            }
            (Mode::Jwt, None, None) => Bearer::Nothing,
        };
        Ok(Self { policy: policy(&config), api_keys: ApiKeys::new(&config), bearer })
    }

    /// Who sent these headers.
    ///
    /// [`Error::UNAUTHORIZED`] when no caller is named or a credential is wrong: a wrong one is never ignored because
    /// another one is right.
    pub async fn authenticate(&self, headers: &HeaderMap) -> Result<Principal> {
        self.identify(headers, None).await
    }

    /// Who sent these headers, for a route that names its tenant: the credentials must be good for that one.
    pub async fn authenticate_in(&self, headers: &HeaderMap, tenant: &str) -> Result<Principal> {
        self.identify(headers, Some(tenant)).await
    }

    async fn identify(&self, headers: &HeaderMap, route_tenant: Option<&str>) -> Result<Principal> {
        let bearer = bearer(headers)?;
        let client = match only_value(headers, &X_API_KEY).map_err(|_| Error::UNAUTHORIZED)? {
            Some(key) => Some(self.client(key)?),
            None => None,
        };
        let user = match bearer {
            Some(credential) => Some(self.user(credential).await?),
            None => None,
        };
        let asserted_user = match &client {
            Some(client) if user.is_none() && self.trusts(client) => text(headers, &X_USER_ID, "X-User-ID")?,
            _ => None,
        };
        let header = text(headers, &X_TENANT_ID, "X-Tenant-Id")?.filter(|tenant| !tenant.is_empty());
        let asserted_tenant = match (header, route_tenant) {
            (Some(header), Some(route)) if header != route => {
                return Err(Error::tenant_forbidden("X-Tenant-Id names another tenant than the path"));
            }
            (header, route) => route.map(str::to_owned).or(header),
        };
        resolve(Credentials { user, client, asserted_user, asserted_tenant }, &self.policy)
    }

    /// Whether every caller is believed.
    pub(crate) fn is_local(&self) -> bool {
        matches!(self.bearer, Bearer::UserName)
    }

    /// Asks the issuer for its keys once, for a diagnosis: how many usable ones it publishes, or why that cannot be
    /// said. `None` when no issuer is configured.
    pub async fn probe_issuer(&self) -> Option<Result<usize, String>> {
        match &self.bearer {
            Bearer::Token(verifier) => Some(verifier.issuer()?.probe().await),
            Bearer::UserName | Bearer::Nothing => None,
        }
    }

    fn client(&self, key: &[u8]) -> Result<VerifiedClient> {
        if let Some(client) = self.api_keys.find(key) {
            return Ok(client.clone());
        }
        match (&self.bearer, std::str::from_utf8(key)) {
            (Bearer::UserName, Ok(id)) if is_user_id(id) => {
                Ok(VerifiedClient { id: id.to_owned(), tenant: None })
            }
            _ => {
                tracing::debug!("an API key was refused: it belongs to no client");
                Err(Error::UNAUTHORIZED)
            }
        }
    }

    async fn user(&self, credential: &[u8]) -> Result<VerifiedUser> {
        match &self.bearer {
            Bearer::UserName => {
                let id = std::str::from_utf8(credential).map_err(|_| Error::UNAUTHORIZED)?;
                Ok(VerifiedUser { id: id.to_owned(), ..VerifiedUser::default() })
            }
            Bearer::Token(verifier) => verifier.verify(credential).await.map_err(|failure| match failure {
                TokenFailure::Rejected(reason) => {
                    tracing::debug!(reason, "a bearer token was refused");
                    Error::UNAUTHORIZED
                }
                TokenFailure::Unavailable => Error::IDENTITY_PROVIDER_UNAVAILABLE,
            }),
            Bearer::Nothing => {
                tracing::debug!("a bearer token was refused: neither an issuer nor a secret is configured");
                Err(Error::UNAUTHORIZED)
            }
        }
    }

    /// Whether `X-User-ID` of this client is looked at; from another one it is as if it were not there.
    fn trusts(&self, client: &VerifiedClient) -> bool {
        match &self.policy.trust {
            Trust::EveryClient => true,
            Trust::Clients(ids) => ids.contains(&client.id),
        }
    }
}

fn policy(config: &AuthConfig) -> IdentityPolicy {
    let grant = |role: &RoleConfig| RoleGrant {
        users: role.users.iter().cloned().collect(),
        clients: role.clients.iter().cloned().collect(),
        claim_values: role.claim_values.iter().cloned().collect(),
    };
    let mut admin = grant(&config.roles.admin);
    let trust = match config.mode {
        Mode::Local => {
            admin.users.insert("admin".into());
            Trust::EveryClient
        }
        Mode::Jwt => Trust::Clients(config.trusted_clients.clients.iter().cloned().collect()),
    };
    IdentityPolicy {
        default_tenant: config.default_tenant.clone(),
        trust,
        admin,
        auditor: grant(&config.roles.auditor),
        indexer: grant(&config.roles.indexer),
        reader: config.roles.reader.as_ref().map(grant),
        writer: config.roles.writer.as_ref().map(grant),
    }
}

/// The credential of the one `Authorization: Bearer` header. Another scheme is a credential that cannot be verified.
fn bearer(headers: &HeaderMap) -> Result<Option<&[u8]>> {
    let Some(value) = only_value(headers, &AUTHORIZATION).map_err(|_| Error::UNAUTHORIZED)? else {
        return Ok(None);
    };
    let Some((scheme, rest)) = value.split_at_checked(BEARER.len()) else { return Err(Error::UNAUTHORIZED) };
    let credential = rest.trim_ascii();
    if !scheme.eq_ignore_ascii_case(BEARER) || !rest.starts_with(b" ") || credential.is_empty() {
        return Err(Error::UNAUTHORIZED);
    }
    Ok(Some(credential))
}

const BEARER: &[u8] = b"bearer";

/// A header was sent more than once, so that two readers could see two different callers.
struct Repeated;

fn only_value<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Result<Option<&'a [u8]>, Repeated> {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (value, None) => Ok(value.map(http::HeaderValue::as_bytes)),
        (_, Some(_)) => Err(Repeated),
    }
}

fn text(headers: &HeaderMap, name: &HeaderName, field: &str) -> Result<Option<String>> {
    match only_value(headers, name) {
        Err(Repeated) => Err(Error::invalid(field, "was sent more than once: send it once")),
        Ok(None) => Ok(None),
        Ok(Some(bytes)) => match std::str::from_utf8(bytes) {
            Ok(text) => Ok(Some(text.to_owned())),
            Err(_) => Err(Error::invalid(field, "must be UTF-8")),
        },
    }
}
