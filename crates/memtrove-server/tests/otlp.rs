//! Traces, sent to a stand-in for a collector. One test, because a process has one subscriber.

use axum::Router;
use axum::body::Bytes;
use axum::routing::{get, post};
use http::HeaderMap;
use memtrove_server::shell::{Limits, ShellConfig, run, shell};
use memtrove_server::telemetry::{TelemetryConfig, init};
use std::sync::{Arc, Mutex};
use tokio::net::TcpListener;

type Received = Arc<Mutex<Vec<(HeaderMap, Bytes)>>>;

fn contains(haystack: &[u8], needle: &[u8]) -> bool {
    haystack.windows(needle.len()).any(|window| window == needle)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn spans_reach_the_collector_and_a_dead_collector_disturbs_nobody() {
    // given: a collector that takes connections and never answers
    let collector = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let guard = init(&TelemetryConfig {
        otlp_endpoint: Some(format!("http://{}", collector.local_addr().unwrap())),
        service_name: "memtrove-under-test".into(),
        ..TelemetryConfig::default()
    })
    .unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/things/1", listener.local_addr().unwrap());
    let router = Router::new().route("/things/{id}", get(|| async { "a thing" }));
    tokio::spawn(run(
        listener,
        shell(router, &ShellConfig::default()),
        std::future::pending(),
        Limits::default(),
    ));

    // when: more requests come than the exporter sends at once, so that it tries, and waits for an answer
    let client = reqwest::Client::new();
    for _ in 0..1500 {
        // then: each of them is answered all the same
        assert_eq!(client.get(&url).send().await.unwrap().status(), 200);
    }

    // when: the collector comes back and a request belongs to a trace
    let received = Received::default();
    let keep = received.clone();
    let traces = post(move |headers: HeaderMap, body: Bytes| {
        keep.lock().unwrap().push((headers, body));
        async {}
    });
    tokio::spawn(async move { axum::serve(collector, Router::new().route("/v1/traces", traces)).await });
    client
        .get(&url)
        .header("traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
        .header("x-request-id", "request-to-find")
        .send()
        .await
        .unwrap();
    tokio::task::spawn_blocking(move || drop(guard)).await.unwrap();

    // then: the collector has its span, in that trace
    let received = received.lock().unwrap();
    let trace_id = 0x0af7651916cd43dd8448eb211c80319c_u128.to_be_bytes();
    let (headers, body) = received
        .iter()
        .find(|(_, body)| contains(body, &trace_id))
        .unwrap_or_else(|| panic!("no span of the trace in {} exports", received.len()));
    assert_eq!(headers["content-type"], "application/x-protobuf");
    let parent_span_id = 0xb7ad6b7169203331_u64.to_be_bytes();
    assert!(contains(body, &parent_span_id));
    for text in ["memtrove-under-test", "GET /things/{id}", "http.route", "request-to-find"] {
        assert!(contains(body, text.as_bytes()), "no {text:?} in the export");
    }
}
