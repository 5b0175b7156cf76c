//! Reading, listing, writing and patching files.

use super::Files;
use super::replay::Replay;
use crate::files_metrics;
use crate::{Context, quota};
use memloom_core::files::envelope::{self, Document, Stamp};
use memloom_core::files::etag::{Precondition, Put};
use memloom_core::files::{Code, ETag, FilePath, Patch, Refusal, ScopedCaller, body, canonical, path};
use memloom_core::{Error, Result, Timestamp};
use memloom_store::Tx;
use memloom_store::changes::{self, Change, ChangeKind};
use memloom_store::files::audit::{self, Record};
use memloom_store::files::documents::{self, After, Listed, NewVersion, StoredFile};
use memloom_store::files::scopes;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::sync::Arc;
use uuid::Uuid;

const DEFAULT_LIST_LIMIT: i64 = 100;
const MAX_LIST_LIMIT: i64 = 500;
const MAX_REASON_CHARS: usize = 256;
const MAX_EVIDENCE_CHARS: usize = 64_000;
/// Every so many changes the audit trail keeps the whole document, so that no version is far from one.
const IMAGE_INTERVAL: i64 = 32;

/// The headers a change of a file comes with.
#[derive(Debug, Clone, Default)]
pub struct Headers {
    /// `If-Match`.
    pub if_match: Option<String>,
    /// `Idempotency-Key`.
    pub idempotency_key: Option<String>,
}

/// A version that was written, now or, under the same key, before.
#[derive(Debug, Clone)]
pub struct Written {
    /// Its ETag.
    pub etag: String,
    /// Its envelope: compact JSON.
    pub document: String,
    /// Whether this is the answer to an earlier request.
    pub replayed: bool,
}

/// A request for a list of files.
#[derive(Debug, Clone, Default)]
pub struct ListFiles {
    /// What paths begin with, whatever their letter case.
    pub prefix: Option<String>,
    /// The most files.
    pub limit: Option<i64>,
    /// Go on after this path.
    pub after: Option<String>,
}

/// A list of files.
#[derive(Debug, Clone)]
pub struct FileList {
    /// The files, in the order of their folded paths.
    pub files: Vec<Listed>,
    /// The last path, if there are more.
    pub next_after: Option<String>,
}

impl Files {
    /// Lists files.
    pub async fn list(&self, caller: &ScopedCaller, request: ListFiles) -> Result<FileList> {
        let limit = request.limit.unwrap_or(DEFAULT_LIST_LIMIT);
        if !(1..=MAX_LIST_LIMIT).contains(&limit) {
            let message = format!("'limit' must be 1..{MAX_LIST_LIMIT}");
            return Err(Error::refused(Code::InvalidLimit, message));
        }
        let prefix =
            request.prefix.as_deref().map(path::list_prefix).transpose()?.flatten().unwrap_or_default();
        let after = request.after.unwrap_or_default();
        let after = After { folded: path::fold(&after), path: after };
        let scope = caller.scope.clone();
        let mut files = self
            .cx
            .store
            .read("list_files", move |tx| {
                Ok::<_, Error>(documents::list(tx, &scope, &prefix, &after, limit + 1)?)
            })
            .await?;
        let more = files.len() as i64 > limit;
        files.truncate(limit as usize);
        let next_after = files.last().filter(|_| more).map(|file| file.path.clone());
        Ok(FileList { files, next_after })
    }

    /// A file.
    pub async fn get(&self, caller: &ScopedCaller, path: FilePath) -> Result<StoredFile> {
        let scope = caller.scope.clone();
        let found = self.cx.store.read("get_file", move |tx| documents::get(tx, &scope, &path)).await;
        found.map_err(Error::from)?.ok_or_else(not_found)
    }

    /// Creates a file, or replaces it.
    pub async fn put(
        &self,
        caller: &ScopedCaller,
        path: FilePath,
        body: Value,
        headers: Headers,
    ) -> Result<Written> {
        let result = self.try_put(caller, path, body, headers).await;
        files_metrics::mutation("put", &result);
        result
    }

