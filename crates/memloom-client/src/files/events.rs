//! Events: what happened, in short.

use super::{EventDigest, JobStarted, Scope};
use crate::{Client, Result, operations};
pub use memloom_wire::files::SearchEventsRequest as EventQuery;
use memloom_wire::files::SearchEventsResponse;
use serde::Serialize;

#[derive(Serialize)]
struct Body<'a> {
    event: &'a EventDigest,
}

impl Client {
    /// Writes an event; when this returns, searches find it. One with the same id is replaced.
    pub async fn write_event(&self, scope: &Scope, event: &EventDigest) -> Result<()> {
        self.call(&operations::WRITE_EVENT, &scope.names())?.json(&Body { event })?.finish().await
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
