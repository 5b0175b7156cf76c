//! Reading, listing, writing and patching files.

use super::mutation::{Action, Mutation, RequestedChange, SeenFile};
use super::replay::FileReplay;
use super::{Admitted, Files, Reader, SeesFiles, Writer};
use crate::files_metrics;
use memtrove_core::files::{
    Code, FilePath, FilePrecondition, IdempotencyKey, Patch, Reasons, body, envelope, path,
};
use memtrove_core::{Error, Result};
use memtrove_store::files::documents::{self, After, ListedFile, StoredFile};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

const DEFAULT_LIST_LIMIT: i64 = 100;
const MAX_LIST_LIMIT: i64 = 500;

/// A file to be created, or replaced by another document.
#[derive(Debug, Clone)]
pub struct PutFile {
    pub path: FilePath,
    pub precondition: FilePrecondition,
    pub envelope: Map<String, Value>,
    pub reasons: Reasons,
    pub key: Option<IdempotencyKey>,
}

/// A file to be changed in parts.
#[derive(Debug, Clone)]
pub struct PatchFile {
    pub path: FilePath,
    pub precondition: FilePrecondition,
    pub patch: Patch,
    pub reasons: Reasons,
    pub key: Option<IdempotencyKey>,
}

/// A version that was written, now or, under the same key, before.
#[derive(Debug, Clone)]
pub struct WrittenFile {
    /// Its ETag.
    pub etag: String,
    /// Its envelope: compact JSON.
    pub document: String,
    /// Whether this is the answer to an earlier request.
    pub replayed: bool,
}

/// A request for a list of files.
#[derive(Debug, Clone, Default)]
pub struct ListFiles {
    /// What paths begin with, whatever their letter case.
    pub prefix: Option<String>,
    /// The most files.
    pub limit: Option<i64>,
    /// Go on after this path.
    pub after: Option<String>,
}

#[derive(Debug, Clone)]
pub struct FileList {
    /// The files, in the order of their folded paths.
    pub files: Vec<ListedFile>,
    /// The last path, if there are more.
    pub next_after: Option<String>,
}

impl Files {
    pub async fn list(&self, admitted: &Admitted<Reader>, request: ListFiles) -> Result<FileList> {
        let limit = request.limit.unwrap_or(DEFAULT_LIST_LIMIT);
        if !(1..=MAX_LIST_LIMIT).contains(&limit) {
            let message = format!("'limit' must be 1..{MAX_LIST_LIMIT}");
            return Err(Error::new(Code::InvalidLimit, message));
        }
        let prefix =
            request.prefix.as_deref().map(path::list_prefix).transpose()?.flatten().unwrap_or_default();
        let after = request.after.unwrap_or_default();
        let after = After { folded: path::fold(&after), path: after };
        let scope = admitted.caller().scope.clone();
        let mut files = self
            .cx
            .store
            .read(scope.tenant().clone(), "list_files", move |tx| {
                Ok::<_, Error>(documents::list(tx, &scope, &prefix, &after, limit + 1)?)
            })
            .await?;
        let more = files.len() as i64 > limit;
        files.truncate(limit as usize);
        let next_after = files.last().filter(|_| more).map(|file| file.path.clone());
        Ok(FileList { files, next_after })
    }

    /// A file.
    pub async fn get(&self, admitted: &Admitted<impl SeesFiles>, path: FilePath) -> Result<StoredFile> {
        let scope = admitted.caller().scope.clone();
        let found = self
            .cx
            .store
            .read(scope.tenant().clone(), "get_file", move |tx| documents::get(tx, &scope, &path))
            .await;
        found.map_err(Error::from)?.ok_or_else(not_found)
    }

    /// Creates a file, or replaces it.
    pub async fn put(&self, admitted: &Admitted<Writer>, request: PutFile) -> Result<WrittenFile> {
        let result = self.refund_refused(admitted, self.try_put(admitted, request).await);
        files_metrics::mutation("put", &result);
        result
    }

