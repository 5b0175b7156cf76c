//! The audit trail: listing it, and proving every version of a file from it.

use super::Files;
use crate::files_metrics;
use memloom_core::files::envelope::{self, Stamp};
use memloom_core::files::{Code, ETag, FilePath, Patch, ScopedCaller, body, canonical};
use memloom_core::{Error, Result, Timestamp};
use memloom_store::Tx;
use memloom_store::files::audit::{self, Filter, Record};
use memloom_store::files::scopes::{self, ScopeId};
use serde_json::{Map, Value};
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
    pub records: Vec<Value>,
    /// The last sequence, if there are more.
    pub next_after: Option<i64>,
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

/// Which version is asked for.
enum Wanted {
    Change(Uuid),
    AsOf(Timestamp),
}

impl Files {
    /// Lists the audit trail.
    pub async fn list_audit(&self, caller: &ScopedCaller, request: ListAudit) -> Result<AuditPage> {
        let limit = request.limit.unwrap_or(DEFAULT_LIMIT);
        if !(1..=MAX_LIMIT).contains(&limit) {
            return Err(Error::refused(Code::InvalidLimit, format!("'limit' must be 1..{MAX_LIMIT}")));
        }
        let path = request.path.as_deref().map(FilePath::parse).transpose()?;
        let filter = Filter {
            path: path.map(|path| path.as_str().to_owned()),
            from: request.from,
            to: request.to,
            after: request.after.unwrap_or(0),
        };
        let scope = caller.scope.clone();
        let mut found = self
            .cx
            .store
            .read("list_audit", move |tx| match scopes::find(tx, &scope)? {
                Some(id) => Ok::<_, Error>(audit::list(tx, id, &filter, limit + 1)?),
                None => Ok(Vec::new()),
            })
            .await?;
        let more = found.len() as i64 > limit;
        found.truncate(limit as usize);
        let next_after = found.last().filter(|_| more).map(|record| record.sequence);
        let records = found.iter().map(|record| rendered(caller, record)).collect::<Result<_>>()?;
        Ok(AuditPage { records, next_after })
    }

    /// The record of one change.
    pub async fn get_audit(&self, caller: &ScopedCaller, change_id: &str) -> Result<Value> {
        let change = parse_id(change_id).ok_or_else(not_found)?;
        let scope = caller.scope.clone();
        let record = self
            .cx
            .store
            .read("get_audit", move |tx| match scopes::find(tx, &scope)? {
                Some(id) => Ok::<_, Error>(audit::get(tx, id, change)?),
                None => Ok(None),
            })
            .await?;
        rendered(caller, &record.ok_or_else(not_found)?)
    }

    /// Makes a version of a file again from the audit trail, and proves it.
    pub async fn reconstruct(
        &self,
        caller: &ScopedCaller,
        request: &Map<String, Value>,
    ) -> Result<Reconstructed> {
        let path = FilePath::parse(body::text(request, "path")?.unwrap_or_default())?;
        let wanted = match (body::text(request, "change_id")?, body::instant(request, "as_of_utc")?) {
            (Some(id), None) => Wanted::Change(parse_id(id).ok_or_else(not_found)?),
            (None, Some(as_of)) => Wanted::AsOf(as_of),
            _ => {
                let message = "give either 'change_id' or 'as_of_utc'";
                return Err(Error::refused(Code::InvalidRequest, message));
            }
        };
        let scope = caller.scope.clone();
        let result = self
            .cx
            .store
            .read("reconstruct_version", move |tx| {
                let id = scopes::find(tx, &scope)?.ok_or_else(not_found)?;
                let record = match wanted {
                    Wanted::Change(change) => audit::get(tx, id, change)?,
                    Wanted::AsOf(as_of) => audit::latest(tx, id, path.as_str(), as_of)?,
                };
                let record = record.filter(|record| record.path == path.as_str()).ok_or_else(not_found)?;
                let document = proved(tx, id, &record)?;
                Ok(Reconstructed { change_id: public_id(record.etag), etag: record.etag, document })
            })
            .await;
        if let Err(Error::Refused(refusal)) = &result
            && refusal.code == Code::AuditChainIncomplete
        {
            files_metrics::audit_integrity_failure();
            tracing::error!("the audit trail of a file does not prove its versions");
        }
        result
    }
}

