//! What callers add to every attempt: their headers, and functions that see requests and responses.

use crate::error::BoxError;
use futures_util::future::BoxFuture;
use std::sync::Arc;

/// Gives headers for each attempt, such as a token that is renewed now and then.
///
/// Names and values that are blank are passed over, and a header that the request has already stays as it is. A provider
/// that fails counts as a transport error: where the call may be retried, it is asked again.
///
/// Any function that returns a future of headers is one:
///
/// ```
/// # use memtrove_client::Client;
/// let builder = Client::builder()
///     .header_provider(|| async { Ok(vec![("traceparent".to_owned(), "00-…".to_owned())]) });
/// ```
pub trait HeaderProvider: Send + Sync + 'static {
    /// The headers for one attempt.
    fn headers(&self) -> BoxFuture<'_, Result<Vec<(String, String)>, BoxError>>;
}

impl<F, Fut> HeaderProvider for F
where
    F: Fn() -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<Vec<(String, String)>, BoxError>> + Send + 'static,
{
    fn headers(&self) -> BoxFuture<'_, Result<Vec<(String, String)>, BoxError>> {
        Box::pin(self())
    }
}

/// Sees every attempt before it is sent.
pub(crate) type RequestHook = Arc<dyn Fn(&reqwest::Request) + Send + Sync>;
/// Sees the head of every answer.
pub(crate) type ResponseHook = Arc<dyn Fn(&reqwest::Response) + Send + Sync>;
