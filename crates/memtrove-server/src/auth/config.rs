//! The sections `[auth]` and `[roles]` of the configuration.
//!
//! These types only say what was written down. [`AuthConfig::problems`] says what cannot stand; an
//! [`Authenticator`](super::Authenticator) is only ever built from a configuration without problems.

use aws_lc_rs::digest;
use serde::de::{self, Deserializer, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Serialize, Serializer};
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use zeroize::Zeroizing;

/// Who may call, and how they prove it: `[auth]`, together with `[roles]`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AuthConfig {
    /// `local` believes every caller and therefore serves loopback only; `jwt` verifies tokens and API keys.
    pub mode: Mode,
    /// The tenant of a caller whose credential names none.
    pub default_tenant: String,
    /// The claim that binds a token to a tenant, or a list of which the first present one counts. A name that starts
    /// with `/` is a JSON pointer.
    pub tenant_claim: OneOrMany,
    /// How bearer tokens are verified.
    pub jwt: JwtConfig,
    /// The keys of each API-key client.
    pub api_keys: BTreeMap<String, ClientKeys>,
    /// Which API-key clients may speak for users.
    pub trusted_clients: TrustedClients,
    /// Who holds which role. A section of its own in the file (`[roles]`); the configuration puts it here.
    #[serde(skip)]
    pub roles: RolesConfig,
}

impl Default for AuthConfig {
    fn default() -> Self {
        Self {
            mode: Mode::Local,
            default_tenant: "default".into(),
            tenant_claim: OneOrMany(vec!["tenant".into()]),
            jwt: JwtConfig::default(),
            api_keys: BTreeMap::new(),
            trusted_clients: TrustedClients::default(),
            roles: RolesConfig::default(),
        }
    }
}

/// How much the server believes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// `Authorization: Bearer <user>` is that user. For one person on one machine.
    #[default]
    Local,
    /// Bearer tokens are verified JWTs, API keys are configured.
    Jwt,
}

/// How bearer tokens are verified: `[auth.jwt]`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct JwtConfig {
    /// The OpenID Connect issuer, exactly as its discovery document and its tokens spell it.
    pub issuer: Option<String>,
    /// Where the discovery document is, when it is not at `{issuer}/.well-known/openid-configuration`.
    pub discovery_url: Option<String>,
    /// A token must carry at least one of these in `aud`. Empty: every audience is accepted.
    pub audiences: Vec<String>,
    /// A token must carry one of these in `azp`, or in `client_id` where it has no `azp`. Empty: no check.
    pub allowed_clients: Vec<String>,
    /// The claims that may hold the user id; the first present one counts. A name that starts with `/` is a pointer.
    pub user_id_claims: Vec<String>,
    /// JSON pointers to the claims that hold role names. Never a scope.
    pub role_claims: Vec<String>,
    /// Accept HS256 tokens signed with this secret instead of an issuer's. For tests.
    pub hmac_secret: Option<Secret>,
}

impl Default for JwtConfig {
    fn default() -> Self {
        Self {
            issuer: None,
            discovery_url: None,
            audiences: Vec::new(),
            allowed_clients: Vec::new(),
            user_id_claims: ["preferred_username", "upn", "sub"].map(str::to_owned).to_vec(),
            role_claims: vec!["/realm_access/roles".into()],
            hmac_secret: None,
        }
    }
}

/// Which API-key clients may send `X-User-ID` and `X-Tenant-Id`: `[auth.trusted_clients]`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TrustedClients {
    /// Client ids, exactly as in `[auth.api_keys]`.
    pub clients: Vec<String>,
}

/// Who holds which role: `[roles]`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RolesConfig {
    /// May change anything in its tenant, and everything below.
    pub admin: RoleConfig,
    /// May read anything in its tenant.
    pub auditor: RoleConfig,
    /// May index entries.
    pub indexer: RoleConfig,
    /// May read the files and events of whom it may act for. Everybody, unless this is set.
    pub reader: Option<RoleConfig>,
    /// May change the files and events of whom it may act for. Everybody, unless this is set.
    pub writer: Option<RoleConfig>,
}

/// Who holds one role: `[roles.admin]` and its siblings.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RoleConfig {
    /// User ids.
    pub users: Vec<String>,
    /// API-key client ids.
    pub clients: Vec<String>,
    /// Values found at `auth.jwt.role_claims`.
    pub claim_values: Vec<String>,
}

