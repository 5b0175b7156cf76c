//! Fetching from the web what a caller named, but never from our own network.
//!
//! An address is looked up once per connection, every answer has to be public, and exactly those that were looked at are
//! connected to; so a name that changes its answer in between gains nothing. Redirects are followed by hand, and each one
//! is looked at like the first address.

mod addresses;
mod names;

pub use addresses::is_public;
use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::stream::{self, BoxStream};
use names::{Checked, Refused};
pub use names::{Names, SystemNames};
use reqwest::header::{ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_TYPE, HeaderMap, LOCATION};
use reqwest::{Client, Response, StatusCode, Url, redirect};
use std::error::Error;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// How much a fetch may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The most bytes that may come.
    pub max_bytes: u64,
    /// How long everything together may take, from the first look-up to the last byte.
    pub total: Duration,
    /// How many redirects are followed.
    pub redirects: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { max_bytes: 10 * 1024 * 1024, total: Duration::from_secs(300), redirects: 5 }
    }
}

/// How long a connection may take to be made.
const CONNECT: Duration = Duration::from_secs(30);

/// Something from the web, on its way.
pub struct Fetched {
    /// What the server says it is.
    pub content_type: Option<String>,
    /// How many bytes it says there are.
    pub length: Option<u64>,
    /// The bytes. An error is the last thing that comes.
    pub body: BoxStream<'static, Result<Bytes, FetchError>>,
}

/// Why something could not be fetched.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FetchError {
    /// What was asked for is not an address of the web.
    #[error("{0}")]
    Invalid(&'static str),
    /// It leads to a port on which other things than the web are spoken.
    #[error("port {0} is not fetched from")]
    Port(u16),
    /// It leads to an address that is not public.
    #[error("the address is not public")]
    Refused,
    /// The host did not answer.
    #[error("the server cannot be reached")]
    Unreachable,
    /// It took too long.
    #[error("it took too long")]
    TimedOut,
    /// The server answered, with something else than the content.
    #[error("the server answered {0}")]
    Status(u16),
    /// It led from one address to the next.
    #[error("too many redirects")]
    TooManyRedirects,
    /// There is more of it than we take.
    #[error("there are more than {max_bytes} bytes")]
    TooLarge {
        /// The most that we take.
        max_bytes: u64,
    },
    /// It came compressed although it was asked for as it is.
    #[error("the server sends it compressed")]
    Compressed,
    /// It stopped before its end.
    #[error("the connection was lost")]
    Interrupted,
}

/// What fetches. Uses no proxy, keeps no connection, cookie or cache.
#[derive(Debug, Clone)]
pub struct Fetcher {
    client: Client,
    ports: Arc<[u16]>,
}

/// The ports that the web is spoken on. On others a public address may have something that takes a request for a command.
pub const USUAL_PORTS: [u16; 4] = [80, 443, 8080, 8443];

impl Fetcher {
    /// With the names that this machine knows.
    pub fn new() -> Result<Self, FetchError> {
        Self::with_names(Arc::new(SystemNames))
    }

    /// With names of the caller's, for tests.
    pub fn with_names(names: Arc<dyn Names>) -> Result<Self, FetchError> {
        let client = Client::builder()
            .dns_resolver(Arc::new(Checked(names)))
            .redirect(redirect::Policy::none())
            .no_proxy()
            .no_gzip()
            .no_brotli()
            .no_deflate()
            .no_zstd()
            .referer(false)
            // A connection that is kept was looked at for somebody else.
            .pool_max_idle_per_host(0)
            .connect_timeout(CONNECT)
            .user_agent(concat!(env!("CARGO_PKG_NAME"), "/", env!("CARGO_PKG_VERSION")))
            .build();
        let client = client.map_err(|error| {
            tracing::error!(%error, "no client for the web can be made");
            FetchError::Unreachable
        })?;
        Ok(Self { client, ports: USUAL_PORTS.into() })
    }

    /// Fetches from these ports instead of the [usual](USUAL_PORTS) ones.
    pub fn with_ports(self, ports: &[u16]) -> Self {
        Self { ports: ports.into(), ..self }
    }

    /// Whether an address may be fetched, as far as that can be told without asking anybody: a name is looked at when it is
    /// looked up.
    pub fn check(&self, url: &str) -> Result<(), FetchError> {
        self.allowed(&parsed(url)?)
    }

