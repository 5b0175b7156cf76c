//! `/v1/conversations/{id}/entries`: reading, appending, syncing.

use super::App;
use super::error::ApiError;
use super::extract::{self, Body, Query, Segments, User};
use super::reply::{Created, Ok200, RenderedJson};
use axum::extract::State;
use http::HeaderMap;
use memtrove_core::{EntryId, Error, Result as CoreResult};
use memtrove_service::conversations::{
    AppendRequest, ChannelFilter, EntryPage, EpochFilter, Idempotency, ListEntries, SyncOutcome,
};
use memtrove_wire as wire;
use serde::Deserialize;
use utoipa::IntoParams;

#[derive(Deserialize, IntoParams)]
#[serde(rename_all = "camelCase")]
#[into_params(parameter_in = Query)]
pub(super) struct EntriesQuery {
    /// `history` unless said otherwise; `memory` and `all` need an API key.
    #[param(value_type = Option<wire::ChannelFilter>)]
    channel: Option<String>,
    /// For the memory channel: `latest` (unless said otherwise), `all`, or a number.
    epoch: Option<String>,
    /// Go on after this entry.
    #[param(value_type = Option<uuid::Uuid>)]
    after: Option<String>,
    /// The same, by another name.
    #[param(value_type = Option<uuid::Uuid>)]
    after_cursor: Option<String>,
    /// The same, by yet another name.
    #[param(value_type = Option<uuid::Uuid>)]
    after_entry_id: Option<String>,
    /// The page that ends right before this entry.
    #[param(value_type = Option<uuid::Uuid>)]
    before: Option<String>,
    /// The same, by another name.
    #[param(value_type = Option<uuid::Uuid>)]
    before_cursor: Option<String>,
    /// The newest page.
    #[param(value_type = Option<bool>)]
    tail: Option<String>,
    /// Only entries up to this one.
    #[param(value_type = Option<uuid::Uuid>)]
    up_to_entry_id: Option<String>,
    /// The size of the page; 50 unless said otherwise. At most 200, or 1000 of the memory channel.
    #[param(value_type = Option<i64>, minimum = 1, maximum = 1000)]
    limit: Option<String>,
    /// `none` (unless said otherwise) follows one branch, `all` shows the whole tree.
    #[param(value_type = Option<wire::Forks>)]
    forks: Option<String>,
    /// The same as `forks=all`.
    #[param(value_type = Option<bool>)]
    all_forks: Option<String>,
}

/// Lists the entries visible on a conversation, oldest first.
#[utoipa::path(get, path = "/v1/conversations/{conversationId}/entries", tag = "entries",
    params(("conversationId" = uuid::Uuid, Path, description = "The conversation"), EntriesQuery),
    responses((status = 200, description = "A page of entries", body = wire::EntriesPage<wire::Entry>)))]
pub(super) async fn list_entries(
    User(caller): User,
    Segments(id): Segments<String>,
    Query(query): Query<EntriesQuery>,
    State(app): State<App>,
) -> Result<RenderedJson, ApiError> {
    let id = extract::conversation_id(&id)?;
    let page = app.0.services.conversations.list_entries(&caller, id, query.read()?).await?;
    Ok(RenderedJson(entries_page::<wire::Entry>(page).to_json()))
}

impl EntriesQuery {
    fn read(self) -> CoreResult<ListEntries> {
        let channel =
            extract::word("channel", self.channel, wire::ChannelFilter::parse, wire::ChannelFilter::WORDS)?;
        let channel = match channel {
            None | Some(wire::ChannelFilter::History) => ChannelFilter::History,
            Some(wire::ChannelFilter::Memory) => ChannelFilter::Memory,
            Some(wire::ChannelFilter::All) => ChannelFilter::All,
        };
        let after = extract::cursor([
            ("after", self.after),
            ("afterCursor", self.after_cursor),
            ("afterEntryId", self.after_entry_id),
        ])?;
        let before = extract::cursor([("before", self.before), ("beforeCursor", self.before_cursor)])?;
        Ok(ListEntries {
            channel,
            epoch: epoch(self.epoch, channel == ChannelFilter::Memory)?,
            all_forks: all_forks(self.forks, self.all_forks)?,
            after: extract::uuid("after", after)?.map(EntryId),
            before: extract::uuid("before", before)?.map(EntryId),
            tail: extract::flag("tail", self.tail)?,
            up_to: extract::uuid("upToEntryId", self.up_to_entry_id)?.map(EntryId),
            limit: extract::number("limit", self.limit)?,
        })
    }
}

