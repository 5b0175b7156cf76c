//! The numbers of the files surface: what each is called and means, and a function for each thing worth counting.
//!
//! No label holds a tenant, a user or a path. To add a number: its name, its line in [`announce`], its function, and a row
//! in `docs/operations.md`.

use crate::Context;
use crate::quota::SCOPES;
use memtrove_core::{Details, Error, ErrorKind, Result};
use memtrove_store::AllTenants;
use memtrove_store::files::events;
use std::time::Duration;

/// Time to the response head of requests to the files surface, by `route`, `method` and `status`; the shell records it.
pub const REQUEST_DURATION: &str = "memtrove_files_request_duration_seconds";
/// Attempts to change a file, by `layer`, `op` and `outcome`.
pub const MUTATIONS: &str = "memtrove_files_mutations_total";
/// Requests whose `Idempotency-Key` was known already, by `outcome`.
pub const IDEMPOTENCY: &str = "memtrove_files_idempotency_total";
/// Time of one search among events.
pub const EVENT_SEARCH_DURATION: &str = "memtrove_files_event_search_duration_seconds";
/// Searches by how much they found: `bucket`.
pub const EVENT_SEARCH_RESULTS: &str = "memtrove_files_event_search_results";
/// Searches that found nothing.
pub const EVENT_SEARCH_EMPTY: &str = "memtrove_files_event_search_empty_total";
/// How long the event index has been behind the events.
pub const INDEX_LAG: &str = "memtrove_files_index_lag_seconds";
/// What was deleted, by `kind` and `cause`.
pub const LIFECYCLE_DELETED: &str = "memtrove_files_lifecycle_deleted_total";
/// Requests refused because a quota was used up, by `scope`.
pub const QUOTA_REJECTIONS: &str = "memtrove_files_quota_rejections_total";
/// Versions that the audit trail could not prove.
pub const AUDIT_INTEGRITY_FAILURES: &str = "memtrove_files_audit_integrity_failures_total";

const LAYER: &str = "files";
const OPS: [&str; 4] = ["put", "patch", "delete", "move"];
const OUTCOMES: [&str; 5] = ["ok", "412", "422", "409", "other"];
const REPLAYS: [&str; 3] = ["replay", "conflict", "pending"];
const DELETIONS: [(&str, &str); 8] = [
    ("event", "retention"),
    ("audit", "retention"),
    ("document", "forget"),
    ("event", "forget"),
    ("audit", "forget"),
    ("conversation", "forget"),
    ("memory", "forget"),
    ("idempotency", "expiry"),
];
/// How many results a bucket ends with; a search answers 500 at most.
const RESULTS: [(usize, &str); 4] = [(0, "0"), (10, "1-10"), (100, "11-100"), (usize::MAX, "101-500")];

/// Describes every number to the recorder and begins those that may stay away for long at zero: an alert on an increase
/// would overlook the first one otherwise.
pub fn announce() {
    use metrics::{Unit, counter, describe_counter, describe_gauge, describe_histogram, gauge};
    describe_histogram!(REQUEST_DURATION, Unit::Seconds, "Time to response head on the files surface.");
    describe_counter!(MUTATIONS, "Attempts to change a file.");
    describe_counter!(IDEMPOTENCY, "Requests whose Idempotency-Key was known already.");
    describe_histogram!(EVENT_SEARCH_DURATION, Unit::Seconds, "Time of one search among events.");
    describe_counter!(EVENT_SEARCH_RESULTS, "Searches among events, by how much they found.");
    describe_counter!(EVENT_SEARCH_EMPTY, "Searches among events that found nothing.");
    describe_gauge!(INDEX_LAG, Unit::Seconds, "How long the event index has been behind the events.");
    describe_counter!(LIFECYCLE_DELETED, "What retention, forget and expiry deleted.");
    describe_counter!(QUOTA_REJECTIONS, "Requests refused because a quota was used up.");
    describe_counter!(AUDIT_INTEGRITY_FAILURES, "Versions that the audit trail could not prove.");

    for op in OPS {
        for outcome in OUTCOMES {
            counter!(MUTATIONS, "layer" => LAYER, "op" => op, "outcome" => outcome).increment(0);
        }
    }
    for outcome in REPLAYS {
        counter!(IDEMPOTENCY, "outcome" => outcome).increment(0);
    }
    for (_, bucket) in RESULTS {
        counter!(EVENT_SEARCH_RESULTS, "bucket" => bucket).increment(0);
    }
    counter!(EVENT_SEARCH_EMPTY).increment(0);
    gauge!(INDEX_LAG).set(0);
    for (kind, cause) in DELETIONS {
        deleted(kind, cause, 0);
    }
    for scope in SCOPES {
        counter!(QUOTA_REJECTIONS, "scope" => scope).increment(0);
    }
    counter!(AUDIT_INTEGRITY_FAILURES).increment(0);
}

