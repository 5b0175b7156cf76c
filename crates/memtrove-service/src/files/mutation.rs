//! A change of a file on its way into the store.
//!
//! What it leads to is computed from what a reader saw, and committed if the file is still at that version then: the one
//! thread that writes compares and writes, and computes nothing.

use super::documents::{WrittenFile, not_found};
use super::replay::FileReplay;
use crate::{Context, Memories, quota};
use memtrove_core::files::envelope::{self, Document, Stamp};
use memtrove_core::files::{ETag, FilePath, FilePrecondition, Reasons, ScopedCaller, canonical};
use memtrove_core::{Error, Result, Timestamp};
use memtrove_store::Tx;
use memtrove_store::changes::{self, Change, ChangeKind};
use memtrove_store::files::audit::{self, NewRecord};
use memtrove_store::files::documents::{self, NewVersion, StoredFile};
use memtrove_store::files::scopes::{self, Counted, ScopeId};
use memtrove_store::memories::pointers;
use serde::Serialize;
use serde_json::{Map, Value};
use std::sync::Arc;
use uuid::Uuid;

/// After this many changes the audit trail keeps the whole document, so that no version is far from one.
const IMAGE_INTERVAL: i64 = 32;

/// What a change does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Action {
    Create,
    Replace,
    Patch,
    Delete,
    Move,
}

impl Action {
    /// What a `PUT` does if its precondition holds.
    pub fn put(precondition: &FilePrecondition) -> Self {
        match precondition {
            FilePrecondition::Star => Self::Create,
            FilePrecondition::Matches(_) => Self::Replace,
        }
    }

    fn as_str(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Replace => "replace",
            Self::Patch => "patch",
            Self::Delete => "delete",
            Self::Move => "move",
        }
    }
}

/// A change as it is asked for.
pub(super) struct RequestedChange {
    pub caller: ScopedCaller,
    pub path: FilePath,
    /// The id that the change will have.
    pub change: Uuid,
    pub action: Action,
    pub precondition: FilePrecondition,
    pub reasons: Reasons,
    pub replay: FileReplay,
    /// What a patch consists of.
    pub ops: Vec<Value>,
    pub edits: Vec<Value>,
    /// Where a move leads.
    pub to: Option<FilePath>,
}

/// A change under way.
pub(super) struct Mutation(Arc<RequestedChange>);

/// What a reader saw.
pub(super) enum SeenFile {
    /// The very request was answered before.
    Answered(WrittenFile),
    /// The file, at the version that the precondition names.
    File(StoredFile),
}

/// A version that may be stored: finished, measured, hashed and described.
pub(super) struct Draft {
    pub at: Timestamp,
    pub document: Document,
    /// What the audit trail says of it: JSON.
    pub record: String,
}

/// A version on its way to a path.
pub(super) struct Arrival<'a> {
    pub path: &'a FilePath,
    /// The version that it was made from: at this path, unless the file is moved.
    pub previous: Option<ETag>,
    /// Whether the path had no file.
    pub is_new: bool,
    /// Whether the audit trail keeps the whole document.
    pub keeps_image: bool,
}

/// The other path of a move, as the record at either of them names it.
#[derive(Serialize, Default)]
pub(super) struct OtherPath<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub moved_from: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub moved_to: Option<&'a str>,
}

/// What the audit trail says of a change beyond its columns.
#[derive(Serialize)]
struct AuditBody<'a> {
    layer: &'a str,
    action: &'a str,
    actor: &'a str,
    principal: &'a str,
    reason: Option<&'a str>,
    #[serde(flatten)]
    other_path: OtherPath<'a>,
    ops: &'a [Value],
    edits: &'a [Value],
    document_sha256: String,
    ops_hash: String,
    evidence: Option<&'a Value>,
    idempotency_key_hash: Option<String>,
    request_id: &'a str,
}

impl Mutation {
    pub fn new(asked: RequestedChange) -> Self {
        Self(Arc::new(asked))
    }

