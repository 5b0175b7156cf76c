//! Deleting a file, and moving it to another path.
//!
//! Every path has a trail of its own. Where a file leaves, the trail goes on with a record that has no document; where a
//! moved file arrives, with one that has all of it. So a version is always proved from the records at one path, whatever
//! comes and goes there.

use super::documents::WrittenFile;
use super::mutation::{Action, Arrival, Draft, Mutation, OtherPath, RequestedChange, SeenFile};
use super::replay::FileReplay;
use super::{Admitted, Files, Writer};
use crate::files_metrics;
use memtrove_core::files::{
    Code, ETag, FilePath, FilePrecondition, IdempotencyKey, MovePaths, Reasons, envelope,
};
use memtrove_core::{Error, Result, Timestamp};
use memtrove_store::Tx;
use memtrove_store::changes::ChangeKind;
use memtrove_store::files::audit::{self, NewRecord};
use memtrove_store::files::documents::{self, StoredFile};
use memtrove_store::files::scopes::{self, ScopeId};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;

/// A file to be deleted.
#[derive(Debug, Clone)]
pub struct DeleteFile {
    pub path: FilePath,
    pub precondition: FilePrecondition,
    pub reasons: Reasons,
    pub key: Option<IdempotencyKey>,
}

/// A file to be given another path, where nothing may be yet.
#[derive(Debug, Clone)]
pub struct MoveFile {
    pub paths: MovePaths,
    pub precondition: FilePrecondition,
    pub reasons: Reasons,
    pub key: Option<IdempotencyKey>,
}

/// A file that was deleted, now or, under the same key, before.
#[derive(Debug, Clone)]
pub struct Deleted {
    /// Where it was.
    pub path: FilePath,
    /// The version that went.
    pub etag: String,
    /// Whether this is the answer to an earlier request.
    pub replayed: bool,
}

/// A file that was moved, now or, under the same key, before.
#[derive(Debug, Clone)]
pub struct Moved {
    /// Where it is now.
    pub path: FilePath,
    /// Its version there.
    pub file: WrittenFile,
}

impl Files {
    pub async fn delete(&self, admitted: &Admitted<Writer>, request: DeleteFile) -> Result<Deleted> {
        let result = self.try_delete(admitted, request).await;
        files_metrics::mutation("delete", &result);
        result
    }

    async fn try_delete(&self, admitted: &Admitted<Writer>, request: DeleteFile) -> Result<Deleted> {
        let DeleteFile { path, precondition, reasons, key } = request;
        let asked = RequestedChange {
            caller: admitted.caller().clone(),
            path: path.clone(),
            change: self.cx.clock.new_id(),
            action: Action::Delete,
            precondition,
            reasons,
            replay: FileReplay::new(&self.cx, key),
            ops: Vec::new(),
            edits: Vec::new(),
            to: None,
        };
        let now = self.cx.clock.now();
        let delete = move |tx: &mut dyn Tx| {
            scopes::take_turn(tx, &asked.caller.scope)?;
            let scope = scopes::lock(tx, &asked.caller.scope)?.id;
            if let Some(first) = asked.replay.find(tx, &asked.caller, scope)? {
                return Ok((StoredDeletion::read(&first)?, true, 0));
            }
            let current = asked.current(tx, scope)?;
            let at = later(tx, scope, &asked.path, now)?;
            let departure = Departure { change: asked.change, at, other_path: OtherPath::default() };
            let pointing = asked.leave(tx, scope, current, departure)?;
            let kept = StoredDeletion { etag: current.to_string() };
            asked.replay.remember(tx, &asked.caller, scope, at, || kept.to_json())?;
            Ok::<_, Error>((kept, false, pointing))
        };
        let (StoredDeletion { etag }, replayed, pointing) =
            self.cx.store.write(admitted.caller().scope.tenant(), "delete_file", delete).await?;
        if pointing > 0 {
            self.memories.check_pointers_later();
        }
        Ok(Deleted { path, etag, replayed })
    }

    /// Gives a file another path.
    pub async fn move_file(&self, admitted: &Admitted<Writer>, request: MoveFile) -> Result<Moved> {
        let result = self.try_move(admitted, request).await;
        files_metrics::mutation("move", &result);
        result
    }

