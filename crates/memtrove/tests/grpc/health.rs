//! What stands beside the contract: the health that load balancers ask for, and the contract itself, for tools.

use crate::support::*;
use bytes::Bytes;
use tonic::transport::Channel;
use tonic::{Status, Streaming};

const CHECK: &str = "/grpc.health.v1.Health/Check";
const SERVING: &[u8] = &[0x08, 1];
const NOT_SERVING: &[u8] = &[0x08, 2];
const SERVICE_UNKNOWN: &[u8] = &[0x08, 3];

const SERVICES: [&str; 8] = [
    "memory.v1.SystemService",
    "memory.v1.ConversationsService",
    "memory.v1.ConversationMembershipsService",
    "memory.v1.OwnershipTransfersService",
    "memory.v1.EntriesService",
    "memory.v1.SearchService",
    "memory.v1.ResponseRecorderService",
    "memory.v1.AttachmentsService",
];

static SERVER: LazyLock<TestServer> = LazyLock::new(local_server);

/// A message with this text in this field.
fn text_field(number: u8, text: &str) -> Vec<u8> {
    let length = u8::try_from(text.len()).expect("a short text");
    [&[number << 3 | 2, length][..], text.as_bytes()].concat()
}

fn check(channel: &Channel, service: &str) -> Result<Bytes, Status> {
    let message = if service.is_empty() { Vec::new() } else { text_field(1, service) };
    call_raw(channel, &Who::anonymous(), CHECK, message)
}

/// A call with streams on both sides, or on the server's.
fn open(channel: &Channel, path: &'static str, message: Vec<u8>) -> Streaming<Bytes> {
    let mut client = tonic::client::Grpc::new(channel.clone());
    let path = tonic::codegen::http::uri::PathAndQuery::from_static(path);
    soon(async {
        client.ready().await.expect("a connection");
        let messages = tokio_stream::iter([message]);
        client
            .streaming(Who::anonymous().request(messages), path, AsTheyAre)
            .await
            .expect("a stream")
            .into_inner()
    })
}

#[test]
fn every_service_of_the_contract_is_serving() {
    let channel = channel(&SERVER);
    for service in SERVICES.into_iter().chain([""]) {
        assert_eq!(check(&channel, service).expect("a status"), SERVING, "{service:?}");
    }
    assert_eq!(check(&channel, "memory.v1.NopeService").expect_err("no such service").code(), Code::NotFound);
}

#[test]
fn who_watches_is_told_how_it_is() {
    let channel = channel(&SERVER);
    let watch = "/grpc.health.v1.Health/Watch";
    let mut serving = open(&channel, watch, text_field(1, "memory.v1.EntriesService"));
    assert_eq!(soon(serving.message()).expect("a message").expect("a status"), SERVING);
    let mut unknown = open(&channel, watch, text_field(1, "memory.v1.NopeService"));
    assert_eq!(soon(unknown.message()).expect("a message").expect("a status"), SERVICE_UNKNOWN);
}

#[test]
fn a_server_that_is_stopping_says_so_to_those_who_ask_and_those_who_watch() {
    let stopping = server_with("[server]\nshutdown_delay = \"10s\"");
    let channel = channel(&stopping);
    let mut watching = open(&channel, "/grpc.health.v1.Health/Watch", Vec::new());
    assert_eq!(soon(watching.message()).expect("a message").expect("a status"), SERVING);

    let asked = std::process::Command::new("kill").args(["-TERM", &stopping.pid().to_string()]).status();
    assert!(asked.expect("the kill command").success());

    assert_eq!(soon(watching.message()).expect("a message").expect("a status"), NOT_SERVING);
    assert_eq!(check(&channel, "").expect("it still answers"), NOT_SERVING);
    assert_eq!(check(&channel, "memory.v1.EntriesService").expect("it still answers"), NOT_SERVING);
}

#[test]
fn reflection_shows_the_contract_in_both_of_its_versions() {
    let channel = channel(&SERVER);
    for path in [
        "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
        "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
    ] {
        let answered = |message: Vec<u8>| -> Vec<u8> {
            let mut answers = open(&channel, path, message);
            soon(answers.message()).expect("a message").expect("an answer").to_vec()
        };
        let listed = String::from_utf8_lossy(&answered(text_field(7, "*"))).into_owned();
        for service in SERVICES.into_iter().chain(["grpc.health.v1.Health"]) {
            assert!(listed.contains(service), "{path} does not list {service}");
        }
        let file = String::from_utf8_lossy(&answered(text_field(4, "memory.v1.EntriesService"))).into_owned();
        for part in ["memory_service.proto", "AppendEntry", "indexed_content", "forked_at_conversation_id"] {
            assert!(file.contains(part), "{path} does not show {part}");
        }
        for dependency in ["google/protobuf/struct.proto", "google/protobuf/empty.proto"] {
            let file = String::from_utf8_lossy(&answered(text_field(3, dependency))).into_owned();
            assert!(file.contains("google.protobuf"), "{path} does not show {dependency}");
        }
    }
}

#[test]
fn calls_are_counted_under_their_own_names_with_the_status_that_rest_would_have() {
    let counted = local_server();
    let channel = channel(&counted);
    let get = "/memory.v1.ConversationsService/GetConversation";
    let unknown = [&[0x0a, 16][..], &bytes_of(&fresh_id())].concat();
    for (message, code) in [
        (unknown, Code::NotFound),
        (vec![0x0a, 1, 7], Code::InvalidArgument),
        (vec![0xff], Code::InvalidArgument),
    ] {
        assert_eq!(call_raw(&channel, &Who::user("alice"), get, message).expect_err("no").code(), code);
    }
    assert_eq!(
        call_raw(&channel, &Who::anonymous(), get, Vec::new()).expect_err("no").code(),
        Code::Unauthenticated
    );
    http2(&counted, get, &[("content-type", "application/json")], Vec::new());
    let metrics = counted.anonymous().get("/metrics").expect(200).text;
    for (status, count) in [(404, 1), (400, 2), (401, 1), (415, 1)] {
        let labels = [format!("uri=\"{get}\""), format!("status=\"{status}\"")];
        let is_it = |line: &&str| {
            line.starts_with("http_server_requests_seconds_count")
                && labels.iter().all(|label| line.contains(label))
        };
        let line =
            metrics.lines().find(is_it).unwrap_or_else(|| panic!("{status} is not counted:\n{metrics}"));
        assert!(line.ends_with(&format!(" {count}")), "{line}");
    }
}
