//! Files: one envelope each, at a revision.

use super::scopes::ScopeId;
use crate::vault::{self, seal_contexts};
use crate::{StoreError, Tx, TxExt};
use memtrove_core::Timestamp;
use memtrove_core::files::{ETag, FilePath, Scope};
use memtrove_core::identity::Tenant;

#[derive(Debug, Clone)]
pub struct StoredFile {
    /// Its version.
    pub etag: ETag,
    /// When it was last changed.
    pub updated_at: Timestamp,
    /// The size of its envelope.
    pub chars: usize,
    /// Its envelope: compact JSON.
    pub document: String,
}

/// A file.
pub fn get(tx: &mut dyn Tx, scope: &Scope, path: &FilePath) -> Result<Option<StoredFile>, StoreError> {
    let found = tx.first(
        "SELECT s.id, f.revision, f.change_id, f.updated_at, f.chars, f.document FROM scopes s \
         JOIN files f ON f.scope_id = s.id AND f.path = $3 WHERE s.tenant = $1 AND s.user_id = $2",
        &[scope.tenant().as_str().into(), scope.user().as_str().into(), path.as_str().into()],
        |row| {
            let etag = ETag { revision: row.int(1)?, change: row.uuid(2)? };
            let updated_at = Timestamp::from_micros(row.int(3)?);
            Ok((row.int(0)?, etag, updated_at, row.int(4)? as usize, row.bytes(5)?.to_vec()))
        },
    )?;
    let Some((scope_id, etag, updated_at, chars, stored)) = found else { return Ok(None) };
    let document = vault::open_text(tx, &seal_contexts::file(scope_id, path.as_str()), stored)?;
    Ok(Some(StoredFile { etag, updated_at, chars, document }))
}

/// The version of a file, and nothing else of it.
pub fn version(tx: &mut dyn Tx, scope: ScopeId, path: &FilePath) -> Result<Option<ETag>, StoreError> {
    tx.first_locked(
        "SELECT revision, change_id FROM files WHERE scope_id = $1 AND path = $2",
        &[scope.0.into(), path.as_str().into()],
        |row| Ok(ETag { revision: row.int(0)?, change: row.uuid(1)? }),
    )
}

/// The size of a file's envelope.
pub fn chars(tx: &mut dyn Tx, scope: ScopeId, path: &FilePath) -> Result<Option<usize>, StoreError> {
    tx.first(
        "SELECT chars FROM files WHERE scope_id = $1 AND path = $2",
        &[scope.0.into(), path.as_str().into()],
        |row| Ok(row.int(0)? as usize),
    )
}

/// A version to be stored.
pub struct NewVersion<'a> {
    pub etag: ETag,
    /// When.
    pub at: Timestamp,
    /// The size of the envelope.
    pub chars: usize,
    /// The envelope: compact JSON.
    pub document: &'a str,
}

/// Stores a file, or its next version.
pub fn put(
    tx: &mut dyn Tx,
    tenant: &Tenant,
    scope: ScopeId,
    path: &FilePath,
    new: &NewVersion<'_>,
) -> Result<(), StoreError> {
    let document =
        vault::seal(tx, tenant, &seal_contexts::file(scope.0, path.as_str()), new.document.as_bytes())?;
    tx.post(
        "INSERT INTO files (scope_id, path, folded_path, revision, change_id, updated_at, chars, document) \
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8) ON CONFLICT (scope_id, path) DO UPDATE SET \
         revision = excluded.revision, change_id = excluded.change_id, updated_at = excluded.updated_at, \
         chars = excluded.chars, document = excluded.document",
        &[
            scope.0.into(),
            path.as_str().into(),
            path.folded().as_str().into(),
            new.etag.revision.into(),
            new.etag.change.into(),
            new.at.as_micros().into(),
            (new.chars as i64).into(),
            (*document).into(),
        ],
    )?;
    Ok(())
}

/// Takes a file away.
pub fn remove(tx: &mut dyn Tx, scope: ScopeId, path: &FilePath) -> Result<(), StoreError> {
    tx.post("DELETE FROM files WHERE scope_id = $1 AND path = $2", &[scope.0.into(), path.as_str().into()])?;
    Ok(())
}

/// A file in a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedFile {
    pub path: String,
    /// When it was last changed.
    pub last_modified: Timestamp,
}

/// Where a list begins: strictly after this path, folded and exact.
#[derive(Debug, Clone, Default)]
pub struct After {
    /// The folded path.
    pub folded: String,
    pub path: String,
}

/// Files whose folded path begins with `prefix`, in the order of their folded paths.
pub fn list(
    tx: &mut dyn Tx,
    scope: &Scope,
    prefix: &str,
    after: &After,
    limit: i64,
) -> Result<Vec<ListedFile>, StoreError> {
    let Some(id) = super::scopes::find(tx, scope)? else { return Ok(Vec::new()) };
    // The walk starts where the prefix does and ends at the first path without it: no `LIKE`, whose folding is not ours.
    // No path is empty, so that every one with the prefix comes after the prefix itself without a path.
    let start = if prefix > after.folded.as_str() { (prefix, "") } else { (&*after.folded, &*after.path) };
    let mut listed = Vec::new();
    tx.query(
        "SELECT f.path, f.updated_at, f.folded_path FROM files f \
         WHERE f.scope_id = $1 AND (f.folded_path, f.path) > ($2, $3) ORDER BY f.folded_path, f.path LIMIT $4",
        &[id.0.into(), start.0.into(), start.1.into(), limit.into()],
        crate::Lock::None,
        &mut |row| {
            if !row.text(2)?.starts_with(prefix) {
                return Ok(std::ops::ControlFlow::Break(()));
            }
            listed.push(ListedFile {
                path: row.text(0)?.to_owned(),
                last_modified: Timestamp::from_micros(row.int(1)?),
            });
            Ok(std::ops::ControlFlow::Continue(()))
        },
    )?;
    Ok(listed)
}
