//! Conversations, one at a time.

use super::{conversation, conversation_columns, open_text, opened, seal_text, stored};
use crate::vault::seal_contexts;
use crate::{StoreError, Tx, TxExt, Value};
use memtrove_core::conversations::{AccessLevel, Conversation};
use memtrove_core::identity::Tenant;
use memtrove_core::{ConversationId, EntryId, GroupId, Json, Timestamp, UserId};
use uuid::Uuid;

/// What the paths to a conversation's entries need to know of it.
///
/// Its tree is told to who may do something in it, and nobody else:
/// ```
/// use memtrove_core::{GroupId, Result, conversations::AccessLevel};
/// use memtrove_store::conversations::rows::ConversationHead;
/// fn tree(head: &ConversationHead) -> Result<GroupId> {
///     head.group(AccessLevel::Writer)
/// }
/// ```
/// ```compile_fail
/// use memtrove_core::GroupId;
/// use memtrove_store::conversations::rows::ConversationHead;
/// fn tree(head: &ConversationHead) -> GroupId {
///     head.group
/// }
/// ```
pub struct ConversationHead {
    group: GroupId,
    /// Whether it has ancestors.
    pub is_fork: bool,
    /// Whether an entry was ever appended to its history.
    pub has_history: bool,
    /// Whether its tree is deleted, or its owner was forgotten.
    pub deleted: bool,
    /// What the user may do, if it is a member.
    pub access: Option<AccessLevel>,
}

impl ConversationHead {
    /// Its tree, for a member who may do at least `needed` in it.
    pub fn group(&self, needed: AccessLevel) -> memtrove_core::Result<GroupId> {
        AccessLevel::require_member(self.access, needed)?;
        Ok(self.group)
    }
}

/// Finds a conversation, deleted or not, together with a user's access to it.
pub fn head(
    tx: &mut dyn Tx,
    tenant: &Tenant,
    user: &UserId,
    id: ConversationId,
) -> Result<Option<ConversationHead>, StoreError> {
    tx.first(
        "SELECT c.group_id, c.parent_id, c.has_history, c.deleted_at, m.access_level, f.group_id FROM conversations c \
         LEFT JOIN memberships m ON m.group_id = c.group_id AND m.user_id = $3 \
         LEFT JOIN forgotten_groups f ON f.group_id = c.group_id WHERE c.tenant = $1 AND c.id = $2",
        &[tenant.as_str().into(), id.0.into(), user.as_str().into()],
        |row| {
            Ok(ConversationHead {
                group: GroupId(row.uuid(0)?),
                is_fork: row.opt_uuid(1)?.is_some(),
                has_history: row.int(2)? != 0,
                deleted: row.opt_int(3)?.is_some() || row.opt_uuid(5)?.is_some(),
                access: row.opt_int(4)?.map(super::access_level).transpose()?,
            })
        },
    )
}

/// The tree of any conversation, deleted or not, and whether the conversation is a fork. Nobody's membership is asked for: this
/// is for admins (clippy.toml).
pub fn tree_of_any(
    tx: &mut dyn Tx,
    tenant: &Tenant,
    id: ConversationId,
) -> Result<Option<(GroupId, bool)>, StoreError> {
    tx.first(
        "SELECT group_id, parent_id FROM conversations WHERE tenant = $1 AND id = $2",
        &[tenant.as_str().into(), id.0.into()],
        |row| Ok((GroupId(row.uuid(0)?), row.opt_uuid(1)?.is_some())),
    )
}

/// Whether a conversation is in a tree, deleted or not.
pub fn is_in(
    tx: &mut dyn Tx,
    tenant: &Tenant,
    id: ConversationId,
    group: GroupId,
) -> Result<bool, StoreError> {
    let found = tx.first(
        "SELECT 1 FROM conversations WHERE tenant = $1 AND id = $2 AND group_id = $3",
        &[tenant.as_str().into(), id.0.into(), group.0.into()],
        |_| Ok(()),
    )?;
    Ok(found.is_some())
}

/// The title of a conversation.
pub fn title(tx: &mut dyn Tx, tenant: &Tenant, id: ConversationId) -> Result<Option<String>, StoreError> {
    let found = tx.first(
        "SELECT title FROM conversations WHERE tenant = $1 AND id = $2",
        &[tenant.as_str().into(), id.0.into()],
        |row| stored(row, 0),
    )?;
    open_text(tx, &seal_contexts::conversation_title(tenant, id), found.flatten())
}

/// A live conversation as a member sees it.
pub fn get(
    tx: &mut dyn Tx,
    tenant: &Tenant,
    user: &UserId,
    id: ConversationId,
) -> Result<Option<Conversation>, StoreError> {
    let found = tx.first(
        concat!(
            "SELECT ",
            conversation_columns!(),
            ", m.access_level FROM conversations c JOIN memberships m ON m.group_id = c.group_id AND m.user_id = $3 \
             WHERE c.tenant = $1 AND c.id = $2 AND c.deleted_at IS NULL"
        ),
        &[tenant.as_str().into(), id.0.into(), user.as_str().into()],
        |row| conversation(row, tenant),
    )?;
    found.map(|open| open(tx)).transpose()
}

/// A conversation, deleted or not, as an admin sees it.
pub fn get_any(
    tx: &mut dyn Tx,
    tenant: &Tenant,
    id: ConversationId,
) -> Result<Option<Conversation>, StoreError> {
    let found = tx.first(
        concat!(
            "SELECT ",
            conversation_columns!(),
            ", 1 FROM conversations c WHERE c.tenant = $1 AND c.id = $2"
        ),
        &[tenant.as_str().into(), id.0.into()],
        |row| conversation(row, tenant),
    )?;
    found.map(|open| open(tx)).transpose()
}

