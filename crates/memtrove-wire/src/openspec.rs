//! The OpenSpec knowledge protocol, as it goes over the wire: the same memories in snake case.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Number, Value};
use serde_with::skip_serializing_none;
use utoipa::ToSchema;
use uuid::Uuid;

/// What a provider says about itself.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct KnowledgeDiscovery {
    /// The provider.
    pub provider: KnowledgeProvider,
}

/// A provider.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct KnowledgeProvider {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// What it is.
    pub description: String,
    /// What it can do.
    pub capabilities: KnowledgeCapabilities,
    /// The types of source it takes.
    pub supported_sources: Vec<String>,
    /// How much of everything there may be.
    pub limits: KnowledgeLimits,
    /// What it has.
    pub features: KnowledgeFeatures,
}

/// What a provider can do.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct KnowledgeCapabilities {
    /// Querying.
    pub query: KnowledgeQueryCapabilities,
    /// Storing.
    pub storage: KnowledgeStorageCapabilities,
    /// Metadata.
    pub metadata: KnowledgeMetadataCapabilities,
    /// Streaming.
    pub streaming: KnowledgeStreamingCapabilities,
}

/// How a provider can be queried.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct KnowledgeQueryCapabilities {
    /// By what.
    pub modes: Vec<String>,
    /// Measured how.
    pub distance_metrics: Vec<String>,
    /// Where.
    pub layers: Vec<String>,
}

/// What a provider can store.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct KnowledgeStorageCapabilities {
    /// Where.
    pub layers: Vec<String>,
    /// What a batch may do.
    pub batch_operations: Vec<String>,
}

/// What a provider keeps beside content.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct KnowledgeMetadataCapabilities {
    /// The caller's own members.
    pub custom: bool,
    /// Who made which version.
    pub version_history: bool,
}

/// How a provider tells of changes.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct KnowledgeStreamingCapabilities {
    /// In which formats.
    pub formats: Vec<String>,
    /// Of what.
    pub types: Vec<String>,
}

/// How much of everything there may be.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct KnowledgeLimits {
    /// The bytes of an entry.
    pub max_entry_size: u64,
    /// The items of a batch.
    pub max_batch_size: u64,
    /// The length of a vector.
    pub max_embeddings_dim: u64,
    /// Queries per second that a caller may go on with for one user, rounded down; null where they are not limited.
    #[schema(required)]
    pub query_rate_limit: Option<u64>,
}

/// What a provider has.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct KnowledgeFeatures {
    /// Queries by meaning.
    pub semantic_search: bool,
    /// Queries by meaning and words.
    pub hybrid_search: bool,
    /// A second model that orders results.
    pub reranking: bool,
    /// Queries over several layers.
    pub cross_layer_query: bool,
    /// Versions.
    pub versioning: bool,
    /// Promotion from layer to layer.
    pub promotion: bool,
}

/// Where an entry is, or is to be.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct KnowledgeLayer {
    /// `working`, `session`, `episodic`, `semantic`, `procedural`, `archival`, `user` or `organization`.
    #[schema(nullable = false, example = "user")]
    #[serde(rename = "type")]
    pub layer_type: Option<String>,
    /// Whose: `agent`, `user`, `session`, `project`, `team`, `org` or `company`.
    #[schema(nullable = false)]
    pub scope: Option<String>,
    /// The identifiers.
    #[serde(flatten)]
    pub identifiers: KnowledgeIdentifiers,
}

/// What a scope is named by.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct KnowledgeIdentifiers {
    /// The agent.
    #[schema(max_length = 255, pattern = r"^[^\x00-\x1F\x7F]*$", nullable = false)]
    pub agent_id: Option<String>,
    /// The user; the authenticated one unless said otherwise.
    #[schema(max_length = 255, pattern = r"^[^\x00-\x1F\x7F]*$", nullable = false)]
    pub user_id: Option<String>,
    /// The session.
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

