//! The bodies of requests while they come. One body has a limit of its own; without one for all together, enough callers could
//! still fill the memory with bodies that wait for their turn in the store. A body takes room as it comes, whatever length was
//! announced, and it must come: a client that keeps us waiting for the rest is given up.

use super::body_limit::linger;
use super::pace::{Pace, Patience};
use super::room::{Asker, Room, RoomLimits, Share};
use super::whole_messages::Messages;
use axum::body::{Body, HttpBody};
use axum::extract::Request;
use bytes::Bytes;
use http::Version;
use http::header::EXPECT;
use hyper::body::{Frame, SizeHint};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use tokio::time::{Instant, Sleep, sleep_until};

/// The bodies of requests under way.
#[derive(Debug, Clone)]
pub(super) struct Bodies {
    room: Room,
    patience: Patience,
}

impl Bodies {
    pub(super) fn new(limit: u64, patience: Patience) -> Self {
        // A quarter for a caller. A connection may be that of several behind a proxy, so it has twice as much: no
        // credential alone fills it.
        let limits = RoomLimits { all: limit, credential: limit / 4, connection: limit / 2 };
        Self { room: Room::new(limits), patience }
    }

    /// Lets a body take room as it comes; its request keeps that until the end. Of a stream, only the message that is being
    /// read takes room. A request without a body has nothing to watch.
    pub(super) fn watch(&self, request: &mut Request, asker: &Asker, streamed: bool) -> Option<Watched> {
        if request.body().is_end_stream() {
            return None;
        }
        let watched = Watched(Arc::new(Fate {
            stage: AtomicU8::new(STARTED),
            refused: AtomicBool::new(false),
            late: AtomicBool::new(false),
            cut_off: AtomicBool::new(false),
            share: Mutex::new(self.room.share(asker)),
        }));
        *request.body_mut() = Body::new(Arriving {
            inner: std::mem::take(request.body_mut()),
            messages: streamed.then(Messages::default),
            ended: true,
            pace: Pace::new(self.patience),
            sleep: None,
            // A client that asks whether to send it is told by the answer not to.
            lingers: request.version() < Version::HTTP_2 && !request.headers().contains_key(EXPECT),
            watched: watched.clone(),
        });
        Some(watched)
    }
}

/// A body while it comes.
struct Arriving {
    inner: Body,
    /// Where it is in its messages, if each is done with before the next is read.
    messages: Option<Messages>,
    /// What was read last was the end of one.
    ended: bool,
    pace: Pace,
    /// Made when the rest has to be waited for: most bodies are there at once, and timers are not free.
    sleep: Option<Pin<Box<Sleep>>>,
    /// Whether the rest of a refused body is read: over HTTP/1.1 the next request comes after it.
    lingers: bool,
    watched: Watched,
}

/// What becomes of a body, for its request to know. The room that the body took is given back with the last of these.
#[derive(Debug, Clone)]
pub(super) struct Watched(Arc<Fate>);

#[derive(Debug)]
struct Fate {
    stage: AtomicU8,
    refused: AtomicBool,
    late: AtomicBool,
    cut_off: AtomicBool,
    share: Mutex<Share>,
}

/// Not all of it was read, and more is not awaited just now.
const STARTED: u8 = 0;
/// The rest is waited for.
const AWAITED: u8 = 1;
/// It was read to its end, or is not read any further.
const DONE: u8 = 2;

impl Watched {
    /// Whether there was no room for the rest of it.
    pub(super) fn was_refused(&self) -> bool {
        self.0.refused.load(Ordering::Relaxed)
    }

    /// Whether the rest of it did not come in time.
    pub(super) fn was_late(&self) -> bool {
        self.0.late.load(Ordering::Relaxed)
    }

    /// Whether its sender went before its end.
    pub(super) fn was_cut_off(&self) -> bool {
        self.0.cut_off.load(Ordering::Relaxed)
    }

    /// Whether its handler waits for the rest of it.
    pub(super) fn is_awaited(&self) -> bool {
        self.0.stage.load(Ordering::Relaxed) == AWAITED
    }

    /// Whether its handler has all that it will have of it.
    pub(super) fn is_done(&self) -> bool {
        self.0.stage.load(Ordering::Relaxed) == DONE
    }

    fn is_now(&self, stage: u8) {
        self.0.stage.store(stage, Ordering::Relaxed);
    }

    fn share(&self) -> MutexGuard<'_, Share> {
        self.0.share.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[derive(Debug, thiserror::Error)]
enum Broken {
    #[error("there is no room for this body now")]
    NoRoom,
    #[error("the rest of the body did not come in time")]
    Late,
}

impl Arriving {
    /// Waits for more, for as long as its sender may take.
    fn wait(&mut self, cx: &mut Context<'_>) -> Poll<Broken> {
        if self.messages.is_some() && self.ended {
            // Between messages a stream may be silent for as long as it likes.
            return Poll::Pending;
        }
        self.watched.is_now(AWAITED);
        let until = self.pace.wait(Instant::now());
        let sleep = self.sleep.get_or_insert_with(|| Box::pin(sleep_until(until)));
        if sleep.deadline() != until {
            sleep.as_mut().reset(until);
        }
        sleep.as_mut().poll(cx).map(|()| {
            self.watched.0.late.store(true, Ordering::Relaxed);
            self.watched.is_now(DONE);
            Broken::Late
        })
    }

