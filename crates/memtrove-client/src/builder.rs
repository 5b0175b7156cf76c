//! How a client is put together.

use crate::client::{Client, Inner};
use crate::hooks::{HeaderProvider, RequestHook, ResponseHook};
use crate::{CallOptions, Error, Result, RetryPolicy};
use http::header::{AUTHORIZATION, HeaderMap, HeaderName, HeaderValue};
use reqwest::{IntoUrl, Url};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

const API_KEY: HeaderName = HeaderName::from_static("x-api-key");
pub(crate) const USER: HeaderName = HeaderName::from_static("x-user-id");
pub(crate) const TENANT: HeaderName = HeaderName::from_static("x-tenant-id");

/// How long a call may take from its first byte to the last of its answer.
const TIMEOUT: Duration = Duration::from_secs(60);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// How long a stream may be silent: three heartbeats of the service.
const STREAM_IDLE_TIMEOUT: Duration = Duration::from_secs(45);

/// How long an event of a stream may be. The service tells at most 32 MiB of content at once; as JSON that can be twice as much.
const MAX_EVENT_BYTES: usize = 64 << 20;

/// Makes a [`Client`]. Only the base URL is required.
#[must_use = "a builder does nothing until it is built"]
pub struct ClientBuilder {
    base_url: Option<Result<Url, reqwest::Error>>,
    http_client: Option<reqwest::Client>,
    service_id: Option<String>,
    retry: RetryPolicy,
    timeout: Duration,
    stream_idle_timeout: Duration,
    max_event_bytes: usize,
    bearer_token: Option<String>,
    api_key: Option<String>,
    user: Option<String>,
    tenant: Option<String>,
    header_provider: Option<Arc<dyn HeaderProvider>>,
    on_request: Option<RequestHook>,
    on_response: Option<ResponseHook>,
}

impl ClientBuilder {
    pub(crate) fn new() -> Self {
        Self {
            base_url: None,
            http_client: None,
            service_id: None,
            retry: RetryPolicy::default(),
            timeout: TIMEOUT,
            stream_idle_timeout: STREAM_IDLE_TIMEOUT,
            max_event_bytes: MAX_EVENT_BYTES,
            bearer_token: None,
            api_key: None,
            user: None,
            tenant: None,
            header_provider: None,
            on_request: None,
            on_response: None,
        }
    }

    /// Where the service is, such as `http://127.0.0.1:7077`; a path in it stays in front of every operation's. Who calls is
    /// said by [`bearer_token`](Self::bearer_token) and [`api_key`](Self::api_key), never by the address.
    pub fn base_url(mut self, url: impl IntoUrl) -> Self {
        self.base_url = Some(url.into_url());
        self
    }

    /// Sends everything through this HTTP client. It should not follow redirects: those of attachments lead to other
    /// hosts, which must not see credentials, and are followed here without them.
    pub fn http_client(mut self, http_client: reqwest::Client) -> Self {
        self.http_client = Some(http_client);
        self
    }

    /// Who acts, as the audit trail is to name it. Goes with changes.
    pub fn service_id(mut self, service_id: impl Into<String>) -> Self {
        self.service_id = Some(service_id.into());
        self
    }

    /// How often what may be repeated is repeated.
    pub fn retry(mut self, policy: RetryPolicy) -> Self {
        self.retry = policy;
        self
    }

    /// How long an attempt may take, 60 seconds unless said otherwise. Of streams and downloads it is the wait until they
    /// begin. Uploads and the operations that work through everything of a user have all the time they need.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// How long a stream that is kept alive by heartbeats may be silent before its connection counts as broken, 45 seconds
    /// unless said otherwise. The service sends a heartbeat every 15.
    pub fn stream_idle_timeout(mut self, timeout: Duration) -> Self {
        self.stream_idle_timeout = timeout;
        self
    }

    /// How many bytes of one event a stream keeps, 64 MiB unless said otherwise. A stream with a longer one fails
    /// ([`Error::Decode`]), so that a service that never ends an event does not take all memory.
    pub fn max_event_bytes(mut self, bytes: usize) -> Self {
        self.max_event_bytes = bytes;
        self
    }

    /// A user's or service's token: `Authorization: Bearer …`.
    pub fn bearer_token(mut self, token: impl Into<String>) -> Self {
        self.bearer_token = Some(token.into());
        self
    }

