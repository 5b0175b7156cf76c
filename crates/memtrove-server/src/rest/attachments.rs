//! `/v1/attachments`: files that belong to entries.

pub(super) mod admin;
mod delivery;
mod form;
mod incoming;
mod ranges;
pub(crate) mod uploads;

pub use uploads::Uploads;

use super::App;
use super::error::{ApiError, ErrorBody};
use super::extract::{self, Query, Segments, User};
use super::reply::{Created, Ok200};
use axum::extract::{FromRequest, Request, State};
use axum::response::Response;
use delivery::Caching;
use form::Form;
use http::{HeaderMap, Method, StatusCode};
use incoming::Incoming;
use memtrove_core::identity::Caller;
use memtrove_core::{AttachmentId, Error, Resource, Result as CoreResult, parse_uuid};
use memtrove_service::attachments::{Content, DownloadUrl, NewAttachment, NewSource, Upload};
use memtrove_wire as wire;
use serde::Deserialize;
use std::time::Duration;
use utoipa::{IntoParams, ToSchema};

/// The part of a form that is the file.
const FILE: &str = "file";

/// The most bytes of a request that names a source.
const MAX_SOURCE_BYTES: u64 = 64 * 1024;
/// How long it may take to come.
const SOURCE_TIMEOUT: Duration = Duration::from_secs(30);

/// An attachment's id in a path.
fn attachment_id(text: &str) -> CoreResult<AttachmentId> {
    parse_uuid(text).map(AttachmentId).ok_or_else(|| Error::not_found(Resource::Attachment, text))
}

#[derive(Deserialize, IntoParams)]
#[serde(rename_all = "camelCase")]
#[into_params(parameter_in = Query)]
pub(super) struct CreateQuery {
    /// How long it is kept unless an entry refers to it, as an ISO 8601 duration: `PT1H` unless said otherwise, at most `PT24H`.
    #[param(example = "PT1H")]
    expires_in: Option<String>,
}

/// A form with a file.
#[derive(ToSchema)]
#[allow(
    dead_code,
    reason = "describes the form in the OpenAPI document; the handler reads it piece by piece"
)]
pub(super) struct AttachmentForm {
    /// The file, with its name and its media type.
    #[schema(format = Binary, content_media_type = "application/octet-stream")]
    file: String,
}

/// Stores a file, or has it fetched from the web.
///
/// A form brings the file in the part `file`; other parts are passed over. A JSON body names where it is: then the answer comes
/// before the file, with the status `downloading`. An entry refers to the file by naming its id in `attachments[].attachmentId`;
/// a file that no entry refers to in time goes away.
#[utoipa::path(post, path = "/v1/attachments", tag = "attachments", params(CreateQuery),
    request_body(content((AttachmentForm = "multipart/form-data"), (wire::CreateAttachmentRequest = "application/json"))),
    responses((status = 201, description = "What is known of the file", body = wire::Attachment),
        (status = 413, description = "The file is too large", body = ErrorBody),
        (status = 415, description = "The body is neither a form nor JSON", body = ErrorBody)))]
pub(super) async fn create_attachment(
    User(caller): User,
    Query(query): Query<CreateQuery>,
    State(app): State<App>,
    request: Request,
) -> Result<Created<wire::Attachment>, ApiError> {
    let expires_in = extract::given("expiresIn", query.expires_in)?;
    let attachments = &app.0.services.attachments;
    if form::is_form(request.headers()) {
        let _place = app.uploads().admit(&caller)?;
        let upload = upload(&app, &caller, request, expires_in).await?;
        return Ok(Created(upload.finish().await?.into()));
    }
    let request: wire::CreateAttachmentRequest = source(request).await?;
    let source = NewSource {
        source_url: request.source_url,
        content_type: request.content_type,
        name: request.name,
        expires_in,
    };
    Ok(Created(attachments.fetch(&caller, source).await?.into()))
}