/// Reads an epoch; outside the memory channel it is ignored.
pub(crate) fn epoch(value: Option<String>, counts: bool) -> CoreResult<EpochFilter> {
    match extract::given("epoch", value)? {
        Some(text) if counts => match text.to_ascii_lowercase().as_str() {
            "latest" => Ok(EpochFilter::Latest),
            "all" => Ok(EpochFilter::All),
            number => number
                .parse()
                .map(EpochFilter::Number)
                .map_err(|_| Error::invalid("epoch", "must be latest, all or a whole number")),
        },
        _ => Ok(EpochFilter::Latest),
    }
}

pub(crate) fn all_forks(forks: Option<String>, all_forks: Option<String>) -> CoreResult<bool> {
    let forks = extract::word("forks", forks, wire::Forks::parse, wire::Forks::WORDS)?;
    Ok(extract::flag("allForks", all_forks)? || forks == Some(wire::Forks::All))
}

pub(super) fn entries_page<E: From<memtrove_core::conversations::Entry>>(
    page: EntryPage,
) -> wire::EntriesPage<E> {
    wire::EntriesPage {
        data: page.data.into_iter().map(E::from).collect(),
        after_cursor: page.after,
        before_cursor: page.before,
    }
}

/// Appends an entry, making the conversation if its id is unknown.
#[utoipa::path(post, path = "/v1/conversations/{conversationId}/entries", tag = "entries",
    params(("conversationId" = uuid::Uuid, Path, description = "The conversation; an unknown id makes one"),
        ("Idempotency-Key" = Option<String>, Header, description = "Makes a repetition within 24 hours return the first result", max_length = 128)),
    request_body = wire::CreateEntryRequest,
    responses((status = 201, description = "The entry", body = wire::Entry)))]
pub(super) async fn append_entry(
    User(caller): User,
    Segments(id): Segments<String>,
    State(app): State<App>,
    headers: HeaderMap,
    body: Body,
) -> Result<Created<wire::Entry>, ApiError> {
    let id = extract::conversation_id(&id)?;
    let request = append_request(body.object()?);
    let conversations = &app.0.services.conversations;
    let idempotency = extract::header(&headers, "Idempotency-Key")?
        .map(|key| Idempotency { key, body: conversations.request_digest(&caller, &body.0) });
    Ok(Created(conversations.append(&caller, id, request, idempotency).await?.into()))
}

/// Makes the stored memory of the calling agent equal to the content sent, writing only what is new.
#[utoipa::path(post, path = "/v1/conversations/{conversationId}/entries/sync", tag = "entries",
    params(("conversationId" = uuid::Uuid, Path, description = "The conversation; an unknown id makes one")),
    request_body = wire::CreateEntryRequest,
    responses((status = 200, description = "What was done", body = wire::SyncEntryResponse)))]
pub(super) async fn sync_entries(
    User(caller): User,
    Segments(id): Segments<String>,
    State(app): State<App>,
    body: Body,
) -> Result<Ok200<wire::SyncEntryResponse>, ApiError> {
    let id = extract::conversation_id(&id)?;
    let conversations = &app.0.services.conversations;
    let digest = conversations.request_digest(&caller, &body.0);
    let outcome = match conversations.sync_unchanged(&caller, id, digest).await? {
        Some(unchanged) => unchanged,
        None => conversations.sync(&caller, id, append_request(body.object()?), digest).await?,
    };
    let SyncOutcome { epoch, no_op, epoch_incremented, entry } = outcome;
    Ok(Ok200(wire::SyncEntryResponse { epoch, no_op, epoch_incremented, entry: entry.map(Into::into) }))
}

fn append_request(request: wire::CreateEntryRequest) -> AppendRequest {
    AppendRequest {
        user_id: request.user_id,
        channel: request.channel.map(Into::into),
        content_type: request.content_type,
        content: request.content,
        indexed_content: request.indexed_content,
        forked_at_conversation_id: request.forked_at_conversation_id,
        forked_at_entry_id: request.forked_at_entry_id,
    }
}
