//! What a model sends, read with patience: numbers out of range are clamped, an edit may stand beside the path, and
//! whatever cannot be read is answered with what the tool takes.

use super::{FileTool, ToolFailure};
use crate::files::TextEdit;
use serde_json::{Map, Value};

const MAX_QUERY_CHARS: usize = 2000;
const MAX_PATH_CHARS: usize = 1024;
const MAX_REASON_CHARS: usize = 256;
const MAX_EDITS: usize = 100;

/// A call that could be read.
#[derive(Debug, Clone)]
pub enum ToolCall {
    /// `memory_recall`
    Recall(RecallCall),
    /// `memory_list_files`
    ListFiles(ListFilesCall),
    /// `memory_load_file`
    LoadFile(LoadFileCall),
    /// `memory_patch_file`
    PatchFile(PatchFileCall),
    /// `memory_write_file`
    WriteFile(WriteFileCall),
}

/// What to look for among the events.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecallCall {
    /// In plain words.
    pub query: String,
    /// The most events, 1 to 20.
    pub top_k: u32,
}

/// Which files to list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListFilesCall {
    /// What their paths begin with.
    pub prefix: Option<String>,
    /// The most files, 1 to 200.
    pub limit: u32,
}

/// Which file to show.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoadFileCall {
    /// Its path.
    pub path: String,
}

/// What to change in a file.
#[derive(Debug, Clone)]
pub struct PatchFileCall {
    /// Its path.
    pub path: String,
    /// The replacements, 1 to 100.
    pub edits: Vec<TextEdit>,
    /// Why, for the audit trail.
    pub reason: Option<String>,
}

/// What to write into a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WriteFileCall {
    /// Its path.
    pub path: String,
    /// The whole text.
    pub content: String,
    /// Why, for the audit trail.
    pub reason: Option<String>,
}

impl ToolCall {
    /// Reads a call by the tool's name. Arguments are an object, or the text of one, as some models send it; nothing is
    /// an empty object.
    pub fn read(name: &str, arguments: &Value) -> Result<Self, ToolFailure> {
        let Some(tool) = FileTool::named(name) else {
            return Err(ToolFailure::unknown_tool(name, &FileTool::ALL.map(FileTool::name)));
        };
        Self::of(tool, arguments)
    }

    /// The file that it is about, where it is about one.
    pub fn path(&self) -> Option<&str> {
        match self {
            Self::Recall(_) | Self::ListFiles(_) => None,
            Self::LoadFile(call) => Some(&call.path),
            Self::PatchFile(call) => Some(&call.path),
            Self::WriteFile(call) => Some(&call.path),
        }
    }

    /// Reads a call of this tool.
    pub fn of(tool: FileTool, arguments: &Value) -> Result<Self, ToolFailure> {
        let takes = taken(tool);
        let arguments = Arguments::read(arguments, takes)?;
        Ok(match tool {
            FileTool::Recall => {
                arguments.only(&["query", "top_k", "topK"])?;
                Self::Recall(RecallCall {
                    query: arguments.text("query", MAX_QUERY_CHARS)?,
                    top_k: arguments.number(&["top_k", "topK"], 1, 20)?.unwrap_or(8),
                })
            }
            FileTool::ListFiles => {
                arguments.only(&["prefix", "limit"])?;
                Self::ListFiles(ListFilesCall {
                    prefix: arguments.optional_text("prefix", MAX_PATH_CHARS)?,
                    limit: arguments.number(&["limit"], 1, 200)?.unwrap_or(100),
                })
            }
            FileTool::LoadFile => {
                arguments.only(&["path"])?;
                Self::LoadFile(LoadFileCall { path: arguments.text("path", MAX_PATH_CHARS)? })
            }
            FileTool::PatchFile => {
                arguments.only(&["path", "edits", "reason", "old_text", "new_text", "occurrence"])?;
                Self::PatchFile(PatchFileCall {
                    path: arguments.text("path", MAX_PATH_CHARS)?,
                    edits: edits(&arguments, takes)?,
                    reason: arguments.note("reason", MAX_REASON_CHARS)?,
                })
            }
            FileTool::WriteFile => {
                arguments.only(&["path", "content", "reason"])?;
                Self::WriteFile(WriteFileCall {
                    path: arguments.text("path", MAX_PATH_CHARS)?,
                    content: arguments.any_text("content")?,
                    reason: arguments.note("reason", MAX_REASON_CHARS)?,
                })
            }
        })
    }
}

