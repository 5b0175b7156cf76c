//! The audit trail: list, get, reconstruct.

use super::extract::{JsonBody, QueryParameters, Scoped};
use super::{ApiError, decode, json, push_text, written};
use crate::rest::App;
use crate::rest::extract::Segments;
use axum::extract::State;
use axum::response::Response;
use http::StatusCode;
use memtrove_service::files::{AuditRecord, ChangeId, ListAudit};
use memtrove_wire::files as wire;
use serde::Serialize;

/// Lists the audit trail, in the order of its sequence.
#[utoipa::path(get, path = "/v1/tenants/{tenant_id}/users/{user_id}/audit", tag = "audit",
    params(("tenant_id" = String, Path, description = "The tenant"), ("user_id" = String, Path, description = "The user"),
        ("path" = Option<String>, Query, description = "Only of this file"),
        ("from" = Option<String>, Query, description = "Only at or after (RFC 3339)"),
        ("to" = Option<String>, Query, description = "Only at or before (RFC 3339)"),
        ("after" = Option<i64>, Query, description = "Go on after this sequence"),
        ("limit" = Option<i64>, Query, description = "The most records; 100 unless said otherwise", minimum = 1, maximum = 500)),
    responses((status = 200, description = "The records", body = wire::AuditPage)))]
pub(in crate::rest) async fn list_audit(
    Scoped(caller): Scoped,
    query: QueryParameters,
    State(app): State<App>,
) -> Result<Response, ApiError> {
    let files = &app.0.services.files;
    let admitted = files.admit(caller).await?;
    query.refuse_unsupported(&["held"])?;
    let request = ListAudit {
        path: query.text("path")?.filter(|path| !path.is_empty()),
        from: query.instant("from")?,
        to: query.instant("to")?,
        after: query.number("after")?,
        limit: query.limit("limit")?,
    };
    let page = files.list_audit(&admitted, request).await?;
    Ok(json(StatusCode::OK, &Records { records: page.records, next_after: page.next_after }))
}

/// [`wire::AuditPage`] with records as the service renders them.
#[derive(Serialize)]
struct Records {
    records: Vec<AuditRecord>,
    next_after: Option<i64>,
}

/// Reads the record of one change.
#[utoipa::path(get, path = "/v1/tenants/{tenant_id}/users/{user_id}/audit/{change_id}", tag = "audit",
    params(("tenant_id" = String, Path, description = "The tenant"), ("user_id" = String, Path, description = "The user"),
        ("change_id" = String, Path, description = "The change: `chg_…`")),
    responses((status = 200, description = "The record", body = wire::AuditRecord)))]
pub(in crate::rest) async fn get_audit(
    Scoped(caller): Scoped,
    Segments((_, _, change_id)): Segments<(String, String, String)>,
    query: QueryParameters,
    State(app): State<App>,
) -> Result<Response, ApiError> {
    let files = &app.0.services.files;
    let admitted = files.admit(caller).await?;
    query.refuse_unsupported(&["held"])?;
    Ok(json(StatusCode::OK, &files.get_audit(&admitted, ChangeId::parse(&change_id)?).await?))
}

/// Makes a version of a file again from the audit trail, byte for byte, and proves it by its hashes.
#[utoipa::path(post, path = "/v1/tenants/{tenant_id}/users/{user_id}/audit:reconstruct", tag = "audit",
    params(("tenant_id" = String, Path, description = "The tenant"), ("user_id" = String, Path, description = "The user")),
    request_body = wire::ReconstructRequest,
    responses((status = 200, description = "The version", body = wire::ReconstructedFile)))]
pub(in crate::rest) async fn reconstruct_version(
    Scoped(caller): Scoped,
    State(app): State<App>,
    body: JsonBody,
) -> Result<Response, ApiError> {
    let files = &app.0.services.files;
    let admitted = files.admit(caller).await?;
    let version = files.reconstruct(&admitted, decode::reconstruct(&body.object()?)?).await?;
    let mut json = br#"{"change_id":"#.to_vec();
    push_text(&mut json, &version.change_id);
    json.extend_from_slice(br#","etag":"#);
    push_text(&mut json, &version.etag.to_string());
    json.extend_from_slice(br#","document":"#);
    json.extend_from_slice(version.document.as_bytes());
    json.push(b'}');
    Ok(written(StatusCode::OK, json))
}
