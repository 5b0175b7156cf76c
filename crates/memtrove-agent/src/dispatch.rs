//! Running what a model calls. A failure that a model can act on is an answer; only a memory that cannot be reached, or
//! cannot be understood, is an error of the call.

use crate::{AgentMemory, PatchFileOptions, WriteFileOptions};
use memtrove_client::{Error, FilePath, Result, Scope, TextEdit};
use memtrove_wire::tools::{self, RecalledEvent, ToolCall, ToolDefinition, ToolFailure};
use serde::Serialize;
use serde_json::{Map, Value, json};

/// The five file tools, for [`ToolFormat::render`](crate::ToolFormat::render).
pub fn tools() -> Vec<ToolDefinition> {
    tools::definitions()
}

/// What a tool answers.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolOutput {
    /// The answer, or `{"error": {"code", "message", "hint", …}}`. The memory tool answers with a text.
    pub value: Value,
    /// Whether it is an error.
    pub is_error: bool,
}

impl ToolOutput {
    /// The answer as the text that a model reads: compact JSON, or the text itself.
    pub fn text(&self) -> String {
        match &self.value {
            Value::String(text) => text.clone(),
            value => value.to_string(),
        }
    }

    /// A message of OpenAI's chat completions.
    pub fn openai_message(&self, tool_call_id: &str) -> Value {
        json!({"role": "tool", "tool_call_id": tool_call_id, "content": self.text()})
    }

    /// An input item of OpenAI's Responses.
    pub fn openai_item(&self, call_id: &str) -> Value {
        json!({"type": "function_call_output", "call_id": call_id, "output": self.text()})
    }

    /// A content block of Anthropic's messages.
    pub fn anthropic_block(&self, tool_use_id: &str) -> Value {
        json!({"type": "tool_result", "tool_use_id": tool_use_id, "content": self.text(),
            "is_error": self.is_error})
    }

    /// A result of MCP's `tools/call`.
    pub fn mcp_result(&self) -> Value {
        json!({"content": [{"type": "text", "text": self.text()}], "isError": self.is_error})
    }

    pub(crate) fn said(text: impl Into<String>) -> Self {
        Self { value: Value::String(text.into()), is_error: false }
    }

    pub(crate) fn refused(text: impl Into<String>) -> Self {
        Self { value: Value::String(text.into()), is_error: true }
    }
}

impl From<ToolFailure> for ToolOutput {
    fn from(failure: ToolFailure) -> Self {
        Self { value: failure.to_json(), is_error: true }
    }
}

impl AgentMemory {
    /// Runs the tool that a model calls, for the user that the host says. `arguments` are an object, or the text of one.
    ///
    /// Whatever the model can do something about comes back as an output, with a hint; so does every refusal of the
    /// service. An error means that the memory was not reached, or that its answer could not be read.
    pub async fn call_tool(&self, scope: &Scope, name: &str, arguments: &Value) -> Result<ToolOutput> {
        let call = match ToolCall::read(name, arguments) {
            Ok(call) => call,
            Err(failure) => return Ok(failure.into()),
        };
        // Looked at here, because whatever else cannot be sent is the host's business.
        if let Some(Err(error)) = call.path().map(FilePath::new) {
            return Ok(ToolFailure::answered("INVALID_PATH", &error.to_string(), &Map::new()).into());
        }
        match self.run(scope, call).await {
            Ok(value) => Ok(ToolOutput { value, is_error: false }),
            Err(error) => Ok(to_failure(error)?.into()),
        }
    }

    async fn run(&self, scope: &Scope, call: ToolCall) -> Result<Value> {
        match call {
            ToolCall::Recall(call) => {
                let events = self.recall(scope, &call.query, call.top_k).await?;
                shape(events.into_iter().map(RecalledEvent::from).collect::<Vec<_>>())
            }
            ToolCall::ListFiles(call) => {
                shape(self.list_files(scope, call.prefix.as_deref(), call.limit).await?)
            }
            ToolCall::LoadFile(call) => shape(self.load_file(scope, &call.path).await?),
            ToolCall::PatchFile(call) => {
                let edits = call.edits.into_iter().map(|edit| TextEdit {
                    old_text: edit.old_text,
                    new_text: edit.new_text,
                    occurrence: edit.occurrence.and_then(|occurrence| occurrence.try_into().ok()),
                });
                let options = PatchFileOptions { reason: call.reason, ..PatchFileOptions::default() };
                shape(self.patch_file(scope, &call.path, edits.collect(), options).await?)
            }
            ToolCall::WriteFile(call) => {
                let options = WriteFileOptions { reason: call.reason, ..WriteFileOptions::default() };
                shape(self.write_file(scope, &call.path, &call.content, options).await?)
            }
        }
    }
}

/// What a model is told of an error, if it can be told.
pub(crate) fn to_failure(error: Error) -> Result<ToolFailure> {
    match error {
        Error::Api(error) => Ok(ToolFailure::answered(&error.code, &error.message, &error.details)),
        error => Err(error),
    }
}

/// Whether a change may have been made although it failed: nothing was answered, or nothing that refuses it.
pub(crate) fn may_have_happened(error: &Error) -> bool {
    match error {
        Error::Api(refusal) => !refusal.status.is_client_error(),
        Error::InvalidInput(_) | Error::Update(_) => false,
        _ => true,
    }
}

fn shape(result: impl Serialize) -> Result<Value> {
    serde_json::to_value(result).map_err(|error| Error::invalid(format!("the answer is no JSON: {error}")))
}
