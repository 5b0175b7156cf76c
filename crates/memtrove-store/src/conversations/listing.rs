//! Lists of conversations, newest first.
//!
//! What a user owns is one walk along an index, however much that is. What others shared with it is found through its
//! memberships and sorted: people own thousands of conversations and are invited to dozens.

use super::{conversation, conversation_columns, opened};
use crate::{StoreError, Tx, TxExt, Value};
use memtrove_core::conversations::{Conversation, ListMode};
use memtrove_core::identity::Tenant;
use memtrove_core::{ConversationId, Timestamp, UserId};
use uuid::Uuid;

/// A place in a list: everything before it has a greater (updated_at, id).
#[derive(Debug, Clone, Copy)]
pub struct ListPosition {
    /// The update time of the item at this place.
    pub updated_at: i64,
    pub id: Uuid,
}

impl ListPosition {
    /// Before the first item.
    pub const TOP: ListPosition = ListPosition { updated_at: i64::MAX, id: Uuid::max() };

    /// Right after this conversation.
    pub fn after(conversation: &Conversation) -> Self {
        ListPosition { updated_at: conversation.updated_at.as_micros(), id: conversation.id.0 }
    }
}

/// The conversations a user can see, from `place` on, at most `limit`.
pub fn visible(
    tx: &mut dyn Tx,
    tenant: &Tenant,
    user: &UserId,
    mode: ListMode,
    place: ListPosition,
    limit: usize,
) -> Result<Vec<Conversation>, StoreError> {
    let params: [Value<'_>; 5] = [
        tenant.as_str().into(),
        user.as_str().into(),
        place.updated_at.into(),
        place.id.into(),
        (limit as i64).into(),
    ];
    let (owned, shared) = match mode {
        ListMode::LatestFork => (
            concat!(
                "SELECT ",
                conversation_columns!(),
                ", 1 FROM groups g JOIN conversations c ON c.tenant = g.tenant AND c.id = g.latest_conversation_id \
                 WHERE g.tenant = $1 AND g.owner_user_id = $2 AND g.deleted_at IS NULL \
                 AND (g.latest_updated_at, g.latest_conversation_id) < ($3, $4) \
                 ORDER BY g.latest_updated_at DESC, g.latest_conversation_id DESC LIMIT $5"
            ),
            concat!(
                "SELECT ",
                conversation_columns!(),
                ", m.access_level FROM memberships m JOIN groups g ON g.id = m.group_id \
                 JOIN conversations c ON c.tenant = g.tenant AND c.id = g.latest_conversation_id \
                 WHERE m.tenant = $1 AND m.user_id = $2 AND m.access_level > 1 AND g.deleted_at IS NULL \
                 AND (g.latest_updated_at, g.latest_conversation_id) < ($3, $4) \
                 ORDER BY g.latest_updated_at DESC, g.latest_conversation_id DESC LIMIT $5"
            ),
        ),
        ListMode::All => (
            concat!(
                "SELECT ",
                conversation_columns!(),
                ", 1 FROM conversations c WHERE c.tenant = $1 AND c.owner_user_id = $2 AND c.deleted_at IS NULL \
                 AND (c.updated_at, c.id) < ($3, $4) ORDER BY c.updated_at DESC, c.id DESC LIMIT $5"
            ),
            concat!(
                "SELECT ",
                conversation_columns!(),
                ", m.access_level FROM memberships m JOIN conversations c ON c.group_id = m.group_id \
                 WHERE m.tenant = $1 AND m.user_id = $2 AND m.access_level > 1 AND c.deleted_at IS NULL \
                 AND (c.updated_at, c.id) < ($3, $4) ORDER BY c.updated_at DESC, c.id DESC LIMIT $5"
            ),
        ),
        ListMode::Roots => (
            concat!(
                "SELECT ",
                conversation_columns!(),
                ", 1 FROM conversations c WHERE c.tenant = $1 AND c.owner_user_id = $2 AND c.deleted_at IS NULL \
                 AND c.parent_id IS NULL \
                 AND (c.updated_at, c.id) < ($3, $4) ORDER BY c.updated_at DESC, c.id DESC LIMIT $5"
            ),
            concat!(
                "SELECT ",
                conversation_columns!(),
                ", m.access_level FROM memberships m JOIN conversations c ON c.group_id = m.group_id \
                 WHERE m.tenant = $1 AND m.user_id = $2 AND m.access_level > 1 AND c.deleted_at IS NULL \
                 AND c.parent_id IS NULL \
                 AND (c.updated_at, c.id) < ($3, $4) ORDER BY c.updated_at DESC, c.id DESC LIMIT $5"
            ),
        ),
    };
    let owned = tx.rows(owned, &params, |row| conversation(row, tenant))?;
    let shared = tx.rows(shared, &params, |row| conversation(row, tenant))?;
    let (mut list, mut shared) = (opened(tx, owned)?, opened(tx, shared)?);
    if !shared.is_empty() {
        list.append(&mut shared);
        list.sort_unstable_by_key(|c| std::cmp::Reverse((c.updated_at, c.id)));
        list.truncate(limit);
    }
    Ok(list)
}

