//! Every rule of authentication, with tokens made here and an issuer that answers on a loopback port.

use super::config::{ClientKeys, OneOrMany, RolesConfig};
use super::*;
use aws_lc_rs::encoding::AsDer;
use aws_lc_rs::rsa::KeySize;
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, ECDSA_P384_SHA384_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair,
};
use axum::Router;
use axum::extract::State;
use axum::routing::get;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::HeaderValue;
use jsonwebtoken::{Algorithm, EncodingKey, Header};
use memtrove_core::identity::Role;
use memtrove_core::{Code, Details, Timestamp};
use serde_json::{Value, json};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

const NOW: u64 = 1_800_000_000;

/// A clock that stands still.
struct Still;
impl Clock for Still {
    fn now(&self) -> Timestamp {
        Timestamp::from_micros(NOW as i64 * 1_000_000)
    }
    fn new_id(&self) -> uuid::Uuid {
        uuid::Uuid::nil()
    }
}

fn headers(pairs: &[(&str, &str)]) -> HeaderMap {
    let mut map = HeaderMap::new();
    for (name, value) in pairs {
        map.append(name.parse::<HeaderName>().unwrap(), HeaderValue::from_bytes(value.as_bytes()).unwrap());
    }
    map
}

async fn call(auth: &Authenticator, pairs: &[(&str, &str)]) -> Result<Principal> {
    auth.authenticate(&headers(pairs)).await
}

async fn bearer_call(auth: &Authenticator, token: &str) -> Result<Principal> {
    call(auth, &[("authorization", &format!("Bearer {token}"))]).await
}

fn local() -> Authenticator {
    Authenticator::new(AuthConfig::default()).unwrap()
}

fn secret_config() -> AuthConfig {
    let mut config = AuthConfig { mode: Mode::Jwt, ..AuthConfig::default() };
    config.jwt.hmac_secret = Some(Secret::new("a secret of more than thirty-two bytes"));
    config
}

fn hmac(config: AuthConfig) -> Authenticator {
    Authenticator::with(config, Arc::new(Still), KeyFetchPace::default()).unwrap()
}

fn hs256(claims: &Value) -> String {
    sign(
        Header::new(Algorithm::HS256),
        claims,
        &EncodingKey::from_secret(b"a secret of more than thirty-two bytes"),
    )
}

fn sign(header: Header, claims: &Value, key: &EncodingKey) -> String {
    jsonwebtoken::encode(&header, claims, key).unwrap()
}

fn alice() -> Value {
    json!({ "sub": "alice", "exp": NOW + 300 })
}

fn with(mut claims: Value, name: &str, value: Value) -> Value {
    claims[name] = value;
    claims
}

#[track_caller]
fn assert_refused(result: Result<Principal>) {
    assert_eq!(result.map(|principal| principal.user).unwrap_err(), Error::UNAUTHORIZED);
}

mod local_mode {
    use super::*;

    #[tokio::test]
    async fn the_bearer_is_the_user_and_the_key_is_the_client() {
        let who =
            call(&local(), &[("authorization", "Bearer alice"), ("x-api-key", "my-agent")]).await.unwrap();
        assert_eq!(who.user.unwrap().as_str(), "alice");
        assert_eq!(who.client.unwrap().as_str(), "my-agent");
    }

    #[tokio::test]
    async fn the_user_admin_is_admin_and_nobody_else() {
        assert!(bearer_call(&local(), "admin").await.unwrap().roles.has(Role::Admin));
        assert!(!bearer_call(&local(), "alice").await.unwrap().roles.has(Role::Admin));
    }

    #[tokio::test]
    async fn every_client_may_name_a_user_and_a_tenant() {
        let who = call(&local(), &[("x-api-key", "a"), ("x-user-id", "bob"), ("x-tenant-id", "acme")])
            .await
            .unwrap();
        assert_eq!(who.tenant().as_str(), "acme");
        assert_eq!(who.into_caller().unwrap().user.as_str(), "bob");
    }

    #[tokio::test]
    async fn a_configured_key_stands_for_its_client_and_roles_apply() {
        let mut config = AuthConfig::default();
        let keys = ClientKeys { keys: vec![Secret::new("k1")], tenant: Some("acme".into()) };
        config.api_keys.insert("robot".into(), keys);
        config.roles.indexer.clients = vec!["robot".into()];
        config.roles.auditor.users = vec!["eve".into()];
        let auth = Authenticator::new(config).unwrap();
        let robot = call(&auth, &[("x-api-key", "k1")]).await.unwrap();
        assert_eq!(robot.client.as_ref().unwrap().as_str(), "robot");
        assert_eq!(robot.tenant().as_str(), "acme");
        assert!(robot.roles.has(Role::Indexer));
        assert!(bearer_call(&auth, "eve").await.unwrap().roles.has(Role::Auditor));
        assert!(bearer_call(&auth, "admin").await.unwrap().roles.has(Role::Admin));
    }

    #[tokio::test]
    async fn user_ids_are_utf8() {
        assert_eq!(bearer_call(&local(), "zoë").await.unwrap().user.unwrap().as_str(), "zoë");
        let who = call(&local(), &[("x-api-key", "a"), ("x-user-id", "花子")]).await.unwrap();
        assert_eq!(who.into_caller().unwrap().user.as_str(), "花子");

        let mut latin1 = headers(&[("x-api-key", "a")]);
        latin1.insert(X_USER_ID, HeaderValue::from_bytes(b"zo\xeb").unwrap());
        assert!(
            matches!(local().authenticate(&latin1).await, Err(Error { details: Details::Violations(v), .. }) if v[0].field == "X-User-ID")
        );
        let mut latin1 = HeaderMap::new();
        latin1.insert(AUTHORIZATION, HeaderValue::from_bytes(b"Bearer zo\xeb").unwrap());
        assert_refused(local().authenticate(&latin1).await);
    }

