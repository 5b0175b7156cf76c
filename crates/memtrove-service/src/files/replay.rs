//! `Idempotency-Key`: a repetition of a change that succeeded gets the first answer again.
//!
//! The key is looked up and remembered in the unit of work that makes the change, so a repetition that arrives while the
//! first is under way waits for it in the writer's queue, and one of them finds the other's record.

use crate::idempotency::{oldest_answer, replayed};
use crate::{Context, files_metrics};
use memtrove_core::files::{Code, IdempotencyKey, ScopedCaller, canonical};
use memtrove_core::{Error, Result, Timestamp};
use memtrove_store::Tx;
use memtrove_store::files::scopes::ScopeId;
use memtrove_store::idempotency::{self, KeyPlace, RequestKey};

/// What makes a request the repetition of another.
pub(super) struct FileReplay {
    key: Option<IdempotencyKey>,
    /// Older records do not count.
    since: Timestamp,
}

impl FileReplay {
    pub fn new(cx: &Context, key: Option<IdempotencyKey>) -> Self {
        Self { key, since: oldest_answer(cx) }
    }

    /// The hash that the audit trail keeps instead of the key.
    pub fn key_hash(&self) -> Option<String> {
        self.key.as_ref().map(|key| canonical::sha256_hex(key.as_str().as_bytes()))
    }

    /// What the same request was answered before.
    pub fn find(&self, tx: &mut dyn Tx, caller: &ScopedCaller, scope: ScopeId) -> Result<Option<String>> {
        let Some(key) = self.request_key(caller, scope) else { return Ok(None) };
        let first = replayed(tx, caller.scope.tenant(), &key, self.since);
        match &first {
            Ok(Some(_)) => files_metrics::idempotency("replay"),
            Err(Error { code: Code::IdempotencyConflict, .. }) => files_metrics::idempotency("conflict"),
            Ok(None) | Err(_) => {}
        }
        first
    }

    /// Remembers an answer.
    pub fn remember(
        &self,
        tx: &mut dyn Tx,
        caller: &ScopedCaller,
        scope: ScopeId,
        now: Timestamp,
        answer: impl FnOnce() -> Result<String>,
    ) -> Result<()> {
        let Some(key) = self.request_key(caller, scope) else { return Ok(()) };
        // They go with the scope, so whom they tell of need not be noted.
        idempotency::remember(tx, caller.scope.tenant(), &key, &[], &answer()?, now)?;
        Ok(())
    }

    fn request_key(&self, caller: &ScopedCaller, scope: ScopeId) -> Option<RequestKey> {
        self.key.as_ref().map(|key| RequestKey {
            place: KeyPlace::Files(scope),
            principal: caller.principal.clone(),
            key: key.as_str().to_owned(),
            fingerprint: key.fingerprint().as_bytes().to_vec(),
        })
    }
}