    async fn try_put(
        &self,
        caller: &ScopedCaller,
        path: FilePath,
        body: Value,
        headers: Headers,
    ) -> Result<Written> {
        let members = super::members(&body)?;
        let precondition = Precondition::read(headers.if_match.as_deref())?;
        let envelope = envelope::document(members.get("document"))?.clone();
        let reasons = Reasons::read(members)?;
        let replay = Replay::new(&self.cx, headers.idempotency_key, || {
            canonical::fingerprint("PUT", path.as_str(), &body)
        })?;
        let change = self.cx.clock.new_id();
        let action = match precondition {
            Precondition::CreateNew => "create",
            Precondition::Matches(_) => "replace",
        };
        let (ops, edits) = (Vec::new(), Vec::new());
        let plan = Plan { caller: caller.clone(), path, change, action, reasons, replay, ops, edits };
        // Judged before anything is read, since it does not depend on what is stored.
        let draft = plan.draft(envelope, self.cx.clock.now(), None)?;
        let cx = self.cx.clone();
        self.cx
            .store
            .write("put_file", move |tx| {
                let scope = scopes::lock(tx, &plan.caller.scope)?;
                if let Some(first) = plan.replay.find(tx, &plan.caller, scope.id)? {
                    return Written::replayed(&first);
                }
                let current = documents::version(tx, scope.id, &plan.path)?;
                let etag = current.map(|(etag, _)| etag);
                match (precondition.put(etag)?, current) {
                    (Put::Replace, Some((_, updated_at))) if !draft.may_follow(updated_at) => {
                        let stored =
                            documents::get(tx, &plan.caller.scope, &plan.path)?.ok_or_else(not_found)?;
                        plan.commit(tx, scope.id, etag, &plan.next(&draft, &stored)?)
                    }
                    (Put::Replace, _) => plan.commit(tx, scope.id, etag, &draft),
                    (Put::Create, _) => {
                        plan.check_room(&cx, scope.files)?;
                        plan.commit(tx, scope.id, None, &draft)
                    }
                }
            })
            .await
    }

    /// Changes parts of a file.
    pub async fn patch(
        &self,
        caller: &ScopedCaller,
        path: FilePath,
        body: Value,
        headers: Headers,
    ) -> Result<Written> {
        let result = self.try_patch(caller, path, body, headers).await;
        files_metrics::mutation("patch", &result);
        result
    }

    /// The patch is applied to what a reader saw and committed if that is still the version then: the one thread that
    /// writes has nothing to compute.
    async fn try_patch(
        &self,
        caller: &ScopedCaller,
        path: FilePath,
        body: Value,
        headers: Headers,
    ) -> Result<Written> {
        let members = super::members(&body)?;
        let precondition = Precondition::read(headers.if_match.as_deref())?;
        let patch = Patch::read(members.get("ops"), members.get("edits"))?;
        let reasons = Reasons::read(members)?;
        let replay = Replay::new(&self.cx, headers.idempotency_key, || {
            canonical::fingerprint("PATCH", path.as_str(), &body)
        })?;
        let (change, ops, edits) =
            (self.cx.clock.new_id(), patch.ops_json().to_vec(), patch.edits_json().to_vec());
        let action = "patch";
        let plan =
            Arc::new(Plan { caller: caller.clone(), path, change, action, reasons, replay, ops, edits });

        let (seen, expected) = (plan.clone(), precondition.clone());
        let found = self
            .cx
            .store
            .read("get_file_to_patch", move |tx| {
                if let Some(scope) = scopes::find(tx, &seen.caller.scope)?
                    && let Some(first) = seen.replay.find(tx, &seen.caller, scope)?
                {
                    return Written::replayed(&first).map(Err);
                }
                let stored = documents::get(tx, &seen.caller.scope, &seen.path)?;
                expected.patch(stored.as_ref().map(|file| file.etag))?;
                stored.map(Ok).ok_or_else(not_found)
            })
            .await?;
        let stored = match found {
            Ok(stored) => stored,
            Err(replayed) => return Ok(replayed),
        };
        let mut envelope = envelope::stored(&stored.document)?;
        let created_at = envelope.get("created_at").cloned();
        patch.apply(&mut envelope)?;
        let now = self.cx.clock.now().max(stored.updated_at);
        let draft = plan.draft(envelope, now, created_at.as_ref())?;
        self.cx
            .store
            .write("patch_file", move |tx| {
                let scope = scopes::lock(tx, &plan.caller.scope)?;
                if let Some(first) = plan.replay.find(tx, &plan.caller, scope.id)? {
                    return Written::replayed(&first);
                }
                let current = documents::version(tx, scope.id, &plan.path)?.map(|(etag, _)| etag);
                precondition.patch(current)?;
                plan.commit(tx, scope.id, current, &draft)
            })
            .await
    }
}

