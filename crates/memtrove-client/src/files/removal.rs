//! Deleting files, and giving them other paths.

use super::{ETag, Envelope, FilePath, FileVersion, Scope};
use crate::{Client, Result, operations};
use http::header::IF_MATCH;
use memtrove_wire::files::{DeleteFileRequest, MoveFileRequest};
use serde::Deserialize;
use serde_json::Value;

/// Why a file goes, for the audit trail.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct DeleteRequest {
    /// In words.
    pub reason: Option<String>,
    /// What it rests on: any JSON.
    pub evidence: Option<Value>,
}

/// Where a file is to be, and why.
#[derive(Debug, Clone, PartialEq)]
pub struct MoveRequest {
    /// Its new path; nothing may be there yet.
    pub to: FilePath,
    /// Why, for the audit trail.
    pub reason: Option<String>,
    /// What it rests on: any JSON.
    pub evidence: Option<Value>,
}

impl From<FilePath> for MoveRequest {
    fn from(to: FilePath) -> Self {
        Self { to, reason: None, evidence: None }
    }
}

/// A file that is gone.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct DeletedFile {
    /// Where it was.
    pub path: FilePath,
    /// The version that was deleted.
    pub etag: ETag,
    /// Whether this is the answer to an earlier request with the same idempotency key.
    #[serde(default)]
    pub idempotency_replay: bool,
}

/// A file at its new path.
#[derive(Debug, Clone, Deserialize)]
pub struct MovedFile {
    /// Where it is now.
    pub path: FilePath,
    /// Its version there.
    pub etag: ETag,
    /// What it holds.
    pub document: Envelope,
    /// Whether this is the answer to an earlier request with the same idempotency key.
    #[serde(default)]
    pub idempotency_replay: bool,
}

impl Client {
    /// Deletes a file that is at this version, or at [any](FileVersion::Any). The audit trail keeps what it held.
    pub async fn delete_file(
        &self,
        scope: &Scope,
        path: &FilePath,
        request: DeleteRequest,
        version: impl Into<FileVersion>,
    ) -> Result<DeletedFile> {
        let DeleteRequest { reason, evidence } = request;
        let body = DeleteFileRequest { path: path.as_str().to_owned(), reason, evidence };
        self.call(&operations::DELETE_FILE, &scope.names())?
            .header(IF_MATCH, Some(version.into().header()))?
            .json(&body)?
            .receive()
            .await
    }

    /// Gives a file that is at this version, or at [any](FileVersion::Any), another path.
    pub async fn move_file(
        &self,
        scope: &Scope,
        from: &FilePath,
        request: impl Into<MoveRequest>,
        version: impl Into<FileVersion>,
    ) -> Result<MovedFile> {
        let MoveRequest { to, reason, evidence } = request.into();
        let (from, to) = (from.as_str().to_owned(), to.as_str().to_owned());
        self.call(&operations::MOVE_FILE, &scope.names())?
            .header(IF_MATCH, Some(version.into().header()))?
            .json(&MoveFileRequest { from, to, reason, evidence })?
            .receive()
            .await
    }
}
