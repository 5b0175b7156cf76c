//! Quotas: how much a user and a service may ask for in a length of time.
//!
//! Each is a token bucket, kept as the one instant at which it is full again: a call moves it on by its
//! cost, and may not move it further ahead than a full bucket lasts. A bucket that is full is no bucket at all, so
//! memory holds only those who called lately. Buckets are in memory alone: a restart fills them. Nodes that share a store
//! [share their buckets](shared).

mod shared;

use crate::files_metrics;
use memtrove_core::{Clock, Error, Quota, Result};
use memtrove_store::Store;
use shared::Shared;
use std::collections::{BTreeMap, HashMap};
use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How many calls in how much time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rate {
    /// How many calls a full bucket is worth, and how many flow into it during a window.
    pub limit: u64,
    /// How long an empty bucket takes to fill.
    pub window: Duration,
}

/// What one tenant's users and services may do. `None` is no limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct QuotaLimits {
    /// Reads of what one user has stored, by any caller that names that user alone.
    pub user_reads: Option<Rate>,
    /// Writes to what one user has stored, by any caller that names that user alone.
    pub user_writes: Option<Rate>,
    /// Reads by one service, whosever they are for.
    pub service_reads: Option<Rate>,
    /// Writes by one service, whosever they are for.
    pub service_writes: Option<Rate>,
    /// How many files one user may have.
    pub max_files: Option<u64>,
    /// How many events one user may have.
    pub max_events: Option<u64>,
}

impl QuotaLimits {
    /// These limits where they are set, the `others` where they are not.
    fn or(self, others: Self) -> Self {
        Self {
            user_reads: self.user_reads.or(others.user_reads),
            user_writes: self.user_writes.or(others.user_writes),
            service_reads: self.service_reads.or(others.service_reads),
            service_writes: self.service_writes.or(others.service_writes),
            max_files: self.max_files.or(others.max_files),
            max_events: self.max_events.or(others.max_events),
        }
    }

    /// Those of a user and of a service for calls of a kind.
    fn rates(&self, kind: CallKind) -> (Option<Rate>, Option<Rate>) {
        match kind {
            CallKind::Read => (self.user_reads, self.service_reads),
            CallKind::Write => (self.user_writes, self.service_writes),
        }
    }
}

/// The deployment's quotas. The default is none.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct QuotaSettings {
    /// For every tenant.
    pub everywhere: QuotaLimits,
    /// For tenants by name: what is set here replaces what is set everywhere.
    pub tenants: BTreeMap<String, QuotaLimits>,
}

/// What a call does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallKind {
    /// It looks.
    Read,
    /// It changes something.
    Write,
}

impl CallKind {
    /// What calls of it are, as refusals call them.
    fn resource(self) -> &'static str {
        match self {
            CallKind::Read => "reads",
            CallKind::Write => "writes",
        }
    }
}

/// Whose a bucket is, as refusals and metrics call it.
const USER: &str = "user";
const SERVICE: &str = "service";
pub(crate) const SCOPES: [&str; 2] = [USER, SERVICE];

/// Waiting makes no room, but somebody may have.
const RETRY_WHEN_FULL_SECONDS: u32 = 60;

/// The buckets of everybody who called lately.
pub struct Quotas {
    on: bool,
    everywhere: QuotaLimits,
    tenants: HashMap<String, QuotaLimits>,
    clock: Arc<dyn Clock>,
    /// Locked before those of services, always, so that two calls cannot wait for each other.
    users: Buckets,
    services: Buckets,
    /// Those that nodes have together, instead of these.
    shared: Option<Arc<Shared>>,
}

impl Quotas {
    /// Every bucket is full.
    pub fn new(settings: QuotaSettings, clock: Arc<dyn Clock>) -> Self {
        let QuotaSettings { everywhere, tenants } = settings;
        let tenants: HashMap<_, _> =
            tenants.into_iter().map(|(name, limits)| (name, limits.or(everywhere))).collect();
        let on = tenants.values().chain([&everywhere]).any(|limits| *limits != QuotaLimits::default());
        let (users, services) = (Buckets::of(USER), Buckets::of(SERVICE));
        Self { on, everywhere, tenants, clock, users, services, shared: None }
    }

