//! Events: what one must look like to be stored, and what a search of them asks for.

use super::{Code, body, path};
use crate::{Error, Result, Timestamp};
use serde_json::{Map, Value, json};
use std::collections::HashSet;

/// The most chars of a whole event as it is stored: as many as a document may have.
const MAX_CHARS: usize = super::envelope::MAX_CHARS;
const MAX_ID_BYTES: usize = 200;
const MAX_DIGEST_CHARS: usize = 10_000;
const MAX_KEYWORDS: usize = 50;
const MAX_PROJECTS: usize = 20;

/// How many events are found by default.
const DEFAULT_TOP_K: usize = 10;
const MAX_TOP_K: i64 = 500;
/// Every token is one pass over all that a user has, so their number has a limit. It is what the longest query of the
/// contract's own tools, 2,000 chars, can have at most.
const MAX_TOKENS: usize = 1_000;

/// An event that may be stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// The caller's name for it, unique in its scope.
    pub id: String,
    /// When it happened.
    pub timestamp: Timestamp,
    /// The whole event as compact JSON, defaults filled in: what is stored and what a search returns.
    pub json: String,
    /// What it is found by.
    pub searchable: Searchable,
}

/// What an event is found by: its text folded, because searches do not tell cases apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Searchable {
    /// The event's id, as it is written.
    pub id: String,
    /// When it happened.
    pub timestamp: Timestamp,
    /// The service that wrote it.
    pub service: String,
    /// What kind of source it came from.
    pub source: String,
    /// The projects it belongs to.
    pub projects: Vec<String>,
    /// Its text.
    pub digest: String,
    /// Its keywords.
    pub keywords: Vec<String>,
}

/// A search for events, as somebody asks for it. A blank text asks for nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SearchEvents {
    /// What to look for.
    pub query: Option<String>,
    /// The service that must have written it.
    pub service: Option<String>,
    /// The kind of source it must come from.
    pub source: Option<String>,
    /// A project it must belong to.
    pub project: Option<String>,
    /// The earliest time, inclusive.
    pub from: Option<Timestamp>,
    /// The latest time, inclusive.
    pub to: Option<Timestamp>,
    /// How many events to find at most.
    pub top_k: Option<i64>,
}

impl SearchEvents {
    /// The search that is carried out.
    pub fn check(self) -> Result<EventQuery> {
        let folded =
            |text: Option<String>| text.filter(|text| !text.trim().is_empty()).map(|text| fold(&text));
        let query = folded(self.query);
        Ok(EventQuery {
            tokens: query.as_deref().map(tokens).transpose()?.unwrap_or_default(),
            has_query: query.is_some(),
            service: folded(self.service),
            source: folded(self.source),
            project: folded(self.project),
            from: self.from,
            to: self.to,
            top_k: top_k(self.top_k),
        })
    }
}

/// A search for events: filters that all must hold, and words to rank by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventQuery {
    /// The words of the query, folded, each once.
    pub tokens: Vec<String>,
    /// Whether there is a query at all. One without a single word in it (`!!!`) finds nothing.
    pub has_query: bool,
    /// The service that must have written it, folded.
    pub service: Option<String>,
    /// The kind of source it must come from, folded.
    pub source: Option<String>,
    /// A project it must belong to, folded.
    pub project: Option<String>,
    /// The earliest time, inclusive.
    pub from: Option<Timestamp>,
    /// The latest time, inclusive.
    pub to: Option<Timestamp>,
    /// How many events to find at most.
    pub top_k: usize,
}

impl Event {
    /// Reads the `event` of a request for the scope of its route, filling in what it leaves out.
    pub fn read(
        event: Option<Value>,
        tenant: &str,
        user: &str,
        actor: &str,
        now: Timestamp,
    ) -> Result<Event> {
        let Some(Value::Object(mut members)) = event else {
            return Err(
                Error::new(Code::InvalidEvent, "'event' must be an object").with_text("field", "event")
            );
        };
        check_scope(&members, tenant, user)?;
        fill_in(&mut members, actor, now);
        let searchable = Searchable::read(&members)?;
        check_caps(&members)?;
        let json = Value::Object(members).to_string();
        check_cap("event", "characters", json.chars().count(), MAX_CHARS)?;
        Ok(Event { id: searchable.id.clone(), timestamp: searchable.timestamp, json, searchable })
    }

    /// What a stored event is found by, for rebuilding the index. `None` for one that cannot be read: it must not stop
    /// the rest from being found.
    pub fn stored(json: &str) -> Option<Searchable> {
        body::object(json.as_bytes()).and_then(|members| Searchable::read(&members)).ok()
    }
}

