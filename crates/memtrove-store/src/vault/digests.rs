//! Digests by which sealed content is looked up. Each is made under the key that seals the content, so that a copy of the store
//! does not reveal what was said, even to a good guess.

use super::{Provider, SealContext, VaultFailure, data_keys};
use crate::{StoreError, Tx};
use memtrove_core::identity::Tenant;

pub type ContentDigest = [u8; 16];

/// The digest of content that is written now.
pub fn digest(tx: &mut dyn Tx, tenant: &Tenant, content: &[u8]) -> Result<ContentDigest, StoreError> {
    if tx.vault().writes == Provider::Plain {
        return Ok(plain_digest(content));
    }
    match data_keys::active(tx, tenant) {
        Ok((_, cipher)) => Ok(shortened(cipher.digest(content))),
        Err(failure) => Err(failed(failure)),
    }
}

/// The digests that content may have that was written at any time: one, but where encryption was turned on or off without
/// sealing everything anew, or while that was interrupted.
pub fn digests(tx: &mut dyn Tx, tenant: &Tenant, content: &[u8]) -> Result<Vec<ContentDigest>, StoreError> {
    let mut digests = Vec::with_capacity(1);
    if tx.vault().reads_plain {
        digests.push(plain_digest(content));
    }
    if !tx.vault().is_plain() {
        for id in data_keys::all_ids(tx, tenant)? {
            let cipher = data_keys::find(tx, id).map_err(failed)?;
            digests.push(shortened(cipher.digest(content)));
        }
    }
    Ok(digests)
}

/// A digest that anybody can make.
pub fn plain_digest(content: &[u8]) -> ContentDigest {
    shortened(blake3::hash(content))
}

fn failed(failure: VaultFailure) -> StoreError {
    failure.at(&SealContext::new("digest", []))
}

fn shortened(hash: blake3::Hash) -> ContentDigest {
    let mut short = [0; 16];
    short.copy_from_slice(&hash.as_bytes()[..16]);
    short
}
