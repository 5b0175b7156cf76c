//! Authentication against a real OpenID Connect provider (npm `oidc-provider`, started by `scripts/oidc-provider.sh`).
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::HeaderMap;
use jsonwebtoken::{Algorithm, EncodingKey, Header};
use memtrove_core::identity::{Principal, Role};
use memtrove_core::{Clock, Code, Error, Result, SystemClock, Timestamp};
use memtrove_server::auth::config::{AuthConfig, Mode};
use memtrove_server::auth::{Authenticator, KeyFetchPace};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;
use uuid::Uuid;

/// Refreshes that need no waiting for.
const IMPATIENT: KeyFetchPace = KeyFetchPace {
    unknown_key: Duration::ZERO,
    no_keys: Duration::ZERO,
    background: Duration::from_secs(3600),
};

/// A provider process. Killed when dropped.
struct Provider {
    process: Child,
    port: u16,
}

impl Provider {
    fn start() -> Self {
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        Self { process: Self::launch(port), port }
    }

    fn launch(port: u16) -> Child {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scripts/oidc-provider.sh");
        let mut process = Command::new(script)
            .args(["start", &port.to_string(), "--leash"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("{script}: {error}"));
        let mut first_line = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut first_line).unwrap();
        assert!(first_line.starts_with("ready"), "the provider did not start; what it said is above");
        process
    }

    fn stop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }

    /// The same issuer with new keys.
    fn rotate(&mut self) {
        self.stop();
        self.process = Self::launch(self.port);
    }

    fn issuer(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// A token for a client and a resource; `urn:<audience>:<algorithm>`.
    async fn token(&self, client: &str, resource: &str) -> String {
        let form = format!(
            "grant_type=client_credentials&client_id={client}&client_secret=secret&resource={resource}&scope=admin"
        );
        let response = reqwest::Client::new()
            .post(format!("{}/token", self.issuer()))
            .header("content-type", "application/x-www-form-urlencoded")
            .body(form)
            .send()
            .await
            .unwrap();
        let answer: Value = response.json().await.unwrap();
        answer["access_token"].as_str().unwrap_or_else(|| panic!("no token: {answer}")).to_owned()
    }

    async fn get(&self, path: &str) -> String {
        reqwest::get(format!("{}{path}", self.issuer())).await.unwrap().text().await.unwrap()
    }

    /// How often the key set was fetched since the last start.
    async fn key_requests(&self) -> usize {
        self.get("/requests").await.parse().unwrap()
    }

    fn config(&self) -> AuthConfig {
        let mut config = AuthConfig { mode: Mode::Jwt, ..AuthConfig::default() };
        config.jwt.issuer = Some(self.issuer());
        config.jwt.audiences = vec!["memtrove".into()];
        config.roles.auditor.claim_values = vec!["audit".into()];
        config.roles.admin.claim_values = vec!["admin".into()];
        config
    }

    fn authenticator(&self, pace: KeyFetchPace) -> Authenticator {
        Authenticator::with(self.config(), Arc::new(SystemClock), pace).unwrap()
    }
}

impl Drop for Provider {
    fn drop(&mut self) {
        self.stop();
    }
}

/// The machine's clock, so many seconds ahead.
struct Ahead(i64);

impl Clock for Ahead {
    fn now(&self) -> Timestamp {
        SystemClock.now().saturating_add_micros(self.0 * 1_000_000)
    }
    fn new_id(&self) -> Uuid {
        SystemClock.new_id()
    }
}

async fn present(auth: &Authenticator, token: &str) -> Result<Principal> {
    let mut headers = HeaderMap::new();
    headers.insert("authorization", format!("Bearer {token}").parse().unwrap());
    auth.authenticate(&headers).await
}

#[track_caller]
fn assert_refused(result: Result<Principal>, what: &str) {
    match result {
        Err(Error { code: Code::Unauthorized, .. }) => {}
        other => panic!("{what}: expected Unauthorized, got {other:?}"),
    }
}

