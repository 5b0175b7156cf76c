//! `/v1/admin`: everything in a tenant, for admins and auditors, with a reason and a trace.

use super::App;
use super::entries::{all_forks, entries_page, epoch};
use super::error::{ApiError, SearchTypeUnavailableBody};
use super::extract::{self, Authenticated, Body, Query, Segments};
use super::reply::{Ok200, page};
use super::search::{results, search_type, weights};
use super::stats::StatsResponse;
use axum::extract::State;
use axum::response::sse::{Event, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::Stream;
use http::{HeaderMap, StatusCode};
use memtrove_core::identity::Role;
use memtrove_core::{Code, ConversationId, EntryId, Error, Result as CoreResult, Timestamp, UserId};
use memtrove_service::Conversations;
use memtrove_service::PageRequest;
use memtrove_service::conversations::{
    AdminEntries, AdminList, AdminSearch, EvictRequest, Eviction, SearchRequest,
};
use memtrove_wire as wire;
use serde::Deserialize;
use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use utoipa::{IntoParams, ToSchema};

pub(super) const JUSTIFICATION_HEADER: &str = "X-Justification";

/// The reason for a call, from wherever it was given.
pub(super) fn justification(given: Option<String>, headers: &HeaderMap) -> CoreResult<Option<String>> {
    match extract::given("justification", given)? {
        Some(text) => Ok(Some(text)),
        None => extract::header(headers, JUSTIFICATION_HEADER),
    }
}

#[derive(Deserialize, IntoParams)]
#[serde(rename_all = "camelCase")]
#[into_params(parameter_in = Query)]
pub(super) struct AdminConversationsQuery {
    /// Which conversations of each fork tree; `latest-fork` unless said otherwise.
    #[param(value_type = Option<wire::ListMode>)]
    mode: Option<String>,
    /// Only those this user owns.
    #[param(max_length = 255)]
    user_id: Option<String>,
    /// Deleted ones too.
    #[param(value_type = Option<bool>)]
    include_deleted: Option<String>,
    /// Deleted ones and no others.
    #[param(value_type = Option<bool>)]
    only_deleted: Option<String>,
    /// Deleted at or after this instant.
    #[param(value_type = Option<String>, format = DateTime)]
    deleted_after: Option<String>,
    /// Deleted before this instant.
    #[param(value_type = Option<String>, format = DateTime)]
    deleted_before: Option<String>,
    /// The cursor of the page before.
    #[param(value_type = Option<uuid::Uuid>)]
    after: Option<String>,
    /// The same, by another name.
    #[param(value_type = Option<uuid::Uuid>)]
    after_cursor: Option<String>,
    /// The size of the page; 100 unless said otherwise.
    #[param(value_type = Option<i64>, minimum = 1, maximum = 1000)]
    limit: Option<String>,
    /// Why, for the audit log.
    #[param(max_length = 1000)]
    justification: Option<String>,
}

/// Lists the conversations of the tenant.
#[utoipa::path(get, path = "/v1/admin/conversations", operation_id = "admin_list_conversations", tag = "admin", params(AdminConversationsQuery),
    responses((status = 200, description = "A page of conversations", body = wire::Page<wire::AdminConversationSummary>)))]
pub(super) async fn list_conversations(
    Authenticated(principal): Authenticated,
    Query(query): Query<AdminConversationsQuery>,
    State(app): State<App>,
    headers: HeaderMap,
) -> Result<Ok200<wire::Page<wire::AdminConversationSummary>>, ApiError> {
    principal.require(Role::Auditor)?;
    let reason = justification(query.justification, &headers)?;
    let mode = extract::word("mode", query.mode, wire::ListMode::parse, wire::ListMode::WORDS)?;
    let after = extract::cursor([("after", query.after), ("afterCursor", query.after_cursor)])?;
    let request = AdminList {
        mode: mode.map(Into::into).unwrap_or_default(),
        owner: extract::given("userId", query.user_id)?,
        include_deleted: extract::flag("includeDeleted", query.include_deleted)?,
        only_deleted: extract::flag("onlyDeleted", query.only_deleted)?,
        deleted_after: instant("deletedAfter", query.deleted_after)?,
        deleted_before: instant("deletedBefore", query.deleted_before)?,
        after: extract::uuid("after", after)?.map(ConversationId),
        limit: extract::number("limit", query.limit)?,
    };
    let list = app.0.services.conversations.admin_list(&principal, request, reason.as_deref()).await?;
    Ok(Ok200(page(list, Into::into)))
}

