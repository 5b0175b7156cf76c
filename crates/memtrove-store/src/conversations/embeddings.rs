//! What texts are found by besides full text: the vectors and the words of their pieces, written in the background and read
//! by indexes in memory.
//!
//! Every tree counts its changes. A row stands under the change that wrote it, so that an index that has seen a tree up to a
//! change reads on from there. What is not taken in yet is the tree's [tail].

use super::pieces::{self, Piece};
use super::search::Scope;
use crate::{Lock, Row, StoreError, Tx, TxExt, Value};
use memtrove_core::identity::Tenant;
use memtrove_core::{ConversationId, EntryId, GroupId, UserId};
use std::collections::{BTreeMap, HashSet};
use std::ops::ControlFlow;
use uuid::Uuid;

/// A tree as an index in memory knows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Tree {
    pub group: GroupId,
    /// Its next place: rises with everything that is appended.
    pub next_ord: i64,
    /// Its last change: rises with everything else that happens to its texts.
    pub changes: i64,
}

/// The trees of a scope.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Trees {
    /// Of each owner all that are live, those first that were written to last.
    pub owned: Vec<(UserId, Vec<Tree>)>,
    /// Those whose owner has others that are not in the scope: shared with a user, or deleted.
    pub others: Vec<Tree>,
}

/// Trees of `groups` under these conditions.
macro_rules! trees_where {
    ($conditions:literal) => {
        concat!(
            "SELECT g.id, g.next_ord, g.changes, g.owner_user_id FROM groups g WHERE g.tenant = $1 AND ",
            $conditions,
            " ORDER BY g.latest_updated_at DESC"
        )
    };
}

/// Every tree of a scope.
pub fn trees(tx: &mut dyn Tx, tenant: &Tenant, scope: &Scope) -> Result<Trees, StoreError> {
    const LIVE: &str = trees_where!("g.deleted_at IS NULL");
    const DELETED: &str = trees_where!("g.deleted_at IS NOT NULL");
    const OWNED: &str = trees_where!("g.owner_user_id = $2 AND g.deleted_at IS NULL");
    const OWNED_AND_DELETED: &str = trees_where!("g.owner_user_id = $2 AND g.deleted_at IS NOT NULL");
    const SHARED: &str = "SELECT g.id, g.next_ord, g.changes FROM memberships m JOIN groups g ON g.id = m.group_id \
                          WHERE m.tenant = $1 AND m.user_id = $2 AND m.access_level > 1 AND g.deleted_at IS NULL";
    // What is live and what is deleted is in different indexes, so each is asked for by itself.
    let (owned, others, user): (&str, Option<&str>, Option<&UserId>) = match scope {
        Scope::Member(user) => (OWNED, Some(SHARED), Some(user)),
        Scope::Owner(owner) | Scope::Tenant { owner: Some(owner), with_deleted: false } => {
            (OWNED, None, Some(owner))
        }
        Scope::Tenant { owner: Some(owner), with_deleted: true } => {
            (OWNED, Some(OWNED_AND_DELETED), Some(owner))
        }
        Scope::Tenant { owner: None, with_deleted: false } => (LIVE, None, None),
        Scope::Tenant { owner: None, with_deleted: true } => (LIVE, Some(DELETED), None),
    };
    let mut params: Vec<Value<'_>> = vec![tenant.as_str().into()];
    params.extend(user.map(|user| Value::from(user.as_str())));
    let tree = |row: &dyn Row| {
        Ok::<_, StoreError>(Tree {
            group: GroupId(row.uuid(0)?),
            next_ord: row.int(1)?,
            changes: row.int(2)?,
        })
    };
    let mut by_owner: BTreeMap<UserId, Vec<Tree>> = BTreeMap::new();
    if let Some(owner) = user {
        by_owner.insert(owner.clone(), tx.rows(owned, &params, tree)?);
    } else {
        tx.query(owned, &params, Lock::None, &mut |row| {
            by_owner.entry(UserId(row.text(3)?.to_owned())).or_default().push(tree(row)?);
            Ok(ControlFlow::Continue(()))
        })?;
    }
    let others = others.map(|sql| tx.rows(sql, &params, tree)).transpose()?.unwrap_or_default();
    Ok(Trees { owned: by_owner.into_iter().collect(), others })
}

/// Notes a change to a tree's texts that is not an append.
pub fn touch(tx: &mut dyn Tx, group: GroupId) -> Result<(), StoreError> {
    tx.post("UPDATE groups SET changes = changes + 1 WHERE id = $1", &[group.0.into()])?;
    Ok(())
}

/// A text that is to be taken in, or was not yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Text {
    /// Its number: another for every version.
    pub no: i64,
    /// The entry it belongs to.
    pub entry: EntryId,
    /// The entry's tree.
    pub group: GroupId,
    /// The conversation that stores the entry.
    pub conversation: ConversationId,
    /// The entry's place in the tree.
    pub ord: i64,
    /// What search finds it by.
    pub text: String,
    /// Who wrote the entry; none where it was the agent.
    pub author: Option<String>,
}

