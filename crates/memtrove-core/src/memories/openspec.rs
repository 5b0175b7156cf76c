//! The OpenSpec knowledge protocol in terms of memories, and back. The same entries in other words: snake case, a source
//! beside the metadata, the caller's own keys under `custom`, eight layer types.
//!
//! Requests become bodies of `/v1/memories` and are checked there: there is one set of rules.

mod reach;
mod source;
mod types;

pub use reach::{KnowledgeFilter, Reach};
pub use source::{SOURCE_TYPES, shown as shown_source, source_type};
pub use types::{Target, Type, kinds};

use super::members::Members;
use super::{AccessPolicy, Identifier, Identifiers, Kind, Memory};
use crate::identity::Tenant;
use crate::{Error, Result};
use serde_json::{Map, Value, json};

/// The members of metadata that the protocol names; all others are `custom`.
const NAMED: [&str; 7] = ["title", "description", "tags", "language", "author", "confidence", "importance"];

/// The members of a fact, in the protocol's words and in ours.
const FACT: [(&str, &str); 5] = [
    ("fact_type", "factType"),
    ("subject", "subject"),
    ("predicate", "predicate"),
    ("object", "object"),
    ("confidence", "confidence"),
];

/// What an answer shows of entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Show {
    /// Whether `content` is there.
    pub content: bool,
    /// Whether `embedding` is there, where an entry has one.
    pub embedding: bool,
}

/// The protocol's name of an identifier.
pub fn identifier_name(identifier: Identifier) -> &'static str {
    match identifier {
        Identifier::Agent => "agent_id",
        Identifier::User => "user_id",
        Identifier::Session => "session_id",
        Identifier::Project => "project_id",
        Identifier::Team => "team_id",
        Identifier::Org => "org_id",
        Identifier::Company => "company_id",
    }
}

/// Reads the identifiers of a layer object.
pub fn identifiers(layer: Members<'_>) -> Result<Identifiers> {
    let mut identifiers = Identifiers::default();
    for identifier in Identifier::ALL {
        let name = identifier_name(identifier);
        if let Some(text) = layer.text(name)? {
            identifiers.set(identifier, name, text)?;
        }
    }
    Ok(identifiers)
}

/// An entry as the protocol shows it.
pub fn entry(memory: &Memory, show: Show) -> Map<String, Value> {
    let mut entry = Map::new();
    let mut put = |name: &str, value: Value| entry.insert(name.to_owned(), value);
    put("id", json!(memory.id.to_string()));
    if show.content {
        put("content", json!(memory.content));
    }
    if let Some(embedding) = memory.embedding.as_ref().filter(|_| show.embedding) {
        put("embedding", json!(embedding.vector));
    }
    put("metadata", shown_metadata(memory, true).into());
    put("source", shown_source(memory).into());
    put("access_policy", json!(memory.policy.policy.as_str()));
    put("created_at", json!(memory.created_at));
    put("updated_at", json!(memory.updated_at));
    put("version", json!(memory.version));
    put("layer", shown_layer(memory).into());
    entry
}

/// The layer object of an entry.
pub fn shown_layer(memory: &Memory) -> Map<String, Value> {
    let scope = &memory.scope;
    let mut layer = Map::new();
    layer.insert("type".to_owned(), json!(Type::of(memory).as_str()));
    layer.insert("scope".to_owned(), json!(scope.layer().as_str()));
    layer.extend(scope.named().map(|(name, value)| (identifier_name(name).to_owned(), json!(value))));
    layer
}

/// The metadata of an entry as the protocol shows them, with `custom` or without.
pub fn shown_metadata(memory: &Memory, custom: bool) -> Map<String, Value> {
    let (mut shown, mut own): (Map<_, _>, Map<_, _>) = memory
        .metadata
        .iter()
        .filter(|(key, _)| *key != "source")
        .map(|(key, value)| (key.clone(), value.clone()))
        .partition(|(key, _)| NAMED.contains(&key.as_str()));
    if let Some(fact) = &memory.fact {
        let values: [Value; 5] = [
            json!(fact.fact_type),
            json!(fact.subject),
            json!(fact.predicate),
            json!(fact.object),
            json!(fact.confidence),
        ];
        let members: Map<_, _> = FACT.iter().map(|(name, _)| (*name).to_owned()).zip(values).collect();
        own.insert("fact".to_owned(), members.into());
    }
    if custom && !own.is_empty() {
        shown.insert("custom".to_owned(), own.into());
    }
    shown
}

/// Makes the body of an add of the body of a create. `user` is the authenticated one, if there is one.
pub fn add(body: Members<'_>, user: Option<&str>, tenant: &Tenant) -> Result<Value> {
    let options = body.object("options", "options.")?;
    let layer = options.map(|options| options.object("layer", "options.layer.")).transpose()?.flatten();
    let target = Target::read(layer, user, tenant)?;
    let mut add = said(body, target.kind == Kind::Procedural, None)?;
    add.insert("layer".to_owned(), json!(target.layer.as_str()));
    add.insert("kind".to_owned(), json!(target.kind.as_str()));
    let identifiers =
        target.identifiers.given().map(|(name, value)| (name.as_str().to_owned(), json!(value)));
    add.insert("identifiers".to_owned(), Value::Object(identifiers.collect()));
    Ok(add.into())
}

