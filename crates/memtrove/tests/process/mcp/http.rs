//! `/mcp`: the protocol over HTTP.

use crate::mcp::support::*;
use hyper_util::rt::{TokioExecutor, TokioIo};
use jsonwebtoken::{EncodingKey, Header, get_current_timestamp};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::LazyLock;

const BINARY: &str = env!("CARGO_BIN_EXE_memtrove");

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
    let read = alice.request("resources/read", json!({"uri": "memtrove://files/bees.md"}));
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
        |user: &str| Caller::of(&LOCAL.as_user(fresh_name(user)).with_header("x-memtrove-project", &project));
    at("alice").ok("remember", json!({"text": text, "for_project": true}));
    assert!(at("bob").ok("recall", json!({"query": "when does the shop open"})).contains(text));
    let error =
        Caller::of(&LOCAL.someone("carol")).failure("remember", json!({"text": text, "for_project": true}));
    assert_eq!(error["code"], "INVALID_ARGUMENTS");
    let refused = Caller::of(&LOCAL.someone("dan").with_header("x-memtrove-project", &"p".repeat(256)));
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
fn a_token_whose_tenant_is_no_name_is_refused() {
    let ask = |tenant: Value| {
        let claims = json!({"sub": "alice", "exp": get_current_timestamp() + 3_600, "tenant": tenant});
        let key = EncodingKey::from_secret(b"0123456789abcdef0123456789abcdef");
        let token = jsonwebtoken::encode(&Header::default(), &claims, &key).unwrap();
        Caller::of(&STRICT.anonymous().with_header("authorization", &format!("Bearer {token}")))
            .0
            .post("/mcp", list())
    };
    for tenant in [json!(null), json!(""), json!(7), json!(["default"]), json!({})] {
        let refused = ask(tenant).expect(401);
        assert_eq!(refused.json["error"]["data"]["code"], "UNAUTHENTICATED", "{}", refused.text);
    }
    ask(json!("acme")).expect(200);
}