/// What an admin's list shows.
#[derive(Debug, Clone)]
pub struct AdminFilter {
    /// Which conversations of each tree.
    pub mode: ListMode,
    /// Only this owner's.
    pub owner: Option<UserId>,
    pub live: bool,
    pub deleted: bool,
    /// Deleted ones only from this instant on.
    pub deleted_from: Option<Timestamp>,
    /// Deleted ones only before this instant.
    pub deleted_before: Option<Timestamp>,
}

/// The conversations of a tenant, for admins. Deletion and ownership belong to the tree, so choosing the latest of each
/// tree before or after the filters is the same.
pub fn all(
    tx: &mut dyn Tx,
    tenant: &Tenant,
    filter: &AdminFilter,
    place: ListPosition,
    limit: usize,
) -> Result<Vec<Conversation>, StoreError> {
    let sql = match filter.mode {
        ListMode::LatestFork => concat!(
            "SELECT ",
            conversation_columns!(),
            ", 1 FROM groups g JOIN conversations c ON c.tenant = g.tenant AND c.id = g.latest_conversation_id \
             WHERE g.tenant = $1 AND ($2 = 0 OR g.owner_user_id = $3) \
             AND ((g.deleted_at IS NULL AND $4 = 1) OR (g.deleted_at >= $5 AND g.deleted_at < $6)) \
             AND (g.latest_updated_at, g.latest_conversation_id) < ($7, $8) \
             ORDER BY g.latest_updated_at DESC, g.latest_conversation_id DESC LIMIT $9"
        ),
        ListMode::All => concat!(
            "SELECT ",
            conversation_columns!(),
            ", 1 FROM conversations c WHERE c.tenant = $1 AND ($2 = 0 OR c.owner_user_id = $3) \
             AND ((c.deleted_at IS NULL AND $4 = 1) OR (c.deleted_at >= $5 AND c.deleted_at < $6)) \
             AND (c.updated_at, c.id) < ($7, $8) ORDER BY c.updated_at DESC, c.id DESC LIMIT $9"
        ),
        ListMode::Roots => concat!(
            "SELECT ",
            conversation_columns!(),
            ", 1 FROM conversations c WHERE c.tenant = $1 AND ($2 = 0 OR c.owner_user_id = $3) \
             AND ((c.deleted_at IS NULL AND $4 = 1) OR (c.deleted_at >= $5 AND c.deleted_at < $6)) \
             AND c.parent_id IS NULL \
             AND (c.updated_at, c.id) < ($7, $8) ORDER BY c.updated_at DESC, c.id DESC LIMIT $9"
        ),
    };
    let (from, before) = match filter.deleted {
        true => (
            filter.deleted_from.map_or(i64::MIN, Timestamp::as_micros),
            filter.deleted_before.map_or(i64::MAX, Timestamp::as_micros),
        ),
        false => (i64::MAX, i64::MIN),
    };
    let found = tx.rows(
        sql,
        &[
            tenant.as_str().into(),
            i64::from(filter.owner.is_some()).into(),
            filter.owner.as_ref().map_or("", |owner| owner.as_str()).into(),
            i64::from(filter.live).into(),
            from.into(),
            before.into(),
            place.updated_at.into(),
            place.id.into(),
            (limit as i64).into(),
        ],
        |row| conversation(row, tenant),
    )?;
    opened(tx, found)
}

/// The place of a conversation that an admin's list named as its last.
pub fn place_of(
    tx: &mut dyn Tx,
    tenant: &Tenant,
    id: ConversationId,
) -> Result<Option<ListPosition>, StoreError> {
    tx.first(
        "SELECT updated_at, id FROM conversations WHERE tenant = $1 AND id = $2",
        &[tenant.as_str().into(), id.0.into()],
        |row| Ok(ListPosition { updated_at: row.int(0)?, id: row.uuid(1)? }),
    )
}
