//! Attachments: files that belong to entries.

use crate::call::Call;
use crate::error::ApiError;
use crate::{AttachmentId, Client, Error, Result, operations};
use bytes::Bytes;
use futures_util::{Stream, StreamExt, TryStream};
use http::StatusCode;
use http::header::{CONTENT_TYPE, ETAG, HeaderMap, IF_NONE_MATCH, LOCATION, RANGE};
pub use memtrove_wire::{Attachment, AttachmentStatus, CreateAttachmentRequest, DownloadUrl};
use reqwest::multipart::{Form, Part};
use reqwest::{Response, Url};
use std::fmt;
use std::time::Duration;

/// A file to store.
pub struct Upload {
    name: String,
    content_type: Option<String>,
    body: reqwest::Body,
    expires_in: Option<Duration>,
}

impl Upload {
    /// A file that is in memory.
    pub fn bytes(name: impl Into<String>, bytes: impl Into<Bytes>) -> Self {
        Self { name: name.into(), content_type: None, body: bytes.into().into(), expires_in: None }
    }

    /// A file that comes piece by piece.
    pub fn stream<S>(name: impl Into<String>, stream: S) -> Self
    where
        S: TryStream + Send + 'static,
        S::Error: Into<crate::BoxError>,
        Bytes: From<S::Ok>,
    {
        let body = reqwest::Body::wrap_stream(stream);
        Self { name: name.into(), content_type: None, body, expires_in: None }
    }

    /// Says what kind of file it is.
    pub fn content_type(self, content_type: impl Into<String>) -> Self {
        Self { content_type: Some(content_type.into()), ..self }
    }

    /// Says how long it waits for an entry that refers to it.
    pub fn expires_in(self, wait: Duration) -> Self {
        Self { expires_in: Some(wait), ..self }
    }

    fn form(self) -> Result<(Form, Option<String>)> {
        let mut part = Part::stream(self.body).file_name(self.name);
        if let Some(content_type) = &self.content_type {
            part = part
                .mime_str(content_type)
                .map_err(|error| Error::invalid(format!("'{content_type}' is no media type: {error}")))?;
        }
        let expires_in = self.expires_in.map(|wait| format!("PT{}S", wait.as_secs()));
        Ok((Form::new().part("file", part), expires_in))
    }
}

impl fmt::Debug for Upload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Upload").field("name", &self.name).finish_non_exhaustive()
    }
}

/// Which part of a file to read, and whether at all.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DownloadOptions {
    /// The first byte, counted from 0, and the last; an open end is the file's.
    pub range: Option<(u64, Option<u64>)>,
    /// No bytes if it still is this version; [`Download::is_unchanged`] says so.
    pub if_none_match: Option<String>,
}

impl DownloadOptions {
    pub(crate) fn on(&self, call: Call) -> Result<Call> {
        let range = self.range.map(|(first, last)| match last {
            Some(last) => format!("bytes={first}-{last}"),
            None => format!("bytes={first}-"),
        });
        call.header(RANGE, range.as_deref())?.header(IF_NONE_MATCH, self.if_none_match.as_deref())
    }
}

/// A file that is being read.
#[derive(Debug)]
pub struct Download {
    response: Response,
    operation: &'static str,
}

impl Download {
    /// Opens a file. Where it is elsewhere, it is read there, without our credentials.
    pub(crate) async fn open(client: &Client, call: Call, options: &DownloadOptions) -> Result<Self> {
        let operation = call.operation_id();
        let response = options.on(call)?.open().await?;
        if response.status() != StatusCode::TEMPORARY_REDIRECT {
            return Self::accept(response, operation);
        }
        let elsewhere = response.headers().get(LOCATION).and_then(|location| location.to_str().ok());
        let elsewhere = elsewhere.and_then(|location| response.url().join(location).ok());
        let Some(url) = elsewhere else {
            return Err(Error::transport(operation, "it is said to be elsewhere, but not where"));
        };
        let call = client.call_at(&operations::DOWNLOAD_SIGNED, url);
        Self::accept(options.on(call)?.open().await?, operation)
    }

