//! Who made which version; never what it said. The first version is the entry's own making and is not kept again.

use super::{MemoryNo, ScopeNo, texts};
use crate::{StoreError, Tx, TxExt};
use memtrove_core::Timestamp;
use memtrove_core::identity::Tenant;
use memtrove_core::memories::{Author, MemoryId};
use std::collections::HashSet;

/// This many versions are remembered.
pub const KEPT: i64 = 100;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Version {
    /// Its number.
    pub version: i64,
    /// When it came about.
    pub at: Timestamp,
    /// Who made it.
    pub by: Author,
}

/// Notes who made a version.
pub fn record(
    tx: &mut dyn Tx,
    id: MemoryId,
    version: i64,
    at: Timestamp,
    by: &Author,
) -> Result<(), StoreError> {
    tx.post(
        "INSERT INTO memory_versions (no, version, at, user_id, client, shared_by) \
         SELECT m.no, $2, $3, $4, $5, CASE WHEN s.user_id = $4 THEN NULL ELSE $4 END FROM memories m \
         JOIN memory_scopes s ON s.id = m.scope_no WHERE m.id = $1 ON CONFLICT (no, version) DO NOTHING",
        &[
            id.0.into(),
            version.into(),
            at.as_micros().into(),
            by.user.as_deref().into(),
            by.client.as_deref().into(),
        ],
    )?;
    tx.post(
        "DELETE FROM memory_versions WHERE no = (SELECT no FROM memories WHERE id = $1) AND version <= $2",
        &[id.0.into(), (version - KEPT).into()],
    )?;
    Ok(())
}

/// The versions after the first, oldest first.
pub fn list(tx: &mut dyn Tx, no: MemoryNo) -> Result<Vec<Version>, StoreError> {
    tx.rows(
        "SELECT version, at, user_id, client FROM memory_versions WHERE no = $1 ORDER BY version",
        &[no.0.into()],
        |row| {
            Ok(Version {
                version: row.int(0)?,
                at: Timestamp::from_micros(row.int(1)?),
                by: Author {
                    user: row.opt_text(2)?.map(str::to_owned),
                    client: row.opt_text(3)?.map(str::to_owned),
                },
            })
        },
    )
}

/// Takes a user's name off up to `limit` versions that it made in scopes that are not its own, and unsays what those entries
/// said before: some of it may be what the user wrote. Says how many.
pub fn anonymize(tx: &mut dyn Tx, tenant: &Tenant, user: &str, limit: i64) -> Result<u64, StoreError> {
    let made = tx.rows(
        "SELECT v.no, v.version, m.id, m.scope_no FROM memory_versions v JOIN memories m ON m.no = v.no \
         JOIN memory_scopes s ON s.id = m.scope_no WHERE v.shared_by = $1 AND s.tenant = $2 LIMIT $3",
        &[user.into(), tenant.as_str().into(), limit.into()],
        |row| Ok((row.int(0)?, row.int(1)?, MemoryId(row.uuid(2)?), ScopeNo(row.int(3)?))),
    )?;
    let mut unsaid = HashSet::new();
    for (no, version, id, scope) in &made {
        if unsaid.insert(*id) {
            texts::unsay(tx, tenant, *scope, *id)?;
        }
        tx.post(
            "UPDATE memory_versions SET user_id = NULL, client = NULL, shared_by = NULL WHERE no = $1 AND version = $2",
            &[(*no).into(), (*version).into()],
        )?;
    }
    Ok(made.len() as u64)
}
