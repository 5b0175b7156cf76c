//! Files as texts: the document around a text is made, kept and looked through here.

use crate::AgentMemory;
use memtrove_client::{
    CallOptions, Client, ETag, Envelope, Error, FilePath, FileUpdate, PatchRequest, Precondition, Result,
    Scope, StoredFile, TextEdit, UpdateOptions, WriteRequest,
};
use memtrove_wire::tools::{MARKDOWN, file_envelope, shown, text_content};
use serde::Serialize;
use serde_json::{Map, Value};
use uuid::Builder;

/// This many times a change starts again when somebody else was faster.
const CONFLICT_RETRIES: u32 = 3;

/// A file as a text. As JSON it is what the tools answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct MemoryFile {
    /// Its path.
    pub path: String,
    /// What kind of text it is; `application/json` where the file holds something else, which is then shown as JSON.
    pub content_type: String,
    /// The text.
    pub content: String,
    /// The version that has this text.
    pub etag: ETag,
}

impl MemoryFile {
    pub(crate) fn of(path: &FilePath, file: StoredFile) -> Self {
        let (content_type, content) = shown(&file.document.content);
        Self { path: path.to_string(), content_type, content, etag: file.etag }
    }
}

/// What a [`write_file`](AgentMemory::write_file) expects to find.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum WriteMode {
    /// Whatever there is, or nothing. If somebody else writes meanwhile, theirs is replaced too.
    #[default]
    Overwrite,
    /// The file at this version.
    IfUnchanged(ETag),
    /// Nothing.
    CreateOnly,
}

/// How a file is written.
#[derive(Debug, Clone, Default)]
pub struct WriteFileOptions {
    /// What to expect.
    pub mode: WriteMode,
    /// What kind of text it is; what it was, or Markdown, unless said otherwise.
    pub content_type: Option<String>,
    /// Why, for the audit trail; `memory_write_file` unless said otherwise.
    pub reason: Option<String>,
    /// What it rests on: any JSON, kept in the audit trail.
    pub evidence: Option<Value>,
    /// Who acts, as the audit trail is to name it; the client's unless given.
    pub service_id: Option<String>,
}

impl WriteFileOptions {
    /// Only if the file is still at this version.
    pub fn if_unchanged(etag: impl Into<ETag>) -> Self {
        Self { mode: WriteMode::IfUnchanged(etag.into()), ..Self::default() }
    }

    /// Only if there is no such file.
    pub fn create_only() -> Self {
        Self { mode: WriteMode::CreateOnly, ..Self::default() }
    }
}

/// How a file is patched.
#[derive(Debug, Clone)]
pub struct PatchFileOptions {
    /// Why, for the audit trail; `memory_patch_file` unless said otherwise.
    pub reason: Option<String>,
    /// What it rests on: any JSON, kept in the audit trail.
    pub evidence: Option<Value>,
    /// Who acts, as the audit trail is to name it; the client's unless given.
    pub service_id: Option<String>,
    /// This many times it starts again when somebody else was faster.
    pub max_conflict_retries: u32,
}

impl Default for PatchFileOptions {
    fn default() -> Self {
        Self { reason: None, evidence: None, service_id: None, max_conflict_retries: CONFLICT_RETRIES }
    }
}

impl AgentMemory {
    /// Loads a file as a text.
    pub async fn load_file(&self, scope: &Scope, path: &str) -> Result<MemoryFile> {
        let path = FilePath::new(path)?;
        let file = self.client.get_file(scope, &path).await?;
        Ok(MemoryFile::of(&path, file))
    }

    /// Writes a text. What else the file's document has stays, its other content goes.
    pub async fn write_file(
        &self,
        scope: &Scope,
        path: &str,
        content: &str,
        options: WriteFileOptions,
    ) -> Result<MemoryFile> {
        let path = FilePath::new(path)?;
        let writing = Writing { content, options: &options };
        let client = self.acting_as(options.service_id.clone());
        let file = match &options.mode {
            WriteMode::CreateOnly => {
                client.write_file(scope, &path, writing.over(None), Precondition::CreateNew).await?
            }
            WriteMode::IfUnchanged(etag) => {
                let found = match client.get_file(scope, &path).await {
                    Err(error) if error.is_not_found() => None,
                    found => Some(found?),
                };
                client.write_file(scope, &path, writing.over(found), etag).await?
            }
            // Also over what others write meanwhile, within reason.
            WriteMode::Overwrite => {
                let update = UpdateOptions { service_id: None, max_conflict_retries: CONFLICT_RETRIES };
                let write = |found| std::future::ready(Ok(writing.over(found)));
                client.write_with_retry(scope, &path, update, write).await?
            }
        };
        Ok(MemoryFile::of(&path, file))
    }

    /// Replaces parts of a text: all of the edits or none. Each sees what those before it left.
    pub async fn patch_file(
        &self,
        scope: &Scope,
        path: &str,
        edits: Vec<TextEdit>,
        options: PatchFileOptions,
    ) -> Result<MemoryFile> {
        let path = FilePath::new(path)?;
        if edits.is_empty() {
            return Err(Error::invalid("there is no edit: give at least one"));
        }
        if let Some(index) = edits.iter().position(|edit| edit.old_text.is_empty()) {
            return Err(Error::invalid(format!(
                "edit {index} has no old_text: give the text that it replaces"
            )));
        }
        let request = PatchRequest {
            ops: None,
            edits: Some(edits),
            reason: Some(options.reason.unwrap_or_else(|| "memory_patch_file".to_owned())),
            evidence: options.evidence,
        };
        let update = UpdateOptions {
            service_id: options.service_id,
            max_conflict_retries: options.max_conflict_retries,
        };
        let file = self
            .client
            .update_with_retry(scope, &path, update, |_| {
                std::future::ready(Ok(FileUpdate::Patch(request.clone())))
            })
            .await?;
        Ok(MemoryFile::of(&path, file))
    }

    /// The client in the name of a service, if one is given. Whatever else its calls are told stays.
    fn acting_as(&self, service_id: Option<String>) -> Client {
        match service_id {
            None => self.client.clone(),
            service_id => {
                self.client.with_options(CallOptions { service_id, ..self.client.options().clone() })
            }
        }
    }
}

/// A text on its way into a file.
struct Writing<'a> {
    content: &'a str,
    options: &'a WriteFileOptions,
}

impl Writing<'_> {
    /// What to write over what was found.
    fn over(&self, found: Option<StoredFile>) -> WriteRequest {
        WriteRequest {
            document: self.document(found.map(|file| file.document)),
            reason: Some(self.options.reason.clone().unwrap_or_else(|| "memory_write_file".to_owned())),
            evidence: self.options.evidence.clone(),
        }
    }

    fn document(&self, found: Option<Envelope>) -> Envelope {
        let content_type = match (&self.options.content_type, &found) {
            (Some(given), _) => given,
            (None, Some(document)) => text_type(&document.content).unwrap_or(MARKDOWN),
            (None, None) => MARKDOWN,
        };
        let content = text_content(content_type, self.content);
        match found {
            Some(document) => Envelope { content, ..document },
            None => file_envelope(fresh_id(), content),
        }
    }
}

/// What kind of text a file holds, where it holds one.
fn text_type(content: &Map<String, Value>) -> Option<&str> {
    content.get("text").filter(|text| text.is_string())?;
    content.get("content_type")?.as_str()
}

/// A random UUID.
fn fresh_id() -> String {
    Builder::from_random_bytes(rand::random()).into_uuid().to_string()
}
