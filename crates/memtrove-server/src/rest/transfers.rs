//! `/v1/ownership-transfers`: handing a tree over.

use super::App;
use super::error::ApiError;
use super::extract::{self, Body, Query, Segments, User};
use super::reply::{Created, Ok200, page};
use axum::extract::State;
use http::StatusCode;
use memtrove_core::TransferId;
use memtrove_service::PageRequest;
use memtrove_service::conversations::{NewTransfer, TransferRole};
use memtrove_wire as wire;
use serde::Deserialize;
use utoipa::IntoParams;

#[derive(Deserialize, IntoParams)]
#[serde(rename_all = "camelCase")]
#[into_params(parameter_in = Query)]
pub(super) struct TransfersQuery {
    /// Which side the caller is on; `all` unless said otherwise.
    #[param(value_type = Option<wire::TransferRole>)]
    role: Option<String>,
    /// The cursor of the page before.
    #[param(value_type = Option<uuid::Uuid>)]
    after: Option<String>,
    /// The same, by another name.
    #[param(value_type = Option<uuid::Uuid>)]
    after_cursor: Option<String>,
    /// The size of the page; 50 unless said otherwise.
    #[param(value_type = Option<i64>, minimum = 1, maximum = 200)]
    limit: Option<String>,
}

/// Lists the pending transfers the caller takes part in.
#[utoipa::path(get, path = "/v1/ownership-transfers", tag = "ownership transfers", params(TransfersQuery),
    responses((status = 200, description = "A page of transfers", body = wire::Page<wire::OwnershipTransfer>)))]
pub(super) async fn list_transfers(
    User(caller): User,
    Query(query): Query<TransfersQuery>,
    State(app): State<App>,
) -> Result<Ok200<wire::Page<wire::OwnershipTransfer>>, ApiError> {
    let role = match extract::word("role", query.role, wire::TransferRole::parse, wire::TransferRole::WORDS)?
    {
        None | Some(wire::TransferRole::All) => TransferRole::All,
        Some(wire::TransferRole::Sender) => TransferRole::Sender,
        Some(wire::TransferRole::Recipient) => TransferRole::Recipient,
    };
    let after = extract::cursor([("after", query.after), ("afterCursor", query.after_cursor)])?;
    let after = extract::uuid("after", after)?.map(TransferId);
    let request = PageRequest { after, limit: extract::number("limit", query.limit)? };
    let transfers = app.0.services.conversations.list_transfers(&caller, role, request).await?;
    Ok(Ok200(page(transfers, Into::into)))
}

/// Offers the ownership of a tree to one of its members.
#[utoipa::path(post, path = "/v1/ownership-transfers", tag = "ownership transfers",
    request_body = wire::CreateOwnershipTransferRequest,
    responses((status = 201, description = "The transfer", body = wire::OwnershipTransfer)))]
pub(super) async fn create_transfer(
    User(caller): User,
    State(app): State<App>,
    body: Body,
) -> Result<Created<wire::OwnershipTransfer>, ApiError> {
    let request: wire::CreateOwnershipTransferRequest = body.object()?;
    let new = NewTransfer::new(request.conversation_id, request.new_owner_user_id)?;
    let transfer = app.0.services.conversations.create_transfer(&caller, new).await?;
    Ok(Created(transfer.into()))
}

/// Reads a transfer the caller takes part in.
#[utoipa::path(get, path = "/v1/ownership-transfers/{transferId}", tag = "ownership transfers",
    params(("transferId" = uuid::Uuid, Path, description = "The transfer")),
    responses((status = 200, description = "The transfer", body = wire::OwnershipTransfer)))]
pub(super) async fn get_transfer(
    User(caller): User,
    Segments(id): Segments<String>,
    State(app): State<App>,
) -> Result<Ok200<wire::OwnershipTransfer>, ApiError> {
    let transfer = app.0.services.conversations.get_transfer(&caller, extract::transfer_id(&id)?).await?;
    Ok(Ok200(transfer.into()))
}

/// Takes a transfer back (its sender) or turns it down (its recipient).
#[utoipa::path(delete, path = "/v1/ownership-transfers/{transferId}", tag = "ownership transfers",
    params(("transferId" = uuid::Uuid, Path, description = "The transfer")),
    responses((status = 204, description = "Ended")))]
pub(super) async fn delete_transfer(
    User(caller): User,
    Segments(id): Segments<String>,
    State(app): State<App>,
) -> Result<StatusCode, ApiError> {
    app.0.services.conversations.delete_transfer(&caller, extract::transfer_id(&id)?).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Accepts a transfer: the caller owns the tree, the former owner manages it.
#[utoipa::path(post, path = "/v1/ownership-transfers/{transferId}/accept", tag = "ownership transfers",
    params(("transferId" = uuid::Uuid, Path, description = "The transfer")),
    responses((status = 204, description = "Accepted")))]
pub(super) async fn accept_transfer(
    User(caller): User,
    Segments(id): Segments<String>,
    State(app): State<App>,
) -> Result<StatusCode, ApiError> {
    app.0.services.conversations.accept_transfer(&caller, extract::transfer_id(&id)?).await?;
    Ok(StatusCode::NO_CONTENT)
}
