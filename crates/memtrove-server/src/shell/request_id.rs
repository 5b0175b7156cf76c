//! The id that ties a response, its log lines and its trace together.

use crate::rest::surface::Surface;
use http::{Extensions, HeaderName, HeaderValue};
use memtrove_core::{Clock, SystemClock};
use std::cell::RefCell;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// The header that carries it, both ways.
pub const X_REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

const LONGEST: usize = 128;

/// The id of a request, as its handler finds it among the request's extensions.
#[derive(Debug, Clone)]
pub struct RequestId(pub(crate) HeaderValue);

impl RequestId {
    /// The id of the request that these belong to; empty outside a shell.
    pub fn of(extensions: &Extensions) -> String {
        let id = extensions.get::<Self>().and_then(|Self(id)| id.to_str().ok());
        id.unwrap_or_default().to_owned()
    }
}

// For log lines alone: a line may be written anywhere below a handler, where no id is passed.
thread_local! {
    static CURRENT: RefCell<Option<HeaderValue>> = const { RefCell::new(None) };
}

/// The id of the request whose handler is running on this thread, if one is.
pub(crate) fn current() -> Option<String> {
    // Fails only while the thread ends, when somebody logs from a destructor.
    CURRENT.try_with(|id| id.borrow().as_ref().and_then(|id| id.to_str().ok()).map(str::to_owned)).ok()?
}

/// Runs `work` as part of the request `id` belongs to. The id is moved in and out rather than copied, because this
/// happens on every poll of every request.
pub(super) fn within<T>(id: &mut Option<HeaderValue>, work: impl FnOnce() -> T) -> T {
    struct Restore<'a>(&'a mut Option<HeaderValue>);
    impl Drop for Restore<'_> {
        fn drop(&mut self) {
            CURRENT.with_borrow_mut(|current| std::mem::swap(current, self.0));
        }
    }
    CURRENT.with_borrow_mut(|current| std::mem::swap(current, id));
    let _restore = Restore(id);
    work()
}

/// The caller's id if it is one we would repeat, else a fresh one.
pub(super) fn accept_or_generate(offered: Option<&HeaderValue>, surface: Surface) -> HeaderValue {
    match offered {
        Some(id) if is_acceptable(id.as_bytes(), surface) => id.clone(),
        _ => generate(),
    }
}

/// The contracts differ in one sign.
fn is_acceptable(id: &[u8], surface: Surface) -> bool {
    let fits = |c: &u8| {
        c.is_ascii_alphanumeric()
            || matches!(c, b'.' | b'_' | b'-')
            || (*c == b':' && surface == Surface::Files)
    };
    (1..=LONGEST).contains(&id.len()) && id.iter().all(fits)
}

/// A per-process random prefix and a counter: unique without asking the system for randomness per request.
fn generate() -> HeaderValue {
    static PROCESS: LazyLock<u64> = LazyLock::new(|| SystemClock.new_id().as_u64_pair().1);
    static NEXT: AtomicU64 = AtomicU64::new(1);

    let mut id = [0u8; 25];
    hex(&mut id[..12], *PROCESS);
    id[12] = b'-';
    hex(&mut id[13..], NEXT.fetch_add(1, Ordering::Relaxed));
    HeaderValue::from_bytes(&id).unwrap_or(HeaderValue::from_static("unknown"))
}

fn hex(slot: &mut [u8], mut number: u64) {
    for digit in slot.iter_mut().rev() {
        *digit = b"0123456789abcdef"[(number & 15) as usize];
        number >>= 4;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_offered_id_is_kept_only_if_it_is_short_and_plain() {
        let kept = |id: &[u8]| {
            accept_or_generate(HeaderValue::from_bytes(id).ok().as_ref(), Surface::Conversations).as_bytes()
                == id
        };
        assert!(kept(b"a"));
        assert!(kept(b"Trace-01_x.y"));
        assert!(kept(&[b'x'; 128]));
        assert!(!kept(&[b'x'; 129]));
        assert!(!kept(b""));
        assert!(!kept(b"two words"));
        assert!(!kept("käse".as_bytes()));
        assert!(!kept(b"a\"b"));
    }

    #[test]
    fn generated_ids_are_acceptable_and_differ() {
        let (one, other) = (generate(), generate());
        assert!(is_acceptable(one.as_bytes(), Surface::Conversations));
        assert_ne!(one, other);
    }

    #[test]
    fn the_current_id_ends_with_the_work_even_when_it_panics() {
        let mut id = Some(HeaderValue::from_static("outer"));
        let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            within(&mut id, || {
                assert_eq!(current().as_deref(), Some("outer"));
                panic!("as planned");
            })
        }));
        assert!(panicked.is_err());
        assert_eq!(current(), None);
        assert_eq!(id.unwrap(), "outer");
    }
}
