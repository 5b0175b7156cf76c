//! Lines of a stream, each of a limited length.

use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Line {
    /// With its newline.
    Whole(Vec<u8>),
    /// It was dropped.
    TooLong,
    /// What came after the last newline was dropped: it may be half of a message.
    End,
}

pub(super) struct Lines<R> {
    stream: BufReader<R>,
    line: Vec<u8>,
    is_too_long: bool,
    max: usize,
}

impl<R: AsyncRead + Unpin> Lines<R> {
    /// The lines of a stream, each of at most `max` bytes with its newline.
    pub fn new(stream: R, max: usize) -> Self {
        Self { stream: BufReader::new(stream), line: Vec::new(), is_too_long: false, max }
    }

    /// The rest of the stream.
    pub fn into_inner(self) -> BufReader<R> {
        self.stream
    }

    /// The next line. Nothing is lost if this is cancelled. A stream that fails has ended.
    pub async fn next(&mut self) -> Line {
        loop {
            let piece = self.stream.fill_buf().await.unwrap_or_default();
            if piece.is_empty() {
                return Line::End;
            }
            let end = piece.iter().position(|byte| *byte == b'\n');
            let length = end.map_or(piece.len(), |end| end + 1);
            self.is_too_long |= self.line.len() + length > self.max;
            if self.is_too_long {
                self.line = Vec::new();
            } else {
                self.line.extend_from_slice(&piece[..length]);
            }
            self.stream.consume(length);
            if end.is_some() {
                let line = std::mem::take(&mut self.line);
                return if std::mem::take(&mut self.is_too_long) { Line::TooLong } else { Line::Whole(line) };
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_line_that_is_too_long_is_dropped_and_the_next_one_is_read() {
        let mut lines = Lines::new(&b"one\r\n\nfar too long\ntwo\nthree"[..], 5);
        for line in ["one\r\n", "\n"] {
            assert_eq!(lines.next().await, Line::Whole(line.into()));
        }
        assert_eq!(lines.next().await, Line::TooLong);
        assert_eq!(lines.next().await, Line::Whole(b"two\n".to_vec()));
        assert_eq!(lines.next().await, Line::End, "half of a line is none");
    }
}
