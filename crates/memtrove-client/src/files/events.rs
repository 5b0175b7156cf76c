//! Events: what happened, in short.

use super::{EventDigest, JobStarted, Scope};
use crate::{Client, Result, operations};
use memtrove_core::Timestamp;
use memtrove_wire::files::SearchEventsResponse;
use serde::Serialize;

/// A search for events: filters that all must hold, and words to rank by. Every member may be missing.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct EventQuery {
    /// Words to find in digests (2 points each) and keywords (1 point each); parts of words count.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub query: Option<String>,
    /// Only of this service, whatever the letter case.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service_id: Option<String>,
    /// Only of this kind of source.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source_type: Option<String>,
    /// Only of this project.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub project_id: Option<String>,
    /// Only at or after.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<Timestamp>,
    /// Only at or before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<Timestamp>,
    /// The most events; 10 unless said otherwise, 500 at most.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub top_k: Option<u32>,
}

#[derive(Serialize)]
struct WriteEventBody<'a> {
    event: &'a EventDigest,
}

impl Client {
    /// Writes an event; when this returns, searches find it. One with the same id is replaced.
    pub async fn write_event(&self, scope: &Scope, event: &EventDigest) -> Result<()> {
        self.call(&operations::WRITE_EVENT, &scope.names())?.json(&WriteEventBody { event })?.finish().await
    }

    /// Searches events: filters that all must hold, and words to rank by. Best first.
    pub async fn search_events(&self, scope: &Scope, query: EventQuery) -> Result<Vec<EventDigest>> {
        let found: SearchEventsResponse =
            self.call(&operations::SEARCH_EVENTS, &scope.names())?.json(&query)?.receive().await?;
        Ok(found.results)
    }

    /// Has the events of a user indexed anew. [`Admin::get_job`](crate::admin::Admin::get_job) tells how it is doing.
    pub async fn reindex_events(&self, scope: &Scope) -> Result<JobStarted> {
        self.call(&operations::REINDEX_EVENTS, &scope.names())?.receive().await
    }
}
