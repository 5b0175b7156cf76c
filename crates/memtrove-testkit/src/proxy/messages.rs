//! The client's half of PostgreSQL's protocol, as far as it takes to know which statement is run.

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
}

impl Message {
    /// Whether the server answers when it has this: a simple query, or the end of what an extended one consists of.
    pub(super) fn asks_for_an_answer(&self) -> bool {
        matches!(self.bytes.first(), Some(b'Q' | b'S'))
    }
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
        let runs = if self.begun { self.statement(&bytes) } else { None };
        if !self.begun {
            let code = bytes.get(4..8).and_then(|code| code.try_into().ok()).map(u32::from_be_bytes);
            self.begun = !code.is_some_and(|code| NEGOTIATIONS.contains(&code));
        }
        Some(Message { bytes, runs })
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
}
