//! AES-256-GCM, as far as the vault needs it.

use crate::StoreError;
use aws_lc_rs::aead::{AES_256_GCM, Aad, Nonce, RandomizedNonceKey};
use std::fmt::{Debug, Formatter};
use zeroize::Zeroizing;

pub(super) const KEY_LENGTH: usize = 32;
pub(super) const NONCE_LENGTH: usize = 12;
pub(super) const TAG_LENGTH: usize = 16;

/// Derives the key of digests. Stored digests depend on it.
const DIGEST_KEY: &str = "memtrove: digests by which content is looked up that is sealed";

/// A key that is ready for use. Its nonces are random, so that it is good for 2³² messages.
#[derive(Debug)]
pub(super) struct Cipher {
    sealing: RandomizedNonceKey,
    digesting: DigestKey,
}

impl Cipher {
    pub(super) fn new(key: &[u8; KEY_LENGTH]) -> Result<Self, StoreError> {
        let sealing =
            RandomizedNonceKey::new(&AES_256_GCM, key).map_err(|_| broken("a key cannot be prepared"))?;
        let digesting = DigestKey(Zeroizing::new(blake3::derive_key(DIGEST_KEY, key)));
        Ok(Self { sealing, digesting })
    }

    /// A digest that only those can make who have the key.
    pub(super) fn digest(&self, content: &[u8]) -> blake3::Hash {
        blake3::keyed_hash(&self.digesting.0, content)
    }

    /// Encrypts in place; answers the nonce and the tag.
    pub(super) fn encrypt(
        &self,
        bound_to: &[u8],
        content: &mut [u8],
    ) -> Result<([u8; NONCE_LENGTH], [u8; TAG_LENGTH]), StoreError> {
        let (nonce, tag) = self
            .sealing
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
        self.sealing.open_in_place(nonce, Aad::from(bound_to), content).ok()
    }
}

struct DigestKey(Zeroizing<[u8; KEY_LENGTH]>);

impl Debug for DigestKey {
    /// Without what is secret.
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        f.write_str("DigestKey")
    }
}

/// Unpredictable bytes.
pub(crate) fn random<const N: usize>() -> Result<Zeroizing<[u8; N]>, StoreError> {
    let mut bytes = Zeroizing::new([0; N]);
    aws_lc_rs::rand::fill(bytes.as_mut()).map_err(|_| broken("there is no randomness"))?;
    Ok(bytes)
}

fn broken(what: &str) -> StoreError {
    StoreError::Broken(format!("encryption: {what}"))
}
