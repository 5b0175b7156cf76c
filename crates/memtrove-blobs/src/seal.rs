//! Sealed bodies: AES-256-GCM in pieces, so that they can be read while they come, and from the middle.
//!
//! A sealed body is a header (a mark and 32 random bytes) and pieces of 64 KiB, each with its tag; the last one may be
//! shorter. Each body has a key of its own, derived from the seal's key, the random bytes and the context; so nonces may be
//! the number of the piece and whether it is the last. A piece opens only as the one it was: pieces that are swapped, left
//! out, added, or taken from another body do not, and neither does a last piece that was not the last.

use crate::BlobError;
use aws_lc_rs::aead::{AES_256_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use aws_lc_rs::hkdf::{HKDF_SHA256, Salt};
use bytes::BytesMut;
use std::fmt;
use zeroize::Zeroizing;

/// How many bytes are sealed together.
pub(crate) const PIECE: usize = 64 * 1024;
const TAG: usize = 16;
/// What a piece takes up where it is stored.
pub(crate) const SEALED_PIECE: u64 = (PIECE + TAG) as u64;
const MARK: [u8; 4] = *b"sb01";
const SALT: usize = 32;
/// What stands before the pieces.
pub(crate) const HEADER: usize = MARK.len() + SALT;

/// What seals a blob, and opens it again: a key, and what the blob is bound to. With another context it does not open.
#[derive(Clone)]
pub struct Seal {
    key: Zeroizing<[u8; 32]>,
    context: Vec<u8>,
}

impl Seal {
    /// The same key may seal any number of blobs.
    pub fn new(key: [u8; 32], context: impl Into<Vec<u8>>) -> Self {
        Self { key: Zeroizing::new(key), context: context.into() }
    }

    fn pieces(&self, salt: &[u8]) -> Result<BodyKey, BlobError> {
        let secret = Salt::new(HKDF_SHA256, salt).extract(self.key.as_ref());
        let bound_to = [&MARK[..], &self.context];
        let key = secret.expand(&bound_to, &AES_256_GCM).map_err(|_| broken("no key can be derived"))?;
        Ok(BodyKey(LessSafeKey::new(UnboundKey::from(key))))
    }
}

impl fmt::Debug for Seal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Seal")
    }
}

/// How many bytes were sealed, judged by how many are stored; `None` if no body has that many.
pub(crate) fn plain_length(stored: u64) -> Option<u64> {
    let sealed = stored.checked_sub(HEADER as u64)?;
    let pieces = sealed.div_ceil(SEALED_PIECE);
    let plain = sealed.checked_sub(pieces * TAG as u64)?;
    // Only an empty body has an empty piece.
    let exists = pieces == 1 || (pieces > 1 && plain > (pieces - 1) * PIECE as u64);
    exists.then_some(plain)
}

struct BodyKey(LessSafeKey);

impl BodyKey {
    fn nonce(number: u64, is_last: bool) -> Nonce {
        let mut nonce = [0; 12];
        nonce[..8].copy_from_slice(&number.to_be_bytes());
        nonce[11] = u8::from(is_last);
        Nonce::assume_unique_for_key(nonce)
    }
}

/// Seals a body while it comes.
pub(crate) struct Sealer {
    pieces: BodyKey,
    number: u64,
    /// A piece is sealed when it is known whether another one follows.
    piece: Zeroizing<Vec<u8>>,
}

impl Sealer {
    /// Writes the header.
    pub(crate) fn begin(seal: &Seal, out: &mut BytesMut) -> Result<Self, BlobError> {
        let mut salt = [0; SALT];
        aws_lc_rs::rand::fill(&mut salt).map_err(|_| broken("there is no randomness"))?;
        out.extend_from_slice(&MARK);
        out.extend_from_slice(&salt);
        Ok(Self { pieces: seal.pieces(&salt)?, number: 0, piece: Zeroizing::new(Vec::with_capacity(PIECE)) })
    }

    /// Adds bytes, and writes the pieces that are full with them.
    pub(crate) fn push(&mut self, mut bytes: &[u8], out: &mut BytesMut) -> Result<(), BlobError> {
        while !bytes.is_empty() {
            if self.piece.len() == PIECE {
                self.seal(false, out)?;
            }
            let (now, later) = bytes.split_at(bytes.len().min(PIECE - self.piece.len()));
            self.piece.extend_from_slice(now);
            bytes = later;
        }
        Ok(())
    }

    /// Writes the last piece.
    pub(crate) fn finish(mut self, out: &mut BytesMut) -> Result<(), BlobError> {
        self.seal(true, out)
    }

