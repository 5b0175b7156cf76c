//! One memory, and many at once: what is sent and what comes back.

use super::{AccessPolicyWord, MemoryKind, MemoryLayer, MemorySourceType, MemoryState};
use serde::{Deserialize, Serialize, Serializer};
use serde_json::{Map, Value};
use serde_with::skip_serializing_none;
use utoipa::ToSchema;
use uuid::Uuid;

/// What a scope is named by. Which of them a layer needs is fixed; others do no harm. Empty is as good as absent.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", default)]
#[schema(example = json!({"userId": "alice"}))]
pub struct MemoryIdentifiers {
    /// The agent.
    #[schema(max_length = 255, pattern = r"^[^\x00-\x1F\x7F]*$", nullable = false)]
    pub agent_id: Option<String>,
    /// The user.
    #[schema(max_length = 255, pattern = r"^[^\x00-\x1F\x7F]*$", nullable = false)]
    pub user_id: Option<String>,
    /// The session: a conversation's id, or any other.
    #[schema(max_length = 255, pattern = r"^[^\x00-\x1F\x7F]*$", nullable = false)]
    pub session_id: Option<String>,
    /// The project.
    #[schema(max_length = 255, pattern = r"^[^\x00-\x1F\x7F]*$", nullable = false)]
    pub project_id: Option<String>,
    /// The team.
    #[schema(max_length = 255, pattern = r"^[^\x00-\x1F\x7F]*$", nullable = false)]
    pub team_id: Option<String>,
    /// The organisation.
    #[schema(max_length = 255, pattern = r"^[^\x00-\x1F\x7F]*$", nullable = false)]
    pub org_id: Option<String>,
    /// The tenant; no other may be named.
    #[schema(max_length = 255, pattern = r"^[^\x00-\x1F\x7F]*$", nullable = false)]
    pub company_id: Option<String>,
}

/// What is known about a memory. Further members are the caller's own and kept as they are; no name may begin with `_`.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", default)]
#[schema(example = json!({"tags": ["prefs"], "importance": 0.9}))]
pub struct MemoryMetadata {
    /// What it is filtered by.
    #[schema(max_items = 64, nullable = false)]
    pub tags: Option<Vec<String>>,
    /// Where it comes from.
    #[schema(nullable = false)]
    pub source: Option<MemorySource>,
    /// The document it points at.
    #[schema(nullable = false)]
    pub knowledge_pointer: Option<KnowledgePointer>,
    /// How relevant it is to begin with; 1 unless said otherwise.
    #[schema(minimum = 0, maximum = 1, nullable = false)]
    pub relevance: Option<f64>,
    /// How fast it fades, as a multiple; 0 is never.
    #[schema(minimum = 0, maximum = 10, nullable = false)]
    pub decay_factor: Option<f64>,
    /// A headline.
    #[schema(nullable = false)]
    pub title: Option<String>,
    /// A description.
    #[schema(nullable = false)]
    pub description: Option<String>,
    /// The language of the content.
    #[schema(nullable = false)]
    pub language: Option<String>,
    /// Who wrote it.
    #[schema(nullable = false)]
    pub author: Option<String>,
    /// How sure it is.
    #[schema(minimum = 0, maximum = 1, nullable = false)]
    pub confidence: Option<f64>,
    /// How much it matters: from a threshold on, it outlives its session.
    #[schema(minimum = 0, maximum = 1, nullable = false)]
    pub importance: Option<f64>,
    /// Whether it must not leave its scope.
    #[schema(nullable = false)]
    pub sensitive: Option<bool>,
    /// The same.
    #[schema(nullable = false)]
    pub private: Option<bool>,
    /// Memories with the same key contradict each other; a search shows the strongest.
    #[schema(min_length = 1, max_length = 255, nullable = false)]
    pub conflict_key: Option<String>,
    /// The caller's own members.
    #[serde(flatten)]
    #[schema(value_type = Object)]
    pub custom: Map<String, Value>,
}

impl From<Map<String, Value>> for MemoryMetadata {
    /// Metadata as they are stored: all of them the caller's own, so that their order and the spelling of numbers stay.
    fn from(stored: Map<String, Value>) -> Self {
        Self { custom: stored, ..Self::default() }
    }
}

/// Where a memory comes from. Further members are kept.
#[skip_serializing_none]
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct MemorySource {
    /// What kind of source.
    #[serde(rename = "type")]
    pub source_type: MemorySourceType,
    /// Which one: an entry's id, a path, an address.
    pub reference: Option<String>,
}

/// A document that a memory points at.
#[skip_serializing_none]
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct KnowledgePointer {
    /// `adr`, `policy`, `pattern` or `spec`.
    #[schema(example = "adr")]
    pub source_type: String,
    /// Which one; `file:<path>` is a document of the files surface.
    #[schema(min_length = 1, example = "file:decisions/0001.md")]
    pub source_id: String,
    /// The version that the memory tells of.
    #[schema(min_length = 1)]
    pub content_hash: String,
    /// When that was read.
    #[schema(format = DateTime)]
    pub synced_at: String,
    /// `project`, `team`, `org` or `company`.
    pub source_layer: Option<String>,
    /// Whether the document is gone.
    pub is_orphaned: Option<bool>,
    /// Whether the document says something else by now.
    pub is_stale: Option<bool>,
}