fn instant(field: &str, value: Option<String>) -> CoreResult<Option<Timestamp>> {
    extract::given(field, value)?
        .map(|text| {
            // A plus sign in a query is a space once decoded; nobody means a space in a timestamp.
            Timestamp::parse(&text.replace(' ', "+")).ok_or_else(|| {
                Error::invalid(field, "must be an RFC 3339 timestamp such as 2026-01-31T12:00:00Z")
            })
        })
        .transpose()
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct ReasonQuery {
    /// Why, for the audit log.
    #[param(max_length = 1000)]
    pub(super) justification: Option<String>,
}

/// Reads any conversation, deleted or not.
#[utoipa::path(get, path = "/v1/admin/conversations/{conversationId}", operation_id = "admin_get_conversation", tag = "admin",
    params(("conversationId" = uuid::Uuid, Path, description = "The conversation"), ReasonQuery),
    responses((status = 200, description = "The conversation", body = wire::AdminConversation)))]
pub(super) async fn get_conversation(
    Authenticated(principal): Authenticated,
    Segments(id): Segments<String>,
    Query(query): Query<ReasonQuery>,
    State(app): State<App>,
    headers: HeaderMap,
) -> Result<Ok200<wire::AdminConversation>, ApiError> {
    principal.require(Role::Auditor)?;
    let reason = justification(query.justification, &headers)?;
    let id = extract::conversation_id(&id)?;
    let conversation = app.0.services.conversations.admin_get(&principal, id, reason.as_deref()).await?;
    Ok(Ok200(conversation.into()))
}

/// Deletes any conversation together with every fork of its tree.
#[utoipa::path(delete, path = "/v1/admin/conversations/{conversationId}", operation_id = "admin_delete_conversation", tag = "admin",
    params(("conversationId" = uuid::Uuid, Path, description = "Any conversation of the tree")),
    request_body(content = Option<wire::JustificationRequest>),
    responses((status = 204, description = "Deleted")))]
pub(super) async fn delete_conversation(
    Authenticated(principal): Authenticated,
    Segments(id): Segments<String>,
    State(app): State<App>,
    headers: HeaderMap,
    body: Body,
) -> Result<StatusCode, ApiError> {
    principal.require(Role::Admin)?;
    let request: Option<wire::JustificationRequest> = body.optional_object()?;
    let reason = justification(request.and_then(|request| request.justification), &headers)?;
    let id = extract::conversation_id(&id)?;
    app.0.services.conversations.admin_delete(&principal, id, reason.as_deref()).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Brings a deleted tree back, with all its members and entries.
#[utoipa::path(post, path = "/v1/admin/conversations/{conversationId}/restore", tag = "admin",
    params(("conversationId" = uuid::Uuid, Path, description = "Any conversation of the tree")),
    request_body(content = Option<wire::JustificationRequest>),
    responses((status = 200, description = "The conversation", body = wire::AdminConversation)))]
pub(super) async fn restore_conversation(
    Authenticated(principal): Authenticated,
    Segments(id): Segments<String>,
    State(app): State<App>,
    headers: HeaderMap,
    body: Body,
) -> Result<Ok200<wire::AdminConversation>, ApiError> {
    principal.require(Role::Admin)?;
    let request: Option<wire::JustificationRequest> = body.optional_object()?;
    let reason = justification(request.and_then(|request| request.justification), &headers)?;
    let id = extract::conversation_id(&id)?;
    let conversation = app.0.services.conversations.admin_restore(&principal, id, reason.as_deref()).await?;
    Ok(Ok200(conversation.into()))
}

#[derive(Deserialize, IntoParams)]
#[serde(rename_all = "camelCase")]
#[into_params(parameter_in = Query)]
pub(super) struct AdminEntriesQuery {
    /// Only this channel; all unless said otherwise.
    #[param(value_type = Option<wire::ChannelFilter>)]
    channel: Option<String>,
    /// For the memory channel: `all` (unless said otherwise) or a number.
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
    /// The size of the page; 50 unless said otherwise.
    #[param(value_type = Option<i64>, minimum = 1, maximum = 1000)]
    limit: Option<String>,
    /// `none` (unless said otherwise) follows one branch, `all` shows the whole tree.
    #[param(value_type = Option<wire::Forks>)]
    forks: Option<String>,
    /// The same as `forks=all`.
    #[param(value_type = Option<bool>)]
    all_forks: Option<String>,
    /// Why, for the audit log.
    #[param(max_length = 1000)]
    justification: Option<String>,
}

