//! Finding what was said.

use super::{
    Entry, IndexConversationsResponse, IndexEntryRequest, Page, PageRequest, SearchConversationsRequest,
    SearchPage, UnindexedEntry,
};
use crate::paging::listed;
use crate::{Client, Result, operations};
use futures_util::Stream;

/// Which part of the entries without a text to be found by.
pub type ListUnindexed = PageRequest;

impl Client {
    /// Searches everything the caller can see, best first.
    pub async fn search_conversations(
        &self,
        request: SearchConversationsRequest,
    ) -> Result<SearchPage<Entry>> {
        self.call(&operations::SEARCH_CONVERSATIONS, &[])?.json(&request)?.receive().await
    }

    /// Gives entries the texts they should be found by.
    pub async fn index_conversations(
        &self,
        entries: Vec<IndexEntryRequest>,
    ) -> Result<IndexConversationsResponse> {
        self.call(&operations::INDEX_CONVERSATIONS, &[])?.json(&entries)?.receive().await
    }

    /// Lists history entries without a text to be found by.
    pub async fn list_unindexed(&self, page: ListUnindexed) -> Result<Page<UnindexedEntry>> {
        self.call(&operations::LIST_UNINDEXED, &[])?.page(page).receive().await
    }

    /// Lists such entries to the last one, asking for more as they are taken.
    pub fn list_unindexed_all(
        &self,
        page: ListUnindexed,
    ) -> impl Stream<Item = Result<UnindexedEntry>> + Send + use<> {
        let client = self.clone();
        listed(page, move |page| {
            let client = client.clone();
            async move { client.list_unindexed(page).await }
        })
    }
}
