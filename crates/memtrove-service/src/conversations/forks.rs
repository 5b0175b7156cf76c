//! Forking conversations and listing the branches of a tree.

use super::access::{Access, AsReader, AsWriter, Reads, open};
use super::lifecycle::{empty_object, visible};
use super::{Conversations, not_found, publish, title};
use crate::page::{self, Page, PageRequest};
use memtrove_core::conversations::Conversation;
use memtrove_core::identity::Caller;
use memtrove_core::{ConversationId, EntryId, Error, Resource, Result, Timestamp};
use memtrove_store::Tx;
use memtrove_store::changes::ChangeKind;
use memtrove_store::conversations::rows::{self, NewConversation};
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
        request: PageRequest<ConversationId>,
    ) -> Result<Page<Conversation>> {
        let limit = page::limit(request.limit, 50, 200)?;
        let caller = caller.clone();
        self.cx
            .store
            .read(caller.tenant().clone(), "list_forks", move |tx| {
                let access = open::<AsReader>(tx, &caller, id)?;
                list(tx, &access, request.after, limit, false)
            })
            .await
    }
}

/// A page of a tree's conversations.
pub(super) fn list<L: Reads>(
    tx: &mut dyn Tx,
    access: &Access<L>,
    after: Option<ConversationId>,
    limit: usize,
    with_deleted: bool,
) -> Result<Page<Conversation>> {
    let (tenant, group) = (access.tenant(), access.group());
    if let Some(after) = after
        && !rows::is_in(tx, tenant, after, group)?
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
) -> Result<Access<AsWriter>> {
    let parent: Access<AsWriter> = open(tx, caller, point.conversation)?;
    let group = parent.group();
    let owner = groups::lock(tx, group)?.ok_or_else(|| not_found(point.conversation))?.owner;
    let view = parent.view(tx)?;
    let excluded = match point.at {
        None => None,
        Some(at) => {
            let position = entries::position(tx, at)?
                .filter(|p| p.is_in(group) && view.contains(p.conversation, p.ord))
                .filter(|p| p.memory_of.as_ref().is_none_or(|of| Some(of) == caller.client.as_ref()))
                .ok_or_else(|| Error::not_found(Resource::Entry, at))?;
            Some(position.ord)
        }
    };
    let included = match excluded {
        Some(ord) => entries::last_before(tx, group, &view, ord)?,
        None => None,
    };
    let title = match title {
        Some(title) => Some(title.to_owned()),
        None => rows::title(tx, caller.tenant(), point.conversation)?,
    };
    let now = rows::touch_group(tx, group, id, now)?;
    let new = NewConversation {
        id,
        group,
        owner: &owner,
        title: title.as_deref(),
        metadata: &empty_object()?,
        lineage: Some((point.conversation, included)),
        now,
    };
    if !rows::insert_if_absent(tx, caller.tenant(), &new)? {
        return Err(Error::conflict("a conversation with this id was made at the same time; try again"));
    }
    ancestry::insert(tx, group, id, &view.fork_at(excluded))?;
    publish(tx, caller.tenant(), ChangeKind::ConversationCreated, Some(&caller.user), id, now)?;
    Ok(parent.to(id, false))
}
