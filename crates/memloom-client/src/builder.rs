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

/// Makes a [`Client`]. Only the base URL is required.
#[must_use = "a builder does nothing until it is built"]
pub struct ClientBuilder {
    base_url: Option<Result<Url, reqwest::Error>>,
    http_client: Option<reqwest::Client>,
    service_id: Option<String>,
    retry: RetryPolicy,
    timeout: Duration,
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
            bearer_token: None,
            api_key: None,
            user: None,
            tenant: None,
            header_provider: None,
            on_request: None,
            on_response: None,
        }
    }

    /// Where the service is, such as `http://127.0.0.1:7077`; a path in it stays in front of every operation's.
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

    /// How long an attempt may take, 60 seconds unless said otherwise. Streams, uploads, downloads and the operations that
    /// work through everything of a user have all the time they need.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
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

    /// The client. Fails without a base URL, and with credentials that no header can carry.
    pub fn build(self) -> Result<Client> {
        let base_url = match self.base_url {
            Some(Ok(url)) if url.cannot_be_a_base() => {
                return Err(Error::invalid(format!("{url} is no base URL")));
            }
            Some(Ok(url)) => url,
            Some(Err(error)) => return Err(Error::invalid(format!("the base URL cannot be used: {error}"))),
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
                header_provider: self.header_provider,
                on_request: self.on_request,
                on_response: self.on_response,
            }),
            headers: Arc::new(headers),
            options: CallOptions::default(),
        })
    }
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
