//! Appending entries and reading them by the page.

use super::access::{Access, AsReader, AsWriter, Reads, open, open_existing};
use super::forks::{ForkPoint, fork_tree};
use super::lifecycle::open_or_create_root;
use super::{ConversationChange, Conversations, not_found, text};
use crate::attachments::{Named, link};
use crate::page;
use crate::settings::AutoDerive;
use memtrove_core::conversations::forks::View;
use memtrove_core::conversations::sync::{Digest, EMPTY_CHAIN, MemoryState};
use memtrove_core::conversations::{
    AccessLevel, Channel, Entry, MAX_APPEND_ITEMS, MAX_CONTENT_TYPE_CHARS, MAX_INDEXED_CHARS, MAX_NESTING,
    content,
};
use memtrove_core::identity::{Caller, MAX_USER_ID_CHARS};
use memtrove_core::{
    AttachmentId, ClientId, ConversationId, EntryId, Error, GroupId, Json, Resource, Result, Timestamp,
};
use memtrove_store::changes::ChangeKind;
use memtrove_store::conversations::entries::{End, EntryFilter, MemoryFilter, Part, Range};
use memtrove_store::conversations::idempotency::{AppendKey, RememberedAppend};
use memtrove_store::conversations::{entries, groups, idempotency, rows, search};
use memtrove_store::{TextDocument, Tx};
use serde_json::value::RawValue;
use std::sync::Arc;

/// How long an `Idempotency-Key` is remembered.
pub(crate) const IDEMPOTENCY_MICROS: i64 = 24 * 3600 * 1_000_000;
const MAX_IDEMPOTENCY_KEY_CHARS: usize = 128;

/// An entry as a caller sends it, to append or to sync.
#[derive(Debug, Clone, Default)]
pub struct AppendRequest {
    /// Must be the effective user, where given.
    pub user_id: Option<String>,
    /// History unless said otherwise.
    pub channel: Option<Channel>,
    /// Required.
    pub content_type: Option<String>,
    /// Required: a JSON array.
    pub content: Option<Json>,
    /// What search should find it by; history only.
    pub indexed_content: Option<String>,
    /// The conversation to fork, if the target does not exist yet.
    pub forked_at_conversation_id: Option<ConversationId>,
    /// The entry to fork it at.
    pub forked_at_entry_id: Option<EntryId>,
}

/// A key under which a repeated append is the same append.
#[derive(Debug, Clone)]
pub struct Idempotency {
    /// The caller's key.
    pub key: String,
    /// The request as it was sent.
    pub body: Digest,
}

/// Whose conversations may be appended to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Whose {
    /// All that the caller may write to.
    Anybodys,
    /// Those that the caller owns.
    Own,
}

/// A request that passed every check that needs no stored state.
pub(super) struct Checked {
    pub channel: Channel,
    pub content_type: String,
    pub content: Json,
    /// Of each item, for the memory channel.
    pub digests: Vec<Digest>,
    pub title: Option<String>,
    pub preview: Option<String>,
    /// What search finds it by, and whether the caller said so.
    pub text: Option<Text>,
    /// Whether the agent said it, where the content tells.
    pub by_agent: Option<bool>,
    /// The attachments that the content names by their ids.
    pub attachments: Vec<Named>,
    pub fork: Option<ForkPoint>,
    /// When it was said, where that was not now but elsewhere.
    pub said_at: Option<Timestamp>,
}

/// A searchable text, analysed before it reaches the store's thread.
pub(super) struct Text {
    pub text: String,
    pub terms: String,
    pub explicit: bool,
}

impl Conversations {
    /// The digest that tells two requests of one user apart.
    pub fn request_digest(&self, caller: &Caller, body: &[u8]) -> Digest {
        self.cx.digester.request(caller.user.as_str(), body)
    }

    /// Appends an entry, making the conversation (or forking another) if its id is unknown.
    pub async fn append(
        &self,
        caller: &Caller,
        id: ConversationId,
        request: AppendRequest,
        idempotency: Option<Idempotency>,
    ) -> Result<Entry> {
        self.append_to(Whose::Anybodys, caller, id, request, idempotency).await
    }

