//! What the bodies of all requests together may take. One body has a limit of its own; without this, enough callers could
//! still fill the memory with bodies that wait for their turn in the store.

use axum::body::{Body, HttpBody};
use axum::extract::Request;
use bytes::Bytes;
use hyper::body::{Frame, SizeHint};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::time::{Sleep, sleep};

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
    share: Share,
    /// Where it is in its messages, if each is done with before the next is read.
    messages: Option<Messages>,
    /// What was read last was the end of one.
    ended: bool,
    /// Runs while the rest of a message is waited for; made when it has to be.
    silence: Option<Pin<Box<Sleep>>>,
    watched: Watched,
}

/// Follows the messages of a stream: each is a byte, its length in four, and as many bytes.
#[derive(Default)]
struct Messages {
    head: Vec<u8>,
    left: u64,
}

impl Messages {
    const HEAD: usize = 5;

    /// Goes on behind these bytes; says whether a message ends with them.
    fn advance(&mut self, mut bytes: &[u8]) -> bool {
        while !bytes.is_empty() {
            let wanted = if self.left == 0 { (Self::HEAD - self.head.len()) as u64 } else { self.left };
            let (taken, rest) = bytes.split_at(bytes.len().min(wanted as usize));
            bytes = rest;
            if self.left > 0 {
                self.left -= taken.len() as u64;
                continue;
            }
            self.head.extend_from_slice(taken);
            if let [_, length @ ..] = &self.head[..]
                && let Ok(length) = <[u8; 4]>::try_from(length)
            {
                self.left = u32::from_be_bytes(length).into();
                self.head.clear();
            }
        }
        self.left == 0 && self.head.is_empty()
    }
}

/// What becomes of a body that takes room as it comes, as the body and its request tell each other.
#[derive(Debug, Clone, Default)]
pub(super) struct Watched(Arc<Fate>);

#[derive(Debug, Default)]
struct Fate {
    refused: AtomicBool,
    abandoned: AtomicBool,
}

impl Watched {
    /// Whether there was no room for the rest of it.
    pub(super) fn was_refused(&self) -> bool {
        self.0.refused.load(Ordering::Relaxed)
    }

    /// Says that nobody waits for its request any more: what has not come by now does not come.
    pub(super) fn abandon(&self) {
        self.0.abandoned.store(true, Ordering::Relaxed);
    }
}

impl Bodies {
    /// Lets a body take room as it comes, until it has been read. Of a stream, only the message that is being read does.
    pub(super) fn watch(&self, request: &mut Request, streamed: bool) -> Watched {
        let watched = Watched::default();
        *request.body_mut() = Body::new(Growing {
            inner: std::mem::take(request.body_mut()),
            bodies: self.clone(),
            share: Share { bytes: Arc::clone(&self.bytes), part: 0 },
            messages: streamed.then(Messages::default),
            ended: true,
            silence: None,
            watched: watched.clone(),
        });
        watched
    }

    fn take(&self, part: u64) -> Option<Share> {
        let mut share = Share { bytes: Arc::clone(&self.bytes), part: 0 };
        self.grow(&mut share, part).then_some(share)
    }

    /// Makes a share larger; `false` where there is no room for that.
    fn grow(&self, share: &mut Share, more: u64) -> bool {
        let before = self.bytes.fetch_add(more, Ordering::Relaxed);
        share.part += more;
        more == 0 || before + more == share.part || before + more <= self.limit
    }
}

/// How long the rest of a message may keep us waiting. Between messages a stream may be silent for as long as it likes.
const SILENCE: Duration = Duration::from_secs(30);

#[derive(Debug, thiserror::Error)]
enum Broken {
    #[error("there is no room for this body now")]
    NoRoom,
    #[error("the rest of a message did not come")]
    Silent,
}