fn not_found() -> Error {
    Error::refused(Code::DocumentNotFound, "there is no such file")
}

/// Why a change is made, as the caller says.
#[derive(Debug, Default)]
struct Reasons {
    reason: Option<String>,
    evidence: Option<Value>,
}

impl Reasons {
    fn read(members: &Map<String, Value>) -> Result<Self> {
        let too_long = |field: &str, limit: usize| {
            let message = format!("'{field}' must have at most {limit} characters");
            Error::from(Refusal::new(Code::InvalidRequest, message).with("field", field))
        };
        let reason = body::text(members, "reason")?;
        if reason.is_some_and(|reason| reason.chars().count() > MAX_REASON_CHARS) {
            return Err(too_long("reason", MAX_REASON_CHARS));
        }
        let evidence = body::member(members, "evidence");
        if evidence.is_some_and(|evidence| evidence.to_string().chars().count() > MAX_EVIDENCE_CHARS) {
            return Err(too_long("evidence", MAX_EVIDENCE_CHARS));
        }
        Ok(Self { reason: reason.map(str::to_owned), evidence: evidence.cloned() })
    }
}

/// A version that may be stored: finished, measured, hashed and described before it reaches the store's thread.
struct Draft {
    at: Timestamp,
    envelope: Value,
    document: Document,
    /// What the audit trail says of it: JSON.
    record: String,
    /// Whether `created_at` is the moment of this very change, because the caller said nothing.
    made_created_at: bool,
}

impl Draft {
    /// Whether this can follow a version of that time as it is: `created_at` is the caller's, and no version is older
    /// than the one before.
    fn may_follow(&self, updated_at: Timestamp) -> bool {
        !self.made_created_at && updated_at <= self.at
    }
}

/// A change on its way into the store.
struct Plan {
    caller: ScopedCaller,
    path: FilePath,
    change: Uuid,
    action: &'static str,
    reasons: Reasons,
    replay: Replay,
    ops: Vec<Value>,
    edits: Vec<Value>,
}

/// What the audit trail says of a change beyond its columns.
#[derive(Serialize)]
struct AuditBody<'a> {
    layer: &'a str,
    action: &'a str,
    actor: &'a str,
    principal: &'a str,
    reason: Option<&'a str>,
    ops: &'a [Value],
    edits: &'a [Value],
    document_sha256: String,
    ops_hash: String,
    evidence: Option<&'a Value>,
    idempotency_key_hash: Option<String>,
    request_id: &'a str,
}

