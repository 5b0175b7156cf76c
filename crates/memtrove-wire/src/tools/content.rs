//! How text lies in a file: a content type and the text, so that every agent that reads the file finds it.

use crate::files::Envelope;
use serde_json::{Map, Value};

/// What a text is unless somebody says otherwise.
pub const MARKDOWN: &str = "text/markdown";
/// The `schema_id` of files that were made from a text.
pub const FILE_SCHEMA_ID: &str = "memnet.file";
/// Its version.
pub const FILE_SCHEMA_VERSION: &str = "1.0.0";

/// The content of a file that holds this text.
pub fn text_content(content_type: &str, text: &str) -> Map<String, Value> {
    Map::from_iter([
        ("content_type".to_owned(), Value::from(content_type)),
        ("text".to_owned(), Value::from(text)),
    ])
}

/// A document for a file that is not there yet.
pub fn file_envelope(doc_id: String, content: Map<String, Value>) -> Envelope {
    Envelope {
        doc_id,
        schema_id: FILE_SCHEMA_ID.to_owned(),
        schema_version: FILE_SCHEMA_VERSION.to_owned(),
        created_at: None,
        updated_at: None,
        updated_by: None,
        content,
        extra: Map::new(),
    }
}

/// A file's content as it is shown: its type and its text. An empty text is a text; content without one is shown as
/// the JSON it is.
pub fn shown(content: &Map<String, Value>) -> (String, String) {
    match content.get("text") {
        Some(Value::String(text)) => {
            let content_type = content.get("content_type").and_then(Value::as_str).unwrap_or(MARKDOWN);
            (content_type.to_owned(), text.clone())
        }
        _ => ("application/json".to_owned(), format!("{:#}", Value::Object(content.clone()))),
    }
}