/// What a tool takes, in a line that a model can copy from.
fn taken(tool: FileTool) -> &'static str {
    match tool {
        FileTool::Recall => {
            r#"memory_recall takes {"query": "plain words", "top_k": 8}; top_k (1 to 20) is optional."#
        }
        FileTool::ListFiles => {
            r#"memory_list_files takes {"prefix": "projects/", "limit": 100}; both are optional."#
        }
        FileTool::LoadFile => r#"memory_load_file takes {"path": "profile.md"}."#,
        FileTool::PatchFile => {
            r#"memory_patch_file takes {"path": "profile.md", "edits": [{"old_text": "as it is", "new_text": "as it should be", "occurrence": 1}], "reason": "why"}; occurrence and reason are optional."#
        }
        FileTool::WriteFile => {
            r#"memory_write_file takes {"path": "profile.md", "content": "the whole text", "reason": "why"}; reason is optional."#
        }
    }
}

/// The list of edits, or the one that stands beside the path.
fn edits(arguments: &Arguments, takes: &'static str) -> Result<Vec<TextEdit>, ToolFailure> {
    let wrong = |message: String| ToolFailure::arguments(message, takes);
    let flat = ["old_text", "new_text", "occurrence"].iter().any(|name| arguments.has(name));
    match (arguments.get("edits"), flat) {
        (None, true) => Ok(vec![edit(arguments)?]),
        (Some(_), true) => Err(wrong("there is an edit both in 'edits' and beside it".to_owned())),
        (None, false) => Err(wrong("'edits' is missing".to_owned())),
        (Some(Value::Array(items)), false) => {
            if items.is_empty() {
                return Err(wrong("'edits' is empty".to_owned()));
            }
            if items.len() > MAX_EDITS {
                let message = format!("there are {} edits; at most {MAX_EDITS} are taken", items.len());
                return Err(ToolFailure::answered("PATCH_TOO_LARGE", &message, &Map::new()));
            }
            items
                .iter()
                .enumerate()
                .map(|(index, item)| {
                    let item = Arguments::read(item, takes)?;
                    item.only(&["old_text", "new_text", "occurrence"]).and_then(|()| edit(&item)).map_err(
                        |failure| ToolFailure {
                            message: format!("edit {index}: {}", failure.message),
                            ..failure
                        },
                    )
                })
                .collect()
        }
        (Some(_), false) => Err(wrong("'edits' is not a list".to_owned())),
    }
}

fn edit(arguments: &Arguments) -> Result<TextEdit, ToolFailure> {
    let old_text = arguments.any_text("old_text")?;
    if old_text.is_empty() {
        return Err(arguments.wrong("'old_text' is empty".to_owned()));
    }
    Ok(TextEdit {
        old_text,
        new_text: arguments.any_text("new_text")?,
        occurrence: arguments.number(&["occurrence"], 1, u32::MAX)?.map(i64::from),
    })
}

/// A whole number, which some models write as text, or with a fraction of nothing. One that is too large for the type is
/// the largest.
pub fn whole_number(value: &Value) -> Option<i64> {
    let number: f64 = match value {
        Value::Number(number) => number.as_f64()?,
        Value::String(text) => text.trim().parse().ok()?,
        _ => return None,
    };
    (number.is_finite() && number.fract() == 0.0).then_some(number as i64)
}

/// The arguments of a call, by name. Also for tools beside these five.
#[derive(Debug, Clone)]
pub struct Arguments {
    members: Map<String, Value>,
    takes: String,
}

