//! Files, events and what is done with a whole user, as they go over the wire.

use crate::memories::{FoundMemory, SearchMemoriesRequest};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use serde_with::skip_serializing_none;
use utoipa::ToSchema;
use uuid::Uuid;

/// A document: what every file holds.
#[skip_serializing_none]
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct Envelope {
    /// The caller's id of the document.
    #[schema(example = "0190b6c4-7a3e-7c1f-9d52-2f6f3a6f1a10", pattern = r"\S")]
    pub doc_id: String,
    /// The caller's name for what the content looks like; not interpreted.
    #[schema(example = "notes", pattern = r"\S")]
    pub schema_id: String,
    /// Its version.
    #[schema(example = "1.0.0", pattern = r"\S")]
    pub schema_version: String,
    /// When it was created (RFC 3339); the time of the first write where absent.
    #[schema(format = DateTime)]
    pub created_at: Option<String>,
    /// When it was last changed; set by the server.
    pub updated_at: Option<String>,
    /// Who changed it last; set by the server.
    pub updated_by: Option<String>,
    /// The content itself. Text edits work on its `text`.
    #[schema(value_type = Object)]
    pub content: Map<String, Value>,
    /// Whatever else the caller keeps with it.
    #[serde(flatten)]
    #[schema(value_type = Object)]
    pub extra: Map<String, Value>,
}

impl Envelope {
    /// A document with what every document needs.
    pub fn new(
        doc_id: impl Into<String>,
        schema_id: impl Into<String>,
        schema_version: impl Into<String>,
        content: Map<String, Value>,
    ) -> Self {
        Self {
            doc_id: doc_id.into(),
            schema_id: schema_id.into(),
            schema_version: schema_version.into(),
            created_at: None,
            updated_at: None,
            updated_by: None,
            content,
            extra: Map::new(),
        }
    }

    /// A document that is a Markdown text, as agents keep them: text edits work on it.
    pub fn markdown(doc_id: impl Into<String>, text: impl Into<String>) -> Self {
        let content = [("content_type", "text/markdown".to_owned()), ("text", text.into())];
        let content = content.map(|(name, value)| (name.to_owned(), Value::String(value)));
        Self::new(doc_id, "memnet.file", "1.0.0", Map::from_iter(content))
    }
}

/// A file at a version.
#[skip_serializing_none]
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct StoredFile {
    /// The version, for `If-Match`; opaque.
    #[schema(example = "\"3-0190b6c47a3e7c1f9d522f6f3a6f1a10\"")]
    pub etag: String,
    /// What the file holds.
    pub document: Envelope,
    /// `true` when this is the answer to an earlier request with the same `Idempotency-Key`.
    pub idempotency_replay: Option<bool>,
}

/// A file in a list.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct FileEntry {
    /// Its path.
    #[schema(example = "projects/memtrove.md")]
    pub path: String,
    /// When it was last changed.
    #[schema(format = DateTime)]
    pub last_modified_utc: String,
}

/// A list of files, by lower-cased path.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct FileList {
    /// The files.
    pub files: Vec<FileEntry>,
    /// Where to go on (`after`), if there are more.
    pub next_after: Option<String>,
}

/// A request to create or replace a file.
#[skip_serializing_none]
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct WriteFileRequest {
    /// The whole new document.
    pub document: Envelope,
    /// Why, for the audit trail.
    #[schema(max_length = 256)]
    pub reason: Option<String>,
    /// What it rests on: any JSON, kept in the audit trail as it is.
    pub evidence: Option<Value>,
}

/// A request to change parts of a file. At least one of `ops` and `edits`, at most a hundred together; operations first.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, Serialize, Deserialize, ToSchema)]
pub struct PatchFileRequest {
    /// RFC 6902 operations on the whole envelope.
    #[schema(max_items = 100)]
    pub ops: Option<Vec<PatchOp>>,
    /// Replacements in `content.text`, one after the other.
    #[schema(max_items = 100)]
    pub edits: Option<Vec<TextEdit>>,
    /// Why, for the audit trail.
    #[schema(max_length = 256)]
    pub reason: Option<String>,
    /// What it rests on: any JSON, kept in the audit trail as it is.
    pub evidence: Option<Value>,
}

/// A request to delete a file.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, Serialize, Deserialize, ToSchema)]
pub struct DeleteFileRequest {
    /// The file.
    #[schema(example = "projects/memtrove.md")]
    pub path: String,
    /// Why, for the audit trail.
    #[schema(max_length = 256)]
    pub reason: Option<String>,
    /// What it rests on: any JSON, kept in the audit trail as it is.
    pub evidence: Option<Value>,
}

