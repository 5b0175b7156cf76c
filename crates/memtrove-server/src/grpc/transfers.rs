//! `OwnershipTransfersService`: handing a tree over.

use super::{Calls, answer, decode, encode};
use memtrove_core::{ConversationId, Result as CoreResult, TransferId};
use memtrove_proto::v1;
use memtrove_proto::v1::ownership_transfers_service_server::OwnershipTransfersService;
use memtrove_service::conversations::{NewTransfer, TransferRole};
use tonic::{Request, Response, Status};

#[tonic::async_trait]
impl OwnershipTransfersService for Calls {
    async fn list_ownership_transfers(
        &self,
        request: Request<v1::ListOwnershipTransfersRequest>,
    ) -> Result<Response<v1::ListOwnershipTransfersResponse>, Status> {
        answer(async {
            let caller = self.user(&request)?;
            let v1::ListOwnershipTransfersRequest { role, page } = request.into_inner();
            let role = match decode::word("role", role)? {
                v1::TransferRole::Unspecified => TransferRole::All,
                v1::TransferRole::Sender => TransferRole::Sender,
                v1::TransferRole::Recipient => TransferRole::Recipient,
            };
            let page = decode::page_after_id(page)?.map(TransferId);
            let list = self.app.services().conversations.list_transfers(&caller, role, page).await?;
            let (transfers, page_info) = encode::page(list, encode::transfer);
            Ok(v1::ListOwnershipTransfersResponse { transfers, page_info })
        })
        .await
    }

    async fn get_ownership_transfer(
        &self,
        request: Request<v1::GetOwnershipTransferRequest>,
    ) -> Result<Response<v1::OwnershipTransfer>, Status> {
        answer(async {
            let caller = self.user(&request)?;
            let id = transfer_id(&request.get_ref().transfer_id)?;
            Ok(encode::transfer(self.app.services().conversations.get_transfer(&caller, id).await?))
        })
        .await
    }

    async fn create_ownership_transfer(
        &self,
        request: Request<v1::CreateOwnershipTransferRequest>,
    ) -> Result<Response<v1::OwnershipTransfer>, Status> {
        answer(async {
            let caller = self.user(&request)?;
            let v1::CreateOwnershipTransferRequest { conversation_id, new_owner_user_id } =
                request.into_inner();
            let id = decode::id("conversation_id", &conversation_id)?.map(ConversationId);
            let new = NewTransfer::new(id, Some(new_owner_user_id))?;
            let transfer = self.app.services().conversations.create_transfer(&caller, new).await?;
            Ok(encode::transfer(transfer))
        })
        .await
    }

    async fn accept_ownership_transfer(
        &self,
        request: Request<v1::AcceptOwnershipTransferRequest>,
    ) -> Result<Response<()>, Status> {
        answer(async {
            let caller = self.user(&request)?;
            let id = transfer_id(&request.get_ref().transfer_id)?;
            self.app.services().conversations.accept_transfer(&caller, id).await
        })
        .await
    }

    async fn delete_ownership_transfer(
        &self,
        request: Request<v1::DeleteOwnershipTransferRequest>,
    ) -> Result<Response<()>, Status> {
        answer(async {
            let caller = self.user(&request)?;
            let id = transfer_id(&request.get_ref().transfer_id)?;
            self.app.services().conversations.delete_transfer(&caller, id).await
        })
        .await
    }
}

fn transfer_id(bytes: &[u8]) -> CoreResult<TransferId> {
    decode::required_id("transfer_id", bytes).map(TransferId)
}
