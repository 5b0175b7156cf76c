//! Buckets that several nodes draw from.
//!
//! A bucket is a row of the store; a node draws some calls from it at a time and spends them without asking. What it draws are
//! pieces of time (see [`memtrove_store::rates`]): a call spends a piece that has not begun yet when it comes. So each call of
//! any node is a piece of its own within what a full bucket lasts from then on, and all nodes together never pass more calls
//! than one bucket would. A piece that begins unspent is void, for it flows in again.
//!
//! What is approximate is on the safe side. While a bucket is nearly empty, a node may refuse what another would pass, because
//! the other holds what is left: the [`HELD`]th part of the limit at most, and no longer than that takes to flow in. So a limit
//! of less than twice [`HELD`] is exact. The time is that of the node whose clock is furthest ahead.

use super::{CallKind, Quotas, Rate};
use memtrove_core::identity::Tenant;
use memtrove_core::{Error, Quota, Result};
use memtrove_store::rates::{self, Draw, Grant, Measure};
use memtrove_store::{AllTenants, Store, StoreError, Tx};
use std::collections::HashMap;
use std::sync::{Arc, Mutex as SyncMutex, MutexGuard, PoisonError};
use tokio::sync::{Mutex, OwnedMutexGuard};

/// The part of a limit that a node draws at most.
const HELD: u64 = 20;
/// A node that draws again within this draws twice as much, in nanoseconds.
const HURRY: i64 = 2_000_000_000;
/// A node that draws again within this draws as much, and after it begins at one call.
const LEISURE: i64 = 10_000_000_000;
/// Enough that two that draw seldom wait for each other without need.
const TURNS: usize = 64;
/// The fewest calls between two clean-ups.
const CLEAN_UP_EVERY: usize = 256;

type Digest = [u8; 16];

/// What this node holds of the buckets of a store.
pub(super) struct Shared {
    store: Store,
    /// Names are stored as digests under this key.
    key: [u8; 32],
    held: SyncMutex<DrawnBuckets>,
    /// Locked by the call that draws: those who come meanwhile find what it drew. The first half is of users, the second of
    /// services; locked in this order.
    turns: [Arc<Mutex<()>>; 2 * TURNS],
}

struct DrawnBuckets {
    buckets: HashMap<Digest, Bucket>,
    calls_to_clean_up: usize,
}

/// What is held of one bucket.
#[derive(Clone, Copy)]
struct Bucket {
    /// The next piece, and the end of the last one.
    next: i64,
    until: i64,
    /// When it was drawn, and how many calls at most.
    drawn_at: i64,
    most: i64,
    /// It was empty, and will be until then.
    empty_until: i64,
}

/// One bucket that a call has to draw from.
#[derive(Clone, Copy)]
struct BucketDraw {
    scope: &'static str,
    kind: CallKind,
    rate: Rate,
    digest: Digest,
}

impl Shared {
    pub fn new(store: Store, key: [u8; 32]) -> Self {
        let held = DrawnBuckets { buckets: HashMap::new(), calls_to_clean_up: CLEAN_UP_EVERY };
        let turns = std::array::from_fn(|_| Arc::default());
        Self { store, key, held: SyncMutex::new(held), turns }
    }

    fn held(&self) -> MutexGuard<'_, DrawnBuckets> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn turn(&self, place: usize, wanted: &BucketDraw) -> Arc<Mutex<()>> {
        self.turns[place * TURNS + usize::from(wanted.digest[0]) % TURNS].clone()
    }

    fn digest(&self, scope: &str, tenant: &str, name: &str, kind: CallKind) -> Digest {
        let mut hasher = blake3::Hasher::new_keyed(&self.key);
        for part in [scope, tenant, name] {
            hasher.update(&(part.len() as u64).to_be_bytes()).update(part.as_bytes());
        }
        hasher.update(&[kind as u8]);
        let mut digest = Digest::default();
        hasher.finalize_xof().fill(&mut digest);
        digest
    }

    /// Removes buckets that are full from the store.
    pub async fn clean_up(&self, now: i64) -> Result<()> {
        self.store
            .write(AllTenants, "purge_rates", move |tx| rates::purge(tx, now))
            .await
            .map(drop)
            .map_err(Error::from)
    }
}