    /// Appends an entry to a conversation that the caller owns, or makes it. One that is somebody else's is not found, even
    /// where the caller may write.
    pub async fn append_own(
        &self,
        caller: &Caller,
        id: ConversationId,
        request: AppendRequest,
    ) -> Result<Entry> {
        self.append_to(Whose::Own, caller, id, request, None).await
    }

    async fn append_to(
        &self,
        whose: Whose,
        caller: &Caller,
        id: ConversationId,
        request: AppendRequest,
        idempotency: Option<Idempotency>,
    ) -> Result<Entry> {
        let checked = Arc::new(self.check_append(caller, request)?);
        if let Some(Idempotency { key, .. }) = &idempotency
            && (key.is_empty() || key.chars().count() > MAX_IDEMPOTENCY_KEY_CHARS)
        {
            let message = format!("must have 1..{MAX_IDEMPOTENCY_KEY_CHARS} characters");
            return Err(Error::invalid("Idempotency-Key", message));
        }
        let (cx, caller, now) = (self.cx.clone(), caller.clone(), self.cx.clock.now());
        let (entry_id, group_id) = (EntryId(cx.clock.new_id()), GroupId(cx.clock.new_id()));
        self.cx
            .store
            .write(caller.tenant().clone(), "append_entry", move |tx| {
                tx.lock(id.0.as_bytes())?;
                if whose == Whose::Own {
                    refuse_foreign(tx, &caller, id)?;
                }
                let access = open_or_create(tx, &caller, id, group_id, &checked, now)?;
                if let Some(Idempotency { key, body }) = &idempotency {
                    let since = now.saturating_add_micros(-IDEMPOTENCY_MICROS);
                    let key = AppendKey { caller: &caller, conversation: id, key };
                    if let Some(first) = idempotency::find(tx, key, since)? {
                        return repeated(tx, &access, &first, body);
                    }
                    let append = RememberedAppend { body: *body, entry: entry_id };
                    idempotency::remember(tx, key, &append, now)?;
                }
                match checked.channel {
                    Channel::History => append_history(tx, &caller, &access, entry_id, &checked, now),
                    Channel::Memory => {
                        let state = memory_state(tx, &access, require_client(&caller)?)?;
                        let state = extended(&cx.digester, state, &checked);
                        let (content_type, content) = (&checked.content_type, &checked.content);
                        let new = NewMemoryEntry { id: entry_id, content_type, content, state };
                        append_memory(tx, &caller, &access, new, now)
                    }
                }
            })
            .await
    }

    pub(super) fn check_append(&self, caller: &Caller, request: AppendRequest) -> Result<Checked> {
        let channel = request.channel.unwrap_or(Channel::History);
        let explicit_channel = request.channel.is_some();
        let mut checked = self.check_entry(caller, request, channel, MAX_APPEND_ITEMS)?;
        match channel {
            Channel::Memory => {
                if checked.text.is_some() {
                    return Err(Error::bad_request("indexedContent is only allowed on history channel"));
                }
                require_client(caller)?;
                let items = checked.content.items().map_err(|e| Error::invalid("content", e.to_string()))?;
                checked.digests = self.cx.digester.items(&items)?;
            }
            Channel::History => {
                let items: Vec<serde_json::Value> = serde_json::from_str(checked.content.get())
                    .map_err(|e| Error::invalid("content", format!("must be a JSON array: {e}")))?;
                if content::is_checked(explicit_channel, &checked.content_type) {
                    content::check_history(&checked.content_type, &items)?;
                }
                checked.title = content::title(&items);
                checked.preview = content::preview(&items);
                checked.by_agent = content::is_by_agent(&items);
                let named = content::attachment_ids(&items)?.into_iter();
                let copy = || AttachmentId(self.cx.clock.new_id());
                checked.attachments = named.map(|id| Named { id, copy: copy() }).collect();
                if checked.text.is_none() && self.cx.settings.auto_derive == AutoDerive::Text {
                    checked.text = content::derived_text(&items).map(|text| self.analysed(text, false));
                }
            }
        }
        Ok(checked)
    }

