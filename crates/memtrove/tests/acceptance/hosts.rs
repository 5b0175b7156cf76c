//! The names that local mode answers to. A page of another site whose own name was made to point here is of the same origin
//! as the server: nothing but the name it calls stops it.

use crate::support::*;
use hyper_util::rt::{TokioExecutor, TokioIo};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::LazyLock;
use std::time::Duration;

static LOCAL: LazyLock<TestServer> = LazyLock::new(local_server);

fn address() -> &'static str {
    LOCAL.url().trim_start_matches("http://")
}

/// The status and the whole answer to a request of HTTP/1, whose lines are these.
fn ask(lines: &[&str]) -> (u16, String) {
    let mut stream = TcpStream::connect(address()).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let head = format!("{}\r\nconnection: close\r\n\r\n", lines.join("\r\n"));
    stream.write_all(head.as_bytes()).unwrap();
    let mut answer = Vec::new();
    // A server that closes while something of the request is unread resets the connection after its answer.
    let _ = stream.read_to_end(&mut answer);
    let answer = String::from_utf8_lossy(&answer).into_owned();
    let status = answer.split(' ').nth(1).and_then(|status| status.parse().ok());
    (status.unwrap_or_else(|| panic!("no answer to {lines:?}: {answer:?}")), answer)
}

/// The status of a request over HTTP/2 with this `:authority` and, if there is one, this `host`.
fn ask_over_http_2(authority: &str, host: Option<&str>, path: &str) -> u16 {
    let uri = format!("http://{authority}{path}");
    tokio::runtime::Runtime::new().unwrap().block_on(async move {
        let stream = tokio::net::TcpStream::connect(address()).await.unwrap();
        let (mut sender, connection) =
            hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await.unwrap();
        tokio::spawn(connection);
        let mut request = hyper::Request::get(uri).header("authorization", "Bearer alice");
        if let Some(host) = host {
            request = request.header("host", host);
        }
        let request = request.body(http_body_util::Empty::<bytes::Bytes>::new()).unwrap();
        sender.send_request(request).await.unwrap().status().as_u16()
    })
}

/// Every method of every route that the description names, the routes beside it, and some that do not exist.
fn routes() -> Vec<(String, String)> {
    let document = LOCAL.anonymous().get("/openapi.json").expect(200).json;
    let described = document["paths"].as_object().unwrap().iter().flat_map(|(path, item)| {
        let path = path.replace(['{', '}'], "");
        let methods = item.as_object().unwrap().keys().filter(|key| !matches!(key.as_str(), "parameters"));
        methods.map(move |method| (method.to_uppercase(), path.clone())).collect::<Vec<_>>()
    });
    let beside = [
        ("GET", "/"),
        ("GET", "/v1/health"),
        ("GET", "/health/live"),
        ("GET", "/health/ready"),
        ("GET", "/ready"),
        ("GET", "/metrics"),
        ("GET", "/openapi.json"),
        ("GET", "/docs"),
        ("GET", "/docs/"),
        ("GET", "/docs/swagger-ui.css"),
        ("POST", "/mcp"),
        ("POST", "/memory.v1.SystemService/GetHealth"),
        ("POST", "/memory.v1.ConversationsService/ListConversations"),
        ("POST", "/grpc.health.v1.Health/Check"),
        ("POST", "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo"),
        ("OPTIONS", "/v1/conversations"),
        ("TRACE", "/v1/conversations"),
        ("GET", "/no/such/route"),
        ("GET", "/v1/tenants/t/users/u/nothing"),
        ("POST", "/memory.v1.SystemService/Nothing"),
    ];
    let routes: Vec<_> = described.chain(beside.map(|(method, path)| (method.into(), path.into()))).collect();
    assert!(routes.len() > 90, "the description has lost its routes: {routes:?}");
    routes
}

#[test]
fn no_route_of_local_mode_answers_to_a_name_of_somebody_else() {
    for (method, path) in routes() {
        let line = format!("{method} {path} HTTP/1.1");
        let credentials = "authorization: Bearer admin";
        for host in ["host: evil.example", "host: [::1].evil.example"] {
            let (status, answer) = ask(&[&line, host, credentials]);
            if path.starts_with("/memory.") || path.starts_with("/grpc.") {
                let refused = answer.to_ascii_lowercase().contains("grpc-status: 7");
                assert!(refused, "{line} as {host}: {answer}");
            } else {
                assert_eq!(status, 403, "{line} as {host}: {answer}");
            }
        }
    }
}

