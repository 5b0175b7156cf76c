//! Members that many requests have.

use super::Members;
use memtrove_core::memories::limits::MAX_POLICY_NAMES;
use memtrove_core::memories::metadata::{SOURCE_TYPES, source_type};
use memtrove_core::memories::{
    AccessPolicy, Code, Filter, GivenMetadata, Identifier, Identifiers, Kind, Layer, MemberConditions,
    Policy, Rules,
};
use memtrove_core::{Error, Result};
use serde_json::Value;

/// A layer that has to be there.
pub(super) fn layer(members: Members<'_>, name: &str, rules: &Rules) -> Result<Layer> {
    match members.get(name) {
        Some(given) => one_layer(given, rules),
        None => Err(rules.no_such_layer(Value::Null)),
    }
}

/// The layers of a list, as they are named.
pub(super) fn layers(given: &[Value], rules: &Rules) -> Result<Vec<Layer>> {
    given.iter().map(|given| one_layer(given, rules)).collect()
}

fn one_layer(given: &Value, rules: &Rules) -> Result<Layer> {
    let layer = given.as_str().and_then(Layer::parse).filter(|layer| rules.enabled_layers.contains(layer));
    layer.ok_or_else(|| rules.no_such_layer(echo(given)))
}

/// The kinds of a list: each once, in the order of [`Kind::ALL`].
pub(super) fn kinds(given: &[Value]) -> Result<Vec<Kind>> {
    let mut kinds: Vec<Kind> = given.iter().map(kind).collect::<Result<_>>()?;
    kinds.sort_unstable();
    kinds.dedup();
    Ok(kinds)
}

pub(super) fn kind(given: &Value) -> Result<Kind> {
    given.as_str().and_then(Kind::parse).ok_or_else(|| {
        let names = Kind::ALL.map(Kind::as_str).join(", ");
        let message = format!("the kind must be one of {names}");
        Error::new(Code::InvalidKind, message).with("kind", echo(given))
    })
}

/// What a refusal repeats of a value that is none of the allowed ones: not a whole document.
pub(super) fn echo(given: &Value) -> Value {
    match given {
        Value::String(text) if text.chars().count() > 64 => Value::Null,
        Value::Array(_) | Value::Object(_) => Value::Null,
        scalar => scalar.clone(),
    }
}

/// The seven identifiers. Missing, `null` and `""` mean "not given".
pub(super) fn identifiers(body: Members<'_>) -> Result<Identifiers> {
    let mut identifiers = Identifiers::default();
    let Some(given) = body.object("identifiers", "identifiers.")? else { return Ok(identifiers) };
    for identifier in Identifier::ALL {
        let name = identifier.as_str();
        if let Some(text) = given.text(name)? {
            identifiers.set(identifier, &format!("identifiers.{name}"), text)?;
        }
    }
    Ok(identifiers)
}

pub(super) fn metadata(body: Members<'_>) -> Result<Option<GivenMetadata>> {
    let given = body.object("metadata", "metadata.")?;
    given.map(|given| GivenMetadata::new(given.to_map())).transpose()
}

pub(in crate::rest) fn access_policy(body: Members<'_>) -> Result<Option<AccessPolicy>> {
    let Some(members) = body.object("accessPolicy", "accessPolicy.")? else { return Ok(None) };
    let policy = members.word("policy", Policy::parse, &Policy::ALL.map(Policy::as_str));
    Ok(Some(AccessPolicy {
        policy: members.required("policy", policy)?,
        approved_users: names(members, "approvedUsers", Identifier::User)?,
        allowed_teams: names(members, "allowedTeams", Identifier::Team)?,
    }))
}

/// Users or teams, written as identifiers are; each once.
fn names(members: Members<'_>, name: &str, identifier: Identifier) -> Result<Vec<String>> {
    let given = members.texts(name)?.unwrap_or_default();
    if given.len() > MAX_POLICY_NAMES {
        return Err(members.refuse(name, &format!("must have at most {MAX_POLICY_NAMES} items")));
    }
    let mut names: Vec<String> = Vec::with_capacity(given.len());
    for text in given {
        Identifiers::default().set(identifier, &format!("accessPolicy.{name}"), text)?;
        if text.is_empty() {
            return Err(members.refuse(name, "must not hold an empty name"));
        }
        if !names.iter().any(|known| known == text) {
            names.push(text.to_owned());
        }
    }
    Ok(names)
}

/// Conditions on metadata. What a filter does not know it refuses: ignoring it would widen the result.
pub(in crate::rest) fn metadata_filter(members: Option<Members<'_>>) -> Result<Filter> {
    let Some(members) = members else { return Ok(Filter::default()) };
    const KNOWN: [&str; 4] = ["tags", "sourceType", "hasKnowledgePointer", "custom"];
    if let Some(unknown) = members.names().find(|name| !KNOWN.contains(name)) {
        return Err(members.refuse(unknown, &format!("is no filter; there are {}", KNOWN.join(", "))));
    }
    let source_type = members.word("sourceType", source_type, &SOURCE_TYPES)?;
    let custom = members.object("custom", "filter.custom.")?.map(|custom| custom.to_map());
    let tags = members.texts("tags")?.unwrap_or_default().into_iter().map(str::to_owned).collect();
    let has_knowledge_pointer = members.boolean("hasKnowledgePointer")?;
    let custom = MemberConditions::new(custom.unwrap_or_default())?;
    Ok(Filter { tags, source_type, has_knowledge_pointer, custom, ..Filter::default() })
}

#[cfg(test)]
mod tests;
