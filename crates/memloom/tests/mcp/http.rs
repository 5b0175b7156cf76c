//! `/mcp`: the protocol over HTTP.

use crate::support::*;
use std::sync::LazyLock;

const BINARY: &str = env!("CARGO_BIN_EXE_memloom");

/// A server that asks for credentials.
static STRICT: LazyLock<TestServer> = LazyLock::new(|| {
    Setup::new(BINARY)
        .toml(
            "[auth]\nmode = \"jwt\"\n[auth.jwt]\nhmac_secret = \"0123456789abcdef0123456789abcdef\"\n\
             [auth.api_keys]\nrobot = [\"key-of-robot\"]\nbutler = [\"key-of-butler\"]\n\
             [auth.trusted_clients]\nclients = [\"butler\"]\n[server]\nbody_limit = \"64KiB\"\n",
        )
        .start()
});

/// A server in local mode.
static LOCAL: LazyLock<TestServer> = LazyLock::new(|| TestServer::start(BINARY));

fn list() -> Value {
    json!({"jsonrpc": "2.0", "id": 7, "method": "tools/list"})
}

#[test]
fn a_session_is_begun_and_tools_are_called_without_one() {
    let alice = Caller::of(&LOCAL.as_user(fresh_name("alice")).with_key("editor"));
    let client = json!({"name": "test", "version": "1"});
    let params = json!({"protocolVersion": VERSION, "capabilities": {}, "clientInfo": client});
    let answer =
        alice.0.post("/mcp", json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}));
    let answer = answer.expect(200);
    assert_eq!(answer.header("content-type"), "application/json");
    assert!(answer.headers.get("mcp-session-id").is_none(), "every request stands alone");
    assert_eq!(answer.json["result"]["protocolVersion"], VERSION);
    let noted = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    alice.0.post("/mcp", noted).expect(202);
    alice.ok("remember", json!({"text": "Alice keeps bees."}));
    assert!(alice.ok("recall", json!({"query": "does she keep bees"})).contains("bees"));
    alice.ok("memory_write_file", json!({"path": "bees.md", "content": "Three hives."}));
    assert_eq!(alice.ok("memory_load_file", json!({"path": "bees.md"})), "Three hives.");
    let read = alice.request("resources/read", json!({"uri": "memloom://files/bees.md"}));
    assert_eq!(read["result"]["contents"][0]["text"], "Three hives.");
    assert_eq!(alice.failure("forget", json!({"id": fresh_id()}))["code"], "MEMORY_NOT_FOUND");
}

#[test]
fn what_is_done_here_is_what_rest_shows() {
    let user = fresh_name("alice");
    let client = LOCAL.as_user(&user).with_key("editor");
    let alice = Caller::of(&client);
    alice.ok("remember", json!({"text": "One function for all."}));
    let listed = client.get(&format!("/v1/memories?layer=user&userId={user}")).expect(200);
    assert_eq!(listed.json["memories"][0]["content"], "One function for all.");
    assert_eq!(listed.json["memories"][0]["createdBy"]["clientId"], "editor");
    let said = alice.ok("append_message", json!({"role": "user", "text": "Recorded"}));
    let entries = client.get(&format!("/v1/conversations/{}/entries", id_in(&said))).expect(200);
    assert_eq!(entries.json["data"][0]["content"][0], json!({"role": "USER", "text": "Recorded"}));
    let other = alice.ok("append_message", json!({"role": "user", "text": "Recorded"}));
    assert_ne!(id_in(&other), id_in(&said), "without a session each is a conversation");
}

#[test]
fn users_and_tenants_do_not_see_each_other() {
    let user = fresh_name("alice");
    let alice = Caller::of(&LOCAL.as_user(&user));
    alice.ok("remember", json!({"text": "Alice keeps bees."}));
    for other in [
        Caller::of(&LOCAL.as_user(fresh_name("bob"))),
        Caller::of(&LOCAL.as_user(&user).with_key("editor").in_tenant(&fresh_name("tenant"))),
    ] {
        let found = other.ok("recall", json!({"query": "Alice keeps bees", "min_score": 0}));
        assert!(found.starts_with("nothing found"), "{found}");
    }
    let error = alice.failure("recall", json!({"query": "bees", "user_id": "bob"}));
    assert!(error["message"].as_str().unwrap().contains("fixed by the host"), "{error}");
}

