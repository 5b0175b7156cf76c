//! What full-text search needs of the tables: who may see which tree, what a hit looks like, what is not indexed yet.

use super::entries::PAGE_BYTES;
use super::{CONTENT_COLUMN, entry, entry_columns, open_text, opened, stored};
use crate::vault::{self, seal_contexts};
use crate::{Lock, StoreError, Tx, TxExt, Value};
use memtrove_core::conversations::{Channel, Entry};
use memtrove_core::identity::Tenant;
use memtrove_core::{ConversationId, EntryId, GroupId, Timestamp, UserId};
use std::collections::HashSet;
use std::ops::ControlFlow;
use uuid::Uuid;

/// Whose trees a search covers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Scope {
    /// The live trees a user is a member of.
    Member(UserId),
    /// The live trees a user owns.
    Owner(UserId),
    /// A tenant's trees, for admins.
    Tenant {
        /// Only this owner's.
        owner: Option<UserId>,
        /// Deleted ones too.
        with_deleted: bool,
    },
}

/// The trees of a scope, if there are at most `limit`: then a search can be confined to them from the start.
pub fn groups(
    tx: &mut dyn Tx,
    tenant: &Tenant,
    scope: &Scope,
    limit: usize,
) -> Result<Option<Vec<Uuid>>, StoreError> {
    let (user, shared) = match scope {
        Scope::Member(user) => (user, true),
        Scope::Owner(user) => (user, false),
        Scope::Tenant { .. } => return Ok(None),
    };
    let bound = limit as i64 + 1;
    let params = [tenant.as_str().into(), user.as_str().into(), bound.into()];
    let mut groups = tx.rows(
        "SELECT id FROM groups WHERE tenant = $1 AND owner_user_id = $2 AND deleted_at IS NULL LIMIT $3",
        &params,
        |row| row.uuid(0),
    )?;
    if shared && groups.len() <= limit {
        groups.append(&mut tx.rows(
            "SELECT g.id FROM memberships m JOIN groups g ON g.id = m.group_id \
             WHERE m.tenant = $1 AND m.user_id = $2 AND m.access_level > 1 AND g.deleted_at IS NULL LIMIT $3",
            &params,
            |row| row.uuid(0),
        )?);
    }
    Ok((groups.len() <= limit).then_some(groups))
}

/// Those of the given trees that are in the scope.
pub fn visible(
    tx: &mut dyn Tx,
    tenant: &Tenant,
    scope: &Scope,
    candidates: &[Uuid],
) -> Result<HashSet<Uuid>, StoreError> {
    let found = match scope {
        Scope::Member(user) => tx.rows(
            "SELECT g.id FROM groups g JOIN memberships m ON m.group_id = g.id AND m.user_id = $3 \
             WHERE g.id = ANY($1) AND g.tenant = $2 AND g.deleted_at IS NULL",
            &[Value::Uuids(candidates), tenant.as_str().into(), user.as_str().into()],
            |row| row.uuid(0),
        )?,
        Scope::Owner(user) => tx.rows(
            "SELECT id FROM groups WHERE id = ANY($1) AND tenant = $2 AND owner_user_id = $3 AND deleted_at IS NULL",
            &[Value::Uuids(candidates), tenant.as_str().into(), user.as_str().into()],
            |row| row.uuid(0),
        )?,
        Scope::Tenant { owner, with_deleted } => tx.rows(
            "SELECT id FROM groups WHERE id = ANY($1) AND tenant = $2 AND ($3 = 0 OR owner_user_id = $4) \
             AND (deleted_at IS NULL OR $5 = 1)",
            &[
                Value::Uuids(candidates),
                tenant.as_str().into(),
                i64::from(owner.is_some()).into(),
                owner.as_ref().map_or("", |owner| owner.as_str()).into(),
                i64::from(*with_deleted).into(),
            ],
            |row| row.uuid(0),
        )?,
    };
    Ok(found.into_iter().collect())
}

/// A hit with everything the answer shows.
pub struct Hydrated {
    /// The entry's id.
    pub id: EntryId,
    /// The entry itself, where asked for.
    pub entry: Option<Entry>,
    /// The text that was searched.
    pub text: String,
    /// The title of the conversation that stores it.
    pub conversation_title: Option<String>,
}

/// Loads all hits of a page at once, in no particular order.
pub fn hydrate(
    tx: &mut dyn Tx,
    tenant: &Tenant,
    ids: &[Uuid],
    with_entries: bool,
) -> Result<Vec<Hydrated>, StoreError> {
    let params = [Value::Uuids(ids), tenant.as_str().into()];
    let title = |tx: &mut dyn Tx, conversation: ConversationId, title: Option<Vec<u8>>| {
        open_text(tx, &seal_contexts::conversation_title(tenant, conversation), title)
    };
    if !with_entries {
        let found = tx.rows(
            "SELECT t.id, t.text, c.id, c.title FROM texts t \
             JOIN conversations c ON c.tenant = $2 AND c.id = t.conversation_id AND c.group_id = t.group_id \
             WHERE t.id = ANY($1)",
            &params,
            |row| {
                let (id, text) = (EntryId(row.uuid(0)?), row.text(1)?.to_owned());
                let (conversation, sealed) = (ConversationId(row.uuid(2)?), stored(row, 3)?);
                Ok(move |tx: &mut dyn Tx| {
                    let conversation_title = title(tx, conversation, sealed)?;
                    Ok(Hydrated { id, entry: None, text, conversation_title })
                })
            },
        )?;
        return opened(tx, found);
    }
    let found = tx.rows(
        concat!(
            "SELECT ",
            entry_columns!(),
            ", t.text, c.title FROM entries e JOIN texts t ON t.id = e.id \
             JOIN conversations c ON c.tenant = $2 AND c.id = e.conversation_id AND c.group_id = e.group_id \
             WHERE e.id = ANY($1)"
        ),
        &params,
        |row| {
            let (open, text, sealed) = (entry(row)?, row.text(10)?.to_owned(), stored(row, 11)?);
            Ok(move |tx: &mut dyn Tx| {
                let entry = open(tx)?;
                let conversation_title = title(tx, entry.conversation_id, sealed)?;
                Ok(Hydrated { id: entry.id, entry: Some(entry), text, conversation_title })
            })
        },
    )?;
    opened(tx, found)
}