impl Quotas {
    fn wanted(
        &self,
        shared: &Shared,
        tenant: &str,
        user: Option<&str>,
        service: &str,
        kind: CallKind,
    ) -> [Option<BucketDraw>; 2] {
        let (of_user, of_service) = self.limits(tenant).rates(kind);
        let wanted = |scope, name, rate: Option<Rate>| {
            rate.map(|rate| BucketDraw {
                scope,
                kind,
                rate,
                digest: shared.digest(scope, tenant, name, kind),
            })
        };
        let of_user = user.and_then(|user| wanted(super::USER, user, of_user));
        [of_user, wanted(super::SERVICE, service, of_service)]
    }

    pub(super) async fn spend_shared(
        &self,
        shared: &Shared,
        tenant: &str,
        user: Option<&str>,
        service: &str,
        kind: CallKind,
    ) -> Result<()> {
        let wanted = self.wanted(shared, tenant, user, service, kind);
        // The call counts as one of this moment, however long it waits for its turn.
        let now = self.now();
        if shared.held().spend(&wanted, now).is_ok() {
            return Ok(());
        }
        let mut turns: Vec<OwnedMutexGuard<()>> = Vec::with_capacity(2);
        for (place, wanted) in wanted.iter().enumerate() {
            if let Some(wanted) = wanted {
                turns.push(shared.turn(place, wanted).lock_owned().await);
            }
        }
        loop {
            let missing = match shared.held().spend(&wanted, now) {
                Ok(()) => return Ok(()),
                Err(missing) => missing,
            };
            let empty = shared.held().empty(&missing, now);
            let refused = match empty {
                Some(refused) => Some(refused),
                None => draw(shared, tenant, missing, now).await?,
            };
            if let Some((wanted, wait)) = refused {
                return Err(wanted.refusal(wait));
            }
        }
    }

    /// Puts back what a call took, in the background; the next to draw from these buckets waits for that.
    pub(super) fn refund_shared(
        &self,
        shared: &Arc<Shared>,
        tenant: &str,
        user: &str,
        service: &str,
        kind: CallKind,
    ) {
        for (place, wanted) in self.wanted(shared, tenant, Some(user), service, kind).into_iter().enumerate()
        {
            let Some(wanted) = wanted else { continue };
            let (turn, shared) = (shared.turn(place, &wanted), shared.clone());
            let tenant = Tenant::listed(tenant.to_owned());
            let at_once = turn.clone().try_lock_owned().ok();
            tokio::spawn(async move {
                let _turn = match at_once {
                    Some(turn) => turn,
                    None => turn.lock_owned().await,
                };
                let (digest, cost) = (wanted.digest, wanted.rate.cost());
                let give_back = move |tx: &mut dyn Tx| rates::give_back(tx, &digest, cost);
                let given: Result<(), StoreError> =
                    shared.store.write(&tenant, "give_back_rate", give_back).await;
                match given {
                    Ok(()) => shared.held().refill(&digest),
                    Err(error) => tracing::warn!(%error, "a call that was refused is counted all the same"),
                }
            });
        }
    }
}

/// Draws what is missing from the store, all of it or nothing; answers the bucket that has nothing for longest, and for how long, in
/// nanoseconds.
async fn draw(
    shared: &Shared,
    tenant: &str,
    missing: Vec<BucketDraw>,
    now: i64,
) -> Result<Option<(BucketDraw, i64)>> {
    let draws: Vec<Draw> = {
        let held = shared.held();
        missing.iter().map(|wanted| wanted.draw(held.most(wanted, now))).collect()
    };
    let asked = draws.clone();
    let drawn = shared
        .store
        .write(Tenant::listed(tenant.to_owned()), "draw_rates", move |tx| rates::draw(tx, &asked, now))
        .await?;
    let mut held = shared.held();
    match drawn {
        Ok(grants) => {
            for (draw, grant) in draws.iter().zip(grants) {
                held.put(draw, grant, now);
            }
            Ok(None)
        }
        Err(waits) => {
            let empty = || missing.iter().copied().zip(waits.iter().copied()).filter(|(_, wait)| *wait > 0);
            for (wanted, wait) in empty() {
                held.note_empty(&wanted, wait, now);
            }
            Ok(empty().max_by_key(|(_, wait)| *wait))
        }
    }
}

