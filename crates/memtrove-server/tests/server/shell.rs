//! The shell, on a real port, through a real client.

use axum::Router;
use axum::body::{Body, Bytes};
use axum::response::sse::{Event, Sse};
use axum::routing::{get, post};
use futures_util::{Stream, StreamExt, stream};
use http::StatusCode;
use memtrove_server::shell::{
    CorsConfig, CorsOptions, Limits, ShellConfig, docs, operations, readiness_of, request_id::RequestId, run,
    shell,
};
use memtrove_server::telemetry::metrics::{DB_POOL_ACTIVE, Metrics};
use serde_json::{Value, json};
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use utoipa::openapi::OpenApiBuilder;

/// A server that ends when it is dropped, or earlier when told to.
struct Server {
    address: SocketAddr,
    end: Option<oneshot::Sender<()>>,
    ended: JoinHandle<()>,
}

impl Server {
    async fn start(router: Router, config: &ShellConfig) -> Self {
        Self::start_with(router, config, Limits::default()).await
    }

    async fn start_with(router: Router, config: &ShellConfig, limits: Limits) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (end, told_to_end) = oneshot::channel::<()>();
        let router = shell(router, config);
        let ended = tokio::spawn(run(listener, router, async { drop(told_to_end.await) }, limits));
        Self { address, end: Some(end), ended }
    }

    fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    async fn get(&self, path: &str) -> reqwest::Response {
        reqwest::get(self.url(path)).await.unwrap()
    }

    fn announce_the_end(&mut self) {
        drop(self.end.take());
    }
}

fn client() -> reqwest::Client {
    reqwest::Client::builder().redirect(reqwest::redirect::Policy::none()).build().unwrap()
}

async fn json_of(response: reqwest::Response) -> Value {
    assert_eq!(response.headers()["content-type"], "application/json; charset=utf-8");
    serde_json::from_slice(&response.bytes().await.unwrap()).unwrap()
}

fn things() -> Router {
    Router::new()
        .route("/things/{id}", get(|| async { "a thing" }).put(|| async { "kept" }))
        .route("/length", post(|body: Bytes| async move { body.len().to_string() }))
}

#[tokio::test]
async fn a_plain_request_id_is_echoed_and_any_other_replaced() {
    let server = Server::start(things(), &ShellConfig::default()).await;
    let ask = async |id: &str| {
        let response = client().get(server.url("/things/1")).header("x-request-id", id).send().await.unwrap();
        response.headers()["x-request-id"].to_str().unwrap().to_owned()
    };
    assert_eq!(ask("abc-1_2.3").await, "abc-1_2.3");
    assert_ne!(ask("two words").await, "two words");
    let generated = server.get("/nowhere").await.headers()["x-request-id"].clone();
    assert_ne!(generated, server.get("/nowhere").await.headers()["x-request-id"]);
}

#[tokio::test]
async fn a_handler_can_ask_which_request_it_serves_even_after_waiting() {
    let router = Router::new().route(
        "/",
        get(|extensions: http::Extensions| async move {
            tokio::time::sleep(Duration::from_millis(5)).await;
            RequestId::of(&extensions)
        }),
    );
    let server = Server::start(router, &ShellConfig::default()).await;
    let requests = (0..50).map(async |n| {
        let id = format!("request-{n}");
        let response = client().get(server.url("/")).header("x-request-id", &id).send().await.unwrap();
        assert_eq!(response.text().await.unwrap(), id);
    });
    futures_util::future::join_all(requests).await;
}

#[tokio::test]
async fn an_unknown_route_and_an_unknown_method_have_the_contracts_shape() {
    let server = Server::start(things(), &ShellConfig::default()).await;

    let unknown = server.get("/v1/nowhere?q=1").await;
    assert_eq!(unknown.status(), StatusCode::NOT_FOUND);
    assert_eq!(
        json_of(unknown).await,
        json!({"error": "Not found", "code": "not_found", "details": {"resource": "route", "id": "/v1/nowhere"}})
    );

    let refused = client().delete(server.url("/things/1")).send().await.unwrap();
    assert_eq!(refused.status(), StatusCode::METHOD_NOT_ALLOWED);
    assert_eq!(refused.headers()["allow"], "GET,HEAD,PUT");
    assert_eq!(json_of(refused).await, json!({"error": "Method not allowed", "code": "method_not_allowed"}));
}

