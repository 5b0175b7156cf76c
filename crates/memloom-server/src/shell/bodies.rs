//! What the bodies of all requests together may take. One body has a limit of its own; without this, enough callers could
//! still fill the memory with bodies that wait for their turn in the store.

use axum::body::{Body, HttpBody};
use axum::extract::Request;
use bytes::Bytes;
use hyper::body::{Frame, SizeHint};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll, ready};

/// The bodies of requests under way.
#[derive(Debug, Clone)]
pub(super) struct Bodies {
    bytes: Arc<AtomicU64>,
    limit: u64,
}

/// One request's part; given back when it is dropped.
#[derive(Debug)]
pub(super) struct Share {
    bytes: Arc<AtomicU64>,
    part: u64,
}

impl Bodies {
    pub(super) fn new(limit: u64) -> Self {
        Self { bytes: Arc::default(), limit }
    }

    /// Makes room for a body; `None` when there is none. A lone body always fits.
    /// A body of unknown length may have as much as any.
    pub(super) fn admit(&self, request: &Request, longest: u64) -> Option<Share> {
        self.take(request.body().size_hint().upper().unwrap_or(longest))
    }
}

/// A body whose length nobody knows before its end, as gRPC sends them: it takes room as it comes.
struct Growing {
    inner: Body,
    bodies: Bodies,
    shares: Vec<Share>,
    refused: Refused,
}

/// Set when there was no room for the rest of a body.
#[derive(Debug, Clone, Default)]
pub(super) struct Refused(Arc<AtomicBool>);

impl Refused {
    pub(super) fn happened(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

impl Bodies {
    /// Lets a body take room as it comes, until it has been read.
    pub(super) fn watch(&self, request: &mut Request) -> Refused {
        let refused = Refused::default();
        let inner = std::mem::take(request.body_mut());
        let bodies = self.clone();
        *request.body_mut() =
            Body::new(Growing { inner, bodies, shares: Vec::new(), refused: refused.clone() });
        refused
    }

    fn take(&self, part: u64) -> Option<Share> {
        let share = Share { bytes: Arc::clone(&self.bytes), part };
        let before = self.bytes.fetch_add(part, Ordering::Relaxed);
        (part == 0 || before == 0 || before + part <= self.limit).then_some(share)
    }
}

#[derive(Debug, thiserror::Error)]
#[error("there is no room for this body now")]
struct NoRoom;

impl HttpBody for Growing {
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
        match self.bodies.take(length) {
            Some(share) => {
                self.shares.push(share);
                Poll::Ready(Some(Ok(frame)))
            }
            None => {
                self.refused.0.store(true, Ordering::Relaxed);
                Poll::Ready(Some(Err(NoRoom.into())))
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

impl Drop for Share {
    fn drop(&mut self) {
        self.bytes.fetch_sub(self.part, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bodies_share_a_limit_and_give_it_back() {
        let bodies = Bodies::new(100);
        let request = |size: usize| Request::new(Body::from(vec![0; size]));
        let first = bodies.admit(&request(80), 100).unwrap();
        assert!(bodies.admit(&request(30), 100).is_none());
        assert!(bodies.admit(&request(0), 100).is_some(), "a request without a body always fits");
        let second = bodies.admit(&request(20), 100).unwrap();
        drop(first);
        assert!(bodies.admit(&request(80), 100).is_some());
        drop(second);
        assert!(bodies.admit(&request(5000), 100).is_some(), "a lone body has its own limit");
        assert_eq!(bodies.bytes.load(Ordering::Relaxed), 0);
    }
}
