//! Changes of parts of a file.

use serde::Serialize;
use serde_json::Value;
use serde_with::skip_serializing_none;

/// An operation of JSON Patch (RFC 6902). Paths are pointers into the whole envelope: content begins with `/content`.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "op", rename_all = "lowercase")]
pub enum PatchOp {
    /// Adds a member or an item.
    Add {
        /// Where.
        path: String,
        /// What.
        value: Value,
    },
    /// Removes a member or an item.
    Remove {
        /// Where.
        path: String,
    },
    /// Replaces a member or an item.
    Replace {
        /// Where.
        path: String,
        /// With what.
        value: Value,
    },
    /// Moves a member or an item.
    Move {
        /// From where.
        from: String,
        /// To where.
        path: String,
    },
    /// Copies a member or an item.
    Copy {
        /// From where.
        from: String,
        /// To where.
        path: String,
    },
    /// Fails the whole change unless this stands there.
    Test {
        /// Where.
        path: String,
        /// What.
        value: Value,
    },
}

impl PatchOp {
    /// Adds a member or an item.
    pub fn add(path: impl Into<String>, value: impl Into<Value>) -> Self {
        Self::Add { path: path.into(), value: value.into() }
    }

    /// Removes a member or an item.
    pub fn remove(path: impl Into<String>) -> Self {
        Self::Remove { path: path.into() }
    }

    /// Replaces a member or an item.
    pub fn replace(path: impl Into<String>, value: impl Into<Value>) -> Self {
        Self::Replace { path: path.into(), value: value.into() }
    }

    /// Moves a member or an item.
    pub fn r#move(from: impl Into<String>, path: impl Into<String>) -> Self {
        Self::Move { from: from.into(), path: path.into() }
    }

    /// Copies a member or an item.
    pub fn copy(from: impl Into<String>, path: impl Into<String>) -> Self {
        Self::Copy { from: from.into(), path: path.into() }
    }

    /// Fails the whole change unless this stands there.
    pub fn test(path: impl Into<String>, value: impl Into<Value>) -> Self {
        Self::Test { path: path.into(), value: value.into() }
    }
}

/// A replacement in `content.text`.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TextEdit {
    /// Text that is there now, exactly.
    pub old_text: String,
    /// What replaces it; empty deletes.
    pub new_text: String,
    /// Which match, counted from 1; needed where there are several.
    pub occurrence: Option<u32>,
}

impl TextEdit {
    /// Replaces the only match.
    pub fn new(old_text: impl Into<String>, new_text: impl Into<String>) -> Self {
        Self { old_text: old_text.into(), new_text: new_text.into(), occurrence: None }
    }

    /// Replaces this match, counted from 1.
    pub fn at(self, occurrence: u32) -> Self {
        Self { occurrence: Some(occurrence), ..self }
    }
}

/// A change of parts of a file: operations first, then edits, all of them or none.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct PatchRequest {
    /// Operations on the whole envelope.
    pub ops: Option<Vec<PatchOp>>,
    /// Replacements in `content.text`, one after the other.
    pub edits: Option<Vec<TextEdit>>,
    /// Why, for the audit trail.
    pub reason: Option<String>,
    /// What it rests on: any JSON, kept in the audit trail as it is.
    pub evidence: Option<Value>,
}

impl PatchRequest {
    /// A change by operations.
    pub fn ops(ops: impl IntoIterator<Item = PatchOp>) -> Self {
        Self { ops: Some(ops.into_iter().collect()), ..Self::default() }
    }

    /// A change by edits.
    pub fn edits(edits: impl IntoIterator<Item = TextEdit>) -> Self {
        Self { edits: Some(edits.into_iter().collect()), ..Self::default() }
    }

    /// The same with a reason for the audit trail.
    pub fn because(self, reason: impl Into<String>) -> Self {
        Self { reason: Some(reason.into()), ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn operations_are_written_as_the_rfc_has_them() {
        let ops = [
            PatchOp::add("/content/a", Value::Null),
            PatchOp::remove("/content/b"),
            PatchOp::replace("/content/c", 1),
            PatchOp::r#move("/content/d", "/content/e"),
            PatchOp::copy("/content/f", "/content/g"),
            PatchOp::test("/content/h", "x"),
        ];
        let expected = json!([
            {"op": "add", "path": "/content/a", "value": null},
            {"op": "remove", "path": "/content/b"},
            {"op": "replace", "path": "/content/c", "value": 1},
            {"op": "move", "from": "/content/d", "path": "/content/e"},
            {"op": "copy", "from": "/content/f", "path": "/content/g"},
            {"op": "test", "path": "/content/h", "value": "x"},
        ]);
        assert_eq!(serde_json::to_value(&ops).unwrap(), expected);
    }

    #[test]
    fn what_is_not_said_is_left_out() {
        let request = PatchRequest::edits([TextEdit::new("a", ""), TextEdit::new("b", "c").at(2)]);
        let expected = json!({"edits": [
            {"old_text": "a", "new_text": ""},
            {"old_text": "b", "new_text": "c", "occurrence": 2},
        ]});
        assert_eq!(serde_json::to_value(&request).unwrap(), expected);
    }
}