    /// What is asked for, for a caller that commits it in a way of its own.
    pub fn asked(self) -> Arc<RequestedChange> {
        self.0
    }

    /// Looks at the file, on a reader. What is wrong with the request is found here already, mostly.
    pub async fn look(&self, cx: &Context) -> Result<SeenFile> {
        let asked = self.0.clone();
        cx.store
            .read(self.0.caller.scope.tenant(), "look_at_file", move |tx| {
                let RequestedChange { caller, path, .. } = &*asked;
                if let Some(scope) = scopes::find(tx, &caller.scope)?
                    && let Some(first) = asked.replay.find(tx, caller, scope)?
                {
                    return WrittenFile::replayed(&first).map(SeenFile::Answered);
                }
                let stored = documents::get(tx, &caller.scope, path)?;
                asked.admit(stored.as_ref().map(|file| file.etag))?;
                stored.map(SeenFile::File).ok_or_else(not_found)
            })
            .await
    }

    /// The version that this change leads to.
    pub fn draft(
        &self,
        envelope: Map<String, Value>,
        at: Timestamp,
        previous_created_at: Option<&Value>,
    ) -> Result<Draft> {
        self.0.draft(envelope, at, previous_created_at)
    }

    /// Stores the version, if the precondition still holds.
    pub async fn commit(self, cx: &Arc<Context>, memories: &Memories, draft: Draft) -> Result<WrittenFile> {
        let (asked, context) = (self.0, cx.clone());
        let (written, pointing) = cx
            .store
            .write(asked.caller.scope.tenant().clone(), "change_file", move |tx| {
                scopes::take_turn(tx, &asked.caller.scope)?;
                let scope = scopes::lock(tx, &asked.caller.scope)?;
                if let Some(first) = asked.replay.find(tx, &asked.caller, scope.id)? {
                    return Ok((WrittenFile::replayed(&first)?, 0));
                }
                let current = documents::version(tx, scope.id, &asked.path)?;
                asked.admit(current)?;
                if current.is_some() {
                    return asked.write(tx, scope.id, current, &draft);
                }
                asked.check_room(&context, &scope)?;
                // Times along a path never descend, though the file before this one may have been deleted by a clock
                // that was ahead.
                match audit::last_at(tx, scope.id, asked.path.as_str())? {
                    Some(last) if last > draft.at => {
                        let later = asked.draft(envelope::stored(&draft.document.text)?, last, None)?;
                        asked.write(tx, scope.id, None, &later)
                    }
                    _ => asked.write(tx, scope.id, None, &draft),
                }
            })
            .await?;
        if pointing > 0 {
            memories.check_pointers_later();
        }
        Ok(written)
    }
}

impl RequestedChange {
    /// Whether the precondition holds for a file at this version.
    pub fn admit(&self, current: Option<ETag>) -> Result<()> {
        match self.action {
            Action::Create | Action::Replace => self.precondition.put(current),
            Action::Patch => self.precondition.patch(current),
            Action::Delete | Action::Move => self.precondition.removal(current),
        }
    }

    /// See [`Mutation::draft`].
    pub fn draft(
        &self,
        envelope: Map<String, Value>,
        at: Timestamp,
        previous_created_at: Option<&Value>,
    ) -> Result<Draft> {
        let stamp = Stamp { now: at, actor: &self.caller.actor, previous_created_at };
        let (envelope, document) = envelope::finish(envelope, &stamp)?;
        let moved_from = self.to.as_ref().map(|_| self.path.as_str());
        let other_path = OtherPath { moved_from, moved_to: None };
        Ok(Draft { at, document, record: self.record(&Value::Object(envelope), other_path)? })
    }

