//! Forking conversations and listing the branches of a tree.

use super::lifecycle::{empty_object, visible};
use super::{Conversations, not_found, open, publish, title};
use crate::page::{self, Page};
use memtrove_core::conversations::{AccessLevel, Conversation};
use memtrove_core::identity::{Caller, Tenant};
use memtrove_core::{ConversationId, EntryId, Error, GroupId, Resource, Result, Timestamp};
use memtrove_store::Tx;
use memtrove_store::changes::ChangeKind;
use memtrove_store::conversations::rows::{self, ConversationHead, NewConversation};
use memtrove_store::conversations::{ancestry, entries, groups};

/// Where a fork leaves its parent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ForkPoint {
    /// The parent.
    pub conversation: ConversationId,
    /// The first entry the fork does not see; without one the fork starts blank.
    pub at: Option<EntryId>,
}

impl Conversations {
    /// Forks a conversation at an entry: the fork sees everything before it.
    pub async fn fork(
        &self,
        caller: &Caller,
        parent: ConversationId,
        at: EntryId,
        given_title: Option<String>,
    ) -> Result<Conversation> {
        let title = title(given_title)?;
        let id = ConversationId(self.cx.clock.new_id());
        let (now, caller) = (self.cx.clock.now(), caller.clone());
        self.cx
            .store
            .write(caller.tenant().clone(), "fork_conversation", move |tx| {
                tx.lock(parent.0.as_bytes())?;
                let point = ForkPoint { conversation: parent, at: Some(at) };
                fork_tree(tx, &caller, id, &point, title.as_deref(), now)?;
                visible(tx, &caller, id)
            })
            .await
    }

    /// Every branch of a conversation's tree, itself and the root included.
    pub async fn list_forks(
        &self,
        caller: &Caller,
        id: ConversationId,
        after: Option<ConversationId>,
        limit: Option<i64>,
    ) -> Result<Page<Conversation>> {
        let limit = page::limit(limit, 50, 200)?;
        let caller = caller.clone();
        self.cx
            .store
            .read(caller.tenant().clone(), "list_forks", move |tx| {
                let head = open(tx, &caller, id, AccessLevel::Reader)?;
                list(tx, caller.tenant(), head.group, after, limit, false)
            })
            .await
    }
}

/// A page of a tree's conversations.
pub(super) fn list(
    tx: &mut dyn Tx,
    tenant: &Tenant,
    group: GroupId,
    after: Option<ConversationId>,
    limit: usize,
    with_deleted: bool,
) -> Result<Page<Conversation>> {
    if let Some(after) = after
        && rows::group(tx, tenant, after)? != Some(group)
    {
        return Err(page::unknown_cursor("after"));
    }
    let list = rows::forks(tx, tenant, group, after, limit as i64 + 1, with_deleted)?;
    Ok(Page::cut(list, limit, |conversation| conversation.id.to_string()))
}

/// Makes `id` a fork. No entry is copied: the fork gets one row, and one per ancestor.
pub(super) fn fork_tree(
    tx: &mut dyn Tx,
    caller: &Caller,
    id: ConversationId,
    point: &ForkPoint,
    title: Option<&str>,
    now: Timestamp,
) -> Result<ConversationHead> {
    let parent = open(tx, caller, point.conversation, AccessLevel::Writer)?;
    let group = groups::lock(tx, parent.group)?.ok_or_else(|| not_found(point.conversation))?;
    let view = ancestry::view(tx, parent.group, point.conversation, parent.is_fork)?;
    let excluded = match point.at {
        None => None,
        Some(at) => {
            let position = entries::position(tx, at)?
                .filter(|p| p.group == parent.group && view.contains(p.conversation, p.ord))
                .filter(|p| p.memory_of.as_ref().is_none_or(|of| Some(of) == caller.client.as_ref()))
                .ok_or_else(|| Error::not_found(Resource::Entry, at))?;
            Some(position.ord)
        }
    };
    let included = match excluded {
        Some(ord) => entries::last_before(tx, parent.group, &view, ord)?,
        None => None,
    };
    let title = match title {
        Some(title) => Some(title.to_owned()),
        None => rows::title(tx, caller.tenant(), point.conversation)?,
    };
    let now = rows::touch_group(tx, parent.group, id, now)?;
    let new = NewConversation {
        id,
        group: parent.group,
        owner: &group.owner,
        title: title.as_deref(),
        metadata: &empty_object()?,
        lineage: Some((point.conversation, included)),
        now,
    };
    if !rows::insert_if_absent(tx, caller.tenant(), &new)? {
        return Err(Error::conflict("a conversation with this id was made at the same time; try again"));
    }
    ancestry::insert(tx, parent.group, id, &view.fork_at(excluded))?;
    publish(tx, caller.tenant(), ChangeKind::ConversationCreated, Some(&caller.user), id, None, now)?;
    Ok(ConversationHead {
        group: parent.group,
        is_fork: true,
        has_history: false,
        deleted: false,
        access: parent.access,
    })
}
