//! From mem0's bodies and parameters to the types of the service. Unknown members are refused: an ignored one would find
//! more than was meant, or be dropped silently.

mod filters;
mod instant;
mod messages;

pub(super) use messages::{NewMemories, add};

use super::encode::Paging;
use crate::rest::memories::decode::Params;
use filters::filters;
use memtrove_core::memories::limits::MAX_TTL_SECONDS;
use memtrove_core::memories::mem0::{
    Entities, Entity, Filters, LastDay, OWN, SplitMetadata, Update, date, seconds_left,
};
use memtrove_core::memories::members::Members;
use memtrove_core::memories::{Code, MemoryId, Rules};
use memtrove_core::{Error, Result, Timestamp, parse_uuid};
use memtrove_service::memories::SubjectSearch;
use serde_json::{Map, Value};
use std::collections::BTreeSet;

/// Results of a search that names no number of them: as many as mem0 gives.
const TOP_K: usize = 20;
/// Entries on a page that names no number of them, and the last page there is.
const PAGE_SIZE: usize = 100;
const LAST_PAGE: usize = 1_000_000;
/// Entities on a page that names no number of them.
const ENTITY_PAGE_SIZE: usize = 10_000;
/// As many memories as mem0 changes or deletes at once.
const MOST_OF_A_BATCH: usize = 1000;

/// Members that say how an answer is made and never which entries are in it; what they ask for is always so, or has no
/// meaning here: what has expired is gone, whoever asks for it.
const HARMLESS: [&str; 5] = ["version", "api_version", "output_format", "latest_only", "show_expired"];

/// The refusal of what only a language model can do.
pub(super) fn needs_a_model(what: &str) -> Error {
    let message = format!(
        "{what}, and no language model is configured; nothing was stored. To store messages as they are, pass infer=False"
    );
    Error::new(Code::InvalidRequest, message).with("reason", "no_language_model")
}

/// A search, and the members that its results show; none is all of them.
pub(super) fn search(body: &Value, rules: &Rules) -> Result<(SubjectSearch, Option<Vec<String>>)> {
    const KNOWN: [&str; 11] = [
        "query",
        "filters",
        "metadata",
        "categories",
        "top_k",
        "limit",
        "threshold",
        "fields",
        "rerank",
        "keyword_search",
        "explain",
    ];
    let members = Members::body(body)?;
    refuse_unknown(members, &KNOWN)?;
    let query = members.required("query", members.spoken("query"))?.trim().to_owned();
    let limit = first_limit(members, ["top_k", "limit"], TOP_K, rules.limits.search_limit)?;
    let threshold = members.number("threshold", 0.0..=1.0)?.unwrap_or(rules.search_threshold);
    let fields = members.texts("fields")?.map(|names| names.into_iter().map(str::to_owned).collect());
    for name in ["rerank", "keyword_search", "explain"] {
        members.boolean(name)?;
    }
    Ok((SubjectSearch { query, filters: filters(members)?, limit, threshold }, fields))
}

/// Which entries a list is about, and which page of it is at an address.
pub(super) fn list(
    body: Map<String, Value>,
    rules: &Rules,
    address: &'static str,
) -> Result<(Filters, Paging)> {
    const KNOWN: [&str; 8] =
        ["filters", "metadata", "categories", "start_date", "end_date", "page", "page_size", "limit"];
    let body = Value::Object(body);
    let members = Members::body(&body)?;
    refuse_unknown(members, &KNOWN)?;
    let page = members.limit("page", 1, LAST_PAGE)?;
    let most = rules.limits.list_limit;
    let size = first_limit(members, ["page_size", "limit"], PAGE_SIZE.min(most), most)?;
    Ok((filters(members)?, Paging { address, page, size }))
}

/// A page of whom there are memories about.
pub(super) fn entity_page(params: &[(String, String)]) -> Result<Paging> {
    let body = Value::Object(parameters(params, &["page", "page_size"])?);
    let members = Members::body(&body)?;
    let page = members.limit("page", 1, LAST_PAGE)?;
    let size = members.limit("page_size", ENTITY_PAGE_SIZE, ENTITY_PAGE_SIZE)?;
    Ok(Paging { address: "/v1/entities/", page, size })
}

/// The ids that parameters name.
pub(super) fn ids(params: &[(String, String)]) -> Result<Entities> {
    let body = Value::Object(parameters(params, &[])?);
    entities(Members::body(&body)?)
}

/// Parameters as members of a body: ids as they are, `numbers` as what they spell.
pub(super) fn parameters(params: &[(String, String)], numbers: &[&str]) -> Result<Map<String, Value>> {
    let ids = Entity::ALL.map(Entity::member);
    let known = |name: &str| ids.contains(&name) || numbers.contains(&name);
    if let Some((unknown, _)) = params.iter().find(|(name, _)| !known(name)) {
        let problem =
            "is not known here; name user_id, agent_id, app_id or run_id as parameters of their own";
        return Err(Error::field(unknown.replace('\0', "\u{fffd}"), problem));
    }
    Params::new(params)?.members(&ids, numbers)
}

/// Whether what a memory absorbed is to be deleted with it.
pub(super) fn with_linked(params: &[(String, String)]) -> Result<bool> {
    let linked = Params::new(params)?.one("delete_linked")?;
    match linked.map(str::to_ascii_lowercase).as_deref() {
        None | Some("false") => Ok(false),
        Some("true") => Ok(true),
        Some(_) => Err(Error::field("delete_linked", "must be true or false")),
    }
}

/// A change of one memory.
pub(super) fn update(body: &Value, now: Timestamp) -> Result<Update> {
    update_of(Members::body(body)?, now)
}

