//! Forgetting a user: first nothing of it can be reached, then everything of it goes.

use super::scopes::ScopeId;
use crate::conversations::groups;
use crate::{Row, StoreError, Tx, TxExt};
use memloom_core::files::Scope;
use memloom_core::identity::Tenant;
use memloom_core::{GroupId, Timestamp, UserId};

/// What was removed of a user, by kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Removed {
    /// Files.
    pub documents: u64,
    /// Events.
    pub events: u64,
    /// Records of the audit trail.
    pub audit: u64,
    /// Entries of the event index.
    pub indexed: u64,
    /// Conversation trees it owned.
    pub conversations: u64,
    /// Entries it wrote in the trees of others, which stay without its name.
    pub anonymized: u64,
}

/// Takes a user's scope and trees out of everybody's reach. What they hold waits to be cleared away.
pub fn detach(tx: &mut dyn Tx, scope: &Scope, now: Timestamp) -> Result<Detached, StoreError> {
    let key = [scope.tenant().as_str().into(), scope.user().as_str().into()];
    tx.execute(
        "INSERT INTO forgotten_users (tenant, user_id, at) VALUES ($1, $2, $3) \
         ON CONFLICT (tenant, user_id) DO UPDATE SET at = excluded.at",
        &[key[0], key[1], now.as_micros().into()],
    )?;
    let id = super::scopes::find(tx, scope)?;
    if let Some(id) = id {
        tx.execute("INSERT INTO forgotten_scopes (scope_id) VALUES ($1)", &[id.0.into()])?;
        tx.execute("DELETE FROM scopes WHERE id = $1", &[id.0.into()])?;
    }
    // Deleted trees are in another index than live ones; both are the user's.
    let owned = tx.rows(
        "SELECT id FROM groups WHERE tenant = $1 AND owner_user_id = $2 AND deleted_at IS NULL UNION ALL \
         SELECT id FROM groups WHERE tenant = $1 AND owner_user_id = $2 AND deleted_at IS NOT NULL",
        &key,
        |row| row.uuid(0).map(GroupId),
    )?;
    for group in &owned {
        groups::set_deleted(tx, *group, Some(now))?;
        tx.execute(
            "INSERT INTO forgotten_groups (group_id, tenant) VALUES ($1, $2) ON CONFLICT (group_id) DO NOTHING",
            &[group.0.into(), scope.tenant().as_str().into()],
        )?;
    }
    tx.execute("DELETE FROM idempotency_keys WHERE tenant = $1 AND user_id = $2", &key)?;
    tx.execute("DELETE FROM transfers WHERE tenant = $1 AND from_user_id = $2", &key)?;
    tx.execute("DELETE FROM transfers WHERE tenant = $1 AND to_user_id = $2", &key)?;
    let has_names = tx.first(
        "SELECT 1 FROM memberships WHERE tenant = $1 AND user_id = $2 AND access_level > 1 UNION ALL \
         SELECT 1 FROM past_members WHERE tenant = $1 AND user_id = $2 LIMIT 1",
        &key,
        |_| Ok(()),
    )?;
    Ok(Detached { scope: id, groups: owned, has_names: has_names.is_some() })
}

/// What is to be cleared away.
#[derive(Debug, Clone, Default)]
pub struct Detached {
    /// The scope.
    pub scope: Option<ScopeId>,
    /// The trees.
    pub groups: Vec<GroupId>,
    /// Whether the user is or was in trees of others.
    pub has_names: bool,
}

impl Detached {
    /// Whether there was nothing of the user.
    pub fn is_empty(&self) -> bool {
        self.scope.is_none() && self.groups.is_empty() && !self.has_names
    }
}

/// What waits to be cleared away, for a process that finds it at its start.
#[derive(Debug, Clone, Default)]
pub struct Waiting {
    /// Users whose names still stand somewhere, each with the moment it was forgotten.
    pub users: Vec<(Scope, Timestamp)>,
    /// Scopes.
    pub scopes: Vec<ScopeId>,
    /// Trees.
    pub groups: Vec<(GroupId, Tenant)>,
}

