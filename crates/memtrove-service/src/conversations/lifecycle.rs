//! Making, reading, listing, renaming and deleting conversations.

use super::access::{Access, AsManager, AsOwner, AsReader, AsWriter, Deletes, Member, open};
use super::{Conversations, not_found, publish, text, title};
use crate::audit::{self, Change, MembershipActor};
use crate::page::{self, Page};
use memtrove_core::conversations::{AccessLevel, Conversation, ListMode};
use memtrove_core::identity::{Caller, Tenant};
use memtrove_core::{ConversationId, Error, GroupId, Json, Result, Timestamp, UserId};
use memtrove_store::Tx;
use memtrove_store::changes::ChangeKind;
use memtrove_store::conversations::listing::{self, ListPosition};
use memtrove_store::conversations::rows::{self, NewConversation};
use memtrove_store::conversations::{groups, memberships, transfers};
use serde_json::Value;
use std::sync::Arc;

const MAX_METADATA_KEYS: usize = 50;
const MAX_METADATA_KEY_CHARS: usize = 100;
const MAX_METADATA_BYTES: usize = 16 * 1024;
const MAX_QUERY_CHARS: usize = 1000;
/// A filtered list reads this many rows at a time.
const FILTER_STRIDE: usize = 500;

/// A conversation to be made.
#[derive(Debug, Clone, Default)]
pub struct CreateConversation {
    /// Its title; without one it gets one from its first message.
    pub title: Option<String>,
    /// What else is known of it: a JSON object.
    pub metadata: Option<Json>,
}

/// A request for a list of conversations.
#[derive(Debug, Clone, Default)]
pub struct ListConversations {
    /// Which conversations of each tree.
    pub mode: ListMode,
    /// Go on after this conversation.
    pub after: Option<ConversationId>,
    /// The size of the page.
    pub limit: Option<i64>,
    /// Only those with this text in their title or metadata.
    pub query: Option<String>,
}

impl Conversations {
    /// Makes a conversation that the caller owns.
    pub async fn create(&self, caller: &Caller, request: CreateConversation) -> Result<Conversation> {
        let title = title(request.title)?;
        let metadata = match request.metadata {
            Some(metadata) => check_metadata(metadata)?,
            None => empty_object()?,
        };
        let (id, group) = (ConversationId(self.cx.clock.new_id()), GroupId(self.cx.clock.new_id()));
        let (now, caller) = (self.cx.clock.now(), caller.clone());
        self.cx
            .store
            .write(caller.tenant().clone(), "create_conversation", move |tx| {
                tx.lock(id.0.as_bytes())?;
                let (owner, title, metadata) = (&caller.user, title.as_deref(), &metadata);
                let new = NewConversation { id, group, owner, title, metadata, lineage: None, now };
                create_root(tx, caller.tenant(), &new, now)?;
                visible(tx, &caller, id)
            })
            .await
    }

    /// A conversation, as the caller sees it.
    pub async fn get(&self, caller: &Caller, id: ConversationId) -> Result<Conversation> {
        let caller = caller.clone();
        self.cx
            .store
            .read(caller.tenant().clone(), "get_conversation", move |tx| {
                open::<AsReader>(tx, &caller, id)?;
                visible(tx, &caller, id)
            })
            .await
    }

    /// Changes the title: `Some(None)` clears it, `None` leaves everything as it is.
    pub async fn rename(
        &self,
        caller: &Caller,
        id: ConversationId,
        new: Option<Option<String>>,
    ) -> Result<Conversation> {
        let new = new.map(title).transpose()?;
        let (now, caller) = (self.cx.clock.now(), caller.clone());
        self.cx
            .store
            .write(caller.tenant().clone(), "update_conversation", move |tx| {
                tx.lock(id.0.as_bytes())?;
                let access = open::<AsWriter>(tx, &caller, id)?;
                if let Some(title) = &new
                    && *title != rows::title(tx, caller.tenant(), id)?
                {
                    let at = rows::touch_group(tx, access.group(), id, now)?;
                    rows::set_title(tx, caller.tenant(), id, title.as_deref(), at)?;
                    let user = Some(&caller.user);
                    publish(tx, caller.tenant(), ChangeKind::ConversationUpdated, user, id, now)?;
                }
                visible(tx, &caller, id)
            })
            .await
    }

