//! How long a caller is willing to wait, and the end of a stream that would go on for longer.

use axum::body::{Body, HttpBody};
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue};
use hyper::body::{Frame, SizeHint};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::time::{Instant, Sleep};
use tonic::Code;

const GRPC_TIMEOUT: HeaderName = HeaderName::from_static("grpc-timeout");
const GRPC_STATUS: HeaderName = HeaderName::from_static("grpc-status");
const GRPC_MESSAGE: HeaderName = HeaderName::from_static("grpc-message");

/// The time a call may take, as its caller says: up to eight digits and a unit. What cannot be read is not there.
pub(crate) fn of(headers: &HeaderMap) -> Option<Duration> {
    let text = headers.get(GRPC_TIMEOUT)?.to_str().ok()?;
    let (number, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    if number.is_empty() || number.len() > 8 || !number.bytes().all(|digit| digit.is_ascii_digit()) {
        return None;
    }
    let number: u64 = number.parse().ok()?;
    Some(match unit {
        "H" => Duration::from_secs(number * 3600),
        "M" => Duration::from_secs(number * 60),
        "S" => Duration::from_secs(number),
        "m" => Duration::from_millis(number),
        "u" => Duration::from_micros(number),
        "n" => Duration::from_nanos(number),
        _ => return None,
    })
}

/// Ends a stream at its deadline, if it has not ended by then.
pub(crate) fn end_at(body: Body, deadline: Instant) -> Body {
    Body::new(Ending { body: Some(body), sleep: Box::pin(tokio::time::sleep_until(deadline)) })
}

struct Ending {
    body: Option<Body>,
    sleep: Pin<Box<Sleep>>,
}

impl HttpBody for Ending {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        // The time first: a stream that always has something to say must end, too.
        let is_late = self.sleep.as_mut().poll(cx).is_ready();
        let Some(body) = &mut self.body else { return Poll::Ready(None) };
        if !is_late {
            return Pin::new(body).poll_frame(cx);
        }
        // What fed the stream is told by being dropped.
        self.body = None;
        let mut trailers = HeaderMap::new();
        trailers.insert(GRPC_STATUS, HeaderValue::from(Code::DeadlineExceeded as i32));
        trailers.insert(GRPC_MESSAGE, HeaderValue::from_static("the deadline has passed"));
        Poll::Ready(Some(Ok(Frame::trailers(trailers))))
    }

    fn is_end_stream(&self) -> bool {
        self.body.as_ref().is_none_or(HttpBody::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timeout_is_digits_and_a_unit() {
        let of = |text: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(GRPC_TIMEOUT, HeaderValue::from_str(text).unwrap());
            of(&headers)
        };
        assert_eq!(of("5S"), Some(Duration::from_secs(5)));
        assert_eq!(of("250m"), Some(Duration::from_millis(250)));
        assert_eq!(of("99999999H"), Some(Duration::from_secs(99_999_999 * 3600)));
        assert_eq!(of("7u"), Some(Duration::from_micros(7)));
        assert_eq!(of("7n"), Some(Duration::from_nanos(7)));
        for wrong in ["", "S", "5", "5s", "123456789S", "-1S", "1.5S"] {
            assert_eq!(of(wrong), None, "{wrong}");
        }
        assert_eq!(super::of(&HeaderMap::new()), None);
    }
}
