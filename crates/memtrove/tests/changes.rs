//! The change feed over HTTP: pages, streams that resume, and what a crash leaves of them.
#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a test fails by panicking")]

use memtrove_testkit::server::{Body, Client, Setup, TestServer, assert_members, fresh_id, fresh_name};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use tokio::runtime::Runtime;

const CHANGE_MEMBERS: [&str; 6] = ["sequence", "at", "kind", "user", "resource", "version"];

static SERVER: LazyLock<TestServer> = LazyLock::new(|| TestServer::start(env!("CARGO_BIN_EXE_memtrove")));

static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| {
    tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("a runtime")
});

/// An event of a stream.
#[derive(Debug, Clone, PartialEq)]
struct Event {
    id: Option<String>,
    name: String,
    data: Value,
}

impl Event {
    fn sequence(&self) -> i64 {
        self.id.as_ref().unwrap_or_else(|| panic!("no id: {self:?}")).parse().expect("a number")
    }
}

/// Somebody who reads a stream and, as browsers do, remembers the last id.
struct Reader {
    response: reqwest::Response,
    text: String,
    last_id: Option<String>,
    comments: usize,
}

impl Reader {
    /// Reads on after what it has seen; from now on if that is nothing. Returns once the stream is live.
    #[track_caller]
    fn open(url: &str, key: &str, tenant: &str, last_id: Option<String>) -> Self {
        match Self::try_open(url, key, tenant, last_id) {
            Ok(reader) => reader,
            Err((status, headers)) => panic!("no stream but {status}: {headers:?}"),
        }
    }

    fn try_open(
        url: &str,
        key: &str,
        tenant: &str,
        last_id: Option<String>,
    ) -> Result<Self, (u16, reqwest::header::HeaderMap)> {
        let client = reqwest::Client::builder().no_proxy().build().expect("a client");
        let mut request = client
            .get(format!("{url}/v1/changes"))
            .header("accept", "text/event-stream")
            .header("x-api-key", key)
            .header("x-tenant-id", tenant);
        if let Some(id) = &last_id {
            request = request.header("last-event-id", id);
        }
        let response = RUNTIME.block_on(request.send()).expect("an answer");
        if response.status() != 200 {
            return Err((response.status().as_u16(), response.headers().clone()));
        }
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        Ok(Self { response, text: String::new(), last_id, comments: 0 })
    }

    /// The next event; none when the stream has ended or nothing came for so long.
    fn next_within(&mut self, patience: Duration) -> Option<Event> {
        let deadline = Instant::now() + patience;
        loop {
            while let Some((block, rest)) = self.text.split_once("\n\n") {
                let (block, rest) = (block.to_owned(), rest.to_owned());
                self.text = rest;
                if let Some(event) = self.read(&block) {
                    return Some(event);
                }
            }
            let left = deadline.checked_duration_since(Instant::now())?;
            let chunk = RUNTIME.block_on(async { tokio::time::timeout(left, self.response.chunk()).await });
            match chunk {
                Ok(Ok(Some(bytes))) => self.text.push_str(std::str::from_utf8(&bytes).expect("UTF-8")),
                Ok(Ok(None) | Err(_)) | Err(_) => return None,
            }
        }
    }

    #[track_caller]
    fn next(&mut self) -> Event {
        self.next_within(Duration::from_secs(10)).expect("no event came")
    }

    /// One block of lines, as the specification of server-sent events reads it.
    fn read(&mut self, block: &str) -> Option<Event> {
        let (mut name, mut data, mut id) = ("message".to_owned(), String::new(), None);
        for line in block.lines() {
            match line.split_once(':').map(|(field, value)| (field, value.trim_start())) {
                Some(("id", value)) => id = Some(value.to_owned()),
                Some(("event", value)) => name = value.to_owned(),
                Some(("data", value)) => data.push_str(value),
                Some(("", _)) => self.comments += 1,
                _ => panic!("an unknown line {line:?}"),
            }
        }
        if id.is_some() {
            self.last_id.clone_from(&id);
        }
        if data.is_empty() {
            return None;
        }
        Some(Event { id, name, data: serde_json::from_str(&data).expect("JSON") })
    }
}

fn gateway(server: &TestServer, tenant: &str) -> Client {
    server.anonymous().with_key("gateway").in_tenant(tenant)
}

fn alice(server: &TestServer, tenant: &str) -> Client {
    server.as_user("alice").with_key("gateway").in_tenant(tenant)
}

fn follow(server: &TestServer, tenant: &str, last_id: Option<&str>) -> Reader {
    Reader::open(server.url(), "gateway", tenant, last_id.map(str::to_owned))
}

fn history(text: &str) -> Value {
    json!({"channel": "history", "contentType": "history", "content": [{"role": "USER", "text": text}]})
}

