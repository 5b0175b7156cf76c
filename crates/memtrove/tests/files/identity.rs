//! Who may touch which scope, and whose name a change carries.

use crate::support::*;
use jsonwebtoken::{Algorithm, EncodingKey, Header, get_current_timestamp};
use std::sync::LazyLock;

static LOCAL: LazyLock<TestServer> = LazyLock::new(local_server);

const SECRET: &str = "a-secret-for-tests-only-of-enough-length";

/// A server that believes signed tokens and configured keys only. Two of its clients are bound to the tenant `acme`.
static JWT: LazyLock<TestServer> = LazyLock::new(|| {
    server_with(&format!(
        r#"
        [auth]
        mode = "jwt"
        tenant_claim = "tenant"
        [auth.jwt]
        hmac_secret = "{SECRET}"
        [auth.api_keys]
        agent-a = ["key-a"]
        bound = {{ keys = ["key-bound"], tenant = "acme" }}
        inspector = {{ keys = ["key-inspector"], tenant = "acme" }}
        gateway = ["key-gateway"]
        [auth.trusted_clients]
        clients = ["gateway"]
        [roles.admin]
        users = ["root"]
        [roles.auditor]
        users = ["ann"]
        clients = ["inspector"]
        "#
    ))
});

fn with_token(claims: &Value) -> Client {
    let key = EncodingKey::from_secret(SECRET.as_bytes());
    let token = jsonwebtoken::encode(&Header::new(Algorithm::HS256), claims, &key).expect("a token");
    JWT.anonymous().with_header("authorization", &format!("Bearer {token}"))
}

/// A user with a valid token that names no tenant.
fn user(name: &str) -> Client {
    with_token(&json!({"sub": name, "exp": get_current_timestamp() + 3_600}))
}

/// A user with a valid token that is bound to a tenant.
fn user_of(tenant: &str, name: &str) -> Client {
    with_token(&json!({"sub": name, "tenant": tenant, "exp": get_current_timestamp() + 3_600}))
}

fn key(key: &str) -> Client {
    JWT.anonymous().with_key(key)
}

/// This scope of the server with tokens, as this caller sees it.
fn scope(tenant: &str, user: &str, client: &Client) -> Scope {
    Scope::of(&JWT, tenant, user).seen_by(client)
}

/// Requires that this caller can read, write, patch, list, move and delete.
#[track_caller]
fn may(scope: &Scope) {
    let path = fresh_name("file");
    let created = scope.create(&path, json!({"text": "a"}));
    let edits = json!({"edits": [{"old_text": "a", "new_text": "b"}]});
    let patched = scope.patch(&path, &created.etag, edits).stored();
    assert_eq!(scope.read(&path), patched);
    assert!(scope.paths("limit=500").contains(&path));
    let moved = scope.rename(&path, &format!("{path}/moved"), &patched.etag);
    let moved = moved.moved_to(&format!("{path}/moved"));
    scope.delete(&format!("{path}/moved"), &moved.etag).expect(200);
}

/// Every endpoint of a scope, with a body that would do.
fn endpoints(scope: &Scope) -> Vec<(&'static str, String, Body)> {
    let event = json!({
        "event_id": fresh_id(), "tenant_id": scope.tenant, "user_id": scope.user, "digest": "something happened",
    });
    let post = |rest: &str, body: Value| ("POST", scope.at(rest), Body::Json(body));
    vec![
        ("GET", scope.at("/files:list"), Body::None),
        ("GET", scope.file("a.md"), Body::None),
        ("PUT", scope.file("a.md"), Body::Json(json!({"document": note("a")}))),
        ("PATCH", scope.file("a.md"), Body::Json(json!({"edits": [{"old_text": "a", "new_text": "b"}]}))),
        post("/files:delete", json!({"path": "a.md"})),
        post("/files:move", json!({"from": "a.md", "to": "b.md"})),
        post("/context:assemble", json!({"files": [{"path": "a.md"}]})),
        post("/events", json!({"event": event})),
        post("/events:search", json!({})),
        post("/retention:apply", json!({"events_days": 1, "audit_days": 1, "snapshots_days": 1})),
        ("GET", scope.at("/audit"), Body::None),
        ("GET", scope.at("/audit/chg_00000000-0000-7000-8000-000000000000"), Body::None),
        post("/audit:reconstruct", json!({"path": "a.md", "as_of_utc": "2026-01-01T00:00:00Z"})),
        post("/events:reindex", json!({})),
        ("DELETE", scope.at("/memory"), Body::None),
    ]
}