/// Somebody tried to change a file: `put`, `patch`, `delete` or `move`.
pub(crate) fn mutation<T>(op: &'static str, result: &Result<T>) {
    metrics::counter!(MUTATIONS, "layer" => LAYER, "op" => op, "outcome" => outcome(result)).increment(1);
}

/// Counts a change that a transport refuses before the service sees it, like those that the service refuses.
pub fn counted<T>(op: &'static str, request: Result<T>) -> Result<T> {
    if request.is_err() {
        mutation(op, &request);
    }
    request
}

/// A key was known already: `replay`, `conflict` or `pending`.
pub(crate) fn idempotency(outcome: &'static str) {
    metrics::counter!(IDEMPOTENCY, "outcome" => outcome).increment(1);
}

/// Somebody searched among events.
pub(crate) fn event_search(elapsed: Duration, results: usize) {
    metrics::histogram!(EVENT_SEARCH_DURATION).record(elapsed);
    let bucket = RESULTS.iter().find(|(most, _)| results <= *most).map_or("", |(_, bucket)| *bucket);
    metrics::counter!(EVENT_SEARCH_RESULTS, "bucket" => bucket).increment(1);
    if results == 0 {
        metrics::counter!(EVENT_SEARCH_EMPTY).increment(1);
    }
}

/// This many of a kind (`document`, `event`, `audit`, `conversation`, `idempotency`) were deleted, and why: `retention`,
/// `forget` or `expiry`.
pub(crate) fn deleted(kind: &'static str, cause: &'static str, count: u64) {
    metrics::counter!(LIFECYCLE_DELETED, "kind" => kind, "cause" => cause).increment(count);
}

/// Counts a request that a quota refused, by whose (`user`, `service`) was used up.
pub(crate) fn quota_rejection(error: &Error) {
    if let Details::Quota(quota) = &error.details {
        metrics::counter!(QUOTA_REJECTIONS, "scope" => quota.scope).increment(1);
    }
}

/// The audit trail could not prove a version.
pub(crate) fn audit_integrity_failure() {
    metrics::counter!(AUDIT_INTEGRITY_FAILURES).increment(1);
}

/// Sets what nothing else keeps up to date, before metrics are read.
///
/// Events are indexed in the transaction that stores them, so the index is behind them only where a search found a block
/// that it could not read, until that is rebuilt.
pub(crate) async fn sample(cx: &Context) {
    let since =
        cx.store.read(AllTenants, "index_lag", |tx| Ok::<_, Error>(events::unreadable_since(tx)?)).await;
    // A store that does not answer has alarms of its own.
    let Ok(since) = since else { return };
    let lag = since.map_or(0, |since| cx.clock.now().as_micros() - since.as_micros());
    metrics::gauge!(INDEX_LAG).set(lag as f64 / 1e6);
}

/// How an attempt to change a file ended, in the words of the contract: the statuses worth telling apart.
fn outcome<T>(result: &Result<T>) -> &'static str {
    match result.as_ref().map_err(Error::kind) {
        Ok(_) => "ok",
        Err(ErrorKind::Stale) => "412",
        Err(ErrorKind::Conflict) => "409",
        Err(ErrorKind::Unprocessable) => "422",
        Err(_) => "other",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use memtrove_core::files::Code;

    #[test]
    fn every_outcome_is_one_that_was_announced() {
        let check = |code: Code, expected: &str| {
            assert_eq!(outcome::<()>(&Err(Error::new(code, ""))), expected, "{code:?}");
        };
        check(Code::EtagMismatch, "412");
        check(Code::IdempotencyConflict, "409");
        check(Code::DocumentExists, "409");
        check(Code::PatchTestFailed, "422");
        check(Code::DocumentSizeExceeded, "422");
        check(Code::DocumentNotFound, "other");
        check(Code::MissingIfMatch, "other");
        assert_eq!(outcome(&Ok(())), "ok");
        for code in Code::ALL {
            assert!(OUTCOMES.contains(&outcome::<()>(&Err(Error::new(*code, "")))), "{code:?}");
        }
    }
}