#[tokio::test]
async fn what_never_reaches_a_handler_has_the_shape_of_its_surface() {
    let slow = get(|| tokio::time::sleep(Duration::from_secs(60)));
    let router = Router::new()
        .route("/v1/memories", post(|_: Bytes| async {}).merge(slow.clone()))
        .route("/openspec/v1/knowledge", slow);
    let config = ShellConfig {
        memories_body_limit: 10,
        request_timeout: Duration::from_millis(50),
        ..ShellConfig::default()
    };
    let server = Server::start(router, &config).await;

    for (method, path, body, status, code, operation) in [
        ("GET", "/v1/memories:nothing", "", 404, "ROUTE_NOT_FOUND", "unknown"),
        ("PUT", "/v1/memories", "", 405, "METHOD_NOT_ALLOWED", "unknown"),
        ("POST", "/v1/memories", "more than ten", 413, "REQUEST_TOO_LARGE", "memory.add"),
        ("GET", "/v1/memories", "", 504, "TIMEOUT", "memory.list"),
        ("GET", "/openspec/v1/nothing", "", 404, "ROUTE_NOT_FOUND", "unknown"),
        ("GET", "/openspec/v1/knowledge", "", 504, "TIMEOUT", "openspec.discover"),
    ] {
        let method = reqwest::Method::from_bytes(method.as_bytes()).unwrap();
        let response = client().request(method, server.url(path)).body(body).send().await.unwrap();
        assert_eq!(
            (response.status().as_u16(), &response.headers()["cache-control"]),
            (status, &"no-store".parse().unwrap())
        );
        let id = response.headers()["x-request-id"].to_str().unwrap().to_owned();
        let version = response.headers().get("x-provider-version").cloned();
        let body = json_of(response).await;
        let error = &body["error"];
        assert_eq!(
            (&error["operation"], &error["retryable"]),
            (&json!(operation), &json!(status == 504)),
            "{path}"
        );
        if path.starts_with("/openspec") {
            assert_eq!(
                (&error["code"], &error["name"], &body["request_id"]),
                (&json!(status), &json!(code), &json!(id))
            );
            assert!(version.is_some() && body["timestamp"].is_string(), "{body}");
        } else {
            assert_eq!((&error["code"], &error["request_id"]), (&json!(code), &json!(id)));
            assert_eq!(version, None);
        }
    }
}

#[tokio::test]
async fn head_is_answered_with_the_length_and_no_body() {
    let server = Server::start(things(), &ShellConfig::default()).await;
    let head = client().head(server.url("/things/1")).send().await.unwrap();
    assert_eq!(head.headers()["content-length"], "7");
    assert_eq!(head.bytes().await.unwrap().len(), 0);
}

#[tokio::test]
async fn bodies_up_to_the_limit_pass_and_larger_ones_do_not() {
    let config = ShellConfig { body_limit: 3_000_000, ..ShellConfig::default() };
    let server = Server::start(things(), &config).await;
    let send =
        async |body: reqwest::Body| client().post(server.url("/length")).body(body).send().await.unwrap();
    let chunked = |length: usize| {
        let chunks = vec![Ok::<_, Infallible>(vec![b'x'; 1000]); length / 1000];
        reqwest::Body::wrap_stream(stream::iter(chunks))
    };

    assert_eq!(send(vec![b'x'; 3_000_000].into()).await.text().await.unwrap(), "3000000");
    assert_eq!(send(chunked(3_000_000)).await.text().await.unwrap(), "3000000");

    let declared = send(vec![b'x'; 3_000_001].into()).await;
    assert_eq!(declared.status(), StatusCode::PAYLOAD_TOO_LARGE);
    assert_eq!(
        json_of(declared).await,
        json!({"error": "Payload too large", "code": "payload_too_large",
               "details": {"maxBytes": 3_000_000, "actualBytes": 3_000_001}})
    );

    let undeclared = send(chunked(30_000_000)).await;
    assert_eq!(undeclared.status(), StatusCode::PAYLOAD_TOO_LARGE);
    assert_eq!(
        json_of(undeclared).await,
        json!({"error": "Payload too large", "code": "payload_too_large", "details": {"maxBytes": 3_000_000}})
    );
}

