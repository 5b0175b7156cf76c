//! Whether a store may be opened with a vault, asked by every engine before its first unit of work.

use super::columns::TABLES;
use super::{Provider, data_keys, rotation};
use crate::{StoreError, Tx, meta};
use std::sync::Arc;

/// The fact that content may have been written as it is.
const PLAIN_CONTENT: &str = "plain_content";

/// Refuses a vault that cannot read what the store holds, and notes what is written from now on.
pub(crate) fn admit(tx: &mut dyn Tx) -> Result<(), StoreError> {
    check(tx)?;
    let vault = Arc::clone(tx.vault());
    if vault.rotating {
        return Ok(());
    }
    if !vault.reads_plain {
        note_plain(tx, false)?;
    }
    if vault.writes == Provider::Plain {
        note_plain(tx, true)?;
    }
    // What is written now may land where a rotation that was interrupted has been already.
    rotation::start_over(tx)
}

/// Refuses a vault that cannot read what the store holds, with a sentence that says what to do. Changes nothing.
pub(crate) fn check(tx: &mut dyn Tx) -> Result<(), StoreError> {
    let vault = Arc::clone(tx.vault());
    let wrapped_by = data_keys::wrapped_by(tx)?;
    match &vault.keys {
        None if !wrapped_by.is_empty() => {
            return Err(refused(
                "the content of this store is encrypted, and encryption.providers does not name \"dek\": set \
             encryption.dek.key to the key it was encrypted with; to turn encryption off, set \
             encryption.providers = [\"plain\", \"dek\"] next to the key and run `memtrove rotate-keys`",
            ));
        }
        Some(keys) => {
            if let Some(missing) = wrapped_by.iter().find(|id| !keys.has(id)) {
                return Err(refused(&format!(
                    "the content of this store is encrypted with the key {missing}, which is not configured (the \
                     configured one is {}): set it as encryption.dek.key, or add it to encryption.dek.decryption_keys",
                    keys.current().id()
                )));
            }
        }
        None => {}
    }
    if !vault.rotating && !vault.reads_plain && may_hold_plain(tx)? && !is_empty(tx)? {
        return Err(refused(
            "this store holds content that is not encrypted, and encryption.providers does not name \"plain\": run \
             `memtrove rotate-keys` to encrypt it now, or set encryption.providers = [\"dek\", \"plain\"] to encrypt \
             only what is written from now on",
        ));
    }
    Ok(())
}

/// Whether content may have been written as it is.
pub(super) fn may_hold_plain(tx: &mut dyn Tx) -> Result<bool, StoreError> {
    Ok(meta::get(tx, PLAIN_CONTENT)?.is_some())
}

/// Notes that content is written as it is, or that none is left. Writes only what is new, so that a server starts on a full
/// disk too.
pub(super) fn note_plain(tx: &mut dyn Tx, plain: bool) -> Result<(), StoreError> {
    if may_hold_plain(tx)? == plain {
        return Ok(());
    }
    meta::set(tx, PLAIN_CONTENT, plain.then_some(&[1]))
}

fn is_empty(tx: &mut dyn Tx) -> Result<bool, StoreError> {
    for table in TABLES {
        if !table.is_empty(tx)? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn refused(why: &str) -> StoreError {
    StoreError::Schema(why.into())
}
