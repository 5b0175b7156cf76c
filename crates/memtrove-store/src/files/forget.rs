//! Forgetting a user: first nothing of it can be reached, then everything of it goes.
//!
//! [`detach`] decides what belongs to a forget: whatever is there at that moment. It asks no clock, and it gives every forget
//! marks of its own, so that none ends another. All the rest is steps: units of work of bounded size that leave a note of
//! how far they came, and that anybody may go on with.

use super::STEP_BYTES;
use super::scopes::{self, ScopeId};
use crate::changes::{self, Change, ChangeKind};
use crate::conversations::{embeddings, search};
use crate::idempotency;
use crate::memories::purge::{self, Detached, Selector};
use crate::memories::{MemoryNo, entries as memory_entries, pointers, versions};
use crate::{Lock, Recorded, Row, StoreError, Traces, Tx, TxExt, Value, attachments, meta, stream};
use memtrove_core::conversations::Channel;
use memtrove_core::files::{FilePath, Scope};
use memtrove_core::identity::Tenant;
use memtrove_core::{EntryId, GroupId, Timestamp, UserId};
use std::ops::{AddAssign, ControlFlow};
use uuid::Uuid;

/// What was removed of a user, by kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Removed {
    /// Files.
    pub documents: u64,
    pub events: u64,
    /// Records of the audit trail.
    pub audit: u64,
    /// Entries of the event index.
    pub indexed: u64,
    /// Conversation trees it owned.
    pub conversations: u64,
    /// Entries it wrote in the trees of others, which stay without its name.
    pub anonymized: u64,
    /// Memories of its own, and those in shared layers that only it could see.
    pub memories: u64,
    /// Memories it made in shared layers, which stay without its name.
    pub memories_anonymized: u64,
}

impl AddAssign for Removed {
    fn add_assign(&mut self, more: Self) {
        self.documents += more.documents;
        self.events += more.events;
        self.audit += more.audit;
        self.indexed += more.indexed;
        self.conversations += more.conversations;
        self.anonymized += more.anonymized;
        self.memories += more.memories;
        self.memories_anonymized += more.memories_anonymized;
    }
}

/// A forget that has not come to its end.
#[derive(Debug, Clone)]
pub struct Forget {
    id: i64,
    /// Who is forgotten.
    pub who: Scope,
    scope: Option<ScopeId>,
    last_change: i64,
    /// The newest memory at that moment. Those that came later are not this forget's.
    pub last_memory: MemoryNo,
}

/// The columns that [`forget`] reads.
macro_rules! forget_columns {
    () => {
        "id, tenant, user_id, scope_id, last_change, last_memory"
    };
}

/// A forget that has begun.
#[derive(Debug, Clone)]
pub struct Begun {
    /// The forgets of this user that are to be carried out: this one, and those that did not come to their end.
    pub forgets: Vec<Forget>,
    /// Its memories, which are out of reach.
    pub memories: Vec<Detached>,
}

impl Forget {
    /// What tells it from others, for those who agree on who carries it out.
    pub fn number(&self) -> i64 {
        self.id
    }

    /// Whether it is known which changes it blanks.
    pub fn is_settled(&self) -> bool {
        self.last_change != UNSETTLED
    }
}

/// The last change of a forget whose changes wait for their numbers.
const UNSETTLED: i64 = -1;

const BEGUN: &str = "forgets_begun";

/// How many forgets have begun. A caller that decides by it whether one of a user has takes the [turn](scopes::take_turn) of that
/// user first.
pub fn begun(tx: &mut dyn Tx) -> Result<i64, StoreError> {
    let stored = meta::get(tx, BEGUN)?;
    Ok(stored.and_then(|bytes| bytes.try_into().ok()).map_or(0, i64::from_be_bytes))
}