/// The document of a record, made from the nearest image before it.
pub(super) fn proved(tx: &mut dyn Tx, scope: ScopeId, record: &Record) -> Result<String> {
    let chain = audit::chain(tx, scope, &record.path, record.sequence)?;
    replay(&chain)
}

/// Applies the records of a chain to the image of its first, and holds every version against its hash.
fn replay(chain: &[Record]) -> Result<String> {
    let mut version: Option<(ETag, Value, String)> = None;
    for record in chain {
        let said = body::object(record.record.as_bytes()).map_err(|_| incomplete())?;
        let text = match (&record.image, version) {
            (Some(image), _) => image.clone(),
            (None, Some((etag, Value::Object(mut envelope), _))) if Some(etag) == record.previous => {
                let created_at = envelope.get("created_at").cloned();
                let patch = Patch::read(said.get("ops"), said.get("edits")).map_err(|_| incomplete())?;
                patch.apply(&mut envelope).map_err(|_| incomplete())?;
                let actor = said.get("actor").and_then(Value::as_str).ok_or_else(incomplete)?;
                let stamp = Stamp { now: record.at, actor, previous_created_at: created_at.as_ref() };
                envelope::finish(envelope, &stamp).map_err(|_| incomplete())?.1.text
            }
            (None, _) => return Err(incomplete()),
        };
        let envelope = Value::Object(envelope::stored(&text)?);
        if said.get("document_sha256").and_then(Value::as_str)
            != Some(&canonical::canonical_sha256(&envelope))
        {
            return Err(incomplete());
        }
        version = Some((record.etag, envelope, text));
    }
    version.map(|(_, _, text)| text).ok_or_else(incomplete)
}

fn incomplete() -> Error {
    Error::refused(Code::AuditChainIncomplete, "the audit trail does not prove this version")
}

fn not_found() -> Error {
    Error::refused(Code::AuditNotFound, "there is no such record in the audit trail")
}

fn public_id(etag: ETag) -> String {
    format!("{ID_PREFIX}{}", etag.change)
}

fn parse_id(id: &str) -> Option<Uuid> {
    id.strip_prefix(ID_PREFIX).and_then(memloom_core::parse_uuid)
}

/// A record in the contract's shape. What belongs to the governed layer is null here.
fn rendered(caller: &ScopedCaller, record: &Record) -> Result<Value> {
    let unreadable = |error: Error| Error::Internal(format!("an audit record cannot be read: {error}"));
    let said = body::object(record.record.as_bytes()).map_err(unreadable)?;
    let image = record.image.as_deref().map(|image| body::parse(image.as_bytes())).transpose();
    let document = image.map_err(unreadable)?.unwrap_or_default();
    let scope = &caller.scope;
    // Built member by member: `json!` would write the numbers of documents and operations in its own way.
    let mut rendered = Map::new();
    let mut put = |name: &str, value: Value| drop(rendered.insert(name.to_owned(), value));
    put("change_id", public_id(record.etag).into());
    put("sequence", record.sequence.into());
    put("timestamp", record.at.to_string().into());
    put("tenant_id", scope.tenant().as_str().into());
    put("user_id", scope.user().as_str().into());
    put("path", record.path.as_str().into());
    for name in ["layer", "action", "actor", "principal", "reason"] {
        put(name, said.get(name).cloned().unwrap_or_default());
    }
    put("previous_etag", record.previous.map_or(Value::Null, |etag| etag.to_string().into()));
    put("new_etag", record.etag.to_string().into());
    for name in ["ops", "edits"] {
        put(name, said.get(name).cloned().unwrap_or_default());
    }
    put("document", document);
    for name in ["document_sha256", "ops_hash", "evidence"] {
        put(name, said.get(name).cloned().unwrap_or_default());
    }
    for name in ["confidence", "profile_id", "profile_revision", "binding_id"] {
        put(name, Value::Null);
    }
    put("idempotency_key_hash", said.get("idempotency_key_hash").cloned().unwrap_or_default());
    put("replay_id", Value::Null);
    put("request_id", said.get("request_id").cloned().unwrap_or_default());
    Ok(Value::Object(rendered))
}
