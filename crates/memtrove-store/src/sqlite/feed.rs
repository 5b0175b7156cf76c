//! The change feed where one thread writes: a change has its number at once.

use crate::{FeedEntry, Recorded, StoreError, Tx, TxExt};

/// Puts a change at the end of its tenant's feed.
pub(super) fn record(tx: &mut dyn Tx, change: &FeedEntry<'_>) -> Result<Recorded, StoreError> {
    let number = tx.first(
        "INSERT INTO changes (tenant, sequence, at, kind, user_id, resource, version) VALUES ($1, \
         COALESCE((SELECT MAX(sequence) FROM changes WHERE tenant = $1), 0) + 1, $2, $3, $4, $5, $6) RETURNING sequence",
        &[
            change.tenant.into(),
            change.at.into(),
            change.kind.into(),
            change.user.into(),
            change.resource.into(),
            change.version.into(),
        ],
        |row| row.int(0),
    )?;
    number.map(Recorded::Numbered).ok_or_else(|| StoreError::Broken("a change has no number".into()))
}
