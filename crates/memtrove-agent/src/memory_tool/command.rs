//! What a model sends to the memory tool.

use super::path::MemoryPath;
use super::{Refusal, Stop};
use memtrove_wire::tools::{Arguments, ToolFailure, whole_number};
use serde_json::Value;

/// A command that could be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Command {
    View { place: MemoryPath, range: Option<(i64, i64)> },
    Create { place: MemoryPath, file_text: String },
    StrReplace { place: MemoryPath, old_str: String, new_str: String },
    Insert { place: MemoryPath, line: i64, text: String },
    Delete { place: MemoryPath },
    Rename { old: MemoryPath, new: MemoryPath },
}

/// What each command takes, for a model that sent something else.
const COMMANDS: [(&str, &str); 6] = [
    ("view", r#"view takes {"path", "view_range": [first, last]}; view_range is optional."#),
    ("create", r#"create takes {"path", "file_text"}."#),
    ("str_replace", r#"str_replace takes {"path", "old_str", "new_str"}."#),
    ("insert", r#"insert takes {"path", "insert_line", "insert_text"}."#),
    ("delete", r#"delete takes {"path"}."#),
    ("rename", r#"rename takes {"old_path", "new_path"}."#),
];

impl Command {
    pub(super) fn read(input: &Value) -> Result<Self, Stop> {
        let names = COMMANDS.map(|(name, _)| name).join(", ");
        let input = Arguments::read(input, format!("Give a command: {names}.")).map_err(refusal)?;
        let command = input.any_text("command").map_err(refusal)?;
        let Some((_, takes)) = COMMANDS.iter().find(|(name, _)| *name == command) else {
            let text = format!("Error: Unknown command: {command}. Valid commands are: {names}");
            return Err(Refusal(text).into());
        };
        let input = input.taking(*takes);
        let text = |name: &str| input.any_text(name).map_err(refusal);
        let place = |name: &str| MemoryPath::read(&text(name)?).map_err(Stop::from);
        Ok(match command.as_str() {
            "view" => Self::View { place: place("path")?, range: range(&input)? },
            "create" => Self::Create { place: place("path")?, file_text: text("file_text")? },
            "str_replace" => {
                let old_str = text("old_str")?;
                if old_str.is_empty() {
                    return Err(refusal(input.wrong("'old_str' is empty".to_owned())));
                }
                // Without a new text, the old one is deleted.
                let new_str = if input.has("new_str") { text("new_str")? } else { String::new() };
                Self::StrReplace { place: place("path")?, old_str, new_str }
            }
            "insert" => {
                let line = input
                    .get("insert_line")
                    .and_then(whole_number)
                    .ok_or_else(|| refusal(input.wrong("'insert_line' is not a whole number".to_owned())))?;
                Self::Insert { place: place("path")?, line, text: text("insert_text")? }
            }
            "delete" => Self::Delete { place: place("path")? },
            _ => Self::Rename { old: place("old_path")?, new: place("new_path")? },
        })
    }
}

fn range(input: &Arguments) -> Result<Option<(i64, i64)>, Stop> {
    let Some(range) = input.get("view_range") else { return Ok(None) };
    let ends = match range.as_array().map(Vec::as_slice) {
        Some([first, last]) => whole_number(first).zip(whole_number(last)),
        _ => None,
    };
    match ends {
        Some(ends) => Ok(Some(ends)),
        None => Err(refusal(input.wrong("'view_range' is not a list of two line numbers".to_owned()))),
    }
}

fn refusal(failure: ToolFailure) -> Stop {
    Refusal(format!("Error: {}. {}", failure.message, failure.hint)).into()
}