/// Requires that every endpoint of the scope answers this, whatever is asked.
#[track_caller]
fn all_refused(scope: &Scope, status: u16, code: &str) {
    for (method, path, body) in endpoints(scope) {
        scope.client.with_header("if-match", "*").send(method, &path, body).refused(status, code);
    }
}

// ---- 401

#[test]
fn without_credentials_every_endpoint_answers_401() {
    for server in [&*LOCAL, &*JWT] {
        let scope = Scope::fresh(server);
        all_refused(&scope.seen_by(&server.anonymous()), 401, "UNAUTHENTICATED");
        all_refused(
            &scope.seen_by(&server.anonymous().with_header("x-user-id", &scope.user)),
            401,
            "UNAUTHENTICATED",
        );
    }
}

#[test]
fn bad_credentials_are_none() {
    let name = fresh_name("alice");
    let bearer = |value: &str| JWT.anonymous().with_header("authorization", value);
    let expired = with_token(&json!({"sub": name, "exp": get_current_timestamp() - 3_600}));
    for client in [
        bearer("Bearer alice"),
        bearer("Bearer "),
        bearer("Basic YWxpY2U6eA=="),
        expired,
        key("unknown"),
        key(""),
        user(&name).with_key("unknown"),
        key("key-bound").with_header("authorization", "Bearer nonsense"),
    ] {
        let scope = scope("acme", &name, &client);
        scope.get("a.md").refused(401, "UNAUTHENTICATED");
        scope.put("a.md", "*", note("a")).refused(401, "UNAUTHENTICATED");
    }
}

// ---- tenants

#[test]
fn a_bound_client_acts_for_every_user_of_its_tenant() {
    for _ in 0..2 {
        may(&scope("acme", &fresh_name("user"), &key("key-bound")));
    }
}

#[test]
fn a_bound_client_is_kept_out_of_every_other_tenant() {
    for tenant in [fresh_name("other").as_str(), "default", "Acme", "acme%20", "ACME"] {
        all_refused(&scope(tenant, &fresh_name("user"), &key("key-bound")), 403, "TENANT_FORBIDDEN");
    }
}

#[test]
fn whether_a_tenant_exists_makes_no_difference() {
    let (there, user) = (fresh_name("there"), fresh_name("user"));
    scope(&there, &user, &key("key-gateway")).create("a.md", json!({"text": "a"}));
    let asked = |tenant: &str| {
        let scope = scope(tenant, &user, &key("key-bound").with_header("x-request-id", "same"));
        scope.get("a.md").refused(403, "TENANT_FORBIDDEN").text.replace(tenant, "TENANT")
    };

    assert_eq!(asked(&there), asked(&fresh_name("absent")));
}

#[test]
fn an_unbound_client_is_in_the_default_tenant() {
    may(&scope("default", &fresh_name("user"), &key("key-a")));
    all_refused(&scope(&fresh_name("other"), &fresh_name("user"), &key("key-a")), 403, "TENANT_FORBIDDEN");
}

#[test]
fn a_trusted_client_acts_in_every_tenant() {
    may(&scope(&fresh_name("one"), &fresh_name("user"), &key("key-gateway")));
    may(&scope("acme", &fresh_name("user"), &key("key-gateway")));
    may(&scope("default", &fresh_name("user"), &key("key-gateway")));
}

#[test]
fn the_same_user_and_path_in_two_tenants_are_two_files() {
    let name = fresh_name("alice");
    let one = scope(&fresh_name("one"), &name, &key("key-gateway"));
    let two = scope(&fresh_name("two"), &name, &key("key-gateway"));
    let first = one.create("a.md", json!({"text": "one"}));

    two.get("a.md").refused(404, "DOCUMENT_NOT_FOUND");
    two.put("a.md", &first.etag, note("x")).refused(412, "ETAG_MISMATCH");
    two.create("a.md", json!({"text": "two"}));
    two.put("a.md", &first.etag, note("x")).refused(412, "ETAG_MISMATCH");
    assert_eq!(one.read("a.md"), first);
}

#[test]
fn a_user_is_kept_in_the_tenant_of_its_token() {
    let (name, tenant) = (fresh_name("alice"), fresh_name("tenant"));
    may(&scope(&tenant, &name, &user_of(&tenant, &name)));
    for other in [fresh_name("other").as_str(), "default", "acme"] {
        all_refused(&scope(other, &name, &user_of(&tenant, &name)), 403, "TENANT_FORBIDDEN");
    }
    may(&scope("default", &name, &user(&name)));
    all_refused(&scope(&tenant, &name, &user(&name)), 403, "TENANT_FORBIDDEN");
}