/// Takes a user's files and memories out of everybody's reach, closes its trees and ends its memberships.
pub fn detach(tx: &mut dyn Tx, who: &Scope, now: Timestamp) -> Result<Begun, StoreError> {
    scopes::take_turn(tx, who)?;
    let count = begun(tx)? + 1;
    meta::set(tx, BEGUN, Some(&count.to_be_bytes()))?;
    stream::blank_author(tx, who.tenant(), who.user().as_str())?;
    let key: [Value<'_>; 2] = [who.tenant().as_str().into(), who.user().as_str().into()];
    let scope =
        tx.first("DELETE FROM scopes WHERE tenant = $1 AND user_id = $2 RETURNING id", &key, |row| {
            row.int(0).map(ScopeId)
        })?;
    let memories = purge::detach(tx, who.tenant(), &Selector::User(who.user().as_str()))?;
    let last_memory = memory_entries::last_no(tx)?;
    let id = tx.first(
        "INSERT INTO forgotten_users (tenant, user_id, scope_id, next_change, last_change, texts, last_memory) \
         VALUES ($1, $2, $3, 1, 0, 0, $4) RETURNING id",
        &[key[0], key[1], scope.map(|scope| scope.0).into(), last_memory.0.into()],
        |row| row.int(0),
    )?;
    let id = id.ok_or_else(|| StoreError::Broken("an insert returned nothing".into()))?;
    let marked = [key[0], key[1], id.into()];
    // Deleted trees are in another index than live ones; both are the user's.
    let trees = tx.execute(
        "INSERT INTO forgotten_groups (group_id, forget_id, reachable) \
         SELECT id, $3, 1 FROM groups WHERE tenant = $1 AND owner_user_id = $2 AND deleted_at IS NULL UNION ALL \
         SELECT id, $3, 1 FROM groups WHERE tenant = $1 AND owner_user_id = $2 AND deleted_at IS NOT NULL \
         ON CONFLICT (group_id) DO NOTHING",
        &marked,
    )?;
    // An append by the member it still is must not come after the place that is noted.
    tx.post(
        "UPDATE groups SET changes = changes + 1 WHERE id IN \
         (SELECT group_id FROM memberships WHERE tenant = $1 AND user_id = $2 AND access_level > 1 UNION \
          SELECT group_id FROM past_members WHERE tenant = $1 AND user_id = $2)",
        &key,
    )?;
    let shared = tx.execute(
        "INSERT INTO forgotten_members (forget_id, group_id, until_ord) SELECT $3, g.id, g.next_ord FROM \
         (SELECT group_id FROM memberships WHERE tenant = $1 AND user_id = $2 AND access_level > 1 UNION \
          SELECT group_id FROM past_members WHERE tenant = $1 AND user_id = $2) m \
         JOIN groups g ON g.id = m.group_id WHERE g.owner_user_id <> $2",
        &marked,
    )?;
    for sql in [
        "DELETE FROM memberships WHERE tenant = $1 AND user_id = $2 AND access_level > 1",
        "DELETE FROM past_members WHERE tenant = $1 AND user_id = $2",
        "DELETE FROM transfers WHERE tenant = $1 AND from_user_id = $2",
        "DELETE FROM transfers WHERE tenant = $1 AND to_user_id = $2",
    ] {
        tx.post(sql, &key)?;
    }
    attachments::forget_user(tx, who, now)?;
    forget_jobs(tx, who)?;
    // Caches have to know. A user without a scope has none.
    let mut last_change = UNSETTLED;
    if scope.is_some() || trees + shared > 0 || !memories.is_empty() {
        let resource = who.user().as_str();
        let change = Change { kind: ChangeKind::UserForgotten, user: None, resource, version: None };
        if let Recorded::Numbered(number) = changes::record(tx, who.tenant(), now, &change)? {
            last_change = number;
        }
    }
    tx.post(
        "UPDATE forgotten_users SET last_change = $2, texts = $3 WHERE id = $1",
        &[id.into(), last_change.into(), i64::from(trees > 0).into()],
    )?;
    let forgets = tx.rows(
        concat!("SELECT ", forget_columns!(), " FROM forgotten_users WHERE tenant = $1 AND user_id = $2"),
        &key,
        forget,
    )?;
    Ok(Begun { forgets, memories })
}

/// Notes that it blanks every change that has a number by now. To be called once everything that was committed before has one.
pub fn settle(tx: &mut dyn Tx, forget: &Forget) -> Result<Forget, StoreError> {
    let last_change = changes::bounds(tx, forget.who.tenant())?.newest;
    tx.execute(
        "UPDATE forgotten_users SET last_change = $2 WHERE id = $1",
        &[forget.id.into(), last_change.into()],
    )?;
    Ok(Forget { last_change, ..forget.clone() })
}

/// Ends the jobs on what is the user's, since nothing of it is left to work on, and takes its name off those it asked for.
fn forget_jobs(tx: &mut dyn Tx, who: &Scope) -> Result<(), StoreError> {
    let (tenant, name) = (who.tenant().as_str(), format!("user:{}", who.user()));
    tx.post(
        "UPDATE jobs SET status = 'succeeded', user_id = NULL, claimed_at = NULL WHERE tenant = $1 AND user_id = $2",
        &[tenant.into(), who.user().as_str().into()],
    )?;
    // Alone, or behind the client that it spoke through.
    let is_its =
        |starter: &str| starter.strip_suffix(&name).is_some_and(|r| r.is_empty() || r.ends_with(' '));
    let jobs = tx.rows("SELECT id, started_by FROM jobs WHERE tenant = $1", &[tenant.into()], |row| {
        Ok((row.uuid(0)?, is_its(row.text(1)?)))
    })?;
    for (id, _) in jobs.into_iter().filter(|(_, is_its)| *is_its) {
        tx.post("UPDATE jobs SET started_by = '' WHERE id = $1", &[id.into()])?;
    }
    Ok(())
}

/// Forgets that did not come to their end, oldest first.
pub fn unfinished(tx: &mut dyn Tx) -> Result<Vec<Forget>, StoreError> {
    tx.rows(
        concat!(
            "SELECT ",
            forget_columns!(),
            " FROM forgotten_users WHERE user_id IS NOT NULL ORDER BY id LIMIT 1000"
        ),
        &[],
        forget,
    )
}

fn forget(row: &dyn Row) -> Result<Forget, StoreError> {
    Ok(Forget {
        id: row.int(0)?,
        who: Scope::listed(Tenant::listed(row.text(1)?.to_owned()), UserId(row.text(2)?.to_owned())),
        scope: row.opt_int(3)?.map(ScopeId),
        last_change: row.int(4)?,
        last_memory: MemoryNo(row.int(5)?),
    })
}

/// Up to `limit` of its trees that lists and searches may still name.
pub fn reachable_trees(tx: &mut dyn Tx, forget: &Forget, limit: i64) -> Result<Vec<GroupId>, StoreError> {
    tx.rows(
        "SELECT group_id FROM forgotten_groups WHERE forget_id = $1 AND reachable = 1 LIMIT $2",
        &[forget.id.into(), limit.into()],
        |row| row.uuid(0).map(GroupId),
    )
}

/// Notes that only the entries of one of its trees are left.
pub fn set_unreachable(tx: &mut dyn Tx, group: GroupId) -> Result<(), StoreError> {
    tx.post("UPDATE forgotten_groups SET reachable = 0 WHERE group_id = $1", &[group.0.into()])?;
    Ok(())
}

/// A step: how much it removed, at most the given number of rows; `None` when there was nothing left to do.
pub type ForgetStep = fn(&mut dyn Tx, &Forget, i64) -> Result<Option<Removed>, StoreError>;

/// Takes the user's name off what it wrote in the trees of others.
pub fn anonymize(tx: &mut dyn Tx, forget: &Forget, limit: i64) -> Result<Option<Removed>, StoreError> {
    let (mut portion, mut anonymized) = (Portion::new(limit), 0);
    while !portion.is_used_up() {
        let Some(shared) = next_shared(tx, forget)? else { break };
        anonymized += shared.anonymize(tx, forget, &mut portion)?;
    }
    Ok(portion.is_begun().then_some(Removed { anonymized, ..Removed::default() }))
}

/// A tree of somebody else, and how far it was looked through.
struct Shared {
    group: GroupId,
    until: i64,
    seen: (Uuid, i64, i64),
}

fn next_shared(tx: &mut dyn Tx, forget: &Forget) -> Result<Option<Shared>, StoreError> {
    tx.first(
        "SELECT group_id, until_ord, conversation_id, channel, ord FROM forgotten_members WHERE forget_id = $1 LIMIT 1",
        &[forget.id.into()],
        |row| {
            let seen = (row.opt_uuid(2)?, row.opt_int(3)?, row.opt_int(4)?);
            Ok(Shared {
                group: GroupId(row.uuid(0)?),
                until: row.int(1)?,
                seen: (seen.0.unwrap_or_default(), seen.1.unwrap_or_default(), seen.2.unwrap_or_default()),
            })
        },
    )
}

impl Shared {
    /// Takes the user's name off a portion of this tree; says how many entries lost it.
    fn anonymize(
        mut self,
        tx: &mut dyn Tx,
        forget: &Forget,
        portion: &mut Portion,
    ) -> Result<u64, StoreError> {
        let user = forget.who.user().as_str();
        let mut written = Vec::new();
        // There is no index to find them by: it would cost every append a page.
        let (conversation, channel, ord) = self.seen;
        tx.query(
            "SELECT conversation_id, channel, ord, id, user_id, LENGTH(content) FROM entries \
             WHERE group_id = $1 AND (conversation_id, channel, ord) > ($2, $3, $4) \
             ORDER BY conversation_id, channel, ord LIMIT $5",
            &[self.group.0.into(), conversation.into(), channel.into(), ord.into(), portion.rows.into()],
            Lock::None,
            &mut |row| {
                self.seen = (row.uuid(0)?, row.int(1)?, row.int(2)?);
                let its_own = row.opt_text(4)? == Some(user) && row.int(2)? < self.until;
                if its_own {
                    written.push(row.uuid(3)?);
                }
                Ok(portion.take(if its_own { row.int(5)? } else { 0 }))
            },
        )?;
        let anonymized =
            tx.execute("UPDATE entries SET user_id = NULL WHERE id = ANY($1)", &[Value::Uuids(&written)])?;
        if !written.is_empty() {
            // A unit of work that just now notes who said what must look again.
            embeddings::touch(tx, self.group)?;
        }
        embeddings::forget_speaker(tx, self.group, &written, forget.who.user())?;
        let place = [forget.id.into(), self.group.0.into()];
        if portion.is_used_up() {
            let (conversation, channel, ord) = self.seen;
            tx.post(
                "UPDATE forgotten_members SET conversation_id = $3, channel = $4, ord = $5 \
                 WHERE forget_id = $1 AND group_id = $2",
                &[place[0], place[1], conversation.into(), channel.into(), ord.into()],
            )?;
            return Ok(anonymized);
        }
        let keys = tx.execute(
            "DELETE FROM idempotency_keys WHERE (tenant, conversation_id, user_id, client_id, key) IN \
             (SELECT k.tenant, k.conversation_id, k.user_id, k.client_id, k.key FROM conversations c \
              JOIN idempotency_keys k ON k.tenant = c.tenant AND k.conversation_id = c.id AND k.user_id = $2 \
              JOIN entries e ON e.id = k.entry_id WHERE c.group_id = $1 AND e.ord < $3 LIMIT $4)",
            &[self.group.0.into(), user.into(), self.until.into(), portion.rows.into()],
        )?;
        portion.take_rows(keys);
        if !portion.is_used_up() {
            tx.post("DELETE FROM forgotten_members WHERE forget_id = $1 AND group_id = $2", &place)?;
            portion.take_rows(1);
        }
        Ok(anonymized)
    }
}

/// Blanks what the change feed says about the user.
pub fn blank_changes(tx: &mut dyn Tx, forget: &Forget, limit: i64) -> Result<Option<Removed>, StoreError> {
    let next =
        tx.first("SELECT next_change FROM forgotten_users WHERE id = $1", &[forget.id.into()], |row| {
            row.int(0)
        })?;
    let Some(from) = next.filter(|next| *next <= forget.last_change) else { return Ok(None) };
    let next =
        changes::forget_user(tx, forget.who.tenant(), forget.who.user(), from, limit, forget.last_change)?;
    tx.post(
        "UPDATE forgotten_users SET next_change = $2 WHERE id = $1",
        &[forget.id.into(), next.unwrap_or(forget.last_change + 1).into()],
    )?;
    Ok(Some(Removed::default()))
}

/// Deletes rows of a scope, in the order of their key, until as many rows or bytes are gone as the portion allows.
macro_rules! delete_some {
    ($table:literal, $key:literal, $bytes:literal) => {
        concat!(
            "DELETE FROM ",
            $table,
            " WHERE scope_id = $1 AND (",
            $key,
            ") IN (SELECT ",
            $key,
            " FROM (SELECT ",
            $key,
            ", bytes, SUM(bytes) OVER (ORDER BY ",
            $key,
            ") AS so_far FROM (SELECT ",
            $key,
            ", ",
            $bytes,
            " AS bytes FROM ",
            $table,
            " WHERE scope_id = $1 ORDER BY ",
            $key,
            " LIMIT $2) a) b WHERE so_far - bytes < $3)"
        )
    };
}

/// Removes what the user's files and events were.
pub fn clear_scope(tx: &mut dyn Tx, forget: &Forget, limit: i64) -> Result<Option<Removed>, StoreError> {
    let Some(scope) = forget.scope else { return Ok(None) };
    orphan_pointers(tx, forget, scope, limit)?;
    let params = [scope.0.into(), limit.into(), (STEP_BYTES as i64).into()];
    let mut delete = |sql: &str| tx.execute(sql, &params);
    let documents = delete(delete_some!("files", "path", "LENGTH(document)"))?;
    let events = delete(delete_some!("events", "block, event_id", "LENGTH(event)"))?;
    let audit = delete(delete_some!("audit", "sequence", "LENGTH(record) + COALESCE(LENGTH(image), 0)"))?;
    let blocks = delete(delete_some!("event_blocks", "block", "LENGTH(body)"))?;
    let unreadable = delete(delete_some!("unreadable_blocks", "block", "0"))?;
    let keys = delete(delete_some!("file_idempotency", "principal, key", "LENGTH(answer)"))?;
    // Every event has its entry in the index.
    let removed = Removed { documents, events, audit, indexed: events, ..Removed::default() };
    Ok((documents + events + audit + blocks + unreadable + keys > 0).then_some(removed))
}

/// Tells the memories that point at the next files to go.
fn orphan_pointers(tx: &mut dyn Tx, forget: &Forget, scope: ScopeId, limit: i64) -> Result<(), StoreError> {
    let paths = tx.rows(
        "SELECT path FROM files WHERE scope_id = $1 ORDER BY path LIMIT $2",
        &[scope.0.into(), limit.into()],
        |row| Ok(row.text(0)?.to_owned()),
    )?;
    for path in paths.iter().filter_map(|path| FilePath::parse(path).ok()) {
        pointers::note_change(tx, &forget.who, scope, &path)?;
    }
    Ok(())
}

/// Takes the user's name off versions that it made of memories in shared layers, and forgets what it was answered.
pub fn clear_memory_names(
    tx: &mut dyn Tx,
    forget: &Forget,
    limit: i64,
) -> Result<Option<Removed>, StoreError> {
    let (tenant, user) = (forget.who.tenant(), forget.who.user().as_str());
    let versions = versions::anonymize(tx, tenant, user, limit)?;
    let keys = idempotency::forget_user(tx, tenant, user, limit)?;
    Ok((versions + keys > 0).then(Removed::default))
}

/// Takes out of the user's private memories in shared layers what they say, before anything is taken away near them.
pub fn blank_memories(tx: &mut dyn Tx, forget: &Forget, _: i64) -> Result<Option<Removed>, StoreError> {
    let (tenant, user) = (forget.who.tenant(), forget.who.user().as_str());
    memory_entries::blank_private(tx, tenant, user, forget.last_memory)?;
    Ok(None)
}

/// Removes memories that are out of reach.
pub fn clear_memories(tx: &mut dyn Tx, _: &Forget, limit: i64) -> Result<Option<Removed>, StoreError> {
    Ok(purge::step(tx, limit)?.map(|_| Removed::default()))
}

/// Removes the entries of its trees, once nothing leads to them any more.
pub fn clear_trees(tx: &mut dyn Tx, forget: &Forget, limit: i64) -> Result<Option<Removed>, StoreError> {
    let mut portion = Portion::new(limit);
    while !portion.is_used_up() {
        let next = tx.first(
            "SELECT group_id FROM forgotten_groups WHERE forget_id = $1 AND reachable = 0 LIMIT 1",
            &[forget.id.into()],
            |row| row.uuid(0).map(GroupId),
        )?;
        let Some(group) = next else { break };
        clear_tree(tx, forget.who.tenant(), group, &mut portion)?;
        if !portion.is_used_up() {
            tx.post("DELETE FROM forgotten_groups WHERE group_id = $1", &[group.0.into()])?;
            portion.take_rows(1);
        }
    }
    Ok(portion.is_begun().then(Removed::default))
}

fn clear_tree(
    tx: &mut dyn Tx,
    tenant: &Tenant,
    group: GroupId,
    portion: &mut Portion,
) -> Result<(), StoreError> {
    let (mut ids, mut findable) = (Vec::new(), Vec::new());
    tx.query(
        "SELECT id, channel, created_at, LENGTH(content) FROM entries WHERE group_id = $1 LIMIT $2",
        &[group.0.into(), portion.rows.into()],
        Lock::None,
        &mut |row| {
            ids.push(row.uuid(0)?);
            if row.int(1)? == Channel::History.code() {
                findable.push((row.uuid(0)?, Timestamp::from_micros(row.int(2)?)));
            }
            Ok(portion.take(row.int(3)?))
        },
    )?;
    for (id, created_at) in findable {
        tx.unindex_text(id)?;
        search::remove_unindexed(tx, tenant, EntryId(id), created_at)?;
    }
    tx.post("DELETE FROM entries WHERE id = ANY($1)", &[Value::Uuids(&ids)])?;
    let ancestry = tx.execute(
        "DELETE FROM ancestry WHERE (group_id, descendant, depth) IN \
         (SELECT group_id, descendant, depth FROM ancestry WHERE group_id = $1 LIMIT $2)",
        &[group.0.into(), portion.rows.into()],
    )?;
    portion.take_rows(ancestry);
    Ok(())
}

/// Notes that a forget has come to its end but for the disk, and with that takes the name off the forget itself.
pub fn set_cleared(tx: &mut dyn Tx, forget: &Forget) -> Result<(), StoreError> {
    tx.post("UPDATE forgotten_users SET user_id = NULL WHERE id = $1", &[forget.id.into()])?;
    Ok(())
}

/// Forgets whose rows are gone, and may have left something on the disk.
#[derive(Debug, Clone)]
pub struct Unscrubbed {
    ids: Vec<i64>,
    /// Where.
    pub traces: Traces,
}

impl Unscrubbed {
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.ids.is_empty()
    }
}