    async fn try_put(&self, admitted: &Admitted<Writer>, request: PutFile) -> Result<WrittenFile> {
        let PutFile { path, precondition, envelope, reasons, key } = request;
        let (action, now) = (Action::put(&precondition), self.cx.clock.now());
        let mutation = Mutation::new(RequestedChange {
            caller: admitted.caller().clone(),
            path,
            change: self.cx.clock.new_id(),
            action,
            precondition,
            reasons,
            replay: FileReplay::new(&self.cx, key),
            ops: Vec::new(),
            edits: Vec::new(),
            to: None,
        });
        // Judged before the precondition, as far as it does not depend on what is stored.
        let mut draft = match body::member(&envelope, "created_at") {
            None if action == Action::Replace => envelope::check(&envelope).map(|()| None)?,
            _ => Some(mutation.draft(envelope.clone(), now, None)?),
        };
        if action == Action::Replace {
            let stored = match mutation.look(&self.cx).await? {
                SeenFile::Answered(written) => return Ok(written),
                SeenFile::File(stored) => stored,
            };
            if draft.is_none() || stored.updated_at > now {
                let created_at = envelope::stored(&stored.document)?.shift_remove("created_at");
                let at = now.max(stored.updated_at);
                draft = Some(mutation.draft(envelope.clone(), at, created_at.as_ref())?);
            }
        }
        let draft = draft.ok_or_else(|| Error::internal("a version was never drafted"))?;
        mutation.commit(&self.cx, &self.memories, draft).await
    }

    /// Changes parts of a file.
    pub async fn patch(&self, admitted: &Admitted<Writer>, request: PatchFile) -> Result<WrittenFile> {
        let result = self.try_patch(admitted, request).await;
        files_metrics::mutation("patch", &result);
        result
    }

    async fn try_patch(&self, admitted: &Admitted<Writer>, request: PatchFile) -> Result<WrittenFile> {
        let PatchFile { path, precondition, patch, reasons, key } = request;
        let mutation = Mutation::new(RequestedChange {
            caller: admitted.caller().clone(),
            path,
            change: self.cx.clock.new_id(),
            action: Action::Patch,
            precondition,
            reasons,
            replay: FileReplay::new(&self.cx, key),
            ops: patch.ops_json().to_vec(),
            edits: patch.edits_json().to_vec(),
            to: None,
        });
        let stored = match mutation.look(&self.cx).await? {
            SeenFile::Answered(written) => return Ok(written),
            SeenFile::File(stored) => stored,
        };
        let mut envelope = envelope::stored(&stored.document)?;
        let created_at = envelope.get("created_at").cloned();
        patch.apply(&mut envelope)?;
        let now = self.cx.clock.now().max(stored.updated_at);
        let draft = mutation.draft(envelope, now, created_at.as_ref())?;
        mutation.commit(&self.cx, &self.memories, draft).await
    }
}

pub(super) fn not_found() -> Error {
    Error::new(Code::DocumentNotFound, "there is no such file")
}

/// An answer as it is kept for a repetition.
#[derive(Serialize, Deserialize)]
struct StoredAnswer {
    etag: String,
    document: Box<serde_json::value::RawValue>,
}

impl WrittenFile {
    pub(super) fn to_json(&self) -> Result<String> {
        let internal = |error: serde_json::Error| Error::internal(error.to_string());
        let document = serde_json::value::RawValue::from_string(self.document.clone()).map_err(internal)?;
        serde_json::to_string(&StoredAnswer { etag: self.etag.clone(), document }).map_err(internal)
    }

    pub(super) fn replayed(answer: &str) -> Result<Self> {
        let kept: StoredAnswer = serde_json::from_str(answer)
            .map_err(|error| Error::internal(format!("a remembered answer cannot be read: {error}")))?;
        Ok(Self { etag: kept.etag, document: kept.document.get().to_owned(), replayed: true })
    }
}
