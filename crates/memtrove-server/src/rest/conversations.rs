//! `/v1/conversations`: making, reading, listing, renaming, deleting, forking.

use super::App;
use super::error::ApiError;
use super::extract::{self, Body, Query, Segments, User};
use super::reply::{Created, Ok200, page};
use axum::extract::State;
use http::StatusCode;
use memtrove_core::{ConversationId, Error};
use memtrove_service::PageRequest;
use memtrove_service::conversations::{CreateConversation, ListConversations};
use memtrove_wire as wire;
use serde::Deserialize;
use utoipa::IntoParams;

#[derive(Deserialize, IntoParams)]
#[serde(rename_all = "camelCase")]
#[into_params(parameter_in = Query)]
pub(super) struct ConversationsQuery {
    /// Which conversations of each fork tree; `latest-fork` unless said otherwise.
    #[param(value_type = Option<wire::ListMode>)]
    mode: Option<String>,
    /// The cursor of the page before.
    #[param(value_type = Option<uuid::Uuid>)]
    after: Option<String>,
    /// The same, by another name.
    #[param(value_type = Option<uuid::Uuid>)]
    after_cursor: Option<String>,
    /// The size of the page; 20 unless said otherwise.
    #[param(value_type = Option<i64>, minimum = 1, maximum = 200)]
    limit: Option<String>,
    /// Only those with this text in their title or metadata.
    #[param(max_length = 1000)]
    query: Option<String>,
}

/// Lists the conversations the caller can see, most recently updated first.
#[utoipa::path(get, path = "/v1/conversations", tag = "conversations", params(ConversationsQuery),
    responses((status = 200, description = "A page of conversations", body = wire::Page<wire::ConversationSummary>)))]
pub(super) async fn list_conversations(
    User(caller): User,
    Query(query): Query<ConversationsQuery>,
    State(app): State<App>,
) -> Result<Ok200<wire::Page<wire::ConversationSummary>>, ApiError> {
    let mode = extract::word("mode", query.mode, wire::ListMode::parse, wire::ListMode::WORDS)?;
    let after = extract::cursor([("after", query.after), ("afterCursor", query.after_cursor)])?;
    let request = ListConversations {
        mode: mode.map(Into::into).unwrap_or_default(),
        after: extract::uuid("after", after)?.map(ConversationId),
        limit: extract::number("limit", query.limit)?,
        query: extract::given("query", query.query)?,
    };
    let list = app.0.services.conversations.list(&caller, request).await?;
    Ok(Ok200(page(list, Into::into)))
}

/// Makes a conversation that the caller owns.
#[utoipa::path(post, path = "/v1/conversations", tag = "conversations",
    request_body = wire::CreateConversationRequest,
    responses((status = 201, description = "The conversation", body = wire::Conversation)))]
pub(super) async fn create_conversation(
    User(caller): User,
    State(app): State<App>,
    body: Body,
) -> Result<Created<wire::Conversation>, ApiError> {
    let request: wire::CreateConversationRequest = body.object()?;
    let new = CreateConversation { title: request.title, metadata: request.metadata };
    let conversation = app.0.services.conversations.create(&caller, new).await?;
    Ok(Created(conversation.into()))
}

/// Reads a conversation.
#[utoipa::path(get, path = "/v1/conversations/{conversationId}", tag = "conversations",
    params(("conversationId" = uuid::Uuid, Path, description = "The conversation")),
    responses((status = 200, description = "The conversation", body = wire::Conversation)))]
pub(super) async fn get_conversation(
    User(caller): User,
    Segments(id): Segments<String>,
    State(app): State<App>,
) -> Result<Ok200<wire::Conversation>, ApiError> {
    let conversation = app.0.services.conversations.get(&caller, extract::conversation_id(&id)?).await?;
    Ok(Ok200(wire::Conversation::with_metadata(conversation)))
}

