//! Who is calling: local mode, signed tokens, API keys, asserted users, roles.

use crate::support::*;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64URL;
use jsonwebtoken::{Algorithm, EncodingKey, Header, get_current_timestamp};
use std::sync::LazyLock;

static LOCAL: LazyLock<TestServer> = LazyLock::new(local_server);

const SECRET: &str = "a-secret-for-tests-only-of-enough-length";

/// A server that believes signed tokens only.
static JWT: LazyLock<TestServer> = LazyLock::new(|| {
    server_with(&format!(
        r#"
        [auth]
        mode = "jwt"
        tenant_claim = "tenant"
        [auth.jwt]
        hmac_secret = "{SECRET}"
        [auth.api_keys]
        agent-a = ["key-a", "key-a-rotated"]
        agent-b = ["key-b"]
        gateway = ["key-gateway"]
        Gateway = ["key-other-gateway"]
        robot = ["key-robot"]
        inspector = ["key-inspector"]
        [auth.trusted_clients]
        clients = ["gateway"]
        [roles.admin]
        users = ["root"]
        claim_values = ["memtrove-admin"]
        [roles.auditor]
        users = ["ann"]
        clients = ["inspector"]
        [roles.indexer]
        clients = ["robot"]
        "#
    ))
});

/// Claims of a token that is valid for an hour.
fn claims(user: &str) -> Value {
    json!({"sub": user, "exp": get_current_timestamp() + 3_600, "iat": get_current_timestamp()})
}

fn signed_with(claims: &Value, secret: &str) -> String {
    let key = EncodingKey::from_secret(secret.as_bytes());
    jsonwebtoken::encode(&Header::new(Algorithm::HS256), claims, &key).expect("a token")
}

fn signed(claims: &Value) -> String {
    signed_with(claims, SECRET)
}

fn with_token(token: &str) -> Client {
    JWT.anonymous().with_header("authorization", &format!("Bearer {token}"))
}

/// A user with a valid token of the JWT server.
fn user(name: &str) -> Client {
    with_token(&signed(&claims(name)))
}

/// Requires the contract's 401, to the letter.
#[track_caller]
fn unauthorized(answer: Answer) {
    let answer = answer.expect(401);
    assert_eq!(
        answer.json,
        json!({"error": "Unauthorized", "code": "unauthorized"}),
        "{}",
        answer.describe()
    );
    assert_eq!(answer.header("www-authenticate"), "Bearer", "{}", answer.describe());
}

/// Every endpoint, with a body that would do.
fn endpoints() -> Vec<(&'static str, String, Body)> {
    let (id, entry) = (fresh_id(), fresh_id());
    let get = |path: String| ("GET", path, Body::None);
    let post = |path: String, body: Value| ("POST", path, Body::Json(body));
    let of = |rest: &str| format!("/v1/conversations/{id}{rest}");
    let admin = |rest: &str| format!("/v1/admin/conversations{rest}");
    vec![
        get("/v1/conversations".into()),
        post("/v1/conversations".into(), json!({})),
        get(of("")),
        ("PATCH", of(""), Body::Json(json!({"title": "x"}))),
        ("DELETE", of(""), Body::None),
        get(of("/entries")),
        post(of("/entries"), history("x")),
        post(of("/entries/sync"), memory(json!(["x"]))),
        post(of(&format!("/entries/{entry}/fork")), json!({})),
        get(of("/forks")),
        get(of("/memberships")),
        post(of("/memberships"), json!({"userId": "bob", "accessLevel": "reader"})),
        ("PATCH", of("/memberships/bob"), Body::Json(json!({"accessLevel": "reader"}))),
        ("DELETE", of("/memberships/bob"), Body::None),
        get("/v1/ownership-transfers".into()),
        post("/v1/ownership-transfers".into(), json!({"conversationId": id, "newOwnerUserId": "bob"})),
        get(format!("/v1/ownership-transfers/{entry}")),
        ("DELETE", format!("/v1/ownership-transfers/{entry}"), Body::None),
        post(format!("/v1/ownership-transfers/{entry}/accept"), json!({})),
        post("/v1/conversations/search".into(), json!({"query": "x"})),
        post(
            "/v1/conversations/index".into(),
            json!([{"conversationId": id, "entryId": entry, "indexedContent": "x"}]),
        ),
        get("/v1/conversations/unindexed".into()),
        get(admin("")),
        get(admin(&format!("/{id}"))),
        get(admin(&format!("/{id}/entries"))),
        get(admin(&format!("/{id}/memberships"))),
        get(admin(&format!("/{id}/forks"))),
        ("DELETE", admin(&format!("/{id}")), Body::None),
        post(admin(&format!("/{id}/restore")), json!({})),
        post(admin("/search"), json!({"query": "x"})),
        post("/v1/admin/evict".into(), json!({"retentionPeriod": "P1D", "resourceTypes": ["conversations"]})),
        get("/v1/admin/stats/request-rate".into()),
    ]
}