#[test]
fn a_project_comes_from_a_header() {
    let (project, text) = (fresh_name("shop"), "The shop opens at nine.");
    let at =
        |user: &str| Caller::of(&LOCAL.as_user(fresh_name(user)).with_header("x-memloom-project", &project));
    at("alice").ok("remember", json!({"text": text, "for_project": true}));
    assert!(at("bob").ok("recall", json!({"query": "when does the shop open"})).contains(text));
    let error =
        Caller::of(&LOCAL.someone("carol")).failure("remember", json!({"text": text, "for_project": true}));
    assert_eq!(error["code"], "INVALID_ARGUMENTS");
    let refused = Caller::of(&LOCAL.someone("dan").with_header("x-memloom-project", &"p".repeat(256)));
    let refused = refused.0.post("/mcp", list()).expect(400);
    assert_eq!(refused.json["error"]["data"]["code"], "INVALID_REQUEST");
}

#[test]
fn nobody_comes_in_without_credentials_of_a_user() {
    let anonymous = Caller::of(&STRICT.anonymous());
    for client in [
        anonymous.0.clone(),
        anonymous.0.with_header("authorization", "Bearer nonsense"),
        anonymous.0.with_key("no-such-key"),
        // A key alone names no user, and only a trusted client may speak for one.
        anonymous.0.with_key("key-of-robot"),
        anonymous.0.with_key("key-of-robot").with_header("x-user-id", "alice"),
        anonymous.0.with_key("key-of-butler"),
    ] {
        let refused = client.post("/mcp", list()).expect(401);
        assert_eq!(refused.header("www-authenticate"), "Bearer");
        assert_eq!(
            (&refused.json["jsonrpc"], &refused.json["id"]),
            (&json!("2.0"), &Value::Null),
            "{}",
            refused.text
        );
        assert_eq!(refused.json["error"]["data"]["code"], "UNAUTHENTICATED");
    }
    let butler = anonymous.0.with_key("key-of-butler").with_header("x-user-id", "alice");
    assert_eq!(butler.post("/mcp", list()).expect(200).json["id"], 7);
}

#[test]
fn who_calls_is_asked_before_the_body_is_read() {
    let refused = Caller::of(&STRICT.anonymous()).0.send("POST", "/mcp", Body::json_text("{ no json"));
    refused.expect(401);
}

#[test]
fn local_mode_answers_to_names_of_this_machine_only() {
    let stranger = Caller::of(&LOCAL.someone("alice")).0.with_header("host", "evil.example");
    let refused = stranger.post("/mcp", list()).expect(403);
    assert_eq!(refused.json["error"]["data"]["code"], "FORBIDDEN");
}

#[test]
fn what_is_no_request_is_refused_in_the_shape_of_the_protocol() {
    let alice = Caller::of(&LOCAL.someone("alice")).0;
    let broken = alice.send("POST", "/mcp", Body::json_text("{ no json")).expect(400);
    assert_eq!(broken.json["error"]["code"], -32700, "{}", broken.text);
    for text in ["{}", "7", r#"{"method": "tools/list"}"#] {
        let odd = alice.send("POST", "/mcp", Body::json_text(text)).expect(400);
        assert_eq!(odd.json["error"]["code"], -32600, "{}", odd.text);
    }
    for method in ["GET", "DELETE", "PUT"] {
        let refused = alice.send(method, "/mcp", Body::None).expect(405);
        assert_eq!(refused.json["error"]["data"]["code"], "METHOD_NOT_ALLOWED", "{}", refused.text);
        assert_eq!(refused.header("allow"), "POST");
    }
    let picky = alice.with_header("accept", "text/html").post("/mcp", list()).expect(406);
    assert_eq!(picky.json["error"]["code"], -32600, "{}", picky.text);
    let text = Body::Raw { content_type: Some("text/plain"), bytes: list().to_string().into_bytes() };
    let typed = alice.send("POST", "/mcp", text).expect(415);
    assert_eq!(typed.json["error"]["code"], -32600, "{}", typed.text);
    let version = alice.with_header("mcp-protocol-version", "1999-01-01").post("/mcp", list()).expect(400);
    assert_eq!(version.json["jsonrpc"], "2.0", "{}", version.text);
    let method = json!({"jsonrpc": "2.0", "id": 3, "method": "nothing/here"});
    assert_eq!(alice.post("/mcp", method).expect(200).json["error"]["code"], -32601);
}

#[test]
fn bodies_have_the_limit_of_all_bodies() {
    let butler =
        Caller::of(&STRICT.anonymous().with_key("key-of-butler").with_header("x-user-id", "alice")).0;
    let long = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": {"name": "memory_write_file", "arguments": {"path": "a.md", "content": "x".repeat(100_000)}}});
    let refused = butler.post("/mcp", long.clone()).expect(413);
    assert_eq!(refused.json["error"]["data"]["code"], "PAYLOAD_TOO_LARGE", "{}", refused.text);
    let chunks = long.to_string().into_bytes().chunks(10_000).map(<[u8]>::to_vec).collect();
    butler.send("POST", "/mcp", Body::Chunked { content_type: "application/json", chunks }).expect(413);
}
