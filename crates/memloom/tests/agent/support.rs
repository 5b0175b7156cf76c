//! The few sentences that nearly every test begins with.

pub use memloom_agent::{AgentMemory, Error, Scope};
pub use memloom_testkit::server::fresh_name;
pub use serde_json::{Value, json};

use memloom_client::{Client, ClientBuilder, RetryPolicy};
use memloom_testkit::server::TestServer;
use std::sync::{Arc, LazyLock, Mutex};

/// Started on a thread of its own, because starting blocks.
static SERVER: LazyLock<TestServer> = LazyLock::new(|| {
    let starting = std::thread::spawn(|| TestServer::start(env!("CARGO_BIN_EXE_memloom")));
    starting.join().expect("the server starts")
});

/// A client of the server under test that is still to be built.
pub fn client() -> ClientBuilder {
    Client::builder().base_url(SERVER.url()).api_key("agent-a").service_id("tests")
}

/// A memory on the server under test.
pub fn memory() -> AgentMemory {
    AgentMemory::new(client().build().unwrap())
}

/// A user of a tenant that no other test knows.
pub fn someone() -> Scope {
    Scope::new(fresh_name("tenant"), fresh_name("user"))
}

/// The requests that a memory sent: method and the last part of the address.
#[derive(Debug, Clone, Default)]
pub struct Sent(Arc<Mutex<Vec<String>>>);

impl Sent {
    /// What was sent since the last time.
    pub fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

/// A memory whose requests can be seen.
pub fn watched() -> (AgentMemory, Sent) {
    let sent = Sent::default();
    let seen = sent.clone();
    let client = client().on_request(move |request| {
        let last = request.url().path().rsplit('/').next().unwrap_or_default().to_owned();
        seen.0.lock().unwrap().push(format!("{} {last}", request.method()));
    });
    (AgentMemory::new(client.build().unwrap()), sent)
}

/// A memory that is interrupted: so many times, right before it changes a file, `interrupt` runs to its end.
pub fn interrupted(
    times: usize,
    interrupt: impl Fn(tokio::runtime::Runtime) + Send + Sync + 'static,
) -> AgentMemory {
    let left = Mutex::new(times);
    let interrupt = Arc::new(interrupt);
    let client = client().on_request(move |request| {
        if !matches!(request.method().as_str(), "PUT" | "PATCH") {
            return;
        }
        let mut left = left.lock().unwrap();
        if *left == 0 {
            return;
        }
        *left -= 1;
        // On a thread and a runtime of its own: whoever is interrupted waits without doing anything else.
        let interrupt = interrupt.clone();
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            interrupt(runtime);
        });
        thread.join().unwrap();
    });
    AgentMemory::new(client.build().unwrap())
}

/// A memory whose n-th request from now on, counted from 1, never reaches the service.
pub fn cut_off_at(n: usize) -> AgentMemory {
    let left = Arc::new(Mutex::new(n));
    let client =
        client().retry(RetryPolicy { max_retries: 0, ..RetryPolicy::default() }).header_provider(move || {
            let left = left.clone();
            async move {
                let mut left = left.lock().unwrap();
                *left = left.wrapping_sub(1);
                if *left == 0 { Err("the connection is gone".into()) } else { Ok(vec![]) }
            }
        });
    AgentMemory::new(client.build().unwrap())
}

/// The code of a refusal of the service.
#[track_caller]
pub fn refused<T: std::fmt::Debug>(outcome: Result<T, Error>) -> String {
    match outcome {
        Err(Error::Api(error)) => error.code,
        other => panic!("the service did not refuse it: {other:?}"),
    }
}

/// What was wrong with a call that was not even sent.
#[track_caller]
pub fn invalid<T: std::fmt::Debug>(outcome: Result<T, Error>) -> String {
    match outcome {
        Err(Error::InvalidInput(message)) => message,
        other => panic!("it was not refused as invalid: {other:?}"),
    }
}
