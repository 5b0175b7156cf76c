//! From the wire to the types of the service. The contract fixes the order of the checks: it decides which of several
//! faults is reported. One file per family of operations.

mod add;
mod bulk;
mod change;
mod facts;
mod fields;
mod lifecycle;
mod list;
mod params;
mod search;

pub(super) use add::add;
pub(super) use bulk::{bulk_add, bulk_delete};
pub(super) use change::change;
pub(super) use facts::{add_fact, change_fact, list_facts, query_facts};
pub(in crate::rest) use facts::{fact, stated};
pub(in crate::rest) use fields::{access_policy, metadata_filter};
pub(super) use lifecycle::{clear, consolidate, decay, end_session, promote};
pub(super) use list::{filter, list};
pub(in crate::rest) use params::Params;
pub(in crate::rest) use search::search;

use crate::rest::extract::header;
use http::HeaderMap;
use memtrove_core::files::canonical;
use memtrove_core::memories::members::Members;
use memtrove_core::memories::{Assertion, Code, Layer, Precondition};
use memtrove_core::{Error, Result, Timestamp};
use memtrove_service::memories::{AnswerKey, Reply};
use serde_json::Value;

/// What searches and lists say of entries that others supersede, which nothing does yet.
const SUPERSESSION: [&str; 2] = ["asOf", "includeSuperseded"];

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

/// The scope that a request by id means.
pub(super) fn assertion(params: &[(String, String)]) -> Result<Assertion> {
    let params = Params::new(params)?;
    let identifiers = params.identifiers()?;
    let layer = params.one("layer")?.map(|word| {
        Layer::parse(word).ok_or_else(|| {
            let refusal = Error::new(Code::InvalidLayer, "there is no such layer");
            refusal.with("layer", fields::echo(&word.into()))
        })
    });
    Ok(Assertion { layer: layer.transpose()?, identifiers })
}

/// `from` and `to`: both belong to the range.
fn range(members: Members<'_>) -> Result<(Option<Timestamp>, Option<Timestamp>)> {
    match (members.instant("from")?, members.instant("to")?) {
        (Some(from), Some(to)) if from > to => Err(members.refuse("from", "must not be later than 'to'")),
        range => Ok(range),
    }
}

#[cfg(test)]
mod tests;
