//! Messages of gRPC on their way in. The decoder makes room for as many bytes as a head announces, so a head is handed
//! on with its whole message: memory follows what has come, not what was announced.

use axum::body::{Body, HttpBody};
use bytes::Bytes;
use hyper::body::Frame;
use std::collections::VecDeque;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

/// Follows the messages of a body: each is a byte, its length in four, and as many bytes.
#[derive(Debug, Default)]
pub(super) struct Messages {
    head: Vec<u8>,
    /// What there is of the message that has begun, and how much is still to come.
    read: u64,
    left: u64,
}

impl Messages {
    /// Bytes before a message.
    pub(super) const HEAD: usize = 5;

    /// Goes on behind these bytes; says how many of them come before the end of the last message that ends in them.
    pub(super) fn advance(&mut self, bytes: &[u8]) -> usize {
        let (mut at, mut end) = (0, 0);
        while at < bytes.len() {
            let wanted = if self.left == 0 { (Self::HEAD - self.head.len()) as u64 } else { self.left };
            let taken = &bytes[at..bytes.len().min(at.saturating_add(wanted as usize))];
            at += taken.len();
            if self.left > 0 {
                self.left -= taken.len() as u64;
                self.read += taken.len() as u64;
            } else {
                self.head.extend_from_slice(taken);
                let [_, length @ ..] = &self.head[..] else { continue };
                let Ok(length) = <[u8; 4]>::try_from(length) else { continue };
                (self.left, self.read) = (u32::from_be_bytes(length).into(), Self::HEAD as u64);
                self.head.clear();
            }
            if self.left == 0 {
                (self.read, end) = (0, at);
            }
        }
        end
    }

    /// Whether no message has begun that has not ended.
    pub(super) fn is_between(&self) -> bool {
        self.left == 0 && self.head.is_empty()
    }

    /// This many bytes of a message were read that has not ended.
    pub(super) fn unfinished(&self) -> u64 {
        self.read + self.head.len() as u64
    }

    /// How long the message is going to be that has not ended.
    fn announced(&self) -> u64 {
        self.read + self.left
    }
}

/// A body that hands on whole messages.
pub(super) struct WholeMessages {
    inner: Body,
    /// The decoder refuses a longer one, and must see its head for that.
    longest: u64,
    messages: Messages,
    /// What there is of a message that has not ended.
    held: VecDeque<Bytes>,
    ready: VecDeque<Bytes>,
    after: Option<Frame<Bytes>>,
}

impl WholeMessages {
    pub(super) fn new(inner: Body, longest: u64) -> Self {
        let (held, ready) = (VecDeque::new(), VecDeque::new());
        Self { inner, longest, messages: Messages::default(), held, ready, after: None }
    }

    fn take_in(&mut self, mut data: Bytes) {
        let whole = self.messages.advance(&data);
        if whole > 0 {
            self.ready.append(&mut self.held);
            self.ready.push_back(data.split_to(whole));
        }
        if !data.is_empty() {
            self.held.push_back(data);
        }
        if self.messages.announced() > self.longest {
            self.ready.append(&mut self.held);
        }
    }
}

impl HttpBody for WholeMessages {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        loop {
            if let Some(piece) = self.ready.pop_front() {
                return Poll::Ready(Some(Ok(Frame::data(piece))));
            }
            if let Some(after) = self.after.take() {
                return Poll::Ready(Some(Ok(after)));
            }
            match ready!(Pin::new(&mut self.inner).poll_frame(cx)).transpose()? {
                Some(frame) => match frame.into_data() {
                    Ok(data) => self.take_in(data),
                    Err(trailers) => {
                        self.after = Some(trailers);
                        let Self { held, ready, .. } = &mut *self;
                        ready.append(held);
                    }
                },
                // The decoder refuses a message that was cut off.
                None if self.held.is_empty() => return Poll::Ready(None),
                None => {
                    let Self { held, ready, .. } = &mut *self;
                    ready.append(held);
                }
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.held.is_empty() && self.ready.is_empty() && self.after.is_none() && self.inner.is_end_stream()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::{FutureExt, StreamExt, stream};
    use http_body_util::BodyExt;

    fn message(length: usize) -> Vec<u8> {
        let mut message = vec![7; 5 + length];
        message[1..5].copy_from_slice(&(length as u32).to_be_bytes());
        message
    }

    fn body(bytes: &[u8], size: usize) -> Body {
        let pieces: Vec<_> = bytes.chunks(size).map(|piece| Ok::<_, axum::Error>(piece.to_vec())).collect();
        Body::from_stream(stream::iter(pieces))
    }

    #[test]
    fn messages_are_followed_however_they_are_cut() {
        let stream: Vec<u8> = [3, 0, 300, 1].into_iter().flat_map(message).collect();
        let ends = [8, 13, 318, 324];
        for size in 1..=stream.len() {
            let (mut messages, mut at) = (Messages::default(), 0);
            for piece in stream.chunks(size) {
                let end = messages.advance(piece);
                let last = ends.iter().rev().find(|end| (at + 1..=at + piece.len()).contains(*end));
                assert_eq!(end, last.map_or(0, |last| last - at), "{at} of pieces of {size}");
                at += piece.len();
                assert_eq!(messages.is_between(), ends.contains(&at), "{at} of pieces of {size}");
                let begun = ends.iter().rev().find(|end| **end <= at).copied().unwrap_or_default();
                assert_eq!(messages.unfinished(), (at - begun) as u64, "{at} of pieces of {size}");
            }
        }
    }

    #[tokio::test]
    async fn every_byte_is_handed_on_in_order_however_it_is_cut() {
        let stream: Vec<u8> = [3, 0, 300, 1, 70].into_iter().flat_map(message).collect();
        for size in 1..=stream.len() {
            // Also of a message that is cut off.
            for length in [stream.len(), stream.len() - 9] {
                let body = WholeMessages::new(body(&stream[..length], size), 1000);
                assert_eq!(body.collect().await.unwrap().to_bytes(), stream[..length], "pieces of {size}");
            }
        }
    }

    #[tokio::test]
    async fn a_head_waits_for_its_message_unless_that_is_too_long_anyway() {
        let silent = |said: &[u8]| {
            let said = stream::iter([Ok::<_, axum::Error>(said.to_vec())]);
            Body::from_stream(said.chain(stream::pending()))
        };
        let mut begun = WholeMessages::new(silent(&message(50)[..20]), 100);
        assert!(begun.frame().now_or_never().is_none(), "nothing is handed on yet");
        let mut second = WholeMessages::new(silent(&[message(3), message(50)[..20].to_vec()].concat()), 100);
        assert_eq!(second.frame().await.unwrap().unwrap().into_data().unwrap().len(), 8);
        assert!(second.frame().now_or_never().is_none());
        let mut too_long = WholeMessages::new(silent(&message(200)[..20]), 100);
        assert_eq!(too_long.frame().await.unwrap().unwrap().into_data().unwrap().len(), 20);
    }
}
