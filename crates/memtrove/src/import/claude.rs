//! The data export of Claude: conversations, what it remembers of the user, and projects with their documents.

use super::record::{
    Conversation, Document, FILES, LeftOut, Message, Record, Remembered, Speaker, UNKNOWN_PARTS, Unplaced,
    list, placed, text, time,
};
use memtrove_core::{derived_uuid, legacy_labels};
use serde_json::{Map, Value, json};
use std::collections::HashSet;

/// Reads an item of any of its files.
pub fn read(item: &Value, left_out: &mut LeftOut) -> Result<Vec<Record>, String> {
    if item.get("chat_messages").is_some() {
        return conversation(item, left_out).map(|conversation| vec![Record::Conversation(conversation)]);
    }
    if item.get("conversations_memory").is_some() || item.get("project_memories").is_some() {
        return Ok(memories(item));
    }
    if item.get("prompt_template").is_some() || item.get("docs").is_some() {
        return project(item, left_out);
    }
    Err("it is neither a conversation nor a project nor a memory".to_owned())
}

fn conversation(item: &Value, left_out: &mut LeftOut) -> Result<Conversation, String> {
    let id = text(item, "uuid").ok_or("it has no uuid")?;
    let said = item.get("chat_messages").and_then(Value::as_array).ok_or("its chat_messages are no list")?;
    let forms_tree = said.iter().any(|message| message.get("parent_message_uuid").is_some());
    let (mut messages, mut before) = (Vec::with_capacity(said.len()), None);
    for (place, message) in said.iter().enumerate() {
        let id = text(message, "uuid").map_or_else(|| format!("message {place}"), str::to_owned);
        let parent = match forms_tree {
            true => text(message, "parent_message_uuid").map(str::to_owned),
            false => before.replace(id.clone()),
        };
        messages.push(Unplaced { message: self::message(&id, message, left_out), id, parent });
    }
    let last = text(item, "current_leaf_message_uuid").map(str::to_owned);
    let last = last.or_else(|| messages.last().map(|message| message.id.clone()));
    let mut about = Map::from_iter([("source".to_owned(), json!({"type": "claude", "id": id}))]);
    for name in ["summary", "model"] {
        if let Some(value) = text(item, name) {
            about.insert(name.to_owned(), value.chars().take(4000).collect::<String>().into());
        }
    }
    if let Some(project) = item.pointer("/project/name").or_else(|| item.pointer("/project/uuid")) {
        about.insert("project".to_owned(), project.clone());
    }
    Ok(Conversation {
        source_id: id.to_owned(),
        title: text(item, "name").or_else(|| text(item, "title")).map(str::to_owned),
        created_at: time(item, "created_at"),
        about,
        messages: placed(messages, last.as_deref(), left_out),
    })
}

fn message(id: &str, said: &Value, left_out: &mut LeftOut) -> Option<Message> {
    let mut spoken = Spoken::default();
    list(said, "content").for_each(|block| spoken.block(block, left_out));
    // Older exports have the words here alone.
    if spoken.words.is_empty() && spoken.events.iter().all(|event| event["type"] == "thinking") {
        spoken.words.extend(text(said, "text"));
    }
    list(said, "attachments").for_each(|file| spoken.attachment(file, left_out));
    for name in ["files", "files_v2"] {
        list(said, name).for_each(|file| spoken.file(file, left_out));
    }
    if spoken.words.is_empty() && spoken.events.is_empty() {
        return None;
    }
    Some(Message {
        source_id: id.to_owned(),
        parent: None,
        current: false,
        at: time(said, "created_at"),
        role: if matches!(text(said, "sender"), Some("human" | "user")) {
            Speaker::User
        } else {
            Speaker::Ai
        },
        text: spoken.words.join("\n\n"),
        events: spoken.events,
    })
}

/// What a message consists of.
#[derive(Default)]
struct Spoken<'a> {
    words: Vec<&'a str>,
    events: Vec<Value>,
}

impl<'a> Spoken<'a> {
    fn block(&mut self, block: &'a Value, left_out: &mut LeftOut) {
        match text(block, "type").unwrap_or_default() {
            "text" | "voice_note" => self.words.extend(text(block, "text")),
            "thinking" => {
                let thought = text(block, "thinking");
                self.events.extend(thought.map(|said| json!({"type": "thinking", "text": said})));
            }
            "tool_use" => {
                let input = block.get("input").unwrap_or(&Value::Null).to_string();
                self.events.push(json!({"type": "tool_call", "name": text(block, "name"), "input": input}));
            }
            "tool_result" => self.events.push(tool_result(block, left_out)),
            "image" => {
                left_out.note(FILES);
                self.events.push(json!({"type": "picture", "name": text(block, "file_name")}));
            }
            "token_budget" | "flag" | "" => {}
            other => {
                left_out.note(UNKNOWN_PARTS);
                self.events.push(json!({"type": other}));
            }
        }
    }

    /// A file whose text may have been taken out of it.
    fn attachment(&mut self, file: &Value, left_out: &mut LeftOut) {
        let (name, kind) = (text(file, "file_name"), text(file, "file_type"));
        let mut event = json!({"type": "file", "name": name, "contentType": kind});
        match text(file, "extracted_content") {
            Some(content) => event["text"] = content.into(),
            None => left_out.note(FILES),
        }
        self.events.push(event);
    }

