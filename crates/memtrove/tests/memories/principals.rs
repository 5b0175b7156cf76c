//! Who calls: users, clients, trusted clients; in which tenant; and which identifiers they may name.

use crate::support::*;
use jsonwebtoken::{Algorithm, EncodingKey, Header, get_current_timestamp};
use std::sync::LazyLock;

const SECRET: &str = "a-secret-for-tests-only-of-enough-length";

/// A server that believes signed tokens and configured keys only.
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
        gateway = ["key-gateway"]
        [auth.trusted_clients]
        clients = ["gateway"]
        [roles.admin]
        users = ["root"]
        "#
    ))
});

fn token(claims: &Value) -> Client {
    let key = EncodingKey::from_secret(SECRET.as_bytes());
    let token = jsonwebtoken::encode(&Header::new(Algorithm::HS256), claims, &key).expect("a token");
    JWT.anonymous().with_header("authorization", &format!("Bearer {token}"))
}

/// The tenant `name` as this caller sees it, who says nothing about tenants.
fn seen(name: &str, client: &Client) -> Tenant {
    Tenant { name: name.to_owned(), client: client.clone() }
}

fn user_of(tenant: &str, name: &str) -> Tenant {
    let claims = json!({"sub": name, "tenant": tenant, "exp": get_current_timestamp() + 3_600});
    seen(tenant, &token(&claims))
}

fn key(key: &str) -> Client {
    JWT.anonymous().with_key(key)
}

fn trusted(tenant: &str) -> Tenant {
    seen(tenant, &key("key-gateway").in_tenant(tenant))
}

/// Every way of naming a scope, each with this code.
#[track_caller]
fn all_refused(tenant: &Tenant, place: &Place, status: u16, code: &str) {
    let fact = json!({"factType": "t", "subject": "s", "predicate": "p", "object": "o"});
    tenant.add(place.with(json!({"content": "a"}))).refused(status, code);
    tenant.list(place.with(json!({}))).refused(status, code);
    tenant.client.get(&format!("/v1/memories?{}", place.query())).refused(status, code);
    tenant.search(place.everything(json!({}))).refused(status, code);
    tenant.search(json!({"query": "a", "identifiers": place.identifiers})).refused(status, code);
    tenant.fact(place.with(fact)).refused(status, code);
    tenant.facts(json!({"identifiers": place.identifiers})).refused(status, code);
    tenant.client.post("/v1/memories:clear", place.with(json!({}))).refused(status, code);
}

fn personal(user: &str) -> [Place; 3] {
    [Place::agent("a", user), Place::user(user), Place::session(user, "s")]
}

#[test]
fn a_user_names_itself_and_nobody_else() {
    let tenant = fresh_name("tenant");
    let alice = user_of(&tenant, "alice");
    for place in personal("alice") {
        let id = alice.say(&place, "mine");
        assert_eq!(alice.page(place.with(json!({}))).ids(), [id.as_str()]);
        alice.entry(&id);
        user_of(&tenant, "bob").get(&id).not_found();
        user_of(&tenant, "bob").change(&id, json!({"content": "his"})).not_found();
        trusted(&tenant).entry(&id);
    }
    for other in ["bob", "Alice", "alice "] {
        for place in personal(other) {
            all_refused(&alice, &place, 403, "FORBIDDEN");
        }
        // Also where the layer does not ask for a user.
        let extra = json!({"layer": "project", "identifiers": {"projectId": "p", "userId": other}});
        alice.add(merged(extra.clone(), &json!({"content": "a"}))).refused(403, "FORBIDDEN");
        alice.list(extra).refused(403, "FORBIDDEN");
    }
    // Nothing is filled in.
    let refused = alice.add(json!({"content": "a", "layer": "user", "identifiers": {}}));
    assert_eq!(refused.refused(400, "MISSING_IDENTIFIER").details()["missing"], json!(["userId"]));
    alice.search(json!({"query": "a", "identifiers": {}})).refused(400, "MISSING_IDENTIFIER");
}

#[test]
fn a_trusted_client_speaks_for_the_user_it_names() {
    let tenant = trusted(&fresh_name("tenant"));
    for user in ["alice", "bob"] {
        for place in personal(user) {
            let entry = tenant.added(place.with(json!({"content": "hers"})));
            assert_eq!(entry["createdBy"], json!({"userId": user, "clientId": "gateway"}));
        }
    }
    let both = tenant.on_behalf_of("alice");
    assert_eq!(both.page(Place::user("alice").with(json!({}))).total, 1);
    let place = Place::user("bob");
    both.add(place.with(json!({"content": "a"}))).refused(400, "INVALID_REQUEST");
    both.list(place.with(json!({}))).refused(400, "INVALID_REQUEST");
    both.search(place.everything(json!({}))).refused(400, "INVALID_REQUEST");
    both.client.get(&format!("/v1/memories?{}", place.query())).refused(400, "INVALID_REQUEST");
}

