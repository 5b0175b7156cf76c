//! Ownership transfers that are pending. A finished one leaves no row.

use super::{open_text, opened, stored};
use crate::vault::seal_contexts;
use crate::{Row, StoreError, Tx, TxExt};
use memtrove_core::conversations::Transfer;
use memtrove_core::identity::Tenant;
use memtrove_core::{ConversationId, GroupId, TransferId, UserId};
use uuid::Uuid;

macro_rules! select {
    ($rest:literal) => {
        concat!(
            "SELECT t.id, t.conversation_id, c.title, t.from_user_id, t.to_user_id, t.created_at, t.group_id \
             FROM transfers t JOIN conversations c ON c.tenant = t.tenant AND c.id = t.conversation_id ",
            $rest
        )
    };
}

/// Stores a transfer, unless its tree has one pending; says whether it did.
pub fn insert_if_none(
    tx: &mut dyn Tx,
    tenant: &Tenant,
    group: GroupId,
    transfer: &Transfer,
) -> Result<bool, StoreError> {
    let inserted = tx.execute(
        "INSERT INTO transfers (id, tenant, group_id, conversation_id, from_user_id, to_user_id, created_at) \
         VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT (group_id) DO NOTHING",
        &[
            transfer.id.0.into(),
            tenant.as_str().into(),
            group.0.into(),
            transfer.conversation_id.0.into(),
            transfer.from_user_id.as_str().into(),
            transfer.to_user_id.as_str().into(),
            transfer.created_at.as_micros().into(),
        ],
    )?;
    Ok(inserted == 1)
}

/// The pending transfer of a tree.
pub fn of_group(tx: &mut dyn Tx, group: GroupId) -> Result<Option<TransferId>, StoreError> {
    tx.first("SELECT id FROM transfers WHERE group_id = $1", &[group.0.into()], |row| {
        row.uuid(0).map(TransferId)
    })
}

/// A transfer that was offered.
pub struct PendingTransfer {
    /// What was offered, by whom and to whom.
    pub transfer: Transfer,
    group: GroupId,
}

impl PendingTransfer {
    /// The tree that is handed over, if it is to this user.
    pub fn group(&self, recipient: &UserId) -> Option<GroupId> {
        (self.transfer.to_user_id == *recipient).then_some(self.group)
    }
}

/// A transfer and its tree. Trees that are deleted have none.
pub fn get(tx: &mut dyn Tx, tenant: &Tenant, id: TransferId) -> Result<Option<PendingTransfer>, StoreError> {
    let found = tx.first(
        select!("WHERE t.id = $1 AND t.tenant = $2"),
        &[id.0.into(), tenant.as_str().into()],
        |row| Ok((transfer(row, tenant)?, GroupId(row.uuid(6)?))),
    )?;
    found.map(|(open, group)| Ok(PendingTransfer { transfer: open(tx)?, group })).transpose()
}

/// The transfers a user sent, in the order of their ids, from `from` on.
pub fn sent(
    tx: &mut dyn Tx,
    tenant: &Tenant,
    user: &UserId,
    from: Uuid,
    limit: i64,
) -> Result<Vec<Transfer>, StoreError> {
    let found = tx.rows(
        select!("WHERE t.tenant = $1 AND t.from_user_id = $2 AND t.id >= $3 ORDER BY t.id LIMIT $4"),
        &[tenant.as_str().into(), user.as_str().into(), from.into(), limit.into()],
        |row| transfer(row, tenant),
    )?;
    opened(tx, found)
}

/// The transfers a user may accept, in the order of their ids, from `from` on.
pub fn received(
    tx: &mut dyn Tx,
    tenant: &Tenant,
    user: &UserId,
    from: Uuid,
    limit: i64,
) -> Result<Vec<Transfer>, StoreError> {
    let found = tx.rows(
        select!("WHERE t.tenant = $1 AND t.to_user_id = $2 AND t.id >= $3 ORDER BY t.id LIMIT $4"),
        &[tenant.as_str().into(), user.as_str().into(), from.into(), limit.into()],
        |row| transfer(row, tenant),
    )?;
    opened(tx, found)
}

/// Removes a transfer.
pub fn delete(tx: &mut dyn Tx, id: TransferId) -> Result<(), StoreError> {
    tx.post("DELETE FROM transfers WHERE id = $1", &[id.0.into()])?;
    Ok(())
}

/// Removes the transfer of a tree, if one is pending.
pub fn delete_of_group(tx: &mut dyn Tx, group: GroupId) -> Result<(), StoreError> {
    tx.post("DELETE FROM transfers WHERE group_id = $1", &[group.0.into()])?;
    Ok(())
}

/// Removes the transfer of a tree to this user, if one is pending.
pub fn delete_to(tx: &mut dyn Tx, group: GroupId, user: &UserId) -> Result<(), StoreError> {
    tx.post(
        "DELETE FROM transfers WHERE group_id = $1 AND to_user_id = $2",
        &[group.0.into(), user.as_str().into()],
    )?;
    Ok(())
}

fn transfer<'t>(
    row: &dyn Row,
    tenant: &'t Tenant,
) -> Result<impl FnOnce(&mut dyn Tx) -> Result<Transfer, StoreError> + use<'t>, StoreError> {
    let title = stored(row, 2)?;
    let rest = Transfer {
        id: TransferId(row.uuid(0)?),
        conversation_id: ConversationId(row.uuid(1)?),
        conversation_title: None,
        from_user_id: UserId(row.text(3)?.to_owned()),
        to_user_id: UserId(row.text(4)?.to_owned()),
        created_at: super::timestamp(row, 5)?,
    };
    Ok(move |tx: &mut dyn Tx| {
        let place = seal_contexts::conversation_title(tenant, rest.conversation_id);
        Ok(Transfer { conversation_title: open_text(tx, &place, title)?, ..rest })
    })
}
