//! What callers send.

use crate::{AccessLevel, Channel, SearchType};
use memtrove_core::{ConversationId, EntryId, Json, Timestamp};
use serde::de::{Error as _, IgnoredAny};
use serde::{Deserialize, Deserializer, Serialize};
use serde_with::skip_serializing_none;
use utoipa::ToSchema;

/// A conversation to be made.
#[skip_serializing_none]
#[derive(Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct CreateConversationRequest {
    /// Its title; blank is none.
    #[schema(max_length = 500, example = "Trip to Lisbon")]
    pub title: Option<String>,
    /// Anything the caller wants to note: at most 50 keys and 16 KiB.
    #[schema(value_type = Option<Object>)]
    pub metadata: Option<Json>,
    #[doc(hidden)]
    #[schema(ignore)]
    #[serde(skip_serializing)]
    pub id: Reserved,
    #[doc(hidden)]
    #[schema(ignore)]
    #[serde(skip_serializing)]
    pub forked_at_conversation_id: Reserved,
    #[doc(hidden)]
    #[schema(ignore)]
    #[serde(skip_serializing)]
    pub forked_at_entry_id: Reserved,
}

/// The place of a member that the contract reserves and nothing is done about yet. Only null can stand there: a caller who
/// sends something counts on it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Reserved;

impl<'de> Deserialize<'de> for Reserved {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match Option::<IgnoredAny>::deserialize(deserializer)? {
            None => Ok(Self),
            Some(_) => Err(D::Error::custom("is not supported yet: leave it out")),
        }
    }
}

/// A change of a conversation. A member that is absent stays as it is.
#[derive(Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct UpdateConversationRequest {
    /// The new title; null or blank clears it.
    #[schema(max_length = 500, value_type = Option<String>)]
    #[serde(deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    pub title: Option<Option<String>>,
}

/// Tells a member that is null from one that is absent.
fn present<'de, D: Deserializer<'de>, T: Deserialize<'de>>(deserializer: D) -> Result<Option<T>, D::Error> {
    T::deserialize(deserializer).map(Some)
}

/// An entry to be appended, or an agent's complete memory to be synced.
#[skip_serializing_none]
#[derive(Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", default)]
#[schema(example = json!({"channel": "history", "contentType": "history", "content": [{"role": "USER", "text": "Hello!"}]}))]
pub struct CreateEntryRequest {
    /// Must be the effective user where given.
    #[schema(max_length = 255)]
    pub user_id: Option<String>,
    /// `history` unless said otherwise. `memory` needs an API key.
    pub channel: Option<Channel>,
    /// What kind of content this is: `history` (or `history/<subtype>`) for the transcript, anything for memory.
    #[schema(required, min_length = 1, max_length = 127)]
    #[serialize_always]
    pub content_type: Option<String>,
    /// Any JSON values: at most 1000 in an append, 10 000 in a sync.
    #[schema(required, value_type = Vec<serde_json::Value>, max_items = 10_000)]
    #[serialize_always]
    pub content: Option<Json>,
    /// What search should find this entry by; history only.
    #[schema(max_length = 100_000)]
    pub indexed_content: Option<String>,
    /// Where the target does not exist yet: make it a fork of this conversation …
    #[schema(value_type = Option<Uuid>)]
    pub forked_at_conversation_id: Option<ConversationId>,
    /// … that sees everything before this entry; without it the fork starts blank.
    #[schema(value_type = Option<Uuid>)]
    pub forked_at_entry_id: Option<EntryId>,
    #[doc(hidden)]
    #[schema(ignore)]
    #[serde(skip_serializing)]
    pub seq: Reserved,
}

/// How a fork should be made.
#[skip_serializing_none]
#[derive(Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ForkFromEntryRequest {
    /// Its title; the parent's unless given.
    #[schema(max_length = 500)]
    pub title: Option<String>,
}

/// A membership to be granted.
#[derive(Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ShareConversationRequest {
    /// Who.
    #[schema(required, min_length = 1, max_length = 255)]
    pub user_id: Option<String>,
    /// What they may do; ownership cannot be granted.
    #[schema(required)]
    pub access_level: Option<AccessLevel>,
}

/// A change of a membership.
#[derive(Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct UpdateMembershipRequest {
    /// What they may do from now on.
    #[schema(required)]
    pub access_level: Option<AccessLevel>,
}

/// An ownership transfer to be offered.
#[derive(Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct CreateOwnershipTransferRequest {
    /// Any conversation of the tree.
    #[schema(required, value_type = Uuid)]
    pub conversation_id: Option<ConversationId>,
    /// A member of it.
    #[schema(required, min_length = 1, max_length = 255)]
    pub new_owner_user_id: Option<String>,
}

