//! The mem0 API, as it goes over the wire: the same memories, by user, agent, app and run.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use serde_with::skip_serializing_none;
use utoipa::ToSchema;
use uuid::Uuid;

/// Messages to remember.
#[derive(Debug, Clone, Default, Serialize, Deserialize, ToSchema)]
pub struct Mem0AddRequest {
    /// What was said: messages with `role` and `content`, one of them, or a text.
    #[schema(value_type = Vec<Mem0Message>)]
    pub messages: Value,
    /// `false`: the messages are stored as they are. Anything else needs a language model and is refused.
    pub infer: Option<bool>,
    /// Whose: a user, …
    #[schema(max_length = 255)]
    pub user_id: Option<String>,
    /// an agent, …
    #[schema(max_length = 255)]
    pub agent_id: Option<String>,
    /// an app, …
    #[schema(max_length = 255)]
    pub app_id: Option<String>,
    /// a run; at least one of them.
    #[schema(max_length = 255)]
    pub run_id: Option<String>,
    /// The caller's own.
    #[schema(value_type = Option<Object>)]
    pub metadata: Option<Map<String, Value>>,
    /// The last day of these memories.
    #[schema(example = "2030-12-31")]
    pub expiration_date: Option<String>,
    /// When it happened: seconds since 1970.
    pub timestamp: Option<i64>,
}

/// A message.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct Mem0Message {
    /// Who speaks; what `system` says is no memory, nor what nobody says.
    #[schema(example = "user")]
    pub role: Option<String>,
    /// What is said; a message without it, such as a call of a tool, is left out.
    pub content: Option<String>,
    /// The speaker's name.
    pub name: Option<String>,
}

/// What was remembered.
#[skip_serializing_none]
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct Mem0Added {
    /// One for each message that was not left out.
    pub results: Vec<Mem0AddedMemory>,
    /// What was left out.
    #[schema(nullable = false)]
    pub message: Option<String>,
}

/// A memory that came about.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct Mem0AddedMemory {
    /// Its id.
    pub id: Uuid,
    /// What it says.
    pub memory: String,
    /// `ADD`
    pub event: String,
    /// Who spoke.
    pub role: Option<String>,
    /// The speaker's name.
    pub actor_id: Option<String>,
}

/// A memory.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct Mem0Memory {
    /// Its id.
    pub id: Uuid,
    /// What it says.
    pub memory: String,
    /// `sha256:` and the digest of what it says.
    pub hash: String,
    /// Whose: a user,
    pub user_id: Option<String>,
    /// an agent,
    pub agent_id: Option<String>,
    /// an app,
    pub app_id: Option<String>,
    /// a run.
    pub run_id: Option<String>,
    /// The name of who said it.
    pub actor_id: Option<String>,
    /// Who said it.
    pub role: Option<String>,
    /// The caller's own.
    #[schema(value_type = Object)]
    pub metadata: Map<String, Value>,
    /// Its tags.
    pub categories: Vec<String>,
    /// When it happened or was made.
    #[schema(format = DateTime)]
    pub created_at: String,
    /// When it was last changed.
    #[schema(format = DateTime)]
    pub updated_at: String,
    /// Its last day.
    pub expiration_date: Option<String>,
}

/// What to look for, and among what.
#[derive(Debug, Clone, Default, Serialize, Deserialize, ToSchema)]
pub struct Mem0SearchRequest {
    /// What to look for.
    #[schema(min_length = 1, max_length = 8192)]
    pub query: String,
    /// Conditions: ids, times, categories and metadata, with AND, OR and NOT. Every branch names an id.
    #[schema(value_type = Option<Object>, example = json!({"user_id": "alice"}))]
    pub filters: Option<Map<String, Value>>,
    /// Of this user.
    pub user_id: Option<String>,
    /// Of this agent.
    pub agent_id: Option<String>,
    /// Of this app.
    pub app_id: Option<String>,
    /// Of this run.
    pub run_id: Option<String>,
    /// How many at most; 20 unless said otherwise.
    #[schema(minimum = 1, maximum = 100)]
    pub top_k: Option<i64>,
    /// The least score; 0.7 unless said otherwise.
    #[schema(minimum = 0, maximum = 1)]
    pub threshold: Option<f64>,
    /// The members that results show; all unless said otherwise.
    pub fields: Option<Vec<String>>,
    /// With one of these tags.
    pub categories: Option<Vec<String>>,
}

/// What was found, strongest first.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct Mem0Found {
    /// Memories, each with its `score`; only with the members that were asked for.
    #[schema(value_type = Vec<Mem0FoundMemory>)]
    pub results: Vec<Map<String, Value>>,
}

/// A memory that was found; further members as in lists.
#[skip_serializing_none]
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct Mem0FoundMemory {
    /// Its id.
    pub id: Uuid,
    /// What it says, unless other members were asked for.
    #[schema(nullable = false)]
    pub memory: Option<String>,
    /// How well it matches: 0..1.
    pub score: f64,
}

