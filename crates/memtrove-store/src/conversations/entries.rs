//! Entries: append-only, read by the page along a view.

use super::{CONTENT_COLUMN, ORD_COLUMN, entry, entry_columns, opened};
use crate::vault::{self, seal_contexts};
use crate::{Lock, StoreError, Tx, TxExt, Value};
use memtrove_core::conversations::forks::{Segment, View};
use memtrove_core::conversations::sync::{Digest, MemoryState};
use memtrove_core::conversations::transcript::Stored;
use memtrove_core::conversations::{Channel, Entry};
use memtrove_core::identity::Tenant;
use memtrove_core::{ClientId, ConversationId, EntryId, GroupId};
use std::collections::HashMap;
use std::ops::ControlFlow;

/// Stores an entry. Memory entries bring the state of their epoch.
pub fn insert(
    tx: &mut dyn Tx,
    tenant: &Tenant,
    group: GroupId,
    entry: &Entry,
    memory: Option<&MemoryState>,
) -> Result<(), StoreError> {
    let content =
        vault::seal(tx, tenant, &seal_contexts::entry_content(entry.id), entry.content.get().as_bytes())?;
    let client: Value<'_> = entry.client_id.as_ref().map(ClientId::as_str).into();
    tx.post(
        "INSERT INTO entries (group_id, conversation_id, channel, ord, id, user_id, client_id, memory_of, content_type, \
         created_at, epoch, epoch_start, item_count, chain_digest, uniform_type, request_digest, content) \
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17)",
        &[
            group.0.into(),
            entry.conversation_id.0.into(),
            entry.channel.code().into(),
            entry.ord.into(),
            entry.id.0.into(),
            entry.user_id.as_ref().map(|user| user.as_str()).into(),
            client,
            if entry.channel == Channel::Memory { client } else { Value::Null },
            entry.content_type.as_str().into(),
            entry.created_at.as_micros().into(),
            entry.epoch.into(),
            memory.map(|m| m.epoch_start).into(),
            memory.map(|m| m.item_count as i64).into(),
            memory.map(|m| m.chain.as_slice()).into(),
            memory.and_then(|m| m.uniform_type.as_deref()).into(),
            memory.and_then(|m| m.request.as_ref()).map(Digest::as_slice).into(),
            (*content).into(),
        ],
    )?;
    Ok(())
}

/// Where an entry stands, and whose memory it is.
pub struct Position {
    group: GroupId,
    /// The conversation that stores it.
    pub conversation: ConversationId,
    /// Its place in the tree.
    pub ord: i64,
    /// The client, for memory entries.
    pub memory_of: Option<ClientId>,
}

impl Position {
    /// Whether it stands in this tree.
    pub fn is_in(&self, group: GroupId) -> bool {
        self.group == group
    }
}

/// Finds an entry by its id, in any tenant: callers compare the group.
pub fn position(tx: &mut dyn Tx, id: EntryId) -> Result<Option<Position>, StoreError> {
    tx.first(
        "SELECT group_id, conversation_id, ord, memory_of FROM entries WHERE id = $1",
        &[id.0.into()],
        |row| {
            Ok(Position {
                group: GroupId(row.uuid(0)?),
                conversation: ConversationId(row.uuid(1)?),
                ord: row.int(2)?,
                memory_of: row.opt_text(3)?.map(ClientId::from),
            })
        },
    )
}

/// Where every history entry of a group stands.
pub fn places(tx: &mut dyn Tx, group: GroupId) -> Result<HashMap<EntryId, Stored>, StoreError> {
    let found = tx.rows(
        "SELECT id, conversation_id, ord FROM entries WHERE group_id = $1 AND channel = $2",
        &[group.0.into(), Channel::History.code().into()],
        |row| {
            let place = Stored { conversation: ConversationId(row.uuid(1)?), ord: row.int(2)? };
            Ok((EntryId(row.uuid(0)?), place))
        },
    )?;
    Ok(found.into_iter().collect())
}