// ---- local mode

#[test]
fn without_credentials_every_endpoint_answers_401() {
    for (method, path, body) in endpoints() {
        unauthorized(LOCAL.anonymous().send(method, &path, body.clone()));
        unauthorized(JWT.anonymous().send(method, &path, body));
    }
}

#[test]
fn only_a_bearer_token_counts() {
    for value in ["Basic YWxpY2U6eA==", "alice", "Bearer", "Bearer ", "Token alice", "Digest x"] {
        unauthorized(LOCAL.anonymous().with_header("authorization", value).get("/v1/conversations"));
        unauthorized(JWT.anonymous().with_header("authorization", value).get("/v1/conversations"));
    }
}

#[test]
fn the_bearer_scheme_is_recognised_in_any_letter_case() {
    let name = fresh_name("alice");

    LOCAL
        .anonymous()
        .with_header("authorization", &format!("bearer {name}"))
        .get("/v1/conversations")
        .expect(200);
}

#[test]
fn a_local_key_is_its_own_client_and_speaks_for_users() {
    let name = fresh_name("alice");
    let agent = LOCAL.anonymous().with_key("agent-a").with_header("x-user-id", &name);
    let id = fresh_id();

    say(&agent, &id, "for alice");
    remember(&agent, &id, json!(["note"]));

    let alice = LOCAL.as_user(&name);
    let read = alice.get(&format!("/v1/conversations/{id}")).expect(200);
    assert_eq!(read.json["ownerUserId"], name);
    assert_eq!(current_memory(&alice.with_key("agent-a"), &id), [json!("note")]);
}

#[test]
fn a_key_without_a_user_is_not_enough_for_user_endpoints() {
    for server in [LOCAL.anonymous().with_key("agent-a"), JWT.anonymous().with_key("key-a")] {
        unauthorized(server.get("/v1/conversations"));
        unauthorized(server.post("/v1/conversations", json!({})));
        unauthorized(server.with_header("x-user-id", "").get("/v1/conversations"));
        unauthorized(server.with_header("x-user-id", "  ").get("/v1/conversations"));
    }
}

#[test]
fn an_asserted_user_does_not_replace_the_one_of_the_token() {
    let (alice, victim) = (LOCAL.someone("alice"), LOCAL.someone("victim"));
    start(&victim, "Private");

    for who in [
        alice.with_header("x-user-id", victim.user()),
        alice.with_key("k").with_header("x-user-id", victim.user()),
    ] {
        assert!(who.get("/v1/conversations").expect_page().data.is_empty());
        assert_eq!(who.post("/v1/conversations", json!({})).expect(201).json["ownerUserId"], alice.user());
        alice.get("/v1/conversations").expect_page().ids().iter().for_each(|id| {
            alice.delete(&format!("/v1/conversations/{id}")).expect(204);
        });
    }
}

#[test]
fn a_header_alone_makes_nobody() {
    unauthorized(LOCAL.anonymous().with_header("x-user-id", "alice").get("/v1/conversations"));
}

#[test]
fn asserting_the_admin_gives_no_admin() {
    let pretender = LOCAL.anonymous().with_key("agent-a").with_header("x-user-id", "admin");

    pretender.get("/v1/admin/conversations").expect_forbidden();
    pretender.get("/v1/conversations/unindexed").expect_forbidden();
    pretender.get("/v1/conversations").expect_page();
}

