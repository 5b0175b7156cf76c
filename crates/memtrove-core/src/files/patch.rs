//! Patches: RFC 6902 operations on an envelope, then edits of its text.
//!
//! Made by hand: recorded patches prove what a version was, so they must give the same bytes for ever, whatever a library's next
//! release thinks. Numbers keep their spelling, and an error names the operation and the reason that the contract has for it.

pub(crate) mod equality;
mod operation;
mod pointer;

use super::Code;
use super::edits::{self, TextEdit};
use crate::{Error, Result};
use operation::Operation;
use serde_json::{Map, Value};

/// How many operations and edits a patch may have.
const MAX_CHANGES: usize = 100;

/// What a `PATCH` asks for. Its shape is known to be right; whether it fits the document shows when it is applied.
#[derive(Debug, Clone, PartialEq)]
pub struct Patch {
    ops: Vec<Value>,
    edits: Vec<Value>,
    text_edits: Vec<TextEdit>,
}

impl Patch {
    /// Reads the members `ops` and `edits` of a body.
    pub fn read(ops: Option<&Value>, edits: Option<&Value>) -> Result<Self> {
        let (ops, edits) = (list(ops, "ops")?, list(edits, "edits")?);
        for (index, op) in ops.iter().enumerate() {
            if !["op", "path"].iter().all(|name| op.get(name).is_some_and(Value::is_string)) {
                let message = format!("operation {index} must be a JSON object with strings 'op' and 'path'");
                return Err(Error::new(Code::InvalidRequest, message).with_text("op_index", index));
            }
        }
        let text_edits = edits::read(edits)?;
        if ops.is_empty() && edits.is_empty() {
            return Err(Error::new(Code::InvalidPatch, "a patch needs at least one operation or edit"));
        }
        if ops.len() + edits.len() > MAX_CHANGES {
            let message = format!("a patch must not have more than {MAX_CHANGES} operations and edits");
            return Err(Error::new(Code::PatchTooLarge, message));
        }
        Ok(Self { ops: ops.to_vec(), edits: edits.to_vec(), text_edits })
    }

    /// A patch of text edits alone.
    pub fn of_edits(edits: Vec<TextEdit>) -> Result<Self> {
        let edits: Vec<Value> = edits.into_iter().map(TextEdit::into_json).collect();
        Self::read(None, Some(&Value::Array(edits)))
    }

    /// The operations as given.
    pub fn ops_json(&self) -> &[Value] {
        &self.ops
    }

    /// The edits as given.
    pub fn edits_json(&self) -> &[Value] {
        &self.edits
    }

    /// Applies the operations, then the edits. After an error the envelope is of no use: give it a private copy.
    pub fn apply(&self, envelope: &mut Map<String, Value>) -> Result<()> {
        let mut root = Value::Object(std::mem::take(envelope));
        for (index, op) in self.ops.iter().enumerate() {
            Operation::read(op)
                .and_then(|operation| operation.apply(&mut root))
                .map_err(|fault| fault.at(index, op))?;
        }
        if !self.text_edits.is_empty() {
            let Some(Value::String(text)) = root.pointer_mut("/content/text") else {
                return Err(Error::new(Code::PatchTextNotFound, "the document has no string 'content.text'"));
            };
            *text = edits::apply(text, &self.text_edits)?;
        }
        if let Value::Object(members) = root {
            *envelope = members;
        }
        Ok(())
    }
}

fn list<'a>(value: Option<&'a Value>, name: &str) -> Result<&'a [Value]> {
    match value {
        None | Some(Value::Null) => Ok(&[]),
        Some(Value::Array(items)) => Ok(items),
        Some(_) => {
            Err(Error::new(Code::InvalidRequest, format!("'{name}' must be an array"))
                .with_text("field", name))
        }
    }
}

#[cfg(test)]
mod tests;
