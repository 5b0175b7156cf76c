//! Groups: the trees that conversations and their forks form.

use crate::{StoreError, Tx, TxExt, Value};
use memtrove_core::identity::Tenant;
use memtrove_core::{ConversationId, GroupId, Timestamp, UserId};

/// Makes a tree whose only conversation is `root`.
pub fn insert(
    tx: &mut dyn Tx,
    tenant: &Tenant,
    id: GroupId,
    root: ConversationId,
    owner: &UserId,
    now: Timestamp,
) -> Result<(), StoreError> {
    tx.post(
        "INSERT INTO groups (id, tenant, owner_user_id, created_at, next_ord, last_created_at, latest_updated_at, \
         latest_conversation_id) VALUES ($1, $2, $3, $4, 1, $4, $4, $5)",
        &[id.0.into(), tenant.as_str().into(), owner.as_str().into(), now.as_micros().into(), root.0.into()],
    )?;
    Ok(())
}

/// A place in the tree's order, taken under the tree's lock.
pub struct EntryPosition {
    /// Strictly increasing inside the tree.
    pub ord: i64,
    /// Never before that of an earlier place.
    pub created_at: Timestamp,
}

/// Takes the next place for an entry that does not count as an update of its conversation.
pub fn take_place(tx: &mut dyn Tx, id: GroupId, now: Timestamp) -> Result<EntryPosition, StoreError> {
    take(
        tx,
        "UPDATE groups SET next_ord = next_ord + 1, \
         last_created_at = CASE WHEN $2 > last_created_at THEN $2 ELSE last_created_at END \
         WHERE id = $1 RETURNING next_ord - 1, last_created_at",
        &[id.0.into(), now.as_micros().into()],
    )
}

/// Takes the next place for an entry that makes `conversation` the latest of its tree, unless a tie goes to another.
pub fn take_place_as_latest(
    tx: &mut dyn Tx,
    id: GroupId,
    conversation: ConversationId,
    now: Timestamp,
) -> Result<EntryPosition, StoreError> {
    take(
        tx,
        "UPDATE groups SET next_ord = next_ord + 1, \
         last_created_at = CASE WHEN $2 > last_created_at THEN $2 ELSE last_created_at END, \
         latest_updated_at = CASE WHEN $2 > last_created_at THEN $2 ELSE last_created_at END, \
         latest_conversation_id = CASE WHEN $2 > latest_updated_at OR last_created_at > latest_updated_at \
         OR $3 > latest_conversation_id THEN $3 ELSE latest_conversation_id END \
         WHERE id = $1 RETURNING next_ord - 1, last_created_at",
        &[id.0.into(), now.as_micros().into(), conversation.0.into()],
    )
}