/// Who wrote an entry, of `texts` as `t` and `entries` as `e`. Agents have no name that people would call them by.
macro_rules! author {
    () => {
        "CASE WHEN t.by_agent = 1 THEN '' ELSE e.user_id END"
    };
}

/// The columns that [`text`] reads, of `texts` as `t` and `entries` as `e`.
macro_rules! text_columns {
    () => {
        concat!("t.no, t.id, t.group_id, t.conversation_id, e.ord, t.text, ", author!())
    };
}

fn text(row: &dyn Row) -> Result<Text, StoreError> {
    Ok(Text {
        no: row.int(0)?,
        entry: EntryId(row.uuid(1)?),
        group: GroupId(row.uuid(2)?),
        conversation: ConversationId(row.uuid(3)?),
        ord: row.int(4)?,
        text: row.text(5)?.to_owned(),
        author: row.opt_text(6)?.map(str::to_owned),
    })
}

/// A tree's texts that are not taken in yet, after a number: at most `limit`.
pub fn tail(tx: &mut dyn Tx, group: GroupId, after: i64, limit: usize) -> Result<Vec<Text>, StoreError> {
    let numbers = tx.untaken_texts(Some(group.0), after, limit as i64)?;
    if numbers.is_empty() {
        return Ok(Vec::new());
    }
    tx.rows(
        concat!(
            "SELECT ",
            text_columns!(),
            " FROM texts t JOIN entries e ON e.id = t.id WHERE t.no = ANY($1) ORDER BY t.no"
        ),
        &[Value::Ints(&numbers)],
        text,
    )
}

/// The trees of all texts that are not taken in yet, unless these are more than `limit`.
pub fn trees_waiting(tx: &mut dyn Tx, limit: usize) -> Result<Option<HashSet<GroupId>>, StoreError> {
    let numbers = tx.untaken_texts(None, 0, limit as i64 + 1)?;
    if numbers.len() > limit {
        return Ok(None);
    }
    let groups =
        tx.rows("SELECT DISTINCT group_id FROM texts WHERE no = ANY($1)", &[Value::Ints(&numbers)], |row| {
            Ok(GroupId(row.uuid(0)?))
        })?;
    Ok(Some(groups.into_iter().collect()))
}

/// Texts to be taken in next, whosever they are.
#[derive(Debug, Default)]
pub struct Waiting {
    /// Those whose entry is there.
    pub texts: Vec<Text>,
    /// The numbers of all that were looked at.
    pub numbers: Vec<i64>,
}

/// The next texts to be taken in: at most `limit`, and once they have `bytes` together no more.
pub fn waiting(tx: &mut dyn Tx, limit: usize, bytes: usize) -> Result<Option<Waiting>, StoreError> {
    let numbers = tx.untaken_texts(None, 0, limit as i64)?;
    if numbers.is_empty() {
        return Ok(None);
    }
    let (mut waiting, mut size) = (Waiting::default(), 0);
    tx.query(
        concat!(
            "SELECT ",
            text_columns!(),
            " FROM texts t LEFT JOIN entries e ON e.id = t.id WHERE t.no = ANY($1) ORDER BY t.no"
        ),
        &[Value::Ints(&numbers)],
        Lock::None,
        &mut |row| {
            waiting.numbers.push(row.int(0)?);
            if row.opt_int(4)?.is_some() {
                let text = text(row)?;
                size += text.text.len();
                waiting.texts.push(text);
            }
            Ok(if size < bytes { ControlFlow::Continue(()) } else { ControlFlow::Break(()) })
        },
    )?;
    Ok(Some(waiting))
}

/// What a text is found by.
#[derive(Debug, Clone, PartialEq)]
pub struct EmbeddedText {
    /// The number of the text.
    pub text_no: i64,
    /// The entry the text belongs to.
    pub entry: EntryId,
    /// The conversation that stores the entry.
    pub conversation: ConversationId,
    /// The entry's place in the tree.
    pub ord: i64,
    /// Who said it; none where it was the agent. Of what is to be written: whom the text names, if it does.
    pub speaker: Option<String>,
    /// Whether it ends with a question.
    pub asks: bool,
    /// The model that made the vectors; `None` while there are none.
    pub model: Option<String>,
    /// The text's parts.
    pub pieces: Vec<Piece>,
}

