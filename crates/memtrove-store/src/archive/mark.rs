//! The note that an import is under way. It comes before the first row and goes after the last, so that half an import is
//! never taken for a whole one.

use super::numbers::Numbers;
use crate::{StoreError, Tx, meta};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// The fact that an import is under way.
const IMPORT: &str = "import";
/// The fact that content may have been written as it is, which the vault notes.
pub(super) const PLAIN_CONTENT: &str = "plain_content";

/// How far an import is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Mark {
    pub(super) archive: Uuid,
    /// How many of its rows are in the store.
    pub(super) rows: u64,
    /// Whether the store was empty.
    pub(super) fresh: bool,
    /// By how much numbers of rows are moved.
    pub(super) moved: Numbers,
}

impl Mark {
    pub(super) fn find(tx: &mut dyn Tx) -> Result<Option<Self>, StoreError> {
        let Some(stored) = meta::get(tx, IMPORT)? else { return Ok(None) };
        serde_json::from_slice(&stored).map(Some).map_err(|_| unfinished())
    }

    pub(super) fn put(&self, tx: &mut dyn Tx) -> Result<(), StoreError> {
        let mark = serde_json::to_vec(self).map_err(|error| StoreError::Broken(error.to_string()))?;
        meta::set(tx, IMPORT, Some(&mark))
    }

    pub(super) fn remove(tx: &mut dyn Tx) -> Result<(), StoreError> {
        meta::set(tx, IMPORT, None)
    }
}

/// Refuses a store that holds half an import, with a sentence that says what to do.
pub fn refuse_unfinished(tx: &mut dyn Tx) -> Result<(), StoreError> {
    match meta::get(tx, IMPORT)? {
        Some(_) => Err(unfinished()),
        None => Ok(()),
    }
}

fn unfinished() -> StoreError {
    StoreError::Schema(
        "an import into this store has not come to its end: run `memtrove import` with the same archive again, which goes on \
         where it was, or begin with an empty store"
            .into(),
    )
}
