//! The change feed where one thread writes: a change has its number at once.

use crate::{FeedEntry, Recorded, StoreError, Tx, TxExt};

/// Puts a change at the end of its tenant's feed.
pub(super) fn record(tx: &mut dyn Tx, change: &FeedEntry<'_>) -> Result<Recorded, StoreError> {
    // Two statements: what a row is made of and what it returns cost SQLite more in one.
    let last =
        tx.first("SELECT MAX(sequence) FROM changes WHERE tenant = $1", &[change.tenant.into()], |row| {
            row.opt_int(0)
        })?;
    let number = last.flatten().unwrap_or_default() + 1;
    tx.execute(
        "INSERT INTO changes (tenant, sequence, at, kind, user_id, resource, version) \
         VALUES ($1, $2, $3, $4, $5, $6, $7)",
        &[
            change.tenant.into(),
            number.into(),
            change.at.into(),
            change.kind.into(),
            change.user.into(),
            change.resource.into(),
            change.version.into(),
        ],
    )?;
    Ok(Recorded::Numbered(number))
}