impl HttpBody for Growing {
    type Data = Bytes;
    type Error = axum::BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let Self { inner, bodies, share, messages, ended, silence, watched } = &mut *self;
        if messages.is_some() && *ended {
            // Whoever reads on has done with it.
            share.give_back();
        }
        let polled = Pin::new(inner).poll_frame(cx)?;
        let Poll::Ready(frame) = polled else {
            let is_waited_for = messages.is_some() && !*ended;
            let silence = is_waited_for.then(|| silence.get_or_insert_with(|| Box::pin(sleep(SILENCE))));
            let is_over = silence.is_some_and(|silence| silence.as_mut().poll(cx).is_ready());
            return match is_over || watched.0.abandoned.load(Ordering::Relaxed) {
                true => Poll::Ready(Some(Err(Broken::Silent.into()))),
                false => Poll::Pending,
            };
        };
        *silence = None;
        let Some(frame) = frame else { return Poll::Ready(None) };
        if let Some(data) = frame.data_ref() {
            *ended = messages.as_mut().is_some_and(|messages| messages.advance(data));
            if !bodies.grow(share, data.len() as u64) {
                watched.0.refused.store(true, Ordering::Relaxed);
                return Poll::Ready(Some(Err(Broken::NoRoom.into())));
            }
        }
        Poll::Ready(Some(Ok(frame)))
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

impl Share {
    fn give_back(&mut self) {
        self.bytes.fetch_sub(std::mem::take(&mut self.part), Ordering::Relaxed);
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.give_back();
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

    /// Reads a body to its end, or to where it was refused.
    async fn read(request: &mut Request) -> Result<usize, axum::Error> {
        let body = std::mem::take(request.body_mut());
        http_body_util::BodyExt::collect(body).await.map(|read| read.to_bytes().len())
    }

    #[tokio::test]
    async fn a_body_of_unknown_length_takes_room_as_it_comes_and_gives_it_back() {
        let bodies = Bodies::new(100);
        let other = bodies.take(60).unwrap();
        let mut small = Request::new(Body::from(vec![0; 40]));
        let watched = bodies.watch(&mut small, false);
        assert_eq!(read(&mut small).await.unwrap(), 40);
        assert!(!watched.was_refused());
        let mut large = Request::new(Body::from(vec![0; 41]));
        let watched = bodies.watch(&mut large, false);
        assert!(read(&mut large).await.is_err());
        assert!(watched.was_refused());
        drop(other);
        assert_eq!(bodies.bytes.load(Ordering::Relaxed), 0);
    }

    fn message(length: usize) -> Vec<u8> {
        let mut message = vec![0; 5 + length];
        message[1..5].copy_from_slice(&(length as u32).to_be_bytes());
        message
    }

    #[tokio::test]
    async fn of_a_stream_only_the_message_that_is_read_takes_room() {
        let bodies = Bodies::new(100);
        let other = bodies.take(1).unwrap();
        let pieces = |messages: Vec<u8>, size: usize| {
            let pieces: Vec<_> =
                messages.chunks(size).map(|piece| Ok::<_, axum::Error>(piece.to_vec())).collect();
            Request::new(Body::from_stream(futures_util::stream::iter(pieces)))
        };
        let mut stream = pieces(vec![message(45); 20].concat(), 25);
        let watched = bodies.watch(&mut stream, true);
        assert_eq!(read(&mut stream).await.unwrap(), 20 * 50);
        assert!(!watched.was_refused());
        let mut stream = pieces(message(200), 7);
        let watched = bodies.watch(&mut stream, true);
        assert!(read(&mut stream).await.is_err());
        assert!(watched.was_refused());
        drop(other);
        assert_eq!(bodies.bytes.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn messages_are_followed_however_they_are_cut() {
        let stream: Vec<u8> = [3, 0, 300, 1].into_iter().flat_map(message).collect();
        let ends = [8, 13, 318, 324];
        for size in 1..=stream.len() {
            let (mut messages, mut at) = (Messages::default(), 0);
            for piece in stream.chunks(size) {
                at += piece.len();
                assert_eq!(messages.advance(piece), ends.contains(&at), "{at} of pieces of {size}");
            }
        }
    }

    /// A stream that says something and then nothing any more.
    fn falls_silent(said: Vec<u8>) -> Request {
        use futures_util::StreamExt;
        let said = futures_util::stream::iter([Ok::<_, axum::Error>(said)]);
        Request::new(Body::from_stream(said.chain(futures_util::stream::pending())))
    }

    async fn next(body: &mut Body) -> Option<Result<Frame<Bytes>, axum::Error>> {
        std::future::poll_fn(|cx| Pin::new(&mut *body).poll_frame(cx)).await
    }

    #[tokio::test(start_paused = true)]
    async fn a_stream_that_is_silent_between_messages_takes_no_room_and_goes_on() {
        let bodies = Bodies::new(100);
        let mut stream = falls_silent(message(45));
        let _watched = bodies.watch(&mut stream, true);
        assert!(next(stream.body_mut()).await.unwrap().is_ok());
        assert!(tokio::time::timeout(Duration::from_secs(3600), next(stream.body_mut())).await.is_err());
        assert_eq!(bodies.bytes.load(Ordering::Relaxed), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn a_message_whose_rest_does_not_come_is_not_waited_for_without_end() {
        let bodies = Bodies::new(100);
        let mut stream = falls_silent(message(45)[..20].to_vec());
        let watched = bodies.watch(&mut stream, true);
        assert!(next(stream.body_mut()).await.unwrap().is_ok());
        assert!(tokio::time::timeout(SILENCE * 2, next(stream.body_mut())).await.unwrap().unwrap().is_err());
        assert!(!watched.was_refused());
        drop(stream);
        assert_eq!(bodies.bytes.load(Ordering::Relaxed), 0);
    }

    #[tokio::test]
    async fn nobody_waits_for_the_rest_of_a_body_whose_request_is_given_up() {
        let bodies = Bodies::new(100);
        let mut call = falls_silent(message(45)[..20].to_vec());
        let watched = bodies.watch(&mut call, false);
        assert!(next(call.body_mut()).await.unwrap().is_ok());
        watched.abandon();
        assert!(next(call.body_mut()).await.unwrap().is_err());
    }
}
