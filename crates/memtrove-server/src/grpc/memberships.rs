//! `ConversationMembershipsService`: sharing.

use super::{Calls, answer, decode, encode};
use memtrove_core::{Error, Result as CoreResult, UserId};
use memtrove_proto::v1;
use memtrove_proto::v1::conversation_memberships_service_server::ConversationMembershipsService;
use memtrove_service::conversations::MemberLevel;
use tonic::{Request, Response, Status};

#[tonic::async_trait]
impl ConversationMembershipsService for Calls {
    async fn list_memberships(
        &self,
        request: Request<v1::ListMembershipsRequest>,
    ) -> Result<Response<v1::ListMembershipsResponse>, Status> {
        answer(async {
            let caller = self.user(&request)?;
            let v1::ListMembershipsRequest { conversation_id, page } = request.into_inner();
            let id = decode::conversation_id(&conversation_id)?;
            let page = decode::page(page)?.map(UserId);
            let list = self.app.services().conversations.list_memberships(&caller, id, page).await?;
            let (memberships, page_info) = encode::page(list, |member| encode::membership(id, member));
            Ok(v1::ListMembershipsResponse { memberships, page_info })
        })
        .await
    }

    async fn share_conversation(
        &self,
        request: Request<v1::ShareConversationRequest>,
    ) -> Result<Response<v1::ConversationMembership>, Status> {
        answer(async {
            let caller = self.user(&request)?;
            let v1::ShareConversationRequest { conversation_id, user_id, access_level } =
                request.into_inner();
            let id = decode::conversation_id(&conversation_id)?;
            let member = MemberLevel::share(Some(user_id), decode::access_level(access_level)?)?;
            let member = self.app.services().conversations.share(&caller, id, member).await?;
            Ok(encode::membership(id, member))
        })
        .await
    }

    async fn update_membership(
        &self,
        request: Request<v1::UpdateMembershipRequest>,
    ) -> Result<Response<v1::ConversationMembership>, Status> {
        answer(async {
            let caller = self.user(&request)?;
            let v1::UpdateMembershipRequest { conversation_id, member_user_id, access_level } =
                request.into_inner();
            let id = decode::conversation_id(&conversation_id)?;
            let (user, level) = (member(member_user_id)?, decode::access_level(access_level)?);
            let member = MemberLevel::change(user, level)?;
            let member = self.app.services().conversations.update_membership(&caller, id, member).await?;
            Ok(encode::membership(id, member))
        })
        .await
    }

    async fn delete_membership(
        &self,
        request: Request<v1::DeleteMembershipRequest>,
    ) -> Result<Response<()>, Status> {
        answer(async {
            let caller = self.user(&request)?;
            let v1::DeleteMembershipRequest { conversation_id, member_user_id } = request.into_inner();
            let id = decode::conversation_id(&conversation_id)?;
            let user = member(member_user_id)?;
            self.app.services().conversations.delete_membership(&caller, id, user).await
        })
        .await
    }
}

/// The member a request is about. Over REST it is part of the path, which always names somebody.
fn member(user: String) -> CoreResult<UserId> {
    let field = "member_user_id";
    decode::given(field, user)?.map(UserId).ok_or_else(|| Error::invalid(field, "is required"))
}