    async fn try_move(&self, admitted: &Admitted<Writer>, request: MoveFile) -> Result<Moved> {
        let MoveFile { paths, precondition, reasons, key } = request;
        let (from, to) = paths.into_parts();
        let mutation = Mutation::new(RequestedChange {
            caller: admitted.caller().clone(),
            path: from,
            change: self.cx.clock.new_id(),
            action: Action::Move,
            precondition,
            reasons,
            replay: FileReplay::new(&self.cx, key),
            ops: Vec::new(),
            edits: Vec::new(),
            to: Some(to.clone()),
        });
        let seen = match mutation.look(&self.cx).await? {
            SeenFile::Answered(file) => return Ok(Moved { path: to, file }),
            SeenFile::File(stored) => stored,
        };
        let asked = mutation.asked();
        let draft = asked.moved(&seen, self.cx.clock.now())?;
        let (departure, seen, target) = (self.cx.clock.new_id(), seen.etag, to.clone());
        let relocate = move |tx: &mut dyn Tx| {
            scopes::take_turn(tx, &asked.caller.scope)?;
            let scope = scopes::lock(tx, &asked.caller.scope)?.id;
            if let Some(first) = asked.replay.find(tx, &asked.caller, scope)? {
                return Ok((WrittenFile::replayed(&first)?, 0));
            }
            let current = asked.current(tx, scope)?;
            if documents::version(tx, scope, &target)?.is_some() {
                return Err(exists(&target));
            }
            // With `*` another version may be there than the one that was seen, and at the other path a clock that was
            // ahead may have left its time. Both are rare, so what they take is done here.
            let at = later(tx, scope, &target, draft.at)?;
            if current == seen && at == draft.at {
                return asked.relocate(tx, scope, current, &target, departure, &draft);
            }
            let stored = documents::get(tx, &asked.caller.scope, &asked.path)?;
            let stored = stored.ok_or_else(|| Error::internal("a file vanished under its lock"))?;
            asked.relocate(tx, scope, current, &target, departure, &asked.moved(&stored, at)?)
        };
        let (file, pointing) =
            self.cx.store.write(admitted.caller().scope.tenant(), "move_file", relocate).await?;
        if pointing > 0 {
            self.memories.check_pointers_later();
        }
        Ok(Moved { path: to, file })
    }
}

/// A file on its way from its path.
struct Departure<'a> {
    /// The id of the record that tells of it.
    change: Uuid,
    at: Timestamp,
    other_path: OtherPath<'a>,
}

impl RequestedChange {
    /// The version that the file is at, if it may leave its path.
    fn current(&self, tx: &mut dyn Tx, scope: ScopeId) -> Result<ETag> {
        let current = documents::version(tx, scope, &self.path)?;
        self.admit(current)?;
        current.ok_or_else(|| Error::internal("a file may leave its path without being there"))
    }

    /// The version that a move makes of one: the same document, changed now.
    fn moved(&self, stored: &StoredFile, at: Timestamp) -> Result<Draft> {
        self.draft(envelope::stored(&stored.document)?, at.max(stored.updated_at), None)
    }

    /// Takes the file from its path, with a record and a place in the feed; says how many memories point there.
    fn leave(&self, tx: &mut dyn Tx, scope: ScopeId, current: ETag, departure: Departure<'_>) -> Result<u64> {
        let Departure { change, at, other_path } = departure;
        let sequence = scopes::take_sequence(tx, scope, -1)?;
        documents::remove(tx, scope, &self.path)?;
        let new = NewRecord {
            sequence,
            at,
            path: self.path.as_str(),
            etag: ETag { revision: current.revision + 1, change },
            previous: Some(current),
            record: &self.record(&Value::Null, other_path)?,
            image: Some(audit::NO_DOCUMENT),
        };
        audit::insert(tx, self.caller.scope.tenant(), scope, &new)?;
        self.tell(tx, scope, at, ChangeKind::FileDeleted, &self.path, current)
    }

    /// Takes the file from its path to another; says how many memories point at either.
    fn relocate(
        &self,
        tx: &mut dyn Tx,
        scope: ScopeId,
        current: ETag,
        to: &FilePath,
        departure: Uuid,
        draft: &Draft,
    ) -> Result<(WrittenFile, u64)> {
        let other_path = OtherPath { moved_from: None, moved_to: Some(to.as_str()) };
        let departure = Departure { change: departure, at: draft.at, other_path };
        let left = self.leave(tx, scope, current, departure)?;
        let arrival = Arrival { path: to, previous: Some(current), is_new: true, keeps_image: true };
        let (etag, found) = self.store(tx, scope, &arrival, draft)?;
        Ok((self.answer(tx, scope, etag, draft)?, left + found))
    }
}

/// The time of a change at a path: not before what happened there last, whatever the clock says.
fn later(tx: &mut dyn Tx, scope: ScopeId, path: &FilePath, now: Timestamp) -> Result<Timestamp> {
    Ok(audit::last_at(tx, scope, path.as_str())?.map_or(now, |last| last.max(now)))
}

fn exists(path: &FilePath) -> Error {
    let message = "there is a file at the new path already; delete that first, or choose another path";
    Error::new(Code::DocumentExists, message).with_text("path", path.as_str())
}

/// The answer to a deletion as it is kept for a repetition.
#[derive(Serialize, Deserialize)]
struct StoredDeletion {
    etag: String,
}

impl StoredDeletion {
    fn to_json(&self) -> Result<String> {
        serde_json::to_string(self).map_err(|error| Error::internal(error.to_string()))
    }

    fn read(answer: &str) -> Result<Self> {
        serde_json::from_str(answer)
            .map_err(|error| Error::internal(format!("a remembered answer cannot be read: {error}")))
    }
}