impl Searchable {
    /// Reads an event whose defaults are filled in.
    fn read(members: &Map<String, Value>) -> Result<Self> {
        let id = text(members, "event_id")?;
        check_id(id)?;
        let digest = text(members, "digest")?;
        if digest.trim().is_empty() {
            return Err(invalid("digest", "must not be blank"));
        }
        let timestamp = Timestamp::parse(text(members, "timestamp")?)
            .ok_or_else(|| invalid("timestamp", "must be an RFC 3339 timestamp with an offset"))?;
        if members.contains_key("snapshot_uri") {
            text(members, "snapshot_uri")?;
        }
        Ok(Self {
            id: id.to_owned(),
            timestamp,
            service: fold(text(members, "service_id")?),
            source: fold(text(members, "source_type")?),
            projects: texts(members, "project_ids")?.into_iter().map(fold).collect(),
            digest: fold(digest),
            keywords: texts(members, "keywords")?.into_iter().map(fold).collect(),
        })
    }
}

/// Text as searches compare it: in lower case, each letter by itself, so that a part of a word is written like the whole.
/// Sigma, which has two lower cases, gets one.
fn fold(text: &str) -> String {
    path::fold(text).replace('ς', "σ")
}

/// The words of a folded query, each once.
fn tokens(query: &str) -> Result<Vec<String>> {
    let mut seen = HashSet::new();
    let tokens: Vec<String> = query
        .split(|c: char| c.is_whitespace() || c == ',' || c == ';')
        .map(|token| token.trim_matches(|c: char| !c.is_alphanumeric()))
        .filter(|token| !token.is_empty() && seen.insert(*token))
        .map(str::to_owned)
        .collect();
    if tokens.len() > MAX_TOKENS {
        let message = format!("'query' must have at most {MAX_TOKENS} different words");
        return Err(Error::new(Code::InvalidRequest, message).with_text("field", "query"));
    }
    Ok(tokens)
}

fn check_scope(members: &Map<String, Value>, tenant: &str, user: &str) -> Result<()> {
    for (name, expected) in [("tenant_id", tenant), ("user_id", user)] {
        if members.get(name).and_then(Value::as_str) != Some(expected) {
            let message = format!("'event.{name}' must be the one of the route");
            return Err(Error::new(Code::EventScopeMismatch, message).with_text("field", name));
        }
    }
    Ok(())
}

/// Puts the defaults where a member is missing or null. A member that was sent keeps its place.
fn fill_in(members: &mut Map<String, Value>, actor: &str, now: Timestamp) {
    let defaults = [
        ("service_id", json!(actor)),
        ("source_type", json!("unknown")),
        ("timestamp", json!(now)),
        ("keywords", json!([])),
        ("project_ids", json!([])),
    ];
    for (name, default) in defaults {
        if members.get(name).is_none_or(Value::is_null) {
            members.insert(name.to_owned(), default);
        }
    }
    if members.get("snapshot_uri").is_some_and(Value::is_null) {
        members.shift_remove("snapshot_uri");
    }
}

/// An id may end up in a path or a log line somewhere, so it must be harmless there.
fn check_id(id: &str) -> Result<()> {
    if id.trim().is_empty() {
        return Err(invalid("event_id", "must not be blank"));
    }
    if id.len() > MAX_ID_BYTES {
        return Err(invalid("event_id", &format!("must have at most {MAX_ID_BYTES} bytes")));
    }
    if id.contains("..") || id.contains(|c: char| c == '/' || c == '\\' || c.is_control()) {
        return Err(invalid("event_id", "must contain no '/', '\\', '..' or control character"));
    }
    Ok(())
}

fn check_caps(members: &Map<String, Value>) -> Result<()> {
    let entries = |name| members.get(name).and_then(Value::as_array).map_or(0, Vec::len);
    let digest_chars = members.get("digest").and_then(Value::as_str).map_or(0, |text| text.chars().count());
    check_cap("digest", "characters", digest_chars, MAX_DIGEST_CHARS)?;
    check_cap("keywords", "entries", entries("keywords"), MAX_KEYWORDS)?;
    check_cap("project_ids", "entries", entries("project_ids"), MAX_PROJECTS)
}

fn check_cap(field: &str, unit: &str, actual: usize, limit: usize) -> Result<()> {
    if actual <= limit {
        return Ok(());
    }
    let message = format!("'{field}' has {actual} {unit}, {limit} are allowed");
    Err(Error::new(Code::EventMetadataTooLarge, message)
        .with_text("field", field)
        .with_text("limit", limit)
        .with_text("actual", actual))
}

fn top_k(wanted: Option<i64>) -> usize {
    match wanted {
        Some(wanted @ 1..) => wanted.min(MAX_TOP_K) as usize,
        _ => DEFAULT_TOP_K,
    }
}

fn text<'a>(members: &'a Map<String, Value>, name: &str) -> Result<&'a str> {
    members.get(name).and_then(Value::as_str).ok_or_else(|| invalid(name, "must be a string"))
}

fn texts<'a>(members: &'a Map<String, Value>, name: &str) -> Result<Vec<&'a str>> {
    let items = members.get(name).and_then(Value::as_array);
    items
        .and_then(|items| items.iter().map(Value::as_str).collect())
        .ok_or_else(|| invalid(name, "must be an array of strings"))
}

fn invalid(name: &str, rule: &str) -> Error {
    Error::new(Code::InvalidEvent, format!("'event.{name}' {rule}")).with_text("field", name)
}

#[cfg(test)]
mod tests;
