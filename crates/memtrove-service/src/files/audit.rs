//! The audit trail: listing it, and proving every version of a file from it.

use super::{Admitted, Auditor, Files};
use crate::files_metrics;
use memtrove_core::files::envelope::{self, Stamp};
use memtrove_core::files::{Code, ETag, FilePath, Patch, ScopedCaller, body, canonical};
use memtrove_core::{Error, Result, Timestamp};
use memtrove_store::files::audit::{self, AuditFilter, FileVersion, Record};
use memtrove_store::files::scopes::{self, ScopeId};
use memtrove_store::{StoreError, Tx};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;
use uuid::Uuid;

const DEFAULT_LIMIT: i64 = 100;
const MAX_LIMIT: i64 = 500;
const ID_PREFIX: &str = "chg_";

/// A request for a part of the audit trail.
#[derive(Debug, Clone, Default)]
pub struct ListAudit {
    /// Only of this file.
    pub path: Option<String>,
    /// Only at or after.
    pub from: Option<Timestamp>,
    /// Only at or before.
    pub to: Option<Timestamp>,
    /// Only after this sequence.
    pub after: Option<i64>,
    /// The most records.
    pub limit: Option<i64>,
}

/// A part of the audit trail.
#[derive(Debug, Clone, Default)]
pub struct AuditPage {
    /// The records, in the order of their sequence.
    pub records: Vec<AuditRecord>,
    /// The last sequence, if there are more.
    pub next_after: Option<i64>,
}

/// A record in the contract's shape: what is not known of a change, or belongs to the governed layer, is null. Documents and
/// operations are copied as they are stored, numbers and all.
#[derive(Debug, Clone, Serialize)]
pub struct AuditRecord {
    change_id: String,
    sequence: i64,
    timestamp: String,
    tenant_id: String,
    user_id: String,
    path: String,
    layer: Json,
    action: Json,
    actor: Json,
    principal: Json,
    reason: Json,
    #[serde(skip_serializing_if = "Option::is_none")]
    justification: Json,
    #[serde(skip_serializing_if = "Option::is_none")]
    cutoff: Json,
    #[serde(skip_serializing_if = "Option::is_none")]
    count: Json,
    #[serde(skip_serializing_if = "Option::is_none")]
    moved_from: Json,
    #[serde(skip_serializing_if = "Option::is_none")]
    moved_to: Json,
    previous_etag: Option<String>,
    new_etag: Option<String>,
    ops: Json,
    edits: Json,
    document: Json,
    document_sha256: Json,
    ops_hash: Json,
    evidence: Json,
    confidence: (),
    profile_id: (),
    profile_revision: (),
    binding_id: (),
    idempotency_key_hash: Json,
    replay_id: (),
    request_id: Json,
}

/// JSON as it is stored, or null.
type Json = Option<Box<RawValue>>;

/// What a stored record says beyond its columns.
#[derive(Deserialize)]
struct RecordDetails {
    layer: Json,
    action: Json,
    actor: Json,
    principal: Json,
    reason: Json,
    /// Of a truncation of the trail: why, up to when, and how many records went.
    justification: Json,
    cutoff: Json,
    count: Json,
    moved_from: Json,
    moved_to: Json,
    ops: Json,
    edits: Json,
    document_sha256: Json,
    ops_hash: Json,
    evidence: Json,
    idempotency_key_hash: Json,
    request_id: Json,
    /// Of a memory: its version before and after.
    previous_version: Option<i64>,
    version: Option<i64>,
}

