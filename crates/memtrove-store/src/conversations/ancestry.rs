//! The ancestors of forks.

use crate::{StoreError, Tx, TxExt};
use memtrove_core::conversations::forks::{Segment, View};
use memtrove_core::{ConversationId, GroupId};

/// What is visible on a conversation. A conversation that is no fork costs no query.
pub fn view(tx: &mut dyn Tx, group: GroupId, id: ConversationId, is_fork: bool) -> Result<View, StoreError> {
    if !is_fork {
        return Ok(View::new(id, Vec::new()));
    }
    let ancestors = tx.rows(
        "SELECT ancestor, max_ord FROM ancestry WHERE group_id = $1 AND descendant = $2 ORDER BY depth",
        &[group.0.into(), id.0.into()],
        |row| Ok(Segment { conversation: ConversationId(row.uuid(0)?), max_ord: row.int(1)? }),
    )?;
    Ok(View::new(id, ancestors))
}

/// Stores the ancestors of a new fork, nearest first.
pub fn insert(
    tx: &mut dyn Tx,
    group: GroupId,
    fork: ConversationId,
    ancestors: &[Segment],
) -> Result<(), StoreError> {
    for (depth, segment) in (1i64..).zip(ancestors) {
        tx.post(
            "INSERT INTO ancestry (group_id, descendant, depth, ancestor, max_ord) VALUES ($1, $2, $3, $4, $5)",
            &[group.0.into(), fork.0.into(), depth.into(), segment.conversation.0.into(), segment.max_ord.into()],
        )?;
    }
    Ok(())
}