/// What is known about an entry.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct KnowledgeMetadata {
    /// A headline.
    #[schema(nullable = false)]
    pub title: Option<String>,
    /// A description.
    #[schema(nullable = false)]
    pub description: Option<String>,
    /// What it is filtered by.
    #[schema(max_items = 64, nullable = false)]
    pub tags: Option<Vec<String>>,
    /// The language of the content.
    #[schema(nullable = false)]
    pub language: Option<String>,
    /// Who wrote it.
    #[schema(nullable = false)]
    pub author: Option<String>,
    // Numbers are shown in the digits in which they were given.
    /// How sure it is.
    #[schema(value_type = f64, minimum = 0, maximum = 1, nullable = false)]
    pub confidence: Option<Number>,
    /// How much it matters.
    #[schema(value_type = f64, minimum = 0, maximum = 1, nullable = false)]
    pub importance: Option<Number>,
    /// Everything else. A procedural entry states its `fact` here.
    #[schema(value_type = Object, nullable = false)]
    pub custom: Option<Map<String, Value>>,
}

/// Where an entry comes from. Further members, such as `version` and `provider_id`, are kept.
#[skip_serializing_none]
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct KnowledgeSource {
    /// `user_upload`, `git_repository`, `notebooklm`, `dust_ai`, `perplexity`, `web_scrape`, `api_import`,
    /// `agent_generated` or `custom_provider`.
    #[schema(example = "user_upload")]
    #[serde(rename = "type")]
    pub source_type: String,
    /// Which one.
    #[schema(nullable = false)]
    pub identifier: Option<String>,
    /// Further members.
    #[schema(ignore)]
    #[serde(flatten)]
    pub further: Map<String, Value>,
}

/// An entry.
#[skip_serializing_none]
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct KnowledgeEntry {
    /// Its id, as a memory.
    pub id: Uuid,
    /// The text; absent where it was not wanted.
    #[schema(nullable = false)]
    pub content: Option<String>,
    /// What it means, as the model sees it; where asked for.
    #[schema(nullable = false)]
    pub embedding: Option<Vec<f32>>,
    /// What is known about it.
    pub metadata: KnowledgeMetadata,
    /// Where it comes from.
    pub source: KnowledgeSource,
    /// Who of those who have the scope may see it.
    #[schema(example = "private")]
    pub access_policy: String,
    /// When it was made.
    #[schema(format = DateTime)]
    pub created_at: String,
    /// When it was last changed.
    #[schema(format = DateTime)]
    pub updated_at: String,
    /// 1, and one more with each change.
    #[schema(minimum = 1)]
    pub version: i64,
    /// Where it is.
    pub layer: KnowledgeLayer,
}

/// What is to be stored.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct NewKnowledgeEntry {
    /// The text.
    #[schema(required, max_length = 100_000, pattern = r"\S")]
    pub content: Option<String>,
    /// What is known about it.
    #[schema(nullable = false)]
    pub metadata: Option<KnowledgeMetadata>,
    /// Where it comes from.
    #[schema(nullable = false)]
    pub source: Option<KnowledgeSource>,
    /// Who of those who have the scope may see it.
    #[schema(nullable = false, example = "private")]
    pub access_policy: Option<String>,
}

/// How an entry is to be stored.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct KnowledgeWriteOptions {
    /// Whether it is to be found by its meaning; true unless said otherwise. Said explicitly, the answer carries the vector.
    #[schema(nullable = false)]
    pub generate_embedding: Option<bool>,
    /// Who may see it, with lists: `policy`, `approved_users`, `allowed_teams`.
    #[schema(value_type = Object, nullable = false)]
    pub access_policy: Option<Map<String, Value>>,
    /// Where it is to be.
    #[schema(nullable = false)]
    pub layer: Option<KnowledgeLayer>,
}

/// What is asked for besides storing. Auditing is always on; there is no approval.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct KnowledgeGovernance {
    /// Not offered: true is answered with 501.
    #[schema(nullable = false)]
    pub require_approval: Option<bool>,
    /// Not offered: true is answered with 501.
    #[schema(nullable = false)]
    pub verification_required: Option<bool>,
    /// Always on.
    #[schema(nullable = false)]
    pub audit_log: Option<bool>,
}

/// An entry to be created, or to replace another.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, Serialize, Deserialize, ToSchema)]
#[serde(default)]
#[schema(example = json!({"entry": {"content": "Prefers tea over coffee"}, "options": {"layer": {"type": "user", "user_id": "alice"}}}))]
pub struct WriteKnowledgeRequest {
    /// What is to be stored.
    #[schema(required)]
    pub entry: Option<NewKnowledgeEntry>,
    /// How.
    #[schema(nullable = false)]
    pub options: Option<KnowledgeWriteOptions>,
    /// What else is asked for.
    #[schema(nullable = false)]
    pub governance: Option<KnowledgeGovernance>,
}