/// Writes the file of a form while it comes. Only when the form has come to its end is it known to be whole.
async fn upload(
    app: &App,
    caller: &Caller,
    request: Request,
    expires_in: Option<String>,
) -> CoreResult<Upload> {
    let attachments = &app.0.services.attachments;
    let mut form = Form::of(request, attachments.max_bytes()).await?;
    let mut file = None;
    while let Some(mut part) = form.next().await? {
        if part.head.name != FILE {
            part.pass_over().await?;
            continue;
        }
        if file.is_some() {
            return Err(Error::invalid(FILE, "was sent more than once: send one file"));
        }
        let head = std::mem::take(&mut part.head);
        let (filename, content_type) = (head.filename, head.content_type);
        let new = NewAttachment { filename, content_type, expires_in: expires_in.clone() };
        let mut upload = attachments.begin(caller, new).await?;
        while let Some(bytes) = part.chunk().await? {
            upload.write(bytes).await?;
        }
        file = Some(upload);
    }
    file.ok_or_else(|| Error::invalid(FILE, "is required: send the file as the part `file` of the form"))
}

/// The JSON of a request whose body nobody has limited yet.
async fn source(mut request: Request) -> Result<wire::CreateAttachmentRequest, ApiError> {
    let watch = Incoming::limit(&mut request, MAX_SOURCE_BYTES);
    let read = tokio::time::timeout(SOURCE_TIMEOUT, extract::Body::from_request(request, &()));
    let body = read.await.map_err(|_| Error::TIMEOUT)?.map_err(|error| match watch.stopped() {
        Some(_) => Error::too_large(MAX_SOURCE_BYTES, None).into(),
        None => error,
    })?;
    Ok(body.object()?)
}

#[derive(IntoParams)]
#[into_params(parameter_in = Header)]
#[allow(dead_code, reason = "describes the headers in the OpenAPI document; the handlers read them")]
pub(super) struct ReadHeaders {
    /// ETags that the caller has: 304 if the file is among them.
    #[param(rename = "If-None-Match", nullable = false)]
    if_none_match: Option<String>,
    /// One range of bytes; several, or what is none, ask for the whole file.
    #[param(rename = "Range", nullable = false, example = "bytes=0-1023")]
    range: Option<String>,
    /// The ETag of the file that the range is of; the whole file if it is another one.
    #[param(rename = "If-Range", nullable = false)]
    if_range: Option<String>,
}

/// Reads a file.
///
/// Whoever uploaded it, until an entry refers to it; then whoever may read the entry. Types that a browser would run come as
/// `application/octet-stream`; only pictures, sound, films, plain text and JSON are shown, all else is to be saved. An object
/// store may be where the bytes are read.
#[utoipa::path(get, path = "/v1/attachments/{attachmentId}", tag = "attachments",
    params(("attachmentId" = uuid::Uuid, Path, description = "The file"), ReadHeaders),
    responses(
        (status = 200, description = "The file", content_type = "*/*", headers(("ETag" = String, description = "The digest of its bytes"))),
        (status = 206, description = "The range of it", content_type = "*/*", headers(("Content-Range" = String, description = "Which bytes these are"))),
        (status = 304, description = "The caller has it"),
        (status = 307, description = "It is there: in the object store or, for who brought it, at its source while it is fetched"),
        (status = 409, description = "It is still on its way", body = ErrorBody),
        (status = 416, description = "It does not have these bytes", body = ErrorBody),
        (status = 422, description = "Its source could not be fetched", body = ErrorBody)))]
pub(super) async fn get_attachment(
    User(caller): User,
    Segments(id): Segments<String>,
    State(app): State<App>,
    method: Method,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let id = attachment_id(&id)?;
    let opened = app.0.services.attachments.open(&caller, id).await?;
    deliver(&app, opened, Caching::Day, &method, &headers).await
}

