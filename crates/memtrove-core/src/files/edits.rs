//! Text edits: exact replacements in a text, one after the other, all or none.

use super::envelope::{self, WORKING_CHARS};
use super::{Code, body};
use crate::{Error, Result};
use memchr::memmem::Finder;
use serde_json::{Map, Value};
use std::ops::Range;

/// One replacement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextEdit {
    /// What is in the text now; never empty.
    pub old_text: String,
    /// What replaces it.
    pub new_text: String,
    /// Which match, counted from 1. Without it there must be only one.
    pub occurrence: Option<i64>,
}

impl TextEdit {
    /// As a request spells it.
    pub(super) fn into_json(self) -> Value {
        let mut members = Map::from_iter([
            ("old_text".into(), self.old_text.into()),
            ("new_text".into(), self.new_text.into()),
        ]);
        members.extend(self.occurrence.map(|occurrence| ("occurrence".into(), occurrence.into())));
        Value::Object(members)
    }
}

/// Reads a list of edits; one of the wrong shape refuses them all.
pub fn read(list: &[Value]) -> Result<Vec<TextEdit>> {
    list.iter()
        .enumerate()
        .map(|(index, edit)| read_one(edit).map_err(|fault| malformed(index, fault)))
        .collect()
}

fn read_one(edit: &Value) -> Result<TextEdit, &'static str> {
    let edit = edit.as_object().ok_or("must be a JSON object")?;
    let text = |name| edit.get(name).and_then(Value::as_str);
    let old_text =
        text("old_text").filter(|text| !text.is_empty()).ok_or("must have a non-empty 'old_text'")?;
    let new_text = text("new_text").ok_or("must have a string 'new_text'")?;
    let occurrence = body::member(edit, "occurrence")
        .map(|value| body::as_integer(value).ok_or("has an 'occurrence' that is no integer"))
        .transpose()?;
    Ok(TextEdit { old_text: old_text.to_owned(), new_text: new_text.to_owned(), occurrence })
}

fn malformed(index: usize, fault: &str) -> Error {
    Error::new(Code::InvalidTextPatch, format!("edit {index} {fault}")).with_text("edit_index", index)
}

/// Applies edits in order; each sees the text that the one before it made.
pub fn apply(text: &str, edits: &[TextEdit]) -> Result<String> {
    let mut text = text.to_owned();
    for (index, edit) in edits.iter().enumerate() {
        let place = find(&text, edit).map_err(|(code, count)| failed(code, index, count))?;
        text.replace_range(place, &edit.new_text);
        let chars = text.chars().count();
        if chars > WORKING_CHARS {
            return Err(envelope::too_large(chars));
        }
    }
    Ok(text)
}

/// The match to replace, or why there is none and how many matches there are.
fn find(text: &str, edit: &TextEdit) -> Result<Range<usize>, (Code, usize)> {
    let finder = Finder::new(&edit.old_text);
    let matches = || finder.find_iter(text.as_bytes());
    let count = matches().count();
    let wanted = match edit.occurrence {
        _ if count == 0 => return Err((Code::PatchMatchNotFound, count)),
        None if count > 1 => return Err((Code::PatchMatchAmbiguous, count)),
        None => 1,
        Some(occurrence) => usize::try_from(occurrence).unwrap_or(0),
    };
    let start = wanted.checked_sub(1).and_then(|skipped| matches().nth(skipped));
    let start = start.ok_or((Code::PatchOccurrenceOutOfRange, count))?;
    Ok(start..start + edit.old_text.len())
}

fn failed(code: Code, index: usize, count: usize) -> Error {
    let fault = match code {
        Code::PatchMatchNotFound => "is not in the text".to_owned(),
        Code::PatchMatchAmbiguous => format!("is in the text {count} times; say which with 'occurrence'"),
        _ => format!("is in the text {count} times, so 'occurrence' is out of range"),
    };
    Error::new(code, format!("the 'old_text' of edit {index} {fault}"))
        .with_text("edit_index", index)
        .with_text("match_count", count)
}

#[cfg(test)]
mod tests;
