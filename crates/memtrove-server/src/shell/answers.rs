//! Answers while they are sent. A page is in memory until its reader has taken it, so what all readers together have not taken
//! yet is bounded, and a client that does not read is let go of.
//!
//! hyper asks for more of an answer only when the piece before it is on its way. So an answer that the client does not take
//! cannot notice that by itself: its bytes lie in a place that a sweeper can empty. What hyper has by then are copies of a few
//! pieces, which go with their connection. After the last piece it asks for nothing, so over HTTP/2, where a piece may wait for
//! its window for ever, the last one is small.

use super::connection::{Connection, OpenRequest};
use super::pace::Patience;
use super::room::{Asker, Full, Room, RoomLimits, Share};
use axum::body::{Body, HttpBody};
use axum::response::Response;
use bytes::{Buf, Bytes};
use hyper::body::{Frame, SizeHint};
use std::collections::HashMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// Answers up to this are not counted: as many as a connection has streams are less than what a connection needs anyway.
const SMALL: usize = 4 * 1024;
/// Larger answers are handed on in copies of this many bytes, so that a piece that waits for its reader does not keep the whole.
const PIECE: usize = 32 * 1024;
/// The last piece over HTTP/2 has no more bytes: whether it is taken cannot be seen.
const TAIL: usize = 1024;
/// How often the sweeper looks.
const TICK: Duration = Duration::from_secs(1);

/// The answers that are being sent.
#[derive(Debug, Clone)]
pub(super) struct Answers(Arc<AnswersInner>);

#[derive(Debug)]
struct AnswersInner {
    room: Room,
    patience: Patience,
    held: Mutex<HeldAnswers>,
}

#[derive(Debug, Default)]
struct HeldAnswers {
    places: HashMap<u64, Arc<HeldAnswer>>,
    next: u64,
    /// There is a sweeper; it ends when nothing is held any more.
    swept: bool,
}

/// Where the bytes of an answer lie.
#[derive(Debug)]
struct HeldAnswer {
    connection: Arc<Connection>,
    rest: Mutex<Rest>,
}

#[derive(Debug)]
struct Rest {
    bytes: Bytes,
    /// It is handed on as it is: it is no more than a piece.
    whole: bool,
    /// `None` once it was let go of.
    share: Option<Share>,
    /// It counts in what the connection's peer must take.
    paced: bool,
    /// A piece was handed on, and none was asked for since: it waits for the peer.
    handed: bool,
    /// When its reader took something last.
    taken: Instant,
}

/// There is no room for the answer.
#[derive(Debug)]
pub(super) struct NoRoom;

impl Answers {
    pub(super) fn new(limit: u64, patience: Patience) -> Self {
        // A connection is what a reader has; a credential may be that of a service with many of them.
        let limits = RoomLimits { all: limit, credential: limit / 2, connection: limit / 4 };
        Self(Arc::new(AnswersInner { room: Room::new(limits), patience, held: Mutex::default() }))
    }

    /// Makes room for an answer and holds it there until it is taken. An answer that comes piece by piece holds no more than a
    /// piece, and its peer must take it; if it is `ready`, its first piece is the whole and only has to be asked for.
    ///
    /// An answer to something that was done finds room anyway.
    pub(super) fn hold(
        &self,
        response: Response,
        asker: &Asker,
        ready: bool,
        must: bool,
        cx: &mut Context<'_>,
    ) -> Result<Response, NoRoom> {
        match response.body().size_hint().exact() {
            Some(length) if length <= SMALL as u64 => return Ok(response),
            None if !ready => return Ok(self.watch(response, asker)),
            Some(_) | None => {}
        }
        let (head, mut body) = response.into_parts();
        let first = match Pin::new(&mut body).poll_frame(cx) {
            Poll::Ready(first) => first,
            Poll::Pending => return Ok(self.watch(Response::from_parts(head, body), asker)),
        };
        let (bytes, other) = match first {
            Some(Ok(frame)) => match frame.into_data() {
                Ok(bytes) if bytes.len() > SMALL => (Some(bytes), None),
                Ok(bytes) => (None, Some(Ok(Frame::data(bytes)))),
                Err(frame) => (None, Some(Ok(frame))),
            },
            Some(Err(error)) => (None, Some(Err(error))),
            None => (None, None),
        };
        let place = match bytes {
            Some(bytes) => self.place(bytes, asker, must)?,
            None => self.register(Bytes::new(), self.0.room.share(asker), asker),
        };
        Ok(Response::from_parts(head, Body::new(Sending { place: Some(place), other, rest: body })))
    }