    /// The checks that append and sync share.
    pub(super) fn check_entry(
        &self,
        caller: &Caller,
        request: AppendRequest,
        channel: Channel,
        max_items: usize,
    ) -> Result<Checked> {
        let required = |field: &str| Error::invalid(field, "is required");
        let content_type = request.content_type.ok_or_else(|| required("contentType"))?;
        if content_type.is_empty() {
            return Err(Error::invalid("contentType", "must have 1..127 characters"));
        }
        text("contentType", &content_type, MAX_CONTENT_TYPE_CHARS)?;
        let content = request.content.ok_or_else(|| required("content"))?;
        check_content(&content, self.cx.settings.max_content_bytes, max_items)?;
        let indexed = request.indexed_content.filter(|text| !text.trim().is_empty());
        if let Some(indexed) = &indexed {
            text("indexedContent", indexed, MAX_INDEXED_CHARS)?;
        }
        if let Some(user) = request.user_id.filter(|user| !user.trim().is_empty()) {
            text("userId", &user, MAX_USER_ID_CHARS)?;
            if user != caller.user.as_str() {
                return Err(Error::bad_request("userId does not match the authenticated user"));
            }
        }
        let fork = match (request.forked_at_conversation_id, request.forked_at_entry_id) {
            (Some(conversation), at) => Some(ForkPoint { conversation, at }),
            (None, None) => None,
            (None, Some(_)) => {
                return Err(Error::invalid("forkedAtEntryId", "needs forkedAtConversationId next to it"));
            }
        };
        Ok(Checked {
            channel,
            content_type,
            content,
            digests: Vec::new(),
            title: None,
            preview: None,
            text: indexed.map(|text| self.analysed(text, true)),
            by_agent: None,
            attachments: Vec::new(),
            fork,
            said_at: None,
        })
    }

    pub(super) fn analysed(&self, text: String, explicit: bool) -> Text {
        Text { terms: self.cx.analyzer.terms(&text), text, explicit }
    }
}

/// Checks content that is to be stored: an array that is not too long, not too deep, and without NUL.
pub(super) fn check_content(content: &Json, max_bytes: usize, max_items: usize) -> Result<()> {
    let wrong = |message: String| Error::invalid("content", message);
    if !content.get().starts_with('[') {
        return Err(wrong("must be a JSON array".into()));
    }
    if content.get().len() > max_bytes {
        return Err(Error::too_large(max_bytes as u64, Some(content.get().len() as u64)));
    }
    content.check(MAX_NESTING).map_err(|e| wrong(e.to_string()))?;
    let items: Vec<&RawValue> = content.items().map_err(|e| wrong(e.to_string()))?;
    if items.len() > max_items {
        return Err(wrong(format!("must have at most {max_items} items")));
    }
    Ok(())
}

/// The effective client, without which there is no memory channel.
pub(super) fn require_client(caller: &Caller) -> Result<&ClientId> {
    caller.client.as_ref().ok_or_else(|| Error::forbidden("Client id is required"))
}

/// Refuses a conversation that somebody else owns, as if it were not there.
fn refuse_foreign(tx: &mut dyn Tx, caller: &Caller, id: ConversationId) -> Result<()> {
    match rows::head(tx, caller.tenant(), &caller.user, id)? {
        Some(head) if head.deleted || head.access != Some(AccessLevel::Owner) => Err(not_found(id)),
        _ => Ok(()),
    }
}

/// Opens the target of a write for a writer, or makes it: as a fork where the request says so, else as a root.
pub(super) fn open_or_create(
    tx: &mut dyn Tx,
    caller: &Caller,
    id: ConversationId,
    group: GroupId,
    checked: &Checked,
    now: Timestamp,
) -> Result<Access<AsWriter>> {
    if let Some(access) = open_existing(tx, caller, id)? {
        return Ok(access);
    }
    match &checked.fork {
        None => open_or_create_root(tx, caller, id, group, now),
        Some(point) => fork_tree(tx, caller, id, point, checked.title.as_deref(), now),
    }
}

fn repeated(
    tx: &mut dyn Tx,
    access: &Access<AsWriter>,
    first: &RememberedAppend,
    body: &Digest,
) -> Result<Entry> {
    if first.body != *body {
        return Err(Error::conflict("this Idempotency-Key was already used with a different request"));
    }
    let entry = entries::get(tx, access.group(), first.entry)?;
    entry.ok_or_else(|| Error::not_found(Resource::Entry, first.entry))
}