/// Who of those who have the scope may see a memory.
#[skip_serializing_none]
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct MemoryAccessPolicy {
    /// The rule.
    pub policy: AccessPolicyWord,
    /// For `restricted`: who else may see it.
    #[schema(max_items = 1000, nullable = false)]
    pub approved_users: Option<Vec<String>>,
    /// For `shared`: whose members may see it.
    #[schema(max_items = 1000, nullable = false)]
    pub allowed_teams: Option<Vec<String>>,
}

/// What a procedural memory states.
#[skip_serializing_none]
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct FactStatement {
    /// What kind of fact.
    #[schema(min_length = 1, max_length = 1024, pattern = r"\S", example = "preference")]
    pub fact_type: String,
    /// Of whom or what.
    #[schema(min_length = 1, max_length = 1024, pattern = r"\S", example = "alice")]
    pub subject: String,
    /// What is said of it.
    #[schema(min_length = 1, max_length = 1024, pattern = r"\S", example = "prefers")]
    pub predicate: String,
    /// The value.
    #[schema(min_length = 1, max_length = 1024, pattern = r"\S", example = "tea")]
    pub object: String,
    /// How sure; 1 unless said otherwise.
    #[schema(minimum = 0, maximum = 1, nullable = false)]
    pub confidence: Option<f64>,
}

/// Who made a memory; shown to those who may know.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct MemoryAuthor {
    /// The user.
    #[schema(nullable = false)]
    pub user_id: Option<String>,
    /// The API-key client.
    #[schema(nullable = false)]
    pub client_id: Option<String>,
}

/// Where a memory came from and what became of it.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct MemoryLineage {
    /// The memory this one is a copy of.
    #[schema(nullable = false)]
    pub promoted_from: Option<Uuid>,
    /// The copy of this one.
    #[schema(nullable = false)]
    pub promoted_to: Option<Uuid>,
    /// The memories this one absorbed.
    #[schema(nullable = false)]
    pub consolidated_from: Option<Vec<Uuid>>,
    /// The memory that absorbed this one.
    #[schema(nullable = false)]
    pub superseded_by: Option<Uuid>,
    /// The event that this memory mirrors.
    #[schema(nullable = false)]
    pub mirror_of: Option<String>,
}

/// A memory.
#[skip_serializing_none]
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Memory {
    /// Its id.
    pub id: Uuid,
    /// The text, byte for byte as it was given.
    pub content: String,
    /// `sha256:` and the digest of the content.
    pub content_hash: String,
    /// Whose it is.
    pub layer: MemoryLayer,
    /// How it is kept.
    pub kind: MemoryKind,
    /// Its kind before it was archived.
    #[schema(nullable = false)]
    pub origin_kind: Option<MemoryKind>,
    /// Exactly those that the layer needs.
    pub identifiers: MemoryIdentifiers,
    /// What is known about it.
    pub metadata: MemoryMetadata,
    /// Where it is in its life.
    pub state: MemoryState,
    /// How relevant it is now.
    #[schema(minimum = 0, maximum = 1)]
    pub relevance: f64,
    /// Who may see it.
    pub access_policy: MemoryAccessPolicy,
    /// Who made it; for trusted clients, admins and whoever made it.
    #[schema(nullable = false)]
    pub created_by: Option<MemoryAuthor>,
    /// When it was made.
    #[schema(format = DateTime)]
    pub created_at: String,
    /// When it was last changed.
    #[schema(format = DateTime)]
    pub updated_at: String,
    /// When it happened.
    #[schema(format = DateTime, nullable = false)]
    pub occurred_at: Option<String>,
    /// When it ceases to exist.
    #[schema(format = DateTime, nullable = false)]
    pub expires_at: Option<String>,
    /// How long it lives after each change.
    #[schema(nullable = false)]
    pub ttl_seconds: Option<i64>,
    /// 1, and one more with each change.
    #[schema(minimum = 1)]
    pub version: i64,
    /// What it means, as the model sees it; where asked for.
    #[serde(serialize_with = "as_doubles")]
    #[schema(nullable = false)]
    pub embedding: Option<Vec<f32>>,
    /// The model that made the embedding.
    #[schema(nullable = false)]
    pub embedding_model: Option<String>,
    /// Procedural only: what it states.
    #[schema(nullable = false)]
    pub fact: Option<FactStatement>,
    /// Where it came from and what became of it.
    #[schema(nullable = false)]
    pub lineage: Option<MemoryLineage>,
    /// How often it was found, as far as that is counted.
    #[schema(nullable = false)]
    pub access_count: Option<i64>,
    /// When it was last found.
    #[schema(format = DateTime, nullable = false)]
    pub last_accessed_at: Option<String>,
}

/// Vectors are written with every digit of what they are as doubles, as they always were.
fn as_doubles<S: Serializer>(vector: &Option<Vec<f32>>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(vector.iter().flatten().map(|x| f64::from(*x)))
}