    /// As [`Quotas::new`], with the buckets of all nodes of a store, where there may be several. Names are stored as digests under
    /// the key, which must be the same on all of them.
    pub fn across(settings: QuotaSettings, clock: Arc<dyn Clock>, store: &Store, key: [u8; 32]) -> Self {
        let quotas = Self::new(settings, clock);
        let shared = (quotas.on && store.is_shared()).then(|| Arc::new(Shared::new(store.clone(), key)));
        Self { shared, ..quotas }
    }

    /// Whether anything is limited for anybody.
    pub fn is_on(&self) -> bool {
        self.on
    }

    /// Counts one call of `service` for `user`, if it is for one, or refuses it and counts nothing.
    ///
    /// Both are of the tenant: what a service does in one is not held against it in another.
    pub async fn spend<'a>(
        &self,
        tenant: &str,
        user: impl Into<Option<&'a str>>,
        service: &str,
        kind: CallKind,
    ) -> Result<()> {
        let user = user.into();
        match &self.shared {
            Some(shared) => self.spend_shared(shared, tenant, user, service, kind).await,
            None => self.charge(tenant, user, service, kind),
        }
    }

    /// As [`Quotas::spend`], with the buckets of this process.
    fn charge<'a>(
        &self,
        tenant: &str,
        user: impl Into<Option<&'a str>>,
        service: &str,
        kind: CallKind,
    ) -> Result<()> {
        if !self.on {
            return Ok(());
        }
        let mut draws = self.draws(tenant, user.into(), service, kind);
        // A caller that waits for the emptier of the two has waited for both.
        let emptiest = draws.iter().flatten().max_by_key(|draw| draw.wait());
        if let Some(refused) = emptiest.filter(|draw| draw.wait() > 0) {
            return Err(refused.refusal());
        }
        draws.iter_mut().flatten().for_each(Draw::take);
        Ok(())
    }

    /// Takes back the count of a call that was charged and then refused by a cap.
    pub fn refund(&self, tenant: &str, user: &str, service: &str, kind: CallKind) {
        if let Some(shared) = &self.shared {
            return self.refund_shared(shared, tenant, user, service, kind);
        }
        self.draws(tenant, Some(user), service, kind).iter_mut().flatten().for_each(Draw::give_back);
    }

    /// Removes from the store what is not needed any more.
    pub(crate) async fn clean_up(&self) -> Result<()> {
        match &self.shared {
            Some(shared) => shared.clean_up(self.now()).await,
            None => Ok(()),
        }
    }

    /// Nanoseconds since 1970.
    fn now(&self) -> i64 {
        self.clock.now().as_micros().saturating_mul(1000)
    }

    fn draws(
        &self,
        tenant: &str,
        user: Option<&str>,
        service: &str,
        kind: CallKind,
    ) -> [Option<Draw<'_>>; 2] {
        let (of_user, of_service) = self.limits(tenant).rates(kind);
        let now = self.now();
        [
            of_user.zip(user).map(|(rate, user)| self.users.draw(rate, (tenant, user), kind, now)),
            of_service.map(|rate| self.services.draw(rate, (tenant, service), kind, now)),
        ]
    }

    /// How many files one user of this tenant may have.
    pub fn max_files(&self, tenant: &str) -> Option<u64> {
        self.limits(tenant).max_files
    }

    /// How many events one user of this tenant may have.
    pub fn max_events(&self, tenant: &str) -> Option<u64> {
        self.limits(tenant).max_events
    }

    /// How many reads a second one user of this tenant may go on with, through one service; rounded down.
    pub fn reads_per_second(&self, tenant: &str) -> Option<u64> {
        let (of_user, of_service) = self.limits(tenant).rates(CallKind::Read);
        let rates = [of_user, of_service].into_iter().flatten();
        rates.map(|rate| rate.limit / rate.window.as_secs().max(1)).min()
    }

    fn limits(&self, tenant: &str) -> &QuotaLimits {
        self.tenants.get(tenant).unwrap_or(&self.everywhere)
    }
}

/// The refusal for a user who has as many `files` or `events` as it may have.
pub(crate) fn full(resource: &'static str, limit: u64) -> Error {
    let refusal = Error::quota_exceeded(Quota {
        scope: USER,
        resource,
        limit,
        window_seconds: 0,
        retry_after_seconds: RETRY_WHEN_FULL_SECONDS,
    });
    files_metrics::quota_rejection(&refusal);
    refusal
}

