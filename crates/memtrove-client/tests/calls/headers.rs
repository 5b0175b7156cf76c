//! Who calls, in whose name, and what goes along.

use crate::support::*;
use memtrove_client::attachments::DownloadOptions;
use memtrove_client::{AttachmentId, BoxError, PatchRequest, Precondition, TextEdit};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

fn ok() -> Act {
    answer(200, json!({"service": "memtrove", "status": "ok"}))
}

#[tokio::test]
async fn credentials_go_along_and_are_never_shown() {
    let stage = Stage::playing([ok(), ok(), ok()]);
    let builder = stage
        .builder()
        .bearer_token("s3cret")
        .api_key("k3y")
        .acting_for("bob-the-user")
        .tenant("acme-tenant");
    let shown = format!("{builder:?}");
    let client = builder.build().unwrap();
    client.status().await.unwrap();
    client.acting_for("carol").unwrap().in_tenant("other").unwrap().status().await.unwrap();
    client.status().await.unwrap();
    let seen = stage.seen();
    let of = |n: usize| {
        ["authorization", "x-api-key", "x-user-id", "x-tenant-id"].map(|name| seen[n].header(name))
    };
    assert_eq!(of(0), ["Bearer s3cret", "k3y", "bob-the-user", "acme-tenant"]);
    assert_eq!(of(1), ["Bearer s3cret", "k3y", "carol", "other"]);
    assert_eq!(of(2), of(0), "a client made from another leaves that as it is");
    for shown in [shown, format!("{client:?}"), format!("{:?}", client.admin())] {
        for secret in ["s3cret", "k3y", "bob-the-user", "acme-tenant"] {
            assert!(!shown.contains(secret), "{shown}");
        }
    }
}

#[test]
fn a_client_needs_a_base_url_and_credentials_that_can_be_sent() {
    let refused = |builder: ClientBuilder| match builder.build() {
        Err(Error::InvalidInput(why)) => why,
        other => panic!("{other:?}"),
    };
    assert!(refused(Client::builder()).contains("base_url"));
    assert!(refused(Client::builder().base_url("nowhere")).contains("base URL"));
    assert!(refused(Client::builder().base_url("data:x")).contains("base URL"));
    for (url, about) in [
        ("ftp://host", "http or https"),
        ("file:///tmp/memtrove", "base URL"),
        ("http://dana:s3cret@host", "bearer_token"),
        ("http://s3cret@host", "api_key"),
        ("http://host/?tenant=s3cret", "query"),
        ("http://host/#s3cret", "fragment"),
        ("http://dana:s3cret@host:port", "base URL"),
    ] {
        let why = refused(Client::builder().base_url(url));
        assert!(why.contains(about) && !why.contains("s3cret"), "{url}: {why}");
    }
    let why = refused(Client::builder().base_url("http://host").api_key("two\nlines"));
    assert!(why.contains("x-api-key") && !why.contains("lines"), "{why}");
}

