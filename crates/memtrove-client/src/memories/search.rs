//! Listing and searching memories.

use super::{
    ListMemoriesRequest, Memory, MemoryKind, MemoryLayer, MemoryPage, MemorySourceType, MemoryState,
};
use super::{SearchMemoriesRequest, SearchedMemories};
use crate::paging::pages;
use crate::{Client, Error, Result, operations};
use futures_util::Stream;

impl Client {
    /// Lists the memories of one scope, newest first. Conditions on a caller's own metadata need
    /// [`filter_memories`](Self::filter_memories).
    pub async fn list_memories(&self, request: ListMemoriesRequest) -> Result<MemoryPage> {
        let filter = request.filter.unwrap_or_default();
        if filter.custom.is_some() {
            return Err(Error::invalid("custom conditions do not fit into an address: call filter_memories"));
        }
        self.call(&operations::LIST_MEMORIES, &[])?
            .query("layer", request.layer.map(MemoryLayer::as_str))
            .identifiers(&request.identifiers.unwrap_or_default())
            .query("limit", request.limit)
            .query("cursor", request.cursor)
            .each("kind", request.kinds.into_iter().flatten().map(MemoryKind::as_str))
            .query("from", request.from)
            .query("to", request.to)
            .query("state", request.state.map(MemoryState::as_str))
            .query("includeArchived", request.include_archived)
            .query("includeEmbedding", request.include_embedding)
            .each("tag", filter.tags.into_iter().flatten())
            .query("sourceType", filter.source_type.map(MemorySourceType::as_str))
            .query("hasKnowledgePointer", filter.has_knowledge_pointer)
            .receive()
            .await
    }

    /// Lists the memories of one scope that fulfil conditions, newest first.
    pub async fn filter_memories(&self, request: ListMemoriesRequest) -> Result<MemoryPage> {
        self.call(&operations::FILTER_MEMORIES, &[])?.json(&request)?.receive().await
    }

    /// Lists memories to the last one, asking for more as they are taken.
    pub fn list_memories_all(
        &self,
        request: ListMemoriesRequest,
    ) -> impl Stream<Item = Result<Memory>> + Send + use<> {
        let client = self.clone();
        pages(request.cursor.clone(), move |cursor| {
            let (client, request) = (client.clone(), request.clone());
            async move {
                let page = client.filter_memories(ListMemoriesRequest { cursor, ..request }).await?;
                Ok((page.memories, page.next_cursor))
            }
        })
    }

    /// Searches memories by meaning, in every layer that the identifiers open, strongest first.
    pub async fn search_memories(&self, request: SearchMemoriesRequest) -> Result<SearchedMemories> {
        self.call(&operations::SEARCH_MEMORIES, &[])?.json(&request)?.receive().await
    }
}
