//! `ConversationsService`: making, reading, listing, renaming, deleting, forking.

use super::{Calls, answer, decode, encode};
use memtrove_core::conversations::ListMode;
use memtrove_core::{ConversationId, EntryId};
use memtrove_proto::v1;
use memtrove_proto::v1::conversations_service_server::ConversationsService;
use memtrove_service::PageRequest;
use memtrove_service::conversations::{CreateConversation, ListConversations};
use tonic::{Request, Response, Status};

#[tonic::async_trait]
impl ConversationsService for Calls {
    async fn list_conversations(
        &self,
        request: Request<v1::ListConversationsRequest>,
    ) -> Result<Response<v1::ListConversationsResponse>, Status> {
        answer(async {
            let caller = self.user(&request)?;
            let v1::ListConversationsRequest { mode, query, page } = request.into_inner();
            let mode = match decode::word("mode", mode)? {
                v1::ConversationListMode::All => ListMode::All,
                v1::ConversationListMode::Roots => ListMode::Roots,
                v1::ConversationListMode::Unspecified | v1::ConversationListMode::LatestFork => {
                    ListMode::LatestFork
                }
            };
            let query = decode::given("query", query)?;
            let PageRequest { after, limit } = decode::page_after_id(page)?.map(ConversationId);
            let list = ListConversations { mode, after, limit, query };
            let list = self.app.services().conversations.list(&caller, list).await?;
            let (conversations, page_info) = encode::page(list, encode::summary);
            Ok(v1::ListConversationsResponse { conversations, page_info })
        })
        .await
    }

    async fn create_conversation(
        &self,
        request: Request<v1::CreateConversationRequest>,
    ) -> Result<Response<v1::Conversation>, Status> {
        answer(async {
            let caller = self.user(&request)?;
            let v1::CreateConversationRequest { title, metadata } = request.into_inner();
            let metadata = metadata.map(|metadata| decode::object("metadata", &metadata)).transpose()?;
            let new = CreateConversation { title: Some(title), metadata };
            let made = self.app.services().conversations.create(&caller, new).await?;
            Ok(encode::conversation(made))
        })
        .await
    }

    async fn get_conversation(
        &self,
        request: Request<v1::GetConversationRequest>,
    ) -> Result<Response<v1::Conversation>, Status> {
        answer(async {
            let caller = self.user(&request)?;
            let id = decode::conversation_id(&request.get_ref().conversation_id)?;
            let found = self.app.services().conversations.get(&caller, id).await?;
            Ok(encode::conversation_with_metadata(found))
        })
        .await
    }

    async fn update_conversation(
        &self,
        request: Request<v1::UpdateConversationRequest>,
    ) -> Result<Response<v1::Conversation>, Status> {
        answer(async {
            let caller = self.user(&request)?;
            let v1::UpdateConversationRequest { conversation_id, title } = request.into_inner();
            let id = decode::conversation_id(&conversation_id)?;
            let renamed = self.app.services().conversations.rename(&caller, id, title.map(Some)).await?;
            Ok(encode::conversation(renamed))
        })
        .await
    }

    async fn delete_conversation(
        &self,
        request: Request<v1::DeleteConversationRequest>,
    ) -> Result<Response<()>, Status> {
        answer(async {
            let caller = self.user(&request)?;
            let id = decode::conversation_id(&request.get_ref().conversation_id)?;
            self.app.services().conversations.delete(&caller, id).await
        })
        .await
    }

    async fn fork_conversation(
        &self,
        request: Request<v1::ForkConversationRequest>,
    ) -> Result<Response<v1::Conversation>, Status> {
        answer(async {
            let caller = self.user(&request)?;
            let v1::ForkConversationRequest { conversation_id, entry_id, title } = request.into_inner();
            let id = decode::conversation_id(&conversation_id)?;
            let entry = EntryId(decode::required_id("entry_id", &entry_id)?);
            let fork = self.app.services().conversations.fork(&caller, id, entry, Some(title)).await?;
            Ok(encode::conversation(fork))
        })
        .await
    }

    async fn list_forks(
        &self,
        request: Request<v1::ListForksRequest>,
    ) -> Result<Response<v1::ListForksResponse>, Status> {
        answer(async {
            let caller = self.user(&request)?;
            let v1::ListForksRequest { conversation_id, page } = request.into_inner();
            let id = decode::conversation_id(&conversation_id)?;
            let page = decode::page_after_id(page)?.map(ConversationId);
            let list = self.app.services().conversations.list_forks(&caller, id, page).await?;
            let (forks, page_info) = encode::page(list, encode::fork);
            Ok(v1::ListForksResponse { forks, page_info })
        })
        .await
    }
}