    #[tokio::test]
    async fn overlong_ids_are_refused() {
        assert_refused(bearer_call(&local(), &"x".repeat(256)).await);
        assert_refused(call(&local(), &[("x-api-key", &"x".repeat(256))]).await);
    }
}

mod header_rules {
    use super::*;

    #[tokio::test]
    async fn the_scheme_is_case_insensitive() {
        for scheme in ["Bearer", "bearer", "BEARER", "bEaReR"] {
            assert!(
                call(&local(), &[("authorization", &format!("{scheme} alice"))]).await.is_ok(),
                "{scheme}"
            );
        }
        assert!(call(&local(), &[("authorization", "Bearer   alice")]).await.is_ok(), "several spaces");
    }

    #[tokio::test]
    async fn anything_but_one_bearer_credential_is_refused() {
        for value in ["", "Bearer", "Bearer ", "Beareralice", "Basic YWxpY2U6eA==", "alice", "bear"] {
            assert_refused(call(&local(), &[("authorization", value)]).await);
            assert_refused(call(&local(), &[("authorization", value), ("x-api-key", "good")]).await);
        }
    }

    #[tokio::test]
    async fn a_repeated_credential_is_refused() {
        assert_refused(call(&local(), &[("authorization", "Bearer a"), ("authorization", "Bearer a")]).await);
        assert_refused(call(&local(), &[("x-api-key", "a"), ("x-api-key", "b")]).await);
    }

    #[tokio::test]
    async fn a_repeated_assertion_is_invalid() {
        let twice = [("x-api-key", "a"), ("x-user-id", "bob"), ("x-user-id", "eve")];
        assert!(matches!(call(&local(), &twice).await, Err(Error { code: Code::Invalid, .. })));
        let twice = [("authorization", "Bearer a"), ("x-tenant-id", "t"), ("x-tenant-id", "u")];
        assert!(matches!(call(&local(), &twice).await, Err(Error { code: Code::Invalid, .. })));
    }

    #[tokio::test]
    async fn nobody_is_refused() {
        assert_refused(call(&local(), &[]).await);
        assert_refused(call(&local(), &[("x-user-id", "alice")]).await);
    }
}

mod api_key_rules {
    use super::*;

    fn config() -> AuthConfig {
        let mut config = secret_config();
        let keys =
            |keys: &[&str]| ClientKeys { keys: keys.iter().map(|k| Secret::new(*k)).collect(), tenant: None };
        config.api_keys.insert("agent".into(), keys(&["k1", "k2"]));
        config.api_keys.insert("gateway".into(), keys(&["k3"]));
        config.trusted_clients.clients = vec!["gateway".into()];
        config
    }

    #[tokio::test]
    async fn every_key_of_a_client_is_the_client() {
        let auth = hmac(config());
        for key in ["k1", "k2"] {
            assert_eq!(call(&auth, &[("x-api-key", key)]).await.unwrap().client.unwrap().as_str(), "agent");
        }
    }

    #[tokio::test]
    async fn an_unknown_key_is_refused_even_next_to_a_valid_token() {
        let auth = hmac(config());
        let token = format!("Bearer {}", hs256(&alice()));
        assert_refused(call(&auth, &[("x-api-key", "k4")]).await);
        assert_refused(call(&auth, &[("x-api-key", "agent")]).await);
        assert_refused(call(&auth, &[("x-api-key", "")]).await);
        assert_refused(call(&auth, &[("authorization", &token), ("x-api-key", "k4")]).await);
        assert!(call(&auth, &[("authorization", &token), ("x-api-key", "k1")]).await.is_ok());
    }

    #[tokio::test]
    async fn a_bad_token_is_refused_even_next_to_a_valid_key() {
        assert_refused(
            call(&hmac(config()), &[("authorization", "Bearer nonsense"), ("x-api-key", "k1")]).await,
        );
    }

    #[tokio::test]
    async fn only_a_trusted_client_is_heard_about_users() {
        let auth = hmac(config());
        let gateway = call(&auth, &[("x-api-key", "k3"), ("x-user-id", "bob")]).await.unwrap();
        assert_eq!(gateway.into_caller().unwrap().user.as_str(), "bob");
        let agent = call(&auth, &[("x-api-key", "k1"), ("x-user-id", "bob")]).await.unwrap();
        assert_eq!(agent.into_caller().unwrap_err(), Error::UNAUTHORIZED);

        let mut malformed = headers(&[("x-api-key", "k1")]);
        malformed.insert(X_USER_ID, HeaderValue::from_bytes(b"\xff").unwrap());
        assert!(auth.authenticate(&malformed).await.is_ok(), "ignored as if absent");
    }

    #[tokio::test]
    async fn keys_alone_are_a_deployment_and_then_no_token_is_accepted() {
        let mut config = config();
        config.jwt.hmac_secret = None;
        let auth = Authenticator::new(config).unwrap();
        assert!(call(&auth, &[("x-api-key", "k1")]).await.is_ok());
        assert_refused(bearer_call(&auth, "k1").await);
        assert_refused(bearer_call(&auth, &hs256(&alice())).await);
    }
}

mod claims {
    use super::*;

    async fn user(config: AuthConfig, claims: Value) -> Result<Principal> {
        bearer_call(&hmac(config), &hs256(&claims)).await
    }

