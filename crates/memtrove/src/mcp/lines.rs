//! Lines of a stream, each of a limited length.

use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};

/// The most bytes of one message, without the end of its line. What reads messages in the end counts that too.
pub(super) const MAX_MESSAGE: usize = 16 * 1024 * 1024 - 1;
/// So much is kept of either end of a line that is too long.
const KEPT: usize = 1024;

/// What comes next.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Line {
    /// A line, without its end.
    Whole(Vec<u8>),
    /// A line that was too long and is gone, but for its ends.
    TooLong(Ends),
    /// What came after the last line and was never ended: of a process that was killed, perhaps half of a message.
    Rest(Vec<u8>),
    /// Nothing more.
    End,
}

/// What is left of a line that was too long.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Ends {
    pub first: Vec<u8>,
    /// Nothing if the line was never ended: then nobody knows what would have come last.
    pub last: Vec<u8>,
}

impl Ends {
    fn of(line: &[u8]) -> Self {
        let mut ends = Self { first: line[..line.len().min(KEPT)].to_vec(), last: Vec::new() };
        ends.append(line);
        ends
    }

    fn append(&mut self, text: &[u8]) {
        self.last.extend_from_slice(&text[text.len().saturating_sub(KEPT)..]);
        self.last.drain(..self.last.len().saturating_sub(KEPT));
    }
}

/// Reads lines.
pub(super) struct Lines<R> {
    stream: BufReader<R>,
    line: Vec<u8>,
    too_long: Option<Ends>,
    max: usize,
}

impl<R: AsyncRead + Unpin> Lines<R> {
    /// The lines of a stream, of at most so many bytes.
    pub fn new(stream: R, max: usize) -> Self {
        Self { stream: BufReader::new(stream), line: Vec::new(), too_long: None, max }
    }

    /// The lines that follow may have so many bytes.
    pub fn allow(self, max: usize) -> Self {
        Self { max, ..self }
    }

    /// The rest of the stream.
    pub fn into_inner(self) -> BufReader<R> {
        self.stream
    }

    /// The next line. Whoever stops waiting for it loses nothing. A stream that fails has ended.
    pub async fn next(&mut self) -> Line {
        loop {
            let Ok(piece) = self.stream.fill_buf().await else { return Line::End };
            if piece.is_empty() {
                let rest = std::mem::take(&mut self.line);
                return match (self.too_long.take(), rest.trim_ascii().is_empty()) {
                    (Some(Ends { first, .. }), _) => Line::TooLong(Ends { first, last: Vec::new() }),
                    (None, true) => Line::End,
                    (None, false) => Line::Rest(rest),
                };
            }
            let end = piece.iter().position(|byte| *byte == b'\n');
            let text = &piece[..end.unwrap_or(piece.len())];
            if let Some(ends) = &mut self.too_long {
                ends.append(text);
            } else {
                self.line.extend_from_slice(text);
                if self.line.len() > self.max {
                    self.too_long = Some(Ends::of(&std::mem::take(&mut self.line)));
                }
            }
            let taken = text.len() + usize::from(end.is_some());
            self.stream.consume(taken);
            if end.is_none() {
                continue;
            }
            let mut line = std::mem::take(&mut self.line);
            if let Some(ends) = self.too_long.take() {
                return Line::TooLong(ends);
            }
            if line.last() == Some(&b'\r') {
                line.pop();
            }
            if !line.trim_ascii().is_empty() {
                return Line::Whole(line);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::AsyncReadExt;

    #[tokio::test]
    async fn a_line_that_is_too_long_is_dropped_and_the_next_one_is_read() {
        let text: &[u8] = b"one\r\n\nfar too long\ntwo\nnever ended";
        let mut lines = Lines::new(text, 5);
        assert_eq!(lines.next().await, Line::Whole(b"one".to_vec()));
        let (first, last) = (b"far too long".to_vec(), b"far too long".to_vec());
        assert_eq!(lines.next().await, Line::TooLong(Ends { first, last }));
        assert_eq!(lines.next().await, Line::Whole(b"two".to_vec()));
        let (first, last) = (b"never ended".to_vec(), Vec::new());
        assert_eq!(lines.next().await, Line::TooLong(Ends { first, last }));
        assert_eq!(lines.next().await, Line::End);
    }

    #[tokio::test]
    async fn both_ends_of_a_line_that_is_too_long_are_kept() {
        let text: Vec<u8> = (0..100_000).map(|number: u32| b'a' + (number % 26) as u8).collect();
        let mut lines = Lines::new(text.as_slice().chain(&b"\nnext\n"[..]), 5000);
        let (first, last) = (text[..KEPT].to_vec(), text[text.len() - KEPT..].to_vec());
        assert_eq!(lines.next().await, Line::TooLong(Ends { first, last }));
        assert_eq!(lines.next().await, Line::Whole(b"next".to_vec()));
    }

    #[tokio::test]
    async fn what_was_never_ended_is_told_from_a_line() {
        let mut lines = Lines::new(&b"one\nhalf"[..], 5);
        assert_eq!(lines.next().await, Line::Whole(b"one".to_vec()));
        assert_eq!(lines.next().await, Line::Rest(b"half".to_vec()));
        assert_eq!(lines.next().await, Line::End);
        assert_eq!(Lines::new(&b"one\n  "[..], 5).next().await, Line::Whole(b"one".to_vec()));
    }
}