#[test]
fn who_calls_is_asked_before_the_body_is_read() {
    let address = STRICT.url().trim_start_matches("http://");
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let head = format!(
        "POST /mcp HTTP/1.1\r\nhost: {address}\r\ncontent-type: application/json\r\n\
         accept: application/json, text/event-stream\r\ncontent-length: 60000\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).unwrap();
    let mut status = [0; 12];
    stream.read_exact(&mut status).unwrap();
    assert_eq!(&status, b"HTTP/1.1 401");
}

#[test]
fn local_mode_answers_to_names_of_this_machine_only() {
    let stranger = Caller::of(&LOCAL.someone("alice")).0.with_header("host", "evil.example");
    let refused = stranger.post("/mcp", list()).expect(403);
    assert_eq!(refused.json["error"]["data"]["code"], "FORBIDDEN");
}

#[test]
fn web_pages_call_only_from_origins_that_may() {
    let ask = |client: &Client, origin: &str| client.with_header("origin", origin).post("/mcp", list());
    let alice = Caller::of(&LOCAL.someone("alice")).0;
    for origin in ["http://localhost", "http://localhost:3000", "https://127.0.0.1:8443", "http://[::1]:5173"]
    {
        ask(&alice, origin).expect(200);
    }
    for origin in [
        "http://evil.example",
        "http://localhost.evil.example",
        "http://127.0.0.1.evil.example:80",
        "null",
        "",
        "localhost",
        "file://localhost",
        "http://evil.example/@localhost",
    ] {
        let refused = ask(&alice, origin).expect(403);
        assert_eq!(refused.json["error"]["data"]["code"], "FORBIDDEN", "{origin}: {}", refused.text);
    }

    let butler =
        Caller::of(&STRICT.anonymous().with_key("key-of-butler").with_header("x-user-id", "alice")).0;
    for origin in ["http://localhost:3000", "http://evil.example"] {
        ask(&butler, origin).expect(403);
    }
    butler.post("/mcp", list()).expect(200);

    let cors = "[cors]\nenabled = true\norigins = [\"https://app.example.org\"]\n";
    let server = Setup::new(BINARY).toml(cors).start();
    let page = Caller::of(&server.someone("alice")).0;
    let answer = ask(&page, "https://app.example.org").expect(200);
    assert_eq!(answer.header("access-control-allow-origin"), "https://app.example.org");
    ask(&page, "http://localhost:3000").expect(200);
    ask(&page, "https://other.example.org").expect(403);
}

/// The status of a POST over HTTP/2, to this server under this name.
fn http2(server: &TestServer, name: &str, path: &str) -> u16 {
    let address = server.url().trim_start_matches("http://").to_owned();
    let port = address.rsplit_once(':').unwrap().1.to_owned();
    let uri = format!("http://{name}:{port}{path}");
    tokio::runtime::Runtime::new().unwrap().block_on(async move {
        let stream = tokio::net::TcpStream::connect(&address).await.unwrap();
        let (mut sender, connection) =
            hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await.unwrap();
        tokio::spawn(connection);
        let request = hyper::Request::post(uri)
            .header("authorization", "Bearer alice")
            .header("content-type", "application/json")
            .header("accept", "application/json, text/event-stream")
            .body(http_body_util::Full::new(bytes::Bytes::from(list().to_string())))
            .unwrap();
        sender.send_request(request).await.unwrap().status().as_u16()
    })
}

#[test]
fn local_mode_knows_the_name_that_is_called_over_http_2_too() {
    for name in ["127.0.0.1", "localhost"] {
        assert_eq!(http2(&LOCAL, name, "/mcp"), 200, "{name}");
    }
    for path in ["/mcp", "/v1/conversations"] {
        assert_eq!(http2(&LOCAL, "evil.example", path), 403, "{path}");
    }
}

#[test]
fn a_media_type_is_one_whatever_its_letters_and_parameters() {
    let alice = Caller::of(&LOCAL.someone("alice")).0;
    let send = |content_type| {
        let bytes = list().to_string().into_bytes();
        alice.send("POST", "/mcp", Body::Raw { content_type, bytes })
    };
    for kind in
        ["application/json", "Application/JSON", "application/json; charset=utf-8", "APPLICATION/json ;a=b"]
    {
        send(Some(kind)).expect(200);
    }
    for kind in [None, Some("application/jsonp"), Some("application/json-seq"), Some("text/json"), Some("")] {
        let refused = send(kind).expect(415);
        assert_eq!(refused.json["error"]["code"], -32600, "{kind:?}: {}", refused.text);
    }
}

#[test]
fn params_that_cannot_be_read_are_no_unknown_method() {
    let alice = Caller::of(&LOCAL.someone("alice"));
    for (method, params, problem) in [
        ("tools/call", json!({}), "name"),
        ("tools/call", json!({"name": 7}), "string"),
        ("tools/call", json!({"name": "recall", "arguments": "x"}), "'arguments'"),
        ("tools/call", json!({"name": "recall", "arguments": "[]"}), "'arguments'"),
        ("tools/call", json!({"name": "recall", "arguments": ["x"]}), "map"),
        ("resources/read", json!({}), "uri"),
        ("initialize", json!({}), "protocolVersion"),
    ] {
        let error = alice.request(method, params.clone())["error"].clone();
        assert_eq!(error["code"], -32602, "{method} {params}: {error}");
        let message = error["message"].as_str().unwrap();
        assert!(message.starts_with(method) && message.contains(problem), "{method} {params}: {message}");
    }
    let missing = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call"});
    assert_eq!(alice.0.post("/mcp", missing).expect(200).json["error"]["code"], -32602);
}

#[test]
fn arguments_may_be_the_text_of_an_object() {
    let alice = Caller::of(&LOCAL.someone("alice"));
    let text = r#"{"text": "Alice keeps bees."}"#;
    let answer = alice.request("tools/call", json!({"name": "remember", "arguments": text}));
    assert!(succeeded(&answer).starts_with("remembered ["), "{answer}");
    assert!(answer["result"].get("resultType").is_none(), "as older versions have it: {answer}");
    assert_eq!(alice.ok("memory_list_files", json!("")), "no files");
    let refused = failed(&alice.request("tools/call", json!({"name": "remember", "arguments": "{}"})));
    assert_eq!(refused["code"], "INVALID_ARGUMENTS");
    let scoped = r#"{"query": "a", "user_id": "bob"}"#;
    let refused = failed(&alice.request("tools/call", json!({"name": "recall", "arguments": scoped})));
    assert!(refused["message"].as_str().unwrap().contains("fixed by the host"), "{refused}");
}

#[test]
fn what_is_not_offered_is_not_answered() {
    let alice = Caller::of(&LOCAL.someone("alice"));
    let reference = json!({"type": "ref/resource", "uri": "memtrove://files/{+path}"});
    let complete = json!({"ref": reference, "argument": {"name": "path", "value": "a"}});
    for (method, params) in [("prompts/list", json!({})), ("completion/complete", complete)] {
        let answer = alice.request(method, params);
        assert_eq!(answer["error"]["code"], -32601, "{method}: {answer}");
    }
}

#[test]
fn whoever_asks_for_a_version_that_is_not_spoken_is_offered_one_that_is() {
    let alice = Caller::of(&LOCAL.someone("alice"));
    for (asked, offered) in [
        ("2024-11-05", "2024-11-05"),
        // It demands batches; its clients know the version before it.
        ("2025-03-26", "2024-11-05"),
        ("2025-06-18", "2025-06-18"),
        ("2025-11-25", "2025-11-25"),
        ("1999-01-01", "2025-11-25"),
    ] {
        let client = json!({"name": "test", "version": "1"});
        let params = json!({"protocolVersion": asked, "capabilities": {}, "clientInfo": client});
        let answer = alice.request("initialize", params.clone());
        assert_eq!(answer["result"]["protocolVersion"], offered, "{asked}: {answer}");
        let answer = Home::new().process(&[]).request("initialize", params);
        assert_eq!(answer["result"]["protocolVersion"], offered, "{asked}: {answer}");
    }
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
