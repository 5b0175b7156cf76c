//! What the tools answer. A list of files is a list of [`FileEntry`](crate::files::FileEntry).

use super::content::shown;
use crate::files::{Envelope, EventDigest};
use serde::{Deserialize, Serialize};

/// A file as a model sees it: what it says, not the document around it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryFile {
    /// Its path.
    pub path: String,
    /// What kind of text it is.
    pub content_type: String,
    /// The text.
    pub content: String,
    /// The version that has this text.
    pub etag: String,
}

impl MemoryFile {
    /// What a stored file shows.
    pub fn of(path: impl Into<String>, etag: impl Into<String>, document: &Envelope) -> Self {
        let (content_type, content) = shown(&document.content);
        Self { path: path.into(), content_type, content, etag: etag.into() }
    }
}

/// An event as a model sees it: without whose it is, which the model cannot choose, and without what it rests on, which
/// may be long.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecalledEvent {
    /// Its id.
    pub event_id: String,
    /// When it happened.
    pub timestamp: Option<String>,
    /// What kind of source it comes from.
    pub source_type: Option<String>,
    /// What happened.
    pub digest: String,
    /// Words it is found by.
    pub keywords: Vec<String>,
    /// Projects it belongs to.
    pub project_ids: Vec<String>,
}

impl From<EventDigest> for RecalledEvent {
    fn from(event: EventDigest) -> Self {
        Self {
            event_id: event.event_id,
            timestamp: event.timestamp,
            source_type: event.source_type,
            digest: event.digest,
            keywords: event.keywords,
            project_ids: event.project_ids,
        }
    }
}
