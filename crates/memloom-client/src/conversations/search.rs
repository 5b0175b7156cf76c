//! Finding what was said.

use super::{
    Entry, IndexConversationsResponse, IndexEntryRequest, Page, PageRequest, SearchConversationsRequest,
    SearchResult, UnindexedEntry,
};
use crate::{Client, Result, operations};

/// Which part of the entries without a text to be found by.
pub type ListUnindexed = PageRequest;

impl Client {
    /// Searches everything the caller can see, best first.
    pub async fn search_conversations(
        &self,
        request: SearchConversationsRequest,
    ) -> Result<Page<SearchResult<Entry>>> {
        self.call(&operations::SEARCH_CONVERSATIONS, &[])?.json(&request)?.receive().await
    }

    /// Gives entries the texts they should be found by.
    pub async fn index_conversations(
        &self,
        entries: Vec<IndexEntryRequest>,
    ) -> Result<IndexConversationsResponse> {
        self.call(&operations::INDEX_CONVERSATIONS, &[])?.json(&entries)?.receive().await
    }

    /// Lists history entries that nobody has given a text to be found by.
    pub async fn list_unindexed(&self, page: ListUnindexed) -> Result<Page<UnindexedEntry>> {
        self.call(&operations::LIST_UNINDEXED, &[])?.page(page).receive().await
    }
}