#[tokio::test]
async fn a_handler_that_takes_too_long_is_answered_for_unless_its_route_is_patient() {
    let slow = |duration| get(move || tokio::time::sleep(duration));
    let router = Router::new()
        .route("/slow", slow(Duration::from_secs(60)))
        .route("/patient/{id}", slow(Duration::from_millis(200)));
    let config = ShellConfig {
        request_timeout: Duration::from_millis(50),
        patient_routes: &["/patient/{id}"],
        ..ShellConfig::default()
    };
    let server = Server::start(router, &config).await;

    let response = server.get("/slow").await;
    assert_eq!(response.status(), StatusCode::GATEWAY_TIMEOUT);
    assert!(
        !response.headers().contains_key("retry-after"),
        "what may have happened must not be repeated blindly"
    );
    assert_eq!(json_of(response).await["code"], "timeout");
    assert_eq!(server.get("/patient/1").await.status(), StatusCode::OK);
}

#[tokio::test]
async fn what_a_caller_began_is_done_even_if_it_hangs_up() {
    let done = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&done);
    let slow = move || {
        let counter = Arc::clone(&counter);
        async move {
            tokio::time::sleep(Duration::from_millis(100)).await;
            counter.fetch_add(1, Ordering::SeqCst);
        }
    };
    let router = Router::new().route("/change", post(slow.clone()).get(slow));
    let server = Server::start(router, &ShellConfig::default()).await;
    for method in ["POST", "GET"] {
        let mut socket = tokio::net::TcpStream::connect(server.address).await.unwrap();
        let request = format!("{method} /change HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n");
        socket.write_all(request.as_bytes()).await.unwrap();
        tokio::time::sleep(Duration::from_millis(30)).await;
        drop(socket);
    }
    while done.load(Ordering::SeqCst) == 0 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert_eq!(done.load(Ordering::SeqCst), 1, "the change was made; what only reads was left");
}

fn ticks(count: usize, every: Duration) -> impl Stream<Item = Result<Event, Infallible>> {
    stream::iter(0..count).then(move |n| async move {
        tokio::time::sleep(every).await;
        Ok(Event::default().data(n.to_string()))
    })
}

#[tokio::test]
async fn a_stream_may_outlive_the_timeout_and_is_never_compressed() {
    let router =
        Router::new().route("/ticks", get(|| async { Sse::new(ticks(10, Duration::from_millis(30))) }));
    let config = ShellConfig { request_timeout: Duration::from_millis(50), ..ShellConfig::default() };
    let server = Server::start(router, &config).await;

    let response =
        client().get(server.url("/ticks")).header("accept-encoding", "gzip, zstd").send().await.unwrap();
    assert!(!response.headers().contains_key("content-encoding"));
    let text = response.text().await.unwrap();
    assert!(text.ends_with("data: 9\n\n"), "{text}");
}

#[tokio::test]
async fn a_panic_is_an_internal_error_and_the_connection_survives() {
    async fn broken() -> &'static str {
        tokio::task::yield_now().await;
        panic!("secret plans")
    }
    let server = Server::start(things().route("/broken", get(broken)), &ShellConfig::default()).await;

    let client = client();
    let response = client.get(server.url("/broken")).send().await.unwrap();
    assert_eq!(response.status(), StatusCode::INTERNAL_SERVER_ERROR);
    assert!(response.headers().contains_key("x-request-id"));
    assert_eq!(json_of(response).await, json!({"error": "Internal server error", "code": "internal_error"}));
    assert_eq!(client.get(server.url("/things/1")).send().await.unwrap().status(), StatusCode::OK);
}

