//! Large scopes, searched by the database where it can ([`crate::vectors`]): given to it while others write, and taken back.
//!
//! Every step changes the scope's row. Who writes to the scope at the same time changes it too, so one of the two begins anew,
//! and no entry is missed or left behind.

use super::scopes::{ScopeRow, Searched, row_columns, scope_row};
use super::{MemoryNo, ScopeNo, index};
use crate::vectors::VectorRow;
use crate::{StoreError, Tx, TxExt};
use memtrove_core::Timestamp;
use memtrove_core::memories::Memory;
use memtrove_core::recall::terms::EntryTerms;

/// Scopes of more entries than `above` that nodes search, up to `limit`.
pub fn large(tx: &mut dyn Tx, above: i64, limit: i64) -> Result<Vec<ScopeRow>, StoreError> {
    let sql = concat!(
        "SELECT ",
        row_columns!(),
        " FROM memory_scopes s WHERE s.searched = 0 AND s.entries > $1 ORDER BY s.entries DESC LIMIT $2"
    );
    tx.rows(sql, &[above.into(), limit.into()], scope_row)
}

/// Scopes that the database searches, will search, or has searched.
pub fn known(tx: &mut dyn Tx) -> Result<Vec<ScopeRow>, StoreError> {
    let sql = concat!("SELECT ", row_columns!(), " FROM memory_scopes s WHERE s.searched <> 0 ORDER BY s.id");
    tx.rows(sql, &[], scope_row)
}

/// Notes who searches a scope from now on, if it is as it was; says whether.
pub fn set(tx: &mut dyn Tx, row: &ScopeRow, searched: Searched, to: i64) -> Result<bool, StoreError> {
    let changed = tx.execute(
        "UPDATE memory_scopes SET searched = $3, searched_to = $4 WHERE id = $1 AND searched = $2",
        &[row.no.0.into(), row.searched.code().into(), searched.code().into(), to.into()],
    )?;
    Ok(changed == 1)
}

/// A scope that is still in this state, locked until the unit of work ends.
fn lock(tx: &mut dyn Tx, scope: ScopeNo, searched: Searched) -> Result<Option<ScopeRow>, StoreError> {
    let sql = concat!("SELECT ", row_columns!(), " FROM memory_scopes s WHERE s.id = $1");
    let row = tx.first_locked(sql, &[scope.0.into()], scope_row)?;
    Ok(row.filter(|row| row.searched == searched))
}

/// Gives the database the next entries of a scope that is being filled, up to `limit`; says whether there may be more.
pub fn fill(tx: &mut dyn Tx, scope: ScopeNo, limit: i64) -> Result<bool, StoreError> {
    let Some(row) = lock(tx, scope, Searched::Filling)? else { return Ok(false) };
    let mut step = Vec::new();
    index::step(tx, scope, row.searched_to, limit, &mut |indexed| step.push(indexed))?;
    for indexed in &step {
        put_indexed(tx, scope, indexed)?;
    }
    if let Some(last) = step.last() {
        set(tx, &row, Searched::Filling, last.seq)?;
    }
    Ok(step.len() as i64 == limit)
}

/// Takes up to `limit` entries of a scope from the database, and then the scope itself; says whether there may be more.
pub fn take_back(tx: &mut dyn Tx, scope: ScopeNo, limit: i64) -> Result<bool, StoreError> {
    let Some(row) = lock(tx, scope, Searched::Clearing)? else { return Ok(false) };
    let more = clear(tx, scope, limit)? as i64 >= limit;
    if !more {
        set(tx, &row, Searched::ByNodes, 0)?;
    }
    Ok(more)
}

/// Takes up to `limit` entries of a scope from the database; says how many.
pub(super) fn clear(tx: &mut dyn Tx, scope: ScopeNo, limit: i64) -> Result<u64, StoreError> {
    tx.vectors().map_or(Ok(0), |vectors| vectors.clear(scope.0, limit))
}

/// How long the vectors of a scope are that the database was given.
pub fn dimensions(tx: &mut dyn Tx, scope: ScopeNo) -> Result<Vec<i64>, StoreError> {
    tx.vectors().map_or(Ok(Vec::new()), |vectors| vectors.dimensions(scope.0))
}

/// Lets the database search a scope from now on, if it was given all of it but `limit` entries at most; says whether.
pub fn begin(tx: &mut dyn Tx, row: &ScopeRow, limit: i64) -> Result<bool, StoreError> {
    Ok(!fill(tx, row.no, limit)? && count_terms(tx, row)?)
}

/// Whether the words of a scope were counted by this version, which leaves out what not everybody sees.
pub fn has_counts(tx: &mut dyn Tx, row: &ScopeRow) -> Result<bool, StoreError> {
    tx.vectors().map_or(Ok(true), |vectors| vectors.has_counts(row.no.0))
}

/// Counts the words of a scope, which the database searches from now on, unless it is not as it was; says whether.
pub fn count_terms(tx: &mut dyn Tx, row: &ScopeRow) -> Result<bool, StoreError> {
    let counted = set(tx, row, Searched::ByDatabase, row.entries)?;
    if counted && let Some(vectors) = tx.vectors() {
        vectors.count_terms(row.no.0, row.entries)?;
    }
    Ok(counted)
}

/// Gives the database an entry that is written.
pub(super) fn put(
    tx: &mut dyn Tx,
    scope: ScopeNo,
    seq: i64,
    no: MemoryNo,
    memory: &Memory,
    terms: &EntryTerms,
) -> Result<(), StoreError> {
    let Some(vectors) = tx.vectors() else { return Ok(()) };
    let terms: Vec<u64> = terms.whole.counts.iter().map(|(digest, _)| *digest).collect();
    vectors.put(&VectorRow {
        no: no.0,
        scope: scope.0,
        seq,
        kind: memory.kind.code(),
        state: memory.state.code(),
        policy: memory.policy.policy.as_str(),
        author_user: memory.created_by.user.as_deref(),
        author_client: memory.created_by.client.as_deref(),
        at: memory.at().as_micros(),
        created_at: memory.created_at.as_micros(),
        expires_at: memory.expires_at.map(Timestamp::as_micros),
        vector: memory.embedding.as_ref().map(|embedding| embedding.vector.as_slice()),
        pieces: memory.embedding.as_ref().map_or(&[], |embedding| &embedding.pieces),
        terms: &terms,
    })
}

fn put_indexed(tx: &mut dyn Tx, scope: ScopeNo, indexed: &index::Indexed) -> Result<(), StoreError> {
    let Some(vectors) = tx.vectors() else { return Ok(()) };
    let head = &indexed.head;
    let terms: Vec<u64> = indexed.terms.whole.counts.iter().map(|(digest, _)| *digest).collect();
    vectors.put(&VectorRow {
        no: indexed.no.0,
        scope: scope.0,
        seq: indexed.seq,
        kind: head.kind.code(),
        state: head.state.code(),
        policy: head.policy.policy.as_str(),
        author_user: head.author.user.as_deref(),
        author_client: head.author.client.as_deref(),
        at: head.at.as_micros(),
        created_at: head.created_at.as_micros(),
        expires_at: head.expires_at.map(Timestamp::as_micros),
        vector: indexed.embedding.as_ref().map(|embedding| embedding.vector.as_slice()),
        pieces: indexed.embedding.as_ref().map_or(&[], |embedding| &embedding.pieces),
        terms: &terms,
    })
}

/// Takes an entry from the database.
pub(super) fn remove(tx: &mut dyn Tx, no: MemoryNo) -> Result<(), StoreError> {
    tx.vectors().map_or(Ok(()), |vectors| vectors.remove(no.0))
}
