//! `/v1/admin/attachments`: every file of a tenant, for admins and auditors, with a reason and a trace.

use super::delivery::Caching;
use super::{attachment_id, deliver, signed};
use crate::rest::App;
use crate::rest::admin::{ReasonQuery, justification};
use crate::rest::attachments::ReadHeaders;
use crate::rest::error::{ApiError, ErrorBody};
use crate::rest::extract::{self, Authenticated, Body, Query, Segments};
use crate::rest::reply::{Ok200, page};
use axum::extract::State;
use axum::response::Response;
use http::{HeaderMap, Method, StatusCode};
use memtrove_core::identity::Role;
use memtrove_core::{AttachmentId, EntryId};
use memtrove_service::attachments::{AdminAttachments, AttachmentFilter};
use memtrove_wire as wire;
use serde::Deserialize;
use utoipa::IntoParams;

#[derive(Deserialize, IntoParams)]
#[serde(rename_all = "camelCase")]
#[into_params(parameter_in = Query)]
pub(in crate::rest) struct AdminAttachmentsQuery {
    /// Only what this user brought.
    #[param(max_length = 255)]
    user_id: Option<String>,
    /// Only what belongs to this entry.
    #[param(value_type = Option<uuid::Uuid>)]
    entry_id: Option<String>,
    /// Which of them; `all` unless said otherwise.
    #[param(value_type = Option<wire::AttachmentFilter>)]
    status: Option<String>,
    /// The cursor of the page before.
    #[param(value_type = Option<uuid::Uuid>)]
    after: Option<String>,
    /// The same, by another name.
    #[param(value_type = Option<uuid::Uuid>)]
    after_cursor: Option<String>,
    /// The size of the page; 50 unless said otherwise.
    #[param(value_type = Option<i64>, minimum = 1, maximum = 1000)]
    limit: Option<String>,
    /// Why, for the audit log.
    #[param(max_length = 1000)]
    justification: Option<String>,
}

/// Lists the files of the tenant, newest first.
#[utoipa::path(get, path = "/v1/admin/attachments", operation_id = "admin_list_attachments", tag = "admin", params(AdminAttachmentsQuery),
    responses((status = 200, description = "A page of files", body = wire::Page<wire::AdminAttachmentSummary>)))]
pub(in crate::rest) async fn list_attachments(
    Authenticated(principal): Authenticated,
    Query(query): Query<AdminAttachmentsQuery>,
    State(app): State<App>,
    headers: HeaderMap,
) -> Result<Ok200<wire::Page<wire::AdminAttachmentSummary>>, ApiError> {
    principal.require(Role::Auditor)?;
    let reason = justification(query.justification, &headers)?;
    let words = wire::AttachmentFilter::WORDS;
    let status = match extract::word("status", query.status, wire::AttachmentFilter::parse, words)? {
        None | Some(wire::AttachmentFilter::All) => AttachmentFilter::All,
        Some(wire::AttachmentFilter::Linked) => AttachmentFilter::Linked,
        Some(wire::AttachmentFilter::Unlinked) => AttachmentFilter::Unlinked,
        Some(wire::AttachmentFilter::Expired) => AttachmentFilter::Expired,
    };
    let after = extract::cursor([("after", query.after), ("afterCursor", query.after_cursor)])?;
    let request = AdminAttachments {
        user_id: extract::given("userId", query.user_id)?,
        entry_id: extract::uuid("entryId", query.entry_id)?.map(EntryId),
        status,
        after: extract::uuid("after", after)?.map(AttachmentId),
        limit: extract::number("limit", query.limit)?,
    };
    let list = app.0.services.attachments.admin_list(&principal, request, reason.as_deref()).await?;
    Ok(Ok200(page(list, Into::into)))
}

/// Reads what is known of any file.
#[utoipa::path(get, path = "/v1/admin/attachments/{attachmentId}", operation_id = "admin_get_attachment", tag = "admin",
    params(("attachmentId" = uuid::Uuid, Path, description = "The file"), ReasonQuery),
    responses((status = 200, description = "The file", body = wire::AdminAttachment)))]
