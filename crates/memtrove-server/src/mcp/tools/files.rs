//! The file tools of the contract, and deleting a file.

use super::{Outcome, cut, day, fitting, indented, internal, read, share_of};
use crate::mcp::McpServer;
use crate::mcp::failure::to_failure;
use memtrove_core::files::edits::TextEdit;
use memtrove_core::files::{Code, FilePath, FilePrecondition, Patch, Reasons, SearchEvents};
use memtrove_core::{Clock, Error, SystemClock};
use memtrove_service::files::{
    Admitted, DeleteFile, ListFiles, PatchFile, PutFile, Reader, Role, SeesFiles, Writer,
};
use memtrove_service::files_metrics::counted;
use memtrove_wire::files::{Envelope, EventDigest};
use memtrove_wire::tools::{
    FileTool, ListFilesCall, MARKDOWN, PatchFileCall, RecallCall, ToolCall, ToolFailure, WriteFileCall,
    file_envelope, shown, text_content,
};
use serde_json::Value;
use std::fmt::Write as _;

/// How often a change is tried again that others were faster than.
const ATTEMPTS: usize = 4;
const MAX_PATH_CHARS: usize = 1024;
/// So much is shown of all keywords of an event: its digest says what happened.
const KEYWORDS_CHARS: usize = 100;

/// Calls one of the five.
pub(super) async fn call(server: &McpServer, tool: FileTool, arguments: &Value) -> Outcome {
    let call = ToolCall::of(tool, arguments)?;
    match call {
        ToolCall::Recall(call) => recall(server, &admitted(server).await?, call).await,
        ToolCall::ListFiles(call) => list(server, &admitted(server).await?, call).await,
        ToolCall::LoadFile(call) => {
            let reader: Admitted<Reader> = admitted(server).await?;
            let path = FilePath::parse(&call.path).map_err(to_failure)?;
            let (_, document) = load(server, &reader, &path).await?;
            Ok(shown(&document.content).1)
        }
        ToolCall::PatchFile(call) => patch(server, &admitted(server).await?, call).await,
        ToolCall::WriteFile(call) => write(server, &admitted(server).await?, call).await,
    }
}

async fn admitted<R: Role>(server: &McpServer) -> Result<Admitted<R>, ToolFailure> {
    let caller = server.files_caller().map_err(to_failure)?;
    server.services.files.admit(caller).await.map_err(to_failure)
}

/// Deletes a file, whatever its version.
pub(super) async fn delete(server: &McpServer, arguments: &Value) -> Outcome {
    let arguments = read(arguments, &["path"], r#"memory_delete_file takes {"path": "old/plan.md"}."#)?;
    let path = arguments.text("path", MAX_PATH_CHARS)?;
    let writer = admitted(server).await?;
    let request = DeleteFile {
        path: counted("delete", FilePath::parse(&path)).map_err(to_failure)?,
        precondition: FilePrecondition::Star,
        reasons: reasons("memory_delete_file".to_owned())?,
        key: None,
    };
    let deleted = server.services.files.delete(&writer, request).await.map_err(to_failure)?;
    Ok(format!("deleted {}", deleted.path.as_str()))
}

fn reasons(reason: String) -> Result<Reasons, ToolFailure> {
    Reasons::new(Some(reason), None).map_err(to_failure)
}

async fn recall(server: &McpServer, reader: &Admitted<Reader>, call: RecallCall) -> Outcome {
    let (query, top_k) = (Some(call.query), Some(call.top_k.into()));
    let query = SearchEvents { query, top_k, ..SearchEvents::default() };
    let found = server.services.files.search_events(reader, query).await.map_err(to_failure)?;
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

async fn list(server: &McpServer, reader: &Admitted<Reader>, call: ListFilesCall) -> Outcome {
    let request = ListFiles { prefix: call.prefix, limit: Some(call.limit.into()), after: None };
    let list = server.services.files.list(reader, request).await.map_err(to_failure)?;
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

async fn write(server: &McpServer, writer: &Admitted<Writer>, call: WriteFileCall) -> Outcome {
    let path = FilePath::parse(&call.path).map_err(to_failure)?;
    let reasons = reasons(call.reason.unwrap_or_else(|| FileTool::WriteFile.name().to_owned()))?;
    let mut attempts = 0;
    loop {
        let (precondition, document, done) = match load(server, writer, &path).await {
            Ok((etag, mut document)) => {
                let content_type = document.content.get("content_type").and_then(Value::as_str);
                document.content = text_content(content_type.unwrap_or(MARKDOWN), &call.content);
                (FilePrecondition::Matches(etag), document, "replaced")
            }
            Err(failure) if failure.code == Code::DocumentNotFound.as_str() => {
                let content = text_content(MARKDOWN, &call.content);
                (FilePrecondition::Star, file_envelope(SystemClock.new_id().to_string(), content), "created")
            }
            Err(failure) => return Err(failure),
        };
        let Value::Object(envelope) = serde_json::to_value(document).map_err(internal)? else {
            return Err(internal("an envelope is an object"));
        };
        let request =
            PutFile { path: path.clone(), precondition, envelope, reasons: reasons.clone(), key: None };
        attempts += 1;
        match server.services.files.put(writer, request).await {
            Ok(_) => return Ok(format!("{done} {}", path.as_str())),
            Err(error) if attempts < ATTEMPTS && is_stale(&error) => {}
            Err(error) => return Err(to_failure(error)),
        }
    }
}

async fn patch(server: &McpServer, writer: &Admitted<Writer>, call: PatchFileCall) -> Outcome {
    let path = FilePath::parse(&call.path).map_err(to_failure)?;
    let reasons = reasons(call.reason.unwrap_or_else(|| FileTool::PatchFile.name().to_owned()))?;
    let edits = call.edits.into_iter().map(|edit| TextEdit {
        old_text: edit.old_text,
        new_text: edit.new_text,
        occurrence: edit.occurrence,
    });
    let patch = Patch::of_edits(edits.collect()).map_err(to_failure)?;
    let mut attempts = 0;
    loop {
        let (etag, _) = load(server, writer, &path).await?;
        let request = PatchFile {
            path: path.clone(),
            precondition: FilePrecondition::Matches(etag),
            patch: patch.clone(),
            reasons: reasons.clone(),
            key: None,
        };
        attempts += 1;
        match server.services.files.patch(writer, request).await {
            Ok(_) => return Ok(format!("patched {}", path.as_str())),
            Err(error) if attempts < ATTEMPTS && is_stale(&error) => {}
            Err(error) => return Err(to_failure(error)),
        }
    }
}

async fn load(
    server: &McpServer,
    admitted: &Admitted<impl SeesFiles>,
    path: &FilePath,
) -> Result<(String, Envelope), ToolFailure> {
    let file = server.services.files.get(admitted, path.clone()).await.map_err(to_failure)?;
    Ok((file.etag.to_string(), serde_json::from_str(&file.document).map_err(internal)?))
}

/// Whether somebody else was faster.
fn is_stale(error: &Error) -> bool {
    error.code == Code::EtagMismatch
}