/// The bytes of a file, from wherever they are.
async fn deliver(
    app: &App,
    (attachment, content): (memtrove_core::attachments::Attachment, Content),
    caching: Caching,
    method: &Method,
    headers: &HeaderMap,
) -> Result<Response, ApiError> {
    match content {
        Content::Bytes => delivery::bytes(app, &attachment, caching, method, headers).await,
        Content::Redirect { url, lasting } => Ok(delivery::elsewhere(&url, lasting, caching)?),
    }
}

/// Makes an address at which a file can be read without credentials, for a short time.
#[utoipa::path(get, path = "/v1/attachments/{attachmentId}/download-url", tag = "attachments",
    params(("attachmentId" = uuid::Uuid, Path, description = "The file")),
    responses((status = 200, description = "The address", body = wire::DownloadUrl),
        (status = 422, description = "Its source could not be fetched", body = ErrorBody)))]
pub(super) async fn download_url(
    User(caller): User,
    Segments(id): Segments<String>,
    State(app): State<App>,
) -> Result<Ok200<wire::DownloadUrl>, ApiError> {
    let id = attachment_id(&id)?;
    Ok(Ok200(signed(app.0.services.attachments.download_url(&caller, id).await?)))
}

fn signed(DownloadUrl { url, expires_in }: DownloadUrl) -> wire::DownloadUrl {
    wire::DownloadUrl { url, expires_in: expires_in.as_secs() }
}

/// Reads a file at an address that `download-url` made, without credentials.
#[utoipa::path(get, path = "/v1/attachments/download/{token}/{filename}", tag = "attachments", security(()),
    params(("token" = String, Path, description = "What the address was signed with"),
        ("filename" = String, Path, description = "The name to save it under; anything will do"), ReadHeaders),
    responses(
        (status = 200, description = "The file", content_type = "*/*", headers(("ETag" = String, description = "The digest of its bytes"))),
        (status = 206, description = "The range of it", content_type = "*/*", headers(("Content-Range" = String, description = "Which bytes these are"))),
        (status = 304, description = "The caller has it"),
        (status = 403, description = "The address cannot be used, or not any more", body = ErrorBody),
        (status = 416, description = "It does not have these bytes", body = ErrorBody)))]
pub(super) async fn download_signed(
    Segments((token, _filename)): Segments<(String, String)>,
    State(app): State<App>,
    method: Method,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let (attachment, left) = app.0.services.attachments.open_signed(&token).await?;
    delivery::bytes(&app, &attachment, Caching::Link(left), &method, &headers).await
}

/// Deletes a file that no entry refers to; for whoever uploaded it.
#[utoipa::path(delete, path = "/v1/attachments/{attachmentId}", tag = "attachments",
    params(("attachmentId" = uuid::Uuid, Path, description = "The file")),
    responses((status = 204, description = "Deleted"),
        (status = 409, description = "An entry refers to it, or it is still being uploaded", body = ErrorBody)))]
pub(super) async fn delete_attachment(
    User(caller): User,
    Segments(id): Segments<String>,
    State(app): State<App>,
) -> Result<StatusCode, ApiError> {
    app.0.services.attachments.delete(&caller, attachment_id(&id)?).await?;
    Ok(StatusCode::NO_CONTENT)
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::body::Body;
    use axum::response::IntoResponse;
    use futures_util::StreamExt;
    use http::header::CONTENT_TYPE;

    #[tokio::test(start_paused = true)]
    async fn a_source_whose_name_does_not_come_is_not_waited_for() {
        let begun = futures_util::stream::once(async { Ok::<_, std::io::Error>("{\"sourceUrl\":") });
        let body = Body::from_stream(begun.chain(futures_util::stream::pending()));
        let request = Request::post("/v1/attachments").header(CONTENT_TYPE, "application/json");
        let error = source(request.body(body).unwrap()).await.unwrap_err();
        assert_eq!(error.into_response().status(), StatusCode::GATEWAY_TIMEOUT);
    }
}