#[test]
fn the_refusal_says_what_to_do_in_the_shape_of_its_surface() {
    let stranger = LOCAL.as_user("admin").with_header("host", "evil.example");
    let said = |path: &str, pointer: &str| {
        let refused = stranger.get(path).expect(403);
        let sentence = refused.json.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        assert!(sentence.contains("localhost") && sentence.contains("auth.mode"), "{}", refused.describe());
        refused
    };
    said("/v1/conversations", "/details/message").expect_error(403, "forbidden");
    said("/health/ready", "/details/message");
    let files = said("/v1/tenants/default/users/alice/files:list", "/error/message");
    assert_eq!(files.json["error"]["code"], "FORBIDDEN");
    let memories = said("/v1/memories", "/error/message");
    assert_eq!(memories.json["error"]["code"], "FORBIDDEN");
    let openspec = said("/openspec/v1/knowledge", "/error/message");
    assert_eq!(openspec.json["error"]["code"], 403);
}

#[test]
fn local_mode_is_called_by_one_name_of_this_machine() {
    let get = "GET /v1/conversations HTTP/1.1";
    let alice = "authorization: Bearer alice";
    let port = address().rsplit_once(':').unwrap().1;
    let elsewhere = format!("GET http://evil.example:{port}/v1/conversations HTTP/1.1");
    let here = format!("GET http://localhost:{port}/v1/conversations HTTP/1.1");
    let host = format!("host: localhost:{port}");
    for lines in [
        &[get, "host: localhost", alice][..],
        &[get, "host: LocalHost:1", alice],
        &[get, "host: 127.8.9.10", alice],
        &[get, "host: [::1]:65535", alice],
        &[get, &host, alice],
        &[&here, &host, alice],
        &["GET /v1/conversations HTTP/1.0", "host: localhost", alice],
    ] {
        assert_eq!(ask(lines).0, 200, "{lines:?}");
    }
    for lines in [
        &[get, alice][..],
        &["GET /v1/conversations HTTP/1.0", alice],
        &[get, "host:", alice],
        &[get, "host: localhost", "host: localhost", alice],
        &[get, "host: localhost", "host: evil.example", alice],
        &[get, "host: evil.example", "host: localhost", alice],
        &[get, "host: localhost, evil.example", alice],
        &[get, "host: localhost.evil.example", alice],
        &[get, "host: 127.0.0.1.evil.example", alice],
        &[get, "host: [::1].evil.example", alice],
        &[get, "host: localhost:7077@evil.example", alice],
        &[get, "host: user@localhost", alice],
        &[get, "host: evil.localhost", alice],
        &[get, "host: localhost.", alice],
        &[get, "host: localhost:x", alice],
        &[get, "host: localhost:65536", alice],
        &[get, "host: 192.0.2.7", alice],
        &[&elsewhere, &host, alice],
        &[&elsewhere, alice],
        &[&here, "host: evil.example", alice],
        &[&here, "host: 127.0.0.1", alice],
    ] {
        assert_eq!(ask(lines).0, 403, "{lines:?}");
    }
}

#[test]
fn over_http_2_the_name_stands_in_the_target() {
    let port = address().rsplit_once(':').unwrap().1;
    let (named, evil) = (format!("localhost:{port}"), format!("evil.example:{port}"));
    assert_eq!(ask_over_http_2(&named, None, "/v1/conversations"), 200);
    assert_eq!(ask_over_http_2(&named, Some(&named), "/v1/conversations"), 200);
    for path in ["/v1/conversations", "/health/live"] {
        assert_eq!(ask_over_http_2(&evil, None, path), 403);
        assert_eq!(ask_over_http_2(&evil, Some(&named), path), 403);
        assert_eq!(ask_over_http_2(&named, Some(&evil), path), 403);
    }
}

#[test]
fn a_server_that_checks_tokens_answers_to_every_name() {
    let server = server_with(
        "[auth]\nmode = \"jwt\"\n[auth.api_keys]\nrobot = [\"key\"]\n[auth.trusted_clients]\nclients = [\"robot\"]\n",
    );
    let robot = server.anonymous().with_key("key").with_header("x-user-id", "alice");
    for host in ["memtrove.example", "memtrove.example:8443", "localhost"] {
        robot.with_header("host", host).get("/v1/conversations").expect_page();
        robot.with_header("host", host).get("/health/ready").expect(200);
    }
}
