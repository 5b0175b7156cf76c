//! Entries that point at files: found by the document when it changes, and looked at afterwards, some at a time.

use super::MemoryNo;
use crate::files::scopes::ScopeId;
use crate::{StoreError, Tx, TxExt};
use memtrove_core::files::{FilePath, Scope};
use memtrove_core::identity::Tenant;
use memtrove_core::memories::Memory;
use memtrove_core::memories::pointer::Pointer;

/// An entry whose document changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Due {
    /// The entry.
    pub no: MemoryNo,
    /// The scope that the document is in, or was before its user was forgotten.
    pub scope: ScopeId,
}

/// What a pointer leads to: a document of one user, or in a shared layer of anybody in the tenant.
fn document(tenant: &Tenant, user: Option<&str>, path: &FilePath) -> [u8; 16] {
    let mut hasher = blake3::Hasher::new();
    for part in [Some(tenant.as_str()), user, Some(path.as_str())] {
        hasher.update(&part.map_or(u64::MAX, |part| part.len() as u64).to_be_bytes());
        hasher.update(part.unwrap_or_default().as_bytes());
    }
    let mut short = [0; 16];
    short.copy_from_slice(&hasher.finalize().as_bytes()[..16]);
    short
}

/// Makes an entry found by the document that it points at, if it does.
pub(super) fn put(tx: &mut dyn Tx, no: MemoryNo, memory: &Memory) -> Result<(), StoreError> {
    let Some(path) = Pointer::among(&memory.metadata).and_then(|pointer| pointer.file()) else {
        tx.post("DELETE FROM memory_pointers WHERE no = $1", &[no.0.into()])?;
        return Ok(());
    };
    // What waits to be looked at still does, unless it points elsewhere now.
    tx.post(
        "INSERT INTO memory_pointers (no, document) VALUES ($1, $2) ON CONFLICT (no) DO UPDATE SET \
         document = excluded.document, \
         due = CASE WHEN memory_pointers.document = excluded.document THEN memory_pointers.due END",
        &[no.0.into(), document(memory.scope.tenant(), memory.scope.user(), &path).as_slice().into()],
    )?;
    Ok(())
}

/// Notes that a document changed, came or went, in the unit of work that does it; says how many entries point at it.
pub fn note_change(tx: &mut dyn Tx, scope: &Scope, id: ScopeId, path: &FilePath) -> Result<u64, StoreError> {
    let own = document(scope.tenant(), Some(scope.user().as_str()), path);
    let shared = document(scope.tenant(), None, path);
    tx.execute(
        "UPDATE memory_pointers SET due = $3 WHERE document IN ($1, $2)",
        &[own.as_slice().into(), shared.as_slice().into(), id.0.into()],
    )
}

/// Up to `limit` entries that are to be looked at.
pub fn due(tx: &mut dyn Tx, limit: i64) -> Result<Vec<Due>, StoreError> {
    tx.rows(
        "SELECT no, due FROM memory_pointers WHERE due IS NOT NULL ORDER BY due, no LIMIT $1",
        &[limit.into()],
        |row| Ok(Due { no: MemoryNo(row.int(0)?), scope: ScopeId(row.int(1)?) }),
    )
}

/// Notes that an entry was looked at, unless another document changed since.
pub fn set_seen(tx: &mut dyn Tx, due: Due) -> Result<(), StoreError> {
    tx.post(
        "UPDATE memory_pointers SET due = NULL WHERE no = $1 AND due = $2",
        &[due.no.0.into(), due.scope.0.into()],
    )?;
    Ok(())
}
