//! The envelope around sealed content.
//!
//! | Bytes | |
//! |---|---|
//! | 2 | a mark that no UTF-8 text begins with |
//! | 1 | version of this layout |
//! | 1 | provider |
//! | 1 | flags: whether the content is compressed |
//! | 4 | length of the content, before compression |
//! | 16 | id of the data key |
//! | 12 | nonce |
//! | … | the content, encrypted |
//! | 16 | tag |
//!
//! The tag covers what comes before the nonce, and the place the content is stored at. The layout is no one else's
//! business: it may change with its version.

use super::cipher::{Cipher, NONCE_LENGTH, TAG_LENGTH};
use super::data_keys::{DATA_KEY_ID_LENGTH, DataKeyId};
use super::{SealContext, VaultFailure};
use crate::StoreError;

/// No byte of any UTF-8 text.
const MARK: u8 = 0xF5;
const MARK_2: u8 = b'M';
const VERSION: u8 = 1;
/// The provider `dek`. Plain content has no envelope and needs no number.
const DEK: u8 = 1;
const COMPRESSED: u8 = 1;

const LENGTH_AT: usize = 5;
/// This many bytes of stored content tell how long it is: see [`plain_length`].
pub const HEAD_LENGTH: usize = 9;
const HEADER_LENGTH: usize = HEAD_LENGTH + DATA_KEY_ID_LENGTH;
const CONTENT_AT: usize = HEADER_LENGTH + NONCE_LENGTH;

/// Shorter content is not worth the time.
const COMPRESSED_FROM: usize = 1024;
/// The fastest: content is compressed on the way to a commit that others wait for.
const COMPRESSION_LEVEL: i32 = 1;

/// Whether stored bytes are an envelope, or would be one if they were whole.
pub(super) fn is_sealed(stored: &[u8]) -> bool {
    stored.first() == Some(&MARK)
}

/// How long stored content is once it is opened, told by its first [`HEAD_LENGTH`] bytes and its length. For budgets:
/// it is not verified yet.
pub fn plain_length(head: &[u8], stored_length: usize) -> usize {
    match head.get(LENGTH_AT..HEAD_LENGTH).and_then(|length| length.try_into().ok()) {
        Some(length) if is_sealed(head) => u32::from_be_bytes(length) as usize,
        _ => stored_length,
    }
}

/// What an envelope says about its content.
pub(super) struct EnvelopeHead {
    pub(super) key: DataKeyId,
    compressed: bool,
    length: u32,
}

impl EnvelopeHead {
    pub(super) fn read(stored: &[u8]) -> Result<Self, VaultFailure> {
        if stored.len() < CONTENT_AT + TAG_LENGTH {
            return Err(VaultFailure::Malformed);
        }
        let (compressed, length, key) = match &stored[..HEADER_LENGTH] {
            [MARK, MARK_2, VERSION, DEK, flags @ (0 | COMPRESSED), a, b, c, d, key @ ..] => {
                (*flags == COMPRESSED, u32::from_be_bytes([*a, *b, *c, *d]), key)
            }
            [MARK, MARK_2, VERSION, provider, ..] if *provider != DEK => {
                return Err(VaultFailure::UnknownProvider);
            }
            _ => return Err(VaultFailure::Malformed),
        };
        Ok(Self { key: key.try_into().map_err(|_| VaultFailure::Malformed)?, compressed, length })
    }

    fn write(&self) -> [u8; HEADER_LENGTH] {
        let mut header = [0; HEADER_LENGTH];
        let flags = if self.compressed { COMPRESSED } else { 0 };
        header[..LENGTH_AT].copy_from_slice(&[MARK, MARK_2, VERSION, DEK, flags]);
        header[LENGTH_AT..HEAD_LENGTH].copy_from_slice(&self.length.to_be_bytes());
        header[HEAD_LENGTH..].copy_from_slice(&self.key);
        header
    }
}

/// Puts content into an envelope.
pub(super) fn seal(
    cipher: &Cipher,
    key: DataKeyId,
    place: &SealContext<'_>,
    plain: &[u8],
) -> Result<Vec<u8>, VaultFailure> {
    let length = u32::try_from(plain.len())
        .map_err(|_| StoreError::Broken(format!("{}: content of 4 GiB or more", place.purpose())))?;
    let compressed = compress(plain);
    let content = compressed.as_deref().unwrap_or(plain);
    let header = EnvelopeHead { key, compressed: compressed.is_some(), length }.write();

    let mut sealed = Vec::with_capacity(CONTENT_AT + content.len() + TAG_LENGTH);
    sealed.extend_from_slice(&header);
    sealed.extend_from_slice(&[0; NONCE_LENGTH]);
    sealed.extend_from_slice(content);
    let (nonce, tag) = cipher.encrypt(&bound_to(&header, place), &mut sealed[CONTENT_AT..])?;
    sealed[HEADER_LENGTH..CONTENT_AT].copy_from_slice(&nonce);
    sealed.extend_from_slice(&tag);
    Ok(sealed)
}

/// Takes content out of the envelope whose head was read.
pub(super) fn open(
    cipher: &Cipher,
    head: EnvelopeHead,
    place: &SealContext<'_>,
    mut stored: Vec<u8>,
) -> Result<Vec<u8>, VaultFailure> {
    let (header, rest) = stored.split_at_mut(HEADER_LENGTH);
    let (nonce, content) = rest.split_at_mut(NONCE_LENGTH);
    let length = cipher.decrypt(nonce, &bound_to(header, place), content).ok_or(VaultFailure::BadTag)?.len();
    let (content, expected) = (CONTENT_AT..CONTENT_AT + length, head.length as usize);
    let plain = if head.compressed {
        zstd::bulk::decompress(&stored[content], expected).map_err(|_| VaultFailure::Malformed)?
    } else {
        stored.truncate(content.end);
        stored.drain(..content.start);
        stored
    };
    if plain.len() == expected { Ok(plain) } else { Err(VaultFailure::Malformed) }
}

/// The content compressed, if that makes it shorter.
fn compress(plain: &[u8]) -> Option<Vec<u8>> {
    if plain.len() < COMPRESSED_FROM {
        return None;
    }
    zstd::bulk::compress(plain, COMPRESSION_LEVEL).ok().filter(|compressed| compressed.len() < plain.len())
}

fn bound_to(header: &[u8], place: &SealContext<'_>) -> Vec<u8> {
    let mut bound_to = header.to_vec();
    place.append_to(&mut bound_to);
    bound_to
}