/// A file that is gone.
#[skip_serializing_none]
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct DeletedFile {
    /// Where it was.
    pub path: String,
    /// The version that was deleted.
    #[schema(example = "\"3-0190b6c47a3e7c1f9d522f6f3a6f1a10\"")]
    pub etag: String,
    /// `true`.
    pub deleted: bool,
    /// `true` when this is the answer to an earlier request with the same `Idempotency-Key`.
    pub idempotency_replay: Option<bool>,
}

/// A request to give a file another path.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, Serialize, Deserialize, ToSchema)]
pub struct MoveFileRequest {
    /// Where the file is.
    #[schema(example = "drafts/memtrove.md")]
    pub from: String,
    /// Where it is to be; nothing may be there yet.
    #[schema(example = "projects/memtrove.md")]
    pub to: String,
    /// Why, for the audit trail.
    #[schema(max_length = 256)]
    pub reason: Option<String>,
    /// What it rests on: any JSON, kept in the audit trail as it is.
    pub evidence: Option<Value>,
}

/// A file at its new path.
#[skip_serializing_none]
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct MovedFile {
    /// Where it is now.
    #[schema(example = "projects/memtrove.md")]
    pub path: String,
    /// Its version there, for `If-Match`; opaque.
    #[schema(example = "\"4-0190b6c47a3e7c1f9d522f6f3a6f1a10\"")]
    pub etag: String,
    /// What it holds.
    pub document: Envelope,
    /// `true` when this is the answer to an earlier request with the same `Idempotency-Key`.
    pub idempotency_replay: Option<bool>,
}

/// An operation of RFC 6902.
#[skip_serializing_none]
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct PatchOp {
    /// `add`, `remove`, `replace`, `move`, `copy` or `test`.
    #[schema(example = "replace")]
    pub op: String,
    /// Where: a JSON pointer into the envelope.
    #[schema(example = "/content/title")]
    pub path: String,
    /// From where, for `move` and `copy`.
    pub from: Option<String>,
    /// What, for `add`, `replace` and `test`.
    pub value: Option<Value>,
}

/// A replacement in a text.
#[skip_serializing_none]
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct TextEdit {
    /// Text that is there now, exactly.
    #[schema(min_length = 1)]
    pub old_text: String,
    /// What replaces it; empty deletes.
    pub new_text: String,
    /// Which match, counted from 1; needed where there are several.
    pub occurrence: Option<i64>,
}

/// A request to assemble a context from files and memories.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, Serialize, Deserialize, ToSchema)]
pub struct AssembleRequest {
    /// The files, the most important first.
    #[schema(min_items = 1, max_items = 500)]
    pub files: Vec<FileRef>,
    /// The most files; 4 unless said otherwise.
    #[schema(minimum = 0)]
    pub max_docs: Option<i64>,
    /// The most characters of all of them; 30 000 unless said otherwise.
    #[schema(minimum = 0)]
    pub max_chars_total: Option<i64>,
    /// What to search memories for; the user of the address is its `userId` unless it names one. What is found shares
    /// the characters that the files leave.
    pub memories: Option<SearchMemoriesRequest>,
}

/// A file by its path.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct FileRef {
    /// The path.
    #[schema(example = "profile.md")]
    pub path: String,
}

/// A context.
#[skip_serializing_none]
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct AssembledContext {
    /// The files that fit, in the order they were asked for.
    pub files: Vec<AssembledFile>,
    /// Those that did not.
    pub dropped_files: Vec<DroppedFile>,
    /// The memories that fit, strongest first; there if they were asked for.
    #[schema(nullable = false)]
    pub memories: Option<Vec<FoundMemory>>,
}

/// A file in a context.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct AssembledFile {
    /// Its path, as it was asked for.
    pub path: String,
    /// Its version.
    pub etag: String,
    /// What it holds.
    pub document: Envelope,
}

/// A file that did not fit into a context.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct DroppedFile {
    /// Its path, as it was asked for.
    pub path: String,
    /// `max_docs` or `max_chars_total`.
    pub reason: String,
}

/// A request to write an event.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct WriteEventRequest {
    /// The event. One with the same id is replaced.
    pub event: EventDigest,
}

