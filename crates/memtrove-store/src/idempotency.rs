//! Requests that succeeded under an `Idempotency-Key`, and what they were answered.
//!
//! Files and memories have a table each, of the same columns but for the one that says where a key counts: the keys of a
//! user's files go with its scope, those of memories with whomever an answer tells of. A key of a conversation has no answer but
//! names the entry that was appended, so it has a module of its own: [`crate::conversations::idempotency`].

use crate::files::STEP_BYTES;
use crate::files::scopes::ScopeId;
use crate::vault::{self, SealContext, seal_contexts};
use crate::{Row, StoreError, Tx, TxExt, Value};
use memtrove_core::Timestamp;
use memtrove_core::identity::Tenant;

/// The tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AnswerTable {
    /// Of files.
    Files,
    /// Of memories.
    Memories,
}

/// Where a key counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyPlace {
    /// In the files of one user.
    Files(ScopeId),
    /// In all memories of a tenant.
    Memories,
}

/// What makes a request the repetition of another.
#[derive(Debug, Clone)]
pub struct RequestKey {
    /// Where the key counts.
    pub place: KeyPlace,
    /// Who called.
    pub principal: String,
    /// The key; of memories behind the route it was used on.
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

impl AnswerTable {
    /// Its name, and the column that says where a key counts.
    const fn names(self) -> (&'static str, &'static str) {
        match self {
            AnswerTable::Files => ("file_idempotency", "scope_id"),
            AnswerTable::Memories => ("memory_idempotency", "tenant"),
        }
    }
}

impl RequestKey {
    fn table(&self) -> AnswerTable {
        match self.place {
            KeyPlace::Files(_) => AnswerTable::Files,
            KeyPlace::Memories => AnswerTable::Memories,
        }
    }

    fn columns<'a>(&'a self, tenant: &'a Tenant) -> [Value<'a>; 3] {
        let place = match self.place {
            KeyPlace::Files(scope) => scope.0.into(),
            KeyPlace::Memories => tenant.as_str().into(),
        };
        [place, self.principal.as_str().into(), self.key.as_str().into()]
    }

    /// What an answer is bound to that is sealed.
    fn seal_context<'a>(&'a self, tenant: &'a Tenant) -> SealContext<'a> {
        match self.place {
            KeyPlace::Files(scope) => seal_contexts::file_idempotency(scope.0, &self.principal, &self.key),
            KeyPlace::Memories => {
                seal_contexts::memory_idempotency(tenant.as_str(), &self.principal, &self.key)
            }
        }
    }
}

/// What a key was answered, if that was not before `since`.
pub fn find(
    tx: &mut dyn Tx,
    tenant: &Tenant,
    key: &RequestKey,
    since: Timestamp,
) -> Result<Option<Answered>, StoreError> {
    let (table, place) = key.table().names();
    let [at, principal, name] = key.columns(tenant);
    let found = tx.first(
        &format!(
            "SELECT fingerprint, answer FROM {table} WHERE {place} = $1 AND principal = $2 AND key = $3 \
             AND created_at >= $4"
        ),
        &[at, principal, name, since.as_micros().into()],
        |row| Ok((row.bytes(0)?.to_vec(), row.bytes(1)?.to_vec())),
    )?;
    let Some((fingerprint, sealed)) = found else { return Ok(None) };
    let answer = vault::open_text(tx, &key.seal_context(tenant), sealed)?;
    Ok(Some(Answered { fingerprint, answer }))
}

/// Remembers an answer under its key, in place of one that is too old to count. Of memories it is noted whom the answer tells of.
pub fn remember(
    tx: &mut dyn Tx,
    tenant: &Tenant,
    key: &RequestKey,
    users: &[String],
    answer: &str,
    now: Timestamp,
) -> Result<(), StoreError> {
    let (table, place) = key.table().names();
    let [at, principal, name] = key.columns(tenant);
    let answer = vault::seal(tx, tenant, &key.seal_context(tenant), answer.as_bytes())?;
    tx.post(
        &format!(
            "INSERT INTO {table} ({place}, principal, key, fingerprint, created_at, answer) \
             VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT ({place}, principal, key) DO UPDATE SET \
             fingerprint = excluded.fingerprint, created_at = excluded.created_at, answer = excluded.answer"
        ),
        &[at, principal, name, key.fingerprint.as_slice().into(), now.as_micros().into(), (*answer).into()],
    )?;
    for user in users {
        tx.post(
            "INSERT INTO memory_idempotency_users (tenant, user_id, principal, key) VALUES ($1, $2, $3, $4) \
             ON CONFLICT DO NOTHING",
            &[tenant.as_str().into(), user.as_str().into(), principal, name],
        )?;
    }
    Ok(())
}

/// Forgets some of the keys older than `before`, the oldest first: up to `limit`, and not much more than a step's bytes. Says how
/// many.
pub fn purge(tx: &mut dyn Tx, table: AnswerTable, before: Timestamp, limit: i64) -> Result<u64, StoreError> {
    let (name, place) = table.names();
    let oldest = format!(
        "({place}, principal, key) IN (SELECT {place}, principal, key FROM (SELECT {place}, principal, key, bytes, \
         SUM(bytes) OVER (ORDER BY created_at, {place}, principal, key) AS so_far FROM (SELECT {place}, principal, key, \
         created_at, LENGTH(answer) AS bytes FROM {name} WHERE created_at < $1 ORDER BY created_at, {place}, principal, key \
         LIMIT $2) a) b WHERE so_far - bytes < $3)"
    );
    let params = [before.as_micros().into(), limit.into(), (STEP_BYTES as i64).into()];
    if table == AnswerTable::Memories {
        tx.post(&format!("DELETE FROM memory_idempotency_users WHERE {oldest}"), &params)?;
    }
    tx.execute(&format!("DELETE FROM {name} WHERE {oldest}"), &params)
}

/// Forgets up to `limit` keys whose answers tell of a user; says on how many it worked. First all answers are blanked, as
/// memories are (see [`crate::memories::purge::step`]), and count as too old; then the keys go.
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