/// Lists the entries of any conversation: every channel, every client, every epoch.
#[utoipa::path(get, path = "/v1/admin/conversations/{conversationId}/entries", operation_id = "admin_list_entries", tag = "admin",
    params(("conversationId" = uuid::Uuid, Path, description = "The conversation"), AdminEntriesQuery),
    responses((status = 200, description = "A page of entries", body = wire::EntriesPage<wire::AdminEntry>)))]
pub(super) async fn list_entries(
    Authenticated(principal): Authenticated,
    Segments(id): Segments<String>,
    Query(query): Query<AdminEntriesQuery>,
    State(app): State<App>,
    headers: HeaderMap,
) -> Result<Ok200<wire::EntriesPage<wire::AdminEntry>>, ApiError> {
    principal.require(Role::Auditor)?;
    let reason = justification(query.justification, &headers)?;
    let id = extract::conversation_id(&id)?;
    let channel =
        extract::word("channel", query.channel, wire::ChannelFilter::parse, wire::ChannelFilter::WORDS)?;
    let channel = match channel {
        None | Some(wire::ChannelFilter::All) => None,
        Some(wire::ChannelFilter::History) => Some(memtrove_core::conversations::Channel::History),
        Some(wire::ChannelFilter::Memory) => Some(memtrove_core::conversations::Channel::Memory),
    };
    let after = extract::cursor([
        ("after", query.after),
        ("afterCursor", query.after_cursor),
        ("afterEntryId", query.after_entry_id),
    ])?;
    let request = AdminEntries {
        channel,
        epoch: epoch(query.epoch, channel == Some(memtrove_core::conversations::Channel::Memory))?,
        all_forks: all_forks(query.forks, query.all_forks)?,
        after: extract::uuid("after", after)?.map(EntryId),
        limit: extract::number("limit", query.limit)?,
    };
    let entries =
        app.0.services.conversations.admin_entries(&principal, id, request, reason.as_deref()).await?;
    Ok(Ok200(entries_page(entries)))
}

#[derive(Deserialize, IntoParams)]
#[serde(rename_all = "camelCase")]
#[into_params(parameter_in = Query)]
pub(super) struct PartQuery {
    /// The cursor of the page before.
    after: Option<String>,
    /// The same, by another name.
    after_cursor: Option<String>,
    /// The size of the page; 50 unless said otherwise.
    #[param(value_type = Option<i64>, minimum = 1, maximum = 1000)]
    limit: Option<String>,
    /// Why, for the audit log.
    #[param(max_length = 1000)]
    justification: Option<String>,
}

/// Lists the members of any conversation.
#[utoipa::path(get, path = "/v1/admin/conversations/{conversationId}/memberships", operation_id = "admin_list_memberships", tag = "admin",
    params(("conversationId" = uuid::Uuid, Path, description = "The conversation"), PartQuery),
    responses((status = 200, description = "A page of members", body = wire::Page<wire::ConversationMembership>)))]
pub(super) async fn list_memberships(
    Authenticated(principal): Authenticated,
    Segments(id): Segments<String>,
    Query(query): Query<PartQuery>,
    State(app): State<App>,
    headers: HeaderMap,
) -> Result<Ok200<wire::Page<wire::ConversationMembership>>, ApiError> {
    principal.require(Role::Auditor)?;
    let reason = justification(query.justification, &headers)?;
    let id = extract::conversation_id(&id)?;
    let after = extract::cursor([("after", query.after), ("afterCursor", query.after_cursor)])?.map(UserId);
    let request = PageRequest { after, limit: extract::number("limit", query.limit)? };
    let conversations = &app.0.services.conversations;
    let members = conversations.admin_memberships(&principal, id, request, reason.as_deref()).await?;
    Ok(Ok200(page(members, |member| wire::ConversationMembership::of(id, member))))
}

/// Lists every conversation of any tree, deleted or not.
#[utoipa::path(get, path = "/v1/admin/conversations/{conversationId}/forks", operation_id = "admin_list_forks", tag = "admin",
    params(("conversationId" = uuid::Uuid, Path, description = "Any conversation of the tree"), PartQuery),
    responses((status = 200, description = "A page of the tree", body = wire::Page<wire::ConversationForkSummary>)))]
