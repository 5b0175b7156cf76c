//! The audit trail: one record per change of a file, in the order of their sequence.

use super::scopes::ScopeId;
use crate::vault::{self, places};
use crate::{Row, StoreError, Tx, TxExt, Value};
use memloom_core::Timestamp;
use memloom_core::files::ETag;
use memloom_core::identity::Tenant;
use uuid::Uuid;

/// A record as it is stored.
#[derive(Debug, Clone)]
pub struct Record {
    /// Its place in the trail.
    pub sequence: i64,
    /// When.
    pub at: Timestamp,
    /// Which file.
    pub path: String,
    /// The version that came about; its change is the record's id.
    pub etag: ETag,
    /// The version before.
    pub previous: Option<ETag>,
    /// The rest of the record: a JSON object.
    pub record: String,
    /// The document after the change, where the record keeps it.
    pub image: Option<String>,
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
    let record = vault::seal(tx, tenant, &places::audit_record(change), new.record.as_bytes())?;
    let image = match new.image {
        Some(image) => Some(vault::seal(tx, tenant, &places::audit_image(change), image.as_bytes())?),
        None => None,
    };
    tx.execute(
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
pub struct Filter {
    /// Only of this file.
    pub path: Option<String>,
    /// Only at or after.
    pub from: Option<Timestamp>,
    /// Only at or before.
    pub to: Option<Timestamp>,
    /// Only after this place.
    pub after: i64,
}

const EVERYTHING: &str = "sequence, at, path, revision, change_id, previous_id, record, image";

/// Records in the order of the trail.
pub fn list(tx: &mut dyn Tx, scope: ScopeId, filter: &Filter, limit: i64) -> Result<Vec<Record>, StoreError> {
    let from = filter.from.map_or(i64::MIN, Timestamp::as_micros);
    let to = filter.to.map_or(i64::MAX, Timestamp::as_micros);
    let within: [Value<'_>; 5] = [scope.0.into(), filter.after.into(), from.into(), to.into(), limit.into()];
    match &filter.path {
        None => records(tx, "sequence > $2 AND at >= $3 AND at <= $4 ORDER BY sequence LIMIT $5", &within),
        Some(path) => {
            let [scope, after, from, to, limit] = within;
            records(
                tx,
                "sequence > $2 AND at >= $3 AND at <= $4 AND path = $6 ORDER BY sequence LIMIT $5",
                &[scope, after, from, to, limit, path.as_str().into()],
            )
        }
    }
}

/// The record of a change.
pub fn get(tx: &mut dyn Tx, scope: ScopeId, change: Uuid) -> Result<Option<Record>, StoreError> {
    Ok(records(tx, "change_id = $2", &[scope.0.into(), change.into()])?.pop())
}

/// Whether the record of a change is still there.
pub fn exists(tx: &mut dyn Tx, change: Uuid) -> Result<bool, StoreError> {
    let found = tx.first("SELECT 1 FROM audit WHERE change_id = $1", &[change.into()], |_| Ok(()))?;
    Ok(found.is_some())
}

/// The last record of a file at or before an instant.
pub fn latest(
    tx: &mut dyn Tx,
    scope: ScopeId,
    path: &str,
    as_of: Timestamp,
) -> Result<Option<Record>, StoreError> {
    let params = [scope.0.into(), path.into(), as_of.as_micros().into()];
    Ok(records(tx, "path = $2 AND at <= $3 ORDER BY sequence DESC LIMIT 1", &params)?.pop())
}

/// What a version is proved from: the last record of the file with an image up to this place, and those after it.
pub fn chain(tx: &mut dyn Tx, scope: ScopeId, path: &str, up_to: i64) -> Result<Vec<Record>, StoreError> {
    let base = tx.first(
        "SELECT MAX(sequence) FROM audit WHERE scope_id = $1 AND path = $2 AND sequence <= $3 AND image IS NOT NULL",
        &[scope.0.into(), path.into(), up_to.into()],
        |row| row.opt_int(0),
    )?;
    let Some(base) = base.flatten() else { return Ok(Vec::new()) };
    let params = [scope.0.into(), path.into(), base.into(), up_to.into()];
    records(tx, "path = $2 AND sequence >= $3 AND sequence <= $4 ORDER BY sequence", &params)
}

/// The first record from an instant on of every file that has older ones, where it keeps no image: before the older
/// ones go, it needs its own.
pub fn heirs(tx: &mut dyn Tx, scope: ScopeId, cutoff: Timestamp) -> Result<Vec<Record>, StoreError> {
    let params = [scope.0.into(), cutoff.as_micros().into()];
    records(
        tx,
        "image IS NULL AND sequence IN \
         (SELECT MIN(sequence) FROM audit WHERE scope_id = $1 AND at >= $2 GROUP BY path) \
         AND EXISTS (SELECT 1 FROM audit b WHERE b.scope_id = $1 AND b.path = audit.path AND b.at < $2)",
        &params,
    )
}

/// Gives a record an image of its own.
pub fn set_image(
    tx: &mut dyn Tx,
    tenant: &Tenant,
    scope: ScopeId,
    record: &Record,
    image: &str,
) -> Result<(), StoreError> {
    let image = vault::seal(tx, tenant, &places::audit_image(record.etag.change), image.as_bytes())?;
    tx.execute(
        "UPDATE audit SET image = $3 WHERE scope_id = $1 AND sequence = $2",
        &[scope.0.into(), record.sequence.into(), (*image).into()],
    )?;
    Ok(())
}

/// Removes up to `limit` records from before an instant, the oldest first; says how many.
pub fn expire(tx: &mut dyn Tx, scope: ScopeId, cutoff: Timestamp, limit: i64) -> Result<u64, StoreError> {
    tx.execute(
        "DELETE FROM audit WHERE (scope_id, sequence) IN \
         (SELECT scope_id, sequence FROM audit WHERE scope_id = $1 AND at < $2 ORDER BY sequence LIMIT $3)",
        &[scope.0.into(), cutoff.as_micros().into(), limit.into()],
    )
}

/// Reads records and opens what is sealed in them.
fn records(tx: &mut dyn Tx, condition: &str, params: &[Value<'_>]) -> Result<Vec<Record>, StoreError> {
    let sql = format!("SELECT {EVERYTHING} FROM audit WHERE scope_id = $1 AND {condition}");
    let stored = tx.rows(&sql, params, |row: &dyn Row| {
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
        Ok((record, row.bytes(6)?.to_vec(), row.opt_bytes(7)?.map(<[u8]>::to_vec)))
    })?;
    let mut opened = Vec::with_capacity(stored.len());
    for (mut record, sealed, image) in stored {
        let change = record.etag.change;
        record.record = super::text(vault::open(tx, &places::audit_record(change), sealed)?)?;
        if let Some(image) = image {
            record.image = Some(super::text(vault::open(tx, &places::audit_image(change), image)?)?);
        }
        opened.push(record);
    }
    Ok(opened)
}
