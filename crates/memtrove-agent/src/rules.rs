//! What may be written into a slot. Checked before anything is sent: pure functions of the change.

use memtrove_client::PatchOp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// What may be written into a slot. The default allows everything.
///
/// Paths are JSON pointers into the content (`/preferences`); one without a leading `/` gets one.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SlotRules {
    /// What patches may change, with everything below; all of the content where none is named. `*` is any one name.
    pub allowed_paths: Vec<String>,
    /// What a replacement must have, and not as null.
    pub required_content_paths: Vec<String>,
    /// The most characters of a replacement's content, as compact JSON.
    pub max_content_chars: Option<usize>,
    /// The most items of any list in a replacement, however deep.
    pub max_array_items: Option<usize>,
}

impl SlotRules {
    /// Says which operation of a patch is not allowed, if one is not.
    pub(crate) fn check_patch(&self, ops: &[PatchOp]) -> Result<(), String> {
        if self.allowed_paths.is_empty() {
            return Ok(());
        }
        for (index, op) in ops.iter().enumerate() {
            for path in written(op) {
                if !self.allows(path) {
                    return Err(format!("operation {index} may not change '{path}': {}", self.allowed()));
                }
            }
        }
        Ok(())
    }

    /// Says what is wrong with a replacement's content, if something is.
    pub(crate) fn check_content(&self, content: &Map<String, Value>) -> Result<(), String> {
        let content = Value::Object(content.clone());
        if let Some(most) = self.max_content_chars {
            let chars = content.to_string().chars().count();
            if chars > most {
                return Err(format!("the content has {chars} characters; at most {most} are allowed"));
            }
        }
        for path in &self.required_content_paths {
            let found = content.pointer(&pointer(path));
            if found.is_none_or(Value::is_null) {
                return Err(format!("the content lacks '{path}'"));
            }
        }
        match self.max_array_items {
            Some(most) if longest(&content) > most => Err(format!(
                "a list in the content has {} items; at most {most} are allowed",
                longest(&content)
            )),
            _ => Ok(()),
        }
    }

    fn allows(&self, op_path: &str) -> bool {
        let Some(target) =
            op_path.strip_prefix("/content").filter(|rest| rest.is_empty() || rest.starts_with('/'))
        else {
            return false;
        };
        let target = tokens(target);
        self.allowed_paths.iter().any(|rule| {
            let rule = tokens(&pointer(rule));
            rule.len() <= target.len()
                && rule.iter().zip(&target).all(|(rule, token)| rule == "*" || rule == token)
        })
    }

    fn allowed(&self) -> String {
        let allowed: Vec<String> =
            self.allowed_paths.iter().map(|rule| format!("/content{}", pointer(rule))).collect();
        format!("allowed is what lies under {}", allowed.join(", "))
    }
}

/// What an operation writes. Copying changes nothing where it copies from, and testing nothing at all.
fn written(op: &PatchOp) -> Vec<&str> {
    match op {
        PatchOp::Add { path, .. }
        | PatchOp::Remove { path }
        | PatchOp::Replace { path, .. }
        | PatchOp::Copy { path, .. } => vec![path],
        PatchOp::Move { from, path } => vec![from, path],
        PatchOp::Test { .. } => vec![],
    }
}

/// A rule as a pointer. `/` alone is all of the content, as nothing is.
fn pointer(rule: &str) -> String {
    match rule {
        "" | "/" => String::new(),
        _ if rule.starts_with('/') => rule.to_owned(),
        _ => format!("/{rule}"),
    }
}

/// The names along a pointer.
fn tokens(pointer: &str) -> Vec<String> {
    pointer.split('/').skip(1).map(|token| token.replace("~1", "/").replace("~0", "~")).collect()
}

/// The length of the longest list.
fn longest(value: &Value) -> usize {
    match value {
        Value::Array(items) => items.iter().map(longest).chain([items.len()]).max().unwrap_or(0),
        Value::Object(members) => members.values().map(longest).max().unwrap_or(0),
        _ => 0,
    }
}

#[cfg(test)]
mod tests;
