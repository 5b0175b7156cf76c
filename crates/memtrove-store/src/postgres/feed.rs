//! The change feed where many write at once.
//!
//! A number that is taken inside a transaction would make everybody of a tenant wait for everybody else's commit. So changes
//! are written without one, and numbered once they are committed, by one at a time: in the order in which they were written,
//! as far as they are visible. A change that followed from another was written after that was committed, so it never comes
//! before it.

use super::tx::key_number;
use crate::{FeedEntry, Recorded, StoreError, Tx, TxExt};
use memtrove_core::legacy_labels;

/// What nodes tell each other that changes were numbered on.
pub(super) use memtrove_core::legacy_labels::POSTGRES_CHANGES_CHANNEL as CHANNEL;

/// Changes that are numbered at once.
const BATCH: i64 = 2000;

pub(super) fn record(tx: &mut dyn Tx, change: &FeedEntry<'_>) -> Result<Recorded, StoreError> {
    let token: i64 = rand::random();
    tx.post(
        "INSERT INTO changes_outbox (token, tenant, at, kind, user_id, resource, version) \
         VALUES ($1, $2, $3, $4, $5, $6, $7)",
        &[
            token.into(),
            change.tenant.into(),
            change.at.into(),
            change.kind.into(),
            change.user.into(),
            change.resource.into(),
            change.version.into(),
        ],
    )?;
    Ok(Recorded::Waiting(token))
}

/// Moves changes to their feeds.
const NUMBER: &str = "\
    WITH moved AS ( \
        DELETE FROM changes_outbox WHERE id IN (SELECT id FROM changes_outbox ORDER BY id LIMIT $1) RETURNING * \
    ), numbered AS ( \
        SELECT m.*, COALESCE((SELECT MAX(c.sequence) FROM changes c WHERE c.tenant = m.tenant), 0) \
            + row_number() OVER (PARTITION BY m.tenant ORDER BY m.id) AS sequence \
        FROM moved m \
    ), events AS ( \
        UPDATE stream_events e SET sequence = n.sequence FROM numbered n WHERE e.waiting = n.token \
    ), fed AS ( \
        INSERT INTO changes (tenant, sequence, at, kind, user_id, resource, version) \
        SELECT tenant, sequence, at, kind, user_id, resource, version FROM numbered RETURNING 1 \
    ) \
    SELECT COUNT(*) FROM fed";

/// All of it in one message, for a session of its own: a session that hangs while it numbers would stop the feed of every tenant.
/// Each statement sees what is committed when it begins, so it numbers only what has no number yet.
pub(super) fn numbering() -> String {
    let number = NUMBER.replace("$1", &BATCH.to_string());
    format!(
        "SELECT pg_advisory_xact_lock({}); {number}; SELECT pg_notify('{CHANNEL}', '')",
        key_number(legacy_labels::POSTGRES_NUMBERING_LOCK)
    )
}

pub(super) fn has_unnumbered(tx: &mut dyn Tx) -> Result<bool, StoreError> {
    Ok(tx.first("SELECT 1 FROM changes_outbox LIMIT 1", &[], |row| row.int(0))?.is_some())
}

pub(super) fn number(tx: &mut dyn Tx) -> Result<bool, StoreError> {
    tx.lock(legacy_labels::POSTGRES_NUMBERING_LOCK)?;
    let numbered = tx.first(NUMBER, &[BATCH.into()], |row| row.int(0))?.unwrap_or_default();
    if numbered > 0 {
        tx.post("SELECT pg_notify($1, '')", &[CHANNEL.into()])?;
    }
    Ok(numbered == BATCH)
}