/// One text or a list of texts.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct OneOrMany(pub Vec<String>);

/// The keys of one API-key client, and the tenant they are bound to.
///
/// Written as a list of keys, as one text with commas (which is what an environment variable can hold), or as a table
/// `{ keys = […], tenant = "…" }`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct ClientKeys {
    /// The client's keys; any of them will do, so that they can be exchanged one after the other.
    pub keys: Vec<Secret>,
    /// The only tenant this client may act in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
}

/// A text that is never printed, logged or serialised, and wiped from memory when it is dropped.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Zeroizing<String>);

impl Secret {
    /// Wraps a secret.
    pub fn new(secret: impl Into<String>) -> Self {
        Self(Zeroizing::new(secret.into()))
    }

    /// The secret itself, for the code that needs it.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(REDACTED)
    }
}

impl Serialize for Secret {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(REDACTED)
    }
}

const REDACTED: &str = "[redacted]";

/// Something in the configuration that cannot stand, and what to do about it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{key}: {problem}; {fix}")]
pub struct ConfigProblem {
    /// The key it is about, e.g. `auth.jwt.issuer`.
    pub key: String,
    /// What is wrong.
    pub problem: String,
    /// What would be right.
    pub fix: String,
}

impl ConfigProblem {
    /// A problem with `key`.
    pub fn new(key: impl Into<String>, problem: impl Into<String>, fix: impl Into<String>) -> Self {
        Self { key: key.into(), problem: problem.into(), fix: fix.into() }
    }
}

impl AuthConfig {
    /// Everything that keeps a server from starting with this.
    pub fn problems(&self) -> Vec<ConfigProblem> {
        let mut found = Vec::new();
        if self.default_tenant.trim().is_empty() {
            found.push(ConfigProblem::new(
                "auth.default_tenant",
                "is blank",
                "name a tenant, e.g. \"default\"",
            ));
        }
        self.key_problems(&mut found);
        match self.mode {
            Mode::Local => self.local_problems(&mut found),
            Mode::Jwt => self.jwt_problems(&mut found),
        }
        found
    }

    /// What a server may start with but somebody should know about.
    pub fn warnings(&self) -> Vec<String> {
        let jwt = &self.jwt;
        let mut found = Vec::new();
        if self.mode == Mode::Local {
            found.push(
                "auth.mode is \"local\": every caller is believed to be who it says it is. Set auth.mode = \"jwt\" \
                 before anybody else can reach this server"
                    .into(),
            );
            return found;
        }
        if let Some(secret) = &jwt.hmac_secret {
            found.push(
                "auth.jwt.hmac_secret is set: anyone who knows it can be any user of any tenant. It is meant for tests; \
                 use auth.jwt.issuer in production"
                    .into(),
            );
            if secret.expose().len() < 32 {
                found.push("auth.jwt.hmac_secret is shorter than 32 bytes and can be guessed offline".into());
            }
        }
        if let Some(issuer) = &jwt.issuer {
            if jwt.audiences.is_empty() {
                found.push(
                    "auth.jwt.audiences is empty: tokens that the issuer made for other services are accepted too"
                        .into(),
                );
            }
            if issuer.starts_with("http://") && !is_loopback_url(issuer) {
                found.push(
                    "auth.jwt.issuer is reached without TLS: anyone on the way can replace its keys".into(),
                );
            }
        }
        let RolesConfig { admin, auditor, indexer, reader, writer } = &self.roles;
        let roles = [
            ("admin", Some(admin)),
            ("auditor", Some(auditor)),
            ("indexer", Some(indexer)),
            ("reader", reader.as_ref()),
            ("writer", writer.as_ref()),
        ];
        for (role, grant) in roles.into_iter().filter_map(|(role, grant)| Some((role, grant?))) {
            for client in grant.clients.iter().filter(|client| !self.api_keys.contains_key(*client)) {
                found.push(format!(
                    "roles.{role}.clients names '{client}', which has no key under [auth.api_keys]"
                ));
            }
        }
        found
    }

    fn local_problems(&self, found: &mut Vec<ConfigProblem>) {
        let jwt = &self.jwt;
        let set = [
            ("auth.jwt.issuer", jwt.issuer.is_some()),
            ("auth.jwt.hmac_secret", jwt.hmac_secret.is_some()),
            ("auth.jwt.discovery_url", jwt.discovery_url.is_some()),
        ];
        for (key, _) in set.into_iter().filter(|(_, set)| *set) {
            found.push(ConfigProblem::new(
                key,
                "is set, but auth.mode = \"local\" verifies nothing",
                "set auth.mode = \"jwt\" or remove it",
            ));
        }
    }

