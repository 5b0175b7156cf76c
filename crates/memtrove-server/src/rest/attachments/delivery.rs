//! How the bytes of a file go out: whole, in part or not at all, and in a way that is safe to open.

use super::ranges::{self, RequestedRange};
use crate::rest::App;
use crate::rest::error::{ApiError, ErrorBody, ErrorDetails, JSON_UTF8};
use axum::body::Body;
use axum::response::{IntoResponse, Response};
use http::header::{
    ACCEPT_RANGES, CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_LENGTH, CONTENT_RANGE,
    CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG, LOCATION, REFERRER_POLICY, VARY, X_CONTENT_TYPE_OPTIONS,
};
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use memtrove_core::attachments::{self, Attachment, Delivery};
use memtrove_core::{Error, Result};
use std::ops::Range;
use std::time::Duration;

/// Should a browser show the bytes as a page after all, it is one that may load, run and reach nothing.
const SANDBOX: HeaderValue = HeaderValue::from_static("sandbox; default-src 'none'");
const NOSNIFF: HeaderValue = HeaderValue::from_static("nosniff");
const NO_REFERRER: HeaderValue = HeaderValue::from_static("no-referrer");
const BYTES: HeaderValue = HeaderValue::from_static("bytes");

/// What decides who a caller is: one browser may be several of them, one after the other.
const IDENTITY: HeaderValue = HeaderValue::from_static("Authorization, X-API-Key, X-User-ID, X-Tenant-Id");

/// For how long whoever has the bytes may use them again. They never change; who may read them does.
#[derive(Debug, Clone, Copy)]
pub(super) enum Caching {
    /// A day, by whoever was given them, as whoever may read them asks again then.
    Day,
    /// As long as the link can be used, by whoever has it.
    Link(Duration),
}

impl Caching {
    fn describe(self, headers: &mut HeaderMap) -> Result<()> {
        let caching = match self {
            Self::Day => HeaderValue::from_static("private, max-age=86400, immutable"),
            Self::Link(left) => lasting(left)?,
        };
        headers.insert(CACHE_CONTROL, caching);
        if let Self::Day = self {
            headers.append(VARY, IDENTITY);
        }
        Ok(())
    }
}

fn lasting(time: Duration) -> Result<HeaderValue> {
    header(&format!("private, max-age={}", time.as_secs()))
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
        return Err(Error::UPLOAD_IN_PROGRESS.into());
    };
    let etag = format!("\"{sha256}\"");
    if ranges::is_known(headers, &etag) {
        let mut response = StatusCode::NOT_MODIFIED.into_response();
        describe(&mut response, &etag, caching)?;
        return Ok(response);
    }
    // A range means something to a GET only.
    let wanted = match *method {
        Method::GET => ranges::requested(headers, &etag, size),
        _ => RequestedRange::Whole,
    };
    let (status, range) = match wanted {
        RequestedRange::Whole => (StatusCode::OK, 0..size),
        RequestedRange::Part(range) => (StatusCode::PARTIAL_CONTENT, range),
        RequestedRange::Nothing => return Ok(not_satisfiable(size)?),
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
    headers.insert(X_CONTENT_TYPE_OPTIONS, NOSNIFF);
    caching.describe(headers)
}

/// Sends the caller to where the bytes are. It is not told from where it comes. Who remembers the way may still be reading when
/// the link ends, so it is to be asked for anew when half of its time is over.
pub(super) fn elsewhere(url: &str, link: Duration, caching: Caching) -> Result<Response> {
    let mut response = StatusCode::TEMPORARY_REDIRECT.into_response();
    let headers = response.headers_mut();
    caching.describe(headers)?;
    let remembered = match link.is_zero() {
        true => HeaderValue::from_static("no-cache"),
        false => lasting(link / 2)?,
    };
    headers.insert(CACHE_CONTROL, remembered);
    headers.insert(LOCATION, header(url)?);
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
        .map_err(|error| Error::internal(format!("a response could not be written: {error}")))?;
    let range = header(&format!("bytes */{size}"))?;
    let headers = [(CONTENT_TYPE, JSON_UTF8), (CONTENT_RANGE, range)];
    Ok((StatusCode::RANGE_NOT_SATISFIABLE, headers, json).into_response())
}

/// A header of what was checked when it was stored.
fn header(text: &str) -> Result<HeaderValue> {
    HeaderValue::from_str(text)
        .map_err(|_| Error::internal("an attachment has something that no header can carry".to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn led(link: u64, caching: Caching) -> (String, bool) {
        let response = elsewhere("https://files.example/x", Duration::from_secs(link), caching).unwrap();
        let headers = response.headers();
        (headers[CACHE_CONTROL].to_str().unwrap().to_owned(), headers.contains_key(VARY))
    }

    #[test]
    fn a_way_is_remembered_for_half_of_its_time_and_by_one_caller() {
        assert_eq!(led(300, Caching::Day), ("private, max-age=150".to_owned(), true));
        assert_eq!(led(0, Caching::Day), ("no-cache".to_owned(), true));
    }
}
