//! Keys that make a repeated append return the first one's entry.

use crate::{StoreError, Tx, TxExt, Value};
use memtrove_core::conversations::sync::Digest;
use memtrove_core::identity::Caller;
use memtrove_core::{ClientId, ConversationId, EntryId, Timestamp};

/// The key of an append.
#[derive(Clone, Copy)]
pub struct AppendKey<'a> {
    /// Who appends.
    pub caller: &'a Caller,
    /// To what.
    pub conversation: ConversationId,
    /// The caller's key.
    pub key: &'a str,
}

/// An append that was made under a key.
pub struct RememberedAppend {
    /// The digest of its request.
    pub body: Digest,
    /// The entry it wrote.
    pub entry: EntryId,
}

/// Finds what was appended under a key since `from`.
pub fn find(
    tx: &mut dyn Tx,
    key: AppendKey<'_>,
    from: Timestamp,
) -> Result<Option<RememberedAppend>, StoreError> {
    let [tenant, conversation, user, client, key] = key.columns();
    tx.first(
        "SELECT body_digest, entry_id FROM idempotency_keys WHERE tenant = $1 AND conversation_id = $2 AND user_id = $3 \
         AND client_id = $4 AND key = $5 AND created_at >= $6",
        &[tenant, conversation, user, client, key, from.as_micros().into()],
        |row| {
            let body = row.bytes(0)?.try_into().map_err(|_| StoreError::Broken("a digest of the wrong length".into()))?;
            Ok(RememberedAppend { body, entry: EntryId(row.uuid(1)?) })
        },
    )
}

/// Remembers an append under its key, replacing one that is too old to count.
pub fn remember(
    tx: &mut dyn Tx,
    key: AppendKey<'_>,
    append: &RememberedAppend,
    now: Timestamp,
) -> Result<(), StoreError> {
    let [tenant, conversation, user, client, key] = key.columns();
    let RememberedAppend { body, entry } = append;
    tx.post(
        "INSERT INTO idempotency_keys (tenant, conversation_id, user_id, client_id, key, body_digest, entry_id, \
         created_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8) \
         ON CONFLICT (tenant, conversation_id, user_id, client_id, key) DO UPDATE SET \
         body_digest = excluded.body_digest, entry_id = excluded.entry_id, created_at = excluded.created_at",
        &[tenant, conversation, user, client, key, body.as_slice().into(), entry.0.into(), now.as_micros().into()],
    )?;
    Ok(())
}

/// Forgets keys older than `before`; says how many.
pub fn purge(tx: &mut dyn Tx, before: Timestamp) -> Result<u64, StoreError> {
    tx.execute("DELETE FROM idempotency_keys WHERE created_at < $1", &[before.as_micros().into()])
}

impl<'a> AppendKey<'a> {
    fn columns(self) -> [Value<'a>; 5] {
        let Self { caller, conversation, key } = self;
        [
            caller.tenant().as_str().into(),
            conversation.0.into(),
            caller.user.as_str().into(),
            caller.client.as_ref().map_or("", ClientId::as_str).into(),
            key.into(),
        ]
    }
}