    /// A file that is named only, unless it was named before.
    fn file(&mut self, file: &Value, left_out: &mut LeftOut) {
        let name = text(file, "file_name").or_else(|| text(file, "file_uuid"));
        if name.is_some() && self.events.iter().any(|event| event["name"].as_str() == name) {
            return;
        }
        left_out.note(FILES);
        self.events.push(json!({"type": "file", "name": name}));
    }
}

fn tool_result(block: &Value, left_out: &mut LeftOut) -> Value {
    let mut output: Vec<&str> = Vec::new();
    match block.get("content") {
        Some(Value::String(said)) => output.push(said),
        Some(Value::Array(parts)) => {
            for part in parts {
                match text(part, "text") {
                    Some(said) => output.push(said),
                    None => left_out.note("parts of results of tools that are no text"),
                }
            }
        }
        _ => {}
    }
    json!({"type": "tool_result", "name": text(block, "name"), "output": output.join("\n")})
}

/// What is remembered of somebody, a paragraph each, with the heading it stands below.
fn memories(item: &Value) -> Vec<Record> {
    let projects = item.get("project_memories").and_then(Value::as_object).into_iter().flatten();
    let projects = projects.filter_map(|(project, said)| Some((Some(project.as_str()), said.as_str()?)));
    let of_all = text(item, "conversations_memory").map(|said| (None, said));
    let mut records = Vec::new();
    for (project, said) in of_all.into_iter().chain(projects) {
        let said = said.replace("\r\n", "\n").replace('\r', "\n");
        let mut heading: Option<&str> = None;
        for paragraph in said.split("\n\n").map(str::trim).filter(|paragraph| !paragraph.is_empty()) {
            if let Some(found) = heading_of(paragraph) {
                heading = Some(found);
                continue;
            }
            let mut metadata =
                Map::from_iter([("source".to_owned(), json!({"type": "import", "reference": "claude"}))]);
            if let Some(heading) = heading {
                metadata.insert("title".to_owned(), heading.into());
            }
            if let Some(project) = project {
                metadata.insert("project".to_owned(), project.into());
            }
            records.push(Record::Memory(Remembered {
                source_id: format!("memory {} {paragraph}", project.unwrap_or_default()),
                content: Some(paragraph.to_owned()),
                metadata,
                ..Remembered::default()
            }));
        }
    }
    records
}

/// The words of a paragraph that is a heading: `# Work`, `**Work**`.
fn heading_of(paragraph: &str) -> Option<&str> {
    if paragraph.contains('\n') {
        return None;
    }
    let bold = paragraph.strip_prefix("**").and_then(|rest| rest.strip_suffix("**"));
    bold.or_else(|| paragraph.starts_with('#').then(|| paragraph.trim_start_matches('#'))).map(str::trim)
}

/// A project: its instructions and documents become files.
fn project(item: &Value, left_out: &mut LeftOut) -> Result<Vec<Record>, String> {
    let id = text(item, "uuid").ok_or("it has no uuid")?;
    // Projects may have the same name, and another export another one of that name: what tells them apart is always there.
    let name = segment(text(item, "name").unwrap_or("project"));
    let folder = format!("claude/projects/{name}-{}", mark(id));
    let mut records = Vec::new();
    let mut put = |name: String, said: &str, of: &Value| {
        let (path, text) = (format!("{folder}/{name}"), said.to_owned());
        records.push(Record::File(Document { path, text, created_at: time(of, "created_at") }));
    };
    if let Some(said) = text(item, "prompt_template") {
        put("instructions.md".to_owned(), said, item);
    }
    if let Some(said) = text(item, "description") {
        put("description.md".to_owned(), said, item);
    }
    let mut documents = Vec::new();
    for document in list(item, "docs") {
        match text(document, "content") {
            Some(said) => documents.push((text(document, "uuid").unwrap_or(said), said, document)),
            None => left_out.note("documents of projects without content"),
        }
    }
    // Of those with the same name the oldest has it alone: what a newer export adds moves none that is here.
    documents.sort_by_key(|(id, _, document)| (time(document, "created_at"), *id));
    let mut taken = HashSet::new();
    for (id, said, document) in documents {
        let mut name = segment(text(document, "filename").unwrap_or(id));
        if !taken.insert(name.clone()) {
            name = told_apart(&name, id);
        }
        put(format!("documents/{name}"), said, document);
    }
    Ok(records)
}

/// A name that others have, too, with the mark of an id before what it ends with.
fn told_apart(name: &str, id: &str) -> String {
    match name.rsplit_once('.') {
        Some((stem, ending)) if !stem.is_empty() => format!("{stem}-{}.{ending}", mark(id)),
        _ => format!("{name}-{}", mark(id)),
    }
}

/// A few letters that follow from an id.
fn mark(id: &str) -> String {
    derived_uuid(&[legacy_labels::IMPORTED_ID, "claude", id]).simple().to_string().chars().take(8).collect()
}

/// A name as one part of a path.
fn segment(name: &str) -> String {
    let name: String =
        name.chars().map(|one| if one.is_control() || "/\\%".contains(one) { '_' } else { one }).collect();
    let name = name.replace("..", "_");
    let short: String = name.trim().chars().take(60).collect();
    if short.is_empty() || short == "." { "unnamed".to_owned() } else { short }
}

#[cfg(test)]
mod tests;