/// A request to remember something.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", default)]
#[schema(example = json!({"content": "Prefers tea over coffee", "layer": "user", "identifiers": {"userId": "alice"}}))]
pub struct AddMemoryRequest {
    /// The text; a procedural memory without it says what its fact states.
    #[schema(max_length = 100_000, pattern = r"\S")]
    pub content: Option<String>,
    /// Whose it is.
    #[schema(required)]
    pub layer: Option<MemoryLayer>,
    /// Those that the layer needs.
    #[schema(required)]
    pub identifiers: Option<MemoryIdentifiers>,
    /// What is known about it.
    pub metadata: Option<MemoryMetadata>,
    /// How it is kept; the layer's own kind unless said otherwise.
    pub kind: Option<MemoryKind>,
    /// How long it lives after each change.
    #[schema(minimum = 1, maximum = 31_536_000)]
    pub ttl_seconds: Option<i64>,
    /// When it happened (RFC 3339). An episodic memory happened now unless said otherwise.
    #[schema(format = DateTime)]
    pub occurred_at: Option<String>,
    /// Who may see it: whoever made it in personal layers, everybody in the others, unless said otherwise.
    pub access_policy: Option<MemoryAccessPolicy>,
    /// Procedural only: what it states.
    pub fact: Option<FactStatement>,
}

/// A memory that was stored.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct AddedMemory {
    /// The memory.
    pub memory: Memory,
    /// Whether it can be found by its meaning.
    pub embedding_generated: bool,
}

/// A memory.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct OneMemory {
    /// The memory.
    pub memory: Memory,
}

/// A change of a memory. At least one member besides `version`.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", default)]
#[schema(example = json!({"metadata": {"importance": 0.9, "title": null}}))]
pub struct UpdateMemoryRequest {
    /// The new text.
    #[schema(max_length = 100_000, pattern = r"\S")]
    pub content: Option<String>,
    /// Members to replace, or with null to remove; the others stay.
    #[schema(value_type = Option<Object>)]
    pub metadata: Option<Map<String, Value>>,
    /// The new time to live; null is for ever.
    #[schema(minimum = 1, maximum = 31_536_000)]
    pub ttl_seconds: Option<i64>,
    /// Who may see it from now on.
    pub access_policy: Option<MemoryAccessPolicy>,
    /// The version to change, as `If-Match` says it.
    #[schema(minimum = 1)]
    pub version: Option<i64>,
}

/// A memory that was changed.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct UpdatedMemory {
    /// The memory.
    pub memory: Memory,
    /// Whether its text is another, and what it means with it.
    pub embedding_regenerated: bool,
}

/// What became of a request to delete: it always succeeds.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct DeletedMemory {
    /// Always true.
    pub success: bool,
    /// Whether something was there.
    pub deleted: bool,
}

/// Memories to be added together.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct BulkAddRequest {
    /// The memories.
    #[schema(required, min_items = 1, max_items = 500)]
    pub memories: Vec<AddMemoryRequest>,
    /// Whether all or none are stored.
    #[schema(nullable = false)]
    pub atomic: Option<bool>,
}

/// What became of each memory, in the order they were sent.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct BulkAdded {
    /// One per memory.
    pub results: Vec<BulkAddResult>,
    /// How many were stored.
    pub added: u64,
    /// How many were not.
    pub failed: u64,
}

/// What became of one memory: it, or the error.
#[skip_serializing_none]
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct BulkAddResult {
    /// Its place in the request, counted from 0.
    pub index: u64,
    /// The memory.
    #[schema(nullable = false)]
    pub memory: Option<Memory>,
    /// Whether it can be found by its meaning.
    #[schema(nullable = false)]
    pub embedding_generated: Option<bool>,
    /// What is wrong with it: `code`, `message`, `retryable`, `details`.
    #[schema(value_type = Object, nullable = false)]
    pub error: Option<Map<String, Value>>,
}

/// Memories to be deleted together.
#[derive(Debug, Clone, Default, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct BulkDeleteRequest {
    /// Their ids.
    #[schema(required, min_items = 1, max_items = 1000)]
    pub ids: Vec<String>,
}

/// What became of the ids: each counts once.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct BulkDeleted {
    /// How many were deleted.
    pub deleted: u64,
    /// Those that were not.
    pub failed: Vec<String>,
    /// Why not.
    pub errors: Vec<BulkDeleteFailure>,
}

/// Why an id was not deleted.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct BulkDeleteFailure {
    /// The id.
    pub id: String,
    /// A constant of the error catalogue.
    #[schema(example = "MEMORY_NOT_FOUND")]
    pub code: String,
}

/// A scope to be cleared.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct ClearMemoriesRequest {
    /// Whose.
    #[schema(required)]
    pub layer: Option<MemoryLayer>,
    /// Those that the layer needs.
    #[schema(required)]
    pub identifiers: Option<MemoryIdentifiers>,
    /// Of these kinds; working ones unless said otherwise.
    #[schema(min_items = 1, nullable = false)]
    pub kinds: Option<Vec<MemoryKind>>,
}

/// What was cleared.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct ClearedMemories {
    /// How many memories went.
    pub cleared: u64,
}
