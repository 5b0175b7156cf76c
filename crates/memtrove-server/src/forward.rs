//! From node to node: a request that only another node can answer is passed on to it, and its answer back.
//!
//! The caller's own credentials go along, so the other node decides as if it had been asked itself: nodes grant each other
//! nothing. It must not know routes or operations; the caller says on which node something lives.

use crate::auth::{X_API_KEY, X_TENANT_ID, X_USER_ID};
use crate::shell::Connection;
use crate::shell::request_id::{RequestId, X_REQUEST_ID};
use axum::body::Body;
use axum::extract::FromRequestParts;
use axum::response::Response;
use futures_util::StreamExt;
use http::header::{ACCEPT, AUTHORIZATION, CACHE_CONTROL, CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use memtrove_core::{Error, Result};
use memtrove_service::recorder::Address;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout};

/// How many nodes a request has come through.
const X_MEMTROVE_HOPS: HeaderName = HeaderName::from_static("x-memtrove-hops");
const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

/// More than a request needs whose locator changed while it was on its way; nodes that send it round in a circle stop here.
const MOST_HOPS: u8 = 3;
/// A node on the same network that does not take a connection by then is not there.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);
/// How long a node may take to the head of its answer when it is only to tell something. One that says nothing for so long is
/// not refreshing its locators either, so they have run out when they are looked at again.
const TOLD_WITHIN: Duration = Duration::from_secs(10);
/// How long when it is to do something: a cancel waits 30 s at most until everybody knows of it.
const DONE_WITHIN: Duration = Duration::from_secs(35);
/// How long nothing may come of an answer that goes on. The streams that are passed on say every 15 s that they live.
const SILENCE: Duration = Duration::from_secs(45);
/// How long a node that does not answer may still be said to have it: its locators run out after 10 s.
const PATIENCE: Duration = Duration::from_secs(12);
/// Between two looks at who has it.
const PAUSE: Duration = Duration::from_millis(250);

/// What a request takes along. `X-Request-Id` does too, as this node has it: it ties the log lines of both together.
const TAKEN_ALONG: [HeaderName; 6] =
    [AUTHORIZATION, X_API_KEY, X_USER_ID, X_TENANT_ID, ACCEPT, LAST_EVENT_ID];
/// What an answer brings back.
const BROUGHT_BACK: [HeaderName; 4] = [CONTENT_TYPE, CACHE_CONTROL, RETRY_AFTER, WWW_AUTHENTICATE];

/// The other nodes.
#[derive(Debug)]
pub struct Peers {
    client: reqwest::Client,
    closing: watch::Sender<bool>,
    patience: Duration,
    told_within: Duration,
    done_within: Duration,
}

/// A request without a body, as far as another node must know it.
#[derive(Debug)]
pub(crate) struct ForwardedRequest {
    method: Method,
    target: String,
    headers: HeaderMap,
    hops: u8,
    reached_at: Option<SocketAddr>,
    id: Option<RequestId>,
}

impl ForwardedRequest {
    /// The address that it came in at, by which other nodes may find this one.
    pub(crate) fn reached_at(&self) -> Option<SocketAddr> {
        self.reached_at
    }
}

/// Why there is no answer of a node.
struct Unanswered {
    reason: String,
    /// Whether it may have done what it was asked for.
    may_be_done: bool,
}

/// Who can answer.
pub(crate) enum Whose {
    /// This node, and this is the answer.
    Ours(Response),
    /// The node at this address.
    Theirs(Address),
}

impl Peers {
    /// Fails only where no HTTP client can be made at all.
    pub fn new() -> reqwest::Result<Self> {
        let client = reqwest::Client::builder()
            .no_proxy()
            .redirect(reqwest::redirect::Policy::none())
            .connect_timeout(CONNECT_TIMEOUT)
            .read_timeout(SILENCE)
            // A connection that was kept may lead to a machine that is gone, which shows only after a long time.
            .pool_max_idle_per_host(0)
            .build()?;
        Ok(Self {
            client,
            closing: watch::Sender::new(false),
            patience: PATIENCE,
            told_within: TOLD_WITHIN,
            done_within: DONE_WITHIN,
        })
    }