    #[tokio::test]
    async fn times_are_checked_with_a_leeway_of_sixty_seconds() {
        let exp = |at: Value| user(secret_config(), with(alice(), "exp", at));
        assert!(exp(json!(NOW - 60)).await.is_ok());
        assert!(exp(json!(NOW as f64 + 0.5)).await.is_ok());
        assert_refused(exp(json!(NOW - 61)).await);
        assert_refused(exp(json!("1900000000")).await);
        assert_refused(exp(Value::Null).await);
        assert_refused(user(secret_config(), json!({ "sub": "alice" })).await);
        let nbf = |at: Value| user(secret_config(), with(alice(), "nbf", at));
        assert!(nbf(json!(NOW + 60)).await.is_ok());
        assert_refused(nbf(json!(NOW + 61)).await);
        assert_refused(nbf(json!("soon")).await);
        assert_refused(nbf(json!(1e300)).await);
    }

    #[tokio::test]
    async fn one_of_the_audiences_must_match_when_configured() {
        let mut config = secret_config();
        config.jwt.audiences = vec!["memtrove".into(), "memory".into()];
        let aud = |value: Value| user(config.clone(), with(alice(), "aud", value));
        assert!(aud(json!("memtrove")).await.is_ok());
        assert!(aud(json!(["other", "memory"])).await.is_ok());
        assert_refused(aud(json!("memtrove other")).await);
        assert_refused(aud(json!(["other"])).await);
        assert_refused(aud(json!([])).await);
        assert_refused(user(config.clone(), alice()).await);
        assert!(user(secret_config(), with(alice(), "aud", json!("other"))).await.is_ok(), "not configured");
    }

    #[tokio::test]
    async fn azp_or_client_id_must_be_allowed_when_configured() {
        let mut config = secret_config();
        config.jwt.allowed_clients = vec!["console".into()];
        assert!(user(config.clone(), with(alice(), "azp", json!("console"))).await.is_ok());
        assert!(user(config.clone(), with(alice(), "client_id", json!("console"))).await.is_ok());
        assert_refused(user(config.clone(), with(alice(), "azp", json!("evil"))).await);
        let both = with(with(alice(), "azp", json!("evil")), "client_id", json!("console"));
        assert_refused(user(config.clone(), both).await);
        assert_refused(user(config, alice()).await);
    }

    #[tokio::test]
    async fn the_first_present_user_claim_counts() {
        let id = async |claims: Value| {
            user(secret_config(), claims).await.map(|principal| principal.user.unwrap().as_str().to_owned())
        };
        let full = json!({ "preferred_username": "al", "upn": "al@x", "sub": "1", "exp": NOW + 9 });
        assert_eq!(id(full.clone()).await.unwrap(), "al");
        assert_eq!(id(with(full.clone(), "preferred_username", Value::Null)).await.unwrap(), "al@x");
        assert_eq!(id(alice()).await.unwrap(), "alice");
        assert_eq!(
            id(with(full.clone(), "preferred_username", json!(7))).await.unwrap_err(),
            Error::UNAUTHORIZED
        );
        assert_eq!(id(with(full, "preferred_username", json!(" "))).await.unwrap_err(), Error::UNAUTHORIZED);
        assert_eq!(id(json!({ "exp": NOW + 9 })).await.unwrap_err(), Error::UNAUTHORIZED);
        let mut config = secret_config();
        config.jwt.user_id_claims = vec!["/act/name".into()];
        let nested =
            user(config, json!({ "act": { "name": "deep" }, "sub": "x", "exp": NOW + 9 })).await.unwrap();
        assert_eq!(nested.user.unwrap().as_str(), "deep");
    }

    #[tokio::test]
    async fn the_tenant_claim_binds_and_is_never_guessed() {
        let tenant = async |config: AuthConfig, claims: Value| {
            user(config, claims).await.map(|principal| principal.tenant().as_str().to_owned())
        };
        assert_eq!(tenant(secret_config(), alice()).await.unwrap(), "default");
        assert_eq!(tenant(secret_config(), with(alice(), "tenant", json!("acme"))).await.unwrap(), "acme");
        let odd = [json!(null), json!(7), json!(true), json!(["acme"]), json!({}), json!(""), json!("  ")];
        let odd = odd.into_iter().chain([json!("a\nb"), json!("t".repeat(257))]);
        for odd in odd {
            let refused = tenant(secret_config(), with(alice(), "tenant", odd.clone())).await;
            assert_eq!(refused.unwrap_err(), Error::UNAUTHORIZED, "{odd}");
            let mut nested = secret_config();
            nested.tenant_claim = OneOrMany(vec!["/org/tenant".into(), "tid".into()]);
            let claims = with(alice(), "org", json!({"tenant": odd.clone()}));
            for claims in [claims.clone(), with(claims, "tid", json!("acme"))] {
                assert_eq!(tenant(nested.clone(), claims).await.unwrap_err(), Error::UNAUTHORIZED, "{odd}");
            }
        }
        let mut config = secret_config();
        config.tenant_claim = OneOrMany(vec!["org".into(), "https://x.example/tenant".into()]);
        let claims = with(alice(), "https://x.example/tenant", json!("acme"));
        assert_eq!(tenant(config.clone(), claims.clone()).await.unwrap(), "acme");
        assert_eq!(
            tenant(config.clone(), with(claims.clone(), "org", json!("first"))).await.unwrap(),
            "first"
        );
        assert_eq!(tenant(config, with(claims, "org", json!(null))).await.unwrap_err(), Error::UNAUTHORIZED);

        let mut config = secret_config();
        config.tenant_claim = OneOrMany(vec!["/org/tenant".into()]);
        for (org, lands_in) in [
            (json!({"tenant": "acme"}), Some("acme")),
            (json!({}), Some("default")),
            (json!({"tenant": null}), None),
            // Nothing can stand below these, so nothing was said of a tenant where it had to be.
            (json!(null), None),
            (json!("acme"), None),
            (json!(7), None),
        ] {
            let found = tenant(config.clone(), with(alice(), "org", org.clone())).await;
            assert_eq!(found.ok().as_deref(), lands_in, "{org}");
        }
        assert_eq!(tenant(config, alice()).await.unwrap(), "default");
    }

