//! Bearer tokens: is this a JWT that we believe, and whom does it name?
//!
//! Only the signature is left to the library. The claims are read here because the rules are ours (several user claims,
//! a tenant that must not be misread, an injected clock), and because the library's own claim check cannot read numbers
//! when `serde_json` keeps them in full precision, which this workspace needs for the content of entries.

use super::config::AuthConfig;
use super::issuer::Issuer;
use super::verified::{TokenDigest, VerifiedTokens};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jsonwebtoken::{Algorithm, DecodingKey};
use memtrove_core::Clock;
use memtrove_core::identity::{VerifiedUser, is_tenant};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;
use std::borrow::Cow;
use std::sync::Arc;

/// How far two clocks may be apart.
const LEEWAY_SECONDS: i64 = 60;
/// Longer than any real token, shorter than what would be costly to look at.
const MAX_TOKEN_BYTES: usize = 16 * 1024;

/// Why a token did not become a user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TokenFailure {
    /// The token is worth nothing. The reason is for the log.
    Rejected(&'static str),
    /// The issuer's keys could not be had, so nothing can be said about the token.
    Unavailable,
}

/// Verifies bearer tokens against an issuer or a shared secret.
pub(super) struct TokenVerifier {
    keys: Keys,
    clock: Arc<dyn Clock>,
    verified: VerifiedTokens,
    audiences: Vec<String>,
    allowed_clients: Vec<String>,
    user_id_claims: Vec<String>,
    tenant_claims: Vec<String>,
    role_claims: Vec<String>,
}

enum Keys {
    Issuer(Arc<Issuer>),
    Hmac(DecodingKey),
}

impl TokenVerifier {
    pub(super) fn for_issuer(issuer: Arc<Issuer>, config: &AuthConfig, clock: Arc<dyn Clock>) -> Self {
        Self::new(Keys::Issuer(issuer), config, clock)
    }

    pub(super) fn for_secret(secret: &str, config: &AuthConfig, clock: Arc<dyn Clock>) -> Self {
        Self::new(Keys::Hmac(DecodingKey::from_secret(secret.as_bytes())), config, clock)
    }

    fn new(keys: Keys, config: &AuthConfig, clock: Arc<dyn Clock>) -> Self {
        Self {
            keys,
            clock,
            verified: VerifiedTokens::default(),
            audiences: config.jwt.audiences.clone(),
            allowed_clients: config.jwt.allowed_clients.clone(),
            user_id_claims: config.jwt.user_id_claims.clone(),
            tenant_claims: config.tenant_claim.0.clone(),
            role_claims: config.jwt.role_claims.clone(),
        }
    }

    /// The issuer, where there is one.
    pub(super) fn issuer(&self) -> Option<&Arc<Issuer>> {
        match &self.keys {
            Keys::Issuer(issuer) => Some(issuer),
            Keys::Hmac(_) => None,
        }
    }

    /// The user a token names, if the token is valid now and here.
    pub(super) async fn verify(&self, token: &[u8]) -> Result<VerifiedUser, TokenFailure> {
        if token.len() > MAX_TOKEN_BYTES {
            return Err(TokenFailure::Rejected("too long"));
        }
        let now = self.clock.now().as_micros().div_euclid(1_000_000);
        let digest = TokenDigest::of(token);
        if let Some(user) = self.verified.find(&digest, now, self.key_generation()) {
            return Ok(user);
        }
        let token = Unverified::parse(token)?;
        let key_generation = match &self.keys {
            Keys::Hmac(secret) => {
                if token.header.alg != "HS256" {
                    return Err(TokenFailure::Rejected("not HS256, which is all that a shared secret signs"));
                }
                token.check_signature(secret, Algorithm::HS256)?;
                0
            }
            Keys::Issuer(issuer) => {
                let algorithm = public_key_algorithm(&token.header.alg)
                    .ok_or(TokenFailure::Rejected("signed with an algorithm that is not accepted"))?;
                let found = issuer.key(token.header.kid.as_deref(), algorithm).await?;
                token.check_signature(&found.key, algorithm)?;
                found.generation
            }
        };
        let claims = token.claims()?;
        let expires = self.check_times(&claims, now)?;
        self.check_origin(&claims)?;
        let user = self.user(&claims)?;
        self.verified.remember(&digest, &user, now, expires, key_generation);
        Ok(user)
    }

