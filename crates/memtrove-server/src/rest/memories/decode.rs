//! From what came over the wire to what the service takes. The order in which a request is looked at is the contract's: it
//! decides which of several faults a caller hears of.

use crate::rest::extract::header;
use http::HeaderMap;
use memtrove_core::Result;
use memtrove_core::files::canonical;
use memtrove_core::memories::Precondition;
use memtrove_service::memories::{AnswerKey, Reply};
use serde_json::Value;

/// The key of a request to a collection, if it has one, and how its answer is given.
pub(super) fn answer_key<A>(
    headers: &HeaderMap,
    collection: &'static str,
    body: &Value,
    render: fn(&A) -> Result<Reply>,
) -> Result<Option<AnswerKey<A>>> {
    let text = header(headers, "Idempotency-Key")?;
    Ok(text.map(|text| {
        let fingerprint = canonical::fingerprint("POST", collection, body);
        AnswerKey { text, collection, fingerprint, render }
    }))
}

/// What `If-Match` expects.
pub(super) fn if_match(headers: &HeaderMap) -> Result<Precondition> {
    Ok(Precondition::if_match(header(headers, "If-Match")?.as_deref()))
}
