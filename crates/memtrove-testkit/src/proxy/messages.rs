//! PostgreSQL's protocol, as far as it takes to know which statement is run, and where the answer to it ends.

use std::collections::HashMap;

/// Asks for TLS, or for GSSAPI: answered in one byte, and the real beginning follows.
const NEGOTIATIONS: [u32; 2] = [80_877_103, 80_877_104];

/// Cuts a stream of bytes into messages.
#[derive(Debug, Default)]
pub(super) struct Messages {
    waiting: Vec<u8>,
    begun: bool,
    /// The texts of prepared statements, by name.
    prepared: HashMap<Vec<u8>, String>,
}

/// One message, whole.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Message {
    pub(super) bytes: Vec<u8>,
    /// The text of the statement that it runs.
    pub(super) runs: Option<String>,
    pub(super) asks: Asks,
}

/// What the server owes once it has a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Asks {
    Nothing,
    /// An answer that ends with its being ready for more: to the beginning, a simple query, or the end of what an extended one
    /// consists of.
    ForAnAnswer,
    /// One byte.
    ForTls,
}

impl Messages {
    /// Takes what was read from the client.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.waiting.extend_from_slice(bytes);
    }

    /// The next message, once it has arrived whole.
    pub(super) fn next(&mut self) -> Option<Message> {
        // The very first messages have no letter that says what they are.
        let head = usize::from(self.begun);
        let length = self.waiting.get(head..head + 4)?.try_into().map(u32::from_be_bytes).ok()?;
        let end = head + (length as usize).max(4);
        if self.waiting.len() < end {
            return None;
        }
        let rest = self.waiting.split_off(end);
        let bytes = std::mem::replace(&mut self.waiting, rest);
        if !self.begun {
            let code = bytes.get(4..8).and_then(|code| code.try_into().ok()).map(u32::from_be_bytes);
            self.begun = !code.is_some_and(|code| NEGOTIATIONS.contains(&code));
            let asks = if self.begun { Asks::ForAnAnswer } else { Asks::ForTls };
            return Some(Message { bytes, runs: None, asks });
        }
        let runs = self.statement(&bytes);
        let asks = if matches!(bytes[0], b'Q' | b'S') { Asks::ForAnAnswer } else { Asks::Nothing };
        Some(Message { bytes, runs, asks })
    }

    fn statement(&mut self, message: &[u8]) -> Option<String> {
        let (kind, body) = (message.first()?, message.get(5..)?);
        let mut texts = body.split(|byte| *byte == 0);
        match kind {
            b'Q' => texts.next().map(text),
            b'P' => {
                let (name, sql) = (texts.next()?, texts.next()?);
                self.prepared.insert(name.to_vec(), text(sql));
                None
            }
            b'B' => {
                let (_portal, name) = (texts.next()?, texts.next()?);
                self.prepared.get(name).cloned()
            }
            _ => None,
        }
    }
}

/// Finds in the server's bytes where answers end.
#[derive(Debug, Default)]
pub(super) struct Answers {
    /// The letter and length of a message, as far as they have come.
    head: Vec<u8>,
    /// How much of the message is still to come.
    body: usize,
    /// Bytes that refused TLS, and those that are still to come.
    refusals: [u64; 2],
}

impl Answers {
    /// The letter of the message that ends an answer.
    const READY: u8 = b'Z';

    /// The client has asked for TLS so often.
    pub(super) fn negotiated(&mut self, times: u64) {
        let [came, awaited] = &mut self.refusals;
        *awaited = times - *came;
    }

    /// Behind which of these bytes an answer ends, if one does; the bytes after it are asked about next.
    pub(super) fn end_in(&mut self, bytes: &[u8]) -> Option<usize> {
        let mut at = 0;
        while let Some(rest) = bytes.get(at..).filter(|rest| !rest.is_empty()) {
            let [came, awaited] = &mut self.refusals;
            if *awaited > 0 {
                (*came, *awaited, at) = (*came + 1, *awaited - 1, at + 1);
                continue;
            }
            if self.head.len() < 5 {
                self.head.push(rest[0]);
                at += 1;
                if let [_, length @ ..] = &self.head[..]
                    && let Ok(length) = <[u8; 4]>::try_from(length)
                {
                    self.body = (u32::from_be_bytes(length) as usize).saturating_sub(4);
                }
            } else {
                let came = self.body.min(rest.len());
                (self.body, at) = (self.body - came, at + came);
            }
            if self.head.len() == 5 && self.body == 0 {
                let letter = self.head[0];
                self.head.clear();
                if letter == Self::READY {
                    return Some(at);
                }
            }
        }
        None
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(kind: Option<u8>, body: &[u8]) -> Vec<u8> {
        let mut bytes: Vec<u8> = kind.into_iter().collect();
        bytes.extend_from_slice(&(body.len() as u32 + 4).to_be_bytes());
        bytes.extend_from_slice(body);
        bytes
    }

    fn statements(stream: &[u8], piece: usize) -> (Vec<Option<String>>, Vec<u8>) {
        let (mut messages, mut statements, mut bytes) = (Messages::default(), Vec::new(), Vec::new());
        for piece in stream.chunks(piece) {
            messages.push(piece);
            while let Some(message) = messages.next() {
                statements.push(message.runs);
                bytes.extend_from_slice(&message.bytes);
            }
        }
        (statements, bytes)
    }

    #[test]
    fn a_statement_is_known_however_the_bytes_arrive() {
        let stream = [
            message(None, &NEGOTIATIONS[0].to_be_bytes()),
            message(None, b"\0\x03\0\0user\0memtrove\0\0"),
            message(Some(b'Q'), b"BEGIN\0"),
            message(Some(b'P'), b"s1\0SELECT $1\0\0\0"),
            message(Some(b'B'), b"\0s1\0\0\0\0\0\0\0"),
            message(Some(b'S'), b""),
        ]
        .concat();
        for piece in 1..stream.len() {
            let (statements, bytes) = statements(&stream, piece);
            let expected = [None, None, Some("BEGIN".to_owned()), None, Some("SELECT $1".to_owned()), None];
            assert_eq!(statements, expected);
            assert_eq!(bytes, stream);
        }
    }

    #[test]
    fn the_end_of_an_answer_is_known_however_the_bytes_arrive() {
        let beginning = [b"N".to_vec(), message(Some(b'R'), &[0; 4]), message(Some(b'Z'), b"I")].concat();
        let rows =
            [message(Some(b'D'), b"ZZZZZ"), message(Some(b'I'), b""), message(Some(b'Z'), b"T")].concat();
        let stream = [&beginning[..], &rows, b"D\0\0"].concat();
        for piece in 1..=stream.len() {
            let (mut answers, mut ends) = (Answers::default(), Vec::new());
            answers.negotiated(1);
            for (start, bytes) in (0..).step_by(piece).zip(stream.chunks(piece)) {
                let mut at = 0;
                while let Some(end) = answers.end_in(&bytes[at..]) {
                    at += end;
                    ends.push(start + at);
                }
            }
            assert_eq!(ends, [beginning.len(), beginning.len() + rows.len()], "in pieces of {piece}");
        }
    }
}