/// An entry that was written.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct WrittenKnowledge {
    /// The entry.
    pub entry: KnowledgeEntry,
    /// `created` or `updated`.
    #[schema(example = "created")]
    pub status: String,
}

/// An entry.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct OneKnowledgeEntry {
    /// The entry.
    pub entry: KnowledgeEntry,
}

/// A request to delete.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct DeleteKnowledgeRequest {
    /// How.
    #[schema(nullable = false)]
    pub options: Option<DeleteKnowledgeOptions>,
}

/// How an entry is to be deleted.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct DeleteKnowledgeOptions {
    /// Without a trace. The content is gone at once either way.
    #[schema(nullable = false)]
    pub hard_delete: Option<bool>,
}

/// What became of a request to delete.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct DeletedKnowledge {
    /// Whether something was there.
    pub deleted: bool,
    /// The id.
    pub entry_id: String,
}

/// A query.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, Serialize, Deserialize, ToSchema)]
#[serde(default)]
#[schema(example = json!({"query": "what does she drink?", "mode": "hybrid", "layer": {"user_id": "alice"}}))]
pub struct KnowledgeQueryRequest {
    /// What to look for.
    #[schema(required, max_length = 8192, pattern = r"\S")]
    pub query: Option<String>,
    /// `semantic`, `keyword` or `hybrid`; by meaning unless said otherwise.
    #[schema(nullable = false, example = "hybrid")]
    pub mode: Option<String>,
    /// Conditions that all must hold.
    #[schema(nullable = false)]
    pub filters: Option<KnowledgeFilters>,
    /// How many, how near, with what.
    #[schema(nullable = false)]
    pub options: Option<KnowledgeQueryOptions>,
    /// Where.
    #[schema(nullable = false)]
    pub layer: Option<KnowledgeQueryLayer>,
}

/// Conditions that all must hold. A member that is not known is refused.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct KnowledgeFilters {
    /// From this type of source.
    #[schema(nullable = false)]
    pub source_type: Option<String>,
    /// With this policy.
    #[schema(nullable = false)]
    pub access_policy: Option<String>,
    /// Made no earlier (RFC 3339).
    #[schema(format = DateTime, nullable = false)]
    pub created_after: Option<String>,
    /// Made no later (RFC 3339).
    #[schema(format = DateTime, nullable = false)]
    pub created_before: Option<String>,
    /// With at least one of these.
    #[schema(nullable = false)]
    pub tags: Option<Vec<String>>,
    /// By this author.
    #[schema(nullable = false)]
    pub author: Option<String>,
    /// Conditions on other metadata: a value, or operators `$eq $ne $gt $gte $lt $lte $in $contains $exists`.
    #[schema(value_type = Object, nullable = false)]
    pub custom_filters: Option<Map<String, Value>>,
}

/// How many results, how near, with what.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct KnowledgeQueryOptions {
    /// The most results; 10 unless said otherwise.
    #[schema(minimum = 1, maximum = 100, nullable = false)]
    pub limit: Option<i64>,
    /// So many are left out first.
    #[schema(minimum = 0, nullable = false)]
    pub offset: Option<i64>,
    /// The greatest distance.
    #[schema(minimum = 0, nullable = false)]
    pub distance_threshold: Option<f64>,
    /// `cosine`, `euclidean` or `dot`.
    #[schema(nullable = false, example = "cosine")]
    pub distance_metric: Option<String>,
    /// With their text; true unless said otherwise.
    #[schema(nullable = false)]
    pub include_content: Option<bool>,
    /// With their vectors.
    #[schema(nullable = false)]
    pub include_embeddings: Option<bool>,
    /// So many candidates are looked at, before `offset` and `limit`.
    #[schema(minimum = 1, nullable = false)]
    pub top_k: Option<i64>,
}

/// Where a query looks.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct KnowledgeQueryLayer {
    /// The layer types; all unless said otherwise.
    #[schema(nullable = false)]
    pub types: Option<Vec<String>>,
    /// The identifiers.
    #[serde(flatten)]
    pub identifiers: KnowledgeIdentifiers,
}