impl RecordDetails {
    /// The tags of the versions before and after.
    fn etags(&self, record: &Record) -> (Option<String>, Option<String>) {
        match self.layer.as_ref().map(|layer| layer.get()) {
            Some(r#""memories""#) => {
                let tag = |version: i64| format!("\"v{version}\"");
                return (self.previous_version.map(tag), self.version.map(tag));
            }
            // What happens to the trail makes no version of anything.
            Some(r#""lifecycle""#) => return (None, None),
            _ => {}
        }
        let new = (!record.is_departure()).then(|| record.etag.to_string());
        (record.previous.map(|etag| etag.to_string()), new)
    }
}

/// A version of a file, proved by the audit trail.
#[derive(Debug, Clone)]
pub struct Reconstructed {
    /// The change that made it.
    pub change_id: String,
    /// Its ETag.
    pub etag: ETag,
    /// Its envelope: the very bytes that were stored.
    pub document: String,
}

/// The name of a change in the audit trail: `chg_…`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChangeId(Uuid);

impl ChangeId {
    /// Reads a name. What is none is the name of no record.
    pub fn parse(text: &str) -> Result<Self> {
        let id = text.strip_prefix(ID_PREFIX).and_then(memtrove_core::parse_uuid);
        id.map(Self).ok_or_else(not_found)
    }
}

/// A version of a file to be made again.
#[derive(Debug, Clone)]
pub struct Reconstruct {
    pub path: FilePath,
    pub version: WantedVersion,
}

/// Which version of a file.
#[derive(Debug, Clone, Copy)]
pub enum WantedVersion {
    /// The one that this change made.
    Of(ChangeId),
    /// The one that was there at this instant.
    AsOf(Timestamp),
}

impl Files {
    /// Lists the audit trail.
    pub async fn list_audit(&self, admitted: &Admitted<Auditor>, request: ListAudit) -> Result<AuditPage> {
        let caller = admitted.caller();
        let limit = request.limit.unwrap_or(DEFAULT_LIMIT);
        if !(1..=MAX_LIMIT).contains(&limit) {
            return Err(Error::new(Code::InvalidLimit, format!("'limit' must be 1..{MAX_LIMIT}")));
        }
        let path = request.path.as_deref().map(FilePath::parse).transpose()?;
        let filter = AuditFilter {
            path: path.map(|path| path.as_str().to_owned()),
            from: request.from,
            to: request.to,
            after: request.after.unwrap_or(0),
        };
        let scope = caller.scope.clone();
        let (found, more) = self
            .cx
            .store
            .read(scope.tenant().clone(), "list_audit", move |tx| match scopes::find(tx, &scope)? {
                Some(id) => Ok::<_, Error>(audit::list(tx, id, &filter, limit as usize)?),
                None => Ok((Vec::new(), false)),
            })
            .await?;
        let next_after = found.last().filter(|_| more).map(|record| record.sequence);
        let records = found.into_iter().map(|record| rendered(caller, record)).collect::<Result<_>>()?;
        Ok(AuditPage { records, next_after })
    }

    /// The record of one change.
    pub async fn get_audit(&self, admitted: &Admitted<Auditor>, change: ChangeId) -> Result<AuditRecord> {
        let caller = admitted.caller();
        let scope = caller.scope.clone();
        let record = self
            .cx
            .store
            .read(scope.tenant().clone(), "get_audit", move |tx| match scopes::find(tx, &scope)? {
                Some(id) => Ok::<_, Error>(audit::get(tx, id, change.0)?),
                None => Ok(None),
            })
            .await?;
        rendered(caller, record.ok_or_else(not_found)?)
    }

