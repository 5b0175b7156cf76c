//! Events: what happened, in short.

use super::{EventDigest, JobStarted, Scope};
use crate::{Client, Result, operations};
use memtrove_core::Timestamp;
use memtrove_wire::files::SearchEventsResponse;
use serde::Serialize;
use serde_with::skip_serializing_none;

/// A search for events: filters that all must hold, and words to rank by. Every member may be missing.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct EventQuery {
    /// Words to find in digests (2 points each) and keywords (1 point each); parts of words count.
    pub query: Option<String>,
    /// Only of this service, whatever the letter case.
    pub service_id: Option<String>,
    /// Only of this kind of source.
    pub source_type: Option<String>,
    /// Only of this project.
    pub project_id: Option<String>,
    /// Only at or after.
    pub from: Option<Timestamp>,
    /// Only at or before.
    pub to: Option<Timestamp>,
    /// The most events; 10 unless said otherwise, 500 at most.
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