/// A conversation to be stored.
pub struct NewConversation<'a> {
    pub id: ConversationId,
    /// Its tree.
    pub group: GroupId,
    /// The tree's owner.
    pub owner: &'a UserId,
    pub title: Option<&'a str>,
    pub metadata: &'a Json,
    /// Where it was forked, if it was.
    pub lineage: Option<(ConversationId, Option<EntryId>)>,
    /// When.
    pub now: Timestamp,
}

/// Stores a conversation, unless its id is taken; says whether it did.
pub fn insert_if_absent(
    tx: &mut dyn Tx,
    tenant: &Tenant,
    new: &NewConversation<'_>,
) -> Result<bool, StoreError> {
    let title = seal_text(tx, tenant, &seal_contexts::conversation_title(tenant, new.id), new.title)?;
    let inserted = tx.execute(
        "INSERT INTO conversations (tenant, id, group_id, owner_user_id, parent_id, fork_entry_id, has_history, \
         created_at, updated_at, title, metadata) VALUES ($1, $2, $3, $4, $5, $6, 0, $7, $7, $8, $9) \
         ON CONFLICT (tenant, id) DO NOTHING",
        &[
            tenant.as_str().into(),
            new.id.0.into(),
            new.group.0.into(),
            new.owner.as_str().into(),
            new.lineage.map(|(parent, _)| parent.0).into(),
            new.lineage.and_then(|(_, entry)| entry).map(|entry| entry.0).into(),
            new.now.as_micros().into(),
            title.as_deref().into(),
            new.metadata.get().into(),
        ],
    )?;
    Ok(inserted == 1)
}

/// Makes a conversation the latest of its tree, unless it already is. For changes that are no entries.
pub fn touch_group(
    tx: &mut dyn Tx,
    group: GroupId,
    id: ConversationId,
    now: Timestamp,
) -> Result<Timestamp, StoreError> {
    tx.first(
        "UPDATE groups SET \
         last_created_at = CASE WHEN $2 > last_created_at THEN $2 ELSE last_created_at END, \
         latest_updated_at = CASE WHEN $2 > last_created_at THEN $2 ELSE last_created_at END, \
         latest_conversation_id = CASE WHEN $2 > latest_updated_at OR last_created_at > latest_updated_at \
         OR $3 > latest_conversation_id THEN $3 ELSE latest_conversation_id END \
         WHERE id = $1 RETURNING last_created_at",
        &[group.0.into(), now.as_micros().into(), id.0.into()],
        |row| super::timestamp(row, 0),
    )?
    .ok_or_else(|| StoreError::Broken("a conversation's group is missing".into()))
}

/// Notes a new history entry: when, its preview, and a title if there is none yet.
pub fn set_latest_message(
    tx: &mut dyn Tx,
    tenant: &Tenant,
    id: ConversationId,
    at: Timestamp,
    preview: Option<&str>,
    title: Option<&str>,
) -> Result<(), StoreError> {
    let preview = seal_text(tx, tenant, &seal_contexts::conversation_preview(tenant, id), preview)?;
    let title = seal_text(tx, tenant, &seal_contexts::conversation_title(tenant, id), title)?;
    tx.post(
        "UPDATE conversations SET updated_at = $3, has_history = 1, preview = $4, title = COALESCE(title, $5) \
         WHERE tenant = $1 AND id = $2",
        &[
            tenant.as_str().into(),
            id.0.into(),
            at.as_micros().into(),
            preview.as_deref().into(),
            title.as_deref().into(),
        ],
    )?;
    Ok(())
}

/// Renames a conversation.
pub fn set_title(
    tx: &mut dyn Tx,
    tenant: &Tenant,
    id: ConversationId,
    title: Option<&str>,
    at: Timestamp,
) -> Result<(), StoreError> {
    let title = seal_text(tx, tenant, &seal_contexts::conversation_title(tenant, id), title)?;
    tx.post(
        "UPDATE conversations SET title = $3, updated_at = $4 WHERE tenant = $1 AND id = $2",
        &[tenant.as_str().into(), id.0.into(), title.as_deref().into(), at.as_micros().into()],
    )?;
    Ok(())
}

/// The conversations of a tree, in the order of their ids. `with_deleted` is for admins.
pub fn forks(
    tx: &mut dyn Tx,
    tenant: &Tenant,
    group: GroupId,
    after: Option<ConversationId>,
    limit: i64,
    with_deleted: bool,
) -> Result<Vec<Conversation>, StoreError> {
    // The nil id is an id like any other, so a walk begins at it and goes on at the successor of the last one seen.
    let from = after.map_or(0, |id| id.0.as_u128().saturating_add(1));
    let params: [Value<'_>; 3] = [group.0.into(), Uuid::from_u128(from).into(), limit.into()];
    let sql = if with_deleted {
        concat!(
            "SELECT ",
            conversation_columns!(),
            ", 1 FROM conversations c WHERE c.group_id = $1 AND c.id >= $2 ORDER BY c.id LIMIT $3"
        )
    } else {
        concat!(
            "SELECT ",
            conversation_columns!(),
            ", 1 FROM conversations c WHERE c.group_id = $1 AND c.id >= $2 AND c.deleted_at IS NULL ORDER BY c.id LIMIT $3"
        )
    };
    let found = tx.rows(sql, &params, |row| conversation(row, tenant))?;
    opened(tx, found)
}
