//! Retention and forget.

use super::extract::{JsonBody, Scoped};
use super::{ApiError, decode, json};
use crate::rest::App;
use crate::rest::admin::JUSTIFICATION_HEADER;
use crate::rest::extract::Authenticated;
use crate::rest::extract::header;
use crate::rest::memories::respond;
use crate::shell::request_id::RequestId;
use axum::extract::State;
use axum::response::Response;
use http::{Extensions, HeaderMap, StatusCode};
use memtrove_core::files::{ScopedCaller, body};
use memtrove_core::identity::is_user_id;
use memtrove_core::{Error, Result};
use memtrove_wire::files as wire;

/// Removes events and audit records that are older than so many days. Files stay.
///
/// Fewer days of audit records than `retention.audit_min_days` are raised to it, unless an admin says why.
#[utoipa::path(post, path = "/v1/tenants/{tenant_id}/users/{user_id}/retention:apply", tag = "lifecycle",
    params(("tenant_id" = String, Path, description = "The tenant"), ("user_id" = String, Path, description = "The user"),
        ("X-Justification" = Option<String>, Header, description = "Why an admin keeps fewer days of audit records than have to stay; the trail keeps it", max_length = 1000)),
    request_body = wire::RetentionRequest,
    responses((status = 200, description = "What was removed", body = wire::RetentionReport)))]
pub(in crate::rest) async fn apply_retention(
    Scoped(caller): Scoped,
    State(app): State<App>,
    headers: HeaderMap,
    body: JsonBody,
) -> Result<Response, ApiError> {
    let files = &app.0.services.files;
    let admitted = files.admit(caller).await?;
    let request = decode::retained(&body.object()?)?;
    let justification = header(&headers, JUSTIFICATION_HEADER)?;
    let report = files.apply_retention(&admitted, request, justification.as_deref()).await?;
    let body = wire::RetentionReport {
        events_deleted: report.events_deleted,
        audit_deleted: report.audit_deleted,
        snapshots_deleted: 0,
        search_documents_deleted: report.search_documents_deleted,
        cutoff_events_utc: report.cutoff_events.to_string(),
        cutoff_audit_utc: report.cutoff_audit.to_string(),
        cutoff_snapshots_utc: report.cutoff_snapshots.to_string(),
        adjusted: report.adjusted.into_iter().map(str::to_owned).collect(),
    };
    Ok(json(StatusCode::OK, &body))
}

/// Forgets a user: files, events, audit trail, conversations, memories, everything.
#[utoipa::path(delete, path = "/v1/tenants/{tenant_id}/users/{user_id}/memory", tag = "lifecycle",
    params(("tenant_id" = String, Path, description = "The tenant"), ("user_id" = String, Path, description = "The user")),
    responses((status = 200, description = "What was removed", body = wire::ForgetReport)))]
pub(in crate::rest) async fn forget_user(
    Scoped(caller): Scoped,
    State(app): State<App>,
) -> Result<Response, ApiError> {
    Ok(json(StatusCode::OK, &forget(&app, caller).await?))
}

/// Forgets a user of the caller's tenant whose id no path can hold.
#[utoipa::path(post, path = "/v1/users:forget", tag = "lifecycle",
    request_body = wire::ForgetUserRequest,
    responses((status = 200, description = "What was removed", body = wire::ForgetReport)))]
pub(in crate::rest) async fn forget_user_by_id(
    Authenticated(principal): Authenticated,
    headers: HeaderMap,
    extensions: Extensions,
    State(app): State<App>,
    body: JsonBody,
) -> Result<Response, ApiError> {
    let members = body.object()?;
    let user = body::text(&members, "userId")?.unwrap_or_default();
    if !is_user_id(user) {
        return Err(Error::invalid("userId", "must be 1..255 characters, not blank").into());
    }
    let service_id = header(&headers, "X-Service-Id")?;
    let request_id = RequestId::of(&extensions);
    let caller = ScopedCaller::enter(&principal, user.to_owned(), service_id.as_deref(), request_id)?;
    Ok(respond(StatusCode::OK, &forget(&app, caller).await?))
}

async fn forget(app: &App, caller: ScopedCaller) -> Result<wire::ForgetReport> {
    let files = &app.0.services.files;
    let removed = files.forget(&files.admit(caller).await?).await?;
    Ok(wire::ForgetReport {
        documents_deleted: removed.documents,
        events_deleted: removed.events,
        audit_deleted: removed.audit,
        snapshots_deleted: 0,
        search_documents_deleted: removed.indexed,
        conversations: wire::ForgottenConversations {
            deleted: removed.conversations,
            anonymized: removed.anonymized,
        },
        memories: wire::ForgottenMemories {
            deleted: removed.memories,
            anonymized: removed.memories_anonymized,
        },
    })
}
