//! Entries: reading, appending, and syncing an agent's memory.

use super::{ChannelFilter, CreateEntryRequest, EntriesPage, Entry, Forks, SyncEntryResponse};
use crate::paging::pages;
use crate::{Client, ConversationId, EntryId, Error, Result, operations};
use futures_util::Stream;

/// Which entries to list; by default the oldest fifty of the history.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ListEntries {
    /// Which stream; the history unless said otherwise.
    pub channel: Option<ChannelFilter>,
    /// Which epoch of the memory: a number, `latest` or `all`.
    pub epoch: Option<String>,
    /// Only newer than this entry.
    pub after: Option<EntryId>,
    /// Only older than this entry, the newest of them.
    pub before: Option<EntryId>,
    /// The newest.
    pub tail: bool,
    /// Nothing newer than this entry.
    pub up_to: Option<EntryId>,
    /// The most entries.
    pub limit: Option<u32>,
    /// Which branches; the path to this conversation unless said otherwise.
    pub forks: Option<Forks>,
}

impl ListEntries {
    /// The newest entries, up to this many.
    pub fn newest(limit: u32) -> Self {
        Self { tail: true, limit: Some(limit), ..Self::default() }
    }
}

impl Client {
    /// Lists the entries visible on a conversation, oldest first.
    pub async fn list_entries(&self, id: ConversationId, request: ListEntries) -> Result<EntriesPage<Entry>> {
        self.call(&operations::LIST_ENTRIES, &[&id.to_string()])?
            .query("channel", request.channel.map(ChannelFilter::as_str))
            .query("epoch", request.epoch)
            .query("after", request.after)
            .query("before", request.before)
            .query("tail", request.tail.then_some(true))
            .query("upToEntryId", request.up_to)
            .query("limit", request.limit)
            .query("forks", request.forks.map(Forks::as_str))
            .receive()
            .await
    }

    /// Lists entries from the oldest to the newest, asking for more as they are taken. `before` and `tail` begin at the other
    /// end and are refused.
    pub fn list_entries_all(
        &self,
        id: ConversationId,
        request: ListEntries,
    ) -> impl Stream<Item = Result<Entry>> + Send + use<> {
        let client = self.clone();
        pages(request.after, move |after| {
            let (client, request) = (client.clone(), request.clone());
            async move {
                if request.tail || request.before.is_some() {
                    return Err(Error::invalid(
                        "list_entries_all goes from the oldest to the newest: for `tail` and `before` call \
                         list_entries, and go on before the `before_cursor` of each page",
                    ));
                }
                let page = client.list_entries(id, ListEntries { after, ..request }).await?;
                Ok((page.data, page.after_cursor))
            }
        })
    }

    /// Appends an entry, making the conversation if its id is unknown.
    pub async fn append_entry(&self, id: ConversationId, request: CreateEntryRequest) -> Result<Entry> {
        self.call(&operations::APPEND_ENTRY, &[&id.to_string()])?.json(&request)?.receive().await
    }

    /// Makes the calling agent's memory what it is sent: appends what is new, begins an epoch where it differs, and does
    /// nothing where it is the same.
    pub async fn sync_entries(
        &self,
        id: ConversationId,
        request: CreateEntryRequest,
    ) -> Result<SyncEntryResponse> {
        self.call(&operations::SYNC_ENTRIES, &[&id.to_string()])?.json(&request)?.receive().await
    }
}
