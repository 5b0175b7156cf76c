//! The audit trail: one record per change of a file or a memory, in the order of their sequence.

use super::scopes::ScopeId;
use super::{ANSWER_BYTES, STEP_BYTES};
use crate::vault::{self, seal_contexts};
use crate::{Lock, Row, StoreError, Tx, TxExt, Value};
use memtrove_core::Timestamp;
use memtrove_core::files::ETag;
use memtrove_core::identity::Tenant;
use std::ops::ControlFlow;
use uuid::Uuid;

/// The image of a path that its file has left: no document. No proof of a later version reaches back beyond it.
pub const NO_DOCUMENT: &str = "null";

/// The path of records that tell of the trail itself. No file has it.
pub const LIFECYCLE_PATH: &str = "";

/// A record as it is stored.
#[derive(Debug, Clone)]
pub struct Record {
    /// Its place in the trail.
    pub sequence: i64,
    /// When.
    pub at: Timestamp,
    /// Which file, or `memories/{id}`, or [`LIFECYCLE_PATH`].
    pub path: String,
    /// The version that came about, or would have if the file had not left; its change is the record's id.
    pub etag: ETag,
    /// The version before.
    pub previous: Option<ETag>,
    /// The rest of the record: a JSON object.
    pub record: String,
    /// The document after the change, where the record keeps it.
    pub image: Option<String>,
}

impl Record {
    /// Whether the file left its path with this change.
    pub fn is_departure(&self) -> bool {
        self.image.as_deref() == Some(NO_DOCUMENT)
    }
}

/// A record to be stored.
pub struct NewRecord<'a> {
    /// See [`Record::sequence`].
    pub sequence: i64,
    /// See [`Record::at`].
    pub at: Timestamp,
    /// See [`Record::path`].
    pub path: &'a str,
    /// See [`Record::etag`].
    pub etag: ETag,
    /// See [`Record::previous`].
    pub previous: Option<ETag>,
    /// See [`Record::record`].
    pub record: &'a str,
    /// See [`Record::image`].
    pub image: Option<&'a str>,
}

/// Writes a record.
pub fn insert(
    tx: &mut dyn Tx,
    tenant: &Tenant,
    scope: ScopeId,
    new: &NewRecord<'_>,
) -> Result<(), StoreError> {
    let change = new.etag.change;
    let record = vault::seal(tx, tenant, &seal_contexts::audit_record(change), new.record.as_bytes())?;
    let image = match new.image {
        Some(image) => Some(vault::seal(tx, tenant, &seal_contexts::audit_image(change), image.as_bytes())?),
        None => None,
    };
    tx.post(
        "INSERT INTO audit (scope_id, sequence, change_id, at, path, revision, previous_id, record, image) \
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)",
        &[
            scope.0.into(),
            new.sequence.into(),
            change.into(),
            new.at.as_micros().into(),
            new.path.into(),
            new.etag.revision.into(),
            new.previous.map(|etag| etag.change).into(),
            (*record).into(),
            image.as_deref().into(),
        ],
    )?;
    Ok(())
}

/// Which records a list shows.
#[derive(Debug, Clone, Default)]
pub struct AuditFilter {
    /// Only of this file.
    pub path: Option<String>,
    /// Only at or after.
    pub from: Option<Timestamp>,
    /// Only at or before.
    pub to: Option<Timestamp>,
    /// Only after this place.
    pub after: i64,
}

/// Records in the order of the trail, as many as fit one answer; and whether more follow.
pub fn list(
    tx: &mut dyn Tx,
    scope: ScopeId,
    filter: &AuditFilter,
    limit: usize,
) -> Result<(Vec<Record>, bool), StoreError> {
    let from = filter.from.map_or(i64::MIN, Timestamp::as_micros);
    let to = filter.to.map_or(i64::MAX, Timestamp::as_micros);
    let within: [Value<'_>; 4] = [scope.0.into(), filter.after.into(), from.into(), to.into()];
    match &filter.path {
        None => records(tx, "sequence > $2 AND at >= $3 AND at <= $4 ORDER BY sequence", &within, limit),
        Some(path) => {
            let [scope, after, from, to] = within;
            records(
                tx,
                "sequence > $2 AND at >= $3 AND at <= $4 AND path = $5 ORDER BY sequence",
                &[scope, after, from, to, path.as_str().into()],
                limit,
            )
        }
    }
}

/// The record of a change.
pub fn get(tx: &mut dyn Tx, scope: ScopeId, change: Uuid) -> Result<Option<Record>, StoreError> {
    Ok(records(tx, "change_id = $2", &[scope.0.into(), change.into()], 1)?.0.pop())
}

/// The record at a place.
pub fn at(tx: &mut dyn Tx, scope: ScopeId, sequence: i64) -> Result<Option<Record>, StoreError> {
    Ok(records(tx, "sequence = $2", &[scope.0.into(), sequence.into()], 1)?.0.pop())
}

/// Whether the record of a change is still there.
pub fn exists(tx: &mut dyn Tx, change: Uuid) -> Result<bool, StoreError> {
    let found = tx.first("SELECT 1 FROM audit WHERE change_id = $1", &[change.into()], |_| Ok(()))?;
    Ok(found.is_some())
}

/// The time of the last record at a path.
pub fn last_at(tx: &mut dyn Tx, scope: ScopeId, path: &str) -> Result<Option<Timestamp>, StoreError> {
    tx.first(
        "SELECT at FROM audit WHERE scope_id = $1 AND path = $2 ORDER BY sequence DESC LIMIT 1",
        &[scope.0.into(), path.into()],
        |row| row.int(0).map(Timestamp::from_micros),
    )
}

/// Changes of memories stand in the trail too, under `memories/{id}`. Their records tell of no document: they have neither an
/// image, as the first record of a file does, nor a version before, as every other one does.
macro_rules! of_a_file {
    () => {
        "(image IS NOT NULL OR previous_id IS NOT NULL)"
    };
}

/// A version of a file as its record names it, without what the record says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileVersion {
    /// See [`Record::sequence`].
    pub sequence: i64,
    /// See [`Record::path`].
    pub path: String,
    /// See [`Record::etag`].
    pub etag: ETag,
    /// Whether the record keeps the document.
    pub has_image: bool,
    /// Whether there is a document at all, or it is a memory that changed.
    pub is_of_a_file: bool,
}