/// Changes of memories, each of which is named once: a change is checked against what is there, so a second one of the same
/// memory could fail after the first.
pub(super) fn updates(body: &Value, now: Timestamp) -> Result<Vec<(MemoryId, Update)>> {
    let (mut updates, mut named) = (Vec::new(), BTreeSet::new());
    for item in batch(body)? {
        let id = memory_id(item)?;
        if !named.insert(id) {
            let problem = "names a memory twice; say in one place what is to change of it";
            return Err(item.refuse("memory_id", problem));
        }
        updates.push((id, update_of(item, now)?));
    }
    Ok(updates)
}

/// Memories to delete, each once.
pub(super) fn deletions(body: &Value) -> Result<BTreeSet<MemoryId>> {
    batch(body)?.into_iter().map(memory_id).collect()
}

fn batch(body: &Value) -> Result<Vec<Members<'_>>> {
    let members = Members::body(body)?;
    let items = members.required("memories", members.items("memories"))?;
    if items.len() > MOST_OF_A_BATCH {
        return Err(Error::too_long(Code::BatchTooLarge, MOST_OF_A_BATCH, items.len()));
    }
    let members_of = |item: Option<_>| match item {
        Some(item) => Ok(Members::within(item, "memories[].")),
        None => Err(members.refuse("memories", "must hold objects with 'memory_id'")),
    };
    items.iter().map(Value::as_object).map(members_of).collect()
}

/// The id of an item: by what it is, not by how it is spelled.
fn memory_id(item: Members<'_>) -> Result<MemoryId> {
    let id = item.required("memory_id", item.text("memory_id"))?;
    parse_uuid(id).map(MemoryId).ok_or_else(Error::no_such_memory)
}

fn update_of(members: Members<'_>, now: Timestamp) -> Result<Update> {
    const KNOWN: [&str; 7] =
        ["text", "data", "metadata", "expiration_date", "timestamp", "memory_id", "enable_graph"];
    if let Some(unknown) = members.names().find(|name| !KNOWN.contains(name)) {
        return Err(members.refuse(unknown, "cannot be changed; there are text, metadata, expiration_date"));
    }
    if members.get("timestamp").is_some() {
        return Err(members.refuse("timestamp", "cannot be changed; add the memory anew with another one"));
    }
    // The server that mem0 publishes calls the text 'data'.
    let text = members.spoken("text")?.or(members.spoken("data")?).map(str::to_owned);
    let metadata = metadata(members)?;
    let last_day = match members.raw("expiration_date") {
        None => None,
        Some(_) => Some(last_day(members, now)?),
    };
    if text.is_none() && metadata.is_none() && last_day.is_none() {
        let message = "an update needs at least one of text, metadata, expiration_date";
        return Err(Error::new(Code::InvalidRequest, message));
    }
    Ok(Update { text, metadata, last_day, now })
}

/// The ids that stand in a body; `""` and `null` are none.
fn entities(members: Members<'_>) -> Result<Entities> {
    let mut entities = Entities::default();
    for entity in Entity::ALL {
        if let Some(text) = members.text(entity.member())? {
            entities.set(entity, text)?;
        }
    }
    Ok(entities)
}

fn metadata(members: Members<'_>) -> Result<Option<SplitMetadata>> {
    let Some(given) = members.object("metadata", "metadata.")? else { return Ok(None) };
    let given = given.to_map();
    if given.contains_key(OWN) {
        return Err(Error::field(format!("metadata.{OWN}"), "is used by the server"));
    }
    Ok(Some(SplitMetadata::new(given)))
}

/// The last day of an entry, which must be within a year.
fn last_day(members: Members<'_>, now: Timestamp) -> Result<Option<LastDay>> {
    let Some(text) = members.text("expiration_date")? else { return Ok(None) };
    let refuse = |problem: &str| members.refuse("expiration_date", problem);
    let day = date(text).ok_or_else(|| refuse("must be a date such as 2030-12-31"))?;
    match seconds_left(day, now) {
        ..=0 => Err(refuse("must not be in the past")),
        seconds_left @ 1..=MAX_TTL_SECONDS => Ok(Some(LastDay { date: text.to_owned(), seconds_left })),
        _ => Err(refuse("must be within a year from now; leave it out for what is to stay")),
    }
}

/// How many are wanted: by the first name, or by the second where the first is not there.
fn first_limit(members: Members<'_>, names: [&str; 2], default: usize, most: usize) -> Result<usize> {
    let name = names.into_iter().find(|name| members.get(name).is_some()).unwrap_or(names[1]);
    members.limit(name, default, most)
}

/// Refuses members that a search or a list does not know.
fn refuse_unknown(members: Members<'_>, known: &[&str]) -> Result<()> {
    if members.flag("enable_graph")? {
        return Err(members.refuse("enable_graph", "cannot be asked for: there is no graph here"));
    }
    if members.get("reference_date").is_some() {
        return Err(members.refuse("reference_date", "is not known here; filter by created_at instead"));
    }
    let ignored = ["enable_graph", "reference_date"];
    let is_known = |name: &str| {
        known.contains(&name) || HARMLESS.contains(&name) || ignored.contains(&name) || is_entity(name)
    };
    match members.names().find(|name| !is_known(name)) {
        Some(unknown) => {
            let message =
                format!("'{unknown}' is not known here, and leaving it out could find more than was meant");
            Err(Error::new(Code::InvalidRequest, message).with("field", unknown))
        }
        None => Ok(()),
    }
}

/// Whether a member names an entity.
fn is_entity(name: &str) -> bool {
    Entity::ALL.iter().any(|entity| entity.member() == name)
}

#[cfg(test)]
mod tests;
