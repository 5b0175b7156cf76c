//! The six operations of RFC 6902.

use super::equality::equal;
use super::pointer::{JsonPointer, index};
use crate::Error;
use crate::files::{Code, envelope};
use serde_json::Value;
use std::io;

/// An operation, read from JSON of which only `op` and `path` are known to be texts.
#[derive(Debug)]
pub(super) enum Operation<'a> {
    Add { path: JsonPointer, value: &'a Value },
    Remove { path: JsonPointer },
    Replace { path: JsonPointer, value: &'a Value },
    Move { from: JsonPointer, path: JsonPointer },
    Copy { from: JsonPointer, path: JsonPointer },
    Test { path: JsonPointer, value: &'a Value },
}

/// Why an operation cannot be applied.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum OperationFault {
    /// It is none of the six.
    Unknown,
    /// It lacks `value` or `from`.
    Lacks(&'static str),
    /// A pointer that is none.
    Pointer(&'static str),
    /// A pointer that leads nowhere.
    Nowhere(&'static str),
    /// A move into what is moved.
    IntoItself,
    /// A test that found something else.
    Different,
    /// The document would be nested too deeply.
    TooDeep,
    /// The document would have this many chars.
    TooLarge(usize),
}

impl OperationFault {
    /// The refusal of the operation with this index.
    pub(super) fn at(self, index: usize, op: &Value) -> Error {
        let (code, fault) = match self {
            OperationFault::Unknown => {
                (Code::InvalidPatchOp, "is none of add, remove, replace, move, copy, test".to_owned())
            }
            OperationFault::Lacks(member) => (Code::InvalidPatchOp, format!("has no '{member}'")),
            OperationFault::Pointer(member) => (
                Code::InvalidPatchPath,
                format!("has a '{member}' that is no JSON pointer below the document"),
            ),
            OperationFault::Nowhere(member) => {
                (Code::InvalidPatchPath, format!("has a '{member}' that leads to nothing in the document"))
            }
            OperationFault::IntoItself => (Code::InvalidPatchPath, "moves a value into itself".to_owned()),
            OperationFault::Different => {
                (Code::PatchTestFailed, "tests for another value than there is".to_owned())
            }
            OperationFault::TooDeep => (
                Code::InvalidDocument,
                format!("nests the document deeper than {} levels", envelope::MAX_DEPTH),
            ),
            OperationFault::TooLarge(chars) => return envelope::too_large(chars),
        };
        let path = op.get("path").and_then(Value::as_str).unwrap_or_default();
        Error::new(code, format!("operation {index} {fault}"))
            .with_text("op_index", index)
            .with_text("path", path)
    }
}

impl<'a> Operation<'a> {
    /// Reads an operation. Members it does not use are none of its business.
    pub(super) fn read(op: &'a Value) -> Result<Self, OperationFault> {
        let pointer = |name| {
            let text = op.get(name).and_then(Value::as_str).ok_or(OperationFault::Lacks(name))?;
            JsonPointer::read(text).ok_or(OperationFault::Pointer(name))
        };
        let value = || op.get("value").ok_or(OperationFault::Lacks("value"));
        let name = op.get("op").and_then(Value::as_str).unwrap_or_default().trim().to_ascii_lowercase();
        Ok(match name.as_str() {
            "add" => Operation::Add { value: value()?, path: pointer("path")? },
            "remove" => Operation::Remove { path: pointer("path")? },
            "replace" => Operation::Replace { value: value()?, path: pointer("path")? },
            "move" => Operation::Move { from: pointer("from")?, path: pointer("path")? },
            "copy" => Operation::Copy { from: pointer("from")?, path: pointer("path")? },
            "test" => Operation::Test { value: value()?, path: pointer("path")? },
            _ => return Err(OperationFault::Unknown),
        })
    }

    /// Applies it to a document.
    pub(super) fn apply(self, root: &mut Value) -> Result<(), OperationFault> {
        match self {
            Operation::Add { path, value } => add(root, &path, value.clone()),
            Operation::Remove { path } => {
                remove(root, &path).map(drop).ok_or(OperationFault::Nowhere("path"))
            }
            Operation::Replace { path, value } => {
                let target = path.target_mut(root).ok_or(OperationFault::Nowhere("path"))?;
                if nests_too_deep(&path, value) {
                    return Err(OperationFault::TooDeep);
                }
                *target = value.clone();
                Ok(())
            }
            Operation::Move { from, path } => {
                if from.contains(&path) {
                    return Err(OperationFault::IntoItself);
                }
                let value = remove(root, &from).ok_or(OperationFault::Nowhere("from"))?;
                add(root, &path, value)
            }
            Operation::Copy { from, path } => {
                let value = from.target(root).ok_or(OperationFault::Nowhere("from"))?;
                let chars = chars(root).saturating_add(chars(value));
                if chars > envelope::WORKING_CHARS {
                    return Err(OperationFault::TooLarge(chars));
                }
                let value = value.clone();
                add(root, &path, value)
            }
            Operation::Test { path, value } => {
                let target = path.target(root).ok_or(OperationFault::Nowhere("path"))?;
                if equal(target, value) { Ok(()) } else { Err(OperationFault::Different) }
            }
        }
    }
}

fn add(root: &mut Value, path: &JsonPointer, value: Value) -> Result<(), OperationFault> {
    let too_deep = nests_too_deep(path, &value);
    let nowhere = OperationFault::Nowhere("path");
    match path.parent_mut(root) {
        Some((Value::Object(_) | Value::Array(_), _)) if too_deep => return Err(OperationFault::TooDeep),
        Some((Value::Object(members), name)) => {
            members.insert(name.to_owned(), value);
        }
        Some((Value::Array(items), "-")) => items.push(value),
        Some((Value::Array(items), token)) => {
            let at = index(token).filter(|at| *at <= items.len()).ok_or(nowhere)?;
            items.insert(at, value);
        }
        _ => return Err(nowhere),
    }
    Ok(())
}

/// Takes a value out; what comes after it keeps its order.
fn remove(root: &mut Value, path: &JsonPointer) -> Option<Value> {
    match path.parent_mut(root)? {
        (Value::Object(members), name) => members.shift_remove(name),
        (Value::Array(items), token) => {
            index(token).filter(|at| *at < items.len()).map(|at| items.remove(at))
        }
        _ => None,
    }
}

/// Whether the value would make the document too deep there. No request could carry such a document, and every walk
/// over it would go down without an end in sight.
fn nests_too_deep(path: &JsonPointer, value: &Value) -> bool {
    path.depth() + depth(value) > envelope::MAX_DEPTH
}

fn depth(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
        Value::Object(members) => 1 + members.values().map(depth).max().unwrap_or(0),
        _ => 0,
    }
}

/// How many chars a value's compact JSON has, without making it.
fn chars(value: &Value) -> usize {
    struct Chars(usize);
    impl io::Write for Chars {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 += bytes.iter().filter(|byte| (**byte as i8) >= -0x40).count();
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut count = Chars(0);
    match serde_json::to_writer(&mut count, value) {
        Ok(()) => count.0,
        Err(_) => usize::MAX,
    }
}
