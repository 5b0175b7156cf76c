//! The most bytes a request may carry, whether it says how many or not.

use axum::body::{Body, HttpBody};
use axum::extract::{DefaultBodyLimit, Request};
use bytes::Bytes;
use hyper::body::{Frame, SizeHint};
use memtrove_core::Error;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

/// What axum's extractors allow by themselves; only bodies that may be larger need to be told otherwise.
const AXUM_DEFAULT: u64 = 2 * 1024 * 1024;

/// How long we go on reading a body that was refused. Closing at once would reset the connection, and many clients
/// then report the reset instead of the 413 that explains it.
const LINGER: Duration = Duration::from_secs(5);

/// Set when a body of unknown length turned out to be too long.
#[derive(Clone)]
pub(super) struct Overrun(Arc<AtomicBool>);

impl Overrun {
    pub(super) fn happened(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// Applies the limit: refuses a body that says it is too long, and watches one that does not say.
#[allow(
    clippy::result_large_err,
    reason = "the error of the domain is what it is, and this is called once a request"
)]
pub(super) fn apply(request: &mut Request, limit: u64) -> Result<Option<Overrun>, Error> {
    match request.body().size_hint().upper() {
        Some(length) if length > limit => {
            linger(std::mem::take(request.body_mut()));
            Err(Error::too_large(limit, Some(length)))
        }
        Some(length) => {
            if length > AXUM_DEFAULT {
                DefaultBodyLimit::disable().apply(request);
            }
            Ok(None)
        }
        None => {
            DefaultBodyLimit::disable().apply(request);
            Ok(Some(watch(request, limit)))
        }
    }
}

/// Lets no more than these bytes of a body through, whatever it says of itself.
pub(super) fn watch(request: &mut Request, limit: u64) -> Overrun {
    let overrun = Overrun(Arc::default());
    let inner = std::mem::take(request.body_mut());
    *request.body_mut() = Body::new(Limited { inner, left: limit, overrun: overrun.clone() });
    overrun
}

/// Goes on reading a refused body, for a while.
pub(crate) fn linger(mut body: Body) {
    // Without a runtime the process is ending.
    let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
    runtime.spawn(tokio::time::timeout(LINGER, async move {
        while let Some(Ok(_)) = std::future::poll_fn(|cx| Pin::new(&mut body).poll_frame(cx)).await {}
    }));
}

struct Limited {
    inner: Body,
    left: u64,
    overrun: Overrun,
}

#[derive(Debug, thiserror::Error)]
#[error("the request body is too large")]
struct TooLong;

impl HttpBody for Limited {
    type Data = Bytes;
    type Error = axum::BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let Some(frame) = ready!(Pin::new(&mut self.inner).poll_frame(cx)?) else {
            return Poll::Ready(None);
        };
        let length = frame.data_ref().map_or(0, |data| data.len() as u64);
        match self.left.checked_sub(length) {
            Some(left) => {
                self.left = left;
                Poll::Ready(Some(Ok(frame)))
            }
            None => {
                self.overrun.0.store(true, Ordering::Relaxed);
                linger(std::mem::take(&mut self.inner));
                Poll::Ready(Some(Err(TooLong.into())))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}
