//! The descriptions of the tools for models. A model pays for every word in every session, and chooses tools by them.

use super::tools::events::MAX_KEYWORD_CHARS;
use memtrove_wire::tools::FileTool;
use rmcp::model::{JsonObject, Tool, ToolAnnotations};
use serde_json::{Value, json};
use std::sync::LazyLock;

/// What a tool does to what is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Effect {
    /// Nothing.
    Reads,
    /// Adds to it; the same again adds once more.
    Adds,
    /// Adds to it; the same again adds nothing.
    AddsOnce,
    /// Changes or removes something; the same again fails or changes more.
    Changes,
    /// Changes or removes something; the same again changes nothing.
    ChangesOnce,
}

impl Effect {
    fn annotations(self, title: &str) -> ToolAnnotations {
        let of = ToolAnnotations::with_title(title).open_world(false);
        match self {
            Self::Reads => of.read_only(true),
            Self::Adds => of.read_only(false).destructive(false).idempotent(false),
            Self::AddsOnce => of.read_only(false).destructive(false).idempotent(true),
            Self::Changes => of.read_only(false).destructive(true).idempotent(false),
            Self::ChangesOnce => of.read_only(false).destructive(true).idempotent(true),
        }
    }
}

/// What the tools of one session say that is not the same for all.
#[derive(Debug, Clone, Copy)]
pub(super) struct SessionTerms {
    /// Whether a project is bound, which some of the tools then know of.
    pub in_project: bool,
    /// The least score of a memory that is found where a model names none.
    pub min_score: f64,
}

/// The tools, in the order in which they are shown: what is used most comes first.
pub(super) fn tools(terms: SessionTerms) -> Vec<Tool> {
    DEFINITIONS.iter().map(|definition| definition.tool(terms)).collect()
}

/// The names of all tools.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    DEFINITIONS.iter().map(|definition| definition.name)
}

/// What a tool is.
struct Definition {
    name: &'static str,
    title: &'static str,
    description: &'static str,
    effect: Effect,
    parameters: fn(SessionTerms) -> Value,
    /// Whether a project's memory can be meant instead of the user's own.
    for_project: bool,
}

impl Definition {
    fn tool(&self, terms: SessionTerms) -> Tool {
        let mut schema = (self.parameters)(terms);
        if self.for_project && terms.in_project {
            schema["properties"]["for_project"] = json!({"type": "boolean", "default": false,
                "description": "True: for everybody who works on this project, not for this user only."});
        }
        let schema: JsonObject = match schema {
            Value::Object(schema) => schema,
            _ => JsonObject::new(),
        };
        Tool::new(self.name, self.description, schema).with_annotations(self.effect.annotations(self.title))
    }
}