    fn seal(&mut self, is_last: bool, out: &mut BytesMut) -> Result<(), BlobError> {
        let nonce = BodyKey::nonce(self.number, is_last);
        let key = &self.pieces.0;
        let tag = key
            .seal_in_place_separate_tag(nonce, Aad::empty(), &mut self.piece)
            .map_err(|_| broken("a piece cannot be sealed"))?;
        out.extend_from_slice(&self.piece);
        out.extend_from_slice(tag.as_ref());
        self.piece.clear();
        self.number += 1;
        Ok(())
    }
}

/// Opens the pieces of a body, one after the other.
pub(crate) struct Opener {
    pieces: BodyKey,
    number: u64,
    last: u64,
}

impl Opener {
    /// From this piece on, of a body of which this many bytes are stored.
    pub(crate) fn begin(seal: &Seal, header: &[u8], stored: u64, first: u64) -> Result<Self, BlobError> {
        let salt = header.strip_prefix(&MARK).filter(|salt| salt.len() == SALT).ok_or(BlobError::Damaged)?;
        let pieces = stored.saturating_sub(HEADER as u64).div_ceil(SEALED_PIECE);
        let last = pieces.checked_sub(1).ok_or(BlobError::Damaged)?;
        Ok(Self { pieces: seal.pieces(salt)?, number: first, last })
    }

    /// Opens the next piece in place, and takes its tag off.
    pub(crate) fn open(&mut self, piece: &mut BytesMut) -> Result<(), BlobError> {
        let nonce = BodyKey::nonce(self.number, self.number == self.last);
        let opened =
            self.pieces.0.open_in_place(nonce, Aad::empty(), piece).map_err(|_| BlobError::Damaged)?;
        let length = opened.len();
        piece.truncate(length);
        self.number += 1;
        Ok(())
    }
}

fn broken(what: &str) -> BlobError {
    BlobError::Unavailable(format!("encryption: {what}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn sealed(seal: &Seal, body: &[u8]) -> BytesMut {
        let mut out = BytesMut::new();
        let mut sealer = Sealer::begin(seal, &mut out).unwrap();
        sealer.push(body, &mut out).unwrap();
        sealer.finish(&mut out).unwrap();
        out
    }

    #[test]
    fn the_length_of_a_body_is_known_from_what_is_stored() {
        let seal = Seal::new([7; 32], "test");
        for length in [0, 1, PIECE - 1, PIECE, PIECE + 1, 2 * PIECE, 3 * PIECE + 5] {
            let stored = sealed(&seal, &vec![1; length]).len() as u64;
            assert_eq!(plain_length(stored), Some(length as u64), "{length}");
        }
        let one = (HEADER + PIECE + TAG) as u64;
        for stored in [0, 1, HEADER as u64, (HEADER + TAG - 1) as u64, one + 1, one + TAG as u64] {
            assert_eq!(plain_length(stored), None, "{stored}");
        }
    }

    #[test]
    fn two_bodies_under_one_seal_have_nothing_in_common() {
        let seal = Seal::new([7; 32], "test");
        let (one, other) = (sealed(&seal, &[0; 64]), sealed(&seal, &[0; 64]));
        assert_ne!(one[MARK.len()..], other[MARK.len()..]);
        assert_ne!(one[HEADER..], other[HEADER..]);
    }

    #[test]
    fn a_seal_shows_nobody_its_key() {
        assert_eq!(format!("{:?}", Seal::new([7; 32], "secret")), "Seal");
    }

    proptest! {
        #[test]
        fn the_stored_bytes_do_not_depend_on_how_a_body_came(cuts in prop::collection::vec(0usize..200_000, 0..6)) {
            let seal = Seal::new([7; 32], "test");
            let body: Vec<u8> = (0..200_000u32).map(|n| n as u8).collect();
            let mut cuts = cuts;
            cuts.extend([0, body.len()]);
            cuts.sort_unstable();
            let mut out = BytesMut::new();
            let mut sealer = Sealer::begin(&seal, &mut out).unwrap();
            for pair in cuts.windows(2) {
                sealer.push(&body[pair[0]..pair[1]], &mut out).unwrap();
            }
            sealer.finish(&mut out).unwrap();

            let stored = out.len() as u64;
            let header = out.split_to(HEADER);
            let mut opener = Opener::begin(&seal, &header, stored, 0).unwrap();
            let mut read = Vec::new();
            while !out.is_empty() {
                let mut piece = out.split_to(out.len().min(SEALED_PIECE as usize));
                opener.open(&mut piece).unwrap();
                read.extend_from_slice(&piece);
            }
            prop_assert!(read == body);
        }
    }
}