impl Rate {
    /// How long what one call takes needs to flow in, in nanoseconds; rounded up, so that never more flows in than may.
    fn cost(self) -> i64 {
        let window = u64::try_from(self.window.as_nanos()).unwrap_or(u64::MAX);
        i64::try_from(window.div_ceil(self.limit.max(1))).unwrap_or(i64::MAX)
    }

    /// How long an empty bucket takes to fill, in nanoseconds: what exactly `limit` calls cost.
    fn capacity(self) -> i64 {
        self.cost().saturating_mul(i64::try_from(self.limit).unwrap_or(i64::MAX))
    }
}

/// Enough that two calls seldom meet, few enough to cost nothing.
const SHARDS: usize = 16;

/// The buckets of users or of services, by a keyed hash of tenant and name: looking allocates nothing, and a bucket
/// takes the same room whatever the name. That two names share one is as likely as guessing 64 random bits.
struct Buckets {
    scope: &'static str,
    hasher: RandomState,
    shards: [Mutex<Shard>; SHARDS],
}

impl Buckets {
    fn of(scope: &'static str) -> Self {
        Self { scope, hasher: RandomState::new(), shards: Default::default() }
    }

    /// Looks into a bucket, and keeps others from it for as long as the draw lives.
    fn draw(&self, rate: Rate, whose: (&str, &str), kind: CallKind, now: i64) -> Draw<'_> {
        let key = self.hasher.hash_one(whose);
        let mut shard = self.shards[key as usize % SHARDS].lock().unwrap_or_else(PoisonError::into_inner);
        let missing = shard.full_at.get_mut(&key).map_or(0, |full_at| {
            let full_at = &mut full_at[kind as usize];
            // A clock that was set back has not made the bucket emptier than empty.
            *full_at = (*full_at).min(now.saturating_add(rate.capacity()));
            full_at.saturating_sub(now).max(0)
        });
        Draw { scope: self.scope, rate, kind, now, key, missing, shard }
    }
}

/// The fewest calls between two clean-ups.
const CLEAN_UP_EVERY: usize = 64;

struct Shard {
    /// When each bucket is full again, in nanoseconds since 1970: that for reads and that for writes.
    full_at: HashMap<u64, [i64; 2]>,
    calls_to_clean_up: usize,
}

impl Default for Shard {
    fn default() -> Self {
        Self { full_at: HashMap::new(), calls_to_clean_up: CLEAN_UP_EVERY }
    }
}

impl Shard {
    /// Drops buckets that are full again. Done after as many calls as there are buckets, it costs each call as much as
    /// looking at one.
    fn clean_up(&mut self, now: i64) {
        self.full_at.retain(|_, full_at| full_at.iter().any(|at| *at > now));
        self.full_at.shrink_to(2 * self.full_at.len());
        self.calls_to_clean_up = self.full_at.len().max(CLEAN_UP_EVERY);
    }
}

/// One call at one bucket.
struct Draw<'a> {
    scope: &'static str,
    rate: Rate,
    kind: CallKind,
    now: i64,
    key: u64,
    /// How long until the bucket is full, in nanoseconds.
    missing: i64,
    shard: MutexGuard<'a, Shard>,
}

impl Draw<'_> {
    /// How long until there is enough for this call, in nanoseconds; 0 when there is.
    fn wait(&self) -> i64 {
        (self.missing.saturating_add(self.rate.cost()) - self.rate.capacity()).max(0)
    }

    /// Takes what the call costs.
    fn take(&mut self) {
        let full_at = self.now.saturating_add(self.missing).saturating_add(self.rate.cost());
        self.shard.full_at.entry(self.key).or_default()[self.kind as usize] = full_at;
        self.shard.calls_to_clean_up -= 1;
        if self.shard.calls_to_clean_up == 0 {
            self.shard.clean_up(self.now);
        }
    }

    /// Puts back what a call took. A bucket that has filled up meanwhile stays full.
    fn give_back(&mut self) {
        if let Some(full_at) = self.shard.full_at.get_mut(&self.key) {
            let missing = self.missing.saturating_sub(self.rate.cost()).max(0);
            full_at[self.kind as usize] = self.now.saturating_add(missing);
        }
    }

    fn refusal(&self) -> Error {
        let seconds = self.wait().unsigned_abs().div_ceil(1_000_000_000);
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