// ---- tokens

#[test]
fn a_valid_token_is_accepted() {
    let name = fresh_name("alice");

    let created = user(&name).post("/v1/conversations", json!({})).expect(201);

    assert_eq!(created.json["ownerUserId"], name);
}

#[test]
fn the_user_is_the_first_of_the_known_claims() {
    let who = |extra: Value| {
        let mut all = claims("the-sub");
        all.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
        with_token(&signed(&all)).post("/v1/conversations", json!({})).expect(201).text_of("ownerUserId")
    };

    assert_eq!(who(json!({})), "the-sub");
    assert_eq!(who(json!({"upn": "the-upn"})), "the-upn");
    assert_eq!(who(json!({"upn": "the-upn", "preferred_username": "the-name"})), "the-name");
    assert_eq!(who(json!({"email": "e@example.org", "name": "N"})), "the-sub");
}

#[test]
fn a_token_without_any_user_is_refused() {
    unauthorized(
        with_token(&signed(&json!({"exp": get_current_timestamp() + 3_600}))).get("/v1/conversations"),
    );
}

#[test]
fn an_expired_token_is_refused_beyond_the_leeway() {
    let expired = |seconds_ago: u64| {
        let mut all = claims("alice");
        all["exp"] = json!(get_current_timestamp() - seconds_ago);
        with_token(&signed(&all)).get("/v1/conversations")
    };

    unauthorized(expired(3_600));
    unauthorized(expired(90));
    expired(30).expect(200);
}

#[test]
fn a_token_of_the_future_is_refused_beyond_the_leeway() {
    let valid_from = |seconds: u64| {
        let mut all = claims("alice");
        all["nbf"] = json!(get_current_timestamp() + seconds);
        with_token(&signed(&all)).get("/v1/conversations")
    };

    unauthorized(valid_from(600));
    unauthorized(valid_from(90));
    valid_from(30).expect(200);
}

#[test]
fn a_token_signed_with_another_secret_is_refused() {
    unauthorized(with_token(&signed_with(&claims("alice"), "another secret")).get("/v1/conversations"));
    unauthorized(with_token(&signed_with(&claims("alice"), "")).get("/v1/conversations"));
}

