//! Streams of server-sent events that survive their connections.

use crate::call::Call;
use crate::error::ApiError;
use crate::{Client, Error, Result, RetryPolicy, retry};
use bytes::Bytes;
use futures_util::stream::{self, Stream};
use http::StatusCode;
use http::header::HeaderName;
use reqwest::Response;
use std::collections::VecDeque;
use std::time::Duration;

pub(crate) const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");
pub(crate) const EVENT_STREAM: &str = "text/event-stream";

/// The shortest pause, whatever the policy says: a stream asks for ever.
const SHORTEST_PAUSE: Duration = Duration::from_millis(10);

/// One event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Event {
    /// What the stream is resumed after.
    pub(crate) id: Option<String>,
    /// Its name; `message` unless it has one.
    pub(crate) name: String,
    pub(crate) data: String,
}

/// What becomes of a stream when its connection ends.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum AtEnd {
    /// It goes on over another one, behind what was seen.
    Resume,
    /// It has told everything.
    Stop,
}

/// How a stream is followed.
#[derive(Clone, Copy)]
pub(crate) struct Manner {
    pub(crate) retry: RetryPolicy,
    pub(crate) at_end: AtEnd,
    /// A connection on which nothing is heard for so long is a broken one; for streams that have heartbeats.
    pub(crate) idle: Option<Duration>,
    /// An event that is longer ends the stream: whoever sends it may never come to its end.
    pub(crate) max_event_bytes: usize,
}

impl Client {
    /// How a stream with heartbeats is followed.
    pub(crate) fn stream_manner(&self, at_end: AtEnd) -> Manner {
        let inner = &self.inner;
        let (idle, max_event_bytes) = (Some(inner.stream_idle_timeout), inner.max_event_bytes);
        Manner { retry: inner.retry, at_end, idle, max_event_bytes }
    }

    /// The same without heartbeats: it may be silent for as long as it takes.
    pub(crate) fn silent_stream_manner(&self, at_end: AtEnd) -> Manner {
        Manner { idle: None, ..self.stream_manner(at_end) }
    }
}

/// The events of a stream. `open` makes the call that begins it behind the event with this id. The stream ends when the service
/// has nothing (more) to tell, when an event is the `last`, or with an error that does not pass.
///
/// A stream that resumes and has once been opened is opened again as often as it takes: a service that restarts, or is away for
/// the night, is no reason to end what does not end. Only a policy without retries has it fail at once.
pub(crate) fn follow(
    manner: Manner,
    after: Option<String>,
    open: impl Fn(Option<&str>) -> Result<Call> + Send + Sync,
    last: fn(&Event) -> bool,
) -> impl Stream<Item = Result<Event>> + Send {
    let begin = Following { seen: after, ..Following::default() };
    stream::try_unfold((begin, open), move |(mut following, open)| async move {
        let event = following.next(manner, &open, last).await?;
        Ok(event.map(|event| (event, (following, open))))
    })
}

/// Where somebody is in a stream.
#[derive(Default)]
struct Following {
    connection: Option<Connection>,
    seen: Option<String>,
    /// Whether the service has ever begun to tell.
    opened: bool,
    /// Whether a byte has ever come. A quiet stream is kept alive by comments, which are bytes.
    heard: bool,
    /// This many connections in a row ended before a byte came.
    fruitless: u32,
    /// This many failures in a row, those to connect included.
    failures: u32,
    done: bool,
}

impl Following {
    async fn next(
        &mut self,
        manner: Manner,
        open: &(impl Fn(Option<&str>) -> Result<Call> + Send + Sync),
        last: fn(&Event) -> bool,
    ) -> Result<Option<Event>> {
        while !self.done {
            let connection = match &mut self.connection {
                Some(connection) => connection,
                None => match Connection::open(open(self.seen.as_deref())?, manner).await {
                    Ok(Some(connection)) => {
                        self.opened = true;
                        self.connection.insert(connection)
                    }
                    Ok(None) => break,
                    Err(error) if self.opened && passes(&error) => {
                        self.pause(manner.retry).await;
                        continue;
                    }
                    Err(error) => return Err(error),
                },
            };
            let heard = connection.next().await;
            if connection.alive {
                (self.heard, self.fruitless, self.failures) = (true, 0, 0);
            }
            if let Some(id) = connection.parser.last_id.clone() {
                self.seen = Some(id);
            }
            match heard {
                Ok(Some(event)) => {
                    self.done = last(&event);
                    return Ok(Some(event));
                }
                Ok(None) if manner.at_end == AtEnd::Stop => break,
                Err(error) if manner.at_end == AtEnd::Stop => return Err(error),
                // It would come again.
                Err(error @ Error::Decode { .. }) => return Err(error),
                // The connection broke, or a proxy ended it.
                Ok(None) | Err(_) => {
                    self.connection = None;
                    let given_up = !self.heard && self.fruitless >= manner.retry.max_retries;
                    if given_up || manner.retry.max_retries == 0 {
                        let ended = || Error::transport("stream", "the connection ends and is not replaced");
                        return Err(heard.err().unwrap_or_else(ended));
                    }
                    self.fruitless += 1;
                    self.pause(manner.retry).await;
                }
            }
        }
        Ok(None)
    }

    /// Waits before the stream is opened again: longer from failure to failure, up to the longest pause of the policy.
    async fn pause(&mut self, retry: RetryPolicy) {
        tokio::time::sleep(retry.pause(self.failures).max(SHORTEST_PAUSE)).await;
        self.failures = self.failures.saturating_add(1);
    }
}

/// Whether the same stream may be opened a moment later.
fn passes(error: &Error) -> bool {
    match error {
        Error::Transport { .. } => true,
        Error::Api(refusal) => retry::is_passing(refusal.status),
        _ => false,
    }
}

