//! Requests that succeeded under an `Idempotency-Key`, and what they were answered.

use crate::vault::{self, seal_contexts};
use crate::{Row, StoreError, Tx, TxExt};
use memtrove_core::Timestamp;
use memtrove_core::identity::Tenant;

/// What makes a request the repetition of another.
#[derive(Debug, Clone)]
pub struct Key {
    /// Who called.
    pub principal: String,
    /// The route and the key, as one text.
    pub key: String,
    /// The digest of what was asked.
    pub fingerprint: Vec<u8>,
}

/// A request that was answered before.
#[derive(Debug, Clone)]
pub struct Answered {
    /// The digest of what was asked.
    pub fingerprint: Vec<u8>,
    /// What it was answered, as JSON.
    pub answer: String,
}

/// What a key was answered, if that was not before `since`.
pub fn find(
    tx: &mut dyn Tx,
    tenant: &Tenant,
    key: &Key,
    since: Timestamp,
) -> Result<Option<Answered>, StoreError> {
    let found = tx.first(
        "SELECT fingerprint, answer FROM memory_idempotency WHERE tenant = $1 AND principal = $2 AND key = $3 \
         AND created_at >= $4",
        &[
            tenant.as_str().into(),
            key.principal.as_str().into(),
            key.key.as_str().into(),
            since.as_micros().into(),
        ],
        |row| Ok((row.bytes(0)?.to_vec(), row.bytes(1)?.to_vec())),
    )?;
    let Some((fingerprint, answer)) = found else { return Ok(None) };
    let place = seal_contexts::memory_idempotency(tenant.as_str(), &key.principal, &key.key);
    Ok(Some(Answered { fingerprint, answer: vault::open_text(tx, &place, answer)? }))
}

/// Remembers an answer, which tells of these users.
pub fn remember(
    tx: &mut dyn Tx,
    tenant: &Tenant,
    key: &Key,
    users: &[String],
    answer: &str,
    now: Timestamp,
) -> Result<(), StoreError> {
    let place = seal_contexts::memory_idempotency(tenant.as_str(), &key.principal, &key.key);
    let answer = vault::seal(tx, tenant, &place, answer.as_bytes())?;
    tx.post(
        "INSERT INTO memory_idempotency (tenant, principal, key, fingerprint, created_at, answer) \
         VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT (tenant, principal, key) DO UPDATE SET \
         fingerprint = excluded.fingerprint, created_at = excluded.created_at, \
         answer = excluded.answer",
        &[
            tenant.as_str().into(),
            key.principal.as_str().into(),
            key.key.as_str().into(),
            key.fingerprint.as_slice().into(),
            now.as_micros().into(),
            (*answer).into(),
        ],
    )?;
    for user in users {
        tx.post(
            "INSERT INTO memory_idempotency_users (tenant, user_id, principal, key) VALUES ($1, $2, $3, $4) \
             ON CONFLICT DO NOTHING",
            &[
                tenant.as_str().into(),
                user.as_str().into(),
                key.principal.as_str().into(),
                key.key.as_str().into(),
            ],
        )?;
    }
    Ok(())
}

/// Forgets up to `limit` keys that are older than an instant; says how many.
pub fn purge(tx: &mut dyn Tx, before: Timestamp, limit: i64) -> Result<u64, StoreError> {
    let old = tx.rows(
        "SELECT tenant, principal, key FROM memory_idempotency WHERE created_at < $1 ORDER BY created_at LIMIT $2",
        &[before.as_micros().into(), limit.into()],
        row_key,
    )?;
    remove(tx, &old)
}

/// Forgets up to `limit` keys whose answers tell of a user; says on how many it worked. First all answers are blanked, as
/// memories are (see [`super::purge::step`]), and count as too old; then the keys go.
pub fn forget_user(tx: &mut dyn Tx, tenant: &Tenant, user: &str, limit: i64) -> Result<u64, StoreError> {
    let params = [tenant.as_str().into(), user.into(), limit.into()];
    let telling = tx.rows(
        "SELECT u.tenant, u.principal, u.key FROM memory_idempotency_users u JOIN memory_idempotency i \
         ON i.tenant = u.tenant AND i.principal = u.principal AND i.key = u.key \
         WHERE u.tenant = $1 AND u.user_id = $2 AND i.created_at <> 0 LIMIT $3",
        &params,
        row_key,
    )?;
    for [tenant, principal, key] in &telling {
        tx.post(
            "UPDATE memory_idempotency SET answer = $4, created_at = 0 WHERE tenant = $1 AND principal = $2 AND key = $3",
            &[tenant.as_str().into(), principal.as_str().into(), key.as_str().into(), b"".as_slice().into()],
        )?;
    }
    if !telling.is_empty() {
        return Ok(telling.len() as u64);
    }
    let blanked = tx.rows(
        "SELECT tenant, principal, key FROM memory_idempotency_users WHERE tenant = $1 AND user_id = $2 LIMIT $3",
        &params,
        row_key,
    )?;
    remove(tx, &blanked)
}

fn row_key(row: &dyn Row) -> Result<[String; 3], StoreError> {
    Ok([row.text(0)?.to_owned(), row.text(1)?.to_owned(), row.text(2)?.to_owned()])
}

fn remove(tx: &mut dyn Tx, keys: &[[String; 3]]) -> Result<u64, StoreError> {
    for key in keys {
        let key = key.each_ref().map(|part| part.as_str().into());
        for sql in [
            "DELETE FROM memory_idempotency WHERE tenant = $1 AND principal = $2 AND key = $3",
            "DELETE FROM memory_idempotency_users WHERE tenant = $1 AND principal = $2 AND key = $3",
        ] {
            tx.post(sql, &key)?;
        }
    }
    Ok(keys.len() as u64)
}
