//! Reading an access policy.

use super::members::Members;
use super::{AccessPolicy, Identifier, Identifiers, Policy};
use crate::Result;

impl AccessPolicy {
    /// Reads the member `accessPolicy`, if it is there.
    pub fn read(body: Members<'_>) -> Result<Option<Self>> {
        let Some(members) = body.object("accessPolicy", "accessPolicy.")? else { return Ok(None) };
        let policy = members.word("policy", Policy::parse, &Policy::ALL.map(Policy::as_str));
        Ok(Some(Self {
            policy: members.required("policy", policy)?,
            approved_users: names(members, "approvedUsers", Identifier::User)?,
            allowed_teams: names(members, "allowedTeams", Identifier::Team)?,
        }))
    }
}

/// Users or teams, written as identifiers are; each once.
fn names(members: Members<'_>, name: &str, identifier: Identifier) -> Result<Vec<String>> {
    let given = members.texts(name)?.unwrap_or_default();
    if given.len() > super::limits::MAX_POLICY_NAMES {
        let problem = format!("must have at most {} items", super::limits::MAX_POLICY_NAMES);
        return Err(members.refuse(name, &problem));
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

#[cfg(test)]
mod tests;
