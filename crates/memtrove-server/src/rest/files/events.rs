//! Events: write, search.

use super::extract::{JsonBody, Scoped};
use super::{ApiError, decode, written};
use crate::rest::extract::header;
use crate::rest::{App, IDEMPOTENCY_REPLAYED};
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::{HeaderMap, HeaderValue, StatusCode};
use memtrove_wire::files as wire;

/// Writes an event; it can be found when this answers.
#[utoipa::path(post, path = "/v1/tenants/{tenant_id}/users/{user_id}/events", tag = "events",
    params(("tenant_id" = String, Path, description = "The tenant"), ("user_id" = String, Path, description = "The user"),
        ("X-Service-Id" = Option<String>, Header, description = "Who acts", max_length = 128),
        ("Idempotency-Key" = Option<String>, Header, description = "Makes a repetition return the first result", max_length = 128)),
    request_body = wire::WriteEventRequest,
    responses((status = 202, description = "Stored and searchable"),
        (status = 422, description = "The event is for another scope, or has too much in it", body = super::FilesErrorBody)))]
pub(in crate::rest) async fn write_event(
    Scoped(caller): Scoped,
    headers: HeaderMap,
    State(app): State<App>,
    body: JsonBody,
) -> Result<Response, ApiError> {
    let files = &app.0.services.files;
    let admitted = files.admit(caller).await?;
    let key = header(&headers, "Idempotency-Key")?;
    let request = decode::write_event(&body.value()?, key)?;
    let outcome = files.write_event(&admitted, request).await?;
    let mut response = StatusCode::ACCEPTED.into_response();
    if outcome.replayed {
        response.headers_mut().insert(IDEMPOTENCY_REPLAYED, HeaderValue::from_static("true"));
    }
    Ok(response)
}

/// Searches events: filters that all must hold, and words to rank by.
#[utoipa::path(post, path = "/v1/tenants/{tenant_id}/users/{user_id}/events:search", tag = "events",
    params(("tenant_id" = String, Path, description = "The tenant"), ("user_id" = String, Path, description = "The user")),
    request_body = Option<wire::SearchEventsRequest>,
    responses((status = 200, description = "The events found, best first", body = wire::SearchEventsResponse)))]
pub(in crate::rest) async fn search_events(
    Scoped(caller): Scoped,
    State(app): State<App>,
    body: JsonBody,
) -> Result<Response, ApiError> {
    let files = &app.0.services.files;
    let admitted = files.admit(caller).await?;
    let query = decode::search_events(&body.optional_object()?)?;
    let found = files.search_events(&admitted, query).await?;
    let mut json = br#"{"results":["#.to_vec();
    json.extend_from_slice(found.join(",").as_bytes());
    json.extend_from_slice(b"]}");
    Ok(written(StatusCode::OK, json))
}
