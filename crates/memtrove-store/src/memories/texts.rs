//! What entries said before: the text that each change replaced. It goes with its entry, and when
//! others come to see the entry, or a user who wrote it is forgotten.

use super::{ScopeNo, segments, versions};
use crate::vault::{self, seal_contexts};
use crate::{StoreError, Tx, TxExt};
use memtrove_core::Timestamp;
use memtrove_core::identity::Tenant;
use memtrove_core::memories::{Memory, MemoryId};

/// A text that a version replaced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Replaced {
    /// The version that says something else.
    pub version: i64,
    /// When that came about.
    pub at: Timestamp,
    /// What was said until then; none where that was unsaid.
    pub text: Option<String>,
}

/// Keeps what an entry said until this version. As many are kept as there are versions remembered.
pub(super) fn keep(
    tx: &mut dyn Tx,
    scope: ScopeNo,
    memory: &Memory,
    replaced: &str,
) -> Result<(), StoreError> {
    let (id, version) = (memory.id.0, memory.version);
    let tenant = memory.scope.tenant().clone();
    let text = vault::seal(tx, &tenant, &seal_contexts::memory_text(id, version), replaced.as_bytes())?;
    tx.post(
        "INSERT INTO memory_texts (id, version, scope_no, at, text) VALUES ($1, $2, $3, $4, $5)",
        &[id.into(), version.into(), scope.0.into(), memory.updated_at.as_micros().into(), (*text).into()],
    )?;
    tx.post(
        "DELETE FROM memory_texts WHERE id = $1 AND version <= $2",
        &[id.into(), (version - versions::KEPT).into()],
    )?;
    Ok(())
}

/// The texts that versions of an entry replaced, oldest first.
pub fn list(tx: &mut dyn Tx, id: MemoryId) -> Result<Vec<Replaced>, StoreError> {
    let rows = tx.rows(
        "SELECT version, at, text FROM memory_texts WHERE id = $1 ORDER BY version",
        &[id.0.into()],
        |row| Ok((row.int(0)?, Timestamp::from_micros(row.int(1)?), row.bytes(2)?.to_vec())),
    )?;
    let open = |(version, at, text)| {
        let text = vault::open_text(tx, &seal_contexts::memory_text(id.0, version), text)?;
        // No entry says nothing.
        Ok(Replaced { version, at, text: Some(text).filter(|text| !text.is_empty()) })
    };
    rows.into_iter().map(open).collect()
}

/// Takes what they say out of the texts of an entry, which stays: that there was another text is known, and not which. A kept index
/// of its scope may know them still, so it goes.
pub fn unsay(tx: &mut dyn Tx, tenant: &Tenant, scope: ScopeNo, id: MemoryId) -> Result<(), StoreError> {
    segments::discard(tx, scope)?;
    let versions =
        tx.rows("SELECT version FROM memory_texts WHERE id = $1", &[id.0.into()], |row| row.int(0))?;
    for version in versions {
        let nothing = vault::seal(tx, tenant, &seal_contexts::memory_text(id.0, version), b"")?;
        tx.post(
            "UPDATE memory_texts SET text = $3 WHERE id = $1 AND version = $2",
            &[id.0.into(), version.into(), (*nothing).into()],
        )?;
    }
    Ok(())
}

/// Takes what they say out of the texts of an entry that goes.
pub(super) fn blank(tx: &mut dyn Tx, id: MemoryId) -> Result<(), StoreError> {
    tx.post("UPDATE memory_texts SET text = $2 WHERE id = $1", &[id.0.into(), b"".as_slice().into()])?;
    Ok(())
}
