//! Facts: memories that state something of something.

use super::{MemoryAccessPolicy, MemoryFilter, MemoryIdentifiers, MemoryLayer, MemoryMetadata, MemoryState};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use serde_with::skip_serializing_none;
use utoipa::ToSchema;
use uuid::Uuid;

/// A fact: a memory of kind procedural.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Fact {
    /// Its id, as a memory.
    pub id: Uuid,
    /// What kind of fact.
    pub fact_type: String,
    /// Of whom or what.
    pub subject: String,
    /// What is said of it.
    pub predicate: String,
    /// The value.
    pub object: String,
    /// How sure.
    #[schema(minimum = 0, maximum = 1)]
    pub confidence: f64,
    /// The text it is found by.
    pub content: String,
    /// Whose it is.
    pub layer: MemoryLayer,
    /// Exactly those that the layer needs.
    pub identifiers: MemoryIdentifiers,
    /// What is known about it.
    pub metadata: MemoryMetadata,
    /// Where it is in its life.
    pub state: MemoryState,
    /// 1, and one more with each change.
    #[schema(minimum = 1)]
    pub version: i64,
    /// When it was made.
    #[schema(format = DateTime)]
    pub created_at: String,
    /// When it was last changed.
    #[schema(format = DateTime)]
    pub updated_at: String,
}

/// A request to state a fact. The same statement again is a change of the first.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", default)]
#[schema(example = json!({"layer": "user", "identifiers": {"userId": "alice"}, "factType": "preference",
    "subject": "alice", "predicate": "prefers", "object": "tea"}))]
pub struct AddFactRequest {
    /// Whose it is.
    #[schema(required)]
    pub layer: Option<MemoryLayer>,
    /// Those that the layer needs.
    #[schema(required)]
    pub identifiers: Option<MemoryIdentifiers>,
    /// What kind of fact.
    #[schema(required, min_length = 1, max_length = 1024, pattern = r"\S")]
    pub fact_type: Option<String>,
    /// Of whom or what.
    #[schema(required, min_length = 1, max_length = 1024, pattern = r"\S")]
    pub subject: Option<String>,
    /// What is said of it.
    #[schema(required, min_length = 1, max_length = 1024, pattern = r"\S")]
    pub predicate: Option<String>,
    /// The value.
    #[schema(required, min_length = 1, max_length = 1024, pattern = r"\S")]
    pub object: Option<String>,
    /// How sure; 1 unless said otherwise.
    #[schema(minimum = 0, maximum = 1)]
    pub confidence: Option<f64>,
    /// The text it is found by; the statement itself unless said otherwise.
    #[schema(max_length = 100_000, pattern = r"\S")]
    pub content: Option<String>,
    /// What is known about it.
    pub metadata: Option<MemoryMetadata>,
    /// How long it lives after each change.
    #[schema(minimum = 1, maximum = 31_536_000)]
    pub ttl_seconds: Option<i64>,
    /// Who may see it.
    pub access_policy: Option<MemoryAccessPolicy>,
}

/// A fact that is stored.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct AddedFact {
    /// The fact.
    pub fact: Fact,
    /// Whether nobody had stated it before.
    pub created: bool,
}

/// A fact.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct OneFact {
    /// The fact.
    pub fact: Fact,
}

/// A change of a fact. At least one member besides `version`.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", default)]
#[schema(example = json!({"confidence": 0.8}))]
pub struct UpdateFactRequest {
    /// The new type.
    #[schema(min_length = 1, max_length = 1024, pattern = r"\S")]
    pub fact_type: Option<String>,
    /// The new subject.
    #[schema(min_length = 1, max_length = 1024, pattern = r"\S")]
    pub subject: Option<String>,
    /// The new predicate.
    #[schema(min_length = 1, max_length = 1024, pattern = r"\S")]
    pub predicate: Option<String>,
    /// The new object.
    #[schema(min_length = 1, max_length = 1024, pattern = r"\S")]
    pub object: Option<String>,
    /// The new confidence.
    #[schema(minimum = 0, maximum = 1)]
    pub confidence: Option<f64>,
    /// Members to replace, or with null to remove; the others stay.
    #[schema(value_type = Option<Object>)]
    pub metadata: Option<Map<String, Value>>,
    /// The new text.
    #[schema(max_length = 100_000, pattern = r"\S")]
    pub content: Option<String>,
    /// The version to change, as `If-Match` says it.
    #[schema(minimum = 1)]
    pub version: Option<i64>,
}

/// A query of facts: every member that is given must be equal.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", default)]
#[schema(example = json!({"identifiers": {"userId": "alice"}, "subject": "alice"}))]
pub struct QueryFactsRequest {
    /// Where; all layers that the identifiers open unless said otherwise.
    #[schema(min_items = 1, nullable = false)]
    pub layers: Option<Vec<MemoryLayer>>,
    /// Those that the layers need.
    #[schema(required)]
    pub identifiers: Option<MemoryIdentifiers>,
    /// With this subject.
    pub subject: Option<String>,
    /// With this predicate.
    pub predicate: Option<String>,
    /// With this object.
    pub object: Option<String>,
    /// With this type.
    pub fact_type: Option<String>,
    /// At least so sure.
    #[schema(minimum = 0, maximum = 1)]
    pub min_confidence: Option<f64>,
    /// Conditions.
    pub filter: Option<MemoryFilter>,
    /// Only the strongest of those with one subject and predicate.
    #[schema(nullable = false)]
    pub resolve: Option<bool>,
    /// The most facts; 100 unless said otherwise.
    #[schema(minimum = 1, maximum = 1000)]
    pub limit: Option<i64>,
    /// Where the page before this one ended.
    pub cursor: Option<String>,
}

/// A page of facts.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct FactPage {
    /// The facts.
    pub facts: Vec<Fact>,
    /// Where the next page begins; null at the end.
    #[schema(required)]
    pub next_cursor: Option<String>,
    /// How many there are on all pages.
    pub total_count: u64,
}