/// Changes the title of a conversation.
#[utoipa::path(patch, path = "/v1/conversations/{conversationId}", tag = "conversations",
    params(("conversationId" = uuid::Uuid, Path, description = "The conversation")),
    request_body = wire::UpdateConversationRequest,
    responses((status = 200, description = "The conversation", body = wire::Conversation)))]
pub(super) async fn update_conversation(
    User(caller): User,
    Segments(id): Segments<String>,
    State(app): State<App>,
    body: Body,
) -> Result<Ok200<wire::Conversation>, ApiError> {
    let id = extract::conversation_id(&id)?;
    let request: wire::UpdateConversationRequest = body.object()?;
    Ok(Ok200(app.0.services.conversations.rename(&caller, id, request.title).await?.into()))
}

/// Deletes a conversation together with every fork of its tree.
#[utoipa::path(delete, path = "/v1/conversations/{conversationId}", tag = "conversations",
    params(("conversationId" = uuid::Uuid, Path, description = "Any conversation of the tree")),
    responses((status = 204, description = "Deleted")))]
pub(super) async fn delete_conversation(
    User(caller): User,
    Segments(id): Segments<String>,
    State(app): State<App>,
) -> Result<StatusCode, ApiError> {
    app.0.services.conversations.delete(&caller, extract::conversation_id(&id)?).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Forks a conversation at an entry: the fork sees everything before that entry.
#[utoipa::path(post, path = "/v1/conversations/{conversationId}/entries/{entryId}/fork", tag = "conversations",
    params(("conversationId" = uuid::Uuid, Path, description = "The parent"),
        ("entryId" = uuid::Uuid, Path, description = "The first entry the fork does not see")),
    request_body(content = Option<wire::ForkFromEntryRequest>),
    responses((status = 201, description = "The fork", body = wire::Conversation)))]
pub(super) async fn fork_conversation(
    User(caller): User,
    Segments((id, entry)): Segments<(String, String)>,
    State(app): State<App>,
    body: Body,
) -> Result<Created<wire::Conversation>, ApiError> {
    let id = extract::conversation_id(&id)?;
    let request: Option<wire::ForkFromEntryRequest> = body.optional_object()?;
    let conversations = &app.0.services.conversations;
    let entry = match extract::entry_id(&entry) {
        Ok(entry) => entry,
        // A caller without access learns that, not whether an entry exists.
        Err(missing) => {
            conversations.require_writer(&caller, id).await?;
            return Err(missing.into());
        }
    };
    let fork = conversations.fork(&caller, id, entry, request.and_then(|request| request.title)).await?;
    Ok(Created(fork.into()))
}

#[derive(Deserialize, IntoParams)]
#[serde(rename_all = "camelCase")]
#[into_params(parameter_in = Query)]
pub(super) struct ForksQuery {
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

impl ForksQuery {
    fn read(self) -> Result<PageRequest<ConversationId>, Error> {
        let after = extract::cursor([("after", self.after), ("afterCursor", self.after_cursor)])?;
        let after = extract::uuid("after", after)?.map(ConversationId);
        Ok(PageRequest { after, limit: extract::number("limit", self.limit)? })
    }
}

/// Lists every conversation of the tree, the root and the one asked for included.
#[utoipa::path(get, path = "/v1/conversations/{conversationId}/forks", tag = "conversations",
    params(("conversationId" = uuid::Uuid, Path, description = "Any conversation of the tree"), ForksQuery),
    responses((status = 200, description = "A page of the tree", body = wire::Page<wire::ConversationForkSummary>)))]
pub(super) async fn list_forks(
    User(caller): User,
    Segments(id): Segments<String>,
    Query(query): Query<ForksQuery>,
    State(app): State<App>,
) -> Result<Ok200<wire::Page<wire::ConversationForkSummary>>, ApiError> {
    let id = extract::conversation_id(&id)?;
    let forks = app.0.services.conversations.list_forks(&caller, id, query.read()?).await?;
    Ok(Ok200(page(forks, Into::into)))
}