// ---- users and roles

#[test]
fn a_user_acts_for_itself_only() {
    let (alice, bob, tenant) = (fresh_name("alice"), fresh_name("bob"), fresh_name("tenant"));
    let hers = scope(&tenant, &alice, &user_of(&tenant, &alice));
    let before = hers.create("a.md", json!({"text": "a"}));

    let shouted = alice.to_uppercase();
    for stranger in [bob.as_str(), shouted.as_str(), "ann"] {
        let seen = hers.seen_by(&user_of(&tenant, stranger));
        seen.put("a.md", &before.etag, note("b")).refused(403, "FORBIDDEN");
        seen.put("b.md", "*", note("b")).refused(403, "FORBIDDEN");
        let edits = json!({"edits": [{"old_text": "a", "new_text": "b"}]});
        seen.patch("a.md", &before.etag, edits).refused(403, "FORBIDDEN");
        seen.client.delete(&seen.at("/memory")).refused(403, "FORBIDDEN");
    }
    for stranger in [bob.as_str(), shouted.as_str()] {
        all_refused(&hers.seen_by(&user_of(&tenant, stranger)), 403, "FORBIDDEN");
    }
    assert_eq!(hers.read("a.md"), before);
    assert_eq!(hers.paths(""), ["a.md"]);
}

#[test]
fn only_the_user_a_trusted_client_or_an_admin_may_forget() {
    let alice = fresh_name("alice");
    let hers = scope("default", &alice, &key("key-a"));
    let kept = hers.create("a.md", json!({"text": "a"}));
    hers.forget().refused(403, "FORBIDDEN");
    let by_id = json!({"userId": alice});
    let refused = hers.client.post("/v1/users:forget", by_id.clone()).expect(403);
    assert_eq!(refused.json["error"]["code"], "FORBIDDEN", "{}", refused.describe());
    assert_eq!(hers.read("a.md"), kept, "a service may keep files for her, not erase what she said");

    for able in [user(&alice), user("root"), key("key-gateway")] {
        hers.put("b.md", "*", note("b")).stored();
        let report = hers.seen_by(&able).forget().expect(200).json;
        assert_ne!(report["documents_deleted"], json!(0));
    }
    hers.put("c.md", "*", note("c")).stored();
    user(&alice).post("/v1/users:forget", by_id).expect(200);
    assert!(hers.paths("").is_empty());
}

#[test]
fn an_admin_acts_for_every_user_of_its_tenant() {
    let (alice, tenant) = (fresh_name("alice"), fresh_name("tenant"));
    may(&scope(&tenant, &alice, &user_of(&tenant, "root")));
    all_refused(&scope(&fresh_name("other"), &alice, &user_of(&tenant, "root")), 403, "TENANT_FORBIDDEN");
}

#[test]
fn the_audit_trail_is_for_auditors() {
    let name = fresh_name("alice");
    let hers = scope("acme", &name, &user_of("acme", &name));
    let created = hers.create("a.md", json!({"text": "a"}));
    let reconstruct = json!({"path": "a.md", "as_of_utc": "2999-01-01T00:00:00Z"});

    for auditor in [user_of("acme", "ann"), user_of("acme", "root"), key("key-inspector")] {
        let trail = auditor.get(&hers.at("/audit")).expect(200).json;
        assert_eq!(trail["records"][0]["new_etag"], created.etag);
        let change = trail["records"][0]["change_id"].as_str().unwrap().to_owned();
        auditor.get(&hers.at(&format!("/audit/{change}"))).expect(200);
        auditor.post(&hers.at("/audit:reconstruct"), reconstruct.clone()).expect(200);
    }
    for other in [user_of("acme", &name), user_of("acme", &fresh_name("bob")), key("key-bound")] {
        other.get(&hers.at("/audit")).refused(403, "FORBIDDEN");
        other.get(&hers.at("/audit/chg_00000000-0000-7000-8000-000000000000")).refused(403, "FORBIDDEN");
        other.post(&hers.at("/audit:reconstruct"), reconstruct.clone()).refused(403, "FORBIDDEN");
    }
    user_of(&fresh_name("other"), "ann").get(&hers.at("/audit")).refused(403, "TENANT_FORBIDDEN");
}