/// The version that a change led to.
pub fn version(tx: &mut dyn Tx, scope: ScopeId, change: Uuid) -> Result<Option<FileVersion>, StoreError> {
    first_version(tx, "change_id = $2", &[scope.0.into(), change.into()])
}

/// The version that a file was at, at an instant.
pub fn version_at(
    tx: &mut dyn Tx,
    scope: ScopeId,
    path: &str,
    at: Timestamp,
) -> Result<Option<FileVersion>, StoreError> {
    let params = [scope.0.into(), path.into(), at.as_micros().into()];
    let of_a_file = concat!("path = $2 AND at <= $3 AND ", of_a_file!(), " ORDER BY sequence DESC LIMIT 1");
    match first_version(tx, of_a_file, &params)? {
        None => first_version(tx, "path = $2 AND at <= $3 ORDER BY sequence DESC LIMIT 1", &params),
        found => Ok(found),
    }
}

/// The first version of a file after a place.
pub fn version_after(
    tx: &mut dyn Tx,
    scope: ScopeId,
    path: &str,
    after: i64,
) -> Result<Option<FileVersion>, StoreError> {
    let params = [scope.0.into(), path.into(), after.into()];
    let condition = concat!("path = $2 AND sequence > $3 AND ", of_a_file!(), " ORDER BY sequence LIMIT 1");
    first_version(tx, condition, &params)
}

fn first_version(
    tx: &mut dyn Tx,
    condition: &str,
    params: &[Value<'_>],
) -> Result<Option<FileVersion>, StoreError> {
    let columns = concat!(
        "sequence, path, revision, change_id, CASE WHEN image IS NULL THEN 0 ELSE 1 END, CASE WHEN ",
        of_a_file!(),
        " THEN 1 ELSE 0 END"
    );
    let sql = format!("SELECT {columns} FROM audit WHERE scope_id = $1 AND {condition}");
    tx.first(&sql, params, |row| {
        Ok(FileVersion {
            sequence: row.int(0)?,
            path: row.text(1)?.to_owned(),
            etag: ETag { revision: row.int(2)?, change: row.uuid(3)? },
            has_image: row.int(4)? == 1,
            is_of_a_file: row.int(5)? == 1,
        })
    })
}

/// What a version is proved from: the places of the last record of the file with an image up to this one, and of those
/// after it.
pub fn chain(tx: &mut dyn Tx, scope: ScopeId, path: &str, up_to: i64) -> Result<Vec<i64>, StoreError> {
    let base = tx.first(
        "SELECT MAX(sequence) FROM audit WHERE scope_id = $1 AND path = $2 AND sequence <= $3 AND image IS NOT NULL",
        &[scope.0.into(), path.into(), up_to.into()],
        |row| row.opt_int(0),
    )?;
    let Some(base) = base.flatten() else { return Ok(Vec::new()) };
    tx.rows(
        concat!(
            "SELECT sequence FROM audit WHERE scope_id = $1 AND path = $2 AND sequence >= $3 AND sequence <= $4 AND ",
            of_a_file!(),
            " ORDER BY sequence"
        ),
        &[scope.0.into(), path.into(), base.into(), up_to.into()],
        |row| row.int(0),
    )
}

/// The end of what is to go of a file's records.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PruneEnd {
    /// Which file.
    pub path: String,
    /// The last place.
    pub sequence: i64,
}

