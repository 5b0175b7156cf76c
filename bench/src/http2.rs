//! HTTP/2 for the load generator: connections that number prebuilt frames and read just enough of the answers.
//!
//! It is to HTTP/2 what [`load`](crate::load) is to HTTP/1.1, so that both sides of a comparison have a client that costs about
//! the same. A request is the bytes that go over the wire but for the numbers of streams. There is no table of headers to
//! keep: what all requests of a connection have in common is told once when it is opened (see [`Head`]), and of an answer's
//! headers nothing is read but their first byte.

use crate::load::Run;
use crate::sender::Sender;
use anyhow::{Context as _, Result, bail, ensure};
use std::collections::VecDeque;
use std::future::poll_fn;
use std::io::IoSlice;
use std::net::SocketAddr;
use std::ops::Range;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Instant;
use tokio::io::{AsyncRead as _, AsyncWrite as _, ReadBuf};
use tokio::net::TcpStream;

/// What connections of a side speak.
#[derive(Debug, Clone)]
pub struct Wire {
    /// The request that tells what all have in common.
    primer: Arc<[u8]>,
    /// What a good answer is.
    answers: Answers,
    /// Requests that one connection has under way.
    pub streams: usize,
}

/// What a good answer is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Answers {
    /// A whole message. Calls that fail are answered without any.
    Message,
    /// A body that does not begin as errors do.
    Body,
}

/// The fields that all requests of a connection have, each with its name and value.
#[derive(Debug, Clone)]
pub struct Head {
    method: u8,
    fields: Vec<(&'static str, String)>,
    answers: Answers,
}

const FRAME: usize = 9;
/// The largest payload of a frame that everybody accepts.
const PAYLOAD: usize = 16_384;
/// Requests from this size on are not copied before they are sent.
const LARGE: usize = 64 * 1024;
/// The largest window there is: nobody waits for this client.
const WINDOW: u32 = (1 << 31) - 1;
/// What the window of a connection is before anybody says otherwise, and that of a stream.
const FIRST_WINDOW: u32 = 65_535;

mod kind {
    pub const DATA: u8 = 0;
    pub const HEADERS: u8 = 1;
    pub const RESET: u8 = 3;
    pub const SETTINGS: u8 = 4;
    pub const PING: u8 = 6;
    pub const GO_AWAY: u8 = 7;
    pub const WINDOW_UPDATE: u8 = 8;
}

mod flag {
    pub const END_STREAM: u8 = 1;
    pub const ACK: u8 = 1;
    pub const END_HEADERS: u8 = 4;
}

/// Places in the table of headers that is the same everywhere.
mod table {
    pub const GET: u8 = 2;
    pub const POST: u8 = 3;
    pub const PATH: u8 = 4;
    pub const HTTP: u8 = 6;
    pub const STATUS_200: u8 = 8;
    pub const AUTHORIZATION: u8 = 23;
    pub const CONTENT_LENGTH: u8 = 28;
    /// The first that belongs to the connection: what was told last.
    pub const NEWEST: u8 = 62;
}

const INITIAL_WINDOW_SIZE: u16 = 4;

impl Head {
    /// Of calls of one method.
    pub fn of_calls(path: &str) -> Self {
        let fields = vec![
            (":path", path.to_owned()),
            (":authority", "localhost".to_owned()),
            ("content-type", "application/grpc".to_owned()),
            ("te", "trailers".to_owned()),
            ("x-api-key", "bench-agent".to_owned()),
        ];
        Self { method: table::POST, fields, answers: Answers::Message }
    }

    /// Of REST requests, with a body or without.
    pub fn of_requests(method: &str) -> Result<Self> {
        let mut fields =
            vec![(":authority", "localhost".to_owned()), ("x-api-key", "bench-agent".to_owned())];
        let method = match method {
            "GET" => table::GET,
            "POST" => {
                fields.push(("content-type", "application/json".to_owned()));
                table::POST
            }
            other => bail!("no requests with the method {other} are measured over HTTP/2"),
        };
        Ok(Self { method, fields, answers: Answers::Body })
    }

    /// What connections with this head speak, with so many requests under way on each.
    pub fn wire(&self, streams: usize) -> Wire {
        let mut block = vec![0x80 | self.method, 0x80 | table::HTTP];
        if !self.fields.iter().any(|(name, _)| *name == ":path") {
            literal(&mut block, table::PATH, "/v1/health");
        }
        for (name, value) in &self.fields {
            // A field that is kept from now on, with a name of its own.
            block.push(0x40);
            string(&mut block, name);
            string(&mut block, value);
        }
        let mut primer = Vec::new();
        frame(&mut primer, kind::HEADERS, flag::END_HEADERS | flag::END_STREAM, &block);
        Wire { primer: primer.into(), answers: self.answers, streams }
    }

