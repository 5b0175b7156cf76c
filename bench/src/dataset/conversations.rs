//! Requests of the conversations surface.

use super::{Writer, request};

/// Creates a conversation without entries.
pub fn create(user: &str, title: &str) -> Vec<u8> {
    request("POST", "/v1/conversations", user, Some(&format!(r#"{{"title":"{title}"}}"#)))
}

/// Appends a history entry; creates the conversation when there is none of this id.
pub fn append(user: &str, conversation: &str, text: &str) -> Vec<u8> {
    let body = format!(
        r#"{{"channel":"history","contentType":"history","content":[{{"role":"USER","text":"{text}"}}]}}"#
    );
    request("POST", &format!("/v1/conversations/{conversation}/entries"), user, Some(&body))
}

/// Syncs a complete memory of `messages` messages of about 200 bytes each.
pub fn sync(user: &str, conversation: &str, messages: usize, writer: &mut Writer) -> Vec<u8> {
    sync_of(user, conversation, &memory(messages, writer))
}

/// Syncs a memory that has one message, then two, up to this many.
pub fn growing_syncs(user: &str, conversation: &str, messages: usize, writer: &mut Writer) -> Vec<Vec<u8>> {
    let memory = memory(messages, writer);
    (1..=messages).map(|length| sync_of(user, conversation, &memory[..length])).collect()
}

fn memory(messages: usize, writer: &mut Writer) -> Vec<String> {
    let message = |number| {
        let role = if number % 2 == 0 { "user" } else { "assistant" };
        format!(r#"{{"role":"{role}","number":{number},"text":"{}"}}"#, writer.text(155))
    };
    (0..messages).map(message).collect()
}

fn sync_of(user: &str, conversation: &str, content: &[String]) -> Vec<u8> {
    let body = format!(r#"{{"channel":"memory","contentType":"message","content":[{}]}}"#, content.join(","));
    request("POST", &format!("/v1/conversations/{conversation}/entries/sync"), user, Some(&body))
}

/// The newest entries of a conversation.
pub fn newest_page(user: &str, conversation: &str, limit: usize) -> Vec<u8> {
    request("GET", &format!("/v1/conversations/{conversation}/entries?tail=true&limit={limit}"), user, None)
}

/// The caller's conversations, first page.
pub fn list(user: &str) -> Vec<u8> {
    request("GET", "/v1/conversations", user, None)
}

/// Forks a conversation at one of its entries.
pub fn fork(user: &str, conversation: &str, entry: &str) -> Vec<u8> {
    request("POST", &format!("/v1/conversations/{conversation}/entries/{entry}/fork"), user, Some("{}"))
}

/// Full-text search with the default page.
pub fn search(user: &str, query: &str) -> Vec<u8> {
    let body = format!(r#"{{"query":"{query}","searchType":"fulltext"}}"#);
    request("POST", "/v1/conversations/search", user, Some(&body))
}
