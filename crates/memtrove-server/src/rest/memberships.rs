//! `/v1/conversations/{id}/memberships`: sharing.

use super::App;
use super::error::ApiError;
use super::extract::{self, Body, Query, Segments, User};
use super::reply::{Created, Ok200, page};
use axum::extract::State;
use http::StatusCode;
use memtrove_core::{Error, UserId};
use memtrove_service::PageRequest;
use memtrove_service::conversations::MemberLevel;
use memtrove_wire as wire;
use serde::Deserialize;
use utoipa::IntoParams;

#[derive(Deserialize, IntoParams)]
#[serde(rename_all = "camelCase")]
#[into_params(parameter_in = Query)]
pub(super) struct MembershipsQuery {
    /// The last user of the page before.
    after: Option<String>,
    /// The same, by another name.
    after_cursor: Option<String>,
    /// The size of the page; 50 unless said otherwise.
    #[param(value_type = Option<i64>, minimum = 1, maximum = 200)]
    limit: Option<String>,
}

impl MembershipsQuery {
    fn read(self) -> Result<PageRequest<UserId>, Error> {
        let after = extract::cursor([("after", self.after), ("afterCursor", self.after_cursor)])?.map(UserId);
        Ok(PageRequest { after, limit: extract::number("limit", self.limit)? })
    }
}

/// Lists the members of a conversation, who are those of its whole tree.
#[utoipa::path(get, path = "/v1/conversations/{conversationId}/memberships", tag = "sharing",
    params(("conversationId" = uuid::Uuid, Path, description = "The conversation"), MembershipsQuery),
    responses((status = 200, description = "A page of members", body = wire::Page<wire::ConversationMembership>)))]
pub(super) async fn list_memberships(
    User(caller): User,
    Segments(id): Segments<String>,
    Query(query): Query<MembershipsQuery>,
    State(app): State<App>,
) -> Result<Ok200<wire::Page<wire::ConversationMembership>>, ApiError> {
    let id = extract::conversation_id(&id)?;
    let members = app.0.services.conversations.list_memberships(&caller, id, query.read()?).await?;
    Ok(Ok200(page(members, |member| wire::ConversationMembership::of(id, member))))
}

/// Gives somebody access, or another level of it.
#[utoipa::path(post, path = "/v1/conversations/{conversationId}/memberships", tag = "sharing",
    params(("conversationId" = uuid::Uuid, Path, description = "The conversation")),
    request_body = wire::ShareConversationRequest,
    responses((status = 201, description = "The membership", body = wire::ConversationMembership)))]
pub(super) async fn share_conversation(
    User(caller): User,
    Segments(id): Segments<String>,
    State(app): State<App>,
    body: Body,
) -> Result<Created<wire::ConversationMembership>, ApiError> {
    let id = extract::conversation_id(&id)?;
    let request: wire::ShareConversationRequest = body.object()?;
    let member = MemberLevel::share(request.user_id, request.access_level.map(Into::into))?;
    let member = app.0.services.conversations.share(&caller, id, member).await?;
    Ok(Created(wire::ConversationMembership::of(id, member)))
}

/// Changes what a member may do.
#[utoipa::path(patch, path = "/v1/conversations/{conversationId}/memberships/{userId}", tag = "sharing",
    params(("conversationId" = uuid::Uuid, Path, description = "The conversation"),
        ("userId" = String, Path, description = "The member")),
    request_body = wire::UpdateMembershipRequest,
    responses((status = 200, description = "The membership", body = wire::ConversationMembership)))]
pub(super) async fn update_membership(
    User(caller): User,
    Segments((id, user)): Segments<(String, String)>,
    State(app): State<App>,
    body: Body,
) -> Result<Ok200<wire::ConversationMembership>, ApiError> {
    let id = extract::conversation_id(&id)?;
    let request: wire::UpdateMembershipRequest = body.object()?;
    let member = MemberLevel::change(UserId(user), request.access_level.map(Into::into))?;
    let member = app.0.services.conversations.update_membership(&caller, id, member).await?;
    Ok(Ok200(wire::ConversationMembership::of(id, member)))
}

/// Takes somebody's access away. Members may take away their own.
#[utoipa::path(delete, path = "/v1/conversations/{conversationId}/memberships/{userId}", tag = "sharing",
    params(("conversationId" = uuid::Uuid, Path, description = "The conversation"),
        ("userId" = String, Path, description = "The member")),
    responses((status = 204, description = "Removed")))]
pub(super) async fn delete_membership(
    User(caller): User,
    Segments((id, user)): Segments<(String, String)>,
    State(app): State<App>,
) -> Result<StatusCode, ApiError> {
    let id = extract::conversation_id(&id)?;
    app.0.services.conversations.delete_membership(&caller, id, UserId(user)).await?;
    Ok(StatusCode::NO_CONTENT)
}