fn take(tx: &mut dyn Tx, sql: &str, params: &[Value<'_>]) -> Result<EntryPosition, StoreError> {
    tx.first(sql, params, |row| {
        Ok(EntryPosition { ord: row.int(0)?, created_at: super::timestamp(row, 1)? })
    })?
    .ok_or_else(|| StoreError::Broken("a conversation's group is missing".into()))
}

/// A group as its deletion and its transfers see it.
pub struct Group {
    /// Who owns it.
    pub owner: UserId,
    /// When it was deleted, if it was.
    pub deleted_at: Option<Timestamp>,
}

/// Locks a group until the unit of work ends. By writing it: who only reads a row does not make others, who saw it before, run
/// again.
pub fn lock(tx: &mut dyn Tx, id: GroupId) -> Result<Option<Group>, StoreError> {
    let write =
        "UPDATE groups SET owner_user_id = owner_user_id WHERE id = $1 RETURNING owner_user_id, deleted_at";
    tx.first(write, &[id.0.into()], |row| {
        Ok(Group {
            owner: UserId(row.text(0)?.to_owned()),
            deleted_at: row.opt_int(1)?.map(Timestamp::from_micros),
        })
    })
}

/// Marks a tree and every conversation of it as deleted at `at`, or as live again.
pub fn set_deleted(tx: &mut dyn Tx, id: GroupId, at: Option<Timestamp>) -> Result<(), StoreError> {
    let at: Value<'_> = at.map(Timestamp::as_micros).into();
    tx.post("UPDATE groups SET deleted_at = $2 WHERE id = $1", &[id.0.into(), at])?;
    tx.post("UPDATE conversations SET deleted_at = $2 WHERE group_id = $1", &[id.0.into(), at])?;
    Ok(())
}

/// Gives a tree and every conversation of it to another owner.
pub fn set_owner(tx: &mut dyn Tx, id: GroupId, owner: &UserId) -> Result<(), StoreError> {
    tx.post("UPDATE groups SET owner_user_id = $2 WHERE id = $1", &[id.0.into(), owner.as_str().into()])?;
    tx.post(
        "UPDATE conversations SET owner_user_id = $2 WHERE group_id = $1",
        &[id.0.into(), owner.as_str().into()],
    )?;
    Ok(())
}

/// How many trees were deleted before `cutoff`.
pub fn count_evictable(tx: &mut dyn Tx, tenant: &Tenant, cutoff: Timestamp) -> Result<i64, StoreError> {
    tx.first(
        "SELECT COUNT(*) FROM groups WHERE tenant = $1 AND deleted_at < $2",
        &[tenant.as_str().into(), cutoff.as_micros().into()],
        |row| row.int(0),
    )
    .map(Option::unwrap_or_default)
}

/// Locks up to `limit` trees that were deleted before `cutoff` and that no other eviction has locked.
pub fn lock_evictable(
    tx: &mut dyn Tx,
    tenant: &Tenant,
    cutoff: Timestamp,
    limit: i64,
) -> Result<Vec<GroupId>, StoreError> {
    let mut groups = Vec::new();
    tx.query(
        "SELECT id FROM groups WHERE tenant = $1 AND deleted_at < $2 ORDER BY deleted_at LIMIT $3",
        &[tenant.as_str().into(), cutoff.as_micros().into(), limit.into()],
        crate::Lock::SkipLocked,
        &mut |row| {
            groups.push(GroupId(row.uuid(0)?));
            Ok(std::ops::ControlFlow::Continue(()))
        },
    )?;
    Ok(groups)
}

/// The conversation a tree began with.
pub fn root(tx: &mut dyn Tx, id: GroupId) -> Result<Option<ConversationId>, StoreError> {
    tx.first(
        "SELECT id FROM conversations WHERE group_id = $1 AND parent_id IS NULL",
        &[id.0.into()],
        |row| row.uuid(0).map(ConversationId),
    )
}

/// Removes a tree and everything in it, for good; says how many entries that were.
pub fn evict(tx: &mut dyn Tx, tenant: &Tenant, id: GroupId) -> Result<u64, StoreError> {
    tx.post(
        "DELETE FROM unindexed WHERE tenant = $1 AND (created_at, entry_id) IN \
         (SELECT created_at, id FROM entries WHERE group_id = $2)",
        &[tenant.as_str().into(), id.0.into()],
    )?;
    tx.unindex_group(id.0)?;
    let entries = tx.execute("DELETE FROM entries WHERE group_id = $1", &[id.0.into()])?;
    tx.post("DELETE FROM ancestry WHERE group_id = $1", &[id.0.into()])?;
    evict_forks(tx, id, i64::MAX)?;
    uproot(tx, id)?;
    Ok(entries)
}

/// Removes up to `limit` forks of a tree, each after the idempotency keys that name it; says whether only the root is left,
/// without a key. Their entries stay.
pub fn evict_forks(tx: &mut dyn Tx, id: GroupId, limit: i64) -> Result<bool, StoreError> {
    let params = [id.0.into(), limit.into()];
    let keys = tx.execute(
        "DELETE FROM idempotency_keys WHERE (tenant, conversation_id, user_id, client_id, key) IN \
         (SELECT k.tenant, k.conversation_id, k.user_id, k.client_id, k.key FROM conversations c \
          JOIN idempotency_keys k ON k.tenant = c.tenant AND k.conversation_id = c.id \
          WHERE c.group_id = $1 LIMIT $2)",
        &params,
    )?;
    if keys as i64 == limit {
        return Ok(false);
    }
    let forks = tx.execute(
        "DELETE FROM conversations WHERE (tenant, id) IN (SELECT tenant, id FROM conversations \
         WHERE group_id = $1 AND parent_id IS NOT NULL LIMIT $2)",
        &params,
    )?;
    Ok((forks as i64) < limit)
}

/// Removes a tree whose forks are gone. Whatever entries it has left, nothing leads to them any more.
pub fn uproot(tx: &mut dyn Tx, id: GroupId) -> Result<(), StoreError> {
    for sql in [
        "DELETE FROM transfers WHERE group_id = $1",
        "DELETE FROM memberships WHERE group_id = $1",
        "DELETE FROM past_members WHERE group_id = $1",
        "DELETE FROM conversations WHERE group_id = $1",
        "DELETE FROM groups WHERE id = $1",
    ] {
        tx.post(sql, &[id.0.into()])?;
    }
    Ok(())
}

/// Every tenant that has a conversation, for jobs that visit them all.
pub fn tenants(tx: &mut dyn Tx) -> Result<Vec<Tenant>, StoreError> {
    tx.rows("SELECT DISTINCT tenant FROM groups ORDER BY tenant", &[], |row| {
        Ok(Tenant::listed(row.text(0)?.to_owned()))
    })
}

/// How many there are of everything.
pub struct Counts {
    /// Trees.
    pub groups: i64,
    /// Trees that are deleted and not yet evicted.
    pub deleted_groups: i64,
    /// When the oldest of those was deleted.
    pub oldest_deleted_at: Option<Timestamp>,
    pub conversations: i64,
    pub entries: i64,
}

/// Counts a tenant's trees, conversations and entries.
pub fn counts(tx: &mut dyn Tx, tenant: &Tenant) -> Result<Counts, StoreError> {
    let (groups, deleted_groups, oldest_deleted_at) = tx
        .first(
            "SELECT COUNT(*), COUNT(deleted_at), MIN(deleted_at) FROM groups WHERE tenant = $1",
            &[tenant.as_str().into()],
            |row| Ok((row.int(0)?, row.int(1)?, row.opt_int(2)?.map(Timestamp::from_micros))),
        )?
        .unwrap_or_default();
    let mut count =
        |sql: &str| tx.first(sql, &[tenant.as_str().into()], |row| row.int(0)).map(Option::unwrap_or_default);
    Ok(Counts {
        groups,
        deleted_groups,
        oldest_deleted_at,
        conversations: count("SELECT COUNT(*) FROM conversations WHERE tenant = $1")?,
        entries: count(
            "SELECT COUNT(*) FROM groups g JOIN entries e ON e.group_id = g.id WHERE g.tenant = $1",
        )?,
    })
}
