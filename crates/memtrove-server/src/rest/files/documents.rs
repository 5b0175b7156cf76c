//! Files: list, get, put, patch, assemble.

use super::decode::{self, ChangeHeaders};
use super::extract::{JsonBody, QueryParameters, Scoped, ScopedPrincipal, Target};
use super::{ApiError, json, push_text, written};
use crate::rest::{App, IDEMPOTENCY_REPLAYED};
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::header::{ETAG, IF_NONE_MATCH};
use http::{HeaderMap, HeaderValue, StatusCode};
use memtrove_core::Error;
use memtrove_service::Services;
use memtrove_service::files::{ListFiles, Reader, WrittenFile};
use memtrove_service::files_metrics::counted;
use memtrove_wire::files as wire;

/// Lists files, by lower-cased path.
#[utoipa::path(get, path = "/v1/tenants/{tenant_id}/users/{user_id}/files:list", tag = "files",
    params(("tenant_id" = String, Path, description = "The tenant"), ("user_id" = String, Path, description = "The user"),
        ("prefix" = Option<String>, Query, description = "What paths begin with, whatever their letter case"),
        ("limit" = Option<i64>, Query, description = "The most files; 100 unless said otherwise", minimum = 1, maximum = 500),
        ("after" = Option<String>, Query, description = "Go on after this path")),
    responses((status = 200, description = "The files", body = wire::FileList)))]
pub(in crate::rest) async fn list_files(
    Scoped(caller): Scoped,
    query: QueryParameters,
    State(app): State<App>,
) -> Result<Response, ApiError> {
    let files = &app.0.services.files;
    let admitted = files.admit(caller).await?;
    let request = ListFiles {
        limit: query.limit("limit")?,
        prefix: query.text("prefix")?,
        after: query.text("after")?.filter(|after| !after.is_empty()),
    };
    let list = files.list(&admitted, request).await?;
    let entries = list
        .files
        .into_iter()
        .map(|file| wire::FileEntry { path: file.path, last_modified_utc: file.last_modified.to_string() });
    let body = wire::FileList { files: entries.collect(), next_after: list.next_after };
    Ok(json(StatusCode::OK, &body))
}

/// Reads a file.
#[utoipa::path(get, path = "/v1/tenants/{tenant_id}/users/{user_id}/files/{*path}", tag = "files",
    params(("tenant_id" = String, Path, description = "The tenant"), ("user_id" = String, Path, description = "The user"),
        ("path" = String, Path, description = "The file; may contain slashes"),
        ("If-None-Match" = Option<String>, Header, description = "An ETag that the caller has: 304 if it is still current")),
    responses((status = 200, description = "The file", body = wire::StoredFile, headers(("ETag" = String, description = "Its version"))),
        (status = 304, description = "Not modified", headers(("ETag" = String, description = "Its version")))))]
pub(in crate::rest) async fn get_file(
    Scoped(caller): Scoped,
    Target(path): Target,
    headers: HeaderMap,
    State(app): State<App>,
) -> Result<Response, ApiError> {
    let files = &app.0.services.files;
    let admitted = files.admit::<Reader>(caller).await?;
    let file = files.get(&admitted, path?).await?;
    let etag = file.etag.to_string();
    if is_known(&headers, &etag) {
        return with_etag(StatusCode::NOT_MODIFIED.into_response(), &etag);
    }
    with_etag(stored(&etag, &file.document, false), &etag)
}

/// Creates a file, or replaces it.
#[utoipa::path(put, path = "/v1/tenants/{tenant_id}/users/{user_id}/files/{*path}", tag = "files",
    params(("tenant_id" = String, Path, description = "The tenant"), ("user_id" = String, Path, description = "The user"),
        ("path" = String, Path, description = "The file; may contain slashes"),
        ("If-Match" = String, Header, description = "The version to replace, or `*` to create the file only if it is missing"),
        ("X-Service-Id" = Option<String>, Header, description = "Who acts, for `updated_by` and the audit trail", max_length = 128),
        ("Idempotency-Key" = Option<String>, Header, description = "Makes a repetition return the first result", max_length = 128)),
    request_body = wire::WriteFileRequest,
    responses((status = 200, description = "The file as stored", body = wire::StoredFile, headers(("ETag" = String, description = "Its version"))),
        (status = 412, description = "The file is at another version", body = super::FilesErrorBody),
        (status = 422, description = "The document breaks a rule", body = super::FilesErrorBody)))]
pub(in crate::rest) async fn put_file(
    Scoped(caller): Scoped,
    Target(path): Target,
    headers: HeaderMap,
    State(app): State<App>,
    body: JsonBody,
) -> Result<Response, ApiError> {
    let files = &app.0.services.files;
    let admitted = files.admit(caller).await?;
    let request = counted("put", decode::put_file(path?, body.value()?, ChangeHeaders::of(&headers)?))?;
    answer(files.put(&admitted, request).await?)
}