/// Some of the records from before an instant (those of the trail itself: from before another one), in the order of paths and
/// from `after` on: up to `limit`, and not much more than a step's bytes. Times along a path never descend, so of each file
/// these are all up to an end.
pub fn outdated(
    tx: &mut dyn Tx,
    scope: ScopeId,
    cutoff: Timestamp,
    lifecycle_cutoff: Timestamp,
    after: &PruneEnd,
    limit: i64,
) -> Result<Vec<PruneEnd>, StoreError> {
    let (mut ends, mut bytes) = (Vec::<PruneEnd>::new(), 0);
    tx.query(
        "SELECT path, sequence, LENGTH(record) + COALESCE(LENGTH(image), 0) FROM audit \
         WHERE scope_id = $1 AND (path, sequence) > ($2, $3) AND at < $4 AND (path <> $5 OR at < $6) \
         ORDER BY path, sequence LIMIT $7",
        &[
            scope.0.into(),
            after.path.as_str().into(),
            after.sequence.into(),
            cutoff.as_micros().into(),
            LIFECYCLE_PATH.into(),
            lifecycle_cutoff.as_micros().into(),
            limit.into(),
        ],
        Lock::None,
        &mut |row| {
            let (path, sequence) = (row.text(0)?, row.int(1)?);
            match ends.last_mut() {
                Some(end) if end.path == path => end.sequence = sequence,
                _ => ends.push(PruneEnd { path: path.to_owned(), sequence }),
            }
            bytes += row.int(2)? as usize;
            Ok(if bytes < STEP_BYTES { ControlFlow::Continue(()) } else { ControlFlow::Break(()) })
        },
    )?;
    Ok(ends)
}

/// Removes the records of a file up to an end; says how many. What comes after them needs an image of its own by then.
pub fn remove(tx: &mut dyn Tx, scope: ScopeId, end: &PruneEnd) -> Result<u64, StoreError> {
    tx.execute(
        "DELETE FROM audit WHERE scope_id = $1 AND path = $2 AND sequence <= $3",
        &[scope.0.into(), end.path.as_str().into(), end.sequence.into()],
    )
}

/// Writes anew what a record says.
pub fn rewrite(
    tx: &mut dyn Tx,
    tenant: &Tenant,
    scope: ScopeId,
    sequence: i64,
    change: Uuid,
    record: &str,
) -> Result<(), StoreError> {
    let record = vault::seal(tx, tenant, &seal_contexts::audit_record(change), record.as_bytes())?;
    tx.post(
        "UPDATE audit SET record = $3 WHERE scope_id = $1 AND sequence = $2",
        &[scope.0.into(), sequence.into(), (*record).into()],
    )?;
    Ok(())
}

/// Gives the record of a version an image of its own.
pub fn set_image(
    tx: &mut dyn Tx,
    tenant: &Tenant,
    scope: ScopeId,
    version: &FileVersion,
    image: &str,
) -> Result<(), StoreError> {
    let image = vault::seal(tx, tenant, &seal_contexts::audit_image(version.etag.change), image.as_bytes())?;
    tx.post(
        "UPDATE audit SET image = $3 WHERE scope_id = $1 AND sequence = $2",
        &[scope.0.into(), version.sequence.into(), (*image).into()],
    )?;
    Ok(())
}

/// Reads records and opens what is sealed in them: up to `limit`, and as many as fit one answer. Says whether there are
/// more.
fn records(
    tx: &mut dyn Tx,
    condition: &str,
    params: &[Value<'_>],
    limit: usize,
) -> Result<(Vec<Record>, bool), StoreError> {
    let params = [params, &[Value::Int(limit as i64 + 1)]].concat();
    let sql = format!(
        "SELECT sequence, at, path, revision, change_id, previous_id, record, image FROM audit \
         WHERE scope_id = $1 AND {condition} LIMIT ${}",
        params.len()
    );
    let (mut stored, mut bytes, mut more) = (Vec::new(), 0, false);
    tx.query(&sql, &params, Lock::None, &mut |row: &dyn Row| {
        let (sealed, image) = (row.bytes(6)?, row.opt_bytes(7)?);
        bytes += sealed.len() + image.map_or(0, <[u8]>::len);
        if stored.len() == limit || (bytes > ANSWER_BYTES && !stored.is_empty()) {
            more = true;
            return Ok(ControlFlow::Break(()));
        }
        let revision = row.int(3)?;
        let record = Record {
            sequence: row.int(0)?,
            at: Timestamp::from_micros(row.int(1)?),
            path: row.text(2)?.to_owned(),
            etag: ETag { revision, change: row.uuid(4)? },
            previous: row.opt_uuid(5)?.map(|change| ETag { revision: revision - 1, change }),
            record: String::new(),
            image: None,
        };
        stored.push((record, sealed.to_vec(), image.map(<[u8]>::to_vec)));
        Ok(ControlFlow::Continue(()))
    })?;
    let mut opened = Vec::with_capacity(stored.len());
    for (mut record, sealed, image) in stored {
        let change = record.etag.change;
        record.record = vault::open_text(tx, &seal_contexts::audit_record(change), sealed)?;
        if let Some(image) = image {
            record.image = Some(vault::open_text(tx, &seal_contexts::audit_image(change), image)?);
        }
        opened.push(record);
    }
    Ok((opened, more))
}