/// An entry of a group.
pub fn get(tx: &mut dyn Tx, group: GroupId, id: EntryId) -> Result<Option<Entry>, StoreError> {
    let found = tx.first(
        concat!("SELECT ", entry_columns!(), " FROM entries e WHERE e.id = $1 AND e.group_id = $2"),
        &[id.0.into(), group.0.into()],
        entry,
    )?;
    found.map(|open| open(tx)).transpose()
}

/// The last entry of a view before `ord`, of any channel and client.
pub fn last_before(
    tx: &mut dyn Tx,
    group: GroupId,
    view: &View,
    ord: i64,
) -> Result<Option<EntryId>, StoreError> {
    for segment in view.segments() {
        let newest = |tx: &mut dyn Tx, channel: Channel| {
            tx.first(
                "SELECT ord, id FROM entries WHERE group_id = $1 AND conversation_id = $2 AND channel = $3 AND ord <= $4 \
                 ORDER BY ord DESC LIMIT 1",
                &[
                    group.0.into(),
                    segment.conversation.0.into(),
                    channel.code().into(),
                    segment.max_ord.min(ord - 1).into(),
                ],
                |row| Ok((row.int(0)?, EntryId(row.uuid(1)?))),
            )
        };
        let found = newest(tx, Channel::History)?.max(newest(tx, Channel::Memory)?);
        if let Some((_, id)) = found {
            return Ok(Some(id));
        }
    }
    Ok(None)
}

/// The state of a client's memory on a view: what its newest row says.
pub fn memory_state(
    tx: &mut dyn Tx,
    group: GroupId,
    view: &View,
    client: &ClientId,
) -> Result<Option<MemoryState>, StoreError> {
    for segment in view.segments() {
        let state = tx.first(
            "SELECT epoch, epoch_start, item_count, chain_digest, uniform_type, request_digest FROM entries \
             WHERE group_id = $1 AND conversation_id = $2 AND memory_of = $3 AND ord <= $4 ORDER BY ord DESC LIMIT 1",
            &[group.0.into(), segment.conversation.0.into(), client.as_str().into(), segment.max_ord.into()],
            |row| {
                Ok(MemoryState {
                    epoch: row.int(0)?,
                    epoch_start: row.int(1)?,
                    item_count: row.int(2)? as usize,
                    chain: digest(row.bytes(3)?)?,
                    uniform_type: row.opt_text(4)?.map(str::to_owned),
                    request: row.opt_bytes(5)?.map(digest).transpose()?,
                })
            },
        )?;
        if state.is_some() {
            return Ok(state);
        }
    }
    Ok(None)
}

fn digest(bytes: &[u8]) -> Result<Digest, StoreError> {
    bytes.try_into().map_err(|_| StoreError::Broken("a stored digest has the wrong length".into()))
}

/// Which entries a page is made of.
#[derive(Debug, Clone)]
pub struct EntryFilter {
    /// The visible transcript.
    pub history: bool,
    /// Memory entries, if any.
    pub memory: Option<MemoryFilter>,
}

/// Which memory entries a page is made of.
#[derive(Debug, Clone)]
pub struct MemoryFilter {
    /// One client's, or (for admins) everybody's.
    pub client: Option<ClientId>,
    /// One epoch's, or all.
    pub epoch: Option<i64>,
    /// Only from this place on.
    pub from_ord: i64,
}

/// The part of the order a page is taken from, and from which end.
#[derive(Debug, Clone, Copy)]
pub struct Range {
    /// Strictly after this place.
    pub after: i64,
    /// Strictly before this place.
    pub before: i64,
    /// From the old end or the new one.
    pub end: End,
    /// At most this many.
    pub limit: usize,
}

/// A page holds at most this many bytes of content, unless its first entry alone has more.
pub(super) const PAGE_BYTES: usize = 32 * 1024 * 1024;

/// Entries in the direction of a range's end (newest first for [`End::Newest`]).
#[derive(Debug, Default)]
pub struct Part {
    pub entries: Vec<Entry>,
    /// More would follow, but the content of these is enough: the place of the first entry left out.
    pub cut: Option<i64>,
}

impl Part {
    fn bytes(&self) -> usize {
        self.entries.iter().map(|entry| entry.content.get().len()).sum()
    }
}

