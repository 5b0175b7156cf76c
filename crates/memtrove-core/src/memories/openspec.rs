//! The OpenSpec knowledge protocol in terms of memories, and back. The same entries in other words: snake case, a source
//! beside the metadata, the caller's own keys under `custom`, eight layer types.
//!
//! Requests become bodies of `/v1/memories` and are checked there: there is one set of rules.

mod reach;
mod source;
mod types;

pub use reach::{KnowledgeFilter, Reach};
pub use source::{KnowledgeSource, SOURCE_TYPES, source_type};
pub use types::{Target, Type, kinds};

use super::members::Members;
use super::{AccessPolicy, Identifier, Identifiers, Kind, Memory};
use crate::identity::Tenant;
use crate::{Error, Result};
use serde_json::{Map, Value, json};

/// The members of metadata that the protocol names; all others are `custom`.
pub const NAMED: [&str; 7] =
    ["title", "description", "tags", "language", "author", "confidence", "importance"];

/// The members of a fact, in the protocol's words and in ours.
const FACT: [(&str, &str); 5] = [
    ("fact_type", "factType"),
    ("subject", "subject"),
    ("predicate", "predicate"),
    ("object", "object"),
    ("confidence", "confidence"),
];

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
