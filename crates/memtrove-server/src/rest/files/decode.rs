//! From what came over the wire to what the service takes. The order in which a request is looked at is the contract's: it
//! decides which of several faults a caller hears of.

use crate::rest::extract::header;
use crate::rest::memories::{self, encode};
use http::HeaderMap;
use memtrove_core::files::{
    Code, FilePath, FilePrecondition, IdempotencyKey, MovePaths, Patch, Reasons, assembly, body, canonical,
    envelope,
};
use memtrove_core::memories::Rules;
use memtrove_core::{Error, Result, UserId};
use memtrove_service::files::{
    Assemble, AssembleMemories, ChangeId, DeleteFile, MoveFile, PatchFile, PutFile, Reconstruct,
    WantedVersion, WriteEvent,
};
use serde_json::{Map, Value};

/// The headers that a change comes with.
pub(super) struct ChangeHeaders {
    if_match: Option<String>,
    idempotency_key: Option<String>,
}

impl ChangeHeaders {
    pub(super) fn of(headers: &HeaderMap) -> Result<Self> {
        let if_match = header(headers, "If-Match")?;
        Ok(Self { if_match, idempotency_key: header(headers, "Idempotency-Key")? })
    }

    fn key(self, method: &str, path: &FilePath, body: &Value) -> Result<Option<IdempotencyKey>> {
        IdempotencyKey::read(self.idempotency_key, || canonical::fingerprint(method, path.as_str(), body))
    }
}

pub(super) fn put_file(path: FilePath, mut body: Value, headers: ChangeHeaders) -> Result<PutFile> {
    let members = members(&body)?;
    let precondition = FilePrecondition::read(headers.if_match.as_deref())?;
    envelope::document(members.get("document"))?;
    let reasons = Reasons::read(members)?;
    let key = headers.key("PUT", &path, &body)?;
    // Taken, not copied: it may be large. That it is an object was seen above.
    let envelope = match body.get_mut("document").map(Value::take) {
        Some(Value::Object(envelope)) => envelope,
        _ => Map::new(),
    };
    Ok(PutFile { path, precondition, envelope, reasons, key })
}

pub(super) fn patch_file(path: FilePath, body: &Value, headers: ChangeHeaders) -> Result<PatchFile> {
    let members = members(body)?;
    let precondition = FilePrecondition::read(headers.if_match.as_deref())?;
    let patch = Patch::read(members.get("ops"), members.get("edits"))?;
    let reasons = Reasons::read(members)?;
    let key = headers.key("PATCH", &path, body)?;
    Ok(PatchFile { path, precondition, patch, reasons, key })
}

pub(super) fn delete_file(body: &Value, headers: ChangeHeaders) -> Result<DeleteFile> {
    let members = members(body)?;
    let path = path(members, "path")?;
    let precondition = FilePrecondition::read_removal(headers.if_match.as_deref())?;
    let reasons = Reasons::read(members)?;
    let key = headers.key("DELETE", &path, body)?;
    Ok(DeleteFile { path, precondition, reasons, key })
}

pub(super) fn move_file(body: &Value, headers: ChangeHeaders) -> Result<MoveFile> {
    let members = members(body)?;
    let paths = MovePaths::new(path(members, "from")?, path(members, "to")?)?;
    let precondition = FilePrecondition::read_removal(headers.if_match.as_deref())?;
    let reasons = Reasons::read(members)?;
    let key = headers.key("MOVE", paths.from(), body)?;
    Ok(MoveFile { paths, precondition, reasons, key })
}

pub(super) fn write_event(body: &Value, idempotency_key: Option<String>) -> Result<WriteEvent> {
    let fingerprint = || canonical::fingerprint("POST", "events", body);
    let key = IdempotencyKey::read(idempotency_key, fingerprint)?;
    Ok(WriteEvent { event: body::member(members(body)?, "event").cloned(), key })
}

/// A context of files, and of what a search of the user's memories finds unless it names another user.
pub(super) fn assemble(request: &Map<String, Value>, user: &UserId, rules: &Rules) -> Result<Assemble> {
    let (files, budget) = assembly::read(request)?;
    let search = body::member(request, "memories").map(|wanted| for_user(wanted, user));
    let search = search.map(|search| memories::decode::search(&search, rules)).transpose()?;
    let memories = search.map(|search| AssembleMemories { search, render: encode::hit_in_context });
    Ok(Assemble { files, budget, memories })
}

fn for_user(wanted: &Value, user: &UserId) -> Value {
    let mut wanted = wanted.clone();
    let Some(members) = wanted.as_object_mut() else { return wanted };
    let identifiers = members.entry("identifiers").or_insert(Value::Null);
    if identifiers.is_null() {
        *identifiers = Value::Object(Map::new());
    }
    if let Some(identifiers) = identifiers.as_object_mut()
        && identifiers.get("userId").is_none_or(|named| named.is_null() || named == "")
    {
        identifiers.insert("userId".to_owned(), user.as_str().into());
    }
    wanted
}

pub(super) fn reconstruct(request: &Map<String, Value>) -> Result<Reconstruct> {
    body::refuse_unsupported(request, &["held"])?;
    let path = path(request, "path")?;
    let version = match (body::text(request, "change_id")?, body::instant(request, "as_of_utc")?) {
        (Some(id), None) => WantedVersion::Of(ChangeId::parse(id)?),
        (None, Some(as_of)) => WantedVersion::AsOf(as_of),
        _ => return Err(Error::new(Code::InvalidRequest, "give either 'change_id' or 'as_of_utc'")),
    };
    Ok(Reconstruct { path, version })
}

/// The members of a body, which must be an object.
fn members(body: &Value) -> Result<&Map<String, Value>> {
    body.as_object().ok_or_else(|| Error::new(Code::InvalidRequest, "the body must be a JSON object"))
}

/// A path that stands in a body.
fn path(members: &Map<String, Value>, name: &str) -> Result<FilePath> {
    FilePath::parse(body::text(members, name)?.unwrap_or_default())
}
