//! Facts about the store itself.

use crate::{StoreError, Tx, TxExt};

/// Reads something, to know that reading works.
pub fn probe(tx: &mut dyn Tx) -> Result<(), StoreError> {
    tx.first("SELECT COUNT(*) FROM meta", &[], |row| row.int(0)).map(drop)
}

/// Writes nothing, but could not where nothing can be written.
pub fn probe_writing(tx: &mut dyn Tx) -> Result<(), StoreError> {
    tx.execute("DELETE FROM meta WHERE key = ''", &[]).map(drop)
}

/// The value stored under a key.
pub fn get(tx: &mut dyn Tx, key: &str) -> Result<Option<Vec<u8>>, StoreError> {
    tx.first("SELECT value FROM meta WHERE key = $1", &[key.into()], |row| Ok(row.bytes(0)?.to_vec()))
}

/// The value stored under a key; `fresh` is stored and returned if there is none yet.
pub fn get_or_insert(tx: &mut dyn Tx, key: &str, fresh: &[u8]) -> Result<Vec<u8>, StoreError> {
    tx.post(
        "INSERT INTO meta (key, value) VALUES ($1, $2) ON CONFLICT (key) DO NOTHING",
        &[key.into(), fresh.into()],
    )?;
    get(tx, key)?.ok_or_else(|| StoreError::Broken(format!("the stored fact '{key}' is missing")))
}

/// Stores a value under a key, or none.
pub(crate) fn set(tx: &mut dyn Tx, key: &str, value: Option<&[u8]>) -> Result<(), StoreError> {
    match value {
        Some(value) => tx.execute(
            "INSERT INTO meta (key, value) VALUES ($1, $2) ON CONFLICT (key) DO UPDATE SET value = excluded.value",
            &[key.into(), value.into()],
        )?,
        None => tx.execute("DELETE FROM meta WHERE key = $1", &[key.into()])?,
    };
    Ok(())
}