    fn take_in(&mut self, data: &Bytes) -> Result<(), Broken> {
        self.pace.moved(data.len());
        if let Some(messages) = &mut self.messages {
            messages.advance(data);
            self.ended = messages.is_between();
            if self.ended {
                self.pace.restart();
            }
        }
        let grown = self.watched.share().grow(data.len() as u64);
        grown.map_err(|_| {
            self.watched.0.refused.store(true, Ordering::Relaxed);
            self.watched.is_now(DONE);
            // Closing at once would reset the connection, and the sender would not see why.
            linger(std::mem::take(&mut self.inner));
            Broken::NoRoom
        })
    }
}

impl HttpBody for Arriving {
    type Data = Bytes;
    type Error = axum::BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        if let Some(messages) = &self.messages {
            // A reader that goes on has done with the messages before.
            self.watched.share().keep(messages.unfinished());
        }
        let Poll::Ready(polled) = Pin::new(&mut self.inner).poll_frame(cx) else {
            return self.wait(cx).map(|broken| Some(Err(broken.into())));
        };
        let Some(Ok(frame)) = polled else {
            self.watched.is_now(DONE);
            self.watched.0.cut_off.store(polled.is_some(), Ordering::Relaxed);
            return Poll::Ready(polled.map(|failed| failed.map_err(Into::into)));
        };
        if let Some(data) = frame.data_ref()
            && let Err(broken) = self.take_in(data)
        {
            return Poll::Ready(Some(Err(broken.into())));
        }
        self.watched.is_now(if self.inner.is_end_stream() { DONE } else { STARTED });
        Poll::Ready(Some(Ok(frame)))
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

impl Drop for Arriving {
    fn drop(&mut self) {
        // It is not read any further. If it is dropped with its handler, no answer is due.
        self.watched.is_now(DONE);
        if self.lingers && !self.watched.was_late() && !self.inner.is_end_stream() {
            // hyper would close the connection without a word in the answer, and the caller's next request with it.
            linger(std::mem::take(&mut self.inner));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::connection::Connection;
    use super::super::room::tests::asker;
    use super::*;
    use futures_util::{StreamExt, stream};
    use std::time::Duration;

    const PATIENCE: Patience = Patience { stall: Duration::from_secs(30), rate: 16 * 1024 };

    fn bodies(limit: u64) -> Bodies {
        Bodies::new(limit, PATIENCE)
    }

    /// A caller that is no one else.
    fn somebody() -> Asker {
        let connection = Connection::new(None);
        asker(&connection.id().to_string(), &connection)
    }

    fn pieces(bytes: Vec<u8>, size: usize) -> Request {
        let pieces: Vec<_> = bytes.chunks(size).map(|piece| Ok::<_, axum::Error>(piece.to_vec())).collect();
        Request::new(Body::from_stream(stream::iter(pieces)))
    }

    /// A body that says something and then nothing any more.
    fn falls_silent(said: Vec<u8>) -> Request {
        let said = stream::iter([Ok::<_, axum::Error>(said)]);
        Request::new(Body::from_stream(said.chain(stream::pending())))
    }

    /// Reads a body to its end, or to where it was refused.
    async fn read(request: &mut Request) -> Result<usize, axum::Error> {
        let body = std::mem::take(request.body_mut());
        http_body_util::BodyExt::collect(body).await.map(|read| read.to_bytes().len())
    }

    async fn next(body: &mut Body) -> Option<Result<Frame<Bytes>, axum::Error>> {
        std::future::poll_fn(|cx| Pin::new(&mut *body).poll_frame(cx)).await
    }

    #[tokio::test]
    async fn a_body_takes_room_as_it_comes_and_its_request_keeps_it() {
        let bodies = bodies(100);
        let mut other = bodies.room.share(&somebody());
        other.grow(60).unwrap();
        let mut small = Request::new(Body::from(vec![0; 40]));
        let watched = bodies.watch(&mut small, &somebody(), false).unwrap();
        assert_eq!(bodies.room.taken(), 60, "nothing has come yet, whatever was announced");
        assert_eq!(read(&mut small).await.unwrap(), 40);
        assert_eq!(bodies.room.taken(), 100);
        assert!(watched.is_done() && !watched.was_refused());
        drop(watched);
        let mut large = Request::new(Body::from(vec![0; 41]));
        let watched = bodies.watch(&mut large, &somebody(), false).unwrap();
        assert!(read(&mut large).await.is_err());
        assert!(watched.was_refused());
        drop((other, watched));
        assert_eq!(bodies.room.taken(), 0);
    }

    #[tokio::test]
    async fn a_caller_that_stalls_leaves_room_for_others() {
        let bodies = bodies(1000);
        let attacker = somebody();
        let mut stalled = Vec::new();
        for _ in 0..13 {
            let mut request = falls_silent(vec![0; 50]);
            let watched = bodies.watch(&mut request, &attacker, false).unwrap();
            let _refused_or_not = next(request.body_mut()).await;
            stalled.push((request, watched));
        }
        assert_eq!(bodies.room.taken(), 250);
        let mut honest = Request::new(Body::from(vec![0; 200]));
        let _watched = bodies.watch(&mut honest, &somebody(), false).unwrap();
        assert_eq!(read(&mut honest).await.unwrap(), 200);
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_whose_rest_does_not_come_is_given_up() {
        let bodies = bodies(100);
        let mut request = falls_silent(vec![0; 20]);
        let watched = bodies.watch(&mut request, &somebody(), false).unwrap();
        assert!(next(request.body_mut()).await.unwrap().is_ok());
        let start = Instant::now();
        let waiting = tokio::time::timeout(Duration::from_secs(29), next(request.body_mut()));
        assert!(waiting.await.is_err() && watched.is_awaited() && !watched.is_done());
        assert!(next(request.body_mut()).await.unwrap().is_err());
        assert_eq!(start.elapsed().as_secs(), 30);
        assert!(watched.was_late() && watched.is_done());
        drop((request, watched));
        assert_eq!(bodies.room.taken(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_that_comes_slowly_but_steadily_is_read() {
        let bodies = bodies(1 << 30);
        let slow = |bytes: usize, seconds: u64| {
            let pieces = stream::iter(0..600).then(move |_| async move {
                tokio::time::sleep(Duration::from_secs(seconds)).await;
                Ok::<_, axum::Error>(vec![0; bytes])
            });
            Request::new(Body::from_stream(pieces))
        };
        let mut mobile = slow(64_000, 1);
        let _watched = bodies.watch(&mut mobile, &somebody(), false).unwrap();
        assert_eq!(read(&mut mobile).await.unwrap(), 600 * 64_000);
        let mut trickle = slow(100, 1);
        let watched = bodies.watch(&mut trickle, &somebody(), false).unwrap();
        assert!(read(&mut trickle).await.is_err() && watched.was_late());
    }

    fn message(length: usize) -> Vec<u8> {
        let mut message = vec![0; 5 + length];
        message[1..5].copy_from_slice(&(length as u32).to_be_bytes());
        message
    }

    #[tokio::test]
    async fn of_a_stream_only_the_message_that_is_read_takes_room() {
        let bodies = bodies(100);
        let mut other = bodies.room.share(&somebody());
        other.grow(1).unwrap();
        let mut stream = pieces(vec![message(45); 20].concat(), 25);
        let watched = bodies.watch(&mut stream, &somebody(), true).unwrap();
        assert_eq!(read(&mut stream).await.unwrap(), 20 * 50);
        assert!(!watched.was_refused());
        drop(watched);
        // Cut so that no piece ends with a message.
        let mut stream = pieces(vec![message(45); 40].concat(), 33);
        let watched = bodies.watch(&mut stream, &somebody(), true).unwrap();
        assert_eq!(read(&mut stream).await.unwrap(), 40 * 50);
        assert!(!watched.was_refused());
        drop(watched);
        let mut stream = pieces(message(200), 7);
        let watched = bodies.watch(&mut stream, &somebody(), true).unwrap();
        assert!(read(&mut stream).await.is_err());
        assert!(watched.was_refused());
        drop((other, watched));
        assert_eq!(bodies.room.taken(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn a_stream_that_is_silent_between_messages_takes_no_room_and_goes_on() {
        let bodies = bodies(100);
        let mut stream = falls_silent(message(45));
        let watched = bodies.watch(&mut stream, &somebody(), true).unwrap();
        assert!(next(stream.body_mut()).await.unwrap().is_ok());
        assert!(tokio::time::timeout(Duration::from_secs(3600), next(stream.body_mut())).await.is_err());
        assert_eq!((bodies.room.taken(), watched.was_late()), (0, false));
    }

    #[tokio::test(start_paused = true)]
    async fn a_message_whose_rest_does_not_come_is_not_waited_for_without_end() {
        let bodies = bodies(100);
        let mut stream = falls_silent(message(45)[..20].to_vec());
        let watched = bodies.watch(&mut stream, &somebody(), true).unwrap();
        assert!(next(stream.body_mut()).await.unwrap().is_ok());
        assert!(next(stream.body_mut()).await.unwrap().is_err());
        assert!(watched.was_late());
        drop((stream, watched));
        assert_eq!(bodies.room.taken(), 0);
    }
}
