//! Somebody who follows a stream of server-sent events.

use crate::support::*;
use std::sync::LazyLock;
use std::time::{Duration, Instant};
use tokio::runtime::Runtime;

static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| {
    tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("a runtime")
});

/// An event of a stream.
#[derive(Debug, Clone, PartialEq)]
pub struct Event {
    pub id: Option<u64>,
    pub name: String,
    pub data: Value,
}

impl Event {
    /// The id of the entry it tells of.
    #[track_caller]
    pub fn entry(&self) -> String {
        match &self.data["entry_id"] {
            Value::String(id) => id.clone(),
            _ => id_of(&self.data["entry"]),
        }
    }
}

/// Somebody who follows a stream.
pub struct Follower {
    response: reqwest::Response,
    text: String,
    /// How often it was told nothing, to know that it is there.
    pub comments: usize,
    /// What the stream began with.
    pub ready: Value,
}

impl Follower {
    /// Follows what this caller of a tenant may see; `query` comes after the `?`. Returns once the stream is live.
    #[track_caller]
    pub fn of(server: &TestServer, tenant: &Tenant, query: &str) -> Self {
        Self::resuming(server, tenant, query, None)
    }

    /// Follows on after the event that was seen last.
    #[track_caller]
    pub fn resuming(server: &TestServer, tenant: &Tenant, query: &str, last: Option<u64>) -> Self {
        let last: Vec<_> = last.map(|id| ("last-event-id", id.to_string())).into_iter().collect();
        Self::with_headers(server, tenant, query, &last)
    }

    /// Follows as this user, with a credential of its own.
    #[track_caller]
    pub fn as_user(server: &TestServer, tenant: &Tenant, user: &str, query: &str) -> Self {
        Self::with_headers(server, tenant, query, &[("authorization", format!("Bearer {user}"))])
    }

    /// How a request to follow on after this is answered.
    pub fn status(server: &TestServer, tenant: &Tenant, query: &str, last: &str) -> u16 {
        ask(server, tenant, query, &[("last-event-id", last.to_owned())]).status().as_u16()
    }

    #[track_caller]
    fn with_headers(server: &TestServer, tenant: &Tenant, query: &str, headers: &[(&str, String)]) -> Self {
        let response = ask(server, tenant, query, headers);
        assert_eq!(response.status(), 200, "{query}");
        let of =
            |name: &str| response.headers().get(name).map(|value| value.to_str().expect("text").to_owned());
        assert_eq!(of("content-type").as_deref(), Some("text/event-stream"));
        assert!(
            of("x-request-id").is_some() && of("x-provider-version").is_some(),
            "{:?}",
            response.headers()
        );
        assert_eq!(of("cache-control").as_deref(), Some("no-store"));
        // The results of a query are no subscription that could be live.
        let is_query = query.contains("type=query");
        assert!(
            !is_query || of("content-length").is_some(),
            "it counts among the answers that wait to be read"
        );
        let mut follower = Self { response, text: String::new(), comments: 0, ready: Value::Null };
        if !is_query {
            let first = follower.next();
            assert_eq!(first.name, "ready", "{first:?}");
            assert_members(&first.data, &["stream_id", "last_event_id"]);
            follower.ready = first.data;
        }
        follower
    }

    /// The next event; none when the stream has ended or nothing came for so long.
    pub fn next_within(&mut self, patience: Duration) -> Option<Event> {
        let deadline = Instant::now() + patience;
        loop {
            while let Some((block, rest)) = self.text.split_once("\n\n") {
                let (event, rest) = (read(block), rest.to_owned());
                self.comments += usize::from(event.is_none());
                self.text = rest;
                if event.is_some() {
                    return event;
                }
            }
            let left = deadline.checked_duration_since(Instant::now())?;
            match RUNTIME.block_on(async { tokio::time::timeout(left, self.response.chunk()).await }) {
                Ok(Ok(Some(bytes))) => self.text.push_str(std::str::from_utf8(&bytes).expect("UTF-8")),
                Ok(Ok(None) | Err(_)) | Err(_) => return None,
            }
        }
    }

    #[track_caller]
    pub fn next(&mut self) -> Event {
        self.next_within(Duration::from_secs(10)).expect("no event came")
    }

    /// As many events, in their order.
    #[track_caller]
    pub fn take(&mut self, count: usize) -> Vec<Event> {
        (0..count).map(|_| self.next()).collect()
    }

    /// Everything up to the event about this entry, which is written last for that very purpose.
    #[track_caller]
    pub fn until(&mut self, last: &str) -> Vec<Event> {
        let mut events = Vec::new();
        loop {
            let event = self.next();
            if event.entry() == last {
                return events;
            }
            events.push(event);
        }
    }
}

fn ask(server: &TestServer, tenant: &Tenant, query: &str, headers: &[(&str, String)]) -> reqwest::Response {
    let client = reqwest::Client::builder().no_proxy().build().expect("a client");
    let mut request = client
        .get(format!("{}/openspec/v1/knowledge/stream?{query}", server.url()))
        .header("accept", "text/event-stream")
        .header("x-api-key", AGENT)
        .header("x-tenant-id", &tenant.name);
    for (name, value) in headers {
        request = request.header(*name, value);
    }
    RUNTIME.block_on(request.send()).expect("an answer")
}

/// One block of lines, as the specification of server-sent events reads it; a comment is nothing.
fn read(block: &str) -> Option<Event> {
    let (mut name, mut data, mut id) = ("message".to_owned(), String::new(), None);
    for line in block.lines() {
        match line.split_once(':').map(|(field, value)| (field, value.trim_start())) {
            Some(("id", value)) => id = Some(value.parse().expect("a number")),
            Some(("event", value)) => name = value.to_owned(),
            Some(("data", value)) => data.push_str(value),
            Some(("", _)) => {}
            _ => panic!("an unknown line {line:?}"),
        }
    }
    (!data.is_empty()).then(|| Event { id, name, data: serde_json::from_str(&data).expect("JSON") })
}
