//! What the bodies of all requests together may take. One body has a limit of its own; without this, enough callers could
//! still fill the memory with bodies that wait for their turn in the store.

use axum::body::HttpBody;
use axum::extract::Request;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

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
        let part = request.body().size_hint().upper().unwrap_or(longest);
        let share = Share { bytes: Arc::clone(&self.bytes), part };
        let before = self.bytes.fetch_add(part, Ordering::Relaxed);
        (part == 0 || before == 0 || before + part <= self.limit).then_some(share)
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
    use axum::body::Body;

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
