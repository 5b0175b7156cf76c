//! What a session is when it is a conversation too: its end is the end of what was remembered in it, and a fork remembers
//! what its ancestors did up to the fork.
//!
//! That is so for the members of the conversation, and for those who may know of all conversations. To everybody else its id is
//! a text like any other: what they remember under it must tell them nothing of whether there is such a conversation, or was,
//! or what it was forked from.

use crate::{StoreError, Tx, TxExt};
use memtrove_core::identity::Tenant;
use memtrove_core::{Timestamp, parse_uuid};
use uuid::Uuid;

/// A session, as far as it is a conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Session {
    /// No conversation, none that the user knows of, or one without ancestors.
    Plain,
    /// A conversation that was deleted: nothing of it is visible.
    Deleted,
    /// A fork: its ancestors' ids, each with the instant of the last entry that it shares.
    Fork(Vec<(String, Timestamp)>),
}

/// Looks a session up among the conversations of its tenant; among those of a member, unless it is `None` that looks.
pub fn look_up(
    tx: &mut dyn Tx,
    tenant: &Tenant,
    member: Option<&str>,
    session: &str,
) -> Result<Session, StoreError> {
    // Ids of conversations are written in lower case; another spelling is another session.
    let Some(id) = parse_uuid(session).filter(|id| id.to_string() == session) else {
        return Ok(Session::Plain);
    };
    let found = tx.first(
        "SELECT c.group_id, c.deleted_at IS NOT NULL OR g.deleted_at IS NOT NULL, m.user_id IS NOT NULL \
         FROM conversations c JOIN groups g ON g.id = c.group_id \
         LEFT JOIN memberships m ON m.group_id = c.group_id AND m.user_id = $3 WHERE c.tenant = $1 AND c.id = $2",
        &[tenant.as_str().into(), id.into(), member.unwrap_or_default().into()],
        |row| Ok((row.uuid(0)?, row.int(1)? != 0, row.int(2)? != 0)),
    )?;
    let known = found.filter(|(_, _, is_member)| *is_member || member.is_none());
    match known {
        None => Ok(Session::Plain),
        Some((_, true, _)) => Ok(Session::Deleted),
        Some((group, false, _)) => ancestors(tx, group, id),
    }
}

fn ancestors(tx: &mut dyn Tx, group: Uuid, id: Uuid) -> Result<Session, StoreError> {
    let ancestors = tx.rows(
        "SELECT a.ancestor, MAX(e.created_at) FROM ancestry a JOIN entries e ON e.group_id = a.group_id \
         AND e.conversation_id = a.ancestor AND e.channel = 1 AND e.ord <= a.max_ord \
         WHERE a.group_id = $1 AND a.descendant = $2 GROUP BY a.ancestor",
        &[group.into(), id.into()],
        |row| Ok((row.uuid(0)?.to_string(), Timestamp::from_micros(row.int(1)?))),
    )?;
    Ok(if ancestors.is_empty() { Session::Plain } else { Session::Fork(ancestors) })
}

/// The conversations of a tree, for memories that go with it.
pub fn of_tree(tx: &mut dyn Tx, group: Uuid) -> Result<Vec<String>, StoreError> {
    tx.rows("SELECT id FROM conversations WHERE group_id = $1", &[group.into()], |row| {
        Ok(row.uuid(0)?.to_string())
    })
}

/// Whose memories go with a tree: those of its members.
pub fn members(tx: &mut dyn Tx, group: Uuid) -> Result<Vec<String>, StoreError> {
    tx.rows("SELECT user_id FROM memberships WHERE group_id = $1", &[group.into()], |row| {
        Ok(row.text(0)?.to_owned())
    })
}