/// Makes the body of a change of the body of a replacement, in which what it does not say is removed: for the change of a
/// fact, if the entry states one.
pub fn change(body: Members<'_>, stored: &Memory) -> Result<Value> {
    let mut change = said(body, stored.fact.is_some(), Some(stored))?;
    if !change.contains_key("content") {
        return Err(Error::field("entry.content", "is required"));
    }
    if let Some(Value::Object(metadata)) = change.get_mut("metadata") {
        // What an entry does not show, because its fact stands there, nobody meant to remove.
        for key in stored.metadata.keys().filter(|key| stored.fact.is_none() || *key != "fact") {
            metadata.entry(key.clone()).or_insert(Value::Null);
        }
    }
    if !change.contains_key("accessPolicy") {
        let default = AccessPolicy::default_in(stored.scope.layer()).policy;
        change.insert("accessPolicy".to_owned(), json!({"policy": default.as_str()}));
    }
    if stored.fact.is_some() {
        let Some(Value::Object(fact)) = change.shift_remove("fact") else {
            let problem = "is required, because this entry states a fact";
            return Err(Error::field("entry.metadata.custom.fact", problem));
        };
        change.insert("confidence".to_owned(), json!(1.0));
        change.extend(fact);
    }
    Ok(change.into())
}

/// What a body says about an entry: the members `content`, `metadata`, `accessPolicy` and `fact` of `/v1/memories`.
fn said(body: Members<'_>, procedural: bool, stored: Option<&Memory>) -> Result<Map<String, Value>> {
    let entry = body.required("entry", body.object("entry", "entry."))?;
    let mut said = Map::new();
    if let Some(content) = entry.get("content") {
        said.insert("content".to_owned(), content.clone());
    }
    let mut metadata = read_metadata(entry)?;
    let fact = if procedural { metadata.shift_remove("fact") } else { None };
    if let Some(fact) = fact {
        said.insert("fact".to_owned(), read_fact(fact));
    }
    if let Some(source) = source::read(entry, stored)? {
        metadata.insert("source".to_owned(), source.into());
    }
    said.insert("metadata".to_owned(), metadata.into());
    if let Some(policy) = read_policy(body, entry, stored)? {
        said.insert("accessPolicy".to_owned(), policy);
    }
    Ok(said)
}

/// The metadata of a request in the form of `/v1`: `custom` beside the named members.
fn read_metadata(entry: Members<'_>) -> Result<Map<String, Value>> {
    let Some(given) = entry.object("metadata", "entry.metadata.")? else { return Ok(Map::new()) };
    let mut metadata: Map<String, Value> =
        NAMED.iter().filter_map(|name| Some(((*name).to_owned(), given.get(name)?.clone()))).collect();
    let custom = given.object("custom", "entry.metadata.custom.")?;
    for (key, value) in custom.map(|custom| custom.to_map()).into_iter().flatten() {
        if key == "source" || NAMED.contains(&key.as_str()) {
            return Err(given.refuse(&format!("custom.{key}"), "has its own place beside 'custom'"));
        }
        metadata.insert(key, value);
    }
    Ok(metadata)
}

/// A fact in the words of `/v1`; what is no object is refused there.
fn read_fact(fact: Value) -> Value {
    let Value::Object(members) = fact else { return fact };
    let named =
        FACT.iter().filter_map(|(theirs, ours)| Some(((*ours).to_owned(), members.get(*theirs)?.clone())));
    Value::Object(named.collect())
}

/// The access policy of a request in the form of `/v1`. The bare word that an entry shows keeps the lists it stands for:
/// without them a policy would let in more people, or fewer, than anybody meant.
fn read_policy(body: Members<'_>, entry: Members<'_>, stored: Option<&Memory>) -> Result<Option<Value>> {
    let options = body.object("options", "options.")?;
    let given = options.and_then(|options| options.get("access_policy"));
    if let Some(Value::Object(members)) = given {
        let names =
            [("policy", "policy"), ("approved_users", "approvedUsers"), ("allowed_teams", "allowedTeams")];
        let named = names
            .iter()
            .filter_map(|(theirs, ours)| Some(((*ours).to_owned(), members.get(*theirs)?.clone())));
        return Ok(Some(Value::Object(named.collect())));
    }
    let Some(word) = given.or_else(|| entry.get("access_policy")) else { return Ok(None) };
    let kept = stored
        .map(|stored| &stored.policy)
        .filter(|policy| word.as_str().is_some_and(|word| word.eq_ignore_ascii_case(policy.policy.as_str())));
    let (users, teams) =
        kept.map(|kept| (&kept.approved_users[..], &kept.allowed_teams[..])).unwrap_or_default();
    Ok(Some(json!({"policy": word, "approvedUsers": users, "allowedTeams": teams})))
}

#[cfg(test)]
mod tests;
