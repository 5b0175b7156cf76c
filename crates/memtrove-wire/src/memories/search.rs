//! Listing and searching.

use super::{
    Memory, MemoryIdentifiers, MemoryKind, MemoryLayer, MemoryRanking, MemorySearchMode, MemorySourceType,
    MemoryState,
};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use serde_with::skip_serializing_none;
use utoipa::ToSchema;
use uuid::Uuid;

/// Conditions that all must hold. A member that is not known is refused.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
#[schema(example = json!({"tags": ["prefs"], "custom": {"importance": {"$gte": 0.5}}}))]
pub struct MemoryFilter {
    /// At least one of these tags; none is no condition.
    #[schema(nullable = false)]
    pub tags: Option<Vec<String>>,
    /// From this kind of source.
    #[schema(nullable = false)]
    pub source_type: Option<MemorySourceType>,
    /// Only those that point at a document, or only those that do not.
    #[schema(nullable = false)]
    pub has_knowledge_pointer: Option<bool>,
    /// Conditions on members of the metadata: a value, or operators `$eq $ne $gt $gte $lt $lte $in $contains $exists`.
    #[schema(value_type = Object, nullable = false)]
    pub custom: Option<Map<String, Value>>,
}

/// A stretch of time; both ends belong to it.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct MemoryTimeRange {
    /// No earlier (RFC 3339).
    #[schema(format = DateTime, nullable = false)]
    pub from: Option<String>,
    /// No later (RFC 3339).
    #[schema(format = DateTime, nullable = false)]
    pub to: Option<String>,
}

/// A list of one scope, newest first.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", default)]
#[schema(example = json!({"layer": "user", "identifiers": {"userId": "alice"}, "limit": 20}))]
pub struct ListMemoriesRequest {
    /// Whose.
    #[schema(required)]
    pub layer: Option<MemoryLayer>,
    /// Those that the layer needs.
    #[schema(required)]
    pub identifiers: Option<MemoryIdentifiers>,
    /// The most memories; 50 unless said otherwise.
    #[schema(minimum = 1, maximum = 100, nullable = false)]
    pub limit: Option<i64>,
    /// Where the page before this one ended.
    #[schema(nullable = false)]
    pub cursor: Option<String>,
    /// Conditions.
    #[schema(nullable = false)]
    pub filter: Option<MemoryFilter>,
    /// Only of these kinds; all but archival unless said otherwise.
    #[schema(min_items = 1, nullable = false)]
    pub kinds: Option<Vec<MemoryKind>>,
    /// Happened or made no earlier (RFC 3339).
    #[schema(format = DateTime, nullable = false)]
    pub from: Option<String>,
    /// Happened or made no later (RFC 3339).
    #[schema(format = DateTime, nullable = false)]
    pub to: Option<String>,
    /// Only in this state.
    #[schema(nullable = false)]
    pub state: Option<MemoryState>,
    /// Archived ones, too.
    #[schema(nullable = false)]
    pub include_archived: Option<bool>,
    /// With their embeddings.
    #[schema(nullable = false)]
    pub include_embedding: Option<bool>,
}

/// A page of memories.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct MemoryPage {
    /// The memories.
    pub memories: Vec<Memory>,
    /// Where the next page begins; null at the end.
    #[schema(required)]
    pub next_cursor: Option<String>,
    /// How many there are on all pages.
    pub total_count: u64,
}

/// A search by meaning.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", default)]
#[schema(example = json!({"query": "what does she drink?", "identifiers": {"userId": "alice"}}))]
pub struct SearchMemoriesRequest {
    /// What to look for.
    #[schema(required, max_length = 8192, pattern = r"\S")]
    pub query: Option<String>,
    /// Where; all layers that the identifiers open unless said otherwise.
    #[schema(min_items = 1, nullable = false)]
    pub layers: Option<Vec<MemoryLayer>>,
    /// Those that the layers need.
    #[schema(required)]
    pub identifiers: Option<MemoryIdentifiers>,
    /// The most results; 10 unless said otherwise.
    #[schema(minimum = 1, maximum = 100, nullable = false)]
    pub limit: Option<i64>,
    /// The least score; 0.7 unless said otherwise.
    #[schema(minimum = 0, maximum = 1, nullable = false)]
    pub threshold: Option<f64>,
    /// Conditions.
    #[schema(nullable = false)]
    pub filter: Option<MemoryFilter>,
    /// Only of these kinds; all but archival unless said otherwise.
    #[schema(min_items = 1, nullable = false)]
    pub kinds: Option<Vec<MemoryKind>>,
    /// When it happened or was made.
    #[schema(nullable = false)]
    pub time_range: Option<MemoryTimeRange>,
    /// Archived ones, too.
    #[schema(nullable = false)]
    pub include_archived: Option<bool>,
    /// With their embeddings.
    #[schema(nullable = false)]
    pub include_embedding: Option<bool>,
    /// Those that a stronger one overrides, too.
    #[schema(nullable = false)]
    pub include_overridden: Option<bool>,
    /// Without those that say the same as a stronger one; true unless said otherwise.
    #[schema(nullable = false)]
    pub dedupe: Option<bool>,
    /// `precedence` unless said otherwise.
    #[schema(nullable = false)]
    pub ranking: Option<MemoryRanking>,
    /// `hybrid` unless said otherwise.
    #[schema(nullable = false)]
    pub mode: Option<MemorySearchMode>,
    /// Say how each score came about.
    #[schema(nullable = false)]
    pub explain: Option<bool>,
}

/// What a search found, strongest first.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct SearchedMemories {
    /// The results.
    pub results: Vec<FoundMemory>,
    /// How many memories match, before duplicates, overridden ones and the limit are taken away.
    pub total_count: u64,
    /// Whether that is exactly so many.
    pub total_count_exact: bool,
    /// Where was looked, strongest first.
    pub searched_layers: Vec<MemoryLayer>,
    /// The least score.
    pub threshold_used: f64,
    /// The time that the query was understood to ask about; not there if it asks about none.
    #[schema(nullable = false)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time: Option<AskedTime>,
}

/// A time that a query asks about: memories of that time are preferred.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct AskedTime {
    /// Its first instant.
    #[schema(format = DateTime)]
    pub from: String,
    /// The first instant after it.
    #[schema(format = DateTime)]
    pub to: String,
    /// The words of the query that say so.
    pub words: String,
}

/// A memory that a search found.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct FoundMemory {
    /// The memory.
    pub memory: Memory,
    /// The part of its content that matters, if that is longer than 120 words: whole sentences, as they stand there.
    #[schema(nullable = false)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub passage: Option<String>,
    /// How well it matches.
    #[schema(minimum = 0, maximum = 1)]
    pub score: f64,
    /// How near its meaning is: the raw cosine.
    #[schema(minimum = 0, maximum = 1)]
    pub similarity: f64,
    /// Whose it is.
    pub layer: MemoryLayer,
    /// The one that contradicts it and is newer, or of a more specific layer.
    #[schema(required)]
    pub overridden_by: Option<Uuid>,
    /// How the score came about.
    #[schema(value_type = Object, nullable = false)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub explanation: Option<Map<String, Value>>,
}