/// A conversation of a tree: entries lie together by both.
#[derive(Debug, Clone, Copy)]
struct Branch {
    group: GroupId,
    conversation: ConversationId,
}

/// Where a page begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// At the oldest entry of the range.
    Oldest,
    /// At the newest entry of the range.
    Newest,
}

/// A page of a view.
pub fn page(
    tx: &mut dyn Tx,
    group: GroupId,
    view: &View,
    filter: &EntryFilter,
    range: Range,
) -> Result<Part, StoreError> {
    let mut page = Part::default();
    let mut visit = |segment: &Segment| {
        let rest = Range {
            before: range.before.min(segment.max_ord.saturating_add(1)),
            limit: range.limit - page.entries.len(),
            ..range
        };
        if page.cut.is_none() && rest.limit > 0 && rest.before > rest.after + 1 {
            let mut part = segment_page(
                tx,
                Branch { group, conversation: segment.conversation },
                filter,
                rest,
                page.bytes(),
            )?;
            page.entries.append(&mut part.entries);
            page.cut = part.cut;
        }
        Ok::<(), StoreError>(())
    };
    match range.end {
        End::Oldest => view.segments().iter().rev().try_for_each(&mut visit)?,
        End::Newest => view.segments().iter().try_for_each(&mut visit)?,
    }
    Ok(page)
}

/// A page of everything in a tree, on whichever branch: the branches' pages, merged. Once there are enough entries, what
/// lies beyond the last of them need not be looked at.
pub fn group_page(
    tx: &mut dyn Tx,
    group: GroupId,
    filter: &EntryFilter,
    range: Range,
) -> Result<Part, StoreError> {
    let branches = tx.rows("SELECT id FROM conversations WHERE group_id = $1", &[group.0.into()], |row| {
        Ok(Branch { group, conversation: ConversationId(row.uuid(0)?) })
    })?;
    let (mut page, mut window) = (Part::default(), range);
    for branch in branches {
        let part = segment_page(tx, branch, filter, window, 0)?;
        page = merge(page, part, range, 0);
        let full = page.entries.last().filter(|_| page.entries.len() == range.limit).map(|last| last.ord);
        if let Some(end) = page.cut.or(full) {
            match range.end {
                End::Oldest => window.before = end,
                End::Newest => window.after = end,
            }
        }
    }
    Ok(page)
}

/// A page of one conversation's own entries: one range scan per channel, merged. `taken` bytes of the page are taken.
fn segment_page(
    tx: &mut dyn Tx,
    branch: Branch,
    filter: &EntryFilter,
    range: Range,
    taken: usize,
) -> Result<Part, StoreError> {
    let history = match filter.history {
        true => channel_page(tx, branch, Channel::History, None, range, taken)?,
        false => Part::default(),
    };
    let memory = match &filter.memory {
        None => Part::default(),
        Some(memory) => {
            let range = Range { after: range.after.max(memory.from_ord - 1), ..range };
            match &memory.client {
                Some(client) => memory_page(tx, branch, client, memory.epoch, range, taken)?,
                None => channel_page(tx, branch, Channel::Memory, memory.epoch, range, taken)?,
            }
        }
    };
    Ok(merge(history, memory, range, taken))
}

/// The statements of a page, which differ only in the direction they walk.
macro_rules! by_end {
    ($end:expr, $sql:literal) => {
        match $end {
            End::Oldest => concat!(
                "SELECT ",
                entry_columns!(),
                " FROM entries e WHERE ",
                $sql,
                " ORDER BY e.ord LIMIT $1"
            ),
            End::Newest => {
                concat!(
                    "SELECT ",
                    entry_columns!(),
                    " FROM entries e WHERE ",
                    $sql,
                    " ORDER BY e.ord DESC LIMIT $1"
                )
            }
        }
    };
}