/// What a client's memory is at the end of what is visible on a conversation.
pub(super) fn memory_state(
    tx: &mut dyn Tx,
    access: &Access<AsWriter>,
    client: &ClientId,
) -> Result<Option<MemoryState>> {
    let view = access.view(tx)?;
    Ok(entries::memory_state(tx, access.group(), &view, client)?)
}

pub(super) fn append_history(
    tx: &mut dyn Tx,
    caller: &Caller,
    access: &Access<AsWriter>,
    entry_id: EntryId,
    checked: &Checked,
    now: Timestamp,
) -> Result<Entry> {
    let (id, group) = (access.id(), access.group());
    let said_at = checked.said_at.unwrap_or(now);
    let place = groups::take_place_as_latest(tx, group, id, said_at)?;
    let content = match checked.attachments.as_slice() {
        [] => checked.content.clone(),
        named => {
            let links = link(tx, caller, access, entry_id, named, place.created_at)?;
            content::refer(&checked.content, &links)?
        }
    };
    let entry = Entry {
        id: entry_id,
        conversation_id: id,
        ord: place.ord,
        user_id: Some(caller.user.clone()),
        client_id: caller.client.clone(),
        channel: Channel::History,
        epoch: None,
        content_type: checked.content_type.clone(),
        content,
        created_at: place.created_at,
    };
    tx.begin_batch();
    entries::insert(tx, caller.tenant(), group, &entry, None)?;
    let title = if access.has_history() { None } else { checked.title.as_deref() };
    rows::set_latest_message(tx, caller.tenant(), id, place.created_at, checked.preview.as_deref(), title)?;
    let explicit = checked.text.as_ref().is_some_and(|text| text.explicit);
    if !explicit {
        search::add_unindexed(tx, caller.tenant(), group, entry_id, place.created_at)?;
    }
    if let Some(text) = &checked.text {
        tx.index_text(TextDocument {
            is_new: true,
            id: entry_id.0,
            tenant: caller.tenant().as_str().to_owned(),
            group: group.0,
            conversation: id.0,
            text: text.text.clone(),
            by_agent: checked.by_agent,
            terms: text.terms.clone(),
        })?;
    }
    tell_appended(tx, caller, ChangeKind::EntryAppended, &entry, now)?;
    Ok(entry)
}

/// The state of an epoch after more items were appended to it.
fn extended(
    digester: &memtrove_core::conversations::sync::Digester,
    state: Option<MemoryState>,
    checked: &Checked,
) -> MemoryState {
    let start = state.as_ref().map_or(EMPTY_CHAIN, |state| state.chain);
    let chain = digester.chain(start, &checked.digests).pop().unwrap_or(start);
    let content_type = checked.content_type.clone();
    match state {
        None => MemoryState {
            epoch: 1,
            epoch_start: NEW_EPOCH,
            item_count: checked.digests.len(),
            chain,
            uniform_type: Some(content_type),
            request: None,
        },
        Some(state) => MemoryState {
            item_count: state.item_count + checked.digests.len(),
            chain,
            uniform_type: state.uniform_type.filter(|uniform| *uniform == content_type),
            request: None,
            ..state
        },
    }
}

/// Stands for "the place this entry is about to get" in a state whose epoch begins with it.
pub(super) const NEW_EPOCH: i64 = -1;

/// An entry of the memory channel that is to be written.
pub(super) struct NewMemoryEntry<'a> {
    pub id: EntryId,
    pub content_type: &'a str,
    pub content: &'a Json,
    /// The state it leaves its epoch in.
    pub state: MemoryState,
}

pub(super) fn append_memory(
    tx: &mut dyn Tx,
    caller: &Caller,
    access: &Access<AsWriter>,
    new: NewMemoryEntry<'_>,
    now: Timestamp,
) -> Result<Entry> {
    let NewMemoryEntry { id, content_type, content, mut state } = new;
    let place = groups::take_place(tx, access.group(), now)?;
    if state.epoch_start == NEW_EPOCH {
        state.epoch_start = place.ord;
    }
    let entry = Entry {
        id,
        conversation_id: access.id(),
        ord: place.ord,
        user_id: Some(caller.user.clone()),
        client_id: caller.client.clone(),
        channel: Channel::Memory,
        epoch: Some(state.epoch),
        content_type: content_type.to_owned(),
        content: content.clone(),
        created_at: place.created_at,
    };
    tx.begin_batch();
    entries::insert(tx, caller.tenant(), access.group(), &entry, Some(&state))?;
    tell_appended(tx, caller, ChangeKind::MemoryAppended, &entry, now)?;
    Ok(entry)
}

