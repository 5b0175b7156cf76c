//! The keys that are configured. They wrap data keys; what is signed is signed with others that are derived from them.

use super::cipher::{Cipher, KEY_LENGTH, NONCE_LENGTH};
use super::data_keys::DataKeyId;
use super::{SealContext, VaultFailure, seal_contexts};
use crate::StoreError;
use memtrove_core::legacy_labels;
use std::fmt::{Debug, Formatter};
use zeroize::Zeroizing;

/// A configured key.
pub struct WrappingKey {
    id: String,
    cipher: Cipher,
    signing: Zeroizing<[u8; KEY_LENGTH]>,
}

impl Debug for WrappingKey {
    /// Without what is secret.
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WrappingKey").field("id", &self.id).finish_non_exhaustive()
    }
}

impl WrappingKey {
    /// Takes the 32 bytes of a key.
    pub fn new(bytes: &[u8; KEY_LENGTH]) -> Result<Self, StoreError> {
        let id = blake3::derive_key(legacy_labels::WRAPPING_KEY_ID, bytes);
        let id = id[..8].iter().map(|byte| format!("{byte:02x}")).collect();
        let signing = Zeroizing::new(blake3::derive_key(legacy_labels::SIGNING_KEY, bytes));
        Ok(Self { id, cipher: Cipher::new(bytes)?, signing })
    }

    /// What it is called where it is used. It says nothing about the key itself.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// What only those can sign with who have the key, and which opens nothing.
    pub(super) fn signing(&self) -> &[u8; KEY_LENGTH] {
        &self.signing
    }
}

/// All configured keys.
#[derive(Debug)]
pub struct Keys {
    current: WrappingKey,
    former: Vec<WrappingKey>,
}

/// A data key as it is stored.
pub(super) struct Wrapped {
    pub(super) id: DataKeyId,
    pub(super) tenant: String,
    pub(super) wrapped: Vec<u8>,
    pub(super) wrapped_by: String,
}

impl Wrapped {
    pub(super) fn place(&self) -> SealContext<'_> {
        seal_contexts::data_key(&self.tenant, &self.id)
    }

    /// The tenant is part of it: a data key that is moved to another tenant cannot be unwrapped.
    fn bound_to(&self) -> Vec<u8> {
        let mut bound_to = Vec::new();
        self.place().append_to(&mut bound_to);
        bound_to
    }
}

impl Keys {
    /// The key that wraps from now on, and those that earlier ones were wrapped with.
    pub fn new(current: WrappingKey, former: Vec<WrappingKey>) -> Self {
        Self { current, former }
    }

    /// The key that wraps from now on.
    pub fn current(&self) -> &WrappingKey {
        &self.current
    }

    /// Whether a data key that was wrapped by this key can be unwrapped.
    pub(super) fn has(&self, id: &str) -> bool {
        self.get(id).is_some()
    }

    fn get(&self, id: &str) -> Option<&WrappingKey> {
        std::iter::once(&self.current).chain(&self.former).find(|key| key.id == id)
    }

    /// Wraps a tenant's data key.
    pub(super) fn wrap(
        &self,
        id: DataKeyId,
        tenant: &str,
        data_key: &[u8; KEY_LENGTH],
    ) -> Result<Wrapped, StoreError> {
        let mut wrapped =
            Wrapped { id, tenant: tenant.into(), wrapped: Vec::new(), wrapped_by: self.current.id.clone() };
        let mut content = Zeroizing::new(*data_key);
        let (nonce, tag) = self.current.cipher.encrypt(&wrapped.bound_to(), content.as_mut())?;
        wrapped.wrapped = [nonce.as_slice(), content.as_slice(), &tag].concat();
        Ok(wrapped)
    }

    /// Unwraps a data key with the key that wrapped it.
    pub(super) fn unwrap(&self, key: &Wrapped) -> Result<Zeroizing<[u8; KEY_LENGTH]>, VaultFailure> {
        let by = self.get(&key.wrapped_by).ok_or(VaultFailure::UnknownKey)?;
        let (nonce, content) = key.wrapped.split_at_checked(NONCE_LENGTH).ok_or(VaultFailure::Malformed)?;
        let mut content = Zeroizing::new(content.to_vec());
        let data_key = by.cipher.decrypt(nonce, &key.bound_to(), &mut content).ok_or(VaultFailure::BadTag)?;
        let data_key = <&[u8; KEY_LENGTH]>::try_from(&*data_key).map_err(|_| VaultFailure::Malformed)?;
        Ok(Zeroizing::new(*data_key))
    }
}