    /// Whether this caller has as many answers unread as it may.
    pub(super) fn has_its_part(&self, asker: &Asker) -> bool {
        !self.0.room.is_empty() && self.0.room.share(asker).is_at_its_limit()
    }

    /// Sees to it that the peer takes what comes piece by piece. It may be silent for as long as it likes.
    fn watch(&self, response: Response, asker: &Asker) -> Response {
        let place = self.register(Bytes::new(), self.0.room.share(asker), asker);
        response.map(|rest| Body::new(Sending { place: Some(place), other: None, rest }))
    }

    fn place(&self, bytes: Bytes, asker: &Asker, must: bool) -> Result<Registered, NoRoom> {
        let (mut share, length) = (self.0.room.share(asker), bytes.len() as u64);
        match share.grow(length) {
            Ok(()) => {}
            Err(full) => {
                // Answers whose readers rest make way for new ones. A caller that has used its part must read first.
                if full == Full::Everybody {
                    self.0.let_go_of_resting();
                }
                match share.grow(length) {
                    Err(_) if must => share.grow_anyway(length),
                    grown => grown.map_err(|_| NoRoom)?,
                }
            }
        }
        Ok(self.register(bytes, share, asker))
    }

    fn register(&self, bytes: Bytes, share: Share, asker: &Asker) -> Registered {
        let connection = asker.connection.clone().unwrap_or_else(|| Connection::new(None));
        let (whole, paced) = (bytes.len() <= PIECE, !bytes.is_empty());
        if paced {
            connection.hold(self.0.patience);
        }
        let share = Some(share);
        let rest = Mutex::new(Rest { bytes, whole, share, paced, handed: false, taken: Instant::now() });
        let place = Arc::new(HeldAnswer { connection, rest });
        let mut held = self.0.held();
        let key = held.next;
        held.next += 1;
        held.places.insert(key, Arc::clone(&place));
        if !std::mem::replace(&mut held.swept, true) {
            tokio::spawn(sweep(Arc::downgrade(&self.0), TICK.min(self.0.patience.stall / 4)));
        }
        let _open = OpenRequest::on(&place.connection);
        Registered { key, place, answers: Arc::clone(&self.0), _open }
    }
}

/// Lets go of what is not taken, for as long as something is held.
async fn sweep(answers: Weak<AnswersInner>, tick: Duration) {
    loop {
        sleep(tick).await;
        let Some(answers) = answers.upgrade() else { return };
        let stall = answers.patience.stall;
        answers.let_go_where(|place, now| {
            place.rests(now) >= stall || (place.is_paced() && place.connection.is_slow(now))
        });
        let mut held = answers.held();
        if held.places.is_empty() {
            held.swept = false;
            return;
        }
    }
}

impl AnswersInner {
    fn held(&self) -> MutexGuard<'_, HeldAnswers> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets go of answers whose readers have taken nothing for a while, though they still may.
    fn let_go_of_resting(&self) {
        let a_while = self.patience.stall / 6;
        self.let_go_where(|place, now| place.rests(now) >= a_while);
    }

    fn let_go_where(&self, is_meant: impl Fn(&HeldAnswer, Instant) -> bool) {
        let now = Instant::now();
        let meant: Vec<_> =
            self.held().places.values().filter(|place| is_meant(place, now)).cloned().collect();
        for place in &meant {
            place.let_go();
        }
        if !meant.is_empty() {
            tracing::info!(answers = meant.len(), "let go of answers that were asked for and not read");
        }
    }
}

impl HeldAnswer {
    fn rest(&self) -> MutexGuard<'_, Rest> {
        self.rest.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// For how long its reader has taken nothing, though there is something to take.
    fn rests(&self, now: Instant) -> Duration {
        let rest = self.rest();
        match rest.share {
            Some(_) if rest.handed || !rest.bytes.is_empty() => now.saturating_duration_since(rest.taken),
            Some(_) | None => Duration::ZERO,
        }
    }

    fn is_paced(&self) -> bool {
        self.rest().paced
    }

