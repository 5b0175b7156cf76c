//! Scopes: the number that everything of a user hangs on, and what is counted there.

use crate::{Row, StoreError, Tx, TxExt};
use memtrove_core::UserId;
use memtrove_core::files::Scope;
use memtrove_core::identity::Tenant;

/// A scope's number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ScopeId(pub i64);

/// What is counted of a scope.
#[derive(Debug, Clone, Copy)]
pub struct Counted {
    /// Its number.
    pub id: ScopeId,
    pub files: i64,
    pub events: i64,
    /// The block of the event index that takes the next event.
    pub open_block: i64,
}

/// The number of a scope, if anything was ever written in it.
pub fn find(tx: &mut dyn Tx, scope: &Scope) -> Result<Option<ScopeId>, StoreError> {
    tx.first(
        "SELECT id FROM scopes WHERE tenant = $1 AND user_id = $2",
        &[scope.tenant().as_str().into(), scope.user().as_str().into()],
        |row| row.int(0).map(ScopeId),
    )
}

/// Whose scope has this number; none once its user was forgotten.
pub fn get(tx: &mut dyn Tx, id: ScopeId) -> Result<Option<Scope>, StoreError> {
    tx.first("SELECT tenant, user_id FROM scopes WHERE id = $1", &[id.0.into()], |row| {
        Ok(Scope::listed(Tenant::listed(row.text(0)?.to_owned()), UserId(row.text(1)?.to_owned())))
    })
}

/// Waits until no other unit of work changes what this user has stored. Call it before anything else.
pub fn take_turn(tx: &mut dyn Tx, scope: &Scope) -> Result<(), StoreError> {
    tx.lock(format!("{}\0{}", scope.tenant().as_str(), scope.user().as_str()).as_bytes())
}

/// The scope, made if it is new, locked until the unit of work ends.
pub fn lock(tx: &mut dyn Tx, scope: &Scope) -> Result<Counted, StoreError> {
    let key = [scope.tenant().as_str().into(), scope.user().as_str().into()];
    let select =
        "SELECT id, file_count, event_count, open_block FROM scopes WHERE tenant = $1 AND user_id = $2";
    if let Some(found) = tx.first_locked(select, &key, counted)? {
        return Ok(found);
    }
    tx.post(
        "INSERT INTO scopes (tenant, user_id, next_sequence, file_count, event_count, open_block) \
         VALUES ($1, $2, 1, 0, 0, 0) ON CONFLICT (tenant, user_id) DO NOTHING",
        &key,
    )?;
    tx.first_locked(select, &key, counted)?
        .ok_or_else(|| StoreError::Broken("a scope is missing right after it was made".into()))
}

/// The scope with this number, locked until the unit of work ends; none once its user was forgotten.
pub fn lock_known(tx: &mut dyn Tx, id: ScopeId) -> Result<Option<Counted>, StoreError> {
    tx.first_locked(
        "SELECT id, file_count, event_count, open_block FROM scopes WHERE id = $1",
        &[id.0.into()],
        counted,
    )
}

fn counted(row: &dyn Row) -> Result<Counted, StoreError> {
    Ok(Counted { id: ScopeId(row.int(0)?), files: row.int(1)?, events: row.int(2)?, open_block: row.int(3)? })
}

/// Counts a change of a file and answers its place in the audit trail.
pub fn take_sequence(tx: &mut dyn Tx, scope: ScopeId, new_files: i64) -> Result<i64, StoreError> {
    tx.first(
        "UPDATE scopes SET next_sequence = next_sequence + 1, file_count = file_count + $2 WHERE id = $1 \
         RETURNING next_sequence - 1",
        &[scope.0.into(), new_files.into()],
        |row| row.int(0),
    )?
    .ok_or_else(|| StoreError::Broken("a scope vanished under its lock".into()))
}

/// The scope's number and its next place in the audit trail, for a change of no file; the scope is made if it is new, and
/// locked until the unit of work ends. Nothing is waited for but the scope.
pub fn take_place(tx: &mut dyn Tx, scope: &Scope) -> Result<(ScopeId, i64), StoreError> {
    let found = tx.first_locked(
        "SELECT id, next_sequence FROM scopes WHERE tenant = $1 AND user_id = $2",
        &[scope.tenant().as_str().into(), scope.user().as_str().into()],
        |row| Ok((ScopeId(row.int(0)?), row.int(1)?)),
    )?;
    let Some((id, sequence)) = found else {
        let id = lock(tx, scope)?.id;
        return Ok((id, take_sequence(tx, id, 0)?));
    };
    tx.post("UPDATE scopes SET next_sequence = next_sequence + 1 WHERE id = $1", &[id.0.into()])?;
    Ok((id, sequence))
}

/// Counts events that came or went, and notes the block that takes the next one.
pub fn set_events(
    tx: &mut dyn Tx,
    scope: ScopeId,
    difference: i64,
    open_block: i64,
) -> Result<(), StoreError> {
    tx.post(
        "UPDATE scopes SET event_count = event_count + $2, open_block = $3 WHERE id = $1",
        &[scope.0.into(), difference.into(), open_block.into()],
    )?;
    Ok(())
}

/// Up to `limit` scopes after one, in the order of their numbers: of one tenant, or of all.
pub fn after(
    tx: &mut dyn Tx,
    tenant: Option<&str>,
    after: ScopeId,
    limit: i64,
) -> Result<Vec<(ScopeId, Scope)>, StoreError> {
    let listed = |row: &dyn Row| {
        let scope = Scope::listed(Tenant::listed(row.text(1)?.to_owned()), UserId(row.text(2)?.to_owned()));
        Ok((ScopeId(row.int(0)?), scope))
    };
    match tenant {
        Some(tenant) => tx.rows(
            "SELECT id, tenant, user_id FROM scopes WHERE tenant = $1 AND id > $2 ORDER BY id LIMIT $3",
            &[tenant.into(), after.0.into(), limit.into()],
            listed,
        ),
        None => tx.rows(
            "SELECT id, tenant, user_id FROM scopes WHERE id > $1 ORDER BY id LIMIT $2",
            &[after.0.into(), limit.into()],
            listed,
        ),
    }
}

/// How many events there are: of one user, of a tenant, or of all.
pub fn count_events(tx: &mut dyn Tx, tenant: Option<&str>, user: Option<&str>) -> Result<i64, StoreError> {
    // A sum of integers is a decimal number to some engines.
    let sum = "SELECT CAST(COALESCE(SUM(event_count), 0) AS BIGINT) FROM scopes";
    let count = |row: &dyn Row| row.int(0);
    let found = match (tenant, user) {
        (Some(tenant), Some(user)) => tx.first(
            &format!("{sum} WHERE tenant = $1 AND user_id = $2"),
            &[tenant.into(), user.into()],
            count,
        ),
        (Some(tenant), None) => tx.first(&format!("{sum} WHERE tenant = $1"), &[tenant.into()], count),
        (None, _) => tx.first(sum, &[], count),
    };
    found.map(Option::unwrap_or_default)
}