impl Plan {
    fn draft(
        &self,
        envelope: Map<String, Value>,
        at: Timestamp,
        previous_created_at: Option<&Value>,
    ) -> Result<Draft> {
        let made_created_at =
            previous_created_at.is_none() && body::member(&envelope, "created_at").is_none();
        let stamp = Stamp { now: at, actor: &self.caller.actor, previous_created_at };
        let (envelope, document) = envelope::finish(envelope, &stamp)?;
        let envelope = Value::Object(envelope);
        let record = AuditBody {
            layer: "files",
            action: self.action,
            actor: &self.caller.actor,
            principal: &self.caller.principal,
            reason: self.reasons.reason.as_deref(),
            ops: &self.ops,
            edits: &self.edits,
            document_sha256: canonical::canonical_sha256(&envelope),
            ops_hash: canonical::ops_hash(&self.ops, &self.edits),
            evidence: self.reasons.evidence.as_ref(),
            idempotency_key_hash: self.replay.key_hash(),
            request_id: &self.caller.request_id,
        };
        let record = serde_json::to_string(&record).map_err(|e| Error::Internal(e.to_string()))?;
        Ok(Draft { at, envelope, document, record, made_created_at })
    }

    /// The draft as it has to be to follow a stored version.
    fn next(&self, draft: &Draft, stored: &StoredFile) -> Result<Draft> {
        let previous = envelope::stored(&stored.document)?;
        let mut envelope = super::members(&draft.envelope)?.clone();
        if draft.made_created_at {
            envelope.shift_remove("created_at");
        }
        self.draft(envelope, draft.at.max(stored.updated_at), previous.get("created_at"))
    }

    fn check_room(&self, cx: &Context, files: i64) -> Result<()> {
        match cx.quotas.max_files(self.caller.scope.tenant().as_str()) {
            Some(limit) if files as u64 >= limit => Err(quota::full("files", limit)),
            _ => Ok(()),
        }
    }

    /// Writes the version, its record, its place in the feed and the answer to its key: all of it or nothing.
    fn commit(
        &self,
        tx: &mut dyn Tx,
        scope: scopes::ScopeId,
        current: Option<ETag>,
        draft: &Draft,
    ) -> Result<Written> {
        let Plan { caller, path, change, .. } = self;
        let tenant = caller.scope.tenant();
        let revision = current.map_or(1, |current| current.revision + 1);
        let etag = ETag { revision, change: *change };
        let sequence = scopes::take_sequence(tx, scope, i64::from(current.is_none()))?;
        let Document { text, chars } = &draft.document;
        let version = NewVersion { etag, at: draft.at, chars: *chars, document: text };
        documents::put(tx, tenant, scope, path, &version)?;
        let keeps_image = self.action != "patch"
            || revision % IMAGE_INTERVAL == 0
            // Retention took the records that this one would be proved from.
            || !current.map_or(Ok(false), |current| audit::exists(tx, current.change))?;
        let record = Record {
            sequence,
            at: draft.at,
            path: path.as_str().to_owned(),
            etag,
            previous: current,
            record: draft.record.clone(),
            image: keeps_image.then(|| text.clone()),
        };
        audit::insert(tx, tenant, scope, &record)?;
        let etag = etag.to_string();
        let change = Change {
            kind: if current.is_none() { ChangeKind::FileCreated } else { ChangeKind::FileUpdated },
            user: Some(caller.scope.user().as_str()),
            resource: path.as_str(),
            version: Some(&etag),
        };
        changes::record(tx, tenant, draft.at, &change)?;
        let written = Written { etag, document: text.clone(), replayed: false };
        self.replay.remember(tx, caller, scope, draft.at, || written.to_json())?;
        Ok(written)
    }
}

/// An answer as it is kept for a repetition.
#[derive(Serialize, Deserialize)]
struct Kept {
    etag: String,
    document: Box<serde_json::value::RawValue>,
}

impl Written {
    fn to_json(&self) -> Result<String> {
        let internal = |error: serde_json::Error| Error::Internal(error.to_string());
        let document = serde_json::value::RawValue::from_string(self.document.clone()).map_err(internal)?;
        serde_json::to_string(&Kept { etag: self.etag.clone(), document }).map_err(internal)
    }

    fn replayed(answer: &str) -> Result<Self> {
        let kept: Kept = serde_json::from_str(answer)
            .map_err(|error| Error::Internal(format!("a remembered answer cannot be read: {error}")))?;
        Ok(Self { etag: kept.etag, document: kept.document.get().to_owned(), replayed: true })
    }
}