    /// The call of a user with this message.
    pub fn call(&self, user: &str, message: &[u8]) -> Vec<u8> {
        let mut body = vec![0];
        body.extend_from_slice(&(message.len() as u32).to_be_bytes());
        body.extend_from_slice(message);
        let mut block = self.common();
        literal(&mut block, table::AUTHORIZATION, &format!("Bearer {user}"));
        frames(&block, &body)
    }

    /// The request of a user for this path.
    pub fn request(&self, user: &str, path: &str, body: &[u8]) -> Vec<u8> {
        let mut block = vec![0x80 | self.method, 0x80 | table::HTTP];
        literal(&mut block, table::PATH, path);
        block.extend_from_slice(&self.common()[2..]);
        literal(&mut block, table::AUTHORIZATION, &format!("Bearer {user}"));
        if !body.is_empty() {
            literal(&mut block, table::CONTENT_LENGTH, &body.len().to_string());
        }
        frames(&block, body)
    }

    /// The fields that were told when the connection was opened, each by its place.
    fn common(&self) -> Vec<u8> {
        let places = (0..self.fields.len() as u8).rev().map(|place| 0x80 | (table::NEWEST + place));
        [0x80 | self.method, 0x80 | table::HTTP].into_iter().chain(places).collect()
    }
}

/// A field that is not kept, whose name has a place.
fn literal(block: &mut Vec<u8>, name: u8, value: &str) {
    // Four bits for the place, and more where it does not fit.
    match name.checked_sub(15) {
        None => block.push(name),
        Some(rest) => block.extend_from_slice(&[15, rest]),
    }
    string(block, value);
}

fn string(block: &mut Vec<u8>, text: &str) {
    match text.len().checked_sub(127) {
        None => block.push(text.len() as u8),
        Some(mut rest) => {
            block.push(127);
            while rest >= 128 {
                block.push(rest as u8 | 128);
                rest >>= 7;
            }
            block.push(rest as u8);
        }
    }
    block.extend_from_slice(text.as_bytes());
}

fn frame(out: &mut Vec<u8>, kind: u8, flags: u8, payload: &[u8]) {
    out.extend_from_slice(&(payload.len() as u32).to_be_bytes()[1..]);
    out.extend_from_slice(&[kind, flags, 0, 0, 0, 0]);
    out.extend_from_slice(payload);
}

/// A request without the number of its stream.
fn frames(block: &[u8], body: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(block.len() + body.len() + FRAME * (2 + body.len() / PAYLOAD));
    let end = |is_last: bool| if is_last { flag::END_STREAM } else { 0 };
    frame(&mut out, kind::HEADERS, flag::END_HEADERS | end(body.is_empty()), block);
    let mut rest = body;
    while !rest.is_empty() {
        let (now, later) = rest.split_at(rest.len().min(PAYLOAD));
        frame(&mut out, kind::DATA, end(later.is_empty()), now);
        rest = later;
    }
    out
}

/// The frames of a request.
fn each_frame(mut request: &[u8]) -> impl Iterator<Item = &[u8]> {
    std::iter::from_fn(move || {
        let length = FRAME + length_of(request.get(..3)?);
        let (frame, rest) = request.split_at(length);
        request = rest;
        Some(frame)
    })
}

fn length_of(three: &[u8]) -> usize {
    three.iter().fold(0, |length, byte| length << 8 | usize::from(*byte))
}

/// How much of a request counts against windows.
fn data_in(request: &[u8]) -> i64 {
    each_frame(request).filter(|frame| frame[3] == kind::DATA).map(|frame| (frame.len() - FRAME) as i64).sum()
}

/// What happened to a stream.
pub enum Event {
    /// A part of the body is at this place.
    Data(Range<usize>),
    /// Headers begin with this byte.
    Headers(u8),
    /// The server gave it up, for this reason.
    Reset(u32),
}

/// An event, its stream, and whether it is the last.
pub struct Happened {
    /// The number of the stream.
    pub stream: u32,
    /// What happened.
    pub event: Event,
    /// Whether nothing follows.
    pub is_last: bool,
}

/// A connection and the buffer its answers arrive in.
pub struct Connection {
    socket: TcpStream,
    answers: Answers,
    /// What arrived and is not yet looked at is in this part.
    buffer: Vec<u8>,
    unread: Range<usize>,
    /// Frames to be sent with the next request.
    out: Vec<u8>,
    next_stream: u32,
    /// How much may be sent before the server says more.
    window: i64,
    stream_window: i64,
    /// How much was received since the server was last told that it may send more.
    received: u32,
}

impl Connection {
    /// Connects, and tells what all requests will have in common.
    pub async fn open(address: SocketAddr, wire: &Wire) -> Result<Self> {
        let socket =
            TcpStream::connect(address).await.with_context(|| format!("cannot connect to {address}"))?;
        socket.set_nodelay(true)?;
        let mut connection = Self {
            socket,
            answers: wire.answers,
            buffer: vec![0; 64 * 1024],
            unread: 0..0,
            out: b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec(),
            next_stream: 1,
            window: FIRST_WINDOW.into(),
            stream_window: FIRST_WINDOW.into(),
            received: 0,
        };
        let mut settings = INITIAL_WINDOW_SIZE.to_be_bytes().to_vec();
        settings.extend_from_slice(&WINDOW.to_be_bytes());
        frame(&mut connection.out, kind::SETTINGS, 0, &settings);
        frame(&mut connection.out, kind::WINDOW_UPDATE, 0, &(WINDOW - FIRST_WINDOW).to_be_bytes());
        // What the answer says is of no interest, but all that it needs has been told when it is there.
        connection.exchange(&wire.primer).await?;
        Ok(connection)
    }

