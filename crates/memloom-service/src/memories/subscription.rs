//! Following what happens to the entries of some scopes.

use super::Memories;
use super::stream::{Event, Listener, Numbered};
use memloom_core::memories::{Memory, MemoryCaller, ScopeHash, ScopeKey, Viewer};
use memloom_core::{Error, Result};
use memloom_store::changes;
use std::collections::{HashSet, VecDeque};
use std::sync::Arc;
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;

/// What somebody wants to be told of.
pub struct StreamRequest {
    /// Whose entries.
    pub scopes: Vec<ScopeKey>,
    /// For whom.
    pub viewer: Viewer,
    /// Which of them.
    pub admits: Box<dyn Fn(&Memory) -> bool + Send + Sync>,
    /// Whether the milestones of entries are wanted, instead of their versions.
    pub milestones: bool,
}

/// What somebody is told.
#[derive(Debug, Clone)]
pub enum Streamed {
    /// Everything that happens from now on will be told. The newest number so far.
    Ready(i64),
    /// What happened since the number that was named is not kept any more.
    Reset,
    /// Something happened.
    Happened(i64, Arc<Event>),
}

/// Somebody who is told.
pub struct Subscription {
    scopes: HashSet<ScopeHash>,
    request: StreamRequest,
    waiting: VecDeque<Streamed>,
    future: Receiver<Numbered>,
}

impl Memories {
    /// Begins to follow; `since` is the last number that was seen.
    pub async fn subscribe(
        &self,
        caller: &MemoryCaller,
        request: StreamRequest,
        since: Option<i64>,
    ) -> Result<Subscription> {
        let tenant = caller.tenant().clone();
        let newest = self
            .cx
            .store
            .read("newest_change", move |tx| Ok::<_, Error>(changes::newest(tx, &tenant)?))
            .await?;
        let Listener { past, newest, future } = self.parts.bus.listen(caller.tenant(), newest, since);
        let mut waiting = VecDeque::from([Streamed::Ready(newest)]);
        match past {
            None => waiting.push_back(Streamed::Reset),
            Some(past) => {
                waiting.extend(past.into_iter().map(|(number, event)| Streamed::Happened(number, event)))
            }
        }
        let scopes = request.scopes.iter().map(ScopeKey::hash).collect();
        Ok(Subscription { scopes, request, waiting, future })
    }
}

impl Subscription {
    /// What happens next; `None` once it fell too far behind, or the server stops.
    pub async fn next(&mut self) -> Option<Streamed> {
        loop {
            let next = match self.waiting.pop_front() {
                Some(waiting) => waiting,
                None => match self.future.recv().await {
                    Ok((number, event)) => Streamed::Happened(number, event),
                    Err(RecvError::Lagged(_) | RecvError::Closed) => return None,
                },
            };
            match &next {
                Streamed::Happened(_, event) if !self.wants(event) => {}
                _ => return Some(next),
            }
        }
    }

    fn wants(&self, event: &Event) -> bool {
        self.scopes.contains(&event.memory.scope.hash())
            && event.is_visible(&self.request.viewer)
            && (!self.request.milestones || event.milestone.is_some())
            && (self.request.admits)(&event.memory)
    }
}
