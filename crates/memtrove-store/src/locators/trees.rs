//! What recordings need to know of many conversations at once.

use crate::{StoreError, Tx, TxExt, Value};
use memtrove_core::identity::Tenant;
use memtrove_core::{ConversationId, GroupId, UserId};
use std::collections::HashSet;
use uuid::Uuid;

/// Those of some conversations that a user may read.
pub fn readable(
    tx: &mut dyn Tx,
    tenant: &Tenant,
    user: &UserId,
    ids: &[ConversationId],
) -> Result<HashSet<ConversationId>, StoreError> {
    let ids: Vec<Uuid> = ids.iter().map(|id| id.0).collect();
    let found = tx.rows(
        "SELECT c.id FROM conversations c JOIN memberships m ON m.group_id = c.group_id AND m.user_id = $3 \
         LEFT JOIN forgotten_groups f ON f.group_id = c.group_id \
         WHERE c.tenant = $1 AND c.id = ANY($2) AND c.deleted_at IS NULL AND f.group_id IS NULL",
        &[tenant.as_str().into(), Value::Uuids(&ids), user.as_str().into()],
        |row| row.uuid(0).map(ConversationId),
    )?;
    Ok(found.into_iter().collect())
}

/// Those of some trees, of any tenant, that are there and not deleted.
pub fn existing(tx: &mut dyn Tx, ids: &[GroupId]) -> Result<HashSet<GroupId>, StoreError> {
    let ids: Vec<Uuid> = ids.iter().map(|id| id.0).collect();
    let found = tx.rows(
        "SELECT g.id FROM groups g LEFT JOIN forgotten_groups f ON f.group_id = g.id \
         WHERE g.id = ANY($1) AND g.deleted_at IS NULL AND f.group_id IS NULL",
        &[Value::Uuids(&ids)],
        |row| row.uuid(0).map(GroupId),
    )?;
    Ok(found.into_iter().collect())
}

/// Everybody who may read one of some trees, of any tenant.
pub fn readers(tx: &mut dyn Tx, ids: &[GroupId]) -> Result<HashSet<(GroupId, UserId)>, StoreError> {
    let ids: Vec<Uuid> = ids.iter().map(|id| id.0).collect();
    let found = tx.rows(
        "SELECT group_id, user_id FROM memberships WHERE group_id = ANY($1)",
        &[Value::Uuids(&ids)],
        |row| Ok((GroupId(row.uuid(0)?), UserId(row.text(1)?.to_owned()))),
    )?;
    Ok(found.into_iter().collect())
}