    /// What the audit trail says of this change at a path, given what is there afterwards.
    pub fn record(&self, document: &Value, other_path: OtherPath<'_>) -> Result<String> {
        let RequestedChange { caller, action, reasons, replay, ops, edits, .. } = self;
        let record = AuditBody {
            layer: "files",
            action: action.as_str(),
            actor: &caller.actor,
            principal: &caller.principal,
            reason: reasons.reason(),
            other_path,
            ops,
            edits,
            document_sha256: canonical::canonical_sha256(document),
            ops_hash: canonical::ops_hash(ops, edits),
            evidence: reasons.evidence(),
            idempotency_key_hash: replay.key_hash(),
            request_id: &caller.request_id,
        };
        serde_json::to_string(&record).map_err(|e| Error::internal(e.to_string()))
    }

    fn check_room(&self, cx: &Context, scope: &Counted) -> Result<()> {
        match cx.quotas.max_files(self.caller.scope.tenant().as_str()) {
            Some(limit) if scope.files as u64 >= limit => Err(quota::full("files", limit)),
            _ => Ok(()),
        }
    }

    /// Writes the version, its record, its place in the feed and the answer to its key: all of it or nothing. Answers how many
    /// memories point at the file, too.
    fn write(
        &self,
        tx: &mut dyn Tx,
        scope: ScopeId,
        current: Option<ETag>,
        draft: &Draft,
    ) -> Result<(WrittenFile, u64)> {
        let keeps_image = match current {
            Some(current) if self.action == Action::Patch => {
                (current.revision + 1) % IMAGE_INTERVAL == 0
                    // Retention took the records that this one would be proved from.
                    || !audit::exists(tx, current.change)?
            }
            _ => true,
        };
        let arrival = Arrival { path: &self.path, previous: current, is_new: current.is_none(), keeps_image };
        let (etag, pointing) = self.store(tx, scope, &arrival, draft)?;
        Ok((self.answer(tx, scope, etag, draft)?, pointing))
    }

    /// Stores a version, with its record and its place in the feed; says how many memories point at the file.
    pub fn store(
        &self,
        tx: &mut dyn Tx,
        scope: ScopeId,
        arrival: &Arrival<'_>,
        draft: &Draft,
    ) -> Result<(ETag, u64)> {
        let &Arrival { path, previous, is_new, keeps_image } = arrival;
        let tenant = self.caller.scope.tenant();
        let Draft { at, document: Document { text, chars }, record } = draft;
        let etag = ETag { revision: previous.map_or(1, |etag| etag.revision + 1), change: self.change };
        let sequence = scopes::take_sequence(tx, scope, i64::from(is_new))?;
        let version = NewVersion { etag, at: *at, chars: *chars, document: text };
        documents::put(tx, tenant, scope, path, &version)?;
        let image = keeps_image.then_some(text.as_str());
        let new = NewRecord { sequence, at: *at, path: path.as_str(), etag, previous, record, image };
        audit::insert(tx, tenant, scope, &new)?;
        let kind = if is_new { ChangeKind::FileCreated } else { ChangeKind::FileUpdated };
        Ok((etag, self.tell(tx, scope, *at, kind, path, etag)?))
    }

    /// Tells the change feed what happened to a version, and those who look after memories that point at the file; says how
    /// many do.
    pub fn tell(
        &self,
        tx: &mut dyn Tx,
        scope: ScopeId,
        at: Timestamp,
        kind: ChangeKind,
        path: &FilePath,
        version: ETag,
    ) -> Result<u64> {
        let owner = &self.caller.scope;
        let version = version.to_string();
        let user = Some(owner.user().as_str());
        let change = Change { kind, user, resource: path.as_str(), version: Some(&version) };
        changes::record(tx, owner.tenant(), at, &change)?;
        Ok(pointers::note_change(tx, owner, scope, path)?)
    }

    /// The answer to this change, remembered under its key.
    pub fn answer(&self, tx: &mut dyn Tx, scope: ScopeId, etag: ETag, draft: &Draft) -> Result<WrittenFile> {
        let document = draft.document.text.clone();
        let written = WrittenFile { etag: etag.to_string(), document, replayed: false };
        self.replay.remember(tx, &self.caller, scope, draft.at, || written.to_json())?;
        Ok(written)
    }
}