/// Changes parts of a file, by JSON Patch operations, by text edits, or both.
#[utoipa::path(patch, path = "/v1/tenants/{tenant_id}/users/{user_id}/files/{*path}", tag = "files",
    params(("tenant_id" = String, Path, description = "The tenant"), ("user_id" = String, Path, description = "The user"),
        ("path" = String, Path, description = "The file; may contain slashes"),
        ("If-Match" = String, Header, description = "The version to change"),
        ("X-Service-Id" = Option<String>, Header, description = "Who acts, for `updated_by` and the audit trail", max_length = 128),
        ("Idempotency-Key" = Option<String>, Header, description = "Makes a repetition return the first result", max_length = 128)),
    request_body = wire::PatchFileRequest,
    responses((status = 200, description = "The file as stored", body = wire::StoredFile, headers(("ETag" = String, description = "Its version"))),
        (status = 412, description = "The file is at another version", body = super::FilesErrorBody),
        (status = 422, description = "The patch does not apply, or its result breaks a rule", body = super::FilesErrorBody)))]
pub(in crate::rest) async fn patch_file(
    Scoped(caller): Scoped,
    Target(path): Target,
    headers: HeaderMap,
    State(app): State<App>,
    body: JsonBody,
) -> Result<Response, ApiError> {
    let files = &app.0.services.files;
    let admitted = files.admit(caller).await?;
    let request = counted("patch", decode::patch_file(path?, &body.value()?, ChangeHeaders::of(&headers)?))?;
    answer(files.patch(&admitted, request).await?)
}

/// Says of `…/files` and `…/files/` that a path is missing.
pub(in crate::rest) async fn no_path(Scoped(_): Scoped, Target(path): Target) -> ApiError {
    ApiError(path.err().unwrap_or(Error::METHOD_NOT_ALLOWED))
}

/// Assembles a context from files, in the order they are named, and from memories that are searched for, as far as the
/// budget goes.
#[utoipa::path(post, path = "/v1/tenants/{tenant_id}/users/{user_id}/context:assemble", tag = "files",
    params(("tenant_id" = String, Path, description = "The tenant"), ("user_id" = String, Path, description = "The user")),
    request_body = wire::AssembleRequest,
    responses((status = 200, description = "The context", body = wire::AssembledContext)))]
pub(in crate::rest) async fn assemble_context(
    ScopedPrincipal(caller, principal): ScopedPrincipal,
    State(app): State<App>,
    body: JsonBody,
) -> Result<Response, ApiError> {
    let Services { files, memories, .. } = &app.0.services;
    let (user, request_id) = (caller.scope.user().clone(), caller.request_id.clone());
    let admitted = files.admit(caller).await?;
    let rememberer = memories.caller(&principal, request_id);
    let request = decode::assemble(&body.object()?, &user, memories.rules())?;
    let assembled = files.assemble(&admitted, &rememberer, request).await?;
    let mut json = br#"{"files":["#.to_vec();
    for (index, file) in assembled.files.iter().enumerate() {
        json.extend_from_slice(if index == 0 { br#"{"path":"# } else { br#",{"path":"# });
        push_text(&mut json, &file.path);
        json.extend_from_slice(br#","etag":"#);
        push_text(&mut json, &file.etag.to_string());
        json.extend_from_slice(br#","document":"#);
        json.extend_from_slice(file.document.as_bytes());
        json.push(b'}');
    }
    json.extend_from_slice(br#"],"dropped_files":["#);
    for (index, file) in assembled.dropped.iter().enumerate() {
        json.extend_from_slice(if index == 0 { br#"{"path":"# } else { br#",{"path":"# });
        push_text(&mut json, &file.path);
        json.extend_from_slice(br#","reason":"#);
        push_text(&mut json, file.reason.as_str());
        json.push(b'}');
    }
    json.push(b']');
    if let Some(memories) = &assembled.memories {
        json.extend_from_slice(br#","memories":["#);
        json.extend_from_slice(memories.join(",").as_bytes());
        json.push(b']');
    }
    json.push(b'}');
    Ok(written(StatusCode::OK, json))
}

fn answer(file: WrittenFile) -> Result<Response, ApiError> {
    answered(stored(&file.etag, &file.document, file.replayed), &file.etag, file.replayed)
}

/// The answer to a change, with the headers that tell its version, and whether it was given before.
pub(super) fn answered(response: Response, etag: &str, replayed: bool) -> Result<Response, ApiError> {
    let mut response = with_etag(response, etag)?;
    if replayed {
        response.headers_mut().insert(IDEMPOTENCY_REPLAYED, HeaderValue::from_static("true"));
    }
    Ok(response)
}

/// A file as a body. The document is copied as it is stored.
fn stored(etag: &str, document: &str, replayed: bool) -> Response {
    let mut json = Vec::with_capacity(document.len() + 128);
    json.extend_from_slice(br#"{"etag":"#);
    push_text(&mut json, etag);
    json.extend_from_slice(br#","document":"#);
    json.extend_from_slice(document.as_bytes());
    json.extend_from_slice(if replayed { br#","idempotency_replay":true}"# } else { b"}" });
    written(StatusCode::OK, json)
}

fn with_etag(mut response: Response, etag: &str) -> Result<Response, ApiError> {
    let value = HeaderValue::from_str(etag).map_err(|error| Error::internal(error.to_string()))?;
    response.headers_mut().insert(ETAG, value);
    Ok(response)
}

/// Whether the caller has this version already. For reading, a weak validator is as good as a strong one.
fn is_known(headers: &HeaderMap, etag: &str) -> bool {
    headers.get_all(IF_NONE_MATCH).iter().filter_map(|value| value.to_str().ok()).any(|list| {
        list.split(',').map(str::trim).any(|one| one == "*" || one.trim_start_matches("W/") == etag)
    })
}