#[test]
fn a_token_without_a_signature_is_refused() {
    let payload = BASE64URL.encode(claims("root").to_string());
    for header in
        [r#"{"alg":"none"}"#, r#"{"alg":"None","typ":"JWT"}"#, r#"{"alg":"NONE"}"#, r#"{"typ":"JWT"}"#]
    {
        let head = BASE64URL.encode(header);
        for token in
            [format!("{head}.{payload}."), format!("{head}.{payload}"), format!("{head}.{payload}.AAAA")]
        {
            unauthorized(with_token(&token).get("/v1/conversations"));
        }
    }
}

#[test]
fn a_token_that_was_changed_is_refused() {
    let token = signed(&claims("alice"));
    let parts: Vec<&str> = token.split('.').collect();
    let forged = BASE64URL.encode(claims("root").to_string());

    unauthorized(with_token(&format!("{}.{forged}.{}", parts[0], parts[2])).get("/v1/conversations"));
    unauthorized(with_token(&format!("{}.{}.", parts[0], parts[1])).get("/v1/conversations"));
    unauthorized(with_token(&format!("{token}x")).get("/v1/conversations"));
}

#[test]
fn a_bearer_value_that_is_no_token_is_refused() {
    for value in ["alice", "root", "a.b.c", "..", "key-a", "eyJhbGciOiJIUzI1NiJ9"] {
        unauthorized(with_token(value).get("/v1/conversations"));
    }
}

#[test]
fn an_invalid_token_is_refused_even_beside_a_valid_key() {
    let answer = with_token("nonsense").with_key("key-gateway").with_header("x-user-id", "alice");

    unauthorized(answer.get("/v1/conversations"));
    unauthorized(with_token("nonsense").with_key("key-robot").get("/v1/conversations/unindexed"));
}

#[test]
fn when_audiences_are_configured_one_must_match() {
    let server = server_with(&format!(
        "[auth]\nmode = \"jwt\"\n[auth.jwt]\nhmac_secret = \"{SECRET}\"\naudiences = [\"memtrove\", \"other\"]\n"
    ));
    let with_audience = |audience: Value| {
        let mut all = claims("alice");
        if !audience.is_null() {
            all["aud"] = audience;
        }
        let value = format!("Bearer {}", signed(&all));
        server.anonymous().with_header("authorization", &value).get("/v1/conversations")
    };

    with_audience(json!("memtrove")).expect(200);
    with_audience(json!(["account", "memtrove"])).expect(200);
    with_audience(json!("other")).expect(200);
    unauthorized(with_audience(json!("account")));
    unauthorized(with_audience(json!(["account"])));
    unauthorized(with_audience(json!(null)));
}

// ---- tenants of tokens and keys

/// A user with a valid token that is bound to a tenant.
fn user_of(tenant: &str, name: &str) -> Client {
    let mut all = claims(name);
    all["tenant"] = json!(tenant);
    with_token(&signed(&all))
}

#[test]
fn a_token_is_bound_to_its_tenant() {
    let (name, one, two) = (fresh_name("alice"), fresh_name("one"), fresh_name("two"));
    let id = start(&user_of(&one, &name), "In one");

    assert_eq!(user_of(&one, &name).get("/v1/conversations").expect_page().ids(), [id.as_str()]);
    for elsewhere in [user_of(&two, &name), user(&name)] {
        assert!(elsewhere.get("/v1/conversations").expect_page().data.is_empty());
        elsewhere.get(&format!("/v1/conversations/{id}")).expect_not_found("conversation", &id);
    }
    // Choosing another tenant than the token's never works, not even through a trusted client.
    for chooser in
        [user_of(&two, &name), user_of(&two, &name).with_key("key-gateway"), user(&name).with_key("key-a")]
    {
        let answer = chooser.in_tenant(&one).get(&format!("/v1/conversations/{id}"));
        assert!(matches!(answer.status, 403 | 404), "{}", answer.describe());
    }
}

#[test]
fn a_token_whose_tenant_is_no_name_is_refused_on_every_surface() {
    let name = fresh_name("alice");
    for tenant in [json!(null), json!(""), json!(" "), json!(7), json!(["default"]), json!({"id": "default"})]
    {
        let mut all = claims(&name);
        all["tenant"] = tenant;
        let caller = with_token(&signed(&all));
        unauthorized(caller.get("/v1/conversations"));
        for (path, code) in [
            (format!("/v1/tenants/default/users/{name}/files:list"), json!("UNAUTHENTICATED")),
            (format!("/v1/memories?layer=user&userId={name}"), json!("UNAUTHORIZED")),
            ("/openspec/v1/knowledge".to_owned(), json!(401)),
        ] {
            let refused = caller.get(&path).expect(401);
            assert_eq!(refused.json["error"]["code"], code, "{}", refused.describe());
        }
        caller.get("/v1/ping/").expect(401);
    }
    user(&name).get("/v1/conversations").expect_page();
}

#[test]
fn only_a_trusted_client_chooses_a_tenant() {
    let (name, tenant) = (fresh_name("alice"), fresh_name("tenant"));
    let gateway = JWT.anonymous().with_key("key-gateway").with_header("x-user-id", &name);

    let id = start(&gateway.in_tenant(&tenant), "Chosen");

    assert_eq!(user_of(&tenant, &name).get("/v1/conversations").expect_page().ids(), [id.as_str()]);
    assert!(
        gateway.get("/v1/conversations").expect_page().data.is_empty(),
        "without a choice: the default tenant"
    );
    let indexer = JWT.anonymous().with_key("key-robot").in_tenant(&tenant).get("/v1/conversations/unindexed");
    assert!(indexer.status == 403 || indexer.json["data"] == json!([]), "{}", indexer.describe());
    let auditor = user("ann").in_tenant(&tenant).get(&format!("/v1/admin/conversations/{id}"));
    assert!(matches!(auditor.status, 403 | 404), "{}", auditor.describe());
}

// ---- keys

#[test]
fn an_unknown_key_is_refused_even_beside_a_valid_token() {
    for key in ["unknown", "KEY-A", "agent-a", "key-"] {
        unauthorized(user("alice").with_key(key).get("/v1/conversations"));
        unauthorized(JWT.anonymous().with_key(key).get("/v1/conversations/unindexed"));
    }
}

#[test]
fn the_keys_of_one_client_are_one_client() {
    let alice = user(&fresh_name("alice"));
    let id = fresh_id();
    sync(&alice.with_key("key-a"), &id, json!(["state"])).expect(200);

    assert_eq!(current_memory(&alice.with_key("key-a-rotated"), &id), [json!("state")]);
    assert!(current_memory(&alice.with_key("key-b"), &id).is_empty());
}

#[test]
fn a_client_claim_in_a_token_is_no_key() {
    let mut all = claims(&fresh_name("alice"));
    all["azp"] = json!("agent-a");
    all["client_id"] = json!("agent-a");
    let alice = with_token(&signed(&all));
    let id = start(&alice, "Chat");

    alice.get(&format!("/v1/conversations/{id}/entries?channel=memory")).expect_forbidden();
    sync(&alice, &id, json!(["x"])).expect_forbidden();
}

// ---- asserted users

#[test]
fn a_trusted_client_speaks_for_its_users_and_only_with_their_access() {
    let (name, other) = (fresh_name("alice"), fresh_name("other"));
    let gateway = JWT.anonymous().with_key("key-gateway");
    let as_alice = gateway.with_header("x-user-id", &name);
    let private = start(&user(&other), "Private");

    let id = as_alice.post("/v1/conversations", json!({})).expect(201).id();

    assert_eq!(user(&name).get("/v1/conversations").expect_page().ids(), [id]);
    as_alice.get(&format!("/v1/conversations/{private}")).expect_forbidden();
}

#[test]
fn an_untrusted_client_speaks_for_nobody() {
    for key in ["key-a", "key-robot", "key-other-gateway"] {
        let client = JWT.anonymous().with_key(key).with_header("x-user-id", "alice");
        unauthorized(client.get("/v1/conversations"));
        unauthorized(client.post("/v1/conversations", json!({})));
    }
}

#[test]
fn an_untrusted_clients_assertion_is_ignored_beside_a_token() {
    let name = fresh_name("alice");
    let client = user(&name).with_key("key-a").with_header("x-user-id", "somebody-else");

    assert_eq!(client.post("/v1/conversations", json!({})).expect(201).json["ownerUserId"], name);
}

#[test]
fn an_asserted_user_never_has_that_users_roles() {
    let pretender = JWT.anonymous().with_key("key-gateway").with_header("x-user-id", "root");

    pretender.get("/v1/conversations").expect_page();
    pretender.get("/v1/admin/conversations").expect_forbidden();
    pretender.get("/v1/conversations/unindexed").expect_forbidden();
    pretender
        .post("/v1/admin/evict", json!({"retentionPeriod": "P1D", "resourceTypes": ["conversations"]}))
        .expect_forbidden();
}

#[test]
fn an_assertion_does_not_hide_the_clients_own_role() {
    let robot = JWT.anonymous().with_key("key-robot").with_header("x-user-id", "root");

    robot.get("/v1/conversations/unindexed").expect_page();
    robot.get("/v1/admin/conversations").expect_forbidden();
}

// ---- roles

#[test]
fn roles_come_from_users_clients_and_configured_claims() {
    let mut by_claim = claims(&fresh_name("bob"));
    by_claim["realm_access"] = json!({"roles": ["something", "memtrove-admin"]});
    let admins = [user("root"), with_token(&signed(&by_claim))];
    for admin in &admins {
        admin.get("/v1/admin/conversations").expect_page();
        admin.get("/v1/conversations/unindexed").expect_page();
        admin
            .post("/v1/admin/evict", json!({"retentionPeriod": "P9Y", "resourceTypes": ["conversations"]}))
            .expect(204);
    }
    for auditor in [user("ann"), JWT.anonymous().with_key("key-inspector")] {
        auditor.get("/v1/admin/conversations").expect_page();
        auditor.get("/v1/conversations/unindexed").expect_forbidden();
        auditor.delete(&format!("/v1/admin/conversations/{}", fresh_id())).expect_forbidden();
    }
    let robot = JWT.anonymous().with_key("key-robot");
    robot.get("/v1/conversations/unindexed").expect_page();
    robot.get("/v1/admin/conversations").expect_forbidden();
}

#[test]
fn an_indexer_client_indexes_without_any_membership() {
    let alice = user(&fresh_name("alice"));
    let id = start(&alice, "Chat");
    let entry = say(&alice, &id, "one");

    JWT.anonymous()
        .with_key("key-robot")
        .post(
            "/v1/conversations/index",
            json!([{"conversationId": id, "entryId": entry, "indexedContent": "pelican"}]),
        )
        .expect(200);

    let hits = alice.post("/v1/conversations/search", json!({"query": "pelican"})).expect_page();
    assert_eq!(hits.data.len(), 1);
}

#[test]
fn scopes_and_other_claims_never_grant_a_role() {
    for extra in [
        json!({"scope": "admin"}),
        json!({"scope": "openid admin memtrove-admin auditor"}),
        json!({"scope": ["memtrove-admin"]}),
        json!({"scp": ["memtrove-admin"]}),
        json!({"roles": ["admin", "memtrove-admin"]}),
        json!({"groups": ["memtrove-admin"]}),
        json!({"role": "memtrove-admin"}),
        json!({"realm_access": {"roles": ["admin", "auditor", "indexer"]}}),
        json!({"realm_access": {"roles": ["MEMTROVE-ADMIN"]}}),
        json!({"resource_access": {"memtrove": {"roles": ["memtrove-admin"]}}}),
        json!({"realm_access": ["memtrove-admin"]}),
    ] {
        let mut all = claims(&fresh_name("mallory"));
        all.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
        let mallory = with_token(&signed(&all));

        mallory.get("/v1/conversations").expect_page();
        for path in ["/v1/admin/conversations", "/v1/conversations/unindexed"] {
            let answer = mallory.get(path);
            assert_eq!(answer.status, 403, "{extra}: {}", answer.describe());
        }
    }
}

#[test]
fn an_admin_has_no_access_to_conversations_as_a_user() {
    let alice = user(&fresh_name("alice"));
    let id = start(&alice, "Private");

    user("root").get(&format!("/v1/conversations/{id}")).expect_forbidden();
    user("root").post(&format!("/v1/conversations/{id}/entries"), history("x")).expect_forbidden();
}

// ---- start

#[track_caller]
fn does_not_start(toml: &str) -> String {
    let failed = Setup::new(env!("CARGO_BIN_EXE_memtrove"))
        .toml(toml)
        .try_start()
        .expect_err("contradictory settings must stop the start");
    assert!(failed.status.is_some_and(|status| !status.success()), "{}", failed.reason);
    assert!(!failed.log.contains("panicked"), "{}", failed.log);
    failed.log
}

#[test]
fn a_key_for_two_clients_stops_the_start_without_showing_the_key() {
    let log = does_not_start(&format!(
        "[auth]\nmode = \"jwt\"\n[auth.jwt]\nhmac_secret = \"{SECRET}\"\n\
         [auth.api_keys]\none = [\"the-shared-key\"]\ntwo = [\"the-shared-key\"]\n"
    ));

    assert!(log.contains("one") && log.contains("two"), "{log}");
    assert!(!log.contains("the-shared-key"), "{log}");
}

#[test]
fn token_mode_without_anything_to_verify_with_stops_the_start() {
    let log = does_not_start("[auth]\nmode = \"jwt\"\n");

    assert!(log.contains("issuer") || log.contains("hmac_secret"), "says what to set: {log}");
}

#[test]
fn an_unknown_mode_stops_the_start() {
    does_not_start("[auth]\nmode = \"trust-everybody\"\n");
}