impl DrawnBuckets {
    /// Spends a call of each bucket, or of none; answers those that have none then.
    fn spend(&mut self, wanted: &[Option<BucketDraw>; 2], now: i64) -> Result<(), Vec<BucketDraw>> {
        let has = |wanted: &&BucketDraw| {
            let cost = wanted.rate.cost();
            self.buckets.get(&wanted.digest).is_some_and(|bucket| bucket.piece(cost, now).is_some())
        };
        let missing: Vec<BucketDraw> =
            wanted.iter().flatten().filter(|wanted| !has(wanted)).copied().collect();
        if !missing.is_empty() {
            return Err(missing);
        }
        for wanted in wanted.iter().flatten() {
            let cost = wanted.rate.cost();
            if let Some(bucket) = self.buckets.get_mut(&wanted.digest)
                && let Some(piece) = bucket.piece(cost, now)
            {
                bucket.next = piece.saturating_add(cost);
            }
        }
        self.calls_to_clean_up -= 1;
        if self.calls_to_clean_up == 0 {
            self.buckets
                .retain(|_, bucket| bucket.drawn_at.saturating_add(LEISURE) > now || bucket.until > now);
            self.calls_to_clean_up = self.buckets.len().max(CLEAN_UP_EVERY);
        }
        Ok(())
    }

    /// The bucket that is known to be empty for longest, and for how long.
    fn empty(&self, missing: &[BucketDraw], now: i64) -> Option<(BucketDraw, i64)> {
        let wait = |wanted: &BucketDraw| {
            let empty_until = self.buckets.get(&wanted.digest)?.empty_until;
            (empty_until > now).then_some((*wanted, empty_until - now))
        };
        missing.iter().filter_map(wait).max_by_key(|(_, wait)| *wait)
    }

    /// How many calls to draw.
    fn most(&self, wanted: &BucketDraw, now: i64) -> i64 {
        let most = match self.buckets.get(&wanted.digest) {
            Some(bucket) if now.saturating_sub(bucket.drawn_at) < HURRY => bucket.most.saturating_mul(2),
            Some(bucket) if now.saturating_sub(bucket.drawn_at) < LEISURE => bucket.most,
            _ => 1,
        };
        most.clamp(1, i64::try_from(wanted.rate.limit / HELD).unwrap_or(i64::MAX).max(1))
    }

    fn put(&mut self, draw: &Draw, grant: Grant, now: i64) {
        let Grant { from, until } = grant;
        let bucket = Bucket { next: from, until, drawn_at: now, most: draw.most, empty_until: 0 };
        self.buckets.insert(draw.bucket, bucket);
    }

    fn note_empty(&mut self, wanted: &BucketDraw, wait: i64, now: i64) {
        let empty_until = now.saturating_add(wait);
        let bucket = Bucket { next: 0, until: 0, drawn_at: now, most: 1, empty_until };
        self.buckets.insert(wanted.digest, bucket);
    }

    /// Something was put back.
    fn refill(&mut self, digest: &Digest) {
        if let Some(bucket) = self.buckets.get_mut(digest) {
            bucket.empty_until = 0;
        }
    }
}

impl Bucket {
    /// The first piece that has not begun.
    fn piece(&self, cost: i64, now: i64) -> Option<i64> {
        let begun = now.saturating_sub(self.next).max(0);
        let pieces = begun / cost + i64::from(begun % cost != 0);
        let piece = self.next.saturating_add(pieces.saturating_mul(cost));
        (piece.saturating_add(cost) <= self.until).then_some(piece)
    }
}

impl BucketDraw {
    fn draw(&self, most: i64) -> Draw {
        let measure = Measure { cost: self.rate.cost(), capacity: self.rate.capacity() };
        Draw { bucket: self.digest, measure, most }
    }

    fn refusal(&self, wait: i64) -> Error {
        let seconds = wait.unsigned_abs().div_ceil(1_000_000_000);
        Error::quota_exceeded(Quota {
            scope: self.scope,
            resource: self.kind.resource(),
            limit: self.rate.limit,
            window_seconds: self.rate.window.as_secs(),
            retry_after_seconds: u32::try_from(seconds).unwrap_or(u32::MAX),
        })
    }
}

#[cfg(test)]
mod tests;
