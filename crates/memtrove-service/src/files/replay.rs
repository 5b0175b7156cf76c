//! `Idempotency-Key`: a repetition of a change that succeeded gets the first answer again.
//!
//! The key is looked up and remembered in the unit of work that makes the change, so a repetition that arrives while the
//! first is under way waits for it in the writer's queue, and one of them finds the other's record.

use crate::{Context, files_metrics};
use memtrove_core::files::{Code, ScopedCaller, canonical};
use memtrove_core::{Error, Result, Timestamp};
use memtrove_store::Tx;
use memtrove_store::files::idempotency;
use memtrove_store::files::scopes::ScopeId;

const MAX_KEY_CHARS: usize = 128;

/// What makes a request the repetition of another.
pub(super) struct Replay {
    key: Option<Key>,
}

struct Key {
    text: String,
    fingerprint: String,
    /// Older records do not count.
    since: Timestamp,
}

impl Replay {
    /// Reads the key, if there is one.
    pub fn new(cx: &Context, key: Option<String>, fingerprint: impl FnOnce() -> String) -> Result<Self> {
        let Some(text) = key else { return Ok(Self { key: None }) };
        if text.is_empty() || text.len() > MAX_KEY_CHARS || !text.bytes().all(|b| b.is_ascii_graphic()) {
            let message = format!("Idempotency-Key must be 1..{MAX_KEY_CHARS} visible ASCII characters");
            return Err(Error::refused(Code::InvalidIdempotencyKey, message));
        }
        let retention = cx.settings.idempotency_retention.as_micros() as i64;
        let since = cx.clock.now().saturating_add_micros(-retention);
        Ok(Self { key: Some(Key { text, fingerprint: fingerprint(), since }) })
    }

    /// The hash that the audit trail keeps instead of the key.
    pub fn key_hash(&self) -> Option<String> {
        self.key.as_ref().map(|key| canonical::sha256_hex(key.text.as_bytes()))
    }

    /// What the same request was answered before.
    pub fn find(&self, tx: &mut dyn Tx, caller: &ScopedCaller, scope: ScopeId) -> Result<Option<String>> {
        let Some(key) = &self.key else { return Ok(None) };
        match idempotency::find(tx, scope, &caller.principal, &key.text, key.since)? {
            None => Ok(None),
            Some(first) if first.fingerprint == key.fingerprint.as_bytes() => {
                files_metrics::idempotency("replay");
                Ok(Some(first.answer))
            }
            Some(_) => {
                files_metrics::idempotency("conflict");
                Err(Error::refused(
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
        let Some(key) = &self.key else { return Ok(()) };
        let (tenant, fingerprint) = (caller.scope.tenant(), key.fingerprint.as_bytes());
        idempotency::remember(tx, tenant, scope, &caller.principal, &key.text, fingerprint, &answer()?, now)?;
        Ok(())
    }
}
