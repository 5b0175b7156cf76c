//! A change of a file on its way into the store.
//!
//! What it leads to is computed from what a reader saw, and committed if the file is still at that version then: the one
//! thread that writes compares and writes, and computes nothing.

use super::documents::{Written, not_found};
use super::replay::Replay;
use crate::{Context, Memories, quota};
use memloom_core::files::envelope::{self, Document, Stamp};
use memloom_core::files::etag::Precondition;
use memloom_core::files::{Code, ETag, FilePath, Refusal, ScopedCaller, body, canonical};
use memloom_core::{Error, Result, Timestamp};
use memloom_store::Tx;
use memloom_store::changes::{self, Change, ChangeKind};
use memloom_store::files::audit::{self, NewRecord};
use memloom_store::files::documents::{self, NewVersion, StoredFile};
use memloom_store::files::scopes::{self, Counted};
use memloom_store::memories::pointers;
use serde::Serialize;
use serde_json::{Map, Value};
use std::sync::Arc;
use uuid::Uuid;

const MAX_REASON_CHARS: usize = 256;
const MAX_EVIDENCE_CHARS: usize = 64_000;
/// Every so many changes the audit trail keeps the whole document, so that no version is far from one.
const IMAGE_INTERVAL: i64 = 32;

/// What a change does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Action {
    Create,
    Replace,
    Patch,
}

impl Action {
    /// What a `PUT` does if its precondition holds.
    pub fn put(precondition: &Precondition) -> Self {
        match precondition {
            Precondition::CreateNew => Self::Create,
            Precondition::Matches(_) => Self::Replace,
        }
    }

    fn as_str(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Replace => "replace",
            Self::Patch => "patch",
        }
    }
}

/// Why a change is made, as the caller says.
#[derive(Debug, Default)]
pub(super) struct Reasons {
    reason: Option<String>,
    evidence: Option<Value>,
}

