//! Below the messages: how large they may be, how long a call may take, and requests that are no calls, or no good ones.

use crate::parity::{memory, message};
use crate::support::*;
use crate::surface::{Grpc, Op, Rest, Surface};
use crate::wire;
use futures_util::future::join_all;
use memtrove_proto::v1;
use memtrove_proto::v1::conversations_service_client::ConversationsServiceClient;

static SERVER: LazyLock<TestServer> = LazyLock::new(local_server);

const HEALTH: &str = "/memory.v1.SystemService/GetHealth";
const LIST: &str = "/memory.v1.ConversationsService/ListConversations";
const GRPC: (&str, &str) = ("content-type", "application/grpc");
const TRAILERS: (&str, &str) = ("te", "trailers");
const MIB: usize = 1024 * 1024;

/// The path of every call of the contract.
fn calls() -> Vec<String> {
    let contract = include_str!("../../../../proto/memory/v1/memory_service.proto");
    let (mut service, mut calls) = ("", Vec::new());
    for line in contract.lines() {
        if let Some(name) = line.strip_prefix("service ") {
            service = name.trim_end_matches(" {");
        }
        if let Some((name, _)) = line.trim().strip_prefix("rpc ").and_then(|call| call.split_once('(')) {
            calls.push(format!("/memory.v1.{service}/{name}"));
        }
    }
    assert!(calls.len() > 30, "{calls:?}");
    calls
}

#[track_caller]
fn is_well() {
    let health = call_raw(&channel(&SERVER), &Who::anonymous(), HEALTH, Vec::new());
    assert_eq!(health.expect("the server answers"), &b"\x0a\x02ok"[..]);
    let log = SERVER.log();
    assert!(!log.contains("panicked"), "{log}");
}

// ---- sizes

#[test]
fn a_message_of_fifteen_mebibytes_is_taken_and_given_back() {
    let agent = Who::someone("alice").with_key("agent-a");
    let grpc = Grpc(channel(&SERVER));
    let conversation = fresh_id();
    let items: Vec<Value> = (0..15).map(|n| json!(format!("{n}{}", "x".repeat(MIB)))).collect();
    grpc.call(&agent, Op::SyncEntries, &memory(&conversation, json!(items))).expect("a large memory");
    let again =
        grpc.call(&agent, Op::SyncEntries, &memory(&conversation, json!(items))).expect("a large memory");
    assert_eq!(again["noOp"], true);
    let asked = json!({"conversationId": conversation, "channel": "memory"});
    let page = grpc.call(&agent, Op::ListEntries, &asked).expect("a large page");
    assert!(page["data"][0]["content"] == json!(items), "it comes back as it was sent");
}

#[test]
fn a_message_beyond_the_limit_is_too_much() {
    let agent = Who::someone("alice").with_key("agent-a");
    let grpc = Grpc(channel(&SERVER));
    let items: Vec<Value> = (0..21).map(|_| json!("x".repeat(MIB))).collect();
    let refusal = grpc.call(&agent, Op::SyncEntries, &memory(&fresh_id(), json!(items))).expect_err("21 MiB");
    assert_eq!(
        (refusal.code, refusal.reason.as_str()),
        (Code::ResourceExhausted, "payload_too_large"),
        "{refusal:?}"
    );
    is_well();
}

#[test]
fn content_beyond_its_own_limit_is_refused_as_over_rest() {
    let agent = Who::someone("alice").with_key("agent-a");
    let items: Vec<Value> = (0..17).map(|_| json!("x".repeat(MIB))).collect();
    let asked = memory(&fresh_id(), json!(items));
    let over_rest = Rest(&SERVER).call(&agent, Op::SyncEntries, &asked).expect_err("17 MiB");
    let over_grpc = Grpc(channel(&SERVER)).call(&agent, Op::SyncEntries, &asked).expect_err("17 MiB");
    assert_eq!((over_rest.code, over_rest.reason), (over_grpc.code, over_grpc.reason));
}