    #[tokio::test]
    async fn roles_come_from_the_configured_claims_only() {
        let mut config = secret_config();
        config.roles.admin.claim_values = vec!["boss".into()];
        config.roles.auditor.claim_values = vec!["audit".into()];
        let roles = async |claims: Value| user(config.clone(), claims).await.unwrap().roles;
        let realm = |roles: Value| with(alice(), "realm_access", json!({ "roles": roles }));
        assert!(roles(realm(json!(["x", "audit"]))).await.has(Role::Auditor));
        assert!(roles(realm(json!("boss"))).await.has(Role::Admin));
        assert!(!roles(realm(json!("x boss"))).await.has(Role::Admin), "a text is not split");
        assert!(!roles(realm(json!([["boss"], 7]))).await.has(Role::Admin));
        for claim in ["scope", "scp", "roles", "groups"] {
            let held = roles(with(alice(), claim, json!("boss audit boss"))).await;
            assert!(!held.has(Role::Admin) && !held.has(Role::Auditor), "{claim}");
            let held = roles(with(alice(), claim, json!(["boss", "audit"]))).await;
            assert!(!held.has(Role::Admin) && !held.has(Role::Auditor), "{claim}");
        }
    }
}

mod tokens {
    use super::*;

    #[tokio::test]
    async fn what_is_not_a_jwt_is_refused() {
        let auth = hmac(secret_config());
        let part = |text: &str| URL_SAFE_NO_PAD.encode(text);
        for token in [
            "alice".to_owned(),
            "a.b".into(),
            "a.b.c".into(),
            "..".into(),
            format!("{}.{}.{}.{}", part("{}"), part("{}"), part("{}"), part("{}")),
            format!("{}.{}.", part(r#"{"alg":"none"}"#), part(&alice().to_string())),
            format!("{}.{}.", part(r#"{"alg":"HS256"}"#), part(&alice().to_string())),
            format!("{}.{}.x", part(r#"{"alg":7}"#), part("{}")),
            "x".repeat(17_000),
        ] {
            assert_refused(bearer_call(&auth, &token).await);
        }
    }

    #[tokio::test]
    async fn a_secret_verifies_hs256_and_nothing_else() {
        let auth = hmac(secret_config());
        let key = EncodingKey::from_secret(b"a secret of more than thirty-two bytes");
        assert!(bearer_call(&auth, &hs256(&alice())).await.is_ok());
        assert_refused(bearer_call(&auth, &sign(Header::new(Algorithm::HS512), &alice(), &key)).await);
        let other = EncodingKey::from_secret(b"another secret, which is as long as it");
        assert_refused(bearer_call(&auth, &sign(Header::new(Algorithm::HS256), &alice(), &other)).await);
    }

    #[tokio::test]
    async fn a_changed_token_is_refused() {
        let auth = hmac(secret_config());
        let token = hs256(&alice());
        let parts: Vec<&str> = token.split('.').collect();
        let forged = URL_SAFE_NO_PAD.encode(with(alice(), "sub", json!("admin")).to_string());
        assert_refused(bearer_call(&auth, &format!("{}.{forged}.{}", parts[0], parts[2])).await);
    }

    #[tokio::test]
    async fn claims_that_are_not_an_object_are_refused() {
        let auth = hmac(secret_config());
        for claims in [json!([]), json!("alice"), Value::Null] {
            assert_refused(bearer_call(&auth, &hs256(&claims)).await);
        }
    }

    #[tokio::test]
    async fn critical_extensions_are_refused() {
        let auth = hmac(secret_config());
        let header = URL_SAFE_NO_PAD.encode(r#"{"alg":"HS256","crit":["b64"],"b64":false}"#);
        let signed = format!("{header}.{}", URL_SAFE_NO_PAD.encode(alice().to_string()));
        let key = EncodingKey::from_secret(b"a secret of more than thirty-two bytes");
        let signature = jsonwebtoken::crypto::sign(signed.as_bytes(), &key, Algorithm::HS256).unwrap();
        assert_refused(bearer_call(&auth, &format!("{signed}.{signature}")).await);
    }
}

/// An issuer with real keys on a loopback port.
struct TestIssuer {
    state: Arc<IssuerState>,
    url: String,
}

#[derive(Default)]
struct IssuerState {
    url: Mutex<String>,
    says: Mutex<Option<String>>,
    keys: Mutex<Vec<Value>>,
    fails: std::sync::atomic::AtomicBool,
    delay_ms: AtomicU64,
    key_requests: AtomicUsize,
}

impl TestIssuer {
    async fn start(keys: Vec<Value>) -> Self {
        let state = Arc::new(IssuerState { keys: Mutex::new(keys), ..IssuerState::default() });
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        *state.url.lock().unwrap() = url.clone();
        let router = Router::new()
            .route("/.well-known/openid-configuration", get(Self::discovery))
            .route("/keys", get(Self::keys))
            .with_state(Arc::clone(&state));
        tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self { state, url }
    }

    async fn discovery(State(state): State<Arc<IssuerState>>) -> String {
        let url = state.url.lock().unwrap().clone();
        let issuer = state.says.lock().unwrap().clone().unwrap_or(url.clone());
        json!({ "issuer": issuer, "jwks_uri": format!("{url}/keys") }).to_string()
    }

    async fn keys(State(state): State<Arc<IssuerState>>) -> Result<String, http::StatusCode> {
        state.key_requests.fetch_add(1, Ordering::SeqCst);
        tokio::time::sleep(Duration::from_millis(state.delay_ms.load(Ordering::SeqCst))).await;
        if state.fails.load(Ordering::SeqCst) {
            return Err(http::StatusCode::INTERNAL_SERVER_ERROR);
        }
        Ok(json!({ "keys": *state.keys.lock().unwrap() }).to_string())
    }

    fn publish(&self, keys: Vec<Value>) {
        *self.state.keys.lock().unwrap() = keys;
    }

    fn fail(&self, fails: bool) {
        self.state.fails.store(fails, Ordering::SeqCst);
    }

    fn requests(&self) -> usize {
        self.state.key_requests.load(Ordering::SeqCst)
    }

    fn config(&self) -> AuthConfig {
        let mut config = AuthConfig { mode: Mode::Jwt, ..AuthConfig::default() };
        config.jwt.issuer = Some(self.url.clone());
        config
    }

    fn authenticator(&self, pace: KeyFetchPace) -> Authenticator {
        Authenticator::with(self.config(), Arc::new(Still), pace).unwrap()
    }

    fn claims(&self) -> Value {
        with(alice(), "iss", json!(self.url))
    }

    fn token(&self, key: &TestKey) -> String {
        key.sign(&self.claims())
    }
}

/// A key pair of one algorithm.
struct TestKey {
    id: &'static str,
    algorithm: Algorithm,
    private: EncodingKey,
    public: Value,
}

impl TestKey {
    fn rsa(id: &'static str) -> Self {
        let pair = aws_lc_rs::rsa::KeyPair::generate(KeySize::Rsa2048).unwrap();
        let public = pair.public_key();
        let (n, e) = (
            public.modulus().big_endian_without_leading_zero(),
            public.exponent().big_endian_without_leading_zero(),
        );
        let public = json!({ "kty": "RSA", "kid": id, "use": "sig", "n": URL_SAFE_NO_PAD.encode(n), "e": URL_SAFE_NO_PAD.encode(e) });
        let der = AsDer::<aws_lc_rs::encoding::Pkcs8V1Der>::as_der(&pair).unwrap();
        let pem = format!(
            "-----BEGIN PRIVATE KEY-----\n{}\n-----END PRIVATE KEY-----\n",
            base64::engine::general_purpose::STANDARD.encode(der.as_ref())
        );
        Self {
            id,
            algorithm: Algorithm::RS256,
            private: EncodingKey::from_rsa_pem(pem.as_bytes()).unwrap(),
            public,
        }
    }

    fn ec(id: &'static str, algorithm: Algorithm) -> Self {
        let (curve, signing) = match algorithm {
            Algorithm::ES256 => ("P-256", &ECDSA_P256_SHA256_FIXED_SIGNING),
            _ => ("P-384", &ECDSA_P384_SHA384_FIXED_SIGNING),
        };
        let pair = EcdsaKeyPair::generate(signing).unwrap();
        let point = &pair.public_key().as_ref()[1..];
        let (x, y) = point.split_at(point.len() / 2);
        let public = json!({ "kty": "EC", "kid": id, "crv": curve, "x": URL_SAFE_NO_PAD.encode(x), "y": URL_SAFE_NO_PAD.encode(y) });
        let private = EncodingKey::from_ec_der(pair.to_pkcs8v1().unwrap().as_ref());
        Self { id, algorithm, private, public }
    }

    fn ed(id: &'static str) -> Self {
        let pair = Ed25519KeyPair::generate().unwrap();
        let public = json!({ "kty": "OKP", "kid": id, "crv": "Ed25519", "alg": "EdDSA", "x": URL_SAFE_NO_PAD.encode(pair.public_key().as_ref()) });
        let private = EncodingKey::from_ed_der(pair.to_pkcs8v1().unwrap().as_ref());
        Self { id, algorithm: Algorithm::EdDSA, private, public }
    }

    fn sign(&self, claims: &Value) -> String {
        sign(Header { kid: Some(self.id.into()), ..Header::new(self.algorithm) }, claims, &self.private)
    }

    /// The same key under another algorithm.
    fn using(mut self, algorithm: Algorithm) -> Self {
        self.algorithm = algorithm;
        self
    }
}

mod issuer_rules {
    use super::*;

    #[tokio::test]
    async fn every_accepted_algorithm_verifies() {
        let keys = [
            TestKey::rsa("r"),
            TestKey::rsa("r384").using(Algorithm::RS384),
            TestKey::rsa("r512").using(Algorithm::RS512),
            TestKey::ec("p256", Algorithm::ES256),
            TestKey::ec("p384", Algorithm::ES384),
            TestKey::ed("ed"),
        ];
        let issuer = TestIssuer::start(keys.iter().map(|key| key.public.clone()).collect()).await;
        let auth = issuer.authenticator(KeyFetchPace::default());
        for key in &keys {
            let who = bearer_call(&auth, &issuer.token(key)).await;
            assert_eq!(who.unwrap().user.unwrap().as_str(), "alice", "{:?}", key.algorithm);
        }
        assert_eq!(issuer.requests(), 1, "one fetch serves all");
    }

    #[tokio::test]
    async fn no_signature_and_hmac_with_the_public_key_are_refused() {
        let key = TestKey::rsa("r");
        let issuer = TestIssuer::start(vec![key.public.clone()]).await;
        let auth = issuer.authenticator(KeyFetchPace::default());
        let claims = issuer.claims();
        let payload = URL_SAFE_NO_PAD.encode(claims.to_string());
        for alg in ["none", "None", "NONE", ""] {
            let header = URL_SAFE_NO_PAD.encode(json!({ "alg": alg, "kid": "r" }).to_string());
            assert_refused(bearer_call(&auth, &format!("{header}.{payload}.")).await);
        }
        let n = key.public["n"].as_str().unwrap();
        for secret in
            [n.as_bytes().to_vec(), URL_SAFE_NO_PAD.decode(n).unwrap(), key.public.to_string().into_bytes()]
        {
            let header = Header { kid: Some("r".into()), ..Header::new(Algorithm::HS256) };
            assert_refused(
                bearer_call(&auth, &sign(header, &claims, &EncodingKey::from_secret(&secret))).await,
            );
        }
        assert_eq!(issuer.requests(), 0, "an algorithm that is not accepted costs no fetch");
    }

    #[tokio::test]
    async fn the_algorithm_must_fit_the_key() {
        let mut pinned = TestKey::rsa("pinned");
        pinned.public["alg"] = json!("RS512");
        let mut encryption = TestKey::rsa("enc");
        encryption.public["use"] = json!("enc");
        let mut signing_only = TestKey::ed("ops");
        signing_only.public["key_ops"] = json!(["sign"]);
        let pss = TestKey::rsa("pss").using(Algorithm::PS256);
        let p256 = TestKey::ec("p256", Algorithm::ES256);
        let keys = [&pinned, &encryption, &signing_only, &pss, &p256];
        let issuer = TestIssuer::start(keys.iter().map(|key| key.public.clone()).collect()).await;
        let auth = issuer.authenticator(KeyFetchPace::default());
        for key in [&pinned, &encryption, &signing_only, &pss] {
            assert_refused(bearer_call(&auth, &issuer.token(key)).await);
        }
        let mut posing = TestKey::rsa("p256");
        posing.public = Value::Null;
        assert_refused(bearer_call(&auth, &issuer.token(&posing)).await);
        assert!(bearer_call(&auth, &issuer.token(&p256)).await.is_ok());
        assert!(bearer_call(&auth, &issuer.token(&pinned.using(Algorithm::RS512))).await.is_ok());
    }

    #[tokio::test]
    async fn the_issuer_must_be_the_configured_one() {
        let key = TestKey::ed("e");
        let issuer = TestIssuer::start(vec![key.public.clone()]).await;
        let auth = issuer.authenticator(KeyFetchPace::default());
        for iss in [
            json!("https://evil.example"),
            json!([issuer.url]),
            json!(format!("{}/", issuer.url)),
            Value::Null,
        ] {
            assert_refused(bearer_call(&auth, &key.sign(&with(alice(), "iss", iss))).await);
        }
        assert_refused(bearer_call(&auth, &key.sign(&alice())).await);
    }

    #[tokio::test]
    async fn a_discovery_document_of_another_issuer_is_not_believed() {
        let key = TestKey::ed("e");
        let issuer = TestIssuer::start(vec![key.public.clone()]).await;
        *issuer.state.says.lock().unwrap() = Some("https://evil.example".into());
        let auth = issuer.authenticator(KeyFetchPace::default());
        let refused = bearer_call(&auth, &issuer.token(&key)).await.unwrap_err();
        assert!(matches!(refused, Error { code: Code::IdentityProviderUnavailable, .. }));
        let problem = auth.probe_issuer().await.unwrap().unwrap_err();
        assert!(problem.contains("evil.example"), "{problem}");
    }

    #[tokio::test]
    async fn a_discovery_url_may_be_elsewhere() {
        let key = TestKey::ed("e");
        let issuer = TestIssuer::start(vec![key.public.clone()]).await;
        *issuer.state.says.lock().unwrap() = Some("https://idp.example".into());
        let mut config = issuer.config();
        config.jwt.issuer = Some("https://idp.example".into());
        config.jwt.discovery_url = Some(format!("{}/.well-known/openid-configuration", issuer.url));
        let auth = Authenticator::with(config, Arc::new(Still), KeyFetchPace::default()).unwrap();
        let claims = with(alice(), "iss", json!("https://idp.example"));
        assert!(bearer_call(&auth, &key.sign(&claims)).await.is_ok());
    }

    #[tokio::test]
    async fn a_token_without_a_key_id_needs_an_unambiguous_key() {
        let (rsa, ed, second) = (TestKey::rsa("r"), TestKey::ed("e"), TestKey::ed("f"));
        let issuer = TestIssuer::start(vec![rsa.public.clone(), ed.public.clone()]).await;
        let auth =
            issuer.authenticator(KeyFetchPace { unknown_key: Duration::ZERO, ..KeyFetchPace::default() });
        let nameless = sign(Header::new(Algorithm::EdDSA), &issuer.claims(), &ed.private);
        assert!(bearer_call(&auth, &nameless).await.is_ok());
        issuer.publish(vec![ed.public.clone(), second.public.clone()]);
        assert!(bearer_call(&auth, &issuer.token(&second)).await.is_ok());
        assert_refused(bearer_call(&auth, &nameless).await);
    }

    #[tokio::test]
    async fn keys_of_unknown_kinds_do_not_spoil_the_others() {
        let key = TestKey::ed("e");
        let odd = [
            json!({ "kty": "EC", "crv": "secp256k1", "kid": "k1", "x": "AA", "y": "AA" }),
            json!({ "kty": "oct", "k": "c2VjcmV0", "kid": "shared" }),
            json!({ "kty": "RSA", "kid": "broken", "n": "!!", "e": "AQAB" }),
            json!({ "kty": 7 }),
            json!("text"),
            json!({ "kty": "RSA", "kid": 12 }),
        ];
        let issuer = TestIssuer::start(odd.into_iter().chain([key.public.clone()]).collect()).await;
        let auth = issuer.authenticator(KeyFetchPace::default());
        assert!(bearer_call(&auth, &issuer.token(&key)).await.is_ok());
        let shared = Header { kid: Some("shared".into()), ..Header::new(Algorithm::HS256) };
        assert_refused(
            bearer_call(&auth, &sign(shared, &issuer.claims(), &EncodingKey::from_secret(b"secret"))).await,
        );
    }
}

mod refreshing {
    use super::*;

    #[tokio::test]
    async fn a_rotated_key_is_picked_up_and_the_withdrawn_one_refused() {
        let (old, new) = (TestKey::ed("old"), TestKey::ed("new"));
        let issuer = TestIssuer::start(vec![old.public.clone()]).await;
        let auth =
            issuer.authenticator(KeyFetchPace { unknown_key: Duration::ZERO, ..KeyFetchPace::default() });
        assert!(bearer_call(&auth, &issuer.token(&old)).await.is_ok());
        issuer.publish(vec![new.public.clone()]);
        assert!(bearer_call(&auth, &issuer.token(&old)).await.is_ok(), "nobody noticed yet");
        assert!(bearer_call(&auth, &issuer.token(&new)).await.is_ok());
        assert_refused(bearer_call(&auth, &issuer.token(&old)).await);
    }

    #[tokio::test]
    async fn unknown_keys_cannot_hammer_the_issuer() {
        let known = TestKey::ed("known");
        let issuer = TestIssuer::start(vec![known.public.clone()]).await;
        let auth = Arc::new(issuer.authenticator(KeyFetchPace::default()));
        assert!(bearer_call(&auth, &issuer.token(&known)).await.is_ok());
        let unknown = issuer.token(&TestKey::ed("unknown"));
        let calls = (0..200).map(|_| {
            let (auth, unknown) = (Arc::clone(&auth), unknown.clone());
            tokio::spawn(async move { bearer_call(&auth, &unknown).await })
        });
        for call in calls.collect::<Vec<_>>() {
            assert_refused(call.await.unwrap());
        }
        assert_eq!(issuer.requests(), 1, "the first fetch is younger than the pace allows");
    }

    #[tokio::test]
    async fn concurrent_callers_share_one_fetch() {
        let key = TestKey::ed("e");
        let issuer = TestIssuer::start(vec![key.public.clone()]).await;
        issuer.state.delay_ms.store(100, Ordering::SeqCst);
        let auth = Arc::new(
            issuer.authenticator(KeyFetchPace { unknown_key: Duration::ZERO, ..KeyFetchPace::default() }),
        );
        let token = issuer.token(&key);
        let calls = (0..50).map(|_| {
            let (auth, token) = (Arc::clone(&auth), token.clone());
            tokio::spawn(async move { bearer_call(&auth, &token).await })
        });
        for call in calls.collect::<Vec<_>>() {
            assert!(call.await.unwrap().is_ok());
        }
        assert_eq!(issuer.requests(), 1);
    }

    #[tokio::test]
    async fn a_caller_that_hangs_up_does_not_cancel_the_fetch() {
        let key = TestKey::ed("e");
        let issuer = TestIssuer::start(vec![key.public.clone()]).await;
        issuer.state.delay_ms.store(100, Ordering::SeqCst);
        let auth = issuer
            .authenticator(KeyFetchPace { no_keys: Duration::from_secs(3600), ..KeyFetchPace::default() });
        let token = issuer.token(&key);
        let hung_up = tokio::time::timeout(Duration::from_millis(20), bearer_call(&auth, &token)).await;
        assert!(hung_up.is_err());
        tokio::time::sleep(Duration::from_millis(300)).await;
        assert!(bearer_call(&auth, &token).await.is_ok());
        assert_eq!(issuer.requests(), 1);
    }

    #[tokio::test]
    async fn without_any_keys_nothing_can_be_said() {
        let key = TestKey::ed("e");
        let issuer = TestIssuer::start(vec![key.public.clone()]).await;
        issuer.fail(true);
        let auth = issuer.authenticator(KeyFetchPace { no_keys: Duration::ZERO, ..KeyFetchPace::default() });
        let unavailable = bearer_call(&auth, &issuer.token(&key)).await.unwrap_err();
        assert!(
            matches!(unavailable, Error { code: Code::IdentityProviderUnavailable, .. }),
            "{unavailable}"
        );
        issuer.fail(false);
        assert!(bearer_call(&auth, &issuer.token(&key)).await.is_ok());
    }

    #[tokio::test]
    async fn a_failing_refresh_keeps_the_old_keys() {
        let key = TestKey::ed("e");
        let issuer = TestIssuer::start(vec![key.public.clone()]).await;
        let auth =
            issuer.authenticator(KeyFetchPace { unknown_key: Duration::ZERO, ..KeyFetchPace::default() });
        assert!(bearer_call(&auth, &issuer.token(&key)).await.is_ok());
        let unknown = issuer.token(&TestKey::ed("unknown"));
        issuer.fail(true);
        assert_refused(bearer_call(&auth, &unknown).await);
        issuer.fail(false);
        issuer.publish(vec![json!({ "kty": "oct", "k": "AAAA" })]);
        assert_refused(bearer_call(&auth, &unknown).await);
        issuer.publish(vec![json!({ "padding": "x".repeat(600 * 1024) })]);
        assert_refused(bearer_call(&auth, &unknown).await);
        assert_eq!(issuer.requests(), 4);
        assert!(bearer_call(&auth, &issuer.token(&key)).await.is_ok());
    }

    #[tokio::test]
    async fn a_withdrawn_key_disappears_in_the_background() {
        let (old, new) = (TestKey::ed("old"), TestKey::ed("new"));
        let issuer = TestIssuer::start(vec![old.public.clone()]).await;
        let auth = issuer
            .authenticator(KeyFetchPace { background: Duration::from_millis(50), ..KeyFetchPace::default() });
        assert!(bearer_call(&auth, &issuer.token(&old)).await.is_ok());
        issuer.publish(vec![new.public.clone()]);
        tokio::time::sleep(Duration::from_millis(400)).await;
        assert_refused(bearer_call(&auth, &issuer.token(&old)).await);
        assert!(bearer_call(&auth, &issuer.token(&new)).await.is_ok());
        drop(auth);
        tokio::time::sleep(Duration::from_millis(100)).await;
        let after = issuer.requests();
        tokio::time::sleep(Duration::from_millis(300)).await;
        assert_eq!(issuer.requests(), after, "nobody asks for an authenticator that is gone");
    }
}

mod configuration {
    use super::*;

    fn problem(change: impl FnOnce(&mut AuthConfig)) -> String {
        let mut config = AuthConfig { mode: Mode::Jwt, ..AuthConfig::default() };
        change(&mut config);
        Authenticator::new(config).err().expect("a problem").to_string()
    }

    fn keys(keys: &[&str]) -> ClientKeys {
        ClientKeys { keys: keys.iter().map(|key| Secret::new(*key)).collect(), tenant: None }
    }

    #[test]
    fn contradictions_say_what_to_do() {
        assert!(problem(|_| {}).contains("set auth.jwt.issuer"));
        let both = problem(|config| {
            config.jwt.issuer = Some("https://idp.example".into());
            config.jwt.hmac_secret = Some(Secret::new("s"));
        });
        assert!(both.contains("next to auth.jwt.issuer"), "{both}");
        let shared = problem(|config| {
            config.api_keys.insert("a".into(), keys(&["one", "the-shared-key"]));
            config.api_keys.insert("b".into(), keys(&["the-shared-key"]));
        });
        assert!(shared.contains("auth.api_keys.b") && shared.contains("'a'"), "{shared}");
        assert!(!shared.contains("the-shared-key"), "a key is never printed: {shared}");
        let trusted = problem(|config| {
            config.api_keys.insert("a".into(), keys(&["one"]));
            config.trusted_clients.clients = vec!["gateway".into()];
        });
        assert!(trusted.contains("'gateway' has no key"), "{trusted}");
        let scope = problem(|config| {
            config.jwt.issuer = Some("https://idp.example".into());
            config.jwt.role_claims = vec!["/scope".into()];
        });
        assert!(scope.contains("cannot grant a role"), "{scope}");
        assert!(problem(|config| config.jwt.issuer = Some("idp.example".into())).contains("https://"));
        assert!(problem(|config| config.jwt.discovery_url = Some("https://x".into())).contains("issuer"));
        assert!(problem(|config| drop(config.api_keys.insert("a".into(), keys(&[])))).contains("no keys"));
        assert!(problem(|config| drop(config.api_keys.insert("a".into(), keys(&[" x"])))).contains("space"));
        let local = problem(|config| {
            config.mode = Mode::Local;
            config.jwt.issuer = Some("https://idp.example".into());
        });
        assert!(local.contains("auth.mode = \"jwt\""), "{local}");
    }

    #[test]
    fn risky_settings_are_pointed_out() {
        assert!(AuthConfig::default().warnings()[0].contains("local"));
        assert!(secret_config().warnings()[0].contains("hmac_secret"));
        let mut config = AuthConfig { mode: Mode::Jwt, ..AuthConfig::default() };
        config.jwt.issuer = Some("http://idp.example".into());
        let warnings = config.warnings().join("\n");
        assert!(warnings.contains("audiences") && warnings.contains("TLS"), "{warnings}");
        config.jwt.issuer = Some("http://[::1]:9000".into());
        config.jwt.audiences = vec!["memtrove".into()];
        assert_eq!(config.warnings(), Vec::<String>::new());
    }

    #[test]
    fn every_shape_of_api_keys_is_read() {
        let read = |value: Value| serde_json::from_value::<ClientKeys>(value);
        assert_eq!(read(json!(["a", "b"])).unwrap(), keys(&["a", "b"]));
        assert_eq!(read(json!("a, b,")).unwrap(), keys(&["a", "b"]));
        let bound = ClientKeys { tenant: Some("acme".into()), ..keys(&["a"]) };
        assert_eq!(read(json!({ "keys": ["a"], "tenant": "acme" })).unwrap(), bound);
        assert!(read(json!({ "keys": ["a"], "tennant": "acme" })).is_err());
        let claim = serde_json::from_value::<OneOrMany>;
        assert_eq!(claim(json!("t")).unwrap().0, ["t"]);
        assert_eq!(claim(json!(["t", "u"])).unwrap().0, ["t", "u"]);
        assert!(serde_json::from_value::<RolesConfig>(json!({ "admins": {} })).is_err());
    }

    #[test]
    fn secrets_never_show() {
        let mut config = secret_config();
        config.api_keys.insert("agent".into(), keys(&["the-key"]));
        for text in [format!("{config:?}"), serde_json::to_string(&config).unwrap()] {
            assert!(!text.contains("thirty-two") && !text.contains("the-key"), "{text}");
            assert!(text.contains("[redacted]"));
        }
        assert!(!format!("{:?}", ApiKeys::new(&config)).contains("the-key"));
        for odd in [json!(["x", 123_456_789]), json!(123_456_789), json!({ "keys": [true, 123_456_789] })] {
            let complaint = serde_json::from_value::<ClientKeys>(odd).unwrap_err().to_string();
            assert!(!complaint.contains("123456789"), "{complaint}");
        }
    }
}
