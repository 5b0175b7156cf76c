//! The issuer's public keys: fetched through discovery, cached, and refreshed within bounds.
//!
//! - An unknown `kid` causes a fetch, because that is how a rotation shows. Callers choose the `kid`, so at most one
//!   fetch runs at a time and at most one starts per [`KeyFetchPace::unknown_key`].
//! - A fetch runs in a task of its own: a caller that hangs up cannot cancel it for the others.
//! - Once keys were had, they are fetched again every [`KeyFetchPace::background`], so that a withdrawn key disappears.
//! - A fetch that fails changes nothing: what was known keeps serving.

use super::token::TokenFailure;
use jsonwebtoken::{Algorithm, DecodingKey};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::sync::{Arc, PoisonError, RwLock, Weak};
use std::time::Duration;
use tokio::sync::Mutex;
use tokio::time::Instant;

const MAX_DOCUMENT_BYTES: usize = 512 * 1024;
const MAX_KEYS: usize = 100;
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);
const FETCH_TIMEOUT: Duration = Duration::from_secs(5);

/// How often the issuer is asked for its keys.
#[derive(Debug, Clone, Copy)]
pub struct KeyFetchPace {
    /// The shortest time between two fetches that callers cause with unknown keys.
    pub unknown_key: Duration,
    /// The shortest time between two fetches while no keys are known at all.
    pub no_keys: Duration,
    /// The time between two regular fetches.
    pub background: Duration,
}

impl Default for KeyFetchPace {
    fn default() -> Self {
        Self {
            unknown_key: Duration::from_secs(10),
            no_keys: Duration::from_secs(1),
            background: Duration::from_secs(600),
        }
    }
}

/// An OpenID Connect issuer and what is known of its keys.
pub(super) struct Issuer {
    name: String,
    discovery_url: String,
    http: reqwest::Client,
    pace: KeyFetchPace,
    keys: RwLock<Option<Arc<KeySet>>>,
    /// Held while fetching; holds when the last fetch began.
    last_fetch: Mutex<Option<Instant>>,
}

/// The keys of one fetch.
struct KeySet {
    keys: Vec<Key>,
    generation: u64,
}

struct Key {
    id: Option<String>,
    algorithms: &'static [Algorithm],
    key: Arc<DecodingKey>,
}

/// A key, and which fetch brought it.
pub(super) struct FoundKey {
    pub(super) key: Arc<DecodingKey>,
    pub(super) generation: u64,
}

enum KeyLookup {
    Key(FoundKey),
    /// The id is known, but its key is for something else.
    Misfit,
    Unknown,
}

impl Issuer {
    pub(super) fn new(
        name: &str,
        discovery_url: Option<&str>,
        pace: KeyFetchPace,
    ) -> Result<Arc<Self>, reqwest::Error> {
        let discovery_url = discovery_url.map_or_else(
            || format!("{}/.well-known/openid-configuration", name.trim_end_matches('/')),
            str::to_owned,
        );
        let http = reqwest::Client::builder()
            .user_agent(concat!("memtrove/", env!("CARGO_PKG_VERSION")))
            .connect_timeout(CONNECT_TIMEOUT)
            .timeout(FETCH_TIMEOUT)
            .redirect(reqwest::redirect::Policy::limited(3))
            .https_only(discovery_url.starts_with("https://"))
            .build()?;
        Ok(Arc::new(Self {
            name: name.to_owned(),
            discovery_url,
            http,
            pace,
            keys: RwLock::new(None),
            last_fetch: Mutex::new(None),
        }))
    }

