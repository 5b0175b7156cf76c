//! Every conversation of the tenant.

use super::{Admin, AdminConversation, AdminConversationSummary, AdminEntry, AdminSearchRequest};
use crate::conversations::{
    ChannelFilter, ConversationForkSummary, ConversationMembership, EntriesPage, Forks, ListMode, Page,
    PageRequest, SearchPage,
};
use crate::paging::{listed, pages};
use crate::{ConversationId, EntryId, Result, Timestamp, operations};
use futures_util::Stream;
use serde_json::json;

/// Which conversations of the tenant to list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ListAdminConversations {
    /// Which of each fork tree.
    pub mode: Option<ListMode>,
    /// Only trees this user owns.
    pub user_id: Option<String>,
    /// Deleted ones too.
    pub include_deleted: Option<bool>,
    /// Deleted ones only.
    pub only_deleted: Option<bool>,
    /// Deleted at or after.
    pub deleted_after: Option<Timestamp>,
    /// Deleted before.
    pub deleted_before: Option<Timestamp>,
    /// Which part of the list.
    pub page: PageRequest,
}

/// Which entries of any conversation to list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ListAdminEntries {
    /// Which stream.
    pub channel: Option<ChannelFilter>,
    /// Which epoch of the memory: a number, `latest` or `all`.
    pub epoch: Option<String>,
    /// Only newer than this entry.
    pub after: Option<EntryId>,
    /// The most entries.
    pub limit: Option<u32>,
    /// Which branches.
    pub forks: Option<Forks>,
}

impl Admin {
    /// Lists conversations of the tenant.
    pub async fn list_conversations(
        &self,
        request: ListAdminConversations,
    ) -> Result<Page<AdminConversationSummary>> {
        self.call(&operations::ADMIN_LIST_CONVERSATIONS, &[])?
            .query("mode", request.mode.map(ListMode::as_str))
            .query("userId", request.user_id)
            .query("includeDeleted", request.include_deleted)
            .query("onlyDeleted", request.only_deleted)
            .query("deletedAfter", request.deleted_after)
            .query("deletedBefore", request.deleted_before)
            .page(request.page)
            .receive()
            .await
    }

    /// Lists conversations of the tenant to the last one, asking for more as they are taken.
    pub fn list_conversations_all(
        &self,
        request: ListAdminConversations,
    ) -> impl Stream<Item = Result<AdminConversationSummary>> + Send + use<> {
        let admin = self.clone();
        listed(request.page.clone(), move |page| {
            let (admin, request) = (admin.clone(), request.clone());
            async move { admin.list_conversations(ListAdminConversations { page, ..request }).await }
        })
    }

    /// Reads a conversation, also a deleted one.
    pub async fn get_conversation(&self, id: ConversationId) -> Result<AdminConversation> {
        self.call(&operations::ADMIN_GET_CONVERSATION, &[&id.to_string()])?.receive().await
    }

    /// Deletes a conversation together with every fork of its tree.
    pub async fn delete_conversation(&self, id: ConversationId) -> Result<()> {
        self.call(&operations::ADMIN_DELETE_CONVERSATION, &[&id.to_string()])?
            .json(&json!({}))?
            .finish()
            .await
    }

    /// Restores a deleted conversation and its tree.
    pub async fn restore_conversation(&self, id: ConversationId) -> Result<AdminConversation> {
        self.call(&operations::RESTORE_CONVERSATION, &[&id.to_string()])?.json(&json!({}))?.receive().await
    }

    /// Lists the entries of a conversation, of every agent.
    pub async fn list_entries(
        &self,
        id: ConversationId,
        request: ListAdminEntries,
    ) -> Result<EntriesPage<AdminEntry>> {
        self.call(&operations::ADMIN_LIST_ENTRIES, &[&id.to_string()])?
            .query("channel", request.channel.map(ChannelFilter::as_str))
            .query("epoch", request.epoch)
            .query("after", request.after)
            .query("limit", request.limit)
            .query("forks", request.forks.map(Forks::as_str))
            .receive()
            .await
    }

    /// Lists the entries of a conversation to the newest, asking for more as they are taken.
    pub fn list_entries_all(
        &self,
        id: ConversationId,
        request: ListAdminEntries,
    ) -> impl Stream<Item = Result<AdminEntry>> + Send + use<> {
        let admin = self.clone();
        pages(request.after, move |after| {
            let (admin, request) = (admin.clone(), request.clone());
            async move {
                let page = admin.list_entries(id, ListAdminEntries { after, ..request }).await?;
                Ok((page.data, page.after_cursor))
            }
        })
    }

    /// Lists every conversation of the tree.
    pub async fn list_forks(
        &self,
        id: ConversationId,
        page: PageRequest,
    ) -> Result<Page<ConversationForkSummary>> {
        self.call(&operations::ADMIN_LIST_FORKS, &[&id.to_string()])?.page(page).receive().await
    }

    /// Lists the conversations of the tree to the last one, asking for more as they are taken.
    pub fn list_forks_all(
        &self,
        id: ConversationId,
        page: PageRequest,
    ) -> impl Stream<Item = Result<ConversationForkSummary>> + Send + use<> {
        let admin = self.clone();
        listed(page, move |page| {
            let admin = admin.clone();
            async move { admin.list_forks(id, page).await }
        })
    }

    /// Lists who may see a conversation.
    pub async fn list_memberships(
        &self,
        id: ConversationId,
        page: PageRequest,
    ) -> Result<Page<ConversationMembership>> {
        self.call(&operations::ADMIN_LIST_MEMBERSHIPS, &[&id.to_string()])?.page(page).receive().await
    }

    /// Lists who may see a conversation to the last one, asking for more as they are taken.
    pub fn list_memberships_all(
        &self,
        id: ConversationId,
        page: PageRequest,
    ) -> impl Stream<Item = Result<ConversationMembership>> + Send + use<> {
        let admin = self.clone();
        listed(page, move |page| {
            let admin = admin.clone();
            async move { admin.list_memberships(id, page).await }
        })
    }

    /// Searches every conversation of the tenant.
    pub async fn search_conversations(&self, request: AdminSearchRequest) -> Result<SearchPage<AdminEntry>> {
        self.call(&operations::ADMIN_SEARCH_CONVERSATIONS, &[])?.json(&request)?.receive().await
    }
}
