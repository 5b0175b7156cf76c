//! Buckets of calls that the nodes of a store draw from together.
//!
//! A bucket is the one instant at which it is full again, in nanoseconds since 1970; a call moves it on by what it costs, and
//! it never moves further ahead than a full bucket lasts. So a call is a piece of time, and a grant is a row of such
//! pieces: its holder spends a piece before it has begun, or not at all, because what has begun flows in again.

use crate::{StoreError, Tx, TxExt};

/// How far the clocks of two nodes may be apart. Further ahead, a bucket was left by a clock that was set back since.
const SKEW: i64 = 60_000_000_000;

/// A bucket's measure, in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Measure {
    /// How long what one call takes needs to flow in.
    pub cost: i64,
    /// How long an empty bucket takes to fill.
    pub capacity: i64,
}

/// Some calls, as the pieces of time that they take: from the first's beginning to the last's end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Grant {
    /// When the first piece begins.
    pub from: i64,
    /// When the last one ends.
    pub until: i64,
}

/// A draw from one bucket.
#[derive(Debug, Clone, Copy)]
pub struct Draw {
    /// Whose bucket: a digest.
    pub bucket: [u8; 16],
    pub measure: Measure,
    /// How many calls, at most.
    pub most: i64,
}

/// Draws from every bucket, or from none; then it answers how long it takes each of them to have something, which is 0 for those
/// that have.
pub fn draw(tx: &mut dyn Tx, draws: &[Draw], now: i64) -> Result<Result<Vec<Grant>, Vec<i64>>, StoreError> {
    let mut grants = Vec::with_capacity(draws.len());
    for draw in draws {
        grants.push(look(tx, draw, now)?);
    }
    if grants.iter().any(Result::is_err) {
        return Ok(Err(grants.into_iter().map(|grant| grant.err().unwrap_or_default()).collect()));
    }
    let grants: Vec<Grant> = grants.into_iter().flatten().collect();
    for (draw, grant) in draws.iter().zip(&grants) {
        put(tx, &draw.bucket, grant.until)?;
    }
    Ok(Ok(grants))
}

/// What could be drawn, or how long it takes until something can.
fn look(tx: &mut dyn Tx, draw: &Draw, now: i64) -> Result<Result<Grant, i64>, StoreError> {
    let Measure { cost, capacity } = draw.measure;
    let bucket = draw.bucket.as_slice();
    let full_at =
        tx.first_locked("SELECT full_at FROM rates WHERE bucket = $1", &[bucket.into()], |row| row.int(0))?;
    let furthest = now.saturating_add(capacity);
    let from = match full_at {
        Some(ahead) if ahead > furthest.saturating_add(SKEW) => {
            put(tx, bucket, furthest)?;
            furthest
        }
        full_at => full_at.map_or(now, |full_at| full_at.max(now)),
    };
    let room = furthest.saturating_sub(from) / cost.max(1);
    if room < 1 {
        return Ok(Err(from.saturating_add(cost).saturating_sub(furthest)));
    }
    let until = from.saturating_add(room.min(draw.most.max(1)).saturating_mul(cost));
    Ok(Ok(Grant { from, until }))
}

fn put(tx: &mut dyn Tx, bucket: &[u8], full_at: i64) -> Result<(), StoreError> {
    tx.execute(
        "INSERT INTO rates (bucket, full_at) VALUES ($1, $2) ON CONFLICT (bucket) DO UPDATE SET full_at = excluded.full_at",
        &[bucket.into(), full_at.into()],
    )?;
    Ok(())
}

/// Puts back what one call took.
pub fn give_back(tx: &mut dyn Tx, bucket: &[u8], cost: i64) -> Result<(), StoreError> {
    tx.execute("UPDATE rates SET full_at = full_at - $2 WHERE bucket = $1", &[bucket.into(), cost.into()])?;
    Ok(())
}

/// Removes buckets that are full.
pub fn purge(tx: &mut dyn Tx, now: i64) -> Result<u64, StoreError> {
    tx.execute("DELETE FROM rates WHERE full_at < $1", &[now.into()])
}