    /// Deletes the whole tree of a conversation. It can be restored until it is evicted.
    pub async fn delete(&self, caller: &Caller, id: ConversationId) -> Result<()> {
        let managers_may = self.cx.settings.managers_may_delete;
        let (now, actor) = (self.cx.clock.now(), MembershipActor::from(caller));
        let caller = caller.clone();
        let (group, members) = self
            .cx
            .store
            .write(caller.tenant().clone(), "delete_conversation", move |tx| {
                tx.lock(id.0.as_bytes())?;
                match managers_may {
                    true => delete_as::<AsManager>(tx, &caller, id, now),
                    false => delete_as::<AsOwner>(tx, &caller, id, now),
                }
            })
            .await?;
        self.cx.recorder.end_tree(group);
        members.iter().for_each(|member| audit::membership(&actor, id, member, &Change::Remove));
        Ok(())
    }

    /// The conversations a caller can see, most recently updated first.
    pub async fn list(&self, caller: &Caller, request: ListConversations) -> Result<Page<Conversation>> {
        let ListConversations { mode, after, limit, query } = request;
        let limit = page::limit(limit, 20, 200)?;
        let query = query.filter(|query| !query.trim().is_empty());
        if let Some(query) = &query {
            text("query", query, MAX_QUERY_CHARS)?;
        }
        let filter = query.map(|query| Arc::new(Filter::new(&query)));
        let caller = caller.clone();
        self.cx
            .store
            .read(caller.tenant().clone(), "list_conversations", move |tx| {
                let mut place = match after {
                    None => ListPosition::TOP,
                    Some(id) => rows::get(tx, caller.tenant(), &caller.user, id)?
                        .filter(|conversation| mode != ListMode::Roots || conversation.is_root())
                        .map(|conversation| ListPosition::after(&conversation))
                        .ok_or_else(|| page::unknown_cursor("after"))?,
                };
                let cursor = |conversation: &Conversation| conversation.id.to_string();
                let Some(filter) = &filter else {
                    let list = listing::visible(tx, caller.tenant(), &caller.user, mode, place, limit + 1)?;
                    return Ok(Page::cut(list, limit, cursor));
                };
                let mut found = Vec::new();
                loop {
                    let part =
                        listing::visible(tx, caller.tenant(), &caller.user, mode, place, FILTER_STRIDE)?;
                    let Some(last) = part.last() else { break };
                    place = ListPosition::after(last);
                    let exhausted = part.len() < FILTER_STRIDE;
                    found.extend(part.into_iter().filter(|conversation| filter.matches(conversation)));
                    if exhausted || found.len() > limit {
                        break;
                    }
                }
                Ok(Page::cut(found, limit, cursor))
            })
            .await
    }
}

/// Stores a root conversation with its tree and its owner, unless its id is taken; says whether it did. It may have been made
/// long ago elsewhere: what is told of it is told `now`.
pub(super) fn create_root(
    tx: &mut dyn Tx,
    tenant: &Tenant,
    new: &NewConversation<'_>,
    now: Timestamp,
) -> Result<bool> {
    if !rows::insert_if_absent(tx, tenant, new)? {
        return Ok(false);
    }
    groups::insert(tx, tenant, new.group, new.id, new.owner, new.now)?;
    memberships::upsert(tx, tenant, new.group, new.owner, AccessLevel::Owner, new.now)?;
    publish(tx, tenant, ChangeKind::ConversationCreated, Some(new.owner), new.id, now)?;
    Ok(true)
}

