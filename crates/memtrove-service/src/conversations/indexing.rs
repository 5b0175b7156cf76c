//! Keeping current what search finds entries by.

use super::search::{malformed, opaque};
use super::{Conversations, text};
use crate::audit::{AsIndexer, Grant};
use crate::page::{self, Page, PageRequest};
use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use memtrove_core::conversations::{Channel, Entry, MAX_INDEXED_CHARS};
use memtrove_core::identity::Principal;
use memtrove_core::{ConversationId, EntryId, Error, Resource, Result, Timestamp};
use memtrove_store::conversations::{embeddings, search};
use memtrove_store::{TextDocument, Tx};
use uuid::Uuid;

const MAX_INDEX_ITEMS: usize = 1000;

/// A text for one entry.
#[derive(Debug, Clone)]
pub struct IndexItem {
    /// The conversation that stores the entry.
    pub conversation_id: Option<ConversationId>,
    /// The entry.
    pub entry_id: Option<EntryId>,
    /// What search should find it by.
    pub indexed_content: Option<String>,
}

impl Conversations {
    /// Gives entries the text that search finds them by: all of them, or none.
    pub async fn index(&self, principal: &Principal, items: Vec<IndexItem>) -> Result<usize> {
        let grant = Grant::<AsIndexer>::indexer(principal)?;
        if items.is_empty() {
            return Err(Error::bad_request("At least one entry is required"));
        }
        if items.len() > MAX_INDEX_ITEMS {
            return Err(Error::invalid("body", format!("must have at most {MAX_INDEX_ITEMS} items")));
        }
        let count = items.len();
        let items: Vec<_> =
            items.into_iter().enumerate().map(|(i, item)| self.check_item(i, item)).collect::<Result<_>>()?;
        self.cx
            .store
            .write(principal.tenant(), "index_entries", move |tx| {
                for item in &items {
                    index_one(tx, &grant, item)?;
                }
                Ok(count)
            })
            .await
    }

    fn check_item(&self, at: usize, item: IndexItem) -> Result<CheckedItem> {
        let required = |field: &str| Error::invalid(format!("[{at}].{field}"), "is required");
        let conversation = item.conversation_id.ok_or_else(|| required("conversationId"))?;
        let entry = item.entry_id.ok_or_else(|| required("entryId"))?;
        let content = item.indexed_content.ok_or_else(|| required("indexedContent"))?;
        if content.trim().is_empty() {
            return Err(Error::invalid(format!("[{at}].indexedContent"), "must not be blank"));
        }
        text(&format!("[{at}].indexedContent"), &content, MAX_INDEXED_CHARS)?;
        Ok(CheckedItem { conversation, entry, terms: self.cx.analyzer.terms(&content), text: content })
    }

    /// History entries that have no text yet, oldest first.
    pub async fn unindexed(
        &self,
        principal: &Principal,
        request: PageRequest<String>,
    ) -> Result<Page<Entry>> {
        let grant = Grant::<AsIndexer>::indexer(principal)?;
        let limit = page::limit(request.limit, 100, 200)?;
        let after = request.after.as_deref().map(decode_feed_cursor).transpose()?;
        self.cx
            .store
            .read(principal.tenant(), "list_unindexed", move |tx| {
                let (data, more) = search::unindexed(tx, grant.tenant(), after, limit)?;
                let last = data.last().filter(|_| more);
                let after = last.map(|entry| encode_feed_cursor(entry.created_at, entry.id));
                Ok(Page { data, after })
            })
            .await
    }
}

struct CheckedItem {
    conversation: ConversationId,
    entry: EntryId,
    text: String,
    terms: String,
}

fn index_one(tx: &mut dyn Tx, grant: &Grant<AsIndexer>, item: &CheckedItem) -> Result<()> {
    let tenant = grant.tenant();
    let entry = search::indexable(tx, tenant, item.entry)?
        .filter(|entry| entry.conversation == item.conversation)
        .ok_or_else(|| Error::not_found(Resource::Entry, item.entry))?;
    if entry.channel != Channel::History {
        return Err(Error::bad_request("Only history channel entries can be indexed"));
    }
    search::remove_unindexed(tx, tenant, item.entry, entry.created_at)?;
    embeddings::touch(tx, entry.group)?;
    Ok(tx.index_text(TextDocument {
        is_new: false,
        id: item.entry.0,
        tenant: tenant.as_str().to_owned(),
        group: entry.group.0,
        conversation: entry.conversation.0,
        text: item.text.clone(),
        by_agent: None,
        terms: item.terms.clone(),
    })?)
}

fn encode_feed_cursor(created_at: Timestamp, id: EntryId) -> String {
    let mut bytes = Vec::with_capacity(24);
    bytes.extend_from_slice(&created_at.as_micros().to_be_bytes());
    bytes.extend_from_slice(id.0.as_bytes());
    BASE64_URL_SAFE_NO_PAD.encode(bytes)
}

fn decode_feed_cursor(text: &str) -> Result<(Timestamp, EntryId)> {
    let bytes: [u8; 24] = opaque(text)?;
    let (at, id) = bytes.split_at(8);
    let at = i64::from_be_bytes(at.try_into().map_err(|_| malformed())?);
    Ok((Timestamp::from_micros(at), EntryId(Uuid::from_slice(id).map_err(|_| malformed())?)))
}
