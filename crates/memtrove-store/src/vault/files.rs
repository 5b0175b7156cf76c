//! Files beside the database that are made of sealed content: each has a key of its own, which it holds sealed under the tenant's. So
//! parts need no look at the store, and are lost with the tenant's key.

use super::cipher::{Cipher, KEY_LENGTH, NONCE_LENGTH, random};
use super::{SealContext, VaultFailure, open_envelope, seal};
use crate::{StoreError, Tx};
use memtrove_core::identity::Tenant;

/// The key of one file.
#[derive(Debug)]
pub struct FileKey(Cipher);

impl FileKey {
    /// A part as it is to be written.
    pub(crate) fn seal(&self, bound_to: &[u8], part: &[u8]) -> Result<Vec<u8>, StoreError> {
        let mut sealed = Vec::with_capacity(NONCE_LENGTH + part.len() + super::cipher::TAG_LENGTH);
        sealed.resize(NONCE_LENGTH, 0);
        sealed.extend_from_slice(part);
        let (nonce, tag) = self.0.encrypt(bound_to, &mut sealed[NONCE_LENGTH..])?;
        sealed[..NONCE_LENGTH].copy_from_slice(&nonce);
        sealed.extend_from_slice(&tag);
        Ok(sealed)
    }

    /// A part as it was before it was sealed; `None` if it is none of this file.
    pub(crate) fn open<'a>(&self, bound_to: &[u8], sealed: &'a mut [u8]) -> Option<&'a [u8]> {
        let (nonce, part) = sealed.split_at_mut_checked(NONCE_LENGTH)?;
        self.0.decrypt(nonce, bound_to, part).map(|part| &*part)
    }
}

/// A key for a new file, and what the file holds of it; `None` where content is written as it is.
pub(crate) fn new_file_key(
    tx: &mut dyn Tx,
    tenant: &Tenant,
    place: &SealContext<'_>,
) -> Result<Option<(FileKey, Vec<u8>)>, StoreError> {
    if !tx.vault().seals() {
        return Ok(None);
    }
    let key = random::<KEY_LENGTH>()?;
    // No envelope begins with a zero.
    let plain = zeroize::Zeroizing::new([&[0], key.as_slice()].concat());
    let sealed = seal(tx, tenant, place, &plain)?.into_owned();
    Ok(Some((FileKey(Cipher::new(&key)?), sealed)))
}

/// The key that a file holds. `None`: it cannot be opened, and then the file is of no use. That is no alarm: what the file was made of is
/// in the database.
pub(crate) fn file_key(
    tx: &mut dyn Tx,
    place: &SealContext<'_>,
    sealed: Vec<u8>,
) -> Result<Option<FileKey>, StoreError> {
    let plain = match open_envelope(tx, place, sealed) {
        Ok(plain) => zeroize::Zeroizing::new(plain),
        Err(VaultFailure::Store(error)) => return Err(error),
        Err(_) => return Ok(None),
    };
    match plain.strip_prefix(&[0]).and_then(|key| key.try_into().ok()) {
        Some(key) => Ok(Some(FileKey(Cipher::new(key)?))),
        None => Ok(None),
    }
}
