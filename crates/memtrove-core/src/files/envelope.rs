//! The envelope: what every stored document must have, and what the server writes into it.

use super::{Code, body};
use crate::{Error, Result, Timestamp};
use serde_json::{Map, Value};

/// How many chars the compact JSON text of a stored envelope may have.
pub const MAX_CHARS: usize = 256_000;

/// How many chars a document may have while it is being patched. It leaves room for what copies first and removes
/// afterwards; without an end, a hundred copies of a value into itself would double it a hundred times.
pub(super) const WORKING_CHARS: usize = 4 * MAX_CHARS;

/// How deep an envelope may be nested: a body that carries one has a level of its own.
pub const MAX_DEPTH: usize = body::MAX_DEPTH - 1;

/// What the server knows about a change and the caller does not say.
#[derive(Debug, Clone, Copy)]
pub struct Stamp<'a> {
    /// When it happens.
    pub now: Timestamp,
    /// Who makes it.
    pub actor: &'a str,
    /// `created_at` of the version it replaces; `None` when there is none.
    pub previous_created_at: Option<&'a Value>,
}

/// An envelope as it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Document {
    /// Compact JSON.
    pub text: String,
    /// How many chars that is.
    pub chars: usize,
}

/// Takes the `document` of a request.
pub fn document(value: Option<&Value>) -> Result<&Map<String, Value>> {
    value.and_then(Value::as_object).ok_or_else(|| {
        Error::new(Code::InvalidRequest, "'document' must be a JSON object").with_text("field", "document")
    })
}

/// Reads an envelope that was stored.
pub fn stored(text: &str) -> Result<Map<String, Value>> {
    match body::parse(text.as_bytes()) {
        Ok(Value::Object(envelope)) => Ok(envelope),
        _ => Err(Error::internal("a stored document is no JSON object".to_owned())),
    }
}

/// Checks everything about an envelope but its size, which is known only when it is finished.
pub fn check(envelope: &Map<String, Value>) -> Result<()> {
    for name in ["doc_id", "schema_id", "schema_version"] {
        if !matches!(envelope.get(name), Some(Value::String(text)) if !text.trim().is_empty()) {
            return Err(invalid(name, "must be a non-blank string"));
        }
    }
    match body::member(envelope, "created_at") {
        None => {}
        Some(Value::String(text)) if Timestamp::parse(text).is_some() => {}
        Some(_) => return Err(invalid("created_at", "must be an RFC 3339 timestamp with an offset")),
    }
    if !envelope.get("content").is_some_and(Value::is_object) {
        return Err(invalid("content", "must be a JSON object"));
    }
    Ok(())
}

/// Checks an envelope, writes the members that are the server's, and renders it. The same envelope and stamp always
/// give the same text: that is how an audit trail proves versions it does not hold.
pub fn finish(mut envelope: Map<String, Value>, stamp: &Stamp<'_>) -> Result<(Map<String, Value>, Document)> {
    check(&envelope)?;
    let now = Value::String(stamp.now.to_string());
    if body::member(&envelope, "created_at").is_none() {
        let created_at = stamp.previous_created_at.unwrap_or(&now).clone();
        envelope.insert("created_at".to_owned(), created_at);
    }
    envelope.insert("updated_at".to_owned(), now);
    envelope.insert("updated_by".to_owned(), Value::String(stamp.actor.to_owned()));
    let text = serde_json::to_string(&envelope).map_err(|e| Error::internal(e.to_string()))?;
    let chars = text.chars().count();
    if chars > MAX_CHARS {
        return Err(too_large(chars));
    }
    Ok((envelope, Document { text, chars }))
}

fn invalid(field: &str, fault: &str) -> Error {
    Error::new(Code::InvalidDocument, format!("the document's '{field}' {fault}")).with_text("field", field)
}

/// The refusal of an envelope of this many chars.
pub(super) fn too_large(chars: usize) -> Error {
    Error::new(Code::DocumentSizeExceeded, format!("the document has more than {MAX_CHARS} chars"))
        .with_text("limit", MAX_CHARS)
        .with_text("actual", chars)
}

#[cfg(test)]
mod tests;
