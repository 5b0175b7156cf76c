//! `search_conversations`, `append_message`, on the user's own conversations: those that others share can hold anything,
//! unasked.

use super::{Outcome, cut, day, indented, internal, read};
use crate::mcp::McpServer;
use crate::mcp::failure::to_failure;
use memtrove_core::conversations::{Channel, Entry};
use memtrove_core::{Clock, ConversationId, Details, Error, Json, Resource, SystemClock, parse_uuid};
use memtrove_service::conversations::{AppendRequest, SearchHit, SearchRequest};
use memtrove_wire::tools::ToolFailure;
use serde_json::{Value, json};

const MAX_QUERY_CHARS: usize = 1000;
const MAX_TEXT_CHARS: usize = 1_000_000;
const SHOWN_CHARS: usize = 400;
const TITLE_CHARS: usize = 100;
const DEFAULT_LIMIT: u32 = 5;

/// What to do where a conversation is not the user's own.
const NO_CONVERSATION: &str = "Leave out 'conversation_id' to record in a conversation of the user's own, or give one that \
                               append_message or search_conversations showed.";

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
    let caller = server.conversations_caller().map_err(to_failure)?;
    let found = server.services.conversations.search_own(&caller, request).await.map_err(to_failure)?;
    let (_, user) = server.bound.scope();
    let mut lines: Vec<String> = found.data.iter().map(|hit| line(hit, user)).collect();
    if lines.is_empty() {
        lines.push("nothing found in earlier conversations".to_owned());
    }
    if found.degraded {
        lines.push(
            "(not everything could be searched in time; ask again in a moment for the rest)".to_owned(),
        );
    }
    Ok(lines.join("\n"))
}

fn line(hit: &SearchHit, user: &str) -> String {
    let title = cut(hit.conversation_title.as_deref().unwrap_or("untitled"), TITLE_CHARS);
    let (speaker, text) = hit.entry.as_ref().and_then(said).unwrap_or_default();
    let speaker = if speaker.is_empty() { "said" } else { speaker };
    // Whoever the user lets write into a conversation is not the user.
    let author = hit.entry.as_ref().and_then(|entry| entry.user_id.as_ref());
    let by = author.filter(|author| author.as_str() != user);
    let by = by.map(|author| format!(" ({})", author.as_str())).unwrap_or_default();
    let on = hit.entry.as_ref().map(|entry| entry.created_at.to_string()).unwrap_or_default();
    let passage = indented(&passage(&text, hit.highlights.as_deref()));
    format!(
        "{} · {speaker}{by}: {passage} [conversation {}, {}]",
        indented(&title),
        hit.conversation_id,
        day(&on)
    )
}

/// Who said what, where an entry is one message.
fn said(entry: &Entry) -> Option<(&'static str, String)> {
    let items = entry.content.value().ok()?;
    let [message] = items.as_array()?.as_slice() else { return None };
    let speaker = match message.get("role")?.as_str()? {
        "AI" => "assistant",
        _ => "user",
    };
    Some((speaker, message.get("text")?.as_str()?.to_owned()))
}

/// All of a short text; of a longer one what matched, or its beginning where it was found by what it means.
fn passage(text: &str, matched: Option<&str>) -> String {
    let chars = text.chars().count();
    if (1..=SHOWN_CHARS).contains(&chars) {
        return text.to_owned();
    }
    match matched.filter(|passage| text.is_empty() || passage.contains("**")) {
        Some(passage) if text.is_empty() => cut(passage, SHOWN_CHARS),
        Some(passage) => {
            let plain = passage.replace("**", "");
            let before = if text.trim_start().starts_with(&plain) { "" } else { "…" };
            let after = if text.trim_end().ends_with(&plain) { "" } else { "…" };
            format!("{before}{}{after} (of {chars} characters)", cut(passage, SHOWN_CHARS))
        }
        None => cut(text, SHOWN_CHARS),
    }
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
    let caller = server.conversations_caller().map_err(to_failure)?;
    match server.services.conversations.append_own(&caller, id, request).await {
        Ok(_) => Ok(format!("recorded [conversation {id}]")),
        Err(error @ Error { details: Details::Resource(Resource::Conversation, _), .. }) => {
            Err(ToolFailure { hint: NO_CONVERSATION.to_owned(), ..to_failure(error) })
        }
        Err(error) => Err(to_failure(error)),
    }
}
