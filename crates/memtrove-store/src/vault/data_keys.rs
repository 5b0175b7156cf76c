//! The keys that content is sealed with: one at a time per tenant, stored wrapped by a configured key.

use super::cipher::{self, Cipher, KEY_LENGTH};
use super::keys::{Keys, Wrapped};
use super::{Vault, VaultFailure};
use crate::{Row, StoreError, Tx, TxExt};
use memtrove_core::identity::Tenant;
use std::sync::Arc;

pub(super) const DATA_KEY_ID_LENGTH: usize = 16;
pub(super) type DataKeyId = [u8; DATA_KEY_ID_LENGTH];

/// The key that a tenant's content is sealed with now. The first content of a tenant brings its key.
pub(super) fn active(tx: &mut dyn Tx, tenant: &Tenant) -> Result<(DataKeyId, Arc<Cipher>), VaultFailure> {
    if let Some(id) = active_id(tx, tenant)? {
        return Ok((id, find(tx, id)?));
    }
    let (vault, key) = (Arc::clone(tx.vault()), cipher::random::<KEY_LENGTH>()?);
    let new = configured(&vault)?.wrap(*cipher::random()?, tenant.as_str(), &key)?;
    let inserted = tx.execute(
        "INSERT INTO data_keys (id, tenant, wrapped, wrapped_by, active) VALUES ($1, $2, $3, $4, 1) \
         ON CONFLICT DO NOTHING",
        &[
            new.id.as_slice().into(),
            tenant.as_str().into(),
            new.wrapped.as_slice().into(),
            new.wrapped_by.as_str().into(),
        ],
    )?;
    if inserted == 1 {
        return Ok((new.id, vault.keep_unwrapped(new.id, Cipher::new(&key)?)));
    }
    // Somebody else was first.
    let id = active_id(tx, tenant)?.ok_or(VaultFailure::UnknownKey)?;
    Ok((id, find(tx, id)?))
}

fn active_id(tx: &mut dyn Tx, tenant: &Tenant) -> Result<Option<DataKeyId>, StoreError> {
    tx.first("SELECT id FROM data_keys WHERE tenant = $1 AND active = 1", &[tenant.as_str().into()], |row| {
        id(row, 0)
    })
}

/// The keys that a tenant's content may be sealed with.
pub(super) fn all_ids(tx: &mut dyn Tx, tenant: &Tenant) -> Result<Vec<DataKeyId>, StoreError> {
    tx.rows("SELECT id FROM data_keys WHERE tenant = $1", &[tenant.as_str().into()], |row| id(row, 0))
}

/// The key of this id.
pub(super) fn find(tx: &mut dyn Tx, id: DataKeyId) -> Result<Arc<Cipher>, VaultFailure> {
    if let Some(cipher) = tx.vault().unwrapped(&id) {
        return Ok(cipher);
    }
    let stored = tx.first(
        "SELECT id, tenant, wrapped, wrapped_by FROM data_keys WHERE id = $1",
        &[id.as_slice().into()],
        wrapped,
    )?;
    let vault = tx.vault();
    let key = configured(vault)?.unwrap(&stored.ok_or(VaultFailure::UnknownKey)?)?;
    Ok(vault.keep_unwrapped(id, Cipher::new(&key)?))
}

/// Wraps every data key with the current configured key; says how many were wrapped by another.
pub(super) fn rewrap(tx: &mut dyn Tx) -> Result<u64, StoreError> {
    let vault = Arc::clone(tx.vault());
    let Some(keys) = &vault.keys else { return Ok(0) };
    let stored = tx.rows(
        "SELECT id, tenant, wrapped, wrapped_by FROM data_keys WHERE wrapped_by <> $1",
        &[keys.current().id().into()],
        wrapped,
    )?;
    for old in &stored {
        let key = keys.unwrap(old).map_err(|failure| failure.at(&old.place()))?;
        let new = keys.wrap(old.id, &old.tenant, &key)?;
        tx.execute(
            "UPDATE data_keys SET wrapped = $2, wrapped_by = $3 WHERE id = $1",
            &[new.id.as_slice().into(), new.wrapped.as_slice().into(), new.wrapped_by.as_str().into()],
        )?;
    }
    Ok(stored.len() as u64)
}

/// From now on nothing is sealed with any of the keys there are.
pub(super) fn retire(tx: &mut dyn Tx) -> Result<(), StoreError> {
    tx.execute("UPDATE data_keys SET active = 0", &[])?;
    Ok(())
}

/// Removes the keys that were retired. What is still sealed with one of them is lost.
pub(super) fn destroy_retired(tx: &mut dyn Tx) -> Result<(), StoreError> {
    tx.execute("DELETE FROM data_keys WHERE active = 0", &[])?;
    Ok(())
}

/// The configured keys that data keys are wrapped by.
pub(super) fn wrapped_by(tx: &mut dyn Tx) -> Result<Vec<String>, StoreError> {
    tx.rows("SELECT DISTINCT wrapped_by FROM data_keys", &[], |row| Ok(row.text(0)?.to_owned()))
}

fn configured(vault: &Vault) -> Result<&Keys, VaultFailure> {
    vault.keys.as_ref().ok_or(VaultFailure::Sealed)
}

fn wrapped(row: &dyn Row) -> Result<Wrapped, StoreError> {
    Ok(Wrapped {
        id: id(row, 0)?,
        tenant: row.text(1)?.to_owned(),
        wrapped: row.bytes(2)?.to_vec(),
        wrapped_by: row.text(3)?.to_owned(),
    })
}

fn id(row: &dyn Row, column: usize) -> Result<DataKeyId, StoreError> {
    row.bytes(column)?
        .try_into()
        .map_err(|_| StoreError::Broken("the id of a data key has the wrong length".into()))
}