    /// What tokens must carry in `iss`.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// The key a token says it was signed with.
    pub(super) async fn key(
        self: &Arc<Self>,
        id: Option<&str>,
        algorithm: Algorithm,
    ) -> Result<FoundKey, TokenFailure> {
        const MISFIT: TokenFailure =
            TokenFailure::Rejected("signed with an algorithm that its key is not for");
        let known = self.known();
        match known.as_ref().map_or(KeyLookup::Unknown, |set| set.find(id, algorithm)) {
            KeyLookup::Key(key) => return Ok(key),
            KeyLookup::Misfit => return Err(MISFIT),
            KeyLookup::Unknown => {}
        }
        self.refresh(known.map_or(0, |set| set.generation)).await;
        match self.known().ok_or(TokenFailure::Unavailable)?.find(id, algorithm) {
            KeyLookup::Key(key) => Ok(key),
            KeyLookup::Misfit => Err(MISFIT),
            KeyLookup::Unknown => {
                Err(TokenFailure::Rejected("signed with a key that the issuer does not publish"))
            }
        }
    }

    /// Changes whenever the keys may have.
    pub(super) fn generation(&self) -> u64 {
        self.known().map_or(0, |set| set.generation)
    }

    /// Asks the issuer once, for a diagnosis: how many usable keys it publishes, or why that cannot be said.
    pub(super) async fn probe(&self) -> Result<usize, String> {
        self.fetch().await.map(|keys| keys.len())
    }

    fn known(&self) -> Option<Arc<KeySet>> {
        self.keys.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Fetches the keys unless somebody did so since `seen`, or it is too early.
    async fn refresh(self: &Arc<Self>, seen: u64) {
        if let Ok(last) = self.last_fetch.try_lock()
            && self.too_early(*last)
        {
            return;
        }
        let issuer = Arc::clone(self);
        let fetch = tokio::spawn(async move {
            let mut last = issuer.last_fetch.lock().await;
            let generation = issuer.generation();
            if generation == seen && !issuer.too_early(*last) {
                *last = Some(Instant::now());
                issuer.replace_keys().await;
                if generation == 0 && issuer.known().is_some() {
                    tokio::spawn(refresh_in_background(Arc::downgrade(&issuer), issuer.pace.background));
                }
            }
        });
        // The only failure is a runtime that is going down, and then the answer is not awaited.
        let _ = fetch.await;
    }

    fn too_early(&self, last: Option<Instant>) -> bool {
        let pause = if self.known().is_some() { self.pace.unknown_key } else { self.pace.no_keys };
        last.is_some_and(|last| last.elapsed() < pause)
    }

    /// Call this with `last_fetch` locked.
    async fn replace_keys(&self) {
        match self.fetch().await {
            Ok(keys) => {
                let generation = self.generation() + 1;
                tracing::debug!(issuer = self.name, keys = keys.len(), "the issuer's keys were fetched");
                *self.keys.write().unwrap_or_else(PoisonError::into_inner) =
                    Some(Arc::new(KeySet { keys, generation }));
            }
            Err(problem) if self.known().is_some() => {
                tracing::warn!(
                    issuer = self.name,
                    problem,
                    "the issuer's keys could not be refreshed; keeping the old ones"
                );
            }
            Err(problem) => {
                tracing::error!(
                    issuer = self.name,
                    problem,
                    "the issuer's keys could not be fetched; bearer tokens cannot be verified until they are"
                );
            }
        }
    }

    async fn fetch(&self) -> Result<Vec<Key>, String> {
        let document: Discovery = self.get(&self.discovery_url).await?;
        if document.issuer != self.name {
            return Err(format!(
                "{} is the document of issuer '{}', not of '{}': set auth.jwt.issuer to what it says, exactly",
                self.discovery_url, document.issuer, self.name
            ));
        }
        let set: JsonWebKeys = self.get(&document.jwks_uri).await?;
        let keys: Vec<Key> = set
            .keys
            .into_iter()
            .take(MAX_KEYS)
            .filter_map(|key| serde_json::from_value::<JsonWebKey>(key).ok()?.usable())
            .collect();
        if keys.is_empty() {
            return Err(format!("{} publishes no key that can verify a token", document.jwks_uri));
        }
        Ok(keys)
    }

    async fn get<T: DeserializeOwned>(&self, url: &str) -> Result<T, String> {
        let failed = |error: reqwest::Error| format!("{url}: {}", causes(&error.without_url()));
        let mut response = self.http.get(url).send().await.map_err(failed)?;
        if !response.status().is_success() {
            return Err(format!("{url} answered {}", response.status()));
        }
        let mut body = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(failed)? {
            if body.len() + chunk.len() > MAX_DOCUMENT_BYTES {
                return Err(format!("{url} answered with more than {MAX_DOCUMENT_BYTES} bytes"));
            }
            body.extend_from_slice(&chunk);
        }
        serde_json::from_slice(&body).map_err(|error| format!("{url} answered with something else: {error}"))
    }
}

async fn refresh_in_background(issuer: Weak<Issuer>, pause: Duration) {
    loop {
        tokio::time::sleep(pause).await;
        let Some(issuer) = issuer.upgrade() else { return };
        let mut last = issuer.last_fetch.lock().await;
        *last = Some(Instant::now());
        issuer.replace_keys().await;
    }
}

/// An error with what caused it: the outermost one alone only says that a request failed.
fn causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    text
}

