//! Making anew what searches look at, and how far that is.

use super::extract::{JsonBody, Scoped};
use super::{ApiError, json};
use crate::rest::App;
use crate::rest::admin::JUSTIFICATION_HEADER;
use crate::rest::extract::{Authenticated, Segments, header};
use axum::extract::State;
use axum::response::Response;
use http::{HeaderMap, StatusCode};
use memtrove_core::Error;
use memtrove_core::files::{Code, body};
use memtrove_wire::files as wire;

/// Has the events of a user indexed anew.
#[utoipa::path(post, path = "/v1/tenants/{tenant_id}/users/{user_id}/events:reindex", tag = "events",
    params(("tenant_id" = String, Path, description = "The tenant"), ("user_id" = String, Path, description = "The user")),
    responses((status = 202, description = "The job", body = wire::JobStarted)))]
pub(in crate::rest) async fn reindex_events(
    Scoped(caller): Scoped,
    State(app): State<App>,
) -> Result<Response, ApiError> {
    let files = &app.0.services.files;
    let job_id = files.reindex_scope(&files.admit(caller).await?).await?;
    Ok(json(StatusCode::ACCEPTED, &wire::JobStarted { job_id }))
}

/// Has the events of a tenant indexed anew, or the vectors that another model made.
#[utoipa::path(post, path = "/v1/admin/reindex", tag = "admin",
    request_body = Option<wire::ReindexRequest>,
    responses((status = 202, description = "The job", body = wire::JobStarted)))]
pub(in crate::rest) async fn reindex_tenant(
    Authenticated(principal): Authenticated,
    headers: HeaderMap,
    State(app): State<App>,
    body: JsonBody,
) -> Result<Response, ApiError> {
    let members = body.optional_object()?;
    let principal = match body::text(&members, "tenant_id")?.filter(|tenant| !tenant.is_empty()) {
        Some(tenant) => app.0.authenticator.authenticate_in(&headers, tenant).await?,
        None => principal,
    };
    let justification = header(&headers, JUSTIFICATION_HEADER)?;
    let services = &app.0.services;
    let job_id = match body::text(&members, "target")?.unwrap_or("events") {
        "events" => services.files.reindex_tenant(&principal, justification.as_deref()).await?,
        "embeddings" => services.vectors.reindex(&principal, justification.as_deref()).await?,
        _ => return Err(Error::new(Code::InvalidRequest, "target must be events or embeddings").into()),
    };
    Ok(json(StatusCode::ACCEPTED, &wire::JobStarted { job_id }))
}

/// Says how a job is doing.
#[utoipa::path(get, path = "/v1/admin/jobs/{job_id}", tag = "admin",
    params(("job_id" = uuid::Uuid, Path, description = "The job")),
    responses((status = 200, description = "The job", body = wire::Job)))]
pub(in crate::rest) async fn get_job(
    Authenticated(principal): Authenticated,
    Segments(job_id): Segments<String>,
    State(app): State<App>,
) -> Result<Response, ApiError> {
    let job = app.0.services.files.job(&principal, &job_id).await?;
    let body = wire::Job {
        job_id: job.id,
        kind: job.kind,
        status: job.status.as_str().to_owned(),
        processed: job.processed,
        total: job.total,
        errors: serde_json::from_str(&job.errors).unwrap_or_default(),
    };
    Ok(json(StatusCode::OK, &body))
}