    /// Sends a request; the number of its stream.
    pub async fn send(&mut self, request: &[u8]) -> Result<u32> {
        let stream = self.number(request)?;
        self.flush().await?;
        Ok(stream)
    }

    /// Sends one request and waits for its whole answer: the beginning of its headers, and its body.
    pub async fn exchange(&mut self, request: &[u8]) -> Result<(u8, Vec<u8>)> {
        while !self.has_room_for(request)? {
            while self.next()?.is_some() {}
            self.receive().await?;
        }
        let stream = self.send(request).await?;
        let (mut first, mut body) = (None, Vec::new());
        loop {
            while let Some(happened) = self.next()? {
                ensure!(happened.stream == stream, "an answer to what was not asked");
                match happened.event {
                    Event::Data(range) => body.extend_from_slice(&self.buffer[range]),
                    Event::Headers(byte) => _ = first.get_or_insert(byte),
                    Event::Reset(code) => bail!("the server gave a stream up with code {code}"),
                }
                if happened.is_last {
                    return Ok((first.unwrap_or_default(), body));
                }
            }
            self.receive().await?;
        }
    }

    /// Why an answer is none that a measurement may have.
    pub fn failure(&self, first: u8, body: &[u8]) -> Option<String> {
        match self.answers {
            Answers::Message => match body.split_at_checked(5) {
                Some((prefix, message)) if length_of(&prefix[1..]) == message.len() => None,
                _ => Some(format!("a call failed: its answer has {} bytes of a message", body.len())),
            },
            Answers::Body if first == 0x80 | table::STATUS_200 => None,
            Answers::Body if !body.starts_with(br#"{"error""#) => None,
            Answers::Body => Some(String::from_utf8_lossy(&body[..body.len().min(300)]).into_owned()),
        }
    }

    fn has_room_for(&self, request: &[u8]) -> Result<bool> {
        let data = data_in(request);
        ensure!(data <= self.stream_window, "a request is larger than a stream may be");
        Ok(data <= self.window)
    }

    /// Puts a request behind what is to be sent.
    fn number(&mut self, request: &[u8]) -> Result<u32> {
        let stream = self.take_stream(request)?;
        for frame in each_frame(request) {
            self.out.extend_from_slice(&frame[..5]);
            self.out.extend_from_slice(&stream.to_be_bytes());
            self.out.extend_from_slice(&frame[FRAME..]);
        }
        Ok(stream)
    }

    fn take_stream(&mut self, request: &[u8]) -> Result<u32> {
        let stream = self.next_stream;
        ensure!(stream < WINDOW, "a connection has no more numbers for streams");
        self.next_stream += 2;
        self.window -= data_in(request);
        Ok(stream)
    }

    /// Sends a large request from where it is, after what else is to be sent.
    async fn send_large(&mut self, request: &[u8]) -> Result<u32> {
        let stream = self.take_stream(request)?;
        let mut heads = std::mem::take(&mut self.out);
        let mut ends = vec![];
        for frame in each_frame(request) {
            heads.extend_from_slice(&frame[..5]);
            heads.extend_from_slice(&stream.to_be_bytes());
            ends.push(heads.len());
        }
        let mut slices = Vec::with_capacity(2 * ends.len());
        let mut from = 0;
        for (frame, to) in each_frame(request).zip(ends) {
            slices.extend([IoSlice::new(&heads[from..to]), IoSlice::new(&frame[FRAME..])]);
            from = to;
        }
        let mut rest = &mut slices[..];
        while !rest.is_empty() {
            let sent =
                poll_fn(|context| Pin::new(&mut self.socket).poll_write_vectored(context, rest)).await?;
            IoSlice::advance_slices(&mut rest, sent);
        }
        Ok(stream)
    }

    async fn flush(&mut self) -> Result<()> {
        let mut sent = 0;
        while sent < self.out.len() {
            let rest = &self.out[sent..];
            sent += poll_fn(|context| Pin::new(&mut self.socket).poll_write(context, rest)).await?;
        }
        self.out.clear();
        Ok(())
    }

    /// Reads once, behind what is there already, after what is to be sent was sent.
    pub async fn receive(&mut self) -> Result<()> {
        if !self.out.is_empty() {
            self.flush().await?;
        }
        if self.unread.is_empty() {
            self.unread = 0..0;
        } else if self.unread.end == self.buffer.len() {
            self.buffer.copy_within(self.unread.clone(), 0);
            self.unread = 0..self.unread.len();
            if self.unread.end == self.buffer.len() {
                self.buffer.resize(2 * self.unread.end, 0);
            }
        }
        let mut space = ReadBuf::new(&mut self.buffer[self.unread.end..]);
        poll_fn(|context| Pin::new(&mut self.socket).poll_read(context, &mut space)).await?;
        match space.filled().len() {
            0 => bail!("the server closed the connection in the middle of an exchange"),
            received => self.unread.end += received,
        }
        Ok(())
    }

    /// The next thing that happened to a stream, among what has arrived.
    pub fn next(&mut self) -> Result<Option<Happened>> {
        while self.unread.len() >= FRAME {
            let head = &self.buffer[self.unread.start..][..FRAME];
            let (length, kind, flags) = (length_of(&head[..3]), head[3], head[4]);
            let stream = u32::from_be_bytes([head[5], head[6], head[7], head[8]]);
            if self.unread.len() < FRAME + length {
                break;
            }
            let payload = self.unread.start + FRAME..self.unread.start + FRAME + length;
            self.unread.start = payload.end;
            let is_last = flags & flag::END_STREAM != 0;
            let (event, is_last) = match kind {
                kind::DATA => {
                    self.take_note_of(length as u32);
                    (Event::Data(payload), is_last)
                }
                kind::HEADERS => (Event::Headers(self.buffer[payload.start]), is_last),
                kind::RESET => (Event::Reset(self.number_at(payload.start)), true),
                _ => {
                    self.look_after(kind, flags, stream, payload)?;
                    continue;
                }
            };
            return Ok(Some(Happened { stream, event, is_last }));
        }
        Ok(None)
    }

    fn number_at(&self, at: usize) -> u32 {
        self.buffer[at..at + 4].iter().fold(0, |number, byte| number << 8 | u32::from(*byte))
    }

    /// Lets the server send more, long before it has to wait.
    fn take_note_of(&mut self, received: u32) {
        self.received += received;
        if self.received > WINDOW / 4 {
            frame(&mut self.out, kind::WINDOW_UPDATE, 0, &self.received.to_be_bytes());
            self.received = 0;
        }
    }

    /// What concerns the connection.
    fn look_after(&mut self, kind: u8, flags: u8, stream: u32, payload: Range<usize>) -> Result<()> {
        match kind {
            kind::SETTINGS if flags & flag::ACK == 0 => {
                for at in payload.step_by(6) {
                    if self.buffer[at..at + 2] == INITIAL_WINDOW_SIZE.to_be_bytes() {
                        self.stream_window = self.number_at(at + 2).into();
                    }
                }
                frame(&mut self.out, kind::SETTINGS, flag::ACK, &[]);
            }
            kind::WINDOW_UPDATE if stream == 0 => self.window += i64::from(self.number_at(payload.start)),
            kind::PING if flags & flag::ACK == 0 => {
                let payload = self.buffer[payload].to_vec();
                frame(&mut self.out, kind::PING, flag::ACK, &payload);
            }
            kind::GO_AWAY => bail!("the server wants no more of this connection"),
            _ => {}
        }
        Ok(())
    }

    /// Lets each sender send on a stream of its own, one request after the other. A request counts when its answer arrives
    /// within the measured time.
    pub async fn repeat(mut self, senders: Vec<Sender>, begin: Instant, end: Instant) -> (Run, Vec<Sender>) {
        let mut run = Run::default();
        let mut slots: Vec<Slot> = senders.into_iter().map(Slot::new).collect();
        if let Err(error) = self.take_turns(&mut slots, &mut run, begin, end).await {
            // The connection is in an unknown state: it is over.
            run.fail(format!("{error:#}"));
        }
        (run, slots.into_iter().map(|slot| slot.sender).collect())
    }

    async fn take_turns(
        &mut self,
        slots: &mut [Slot],
        run: &mut Run,
        begin: Instant,
        end: Instant,
    ) -> Result<()> {
        let mut ready: VecDeque<usize> = (0..slots.len()).collect();
        let mut under_way = 0;
        loop {
            while let Some(&index) = ready.front() {
                let slot = &mut slots[index];
                let request = slot.sender.request();
                if !self.has_room_for(request)? {
                    break;
                }
                slot.sent = Instant::now();
                slot.stream = if request.len() < LARGE {
                    self.number(request)?
                } else {
                    self.send_large(request).await?
                };
                ready.pop_front();
                under_way += 1;
            }
            if under_way == 0 && ready.is_empty() {
                return Ok(());
            }
            self.receive().await?;
            while let Some(Happened { stream, event, is_last }) = self.next()? {
                let Some(index) = slots.iter().position(|slot| slot.stream == stream) else { continue };
                match event {
                    Event::Data(range) => slots[index].body.extend_from_slice(&self.buffer[range]),
                    Event::Headers(byte) => _ = slots[index].first.get_or_insert(byte),
                    Event::Reset(code) => bail!("the server gave a stream up with code {code}"),
                }
                if is_last {
                    under_way -= 1;
                    let slot = &mut slots[index];
                    let failure = self.failure(slot.first.unwrap_or_default(), &slot.body);
                    if slot.answered(failure, run, begin, end)? {
                        ready.push_back(index);
                    }
                }
            }
        }
    }
}

/// A sender and the stream that its last request is on.
struct Slot {
    sender: Sender,
    stream: u32,
    sent: Instant,
    first: Option<u8>,
    body: Vec<u8>,
}

impl Slot {
    fn new(sender: Sender) -> Self {
        Self { sender, stream: 0, sent: Instant::now(), first: None, body: Vec::new() }
    }

