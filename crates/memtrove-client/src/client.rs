//! The client: where the service is, who calls, and how.

use crate::builder::{ClientBuilder, TENANT, USER, secret};
use crate::hooks::{HeaderProvider, RequestHook, ResponseHook};
use crate::{CallOptions, Result, RetryPolicy};
use http::header::HeaderMap;
use reqwest::Url;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// A client of one Memtrove service.
///
/// Clones are cheap and share their connections. A call is cancelled by dropping its future.
#[derive(Clone)]
pub struct Client {
    pub(crate) inner: Arc<Inner>,
    /// Who calls.
    pub(crate) headers: Arc<HeaderMap>,
    pub(crate) options: CallOptions,
}

/// What all clones of a client share.
pub(crate) struct Inner {
    pub(crate) base_url: Url,
    pub(crate) http: reqwest::Client,
    pub(crate) service_id: Option<String>,
    pub(crate) retry: RetryPolicy,
    pub(crate) timeout: Duration,
    pub(crate) stream_idle_timeout: Duration,
    pub(crate) max_event_bytes: usize,
    pub(crate) header_provider: Option<Arc<dyn HeaderProvider>>,
    pub(crate) on_request: Option<RequestHook>,
    pub(crate) on_response: Option<ResponseHook>,
}

impl Client {
    /// Puts a client together.
    pub fn builder() -> ClientBuilder {
        ClientBuilder::new()
    }

    /// A client of the service at this address, without credentials and with the defaults.
    pub fn new(base_url: impl reqwest::IntoUrl) -> Result<Self> {
        Self::builder().base_url(base_url).build()
    }

    /// This client with options for its calls.
    ///
    /// ```no_run
    /// # use memtrove_client::{CallOptions, Client, EventDigest, Result, Scope};
    /// # async fn example(client: Client, scope: Scope, event: EventDigest) -> Result<()> {
    /// client.with_options(CallOptions::idempotent("evt-17")).write_event(&scope, &event).await
    /// # }
    /// ```
    pub fn with_options(&self, options: CallOptions) -> Self {
        Self { options, ..self.clone() }
    }

    /// The options of its calls.
    pub fn options(&self) -> &CallOptions {
        &self.options
    }

    /// This client, acting for another user.
    pub fn acting_for(&self, user: &str) -> Result<Self> {
        let mut headers = HeaderMap::clone(&self.headers);
        headers.insert(&USER, secret(&USER, user)?);
        Ok(Self { headers: Arc::new(headers), ..self.clone() })
    }

    /// This client, in another tenant.
    pub fn in_tenant(&self, tenant: &str) -> Result<Self> {
        let mut headers = HeaderMap::clone(&self.headers);
        headers.insert(&TENANT, secret(&TENANT, tenant)?);
        Ok(Self { headers: Arc::new(headers), ..self.clone() })
    }

    /// How often what may be repeated is repeated.
    pub fn retry_policy(&self) -> RetryPolicy {
        self.inner.retry
    }
}

/// Without the credentials.
impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client")
            .field("service", &self.inner.base_url.as_str())
            .field("service_id", &self.inner.service_id)
            .finish_non_exhaustive()
    }
}