    /// Makes a version of a file again from the audit trail, and proves it.
    pub async fn reconstruct(
        &self,
        admitted: &Admitted<Auditor>,
        request: Reconstruct,
    ) -> Result<Reconstructed> {
        let Reconstruct { path, version: wanted } = request;
        let scope = admitted.caller().scope.clone();
        let result = self
            .cx
            .store
            .read(scope.tenant().clone(), "reconstruct_version", move |tx| {
                let id = scopes::find(tx, &scope)?.ok_or_else(not_found)?;
                let version = match wanted {
                    WantedVersion::Of(change) => audit::version(tx, id, change.0)?,
                    WantedVersion::AsOf(as_of) => audit::version_at(tx, id, path.as_str(), as_of)?,
                };
                let version =
                    version.filter(|version| version.path == path.as_str()).ok_or_else(not_found)?;
                if !version.is_of_a_file {
                    return Ok(None);
                }
                let document = proved(tx, id, &version)?.ok_or_else(left)?;
                Ok(Some(Reconstructed { change_id: public_id(version.etag), etag: version.etag, document }))
            })
            .await;
        if let Err(Error { code: Code::AuditChainIncomplete, .. }) = &result {
            files_metrics::audit_integrity_failure();
            tracing::error!("the audit trail of a file does not prove its versions");
        }
        // What a memory said is not kept: nothing is wrong with the trail then.
        result?.ok_or_else(incomplete)
    }
}

/// The document of a version: the records of its chain applied to the image of the first, one after the other, and every
/// version on the way held against its hash. `None` if that proves that the file has left its path.
pub(super) fn proved(tx: &mut dyn Tx, scope: ScopeId, version: &FileVersion) -> Result<Option<String>> {
    let chain = audit::chain(tx, scope, &version.path, version.sequence)?;
    if chain.is_empty() {
        return Err(incomplete());
    }
    let mut proved = None;
    for sequence in chain {
        let record = match audit::at(tx, scope, sequence) {
            Ok(record) => record.ok_or_else(incomplete)?,
            // What cannot be opened proves nothing.
            Err(StoreError::Broken(_)) => return Err(incomplete()),
            Err(error) => return Err(error.into()),
        };
        proved = link(record, proved)?;
    }
    Ok(proved.map(|proved| proved.document))
}

/// A version on the way of a proof.
struct Proved {
    etag: ETag,
    envelope: Value,
    document: String,
}

/// The version that a record makes of the one before it; none if the file left with it.
fn link(record: Record, previous: Option<Proved>) -> Result<Option<Proved>> {
    let said = body::object(record.record.as_bytes()).map_err(|_| incomplete())?;
    let document = match (record.image, previous) {
        (Some(image), _) => image,
        (None, Some(Proved { etag, envelope: Value::Object(mut envelope), .. }))
            if Some(etag) == record.previous =>
        {
            let created_at = envelope.get("created_at").cloned();
            let patch = Patch::read(said.get("ops"), said.get("edits")).map_err(|_| incomplete())?;
            patch.apply(&mut envelope).map_err(|_| incomplete())?;
            let actor = said.get("actor").and_then(Value::as_str).ok_or_else(incomplete)?;
            let stamp = Stamp { now: record.at, actor, previous_created_at: created_at.as_ref() };
            envelope::finish(envelope, &stamp).map_err(|_| incomplete())?.1.text
        }
        (None, _) => return Err(incomplete()),
    };
    let envelope = body::parse(document.as_bytes()).map_err(|_| incomplete())?;
    let hash = canonical::canonical_sha256(&envelope);
    if said.get("document_sha256").and_then(Value::as_str) != Some(&hash) {
        return Err(incomplete());
    }
    match envelope {
        Value::Null => Ok(None),
        Value::Object(_) => Ok(Some(Proved { etag: record.etag, envelope, document })),
        _ => Err(incomplete()),
    }
}

fn left() -> Error {
    Error::new(
        Code::AuditNotFound,
        "the file had been deleted or moved away by then; ask for a version before",
    )
}

fn incomplete() -> Error {
    Error::new(Code::AuditChainIncomplete, "the audit trail does not prove this version")
}

fn not_found() -> Error {
    Error::new(Code::AuditNotFound, "there is no such record in the audit trail")
}

fn public_id(etag: ETag) -> String {
    format!("{ID_PREFIX}{}", etag.change)
}

fn rendered(caller: &ScopedCaller, record: Record) -> Result<AuditRecord> {
    let unreadable =
        |error: serde_json::Error| Error::internal(format!("an audit record cannot be read: {error}"));
    let said: RecordDetails = serde_json::from_str(&record.record).map_err(unreadable)?;
    let (previous_etag, new_etag) = said.etags(&record);
    let document = record.image.map(RawValue::from_string).transpose().map_err(unreadable)?;
    Ok(AuditRecord {
        change_id: public_id(record.etag),
        sequence: record.sequence,
        timestamp: record.at.to_string(),
        tenant_id: caller.scope.tenant().as_str().to_owned(),
        user_id: caller.scope.user().as_str().to_owned(),
        path: record.path,
        layer: said.layer,
        action: said.action,
        actor: said.actor,
        principal: said.principal,
        reason: said.reason,
        justification: said.justification,
        cutoff: said.cutoff,
        count: said.count,
        moved_from: said.moved_from,
        moved_to: said.moved_to,
        previous_etag,
        new_etag,
        ops: said.ops,
        edits: said.edits,
        document,
        document_sha256: said.document_sha256,
        ops_hash: said.ops_hash,
        evidence: said.evidence,
        confidence: (),
        profile_id: (),
        profile_revision: (),
        binding_id: (),
        idempotency_key_hash: said.idempotency_key_hash,
        replay_id: (),
        request_id: said.request_id,
    })
}
