//! AES-256-GCM, as far as the vault needs it.

use crate::StoreError;
use aws_lc_rs::aead::{AES_256_GCM, Aad, Nonce, RandomizedNonceKey};
use zeroize::Zeroizing;

pub(super) const KEY_LENGTH: usize = 32;
pub(super) const NONCE_LENGTH: usize = 12;
pub(super) const TAG_LENGTH: usize = 16;

/// A key that is ready for use. Its nonces are random, so that it is good for 2³² messages.
#[derive(Debug)]
pub(super) struct Cipher(RandomizedNonceKey);

impl Cipher {
    pub(super) fn new(key: &[u8; KEY_LENGTH]) -> Result<Self, StoreError> {
        RandomizedNonceKey::new(&AES_256_GCM, key).map(Self).map_err(|_| broken("a key cannot be prepared"))
    }

    /// Encrypts in place; answers the nonce and the tag.
    pub(super) fn encrypt(
        &self,
        bound_to: &[u8],
        content: &mut [u8],
    ) -> Result<([u8; NONCE_LENGTH], [u8; TAG_LENGTH]), StoreError> {
        let (nonce, tag) = self
            .0
            .seal_in_place_separate_tag(Aad::from(bound_to), content)
            .map_err(|_| broken("content cannot be encrypted"))?;
        let tag = tag.as_ref().try_into().map_err(|_| broken("a tag has the wrong length"))?;
        Ok((*nonce.as_ref(), tag))
    }

    /// Decrypts content that its tag follows, in place; `None` unless it is what was encrypted, and bound to the same.
    pub(super) fn decrypt<'a>(
        &self,
        nonce: &[u8],
        bound_to: &[u8],
        content: &'a mut [u8],
    ) -> Option<&'a mut [u8]> {
        let nonce = Nonce::try_assume_unique_for_key(nonce).ok()?;
        self.0.open_in_place(nonce, Aad::from(bound_to), content).ok()
    }
}

/// Bytes that nobody can foresee.
pub(crate) fn random<const N: usize>() -> Result<Zeroizing<[u8; N]>, StoreError> {
    let mut bytes = Zeroizing::new([0; N]);
    aws_lc_rs::rand::fill(bytes.as_mut()).map_err(|_| broken("there is no randomness"))?;
    Ok(bytes)
}

fn broken(what: &str) -> StoreError {
    StoreError::Broken(format!("encryption: {what}"))
}