fn tell_appended(
    tx: &mut dyn Tx,
    caller: &Caller,
    kind: ChangeKind,
    entry: &Entry,
    now: Timestamp,
) -> Result<()> {
    let (user, id, part) = (Some(&caller.user), entry.conversation_id, Some(entry.id.0));
    ConversationChange { kind, user, id, part }.publish(tx, caller.tenant(), now)
}

/// Which channels a list shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ChannelFilter {
    /// The transcript.
    #[default]
    History,
    /// The caller's own memory.
    Memory,
    /// Both.
    All,
}

/// Which epochs of a memory a list shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum EpochFilter {
    /// The current one.
    #[default]
    Latest,
    /// Every one.
    All,
    /// This one.
    Number(i64),
}

/// A request for a page of entries.
#[derive(Debug, Clone, Default)]
pub struct ListEntries {
    /// See [`ChannelFilter`].
    pub channel: ChannelFilter,
    /// See [`EpochFilter`]; ignored for the transcript.
    pub epoch: EpochFilter,
    /// Everything in the tree instead of one branch.
    pub all_forks: bool,
    /// Go on after this entry.
    pub after: Option<EntryId>,
    /// The page that ends right before this entry.
    pub before: Option<EntryId>,
    /// The newest page.
    pub tail: bool,
    /// Only entries up to this one.
    pub up_to: Option<EntryId>,
    /// The size of the page.
    pub limit: Option<i64>,
}

/// A page of entries, oldest first.
#[derive(Debug, Clone)]
pub struct EntryPage {
    /// The entries.
    pub data: Vec<Entry>,
    /// The last entry, if newer ones exist.
    pub after: Option<EntryId>,
    /// The first entry, if older ones exist; only where the page was asked for from its new end.
    pub before: Option<Option<EntryId>>,
}

impl Conversations {
    /// A page of the entries visible on a conversation.
    pub async fn list_entries(
        &self,
        caller: &Caller,
        id: ConversationId,
        request: ListEntries,
    ) -> Result<EntryPage> {
        let max = if request.channel == ChannelFilter::Memory { 1000 } else { 200 };
        let limit = page::limit(request.limit, 50, max)?;
        check_directions(&request)?;
        if request.channel != ChannelFilter::History {
            require_client(caller)?;
        }
        let caller = caller.clone();
        self.cx
            .store
            .read(caller.tenant().clone(), "list_entries", move |tx| {
                let access = open::<AsReader>(tx, &caller, id)?;
                let walk = Walk::new(tx, &access, Some(caller.client.as_ref()), &request, limit)?;
                let (walk, up_to) = walk.bounded(tx)?;
                let filter = walk.filter(tx)?;
                walk.page(tx, &filter, up_to)
            })
            .await
    }
}

/// `after`, `before` and `tail` exclude each other.
fn check_directions(request: &ListEntries) -> Result<()> {
    let directions = usize::from(request.after.is_some())
        + usize::from(request.before.is_some())
        + usize::from(request.tail);
    if directions > 1 {
        return Err(Error::invalid("after", "after, before and tail exclude each other"));
    }
    Ok(())
}

/// A walk along a view, or along a whole tree.
pub(super) struct Walk<'a, L> {
    access: &'a Access<L>,
    view: View,
    /// Whose memory counts as visible: this client's (`Some(None)`: no client's), or all of it for admins.
    reader: Option<Option<&'a ClientId>>,
    request: &'a ListEntries,
    limit: usize,
}

impl<'a, L: Reads> Walk<'a, L> {
    pub fn new(
        tx: &mut dyn Tx,
        access: &'a Access<L>,
        reader: Option<Option<&'a ClientId>>,
        request: &'a ListEntries,
        limit: usize,
    ) -> Result<Self> {
        Ok(Self { access, view: access.view(tx)?, reader, request, limit })
    }