#[tokio::test]
async fn text_is_compressed_for_those_who_ask_if_it_is_long_enough() {
    let long = || async { ([("content-type", "application/json")], "[1,2,3,4]".repeat(3000)) };
    let medium = || async { ([("content-type", "application/json")], "[1,2,3,4]".repeat(300)) };
    let short = || async { ([("content-type", "application/json")], "[1,2,3,4]") };
    let picture = || async { ([("content-type", "image/png")], vec![7u8; 90_000]) };
    let router = Router::new()
        .route("/long", get(long))
        .route("/medium", get(medium))
        .route("/short", get(short))
        .route("/picture", get(picture));
    let server = Server::start(router, &ShellConfig::default()).await;
    let coding = async |path: &str, accepted: Option<&str>| {
        let mut request = client().get(server.url(path));
        if let Some(accepted) = accepted {
            request = request.header("accept-encoding", accepted);
        }
        let response = request.send().await.unwrap();
        assert_eq!(response.status(), StatusCode::OK);
        let coding = response.headers().get("content-encoding").map(|v| v.to_str().unwrap().to_owned());
        (coding, response.bytes().await.unwrap())
    };

    let (coding_used, bytes) = coding("/long", Some("gzip, deflate")).await;
    assert_eq!(coding_used.as_deref(), Some("gzip"));
    assert_eq!(&bytes[..2], [0x1f, 0x8b]);
    assert!(bytes.len() < 1000);
    let (coding_used, bytes) = coding("/long", Some("zstd;q=1.0, gzip;q=0.5")).await;
    assert_eq!(coding_used.as_deref(), Some("zstd"));
    assert_eq!(&bytes[..4], [0x28, 0xb5, 0x2f, 0xfd]);

    let (coding_used, bytes) = coding("/long", None).await;
    assert_eq!((coding_used, bytes.len()), (None, 27_000));
    assert_eq!(coding("/long", Some("gzip;q=0")).await.0, None);
    assert_eq!(coding("/long", Some("gzip, zstd")).await.0.as_deref(), Some("zstd"));
    assert_eq!(coding("/medium", Some("gzip, zstd")).await.0.as_deref(), Some("zstd"));
    assert_eq!(coding("/medium", Some("gzip")).await.0, None);
    assert_eq!(coding("/medium", Some("gzip, identity;q=0")).await.0, None);
    assert_eq!(coding("/short", Some("gzip, zstd")).await.0, None);
    assert_eq!(coding("/picture", Some("gzip")).await.0, None);

    let off = ShellConfig { compression: false, ..ShellConfig::default() };
    let server = Server::start(Router::new().route("/long", get(long)), &off).await;
    let response = client().get(server.url("/long")).header("accept-encoding", "gzip").send().await.unwrap();
    assert!(!response.headers().contains_key("content-encoding"));
}

fn cors(options: CorsOptions) -> ShellConfig {
    ShellConfig { cors: Some(CorsConfig::try_from(options).unwrap()), ..ShellConfig::default() }
}

#[tokio::test]
async fn configured_origins_may_call_and_their_preflight_needs_no_credentials() {
    let locked = Router::new().route("/locked", post(|| async { StatusCode::UNAUTHORIZED }));
    let config = cors(CorsOptions {
        origins: vec!["https://app.example.com".into(), r"/https://[a-z]+\.example\.org/".into()],
        allow_credentials: true,
        ..CorsOptions::default()
    });
    let server = Server::start(locked, &config).await;
    let preflight = async |origin: &str| {
        let response = client()
            .request(reqwest::Method::OPTIONS, server.url("/locked"))
            .header("origin", origin)
            .header("access-control-request-method", "POST")
            .header("access-control-request-headers", "authorization,x-user-id")
            .send()
            .await
            .unwrap();
        assert_eq!(response.status(), StatusCode::OK);
        assert!(response.headers().contains_key("x-request-id"));
        response.headers().clone()
    };

    let allowed = preflight("https://app.example.com").await;
    assert_eq!(allowed["access-control-allow-origin"], "https://app.example.com");
    assert_eq!(allowed["access-control-allow-methods"], "POST");
    assert_eq!(allowed["access-control-allow-headers"], "authorization,x-user-id");
    assert_eq!(allowed["access-control-allow-credentials"], "true");
    assert!(preflight("https://team.example.org").await.contains_key("access-control-allow-origin"));
    for stranger in ["https://evil.net", "https://team.example.org.evil.net", "http://app.example.com"] {
        assert!(!preflight(stranger).await.contains_key("access-control-allow-origin"), "{stranger}");
    }

    let call = client()
        .post(server.url("/locked"))
        .header("origin", "https://app.example.com")
        .send()
        .await
        .unwrap();
    assert_eq!(call.status(), StatusCode::UNAUTHORIZED);
    assert_eq!(call.headers()["access-control-allow-origin"], "https://app.example.com");
    let exposed = call.headers()["access-control-expose-headers"].to_str().unwrap();
    assert!(exposed.contains("x-request-id"), "{exposed}");
}

