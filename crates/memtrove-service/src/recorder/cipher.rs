//! What a recording's pieces are sealed with while they are on the disk.

use super::disk::PLACE;
use aws_lc_rs::aead::{AES_256_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use std::io;
use zeroize::Zeroizing;

/// The largest piece, so that it has room in a place with what proves it whole.
pub(super) const PIECE: usize = PLACE - TAG;
const TAG: usize = 16;

/// A key of one recording. It is in memory only, so what is on the disk is noise to everybody else, and for ever when the
/// recording is gone.
pub(super) struct Cipher(LessSafeKey);

impl Cipher {
    pub(super) fn new() -> io::Result<Self> {
        let mut key = Zeroizing::new([0; 32]);
        aws_lc_rs::rand::fill(key.as_mut()).map_err(|_| io::Error::other("there is no randomness"))?;
        let key = UnboundKey::new(&AES_256_GCM, key.as_ref());
        key.map(|key| Self(LessSafeKey::new(key))).map_err(|_| io::Error::other("a key cannot be prepared"))
    }

    /// A piece as it is written. Each number is for one piece: the nonce is made of it.
    pub(super) fn seal(&self, number: usize, piece: &str) -> io::Result<Vec<u8>> {
        let mut sealed = Vec::with_capacity(sealed_len(piece.len()));
        sealed.extend_from_slice(piece.as_bytes());
        let done = self.0.seal_in_place_append_tag(nonce(number), Aad::empty(), &mut sealed);
        done.map(|()| sealed).map_err(|_| io::Error::other("a piece cannot be sealed"))
    }

    /// The piece that was sealed under this number.
    pub(super) fn open(&self, number: usize, mut sealed: Vec<u8>) -> io::Result<String> {
        let damaged = || io::Error::new(io::ErrorKind::InvalidData, "a piece of a recording is damaged");
        let length =
            self.0.open_in_place(nonce(number), Aad::empty(), &mut sealed).map_err(|_| damaged())?.len();
        sealed.truncate(length);
        String::from_utf8(sealed).map_err(|_| damaged())
    }
}

/// How many bytes a piece has when it is sealed.
pub(super) const fn sealed_len(length: usize) -> usize {
    length + TAG
}

fn nonce(number: usize) -> Nonce {
    let mut nonce = [0; 12];
    nonce[4..].copy_from_slice(&(number as u64).to_be_bytes());
    Nonce::assume_unique_for_key(nonce)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_changed_or_moved_is_not_opened() {
        let cipher = Cipher::new().unwrap();
        let sealed = cipher.seal(7, "what the agent says").unwrap();
        assert!(!sealed.windows(5).any(|bytes| bytes == b"agent"));
        assert_eq!(cipher.open(7, sealed.clone()).unwrap(), "what the agent says");
        assert!(cipher.open(8, sealed.clone()).is_err(), "under another number");
        assert!(Cipher::new().unwrap().open(7, sealed.clone()).is_err(), "of another recording");
        let mut changed = sealed;
        changed[3] ^= 1;
        assert!(cipher.open(7, changed).is_err(), "changed");
    }
}
