//! Reading and writing files.

use super::{ETag, Envelope, FilePath, PatchRequest, Precondition, Scope};
use crate::paging::pages;
use crate::{Client, Result, operations};
use futures_util::Stream;
use http::header::{IF_MATCH, IF_NONE_MATCH};
use memtrove_core::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_with::skip_serializing_none;

/// Which files to list; by default the first hundred of all.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ListFiles {
    /// Only those whose path begins with this, whatever the letter case.
    pub prefix: Option<String>,
    /// The most files; 100 unless said otherwise, 500 at most.
    pub limit: Option<u32>,
    /// Only those that come after this path.
    pub after: Option<String>,
}

impl ListFiles {
    /// All files whose path begins with this.
    pub fn under(prefix: impl Into<String>) -> Self {
        Self { prefix: Some(prefix.into()), ..Self::default() }
    }
}

/// Some of the files, by lower-cased path.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct FileList {
    /// The files.
    pub files: Vec<FileEntry>,
    /// Where to go on (`after`), if there are more.
    pub next_after: Option<String>,
}

/// A file in a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileEntry {
    /// Its path.
    pub path: FilePath,
    /// When it was last changed.
    pub last_modified_utc: Timestamp,
}

/// A file at a version.
#[derive(Debug, Clone, Deserialize)]
pub struct StoredFile {
    /// The version.
    pub etag: ETag,
    /// What the file holds.
    pub document: Envelope,
    /// Whether this is the answer to an earlier request with the same idempotency key.
    #[serde(default)]
    pub idempotency_replay: bool,
}

impl StoredFile {
    /// The text of the file, where it has one: `content.text`.
    pub fn text(&self) -> Option<&str> {
        self.document.content.get("text").and_then(Value::as_str)
    }
}

/// A whole new document for a file.
#[skip_serializing_none]
#[derive(Debug, Clone, Serialize)]
pub struct WriteRequest {
    /// The document.
    pub document: Envelope,
    /// Why, for the audit trail.
    pub reason: Option<String>,
    /// What it rests on: any JSON, kept in the audit trail as it is.
    pub evidence: Option<Value>,
}

impl WriteRequest {
    /// A document, without a word about why.
    pub fn new(document: Envelope) -> Self {
        Self { document, reason: None, evidence: None }
    }

    /// The same with a reason for the audit trail.
    pub fn because(self, reason: impl Into<String>) -> Self {
        Self { reason: Some(reason.into()), ..self }
    }
}

impl From<Envelope> for WriteRequest {
    fn from(document: Envelope) -> Self {
        Self::new(document)
    }
}

impl Client {
    /// Lists files, by lower-cased path.
    pub async fn list_files(&self, scope: &Scope, request: ListFiles) -> Result<FileList> {
        self.call(&operations::LIST_FILES, &scope.names())?
            .query("prefix", request.prefix)
            .query("limit", request.limit)
            .query("after", request.after)
            .receive()
            .await
    }

    /// Lists files to the last one, asking for more as they are taken. The limit is that of each request.
    pub fn list_files_all(
        &self,
        scope: &Scope,
        request: ListFiles,
    ) -> impl Stream<Item = Result<FileEntry>> + Send + use<> {
        let (client, scope) = (self.clone(), scope.clone());
        pages(request.after.clone(), move |after| {
            let (client, scope, request) = (client.clone(), scope.clone(), request.clone());
            async move {
                let list = client.list_files(&scope, ListFiles { after, ..request }).await?;
                Ok((list.files, list.next_after))
            }
        })
    }

    /// Reads a file.
    pub async fn get_file(&self, scope: &Scope, path: &FilePath) -> Result<StoredFile> {
        self.call(&operations::GET_FILE, &scope.names_with(path.as_str()))?.receive().await
    }

    /// Reads a file unless it is still at this version.
    pub async fn get_file_if_changed(
        &self,
        scope: &Scope,
        path: &FilePath,
        seen: &ETag,
    ) -> Result<Option<StoredFile>> {
        self.call(&operations::GET_FILE, &scope.names_with(path.as_str()))?
            .header(IF_NONE_MATCH, Some(seen.as_str()))?
            .receive_changed()
            .await
    }

    /// Changes parts of a file.
    pub async fn patch_file(
        &self,
        scope: &Scope,
        path: &FilePath,
        request: PatchRequest,
        precondition: impl Into<Precondition>,
    ) -> Result<StoredFile> {
        self.call(&operations::PATCH_FILE, &scope.names_with(path.as_str()))?
            .header(IF_MATCH, Some(precondition.into().header()))?
            .json(&request)?
            .receive()
            .await
    }

    /// Creates a file, or replaces it.
    pub async fn write_file(
        &self,
        scope: &Scope,
        path: &FilePath,
        request: impl Into<WriteRequest>,
        precondition: impl Into<Precondition>,
    ) -> Result<StoredFile> {
        self.call(&operations::PUT_FILE, &scope.names_with(path.as_str()))?
            .header(IF_MATCH, Some(precondition.into().header()))?
            .json(&request.into())?
            .receive()
            .await
    }
}
