//! The change feed: everything that happens in a tenant, in order.

use crate::paging::pages;
use crate::sse::{self, AtEnd, Event, LAST_EVENT_ID};
use crate::{Client, Error, Result, operations};
use futures_util::{Stream, StreamExt};
pub use memtrove_wire::{Change, ChangesGap, ChangesPage};

/// Something that the feed tells.
#[derive(Debug, Clone, PartialEq)]
pub enum FeedEvent {
    /// Something happened.
    Change(Change),
    /// Something before what follows is not kept any more: whatever was derived from the feed must be made anew.
    Gap(ChangesGap),
}

impl FeedEvent {
    fn read(event: &Event) -> Result<Self> {
        let read = match event.name.as_str() {
            "gap" => serde_json::from_str(&event.data).map(Self::Gap),
            _ => serde_json::from_str(&event.data).map(Self::Change),
        };
        read.map_err(|error| Error::decode(operations::LIST_CHANGES.id, error, event.data.as_bytes()))
    }
}

impl Client {
    /// A page of the feed, behind this number; from the oldest change that is kept without one.
    pub async fn list_changes(&self, after: Option<i64>, limit: Option<u32>) -> Result<ChangesPage> {
        self.call(&operations::LIST_CHANGES, &[])?.query("after", after).query("limit", limit).receive().await
    }

    /// Lists the changes behind this number up to now, asking for more as they are taken. A gap is passed over:
    /// [`follow_changes`](Self::follow_changes) tells of it.
    pub fn list_changes_all(&self, after: Option<i64>) -> impl Stream<Item = Result<Change>> + Send + use<> {
        let client = self.clone();
        pages(after, move |after| {
            let client = client.clone();
            async move {
                let page = client.list_changes(after, None).await?;
                Ok((page.changes, page.next_after))
            }
        })
    }

    /// Everything behind this number, and what happens from now on; without one only the latter.
    ///
    /// The stream does not end. A connection that breaks, or is silent for too long, is replaced as often as it takes, and
    /// nothing is told twice or left out.
    pub fn follow_changes(&self, after: Option<i64>) -> impl Stream<Item = Result<FeedEvent>> + Send + use<> {
        let client = self.clone();
        let open = move |seen: Option<&str>| {
            client.call(&operations::LIST_CHANGES, &[])?.header(LAST_EVENT_ID, seen)
        };
        let after = after.map(|number| number.to_string());
        sse::follow(self.stream_manner(AtEnd::Resume), after, open, |_| false)
            .map(|event| FeedEvent::read(&event?))
    }
}
