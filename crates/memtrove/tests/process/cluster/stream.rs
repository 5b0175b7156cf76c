//! Somebody who follows the change feed as it grows.

use crate::cluster::support::*;
use std::sync::LazyLock;
use std::time::{Duration, Instant};
use tokio::runtime::Runtime;

static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| {
    tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("a runtime")
});

/// A stream of server-sent events, and what was not yet read of it.
pub struct Follower {
    response: reqwest::Response,
    text: String,
}

impl Follower {
    /// Follows a tenant's feed from its beginning. Returns once the stream is live.
    #[track_caller]
    pub fn of_changes(node: &TestServer, tenant: &str) -> Self {
        Self::open(&format!("{}/v1/changes?after=0", node.url()), tenant)
    }

    /// Follows the memories of a user.
    #[track_caller]
    pub fn of_memories(node: &TestServer, person: &Person) -> Self {
        let mut following = Self::open(
            &format!("{}/openspec/v1/knowledge/stream?user_id={}", node.url(), person.user),
            &person.tenant,
        );
        let (name, _) = following.next(Duration::from_secs(10)).expect("the beginning of the stream");
        assert_eq!(name, "ready");
        following
    }

    #[track_caller]
    fn open(url: &str, tenant: &str) -> Self {
        let client = reqwest::Client::builder().no_proxy().build().expect("a client");
        let request = client
            .get(url)
            .header("accept", "text/event-stream")
            .header("x-api-key", AGENT)
            .header("x-tenant-id", tenant);
        let response = RUNTIME.block_on(request.send()).expect("an answer");
        assert_eq!(response.status(), 200, "{url}");
        Self { response, text: String::new() }
    }

    /// The next event, by its name; none when the stream has ended or nothing came for so long.
    pub fn next(&mut self, patience: Duration) -> Option<(String, Value)> {
        let deadline = Instant::now() + patience;
        loop {
            while let Some((block, rest)) = self.text.split_once("\n\n") {
                let (event, rest) = (read(block), rest.to_owned());
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

    /// The changes up to this number, each of which must be the one after the one before.
    #[track_caller]
    pub fn changes_up_to(&mut self, last: i64) -> Vec<Value> {
        let mut changes: Vec<Value> = Vec::new();
        while changes.len() < usize::try_from(last).expect("a number of changes") {
            let Some((_, change)) = self.next(Duration::from_secs(20)) else {
                panic!("nothing came after change {} of {last}", changes.len());
            };
            assert_eq!(change["sequence"], changes.len() + 1, "a gap or a repetition: {change}");
            changes.push(change);
        }
        changes
    }
}

/// One block of lines: the name of an event and what it says. Comments and bare ids are nothing.
fn read(block: &str) -> Option<(String, Value)> {
    let (mut name, mut data) = ("message".to_owned(), String::new());
    for line in block.lines() {
        match line.split_once(':').map(|(field, value)| (field, value.trim_start())) {
            Some(("event", value)) => name = value.to_owned(),
            Some(("data", value)) => data.push_str(value),
            _ => {}
        }
    }
    (!data.is_empty()).then(|| (name, serde_json::from_str(&data).expect("JSON")))
}