    fn jwt_problems(&self, found: &mut Vec<ConfigProblem>) {
        let jwt = &self.jwt;
        match (&jwt.issuer, &jwt.hmac_secret) {
            (Some(_), Some(_)) => found.push(ConfigProblem::new(
                "auth.jwt.hmac_secret",
                "is set next to auth.jwt.issuer",
                "keep the issuer, or keep the secret for a test server",
            )),
            (None, None) if self.api_keys.is_empty() => found.push(ConfigProblem::new(
                "auth.jwt.issuer",
                "is not set and there are no auth.api_keys, so no one could call this server",
                "set auth.jwt.issuer = \"https://…\", or add keys under [auth.api_keys], or use auth.mode = \"local\"",
            )),
            _ => {}
        }
        if jwt.hmac_secret.as_ref().is_some_and(|secret| secret.expose().is_empty()) {
            found.push(ConfigProblem::new(
                "auth.jwt.hmac_secret",
                "is empty",
                "set a secret of 32 bytes or more",
            ));
        }
        if jwt.discovery_url.is_some() && jwt.issuer.is_none() {
            found.push(ConfigProblem::new(
                "auth.jwt.discovery_url",
                "is set without auth.jwt.issuer",
                "set the issuer too: tokens must carry it in `iss`",
            ));
        }
        for (key, url) in [("auth.jwt.issuer", &jwt.issuer), ("auth.jwt.discovery_url", &jwt.discovery_url)] {
            if let Some(url) = url
                && !is_http_url(url)
            {
                found.push(ConfigProblem::new(
                    key,
                    format!("'{url}' is not an http(s) address"),
                    "use https://…",
                ));
            }
        }
        if jwt.user_id_claims.is_empty() {
            found.push(ConfigProblem::new(
                "auth.jwt.user_id_claims",
                "is empty, so no token could name its user",
                "name a claim, e.g. [\"sub\"]",
            ));
        }
        for pointer in &jwt.role_claims {
            let name = pointer.trim_start_matches('/');
            if !pointer.starts_with('/') {
                found.push(ConfigProblem::new(
                    "auth.jwt.role_claims",
                    format!("'{pointer}' is not a JSON pointer"),
                    format!("write \"/{pointer}\""),
                ));
            } else if name == "scope" || name == "scp" {
                found.push(ConfigProblem::new(
                    "auth.jwt.role_claims",
                    format!("'{pointer}' is a scope: users choose scopes themselves, so a scope cannot grant a role"),
                    "point at a claim that your issuer's administrators control",
                ));
            }
        }
        for client in &self.trusted_clients.clients {
            if !self.api_keys.contains_key(client) {
                found.push(ConfigProblem::new(
                    "auth.trusted_clients.clients",
                    format!("'{client}' has no key under [auth.api_keys], so no one can be this client"),
                    format!("add a key for it, or remove '{client}' from the list"),
                ));
            }
        }
    }

    fn key_problems(&self, found: &mut Vec<ConfigProblem>) {
        let mut owners: HashMap<[u8; 32], &str> = HashMap::new();
        for (client, entry) in &self.api_keys {
            let at = format!("auth.api_keys.{client}");
            if !memtrove_core::identity::is_user_id(client) {
                found.push(ConfigProblem::new(
                    &at,
                    "is not a client id",
                    "use 1 to 255 characters, not blank",
                ));
            }
            if entry.keys.is_empty() {
                found.push(ConfigProblem::new(&at, "has no keys", "add one, or remove the client"));
            }
            if entry.tenant.as_ref().is_some_and(|tenant| tenant.trim().is_empty()) {
                found.push(ConfigProblem::new(
                    &at,
                    "is bound to a blank tenant",
                    "name one, or remove `tenant`",
                ));
            }
            for key in &entry.keys {
                if key.expose().trim() != key.expose() || key.expose().is_empty() {
                    found.push(ConfigProblem::new(
                        &at,
                        "has a key that is blank or starts or ends with a space",
                        "a header cannot carry such a key: choose another",
                    ));
                    continue;
                }
                match owners.insert(key_digest(key.expose().as_bytes()), client) {
                    Some(other) if other != client => found.push(ConfigProblem::new(
                        &at,
                        format!(
                            "shares a key with client '{other}', so the server could not tell them apart"
                        ),
                        "give each client keys of its own",
                    )),
                    _ => {}
                }
            }
        }
    }
}