#[test]
fn the_limit_of_a_message_is_configured_with_that_of_a_body() {
    let small = server_with("[server]\nbody_limit = \"64KiB\"");
    let grpc = Grpc(channel(&small));
    let alice = Who::someone("alice");
    grpc.call(&alice, Op::AppendEntry, &message(&fresh_id(), &"x".repeat(60_000))).expect("60 kB");
    let refusal =
        grpc.call(&alice, Op::AppendEntry, &message(&fresh_id(), &"x".repeat(70_000))).expect_err("70 kB");
    assert_eq!(refusal.code, Code::ResourceExhausted, "{refusal:?}");
}

// ---- deadlines

#[test]
fn a_deadline_that_passes_is_told_and_what_was_begun_is_done_all_the_same() {
    let alice = fresh_name("alice");
    let credential = format!("Bearer {alice}");
    let rest = SERVER.as_user(alice);
    let is_stored = |conversation: &str| {
        let page = rest.get(&format!("/v1/conversations/{conversation}/entries"));
        page.status == 200 && page.json["data"].as_array().is_some_and(|entries| entries.len() == 1)
    };
    // A deadline can pass before anything was begun, and storing can be done in time: in between lies what is meant.
    let given_up = Instant::now() + Duration::from_secs(60);
    let mut late = Vec::new();
    for timeout in ["1m", "2m", "4m", "8m", "16m"].into_iter().cycle() {
        let headers = [GRPC, TRAILERS, ("grpc-timeout", timeout), ("authorization", &credential)];
        let conversation = fresh_id();
        let append = wire::append(&bytes_of(&conversation), &[wire::string("in a hurry")]);
        let answer = http2(&SERVER, "/memory.v1.EntriesService/AppendEntry", &headers, framed(&append));
        match answer.code() {
            Code::Ok => {}
            Code::DeadlineExceeded => late.push(conversation),
            other => panic!("{other:?} {answer:?}"),
        }
        if late.iter().any(|conversation| is_stored(conversation)) {
            return;
        }
        assert!(
            Instant::now() < given_up,
            "of {} calls that were too late none was done all the same",
            late.len()
        );
    }
}

#[test]
fn a_deadline_far_away_or_unreadable_changes_nothing() {
    for timeout in ["30S", "99999999H", "1M", "", "soon", "-1S", "123456789S"] {
        let answer = http2(&SERVER, HEALTH, &[GRPC, TRAILERS, ("grpc-timeout", timeout)], framed(&[]));
        assert_eq!(answer.code(), Code::Ok, "{timeout:?}");
    }
}

#[test]
fn a_stream_ends_at_its_deadline() {
    let headers = [GRPC, TRAILERS, ("grpc-timeout", "300m")];
    let begun = Instant::now();
    let answer = http2(&SERVER, "/grpc.health.v1.Health/Watch", &headers, framed(&[]));
    assert_eq!(answer.code(), Code::DeadlineExceeded);
    assert_eq!(answer.body, framed(&[0x08, 1]), "it was serving until then");
    assert!(begun.elapsed() >= Duration::from_millis(300));
}

#[test]
fn a_message_that_never_comes_to_its_end_is_given_up() {
    let hasty = server_with("[server]\nrequest_timeout = \"1s\"");
    let headers = [GRPC, TRAILERS, ("authorization", "Bearer alice")];
    for begun in [Vec::new(), vec![0, 0, 0], vec![0, 0, 0, 0, 200, 1, 2, 3]] {
        let answer = http2_and_silence(&hasty, LIST, &headers, begun.clone());
        assert_eq!(answer.code(), Code::DeadlineExceeded, "{begun:?}: {answer:?}");
    }
}

// ---- calls that there are not

#[test]
fn calls_that_the_contract_does_not_have_are_unimplemented() {
    for path in [
        "/memory.v1.EntriesService/Nope",
        "/memory.v1.EntriesService/appendentry",
        "/memory.v1.EntriesService/",
        "/memory.v1.EntriesService",
        "/memory.v1.NopeService/Get",
        "/memory.v1.AdminService/Get",
        "/grpc.nope.v1.Service/Get",
        "/grpc.health.v1.Health/Nope",
        "/memory.v2.EntriesService/AppendEntry",
        "/v1/conversations/nope/nope/nope",
    ] {
        let answer = http2(&SERVER, path, &[GRPC, TRAILERS], framed(&[]));
        assert_eq!((answer.status, answer.code()), (200, Code::Unimplemented), "{path}");
    }
    // Other packages are not ours: a client of gRPC reads a 404 as UNIMPLEMENTED.
    let elsewhere =
        call_raw(&channel(&SERVER), &Who::anonymous(), "/memory.v2.EntriesService/AppendEntry", Vec::new());
    assert_eq!(elsewhere.expect_err("there is none").code(), Code::Unimplemented);
}