static DEFINITIONS: LazyLock<Vec<Definition>> = LazyLock::new(|| {
    vec![
        Definition {
            name: "recall",
            title: "Recall memories",
            description: "Search what was remembered about the user, their preferences, decisions and projects, facts and \
                      events included, by meaning and words; not in files. Use it before answering anything that earlier \
                      sessions may bear on.",
            effect: Effect::Reads,
            parameters: |terms| {
                object(
                    &["query"],
                    json!({
                        "query": {"type": "string", "minLength": 1, "maxLength": 2000,
                            "description": "A question or a topic, in plain words."},
                        "limit": {"type": "integer", "minimum": 1, "maximum": 20, "default": 5,
                            "description": "Of long memories the passage that matters is shown; 1 shows the best one whole."},
                        "min_score": {"type": "number", "minimum": 0, "maximum": 1, "default": terms.min_score,
                            "description": "0 shows whatever comes nearest. A high score is no proof: read what it says."},
                    }),
                )
            },
            for_project: false,
        },
        Definition {
            name: "remember",
            title: "Remember something",
            description: "Remember one thing for later sessions: a preference, a decision, who somebody is, how something is \
                      done. The same words again are not stored twice.",
            effect: Effect::AddsOnce,
            parameters: |_| {
                object(
                    &["text"],
                    json!({
                        "text": {"type": "string", "minLength": 1, "maxLength": 8000,
                            "description": "One self-contained sentence that names who and what, for example: Alice wants \
                                            tests before code."},
                        "happened_at": {"type": "string", "format": "date-time",
                            "description": "When what it tells of was, if that is not now."},
                    }),
                )
            },
            for_project: true,
        },
        Definition {
            name: "forget",
            title: "Forget a memory",
            description: "Forget a memory, fact or event for good, by the id that recall, query_facts or memory_log_event \
                      showed, or by its exact text.",
            effect: Effect::ChangesOnce,
            parameters: |_| {
                object(
                    &[],
                    json!({
                        "id": {"type": "string"},
                        "text": {"type": "string", "maxLength": 8000,
                            "description": "Instead of the id: all of its text."},
                    }),
                )
            },
            for_project: false,
        },
        Definition {
            name: "remember_fact",
            title: "State a fact",
            description: "Remember a fact with exactly one subject, relation and value, to be looked up by query_facts: Alice · \
                      works_at · Acme. The same fact again is not stored twice.",
            effect: Effect::AddsOnce,
            parameters: |_| {
                object(
                    &["subject", "predicate", "object"],
                    json!({
                        "subject": {"type": "string", "minLength": 1, "maxLength": 1024},
                        "predicate": {"type": "string", "minLength": 1, "maxLength": 1024,
                            "description": "snake_case, for example works_at"},
                        "object": {"type": "string", "minLength": 1, "maxLength": 1024},
                        "confidence": {"type": "number", "minimum": 0, "maximum": 1, "default": 1},
                    }),
                )
            },
            for_project: true,
        },
        Definition {
            name: "query_facts",
            title: "Look up facts",
            description: "List the facts with exactly this subject, predicate or object; what is left out does not matter.",
            effect: Effect::Reads,
            parameters: |_| {
                object(
                    &[],
                    json!({
                        "subject": {"type": "string", "maxLength": 1024},
                        "predicate": {"type": "string", "maxLength": 1024},
                        "object": {"type": "string", "maxLength": 1024},
                        "limit": {"type": "integer", "minimum": 1, "maximum": 100, "default": 20},
                    }),
                )
            },
            for_project: false,
        },
        Definition {
            name: FileTool::ListFiles.name(),
            title: "List memory files",
            description: FileTool::ListFiles.description(),
            effect: Effect::Reads,
            parameters: |_| FileTool::ListFiles.parameters(),
            for_project: false,
        },
        Definition {
            name: FileTool::LoadFile.name(),
            title: "Load a memory file",
            description: FileTool::LoadFile.description(),
            effect: Effect::Reads,
            parameters: |_| FileTool::LoadFile.parameters(),
            for_project: false,
        },
        Definition {
            name: FileTool::WriteFile.name(),
            title: "Write a memory file",
            description: FileTool::WriteFile.description(),
            effect: Effect::ChangesOnce,
            parameters: |_| FileTool::WriteFile.parameters(),
            for_project: false,
        },
        Definition {
            name: FileTool::PatchFile.name(),
            title: "Edit a memory file",
            description: FileTool::PatchFile.description(),
            effect: Effect::Changes,
            parameters: |_| FileTool::PatchFile.parameters(),
            for_project: false,
        },
        Definition {
            name: "memory_delete_file",
            title: "Delete a memory file",
            description: "Delete a memory file that is not needed any more.",
            effect: Effect::ChangesOnce,
            parameters: |_| {
                object(&["path"], json!({"path": {"type": "string", "minLength": 1, "maxLength": 1024}}))
            },
            for_project: false,
        },
        Definition {
            name: "memory_log_event",
            title: "Log an event",
            description: "Note that something happened, in a sentence or two, so that memory_recall finds it later: a release, \
                      a meeting, a decision and its reason.",
            effect: Effect::Adds,
            parameters: |_| {
                object(
                    &["digest"],
                    json!({
                        "digest": {"type": "string", "minLength": 1, "maxLength": 10_000,
                            "description": "What happened, with the names it should be found by."},
                        "keywords": {"type": "array", "maxItems": 50,
                            "items": {"type": "string", "maxLength": MAX_KEYWORD_CHARS},
                            "description": "Further words to find it by."},
                        "happened_at": {"type": "string", "format": "date-time", "description": "Now, unless given."},
                    }),
                )
            },
            for_project: false,
        },
        Definition {
            name: FileTool::Recall.name(),
            title: "Recall events",
            description: FileTool::Recall.description(),
            effect: Effect::Reads,
            parameters: |_| FileTool::Recall.parameters(),
            for_project: false,
        },
        Definition {
            name: "search_conversations",
            title: "Search conversations",
            description: "Search what was said in the user's own earlier conversations; returns the best passage of each.",
            effect: Effect::Reads,
            parameters: |_| {
                object(
                    &["query"],
                    json!({
                        "query": {"type": "string", "minLength": 1, "maxLength": 1000},
                        "limit": {"type": "integer", "minimum": 1, "maximum": 20, "default": 5},
                    }),
                )
            },
            for_project: false,
        },
        Definition {
            name: "append_message",
            title: "Record a message",
            description: "Record a message of a conversation, so that search_conversations finds it later. Only when you are \
                      asked to keep a transcript.",
            effect: Effect::Adds,
            parameters: |_| {
                object(
                    &["role", "text"],
                    json!({
                        "role": {"type": "string", "enum": ["user", "assistant"]},
                        "text": {"type": "string", "minLength": 1},
                        "conversation_id": {"type": "string", "format": "uuid",
                            "description": "This session's conversation, or a new one, unless given."},
                    }),
                )
            },
            for_project: false,
        },
    ]
});

/// The schema of an object with exactly these members.
fn object(required: &[&str], properties: Value) -> Value {
    let mut schema = json!({"type": "object", "additionalProperties": false, "properties": properties});
    if !required.is_empty() {
        schema["required"] = json!(required);
    }
    schema
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_tool_says_what_it_does_to_what_is_stored_and_takes_nothing_else() {
        for tool in tools(SessionTerms { in_project: true, min_score: 0.7 }) {
            let annotations = tool.annotations.as_ref();
            assert!(annotations.is_some_and(|of| of.read_only_hint.is_some()), "{}", tool.name);
            assert!(annotations.is_some_and(|of| of.open_world_hint == Some(false)), "{}", tool.name);
            assert_eq!(tool.input_schema.get("additionalProperties"), Some(&json!(false)), "{}", tool.name);
        }
    }

    #[test]
    fn no_tool_takes_whose_memory_is_meant() {
        for tool in tools(SessionTerms { in_project: true, min_score: 0.7 }) {
            let properties = tool.input_schema.get("properties").and_then(Value::as_object);
            for name in properties.into_iter().flatten().map(|(name, _)| name) {
                assert!(!super::super::tools::names_a_scope(name), "{}: {name}", tool.name);
            }
        }
    }
}
