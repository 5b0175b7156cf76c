//! `Idempotency-Key`: a repetition of a change that succeeded gets the first answer again.
//!
//! The key is looked up and remembered in the unit of work that makes the change, so a repetition that arrives while the
//! first is under way waits for it in the writer's queue, and one of them finds the other's record.

use crate::{Context, files_metrics};
use memtrove_core::files::{Code, IdempotencyKey, ScopedCaller, canonical};
use memtrove_core::{Error, Result, Timestamp};
use memtrove_store::Tx;
use memtrove_store::files::idempotency;
use memtrove_store::files::scopes::ScopeId;

/// What makes a request the repetition of another.
pub(super) struct FileReplay {
    key: Option<Key>,
}

struct Key {
    key: IdempotencyKey,
    /// Older records do not count.
    since: Timestamp,
}

impl FileReplay {
    pub fn new(cx: &Context, key: Option<IdempotencyKey>) -> Self {
        let retention = cx.settings.idempotency_retention.as_micros() as i64;
        Self { key: key.map(|key| Key { key, since: cx.clock.now().saturating_add_micros(-retention) }) }
    }

    /// The hash that the audit trail keeps instead of the key.
    pub fn key_hash(&self) -> Option<String> {
        self.key.as_ref().map(|known| canonical::sha256_hex(known.key.as_str().as_bytes()))
    }

    /// What the same request was answered before.
    pub fn find(&self, tx: &mut dyn Tx, caller: &ScopedCaller, scope: ScopeId) -> Result<Option<String>> {
        let Some(Key { key, since }) = &self.key else { return Ok(None) };
        match idempotency::find(tx, scope, &caller.principal, key.as_str(), *since)? {
            None => Ok(None),
            Some(first) if first.fingerprint == key.fingerprint().as_bytes() => {
                files_metrics::idempotency("replay");
                Ok(Some(first.answer))
            }
            Some(_) => {
                files_metrics::idempotency("conflict");
                Err(Error::new(
                    Code::IdempotencyConflict,
                    "this Idempotency-Key was already used for a different request",
                ))
            }
        }
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
        let Some(Key { key, .. }) = &self.key else { return Ok(()) };
        let (tenant, fingerprint) = (caller.scope.tenant(), key.fingerprint().as_bytes());
        idempotency::remember(
            tx,
            tenant,
            scope,
            &caller.principal,
            key.as_str(),
            fingerprint,
            &answer()?,
            now,
        )?;
        Ok(())
    }
}
