//! `SearchService`: searching, and giving entries the text that search finds them by.

use super::{Calls, answer, decode, encode};
use crate::rest::{self, extract};
use memtrove_core::identity::Role;
use memtrove_core::{ConversationId, EntryId, Result as CoreResult};
use memtrove_proto::v1;
use memtrove_proto::v1::search_service_server::SearchService;
use memtrove_service::PageRequest;
use memtrove_service::conversations::{IndexItem, SearchRequest, SearchType, WeightsRequest};
use memtrove_wire as wire;
use tonic::{Request, Response, Status};

#[tonic::async_trait]
impl SearchService for Calls {
    async fn search_conversations(
        &self,
        request: Request<v1::SearchEntriesRequest>,
    ) -> Result<Response<v1::SearchEntriesResponse>, Status> {
        answer(async {
            let caller = self.user(&request)?;
            let request = request.into_inner();
            let search = SearchRequest {
                search_type: search_type(&request.search_type)?,
                query: Some(request.query),
                after: decode::given("after", request.after)?,
                limit: decode::size(request.limit),
                group_by_conversation: request.group_by_conversation.unwrap_or(true),
                include_entry: request.include_entry.unwrap_or(true),
                explain: false,
                actor: None,
                weights: WeightsRequest::default(),
            };
            let found = self.app.services().conversations.search(&caller, search).await?;
            Ok(v1::SearchEntriesResponse {
                results: found.data.into_iter().map(encode::search_result).collect(),
                next_cursor: found.after.unwrap_or_default(),
                degraded: found.degraded,
            })
        })
        .await
    }

    async fn index_conversations(
        &self,
        request: Request<v1::IndexConversationsRequest>,
    ) -> Result<Response<v1::IndexConversationsResponse>, Status> {
        answer(async {
            let principal = self.authenticated(&request)?;
            principal.require(Role::Indexer)?;
            let items: CoreResult<Vec<IndexItem>> =
                request.into_inner().entries.into_iter().map(index_item).collect();
            let indexed = self.app.services().conversations.index(&principal, items?).await?;
            // A batch has a thousand items at most.
            Ok(v1::IndexConversationsResponse { indexed: i32::try_from(indexed).unwrap_or(i32::MAX) })
        })
        .await
    }

    async fn list_unindexed_entries(
        &self,
        request: Request<v1::ListUnindexedEntriesRequest>,
    ) -> Result<Response<v1::ListUnindexedEntriesResponse>, Status> {
        answer(async {
            let principal = self.authenticated(&request)?;
            principal.require(Role::Indexer)?;
            let v1::ListUnindexedEntriesRequest { limit, cursor } = request.into_inner();
            let after = decode::given("cursor", cursor.unwrap_or_default())?;
            let conversations = &self.app.services().conversations;
            let page = PageRequest { after, limit: decode::size(limit) };
            let list = conversations.unindexed(&principal, page).await?;
            let list = list.map(|entry| v1::UnindexedEntry {
                conversation_id: encode::id(entry.conversation_id),
                entry: Some(encode::entry(entry)),
            });
            Ok(v1::ListUnindexedEntriesResponse { entries: list.data, cursor: list.after })
        })
        .await
    }
}

fn index_item(item: v1::IndexEntryRequest) -> CoreResult<IndexItem> {
    Ok(IndexItem {
        conversation_id: decode::id("conversation_id", &item.conversation_id)?.map(ConversationId),
        entry_id: decode::id("entry_id", &item.entry_id)?.map(EntryId),
        indexed_content: Some(item.indexed_content),
    })
}

/// Both types together are what `auto` does.
fn search_type(asked: &[String]) -> CoreResult<SearchType> {
    let mut chosen = None;
    for text in asked {
        let words = wire::SearchType::WORDS;
        let one = extract::word("search_type", Some(text.clone()), wire::SearchType::parse, words)?;
        let one = rest::search::search_type(one);
        chosen = match chosen {
            None => Some(one),
            Some(other) if other == one => Some(one),
            Some(_) => Some(SearchType::Auto),
        };
    }
    Ok(chosen.unwrap_or(SearchType::Auto))
}