/// What `texts` says of a forget whose texts and pages are done.
const ONLY_LOG: i64 = 2;

/// What is to be scrubbed from the disk.
pub fn unscrubbed(tx: &mut dyn Tx) -> Result<Unscrubbed, StoreError> {
    let mut found = Unscrubbed { ids: Vec::new(), traces: Traces::Log };
    tx.query(
        "SELECT id, texts FROM forgotten_users WHERE user_id IS NULL LIMIT 1000",
        &[],
        Lock::None,
        &mut |row| {
            found.ids.push(row.int(0)?);
            found.traces = found.traces.max(match row.int(1)? {
                ONLY_LOG => Traces::Log,
                0 => Traces::Pages,
                _ => Traces::Texts,
            });
            Ok(ControlFlow::Continue(()))
        },
    )?;
    Ok(found)
}

/// Notes that only the log may still have these.
pub fn set_rewritten(tx: &mut dyn Tx, rewritten: &Unscrubbed) -> Result<(), StoreError> {
    for id in &rewritten.ids {
        tx.post("UPDATE forgotten_users SET texts = $2 WHERE id = $1", &[(*id).into(), ONLY_LOG.into()])?;
    }
    Ok(())
}

/// Notes that these are not on the disk any more.
pub fn set_scrubbed(tx: &mut dyn Tx, scrubbed: &Unscrubbed) -> Result<(), StoreError> {
    for id in &scrubbed.ids {
        tx.post("DELETE FROM forgotten_users WHERE id = $1", &[(*id).into()])?;
    }
    Ok(())
}

/// What one unit of work may still do: others want to write too.
struct Portion {
    whole: i64,
    rows: i64,
    bytes: i64,
}

impl Portion {
    fn new(rows: i64) -> Self {
        Self { whole: rows, rows, bytes: STEP_BYTES as i64 }
    }

    /// Takes a row with this much content out of it; breaks off when nothing is left.
    fn take(&mut self, bytes: i64) -> ControlFlow<()> {
        self.rows -= 1;
        self.bytes -= bytes;
        if self.is_used_up() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    fn take_rows(&mut self, rows: u64) {
        self.rows -= rows as i64;
    }

    fn is_used_up(&self) -> bool {
        self.rows <= 0 || self.bytes <= 0
    }

    fn is_begun(&self) -> bool {
        self.rows < self.whole
    }
}
