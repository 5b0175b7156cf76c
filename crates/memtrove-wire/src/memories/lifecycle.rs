//! Fading, merging, promotion and the end of sessions.

use super::{Memory, MemoryIdentifiers, MemoryLayer, MemoryState};
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;
use utoipa::ToSchema;
use uuid::Uuid;

/// A copy of a memory to be made in another scope.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", default)]
#[schema(example = json!({"targetLayer": "project", "identifiers": {"projectId": "memtrove"}}))]
pub struct PromoteRequest {
    /// Where to.
    #[schema(required)]
    pub target_layer: Option<MemoryLayer>,
    /// Those that the layer needs; the memory's own complete them.
    pub identifiers: Option<MemoryIdentifiers>,
}

/// The copy.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct PromotedMemory {
    /// The copy, or what said the same there already.
    pub memory: Memory,
    /// Whether it was there already.
    pub deduplicated: bool,
}

/// A decay pass; every member may be missing.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", default)]
#[schema(example = json!({"identifiers": {"userId": "alice"}, "dryRun": true}))]
pub struct DecayRequest {
    /// The time to look from (RFC 3339); now unless said otherwise.
    #[schema(format = DateTime)]
    pub as_of: Option<String>,
    /// Where; all layers that the identifiers open unless said otherwise.
    #[schema(min_items = 1)]
    pub layers: Option<Vec<MemoryLayer>>,
    /// Only these scopes; without them the whole tenant, for admins.
    pub identifiers: Option<MemoryIdentifiers>,
    /// Whether to only say what would happen.
    pub dry_run: Option<bool>,
    /// The part of its relevance that a memory loses in a day.
    #[schema(minimum = 0, maximum = 1)]
    pub rate_per_day: Option<f64>,
    /// Below it a memory is archived.
    #[schema(minimum = 0, maximum = 1)]
    pub archive_threshold: Option<f64>,
    /// Below it a memory counts as decayed.
    #[schema(minimum = 0, maximum = 1)]
    pub decayed_below: Option<f64>,
    /// Where nothing fades.
    pub exempt_layers: Option<Vec<MemoryLayer>>,
}

/// What a decay pass did, or would do.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct DecayedMemories {
    /// The time it looked from.
    #[schema(format = DateTime)]
    pub as_of: String,
    /// Whether it only says so.
    pub dry_run: bool,
    /// How many memories it looked at.
    pub processed: u64,
    /// How many became decayed.
    pub decayed: u64,
    /// How many became archived.
    pub archived: u64,
    /// How many do not fade.
    pub skipped: u64,
    /// Those it looked at, by id; a thousand at most.
    pub entries: Vec<DecayedMemory>,
}

/// One memory of a decay pass.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct DecayedMemory {
    /// Its id.
    pub id: Uuid,
    /// Whose it is.
    pub layer: MemoryLayer,
    /// How relevant it is at that time.
    #[schema(minimum = 0, maximum = 1)]
    pub relevance: f64,
    /// Its state before.
    pub previous_state: MemoryState,
    /// Its state after.
    pub state: MemoryState,
}

/// A scope whose similar memories are to be merged.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", default)]
#[schema(example = json!({"layer": "user", "identifiers": {"userId": "alice"}, "dryRun": true}))]
pub struct ConsolidateRequest {
    /// Whose.
    #[schema(required)]
    pub layer: Option<MemoryLayer>,
    /// Those that the layer needs.
    #[schema(required)]
    pub identifiers: Option<MemoryIdentifiers>,
    /// How near meanings must be; 0.95 unless said otherwise.
    #[schema(minimum = 0, maximum = 1)]
    pub similarity_threshold: Option<f64>,
    /// Whether to only say what would happen.
    pub dry_run: Option<bool>,
}

/// What was merged, or would be.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct Consolidated {
    /// The memories that became one.
    pub groups: Vec<ConsolidationGroup>,
    /// How many were absorbed.
    pub merged: u64,
    /// How many were looked at.
    pub examined: u64,
}

/// Memories that became one.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ConsolidationGroup {
    /// The one that stays.
    pub survivor_id: Uuid,
    /// Those it absorbed, which are archived.
    pub absorbed_ids: Vec<Uuid>,
}

/// The end of a session.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", default)]
#[schema(example = json!({"identifiers": {"userId": "alice", "sessionId": "c-42"}}))]
pub struct EndSessionRequest {
    /// The user and the session.
    #[schema(required)]
    pub identifiers: Option<MemoryIdentifiers>,
    /// Whether what is not promoted goes.
    pub auto_delete: Option<bool>,
    /// How long it stays then.
    #[schema(pattern = "^[0-9]+[smhd]$", example = "7d")]
    pub retention_period: Option<String>,
    /// Whether what matters is copied to the user layer.
    pub promote_important: Option<bool>,
    /// From which score something matters.
    #[schema(minimum = 0, maximum = 1)]
    pub promotion_threshold: Option<f64>,
    /// When it ended (RFC 3339); now unless said otherwise.
    #[schema(format = DateTime)]
    pub as_of: Option<String>,
}

/// What became of a session's memories.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct EndedSession {
    /// The user.
    pub user_id: String,
    /// The session.
    pub session_id: String,
    /// When it ended.
    #[schema(format = DateTime)]
    pub ended_at: String,
    /// How many could be promoted.
    pub evaluated: u64,
    /// Those that were.
    pub promoted: Vec<SessionPromotion>,
    /// Those that must not be.
    pub blocked: Vec<BlockedPromotion>,
    /// How many went.
    pub deleted: u64,
    /// How many stay.
    pub retained: u64,
}

/// A memory that outlives its session.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct SessionPromotion {
    /// The memory.
    pub from: Uuid,
    /// Its copy.
    pub to: Uuid,
    /// How much it matters.
    pub score: f64,
    /// Whether the copy was there already.
    pub deduplicated: bool,
}

/// A memory that must not leave its session.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct BlockedPromotion {
    /// The memory.
    pub id: Uuid,
    /// Why.
    #[schema(example = "sensitive")]
    pub reason: String,
}
