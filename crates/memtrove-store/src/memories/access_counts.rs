//! How often entries were found: written behind, and of no version.

use crate::{StoreError, Tx};
use memtrove_core::Timestamp;
use memtrove_core::memories::MemoryId;

/// Counts uses of an entry, if it is still there.
pub fn add(tx: &mut dyn Tx, id: MemoryId, uses: i64, used_at: Timestamp) -> Result<(), StoreError> {
    tx.post(
        "INSERT INTO memory_uses (no, uses, used_at) SELECT no, $2, $3 FROM memories WHERE id = $1 \
         ON CONFLICT (no) DO UPDATE SET uses = memory_uses.uses + excluded.uses, used_at = excluded.used_at",
        &[id.0.into(), uses.into(), used_at.as_micros().into()],
    )?;
    Ok(())
}