fn channel_page(
    tx: &mut dyn Tx,
    Branch { group, conversation }: Branch,
    channel: Channel,
    epoch: Option<i64>,
    range: Range,
    taken: usize,
) -> Result<Part, StoreError> {
    let within: [Value<'_>; 6] = [
        (range.limit as i64).into(),
        group.0.into(),
        conversation.0.into(),
        channel.code().into(),
        range.after.into(),
        range.before.into(),
    ];
    match epoch {
        None => read(
            tx,
            by_end!(
                range.end,
                "e.group_id = $2 AND e.conversation_id = $3 AND e.channel = $4 AND e.ord > $5 AND e.ord < $6"
            ),
            &within,
            taken,
        ),
        Some(epoch) => {
            let [limit, group, conversation, channel, after, before] = within;
            read(
                tx,
                by_end!(
                    range.end,
                    "e.group_id = $2 AND e.conversation_id = $3 AND e.channel = $4 AND e.ord > $5 AND e.ord < $6 \
                     AND e.epoch = $7"
                ),
                &[limit, group, conversation, channel, after, before, epoch.into()],
                taken,
            )
        }
    }
}

fn memory_page(
    tx: &mut dyn Tx,
    Branch { group, conversation }: Branch,
    client: &ClientId,
    epoch: Option<i64>,
    range: Range,
    taken: usize,
) -> Result<Part, StoreError> {
    let limit: Value<'_> = (range.limit as i64).into();
    let (after, before): (Value<'_>, Value<'_>) = (range.after.into(), range.before.into());
    let (group, conversation, client) = (group.0.into(), conversation.0.into(), client.as_str().into());
    match epoch {
        None => read(
            tx,
            by_end!(
                range.end,
                "e.group_id = $2 AND e.conversation_id = $3 AND e.memory_of = $4 AND e.ord > $5 AND e.ord < $6"
            ),
            &[limit, group, conversation, client, after, before],
            taken,
        ),
        Some(epoch) => read(
            tx,
            by_end!(
                range.end,
                "e.group_id = $2 AND e.conversation_id = $3 AND e.memory_of = $4 AND e.ord > $5 AND e.ord < $6 \
                 AND e.epoch = $7"
            ),
            &[limit, group, conversation, client, after, before, epoch.into()],
            taken,
        ),
    }
}

/// Reads entries until there are enough bytes. Only an entry that begins a page may have more than a page holds.
fn read(tx: &mut dyn Tx, sql: &str, params: &[Value<'_>], taken: usize) -> Result<Part, StoreError> {
    let (mut found, mut cut, mut bytes) = (Vec::new(), None, taken);
    tx.query(sql, params, Lock::None, &mut |row| {
        let content = row.bytes(CONTENT_COLUMN)?;
        bytes += vault::plain_length(content, content.len());
        if bytes > PAGE_BYTES && (taken > 0 || !found.is_empty()) {
            cut = Some(row.int(ORD_COLUMN)?);
            return Ok(ControlFlow::Break(()));
        }
        found.push(entry(row)?);
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(Part { entries: opened(tx, found)?, cut })
}

/// Two parts of one range as one, in its direction. What lies beyond the place where one was cut does not count: something
/// may be missing in between. `taken` bytes of the page are taken.
fn merge(mut a: Part, mut b: Part, range: Range, taken: usize) -> Part {
    let sooner = |one: i64, other: i64| match range.end {
        End::Oldest => one < other,
        End::Newest => one > other,
    };
    let mut cut = match (a.cut, b.cut) {
        (Some(one), Some(other)) => Some(if sooner(one, other) { one } else { other }),
        (one, other) => one.or(other),
    };
    let mut entries = Vec::with_capacity(a.entries.len() + b.entries.len());
    entries.append(&mut a.entries);
    entries.append(&mut b.entries);
    match range.end {
        End::Oldest => entries.sort_unstable_by_key(|entry| entry.ord),
        End::Newest => entries.sort_unstable_by_key(|entry| std::cmp::Reverse(entry.ord)),
    }
    entries.retain(|entry| cut.is_none_or(|cut| sooner(entry.ord, cut)));
    entries.truncate(range.limit);
    let mut page = Part { entries, cut: None };
    let least = usize::from(taken == 0);
    while page.entries.len() > least && taken + page.bytes() > PAGE_BYTES {
        cut = page.entries.pop().map(|entry| entry.ord);
    }
    page.cut = cut;
    page
}
