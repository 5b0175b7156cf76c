//! Keys that make a repeated change answer what the first one did.

use super::STEP_BYTES;
use super::scopes::ScopeId;
use crate::vault::{self, seal_contexts};
use crate::{Lock, StoreError, Tx, TxExt};
use memtrove_core::Timestamp;
use memtrove_core::identity::Tenant;
use std::ops::ControlFlow;

/// A request that succeeded under a key.
#[derive(Debug, Clone)]
pub struct Remembered {
    /// What the request was.
    pub fingerprint: Vec<u8>,
    /// What it was answered: JSON.
    pub answer: String,
}

/// Finds what succeeded under a key since `from`.
pub fn find(
    tx: &mut dyn Tx,
    scope: ScopeId,
    principal: &str,
    key: &str,
    from: Timestamp,
) -> Result<Option<Remembered>, StoreError> {
    let found = tx.first(
        "SELECT fingerprint, answer FROM file_idempotency WHERE scope_id = $1 AND principal = $2 AND key = $3 \
         AND created_at >= $4",
        &[scope.0.into(), principal.into(), key.into(), from.as_micros().into()],
        |row| Ok((row.bytes(0)?.to_vec(), row.bytes(1)?.to_vec())),
    )?;
    let Some((fingerprint, sealed)) = found else { return Ok(None) };
    let answer = vault::open_text(tx, &seal_contexts::file_idempotency(scope.0, principal, key), sealed)?;
    Ok(Some(Remembered { fingerprint, answer }))
}

/// Remembers a success under its key, replacing one that is too old to count.
#[allow(clippy::too_many_arguments, reason = "one row has as many columns")]
pub fn remember(
    tx: &mut dyn Tx,
    tenant: &Tenant,
    scope: ScopeId,
    principal: &str,
    key: &str,
    fingerprint: &[u8],
    answer: &str,
    now: Timestamp,
) -> Result<(), StoreError> {
    let place = seal_contexts::file_idempotency(scope.0, principal, key);
    let answer = vault::seal(tx, tenant, &place, answer.as_bytes())?;
    tx.post(
        "INSERT INTO file_idempotency (scope_id, principal, key, fingerprint, created_at, answer) \
         VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT (scope_id, principal, key) DO UPDATE SET \
         fingerprint = excluded.fingerprint, created_at = excluded.created_at, answer = excluded.answer",
        &[
            scope.0.into(),
            principal.into(),
            key.into(),
            fingerprint.into(),
            now.as_micros().into(),
            (*answer).into(),
        ],
    )?;
    Ok(())
}

/// Forgets some of the keys older than `before`, the oldest first: up to `limit`, and not much more than a step's bytes.
/// Says how many.
pub fn purge(tx: &mut dyn Tx, before: Timestamp, limit: i64) -> Result<u64, StoreError> {
    let (mut old, mut bytes) = (Vec::new(), 0);
    tx.query(
        "SELECT scope_id, principal, key, LENGTH(answer) FROM file_idempotency WHERE created_at < $1 \
         ORDER BY created_at LIMIT $2",
        &[before.as_micros().into(), limit.into()],
        Lock::None,
        &mut |row| {
            old.push((row.int(0)?, row.text(1)?.to_owned(), row.text(2)?.to_owned()));
            bytes += row.int(3)? as usize;
            Ok(if bytes < STEP_BYTES { ControlFlow::Continue(()) } else { ControlFlow::Break(()) })
        },
    )?;
    let mut removed = 0;
    for (scope, principal, key) in &old {
        removed += tx.execute(
            "DELETE FROM file_idempotency WHERE scope_id = $1 AND principal = $2 AND key = $3 AND created_at < $4",
            &[(*scope).into(), principal.as_str().into(), key.as_str().into(), before.as_micros().into()],
        )?;
    }
    Ok(removed)
}
