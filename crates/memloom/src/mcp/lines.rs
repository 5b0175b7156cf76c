//! Lines of a stream, each of a limited length.

use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};

/// What comes next.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Line {
    /// A line, without its end.
    Whole(Vec<u8>),
    /// A line that was too long and is gone.
    TooLong,
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
                // A line that was never ended is no message.
                return Line::End;
            }
            let end = piece.iter().position(|byte| *byte == b'\n');
            let text = &piece[..end.unwrap_or(piece.len())];
            if self.line.len() + text.len() > self.max {
                self.too_long = true;
                self.line = Vec::new();
            }
            if !self.too_long {
                self.line.extend_from_slice(text);
            }
            let taken = text.len() + usize::from(end.is_some());
            self.stream.consume(taken);
            if end.is_none() {
                continue;
            }
            if std::mem::take(&mut self.too_long) {
                return Line::TooLong;
            }
            let mut line = std::mem::take(&mut self.line);
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
        assert_eq!(lines.next().await, Line::TooLong);
        assert_eq!(lines.next().await, Line::Whole(b"two".to_vec()));
        assert_eq!(lines.next().await, Line::End);
    }
}