/// Writes what texts of a tree are found by, in place of what was known of these texts. A text that was replaced or removed
/// meanwhile is passed over. Where the text names no speaker, it is the entry's author, as the entry names him now.
pub fn put(tx: &mut dyn Tx, group: GroupId, embedded: &[EmbeddedText]) -> Result<(), StoreError> {
    let count = embedded.len() as i64;
    let last = tx.first(
        "UPDATE groups SET changes = changes + $2 WHERE id = $1 RETURNING changes",
        &[group.0.into(), count.into()],
        |row| row.int(0),
    )?;
    // Without its row the tree is out of reach, and its texts are on their way out.
    let Some(last) = last else { return Ok(()) };
    for (change, text) in (last - count + 1..).zip(embedded) {
        tx.post("DELETE FROM meanings WHERE text_no = $1", &[text.text_no.into()])?;
        tx.post(
            concat!(
                "INSERT INTO meanings \
                 (group_id, change, text_no, entry_id, conversation_id, ord, speaker, asks, model, pieces) \
                 SELECT t.group_id, $3, t.no, t.id, t.conversation_id, e.ord, COALESCE($4, ",
                author!(),
                "), $5, $6, $7 FROM texts t JOIN entries e ON e.id = t.id WHERE t.no = $1 AND t.id = $2"
            ),
            &[
                text.text_no.into(),
                text.entry.0.into(),
                change.into(),
                text.speaker.as_deref().into(),
                i64::from(text.asks).into(),
                text.model.as_deref().into(),
                pieces::encode(&text.pieces).as_slice().into(),
            ],
        )?;
    }
    Ok(())
}

/// What a tree's texts are found by, as far as it was written after a change: each with the change that wrote it, at most `limit`,
/// until the closure breaks off.
pub fn changed(
    tx: &mut dyn Tx,
    group: GroupId,
    after: i64,
    limit: usize,
    each: &mut dyn FnMut(i64, EmbeddedText) -> ControlFlow<()>,
) -> Result<(), StoreError> {
    tx.query(
        "SELECT text_no, entry_id, conversation_id, ord, speaker, asks, model, pieces, change FROM meanings \
         WHERE group_id = $1 AND change > $2 ORDER BY change LIMIT $3",
        &[group.0.into(), after.into(), (limit as i64).into()],
        Lock::None,
        &mut |row| {
            let embedded = EmbeddedText {
                text_no: row.int(0)?,
                entry: EntryId(row.uuid(1)?),
                conversation: ConversationId(row.uuid(2)?),
                ord: row.int(3)?,
                speaker: row.opt_text(4)?.map(str::to_owned),
                asks: row.int(5)? != 0,
                model: row.opt_text(6)?.map(str::to_owned),
                pieces: pieces::decode(row.bytes(7)?)?,
            };
            Ok(each(row.int(8)?, embedded))
        },
    )
}

/// Rows that another model made than the one there should be, or none. Three ranges of the index: one condition would walk
/// through all that are as they should be.
macro_rules! outdated {
    ($columns:literal) => {
        concat!(
            "SELECT ",
            $columns,
            " FROM meanings WHERE model IS NULL UNION ALL SELECT ",
            $columns,
            " FROM meanings WHERE model < $1 UNION ALL SELECT ",
            $columns,
            " FROM meanings WHERE model > $1"
        )
    };
}

/// How many texts have no vectors of this model.
pub fn count_outdated(tx: &mut dyn Tx, model: &str) -> Result<i64, StoreError> {
    tx.first(
        concat!("SELECT SUM(n) FROM (", outdated!("COUNT(*) AS n"), ") AS counts"),
        &[model.into()],
        |row| row.int(0),
    )
    .map(Option::unwrap_or_default)
}

/// Some texts of trees in reach that have no vectors of this model: at most `limit`, and once they have `bytes` together no more.
pub fn outdated(tx: &mut dyn Tx, model: &str, limit: usize, bytes: usize) -> Result<Vec<Text>, StoreError> {
    let (mut texts, mut size) = (Vec::new(), 0);
    tx.query(
        concat!(
            "SELECT ",
            text_columns!(),
            " FROM (",
            outdated!("text_no"),
            " LIMIT $2) m JOIN texts t ON t.no = m.text_no JOIN groups g ON g.id = t.group_id \
             JOIN entries e ON e.id = t.id"
        ),
        &[model.into(), (limit as i64).into()],
        Lock::None,
        &mut |row| {
            let text = text(row)?;
            size += text.text.len();
            texts.push(text);
            Ok(if size < bytes { ControlFlow::Continue(()) } else { ControlFlow::Break(()) })
        },
    )?;
    Ok(texts)
}

/// Removes all that a tree's texts are found by here.
pub fn remove_tree(tx: &mut dyn Tx, group: GroupId) -> Result<(), StoreError> {
    tx.post("DELETE FROM meanings WHERE group_id = $1", &[group.0.into()])?;
    Ok(())
}

/// Takes a user's name off the entries of a tree that it wrote.
pub fn forget_speaker(
    tx: &mut dyn Tx,
    group: GroupId,
    entries: &[Uuid],
    user: &UserId,
) -> Result<(), StoreError> {
    let written = tx.rows(
        "SELECT m.change FROM texts t JOIN meanings m ON m.text_no = t.no \
         WHERE t.id = ANY($1) AND m.speaker = $2",
        &[Value::Uuids(entries), user.as_str().into()],
        |row| row.int(0),
    )?;
    for change in written {
        touch(tx, group)?;
        // Under a new change, so that indexes in memory forget the name too.
        tx.post(
            "UPDATE meanings SET speaker = NULL, change = (SELECT changes FROM groups WHERE id = $1) \
             WHERE group_id = $1 AND change = $2",
            &[group.0.into(), change.into()],
        )?;
    }
    Ok(())
}
