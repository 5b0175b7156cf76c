//! `memory_log_event`.

use super::{Outcome, read};
use crate::mcp::McpServer;
use crate::mcp::failure::to_failure;
use memtrove_core::{Clock, SystemClock, Timestamp};
use memtrove_service::files::WriteEvent;
use memtrove_wire::tools::{Arguments, ToolFailure};
use serde_json::{Value, json};

const MAX_DIGEST_CHARS: usize = 10_000;
/// What a tag of a memory may have, so that the memory that mirrors an event is found by all of its keywords.
pub(in crate::mcp) const MAX_KEYWORD_CHARS: usize = 128;
/// Where such events come from, as searches of other clients can tell.
const SOURCE: &str = "mcp";

/// Notes an event.
pub(super) async fn log(server: &McpServer, arguments: &Value) -> Outcome {
    let takes = r#"memory_log_event takes {"digest": "what happened", "keywords": ["word"], "happened_at": "2026-01-31T09:00:00Z"}; keywords (of at most 128 characters each) and happened_at are optional."#;
    let arguments = read(arguments, &["digest", "keywords", "happened_at"], takes)?;
    let id = SystemClock.new_id();
    let (tenant, user) = server.bound.scope();
    let event = json!({
        "event_id": id,
        "tenant_id": tenant,
        "user_id": user,
        "source_type": SOURCE,
        "timestamp": happened_at(&arguments)?.map(|at| at.to_string()),
        "digest": arguments.text("digest", MAX_DIGEST_CHARS)?,
        "keywords": keywords(&arguments)?,
        "project_ids": server.bound.project().into_iter().collect::<Vec<_>>(),
    });
    let (files, caller) = (&server.services.files, server.files_caller().map_err(to_failure)?);
    let admitted = files.admit(caller).await.map_err(to_failure)?;
    files.write_event(&admitted, WriteEvent { event: Some(event), key: None }).await.map_err(to_failure)?;
    Ok(format!("logged [{id}]"))
}

/// When it happened. A day is one, and so is a time of day without an offset, which is UTC.
pub(super) fn happened_at(arguments: &Arguments) -> Result<Option<Timestamp>, ToolFailure> {
    let Some(text) = arguments.optional_text("happened_at", 64)? else { return Ok(None) };
    let text = text.trim();
    let meant = [text.to_owned(), format!("{text}Z"), format!("{text}T00:00:00Z")];
    match meant.iter().find_map(|instant| Timestamp::parse(instant)) {
        Some(instant) => Ok(Some(instant)),
        None => Err(arguments.wrong(format!("'happened_at' is '{text}', which is no day and no instant"))),
    }
}

/// The keywords, none of them too long.
fn keywords(arguments: &Arguments) -> Result<Option<&Value>, ToolFailure> {
    let keywords = arguments.get("keywords");
    if !keywords.is_none_or(|keywords| keywords.is_null() || keywords.is_array()) {
        return Err(arguments.wrong("'keywords' is no list of words".to_owned()));
    }
    for keyword in keywords.and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str) {
        let chars = keyword.chars().count();
        if chars > MAX_KEYWORD_CHARS {
            let message = format!(
                "a keyword has {chars} characters; at most {MAX_KEYWORD_CHARS} are taken, the rest belongs into the digest"
            );
            return Err(arguments.wrong(message));
        }
    }
    Ok(keywords)
}