/// What happened, in short.
#[skip_serializing_none]
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct EventDigest {
    /// The caller's id of the event.
    #[schema(example = "evt_01", min_length = 1, max_length = 200)]
    pub event_id: String,
    /// The tenant of the route.
    pub tenant_id: String,
    /// The user of the route.
    pub user_id: String,
    /// Who wrote it; the actor unless said otherwise.
    pub service_id: Option<String>,
    /// When it happened (RFC 3339); now unless said otherwise.
    #[schema(format = DateTime)]
    pub timestamp: Option<String>,
    /// What kind of source it comes from; `unknown` unless said otherwise.
    pub source_type: Option<String>,
    /// The text it is found by.
    #[schema(example = "Prefers concise answers", min_length = 1, max_length = 10_000)]
    pub digest: String,
    /// Words it is found by.
    #[serde(default)]
    #[schema(max_items = 50)]
    pub keywords: Vec<String>,
    /// Projects it belongs to.
    #[serde(default)]
    #[schema(max_items = 20)]
    pub project_ids: Vec<String>,
    /// What it rests on: any JSON.
    pub evidence: Option<Value>,
    /// Whatever else the caller keeps with it.
    #[serde(flatten)]
    #[schema(value_type = Object)]
    pub extra: Map<String, Value>,
}

/// A search for events; every member may be missing.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, Serialize, Deserialize, ToSchema)]
pub struct SearchEventsRequest {
    /// Words to find in digests (2 points each) and keywords (1 point each); parts of words count.
    pub query: Option<String>,
    /// Only of this service, whatever the letter case.
    pub service_id: Option<String>,
    /// Only of this kind of source.
    pub source_type: Option<String>,
    /// Only of this project.
    pub project_id: Option<String>,
    /// Only at or after (RFC 3339).
    pub from: Option<String>,
    /// Only at or before (RFC 3339).
    pub to: Option<String>,
    /// The most events; 10 unless said otherwise, 500 at most.
    pub top_k: Option<i64>,
}

/// The events found, best first.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct SearchEventsResponse {
    /// Each exactly as it is stored.
    pub results: Vec<EventDigest>,
}

/// A request to remove what is older than so many days. All three numbers are required.
#[skip_serializing_none]
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct RetentionRequest {
    /// Keep events of so many days.
    #[schema(minimum = 0, maximum = 36500)]
    pub events_days: i64,
    /// Keep audit records of so many days; fewer than `retention.audit_min_days` takes an admin and a justification.
    #[schema(minimum = 0, maximum = 36500)]
    pub audit_days: i64,
    /// Keep snapshots of so many days.
    #[schema(minimum = 0, maximum = 36500)]
    pub snapshots_days: i64,
    /// Counted back from here (RFC 3339); now unless said otherwise. A time to come takes an admin.
    #[schema(format = DateTime)]
    pub as_of_utc: Option<String>,
}

/// What retention removed, and up to when.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct RetentionReport {
    /// Events.
    pub events_deleted: u64,
    /// Audit records.
    pub audit_deleted: u64,
    /// Snapshots.
    pub snapshots_deleted: u64,
    /// Entries of the event index.
    pub search_documents_deleted: u64,
    /// Events before this went.
    pub cutoff_events_utc: String,
    /// Audit records before this went.
    pub cutoff_audit_utc: String,
    /// Snapshots before this went.
    pub cutoff_snapshots_utc: String,
    /// The numbers that were changed because fewer days may not be kept: `audit_days`, or not there.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub adjusted: Vec<String>,
}

/// What was removed of a forgotten user.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct ForgetReport {
    /// Files.
    pub documents_deleted: u64,
    /// Events.
    pub events_deleted: u64,
    /// Audit records.
    pub audit_deleted: u64,
    /// Snapshots.
    pub snapshots_deleted: u64,
    /// Entries of the event index.
    pub search_documents_deleted: u64,
    /// Conversations.
    pub conversations: ForgottenConversations,
    /// Memories.
    pub memories: ForgottenMemories,
}

/// What became of a forgotten user's conversations.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct ForgottenConversations {
    /// Trees it owned, which are gone.
    pub deleted: u64,
    /// Entries it wrote in the trees of others, which stay without its name.
    pub anonymized: u64,
}

/// What became of a forgotten user's memories.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct ForgottenMemories {
    /// Its own, and those in shared layers that only it could see, which are gone.
    pub deleted: u64,
    /// Those it made in shared layers, which stay without its name.
    pub anonymized: u64,
}

/// A request to forget a user of the caller's tenant.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ForgetUserRequest {
    /// The user, whatever characters its id has.
    #[schema(min_length = 1, max_length = 255)]
    pub user_id: String,
}