#[tokio::test]
async fn real_tokens_are_accepted_and_forged_ones_refused() {
    let provider = Provider::start();
    let auth = provider.authenticator(KeyFetchPace::default());

    for algorithm in ["RS256", "ES256", "EdDSA"] {
        let token = provider.token("alice-app", &format!("urn:memtrove:{algorithm}")).await;
        let alice = present(&auth, &token).await.unwrap();
        assert_eq!(alice.tenant().as_str(), "acme");
        assert!(alice.roles.has(Role::Auditor), "from realm_access.roles");
        assert!(!alice.roles.has(Role::Admin), "the token's scope is `admin`, and a scope grants nothing");
        assert!(alice.client.is_none(), "client_id is not a client id for memory access");
        assert_eq!(alice.user.unwrap().as_str(), "alice");
    }
    let bob = present(&auth, &provider.token("bob-app", "urn:memtrove").await).await.unwrap();
    assert_eq!(bob.tenant().as_str(), "default");
    for role in [Role::Admin, Role::Auditor, Role::Indexer] {
        assert!(!bob.roles.has(role), "nobody gave bob {role:?}");
    }

    let token = provider.token("alice-app", "urn:memtrove").await;
    let parts: Vec<&str> = token.split('.').collect();
    let claims: Value = serde_json::from_slice(&URL_SAFE_NO_PAD.decode(parts[1]).unwrap()).unwrap();
    let forged = URL_SAFE_NO_PAD.encode(claims.to_string().replace("alice", "admin"));

    let elsewhere = provider.token("alice-app", "urn:other").await;
    assert_refused(present(&auth, &elsewhere).await, "wrong audience");
    let later = |seconds| {
        Authenticator::with(provider.config(), Arc::new(Ahead(seconds)), KeyFetchPace::default()).unwrap()
    };
    assert!(present(&later(300 + 50), &token).await.is_ok(), "expired, but within the leeway");
    assert_refused(present(&later(300 + 65), &token).await, "expired");
    assert_refused(present(&auth, &format!("{}.{forged}.{}", parts[0], parts[2])).await, "changed claims");
    let flipped = if parts[2].starts_with('A') { "B" } else { "A" };
    let broken = format!("{}.{}.{flipped}{}", parts[0], parts[1], &parts[2][1..]);
    assert_refused(present(&auth, &broken).await, "changed signature");
    let unsigned = URL_SAFE_NO_PAD.encode(r#"{"alg":"none","typ":"at+jwt"}"#);
    assert_refused(present(&auth, &format!("{unsigned}.{}.", parts[1])).await, "alg none");
    assert_refused(
        present(&auth, &format!("{unsigned}.{}.{}", parts[1], parts[2])).await,
        "alg none, with signature",
    );

    let keys: Value = serde_json::from_str(&provider.get("/jwks").await).unwrap();
    for key in keys["keys"].as_array().unwrap() {
        let header =
            Header { kid: Some(key["kid"].as_str().unwrap().into()), ..Header::new(Algorithm::HS256) };
        let public = key["n"].as_str().or(key["x"].as_str()).unwrap();
        for secret in [public.as_bytes().to_vec(), URL_SAFE_NO_PAD.decode(public).unwrap()] {
            let token = jsonwebtoken::encode(&header, &claims, &EncodingKey::from_secret(&secret)).unwrap();
            assert_refused(present(&auth, &token).await, "HMAC with the public key");
        }
    }

    let mut picky = provider.config();
    picky.jwt.allowed_clients = vec!["alice-app".into()];
    let picky = Authenticator::new(picky).unwrap();
    assert!(present(&picky, &token).await.is_ok());
    assert_refused(
        present(&picky, &provider.token("bob-app", "urn:memtrove").await).await,
        "client not allowed",
    );
}

#[tokio::test]
async fn a_rotation_is_followed_and_refreshes_are_bounded() {
    let mut provider = Provider::start();
    let (patient, impatient) =
        (provider.authenticator(KeyFetchPace::default()), provider.authenticator(IMPATIENT));
    let old = provider.token("alice-app", "urn:memtrove").await;
    assert!(present(&patient, &old).await.is_ok());
    assert!(present(&impatient, &old).await.is_ok());
    assert_eq!(provider.key_requests().await, 2, "one for each of the two");

    provider.rotate();
    let new = provider.token("alice-app", "urn:memtrove").await;
    assert!(present(&impatient, &old).await.is_ok(), "nobody has noticed yet");
    assert!(present(&impatient, &new).await.is_ok(), "the unknown key caused a refresh");
    assert_refused(present(&impatient, &old).await, "the old key is gone");
    assert_eq!(provider.key_requests().await, 2, "the old key was looked for as well");

    for number in 0..100 {
        let header = Header { kid: Some(format!("made-up-{number}")), ..Header::new(Algorithm::RS256) };
        let made_up = format!("{}.{}.AAAA", URL_SAFE_NO_PAD.encode(json!(header).to_string()), "e30");
        assert_refused(present(&patient, &made_up).await, "made-up key");
    }
    assert!(provider.key_requests().await <= 3, "a hundred made-up keys cost at most one fetch");
}

#[tokio::test]
async fn known_keys_outlive_the_provider() {
    let mut provider = Provider::start();
    let (known, fresh) = (provider.authenticator(IMPATIENT), provider.authenticator(IMPATIENT));
    let alice = provider.token("alice-app", "urn:memtrove").await;
    let bob = provider.token("bob-app", "urn:memtrove").await;
    assert!(present(&known, &alice).await.is_ok());
    assert_eq!(known.probe_issuer().await, Some(Ok(3)));

    provider.stop();
    assert!(present(&known, &alice).await.is_ok());
    assert!(present(&known, &bob).await.is_ok(), "verified with a key that was fetched before");
    let unknown = present(&fresh, &alice).await.unwrap_err();
    assert!(
        matches!(unknown, Error { code: Code::IdentityProviderUnavailable, .. }),
        "without keys nothing can be said: {unknown:?}"
    );
    assert!(known.probe_issuer().await.unwrap().is_err());
}
