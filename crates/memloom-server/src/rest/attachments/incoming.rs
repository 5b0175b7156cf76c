//! The body of a request that is read while it comes, up to a limit.

use crate::shell::linger;
use axum::body::{Body, HttpBody};
use axum::extract::Request;
use bytes::Bytes;
use hyper::body::Frame;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};
use tokio::runtime::Handle;

/// A body that ends with an error at its limit. Whoever stops reading it half-way leaves the rest to be read for a moment,
/// so that the sender comes to see the answer.
pub(super) struct Incoming {
    body: Body,
    left: u64,
    overrun: Arc<AtomicBool>,
}

/// Whether a body was longer than its limit.
pub(super) struct Overrun {
    happened: Arc<AtomicBool>,
    limit: u64,
}

impl Overrun {
    /// The limit, if it was passed.
    pub(super) fn happened(&self) -> Option<u64> {
        self.happened.load(Ordering::Relaxed).then_some(self.limit)
    }
}

#[derive(Debug, thiserror::Error)]
#[error("the request body is too large")]
struct TooLong;

impl Incoming {
    /// Puts the limit on a request.
    pub(super) fn limit(request: &mut Request, limit: u64) -> Overrun {
        let happened = Arc::new(AtomicBool::new(false));
        let body = std::mem::take(request.body_mut());
        *request.body_mut() = Body::new(Self { body, left: limit, overrun: Arc::clone(&happened) });
        Overrun { happened, limit }
    }
}

impl HttpBody for Incoming {
    type Data = Bytes;
    type Error = axum::BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let Some(frame) = ready!(Pin::new(&mut self.body).poll_frame(cx)?) else {
            return Poll::Ready(None);
        };
        let length = frame.data_ref().map_or(0, |data| data.len() as u64);
        match self.left.checked_sub(length) {
            Some(left) => {
                self.left = left;
                Poll::Ready(Some(Ok(frame)))
            }
            None => {
                self.overrun.store(true, Ordering::Relaxed);
                Poll::Ready(Some(Err(TooLong.into())))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }
}

impl Drop for Incoming {
    fn drop(&mut self) {
        // Without a runtime the process is ending.
        if !self.body.is_end_stream() && Handle::try_current().is_ok() {
            linger(std::mem::take(&mut self.body));
        }
    }
}