pub(super) async fn list_forks(
    Authenticated(principal): Authenticated,
    Segments(id): Segments<String>,
    Query(query): Query<PartQuery>,
    State(app): State<App>,
    headers: HeaderMap,
) -> Result<Ok200<wire::Page<wire::ConversationForkSummary>>, ApiError> {
    principal.require(Role::Auditor)?;
    let reason = justification(query.justification, &headers)?;
    let id = extract::conversation_id(&id)?;
    let after = extract::cursor([("after", query.after), ("afterCursor", query.after_cursor)])?;
    let after = extract::uuid("after", after)?.map(ConversationId);
    let request = PageRequest { after, limit: extract::number("limit", query.limit)? };
    let forks = app.0.services.conversations.admin_forks(&principal, id, request, reason.as_deref()).await?;
    Ok(Ok200(page(forks, Into::into)))
}

/// Searches every conversation of the tenant.
#[utoipa::path(post, path = "/v1/admin/conversations/search", operation_id = "admin_search_conversations", tag = "admin",
    params(ReasonQuery), request_body = wire::AdminSearchRequest,
    responses((status = 200, description = "A page of results, best first", body = wire::SearchPage<wire::AdminEntry>),
        (status = 501, description = "The search type is not available here", body = SearchTypeUnavailableBody)))]
pub(super) async fn search_conversations(
    Authenticated(principal): Authenticated,
    Query(query): Query<ReasonQuery>,
    State(app): State<App>,
    headers: HeaderMap,
    body: Body,
) -> Result<Ok200<wire::SearchPage<wire::AdminEntry>>, ApiError> {
    principal.require(Role::Auditor)?;
    let reason = justification(query.justification, &headers)?;
    let request: wire::AdminSearchRequest = body.object()?;
    let search = SearchRequest {
        query: request.query,
        search_type: search_type(request.search_type),
        after: extract::cursor([("after", request.after), ("afterCursor", request.after_cursor)])?,
        limit: request.limit,
        group_by_conversation: request.group_by_conversation.unwrap_or(true),
        include_entry: request.include_entry.unwrap_or(true),
        explain: request.explain.unwrap_or(false),
        actor: request.actor,
        weights: weights(request.weights),
    };
    let admin =
        AdminSearch { owner: request.user_id, include_deleted: request.include_deleted.unwrap_or(false) };
    let found =
        app.0.services.conversations.admin_search(&principal, search, admin, reason.as_deref()).await?;
    Ok(Ok200(results(found)))
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct EvictQuery {
    /// Answer with a stream of progress instead of waiting for the end.
    #[serde(rename = "async")]
    #[param(value_type = Option<bool>)]
    stream: Option<String>,
}

/// Removes, for good, the trees that were deleted longer ago than the retention period.
#[utoipa::path(post, path = "/v1/admin/evict", tag = "admin", params(EvictQuery),
    request_body = wire::EvictRequest,
    responses((status = 200, description = "With `async=true` or `Accept: text/event-stream`: progress from 0 to 100",
            content_type = "text/event-stream", body = ProgressEvent),
        (status = 204, description = "Done")))]