#[track_caller]
fn say(who: &Client, conversation: &str, text: &str) -> String {
    who.post(&format!("/v1/conversations/{conversation}/entries"), history(text)).expect(201).id()
}

/// Every change of a tenant, by the page.
fn whole_feed(server: &TestServer, tenant: &str) -> Vec<Value> {
    let reader = gateway(server, tenant);
    let (mut changes, mut after) = (Vec::new(), Some(0));
    while let Some(number) = after {
        let page = reader.get(&format!("/v1/changes?after={number}&limit=1000")).expect(200).json;
        assert_eq!(page.get("gap"), None, "{page}");
        changes.extend(page["changes"].as_array().expect("changes").iter().cloned());
        after = page["next_after"].as_i64();
    }
    changes
}

#[test]
fn a_stream_tells_what_happens_as_it_happens() {
    let tenant = fresh_name("tenant");
    let alice = alice(&SERVER, &tenant);
    let trip = fresh_id();
    say(&alice, &trip, "before anybody listens");
    let mut reader = follow(&SERVER, &tenant, None);
    let asked = Instant::now();
    let entry = say(&alice, &trip, "Lisbon in May");
    let told = reader.next();
    assert!(asked.elapsed() < Duration::from_secs(5), "told after {:?}", asked.elapsed());
    assert_eq!((told.id.as_deref(), told.name.as_str()), (Some("3"), "entry.appended"));
    let at = told.data["at"].as_str().expect("an instant").to_owned();
    assert!(at.ends_with('Z') && at.len() == 27, "{at}");
    assert_eq!(
        told.data,
        json!({"sequence": 3, "at": at, "kind": "entry.appended", "user": "alice", "resource": trip, "version": entry})
    );
    alice.patch(&format!("/v1/conversations/{trip}"), json!({"title": "Portugal"})).expect(200);
    let told = reader.next();
    assert_eq!((told.sequence(), told.name.as_str()), (4, "conversation.updated"));
    assert_eq!(told.data["version"], Value::Null);
    assert!(!told.data.to_string().contains("Portugal"), "the feed holds no content");
}

#[test]
fn a_stream_that_was_cut_before_its_first_event_loses_nothing() {
    let tenant = fresh_name("tenant");
    let alice = alice(&SERVER, &tenant);
    say(&alice, &fresh_id(), "one");
    let mut reader = follow(&SERVER, &tenant, None);
    assert_eq!(reader.next_within(Duration::from_millis(200)), None);
    assert_eq!(reader.last_id.as_deref(), Some("2"), "it knows where it was, without an event");
    let last_id = reader.last_id.clone();
    drop(reader);
    say(&alice, &fresh_id(), "two");
    let mut reader = follow(&SERVER, &tenant, last_id.as_deref());
    assert_eq!((reader.next().sequence(), reader.next().sequence()), (3, 4));
}

#[test]
fn a_feed_is_read_by_the_page() {
    let tenant = fresh_name("tenant");
    let reader = gateway(&SERVER, &tenant);
    let empty = reader.get("/v1/changes").expect(200);
    assert_eq!(empty.json, json!({"changes": [], "next_after": null, "oldest": 1}));
    let (alice, trip) = (alice(&SERVER, &tenant), fresh_id());
    for n in 0..5 {
        say(&alice, &trip, &n.to_string());
    }
    let first = reader.get("/v1/changes?limit=4").expect(200).json;
    assert_members(&first, &["changes", "next_after", "oldest"], "the first page");
    assert_eq!((&first["next_after"], &first["oldest"]), (&json!(4), &json!(1)));
    for change in first["changes"].as_array().expect("changes") {
        let members: Vec<&str> = change.as_object().expect("an object").keys().map(String::as_str).collect();
        assert_eq!(members, CHANGE_MEMBERS);
    }
    let rest = reader.get("/v1/changes?limit=4&after=4").expect(200).json;
    assert_eq!(rest["next_after"], Value::Null);
    let numbers = |page: &Value| -> Vec<i64> {
        page["changes"].as_array().unwrap().iter().map(|c| c["sequence"].as_i64().unwrap()).collect()
    };
    assert_eq!((numbers(&first), numbers(&rest)), (vec![1, 2, 3, 4], vec![5, 6]));
    let resumed = reader.with_header("last-event-id", "5").get("/v1/changes?after=1").expect(200).json;
    assert_eq!(numbers(&resumed), [6], "the header is stronger than the parameter");
}