#[test]
fn local_mode_believes_keys_for_every_scope_and_users_for_their_own() {
    let (alice, bob) = (LOCAL.someone("alice"), LOCAL.someone("bob"));
    let hers = Scope::of(&LOCAL, "default", alice.user());

    may(&Scope::fresh(&LOCAL));
    may(&hers);
    may(&hers.seen_by(&alice));
    may(&hers.seen_by(&LOCAL.as_user("admin")));
    hers.seen_by(&bob).list("").refused(403, "FORBIDDEN");
    Scope::of(&LOCAL, &fresh_name("tenant"), alice.user())
        .seen_by(&alice)
        .list("")
        .refused(403, "TENANT_FORBIDDEN");
    LOCAL.as_user("admin").get(&hers.at("/audit")).expect(200);
}

// ---- whose name a change carries

#[test]
fn the_actor_is_the_service_unless_the_caller_names_one() {
    let scope = Scope::fresh(&LOCAL);
    let by = |n: usize, header: Option<&str>| {
        let scope = match header {
            Some(name) => scope.with_header("x-service-id", name),
            None => scope.clone(),
        };
        scope.create(&format!("{n}.md"), json!({})).document()["updated_by"].clone()
    };

    assert_eq!(by(0, None), AGENT);
    assert_eq!(by(1, Some("assistant-b")), "assistant-b");
    assert_eq!(by(2, Some("  padded\t")), "padded");
    assert_eq!(by(3, Some("two words")), "two words");
    assert_eq!(by(4, Some("")), AGENT);
    assert_eq!(by(5, Some("   ")), AGENT);
    assert_eq!(by(6, Some(&"s".repeat(128))), "s".repeat(128));
}

#[test]
fn without_any_service_the_actor_is_unknown() {
    let alice = LOCAL.someone("alice");
    let hers = Scope::of(&LOCAL, "default", alice.user()).seen_by(&alice);

    assert_eq!(hers.create("a.md", json!({})).document()["updated_by"], "unknown-service");
    let named = hers.with_header("x-service-id", "assistant-a");
    assert_eq!(named.create("b.md", json!({})).document()["updated_by"], "assistant-a");
}

#[test]
fn a_name_of_more_than_128_characters_is_refused() {
    let scope = Scope::fresh(&LOCAL);
    let before = scope.create("a.md", json!({"text": "a"}));
    let named = scope.with_header("x-service-id", &"s".repeat(129));

    named.put("b.md", "*", note("b")).refused(400, "INVALID_REQUEST");
    named.put("a.md", &before.etag, note("b")).refused(400, "INVALID_REQUEST");
    let edits = json!({"edits": [{"old_text": "a", "new_text": "b"}]});
    named.patch("a.md", &before.etag, edits).refused(400, "INVALID_REQUEST");
    assert_eq!(scope.read("a.md"), before);
}

#[test]
fn every_change_carries_the_name_of_its_own_actor() {
    let scope = Scope::fresh(&LOCAL);
    let by = |name: &str| scope.with_header("x-service-id", name);
    let first = by("one").create("a.md", json!({"text": "a"}));
    let edits = json!({"edits": [{"old_text": "a", "new_text": "b"}]});
    let second = by("two").patch("a.md", &first.etag, edits).stored();
    let third = by("three").put("a.md", &second.etag, note("c")).stored();

    let names = [&first, &second, &third].map(|stored| stored.document()["updated_by"].clone());

    assert_eq!(names, ["one", "two", "three"]);
}

#[test]
fn the_header_never_hides_who_really_called() {
    let scope = Scope::fresh(&LOCAL);
    scope.with_header("x-service-id", "somebody-else").create("a.md", json!({}));
    scope.create("b.md", json!({}));

    let trail = scope.audit();

    assert_eq!(trail[0]["actor"], "somebody-else");
    assert_eq!(trail[1]["actor"], AGENT);
    for record in &trail {
        assert!(record["principal"].as_str().unwrap().contains(AGENT), "{record}");
        assert_eq!(record["principal"], trail[0]["principal"]);
    }
    let alice = LOCAL.someone("alice");
    let hers = Scope::of(&LOCAL, "default", alice.user());
    hers.seen_by(&alice).with_header("x-service-id", AGENT).create("a.md", json!({}));
    let record = &hers.audit()[0];
    assert_eq!(record["actor"], AGENT);
    assert!(record["principal"].as_str().unwrap().contains(alice.user()), "{record}");
}