    /// Takes note of the answer; whether there is time for another.
    fn answered(
        &mut self,
        failure: Option<String>,
        run: &mut Run,
        begin: Instant,
        end: Instant,
    ) -> Result<bool> {
        let now = Instant::now();
        match failure {
            Some(what) => run.fail(what),
            None => {
                self.sender.answered(&self.body)?;
                if (begin..end).contains(&now) {
                    run.note(now - self.sent);
                }
            }
        }
        (self.stream, self.first) = (0, None);
        self.body.clear();
        Ok(now < end)
    }
}

/// Sends each request once, a few at a time. The first answer that is not good ends it. Seeding uses this.
pub async fn send_all(address: SocketAddr, wire: &Wire, requests: &[Vec<u8>]) -> Result<Vec<Vec<u8>>> {
    let mut connection = Connection::open(address, wire).await?;
    let mut bodies = Vec::with_capacity(requests.len());
    for request in requests {
        let (first, body) = connection.exchange(request).await?;
        if let Some(failure) = connection.failure(first, &body) {
            bail!("{failure}");
        }
        bodies.push(body);
    }
    Ok(bodies)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_large_body_is_cut_into_frames_and_the_last_ends_the_stream() {
        let head = Head::of_calls("/service/method");
        let call = head.call("someone", &vec![7; 40_000]);
        let frames: Vec<(u8, u8, usize)> =
            each_frame(&call).map(|frame| (frame[3], frame[4], frame.len() - FRAME)).collect();
        assert_eq!(frames[0].0, kind::HEADERS);
        assert_eq!(
            frames[1..],
            [
                (kind::DATA, 0, PAYLOAD),
                (kind::DATA, 0, PAYLOAD),
                (kind::DATA, flag::END_STREAM, 40_005 - 2 * PAYLOAD)
            ]
        );
        assert_eq!(data_in(&call), 40_005);
    }

    #[test]
    fn what_all_requests_have_in_common_is_told_by_its_place() {
        let head = Head::of_calls("/service/method");
        // Method, scheme, and five places of the connection, the oldest first.
        assert_eq!(head.common(), [0x83, 0x86, 0x80 | 66, 0x80 | 65, 0x80 | 64, 0x80 | 63, 0x80 | 62]);
    }

    #[test]
    fn a_long_text_says_its_length_in_several_bytes() {
        let mut block = Vec::new();
        string(&mut block, &"x".repeat(127 + 200));
        assert_eq!(block[..3], [127, 200 & 127 | 128, 1]);
    }
}
