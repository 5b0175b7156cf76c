//! A server with a tenant of its own, clients whose requests are noted, and a line that can be cut.

pub use futures_util::{Stream, StreamExt, TryStreamExt};
pub use memtrove_client::{Client, ClientBuilder, Error, FilePath, RetryPolicy, Scope};
pub use memtrove_testkit::server::{Setup, TestServer, fresh_name};
pub use serde_json::json;
pub use std::time::Duration;

use memtrove_client::operations;
use std::collections::BTreeSet;
use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

/// Longer than anything here takes on a busy machine.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// A server, and what its clients have asked for.
pub struct World {
    pub server: TestServer,
    pub tenant: String,
    called: Arc<Mutex<BTreeSet<&'static str>>>,
}

impl World {
    pub fn new() -> Self {
        // The testkit blocks, which no thread of a runtime may.
        let start = || Setup::new(env!("CARGO_BIN_EXE_memtrove")).start();
        let server = std::thread::spawn(start).join().expect("the server starts");
        Self { server, tenant: fresh_name("tenant"), called: Arc::default() }
    }

    /// Somebody's scope in the tenant.
    pub fn scope(&self, user: &str) -> Scope {
        Scope::new(&self.tenant, user)
    }

    fn builder(&self, url: &str) -> ClientBuilder {
        let called = self.called.clone();
        let http = reqwest::Client::builder().no_proxy().redirect(reqwest::redirect::Policy::none());
        Client::builder().base_url(url).http_client(http.build().unwrap()).tenant(&self.tenant).on_request(
            move |request| {
                let known = operations::find(request.method(), request.url().path());
                let operation = known.unwrap_or_else(|| panic!("no operation: {request:?}"));
                called.lock().unwrap().insert(operation.id);
            },
        )
    }

    /// An agent with a key that acts for a user.
    pub fn agent(&self, user: &str) -> Client {
        self.builder(self.server.url()).api_key("agent-a").bearer_token(user).build().unwrap()
    }

    /// The same over another address.
    pub fn agent_at(&self, url: &str, user: &str) -> Client {
        self.builder(url).api_key("agent-a").bearer_token(user).build().unwrap()
    }

    /// The tenant's admin.
    pub fn admin(&self) -> Client {
        self.agent("admin")
    }

    /// The same over another address.
    pub fn admin_at(&self, url: &str) -> Client {
        self.agent_at(url, "admin")
    }

    /// The operations that were asked for so far.
    pub fn called(&self) -> BTreeSet<&'static str> {
        self.called.lock().unwrap().clone()
    }
}

pub fn path(text: &str) -> FilePath {
    text.parse().unwrap()
}

/// The next of a stream, which must come.
pub async fn next<T>(stream: &mut (impl Stream<Item = memtrove_client::Result<T>> + Unpin)) -> T {
    let next = tokio::time::timeout(PATIENCE, stream.next()).await.expect("the stream goes on");
    next.expect("the stream has not ended").expect("no error")
}

/// A port that leads to the server until it is cut.
pub struct Line {
    url: String,
    open: Arc<Mutex<Vec<TcpStream>>>,
}

impl Line {
    pub fn to(server: &TestServer) -> Self {
        let target = server.url().strip_prefix("http://").unwrap().to_owned();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let open: Arc<Mutex<Vec<TcpStream>>> = Arc::default();
        let connections = open.clone();
        std::thread::spawn(move || {
            for caller in listener.incoming() {
                let (Ok(caller), Ok(server)) = (caller, TcpStream::connect(&target)) else { continue };
                connections.lock().unwrap().push(caller.try_clone().unwrap());
                let ends = [(&caller, &server), (&server, &caller)];
                for (from, to) in ends.map(|(from, to)| (from.try_clone().unwrap(), to.try_clone().unwrap()))
                {
                    std::thread::spawn(move || carry(from, to));
                }
            }
        });
        Self { url, open }
    }

    pub fn url(&self) -> &str {
        &self.url
    }

    /// Ends every connection; new ones are let through. Says how many there were.
    pub fn cut(&self) -> usize {
        let open = std::mem::take(&mut *self.open.lock().unwrap());
        open.iter().for_each(|connection| drop(connection.shutdown(Shutdown::Both)));
        open.len()
    }
}

fn carry(mut from: TcpStream, mut to: TcpStream) {
    let mut piece = [0; 4096];
    while let Ok(length @ 1..) = from.read(&mut piece) {
        if to.write_all(&piece[..length]).is_err() {
            break;
        }
    }
    let _ = to.shutdown(Shutdown::Both);
    let _ = from.shutdown(Shutdown::Both);
}
