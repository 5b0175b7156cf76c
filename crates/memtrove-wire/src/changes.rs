//! The change feed.

use memtrove_core::Timestamp;
use memtrove_core::changes::RecordedChange;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Something that happened: references, never content.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Change {
    /// Its number: 1, 2, 3… in each tenant, in the order of the commits and without gaps.
    #[schema(minimum = 1)]
    pub sequence: i64,
    /// When it happened.
    #[schema(value_type = String, format = DateTime)]
    pub at: Timestamp,
    /// What happened. More kinds will come: pass over those you do not know.
    #[schema(example = "entry.appended")]
    pub kind: String,
    /// Whose it is, who did it, or which member it is about.
    #[schema(required = true, example = "alice")]
    pub user: Option<String>,
    /// What it happened to: a path, an event's id, a conversation's id. Null once its user was forgotten.
    #[schema(required = true)]
    pub resource: Option<String>,
    /// Which version or part of it: an ETag, an entry's id, a transfer's id.
    #[schema(required = true)]
    pub version: Option<String>,
}

impl From<RecordedChange> for Change {
    fn from(change: RecordedChange) -> Self {
        Self {
            sequence: change.sequence,
            at: change.at,
            kind: change.kind.as_str().to_owned(),
            user: change.user.map(|user| user.0),
            resource: change.resource,
            version: change.version,
        }
    }
}

/// A page of the change feed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ChangesPage {
    /// The changes, oldest first.
    pub changes: Vec<Change>,
    /// What to send as `after` for the next page; null when there is nothing newer yet.
    #[schema(required = true)]
    pub next_after: Option<i64>,
    /// The oldest number that is kept.
    pub oldest: i64,
    /// There, and true, when what came after `after` is not kept any more: the page begins at `oldest`, and whatever was
    /// derived from the feed must be made anew.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub gap: bool,
}

/// What an event named `gap` says.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ChangesGap {
    /// The number of the next change that follows.
    pub oldest: i64,
}