/// An answer that is being read.
struct Connection {
    response: Response,
    parser: Parser,
    manner: Manner,
    /// Whether anything has come.
    alive: bool,
}

impl Connection {
    /// Begins a stream; `None` if there is nothing to tell.
    async fn open(call: Call, manner: Manner) -> Result<Option<Self>> {
        let response = call.accept(EVENT_STREAM).open().await?;
        match response.status() {
            StatusCode::NO_CONTENT => Ok(None),
            status if status.is_success() => {
                Ok(Some(Self { response, parser: Parser::default(), manner, alive: false }))
            }
            status => Err(Error::Api(Box::new(ApiError::read(status, response.headers(), b"")))),
        }
    }

    async fn next(&mut self) -> Result<Option<Event>> {
        loop {
            if let Some(event) = self.parser.ready.pop_front() {
                return Ok(Some(event));
            }
            let most = self.manner.max_event_bytes;
            if self.parser.unfinished() > most {
                let complaint = format!("an event is longer than {most} bytes (max_event_bytes)");
                return Err(Error::decode("stream", complaint, self.parser.beginning()));
            }
            match self.chunk().await? {
                Some(bytes) => {
                    self.alive = true;
                    self.parser.feed(&bytes);
                }
                // What is not finished by an empty line never happened.
                None => return Ok(None),
            }
        }
    }

    async fn chunk(&mut self) -> Result<Option<Bytes>> {
        let chunk = self.response.chunk();
        let heard = match self.manner.idle {
            // A peer that vanished without a word is not heard of again, and no connection says so by itself.
            Some(idle) => tokio::time::timeout(idle, chunk)
                .await
                .map_err(|_| Error::transport("stream", format!("nothing was heard for {idle:?}")))?,
            None => chunk.await,
        };
        heard.map_err(|error| Error::transport("stream", error.without_url()))
    }
}

/// Cuts bytes into events, as the HTML standard has it.
///
/// By hand: `eventsource-stream` does not tell an id that comes without data, which is how the change feed says where to resume,
/// and panics at a byte order mark; `sse-stream` ends a stream at a field that it does not know.
#[derive(Default)]
struct Parser {
    line: Vec<u8>,
    /// A line ended with CR; a LF that follows belongs to it.
    after_cr: bool,
    begun: bool,
    name: String,
    data: String,
    has_data: bool,
    /// The id of what is being read; it counts when that is whole.
    id: Option<String>,
    last_id: Option<String>,
    ready: VecDeque<Event>,
}

impl Parser {
    fn feed(&mut self, bytes: &[u8]) {
        for byte in bytes {
            let after_cr = std::mem::take(&mut self.after_cr);
            match byte {
                b'\n' if after_cr => {}
                b'\n' | b'\r' => {
                    self.after_cr = *byte == b'\r';
                    let line = std::mem::take(&mut self.line);
                    self.line(&String::from_utf8_lossy(&line));
                }
                _ => self.line.push(*byte),
            }
        }
    }

    fn line(&mut self, line: &str) {
        let line = match std::mem::replace(&mut self.begun, true) {
            true => line,
            false => line.trim_start_matches('\u{feff}'),
        };
        if line.is_empty() {
            return self.dispatch();
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "event" => value.clone_into(&mut self.name),
            "data" => {
                if std::mem::replace(&mut self.has_data, true) {
                    self.data.push('\n');
                }
                self.data.push_str(value);
            }
            "id" if !value.contains('\0') => self.id = Some(value.to_owned()),
            // Comments, which begin with the colon, and fields that we have no use for.
            _ => {}
        }
    }

    /// How many bytes are kept of an event that has not come to its end.
    fn unfinished(&self) -> usize {
        let id = self.id.as_ref().map_or(0, String::len);
        self.line.len() + self.name.len() + self.data.len() + id
    }

    /// What it begins with.
    fn beginning(&self) -> &[u8] {
        if self.has_data { self.data.as_bytes() } else { &self.line }
    }

    /// An id alone is no event, but the place to resume from.
    fn dispatch(&mut self) {
        self.last_id.clone_from(&self.id);
        let name = std::mem::take(&mut self.name);
        let data = std::mem::take(&mut self.data);
        if std::mem::take(&mut self.has_data) {
            let name = if name.is_empty() { "message".to_owned() } else { name };
            self.ready.push_back(Event { id: self.last_id.clone(), name, data });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str =
        "\u{feff}: hello\nid: 7\n\nevent: gap\r\ndata: {\"a\":\r\ndata:1}\r\n\r\nid: 8\rdata: ä\r\rdata: cut";

    fn parsed(pieces: impl Iterator<Item = Vec<u8>>) -> (Vec<Event>, Option<String>) {
        let mut parser = Parser::default();
        pieces.for_each(|piece| parser.feed(&piece));
        (parser.ready.into(), parser.last_id)
    }

    #[test]
    fn events_are_the_same_however_the_bytes_arrive() {
        let whole = parsed(std::iter::once(TEXT.as_bytes().to_vec()));
        assert_eq!(whole, parsed(TEXT.bytes().map(|byte| vec![byte])));
        let event = |name: &str, data: &str, id: &str| Event {
            id: Some(id.to_owned()),
            name: name.to_owned(),
            data: data.to_owned(),
        };
        let expected = vec![event("gap", "{\"a\":\n1}", "7"), event("message", "ä", "8")];
        assert_eq!(whole, (expected, Some("8".to_owned())), "what was cut off is no event");
    }

    #[test]
    fn an_id_alone_is_where_to_resume() {
        assert_eq!(parsed(std::iter::once(b"id: 3\n\n".to_vec())), (vec![], Some("3".to_owned())));
    }
}
