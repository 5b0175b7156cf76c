//! `memory_log_event`.

use super::{Outcome, read};
use crate::mcp::McpServer;
use crate::mcp::failure::told;
use memloom_core::files::FileRole;
use memloom_core::{Clock, SystemClock};
use serde_json::{Value, json};

const MAX_DIGEST_CHARS: usize = 10_000;
/// Where such events come from, as searches of other clients can tell.
const SOURCE: &str = "mcp";

/// Notes an event.
pub(super) async fn log(server: &McpServer, arguments: &Value) -> Outcome {
    let takes = r#"memory_log_event takes {"digest": "what happened", "keywords": ["word"], "happened_at": "2026-01-31T09:00:00Z"}; keywords and happened_at are optional."#;
    let arguments = read(arguments, &["digest", "keywords", "happened_at"], takes)?;
    let id = SystemClock.new_id();
    let (tenant, user) = server.bound.scope();
    let event = json!({
        "event_id": id,
        "tenant_id": tenant,
        "user_id": user,
        "source_type": SOURCE,
        "timestamp": arguments.optional_text("happened_at", 64)?,
        "digest": arguments.text("digest", MAX_DIGEST_CHARS)?,
        "keywords": arguments.get("keywords"),
        "project_ids": server.bound.project().into_iter().collect::<Vec<_>>(),
    });
    let (files, caller) = (&server.services.files, server.files_caller().map_err(told)?);
    files.admit(&caller, FileRole::Writer).await.map_err(told)?;
    files.write_event(&caller, json!({"event": event}), None).await.map_err(told)?;
    Ok(format!("logged [{id}]"))
}
