//! Lines of a stream, each of a limited length.

use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};

/// So much is kept of a line that is too long.
const BEGINNING: usize = 1024;

/// What comes next.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Line {
    /// A line, without its end.
    Whole(Vec<u8>),
    /// A line that was too long and is gone, but for its beginning.
    TooLong(Vec<u8>),
    /// What came after the last line and was never ended: of a process that was killed, perhaps half of a message.
    Rest(Vec<u8>),
    /// Nothing more.
    End,
}

/// Reads lines.
pub(super) struct Lines<R> {
    stream: BufReader<R>,
    line: Vec<u8>,
    too_long: bool,
    max: usize,
}

impl<R: AsyncRead + Unpin> Lines<R> {
    /// The lines of a stream, of at most so many bytes.
    pub fn new(stream: R, max: usize) -> Self {
        Self { stream: BufReader::new(stream), line: Vec::new(), too_long: false, max }
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
                return match (std::mem::take(&mut self.too_long), rest.trim_ascii().is_empty()) {
                    (true, _) => Line::TooLong(rest),
                    (false, true) => Line::End,
                    (false, false) => Line::Rest(rest),
                };
            }
            let end = piece.iter().position(|byte| *byte == b'\n');
            let text = &piece[..end.unwrap_or(piece.len())];
            if !self.too_long {
                self.line.extend_from_slice(text);
                if self.line.len() > self.max {
                    self.too_long = true;
                    self.line.truncate(BEGINNING);
                    self.line.shrink_to_fit();
                }
            }
            let taken = text.len() + usize::from(end.is_some());
            self.stream.consume(taken);
            if end.is_none() {
                continue;
            }
            let mut line = std::mem::take(&mut self.line);
            if std::mem::take(&mut self.too_long) {
                return Line::TooLong(line);
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

    #[tokio::test]
    async fn a_line_that_is_too_long_is_dropped_and_the_next_one_is_read() {
        let text: &[u8] = b"one\r\n\nfar too long\ntwo\nnever ended";
        let mut lines = Lines::new(text, 5);
        assert_eq!(lines.next().await, Line::Whole(b"one".to_vec()));
        assert_eq!(lines.next().await, Line::TooLong(b"far too long".to_vec()));
        assert_eq!(lines.next().await, Line::Whole(b"two".to_vec()));
        assert_eq!(lines.next().await, Line::TooLong(b"never ended".to_vec()));
        assert_eq!(lines.next().await, Line::End);
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