#[test]
fn contradictory_cors_options_are_refused_with_a_reason() {
    let refused = |options: CorsOptions| CorsConfig::try_from(options).err().unwrap().to_string();
    let any = CorsOptions { origins: vec!["*".into()], allow_credentials: true, ..CorsOptions::default() };
    assert!(refused(any).contains("cannot be combined"));
    assert!(refused(CorsOptions::default()).contains("at least one origin"));
    let pattern = CorsOptions { origins: vec!["/[/".into()], ..CorsOptions::default() };
    assert!(refused(pattern).contains("not a regular expression"));
    let method =
        CorsOptions { origins: vec!["*".into()], methods: vec!["GE T".into()], ..CorsOptions::default() };
    assert!(refused(method).contains("cors.methods: 'GE T'"));
}

async fn readiness(ready: bool) -> Result<(), String> {
    if ready { Ok(()) } else { Err("the store does not answer".into()) }
}

#[tokio::test]
async fn health_is_told_without_credentials() {
    let metrics = Metrics::install().unwrap();
    let healthy =
        Server::start(operations(readiness_of(|| readiness(true)), metrics.clone()), &ShellConfig::default())
            .await;
    for path in ["/v1/health", "/health/live", "/health/ready", "/ready"] {
        let response = healthy.get(path).await;
        assert_eq!(response.status(), StatusCode::OK, "{path}");
        assert_eq!(json_of(response).await, json!({"status": "ok"}), "{path}");
    }
    let pointer = json_of(healthy.get("/").await).await;
    assert_eq!((&pointer["service"], &pointer["status"]), (&json!("memtrove"), &json!("ok")));
    assert_eq!(pointer["docs"], json!("/docs"));

    let sick = Server::start(
        operations(readiness_of(|| readiness(false)), metrics.clone()),
        &ShellConfig::default(),
    )
    .await;
    for (path, status) in
        [("/health/live", 200), ("/v1/health", 200), ("/health/ready", 503), ("/ready", 503)]
    {
        assert_eq!(sick.get(path).await.status().as_u16(), status, "{path}");
    }
    assert_eq!(
        json_of(sick.get("/ready").await).await,
        json!({"status": "unavailable", "reason": "the store does not answer"})
    );

    let stuck =
        Server::start(operations(readiness_of(std::future::pending), metrics), &ShellConfig::default()).await;
    assert_eq!(stuck.get("/health/ready").await.status(), StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(stuck.get("/health/live").await.status(), StatusCode::OK);
}

#[tokio::test]
async fn requests_are_counted_by_route_and_never_by_what_callers_invent() {
    let metrics = Metrics::install().unwrap();
    metrics.sample(|| async { metrics::gauge!(DB_POOL_ACTIVE).set(3.0) });
    metrics.sample(std::future::pending);
    let router = Router::new()
        .route("/counted/{id}", get(|| async { "ok" }).post(|| async { StatusCode::IM_A_TEAPOT }))
        .merge(operations(readiness_of(|| readiness(true)), metrics));
    let server = Server::start(router, &ShellConfig::default()).await;

    for id in 0..3 {
        server.get(&format!("/counted/{id}")).await;
    }
    client().post(server.url("/counted/1")).send().await.unwrap();
    client().head(server.url("/counted/1")).send().await.unwrap();
    let invented = reqwest::Method::from_bytes(b"INVENTED").unwrap();
    client().request(invented, server.url("/counted/1")).send().await.unwrap();
    server.get("/scan/etc/passwd").await;

    let response = server.get("/metrics").await;
    assert_eq!(response.headers()["content-type"], "text/plain; version=0.0.4; charset=utf-8");
    let text = response.text().await.unwrap();
    let count = |labels: &str| {
        let name = format!("http_server_requests_seconds_count{{{labels}}} ");
        text.lines().find_map(|line| line.strip_prefix(&name)).map(str::to_owned)
    };
    let of = |method: &str, status: &str| {
        count(&format!(r#"method="{method}",uri="/counted/{{id}}",status="{status}""#))
    };
    assert_eq!(of("GET", "200").as_deref(), Some("3"), "{text}");
    assert_eq!(of("HEAD", "200").as_deref(), Some("1"));
    assert_eq!(of("POST", "418").as_deref(), Some("1"));
    assert_eq!(of("OTHER", "405").as_deref(), Some("1"));
    assert!(count(r#"method="GET",uri="UNKNOWN",status="404""#).is_some());
    assert!(text.contains(r#"le="0.00005""#), "{text}");
    assert!(text.lines().any(|line| line == "db_pool_active 3"), "{text}");
    assert!(!text.contains("passwd") && !text.contains("INVENTED"));
}

#[tokio::test]
async fn the_documentation_loads_without_any_other_host() {
    let server = Server::start(docs(|| OpenApiBuilder::new().build()), &ShellConfig::default()).await;

    let document = json_of(server.get("/openapi.json").await).await;
    assert!(document["openapi"].as_str().unwrap().starts_with("3.1"));

    let page = server.get("/docs").await;
    assert_eq!(page.status(), StatusCode::OK);
    assert!(page.url().path().ends_with("/docs/"));
    let html = page.text().await.unwrap();
    let mut assets = Vec::new();
    for attribute in ["src=\"", "href=\""] {
        assets.extend(html.split(attribute).skip(1).map(|rest| rest.split('"').next().unwrap()));
    }
    assert!(assets.len() >= 4, "{html}");
    for asset in assets {
        assert!(!asset.contains("//"), "{asset} is on another host");
        let response = server.get(&format!("/docs/{}", asset.trim_start_matches("./"))).await;
        assert_eq!(response.status(), StatusCode::OK, "{asset}");
        assert!(!response.bytes().await.unwrap().is_empty(), "{asset}");
    }
    let start = server.get("/docs/swagger-initializer.js").await.text().await.unwrap();
    assert!(start.contains("\"/openapi.json\""), "{start}");
    assert!(start.contains(r#""validatorUrl": "none""#), "{start}");
    assert!(!start.contains("http://") && !start.contains("https://"), "{start}");
}

#[tokio::test]
async fn http2_is_spoken_on_the_same_port() {
    let server = Server::start(things(), &ShellConfig::default()).await;
    let stream = TcpStream::connect(server.address).await.unwrap();
    let io = hyper_util::rt::TokioIo::new(stream);
    let (mut sender, connection) =
        hyper::client::conn::http2::handshake(hyper_util::rt::TokioExecutor::new(), io).await.unwrap();
    tokio::spawn(connection);
    let request = http::Request::get(server.url("/things/1")).body(Body::empty()).unwrap();
    let response = sender.send_request(request).await.unwrap();
    assert_eq!(response.version(), http::Version::HTTP_2);
    assert_eq!(response.status(), StatusCode::OK);
    assert!(response.headers().contains_key("x-request-id"));
}

#[tokio::test]
async fn pipelined_requests_are_answered_in_order() {
    let router = Router::new().route(
        "/{id}",
        get(|axum::extract::Path(id): axum::extract::Path<String>| async move { format!("<{id}>") }),
    );
    let server = Server::start(router, &ShellConfig::default()).await;
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    stream
        .write_all(
            b"GET /a HTTP/1.1\r\nhost: x\r\n\r\nGET /b HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n",
        )
        .await
        .unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).await.unwrap();
    assert!(text.find("<a>").unwrap() < text.find("<b>").unwrap(), "{text}");
}

#[tokio::test]
async fn a_connection_survives_an_answer_that_comes_before_the_body() {
    let server = Server::start(things(), &ShellConfig::default()).await;
    for (path, status) in [("/things/1", "200 OK"), ("/nowhere", "404 Not Found")] {
        let mut stream = TcpStream::connect(server.address).await.unwrap();
        let head = format!("PUT {path} HTTP/1.1\r\nhost: x\r\ncontent-length: 5\r\n\r\n");
        stream.write_all(head.as_bytes()).await.unwrap();
        let first = answer_on(&mut stream).await;
        assert!(first.starts_with(&format!("HTTP/1.1 {status}")), "{first}");
        stream.write_all(b"12345GET /things/1 HTTP/1.1\r\nhost: x\r\n\r\n").await.unwrap();
        let second = answer_on(&mut stream).await;
        assert!(second.ends_with("a thing"), "{path}: the connection was closed: {second:?}");
    }
}

/// What comes next, to the end of an answer that says how long it is.
async fn answer_on(stream: &mut TcpStream) -> String {
    let (mut read, mut piece) = (String::new(), [0; 4096]);
    loop {
        let length = stream.read(&mut piece).await.unwrap();
        read.push_str(std::str::from_utf8(&piece[..length]).unwrap());
        if let Some((head, body)) = read.split_once("\r\n\r\n") {
            let announced = head.lines().find_map(|line| line.strip_prefix("content-length: "));
            if announced.is_some_and(|announced| body.len() >= announced.parse().unwrap()) {
                return read;
            }
        }
        if length == 0 {
            return read;
        }
    }
}

#[tokio::test]
async fn a_client_that_never_finishes_its_headers_is_dropped() {
    let limits = Limits { header_timeout: Duration::from_millis(200), ..Limits::default() };
    let server = Server::start_with(things(), &ShellConfig::default(), limits).await;
    for said in ["", "P", "PRI", "PRI * HTTP/2.0\r\n", "GET /things/1 HTTP/1.1\r\nhost: x\r\nx-slow: "] {
        let mut stream = TcpStream::connect(server.address).await.unwrap();
        stream.write_all(said.as_bytes()).await.unwrap();
        let mut rest = Vec::new();
        let dropped = tokio::time::timeout(Duration::from_secs(5), stream.read_to_end(&mut rest)).await;
        assert!(dropped.is_ok(), "still connected after saying {said:?}");
    }
}

#[tokio::test]
async fn the_end_waits_for_requests_under_way_and_takes_no_new_ones() {
    let begun = Arc::new(tokio::sync::Notify::new());
    let told = Arc::clone(&begun);
    let slow = get(move || async move {
        told.notify_one();
        tokio::time::sleep(Duration::from_millis(300)).await;
        "finished"
    });
    let mut server = Server::start(Router::new().route("/slow", slow), &ShellConfig::default()).await;
    let idle = client();
    idle.get(server.url("/nowhere")).send().await.unwrap();

    let under_way = tokio::spawn(reqwest::get(server.url("/slow")));
    begun.notified().await;
    server.announce_the_end();
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert!(client().get(server.url("/slow")).send().await.is_err(), "a new connection was accepted");
    assert_eq!(under_way.await.unwrap().unwrap().text().await.unwrap(), "finished");

    let began = Instant::now();
    server.ended.await.unwrap();
    assert!(began.elapsed() < Duration::from_secs(2), "idle connections held up the end");
}

#[tokio::test]
async fn streams_end_after_the_grace_period() {
    let forever = get(|| async { Sse::new(ticks(usize::MAX, Duration::from_millis(10))) });
    let limits = Limits { grace: Duration::from_millis(200), ..Limits::default() };
    let router = Router::new().route("/forever", forever);
    let mut server = Server::start_with(router, &ShellConfig::default(), limits).await;
    let mut response = server.get("/forever").await;
    assert!(response.chunk().await.unwrap().is_some());

    let began = Instant::now();
    server.announce_the_end();
    while let Ok(Some(_)) = response.chunk().await {}
    assert!(began.elapsed() >= Duration::from_millis(150), "the stream was cut before its grace ended");
    tokio::time::timeout(Duration::from_secs(2), server.ended).await.unwrap().unwrap();
}
