//! gzip and zstd, for those who ask and bodies that are worth it.

use axum::body::{Body, HttpBody};
use axum::response::Response;
use futures_util::FutureExt;
use http::header::{ACCEPT_ENCODING, ACCEPT_RANGES, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue, Request, StatusCode};
use std::convert::Infallible;
use std::future::ready;
use tower::{Service, service_fn};
use tower_http::CompressionLevel;
use tower_http::compression::Compression;

/// From how many bytes on a coding is used. zstd costs some 15 µs to begin with, gzip more than 100 µs, which on most
/// networks is more than sending a few kilobytes; and most HTTP libraries ask for gzip without being told to.
const ZSTD_FROM: u64 = 1024;
const GZIP_FROM: u64 = 16 * 1024;

/// The caller's `Accept-Encoding`, if it names a coding we have.
pub(super) fn wanted(headers: &HeaderMap) -> Option<HeaderValue> {
    let accepted = headers.get(ACCEPT_ENCODING)?;
    let text = accepted.to_str().ok()?;
    (text.contains("gzip") || text.contains("zstd")).then(|| accepted.clone())
}

/// Compresses the body as it is sent, if it is worth it.
pub(super) fn compress(response: Response, accepted: HeaderValue) -> Response {
    let length = response.body().size_hint().upper().unwrap_or(u64::MAX);
    // Parts of a body are counted, and its tag made, before compression.
    let in_parts =
        response.headers().contains_key(ACCEPT_RANGES) || response.status() == StatusCode::PARTIAL_CONTENT;
    if length < ZSTD_FROM || in_parts || !is_text(&response) {
        return response;
    }
    let status = response.status();
    let mut request = Request::new(());
    request.headers_mut().insert(ACCEPT_ENCODING, accepted);

    // tower-http only offers this as a service around a service; ours has its answer ready, so nothing waits.
    let mut given = Some(response);
    let answer = service_fn(|_| ready(Ok::<_, Infallible>(given.take().unwrap_or_default())));
    let mut service = Compression::new(answer)
        .gzip(length >= GZIP_FROM)
        .quality(CompressionLevel::Fastest)
        .compress_when(|_, _, _: &_, _: &_| true);
    let mut compressed = match service.call(request).now_or_never() {
        Some(Ok(compressed)) => compressed.map(Body::new),
        Some(Err(never)) => match never {},
        None => Response::default(),
    };
    // tower-http answers 406 to those who refuse plain bodies; the work is done by now, so they get what there is.
    *compressed.status_mut() = status;
    compressed
}

/// Streams of events must reach the reader one by one, gRPC compresses by itself, and media are compressed already.
fn is_text(response: &Response) -> bool {
    let Some(media_type) = response.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok()) else {
        return false;
    };
    let prefixes = [
        "text/",
        "application/json",
        "application/problem+json",
        "application/x-ndjson",
        "application/javascript",
        "image/svg+xml",
    ];
    prefixes.iter().any(|prefix| media_type.starts_with(prefix))
        && !media_type.starts_with("text/event-stream")
}