    /// Applies `upToEntryId`; also answers its place.
    pub fn bounded(mut self, tx: &mut dyn Tx) -> Result<(Self, i64)> {
        let Some(id) = self.request.up_to else { return Ok((self, i64::MAX)) };
        let ord = self.place(tx, "upToEntryId", id)?;
        self.view = self.view.up_to(ord);
        Ok((self, ord))
    }

    /// The place of an entry that a cursor names.
    fn place(&self, tx: &mut dyn Tx, field: &str, id: EntryId) -> Result<i64> {
        entries::position(tx, id)?
            .filter(|p| p.is_in(self.access.group()))
            .filter(|p| self.request.all_forks || self.view.contains(p.conversation, p.ord))
            .filter(|p| {
                self.reader.is_none_or(|reader| p.memory_of.as_ref().is_none_or(|of| Some(of) == reader))
            })
            .map(|p| p.ord)
            .ok_or_else(|| page::unknown_cursor(field))
    }

    fn filter(&self, tx: &mut dyn Tx) -> Result<EntryFilter> {
        let history = self.request.channel != ChannelFilter::Memory;
        if self.request.channel == ChannelFilter::History {
            return Ok(EntryFilter { history, memory: None });
        }
        let client = self.reader.flatten().cloned();
        let mut memory = MemoryFilter { client, epoch: None, from_ord: 0 };
        match self.request.epoch {
            EpochFilter::Number(epoch) if self.request.channel == ChannelFilter::Memory => {
                memory.epoch = Some(epoch)
            }
            EpochFilter::Latest
                if self.request.channel == ChannelFilter::Memory && !self.request.all_forks =>
            {
                if let Some(client) = &memory.client {
                    // Epochs never go down along a path, so the latest is everything from its first entry on.
                    let state = entries::memory_state(tx, self.access.group(), &self.view, client)?;
                    memory.from_ord = state.map_or(0, |state| state.epoch_start);
                }
            }
            _ => {}
        }
        Ok(EntryFilter { history, memory: Some(memory) })
    }

    /// The page of what was fetched (one more than the limit, where there is more), and whether there is more.
    fn cut(&self, part: Part) -> (Vec<Entry>, bool) {
        let Part { entries: mut data, cut } = part;
        let more = cut.is_some() || data.len() > self.limit;
        data.truncate(self.limit);
        (data, more)
    }

    /// Fetches the page; `up_to` bounds a walk along a whole tree, whose view does not.
    pub fn page(&self, tx: &mut dyn Tx, filter: &EntryFilter, up_to: i64) -> Result<EntryPage> {
        let bound = up_to.saturating_add(1);
        let fetch = |tx: &mut dyn Tx, range: Range| match self.request.all_forks {
            true => entries::group_page(tx, self.access.group(), filter, range),
            false => entries::page(tx, self.access.group(), &self.view, filter, range),
        };
        let from_newest = self.request.tail || self.request.before.is_some();
        if !from_newest {
            let after = match self.request.after {
                Some(id) => self.place(tx, "after", id)?,
                None => -1,
            };
            let range = Range { after, before: bound, end: End::Oldest, limit: self.limit + 1 };
            let (data, more) = self.cut(fetch(tx, range)?);
            let after = if more { data.last().map(|entry| entry.id) } else { None };
            return Ok(EntryPage { data, after, before: None });
        }
        let before = match self.request.before {
            Some(id) => self.place(tx, "before", id)?.min(bound),
            None => bound,
        };
        let range = Range { after: -1, before, end: End::Newest, limit: self.limit + 1 };
        let (mut data, more) = self.cut(fetch(tx, range)?);
        data.reverse();
        let newest = data.last().map(|entry| (entry.ord, entry.id));
        let after = match newest {
            Some((ord, id)) if self.request.before.is_some() => {
                let newer = Range { after: ord, before: bound, end: End::Oldest, limit: 1 };
                (!fetch(tx, newer)?.entries.is_empty()).then_some(id)
            }
            _ => None,
        };
        let before = if more { data.first().map(|entry| entry.id) } else { None };
        Ok(EntryPage { data, after, before: Some(before) })
    }
}