    fn let_go(&self) {
        let mut rest = self.rest();
        rest.bytes = Bytes::new();
        self.end_pace(&mut rest);
        if rest.share.take().is_some() {
            self.connection.give_up();
        }
    }

    /// The next piece, or none any more because the client took nothing.
    fn take(&self) -> Result<Bytes, NotRead> {
        let mut rest = self.rest();
        if rest.share.is_none() {
            return Err(NotRead);
        }
        rest.taken = Instant::now();
        rest.handed = true;
        let length = self.before_tail(rest.bytes.len()).min(PIECE);
        let piece = if rest.whole {
            rest.bytes.split_to(length)
        } else {
            let piece = Bytes::copy_from_slice(&rest.bytes[..length]);
            rest.bytes.advance(length);
            piece
        };
        self.connection.took(piece.len());
        if rest.bytes.is_empty() {
            self.end_pace(&mut rest);
        }
        Ok(piece)
    }

    /// How many of these bytes may be handed on in one piece.
    fn before_tail(&self, length: usize) -> usize {
        match self.connection.speaks_http2() {
            true if length > TAIL => length - TAIL,
            _ => length,
        }
    }

    /// Notes that more was asked for than was held: what was handed on is on its way.
    fn ask(&self) -> Result<(), NotRead> {
        let mut rest = self.rest();
        rest.handed = false;
        rest.share.as_mut().map(Share::give_back).ok_or(NotRead)
    }

    /// Notes that a piece was handed on that was not held here.
    fn hand_on(&self) {
        let mut rest = self.rest();
        rest.handed = true;
        rest.taken = Instant::now();
    }

    fn end_pace(&self, rest: &mut Rest) {
        if std::mem::take(&mut rest.paced) {
            self.connection.let_go();
        }
    }
}

#[derive(Debug, thiserror::Error)]
#[error("the answer was not read in time")]
struct NotRead;

/// A place that is known to the sweeper for as long as this lives.
struct Registered {
    key: u64,
    place: Arc<HeldAnswer>,
    answers: Arc<AnswersInner>,
    _open: Option<OpenRequest>,
}

impl Drop for Registered {
    fn drop(&mut self) {
        self.answers.held().places.remove(&self.key);
        self.place.end_pace(&mut self.place.rest());
    }
}

/// The body of an answer that is held.
struct Sending {
    place: Option<Registered>,
    /// What came first instead of bytes to hold.
    other: Option<Result<Frame<Bytes>, axum::Error>>,
    /// What comes after them, such as trailers.
    rest: Body,
}

impl HttpBody for Sending {
    type Data = Bytes;
    type Error = axum::BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let Self { place, other, rest } = &mut *self;
        let Some(Registered { place: held, .. }) = place else { return Poll::Ready(None) };
        if let Some(other) = other.take() {
            held.hand_on();
            return Poll::Ready(Some(other.map_err(Into::into)));
        }
        if !held.rest().bytes.is_empty() {
            return Poll::Ready(Some(held.take().map(Frame::data).map_err(Into::into)));
        }
        if let Err(error) = held.ask() {
            *place = None;
            return Poll::Ready(Some(Err(error.into())));
        }
        let mut polled = Pin::new(rest).poll_frame(cx);
        match &mut polled {
            Poll::Ready(Some(Ok(frame))) => {
                if let Some(data) = frame.data_mut().filter(|data| data.len() > SMALL) {
                    let tail = data.split_off(held.before_tail(data.len()));
                    *other = (!tail.is_empty()).then_some(Ok(Frame::data(tail)));
                }
                held.hand_on();
            }
            Poll::Ready(Some(Err(_)) | None) => *place = None,
            Poll::Pending => {}
        }
        polled.map_err(Into::into)
    }

    fn is_end_stream(&self) -> bool {
        let held = self.place.as_ref().is_some_and(|held| !held.place.rest().bytes.is_empty());
        !held && self.other.is_none() && self.rest.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let held = self.place.as_ref().map_or(0, |held| held.place.rest().bytes.len());
        let first =
            self.other.as_ref().and_then(|other| other.as_ref().ok()?.data_ref()).map_or(0, Bytes::len);
        let (mut hint, known) = (self.rest.size_hint(), (held + first) as u64);
        if let Some(upper) = hint.upper() {
            hint.set_upper(upper + known);
        }
        hint.set_lower(hint.lower() + known);
        hint
    }
}