    /// Fetches what is at this address. Answers when the head of the answer is there; the body comes as it is read.
    pub async fn fetch(&self, url: &str, limits: Limits) -> Result<Fetched, FetchError> {
        let deadline = Instant::now() + limits.total;
        let mut url = parsed(url)?;
        for _ in 0..=limits.redirects {
            self.allowed(&url)?;
            let response = self.request(&url, deadline).await?;
            match next_address(&url, &response)? {
                Some(next) => url = next,
                None => return content(response, limits.max_bytes),
            }
        }
        Err(FetchError::TooManyRedirects)
    }

    async fn request(&self, url: &Url, deadline: Instant) -> Result<Response, FetchError> {
        let left = deadline.saturating_duration_since(Instant::now());
        // Covers the body too.
        let request = self.client.get(url.clone()).header(ACCEPT_ENCODING, "identity").timeout(left);
        request.send().await.map_err(|error| explain(&error, FetchError::Unreachable))
    }

    /// Whether an address may be asked at all; names are looked at when they are looked up.
    fn allowed(&self, url: &Url) -> Result<(), FetchError> {
        if !matches!(url.scheme(), "http" | "https") {
            return Err(FetchError::Invalid("only http and https addresses can be fetched"));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(FetchError::Invalid("the address must not hold a name or a password"));
        }
        let host = url.host_str().ok_or(FetchError::Invalid("the address has no host"))?;
        // An address needs no lookup.
        match host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>() {
            Ok(address) if !is_public(address) => return Err(FetchError::Refused),
            _ => {}
        }
        match url.port_or_known_default() {
            Some(port) if !self.ports.contains(&port) => Err(FetchError::Port(port)),
            _ => Ok(()),
        }
    }
}

fn parsed(url: &str) -> Result<Url, FetchError> {
    Url::parse(url).map_err(|_| FetchError::Invalid("the address cannot be read"))
}

/// Where an answer leads to, if it does.
fn next_address(url: &Url, response: &Response) -> Result<Option<Url>, FetchError> {
    let status = response.status();
    if status == StatusCode::OK {
        return Ok(None);
    }
    let leads_on = matches!(status.as_u16(), 301 | 302 | 303 | 307 | 308);
    let location = response.headers().get(LOCATION).filter(|_| leads_on);
    let Some(location) = location else { return Err(FetchError::Status(status.as_u16())) };
    let location = location.to_str().ok().and_then(|location| url.join(location).ok());
    location.map(Some).ok_or(FetchError::Invalid("the server redirects to what is no address"))
}

fn content(response: Response, max_bytes: u64) -> Result<Fetched, FetchError> {
    let header = |headers: &HeaderMap, name| {
        let value = headers.get(name).and_then(|value| value.to_str().ok());
        value.map(str::trim).filter(|value| !value.is_empty()).map(str::to_owned)
    };
    if header(response.headers(), CONTENT_ENCODING)
        .is_some_and(|coding| !coding.eq_ignore_ascii_case("identity"))
    {
        return Err(FetchError::Compressed);
    }
    let length = response.content_length();
    if length.is_some_and(|length| length > max_bytes) {
        return Err(FetchError::TooLarge { max_bytes });
    }
    let content_type = header(response.headers(), CONTENT_TYPE);
    let came = response.bytes_stream().boxed();
    let body = stream::unfold(Some((came, 0)), move |state| async move {
        let (mut came, so_far) = state?;
        let item = came.next().await?;
        let bytes = match item {
            Ok(bytes) => bytes,
            Err(error) => return Some((Err(explain(&error, FetchError::Interrupted)), None)),
        };
        let so_far = so_far + bytes.len() as u64;
        if so_far > max_bytes {
            return Some((Err(FetchError::TooLarge { max_bytes }), None));
        }
        Some((Ok(bytes), Some((came, so_far))))
    });
    Ok(Fetched { content_type, length, body: Box::pin(body) })
}

/// Why a request failed; nothing of what the client says reaches a caller, because it knows our network.
fn explain(error: &reqwest::Error, otherwise: FetchError) -> FetchError {
    let mut cause: Option<&(dyn Error + 'static)> = Some(error);
    while let Some(error) = cause {
        if error.is::<Refused>() {
            return FetchError::Refused;
        }
        cause = error.source();
    }
    tracing::debug!(error = error as &dyn Error, "a fetch failed");
    if error.is_timeout() { FetchError::TimedOut } else { otherwise }
}
