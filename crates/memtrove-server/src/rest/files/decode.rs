//! From the wire to the types of the service. The contract fixes the order of the checks: it decides which of several
//! faults is reported.

use crate::rest::extract::header;
use crate::rest::memories::{self, encode};
use http::HeaderMap;
use memtrove_core::files::assembly::{Budget, FileRef};
use memtrove_core::files::retention::{self, MAX_DAYS, Retention};
use memtrove_core::files::{
    Code, FilePath, FilePrecondition, IdempotencyKey, MovePaths, Patch, Reasons, SearchEvents, body,
    canonical, envelope,
};
use memtrove_core::memories::Rules;
use memtrove_core::{Error, Result, UserId};
use memtrove_service::files::{
    Assemble, AssembleMemories, ChangeId, DeleteFile, MoveFile, PatchFile, PutFile, Reconstruct,
    WantedVersion, WriteEvent,
};
use serde_json::{Map, Value};

const MAX_FILES: usize = 500;
/// A budget beyond this counts as this: a char is up to four bytes, and an answer has to fit in memory.
const MAX_CHARS_TOTAL: usize = 8_000_000;
const RETENTION_DAYS: [&str; 3] = ["events_days", "audit_days", "snapshots_days"];

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
    let reasons = reasons(members)?;
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
    let reasons = reasons(members)?;
    let key = headers.key("PATCH", &path, body)?;
    Ok(PatchFile { path, precondition, patch, reasons, key })
}

pub(super) fn delete_file(body: &Value, headers: ChangeHeaders) -> Result<DeleteFile> {
    let members = members(body)?;
    let path = path(members, "path")?;
    let precondition = FilePrecondition::read_removal(headers.if_match.as_deref())?;
    let reasons = reasons(members)?;
    let key = headers.key("DELETE", &path, body)?;
    Ok(DeleteFile { path, precondition, reasons, key })
}

pub(super) fn move_file(body: &Value, headers: ChangeHeaders) -> Result<MoveFile> {
    let members = members(body)?;
    let paths = MovePaths::new(path(members, "from")?, path(members, "to")?)?;
    let precondition = FilePrecondition::read_removal(headers.if_match.as_deref())?;
    let reasons = reasons(members)?;
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
    let (files, budget) = wanted_files(request)?;
    let search = body::member(request, "memories").map(|wanted| for_user(wanted, user));
    let search = search.map(|search| memories::decode::search(&search, rules)).transpose()?;
    let memories = search.map(|search| AssembleMemories { search, render: encode::hit_in_context });
    Ok(Assemble { files, budget, memories })
}

/// Which files a context shall be made of, and how much it may hold.
fn wanted_files(request: &Map<String, Value>) -> Result<(Vec<FileRef>, Budget)> {
    // What assembles a context by a profile, which nothing does yet.
    const OF_PROFILES: [&str; 2] = ["profile_id", "conversation_hint"];
    let files = body::array(request, "files")?.unwrap_or_default();
    if files.is_empty() {
        body::refuse_unsupported(request, &OF_PROFILES)?;
        return Err(Error::new(Code::MissingAssemblyTargets, "'files' must name at least one file"));
    }
    if body::member(request, "profile_id").is_some() {
        return Err(Error::new(Code::InvalidAssemblyMode, "give either 'files' or 'profile_id', not both"));
    }
    body::refuse_unsupported(request, &OF_PROFILES)?;
    if files.len() > MAX_FILES {
        let message = format!("'files' must not name more than {MAX_FILES} files");
        return Err(Error::new(Code::InvalidRequest, message));
    }
    let files = files.iter().map(file_ref).collect::<Result<_>>()?;
    let default = Budget::default();
    let budget = Budget {
        max_docs: limit(request, "max_docs")?.unwrap_or(default.max_docs),
        max_chars_total: limit(request, "max_chars_total")?
            .map_or(default.max_chars_total, |chars| chars.min(MAX_CHARS_TOTAL)),
    };
    Ok((files, budget))
}

fn file_ref(element: &Value) -> Result<FileRef> {
    let Value::Object(members) = element else {
        return Err(Error::new(Code::InvalidRequest, "the elements of 'files' must be JSON objects"));
    };
    let given = body::text(members, "path")?.unwrap_or_default();
    Ok(FileRef { given: given.to_owned(), path: FilePath::parse(given)? })
}

fn limit(request: &Map<String, Value>, name: &str) -> Result<Option<usize>> {
    let Some(limit) = body::integer(request, name)? else { return Ok(None) };
    match usize::try_from(limit) {
        Ok(limit) => Ok(Some(limit)),
        Err(_) => Err(Error::new(Code::InvalidLimit, format!("'{name}' must not be negative"))),
    }
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

pub(super) fn search_events(request: &Map<String, Value>) -> Result<SearchEvents> {
    let text = |name| Ok::<_, Error>(body::text(request, name)?.map(str::to_owned));
    Ok(SearchEvents {
        query: text("query")?,
        service: text("service_id")?,
        source: text("source_type")?,
        project: text("project_id")?,
        from: body::instant(request, "from")?,
        to: body::instant(request, "to")?,
        top_k: body::integer(request, "top_k")?,
    })
}

/// How long things are kept. All three numbers are required: one that is missing would otherwise mean "now".
pub(super) fn retained(request: &Map<String, Value>) -> Result<Retention> {
    let given = RETENTION_DAYS.iter().filter(|name| body::member(request, name).is_some()).count();
    if body::member(request, "profile_id").is_some() && given > 0 {
        let message =
            "days and a profile exclude each other, and 'profile_id' is not supported yet: leave it out";
        return Err(Error::new(Code::InvalidRetentionMode, message).with_text("field", "profile_id"));
    }
    body::refuse_unsupported(request, &["profile_id"])?;
    if given == 0 {
        let message = "give 'events_days', 'audit_days' and 'snapshots_days'";
        return Err(Error::new(Code::MissingRetentionRules, message));
    }
    if given < RETENTION_DAYS.len() {
        let message = "'events_days', 'audit_days' and 'snapshots_days' are required together";
        return Err(Error::new(Code::IncompleteRetentionRules, message));
    }
    let mut days = [0; 3];
    for (slot, name) in days.iter_mut().zip(RETENTION_DAYS) {
        *slot = body::integer(request, name)?
            .filter(|days| (0..=MAX_DAYS).contains(days))
            .ok_or_else(|| retention::invalid(name, format!("must be 0..{MAX_DAYS}")))?;
    }
    let [events_days, audit_days, snapshots_days] = days;
    let as_of = body::instant(request, "as_of_utc")?;
    Ok(Retention { events_days, audit_days, snapshots_days, as_of })
}

/// Why a change is made.
fn reasons(members: &Map<String, Value>) -> Result<Reasons> {
    // What a change governed by a profile says of itself, which nothing looks at yet.
    body::refuse_unsupported(members, &["profile_id", "binding_id", "confidence"])?;
    let reason = body::text(members, "reason")?.map(str::to_owned);
    Reasons::new(reason, body::member(members, "evidence").cloned())
}

/// The members of a body, which must be an object.
fn members(body: &Value) -> Result<&Map<String, Value>> {
    body.as_object().ok_or_else(|| Error::new(Code::InvalidRequest, "the body must be a JSON object"))
}

/// A path that stands in a body.
fn path(members: &Map<String, Value>, name: &str) -> Result<FilePath> {
    FilePath::parse(body::text(members, name)?.unwrap_or_default())
}

#[cfg(test)]
mod tests;
