//! Work that one node at a time does for all nodes of a store.
//!
//! A lease is a promise, not a lock: a node that stands still for longer than its lease lasts may go on as if it had it. What
//! is done under a lease must therefore be right if two do it; the lease saves them from doing it twice.

use crate::{StoreError, Tx};
use memtrove_core::Timestamp;
use uuid::Uuid;

/// Takes a lease that is free at `now`, or renews one's own; says whether it is this holder's until `until`.
pub fn take(
    tx: &mut dyn Tx,
    name: &str,
    holder: Uuid,
    now: Timestamp,
    until: Timestamp,
) -> Result<bool, StoreError> {
    let taken = tx.execute(
        "INSERT INTO leases (name, holder, until) VALUES ($1, $2, $4) ON CONFLICT (name) DO UPDATE \
         SET holder = excluded.holder, until = excluded.until WHERE leases.holder = $2 OR leases.until <= $3",
        &[name.into(), holder.into(), now.as_micros().into(), until.as_micros().into()],
    )?;
    Ok(taken == 1)
}

/// Gives a lease back, if it is this holder's.
pub fn release(tx: &mut dyn Tx, name: &str, holder: Uuid) -> Result<(), StoreError> {
    tx.execute("DELETE FROM leases WHERE name = $1 AND holder = $2", &[name.into(), holder.into()])?;
    Ok(())
}

/// Gives every lease of a holder back: it stops.
pub fn release_all(tx: &mut dyn Tx, holder: Uuid) -> Result<(), StoreError> {
    tx.execute("DELETE FROM leases WHERE holder = $1", &[holder.into()])?;
    Ok(())
}

/// Removes leases that ran out before an instant: of nodes that are gone, for work that was not taken over.
pub fn purge(tx: &mut dyn Tx, before: Timestamp) -> Result<u64, StoreError> {
    tx.execute("DELETE FROM leases WHERE until < $1", &[before.as_micros().into()])
}