    /// Ends every stream that is passed on: its reader comes back, to another node.
    pub fn close(&self) {
        self.closing.send_replace(true);
    }

    /// The answer of the node that can give one. A node that has it and does not answer may have crashed: then `look` is asked
    /// again until it says something else. What may have been done is not asked for again: by now it might be done to something
    /// else.
    pub(crate) async fn answer<F>(
        &self,
        asked: &ForwardedRequest,
        mut look: impl FnMut() -> F,
    ) -> Result<Response>
    where
        F: Future<Output = Result<Whose>>,
    {
        let started = Instant::now();
        loop {
            let address = match look().await? {
                Whose::Ours(response) => return Ok(response),
                Whose::Theirs(address) => address,
            };
            if asked.hops >= MOST_HOPS {
                return Err(Error::peer_unreachable(format!(
                    "a request came through {MOST_HOPS} nodes, and {address} would be the next: check \
                     recorder.advertised_address of all nodes"
                )));
            }
            match self.pass_on(asked, &address).await {
                Ok(response) => return Ok(response),
                Err(Unanswered { reason, may_be_done })
                    if may_be_done || started.elapsed() > self.patience =>
                {
                    return Err(Error::peer_unreachable(reason));
                }
                Err(Unanswered { reason, .. }) => {
                    tracing::debug!(reason, "a node did not answer; looking again who has it");
                }
            }
            sleep(PAUSE).await;
        }
    }

    /// What the node at this address answers, or why there is no answer.
    async fn pass_on(&self, asked: &ForwardedRequest, address: &Address) -> Result<Response, Unanswered> {
        let url = format!("http://{address}{}", asked.target);
        let mut request = self.client.request(asked.method.clone(), url);
        for name in TAKEN_ALONG {
            for value in asked.headers.get_all(&name) {
                request = request.header(&name, value);
            }
        }
        if let Some(RequestId(id)) = &asked.id {
            request = request.header(X_REQUEST_ID, id);
        }
        request = request.header(X_MEMTROVE_HOPS, HeaderValue::from(u16::from(asked.hops + 1)));
        let does_something = !asked.method.is_safe();
        let within = if does_something { self.done_within } else { self.told_within };
        let answer = match timeout(within, request.send()).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(error)) => {
                let may_be_done = does_something && !error.is_connect();
                let reason = format!("{address}: {}", chain(&error.without_url()));
                return Err(Unanswered { reason, may_be_done });
            }
            Err(_) => {
                let reason = format!("{address}: nothing came for {} s", within.as_secs());
                return Err(Unanswered { reason, may_be_done: does_something });
            }
        };
        let (status, headers) = (answer.status(), answer.headers().clone());
        let mut closing = self.closing.subscribe();
        let closed = async move {
            // An error means that the sender is gone, and with it the server.
            let _ = closing.wait_for(|closing| *closing).await;
        };
        let mut response =
            Response::new(Body::from_stream(answer.bytes_stream().take_until(Box::pin(closed))));
        *response.status_mut() = status;
        for name in BROUGHT_BACK {
            if let Some(value) = headers.get(&name) {
                response.headers_mut().insert(name, value.clone());
            }
        }
        Ok(response)
    }
}

impl<S: Sync> FromRequestParts<S> for ForwardedRequest {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        let hops = parts.headers.get(X_MEMTROVE_HOPS).and_then(|value| value.to_str().ok()?.parse().ok());
        Ok(Self {
            method: parts.method.clone(),
            target: parts.uri.path_and_query().map_or("/", |target| target.as_str()).to_owned(),
            headers: parts.headers.clone(),
            hops: hops.unwrap_or(0),
            reached_at: parts.extensions.get::<Arc<Connection>>().and_then(|one| one.local_address()),
            id: parts.extensions.get().cloned(),
        })
    }
}

/// An error with its causes: the outermost only says that there was one.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        text.push_str(": ");
        text.push_str(&inner.to_string());
        cause = inner.source();
    }
    text
}

#[cfg(test)]
mod tests;
