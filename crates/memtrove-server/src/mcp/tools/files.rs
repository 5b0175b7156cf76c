//! The file tools of the contract, and deleting a file.

use super::{Outcome, cut, day, fitting, indented, internal, read, share_of};
use crate::mcp::McpServer;
use crate::mcp::failure::told;
use memtrove_core::files::{Code, FilePath, FileRole, ScopedCaller};
use memtrove_core::{Clock, Error, SystemClock};
use memtrove_service::files::{Headers, ListFiles};
use memtrove_wire::files::{Envelope, EventDigest};
use memtrove_wire::tools::{
    FileTool, ListFilesCall, MARKDOWN, PatchFileCall, RecallCall, ToolCall, ToolFailure, WriteFileCall,
    file_envelope, shown, text_content,
};
use serde_json::{Map, Value, json};
use std::fmt::Write as _;

/// How often a change is tried again that others were faster than.
const ATTEMPTS: usize = 4;
const MAX_PATH_CHARS: usize = 1024;
/// So much is shown of all keywords of an event: its digest says what happened.
const KEYWORDS_CHARS: usize = 100;

/// Calls one of the five.
pub(super) async fn call(server: &McpServer, tool: FileTool, arguments: &Value) -> Outcome {
    let call = ToolCall::of(tool, arguments)?;
    let caller = server.files_caller().map_err(told)?;
    let role = if tool.only_reads() { FileRole::Reader } else { FileRole::Writer };
    server.services.files.admit(&caller, role).await.map_err(told)?;
    match call {
        ToolCall::Recall(call) => recall(server, &caller, call).await,
        ToolCall::ListFiles(call) => list(server, &caller, call).await,
        ToolCall::LoadFile(call) => {
            let path = FilePath::parse(&call.path).map_err(told)?;
            let (_, document) = load(server, &caller, &path).await?;
            Ok(shown(&document.content).1)
        }
        ToolCall::PatchFile(call) => patch(server, &caller, call).await,
        ToolCall::WriteFile(call) => write(server, &caller, call).await,
    }
}

/// Deletes a file, whatever its version.
pub(super) async fn delete(server: &McpServer, arguments: &Value) -> Outcome {
    let arguments = read(arguments, &["path"], r#"memory_delete_file takes {"path": "old/plan.md"}."#)?;
    let path = arguments.text("path", MAX_PATH_CHARS)?;
    let (files, caller) = (&server.services.files, server.files_caller().map_err(told)?);
    files.admit(&caller, FileRole::Writer).await.map_err(told)?;
    let headers = Headers { if_match: Some("*".to_owned()), idempotency_key: None };
    let body = json!({"path": path, "reason": "memory_delete_file"});
    let deleted = files.delete(&caller, body, headers).await.map_err(told)?;
    Ok(format!("deleted {}", deleted.path.as_str()))
}

async fn recall(server: &McpServer, caller: &ScopedCaller, call: RecallCall) -> Outcome {
    let query =
        Map::from_iter([("query".to_owned(), json!(call.query)), ("top_k".to_owned(), json!(call.top_k))]);
    let found = server.services.files.search_events(caller, &query).await.map_err(told)?;
    if found.is_empty() {
        return Ok("no event has any of these words; events are written with memory_log_event".to_owned());
    }
    let chars = share_of(found.len());
    let mut lines = Vec::with_capacity(found.len());
    for event in found {
        let event: EventDigest = serde_json::from_str(&event).map_err(internal)?;
        let digest = cut(&indented(&event.digest), chars);
        let mut line = format!("{} {digest}", day(event.timestamp.as_deref().unwrap_or_default()));
        if !event.keywords.is_empty() {
            // Writing to a `String` cannot fail.
            let _ = write!(line, " ({})", cut(&indented(&event.keywords.join(", ")), KEYWORDS_CHARS));
        }
        lines.push(line);
    }
    Ok(lines.join("\n"))
}

async fn list(server: &McpServer, caller: &ScopedCaller, call: ListFilesCall) -> Outcome {
    let request = ListFiles { prefix: call.prefix, limit: Some(call.limit.into()), after: None };
    let list = server.services.files.list(caller, request).await.map_err(told)?;
    if list.files.is_empty() {
        return Ok("no files".to_owned());
    }
    let mut lines: Vec<String> = list
        .files
        .iter()
        .map(|file| format!("{} {}", file.path, day(&file.last_modified.to_string())))
        .collect();
    if fitting(&mut lines) > 0 || list.next_after.is_some() {
        lines.push("(there are more: give a longer prefix)".to_owned());
    }
    Ok(lines.join("\n"))
}

async fn write(server: &McpServer, caller: &ScopedCaller, call: WriteFileCall) -> Outcome {
    let path = FilePath::parse(&call.path).map_err(told)?;
    let reason = call.reason.unwrap_or_else(|| FileTool::WriteFile.name().to_owned());
    let mut attempts = 0;
    loop {
        let (if_match, document, done) = match load(server, caller, &path).await {
            Ok((etag, mut document)) => {
                let content_type = document.content.get("content_type").and_then(Value::as_str);
                document.content = text_content(content_type.unwrap_or(MARKDOWN), &call.content);
                (etag, document, "replaced")
            }
            Err(failure) if failure.code == Code::DocumentNotFound.as_str() => {
                let content = text_content(MARKDOWN, &call.content);
                ("*".to_owned(), file_envelope(SystemClock.new_id().to_string(), content), "created")
            }
            Err(failure) => return Err(failure),
        };
        let body = json!({"document": document, "reason": reason});
        let headers = Headers { if_match: Some(if_match), idempotency_key: None };
        attempts += 1;
        match server.services.files.put(caller, path.clone(), body, headers).await {
            Ok(_) => return Ok(format!("{done} {}", path.as_str())),
            Err(error) if attempts < ATTEMPTS && is_stale(&error) => {}
            Err(error) => return Err(told(error)),
        }
    }
}

async fn patch(server: &McpServer, caller: &ScopedCaller, call: PatchFileCall) -> Outcome {
    let path = FilePath::parse(&call.path).map_err(told)?;
    let reason = call.reason.unwrap_or_else(|| FileTool::PatchFile.name().to_owned());
    let body = json!({"edits": call.edits, "reason": reason});
    let mut attempts = 0;
    loop {
        let (etag, _) = load(server, caller, &path).await?;
        let headers = Headers { if_match: Some(etag), idempotency_key: None };
        attempts += 1;
        match server.services.files.patch(caller, path.clone(), body.clone(), headers).await {
            Ok(_) => return Ok(format!("patched {}", path.as_str())),
            Err(error) if attempts < ATTEMPTS && is_stale(&error) => {}
            Err(error) => return Err(told(error)),
        }
    }
}

async fn load(
    server: &McpServer,
    caller: &ScopedCaller,
    path: &FilePath,
) -> Result<(String, Envelope), ToolFailure> {
    let file = server.services.files.get(caller, path.clone()).await.map_err(told)?;
    Ok((file.etag.to_string(), serde_json::from_str(&file.document).map_err(internal)?))
}

/// Whether somebody else was faster.
fn is_stale(error: &Error) -> bool {
    matches!(error, Error::Refused(refusal) if refusal.code == Code::EtagMismatch)
}
