//! The file tools that a language model is given: what they are called, what they take, what they answer.
//!
//! Everything that gives these tools to a model takes them from here, so that a model meets the same five wherever it
//! works. This module knows neither a client nor the service: a host reads a call ([`ToolCall::read`]), runs it with
//! what it has, and answers with the shapes of [`results`](MemoryFile) or with a [`ToolFailure`]. Whose memory it is, the
//! host knows; a model is never asked.

mod arguments;
mod content;
mod failure;
mod results;

pub use arguments::{
    Arguments, ListFilesCall, LoadFileCall, PatchFileCall, RecallCall, ToolCall, WriteFileCall, whole_number,
};
pub use content::{FILE_SCHEMA_ID, FILE_SCHEMA_VERSION, MARKDOWN, file_envelope, shown, text_content};
pub use failure::ToolFailure;
pub use results::{MemoryFile, RecalledEvent};

use serde::Serialize;
use serde_json::{Value, json};

/// One of the five file tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileTool {
    /// Finds events.
    Recall,
    /// Lists files.
    ListFiles,
    /// Shows a file.
    LoadFile,
    /// Changes parts of a file.
    PatchFile,
    /// Creates or replaces a file.
    WriteFile,
}

/// What a model is told of a tool.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ToolDefinition {
    /// Its name.
    pub name: &'static str,
    /// What it does.
    pub description: &'static str,
    /// What it takes: a JSON Schema of an object.
    pub parameters: Value,
}

/// The five tools.
pub fn definitions() -> Vec<ToolDefinition> {
    FileTool::ALL.into_iter().map(FileTool::definition).collect()
}

impl FileTool {
    /// All of them, in the order in which they are shown.
    pub const ALL: [Self; 5] =
        [Self::Recall, Self::ListFiles, Self::LoadFile, Self::PatchFile, Self::WriteFile];

    /// The tool of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|tool| tool.name() == name)
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Recall => "memory_recall",
            Self::ListFiles => "memory_list_files",
            Self::LoadFile => "memory_load_file",
            Self::PatchFile => "memory_patch_file",
            Self::WriteFile => "memory_write_file",
        }
    }

    /// Whether it leaves everything as it is.
    pub fn only_reads(self) -> bool {
        match self {
            Self::Recall | Self::ListFiles | Self::LoadFile => true,
            Self::PatchFile | Self::WriteFile => false,
        }
    }

    /// What a model is told of it.
    pub fn definition(self) -> ToolDefinition {
        ToolDefinition { name: self.name(), description: self.description(), parameters: self.parameters() }
    }

    /// What it does, for a model.
    pub fn description(self) -> &'static str {
        match self {
            Self::Recall => "Search earlier events and return the best matching digests.",
            Self::ListFiles => "List memory files, optionally only those whose path starts with a prefix.",
            Self::LoadFile => "Return the full text of one memory file.",
            Self::PatchFile => {
                "Change parts of a memory file by exact text replacement. All edits succeed or none does."
            }
            Self::WriteFile => "Create a memory file or replace its whole text.",
        }
    }

    /// What it takes: a JSON Schema of an object.
    pub fn parameters(self) -> Value {
        match self {
            Self::Recall => json!({
                "type": "object", "additionalProperties": false, "required": ["query"],
                "properties": {
                    "query": {"type": "string", "minLength": 1, "maxLength": 2000,
                        "description": "What to look for, in plain words."},
                    "top_k": {"type": "integer", "minimum": 1, "maximum": 20, "default": 8},
                },
            }),
            Self::ListFiles => json!({
                "type": "object", "additionalProperties": false,
                "properties": {
                    "prefix": {"type": ["string", "null"], "maxLength": 1024,
                        "description": "For example projects/"},
                    "limit": {"type": "integer", "minimum": 1, "maximum": 200, "default": 100},
                },
            }),
            Self::LoadFile => json!({
                "type": "object", "additionalProperties": false, "required": ["path"],
                "properties": {
                    "path": {"type": "string", "minLength": 1, "maxLength": 1024,
                        "description": "For example profile.md"},
                },
            }),
            Self::PatchFile => json!({
                "type": "object", "additionalProperties": false, "required": ["path", "edits"],
                "properties": {
                    "path": {"type": "string", "minLength": 1, "maxLength": 1024},
                    "edits": {"type": "array", "minItems": 1, "maxItems": 100, "items": {
                        "type": "object", "additionalProperties": false,
                        "required": ["old_text", "new_text"],
                        "properties": {
                            "old_text": {"type": "string", "minLength": 1,
                                "description": "Text that is in the file now, exactly."},
                            "new_text": {"type": "string",
                                "description": "What replaces it; empty deletes."},
                            "occurrence": {"type": ["integer", "null"], "minimum": 1,
                                "description":
                                    "Which match, counted from 1; needed only if there are several."},
                        },
                    }},
                    "reason": {"type": "string", "maxLength": 256},
                },
            }),
            Self::WriteFile => json!({
                "type": "object", "additionalProperties": false, "required": ["path", "content"],
                "properties": {
                    "path": {"type": "string", "minLength": 1, "maxLength": 1024},
                    "content": {"type": "string",
                        "description": "The complete new text, usually Markdown."},
                    "reason": {"type": "string", "maxLength": 256},
                },
            }),
        }
    }
}

#[cfg(test)]
mod tests;
