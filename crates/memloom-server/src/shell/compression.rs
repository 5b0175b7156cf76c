//! gzip and zstd, for those who ask and bodies that are worth it.

use axum::body::{Body, HttpBody};
use axum::response::Response;
use futures_util::FutureExt;
use http::header::{ACCEPT_ENCODING, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue, Request};
use std::convert::Infallible;
use std::future::ready;
use tower::{Service, service_fn};
use tower_http::CompressionLevel;
use tower_http::compression::Compression;

/// Below this a body travels in one packet anyway.
const WORTH_IT: u64 = 1024;

/// The caller's `Accept-Encoding`, if it names a coding we have.
pub(super) fn wanted(headers: &HeaderMap) -> Option<HeaderValue> {
    let accepted = headers.get(ACCEPT_ENCODING)?;
    let text = accepted.to_str().ok()?;
    (text.contains("gzip") || text.contains("zstd")).then(|| accepted.clone())
}

/// Compresses the body as it is sent, if it is worth it.
pub(super) fn compress(response: Response, accepted: HeaderValue) -> Response {
    if !is_worth_it(&response) {
        return response;
    }
    let mut request = Request::new(());
    request.headers_mut().insert(ACCEPT_ENCODING, accepted);

    // tower-http only offers this as a service around a service; ours has its answer ready, so nothing waits.
    let mut given = Some(response);
    let answer = service_fn(|_| ready(Ok::<_, Infallible>(given.take().unwrap_or_default())));
    let mut service =
        Compression::new(answer).quality(CompressionLevel::Fastest).compress_when(|_, _, _: &_, _: &_| true);
    match service.call(request).now_or_never() {
        Some(Ok(compressed)) => compressed.map(Body::new),
        Some(Err(never)) => match never {},
        None => Response::default(),
    }
}

/// Streams of events must reach the reader one by one, gRPC compresses by itself, and media are compressed already.
fn is_worth_it(response: &Response) -> bool {
    if response.body().size_hint().upper().is_some_and(|length| length < WORTH_IT) {
        return false;
    }
    let Some(media_type) = response.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok()) else {
        return false;
    };
    let is_text = media_type.starts_with("text/")
        || media_type.starts_with("application/json")
        || media_type.starts_with("application/javascript")
        || media_type.starts_with("application/x-ndjson")
        || media_type.starts_with("application/problem+json")
        || media_type.starts_with("image/svg+xml");
    is_text && !media_type.starts_with("text/event-stream")
}