/// What indexing needs to know of an entry.
pub struct Indexable {
    /// Its tree.
    pub group: GroupId,
    /// The conversation that stores it.
    pub conversation: ConversationId,
    pub channel: Channel,
    /// When it was written.
    pub created_at: Timestamp,
}

/// Finds an entry of a live tree of this tenant.
pub fn indexable(tx: &mut dyn Tx, tenant: &Tenant, id: EntryId) -> Result<Option<Indexable>, StoreError> {
    tx.first(
        "SELECT e.group_id, e.conversation_id, e.channel, e.created_at FROM entries e JOIN groups g ON g.id = e.group_id \
         WHERE e.id = $1 AND g.tenant = $2 AND g.deleted_at IS NULL",
        &[id.0.into(), tenant.as_str().into()],
        |row| {
            Ok(Indexable {
                group: GroupId(row.uuid(0)?),
                conversation: ConversationId(row.uuid(1)?),
                channel: Channel::from_code(row.int(2)?).ok_or_else(|| StoreError::Broken("unknown channel".into()))?,
                created_at: super::timestamp(row, 3)?,
            })
        },
    )
}

/// Puts a history entry on the indexers' work list.
pub fn add_unindexed(
    tx: &mut dyn Tx,
    tenant: &Tenant,
    group: GroupId,
    entry: EntryId,
    created_at: Timestamp,
) -> Result<(), StoreError> {
    tx.post(
        "INSERT INTO unindexed (tenant, created_at, entry_id, group_id) VALUES ($1, $2, $3, $4)",
        &[tenant.as_str().into(), created_at.as_micros().into(), entry.0.into(), group.0.into()],
    )?;
    Ok(())
}

/// Takes an entry off the indexers' work list.
pub fn remove_unindexed(
    tx: &mut dyn Tx,
    tenant: &Tenant,
    entry: EntryId,
    created_at: Timestamp,
) -> Result<(), StoreError> {
    tx.post(
        "DELETE FROM unindexed WHERE tenant = $1 AND created_at = $2 AND entry_id = $3",
        &[tenant.as_str().into(), created_at.as_micros().into(), entry.0.into()],
    )?;
    Ok(())
}

/// The indexers' work list in live trees, oldest first, after (`created_at`, `id`): at most `limit`, and no more content
/// than a page holds. The answer also says whether there is more.
pub fn unindexed(
    tx: &mut dyn Tx,
    tenant: &Tenant,
    after: Option<(Timestamp, EntryId)>,
    limit: usize,
) -> Result<(Vec<Entry>, bool), StoreError> {
    let (created_at, id) = after.map_or((i64::MIN, Uuid::nil()), |(at, id)| (at.as_micros(), id.0));
    let (mut found, mut bytes, mut more) = (Vec::new(), 0, false);
    tx.query(
        concat!(
            "SELECT ",
            entry_columns!(),
            " FROM unindexed u JOIN groups g ON g.id = u.group_id AND g.deleted_at IS NULL \
             JOIN entries e ON e.id = u.entry_id \
             WHERE u.tenant = $1 AND (u.created_at, u.entry_id) > ($2, $3) ORDER BY u.created_at, u.entry_id LIMIT $4"
        ),
        &[tenant.as_str().into(), created_at.into(), id.into(), (limit as i64 + 1).into()],
        Lock::None,
        &mut |row| {
            let content = row.bytes(CONTENT_COLUMN)?;
            bytes += vault::plain_length(content, content.len());
            if found.len() == limit || (bytes > PAGE_BYTES && !found.is_empty()) {
                more = true;
                return Ok(ControlFlow::Break(()));
            }
            found.push(entry(row)?);
            Ok(ControlFlow::Continue(()))
        },
    )?;
    Ok((opened(tx, found)?, more))
}

/// How many bytes of content each of these entries has.
pub fn content_bytes(tx: &mut dyn Tx, ids: &[Uuid]) -> Result<Vec<(Uuid, usize)>, StoreError> {
    // What is not sealed need not be looked at to know its length.
    let head = if tx.vault().is_plain() { 0 } else { vault::HEAD_LENGTH as i64 };
    tx.rows(
        "SELECT id, LENGTH(content), CASE WHEN $2 > 0 THEN SUBSTR(content, 1, CAST($2 AS INTEGER)) END FROM entries WHERE id = ANY($1)",
        &[Value::Uuids(ids), head.into()],
        |row| {
            let head = row.opt_bytes(2)?.unwrap_or_default();
            Ok((row.uuid(0)?, vault::plain_length(head, row.int(1)? as usize)))
        },
    )
}

/// The most bytes of content a page of hits may hold, unless its first hit alone has more.
pub const HITS_BYTES: usize = PAGE_BYTES;
