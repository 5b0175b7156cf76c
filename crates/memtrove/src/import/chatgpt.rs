//! The data export of ChatGPT: `conversations.json`, in which every conversation is a tree of messages.

use super::record::{
    Conversation, FILES, LeftOut, Message, Record, Speaker, UNKNOWN_PARTS, Unplaced, list, placed, text, time,
};
use serde_json::{Map, Value, json};

/// Reads a conversation.
pub fn read(item: &Value, left_out: &mut LeftOut) -> Result<Vec<Record>, String> {
    let id = text(item, "conversation_id").or_else(|| text(item, "id")).ok_or("it has no conversation_id")?;
    let mapping = item.get("mapping").and_then(Value::as_object).ok_or("it has no mapping of messages")?;
    let mut messages = Vec::with_capacity(mapping.len());
    for (id, node) in mapping {
        messages.push(Unplaced {
            id: id.clone(),
            parent: text(node, "parent").map(str::to_owned),
            message: node.get("message").and_then(|said| message(id, said, left_out)),
        });
    }
    let mut about = Map::from_iter([("source".to_owned(), json!({"type": "chatgpt", "id": id}))]);
    for (name, as_name) in
        [("default_model_slug", "model"), ("gizmo_id", "gizmo"), ("is_archived", "archived")]
    {
        if let Some(value) = item.get(name).filter(|value| value.is_string() || **value == json!(true)) {
            about.insert(as_name.to_owned(), value.clone());
        }
    }
    Ok(vec![Record::Conversation(Conversation {
        source_id: id.to_owned(),
        title: text(item, "title").map(str::to_owned),
        created_at: time(item, "create_time"),
        about,
        messages: placed(messages, text(item, "current_node"), left_out),
    })])
}

/// What is kept of a message; nothing of those that only hold the tree together.
fn message(node: &str, said: &Value, left_out: &mut LeftOut) -> Option<Message> {
    let author = said.pointer("/author/role").and_then(Value::as_str).unwrap_or_default();
    let content = said.get("content")?;
    let mut parts = Parts::of(content, left_out);
    match (author, content.get("content_type").and_then(Value::as_str).unwrap_or_default()) {
        (_, "user_editable_context") => {
            left_out.note("custom instructions");
            return None;
        }
        ("system", _) | (_, "model_editable_context") => {
            if !parts.text.trim().is_empty() {
                left_out.note("system messages");
            }
            return None;
        }
        ("tool", _) => {
            let name = said.pointer("/author/name").and_then(Value::as_str).unwrap_or("tool");
            parts.tell_as_event(json!({"type": "tool_result", "name": name}), "output");
        }
        ("assistant", _) => {
            if let Some(tool) = text(said, "recipient").filter(|recipient| *recipient != "all") {
                parts.tell_as_event(json!({"type": "tool_call", "name": tool}), "input");
            }
        }
        _ => {}
    }
    for file in said.pointer("/metadata/attachments").and_then(Value::as_array).into_iter().flatten() {
        left_out.note(FILES);
        let kind = text(file, "mime_type").or_else(|| text(file, "mimeType"));
        let name = text(file, "name").or_else(|| text(file, "id"));
        parts.events.push(json!({"type": "file", "name": name, "contentType": kind}));
    }
    if parts.text.trim().is_empty() && parts.events.is_empty() {
        return None;
    }
    Some(Message {
        source_id: text(said, "id").unwrap_or(node).to_owned(),
        parent: None,
        current: false,
        at: time(said, "create_time"),
        role: if author == "user" { Speaker::User } else { Speaker::Ai },
        text: parts.text,
        events: parts.events,
    })
}

/// What a message consists of.
#[derive(Default)]
struct Parts {
    text: String,
    events: Vec<Value>,
}

impl Parts {
    fn of(content: &Value, left_out: &mut LeftOut) -> Self {
        let mut parts = Self::default();
        let kind = content.get("content_type").and_then(Value::as_str).unwrap_or("text");
        for part in list(content, "parts").filter(|part| !part.is_null()) {
            parts.part(part, left_out);
        }
        match kind {
            "thoughts" => {
                let thoughts: Vec<&str> = list(content, "thoughts")
                    .filter_map(|one| text(one, "content").or_else(|| text(one, "summary")))
                    .collect();
                if !thoughts.is_empty() {
                    parts.events.push(json!({"type": "thinking", "text": thoughts.join("\n\n")}));
                }
            }
            "reasoning_recap" => {
                if let Some(recap) = text(content, "content") {
                    parts.events.push(json!({"type": "thinking", "text": recap}));
                }
            }
            _ => {
                for name in ["text", "result"] {
                    parts.say(text(content, name).unwrap_or_default());
                }
                if kind == "tether_quote"
                    && let Some(url) = text(content, "url")
                {
                    parts.say(url);
                }
            }
        }
        if kind != "text" && parts.text.is_empty() && parts.events.is_empty() && !is_known(kind) {
            left_out.note("messages of a kind that is not known: their entries name it");
            parts.events.push(json!({"type": kind}));
        }
        parts
    }

    fn part(&mut self, part: &Value, left_out: &mut LeftOut) {
        if let Some(words) = part.as_str() {
            return self.say(words);
        }
        let kind = text(part, "content_type").unwrap_or("unknown");
        let (event, what) = match kind {
            "audio_transcription" => return self.say(text(part, "text").unwrap_or_default()),
            _ if kind.contains("image") => ("picture", FILES),
            _ if kind.contains("video") => ("video", FILES),
            _ if kind.contains("audio") => ("audio", FILES),
            other => (other, UNKNOWN_PARTS),
        };
        left_out.note(what);
        self.events.push(json!({"type": event, "name": text(part, "asset_pointer")}));
    }

    fn say(&mut self, words: &str) {
        if !words.is_empty() {
            self.text.push_str(if self.text.is_empty() { "" } else { "\n" });
            self.text.push_str(words);
        }
    }

    /// Makes what was said part of an event: what a tool is told, or tells, is nothing that people said.
    fn tell_as_event(&mut self, mut event: Value, as_member: &str) {
        let said = std::mem::take(&mut self.text);
        if !said.trim().is_empty() {
            event[as_member] = said.into();
        }
        self.events.insert(0, event);
    }
}

/// Kinds of messages that may be empty.
fn is_known(kind: &str) -> bool {
    matches!(
        kind,
        "multimodal_text"
            | "code"
            | "execution_output"
            | "thoughts"
            | "reasoning_recap"
            | "tether_quote"
            | "tether_browsing_display"
            | "system_error"
            | "user_editable_context"
            | "model_editable_context"
    )
}

#[cfg(test)]
mod tests;
