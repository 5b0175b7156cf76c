//! Following what happens to the entries of some scopes.

use super::Memories;
use super::relay::{self, Relay};
use super::stream::{Event, KEPT_BYTES, KEPT_EVENTS, Listener, Live, Numbered};
use crate::quota::CallKind;
use memtrove_core::identity::Tenant;
use memtrove_core::memories::stream_position::StreamPositions;
use memtrove_core::memories::{Memory, MemoryCaller, ScopeHash, ScopeKey, Viewer};
use memtrove_core::{Clock, Error, Result};
use memtrove_store::{StoreError, Tx, changes, stream};
use std::collections::{HashSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::watch;

/// How often the store is looked at when no commit is heard of.
const POLL: Duration = Duration::from_secs(1);

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

/// What somebody is told. Positions say where to go on, and nothing of what others write.
#[derive(Debug, Clone)]
pub enum Streamed {
    /// Everything that happens from now on will be told. The position of this moment.
    Ready(i64),
    /// What happened since the position that was named is not kept any more.
    Reset,
    /// Something happened. The position after it.
    Happened(i64, Arc<Event>),
}

/// Somebody who is told.
pub struct Subscription {
    scopes: HashSet<ScopeHash>,
    request: StreamRequest,
    /// With the numbers of changes in place of positions.
    waiting: VecDeque<Streamed>,
    future: Receiver<Live>,
    /// The number of the last change that was received.
    newest: i64,
    /// What comes from the future up to this number was told already, or is not wanted.
    after: i64,
    /// Where others write to the store, too: what reads it.
    relayed: Option<Relayed>,
    positions: StreamPositions,
    clock: Arc<dyn Clock>,
}

struct Relayed {
    relay: Arc<Relay>,
    commits: watch::Receiver<u64>,
}

impl Memories {
    /// Begins to follow; `since` is the last position that was seen.
    pub async fn subscribe(
        &self,
        caller: &MemoryCaller,
        request: StreamRequest,
        since: Option<i64>,
    ) -> Result<Subscription> {
        let caller = &*self.charge(caller, CallKind::Read, |_| request.viewer.user.clone()).await?;
        let scopes = request.scopes.iter().map(ScopeKey::hash).collect();
        let tenant = caller.tenant().clone();
        let mut positions = StreamPositions::new(&self.parts.keys.stream, &tenant);
        // A position that is not known any more is before everything that is kept.
        let mut since = |newest: i64| {
            let random = self.cx.clock.new_id().as_u64_pair().1;
            since.map(|since| positions.resume(since, newest, self.now(), random).unwrap_or(i64::MIN))
        };
        let relayed = match self.cx.store.is_shared() {
            true => self.listen_to_all(tenant.clone(), &mut since).await?,
            false => None,
        };
        let (listener, after, relayed) = match relayed {
            Some((listener, relayed)) => {
                let after = listener.newest;
                (listener, after, Some(relayed))
            }
            None => {
                let newest = move |tx: &mut dyn Tx| Ok::<_, Error>(changes::newest(tx, &tenant)?);
                let newest = self.cx.store.read(caller.tenant(), "newest_change", newest).await?;
                (self.parts.bus.listen(caller.tenant(), newest, since(newest)), i64::MIN, None)
            }
        };
        let newest = listener.newest;
        let (waiting, future) = begun(listener);
        let clock = self.cx.clock.clone();
        Ok(Subscription { scopes, request, waiting, future, newest, after, relayed, positions, clock })
    }

    /// Listens to what all nodes tell; nothing once the server stops. `since` is the last change that was told, where this is
    /// the newest.
    async fn listen_to_all(
        &self,
        tenant: Tenant,
        since: &mut (dyn FnMut(i64) -> Option<i64> + Send),
    ) -> Result<Option<(Listener, Relayed)>> {
        let store = &self.cx.store;
        let commits = store.commits();
        store.settle().await?;
        let kept = tenant.clone();
        let newest = store
            .read(&tenant, "open_stream", move |tx| {
                let newest = changes::newest(tx, &kept)?;
                Ok::<_, Error>(stream::kept_after(tx, &kept)?.map(|_| newest))
            })
            .await?;
        let newest = match newest {
            Some(newest) => newest,
            None => {
                let kept = tenant.clone();
                let keep = move |tx: &mut dyn Tx| {
                    let newest = changes::newest(tx, &kept)?;
                    stream::keep_after(tx, &kept, newest)?;
                    Ok::<_, Error>(newest)
                };
                store.write(&tenant, "keep_stream", keep).await?
            }
        };
        // First the future, then the past, so that nothing falls between them.
        let Some((relay, future)) = self.parts.bus.relay(store, &tenant, newest) else { return Ok(None) };
        let since = since(newest);
        let of = tenant.clone();
        let past = move |tx: &mut dyn Tx| past(tx, &of, since);
        let (newest, past) = store.read(&tenant, "replay_stream", past).await.map_err(Error::from)?;
        Ok(Some((Listener { past, newest, future }, Relayed { relay, commits })))
    }
}

/// The newest number, and what happened up to it since another; no events if not all of them are kept.
fn past(
    tx: &mut dyn Tx,
    tenant: &Tenant,
    since: Option<i64>,
) -> Result<(i64, Option<Vec<Numbered>>), StoreError> {
    let newest = changes::newest(tx, tenant)?;
    let Some(since) = since else { return Ok((newest, Some(Vec::new()))) };
    if stream::kept_after(tx, tenant)?.is_none_or(|kept| since < kept) {
        return Ok((newest, None));
    }
    let events = stream::page(tx, tenant, since, KEPT_EVENTS as i64 + 1)?;
    let bytes: usize = events.iter().filter_map(|event| event.body.as_ref()).map(Vec::len).sum();
    if events.len() > KEPT_EVENTS || bytes > KEPT_BYTES {
        return Ok((newest, None));
    }
    let told = |event: stream::StoredEvent| {
        let happened = event.body.as_deref().and_then(|body| relay::read(tenant, body))?;
        Some((event.sequence, happened))
    };
    Ok((newest, Some(events.into_iter().filter_map(told).collect())))
}

/// What is told first, and what afterwards.
fn begun(listener: Listener) -> (VecDeque<Streamed>, Receiver<Live>) {
    let Listener { past, newest, future } = listener;
    let mut waiting = VecDeque::from([Streamed::Ready(newest)]);
    match past {
        None => waiting.push_back(Streamed::Reset),
        Some(past) => {
            waiting.extend(past.into_iter().map(|(number, event)| Streamed::Happened(number, event)))
        }
    }
    (waiting, future)
}

impl Subscription {
    /// What happens next; `None` once it fell too far behind, or the server stops.
    pub async fn next(&mut self) -> Option<Streamed> {
        loop {
            let next = match self.waiting.pop_front() {
                Some(waiting) => waiting,
                None => match self.receive().await {
                    Ok((Some(number), _)) if number <= self.after => continue,
                    Ok((number, event)) => {
                        self.newest = number.unwrap_or(self.newest);
                        Streamed::Happened(self.newest, event)
                    }
                    Err(RecvError::Lagged(_) | RecvError::Closed) => return None,
                },
            };
            return Some(match next {
                Streamed::Happened(_, event) if !self.wants(&event) => continue,
                Streamed::Happened(change, event) => Streamed::Happened(self.position(change), event),
                Streamed::Ready(newest) => Streamed::Ready(self.position(newest)),
                Streamed::Reset => Streamed::Reset,
            });
        }
    }

    fn position(&mut self, change: i64) -> i64 {
        self.positions.next(change, self.clock.now())
    }

    async fn receive(&mut self) -> Result<Live, RecvError> {
        let Some(Relayed { relay, commits }) = &mut self.relayed else { return self.future.recv().await };
        loop {
            tokio::select! {
                biased;
                received = self.future.recv() => return received,
                _ = commits.changed() => relay.wake(),
                () = tokio::time::sleep(POLL) => relay.wake(),
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
