//! The body of a request that is read while it comes: up to a limit, and no faster than something comes of it.

use crate::shell::linger;
use axum::body::{Body, HttpBody};
use axum::extract::Request;
use bytes::Bytes;
use hyper::body::Frame;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll, ready};
use tokio::runtime::Handle;

/// How many bytes are given to a reader before it has to come again. Some take whatever there is, as long as there is more.
const STEP: u64 = 64 * 1024;

/// How many bytes a reader may take without anything coming of them: it has to keep them all.
const HOARD: u64 = 1024 * 1024;

/// A body that ends with an error where it becomes too long. Whoever stops reading it half-way leaves the rest to be read for a
/// moment, so that the sender comes to see the answer.
pub(super) struct Incoming {
    body: Body,
    left: u64,
    given: u64,
    seen: Arc<Seen>,
}

/// What is known of a body while it is read.
#[derive(Debug, Clone)]
pub(super) struct Watch {
    seen: Arc<Seen>,
    limit: u64,
}

#[derive(Debug, Default)]
struct Seen {
    too_long: AtomicBool,
    hoarded: AtomicU64,
}

/// Why a body was not read to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stopped {
    /// It is longer than this.
    TooLong(u64),
    /// Its reader took too much of it for nothing.
    Hoarded,
}

impl Watch {
    /// Why the body was not read to its end, if it was our doing.
    pub(super) fn stopped(&self) -> Option<Stopped> {
        if self.seen.too_long.load(Ordering::Relaxed) {
            return Some(Stopped::TooLong(self.limit));
        }
        (self.seen.hoarded.load(Ordering::Relaxed) > HOARD).then_some(Stopped::Hoarded)
    }

    /// Something came of what was read.
    pub(super) fn progress(&self) {
        self.seen.hoarded.store(0, Ordering::Relaxed);
    }
}

#[derive(Debug, thiserror::Error)]
#[error("the request body is not read any further")]
struct Ended;

impl Incoming {
    /// Puts the limit on a request.
    pub(super) fn limit(request: &mut Request, limit: u64) -> Watch {
        let seen = Arc::<Seen>::default();
        let body = std::mem::take(request.body_mut());
        *request.body_mut() = Body::new(Self { body, left: limit, given: 0, seen: Arc::clone(&seen) });
        Watch { seen, limit }
    }
}

impl HttpBody for Incoming {
    type Data = Bytes;
    type Error = axum::BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        if self.given >= STEP {
            self.given = 0;
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        let Some(frame) = ready!(Pin::new(&mut self.body).poll_frame(cx)?) else {
            return Poll::Ready(None);
        };
        let length = frame.data_ref().map_or(0, |data| data.len() as u64);
        self.given += length;
        let hoarded = self.seen.hoarded.fetch_add(length, Ordering::Relaxed) + length;
        match self.left.checked_sub(length) {
            Some(left) if hoarded <= HOARD => {
                self.left = left;
                return Poll::Ready(Some(Ok(frame)));
            }
            Some(_) => {}
            None => self.seen.too_long.store(true, Ordering::Relaxed),
        }
        Poll::Ready(Some(Err(Ended.into())))
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

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::{StreamExt, stream};

    /// A request whose body is always there, piece by piece.
    fn request(pieces: usize, size: usize) -> Request {
        let piece = Bytes::from(vec![0; size]);
        let pieces = stream::iter(std::iter::repeat_n(piece, pieces).map(Ok::<_, std::io::Error>));
        Request::new(Body::from_stream(pieces))
    }

    /// How many bytes come before the body ends, and whether it ended well.
    async fn read(request: Request, mut each: impl FnMut()) -> (u64, bool) {
        let mut body = request.into_body().into_data_stream();
        let mut length = 0;
        while let Some(piece) = body.next().await {
            let Ok(piece) = piece else { return (length, false) };
            length += piece.len() as u64;
            each();
        }
        (length, true)
    }

    #[tokio::test]
    async fn a_body_is_read_to_its_limit() {
        for (pieces, well) in [(99, true), (100, true), (101, false)] {
            let mut request = request(pieces, 10);
            let watch = Incoming::limit(&mut request, 1000);
            assert_eq!(read(request, || ()).await, (10 * pieces.min(100) as u64, well));
            assert_eq!(watch.stopped(), (!well).then_some(Stopped::TooLong(1000)));
        }
    }

    #[tokio::test]
    async fn what_is_taken_for_nothing_ends_while_a_long_body_that_is_used_does_not() {
        let long = || request(10_000, 1024);
        let mut taken = long();
        let watch = Incoming::limit(&mut taken, u64::MAX);
        assert_eq!(read(taken, || ()).await, (HOARD, false));
        assert_eq!(watch.stopped(), Some(Stopped::Hoarded));

        let mut used = long();
        let watch = Incoming::limit(&mut used, u64::MAX);
        assert_eq!(read(used, || watch.progress()).await, (10_000 * 1024, true));
        assert_eq!(watch.stopped(), None);
    }

    #[tokio::test]
    async fn a_reader_that_takes_whatever_there_is_comes_again_for_more() {
        let mut request = request(1000, 1024);
        let _watch = Incoming::limit(&mut request, u64::MAX);
        let mut body = request.into_body();
        let mut at_once = 0;
        std::future::poll_fn(|cx| {
            while let Poll::Ready(Some(Ok(frame))) = Pin::new(&mut body).poll_frame(cx) {
                at_once += frame.data_ref().map_or(0, Bytes::len);
            }
            Poll::Ready(())
        })
        .await;
        assert_eq!(at_once as u64, STEP);
    }
}