/// One change of a file or of a memory, as the audit trail keeps it.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct AuditRecord {
    /// The change's id.
    #[schema(example = "chg_0190b6c4-7a3e-7c1f-9d52-2f6f3a6f1a10")]
    pub change_id: String,
    /// Its place in the scope's trail: 1, 2, 3…
    pub sequence: i64,
    /// When.
    #[schema(format = DateTime)]
    pub timestamp: String,
    /// The tenant.
    pub tenant_id: String,
    /// The user.
    pub user_id: String,
    /// The file, or `memories/{id}`; empty where the trail itself was changed.
    pub path: String,
    /// `files` or `memories`; `lifecycle` where the trail itself was changed.
    pub layer: String,
    /// `create`, `replace`, `patch`, `delete` or `move`; of a memory `create`, `replace` or `delete`; of the trail
    /// `audit_truncated`.
    pub action: String,
    /// Who acted, as the caller said.
    pub actor: String,
    /// Who really called.
    pub principal: String,
    /// Why.
    pub reason: Option<String>,
    /// Of a truncation of the trail: why.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub justification: Option<String>,
    /// Of a truncation of the trail: records from before this went.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, format = DateTime)]
    pub cutoff: Option<String>,
    /// Of a truncation of the trail: how many records went.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub count: Option<u64>,
    /// The path that a moved file came from, in the record at its new one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub moved_from: Option<String>,
    /// The path that a moved file went to, in the record at its old one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub moved_to: Option<String>,
    /// The version before; null for the first.
    pub previous_etag: Option<String>,
    /// The version after; null if there is none any more.
    pub new_etag: Option<String>,
    /// The operations, as applied.
    pub ops: Vec<Value>,
    /// The text edits, as applied.
    pub edits: Vec<Value>,
    /// The document after the change, where this record keeps it; every version can be made again from the last one kept.
    pub document: Option<Value>,
    /// SHA-256 of the canonical JSON of the document after the change, or of a memory's content.
    pub document_sha256: String,
    /// SHA-256 of the canonical JSON of `{"edits": …, "ops": …}`.
    pub ops_hash: String,
    /// What it rests on.
    pub evidence: Option<Value>,
    /// How sure the caller was; of the governed layer.
    pub confidence: Option<Value>,
    /// Of the governed layer.
    pub profile_id: Option<String>,
    /// Of the governed layer.
    pub profile_revision: Option<i64>,
    /// Of the governed layer.
    pub binding_id: Option<String>,
    /// SHA-256 of the request's `Idempotency-Key`.
    pub idempotency_key_hash: Option<String>,
    /// Of the governed layer.
    pub replay_id: Option<String>,
    /// The request's id.
    pub request_id: String,
}

/// A part of the audit trail.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct AuditPage {
    /// The records, in the order of their sequence.
    pub records: Vec<AuditRecord>,
    /// Where to go on (`after`), if there are more.
    pub next_after: Option<i64>,
}

/// Which version of a file to make again: by the change that made it, or by the time.
#[skip_serializing_none]
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct ReconstructRequest {
    /// The file.
    pub path: String,
    /// The change that made the version.
    pub change_id: Option<String>,
    /// The last version at this time (RFC 3339).
    #[schema(format = DateTime)]
    pub as_of_utc: Option<String>,
}

/// A version of a file, made again from the audit trail and proved by its hashes.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct ReconstructedFile {
    /// The change that made it.
    pub change_id: String,
    /// Its ETag.
    pub etag: String,
    /// What it held, byte for byte.
    pub document: Envelope,
}

/// A job that was started.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct JobStarted {
    /// Its id, for `GET /v1/admin/jobs/{job_id}`.
    pub job_id: Uuid,
}

/// A request to make anew what searches look at.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, Serialize, Deserialize, ToSchema)]
pub struct ReindexRequest {
    /// The tenant; the caller's own unless said otherwise.
    pub tenant_id: Option<String>,
    /// `events`, which it is unless said otherwise: the event index of the tenant. `embeddings`: the vectors that another
    /// model made than the one that is configured, of conversations and memories and of every tenant.
    #[schema(example = "events")]
    pub target: Option<String>,
}

/// How a job is doing.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct Job {
    /// Its id.
    pub job_id: Uuid,
    /// What it does.
    #[schema(example = "events_reindex")]
    pub kind: String,
    /// `queued`, `running`, `succeeded` or `failed`.
    pub status: String,
    /// How much is done.
    pub processed: i64,
    /// How much there is to do.
    pub total: i64,
    /// What went wrong.
    pub errors: Vec<String>,
}