pub(super) async fn evict(
    Authenticated(principal): Authenticated,
    Query(query): Query<EvictQuery>,
    State(app): State<App>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, ApiError> {
    principal.require(Role::Admin)?;
    let request: wire::EvictRequest = body.object()?;
    let reason = extract::header(&headers, JUSTIFICATION_HEADER)?;
    let stream = extract::flag("async", query.stream)? || extract::wants_events(&headers);
    let request = EvictRequest {
        retention_period: request.retention_period,
        resource_types: request.resource_types,
        justification: request.justification,
    };
    let conversations = app.0.services.conversations.clone();
    let eviction = conversations.admit_eviction(&principal, request, reason.as_deref())?;
    if stream {
        return Ok(Sse::new(Progress::start(conversations, eviction)).into_response());
    }
    let (progress, mut heard) = mpsc::channel(1);
    let run = conversations.evict(&eviction, progress);
    let listen = async { while heard.recv().await.is_some() {} };
    let (result, ()) = tokio::join!(run, listen);
    result?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// One event of an eviction's progress.
#[derive(ToSchema)]
#[allow(dead_code, reason = "describes the stream in the OpenAPI document; axum writes the events")]
pub(super) struct ProgressEvent {
    /// `error` when the eviction failed; absent otherwise.
    event: Option<String>,
    /// `{"progress": 0..100}`, or `{"error": "…"}` with the event `error`.
    #[schema(content_media_type = "application/json")]
    data: String,
}

/// An eviction that runs while somebody listens: dropping this ends it after its current batch.
struct Progress {
    percent: mpsc::Receiver<u8>,
    /// The run, until its end was told.
    run: Option<JoinHandle<CoreResult<usize>>>,
}

impl Progress {
    fn start(conversations: Conversations, eviction: Eviction) -> Self {
        let (progress, percent) = mpsc::channel(1);
        let run = tokio::spawn(async move { conversations.evict(&eviction, progress).await });
        Self { percent, run: Some(run) }
    }
}

impl Stream for Progress {
    type Item = Result<Event, Infallible>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if let Some(percent) = std::task::ready!(self.percent.poll_recv(cx)) {
            return Poll::Ready(Some(Ok(Event::default().data(format!("{{\"progress\": {percent}}}")))));
        }
        let Some(run) = &mut self.run else { return Poll::Ready(None) };
        let ended = std::task::ready!(Pin::new(run).poll(cx));
        self.run = None;
        let message = match ended {
            Ok(Ok(_)) => return Poll::Ready(None),
            Ok(Err(Error { code: Code::Internal, cause, .. })) => {
                tracing::error!(?cause, "an eviction failed");
                "Internal server error".to_owned()
            }
            Ok(Err(error)) => {
                tracing::warn!(?error, "an eviction failed");
                error.to_string()
            }
            Err(_) => "the eviction was interrupted".to_owned(),
        };
        let body = serde_json::json!({ "error": message }).to_string();
        Poll::Ready(Some(Ok(Event::default().event("error").data(body))))
    }
}

/// Counts what is stored in the tenant.
#[utoipa::path(get, path = "/v1/admin/stats/summary", tag = "admin", params(ReasonQuery),
    responses((status = 200, description = "The counts", body = wire::StatsSummary)))]
pub(super) async fn stats_summary(
    Authenticated(principal): Authenticated,
    Query(query): Query<ReasonQuery>,
    State(app): State<App>,
    headers: HeaderMap,
) -> Result<Ok200<wire::StatsSummary>, ApiError> {
    principal.require(Role::Auditor)?;
    let reason = justification(query.justification, &headers)?;
    let counts = app.0.services.conversations.admin_counts(&principal, reason.as_deref()).await?;
    Ok(Ok200(wire::StatsSummary {
        conversation_groups: wire::StatsSummaryGroups {
            total: counts.groups,
            deleted: counts.deleted_groups,
            oldest_deleted_at: counts.oldest_deleted_at,
        },
        conversations: wire::StatsSummaryCount { total: counts.conversations },
        entries: wire::StatsSummaryCount { total: counts.entries },
    }))
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct StatsQuery {
    /// From when; an hour ago unless said otherwise.
    #[param(value_type = Option<String>, format = DateTime)]
    start: Option<String>,
    /// Until when; now unless said otherwise.
    #[param(value_type = Option<String>, format = DateTime)]
    end: Option<String>,
    /// How far apart the points are, such as `60s` or `5m`.
    step: Option<String>,
    /// Why, for the audit log.
    #[param(max_length = 1000)]
    justification: Option<String>,
}

/// A statistic of the service over time, from the Prometheus server that scrapes it.
#[utoipa::path(get, path = "/v1/admin/stats/{name}", tag = "admin",
    params(("name" = String, Path, description = "request-rate, error-rate, latency-p95, cache-hit-rate, db-pool-utilization, store-latency-p95 or store-throughput"), StatsQuery),
    responses((status = 200, description = "The statistic", body = StatsResponse),
        (status = 501, description = "No Prometheus server is configured", body = super::error::ErrorBody)))]
pub(super) async fn stats(
    Authenticated(principal): Authenticated,
    Segments(name): Segments<String>,
    Query(query): Query<StatsQuery>,
    State(app): State<App>,
    headers: HeaderMap,
) -> Result<Ok200<StatsResponse>, ApiError> {
    principal.require(Role::Auditor)?;
    let reason = justification(query.justification, &headers)?;
    let plus = |field, value| {
        extract::given(field, value).map(|text: Option<String>| text.map(|text| text.replace(' ', "+")))
    };
    let (start, end) = (plus("start", query.start)?, plus("end", query.end)?);
    let step = extract::given("step", query.step)?;
    let work = app.0.prometheus.stats(&name, start.as_deref(), end.as_deref(), step.as_deref());
    Ok(Ok200(app.0.services.conversations.admin_stats(&principal, &name, reason.as_deref(), work).await?))
}