#[tokio::test]
async fn changes_say_who_acts_and_reads_do_not() {
    let stage = Stage::playing([file("\"1\""), file("\"2\""), file("\"3\"")]);
    let client = stage.builder().service_id("planner").build().unwrap();
    client.get_file(&alice(), &path("a.md")).await.unwrap();
    let edit = || PatchRequest::edits([TextEdit::new("a", "b")]);
    client.patch_file(&alice(), &path("a.md"), edit(), Precondition::CreateNew).await.unwrap();
    let other = client.with_options(CallOptions::acting_as("importer"));
    other.patch_file(&alice(), &path("a.md"), edit(), Precondition::Matches("\"2\"".into())).await.unwrap();
    let seen = stage.seen();
    let services: Vec<&str> = seen.iter().map(|seen| seen.header("x-service-id")).collect();
    assert_eq!(services, ["", "planner", "importer"]);
    assert_eq!([seen[1].header("if-match"), seen[2].header("if-match")], ["*", "\"2\""]);
    assert_eq!(seen[1].body, r#"{"edits":[{"old_text":"a","new_text":"b"}]}"#);
    assert_eq!(seen[1].line, "PATCH /v1/tenants/acme/users/alice/files/a.md HTTP/1.1");
}

#[tokio::test]
async fn a_provider_is_asked_at_each_attempt_and_overrides_nothing() {
    let stage = Stage::playing([text(503, ""), ok()]);
    let asked = Arc::new(AtomicUsize::new(0));
    let counter = asked.clone();
    let client = stage.builder().api_key("mine").header_provider(move || {
        let number = counter.fetch_add(1, Ordering::SeqCst);
        async move {
            let pairs = [
                ("X-Trace", format!("t{number}")),
                ("X-Api-Key", "theirs".into()),
                (" ", "x".into()),
                ("X-Empty", " ".into()),
            ];
            Ok(pairs.map(|(name, value)| (name.to_owned(), value)).to_vec())
        }
    });
    client.build().unwrap().status().await.unwrap();
    let seen = stage.seen();
    assert_eq!([seen[0].header("x-trace"), seen[1].header("x-trace")], ["t0", "t1"]);
    assert_eq!(seen[0].header("x-api-key"), "mine");
    assert!(seen[0].headers.iter().all(|(name, _)| name != "x-empty"), "{:?}", seen[0]);
}

#[tokio::test]
async fn a_provider_that_fails_is_asked_again() {
    let stage = Stage::playing([ok()]);
    let asked = Arc::new(AtomicUsize::new(0));
    let counter = asked.clone();
    let client = stage.builder().header_provider(move || {
        let first = counter.fetch_add(1, Ordering::SeqCst) == 0;
        async move { if first { Err(BoxError::from("no token yet")) } else { Ok(vec![]) } }
    });
    client.build().unwrap().status().await.unwrap();
    assert_eq!((asked.load(Ordering::SeqCst), stage.count()), (2, 1));
}

#[tokio::test]
async fn whoever_watches_sees_every_attempt_once() {
    let stage = Stage::playing([text(503, ""), Act::Drop, ok()]);
    let (requests, responses) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (asked, answered) = (requests.clone(), responses.clone());
    let client = stage
        .builder()
        .on_request(move |request| {
            assert_eq!(request.url().path(), "/");
            asked.fetch_add(1, Ordering::SeqCst);
        })
        .on_response(move |_| {
            answered.fetch_add(1, Ordering::SeqCst);
        });
    client.build().unwrap().status().await.unwrap();
    assert_eq!((requests.load(Ordering::SeqCst), responses.load(Ordering::SeqCst)), (3, 2));
}

#[tokio::test]
async fn a_file_that_is_elsewhere_is_read_there_without_credentials() {
    let elsewhere = Stage::playing([text(200, "the bytes")]);
    let there = format!("{}/bucket/x?sig=1", elsewhere.url());
    let stage = Stage::playing([with(text(307, ""), "location", &there)]);
    let client = stage
        .plain_builder()
        .bearer_token("s3cret")
        .api_key("k3y")
        .header_provider(|| async { Ok(vec![("cookie".to_owned(), "mine".to_owned())]) })
        .build()
        .unwrap();
    let id = AttachmentId(uuid::Uuid::nil());
    let options = DownloadOptions { range: Some((2, None)), ..DownloadOptions::default() };
    let download = client.get_attachment(id, options).await.unwrap();
    assert_eq!(download.bytes().await.unwrap(), "the bytes");
    let seen = &elsewhere.seen()[0];
    assert_eq!(seen.line, "GET /bucket/x?sig=1 HTTP/1.1");
    assert_eq!(seen.header("range"), "bytes=2-");
    for name in ["authorization", "x-api-key", "cookie"] {
        assert_eq!(seen.header(name), "", "{name} must not leave for another host");
    }
    assert_eq!(stage.seen()[0].header("cookie"), "mine");
}
