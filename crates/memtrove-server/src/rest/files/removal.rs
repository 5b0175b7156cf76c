//! Files that leave their path: delete, move.

use super::decode::{self, ChangeHeaders};
use super::documents::answered;
use super::extract::{JsonBody, Scoped};
use super::{ApiError, push_text, written};
use crate::rest::App;
use axum::extract::State;
use axum::response::Response;
use http::{HeaderMap, StatusCode};
use memtrove_service::files_metrics::counted;
use memtrove_wire::files as wire;

/// Deletes a file. Its versions stay in the audit trail.
#[utoipa::path(post, path = "/v1/tenants/{tenant_id}/users/{user_id}/files:delete", tag = "files",
    params(("tenant_id" = String, Path, description = "The tenant"), ("user_id" = String, Path, description = "The user"),
        ("If-Match" = String, Header, description = "The version to delete, or `*` for any"),
        ("X-Service-Id" = Option<String>, Header, description = "Who acts, for the audit trail", max_length = 128),
        ("Idempotency-Key" = Option<String>, Header, description = "Makes a repetition return the first result", max_length = 128)),
    request_body = wire::DeleteFileRequest,
    responses((status = 200, description = "The file is gone", body = wire::DeletedFile, headers(("ETag" = String, description = "The version that was deleted"))),
        (status = 412, description = "The file is at another version", body = super::FilesErrorBody)))]
pub(in crate::rest) async fn delete_file(
    Scoped(caller): Scoped,
    headers: HeaderMap,
    State(app): State<App>,
    body: JsonBody,
) -> Result<Response, ApiError> {
    let files = &app.0.services.files;
    let admitted = files.admit(caller).await?;
    let request = counted("delete", decode::delete_file(&body.value()?, ChangeHeaders::of(&headers)?))?;
    let deleted = files.delete(&admitted, request).await?;
    let mut json = br#"{"path":"#.to_vec();
    push_text(&mut json, deleted.path.as_str());
    json.extend_from_slice(br#","etag":"#);
    push_text(&mut json, &deleted.etag);
    json.extend_from_slice(br#","deleted":true"#);
    json.extend_from_slice(if deleted.replayed { br#","idempotency_replay":true}"# } else { b"}" });
    answered(written(StatusCode::OK, json), &deleted.etag, deleted.replayed)
}

/// Gives a file another path, where nothing may be yet.
#[utoipa::path(post, path = "/v1/tenants/{tenant_id}/users/{user_id}/files:move", tag = "files",
    params(("tenant_id" = String, Path, description = "The tenant"), ("user_id" = String, Path, description = "The user"),
        ("If-Match" = String, Header, description = "The version to move, or `*` for any"),
        ("X-Service-Id" = Option<String>, Header, description = "Who acts, for `updated_by` and the audit trail", max_length = 128),
        ("Idempotency-Key" = Option<String>, Header, description = "Makes a repetition return the first result", max_length = 128)),
    request_body = wire::MoveFileRequest,
    responses((status = 200, description = "The file as stored", body = wire::MovedFile, headers(("ETag" = String, description = "Its version"))),
        (status = 409, description = "There is a file at the new path, or the key was used for another request", body = super::FilesErrorBody),
        (status = 412, description = "The file is at another version", body = super::FilesErrorBody),
        (status = 422, description = "The document would be too large with the name of who moves it", body = super::FilesErrorBody)))]
pub(in crate::rest) async fn move_file(
    Scoped(caller): Scoped,
    headers: HeaderMap,
    State(app): State<App>,
    body: JsonBody,
) -> Result<Response, ApiError> {
    let files = &app.0.services.files;
    let admitted = files.admit(caller).await?;
    let request = counted("move", decode::move_file(&body.value()?, ChangeHeaders::of(&headers)?))?;
    let moved = files.move_file(&admitted, request).await?;
    let file = moved.file;
    let mut json = Vec::with_capacity(file.document.len() + 256);
    json.extend_from_slice(br#"{"path":"#);
    push_text(&mut json, moved.path.as_str());
    json.extend_from_slice(br#","etag":"#);
    push_text(&mut json, &file.etag);
    json.extend_from_slice(br#","document":"#);
    json.extend_from_slice(file.document.as_bytes());
    json.extend_from_slice(if file.replayed { br#","idempotency_replay":true}"# } else { b"}" });
    answered(written(StatusCode::OK, json), &file.etag, file.replayed)
}
