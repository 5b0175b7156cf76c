//! Work that one node at a time does for all that share a store.
//!
//! A node that works renews its lease; one that died does not, and another takes its work over. Because a node may stand still
//! for longer than its lease lasts and then go on, everything that is done under one is right if two do it: leases save them
//! from doing it twice. A store that is not shared has one node, and nothing is written.

use crate::Context;
use memtrove_core::memories::ScopeKey;
use memtrove_core::{Error, Result, Timestamp};
use memtrove_store::{AllTenants, StoreError, Tx, leases};
use std::convert::Infallible;
use std::fmt::Write;
use std::time::Duration;

/// Between two looks at whether somebody else has finished.
const TURN: Duration = Duration::from_millis(20);
/// A lease is renewed so often while it lasts.
const RENEWALS: u32 = 3;

/// Does a job whenever no other node does, for as long as it is polled. The job begins anew whenever it comes here.
pub(crate) async fn hold<F>(cx: &Context, name: &'static str, job: impl Fn() -> F) -> Infallible
where
    F: Future<Output = Infallible>,
{
    if !cx.store.is_shared() {
        return job().await;
    }
    loop {
        match Lease::take(cx, name).await {
            Ok(Some(mut lease)) => {
                tracing::debug!(name, "this node does it for all");
                tokio::select! {
                    never = job() => match never {},
                    () = lease.keep() => tracing::warn!(name, "this lease is lost; its next holder does the work"),
                }
            }
            Ok(None) => {}
            Err(error) => tracing::debug!(name, %error, "a lease could not be asked for; trying again soon"),
        }
        tokio::time::sleep(cx.settings.lease / RENEWALS).await;
    }
}

/// Does some work unless another node is at it. `None`: one is, or it took it over.
pub(crate) async fn alone<T>(cx: &Context, name: &str, work: impl Future<Output = T>) -> Result<Option<T>> {
    if !cx.store.is_shared() {
        return Ok(Some(work.await));
    }
    match Lease::take(cx, name).await? {
        Some(lease) => Ok(lease.over(work).await),
        None => Ok(None),
    }
}

/// Does some work after all nodes that are at the same. A node that loses the lease on the way is refused, with nothing more
/// done. Two of the same node do not wait for each other.
pub(crate) async fn in_turn<T>(cx: &Context, name: &str, work: impl Future<Output = Result<T>>) -> Result<T> {
    if !cx.store.is_shared() {
        return work.await;
    }
    let lease = loop {
        match Lease::take(cx, name).await? {
            Some(lease) => break lease,
            None => tokio::time::sleep(TURN).await,
        }
    };
    let late = || Error::storage_unavailable("this took too long, and others went on; try again");
    lease.over(work).await.unwrap_or_else(|| Err(late()))
}

/// Takes a lease together with the work that makes it necessary, so that no other node comes between; [`in_turn`] goes on with
/// it. If another node holds it already, that is to be waited for.
pub(crate) fn claim(tx: &mut dyn Tx, cx: &Context, name: &str) -> Result<(), StoreError> {
    if cx.store.is_shared() {
        let now = cx.clock.now();
        leases::take(tx, name, cx.node, now, lasting(cx, now))?;
    }
    Ok(())
}

/// Until when a lease lasts that is taken now.
fn lasting(cx: &Context, now: Timestamp) -> Timestamp {
    now.saturating_add_micros(cx.settings.lease.as_micros() as i64)
}

/// What the lease of some work on a scope of memories is called. A digest, because names of users are in scopes.
pub(crate) fn of_scope(work: &str, scope: &ScopeKey) -> String {
    let mut name = format!("{work} ");
    for byte in &scope.hash().0[..16] {
        // Writing to a `String` cannot fail.
        let _ = write!(name, "{byte:02x}");
    }
    name
}

/// A lease of this node. If it is not given back, other nodes wait until it runs out.
struct Lease<'a> {
    cx: &'a Context,
    name: &'a str,
    until: Timestamp,
}

impl<'a> Lease<'a> {
    async fn take(cx: &'a Context, name: &'a str) -> Result<Option<Self>> {
        let mut lease = Self { cx, name, until: cx.clock.now() };
        Ok(lease.renew().await?.then_some(lease))
    }

    async fn renew(&mut self) -> Result<bool> {
        let (name, holder, now) = (self.name.to_owned(), self.cx.node, self.cx.clock.now());
        let until = lasting(self.cx, now);
        let take = self.cx.store.write(AllTenants, "take_lease", move |tx| {
            Ok::<_, Error>(leases::take(tx, &name, holder, now, until)?)
        });
        let taken = take.await?;
        if taken {
            self.until = until;
        }
        Ok(taken)
    }

    /// Renews it until it is lost, or could not be renewed for as long as it lasts.
    async fn keep(&mut self) {
        loop {
            tokio::time::sleep(self.cx.settings.lease / RENEWALS).await;
            let left = self.until.as_micros().saturating_sub(self.cx.clock.now().as_micros()).max(0);
            // No longer than it lasts: the network may be silent, and then another node has it.
            let Ok(renewed) = tokio::time::timeout(Duration::from_micros(left as u64), self.renew()).await
            else {
                return;
            };
            match renewed {
                Ok(true) => {}
                Err(error) if self.cx.clock.now() < self.until => {
                    tracing::debug!(name = self.name, %error, "a lease could not be renewed; trying again soon");
                }
                _ => return,
            }
        }
    }

    /// Does something while it is held, and gives it back; `None` if it was lost on the way.
    async fn over<T>(mut self, work: impl Future<Output = T>) -> Option<T> {
        let done = tokio::select! {
            biased;
            done = work => done,
            () = self.keep() => return None,
        };
        let (name, holder) = (self.name.to_owned(), self.cx.node);
        let release = move |tx: &mut dyn Tx| leases::release(tx, &name, holder);
        if let Err(error) = self.cx.store.write(AllTenants, "release_lease", release).await {
            tracing::debug!(name = self.name, %error, "a lease could not be given back; it runs out by itself");
        }
        Some(done)
    }
}