#[test]
fn what_cannot_be_meant_is_refused() {
    let reader = gateway(&SERVER, "default");
    for (query, field) in [
        ("after=x", "after"),
        ("after=-1", "after"),
        ("after=1.5", "after"),
        ("after=9223372036854775808", "after"),
        ("limit=0", "limit"),
        ("limit=1001", "limit"),
        ("limit=many", "limit"),
    ] {
        reader.get(&format!("/v1/changes?{query}")).expect_violation(field);
    }
    for id in ["x", "-1", "1,2"] {
        let resuming = reader.with_header("last-event-id", id);
        resuming.get("/v1/changes").expect_violation("Last-Event-ID");
        resuming
            .with_header("accept", "text/event-stream")
            .get("/v1/changes")
            .expect_violation("Last-Event-ID");
    }
    reader.with_header("accept", "text/event-stream").get("/v1/changes?limit=5").expect_violation("limit");
    reader.post("/v1/changes", json!({})).expect_error(405, "method_not_allowed");
}

#[test]
fn only_those_who_may_know_everything_may_read() {
    let stream = |client: &Client| client.with_header("accept", "text/event-stream").get("/v1/changes");
    SERVER.anonymous().get("/v1/changes").expect_error(401, "unauthorized");
    let alice = SERVER.as_user("alice");
    alice.get("/v1/changes").expect_forbidden();
    stream(&alice).expect_forbidden();
    SERVER.as_user("admin").get("/v1/changes").expect(200);

    let server = Setup::new(env!("CARGO_BIN_EXE_memtrove"))
        .toml(
            r#"
            [auth]
            mode = "jwt"
            [auth.api_keys]
            gateway = ["key-of-the-gateway-0123456789"]
            agent = ["key-of-the-agent-0123456789"]
            watcher = ["key-of-the-watcher-0123456789"]
            [auth.trusted_clients]
            clients = ["gateway"]
            [roles.auditor]
            clients = ["watcher"]
            "#,
        )
        .start();
    let client = |name: &str| server.anonymous().with_key(&format!("key-of-the-{name}-0123456789"));
    client("gateway").get("/v1/changes").expect(200);
    client("gateway").with_header("x-user-id", "alice").get("/v1/changes").expect_forbidden();
    client("watcher").get("/v1/changes").expect(200);
    client("agent").get("/v1/changes").expect_forbidden();
    stream(&client("agent")).expect_forbidden();
    client("gateway").in_tenant("another").get("/v1/changes").expect(200);
    client("watcher").in_tenant("another").get("/v1/changes").expect_forbidden();
}

#[test]
fn a_tenant_never_hears_of_another() {
    let (ours, theirs) = (fresh_name("ours"), fresh_name("theirs"));
    let mut reader = follow(&SERVER, &ours, None);
    for n in 0..20 {
        say(&alice(&SERVER, &theirs), &fresh_id(), &n.to_string());
    }
    let trip = fresh_id();
    say(&alice(&SERVER, &ours), &trip, "hello");
    let told = reader.next();
    assert_eq!((told.sequence(), &told.data["resource"]), (1, &json!(trip)));
    assert_eq!(whole_feed(&SERVER, &ours).len(), 2);
    assert_eq!(whole_feed(&SERVER, &theirs).len(), 40);
}

#[test]
fn a_reader_that_was_away_for_too_long_is_told() {
    let server = Setup::new(env!("CARGO_BIN_EXE_memtrove"))
        .toml("[changes]\nretention = \"500ms\"\n[tasks]\nprocessor_interval = \"100ms\"")
        .start();
    let (alice, trip) = (alice(&server, "default"), fresh_id());
    for n in 0..5 {
        say(&alice, &trip, &n.to_string());
    }
    let reader = gateway(&server, "default");
    let deadline = Instant::now() + Duration::from_secs(10);
    while reader.get("/v1/changes").expect(200).json["oldest"] != 6 {
        assert!(Instant::now() < deadline, "nothing was trimmed");
        std::thread::sleep(Duration::from_millis(50));
    }
    let page = reader.get("/v1/changes?after=2").expect(200).json;
    assert_eq!(
        (&page["gap"], &page["oldest"], &page["changes"][0]["sequence"]),
        (&json!(true), &json!(6), &json!(6))
    );
    assert_eq!(reader.get("/v1/changes?after=5").expect(200).json.get("gap"), None);

    let mut late = follow(&server, "default", Some("2"));
    assert_eq!(late.next(), Event { id: None, name: "gap".into(), data: json!({"oldest": 6}) });
    assert_eq!(late.last_id.as_deref(), Some("2"), "until the next change it would be told again");
    assert_eq!(late.next().sequence(), 6);
    let mut in_time = follow(&server, "default", Some("5"));
    assert_eq!((in_time.next().sequence(), in_time.last_id.as_deref()), (6, Some("6")));
    let metrics = server.anonymous().get("/metrics").text;
    assert!(metrics.contains("memtrove_changes_trimmed_total 5"), "{metrics}");
}