impl Arguments {
    /// Reads an object, or the text of one; nothing is an empty object. `takes` says what the tool takes, for whoever
    /// sent something else.
    pub fn read(arguments: &Value, takes: impl Into<String>) -> Result<Self, ToolFailure> {
        let takes = takes.into();
        let members = match arguments {
            Value::Object(members) => members.clone(),
            Value::Null => Map::new(),
            Value::String(text) if text.trim().is_empty() => Map::new(),
            Value::String(text) => match serde_json::from_str(text) {
                Ok(Value::Object(members)) => members,
                Ok(_) => return Err(ToolFailure::arguments("the arguments are not a JSON object", takes)),
                Err(error) => {
                    let message = format!("the arguments are not JSON: {error}");
                    return Err(ToolFailure::arguments(message, takes));
                }
            },
            _ => return Err(ToolFailure::arguments("the arguments are not a JSON object", takes)),
        };
        Ok(Self { members, takes })
    }

    /// The same arguments, of something that takes these: for tools with several commands.
    pub fn taking(self, takes: impl Into<String>) -> Self {
        Self { takes: takes.into(), ..self }
    }

    /// Refuses arguments of other names, so that a model that misspells one, or wants to choose whose memory it uses,
    /// hears of it.
    pub fn only(&self, names: &[&str]) -> Result<(), ToolFailure> {
        match self.members.keys().find(|name| !names.contains(&name.as_str())) {
            Some(name) => Err(self.wrong(format!("there is no argument '{name}'"))),
            None => Ok(()),
        }
    }

    /// An argument that is there and is not null.
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.members.get(name).filter(|value| !value.is_null())
    }

    /// Whether an argument is there and is not null.
    pub fn has(&self, name: &str) -> bool {
        self.get(name).is_some()
    }

    /// A required text that says something, of at most so many characters.
    pub fn text(&self, name: &str, max_chars: usize) -> Result<String, ToolFailure> {
        let text = self.any_text(name)?;
        if text.trim().is_empty() {
            return Err(self.wrong(format!("'{name}' is blank")));
        }
        self.short_enough(name, text, max_chars)
    }

    /// A text that may be missing, or be blank, which is the same.
    pub fn optional_text(&self, name: &str, max_chars: usize) -> Result<Option<String>, ToolFailure> {
        match self.get(name) {
            None => Ok(None),
            Some(_) => {
                let text = self.any_text(name)?;
                if text.trim().is_empty() {
                    return Ok(None);
                }
                self.short_enough(name, text, max_chars).map(Some)
            }
        }
    }

    /// A required text, even an empty one.
    pub fn any_text(&self, name: &str) -> Result<String, ToolFailure> {
        match self.get(name) {
            Some(Value::String(text)) => Ok(text.clone()),
            Some(_) => Err(self.wrong(format!("'{name}' is not a string"))),
            None => Err(self.wrong(format!("'{name}' is missing"))),
        }
    }

    /// A remark that may be missing. One that is too long is cut: to send a whole file again for it would cost more than
    /// its end is worth.
    pub fn note(&self, name: &str, max_chars: usize) -> Result<Option<String>, ToolFailure> {
        let note = self.optional_text(name, usize::MAX)?;
        Ok(note.map(|note| note.chars().take(max_chars).collect()))
    }

    /// A whole number under any of these names, the first that is there; brought into its range.
    pub fn number(&self, names: &[&str], least: u32, most: u32) -> Result<Option<u32>, ToolFailure> {
        let Some((name, value)) = names.iter().find_map(|name| self.get(name).map(|value| (name, value)))
        else {
            return Ok(None);
        };
        match whole_number(value) {
            Some(number) => Ok(Some(number.clamp(least.into(), most.into()) as u32)),
            None => Err(self.wrong(format!("'{name}' is not a whole number"))),
        }
    }

    /// A refusal whose hint says what the tool takes.
    pub fn wrong(&self, message: String) -> ToolFailure {
        ToolFailure::arguments(message, self.takes.clone())
    }

    fn short_enough(&self, name: &str, text: String, max_chars: usize) -> Result<String, ToolFailure> {
        let chars = text.chars().count();
        if chars > max_chars {
            return Err(self.wrong(format!("'{name}' has {chars} characters; at most {max_chars} are taken")));
        }
        Ok(text)
    }
}