fn delete_as<L: Member + Deletes>(
    tx: &mut dyn Tx,
    caller: &Caller,
    id: ConversationId,
    now: Timestamp,
) -> Result<(GroupId, Vec<UserId>)> {
    let access = open::<L>(tx, caller, id)?;
    groups::lock(tx, access.group())?;
    publish(tx, caller.tenant(), ChangeKind::ConversationDeleted, Some(&caller.user), id, now)?;
    Ok((access.group(), delete_tree(tx, &access, now)?))
}

/// Marks a tree as deleted and ends its pending transfer; answers who its members are.
pub(super) fn delete_tree<L: Deletes>(
    tx: &mut dyn Tx,
    access: &Access<L>,
    now: Timestamp,
) -> Result<Vec<UserId>> {
    let group = access.group();
    groups::set_deleted(tx, group, Some(now))?;
    transfers::delete_of_group(tx, group)?;
    let members = memberships::list(tx, group, None, i64::MAX)?;
    Ok(members.into_iter().map(|member| member.user_id).collect())
}

pub(super) fn visible(tx: &mut dyn Tx, caller: &Caller, id: ConversationId) -> Result<Conversation> {
    rows::get(tx, caller.tenant(), &caller.user, id)?.ok_or_else(|| not_found(id))
}

/// Opens or makes the conversation that an append or a sync names.
pub(super) fn open_or_create_root(
    tx: &mut dyn Tx,
    caller: &Caller,
    id: ConversationId,
    group: GroupId,
    now: Timestamp,
) -> Result<Access<AsWriter>> {
    let (owner, metadata) = (&caller.user, &empty_object()?);
    let new = NewConversation { id, group, owner, title: None, metadata, lineage: None, now };
    create_root(tx, caller.tenant(), &new, now)?;
    // Whether this call made it or another one did a moment ago, from here on the ordinary rules apply.
    open(tx, caller, id)
}

pub(super) fn empty_object() -> Result<Json> {
    Json::parse("{}".into()).map_err(|e| Error::internal(e.to_string()))
}

fn check_metadata(metadata: Json) -> Result<Json> {
    let wrong = |message: String| Error::invalid("metadata", message);
    metadata.check(memtrove_core::conversations::MAX_NESTING).map_err(|e| wrong(e.to_string()))?;
    let Ok(Value::Object(members)) = metadata.value() else {
        return Err(wrong("must be a JSON object".into()));
    };
    if members.len() > MAX_METADATA_KEYS {
        return Err(wrong(format!("must have at most {MAX_METADATA_KEYS} keys")));
    }
    if members.keys().any(|key| key.chars().count() > MAX_METADATA_KEY_CHARS) {
        return Err(wrong(format!("keys must have at most {MAX_METADATA_KEY_CHARS} characters")));
    }
    let compact = Json::of(&members).map_err(|e| wrong(e.to_string()))?;
    if compact.get().len() > MAX_METADATA_BYTES {
        return Err(wrong(format!("must be at most {MAX_METADATA_BYTES} bytes of JSON")));
    }
    Ok(compact)
}

/// Finds a text in titles and metadata, whatever the letter case.
struct Filter {
    needle: String,
}

impl Filter {
    fn new(query: &str) -> Self {
        Self { needle: query.trim().to_lowercase() }
    }

    fn matches(&self, conversation: &Conversation) -> bool {
        conversation.title.as_deref().is_some_and(|title| self.within(title))
            || (conversation.metadata.get() != "{}"
                && conversation.metadata.value().is_ok_and(|metadata| self.within_value(&metadata)))
    }

    fn within(&self, text: &str) -> bool {
        text.to_lowercase().contains(&self.needle)
    }

    fn within_value(&self, value: &Value) -> bool {
        match value {
            Value::String(text) => self.within(text),
            Value::Array(items) => items.iter().any(|item| self.within_value(item)),
            Value::Object(members) => members.values().any(|value| self.within_value(value)),
            Value::Null | Value::Bool(_) | Value::Number(_) => false,
        }
    }
}
