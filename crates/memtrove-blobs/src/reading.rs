//! Reading sealed blobs: from stored bytes, in pieces of any length, to the range asked for.

use crate::seal::{HEADER, Opener, PIECE, SEALED_PIECE, Seal, plain_length};
use crate::{BlobError, Blobs, ByteStream, Opened};
use bytes::{Bytes, BytesMut};
use futures_util::{StreamExt, stream};
use std::ops::Range;

/// The range of a sealed blob, or all of it.
pub(crate) async fn sealed(
    blobs: &Blobs,
    key: &str,
    seal: &Seal,
    range: Option<Range<u64>>,
) -> Result<ByteStream, BlobError> {
    const PIECE_LENGTH: u64 = PIECE as u64;
    // A whole blob is one request; for a range the header has to be known first.
    let first_look = range.as_ref().map(|_| 0..HEADER as u64);
    let Opened { size, version, bytes } = match blobs.open(key, first_look, None).await {
        // Nothing at all is stored.
        Err(BlobError::Invalid(_)) if range.is_some() => return Err(BlobError::Damaged),
        opened => opened?,
    };
    let length = plain_length(size).ok_or(BlobError::Damaged)?;
    let mut stored = Stored { bytes, held: BytesMut::new() };
    let header = stored.take(HEADER).await?;

    let first = range.as_ref().map_or(0, |range| range.start / PIECE_LENGTH);
    let opener = Opener::begin(seal, &header, size, first)?;
    let Some(range) = range else {
        return Ok(RangePieces { stored, opener, skip: 0, left: length, at_end: false }.stream());
    };
    if range.start >= length {
        return Err(BlobError::beyond(&range, length));
    }
    let end = range.end.min(length);
    let last = (end - 1) / PIECE_LENGTH;
    let place = |piece: u64| HEADER as u64 + piece * SEALED_PIECE;
    let pieces = blobs.open(key, Some(place(first)..place(last + 1).min(size)), version).await?;
    let stored = Stored { bytes: pieces.bytes, held: BytesMut::new() };
    let (skip, left) = ((range.start % PIECE_LENGTH) as usize, end - range.start);
    Ok(RangePieces { stored, opener, skip, left, at_end: false }.stream())
}

/// Bytes that come in whatever portions the store likes.
struct Stored {
    bytes: ByteStream,
    held: BytesMut,
}

impl Stored {
    /// This many bytes, or all that are left.
    async fn up_to(&mut self, wanted: usize) -> Result<BytesMut, BlobError> {
        while self.held.len() < wanted {
            match self.bytes.next().await {
                Some(more) => self.held.extend_from_slice(&more?),
                None => break,
            }
        }
        Ok(self.held.split_to(wanted.min(self.held.len())))
    }

    async fn take(&mut self, wanted: usize) -> Result<BytesMut, BlobError> {
        let taken = self.up_to(wanted).await?;
        if taken.len() == wanted { Ok(taken) } else { Err(BlobError::Damaged) }
    }
}

/// The pieces from which a range is taken.
struct RangePieces {
    stored: Stored,
    opener: Opener,
    /// How many bytes of the next piece come before the range.
    skip: usize,
    /// How many bytes of the range are still to come.
    left: u64,
    at_end: bool,
}

impl RangePieces {
    fn stream(self) -> ByteStream {
        let next = |mut pieces: Self| async move {
            match pieces.next().await {
                Ok(Some(bytes)) => Some((Ok(bytes), pieces)),
                Ok(None) => None,
                Err(error) => {
                    pieces.at_end = true;
                    Some((Err(error), pieces))
                }
            }
        };
        Box::pin(stream::unfold(self, next).filter(|bytes| {
            let is_empty = matches!(bytes, Ok(bytes) if bytes.is_empty());
            std::future::ready(!is_empty)
        }))
    }

    async fn next(&mut self) -> Result<Option<Bytes>, BlobError> {
        if self.at_end {
            return Ok(None);
        }
        let mut piece = self.stored.up_to(SEALED_PIECE as usize).await?;
        self.opener.open(&mut piece)?;
        let _ = piece.split_to(self.skip.min(piece.len()));
        self.skip = 0;
        piece.truncate(usize::try_from(self.left).map_or(piece.len(), |left| left.min(piece.len())));
        self.left -= piece.len() as u64;
        self.at_end = self.left == 0;
        Ok(Some(piece.freeze()))
    }
}