    /// An agent's key: `X-API-Key`.
    pub fn api_key(mut self, key: impl Into<String>) -> Self {
        self.api_key = Some(key.into());
        self
    }

    /// The user for whom an agent with a key acts: `X-User-ID`. [`Client::acting_for`] changes it later.
    pub fn acting_for(mut self, user: impl Into<String>) -> Self {
        self.user = Some(user.into());
        self
    }

    /// The tenant, for those who may choose: `X-Tenant-Id`.
    pub fn tenant(mut self, tenant: impl Into<String>) -> Self {
        self.tenant = Some(tenant.into());
        self
    }

    /// Asks for further headers at each attempt.
    pub fn header_provider(mut self, provider: impl HeaderProvider) -> Self {
        self.header_provider = Some(Arc::new(provider));
        self
    }

    /// Calls this with every attempt, before it is sent.
    pub fn on_request(mut self, hook: impl Fn(&reqwest::Request) + Send + Sync + 'static) -> Self {
        self.on_request = Some(Arc::new(hook));
        self
    }

    /// Calls this with every answer, before its body is read.
    pub fn on_response(mut self, hook: impl Fn(&reqwest::Response) + Send + Sync + 'static) -> Self {
        self.on_response = Some(Arc::new(hook));
        self
    }

    /// The client. Fails without a base URL that can be one, and with credentials that no header can carry.
    pub fn build(self) -> Result<Client> {
        let base_url = match self.base_url {
            Some(Ok(url)) => checked(url)?,
            // Without the URL: there may be a password in it.
            Some(Err(error)) => {
                let error = error.without_url();
                return Err(Error::invalid(format!("the base URL cannot be used: {error}")));
            }
            None => return Err(Error::invalid("a client needs a base URL: call base_url(…)")),
        };
        let http = match self.http_client {
            Some(http) => http,
            None => default_http_client()?,
        };
        let mut headers = HeaderMap::new();
        let mut set = |name: HeaderName, value: Option<String>| -> Result<()> {
            if let Some(value) = value {
                headers.insert(&name, secret(&name, &value)?);
            }
            Ok(())
        };
        set(AUTHORIZATION, self.bearer_token.map(|token| format!("Bearer {token}")))?;
        set(API_KEY, self.api_key)?;
        set(USER, self.user)?;
        set(TENANT, self.tenant)?;
        Ok(Client {
            inner: Arc::new(Inner {
                base_url,
                http,
                service_id: self.service_id,
                retry: self.retry,
                timeout: self.timeout,
                stream_idle_timeout: self.stream_idle_timeout,
                max_event_bytes: self.max_event_bytes,
                header_provider: self.header_provider,
                on_request: self.on_request,
                on_response: self.on_response,
            }),
            headers: Arc::new(headers),
            options: CallOptions::default(),
        })
    }
}

/// Refuses an address that no service can be at. What is wrong is said without the address, which may hold a password.
fn checked(url: Url) -> Result<Url> {
    if !matches!(url.scheme(), "http" | "https") {
        let message = format!("the base URL begins with {}: give one with http or https", url.scheme());
        return Err(Error::invalid(message));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(Error::invalid(
            "the base URL names a user: leave that out and say who calls with bearer_token(…) or api_key(…)",
        ));
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Err(Error::invalid("the base URL has a query or a fragment: leave it out"));
    }
    Ok(url)
}

/// Redirects would carry the credentials' headers to wherever they lead.
fn default_http_client() -> Result<reqwest::Client> {
    reqwest::Client::builder()
        .redirect(reqwest::redirect::Policy::none())
        .connect_timeout(CONNECT_TIMEOUT)
        .build()
        .map_err(|error| Error::invalid(format!("no HTTP client could be made: {error}")))
}

/// A header's value that is never printed.
pub(crate) fn secret(name: &HeaderName, value: &str) -> Result<HeaderValue> {
    // The value stays out of the message.
    let mut value = HeaderValue::from_str(value)
        .map_err(|_| Error::invalid(format!("the value of {name} cannot be sent")))?;
    value.set_sensitive(true);
    Ok(value)
}

/// Without the credentials.
impl fmt::Debug for ClientBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientBuilder")
            .field("service_id", &self.service_id)
            .field("retry", &self.retry)
            .field("timeout", &self.timeout)
            .finish_non_exhaustive()
    }
}