#[cfg(test)]
mod tests {
    use super::super::room::tests::asker;
    use super::*;
    use futures_util::future::poll_fn;
    use http_body_util::BodyExt;

    const PATIENCE: Patience = Patience { stall: Duration::from_secs(30), rate: 16 * 1024 };
    const PAGE: usize = 1 << 20;

    fn answers(limit: usize) -> Answers {
        Answers::new(limit as u64, PATIENCE)
    }

    async fn hold(answers: &Answers, body: impl Into<Body>, asker: &Asker) -> Result<Response, NoRoom> {
        let mut response = Some(Response::new(body.into()));
        let answer = poll_fn(|cx| {
            Poll::Ready(answers.hold(response.take().unwrap_or_default(), asker, false, false, cx))
        });
        answer.await
    }

    async fn piece(response: &mut Response) -> Result<usize, axum::Error> {
        let frame = response.body_mut().frame().await.unwrap()?;
        Ok(frame.into_data().unwrap().len())
    }

    fn reader() -> (Asker, Arc<Connection>) {
        let connection = Connection::new(None);
        (asker(&connection.id().to_string(), &connection), connection)
    }

    #[tokio::test]
    async fn an_answer_arrives_whole_and_gives_its_room_back() {
        let answers = answers(8 * PAGE);
        for length in [0, 1, SMALL, SMALL + 1, PIECE, PIECE + 1, PAGE] {
            let bytes: Vec<u8> = (0..length).map(|n| n as u8).collect();
            let response = hold(&answers, bytes.clone(), &reader().0).await.unwrap();
            assert_eq!(response.body().size_hint().exact(), Some(length as u64));
            let held = if length > SMALL { length as u64 } else { 0 };
            assert_eq!(answers.0.room.taken(), held);
            assert_eq!(response.into_body().collect().await.unwrap().to_bytes(), bytes);
            assert_eq!(answers.0.room.taken(), 0);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_ready_is_held_with_what_follows_it_and_what_comes_piece_by_piece_is_not() {
        let answers = answers(8 * PAGE);
        let (asker, _connection) = reader();
        let stream = || {
            let pieces = [Ok::<_, axum::Error>(Bytes::from(vec![7; PAGE])), Ok(Bytes::from_static(b"end"))];
            Response::new(Body::from_stream(futures_util::stream::iter(pieces)))
        };
        let held = poll_fn(|cx| Poll::Ready(answers.hold(stream(), &asker, true, false, cx))).await.unwrap();
        assert_eq!(answers.0.room.taken(), PAGE as u64);
        assert_eq!(held.into_body().collect().await.unwrap().to_bytes().len(), PAGE + 3);
        let _left =
            poll_fn(|cx| Poll::Ready(answers.hold(stream(), &asker, false, false, cx))).await.unwrap();
        assert_eq!(answers.0.room.taken(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn one_connection_has_a_quarter_and_what_was_done_is_answered_anyway() {
        let answers = answers(8 * PAGE);
        let (asker, _connection) = reader();
        let _first = hold(&answers, vec![0; PAGE], &asker).await.unwrap();
        let _second = hold(&answers, vec![0; PAGE], &asker).await.unwrap();
        assert!(hold(&answers, vec![0; PAGE], &asker).await.is_err());
        assert!(hold(&answers, vec![0; SMALL], &asker).await.is_ok());
        assert!(hold(&answers, vec![0; PAGE], &reader().0).await.is_ok());
        let response = || Response::new(Body::from(vec![0; PAGE]));
        let done = poll_fn(|cx| Poll::Ready(answers.hold(response(), &asker, false, true, cx))).await;
        assert_eq!(done.unwrap().into_body().collect().await.unwrap().to_bytes().len(), PAGE);
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_that_nobody_reads_is_let_go_of_and_its_connection_given_up() {
        let answers = answers(8 * PAGE);
        let (asker, connection) = reader();
        let mut unread = hold(&answers, vec![0; PAGE], &asker).await.unwrap();
        assert_eq!(piece(&mut unread).await.unwrap(), PIECE);
        sleep(Duration::from_secs(29)).await;
        assert_eq!((answers.0.room.taken(), connection.is_given_up()), (PAGE as u64, false));
        sleep(Duration::from_secs(3)).await;
        assert_eq!((answers.0.room.taken(), connection.is_given_up()), (0, true));
        assert!(piece(&mut unread).await.is_err());
        drop(unread);
        sleep(TICK * 2).await;
        assert!(!answers.0.held().swept, "nothing is held, so nobody sweeps");
    }

    #[tokio::test(start_paused = true)]
    async fn a_piece_that_waits_for_its_reader_counts_until_more_is_asked_for() {
        let answers = answers(8 * PAGE);
        let (asker, connection) = reader();
        // hyper takes one piece at once, whether its reader can or not.
        let mut small = hold(&answers, vec![0; PIECE], &asker).await.unwrap();
        assert_eq!(piece(&mut small).await.unwrap(), PIECE);
        assert!(small.body().is_end_stream(), "the last piece says that it is the last");
        assert_eq!(answers.0.room.taken(), PIECE as u64);
        sleep(Duration::from_secs(32)).await;
        assert_eq!((answers.0.room.taken(), connection.is_given_up()), (0, true));
    }

    #[tokio::test(start_paused = true)]
    async fn a_stream_may_be_silent_and_its_reader_may_not() {
        use futures_util::{StreamExt, stream};
        let answers = answers(8 * PAGE);
        let event = || stream::iter([Ok::<_, axum::Error>(Bytes::from_static(b"data: 1"))]);
        let (asker, connection) = reader();
        let mut quiet =
            hold(&answers, Body::from_stream(event().chain(stream::pending())), &asker).await.unwrap();
        assert_eq!(piece(&mut quiet).await.unwrap(), 7);
        let hour = tokio::time::timeout(Duration::from_secs(3600), piece(&mut quiet));
        assert!(hour.await.is_err());
        assert!(!connection.is_given_up(), "it had nothing to say");
        let (asker, connection) = reader();
        let mut unread = hold(&answers, Body::from_stream(event().chain(event())), &asker).await.unwrap();
        assert_eq!(piece(&mut unread).await.unwrap(), 7);
        sleep(Duration::from_secs(32)).await;
        assert!(connection.is_given_up(), "it had, and nobody took it");
        assert!(piece(&mut unread).await.is_err());
    }

    #[tokio::test(start_paused = true)]
    async fn a_slow_reader_is_served_and_one_below_the_rate_is_not() {
        let answers = answers(64 * PAGE);
        for (pause, is_served) in [(1, true), (2, true), (10, false)] {
            let (asker, connection) = reader();
            let mut answer = hold(&answers, vec![0; 8 * PAGE], &asker).await.unwrap();
            let mut taken = 0;
            while taken < 8 * PAGE {
                let Ok(length) = piece(&mut answer).await else { break };
                taken += length;
                sleep(Duration::from_secs(pause)).await;
            }
            assert_eq!((taken == 8 * PAGE, connection.is_given_up()), (is_served, !is_served), "{pause} s");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn answers_of_one_connection_share_its_rate() {
        let answers = answers(64 * PAGE);
        let (asker, connection) = reader();
        let mut side_by_side = Vec::new();
        for _ in 0..16 {
            side_by_side.push(hold(&answers, vec![0; PAGE], &asker).await.unwrap());
        }
        // 32 KiB a second for all of them: each is slower than a reader may be.
        for turn in 0..400 {
            sleep(Duration::from_secs(1)).await;
            assert_eq!(piece(&mut side_by_side[turn % 16]).await.unwrap(), PIECE);
        }
        assert!(!connection.is_given_up());
    }

    #[tokio::test(start_paused = true)]
    async fn where_there_is_no_room_those_go_first_whose_readers_rest() {
        let answers = answers(4 * PAGE);
        let mut unread = Vec::new();
        for _ in 0..4 {
            unread.push(hold(&answers, vec![0; PAGE], &reader().0).await.unwrap());
        }
        assert!(hold(&answers, vec![0; PAGE], &reader().0).await.is_err());
        sleep(Duration::from_secs(6)).await;
        piece(&mut unread[0]).await.unwrap();
        let served = hold(&answers, vec![0; PAGE], &reader().0).await.unwrap();
        assert_eq!(served.into_body().collect().await.unwrap().to_bytes().len(), PAGE);
        assert!(piece(&mut unread[0]).await.is_ok(), "its reader reads");
        assert!(piece(&mut unread[1]).await.is_err());
    }
}
