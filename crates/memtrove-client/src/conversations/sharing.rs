//! Who else may see a conversation, and whose it becomes.

use super::{AccessLevel, ConversationMembership, OwnershipTransfer, Page, PageRequest, TransferRole};
use crate::paging::listed;
use crate::{Client, ConversationId, Result, TransferId, operations};
use futures_util::Stream;
use memtrove_wire::{CreateOwnershipTransferRequest, ShareConversationRequest, UpdateMembershipRequest};

/// Which ownership transfers to list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ListTransfers {
    /// From which side; both unless said otherwise.
    pub role: Option<TransferRole>,
    /// Which part of the list.
    pub page: PageRequest,
}

impl Client {
    /// Lists who may see a conversation.
    pub async fn list_memberships(
        &self,
        id: ConversationId,
        page: PageRequest,
    ) -> Result<Page<ConversationMembership>> {
        self.call(&operations::LIST_MEMBERSHIPS, &[&id.to_string()])?.page(page).receive().await
    }

    /// Lists who may see a conversation to the last one, asking for more as they are taken.
    pub fn list_memberships_all(
        &self,
        id: ConversationId,
        page: PageRequest,
    ) -> impl Stream<Item = Result<ConversationMembership>> + Send + use<> {
        let client = self.clone();
        listed(page, move |page| {
            let client = client.clone();
            async move { client.list_memberships(id, page).await }
        })
    }

    /// Lets somebody into a conversation and its whole tree.
    pub async fn share_conversation(
        &self,
        id: ConversationId,
        user: &str,
        access_level: AccessLevel,
    ) -> Result<ConversationMembership> {
        let request =
            ShareConversationRequest { user_id: Some(user.to_owned()), access_level: Some(access_level) };
        self.call(&operations::SHARE_CONVERSATION, &[&id.to_string()])?.json(&request)?.receive().await
    }

    /// Changes what somebody may do.
    pub async fn update_membership(
        &self,
        id: ConversationId,
        user: &str,
        access_level: AccessLevel,
    ) -> Result<ConversationMembership> {
        let request = UpdateMembershipRequest { access_level: Some(access_level) };
        self.call(&operations::UPDATE_MEMBERSHIP, &[&id.to_string(), user])?.json(&request)?.receive().await
    }

    /// Takes somebody out again, or leaves.
    pub async fn delete_membership(&self, id: ConversationId, user: &str) -> Result<()> {
        self.call(&operations::DELETE_MEMBERSHIP, &[&id.to_string(), user])?.finish().await
    }

    /// Lists the ownership transfers that the caller offered or was offered.
    pub async fn list_transfers(&self, request: ListTransfers) -> Result<Page<OwnershipTransfer>> {
        self.call(&operations::LIST_TRANSFERS, &[])?
            .query("role", request.role.map(TransferRole::as_str))
            .page(request.page)
            .receive()
            .await
    }

    /// Lists ownership transfers to the last one, asking for more as they are taken.
    pub fn list_transfers_all(
        &self,
        request: ListTransfers,
    ) -> impl Stream<Item = Result<OwnershipTransfer>> + Send + use<> {
        let client = self.clone();
        listed(request.page.clone(), move |page| {
            let (client, request) = (client.clone(), request.clone());
            async move { client.list_transfers(ListTransfers { page, ..request }).await }
        })
    }

    /// Offers a conversation's tree to one of its members.
    pub async fn create_transfer(&self, id: ConversationId, new_owner: &str) -> Result<OwnershipTransfer> {
        let request = CreateOwnershipTransferRequest {
            conversation_id: Some(id),
            new_owner_user_id: Some(new_owner.to_owned()),
        };
        self.call(&operations::CREATE_TRANSFER, &[])?.json(&request)?.receive().await
    }

    /// Reads an ownership transfer.
    pub async fn get_transfer(&self, id: TransferId) -> Result<OwnershipTransfer> {
        self.call(&operations::GET_TRANSFER, &[&id.to_string()])?.receive().await
    }

    /// Withdraws an ownership transfer, or declines it.
    pub async fn delete_transfer(&self, id: TransferId) -> Result<()> {
        self.call(&operations::DELETE_TRANSFER, &[&id.to_string()])?.finish().await
    }

    /// Accepts an ownership transfer: the caller is the owner from now on.
    pub async fn accept_transfer(&self, id: TransferId) -> Result<()> {
        self.call(&operations::ACCEPT_TRANSFER, &[&id.to_string()])?.finish().await
    }
}