    fn accept(response: Response, operation: &'static str) -> Result<Self> {
        match response.status() {
            status if status.is_success() || status == StatusCode::NOT_MODIFIED => {
                Ok(Self { response, operation })
            }
            status => Err(Error::Api(Box::new(ApiError::read(status, response.headers(), b"")))),
        }
    }

    /// Whether it still is the version that was asked about, and so has no bytes here.
    pub fn is_unchanged(&self) -> bool {
        self.response.status() == StatusCode::NOT_MODIFIED
    }

    /// Whether this is only the part that was asked for.
    pub fn is_partial(&self) -> bool {
        self.response.status() == StatusCode::PARTIAL_CONTENT
    }

    /// What kind of file it is.
    pub fn content_type(&self) -> Option<&str> {
        self.headers().get(CONTENT_TYPE)?.to_str().ok()
    }

    /// Its version.
    pub fn etag(&self) -> Option<&str> {
        self.headers().get(ETAG)?.to_str().ok()
    }

    /// How many bytes come, if that is known.
    pub fn content_length(&self) -> Option<u64> {
        self.response.content_length()
    }

    /// Everything else that is said about it.
    pub fn headers(&self) -> &HeaderMap {
        self.response.headers()
    }

    /// All of it.
    pub async fn bytes(self) -> Result<Bytes> {
        let operation = self.operation;
        self.response.bytes().await.map_err(|error| Error::transport(operation, error.without_url()))
    }

    /// It, piece by piece.
    pub fn into_stream(self) -> impl Stream<Item = Result<Bytes>> + Send {
        let operation = self.operation;
        self.response
            .bytes_stream()
            .map(move |piece| piece.map_err(|error| Error::transport(operation, error.without_url())))
    }
}

impl Client {
    /// Stores a file. An entry refers to it by its id in `attachments[].attachmentId`; a file that no entry refers to in time
    /// goes away.
    pub async fn upload_attachment(&self, upload: Upload) -> Result<Attachment> {
        let (form, expires_in) = upload.form()?;
        self.call(&operations::CREATE_ATTACHMENT, &[])?
            .query("expiresIn", expires_in)
            .form(form)
            .receive()
            .await
    }

    /// Has a file fetched from the web. The answer comes before the file.
    pub async fn create_attachment(&self, request: CreateAttachmentRequest) -> Result<Attachment> {
        self.call(&operations::CREATE_ATTACHMENT, &[])?.json(&request)?.receive().await
    }

    /// Reads a file.
    pub async fn get_attachment(&self, id: AttachmentId, options: DownloadOptions) -> Result<Download> {
        Download::open(self, self.call(&operations::GET_ATTACHMENT, &[&id.to_string()])?, &options).await
    }

    /// Deletes a file that belongs to no entry yet.
    pub async fn delete_attachment(&self, id: AttachmentId) -> Result<()> {
        self.call(&operations::DELETE_ATTACHMENT, &[&id.to_string()])?.finish().await
    }

    /// Where a file can be read without credentials, for a short time.
    pub async fn download_url(&self, id: AttachmentId) -> Result<DownloadUrl> {
        self.call(&operations::DOWNLOAD_URL, &[&id.to_string()])?.receive().await
    }

    /// Reads a file from where [`download_url`](Self::download_url) said, without credentials.
    pub async fn download_signed(&self, link: &DownloadUrl, options: DownloadOptions) -> Result<Download> {
        let url = self.absolute(&link.url)?;
        Download::open(self, self.call_at(&operations::DOWNLOAD_SIGNED, url), &options).await
    }

    /// An address that may be one of this service.
    fn absolute(&self, address: &str) -> Result<Url> {
        let base = &self.inner.base_url;
        let url = match address.strip_prefix('/') {
            // The path of the base stays in front, as for every operation.
            Some(_) => format!("{}{address}", base.as_str().trim_end_matches('/')).parse(),
            None => base.join(address),
        };
        url.map_err(|error| Error::invalid(format!("the link leads nowhere: {error}")))
    }
}
