//! How the bytes of a file go out: whole, in part or not at all, and in a way that is safe for whoever opens them.

use super::ranges::{self, Wanted};
use crate::rest::App;
use crate::rest::error::{ApiError, ErrorBody, ErrorDetails, JSON_UTF8};
use axum::body::Body;
use axum::response::{IntoResponse, Response};
use http::header::{
    ACCEPT_RANGES, CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_LENGTH, CONTENT_RANGE,
    CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG, LOCATION, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
};
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use memloom_core::attachments::{self, Attachment, Delivery};
use memloom_core::{Error, Result};
use std::ops::Range;
use std::time::Duration;

/// Should a browser show the bytes as a page after all, it is one that may load, run and reach nothing.
const SANDBOX: HeaderValue = HeaderValue::from_static("sandbox; default-src 'none'");
const NOSNIFF: HeaderValue = HeaderValue::from_static("nosniff");
const NO_REFERRER: HeaderValue = HeaderValue::from_static("no-referrer");
const BYTES: HeaderValue = HeaderValue::from_static("bytes");

/// For how long whoever has the bytes may use them again. They never change; who may read them does.
#[derive(Debug, Clone, Copy)]
pub(super) enum Caching {
    /// A day, as whoever may read them asks again then.
    Day,
    /// As long as the address can be used.
    For(Duration),
}

impl Caching {
    fn header(self) -> Result<HeaderValue> {
        match self {
            Self::Day => Ok(HeaderValue::from_static("private, max-age=86400, immutable")),
            Self::For(time) => header(&format!("private, max-age={}", time.as_secs())),
        }
    }
}

/// The bytes of a file, as far as the caller wants them.
pub(super) async fn bytes(
    app: &App,
    attachment: &Attachment,
    caching: Caching,
    method: &Method,
    headers: &HeaderMap,
) -> Result<Response, ApiError> {
    let (Some(size), Some(sha256)) = (attachment.size, &attachment.sha256) else {
        return Err(Error::UploadInProgress.into());
    };
    let etag = format!("\"{sha256}\"");
    if ranges::is_known(headers, &etag) {
        let mut response = StatusCode::NOT_MODIFIED.into_response();
        describe(&mut response, &etag, caching)?;
        return Ok(response);
    }
    // A range means something to a GET only.
    let wanted = match *method {
        Method::GET => ranges::wanted(headers, &etag, size),
        _ => Wanted::Whole,
    };
    let (status, range) = match wanted {
        Wanted::Whole => (StatusCode::OK, 0..size),
        Wanted::Part(range) => (StatusCode::PARTIAL_CONTENT, range),
        Wanted::Nothing => return Ok(not_satisfiable(size)?),
    };
    let length = range.end - range.start;
    let body = match *method {
        Method::HEAD => Body::empty(),
        _ if length == 0 => Body::empty(),
        _ => {
            let part = (status == StatusCode::PARTIAL_CONTENT).then(|| range.clone());
            Body::from_stream(app.0.services.attachments.read(attachment, part).await?)
        }
    };
    let mut response = Response::new(body);
    *response.status_mut() = status;
    describe(&mut response, &etag, caching)?;
    let Delivery { content_type, disposition } =
        attachments::deliver(&attachment.content_type, attachment.filename.as_deref());
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, header(&content_type)?);
    headers.insert(CONTENT_DISPOSITION, header(&disposition)?);
    headers.insert(CONTENT_SECURITY_POLICY, SANDBOX);
    headers.insert(CONTENT_LENGTH, length.into());
    headers.insert(ACCEPT_RANGES, BYTES);
    if status == StatusCode::PARTIAL_CONTENT {
        headers.insert(CONTENT_RANGE, content_range(&range, size)?);
    }
    Ok(response)
}

/// What belongs to the bytes whether they are sent or not.
fn describe(response: &mut Response, etag: &str, caching: Caching) -> Result<()> {
    let headers = response.headers_mut();
    headers.insert(ETAG, header(etag)?);
    headers.insert(CACHE_CONTROL, caching.header()?);
    headers.insert(X_CONTENT_TYPE_OPTIONS, NOSNIFF);
    Ok(())
}

/// Sends the caller to where the bytes are, for as long as they are there. It is not told from where it comes.
pub(super) fn elsewhere(url: &str, lasting: Duration) -> Result<Response> {
    let caching = match lasting {
        Duration::ZERO => HeaderValue::from_static("no-cache"),
        lasting => Caching::For(lasting).header()?,
    };
    let mut response = StatusCode::TEMPORARY_REDIRECT.into_response();
    let headers = response.headers_mut();
    headers.insert(LOCATION, header(url)?);
    headers.insert(CACHE_CONTROL, caching);
    headers.insert(REFERRER_POLICY, NO_REFERRER);
    Ok(response)
}

fn content_range(range: &Range<u64>, size: u64) -> Result<HeaderValue> {
    header(&format!("bytes {}-{}/{size}", range.start, range.end - 1))
}

/// The bytes asked for are not in the file.
fn not_satisfiable(size: u64) -> Result<Response> {
    let body = ErrorBody {
        error: "Range not satisfiable".to_owned(),
        code: "range_not_satisfiable".to_owned(),
        details: Some(ErrorDetails::Message { message: format!("the file has {size} bytes") }),
        existing_transfer_id: None,
    };
    let json = serde_json::to_vec(&body)
        .map_err(|error| Error::Internal(format!("a response could not be written: {error}")))?;
    let range = header(&format!("bytes */{size}"))?;
    let headers = [(CONTENT_TYPE, JSON_UTF8), (CONTENT_RANGE, range)];
    Ok((StatusCode::RANGE_NOT_SATISFIABLE, headers, json).into_response())
}

/// A header of what was checked when it was stored.
fn header(text: &str) -> Result<HeaderValue> {
    HeaderValue::from_str(text)
        .map_err(|_| Error::Internal("an attachment has something that no header can carry".to_owned()))
}