    fn key_generation(&self) -> u64 {
        self.issuer().map_or(0, |issuer| issuer.generation())
    }

    /// When the token expires, if it is valid now.
    fn check_times(&self, claims: &Value, now: i64) -> Result<i64, TokenFailure> {
        let expires = seconds(claims.get("exp"))?.ok_or(TokenFailure::Rejected("without exp"))?;
        if expires.saturating_add(LEEWAY_SECONDS) < now {
            return Err(TokenFailure::Rejected("expired"));
        }
        if seconds(claims.get("nbf"))?.is_some_and(|starts| starts.saturating_sub(LEEWAY_SECONDS) > now) {
            return Err(TokenFailure::Rejected("not valid yet"));
        }
        Ok(expires)
    }

    /// Whether the token was made by whom, for whom and at whose request it should have been.
    fn check_origin(&self, claims: &Value) -> Result<(), TokenFailure> {
        if let Keys::Issuer(issuer) = &self.keys
            && claims.get("iss").and_then(Value::as_str) != Some(issuer.name())
        {
            return Err(TokenFailure::Rejected("of another issuer"));
        }
        if !self.audiences.is_empty()
            && !texts(claims.get("aud")).any(|aud| self.audiences.iter().any(|a| a == aud))
        {
            return Err(TokenFailure::Rejected("for another audience"));
        }
        if !self.allowed_clients.is_empty() {
            let client = claims.get("azp").or_else(|| claims.get("client_id")).and_then(Value::as_str);
            if !client.is_some_and(|client| self.allowed_clients.iter().any(|allowed| allowed == client)) {
                return Err(TokenFailure::Rejected("issued to a client that is not allowed"));
            }
        }
        Ok(())
    }

    fn user(&self, claims: &Value) -> Result<VerifiedUser, TokenFailure> {
        let id =
            first_text(claims, &self.user_id_claims)?.ok_or(TokenFailure::Rejected("without a user id"))?;
        let tenant = tenant(claims, &self.tenant_claims)?;
        let role_values = self
            .role_claims
            .iter()
            .flat_map(|pointer| texts(claims.pointer(pointer)))
            .map(str::to_owned)
            .collect();
        Ok(VerifiedUser { id: id.to_owned(), tenant: tenant.map(str::to_owned), role_values })
    }
}

/// The public-key algorithms of the contract, by their JOSE names. No HMAC: a public key is no secret.
fn public_key_algorithm(name: &str) -> Option<Algorithm> {
    match name {
        "RS256" => Some(Algorithm::RS256),
        "RS384" => Some(Algorithm::RS384),
        "RS512" => Some(Algorithm::RS512),
        "ES256" => Some(Algorithm::ES256),
        "ES384" => Some(Algorithm::ES384),
        "EdDSA" => Some(Algorithm::EdDSA),
        _ => None,
    }
}

/// A token in its parts, before anything about it is known to be true.
struct Unverified<'a> {
    header: TokenHeader,
    signed: &'a str,
    payload: &'a str,
    signature: &'a str,
}

#[derive(Deserialize)]
struct TokenHeader {
    alg: Cow<'static, str>,
    kid: Option<String>,
    /// Extensions that must be understood; we understand none.
    crit: Option<IgnoredAny>,
}

impl<'a> Unverified<'a> {
    fn parse(token: &'a [u8]) -> Result<Self, TokenFailure> {
        const NOT_A_JWT: TokenFailure = TokenFailure::Rejected("not a JWT");
        let token = std::str::from_utf8(token).map_err(|_| NOT_A_JWT)?;
        let (signed, signature) = token.rsplit_once('.').ok_or(NOT_A_JWT)?;
        let (header, payload) = signed.split_once('.').ok_or(NOT_A_JWT)?;
        if payload.contains('.') {
            return Err(NOT_A_JWT);
        }
        let header = URL_SAFE_NO_PAD.decode(header).map_err(|_| NOT_A_JWT)?;
        let header: TokenHeader = serde_json::from_slice(&header).map_err(|_| NOT_A_JWT)?;
        if header.crit.is_some() {
            return Err(TokenFailure::Rejected("with critical header parameters"));
        }
        Ok(Self { header, signed, payload, signature })
    }

