//! `search_conversations`, `append_message`.

use super::{Outcome, cut, day, indented, internal, read};
use crate::mcp::McpServer;
use crate::mcp::failure::told;
use memloom_core::conversations::Channel;
use memloom_core::{Clock, ConversationId, Json, SystemClock, parse_uuid};
use memloom_service::conversations::{AppendRequest, SearchHit, SearchRequest};
use serde_json::{Value, json};

const MAX_QUERY_CHARS: usize = 1000;
const MAX_TEXT_CHARS: usize = 1_000_000;
const SHOWN_CHARS: usize = 400;
const DEFAULT_LIMIT: u32 = 5;

/// Finds what was said.
pub(super) async fn search(server: &McpServer, arguments: &Value) -> Outcome {
    let takes =
        r#"search_conversations takes {"query": "plain words", "limit": 5}; limit (1 to 20) is optional."#;
    let arguments = read(arguments, &["query", "limit"], takes)?;
    let request = SearchRequest {
        query: Some(arguments.text("query", MAX_QUERY_CHARS)?),
        limit: Some(arguments.number(&["limit"], 1, 20)?.unwrap_or(DEFAULT_LIMIT).into()),
        group_by_conversation: true,
        include_entry: true,
        ..SearchRequest::default()
    };
    let caller = server.conversations_caller().map_err(told)?;
    let found = server.services.conversations.search(&caller, request).await.map_err(told)?;
    if found.data.is_empty() {
        return Ok("nothing found in earlier conversations".to_owned());
    }
    Ok(found.data.iter().map(passage).collect::<Vec<_>>().join("\n"))
}

fn passage(hit: &SearchHit) -> String {
    let title = hit.conversation_title.as_deref().unwrap_or("untitled");
    let said = hit.entry.as_ref().and_then(|entry| {
        let items = entry.content.value().ok()?;
        let role = match items.pointer("/0/role")?.as_str()? {
            "AI" => "assistant",
            _ => "user",
        };
        Some((role, items.pointer("/0/text")?.as_str()?.to_owned()))
    });
    let on = hit.entry.as_ref().map(|entry| entry.created_at.to_string()).unwrap_or_default();
    let (role, text) = match (said, &hit.highlights) {
        (Some((role, text)), _) => (role, text),
        (None, Some(text)) => ("said", text.clone()),
        (None, None) => ("said", String::new()),
    };
    let text = indented(&cut(&text, SHOWN_CHARS));
    format!("{title} · {role}: {text} [conversation {}, {}]", hit.conversation_id, day(&on))
}

/// Records a message.
pub(super) async fn append(server: &McpServer, arguments: &Value) -> Outcome {
    let takes = r#"append_message takes {"role": "user" or "assistant", "text": "what was said", "conversation_id": "…"}; conversation_id is optional."#;
    let arguments = read(arguments, &["role", "text", "conversation_id"], takes)?;
    let role = match arguments.text("role", 20)?.to_ascii_lowercase().as_str() {
        "user" => "USER",
        "assistant" | "ai" => "AI",
        _ => return Err(arguments.wrong("'role' is neither user nor assistant".to_owned())),
    };
    let id = match arguments.optional_text("conversation_id", 100)? {
        Some(text) => match parse_uuid(text.trim()) {
            Some(id) => ConversationId(id),
            None => return Err(arguments.wrong("'conversation_id' is no UUID".to_owned())),
        },
        None => server.bound.session().unwrap_or_else(|| ConversationId(SystemClock.new_id())),
    };
    let content = json!([{"role": role, "text": arguments.text("text", MAX_TEXT_CHARS)?}]);
    let request = AppendRequest {
        channel: Some(Channel::History),
        content_type: Some("history".to_owned()),
        content: Some(Json::of(&content).map_err(internal)?),
        ..AppendRequest::default()
    };
    let caller = server.conversations_caller().map_err(told)?;
    server.services.conversations.append(&caller, id, request, None).await.map_err(told)?;
    Ok(format!("recorded [conversation {id}]"))
}
