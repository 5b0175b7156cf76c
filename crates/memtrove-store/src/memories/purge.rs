//! Removing whole scopes: out of reach at once, then cleared away in steps.

use super::scopes::{ScopeNo, key, scope_columns};
use super::{MemoryNo, index, searched, segments, texts, writing};
use crate::{StoreError, Tx, TxExt, Value, stream};
use memtrove_core::identity::Tenant;
use memtrove_core::memories::{MemoryId, ScopeKey};

/// Which scopes are to go.
#[derive(Debug, Clone)]
pub enum Selector<'a> {
    /// Every personal scope of a user.
    User(&'a str),
    /// A user's scope of a session.
    Session { user: &'a str, session: &'a str },
}

/// A scope that is out of reach.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Detached {
    /// The number that nothing leads to any more.
    pub no: ScopeNo,
    /// Which scope it was.
    pub scope: ScopeKey,
    /// How many entries it had.
    pub entries: u64,
}

/// Puts scopes out of reach. A write there begins an empty scope.
pub fn detach(
    tx: &mut dyn Tx,
    tenant: &Tenant,
    selector: &Selector<'_>,
) -> Result<Vec<Detached>, StoreError> {
    let (user, session) = match selector {
        Selector::User(user) => (*user, None),
        Selector::Session { user, session } => (*user, Some(*session)),
    };
    let mut select = format!(
        "SELECT s.id, s.entries, {} FROM memory_scopes s WHERE s.tenant = $1 AND s.user_id = $2",
        scope_columns!()
    );
    let mut params: Vec<Value<'_>> = vec![tenant.as_str().into(), user.into()];
    if let Some(session) = session {
        select.push_str(" AND s.session_id = $3");
        params.push(session.into());
    }
    let found = tx.rows(&select, &params, |row| {
        let entries = u64::try_from(row.int(1)?).unwrap_or_default();
        Ok(Detached { no: ScopeNo(row.int(0)?), scope: key(row, 2)?, entries })
    })?;
    for Detached { no, scope, .. } in &found {
        stream::blank_scope(tx, scope.hash())?;
        tx.post(
            "INSERT INTO memory_purges (scope_no, blanked) VALUES ($1, 0) ON CONFLICT DO NOTHING",
            &[no.0.into()],
        )?;
        tx.post("DELETE FROM memory_scopes WHERE id = $1", &[no.0.into()])?;
        segments::discard(tx, *no)?;
    }
    Ok(found)
}

/// Clears away what may be left of an entry in a scope that is out of reach, so that its id can be used again.
pub fn clear_id(tx: &mut dyn Tx, id: MemoryId) -> Result<(), StoreError> {
    let left = tx.first(
        "SELECT m.no, m.scope_no, m.seq FROM memories m JOIN memory_purges p ON p.scope_no = m.scope_no WHERE m.id = $1",
        &[id.0.into()],
        |row| Ok((MemoryNo(row.int(0)?), ScopeNo(row.int(1)?), row.int(2)?)),
    )?;
    if let Some((no, scope, seq)) = left {
        writing::remove_row(tx, no)?;
        index::remove(tx, scope, seq)?;
        searched::remove(tx, no)?;
    }
    Ok(())
}

/// Clears away up to `limit` entries of scopes that are out of reach; `None` when nothing is left. First all of them are
/// blanked, then they go: an engine that takes rows away moves their neighbours together, and may leave copies of those where
/// they were.
pub fn step(tx: &mut dyn Tx, limit: i64) -> Result<Option<u64>, StoreError> {
    if blank(tx, limit)? {
        return Ok(Some(0));
    }
    let next =
        tx.first("SELECT scope_no FROM memory_purges ORDER BY scope_no LIMIT 1", &[], |row| row.int(0))?;
    let Some(scope) = next.map(ScopeNo) else { return Ok(None) };
    if searched::clear(tx, scope, limit)? as i64 == limit {
        return Ok(Some(0));
    }
    let rows = tx.rows(
        "SELECT no FROM memories WHERE scope_no = $1 LIMIT $2",
        &[scope.0.into(), limit.into()],
        |row| row.int(0).map(MemoryNo),
    )?;
    for no in &rows {
        writing::remove_row(tx, *no)?;
    }
    let (from, to) = (scope.place(0), ScopeNo(scope.0 + 1).place(0));
    for table in ["memory_index", "memory_gone"] {
        let sql = format!(
            "DELETE FROM {table} WHERE place IN (SELECT place FROM {table} WHERE place >= $1 AND place < $2 LIMIT $3)"
        );
        let removed = tx.execute(&sql, &[from.into(), to.into(), limit.into()])?;
        if removed as i64 == limit {
            return Ok(Some(rows.len() as u64));
        }
    }
    if (rows.len() as i64) < limit {
        tx.post("DELETE FROM memory_purges WHERE scope_no = $1", &[scope.0.into()])?;
    }
    Ok(Some(rows.len() as u64))
}

/// Takes what they say out of up to `limit` entries, where they stand; says whether there was something to do.
fn blank(tx: &mut dyn Tx, limit: i64) -> Result<bool, StoreError> {
    let next =
        tx.first("SELECT scope_no, at, id FROM memory_purges WHERE blanked = 0 LIMIT 1", &[], |row| {
            let last = (row.opt_int(1)?.unwrap_or(i64::MIN), row.opt_uuid(2)?.unwrap_or_default());
            Ok((ScopeNo(row.int(0)?), last))
        })?;
    let Some((scope, (at, id))) = next else { return Ok(false) };
    let rows = tx.rows(
        "SELECT no, at, id FROM memories WHERE scope_no = $1 AND (at, id) > ($2, $3) ORDER BY at, id LIMIT $4",
        &[scope.0.into(), at.into(), id.into(), limit.into()],
        |row| Ok((row.int(0)?, row.int(1)?, row.uuid(2)?)),
    )?;
    let nothing = b"".as_slice();
    for (no, _, id) in &rows {
        tx.post(
            "UPDATE memories SET content = $2, rest = $2, words = $2, statement = NULL WHERE no = $1",
            &[(*no).into(), nothing.into()],
        )?;
        texts::blank(tx, MemoryId(*id))?;
    }
    let (_, at, id) = rows.last().copied().unwrap_or((0, at, id));
    tx.post(
        "UPDATE memory_purges SET blanked = $2, at = $3, id = $4 WHERE scope_no = $1",
        &[scope.0.into(), i64::from((rows.len() as i64) < limit).into(), at.into(), id.into()],
    )?;
    Ok(true)
}