impl Reasons {
    pub fn read(members: &Map<String, Value>) -> Result<Self> {
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

/// A change as it is asked for.
pub(super) struct Asked {
    pub caller: ScopedCaller,
    pub path: FilePath,
    /// The id that the change will have.
    pub change: Uuid,
    pub action: Action,
    pub precondition: Precondition,
    pub reasons: Reasons,
    pub replay: Replay,
    /// What a patch consists of.
    pub ops: Vec<Value>,
    pub edits: Vec<Value>,
}

/// A change under way.
pub(super) struct Mutation(Arc<Asked>);

/// What a reader saw.
pub(super) enum Seen {
    /// The very request was answered before.
    Answered(Written),
    /// The file, at the version that the precondition names.
    File(StoredFile),
}

/// A version that may be stored: finished, measured, hashed and described.
pub(super) struct Draft {
    at: Timestamp,
    document: Document,
    /// What the audit trail says of it: JSON.
    record: String,
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

impl Mutation {
    pub fn new(asked: Asked) -> Self {
        Self(Arc::new(asked))
    }

    /// Looks at the file, on a reader. What is wrong with the request is found here already, mostly.
    pub async fn look(&self, cx: &Context) -> Result<Seen> {
        let asked = self.0.clone();
        cx.store
            .read("look_at_file", move |tx| {
                let Asked { caller, path, .. } = &*asked;
                if let Some(scope) = scopes::find(tx, &caller.scope)?
                    && let Some(first) = asked.replay.find(tx, caller, scope)?
                {
                    return Written::replayed(&first).map(Seen::Answered);
                }
                let stored = documents::get(tx, &caller.scope, path)?;
                asked.admit(stored.as_ref().map(|file| file.etag))?;
                stored.map(Seen::File).ok_or_else(not_found)
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
        let Asked { caller, action, reasons, replay, ops, edits, .. } = &*self.0;
        let stamp = Stamp { now: at, actor: &caller.actor, previous_created_at };
        let (envelope, document) = envelope::finish(envelope, &stamp)?;
        let record = AuditBody {
            layer: "files",
            action: action.as_str(),
            actor: &caller.actor,
            principal: &caller.principal,
            reason: reasons.reason.as_deref(),
            ops,
            edits,
            document_sha256: canonical::canonical_sha256(&Value::Object(envelope)),
            ops_hash: canonical::ops_hash(ops, edits),
            evidence: reasons.evidence.as_ref(),
            idempotency_key_hash: replay.key_hash(),
            request_id: &caller.request_id,
        };
        let record = serde_json::to_string(&record).map_err(|e| Error::Internal(e.to_string()))?;
        Ok(Draft { at, document, record })
    }

    /// Stores the version, if the precondition still holds.
    pub async fn commit(self, cx: &Arc<Context>, memories: &Memories, draft: Draft) -> Result<Written> {
        let (asked, draft, context) = (self.0, Arc::new(draft), cx.clone());
        let written = draft.clone();
        let committed = cx
            .store
            .write("change_file", move |tx| {
                scopes::take_turn(tx, &asked.caller.scope)?;
                let scope = scopes::lock(tx, &asked.caller.scope)?;
                if let Some(first) = asked.replay.find(tx, &asked.caller, scope.id)? {
                    return Written::replayed(&first).map(Err);
                }
                let current = documents::version(tx, scope.id, &asked.path)?;
                asked.admit(current)?;
                if current.is_none() {
                    asked.check_room(&context, &scope)?;
                }
                asked.write(tx, &scope, current, &draft).map(Ok)
            })
            .await?;
        Ok(match committed {
            Ok((etag, pointing)) => {
                if pointing > 0 {
                    memories.check_pointers_later();
                }
                let document = written.document.text.clone();
                Written { etag: etag.to_string(), document, replayed: false }
            }
            Err(replayed) => replayed,
        })
    }
}

impl Asked {
    /// Whether the precondition holds for a file at this version.
    fn admit(&self, current: Option<ETag>) -> Result<()> {
        match self.action {
            Action::Create | Action::Replace => self.precondition.put(current),
            Action::Patch => self.precondition.patch(current),
        }
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
        scope: &Counted,
        current: Option<ETag>,
        draft: &Draft,
    ) -> Result<(ETag, u64)> {
        let Asked { caller, path, change, .. } = self;
        let (tenant, scope) = (caller.scope.tenant(), scope.id);
        let Draft { at, document: Document { text, chars }, record } = draft;
        let revision = current.map_or(1, |current| current.revision + 1);
        let etag = ETag { revision, change: *change };
        let sequence = scopes::take_sequence(tx, scope, i64::from(current.is_none()))?;
        documents::put(
            tx,
            tenant,
            scope,
            path,
            &NewVersion { etag, at: *at, chars: *chars, document: text },
        )?;
        let keeps_image = self.action != Action::Patch
            || revision % IMAGE_INTERVAL == 0
            // Retention took the records that this one would be proved from.
            || !current.map_or(Ok(false), |current| audit::exists(tx, current.change))?;
        let image = keeps_image.then_some(text.as_str());
        let new =
            NewRecord { sequence, at: *at, path: path.as_str(), etag, previous: current, record, image };
        audit::insert(tx, tenant, scope, &new)?;
        let version = etag.to_string();
        let change = Change {
            kind: if current.is_none() { ChangeKind::FileCreated } else { ChangeKind::FileUpdated },
            user: Some(caller.scope.user().as_str()),
            resource: path.as_str(),
            version: Some(&version),
        };
        changes::record(tx, tenant, *at, &change)?;
        self.replay.remember(tx, caller, scope, *at, || {
            Written { etag: version.clone(), document: text.clone(), replayed: false }.to_json()
        })?;
        let pointing = pointers::note_change(tx, &caller.scope, scope, path)?;
        Ok((etag, pointing))
    }
}
