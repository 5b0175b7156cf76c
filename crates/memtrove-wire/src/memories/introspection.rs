//! What this server can do, and whether it can do it now.

use super::{MemoryKind, MemoryLayer};
use serde::{Deserialize, Serialize, Serializer};
use serde_json::{Map, Value};
use serde_with::skip_serializing_none;
use std::collections::BTreeMap;
use utoipa::ToSchema;

/// Whether memories can be stored and found.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct MemoryHealth {
    /// `healthy`, `degraded` or `unhealthy`.
    #[schema(example = "healthy")]
    pub status: String,
    /// How long it took to find out.
    pub latency_ms: f64,
    /// The same of each part: `embedding`, and `provider:` with its name.
    #[serde(serialize_with = "providers_first")]
    pub components: BTreeMap<String, MemoryComponent>,
}

/// What stores memories is told of before what makes vectors of them, as it always was.
fn providers_first<S: Serializer>(
    components: &BTreeMap<String, MemoryComponent>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let (providers, others): (Vec<_>, Vec<_>) =
        components.iter().partition(|(name, _)| name.starts_with("provider:"));
    serializer.collect_map(providers.into_iter().chain(others))
}

/// A part of the service.
#[skip_serializing_none]
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct MemoryComponent {
    /// `healthy`, `degraded` or `unhealthy`.
    #[schema(example = "healthy")]
    pub status: String,
    /// What there is to say about it.
    #[schema(nullable = false)]
    pub message: Option<String>,
}

/// What this server can do.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct MemoryCapabilities {
    /// The layers, strongest first.
    pub layers: Vec<MemoryLayerInfo>,
    /// The kinds.
    pub kinds: Vec<MemoryKindInfo>,
    /// How much of everything there may be, by name.
    #[schema(value_type = Object)]
    pub limits: Map<String, Value>,
    /// What is assumed where a request does not say.
    #[schema(value_type = Object)]
    pub defaults: Map<String, Value>,
    /// What makes vectors of texts.
    pub embedding: MemoryEmbedding,
    /// What stores memories.
    pub providers: Vec<MemoryProvider>,
    /// Whether a session that is a fork remembers what its ancestors did.
    pub fork_inheritance: bool,
}

/// A layer.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct MemoryLayerInfo {
    /// Its name.
    pub name: MemoryLayer,
    /// 1 is strongest.
    pub precedence: u8,
    /// The identifiers it needs.
    pub requires: Vec<String>,
    /// The kind of a memory that names none.
    pub default_kind: MemoryKind,
}

/// A kind.
#[skip_serializing_none]
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct MemoryKindInfo {
    /// Its name.
    pub name: MemoryKind,
    /// The layers it may stand in.
    pub layers: Vec<MemoryLayer>,
    /// What stores it.
    pub provider: String,
    /// How long it lives unless a memory says otherwise.
    #[schema(nullable = false)]
    pub default_ttl_seconds: Option<i64>,
}

/// What makes vectors of texts.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct MemoryEmbedding {
    /// `static`, `local`, `openai` or `none`.
    #[schema(example = "static")]
    pub provider: String,
    /// The model; null without one.
    #[schema(required)]
    pub model: Option<String>,
    /// How long its vectors are; null without one.
    #[schema(required)]
    pub dimensions: Option<u64>,
    /// How a raw cosine becomes a score: points of a line.
    pub calibration: Vec<[f64; 2]>,
}

/// What stores memories.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct MemoryProvider {
    /// Its name.
    #[schema(example = "embedded")]
    pub id: String,
    /// Its version.
    pub version: String,
    /// What it can do.
    #[schema(value_type = Object)]
    pub capabilities: Map<String, Value>,
}