#[test]
fn places_for_streams_are_limited_and_given_back() {
    let server = TestServer::start(env!("CARGO_BIN_EXE_memtrove"));
    let mut readers: Vec<Reader> = (0..256).map(|_| follow(&server, "default", None)).collect();
    let (status, headers) =
        Reader::try_open(server.url(), "gateway", "default", None).err().expect("no place");
    assert_eq!((status, headers["retry-after"].to_str().unwrap()), (503, "5"));
    gateway(&server, "default").get("/v1/changes").expect(200);
    readers.clear();
    let deadline = Instant::now() + Duration::from_secs(10);
    while Reader::try_open(server.url(), "gateway", "default", None).is_err() {
        assert!(Instant::now() < deadline, "no place was given back");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_quiet_stream_shows_that_it_lives() {
    let mut reader = follow(&SERVER, &fresh_name("quiet"), None);
    let began = Instant::now();
    while reader.comments == 0 {
        assert!(began.elapsed() < Duration::from_secs(20), "no comment came");
        assert_eq!(reader.next_within(Duration::from_secs(1)), None);
    }
    assert!(began.elapsed() > Duration::from_secs(10), "after {:?}", began.elapsed());
}

/// Appends until the server is gone; the entries it acknowledged.
fn append_until_gone(who: &Client, conversation: &str, stop: &AtomicBool) -> Vec<String> {
    let path = format!("/v1/conversations/{conversation}/entries");
    let mut acknowledged = Vec::new();
    while !stop.load(Ordering::Relaxed) {
        let Ok(answer) = who.try_send("POST", &path, Body::Json(history("on and on"))) else { break };
        match answer.status {
            201 => acknowledged.push(answer.id()),
            503 => break,
            _ => panic!("{}", answer.describe()),
        }
    }
    acknowledged
}

/// Reads a stream while eight writers append, until the server ends in the midst of it. Three times over, resuming each time.
fn resumes_across(end: impl Fn(&mut TestServer)) {
    let mut server = TestServer::start(env!("CARGO_BIN_EXE_memtrove"));
    let mut told: Vec<Event> = Vec::new();
    let mut acknowledged: Vec<String> = Vec::new();
    for _ in 0..3 {
        let stop = AtomicBool::new(false);
        let last_id = told.last().and_then(|event| event.id.clone()).unwrap_or_else(|| "0".into());
        let mut reader = follow(&server, "default", Some(&last_id));
        let client = alice(&server, "default");
        std::thread::scope(|scope| {
            let writers: Vec<_> =
                (0..8).map(|_| scope.spawn(|| append_until_gone(&client, &fresh_id(), &stop))).collect();
            let reading = scope.spawn(|| {
                let mut heard = Vec::new();
                while let Some(event) = reader.next_within(Duration::from_secs(30)) {
                    heard.push(event);
                }
                heard
            });
            std::thread::sleep(Duration::from_millis(500));
            end(&mut server);
            stop.store(true, Ordering::Relaxed);
            acknowledged
                .extend(writers.into_iter().flat_map(|writer| writer.join().expect("a writer failed")));
            told.extend(reading.join().expect("the reader failed"));
        });
        server.restart();
    }
    let stored = whole_feed(&server, "default");
    let mut reader = follow(&server, "default", told.last().and_then(|event| event.id.as_deref()));
    while told.len() < stored.len() {
        told.push(reader.next());
    }
    assert!(
        told.iter().map(Event::sequence).eq(1..=stored.len() as i64),
        "numbers are missing or come twice"
    );
    assert!(told.iter().map(|event| &event.data).eq(&stored), "the stream and the pages differ");
    let mut times: HashMap<&str, usize> = HashMap::new();
    for change in stored.iter().filter(|change| change["kind"] == "entry.appended") {
        *times.entry(change["version"].as_str().expect("an entry")).or_default() += 1;
    }
    assert!(times.values().all(|times| *times == 1), "an append is told twice");
    for entry in &acknowledged {
        assert!(times.contains_key(entry.as_str()), "{entry} was acknowledged and is not told");
    }
    assert!(acknowledged.len() > 100, "only {} appends", acknowledged.len());
}

#[test]
fn a_stream_resumes_across_restarts_without_loss_or_repetition() {
    resumes_across(|server| {
        let asked = Instant::now();
        assert!(server.stop().success());
        assert!(
            asked.elapsed() < Duration::from_secs(5),
            "an open stream held it up for {:?}",
            asked.elapsed()
        );
    });
}

#[test]
fn after_kill_9_every_acknowledged_append_is_in_the_feed_exactly_once() {
    resumes_across(TestServer::kill);
}
