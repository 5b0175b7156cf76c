//! What went wrong, as data that a model can act on: a code, what happened, and what to do now.

use super::FileTool;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::fmt;

/// The code of a call whose tool does not exist.
const UNKNOWN_TOOL: &str = "UNKNOWN_TOOL";
/// The code of a call whose arguments are not what the tool takes.
const INVALID_ARGUMENTS: &str = "INVALID_ARGUMENTS";

/// A failure that is told to the model.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolFailure {
    /// What kind: a code of the service, `UNKNOWN_TOOL` or `INVALID_ARGUMENTS`.
    pub code: String,
    /// What happened.
    pub message: String,
    /// What to do now.
    pub hint: String,
    /// What the service added, for example `match_count`; stands beside the code.
    pub details: BTreeMap<String, Value>,
}

impl ToolFailure {
    /// A failure that the service answered with, with the hint that fits its code.
    pub fn answered(code: &str, message: &str, details: &Map<String, Value>) -> Self {
        let details: BTreeMap<String, Value> =
            details.iter().map(|(name, value)| (name.clone(), as_number(value))).collect();
        Self { code: code.to_owned(), message: message.to_owned(), hint: hint(code, &details), details }
    }

    /// A call of a tool that does not exist; `existing` are those that do.
    pub fn unknown_tool(name: &str, existing: &[&str]) -> Self {
        Self::new(
            UNKNOWN_TOOL,
            format!("there is no tool '{name}'"),
            format!("Call one of: {}.", existing.join(", ")),
        )
    }

    /// A call with arguments that the tool does not take; the hint says what it takes.
    pub fn arguments(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::new(INVALID_ARGUMENTS, message, hint)
    }

    /// A failure with a hint of its own.
    pub fn new(code: &str, message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { code: code.to_owned(), message: message.into(), hint: hint.into(), details: BTreeMap::new() }
    }

    /// `{"error": {"code", "message", "hint", …}}`
    pub fn to_json(&self) -> Value {
        let mut error = Map::from_iter([
            ("code".to_owned(), json!(self.code)),
            ("message".to_owned(), json!(self.message)),
            ("hint".to_owned(), json!(self.hint)),
        ]);
        for (name, value) in &self.details {
            error.entry(name).or_insert_with(|| value.clone());
        }
        json!({ "error": error })
    }
}

impl fmt::Display for ToolFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}. {}", self.code, self.message, self.hint)
    }
}

/// Details of file errors are strings on the wire; a count is easier to use as a number.
fn as_number(value: &Value) -> Value {
    value.as_str().and_then(|text| text.parse::<u64>().ok()).map_or_else(|| value.clone(), Value::from)
}

/// What a model can do about an answer. Names the tools that help.
fn hint(code: &str, details: &BTreeMap<String, Value>) -> String {
    let (load, list, write) =
        (FileTool::LoadFile.name(), FileTool::ListFiles.name(), FileTool::WriteFile.name());
    let count = details.get("match_count").and_then(Value::as_u64);
    match code {
        "DOCUMENT_NOT_FOUND" => {
            format!("See which files exist with {list}, or create this one with {write}.")
        }
        "PATCH_MATCH_AMBIGUOUS" => match count {
            Some(count) => format!(
                "old_text is there {count} times: give occurrence (1 to {count}), or a longer old_text that is there once."
            ),
            None => "Give occurrence, or a longer old_text that is there once.".to_owned(),
        },
        "PATCH_OCCURRENCE_OUT_OF_RANGE" => match count {
            Some(count) => format!("Give an occurrence from 1 to {count}."),
            None => format!("Load the file again with {load} and count the matches."),
        },
        "PATCH_MATCH_NOT_FOUND" => format!(
            "Load the file again with {load} and copy old_text from it exactly; earlier edits of the same call count."
        ),
        "PATCH_TEXT_NOT_FOUND" => {
            format!("The file holds no text to edit. Look at it with {load}; replace it with {write}.")
        }
        "PATCH_TOO_LARGE" => "Send at most 100 edits in one call; the rest in further calls.".to_owned(),
        "INVALID_TEXT_PATCH" | "INVALID_PATCH" => {
            "Give at least one edit, each with a non-empty old_text and a new_text.".to_owned()
        }
        "ETAG_MISMATCH" => {
            format!("Somebody else changed the file meanwhile. Load it again with {load}, then repeat the change.")
        }
        "INVALID_PATH" => {
            "Use a relative path such as projects/plan.md: no leading or trailing '/', no '..', no empty part."
                .to_owned()
        }
        "INVALID_PATH_PREFIX" => "Use the beginning of a path, such as projects/, without '..'.".to_owned(),
        "DOCUMENT_SIZE_EXCEEDED" | "PAYLOAD_TOO_LARGE" => {
            "Make it shorter, or split it into several files.".to_owned()
        }
        "GOVERNED_PATH" | "FORBIDDEN" | "TENANT_FORBIDDEN" | "WRITE_NOT_ALLOWED" | "UNAUTHENTICATED" => {
            "This is not allowed here. Do not try again; tell the user.".to_owned()
        }
        // Nothing passes with time where there is no window.
        "QUOTA_EXCEEDED" if details.get("window_seconds").and_then(Value::as_u64) == Some(0) => {
            let what = details.get("resource").and_then(Value::as_str).unwrap_or("things");
            format!("Waiting does not help. Delete or merge {what} that are not needed any more, or tell the user.")
        }
        "QUOTA_EXCEEDED" => "Too much at once. Wait a little, then try again, with fewer calls.".to_owned(),
        "DEPENDENCY_UNAVAILABLE" | "HTTP_502" | "HTTP_503" | "HTTP_504" => {
            "The memory is not available right now. Try again later; go on without it meanwhile.".to_owned()
        }
        "UNHANDLED_ERROR" | "HTTP_500" => {
            "Something is wrong with the memory itself. Go on without it and tell the user.".to_owned()
        }
        _ => "Read the message, change the call accordingly, and do not repeat it as it is.".to_owned(),
    }
}
