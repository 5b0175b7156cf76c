//! Conversations themselves, and their forks.

use super::{
    Conversation, ConversationForkSummary, ConversationSummary, CreateConversationRequest,
    ForkFromEntryRequest, ListMode, Page,
};
use crate::paging::{listed, pages};
use crate::{Client, ConversationId, EntryId, Result, operations};
use futures_util::Stream;
use memtrove_wire::UpdateConversationRequest;

/// Which part of a list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PageRequest {
    /// The cursor of the page before.
    pub after: Option<String>,
    /// The most items.
    pub limit: Option<u32>,
}

/// Which conversations to list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ListConversations {
    /// Which of each fork tree; the most recently updated one unless said otherwise.
    pub mode: Option<ListMode>,
    /// Only those whose title contains this.
    pub query: Option<String>,
    /// The cursor of the page before.
    pub after: Option<String>,
    /// The most conversations.
    pub limit: Option<u32>,
}

impl Client {
    /// Lists the conversations the caller can see, most recently updated first.
    pub async fn list_conversations(&self, request: ListConversations) -> Result<Page<ConversationSummary>> {
        self.call(&operations::LIST_CONVERSATIONS, &[])?
            .query("mode", request.mode.map(ListMode::as_str))
            .query("query", request.query)
            .query("after", request.after)
            .query("limit", request.limit)
            .receive()
            .await
    }

    /// Lists conversations to the last one, asking for more as they are taken.
    pub fn list_conversations_all(
        &self,
        request: ListConversations,
    ) -> impl Stream<Item = Result<ConversationSummary>> + Send + use<> {
        let client = self.clone();
        pages(request.after.clone(), move |after| {
            let (client, request) = (client.clone(), request.clone());
            async move {
                let page = client.list_conversations(ListConversations { after, ..request }).await?;
                Ok((page.data, page.after_cursor))
            }
        })
    }

    /// Makes a conversation that the caller owns.
    pub async fn create_conversation(&self, request: CreateConversationRequest) -> Result<Conversation> {
        self.call(&operations::CREATE_CONVERSATION, &[])?.json(&request)?.receive().await
    }

    /// Reads a conversation.
    pub async fn get_conversation(&self, id: ConversationId) -> Result<Conversation> {
        self.call(&operations::GET_CONVERSATION, &[&id.to_string()])?.receive().await
    }

    /// Changes the title of a conversation; none clears it.
    pub async fn update_conversation(
        &self,
        id: ConversationId,
        title: Option<String>,
    ) -> Result<Conversation> {
        let request = UpdateConversationRequest { title: Some(title) };
        self.call(&operations::UPDATE_CONVERSATION, &[&id.to_string()])?.json(&request)?.receive().await
    }

    /// Deletes a conversation together with every fork of its tree.
    pub async fn delete_conversation(&self, id: ConversationId) -> Result<()> {
        self.call(&operations::DELETE_CONVERSATION, &[&id.to_string()])?.finish().await
    }

    /// Forks a conversation at an entry: the fork sees everything before that entry.
    pub async fn fork_conversation(
        &self,
        id: ConversationId,
        at: EntryId,
        request: ForkFromEntryRequest,
    ) -> Result<Conversation> {
        let names = [id.to_string(), at.to_string()];
        self.call(&operations::FORK_CONVERSATION, &names.each_ref().map(String::as_str))?
            .json(&request)?
            .receive()
            .await
    }

    /// Lists every conversation of the tree, the root and the one asked for included.
    pub async fn list_forks(
        &self,
        id: ConversationId,
        page: PageRequest,
    ) -> Result<Page<ConversationForkSummary>> {
        self.call(&operations::LIST_FORKS, &[&id.to_string()])?.page(page).receive().await
    }

    /// Lists the conversations of the tree to the last one, asking for more as they are taken.
    pub fn list_forks_all(
        &self,
        id: ConversationId,
        page: PageRequest,
    ) -> impl Stream<Item = Result<ConversationForkSummary>> + Send + use<> {
        let client = self.clone();
        listed(page, move |page| {
            let client = client.clone();
            async move { client.list_forks(id, page).await }
        })
    }
}