#[test]
fn an_untrusted_client_without_a_user_has_the_shared_layers_only() {
    let client = seen("acme", &key("key-bound"));
    let user = fresh_name("user");
    for place in personal(&user) {
        all_refused(&client, &place, 403, "FORBIDDEN");
        all_refused(&client.on_behalf_of(&user), &place, 403, "FORBIDDEN");
    }
    let name = fresh_name("shared");
    for place in [Place::project(&name), Place::team(&name), Place::org(&name), client.company()] {
        let id = client.say(&place, "ours");
        assert_eq!(client.entry(&id)["content"], "ours");
        assert!(client.page(place.with(json!({}))).ids().contains(&id));
        assert!(user_of("acme", &user).page(place.with(json!({}))).ids().contains(&id));
    }
    let id = user_of("acme", &user).say(&Place::user(&user), "hers");
    client.get(&id).not_found();
    client.change(&id, json!({"content": "taken"})).not_found();
    assert_eq!(client.delete(&id).expect(200).json["deleted"], false);
}

#[test]
fn a_bound_tenant_is_the_only_one() {
    let place = Place::project(&fresh_name("project"));
    let bound = seen("acme", &key("key-bound"));
    let id = bound.say(&place, "acme's");
    assert_eq!(seen("acme", &key("key-bound").in_tenant("acme")).entry(&id)["content"], "acme's");
    let other = seen("other", &key("key-bound").in_tenant("other"));
    other.get(&id).refused(403, "FORBIDDEN");
    other.add(place.with(json!({"content": "a"}))).refused(403, "FORBIDDEN");
    other.search(place.everything(json!({}))).refused(403, "FORBIDDEN");
    user_of("acme", "alice").with_header("x-tenant-id", "other").get(&id).refused(403, "FORBIDDEN");
    bound.add(Place::company("other").with(json!({"content": "a"}))).refused(403, "FORBIDDEN");
    bound.say(&bound.company(), "the company is the tenant");

    trusted("other").get(&id).not_found();
    seen("default", &key("key-gateway")).get(&id).not_found();
    assert_eq!(trusted("acme").entry(&id)["content"], "acme's");
    seen("default", &key("key-a")).get(&id).not_found();
    let default = seen("default", &key("key-a"));
    default.say(&default.company(), "who says nothing is in the default tenant");
}

#[test]
fn bad_credentials_are_none() {
    let place = Place::project("p");
    let expired = token(&json!({"sub": "alice", "exp": get_current_timestamp() - 3_600}));
    let bearer = |value: &str| JWT.anonymous().with_header("authorization", value);
    for client in [
        bearer("Bearer alice"),
        bearer("Bearer "),
        expired,
        key("unknown"),
        key(""),
        key("key-a").with_header("authorization", "Bearer x"),
    ] {
        let nobody = seen("default", &client);
        nobody.add(place.with(json!({"content": "a"}))).refused(401, "UNAUTHORIZED");
        nobody.list(place.with(json!({}))).refused(401, "UNAUTHORIZED");
        nobody.get(&fresh_id()).refused(401, "UNAUTHORIZED");
    }
}

#[test]
fn an_agent_may_be_bound_to_its_name() {
    let server = server_with("[memories]\nbind_agent_id = true\n");
    let tenant = Tenant::of(&server, &fresh_name("tenant"));
    let own = Place::agent(AGENT, "u");
    let id = tenant.say(&own, "what I learned");
    assert_eq!(tenant.page(own.with(json!({}))).ids(), [id]);
    let other = Place::agent("agent-b", "u");
    tenant.add(other.with(json!({"content": "a"}))).refused(403, "FORBIDDEN");
    tenant.list(other.with(json!({}))).refused(403, "FORBIDDEN");
    tenant.search(other.everything(json!({}))).refused(403, "FORBIDDEN");
}

#[test]
fn writing_in_a_shared_layer_may_need_a_role() {
    let server = server_with("[memories.write_roles]\norg = [\"admin\"]\n");
    let tenant = Tenant::of(&server, "default").seen_by(&server.as_user("alice"));
    let admin = tenant.seen_by(&server.as_user("admin"));
    let org = Place::org("o");
    let id = admin.say(&org, "the law");

    tenant.add(org.with(json!({"content": "my law"}))).refused(403, "FORBIDDEN");
    tenant
        .fact(org.with(json!({"factType": "t", "subject": "s", "predicate": "p", "object": "o"})))
        .refused(403, "FORBIDDEN");
    tenant.change(&id, json!({"content": "my law"})).refused(403, "FORBIDDEN");
    tenant.delete(&id).refused(403, "FORBIDDEN");
    assert_eq!(tenant.entry(&id)["content"], "the law", "reading is free");
    assert_eq!(tenant.page(org.with(json!({}))).total, 1);
    tenant.say(&Place::team("t"), "other layers are open");
}