/// A search over everything the caller can see.
#[skip_serializing_none]
#[derive(Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", default)]
#[schema(example = json!({"query": "lisbon", "searchType": "auto"}))]
pub struct SearchConversationsRequest {
    /// What to look for.
    #[schema(required, min_length = 1, max_length = 1000)]
    #[serialize_always]
    pub query: Option<String>,
    /// `auto` unless said otherwise.
    pub search_type: Option<SearchType>,
    /// The cursor of the page before.
    #[schema(max_length = 100)]
    pub after: Option<String>,
    /// The same, by another name.
    #[schema(max_length = 100)]
    pub after_cursor: Option<String>,
    /// 20 unless said otherwise.
    #[schema(minimum = 1, maximum = 200)]
    pub limit: Option<i64>,
    /// Whether each result holds its entry; true unless said otherwise.
    pub include_entry: Option<bool>,
    /// Whether only the best entry of each conversation counts; true unless said otherwise.
    pub group_by_conversation: Option<bool>,
    /// Whether each result says how its score came about.
    pub explain: Option<bool>,
    /// Whether it counts who said something, where the query names somebody or speaks of "I". For `auto`; true unless the
    /// deployment says otherwise.
    pub actor: Option<bool>,
    /// What each kind of evidence counts. For `auto`.
    pub weights: Option<SearchWeights>,
}

/// What each kind of evidence counts when a search ranks by words and meaning together. What is left out is as the
/// deployment has it.
#[skip_serializing_none]
#[derive(Debug, Default, Clone, Copy, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct SearchWeights {
    /// The share of the words; the rest is meaning.
    #[schema(minimum = 0, maximum = 1)]
    pub lexical: Option<f64>,
    /// How much the meaning of what was said around an entry counts.
    #[schema(minimum = 0, maximum = 1)]
    pub context: Option<f64>,
    /// What an entry keeps that somebody else said than whom the query is about.
    #[schema(minimum = 0, maximum = 1)]
    pub by_another: Option<f64>,
    /// What an entry keeps that ends with a question.
    #[schema(minimum = 0, maximum = 1)]
    pub asks: Option<f64>,
}

/// A search over every conversation of the tenant.
#[skip_serializing_none]
#[derive(Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct AdminSearchRequest {
    /// What to look for.
    #[schema(required, min_length = 1, max_length = 1000)]
    #[serialize_always]
    pub query: Option<String>,
    /// `auto` unless said otherwise.
    pub search_type: Option<SearchType>,
    /// The cursor of the page before.
    #[schema(max_length = 100)]
    pub after: Option<String>,
    /// The same, by another name.
    #[schema(max_length = 100)]
    pub after_cursor: Option<String>,
    /// 20 unless said otherwise.
    #[schema(minimum = 1, maximum = 1000)]
    pub limit: Option<i64>,
    /// Whether each result holds its entry; true unless said otherwise.
    pub include_entry: Option<bool>,
    /// Whether only the best entry of each conversation counts; true unless said otherwise.
    pub group_by_conversation: Option<bool>,
    /// Whether each result says how its score came about.
    pub explain: Option<bool>,
    /// Whether it counts who said something, where the query names somebody or speaks of "I". For `auto`; true unless the
    /// deployment says otherwise.
    pub actor: Option<bool>,
    /// What each kind of evidence counts. For `auto`.
    pub weights: Option<SearchWeights>,
    /// Only trees this user owns.
    #[schema(max_length = 255)]
    pub user_id: Option<String>,
    /// Deleted conversations too.
    pub include_deleted: Option<bool>,
}

/// The text one entry should be found by.
#[derive(Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct IndexEntryRequest {
    /// The conversation that stores the entry.
    #[schema(required, value_type = Uuid)]
    pub conversation_id: Option<ConversationId>,
    /// The entry.
    #[schema(required, value_type = Uuid)]
    pub entry_id: Option<EntryId>,
    /// The text.
    #[schema(required, min_length = 1, max_length = 100_000)]
    pub indexed_content: Option<String>,
}

/// How many entries were indexed.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct IndexConversationsResponse {
    /// The number of items processed.
    pub indexed: usize,
}

/// Why an admin does what it does.
#[skip_serializing_none]
#[derive(Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct JustificationRequest {
    /// For the audit log.
    #[schema(max_length = 1000)]
    pub justification: Option<String>,
}

/// What to remove for good.
#[derive(Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", default)]
#[schema(example = json!({"retentionPeriod": "P90D", "resourceTypes": ["conversations"]}))]
pub struct EvictRequest {
    /// Trees deleted longer ago than this ISO 8601 duration.
    #[schema(required)]
    pub retention_period: Option<String>,
    /// `conversations`.
    #[schema(required, min_items = 1)]
    pub resource_types: Option<Vec<String>>,
    /// For the audit log.
    #[schema(max_length = 1000)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub justification: Option<String>,
}

/// How much there is in the tenant.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct StatsSummary {
    /// Fork trees.
    pub conversation_groups: StatsSummaryGroups,
    /// Conversations.
    pub conversations: StatsSummaryCount,
    /// Entries.
    pub entries: StatsSummaryCount,
}

/// Fork trees.
#[skip_serializing_none]
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct StatsSummaryGroups {
    /// All of them.
    pub total: i64,
    /// Those that are deleted and not yet evicted.
    pub deleted: i64,
    /// When the oldest of those was deleted.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub oldest_deleted_at: Option<Timestamp>,
}

/// How many.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct StatsSummaryCount {
    /// All of them.
    pub total: i64,
}