/// What waits to be cleared away.
pub fn waiting(tx: &mut dyn Tx) -> Result<Waiting, StoreError> {
    let tenant = |row: &dyn Row, column| row.text(column).map(|name| Tenant::listed(name.to_owned()));
    Ok(Waiting {
        users: tx.rows("SELECT tenant, user_id, at FROM forgotten_users LIMIT 1000", &[], |row| {
            let scope = Scope::listed(tenant(row, 0)?, UserId(row.text(1)?.to_owned()));
            Ok((scope, Timestamp::from_micros(row.int(2)?)))
        })?,
        scopes: tx
            .rows("SELECT scope_id FROM forgotten_scopes LIMIT 1000", &[], |row| row.int(0).map(ScopeId))?,
        groups: tx.rows("SELECT group_id, tenant FROM forgotten_groups LIMIT 1000", &[], |row| {
            Ok((GroupId(row.uuid(0)?), tenant(row, 1)?))
        })?,
    })
}

/// Notes that a user's name stands nowhere any more.
pub fn nameless(tx: &mut dyn Tx, scope: &Scope) -> Result<(), StoreError> {
    tx.execute(
        "DELETE FROM forgotten_users WHERE tenant = $1 AND user_id = $2",
        &[scope.tenant().as_str().into(), scope.user().as_str().into()],
    )?;
    Ok(())
}

/// Removes up to `limit` rows of each kind of a detached scope; `None` when nothing was left.
pub fn clear_scope(tx: &mut dyn Tx, scope: ScopeId, limit: i64) -> Result<Option<Removed>, StoreError> {
    let params = [scope.0.into(), limit.into()];
    let mut step = |sql: &str| tx.execute(sql, &params);
    let removed = Removed {
        documents: step(
            "DELETE FROM files WHERE (scope_id, path) IN \
             (SELECT scope_id, path FROM files WHERE scope_id = $1 LIMIT $2)",
        )?,
        events: step(
            "DELETE FROM events WHERE (scope_id, block, event_id) IN \
             (SELECT scope_id, block, event_id FROM events WHERE scope_id = $1 LIMIT $2)",
        )?,
        audit: step(
            "DELETE FROM audit WHERE (scope_id, sequence) IN \
             (SELECT scope_id, sequence FROM audit WHERE scope_id = $1 LIMIT $2)",
        )?,
        ..Removed::default()
    };
    let blocks = step(
        "DELETE FROM event_blocks WHERE (scope_id, block) IN \
         (SELECT scope_id, block FROM event_blocks WHERE scope_id = $1 LIMIT $2)",
    )?;
    let keys = step(
        "DELETE FROM file_idempotency WHERE (scope_id, principal, key) IN \
         (SELECT scope_id, principal, key FROM file_idempotency WHERE scope_id = $1 LIMIT $2)",
    )?;
    if removed == Removed::default() && blocks + keys == 0 {
        tx.execute("DELETE FROM forgotten_scopes WHERE scope_id = $1", &[scope.0.into()])?;
        return Ok(None);
    }
    // Every event has its entry in the index.
    Ok(Some(Removed { indexed: removed.events, ..removed }))
}

/// Removes a detached tree, if it is still there.
pub fn clear_group(tx: &mut dyn Tx, tenant: &Tenant, group: GroupId) -> Result<(), StoreError> {
    groups::evict(tx, tenant, group)?;
    tx.execute("DELETE FROM forgotten_groups WHERE group_id = $1", &[group.0.into()])?;
    Ok(())
}

/// Takes a user's name off up to `limit` trees of others it was in at that moment or before; answers how many entries
/// lost it, and whether there may be more trees.
pub fn anonymize(
    tx: &mut dyn Tx,
    scope: &Scope,
    at: Timestamp,
    limit: i64,
) -> Result<(u64, bool), StoreError> {
    let user = scope.user().as_str();
    let trees = tx.rows(
        "SELECT group_id FROM memberships WHERE tenant = $1 AND user_id = $2 AND access_level > 1 AND created_at <= $3 \
         UNION SELECT group_id FROM past_members WHERE tenant = $1 AND user_id = $2 LIMIT $4",
        &[scope.tenant().as_str().into(), user.into(), at.as_micros().into(), limit.into()],
        |row| row.uuid(0).map(GroupId),
    )?;
    let mut entries = 0;
    for group in &trees {
        let then = [group.0.into(), user.into(), at.as_micros().into()];
        entries += tx.execute(
            "UPDATE entries SET user_id = NULL WHERE group_id = $1 AND user_id = $2 AND created_at <= $3",
            &then,
        )?;
        tx.execute(
            "DELETE FROM memberships WHERE group_id = $1 AND user_id = $2 AND created_at <= $3",
            &then,
        )?;
        tx.execute("DELETE FROM past_members WHERE group_id = $1 AND user_id = $2", &then[..2])?;
    }
    Ok((entries, trees.len() as i64 == limit))
}
