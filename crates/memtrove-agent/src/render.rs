//! The same tools in the shape that each vendor's API wants.

use memtrove_wire::tools::{FileTool, ToolDefinition};
use serde_json::{Map, Value, json};

/// Whose shape tools are rendered in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ToolFormat {
    /// `tools` of OpenAI's chat completions.
    OpenAiChat {
        /// Whether the model is held to the schema. Then every parameter is required, and those that may be missing may
        /// be null.
        strict: bool,
    },
    /// `tools` of OpenAI's Responses.
    OpenAiResponses {
        /// As for chat completions.
        strict: bool,
    },
    /// `tools` of Anthropic's messages.
    Anthropic,
    /// `tools` of MCP's `tools/list`.
    Mcp,
}

impl ToolFormat {
    /// Renders tools, ready to be put into a request.
    pub fn render(self, tools: &[ToolDefinition]) -> Vec<Value> {
        tools.iter().map(|tool| self.render_one(tool)).collect()
    }

    fn render_one(self, tool: &ToolDefinition) -> Value {
        let ToolDefinition { name, description, parameters } = tool;
        match self {
            Self::OpenAiChat { strict: false } => json!({"type": "function",
                "function": {"name": name, "description": description, "parameters": parameters}}),
            Self::OpenAiChat { strict: true } => json!({"type": "function",
                "function": {"name": name, "description": description, "parameters": strict(parameters), "strict": true}}),
            // Here strict is what is not said, so it is said.
            Self::OpenAiResponses { strict: false } => json!({"type": "function",
                "name": name, "description": description, "parameters": parameters, "strict": false}),
            Self::OpenAiResponses { strict: true } => json!({"type": "function",
                "name": name, "description": description, "parameters": strict(parameters), "strict": true}),
            Self::Anthropic => json!({"name": name, "description": description, "input_schema": parameters}),
            Self::Mcp => {
                let reads = FileTool::named(name).is_some_and(FileTool::only_reads);
                json!({"name": name, "description": description, "inputSchema": parameters,
                    "annotations": {"readOnlyHint": reads, "openWorldHint": false}})
            }
        }
    }
}

/// What strict schemas cannot say. The dispatcher checks it anyway, and clamps numbers.
const NOT_IN_STRICT_SCHEMAS: [&str; 3] = ["minLength", "maxLength", "default"];

/// A schema in which every property is required and those that were optional may be null.
fn strict(schema: &Value) -> Value {
    let Value::Object(schema) = schema else { return schema.clone() };
    let mut strict: Map<String, Value> = schema
        .iter()
        .filter(|(keyword, _)| !NOT_IN_STRICT_SCHEMAS.contains(&keyword.as_str()))
        .map(|(keyword, value)| (keyword.clone(), value.clone()))
        .collect();
    if let Some(items) = schema.get("items") {
        strict.insert("items".to_owned(), self::strict(items));
    }
    if let Some(Value::Object(properties)) = schema.get("properties") {
        let required = |name: &str| {
            schema
                .get("required")
                .and_then(Value::as_array)
                .is_some_and(|names| names.iter().any(|n| n == name))
        };
        let strict_properties: Map<String, Value> = properties
            .iter()
            .map(|(name, property)| {
                let property = self::strict(property);
                (name.clone(), if required(name) { property } else { nullable(property) })
            })
            .collect();
        strict.insert("required".to_owned(), properties.keys().cloned().collect());
        strict.insert("properties".to_owned(), Value::Object(strict_properties));
    }
    Value::Object(strict)
}

/// The same schema, or null.
fn nullable(mut schema: Value) -> Value {
    if let Some(Value::String(one)) = schema.get("type") {
        schema["type"] = json!([one, "null"]);
    }
    schema
}

#[cfg(test)]
mod tests;