/// What a query found, best first.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct KnowledgeResults {
    /// The id of this query.
    pub query_id: String,
    /// The results.
    pub results: Vec<KnowledgeResult>,
    /// About the query.
    pub metadata: KnowledgeQueryMetadata,
}

/// A result.
#[skip_serializing_none]
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct KnowledgeResult {
    /// The entry.
    pub entry: KnowledgeEntry,
    /// How well it matches.
    #[schema(minimum = 0, maximum = 1)]
    pub score: f64,
    /// How far its meaning is away.
    #[schema(nullable = false)]
    pub distance: Option<f64>,
}

/// About a query.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct KnowledgeQueryMetadata {
    /// How many entries match.
    pub total_results: u64,
    /// How long it took.
    pub execution_time_ms: f64,
    /// The layer types that were looked at.
    pub layers_queried: Vec<String>,
    /// Who answered.
    pub provider: KnowledgeProviderName,
}

/// Who answered.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct KnowledgeProviderName {
    /// The provider.
    pub name: String,
    /// Its version.
    pub version: String,
}

/// Many writes in one request, one after the other.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, Serialize, Deserialize, ToSchema)]
#[serde(default)]
#[schema(example = json!({"operation": "create", "entries": [{"entry": {"content": "Prefers tea over coffee"}}]}))]
pub struct KnowledgeBatchRequest {
    /// `create`, `update`, `delete` or `upsert`.
    #[schema(required, example = "create")]
    pub operation: Option<String>,
    /// The items: bodies of a create, or those of a replacement or deletion with their `id`.
    #[schema(required, value_type = Vec<Object>, min_items = 1, max_items = 500)]
    pub entries: Option<Vec<Map<String, Value>>>,
    /// How.
    #[schema(nullable = false)]
    pub options: Option<KnowledgeBatchOptions>,
}

/// How a batch is carried out.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct KnowledgeBatchOptions {
    /// Whether to go on after an item that fails.
    #[schema(nullable = false)]
    pub continue_on_error: Option<bool>,
}

/// What became of a batch.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct KnowledgeBatch {
    /// The id of this batch.
    pub operation_id: String,
    /// `completed`, or `failed` where it stopped early or nothing succeeded.
    #[schema(example = "completed")]
    pub status: String,
    /// What became of its items.
    pub results: KnowledgeBatchResults,
}

/// What became of the items of a batch.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct KnowledgeBatchResults {
    /// How many succeeded.
    pub succeeded: u64,
    /// How many failed.
    pub failed: u64,
    /// Why.
    pub errors: Vec<KnowledgeBatchError>,
    /// One per item, in their order.
    pub items: Vec<KnowledgeBatchItem>,
}

/// Why an item failed.
#[skip_serializing_none]
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct KnowledgeBatchError {
    /// Its place in the batch, counted from 0.
    pub index: u64,
    /// The id it named.
    #[schema(nullable = false)]
    pub id: Option<String>,
    /// The protocol's number.
    pub code: u16,
    /// A constant of the error catalogue.
    pub name: String,
    /// For people.
    pub message: String,
}

/// What became of an item.
#[skip_serializing_none]
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct KnowledgeBatchItem {
    /// Its place in the batch, counted from 0.
    pub index: u64,
    /// The entry.
    #[schema(nullable = false)]
    pub id: Option<String>,
    /// `created`, `updated`, `deleted`, `failed` or `skipped`.
    #[schema(example = "created")]
    pub status: String,
}

/// What is known about an entry, without what it says.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct KnowledgeEntryMetadata {
    /// The entry.
    pub entry_id: Uuid,
    /// What is known about it.
    pub metadata: KnowledgeMetadata,
    /// Where it comes from.
    pub source: KnowledgeSource,
    /// Its versions, oldest first; the last hundred.
    pub version_history: Vec<KnowledgeVersion>,
}

/// A version of an entry.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct KnowledgeVersion {
    /// Its number.
    #[schema(minimum = 1)]
    pub version: i64,
    /// When it was made.
    #[schema(format = DateTime)]
    pub created_at: String,
    /// Who made it; null where that is not known, or not for this caller.
    #[schema(required)]
    pub created_by: Option<String>,
}
