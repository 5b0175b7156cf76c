//! `Idempotency-Key` of files and memories: a repetition of a request that succeeded gets the first answer again.

use crate::Context;
use memtrove_core::identity::Tenant;
use memtrove_core::{Code, Error, Result, Timestamp};
use memtrove_store::Tx;
use memtrove_store::idempotency::{self, RequestKey};

/// Answers that are older do not count, and are purged.
pub(crate) fn oldest_answer(cx: &Context) -> Timestamp {
    cx.clock.now().saturating_add_micros(-(cx.settings.idempotency_retention.as_micros() as i64))
}

/// What the same request was answered before, if that was not before `since`. Another request under its key is refused.
pub(crate) fn replayed(
    tx: &mut dyn Tx,
    tenant: &Tenant,
    key: &RequestKey,
    since: Timestamp,
) -> Result<Option<String>> {
    match idempotency::find(tx, tenant, key, since)? {
        None => Ok(None),
        Some(first) if first.fingerprint == key.fingerprint => Ok(Some(first.answer)),
        Some(_) => {
            let message = "this Idempotency-Key was already used for a different request";
            Err(Error::new(Code::IdempotencyConflict, message))
        }
    }
}