#[test]
fn requests_that_are_no_calls_are_told_so() {
    let web = ["application/grpc-web", "application/grpc-web+proto", "application/grpc-web-text"];
    for content_type in ["application/json", "text/plain", "application/grpcx"].into_iter().chain(web) {
        let answer = http2(&SERVER, HEALTH, &[("content-type", content_type)], framed(&[]));
        assert_eq!(answer.status, 415, "{content_type}: {answer:?}");
    }
    for content_type in ["application/grpc", "application/grpc+proto", "application/grpc; charset=utf-8"] {
        let answer = http2(&SERVER, HEALTH, &[("content-type", content_type)], framed(&[]));
        assert_eq!((answer.status, answer.code()), (200, Code::Ok), "{content_type}");
    }
}

#[test]
fn over_http_1_requests_are_answered_too() {
    let send = |method: &str, path: &str, content_type: Option<&'static str>| {
        SERVER.anonymous().send(method, path, Body::Raw { content_type, bytes: framed(&[]) })
    };
    for content_type in [None, Some("application/json"), Some("text/plain")] {
        send("POST", HEALTH, content_type).expect(415);
    }
    for method in ["GET", "PUT", "PATCH", "DELETE"] {
        let answer = send(method, HEALTH, Some("application/grpc")).expect(405);
        assert_eq!(answer.header("allow"), "POST");
    }
    // Without trailers nobody can say how a call ended, so what comes back is of no use, but it comes.
    send("POST", HEALTH, Some("application/grpc")).expect(200);
    let unknown = send("POST", "/memory.v1.Nope/Get", Some("application/grpc")).expect(200);
    assert_eq!(unknown.header("grpc-status"), "12");
    is_well();
}

#[test]
fn compressed_messages_are_not_taken_and_the_answer_says_what_is() {
    let alice = format!("Bearer {}", fresh_name("alice"));
    // An empty message, as gzip has it.
    let gzip = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    let mut frame = framed(&gzip);
    frame[0] = 1;
    for encoding in ["gzip", "zstd", "deflate", "snappy"] {
        let headers = [GRPC, TRAILERS, ("grpc-encoding", encoding), ("authorization", alice.as_str())];
        let answer = http2(&SERVER, LIST, &headers, frame.clone());
        assert_eq!(answer.code(), Code::Unimplemented, "{encoding}: {answer:?}");
        let accepted = answer.headers.get("grpc-accept-encoding").expect("what is accepted");
        assert!(!accepted.to_str().expect("words").contains(encoding), "{accepted:?}");
    }
    let headers = [
        GRPC,
        TRAILERS,
        ("grpc-encoding", "identity"),
        ("grpc-accept-encoding", "gzip, zstd"),
        ("authorization", alice.as_str()),
    ];
    let answer = http2(&SERVER, LIST, &headers, framed(&[]));
    assert_eq!(answer.code(), Code::Ok);
    assert!(answer.headers.get("grpc-encoding").is_none_or(|encoding| encoding == "identity"));
    assert_eq!(answer.headers.get("content-encoding"), None, "the shell leaves calls alone");
}

// ---- garbage

