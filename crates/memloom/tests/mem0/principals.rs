//! Whose key it is decides the tenant, and whom it may act for.

use crate::support::*;
use std::sync::LazyLock;

/// A server that believes configured keys only.
static KEYS: LazyLock<TestServer> = LazyLock::new(|| {
    server_with(
        r#"
        [auth]
        mode = "jwt"
        [auth.jwt]
        hmac_secret = "a-secret-for-tests-only-of-enough-length"
        [auth.api_keys]
        agent-a = ["key-a"]
        gateway = { keys = ["key-gateway"], tenant = "acme" }
        other = { keys = ["key-other"], tenant = "umbrella" }
        [auth.trusted_clients]
        clients = ["gateway", "other"]
        "#,
    )
});

fn with_token(key: &str) -> Mem0 {
    Mem0(KEYS.anonymous().with_header("authorization", &format!("Token {key}")))
}

#[test]
fn a_key_is_good_in_both_headers_and_a_bad_one_in_none() {
    for header in [
        ("authorization", "Token key-gateway"),
        ("authorization", "token key-gateway"),
        ("x-api-key", "key-gateway"),
    ] {
        KEYS.anonymous().with_header(header.0, header.1).get("/v1/ping/").expect(200);
    }
    for header in [
        ("authorization", "Token wrong"),
        ("authorization", "Token "),
        ("authorization", "Basic key-gateway"),
        ("x-api-key", "wrong"),
    ] {
        KEYS.anonymous()
            .with_header(header.0, header.1)
            .get("/v1/ping/")
            .refused(401, "send valid credentials");
    }
    with_token("key-gateway").0.with_key("key-other").get("/v1/ping/").refused(401, "send valid credentials");
    KEYS.anonymous().get("/v1/ping/").refused(401, "send valid credentials");
}

#[test]
fn the_tenant_is_that_of_the_key() {
    let (acme, umbrella) = (with_token("key-gateway"), with_token("key-other"));
    let user = fresh_name("user");
    let id = acme.say("a secret of acme", json!({"user_id": user}));
    assert_eq!(acme.texts(json!({"user_id": user})), ["a secret of acme"]);
    assert_eq!(umbrella.texts(json!({"user_id": user})), Vec::<String>::new());
    for path in [format!("/v1/memories/{id}/"), format!("/v1/memories/{id}/history/")] {
        umbrella.0.get(&path).refused(404, "there is no such memory");
    }
    umbrella
        .put(&format!("/v1/memories/{id}/"), json!({"text": "mine"}))
        .refused(404, "there is no such memory");
    umbrella.0.delete(&format!("/v1/memories/{id}/")).refused(404, "there is no such memory");
    umbrella.0.delete(&format!("/v2/entities/user/{user}/")).refused(404, "no memories about");
    umbrella.0.post_nothing("/reset").expect(200);
    assert_eq!(acme.texts(json!({"user_id": user})), ["a secret of acme"]);
}

#[test]
fn a_client_that_nobody_trusts_acts_for_no_user() {
    let agent = with_token("key-a");
    let refused = "may not act for users";
    agent.add(json!("a"), json!({"user_id": "u"})).refused(403, refused);
    agent.0.post("/v3/memories/", json!({"filters": {"user_id": "u"}})).refused(403, refused);
    let body = json!({"query": "q", "filters": {"AND": [{"user_id": "u"}, {"run_id": "r"}]}});
    agent.0.post("/v3/memories/search/", body).refused(403, refused);
    agent.0.delete("/v1/memories/?user_id=u").refused(403, refused);
    agent.0.post_nothing("/reset").refused(403, "may delete everything");
    let name = fresh_name("agent");
    agent.say("what the agent knows", json!({"agent_id": name}));
    assert_eq!(agent.texts(json!({"agent_id": name})), ["what the agent knows"]);
    let told = agent.0.get("/v1/entities/").expect(200).json;
    let kinds: Vec<&str> =
        told["results"].as_array().unwrap().iter().map(|one| one["type"].as_str().unwrap()).collect();
    assert!(kinds.contains(&"agent") && !kinds.contains(&"user"), "{told}");
}

#[test]
fn a_user_sees_itself_only() {
    let mem0 = Mem0::fresh();
    let id = mem0.say("of bob", json!({"user_id": "bob"}));
    let carol = Mem0(mem0.0.with_header("authorization", "Bearer carol"));
    carol.say("of carol", json!({"user_id": "carol"}));
    assert_eq!(carol.texts(json!({"user_id": "carol"})), ["of carol"]);
    carol.0.post("/v3/memories/", json!({"filters": {"user_id": "bob"}})).refused(403, "yourself only");
    let either = json!({"OR": [{"user_id": "bob"}, {"user_id": "carol"}]});
    carol.0.post("/v3/memories/", json!({"filters": either})).refused(403, "yourself only");
    carol.0.get(&format!("/v1/memories/{id}/")).refused(404, "there is no such memory");
    let told = carol.0.get("/v1/entities/").expect(200).json;
    assert_eq!((told["count"].as_i64(), told["results"][0]["name"].as_str()), (Some(1), Some("carol")));
    carol.0.delete("/v2/entities/user/bob/").refused(404, "no memories about");
    carol.0.post_nothing("/reset").refused(403, "may delete everything");
    assert_eq!(mem0.get(&id)["memory"], "of bob");
}
