//! The change feed: one durable, ordered sequence per tenant of what happened, written together with what it tells of.
//!
//! Numbers are without gaps and never used twice: a unit of work that fails takes its number back with it, and forgetting
//! blanks rows instead of deleting them, as trimming does with a tenant's newest. So a reader who has seen number n has missed
//! nothing as long as the next one is n + 1.

use crate::{FeedEntry, Lock, Recorded, Row, StoreError, Tx, TxExt};
use memtrove_core::changes::RecordedChange;
use memtrove_core::identity::Tenant;
use memtrove_core::{Timestamp, UserId};
use std::ops::ControlFlow;

pub use memtrove_core::changes::ChangeKind;

/// A change to be told of: references, never content.
#[derive(Debug, Clone, Copy)]
pub struct Change<'a> {
    /// What happened.
    pub kind: ChangeKind,
    /// Whose it is, who did it, or which member it is about. Forgetting this user blanks the change.
    pub user: Option<&'a str>,
    /// What it happened to: a path, an event's id, a conversation's id.
    pub resource: &'a str,
    /// Which version or part of it: an ETag, an entry's id, a transfer's id.
    pub version: Option<&'a str>,
}

/// Puts a change at the end of its tenant's feed, in the unit of work that makes it.
pub fn record(
    tx: &mut dyn Tx,
    tenant: &Tenant,
    at: Timestamp,
    change: &Change<'_>,
) -> Result<Recorded, StoreError> {
    tx.record_change(&FeedEntry {
        tenant: tenant.as_str(),
        at: at.as_micros(),
        kind: change.kind.as_str(),
        user: change.user,
        resource: change.resource,
        version: change.version,
    })
}

/// The number of the newest change; 0 where nothing ever happened.
pub fn newest(tx: &mut dyn Tx, tenant: &Tenant) -> Result<i64, StoreError> {
    let newest =
        tx.first("SELECT MAX(sequence) FROM changes WHERE tenant = $1", &[tenant.as_str().into()], |row| {
            row.opt_int(0)
        })?;
    Ok(newest.flatten().unwrap_or_default())
}

/// The changes after number `after`, oldest first.
pub fn page(
    tx: &mut dyn Tx,
    tenant: &Tenant,
    after: i64,
    limit: i64,
) -> Result<Vec<RecordedChange>, StoreError> {
    tx.rows(
        "SELECT sequence, at, kind, user_id, resource, version FROM changes WHERE tenant = $1 AND sequence > $2 \
         ORDER BY sequence LIMIT $3",
        &[tenant.as_str().into(), after.into(), limit.into()],
        recorded,
    )
}

/// The part of a feed that is kept. A feed nothing was ever written to begins at 1 and ends at 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// The number of the oldest change.
    pub oldest: i64,
    /// The number of the newest change.
    pub newest: i64,
}

/// Which numbers a tenant's feed has.
pub fn bounds(tx: &mut dyn Tx, tenant: &Tenant) -> Result<Bounds, StoreError> {
    // Two questions, because only then each of them is a single seek.
    let bounds = tx.first(
        "SELECT (SELECT MIN(sequence) FROM changes WHERE tenant = $1), \
         (SELECT MAX(sequence) FROM changes WHERE tenant = $1)",
        &[tenant.as_str().into()],
        |row| Ok(row.opt_int(0)?.zip(row.opt_int(1)?)),
    )?;
    let (oldest, newest) = bounds.flatten().unwrap_or((1, 0));
    Ok(Bounds { oldest, newest })
}

/// The tenants whose feed has something that [`trim`] would remove. Costs some seeks per tenant, whatever they keep.
pub fn trimmable(tx: &mut dyn Tx, before: Timestamp) -> Result<Vec<Tenant>, StoreError> {
    tx.rows(
        "WITH RECURSIVE tenants (tenant) AS (SELECT MIN(tenant) FROM changes UNION ALL \
         SELECT (SELECT MIN(tenant) FROM changes WHERE tenant > t.tenant) FROM tenants t WHERE t.tenant IS NOT NULL) \
         SELECT t.tenant FROM tenants t JOIN changes c ON c.tenant = t.tenant \
         AND c.sequence = (SELECT MIN(sequence) FROM changes WHERE tenant = t.tenant) \
         WHERE c.at < $1 AND (c.resource IS NOT NULL \
         OR c.sequence < (SELECT MAX(sequence) FROM changes WHERE tenant = t.tenant))",
        &[before.as_micros().into()],
        |row| Ok(Tenant::listed(row.text(0)?.to_owned())),
    )
}

/// Removes up to `batch` of a tenant's oldest changes, up to the first that is not older than `before`; says how many. The
/// newest stays as a number.
pub fn trim(tx: &mut dyn Tx, tenant: &Tenant, before: Timestamp, batch: i64) -> Result<u64, StoreError> {
    // The last row of those looked at stays in any case: it is the newest, or the first of the next batch.
    let mut keep = 0;
    tx.query(
        "SELECT sequence, at FROM changes WHERE tenant = $1 ORDER BY sequence LIMIT $2",
        &[tenant.as_str().into(), (batch + 1).into()],
        Lock::None,
        &mut |row| {
            keep = row.int(0)?;
            let old = row.int(1)? < before.as_micros();
            Ok(if old { ControlFlow::Continue(()) } else { ControlFlow::Break(()) })
        },
    )?;
    let blank = ChangeKind::Forgotten.as_str();
    tx.post(
        "UPDATE changes SET kind = $4, user_id = NULL, resource = NULL, version = NULL WHERE tenant = $1 AND sequence = $2 \
         AND at < $3 AND resource IS NOT NULL AND sequence = (SELECT MAX(sequence) FROM changes WHERE tenant = $1)",
        &[tenant.as_str().into(), keep.into(), before.as_micros().into(), blank.into()],
    )?;
    tx.execute(
        "DELETE FROM changes WHERE tenant = $1 AND sequence < $2",
        &[tenant.as_str().into(), keep.into()],
    )
}

/// Blanks what the feed says about a user, in the `batch` numbers from `from` on and never after `last`; answers where to go
/// on, if there is more. There is no index to find them by: it would cost every write a page.
pub fn forget_user(
    tx: &mut dyn Tx,
    tenant: &Tenant,
    user: &UserId,
    from: i64,
    batch: i64,
    last: i64,
) -> Result<Option<i64>, StoreError> {
    let from = from.max(bounds(tx, tenant)?.oldest);
    let next = from.saturating_add(batch);
    tx.post(
        "UPDATE changes SET kind = $5, user_id = NULL, resource = NULL, version = NULL \
         WHERE tenant = $1 AND sequence >= $2 AND sequence < $3 AND user_id = $4 AND sequence <= $6",
        &[
            tenant.as_str().into(),
            from.into(),
            next.into(),
            user.as_str().into(),
            ChangeKind::Forgotten.as_str().into(),
            last.into(),
        ],
    )?;
    Ok((next <= last).then_some(next))
}

fn recorded(row: &dyn Row) -> Result<RecordedChange, StoreError> {
    let kind = row.text(2)?;
    Ok(RecordedChange {
        sequence: row.int(0)?,
        at: Timestamp::from_micros(row.int(1)?),
        kind: ChangeKind::parse(kind)
            .ok_or_else(|| StoreError::Broken(format!("unknown kind of change '{kind}'")))?,
        user: row.opt_text(3)?.map(UserId::from),
        resource: row.opt_text(4)?.map(str::to_owned),
        version: row.opt_text(5)?.map(str::to_owned),
    })
}