#[test]
fn bytes_that_are_no_message_get_a_status_from_every_call() {
    let alice = Who::someone("alice").with_key("agent-a");
    let channel = channel(&SERVER);
    let mut dice = 0x2545_f491_4f6c_dd1d_u64;
    let mut random = |length: usize| -> Vec<u8> {
        (0..length)
            .map(|_| {
                dice ^= dice << 13;
                dice ^= dice >> 7;
                dice ^= dice << 17;
                dice as u8
            })
            .collect()
    };
    for path in calls() {
        let mut messages = vec![
            vec![0xff; 64],
            vec![0x0a, 0xff, 0xff, 0xff, 0xff, 0x0f],
            vec![0x0b; 200],
            vec![0x0a, 3, 1],
            vec![0x80; 11],
            [vec![0x12, 0x80, 0x01], vec![0x2a; 128]].concat(),
        ];
        messages.extend((1..20).map(|length| random(length * 7)));
        for message in messages {
            let answer = call_raw(&channel, &alice, &path, message.clone());
            if let Err(status) = answer {
                let unfit = [
                    Code::Unknown,
                    Code::Cancelled,
                    Code::Unavailable,
                    Code::DataLoss,
                    Code::DeadlineExceeded,
                ];
                assert!(!unfit.contains(&status.code()), "{path} {message:?}: {status:?}");
            }
        }
    }
    is_well();
}

#[test]
fn frames_that_are_none_get_a_status() {
    let alice = format!("Bearer {}", fresh_name("alice"));
    let headers = [GRPC, TRAILERS, ("authorization", alice.as_str())];
    let two = [framed(&[]), framed(&[])].concat();
    let frames: Vec<(&str, Vec<u8>)> = vec![
        ("nothing at all", Vec::new()),
        ("half a head", vec![0, 0]),
        ("less than promised", vec![0, 0, 0, 0, 9, 1]),
        ("four gigabytes promised, and more than may be", vec![0, 0xff, 0xff, 0xff, 0xff, 1]),
        ("a flag that means nothing", vec![7, 0, 0, 0, 0]),
        ("compressed, and nobody said how", vec![1, 0, 0, 0, 1, 0]),
        ("text", b"GET / HTTP/1.1\r\n\r\n".to_vec()),
    ];
    for (what, frame) in frames {
        let answer = http2(&SERVER, LIST, &headers, frame);
        let expected =
            if what.contains("promised, and more") { Code::ResourceExhausted } else { Code::InvalidArgument };
        assert_eq!(answer.code(), expected, "{what}: {answer:?}");
    }
    // A second message where one belongs is not read, or refused.
    http2(&SERVER, LIST, &headers, two).code();
    is_well();
}

#[test]
fn metadata_may_be_odd() {
    let alice = format!("Bearer {}", fresh_name("alice"));
    for odd in [
        ("grpc-trace-bin", "not base64!"),
        ("custom-bin", "AAECAw"),
        ("grpc-previous-rpc-attempts", "x"),
        ("x-request-id", "a b\tc"),
        ("user-agent", "grpc-c++/1.0"),
    ] {
        let headers = [GRPC, TRAILERS, ("authorization", alice.as_str()), odd];
        assert_eq!(http2(&SERVER, LIST, &headers, framed(&[])).code(), Code::Ok, "{odd:?}");
    }
    let headers = [GRPC, TRAILERS, ("authorization", alice.as_str()), ("x-request-id", "call-7")];
    let answer = http2(&SERVER, LIST, &headers, framed(&[]));
    assert_eq!(answer.headers.get("x-request-id").map(|id| id.as_bytes()), Some(&b"call-7"[..]));
}

#[test]
fn metadata_that_is_too_long_is_refused() {
    let long = "x".repeat(20_000);
    let answer = http2(&SERVER, HEALTH, &[GRPC, TRAILERS, ("x-long", &long)], framed(&[]));
    assert_eq!(answer.status, 431, "{answer:?}");
    is_well();
}

// ---- many at once

#[test]
fn hundreds_of_calls_share_a_connection() {
    let alice = Who::someone("alice");
    let client = ConversationsServiceClient::new(channel(&SERVER));
    let calls = (0..300).map(|number| {
        let (mut client, alice) = (client.clone(), alice.clone());
        async move {
            let create = v1::CreateConversationRequest { title: format!("{number}"), metadata: None };
            let made = client.create_conversation(alice.request(create)).await?.into_inner();
            let get = v1::GetConversationRequest { conversation_id: made.id };
            Ok::<_, tonic::Status>(client.get_conversation(alice.request(get)).await?.into_inner().title)
        }
    });
    let titles: Result<Vec<String>, _> = soon(join_all(calls)).into_iter().collect();
    let expected: Vec<String> = (0..300).map(|number| number.to_string()).collect();
    assert_eq!(titles.expect("every call is answered"), expected);
}