pub(in crate::rest) async fn get_attachment(
    Authenticated(principal): Authenticated,
    Segments(id): Segments<String>,
    Query(query): Query<ReasonQuery>,
    State(app): State<App>,
    headers: HeaderMap,
) -> Result<Ok200<wire::AdminAttachment>, ApiError> {
    principal.require(Role::Auditor)?;
    let reason = justification(query.justification, &headers)?;
    let id = attachment_id(&id)?;
    let (attachment, ref_count) =
        app.0.services.attachments.admin_get(&principal, id, reason.as_deref()).await?;
    Ok(Ok200(wire::AdminAttachment { attachment: attachment.into(), ref_count }))
}

/// Reads any file.
#[utoipa::path(get, path = "/v1/admin/attachments/{attachmentId}/content", operation_id = "admin_get_attachment_content", tag = "admin",
    params(("attachmentId" = uuid::Uuid, Path, description = "The file"), ReasonQuery, ReadHeaders),
    responses(
        (status = 200, description = "The file", content_type = "*/*", headers(("ETag" = String, description = "The digest of its bytes"))),
        (status = 206, description = "The range of it", content_type = "*/*", headers(("Content-Range" = String, description = "Which bytes these are"))),
        (status = 304, description = "The caller has it"),
        (status = 307, description = "It is in the object store"),
        (status = 409, description = "It is still on its way", body = ErrorBody),
        (status = 416, description = "It does not have these bytes", body = ErrorBody),
        (status = 422, description = "Its source could not be fetched", body = ErrorBody)))]
pub(in crate::rest) async fn attachment_content(
    Authenticated(principal): Authenticated,
    Segments(id): Segments<String>,
    Query(query): Query<ReasonQuery>,
    State(app): State<App>,
    method: Method,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    principal.require(Role::Auditor)?;
    let reason = justification(query.justification, &headers)?;
    let id = attachment_id(&id)?;
    let opened = app.0.services.attachments.admin_open(&principal, id, reason.as_deref()).await?;
    deliver(&app, opened, Caching::Day, &method, &headers).await
}

/// Makes an address at which any file can be read without credentials, for a short time.
#[utoipa::path(get, path = "/v1/admin/attachments/{attachmentId}/download-url", operation_id = "admin_get_attachment_download_url",
    tag = "admin", params(("attachmentId" = uuid::Uuid, Path, description = "The file"), ReasonQuery),
    responses((status = 200, description = "The address", body = wire::DownloadUrl),
        (status = 422, description = "Its source could not be fetched", body = ErrorBody)))]
pub(in crate::rest) async fn attachment_download_url(
    Authenticated(principal): Authenticated,
    Segments(id): Segments<String>,
    Query(query): Query<ReasonQuery>,
    State(app): State<App>,
    headers: HeaderMap,
) -> Result<Ok200<wire::DownloadUrl>, ApiError> {
    principal.require(Role::Auditor)?;
    let reason = justification(query.justification, &headers)?;
    let id = attachment_id(&id)?;
    let url = app.0.services.attachments.admin_download_url(&principal, id, reason.as_deref()).await?;
    Ok(Ok200(signed(url)))
}

/// Deletes any file, whether an entry refers to it or not.
#[utoipa::path(delete, path = "/v1/admin/attachments/{attachmentId}", operation_id = "admin_delete_attachment", tag = "admin",
    params(("attachmentId" = uuid::Uuid, Path, description = "The file")),
    request_body(content = Option<wire::JustificationRequest>),
    responses((status = 204, description = "Deleted")))]
pub(in crate::rest) async fn delete_attachment(
    Authenticated(principal): Authenticated,
    Segments(id): Segments<String>,
    State(app): State<App>,
    headers: HeaderMap,
    body: Body,
) -> Result<StatusCode, ApiError> {
    principal.require(Role::Admin)?;
    let request: Option<wire::JustificationRequest> = body.optional_object()?;
    let reason = justification(request.and_then(|request| request.justification), &headers)?;
    let id = attachment_id(&id)?;
    app.0.services.attachments.admin_delete(&principal, id, reason.as_deref()).await?;
    Ok(StatusCode::NO_CONTENT)
}