impl KeySet {
    fn find(&self, id: Option<&str>, algorithm: Algorithm) -> KeyLookup {
        let fits = |key: &&Key| key.algorithms.contains(&algorithm);
        let Some(id) = id else {
            // Without an id the choice must be no choice.
            let mut fitting = self.keys.iter().filter(fits);
            return match (fitting.next(), fitting.next()) {
                (Some(key), None) => self.found(key),
                _ => KeyLookup::Unknown,
            };
        };
        let mut named = self.keys.iter().filter(|key| key.id.as_deref() == Some(id)).peekable();
        if named.peek().is_none() {
            return KeyLookup::Unknown;
        }
        named.find(fits).map_or(KeyLookup::Misfit, |key| self.found(key))
    }

    fn found(&self, key: &Key) -> KeyLookup {
        KeyLookup::Key(FoundKey { key: Arc::clone(&key.key), generation: self.generation })
    }
}

#[derive(Deserialize)]
struct Discovery {
    issuer: String,
    jwks_uri: String,
}

/// Keys are read one by one, so that one of a kind we do not know does not cost us the others.
#[derive(Deserialize)]
struct JsonWebKeys {
    keys: Vec<serde_json::Value>,
}

#[derive(Deserialize)]
struct JsonWebKey {
    kty: String,
    kid: Option<String>,
    alg: Option<String>,
    r#use: Option<String>,
    key_ops: Option<Vec<String>>,
    crv: Option<String>,
    n: Option<String>,
    e: Option<String>,
    x: Option<String>,
    y: Option<String>,
}

impl JsonWebKey {
    /// This key, if it can verify the signature of a token.
    fn usable(self) -> Option<Key> {
        if self.r#use.is_some_and(|purpose| purpose != "sig")
            || self.key_ops.is_some_and(|ops| !ops.iter().any(|op| op == "verify"))
        {
            return None;
        }
        let (fits, key): (&'static [Algorithm], _) = match (self.kty.as_str(), self.crv.as_deref()) {
            ("RSA", _) => (
                &[Algorithm::RS256, Algorithm::RS384, Algorithm::RS512],
                DecodingKey::from_rsa_components(&self.n?, &self.e?),
            ),
            ("EC", Some("P-256")) => {
                (&[Algorithm::ES256], DecodingKey::from_ec_components(&self.x?, &self.y?))
            }
            ("EC", Some("P-384")) => {
                (&[Algorithm::ES384], DecodingKey::from_ec_components(&self.x?, &self.y?))
            }
            ("OKP", Some("Ed25519")) => (&[Algorithm::EdDSA], DecodingKey::from_ed_components(&self.x?)),
            _ => return None,
        };
        let algorithms = match self.alg.as_deref() {
            None | Some("Ed25519") => fits,
            Some(name) => only(fits, name)?,
        };
        Some(Key { id: self.kid, algorithms, key: Arc::new(key.ok()?) })
    }
}

/// The one algorithm of these that a key says it is for.
fn only(fits: &'static [Algorithm], name: &str) -> Option<&'static [Algorithm]> {
    let at = fits.iter().position(|algorithm| format!("{algorithm:?}") == name)?;
    fits.get(at..=at)
}
