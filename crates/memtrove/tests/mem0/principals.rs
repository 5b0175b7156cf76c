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
        chief = { keys = ["key-chief"], tenant = "headquarters" }
        [auth.trusted_clients]
        clients = ["gateway", "other", "chief"]
        [roles.admin]
        clients = ["chief"]
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
    umbrella.0.delete(&format!("/v2/entities/user/{user}/")).expect(200);
    umbrella.0.delete(&format!("/v1/memories/?user_id={user}")).expect(200);
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
    agent.0.delete("/v2/entities/user/u/").refused(403, refused);
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
    carol.0.delete("/v2/entities/user/bob/").refused(403, "yourself only");
    carol.0.post_nothing("/reset").refused(403, "may delete everything");
    assert_eq!(mem0.get(&id)["memory"], "of bob");
}

#[test]
fn an_agent_may_be_bound_to_its_name() {
    let server = server_with("[memories]\nbind_agent_id = true\n");
    let [a, b] = ["agent-a", "agent-b"].map(|key| Mem0(server.anonymous().with_key(key)));
    a.say("of a", json!({"user_id": "alice", "agent_id": "agent-a"}));
    a.say("a by itself", json!({"agent_id": "agent-a"}));
    b.say("of b", json!({"user_id": "alice", "agent_id": "agent-b"}));
    b.say("b by itself", json!({"agent_id": "agent-b"}));
    // Of a run, the agent is kept with the entry.
    a.say("run of a", json!({"user_id": "alice", "run_id": "r", "agent_id": "agent-a"}));
    b.say("run of b", json!({"user_id": "alice", "run_id": "r", "agent_id": "agent-b"}));
    a.say("run of nobody", json!({"user_id": "alice", "run_id": "r"}));
    a.say("run of a by itself", json!({"run_id": "r", "agent_id": "agent-a"}));
    b.say("run of b by itself", json!({"run_id": "r", "agent_id": "agent-b"}));

    let refused = "must be the client of your API key";
    for filters in [
        json!({"AND": [{"user_id": "alice"}, {"agent_id": "agent-b"}]}),
        json!({"AND": [{"user_id": "alice"}, {"agent_id": {"in": ["agent-a", "agent-b"]}}]}),
        json!({"AND": [{"user_id": "alice"}, {"run_id": "r"}, {"agent_id": "agent-b"}]}),
        json!({"agent_id": "agent-b"}),
    ] {
        a.0.post("/v3/memories/", json!({"filters": filters})).refused(403, refused);
        a.0.post("/v3/memories/search/", json!({"query": "b", "filters": filters})).refused(403, refused);
    }
    for ids in [
        json!({"user_id": "alice", "agent_id": "agent-b"}),
        json!({"user_id": "alice", "run_id": "r", "agent_id": "agent-b"}),
        json!({"agent_id": "agent-b"}),
        json!({"run_id": "r", "agent_id": "agent-b"}),
        json!({"filters": {"agent_id": "agent-b", "app_id": "shop"}}),
    ] {
        a.add(json!("planted"), ids).refused(403, refused);
    }
    a.0.delete("/v1/memories/?user_id=alice&agent_id=agent-b").refused(403, refused);
    a.0.delete("/v1/memories/?agent_id=agent-b").refused(403, refused);
    a.0.delete("/v2/entities/agent/agent-b/").refused(403, refused);

    for (filters, seen) in [
        (json!({"user_id": "alice"}), &["run of nobody", "run of a", "of a"][..]),
        (json!({"user_id": "alice", "run_id": "r"}), &["run of nobody", "run of a"]),
        (json!({"run_id": "r"}), &["run of a by itself"]),
        (json!({"user_id": "alice", "agent_id": {"ne": "agent-a"}}), &["run of nobody"]),
    ] {
        assert_eq!(a.texts(filters.clone()), seen, "{filters}");
        let search = json!({"query": "run of b", "filters": filters, "threshold": 0});
        let found = a.0.post("/v3/memories/search/", search).expect(200).json;
        let (mut found, mut seen) = (texts(&found), seen.to_vec());
        found.sort();
        seen.sort();
        assert_eq!(found, seen, "{filters}");
    }
    let told = a.0.get("/v1/entities/").expect(200).json;
    assert!(!told.to_string().contains("agent-b"), "{told}");
    a.0.delete("/v1/memories/?user_id=alice").expect(200);
    assert_eq!(a.texts(json!({"user_id": "alice"})), Vec::<String>::new());
    a.0.delete("/v2/entities/run/r/").expect(200);
    assert_eq!(a.texts(json!({"run_id": "r"})), Vec::<String>::new());
    a.0.post_nothing("/reset").expect(200);
    assert_eq!(a.texts(json!({"agent_id": "agent-a"})), Vec::<String>::new());
    assert_eq!(b.texts(json!({"user_id": "alice"})), ["run of b", "of b"]);
    assert_eq!(b.texts(json!({"run_id": "r"})), ["run of b by itself"]);
    assert_eq!(b.texts(json!({"agent_id": "agent-b"})), ["b by itself"]);
}

#[test]
fn who_asserts_a_user_acts_for_that_user_alone_whatever_its_roles_are() {
    let chief = with_token("key-chief");
    let for_alice = Mem0(chief.0.with_header("x-user-id", "alice"));
    chief.say("of the shop", json!({"app_id": "shop"}));
    chief.say("of bob", json!({"user_id": "bob"}));
    for_alice.say("of alice", json!({"user_id": "alice"}));
    for_alice.0.post_nothing("/reset").refused(403, "may delete everything");
    let told = for_alice.0.get("/v1/entities/").expect(200).json;
    assert_eq!((told["count"].as_i64(), told["results"][0]["name"].as_str()), (Some(1), Some("alice")));
    for_alice.0.delete("/v2/entities/user/bob/").refused(400, "contradicts X-User-ID");
    assert_eq!(chief.texts(json!({"app_id": "shop"})), ["of the shop"]);
    assert_eq!(chief.texts(json!({"user_id": "bob"})), ["of bob"]);

    chief.0.post_nothing("/reset").expect(200);
    for ids in [json!({"app_id": "shop"}), json!({"user_id": "bob"}), json!({"user_id": "alice"})] {
        assert_eq!(chief.texts(ids), Vec::<String>::new());
    }
}
