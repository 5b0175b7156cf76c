//! Which files an application keeps for what: slots with names, where each of them lies, and what may be written there.

use crate::SlotRules;
use memtrove_client::{Error, FilePath, Result};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// What the variables of path templates stand for.
pub type TemplateVariables = BTreeMap<String, String>;

/// The slots of an application. The default has none.
///
/// ```
/// # use memtrove_agent::MemoryPolicy;
/// let policy = MemoryPolicy::from_json(r#"{
///     "policy_id": "assistant",
///     "slots": [
///         {"slot_id": "profile", "path": "profile.md", "load_by_default": true},
///         {"slot_id": "project", "path_template": "projects/{project}.md"}
///     ]
/// }"#)?;
/// assert_eq!(policy.slots.len(), 2);
/// # Ok::<(), memtrove_agent::Error>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MemoryPolicy {
    /// The policy's name.
    pub policy_id: String,
    /// The slots, in the order in which a turn takes them.
    #[serde(default)]
    pub slots: Vec<SlotPolicy>,
}

/// A slot: a name for a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "SlotFile", into = "SlotFile")]
pub struct SlotPolicy {
    /// Its name.
    pub slot_id: String,
    /// Where the file is.
    pub path: SlotPath,
    /// Whether every turn has it.
    pub load_by_default: bool,
    /// What may be written.
    pub rules: SlotRules,
}

/// Where the file of a slot is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SlotPath {
    /// Always here.
    Fixed(String),
    /// Where variables decide: `projects/{project}.md`. A variable stands for a name, never for several with `/`.
    Template(String),
}

/// A slot as a policy file has it.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct SlotFile {
    slot_id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    path: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    path_template: Option<String>,
    #[serde(default)]
    load_by_default: bool,
    #[serde(default)]
    patch_rules: Option<SlotRules>,
}

impl TryFrom<SlotFile> for SlotPolicy {
    type Error = String;

    fn try_from(slot: SlotFile) -> Result<Self, String> {
        let path = match (slot.path, slot.path_template) {
            (Some(path), None) => SlotPath::Fixed(path),
            (None, Some(template)) => SlotPath::Template(template),
            (Some(_), Some(_)) => {
                return Err(format!("slot '{}' has both path and path_template: keep one", slot.slot_id));
            }
            (None, None) => {
                return Err(format!("slot '{}' has neither path nor path_template", slot.slot_id));
            }
        };
        let rules = slot.patch_rules.unwrap_or_default();
        Ok(Self { slot_id: slot.slot_id, path, load_by_default: slot.load_by_default, rules })
    }
}

impl From<SlotPolicy> for SlotFile {
    fn from(slot: SlotPolicy) -> Self {
        let (path, path_template) = match slot.path {
            SlotPath::Fixed(path) => (Some(path), None),
            SlotPath::Template(template) => (None, Some(template)),
        };
        Self {
            slot_id: slot.slot_id,
            path,
            path_template,
            load_by_default: slot.load_by_default,
            patch_rules: Some(slot.rules),
        }
    }
}

impl MemoryPolicy {
    /// Reads a policy from JSON.
    pub fn from_json(json: &str) -> Result<Self> {
        let policy: Self = serde_json::from_str(json)
            .map_err(|error| Error::invalid(format!("the memory policy cannot be read: {error}")))?;
        policy.check()?;
        Ok(policy)
    }

    /// Reads a policy from a JSON file.
    pub fn from_json_file(file: impl AsRef<Path>) -> Result<Self> {
        let file = file.as_ref();
        let json = std::fs::read_to_string(file).map_err(|error| {
            Error::invalid(format!("the memory policy {} cannot be read: {error}", file.display()))
        })?;
        Self::from_json(&json)
    }

    /// The slot of this name. Fails if slots cannot be told apart.
    pub fn slot(&self, slot_id: &str) -> Result<&SlotPolicy> {
        self.check()?;
        self.named(slot_id)
    }

    /// The slot of this name in a policy that was checked.
    pub(crate) fn named(&self, slot_id: &str) -> Result<&SlotPolicy> {
        self.slots.iter().find(|slot| slot.slot_id == slot_id).ok_or_else(|| {
            let known: Vec<&str> = self.slots.iter().map(|slot| slot.slot_id.as_str()).collect();
            Error::invalid(format!("there is no slot '{slot_id}'; the policy has: {}", known.join(", ")))
        })
    }

    /// Refuses slots that cannot be told apart.
    pub(crate) fn check(&self) -> Result<()> {
        let mut seen = BTreeSet::new();
        for slot in &self.slots {
            if slot.slot_id.trim().is_empty() {
                return Err(Error::invalid("a slot has a blank slot_id: name it"));
            }
            if !seen.insert(slot.slot_id.as_str()) {
                let message = format!("there are two slots '{}': rename one", slot.slot_id);
                return Err(Error::invalid(message));
            }
        }
        Ok(())
    }
}

impl SlotPolicy {
    /// A slot whose file is always here, which a turn takes only when asked.
    pub fn at(slot_id: impl Into<String>, path: impl Into<String>) -> Self {
        Self {
            slot_id: slot_id.into(),
            path: SlotPath::Fixed(path.into()),
            load_by_default: false,
            rules: SlotRules::default(),
        }
    }

    /// A slot whose file is where variables say, which a turn takes only when asked.
    pub fn template(slot_id: impl Into<String>, template: impl Into<String>) -> Self {
        Self { path: SlotPath::Template(template.into()), ..Self::at(slot_id, "") }
    }

    /// The same, in every turn.
    pub fn loaded_by_default(self) -> Self {
        Self { load_by_default: true, ..self }
    }

    /// The same with rules.
    pub fn with_rules(self, rules: SlotRules) -> Self {
        Self { rules, ..self }
    }

    /// Where the slot's file is, given the variables.
    pub fn file_path(&self, variables: &TemplateVariables) -> Result<FilePath> {
        let path = match &self.path {
            SlotPath::Fixed(path) => path.clone(),
            SlotPath::Template(template) => fill(template, variables)
                .map_err(|fault| Error::invalid(format!("slot '{}': {fault}", self.slot_id)))?,
        };
        FilePath::new(&path).map_err(|error| Error::invalid(format!("slot '{}': {error}", self.slot_id)))
    }
}

/// Puts variables into a template. A value may not change where the template leads, so it is one name without a slash.
fn fill(template: &str, variables: &TemplateVariables) -> Result<String, String> {
    let mut filled = String::with_capacity(template.len());
    let mut rest = template;
    while let Some((before, after)) = rest.split_once('{') {
        let Some((name, after)) = after.split_once('}') else {
            return Err(format!("the path template '{template}' has a '{{' without a '}}'"));
        };
        let value = variables.get(name).map_or("", String::as_str);
        if value.trim().is_empty() {
            return Err(format!("the template variable '{name}' is missing: give it a value"));
        }
        if value.contains(['/', '\\']) {
            return Err(format!("the template variable '{name}' has a slash: give it one name"));
        }
        filled.push_str(before);
        filled.push_str(value);
        rest = after;
    }
    filled.push_str(rest);
    Ok(filled)
}

#[cfg(test)]
mod tests;