    fn check_signature(&self, key: &DecodingKey, algorithm: Algorithm) -> Result<(), TokenFailure> {
        match jsonwebtoken::crypto::verify(self.signature, self.signed.as_bytes(), key, algorithm) {
            Ok(true) => Ok(()),
            Ok(false) | Err(_) => Err(TokenFailure::Rejected("with a wrong signature")),
        }
    }

    /// The claims. Call this after the signature has been checked.
    fn claims(&self) -> Result<Value, TokenFailure> {
        let payload = URL_SAFE_NO_PAD.decode(self.payload).ok();
        payload
            .and_then(|payload| serde_json::from_slice::<Value>(&payload).ok())
            .filter(Value::is_object)
            .ok_or(TokenFailure::Rejected("without readable claims"))
    }
}

/// A NumericDate, which may have a fraction.
fn seconds(claim: Option<&Value>) -> Result<Option<i64>, TokenFailure> {
    let Some(claim) = claim else { return Ok(None) };
    let whole = claim.as_i64().or_else(|| {
        let seconds = claim.as_f64().filter(|seconds| seconds.abs() < 1e15)?;
        Some(seconds.floor() as i64)
    });
    whole.map(Some).ok_or(TokenFailure::Rejected("with a time that is not a number of seconds"))
}

/// A claim by name, or by JSON pointer where the name starts with `/`.
fn claim<'a>(claims: &'a Value, name: &str) -> Option<&'a Value> {
    if name.starts_with('/') { claims.pointer(name) } else { claims.get(name) }
}

/// The first claim of these that is there and not null. One that is no usable text spoils the token: taking the next one
/// would make the caller another user than its issuer meant.
fn first_text<'a>(claims: &'a Value, names: &[String]) -> Result<Option<&'a str>, TokenFailure> {
    match names.iter().find_map(|name| claim(claims, name).filter(|value| !value.is_null())) {
        None => Ok(None),
        Some(Value::String(text)) if !text.trim().is_empty() => Ok(Some(text)),
        Some(_) => Err(TokenFailure::Rejected("with a user id that is not a text")),
    }
}

/// The tenant that the first claim of these names, or none if none of them is there. Whatever else stands there, null
/// included, spoils the token: an issuer that binds its tokens and could not say to what did not mean the default tenant.
fn tenant<'a>(claims: &'a Value, names: &[String]) -> Result<Option<&'a str>, TokenFailure> {
    const NO_TENANT: TokenFailure = TokenFailure::Rejected("with a tenant claim that names no tenant");
    for name in names {
        match claim(claims, name) {
            Some(Value::String(tenant)) if is_tenant(tenant) => return Ok(Some(tenant)),
            Some(_) => return Err(NO_TENANT),
            None if is_cut_short(claims, name) => return Err(NO_TENANT),
            None => {}
        }
    }
    Ok(None)
}

/// Whether something stands on the way to a claim that nothing can stand below: null at `/org`, where `/org/tenant` is
/// looked for.
fn is_cut_short(claims: &Value, pointer: &str) -> bool {
    let parents = pointer.match_indices('/').skip(1).filter_map(|(at, _)| claims.pointer(pointer.get(..at)?));
    pointer.starts_with('/') && { parents }.any(|parent| !parent.is_object() && !parent.is_array())
}

/// A text, or the texts in a list. Never split: a role or an audience may contain a space.
fn texts(value: Option<&Value>) -> impl Iterator<Item = &str> {
    let (one, many) = match value {
        Some(Value::String(one)) => (Some(one.as_str()), [].as_slice()),
        Some(Value::Array(many)) => (None, many.as_slice()),
        _ => (None, [].as_slice()),
    };
    one.into_iter().chain(many.iter().filter_map(Value::as_str))
}