/// Which memories.
#[derive(Debug, Clone, Default, Serialize, Deserialize, ToSchema)]
pub struct Mem0ListRequest {
    /// Conditions: ids, times, categories and metadata, with AND, OR and NOT. Every branch names an id.
    #[schema(value_type = Option<Object>, example = json!({"user_id": "alice"}))]
    pub filters: Option<Map<String, Value>>,
    /// Happened or made no earlier.
    #[schema(example = "2030-01-01")]
    pub start_date: Option<String>,
    /// Happened or made no later.
    #[schema(example = "2030-12-31")]
    pub end_date: Option<String>,
    /// With one of these tags.
    pub categories: Option<Vec<String>>,
}

/// A page.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct Mem0Page {
    /// How many there are altogether.
    pub count: u64,
    /// Where the next page is.
    pub next: Option<String>,
    /// Where the page before is.
    pub previous: Option<String>,
    /// The memories, newest first.
    pub results: Vec<Mem0Memory>,
}

/// Memories.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct Mem0Listed {
    /// The memories, newest first.
    pub results: Vec<Mem0Memory>,
    /// How many there are altogether.
    pub count: u64,
}

/// What to change of a memory; at least one of them.
#[derive(Debug, Clone, Default, Serialize, Deserialize, ToSchema)]
pub struct Mem0UpdateRequest {
    /// What it is to say.
    #[schema(min_length = 1)]
    pub text: Option<String>,
    /// Members to replace, or with `null` to remove.
    #[schema(value_type = Option<Object>)]
    pub metadata: Option<Map<String, Value>>,
    /// Its last day; `null` lets it stay.
    #[schema(example = "2030-12-31")]
    pub expiration_date: Option<String>,
}

/// Memories to change.
#[derive(Debug, Clone, Default, Serialize, Deserialize, ToSchema)]
pub struct Mem0BatchUpdateRequest {
    /// What to change of each.
    #[schema(min_items = 1, max_items = 1000)]
    pub memories: Vec<Mem0BatchUpdate>,
}

/// What to change of a memory.
#[derive(Debug, Clone, Default, Serialize, Deserialize, ToSchema)]
pub struct Mem0BatchUpdate {
    /// Which.
    pub memory_id: String,
    /// What it is to say.
    #[schema(min_length = 1)]
    pub text: Option<String>,
    /// Members to replace, or with `null` to remove.
    #[schema(value_type = Option<Object>)]
    pub metadata: Option<Map<String, Value>>,
}

/// Memories to delete.
#[derive(Debug, Clone, Default, Serialize, Deserialize, ToSchema)]
pub struct Mem0BatchDeleteRequest {
    /// Which.
    #[schema(min_items = 1, max_items = 1000)]
    pub memories: Vec<Mem0BatchDelete>,
}

/// A memory to delete.
#[derive(Debug, Clone, Default, Serialize, Deserialize, ToSchema)]
pub struct Mem0BatchDelete {
    /// Which.
    pub memory_id: String,
}

/// Something that happened to a memory.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct Mem0Event {
    /// Its id: that of the memory, and the version it led to.
    pub id: String,
    /// The memory.
    pub memory_id: Uuid,
    /// `ADD` or `UPDATE`
    pub event: String,
    /// What it said before.
    pub old_memory: Option<String>,
    /// What it said then; null where that is too long ago.
    pub new_memory: Option<String>,
    /// Whose.
    pub user_id: Option<String>,
    /// When the memory was made.
    #[schema(format = DateTime)]
    pub created_at: String,
    /// When this happened.
    #[schema(format = DateTime)]
    pub updated_at: String,
    /// `false`: nothing is told of what was deleted.
    pub is_deleted: bool,
    /// The name of who said it.
    pub actor_id: Option<String>,
    /// Who said it.
    pub role: Option<String>,
}

/// What memories can be about.
#[derive(Debug, Clone, Copy, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Mem0EntityType {
    /// A user.
    User,
    /// An agent.
    Agent,
    /// An app.
    App,
    /// A run.
    Run,
}

/// Somebody or something that memories are about.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct Mem0Entity {
    /// Its id.
    pub id: String,
    /// Its id again.
    pub name: String,
    /// What it is.
    pub r#type: Mem0EntityType,
    /// How many memories are about it.
    pub total_memories: u64,
}

/// Whom memories are about.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct Mem0EntityPage {
    /// How many there are altogether.
    pub count: u64,
    /// Where the next page is.
    pub next: Option<String>,
    /// Where the page before is.
    pub previous: Option<String>,
    /// Users, agents, apps and runs.
    pub results: Vec<Mem0Entity>,
}

/// That something was done.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct Mem0Done {
    /// What, for people.
    pub message: String,
}

/// That an API key is good.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct Mem0Pong {
    /// `ok`
    pub status: String,
    /// The tenant.
    pub org_id: String,
    /// The tenant again.
    pub project_id: String,
    /// Null: keys belong to clients, not to people.
    pub user_email: Option<String>,
}