/// What is kept of an API key: enough to recognise it, not enough to leak it.
pub(super) fn key_digest(key: &[u8]) -> [u8; 32] {
    let mut out = [0; 32];
    out.copy_from_slice(digest::digest(&digest::SHA256, key).as_ref());
    out
}

fn is_http_url(url: &str) -> bool {
    url.parse::<reqwest::Url>().is_ok_and(|url| matches!(url.scheme(), "http" | "https") && url.has_host())
}

fn is_loopback_url(url: &str) -> bool {
    url.parse::<reqwest::Url>().is_ok_and(|url| {
        url.host_str().is_some_and(|host| {
            let host = host.trim_matches(['[', ']']);
            host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback())
        })
    })
}

impl Serialize for OneOrMany {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0.as_slice() {
            [one] => serializer.serialize_str(one),
            many => many.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for OneOrMany {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Texts;
        impl<'de> Visitor<'de> for Texts {
            type Value = OneOrMany;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a text or a list of texts")
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<OneOrMany, E> {
                Ok(OneOrMany(vec![text.to_owned()]))
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<OneOrMany, A::Error> {
                let mut texts = Vec::new();
                while let Some(text) = items.next_element()? {
                    texts.push(text);
                }
                Ok(OneOrMany(texts))
            }
        }
        deserializer.deserialize_any(Texts)
    }
}

// Secrets and keys are read by hand because the derived readers quote the offending value in their complaint.

impl<'de> Deserialize<'de> for Secret {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Text;
        impl Visitor<'_> for Text {
            type Value = Secret;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(SECRET_IS_TEXT)
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<Secret, E> {
                Ok(Secret::new(text))
            }
            fn visit_bool<E: de::Error>(self, _: bool) -> Result<Secret, E> {
                Err(E::custom(SECRET_IS_TEXT))
            }
            fn visit_i64<E: de::Error>(self, _: i64) -> Result<Secret, E> {
                Err(E::custom(SECRET_IS_TEXT))
            }
            fn visit_u64<E: de::Error>(self, _: u64) -> Result<Secret, E> {
                Err(E::custom(SECRET_IS_TEXT))
            }
            fn visit_f64<E: de::Error>(self, _: f64) -> Result<Secret, E> {
                Err(E::custom(SECRET_IS_TEXT))
            }
        }
        deserializer.deserialize_any(Text)
    }
}

const SECRET_IS_TEXT: &str = "a secret is a text: put it in quotes";
const KEYS_ARE: &str = "API keys are a list of texts, or a table { keys = […], tenant = \"…\" }";

impl<'de> Deserialize<'de> for ClientKeys {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ClientKeysVisitor;
        impl<'de> Visitor<'de> for ClientKeysVisitor {
            type Value = ClientKeys;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(KEYS_ARE)
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<ClientKeys, E> {
                let keys =
                    text.split(',').map(str::trim).filter(|key| !key.is_empty()).map(Secret::new).collect();
                Ok(ClientKeys { keys, tenant: None })
            }
            fn visit_bool<E: de::Error>(self, _: bool) -> Result<ClientKeys, E> {
                Err(E::custom(KEYS_ARE))
            }
            fn visit_i64<E: de::Error>(self, _: i64) -> Result<ClientKeys, E> {
                Err(E::custom(KEYS_ARE))
            }
            fn visit_u64<E: de::Error>(self, _: u64) -> Result<ClientKeys, E> {
                Err(E::custom(KEYS_ARE))
            }
            fn visit_f64<E: de::Error>(self, _: f64) -> Result<ClientKeys, E> {
                Err(E::custom(KEYS_ARE))
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<ClientKeys, A::Error> {
                let mut keys = Vec::new();
                while let Some(key) = items.next_element()? {
                    keys.push(key);
                }
                Ok(ClientKeys { keys, tenant: None })
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<ClientKeys, A::Error> {
                #[derive(Deserialize)]
                #[serde(deny_unknown_fields)]
                struct Table {
                    keys: Vec<Secret>,
                    tenant: Option<String>,
                }
                let table = Table::deserialize(de::value::MapAccessDeserializer::new(map))?;
                Ok(ClientKeys { keys: table.keys, tenant: table.tenant })
            }
        }
        deserializer.deserialize_any(ClientKeysVisitor)
    }
}
